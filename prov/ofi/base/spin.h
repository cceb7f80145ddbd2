/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long it pays to poll before sleeping, as the waits before tell. */
#ifndef DOFI_BASE_SPIN_H
#define DOFI_BASE_SPIN_H

#include <stdint.h>

/* Up to so many times the least, when what was waited for came a little later than that. */
#define DOFI_SPIN_MOST 4

/* Of one place where a thread waits; zeroed, it knows nothing. */
struct dofi_spin {
	int64_t usual;		/* what the last short wait took, in ns */
	unsigned long_waits;	/* in a row, since then */
};

/*
 * How long to poll, in ns, where @least is what it pays to poll if nothing is known: so long, or
 * twice what the last wait took if that was short. 0 if none has been short for a while: then a
 * poll only takes time from others, among them who brings what is waited for.
 */
int64_t dofi_spin_time(const struct dofi_spin *spin, int64_t least);

/* A wait has taken @took ns, asleep or not. */
void dofi_spin_learn(struct dofi_spin *spin, int64_t took, int64_t least);

#endif
