/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A doorbell: wakes the progress thread of a process that shares memory with this one.
 *
 * Shared memory has no descriptor to sleep on. A connection wakes its peer over its CM connection;
 * datagrams have no connection. So an IA with datagram EPs has a socket with a name that its peers
 * know, and a byte sent there wakes its thread. The kernel removes the name when the process ends,
 * which shows peers the death. The name is in the abstract namespace: the processes must be in one
 * network namespace.
 */
#ifndef DOFI_XPORT_UD_BELL_H
#define DOFI_XPORT_UD_BELL_H

#include "loop/progress.h"

#include <stdbool.h>

struct ud_bell {
	struct dofi_source source;
	struct dofi_progress *progress;
	int fd;				/* -1 while it is closed */
	/* called after each wakeup; progress thread; may be NULL */
	void (*rung)(struct ud_bell *bell);
};

/* Opens the doorbell @name. 0 or a negative errno. Progress thread only. */
int ud_bell_open(struct ud_bell *bell, struct dofi_progress *progress, const char *name);
void ud_bell_close(struct ud_bell *bell);

/* Rings @name by the socket of @bell; false if there is none. Never blocks. Any thread. */
bool ud_bell_ring(const struct ud_bell *bell, const char *name);
/* Returns whether there is a doorbell @name, without ringing it. Any thread. */
bool ud_bell_exists(const char *name);

#endif
