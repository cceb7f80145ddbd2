/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment variables of OFED's uDAPL providers: the setting that each sets here, or why it
 * has no effect.
 */
#ifndef DOFI_BASE_OFED_H
#define DOFI_BASE_OFED_H

struct dofi_ofed {
	const char *name; /* the environment variable */
	const char *unit;
	const char *sets; /* the variable that it sets here; NULL if it has no effect */
	const char *why;  /* why it has no effect; NULL if it has */
	long min, max;	  /* of a value for libfabric; both 0: base/env.c reads the variable */
};

/* The table has fewer rows. */
#define DOFI_OFED_MOST 64

/* Ends with a row without a name. */
extern const struct dofi_ofed dofi_ofed_table[];

/*
 * Sets libfabric's variables from those of OFED, unless the user has set them or the process is
 * privileged. Call it before the first fi_getinfo().
 */
void dofi_ofed_give(void);

/* Returns OFED's variable from which dofi_ofed_give() has set @name; NULL if there is none. */
const char *dofi_ofed_source(const char *name);

/* Logs each variable of OFED that is set and has no effect, or has a wrong value. */
void dofi_ofed_log(void);

#endif
