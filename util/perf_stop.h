/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends a measurement early on SIGINT or SIGTERM. */
#ifndef PERF_STOP_H
#define PERF_STOP_H

#include <signal.h>

/*
 * The signal that ends the measurement; 0: none. The client reads it between two phases, when the
 * server waits for a request, and sends a QUIT then.
 */
extern volatile sig_atomic_t perf_stop;

/* From now on the signals set perf_stop; a repetition after a second or more ends the process. */
void perf_stop_catch(void);

/* For a child process: only its parent ends it. Ctrl-C signals both. */
void perf_stop_ignore(void);

#endif
