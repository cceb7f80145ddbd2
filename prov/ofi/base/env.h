/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's settings: one table, read from the environment once. */
#ifndef DOFI_BASE_ENV_H
#define DOFI_BASE_ENV_H

struct dofi_settings {
	long log;	/* highest log level written, 0 (errors) to 3 (debug) */
	long spin_us;	/* a blocking wait polls this long before it sleeps */
	long probe_us;	/* how long a polling program may take between two polls */
	long counters;	/* 0 to tell nobody of them, 1 to tell who asks, 2 to write them at the end too */
	long tick_us;	/* the progress thread's first pause between looks at a polled queue */
};

/* Valid after dofi_settings_read(). */
extern struct dofi_settings dofi_settings;

struct dofi_setting {
	const char *name;	/* the environment variable */
	const char *unit;
	const char *help;
	long def, min, max;
	long *value;
};

/* Ends with a row whose name is NULL. */
extern const struct dofi_setting dofi_setting_table[];

/* Reads the environment; safe to call again and from several threads. */
void dofi_settings_read(void);

#endif
