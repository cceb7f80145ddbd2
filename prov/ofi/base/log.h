/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The provider's log: one line per message, by subsystem and level, to stderr or a file, and to
 * syslog:
 *
 *	dat-ofi[PID] WALL-CLOCK MONOTONIC-CLOCK SUBSYSTEM: LEVEL: IA: MESSAGE
 */
#ifndef DOFI_BASE_LOG_H
#define DOFI_BASE_LOG_H

#include <stdbool.h>

enum dofi_log_level {
	DOFI_SILENT = -1,
	DOFI_ERR,	/* a configuration is wrong: no return code can say how */
	DOFI_WARN,	/* something was refused or lost, and the program gets an error */
	DOFI_INFO,	/* once per object: opened, connected, closed */
	DOFI_DEBUG,	/* once per state change */
};

enum dofi_log_subsys {
	DOFI_CORE,	/* loading, settings, IA */
	DOFI_FAB,	/* choosing and opening fabrics */
	DOFI_CM,	/* connections */
	DOFI_EP,	/* endpoint states, failing operations */
	DOFI_EVD,	/* event queues */
	DOFI_MEM,	/* PZ, LMR, RMR */
};

/* Bits of dofi_log_dest. */
enum { DOFI_LOG_STDERR = 1, DOFI_LOG_SYSLOG = 2 };

/* Written once, before the first IA opens. */
extern enum dofi_log_level dofi_log_max;	/* messages above this level are dropped */
extern unsigned dofi_log_parts;			/* subsystems that write DOFI_INFO and DOFI_DEBUG */
extern unsigned dofi_log_dest;
/* The file in place of stderr, with %p for the process; NULL: stderr. Stays valid. */
extern const char *dofi_log_file;

/*
 * The name of the IA that the calling thread serves for life, as a progress thread does, and of
 * its present call's IA; NULL: none. A line has the call's, else the thread's. A post, dequeue or
 * wait sets no name, as that would cost each message: code that logs in these calls passes the name
 * itself (dofi_obj_log(), dofi_ep_log()).
 */
extern __thread const char *dofi_log_thread_ia, *dofi_log_call_ia;

/* Writes a line with the name @ia; NULL: the calling thread's. Any thread. */
void dofi_log_write(const char *ia, enum dofi_log_level level, enum dofi_log_subsys subsys,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static inline bool dofi_log_on(enum dofi_log_level level, enum dofi_log_subsys subsys)
{
	return __builtin_expect(level <= dofi_log_max, 0) &&
	       (level <= DOFI_WARN || dofi_log_parts & 1u << subsys);
}

/* A message that is not written costs one comparison, and its arguments are not evaluated. */
#define dofi_log_for(ia, level, subsys, ...)                             \
	do {                                                             \
		if (dofi_log_on(level, subsys))                          \
			dofi_log_write(ia, level, subsys, __VA_ARGS__);  \
	} while (0)

#define dofi_log(level, subsys, ...) dofi_log_for(NULL, level, subsys, __VA_ARGS__)

#endif
