/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers whoever asks this process what it has counted: datinfo --counters.
 *
 * The progress thread listens at a socket of Linux's abstract names, dat-ofi/PID/NUMBER, which
 * leaves no file behind. It tells nothing to other users than its own and root, waits for
 * nobody, and hands over the text as a file in memory that the asker reads by itself.
 */
#ifndef DOFI_LOOP_COUNTER_SERVER_H
#define DOFI_LOOP_COUNTER_SERVER_H

#include "loop/progress.h"

#include <stdio.h>

struct dofi_counter_server {
	struct dofi_source source;
	struct dofi_progress *progress;
	int fd;				/* listens; -1 when nothing is told */
	/* Writes the text. Progress thread, no lock held. */
	void (*render)(FILE *to, void *arg);
	void *arg;
};

/* What is not opened may be closed. */
void dofi_counter_server_init(struct dofi_counter_server *t);

/* Unless DAT_OFI_COUNTERS is 0. That it cannot is logged, and harmless. Any thread. */
void dofi_counter_server_open(struct dofi_counter_server *t, struct dofi_progress *progress,
		    void (*render)(FILE *to, void *arg), void *arg);

/* Progress thread. */
void dofi_counter_server_close(struct dofi_counter_server *t);

#endif
