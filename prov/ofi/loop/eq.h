/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event queues of a progress thread: one for endpoints, and where the fabric needs it another
 * for passive endpoints.
 *
 * Where the descriptor of an event queue reports each byte that arrives for its endpoints
 * (data_in_eq), the endpoints' queue leaves the epoll set while a program polls a CQ: each byte
 * would wake the progress thread, and reading the queue would contend with the polling thread. The
 * queue is then read every millisecond, and at once on request: dofi_progress_expect(),
 * dofi_progress_await() and dofi_progress_probe() in progress.h.
 */
#ifndef DOFI_LOOP_EQ_H
#define DOFI_LOOP_EQ_H

#include "loop/source.h"

#include <stdbool.h>
#include <stdint.h>

struct dofi_progress;
struct fi_info;
struct fid_eq;

/* An event queue, and its state in epoll. Progress thread only, once the thread runs. */
struct dofi_eq {
	struct fid_eq *fid;		/* NULL if there is none */
	int fd;
	struct dofi_source source;
	bool watched;			/* fd is in the epoll set; otherwise due_at counts */
	bool armed;			/* not read since fi_trywait() found it empty */
	int64_t due_at;		/* when it is read next while it is not watched */
	int64_t rests_until;		/* until then it is out of epoll, for lack of descriptors */
	unsigned empty_wakeups;		/* consecutive wakeups without an event */
};

/* What the event queues of a fabric need; the reasons are in fab/quirks.c. */
struct dofi_eq_traits {
	/*
	 * the descriptor reports data of endpoints, and reading the queue moves data; so passive
	 * endpoints need a queue of their own
	 */
	bool data_in_eq;
	bool fails_for_one;		/* an error of the queue may concern a single connection */
};

/*
 * Open the event queues that endpoints of @info need, and add them to the epoll set. Endpoints that
 * do not connect have none. Return 0, or a negative errno if nothing is open. Before the thread
 * runs.
 */
int dofi_eqs_open(struct dofi_progress *p, const struct fi_info *info);
int dofi_eqs_watch(struct dofi_progress *p);
void dofi_eqs_close(struct dofi_progress *p);

/* The steps of a round of the loop. Progress thread only. */

/* Reads the queues that are due or were reported. */
void dofi_eqs_serve(struct dofi_progress *p, int64_t now);
/* Reads all events of @eq. Returns whether there were any. */
bool dofi_eq_drain(struct dofi_progress *p, struct dofi_eq *eq);
/* Adds each queue to the epoll set or removes it, depending on traffic and on free descriptors. */
void dofi_eqs_choose(struct dofi_progress *p);
/* Returns whether the thread may sleep: each queue is empty, or is read by the clock. */
bool dofi_eqs_arm(struct dofi_progress *p);
/* Returns when a queue outside the epoll set has to be read, or @deadline if that is earlier. */
int64_t dofi_eqs_deadline(const struct dofi_progress *p, int64_t deadline);

#endif
