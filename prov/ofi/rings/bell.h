/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bell wakes the progress thread of a process that shares memory with this one.
 *
 * Shared memory has no descriptor to sleep on. So an IA with rings has a datagram socket with a
 * name that peers read in its shared page (rings/link.h), and a byte sent there wakes its thread.
 * The kernel removes the name when the process ends, which shows peers the death. The name is in
 * the abstract namespace: the processes must be in one network namespace.
 */
#ifndef DOFI_RINGS_BELL_H
#define DOFI_RINGS_BELL_H

#include "loop/progress.h"

#include <stdbool.h>

#define DOFI_BELL_NAME 17		/* with the NUL */

struct dofi_bell {
	struct dofi_source source;
	struct dofi_progress *progress;
	int fd;				/* -1 while it is closed */
	char name[DOFI_BELL_NAME];
	/* called after each wakeup; progress thread; may be NULL */
	void (*rung)(struct dofi_bell *bell);
};

/* Opens @bell with a random name. 0 or a negative errno. Progress thread. */
int dofi_bell_open(struct dofi_bell *bell, struct dofi_progress *progress);
void dofi_bell_close(struct dofi_bell *bell);

/*
 * Rings @name by the socket of @bell. Returns false if there is no such bell. Never blocks.
 * Preserves errno. Any thread.
 */
bool dofi_bell_ring(const struct dofi_bell *bell, const char *name);
/* Returns whether there is a bell @name, without ringing it. Any thread. */
bool dofi_bell_exists(const char *name);

#endif
