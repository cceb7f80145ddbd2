/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's settings: one table, read from the environment once. */
#ifndef DOFI_BASE_ENV_H
#define DOFI_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct dofi_settings {
	long log;	/* highest log level written, -1 (nothing) to 3 (debug) */
	long log_parts;	/* subsystems whose information and debugging is written, a bit each */
	long log_dest;	/* DOFI_LOG_STDERR, DOFI_LOG_SYSLOG */
	long spin_us;	/* a blocking wait polls this long before it sleeps */
	long probe_us;	/* how long a polling program may take between two polls */
	long counters;	/* 0 to tell nobody of them, 1 to tell who asks, 2 to write them at the end too */
	long tick_us;	/* a quarter of the longest pause between looks at a polled queue */
	long linger_ms;	/* data of a closed connection that stands still this long is given up */
	long cma;	/* whether processes on one host read each other's memory */
	long keepalive_s; /* a silent peer is asked for a sign of life after this long; 0 never */
	long numa;	/* enum dofi_numa */
	long local;	/* whether shared memory is taken to peers on this host by itself */
};

/* What is made of the machine's topology. */
enum dofi_numa { DOFI_NUMA_OFF, DOFI_NUMA_CHOOSE, DOFI_NUMA_BIND };

/* Valid after dofi_settings_read(). */
extern struct dofi_settings dofi_settings;

struct dofi_setting {
	const char *name;	/* the environment variable */
	const char *unit;
	const char *help;
	long def, min, max;
	long *value;
	const char *alias;	/* read in its place where that is not set; may be NULL */
	long (*of_alias)(long value); /* what the alias's value, never negative, means here */
};

/* Ends with a row whose name is NULL. */
extern const struct dofi_setting dofi_setting_table[];

/* A variable that libfabric or the registry reads, and that matters here. */
struct dofi_foreign {
	const char *name;
	const char *unit;
	const char *help;
	const char *given;	/* what we set it to where the user did not; NULL: nothing */
	uint32_t up_to;		/* the last version of libfabric with which it is that, as FI_VERSION() has it; */
	const char *later;	/* with later ones it is this, unless NULL */
	bool fixed;		/* a switch that is set to that in any case; the log says so if it was on */
};

/* Ends with a row whose name is NULL. */
extern const struct dofi_foreign dofi_foreign_table[];

/*
 * Reads the environment; safe to call again and from several threads. In a privileged process all
 * settings have their defaults, and libfabric's and hwloc's variables are dropped: so this comes
 * before the first call of either.
 */
void dofi_settings_read(void);

/*
 * Sets the foreign variables that have a value in the table, for version @libfabric. Libfabric reads them when its
 * providers are asked for first in a process; so this comes before. Once in a process.
 */
void dofi_settings_give(uint32_t libfabric);

/* A row of either table as it is in force, for who lists them. */
struct dofi_setting_line {
	char name[64];		/* DOFI_SETTING_PREFIX and the variable */
	char text[512];		/* unit, origin, help and value, with tabs between */
};

#define DOFI_SETTING_PREFIX "OFI_SETTING:"

/* The lines of both tables by number, NULL after the last; none before dofi_settings_read(). */
const struct dofi_setting_line *dofi_settings_line(unsigned i);

#endif
