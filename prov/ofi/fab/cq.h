/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A completion queue that the program's threads and the progress thread share. */
#ifndef DOFI_FAB_CQ_H
#define DOFI_FAB_CQ_H

#include "fab/progress.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>

/* Most completions that one read brings. */
#define DOFI_CQ_BATCH 16

/*
 * Who reads a CQ. ARMED: nobody polls; epoll wakes the progress thread. PROBED:
 * it woke and found that a program polled since it last looked; it waits a moment
 * to see whether the program still does. OWNED: it does; look again after some ticks.
 */
enum dofi_cq_mode {
	DOFI_CQ_ARMED,
	DOFI_CQ_PROBED,
	DOFI_CQ_OWNED,
};

struct dofi_cq {
	pthread_mutex_t lock;		/* reading fid and handing over what was read; keeps order */
	struct dofi_source source;
	struct dofi_progress *progress;
	struct fid_cq *fid;		/* NULL when closed; under lock, like the next */
	dofi_completed *completed;	/* the progress thread's, at hand */
	struct fi_cq_data_entry entry[DOFI_CQ_BATCH]; /* what the last read brought */
	int fd;

	_Atomic unsigned polls;		/* counts reads by the program's threads */
	_Atomic unsigned uses;		/* counts their posts, and events that others read for them */
	_Atomic int sleepers;		/* those who wait and do not poll: threads, CNOs */
	_Atomic int mode;		/* enum dofi_cq_mode, written by the progress thread */
	_Atomic(struct fid_cq *) programs_fid; /* fid, unless ARMED or closed */

	/* progress thread only */
	unsigned seen_polls;		/* when last looked */
	unsigned seen_uses;
	int ticks;			/* until the next look but one */
	bool watched;			/* epoll knows its descriptor */
	bool fired;
	int64_t look_at;		/* when PROBED, OWNED, or one of silent errors is looked at again */
	TAILQ_ENTRY(dofi_cq) link;
};

/* Once in a CQ's life of memory; its lock outlives every open and close. */
void dofi_cq_init(struct dofi_cq *cq);
int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain);
void dofi_cq_close(struct dofi_cq *cq);

/* A program's thread: reads all that is there, unless another thread is at it. */
void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink);

/*
 * The same in parts, for who looks at a completion first. dofi_cq_try() is false if another
 * thread is at the CQ, which delivers to every EVD. After it comes dofi_cq_read(), which fills
 * cq->entry and whose result is fi_cq_read()'s, and then dofi_cq_go_on() with that; or, where
 * one completion came while programs_fid was set and was dealt with, dofi_cq_leave().
 */
static inline bool dofi_cq_try(struct dofi_cq *cq)
{
	return !pthread_mutex_trylock(&cq->lock);
}

static inline ssize_t dofi_cq_read_from(struct dofi_cq *cq, struct fid_cq *fid)
{
	return fi_cq_read(fid, cq->entry, DOFI_CQ_BATCH);
}

static inline ssize_t dofi_cq_read(struct dofi_cq *cq)
{
	return cq->fid ? dofi_cq_read_from(cq, cq->fid) : -FI_EAGAIN;
}

static inline void dofi_cq_leave(struct dofi_cq *cq)
{
	/* no other thread has the lock */
	atomic_store_explicit(&cq->polls, atomic_load_explicit(&cq->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	pthread_mutex_unlock(&cq->lock);
}

/* Hands over what a read brought, reads on until nothing is left behind, and leaves. */
void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink);

/* A program's thread posted something, or took an event that was read before it came. Any lock. */
static inline void dofi_cq_used(struct dofi_cq *cq)
{
	/* a count that loses an increment to another thread still changes */
	atomic_store_explicit(&cq->uses, atomic_load_explicit(&cq->uses, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Reads until nothing is left, waiting for the lock; whether there was something. */
bool dofi_cq_drain(struct dofi_cq *cq);

/*
 * After a receive was posted where none was: its message may be in the fabric's
 * hands already, and nothing more will arrive to wake anybody. Any thread, no lock.
 */
void dofi_cq_kick(struct dofi_cq *cq);

/*
 * Around a program's thread that sleeps until an event arrives, and as long as an
 * event is to be told to a CNO: the progress thread serves the CQ meanwhile.
 */
void dofi_cq_sleep_begin(struct dofi_cq *cq);
void dofi_cq_sleep_end(struct dofi_cq *cq);

/* Progress thread: reads, arms or leaves the CQ alone, as the gating says. */
void dofi_cq_serve(struct dofi_cq *cq, int64_t now);

/* When dofi_cq_serve() wants to be called again if nothing happens. */
int64_t dofi_cq_next(const struct dofi_cq *cq);

#endif
