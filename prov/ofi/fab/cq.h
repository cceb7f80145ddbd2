/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A completion queue that the program's threads and the progress thread share. */
#ifndef DOFI_FAB_CQ_H
#define DOFI_FAB_CQ_H

#include "base/mutex.h"
#include "base/runner.h"
#include "fab/gate.h"
#include "fab/lead.h"
#include "fab/progress.h"
#include "fab/shards.h"

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

struct dofi_cq {
	struct dofi_mutex lock;		/* reading fid and handing over what was read; keeps order */
	struct dofi_source source;
	struct dofi_progress *progress;
	struct fid_cq *fid;		/* NULL when closed; under lock, like the next */
	struct dofi_gate *gate;		/* each read passes it; NULL: none */
	uint32_t given;			/* *gate->given before the last read behind the gate */
	uint64_t skips;			/* polls that need no read unless *gate->given changes */
	unsigned turned_away;		/* polls in a row that found a sender inside the gate */
	const struct dofi_progress_ops *ops;	/* what completes here is for; and of them, at hand, */
	dofi_completed *completed;	/* this one */
	bool mixed;			/* their member of that name */
	void *owner;			/* theirs, to be set with the lock; NULL at first */
	struct fi_cq_data_entry entry[DOFI_CQ_BATCH]; /* what the last read brought */
	const struct fi_cq_data_entry *next;	/* of these, the first that is not handed over yet, where */
	unsigned left;			/* so many are: none when it is ARMED and was drained */
	unsigned most;			/* that dofi_cq_read_some() reads at once */
	int fd;				/* -1 if it has none; that of the set where there are several shards */
	struct dofi_shard first;	/* that of fid */
	_Atomic(struct dofi_shards *) shards; /* made with the second shard, and never given back */
	bool several;			/* shards; under lock */
	struct fid_domain *domain;
	bool reads_each;		/* see struct dofi_quirk; set before it is opened, like the next */
	bool wc_errors;			/* likewise, and the next */
	bool offloaded;			/* likewise */
	bool serial;			/* likewise: its domain is FI_THREAD_COMPLETION, see dofi_cq_enter() */
	struct dofi_mutex access;	/* then, to the fabric */
	bool fixed;			/* likewise fixed_queues: completions that find no place are lost */
	unsigned places;		/* that are left then, at first so many as it is to have, or fewer */

	/* until the progress thread looks: */
	struct dofi_runner poller;	/* the thread of the program's that read it last */
	_Atomic bool polled;		/* one of the program's threads read it, */
	_Atomic bool taken;		/* or took an event that another thread had read */
	_Atomic bool led;		/* or slept on it as its leader */
	_Atomic bool posted;		/* the program posted to an endpoint of it */
	_Atomic int sleepers;		/* those who wait and do not poll: threads, CNOs */
	_Atomic int mode;		/* enum dofi_cq_mode, written by the progress thread */
	_Atomic(struct fid_cq *) programs_fid; /* fid, unless ARMED, led or closed, with a gate, or mixed */
	_Atomic unsigned sweeps_wanted;	/* see dofi_cq_want_sweep() */
	_Atomic unsigned sweeps_done;	/* of these; written with the lock */
	_Atomic unsigned refused;	/* polls that came while another thread was at it */
	struct dofi_lead lead;		/* the thread that sleeps on the CQ itself */

	/* progress thread only */
	long pause_us;			/* between the last look and the next one */
	int silent;			/* looks that found posts and no poll, less those that found polls */
	bool watched;			/* epoll knows its descriptor */
	bool fired;
	int64_t look_at;		/* ARMED: was looked at; else when it will be again */
	TAILQ_ENTRY(dofi_cq) link;
};

/* Once in a CQ's life of memory; its lock outlives every open and close. */
void dofi_cq_init(struct dofi_cq *cq);
int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain);
/* The same for another's completions than the progress thread's own. */
int dofi_cq_open_for(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain,
		     const struct dofi_progress_ops *ops);
void dofi_cq_close(struct dofi_cq *cq);

/*
 * From now on it is read behind @gate. Whoever sends to its endpoints is to see to it that the
 * progress thread is awake after he left that. Before the first endpoint; progress thread.
 */
void dofi_cq_set_gate(struct dofi_cq *cq, struct dofi_gate *gate);

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
 * A program's thread: reads all that is there, unless another thread is at it; who keeps coming then
 * lets that one have his processor now and then.
 */
void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink);

/* The same for who comes again until he has what he waits for: the next completion, if that will do. */
void dofi_cq_poll_next(struct dofi_cq *cq);

/*
 * The same in parts, for who looks at a completion first. dofi_cq_try() is false if another
 * thread is at the CQ, which delivers to every EVD. After it comes, where programs_fid is set,
 * dofi_cq_take_left() or dofi_cq_read_some(); else dofi_cq_read(), which fills cq->entry. The result
 * of both reads is fi_cq_read()'s. Then comes dofi_cq_go_on() with that; or, where some were left or
 * dofi_cq_read_some() brought any, dofi_cq_go_on_with() the first; or, where that was dealt with, or
 * none is there, dofi_cq_leave().
 */
static inline bool dofi_cq_try(struct dofi_cq *cq)
{
	return dofi_mutex_try(&cq->lock);
}

/* Up to @most, behind the first @n of cq->entry. */
static inline ssize_t dofi_cq_read_from(struct dofi_cq *cq, struct fid_cq *fid, size_t n, size_t most)
{
	ssize_t ret;

	if (!cq->serial)	/* one branch is less than two */
		return fi_cq_read(fid, &cq->entry[n], most);
	dofi_mutex_lock(&cq->access);
	ret = fi_cq_read(fid, &cq->entry[n], most);
	dofi_mutex_unlock(&cq->access);
	return ret;
}

/* What dofi_cq_read_some() left, and what is there behind it. An error is for the next read. */
ssize_t dofi_cq_read_behind_left(struct dofi_cq *cq, struct fid_cq *fid);

static inline ssize_t dofi_cq_read_batch(struct dofi_cq *cq, struct fid_cq *fid)
{
	return cq->left ? dofi_cq_read_behind_left(cq, fid) : dofi_cq_read_from(cq, fid, 0, DOFI_CQ_BATCH);
}

static inline bool dofi_cq_wants_sweep(const struct dofi_cq *cq)
{
	return atomic_load_explicit(&cq->sweeps_wanted, memory_order_relaxed) !=
	       atomic_load_explicit(&cq->sweeps_done, memory_order_relaxed);
}

/*
 * So many polls come after a read that brought some completions before the next read, unless a peer gave something: a
 * few microseconds. Only a failed operation may have completed behind them, and is reported that much later.
 */
#define DOFI_CQ_SKIPS 256

/* How many polls behind the gate need no read after one that returned @n. */
static inline uint64_t dofi_cq_skips_after(ssize_t n)
{
	if (n == -FI_EAGAIN)
		return UINT64_MAX;
	return n > 0 && n < DOFI_CQ_BATCH ? DOFI_CQ_SKIPS : 0;
}

/*
 * So many polls in a row find the gate held before one waits at it, and looks whether the holder is dead: several
 * messages of a stream.
 */
#define DOFI_CQ_TURNS 8

/*
 * A reader that waits at the gate takes its cache line from the sender inside, which needs it to leave. So a poll comes
 * back when the sender has given what it brings, and finds more then: a stream is read in batches.
 */
static inline bool dofi_cq_pass_gate(struct dofi_cq *cq, uint32_t given)
{
	if (dofi_gate_take(cq->gate, 0)) {
		cq->turned_away = 0;
		return true;
	}
	if (++cq->turned_away % DOFI_CQ_TURNS == 0)
		return dofi_gate_try_again(cq->gate);
	cq->given = given;
	cq->skips = DOFI_CQ_SKIPS;
	return false;
}

/*
 * A reader inside the gate makes a sender wait, and takes the cache line of the gate from it. So a poll does not read
 * while no peer has given anything since the last read: a batch that was not full emptied the queue, and the answer to
 * it is on its way when the program polls again. A read may make room for what the fabric did not take.
 */
static inline ssize_t dofi_cq_read_behind(struct dofi_cq *cq, struct fid_cq *fid)
{
	uint32_t given = atomic_load_explicit(cq->gate->given, memory_order_acquire);
	ssize_t n;

	if (cq->skips && given == cq->given && !dofi_cq_wants_sweep(cq)) {
		cq->skips--;
		return -FI_EAGAIN;
	}
	if (!dofi_cq_pass_gate(cq, given))
		return -FI_EAGAIN;
	n = dofi_cq_read_from(cq, fid, 0, DOFI_CQ_BATCH);
	dofi_gate_leave(cq->gate);
	cq->skips = dofi_cq_skips_after(n);
	cq->given = given;
	return n;
}

/* From a CQ of several shards. */
ssize_t dofi_cq_read_shards(struct dofi_cq *cq);

static inline ssize_t dofi_cq_read(struct dofi_cq *cq)
{
	if (!cq->fid)
		return -FI_EAGAIN;
	if (cq->several)
		return dofi_cq_read_shards(cq);
	return cq->gate ? dofi_cq_read_behind(cq, cq->fid) :
			  dofi_cq_read_batch(cq, cq->fid);
}

static inline void dofi_cq_leave(struct dofi_cq *cq)
{
	atomic_store_explicit(&cq->polled, true, memory_order_relaxed);
	dofi_runner_note(&cq->poller);
	dofi_mutex_unlock(&cq->lock);
}

/* The next of those that were read before; where there are some. */
static inline const struct fi_cq_data_entry *dofi_cq_take_left(struct dofi_cq *cq)
{
	cq->left--;
	return cq->next++;
}

/* What dofi_cq_read_some() does with a read that brought @n; that. */
static inline ssize_t dofi_cq_sort_out(struct dofi_cq *cq, ssize_t n)
{
	if (n != 1) {
		cq->most = 1;
		if (n > 1) {
			cq->next = &cq->entry[1];
			cq->left = n - 1;
		}
	}
	return n;
}

/*
 * Reads from @fid, where none are left: the first that this brings, if any, is cq->entry[0], the others
 * are for who comes next. To read several at once saves a third of what they cost, but to look for one
 * that is not there costs a third more: so it is done after dofi_cq_expect() only, until a read finds
 * none or several.
 */
static inline ssize_t dofi_cq_read_some(struct dofi_cq *cq, struct fid_cq *fid)
{
	return dofi_cq_sort_out(cq, dofi_cq_read_from(cq, fid, 0, cq->most));
}

/* More is under way, whose completions may be there the next time. Needs the lock. */
static inline void dofi_cq_expect(struct dofi_cq *cq)
{
	cq->most = DOFI_CQ_BATCH;
}

/* Hands over what a read brought, reads on until nothing is left behind, and leaves. */
void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink);
/* Hands over the one completion that was taken, and leaves: the others are for who comes next. */
void dofi_cq_go_on_with(struct dofi_cq *cq, const struct fi_cq_data_entry *entry, struct dofi_sink *sink);

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

/* Whether epoll knows nothing of it, and the progress thread sleeps all the same. */
static inline bool dofi_cq_relies_on_bell(const struct dofi_cq *cq)
{
	return cq->fd < 0 && atomic_load(&cq->mode) == DOFI_CQ_ARMED;
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

/* Progress thread: reads, arms or leaves the CQ alone, as the gating says. */
void dofi_cq_serve(struct dofi_cq *cq, int64_t now);

/*
 * Progress thread: if the program has the CQ, asks whether it still polls, and goes by the answer after
 * the short time that a polling program may take, not at the next look.
 */
void dofi_cq_probe(struct dofi_cq *cq, int64_t now);

/* When dofi_cq_serve() wants to be called again if nothing happens. */
int64_t dofi_cq_next(const struct dofi_cq *cq);

#endif
