/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves the counters of an IA to datinfo --counters. The progress thread listens at an abstract
 * AF_UNIX address, dat-ofi/PID/NUMBER, for processes of its own user, of root and of the group
 * DAT_OFI_COUNTERS_GROUP. It never waits: it sends the descriptor of a memory file with the text.
 */
#ifndef DOFI_LOOP_COUNTER_SERVER_H
#define DOFI_LOOP_COUNTER_SERVER_H

#include "loop/progress.h"

#include <stdio.h>

struct dofi_counter_server {
	struct dofi_source source;
	struct dofi_progress *progress;
	int fd;				/* the listening socket; -1 if there is none */
	/* Writes the text. Progress thread, no lock held. */
	void (*render)(FILE *to, void *arg);
	void *arg;
};

/* An initialized server may be closed without being opened. */
void dofi_counter_server_init(struct dofi_counter_server *t);

/* Opens the server, unless DAT_OFI_COUNTERS is 0. A failure is only logged. Any thread. */
void dofi_counter_server_open(struct dofi_counter_server *t, struct dofi_progress *progress,
		    void (*render)(FILE *to, void *arg), void *arg);

/* Progress thread. */
void dofi_counter_server_close(struct dofi_counter_server *t);

#endif
