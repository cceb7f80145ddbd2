/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's settings: one table, read from the environment once. */
#ifndef DOFI_BASE_ENV_H
#define DOFI_BASE_ENV_H

#include "base/environ.h"

#include <stdbool.h>
#include <stdint.h>

struct dofi_settings {
	int64_t log;	/* highest log level written, -1 (nothing) to 3 (debug) */
	int64_t log_parts;	/* subsystems that write DOFI_INFO and DOFI_DEBUG, a bit each */
	int64_t log_dest;	/* DOFI_LOG_STDERR, DOFI_LOG_SYSLOG */
	int64_t spin_us;	/* a blocking wait polls this long before it sleeps */
	int64_t probe_us;	/* how long a polling program may take between two polls */
	/* 0: not served; 1: served to datinfo; 2: also written when an object is freed */
	int64_t counters;
	int64_t counters_group;	/* a group with the right to read them; -1: none */
	int64_t tick_us; /* a quarter of the longest pause between checks of a polled queue */
	/* a closed connection is reset when its data has not moved for this long */
	int64_t linger_ms;
	int64_t cma;	/* whether processes on one host access each other's memory */
	int64_t keepalive_s; /* a silent peer is probed after this long; 0: never */
	int64_t numa;	/* enum dofi_numa */
	int64_t local;	/* whether peers on this host are reached by shared memory by default */
	/* whether calls that DAT forbids and OFED's provider accepts fail; -1: ia_params decide */
	int64_t strict;
};

/* How the machine's topology is used. */
enum dofi_numa { DOFI_NUMA_OFF, DOFI_NUMA_CHOOSE, DOFI_NUMA_BIND };

/* Valid after dofi_settings_read(). */
extern struct dofi_settings dofi_settings;

struct dofi_setting {
	const char *name;	/* the environment variable */
	const char *unit;
	const char *help;
	int64_t def, min, max;
	int64_t *value;
	const char *alias;	/* the variable that is read if name is not set; may be NULL */
	/* converts the alias's value, which is never negative */
	int64_t (*of_alias)(int64_t value);
};

/* Ends with a row without a name. */
extern const struct dofi_setting dofi_setting_table[];

/* How libfabric gets the value of a variable that the user has not set. */
enum dofi_give {
	DOFI_GIVE_AT_START,	/* libfabric reads the variable once, in its first call */
	DOFI_GIVE_AT_ENDPOINT,	/* whenever a connectionless endpoint is opened */
	DOFI_GIVE_ATTRIBUTE,	/* never: the value is an attribute of fi_info */
};

/* A variable that libfabric or the registry reads, and that matters here. */
struct dofi_foreign {
	const char *name;
	const char *unit;
	const char *help;
	/* OFED's variable that is read if the user has not set name; NULL: none */
	const char *alias;
	long min, max;	/* of the alias's value */
	const char *given;	/* the value if the user set none; NULL: libfabric's default */
	/* the last version of libfabric (FI_VERSION()) that gets given; 0: all do */
	uint32_t up_to;
	const char *later;	/* the value with later versions; NULL: libfabric's default */
	/* given is libfabric's default, and replaces other values of the user, which are logged */
	bool fixed;
	enum dofi_give how;
};

/* Ends with a row without a name. */
extern const struct dofi_foreign dofi_foreign_table[];

/* Parses all of @text as a C number: decimal, 0x or 0. Returns whether it is one that fits. */
bool dofi_number(const char *text, int64_t *v);

/*
 * Reads the environment once. Any thread, repeatedly. Call before libfabric and hwloc: a privileged
 * process gets the defaults, and loses the variables of those two.
 */
void dofi_settings_read(void);

/*
 * Chooses the values for version @libfabric, once, and logs values of the user that have no effect.
 */
void dofi_settings_choose(uint32_t libfabric);

/* Lends the variables of this row to the environment, until dofi_environ_return(). */
void dofi_settings_lend(enum dofi_give how) DOFI_TAKES(dofi_environ_lock);

/* Returns the value of the foreign variable @name: the user's, OFED's or ours; NULL: none. */
const char *dofi_foreign_value(const char *name);

/* A row of either table with its value in force, to be listed. */
struct dofi_setting_line {
	char name[64];		/* DOFI_SETTING_PREFIX and the variable */
	char text[512];		/* unit, origin, help and value, with tabs between */
};

#define DOFI_SETTING_PREFIX "OFI_SETTING:"

/* The lines of both tables by number, NULL after the last; none before dofi_settings_read(). */
const struct dofi_setting_line *dofi_settings_line(unsigned i);

#endif
