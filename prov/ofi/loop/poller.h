/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue that the progress thread serves and the program's threads poll.
 *
 * An armed queue wakes the progress thread when something arrives: by its descriptor, or, without
 * one, by the peer (struct dofi_progress_ops, rest). A queue that the program polls is not armed.
 */
#ifndef DOFI_LOOP_POLLER_H
#define DOFI_LOOP_POLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct dofi_poller;
struct dofi_progress;

/* Called on the progress thread, with no lock held. */
struct dofi_poller_ops {
	/*
	 * Serves the queue if it is due or has fired. Returns when it is due next, DOFI_NEVER if
	 * only an event makes it so.
	 */
	int64_t (*serve)(struct dofi_poller *poller, int64_t now);
	/*
	 * A thread of the program is about to sleep: serve() soon checks whether other threads
	 * still poll.
	 */
	void (*probe)(struct dofi_poller *poller, int64_t now);
	/* Reads until the queue is empty. Returns whether it held anything. */
	bool (*drain)(struct dofi_poller *poller);
	bool (*is_armed)(const struct dofi_poller *poller);
};

struct dofi_poller {
	const struct dofi_poller_ops *ops;
	/* a descriptor in the epoll set reports what arrives while it is armed */
	bool has_fd;
	/* something arrived, or armed anew: serve() is due at once */
	bool fired;
	TAILQ_ENTRY(dofi_poller) link;
};

/*
 * The progress thread serves @poller until it is removed. Progress thread, or before the thread
 * runs.
 */
void dofi_poller_add(struct dofi_progress *p, struct dofi_poller *poller);
void dofi_poller_remove(struct dofi_progress *p, struct dofi_poller *poller);

/* Returns whether only a peer can wake the progress thread for @poller. Any thread. */
static inline bool dofi_poller_relies_on_peer(const struct dofi_poller *poller)
{
	return !poller->has_fd && poller->ops->is_armed(poller);
}

#endif
