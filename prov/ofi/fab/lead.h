/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The leader of a CQ: a program's thread that sleeps on the CQ itself.
 *
 * A thread in dat_evd_wait that sleeps until the progress thread has read the CQ is woken late: the kernel wakes the
 * progress thread, and that wakes the waiting thread. The leader sleeps on what the fabric wakes, reads the CQ as a
 * polling thread does, and delivers the completions of other EVDs as well. A CQ has at most one leader.
 *
 * The progress thread may sleep on the CQ at the same time (DOFI_CQ_ARMED). It then leaves what woke it to the leader,
 * and from there on the CQ, as it does for a program that polls, until no thread has read the CQ for a tick. So when a
 * leader leaves, nothing has to be handed over.
 *
 * A CQ that others depend on has no leader: a thread that sleeps otherwise, a CNO, a sweep (dofi_cq_want_sweep()).
 */
#ifndef DOFI_FAB_LEAD_H
#define DOFI_FAB_LEAD_H

#include "base/cond.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dofi_cq;

/*
 * A word in memory that is shared with peers, on which leaders sleep as on a futex. A peer that finds @bit set behind
 * what it gave clears the bit and calls dofi_word_wake(). The bit stays when a leader leaves, as there may be others:
 * it costs the next peer a system call.
 */
struct dofi_lead_word {
	_Atomic uint32_t *word;
	uint32_t bit;
	_Atomic bool *search;		/* set before the last read, which then has to look everywhere; or NULL */
};

/* A barrier, as peers have one: either a peer sees the bit, or what it gave is found by the next read. */
static inline void dofi_lead_word_ask(const struct dofi_lead_word *w)
{
	atomic_fetch_or(w->word, w->bit);
	if (w->search)
		atomic_store(w->search, true);
}

/* Wakes the leaders that sleep, or are about to. */
static inline void dofi_lead_word_end(const struct dofi_lead_word *w)
{
	atomic_fetch_and(w->word, ~w->bit);
	dofi_word_wake(w->word);
}

/* Part of a CQ. All but @taken is written by the progress thread, with the CQ's lock, while there is no leader. */
struct dofi_lead {
	_Atomic bool taken;		/* written with the CQ's lock */
	_Atomic bool able;		/* the CQ can have a leader; written with the CQ's lock */
	int wakeup_fd;			/* where the CQ has a descriptor: to wake the leader; or -1 */
	int signals;			/* where the CQ has a descriptor: from dofi_nap_open(); or -1 */
	_Atomic(const struct dofi_lead_word *) word; /* where it has none: what peers wake the leader by, or NULL */
	struct dofi_cond left;		/* of the CQ's lock: the leader has left */
};

/* False where dofi_lead_begin() returns -EBUSY for every thread. */
static inline bool dofi_lead_is_able(const struct dofi_lead *lead)
{
	return atomic_load_explicit(&lead->able, memory_order_relaxed);
}

static inline bool dofi_lead_is_taken(const struct dofi_lead *lead)
{
	return atomic_load(&lead->taken);
}

/* When the CQ opens, and before what the leader sleeps on is closed: waits until it has left. Need the CQ's lock. */
void dofi_lead_open(struct dofi_cq *cq);
void dofi_lead_close(struct dofi_cq *cq);

/* Waits until the leader, if there is one, has left: before the CQ's descriptor changes. Needs the CQ's lock. */
void dofi_lead_expel(struct dofi_cq *cq);

/* A CQ without a descriptor can have a leader from now on: peers wake it by @word, which outlives it. Progress thread. */
void dofi_lead_set_word(struct dofi_cq *cq, const struct dofi_lead_word *word);

/*
 * The caller becomes the leader and delivers what is there. 0: nothing is left, and the next completion wakes it in
 * dofi_lead_sleep(); in the end it calls dofi_lead_end(). Otherwise it is not the leader. -EAGAIN: there was something
 * to be read, or there is. -EBUSY: the CQ cannot be led now. No lock.
 */
int dofi_lead_begin(struct dofi_cq *cq);

/* Drops @bell's @lock and sleeps: as dofi_cond_wait(), and until @cq may have something, or is wanted back. */
int dofi_lead_sleep(struct dofi_cq *cq, struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline);

/* The caller leads no more, and reads by a poll what has come meanwhile. No lock. */
void dofi_lead_end(struct dofi_cq *cq);

/* Wakes the leader, if there is one: dofi_lead_begin() says whether it may go on. Any thread, any lock. */
void dofi_lead_depose(struct dofi_lead *lead);

#endif
