/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A completion queue that the program's threads and the progress thread share. */
#ifndef DOFI_FAB_CQ_H
#define DOFI_FAB_CQ_H

#include "base/mutex.h"
#include "base/runner.h"
#include "fab/lead.h"
#include "fab/shards.h"
#include "loop/progress.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>

/* Most completions that one read brings. */
#define DOFI_CQ_BATCH 16

/*
 * Which thread reads a CQ. ARMED: the program does not poll; epoll wakes the progress thread, or, where the CQ has no
 * descriptor, a peer that rings while it rests (struct dofi_progress_ops). PROBED: it woke and found that the program
 * polled since the last look, and looks again after a short pause. OWNED: the program still polled then; the progress
 * thread looks again after pauses that grow.
 */
enum dofi_cq_mode {
	DOFI_CQ_ARMED,
	DOFI_CQ_PROBED,
	DOFI_CQ_OWNED,
};

/*
 * A lock that reads of a CQ need, and calls that post receives there, because other processes write to the memory of its
 * endpoints: xport/rdm/shm/lock.h. Locked after the CQ's lock.
 */
struct dofi_cq_guard {
	const struct dofi_cq_guard_ops *ops;
	const _Atomic uint32_t *sent;	/* changes after a peer has sent something to an endpoint of the CQ */
};

struct dofi_cq_guard_ops {
	/* Locks if the lock is free, with one look at it. Returns whether it is locked. */
	bool (*take)(struct dofi_cq_guard *guard);
	/* Locks unless that takes long. Returns whether it is locked. */
	bool (*try)(struct dofi_cq_guard *guard);
	/*
	 * Waits for the lock. Returns 0, -ETIMEDOUT after 100 ms, or -ENOTRECOVERABLE while the memory is damaged and must not
	 * be used.
	 */
	int (*lock)(struct dofi_cq_guard *guard);
	void (*unlock)(struct dofi_cq_guard *guard);
};

struct dofi_cq {
	struct dofi_mutex lock;		/* reading fid and handing over what was read; keeps order */
	struct dofi_source source;
	struct dofi_poller poller;	/* the progress thread serves it */
	struct dofi_progress *progress;
	struct fid_cq *fid;		/* NULL when closed; under lock, like the next */
	struct dofi_cq_guard *guard;	/* each read needs it; NULL: none */
	uint32_t sent;			/* *guard->sent before the last read */
	uint64_t skips;			/* polls that need no read unless *guard->sent changes */
	unsigned refused_in_row;	/* polls in a row that found the guard locked */
	const struct dofi_progress_ops *ops;	/* what completes here is for; and of them, at hand, */
	dofi_completed *completed;	/* this one */
	bool mixed;			/* their member of that name */
	void *owner;			/* theirs, to be set with the lock; NULL at first */
	struct fi_cq_data_entry entry[DOFI_CQ_BATCH]; /* what the last read brought */
	const struct fi_cq_data_entry *next;	/* the first entry that dofi_cq_next() has not returned yet */
	unsigned left;			/* how many entries that is; 0 when the CQ is ARMED and was drained */
	unsigned most;			/* that dofi_cq_next() reads at once */
	int fd;				/* -1 if it has none; that of the set where there are several shards */
	struct dofi_shard first;	/* that of fid */
	_Atomic(struct dofi_shards *) shards; /* made with the second shard, and never given back */
	bool several;			/* shards; under lock */
	struct fid_domain *domain;
	bool reads_each;		/* see struct dofi_quirk; set before it is opened, like the next */
	bool wc_errors;			/* likewise, and the next */
	bool offloaded;			/* likewise */
	bool trywait_reads;		/* likewise */
	bool silent_errors;		/* likewise */
	bool serial;			/* likewise: its domain is FI_THREAD_COMPLETION, see dofi_cq_enter() */
	struct dofi_mutex access;	/* then, to the fabric */
	bool fixed;			/* likewise fixed_queues: completions that find no place are lost */
	unsigned unreserved;		/* that are left then, at first so many as it is to have, or fewer */

	/* until the progress thread looks: */
	struct dofi_runner runner;	/* the thread of the program that read it last */
	_Atomic bool polled;		/* one of the program's threads read it, */
	_Atomic bool taken;		/* or took an event that another thread had read */
	_Atomic bool led;		/* or slept on it as its leader */
	_Atomic bool posted;		/* the program posted to an endpoint of it */
	_Atomic int sleepers;		/* those who wait and do not poll: threads, CNOs */
	_Atomic int mode;		/* enum dofi_cq_mode, written by the progress thread */
	_Atomic(struct fid_cq *) programs_fid; /* fid, unless ARMED, led or closed, with a guard, or mixed */
	_Atomic unsigned sweeps_wanted;	/* see dofi_cq_want_sweep() */
	_Atomic unsigned sweeps_done;	/* of these; written with the lock */
	_Atomic unsigned refused;	/* polls that came while another thread was at it */
	struct dofi_lead lead;		/* the thread that sleeps on the CQ itself */

	/* progress thread only */
	long pause_us;			/* between the last look and the next one */
	int silent;			/* looks that found posts and no poll, less those that found polls */
	bool watched;			/* epoll knows its descriptor */
	int64_t due_at;		/* ARMED: was looked at; else when it will be again */
};

/* Once in a CQ's life of memory; its lock outlives every open and close. */
void dofi_cq_init(struct dofi_cq *cq);
int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain);
/* The same for another's completions than the progress thread's own. */
int dofi_cq_open_for(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain,
		     const struct dofi_progress_ops *ops);
void dofi_cq_close(struct dofi_cq *cq);

/*
 * From now on reads need @guard. A peer that sends to an endpoint of the CQ has to wake the progress thread after it
 * unlocked the guard. Before the first endpoint; progress thread.
 */
void dofi_cq_set_guard(struct dofi_cq *cq, struct dofi_cq_guard *guard);

static inline bool dofi_cq_guard_try(struct dofi_cq *cq)
{
	return !cq->guard || cq->guard->ops->try(cq->guard);
}

static inline int dofi_cq_guard_lock(struct dofi_cq *cq)
{
	return cq->guard ? cq->guard->ops->lock(cq->guard) : 0;
}

static inline void dofi_cq_guard_unlock(struct dofi_cq *cq)
{
	if (cq->guard)
		cq->guard->ops->unlock(cq->guard);
}

/* The next poll reads the CQ even if no peer has sent anything. Needs the lock. */
static inline void dofi_cq_skip_none(struct dofi_cq *cq)
{
	cq->skips = 0;
}

/*
 * Around each call of libfabric's for the CQ, or for an endpoint whose operations complete there: where
 * it is serial there is to be one at a time (FI_THREAD_COMPLETION of fi_domain(3)). Whoever is in there
 * takes no other lock of ours. Plain operations are done in there as a whole, see dofi_ep_plain_lock(). Any
 * thread.
 */
static inline void dofi_cq_enter(struct dofi_cq *cq)
{
	if (cq->serial)
		dofi_mutex_lock(&cq->access);
}

static inline void dofi_cq_exit(struct dofi_cq *cq)
{
	if (cq->serial)
		dofi_mutex_unlock(&cq->access);
}

/*
 * Polls for a thread of the program: reads and delivers all that is there, unless another thread is at it. A thread that
 * keeps polling in vain gives the other one its processor now and then.
 */
void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink);

/* Like dofi_cq_poll(), for a caller that loops: delivers the next completion alone where the mode allows that. */
void dofi_cq_poll_next(struct dofi_cq *cq);

/*
 * A polling thread that takes a completion itself polls like this:
 *
 *	if (!dofi_cq_try(cq))
 *		return;			another thread is at the CQ, and delivers to every EVD
 *	dofi_cq_enter(cq);
 *	entry = dofi_cq_next(cq, &n);
 *	taken = entry && take(entry);
 *	dofi_cq_exit(cq);
 *	if (!taken && !dofi_cq_is_idle(cq, n))
 *		dofi_cq_go_on(cq, n, sink);
 *	else
 *		dofi_cq_leave(cq);
 */
static inline bool dofi_cq_try(struct dofi_cq *cq)
{
	return dofi_mutex_try(&cq->lock);
}

static inline bool dofi_cq_wants_sweep(const struct dofi_cq *cq)
{
	return atomic_load_explicit(&cq->sweeps_wanted, memory_order_relaxed) !=
	       atomic_load_explicit(&cq->sweeps_done, memory_order_relaxed);
}

/* Reads a batch into cq->entry. Returns what fi_cq_read() does. Needs the lock, within dofi_cq_enter(). */
ssize_t dofi_cq_read(struct dofi_cq *cq);

/* The first of @n completions that were read goes to the caller, the others to the next calls. */
static inline ssize_t dofi_cq_keep_others(struct dofi_cq *cq, ssize_t n)
{
	if (n == 1)
		return n;
	cq->most = 1;
	if (n < 1)
		return n;
	cq->next = &cq->entry[1];
	cq->left = n - 1;
	return 1;
}

/*
 * The next completion, which is cq->entry[0], or NULL if none is there, or if a batch has to be read (programs_fid).
 * *@n is how many completions dofi_cq_go_on() has to deliver, or the error of the read.
 *
 * A read of several completions costs a third less for each, but an empty one a third more. So several are read after
 * dofi_cq_expect() only, until a read finds none or several.
 */
static inline const struct fi_cq_data_entry *dofi_cq_next(struct dofi_cq *cq, ssize_t *n)
{
	struct fid_cq *fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);

	if (!fid) {
		*n = dofi_cq_read(cq);
		return NULL;
	}
	if (__builtin_expect(cq->left, 0)) {
		cq->left--;
		cq->entry[0] = *cq->next++;
		*n = 1;
		return cq->entry;
	}
	*n = dofi_cq_keep_others(cq, fi_cq_read(fid, cq->entry, cq->most));
	return *n > 0 ? cq->entry : NULL;
}

/* Whether a read that returned @n leaves nothing to do. */
static inline bool dofi_cq_is_idle(const struct dofi_cq *cq, ssize_t n)
{
	return n == -FI_EAGAIN && !dofi_cq_wants_sweep(cq);
}

static inline void dofi_cq_leave(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->polled, true, memory_order_relaxed);
	dofi_runner_note(&cq->runner);
	dofi_mutex_unlock(&cq->lock);
}

/* More is under way, whose completions may be there the next time. Needs the lock. */
static inline void dofi_cq_expect(struct dofi_cq *cq)
{
	cq->most = DOFI_CQ_BATCH;
}

/*
 * Delivers the first @n of cq->entry, or handles the error @n of the read, reads on where a read has to take all, and
 * leaves.
 */
void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink);

/* Call after a post to an endpoint of the CQ. Any thread, any lock. */
static inline void dofi_cq_posted(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->posted, true, memory_order_relaxed);
}

/* Call after the program dequeued an event that another thread had read from the CQ. Any thread, any lock. */
static inline void dofi_cq_taken(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->taken, true, memory_order_relaxed);
}

/* Reads until nothing is left, waiting for the lock; whether there was something. */
bool dofi_cq_drain(struct dofi_cq *cq);

/* Sets programs_fid after what it depends on has changed. Needs the lock. */
void dofi_cq_route(struct dofi_cq *cq);

/*
 * After the CQ was drained: whether @fid's descriptor reports what comes next. Otherwise there is something to be
 * read. Always true where there is no descriptor.
 */
bool dofi_cq_can_sleep(struct dofi_cq *cq, struct fid_cq *fid);

/*
 * For a fabric with stale signals (struct dofi_quirk): epoll reports again and again what was read long ago, until a read
 * that may wait finds nothing. This one waits for 1 ms, the shortest time there is. Returns whether it found something;
 * more may be there to be read at once then.
 */
bool dofi_cq_clear_signal(struct dofi_cq *cq);

/*
 * After a receive was posted where none was: its message may be in the fabric's
 * hands already, and nothing more will arrive to wake anybody. @shard is as of dofi_cq_ask(). Any
 * thread, no lock.
 */
void dofi_cq_kick(struct dofi_cq *cq, struct dofi_shard *shard);

/*
 * The shard of @cq at which a further endpoint completes, until dofi_cq_leave_shard(). Another one is opened where all
 * have as many endpoints as one read should look at; if that fails they share. Progress thread.
 */
struct dofi_shard *dofi_cq_enter_shard(struct dofi_cq *cq);
void dofi_cq_leave_shard(struct dofi_cq *cq, struct dofi_shard *shard);

/*
 * The next read looks at @shard though its descriptor may report nothing: an endpoint there was given a receive,
 * or was closed. NULL: an endpoint without a shard of its own. Any thread, any lock.
 */
static inline void dofi_cq_ask(struct dofi_cq *cq, struct dofi_shard *shard)
{
	struct dofi_shards *shards = atomic_load_explicit(&cq->shards, memory_order_relaxed);

	if (__builtin_expect(shard && shards, 0))
		dofi_shards_ask(shards, shard);
}

/*
 * The fabric did not take something and says to try again: until ops->swept() has
 * looked at it and does not ask again, the progress thread comes by every tick, and the program's
 * reads come by too. Any thread, any lock; the call comes after what swept() looks at.
 */
void dofi_cq_want_sweep(struct dofi_cq *cq);

/*
 * Around a program's thread that sleeps until an event arrives, and as long as an
 * event is to be told to a CNO: the progress thread serves the CQ meanwhile.
 */
void dofi_cq_sleep_begin(struct dofi_cq *cq);
void dofi_cq_sleep_end(struct dofi_cq *cq);

#endif
