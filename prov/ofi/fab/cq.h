/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A completion queue that the program's threads and the progress thread share. */
#ifndef DOFI_FAB_CQ_H
#define DOFI_FAB_CQ_H

#include "base/cond.h"
#include "base/mutex.h"
#include "base/polling.h"
#include "fab/cq_policy.h"
#include "fab/quirks.h"
#include "fab/shards.h"
#include "loop/progress.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The maximum of completions per read. */
#define DOFI_CQ_BATCH 16

/*
 * The leader of a CQ: a program's thread in dat_evd_wait that sleeps on the CQ itself, as the
 * detour over the progress thread wakes it late. It reads the CQ as a polling thread does, and
 * delivers the completions of other EVDs as well. No thread begins to lead while something else
 * needs the progress thread: a second sleeping thread, a CNO, or a sweep (dofi_cq_want_sweep()).
 * If the progress thread sleeps on the CQ as well (cq->armed), a completion wakes both. After the
 * first wakeups, in which both read (policy.wakeups_kept), it leaves the CQ to the leader, as to a
 * polling program, until no thread has read the CQ for a tick. A leader that leaves wakes no
 * thread: the progress thread finds the CQ unread within a tick.
 */

/*
 * A word in memory shared with peers, on which leaders sleep as on a futex. A peer that finds @bit
 * set after it sent clears the bit and calls dofi_word_wake(). A leader that leaves does not clear
 * the bit: the next peer makes a system call.
 */
struct dofi_lead_word {
	_Atomic uint32_t *word;
	uint32_t bit;
	_Atomic bool *search; /* set before the last read, which then covers all sources; or NULL */
};

/* A full barrier, as in the peer: the peer sees the bit, or the next read finds its message. */
static inline void dofi_lead_word_ask(const struct dofi_lead_word *w)
{
	atomic_fetch_or(w->word, w->bit);
	if (w->search)
		atomic_store(w->search, true);
}

/*
 * The progress thread writes all but @has_leader and @able, under the CQ lock, while there is no
 * leader.
 */
struct dofi_lead {
	_Atomic bool has_leader;	/* written with the CQ lock */
	/* the CQ can have a leader; cleared without the lock by a leader that failed */
	_Atomic bool able;
	int wakeup_fd;		/* CQs with a descriptor: an eventfd that wakes the leader; or -1 */
	int signals;			/* CQs with a descriptor: from dofi_nap_open(); or -1 */
	/* CQs without a descriptor: how peers wake the leader; or NULL */
	_Atomic(const struct dofi_lead_word *) word;
	struct dofi_cond left;		/* the leader has left; belongs to the CQ lock */
};

/* Returns false if dofi_lead_begin() returns -EBUSY for every thread. */
static inline bool dofi_lead_is_able(const struct dofi_lead *lead)
{
	return atomic_load_explicit(&lead->able, memory_order_relaxed);
}

static inline bool dofi_has_leader(const struct dofi_lead *lead)
{
	return atomic_load(&lead->has_leader);
}

/* An extra sweep callback, called after ops->swept() under the same rules. May remove itself. */
struct dofi_sweeper {
	void (*swept)(struct dofi_sweeper *sweeper);
	LIST_ENTRY(dofi_sweeper) link;	/* in cq->sweepers; CQ lock */
};

/* An EP with something that the fabric refused. Its owner ends it before the CQ is closed. */
struct dofi_stall {
	/* The next sweep calls it once, after any number of dofi_cq_stall(). CQ lock held. */
	void (*go_on)(struct dofi_stall *stall);
	bool queued;			/* in cq->stalls; cq->stalls_lock */
	TAILQ_ENTRY(dofi_stall) link;
};

TAILQ_HEAD(dofi_stalls, dofi_stall);

struct dofi_cq {
	/* held while a thread reads and delivers; keeps completions in order */
	struct dofi_mutex lock;
	struct dofi_source source;	/* epoll reports fd through it */
	struct dofi_served served;	/* the progress thread serves the CQ through it */
	struct dofi_progress *progress;

	/* lock */
	struct fid_cq *fid;		/* NULL while the CQ is closed */
	const struct dofi_progress_ops *ops;	/* where completions are delivered */
	dofi_completed *completed;	/* ops->completed, cached to save a load */
	void *owner;			/* for the user of ops; NULL at first */
	LIST_HEAD(, dofi_sweeper) sweepers;
	struct fi_cq_data_entry entry[DOFI_CQ_BATCH]; /* the completions of the last read */
	/* the first entry that dofi_cq_next() has not returned */
	const struct fi_cq_data_entry *next;
	unsigned left;		/* entries from next on; 0 when the CQ is armed and drained */
	unsigned most;			/* how many completions dofi_cq_next() reads at once */
	unsigned polls;			/* reads by threads of the program; wraps around */
	unsigned finds;			/* reads that found something; wraps around */
	unsigned finds_seen;		/* by the last dofi_cq_is_stuck() */
	unsigned barren;		/* its consecutive calls without a find between them */

	/* written before the CQ is opened, or when it gets its second shard */
	int fd;				/* to sleep on: of fid, or of the set of shards; -1: none */
	struct dofi_shard first;	/* the shard of fid */
	_Atomic(struct dofi_shards *) shards; /* allocated with the second shard, and never freed */
	bool several;			/* the CQ has more than one shard; written with the lock */
	struct fid_fabric *fabric;	/* of domain; another provider fails in fi_trywait() */
	struct fid_domain *domain;
	const struct dofi_quirk *quirk;	/* of the fabric; reads_each: shards pay off */
	bool by_clock;			/* no descriptor reports arrivals */
	bool serial;	/* the domain is FI_THREAD_COMPLETION: dofi_cq_lock_access() */
	struct dofi_mutex access;	/* serializes calls of libfabric where the CQ is serial */
	/* of quirk->fixed_queues: entries not reserved; at first, the wanted size */
	unsigned unreserved;

	/* the program's calls since the progress thread served the CQ last */
	struct dofi_polling_thread last_reader;	/* a thread of the program */
	_Atomic bool took_queued;	/* the program took an event out of an EVD's queue */
	_Atomic bool led;		/* a thread of the program slept on the CQ as its leader */
	_Atomic bool posted;		/* the program posted to an endpoint of the CQ */
	_Atomic bool delivered;		/* a read queued an event for the program */

	/* threads and CNOs that wait for an event and do not poll */
	_Atomic int sleepers;
	/*
	 * The program does not poll, and a completion wakes the progress thread: by epoll, or by a
	 * peer where the CQ has no descriptor (dofi_progress_ops.sleep_begin). Otherwise the
	 * program reads the CQ, and the progress thread checks after pauses. Written by the
	 * progress thread.
	 */
	_Atomic bool armed;
	/*
	 * What a polling thread may read one completion from: fid; or NULL while each read takes a
	 * batch: armed, led, closed, foreign contexts, or several shards. Written with the lock:
	 * dofi_cq_route().
	 */
	_Atomic(struct fid_cq *) programs_fid;
	/* ops->poll, or NULL while each read has to take a batch. Written as programs_fid. */
	_Atomic(dofi_polled *) programs_poll;
	struct dofi_mutex stalls_lock;	/* a leaf */
	struct dofi_stalls stalls;	/* stalls_lock; EPs that the next sweep calls */
	_Atomic unsigned sweeps_wanted;	/* calls of dofi_cq_want_sweep() */
	/* sweeps_wanted before the last sweep; written with the lock */
	_Atomic unsigned sweeps_done;
	_Atomic unsigned refused;	/* polls that found the lock held */
	struct dofi_lead lead;

	/* progress thread only */
	struct dofi_cq_policy policy;
	int64_t looked_at;		/* the time of the last look */
	unsigned polls_seen;		/* polls at the last look */
	bool watched;			/* fd is in the epoll set */
	int64_t due_at;			/* when the CQ was armed, or its next look */
};

/*
 * Call once for the memory of a CQ: its lock stays valid while the CQ is opened and closed. The
 * fabric has no quirks unless the caller sets others.
 */
void dofi_cq_init(struct dofi_cq *cq);
/* Opens a CQ of @domain of @fabric that delivers to @ops. Progress thread. */
int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_fabric *fabric,
		     struct fid_domain *domain, const struct dofi_progress_ops *ops);
void dofi_cq_close(struct dofi_cq *cq) DOFI_NEEDS_NOT(cq->lock);

/* Returns the errno for a work completion status of verbs; @err, the fabric's, for another. */
int dofi_wc_errno(int status, int err);

/*
 * Call around each call of libfabric for the CQ, or for an endpoint that completes there: a serial
 * CQ allows one at a time (FI_THREAD_COMPLETION). Take no lock of ours in between.
 * DOFI_UNCHECKED_LOCKS: the analysis counts the access lock as held on every CQ, serial or not.
 */
static inline void dofi_cq_lock_access(struct dofi_cq *cq)
	DOFI_TAKES(cq->access) DOFI_UNCHECKED_LOCKS
{
	if (cq->serial)
		dofi_mutex_lock(&cq->access);
}

static inline void dofi_cq_unlock_access(struct dofi_cq *cq)
	DOFI_DROPS(cq->access) DOFI_UNCHECKED_LOCKS
{
	if (cq->serial)
		dofi_mutex_unlock(&cq->access);
}

/* Asserts in debug builds that the caller has called dofi_cq_lock_access(). */
#define dofi_cq_assert_access(cq) dofi_cq_check_access(cq, __func__)

static inline void dofi_cq_check_access(const struct dofi_cq *cq, const char *function)
	DOFI_ASSERTS(cq->access) DOFI_UNCHECKED_LOCKS
{
	if (cq->serial)
		dofi_mutex_check_held(&cq->access, "cq->access", function);
}

/*
 * Polls for a thread of the program: reads and delivers all that is there, unless another thread
 * holds the lock. A thread that finds the lock held many times yields its processor.
 */
void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink) DOFI_NEEDS_NOT(cq->lock);
/*
 * Polls for a thread of the program, without a sink: reads only the next completion, unless a read
 * has to take a batch (programs_fid).
 */
void dofi_cq_poll_next(struct dofi_cq *cq) DOFI_NEEDS_NOT(cq->lock);

/*
 * For a polling thread: dofi_cq_try() and dofi_cq_leave(), or dofi_cq_go_on(), with one read in
 * between. If the lock is held, another thread reads, and delivers to every EVD.
 */
static inline bool dofi_cq_try(struct dofi_cq *cq) DOFI_TAKES_IF(true, cq->lock)
{
	return dofi_mutex_try(&cq->lock);
}

static inline bool dofi_cq_wants_sweep(const struct dofi_cq *cq)
{
	return atomic_load_explicit(&cq->sweeps_wanted, memory_order_relaxed) !=
	       atomic_load_explicit(&cq->sweeps_done, memory_order_relaxed);
}

/*
 * Returns whether a sweep is wanted, for a thread that is about to sleep and has stored armed or
 * lead.has_leader, which dofi_cq_want_sweep() loads after its store. All four are sequentially
 * consistent.
 */
static inline bool dofi_cq_wants_sweep_now(const struct dofi_cq *cq)
{
	return atomic_load(&cq->sweeps_wanted) != atomic_load(&cq->sweeps_done);
}

/*
 * Reads a batch into cq->entry: the completions that dofi_cq_next() left, then the fabric's.
 * Returns their number, or a negative error of fi_cq_read(). Call within dofi_cq_lock_access().
 */
ssize_t dofi_cq_read(struct dofi_cq *cq) DOFI_NEEDS(cq->lock, cq->access);

/*
 * Reads the next completion from @fid, which is programs_fid, into cq->entry[0]. Returns 1, or a
 * negative error of fi_cq_read(). A read of several costs a third less for each, but an empty one
 * a third more: several are read only after a read that found one.
 */
static inline ssize_t dofi_cq_next(struct dofi_cq *cq, struct fid_cq *fid)
	DOFI_NEEDS(cq->lock, cq->access)
{
	ssize_t n;

	dofi_mutex_assert_held(&cq->lock);
	dofi_cq_assert_access(cq);
	if (__builtin_expect(cq->left, 0)) {
		cq->left--;
		cq->entry[0] = *cq->next++;
		return 1;
	}
	n = fi_cq_read(fid, cq->entry, cq->most);
	cq->most = n > 0 ? DOFI_CQ_BATCH : 1;
	if (n < 2)
		return n;
	/* the others are for the next calls */
	cq->next = &cq->entry[1];
	cq->left = n - 1;
	return 1;
}

static inline void dofi_cq_leave(struct dofi_cq *cq) DOFI_DROPS(cq->lock)
{
	cq->polls++;
	dofi_polling_thread_note(&cq->last_reader);
	dofi_mutex_unlock(&cq->lock);
}

/*
 * Delivers the first @n completions of cq->entry, or handles the error @n of the read; reads on
 * after a full batch, after an error, and where a read has to take all; and releases the lock.
 */
void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink) DOFI_DROPS(cq->lock);

/* Call after a post to an endpoint of the CQ. Any thread, any lock. */
static inline void dofi_cq_posted(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->posted, true, memory_order_relaxed);
}

/* Call after the program took an event out of an EVD's queue. Any thread, any lock. */
static inline void dofi_cq_took(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->took_queued, true, memory_order_relaxed);
}

/* Call after an event of the CQ was queued for the program. Any thread, any lock. */
static inline void dofi_cq_delivered(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->delivered, true, memory_order_relaxed);
}

/*
 * Waits for the lock and reads until the CQ is empty, or, in a flood, for a while; the progress
 * thread reads on then. Returns whether there were completions.
 */
bool dofi_cq_drain(struct dofi_cq *cq) DOFI_NEEDS_NOT(cq->lock);

/* Sets programs_fid and programs_poll: call after a change of armed, leader, shards or fid. */
void dofi_cq_route(struct dofi_cq *cq) DOFI_NEEDS(cq->lock);

/*
 * Call after dofi_cq_drain(). Returns whether the descriptor of @fid reports the next completion;
 * if not, there is something to read. Always true where the CQ has no descriptor.
 */
bool dofi_cq_can_sleep(struct dofi_cq *cq, struct fid_cq *fid) DOFI_NEEDS_NOT(cq->lock);

/*
 * Call after dofi_cq_can_sleep(), which returned @can, and if it was false after another
 * dofi_cq_drain(). Returns whether a thread that sleeps on the descriptor would spin: many calls in
 * a row saw no completion, and @can is false or the descriptor readable again. Both last while a
 * message has no receive on tcp up to 1.17.
 */
bool dofi_cq_is_stuck(struct dofi_cq *cq, bool can) DOFI_NEEDS_NOT(cq->lock);

/*
 * Call after posting the only receive of an endpoint: its message may have left the socket, so that
 * no signal follows. @shard as for dofi_cq_ask(). Any thread, no lock.
 */
void dofi_cq_kick(struct dofi_cq *cq, struct dofi_shard *shard) DOFI_NEEDS_NOT(cq->lock);

/*
 * Returns the shard of a new endpoint until dofi_cq_leave_shard(): a new one if all have as many
 * endpoints as a read should check, or a full one if that cannot be opened. Progress thread.
 */
struct dofi_shard *dofi_cq_enter_shard(struct dofi_cq *cq);
void dofi_cq_leave_shard(struct dofi_cq *cq, struct dofi_shard *shard);

/*
 * The next read includes @shard even if its descriptor reports nothing: call after a receive was
 * posted to an endpoint of it, or an endpoint was closed. @shard may be NULL. Any thread, any lock.
 */
static inline void dofi_cq_ask(struct dofi_cq *cq, struct dofi_shard *shard)
{
	struct dofi_shards *shards = atomic_load_explicit(&cq->shards, memory_order_relaxed);

	if (__builtin_expect(shard && shards, 0))
		dofi_shards_ask(shards, shard);
}

/*
 * Call after the fabric refused something with FI_EAGAIN and it was queued for ops->swept() or a
 * sweeper: these are called by polls that find nothing, and while the CQ is armed at least once per
 * tick, until none calls this. Any thread, any lock.
 */
void dofi_cq_want_sweep(struct dofi_cq *cq);

/* The next sweep calls @stall->go_on(), once. Any thread, any lock but stalls_lock. */
void dofi_cq_stall(struct dofi_cq *cq, struct dofi_stall *stall);
/* No sweep calls @stall any more. */
void dofi_cq_stall_end(struct dofi_cq *cq, struct dofi_stall *stall) DOFI_NEEDS(cq->lock);

/* A CQ forgets its sweepers when it is opened. */
static inline void dofi_cq_add_sweeper(struct dofi_cq *cq, struct dofi_sweeper *sweeper)
	DOFI_NEEDS(cq->lock)
{
	dofi_mutex_assert_held(&cq->lock);
	LIST_INSERT_HEAD(&cq->sweepers, sweeper, link);
}

static inline void dofi_cq_remove_sweeper(struct dofi_cq *cq, struct dofi_sweeper *sweeper)
	DOFI_NEEDS(cq->lock)
{
	dofi_mutex_assert_held(&cq->lock);
	LIST_REMOVE(sweeper, link);
}

/* Call around a thread's sleep for an event, and while a CNO waits: the CQ is served meanwhile. */
void dofi_cq_sleep_begin(struct dofi_cq *cq);
void dofi_cq_sleep_end(struct dofi_cq *cq);

/* The progress thread calls these three through cq->served. */

/* Serves the CQ if it is due: reads and arms it, or leaves it to the program for a while. */
void dofi_cq_serve(struct dofi_cq *cq, int64_t now);
/* Returns when dofi_cq_serve() is due; DOFI_NEVER if only an event makes it due. */
int64_t dofi_cq_due(const struct dofi_cq *cq);
/* Checks soon, not after the pause, whether the program to which the CQ is left still polls. */
void dofi_cq_probe(struct dofi_cq *cq, int64_t now);

/* Call when the CQ is opened, and before it is closed: the latter waits for the leader to leave. */
void dofi_lead_open(struct dofi_cq *cq) DOFI_NEEDS(cq->lock);
void dofi_lead_close(struct dofi_cq *cq) DOFI_NEEDS(cq->lock);
/* Waits until the CQ has no leader. Call before the CQ's descriptor changes. */
void dofi_lead_await_end(struct dofi_cq *cq) DOFI_NEEDS(cq->lock);

/* Lets a CQ without a descriptor have a leader, which peers wake by @word. Progress thread. */
void dofi_lead_set_word(struct dofi_cq *cq, const struct dofi_lead_word *word);

/*
 * Makes the caller the leader and delivers pending completions. Returns 0 if the CQ is empty: call
 * dofi_lead_sleep(), and dofi_lead_end() in the end. Otherwise the caller does not lead: -EAGAIN if
 * there was something to read; -EBUSY if the CQ cannot be led now, or is stuck. No lock.
 */
int dofi_lead_begin(struct dofi_cq *cq);

/*
 * A dofi_cond_wait() that also ends when @cq may have something to read, or when the leader is
 * interrupted; on a word, after dofi_longest_sleep_ns. -EBUSY: sleep in another way. If that is for
 * want of futex_waitv, no thread leads @cq any more.
 */
int dofi_lead_sleep(struct dofi_cq *cq, struct dofi_cond *cond, struct dofi_mutex *lock,
		    int64_t deadline) DOFI_NEEDS(*lock);

/* Ends the lead. Poll the CQ next: the end may consume a signal. No lock. */
void dofi_lead_end(struct dofi_cq *cq);

/* Wakes the leader: its next dofi_lead_begin() fails if it may not go on. Any thread or lock. */
void dofi_lead_interrupt(struct dofi_lead *lead);

#endif
