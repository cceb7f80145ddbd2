/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The leader of a CQ: a program's thread that sleeps on the CQ itself.
 *
 * A thread in dat_evd_wait that sleeps until the progress thread has read the CQ is woken late: the
 * kernel wakes the progress thread, and that wakes the waiting thread. The leader sleeps on what
 * the fabric wakes, reads the CQ as a polling thread does, and delivers the completions of other
 * EVDs as well. A CQ has at most one leader.
 *
 * The progress thread may sleep on the CQ while a leader does (DOFI_CQ_ARMED). It then leaves what
 * woke it to the leader, and from there on the CQ, as it does for a program that polls, until no
 * thread has read the CQ for a tick. So when a leader leaves, nothing has to be handed over.
 *
 * A CQ has no leader while something else needs the progress thread to serve it: a second thread
 * that sleeps, a CNO, or a sweep (dofi_cq_want_sweep()).
 */
#ifndef DOFI_FAB_LEAD_H
#define DOFI_FAB_LEAD_H

#include "base/cond.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dofi_cq;

/*
 * A word in memory that is shared with peers, on which leaders sleep as on a futex. A peer that
 * finds @bit set after it sent something clears the bit and calls dofi_word_wake(). A leader that
 * leaves does not clear the bit, as CQs may share the word: that costs the next peer a system call.
 */
struct dofi_lead_word {
	_Atomic uint32_t *word;
	uint32_t bit;
	/* set before the last read, which then covers all sources; or NULL */
	_Atomic bool *search;
};

/*
 * A full barrier, as in the peer: either the peer sees the bit, or the next read finds what it
 * sent.
 */
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

/*
 * Part of a CQ. The progress thread writes all members but @taken, with the lock of the CQ held,
 * while there is no leader.
 */
struct dofi_lead {
	_Atomic bool taken;		/* the CQ has a leader; written with the CQ's lock */
	_Atomic bool able;		/* the CQ can have a leader; written with the CQ's lock */
	/* with a descriptor: an eventfd that wakes the leader; or -1 */
	int wakeup_fd;
	int signals;			/* with a descriptor: from dofi_nap_open(); or -1 */
	/* without a descriptor: how peers wake the leader; or NULL */
	_Atomic(const struct dofi_lead_word *) word;
	struct dofi_cond left;		/* the leader has left; belongs to the CQ's lock */
};

/* Returns false if dofi_lead_begin() returns -EBUSY for every thread. */
static inline bool dofi_lead_is_able(const struct dofi_lead *lead)
{
	return atomic_load_explicit(&lead->able, memory_order_relaxed);
}

static inline bool dofi_lead_is_taken(const struct dofi_lead *lead)
{
	return atomic_load(&lead->taken);
}

/*
 * Call when the CQ is opened, and before it is closed: the latter waits until the leader has left.
 * CQ lock held.
 */
void dofi_lead_open(struct dofi_cq *cq);
void dofi_lead_close(struct dofi_cq *cq);

/*
 * Waits until the leader, if there is one, has left. Call before the CQ's descriptor changes, with
 * its lock held.
 */
void dofi_lead_expel(struct dofi_cq *cq);

/*
 * A CQ without a descriptor can have a leader from now on: peers wake it by @word. Progress thread.
 */
void dofi_lead_set_word(struct dofi_cq *cq, const struct dofi_lead_word *word);

/*
 * Makes the caller the leader and delivers what is there. Returns 0 if the CQ is empty: the next
 * completion wakes the caller in dofi_lead_sleep(), and it has to call dofi_lead_end() in the end.
 * Otherwise the caller is not the leader: -EAGAIN if there was something to read, or still is;
 * -EBUSY if the CQ cannot be led now. No lock.
 */
int dofi_lead_begin(struct dofi_cq *cq);

/*
 * Sleeps like dofi_cond_wait(), but at most until @cq may have something to read, or the leader is
 * deposed; on a word, at most dofi_longest_rest_ns.
 */
int dofi_lead_sleep(struct dofi_cq *cq, struct dofi_cond *cond, struct dofi_mutex *lock,
		    int64_t deadline) DOFI_NEEDS(*lock);

/* The caller is no longer the leader. It has to poll for what has arrived in between. No lock. */
void dofi_lead_end(struct dofi_cq *cq);

/*
 * Wakes the leader, if there is one: its next dofi_lead_begin() fails if it may not go on. Any
 * thread, any lock.
 */
void dofi_lead_depose(struct dofi_lead *lead);

#endif
