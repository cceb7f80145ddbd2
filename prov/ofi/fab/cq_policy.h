/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of a completion queue: which thread reads it now, and when the progress thread looks
 * again. Pure functions of observations and a state: fab/cq.c observes and acts. docs/progress.md
 * has the rules in words.
 */
#ifndef DOFI_FAB_CQ_POLICY_H
#define DOFI_FAB_CQ_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Of one CQ; progress thread only. */
struct dofi_cq_policy {
	long pause_us;		/* while the CQ is left to the program: from a look to the next */
	int post_only_looks;	/* looks that found only posts, less looks that found work */
	int wakeups_kept;	/* the next wakeups after which the progress thread reads the CQ */
	bool stuck;		/* armed, although a sleep on the descriptor would spin */
	unsigned stuck_wakeups;	/* stuck: by arrivals */
	long stuck_us;		/* stuck: the time until the next look */
};

/* An observation of the progress thread: the present, and the time since its last look. */
struct dofi_cq_seen {
	bool offloaded;		/* hardware moves data while no thread reads the CQ */
	bool armed;		/* a completion wakes the progress thread */
	bool woken;		/* armed, and a completion, or a wakeup by rings, woke the thread */
	bool sleeper;		/* a thread or a CNO waits for an event, and does not read the CQ */
	bool sweep;		/* a sweep is wanted */
	bool has_leader;	/* a thread of the program sleeps on the CQ itself */
	bool led;		/* a thread did */
	bool took_queued;	/* the program took an event out of an EVD's queue */
	bool posted;		/* the program posted to an endpoint of the CQ */
	bool reads;		/* a poll holds the CQ lock, and is not counted in polls */
	unsigned polls;		/* of threads of the program */
	int64_t ran;		/* processor time of the thread that polled last, in ns */
	int64_t passed;		/* time since the last look, in ns */
	bool preempted;		/* the thread that polled last lacks a processor */
	/* woken: the progress thread has read the CQ, and that brought the program no event */
	bool eventless;
};

enum dofi_cq_turn {
	DOFI_CQ_ARM,		/* the progress thread reads the CQ and sleeps on it */
	DOFI_CQ_LEAVE,		/* the program reads it; the next look is after pause_us */
	DOFI_CQ_READ_AND_LEAVE,	/* the same, after one read for other EVDs and peers */
};

/* Call when the CQ is opened. */
void dofi_cq_policy_init(struct dofi_cq_policy *policy);

/*
 * Returns whether the program may be reading memory that its peer writes. If so, read the CQ and
 * set @seen->eventless before dofi_cq_turn().
 */
bool dofi_cq_suspects_memory(const struct dofi_cq_seen *seen);

/* Decides for this look, and sets pause_us. */
enum dofi_cq_turn dofi_cq_turn(struct dofi_cq_policy *policy, const struct dofi_cq_seen *seen);

/* The events that epoll reports of an armed CQ. */
enum dofi_cq_watch {
	DOFI_CQ_ONCE,		/* once that there is something to read */
	DOFI_CQ_ARRIVALS,	/* each arrival */
	DOFI_CQ_NOTHING,
	DOFI_CQ_AS_BEFORE,
};

/* Decides for a CQ that is being armed. @stuck: a sleep on the descriptor would spin. */
enum dofi_cq_watch dofi_cq_watch(struct dofi_cq_policy *policy, bool stuck, bool woken);

/*
 * Returns the time until the next look at an armed CQ, in us; -1 if only a wakeup leads to one.
 * @sweep: a sweep is wanted; @unreported: a thread sleeps, and no wakeup reports failures.
 */
long dofi_cq_rest_us(const struct dofi_cq_policy *policy, bool sweep, bool unreported);

#endif
