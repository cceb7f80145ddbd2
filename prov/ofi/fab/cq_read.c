/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading a completion queue, and delivering what was read: by the program's threads, or for them.
 */

#include "fab/cq.h"

#include "fab/wc.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/*
 * A thread that finds the lock held this many times yields its processor: a read takes less time.
 */
#define REFUSALS 64

/*
 * Returns whether each read has to take all. A read clears the signal that would wake a sleeping
 * thread for later completions: the progress thread when ARMED, or the leader. A thread that is
 * about to sleep sets what is tested here, and then drains the CQ with the lock held, after reads
 * that began before.
 */
static bool read_takes_all(const struct dofi_cq *cq)
{
	return atomic_load(&cq->mode) == DOFI_CQ_ARMED || dofi_lead_is_taken(&cq->lead);
}

void dofi_cq_route(struct dofi_cq *cq)
{
	/* without a fid, the CQ is being closed, and waits for its leader */
	const bool may_leave = cq->fid && !read_takes_all(cq);
	const bool direct = may_leave && !cq->mixed && !cq->several;

	dofi_mutex_assert_held(&cq->lock);
	atomic_store(&cq->programs_fid, direct ? cq->fid : NULL);
	atomic_store(&cq->programs_poll, may_leave ? cq->ops->poll : NULL);
}

/*
 * Moves the completions that dofi_cq_next() left to the start of cq->entry. Returns how many they
 * are.
 */
static unsigned take_left(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	const unsigned left = cq->left;

	memmove(cq->entry, cq->next, left * sizeof(*cq->entry));
	cq->left = 0;
	return left;
}

static ssize_t read_shards(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	if (cq->left)
		return take_left(cq);
	return dofi_shards_read(cq->shards, cq->fabric, cq->entry, DOFI_CQ_BATCH);
}

/*
 * Returns the completions that dofi_cq_next() left, and more from the fabric. If there are any, an
 * error is returned by the next read.
 */
static ssize_t read_one(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	const ssize_t left = cq->left ? take_left(cq) : 0;
	const ssize_t n = fi_cq_read(cq->fid, &cq->entry[left], DOFI_CQ_BATCH - left);

	return left ? left + (n > 0 ? n : 0) : n;
}

ssize_t dofi_cq_read(struct dofi_cq *cq)
{
	dofi_mutex_assert_held(&cq->lock);
	dofi_cq_assert_entered(cq);
	if (!cq->fid)
		return -FI_EAGAIN;
	if (cq->several)
		return read_shards(cq);
	return read_one(cq);
}

/* Delivers the next failed completion. Returns false if there is none. Call with the lock held. */
static bool read_error(struct dofi_cq *cq, struct dofi_sink *sink) DOFI_NEEDS(cq->lock)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t n;

	dofi_cq_enter(cq);
	n = fi_cq_readerr(cq->several ? cq->shards->last->fid : cq->fid, &e, 0);
	dofi_cq_exit(cq);
	if (n < 1)
		return false;
	entry = (struct fi_cq_data_entry){
		.op_context = e.op_context, .flags = e.flags, .len = e.len,
	};
	/* shm of libfabric 1.17 reports negative errors */
	cq->completed(&entry, cq->wc_errors ? dofi_wc_errno(e.prov_errno, e.err) : abs(e.err),
		      sink);
	/* usually a connection ended, and the fabric has written the event */
	dofi_progress_expect(cq->progress);
	return true;
}

/*
 * Delivers @n completions, or a failed one. Returns how many, or DOFI_CQ_BATCH if more may follow a
 * failed one.
 */
static ssize_t hand_over(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink) DOFI_NEEDS(cq->lock)
{
	ssize_t i;

	for (i = 0; i < n; i++)
		cq->completed(&cq->entry[i], 0, sink);
	if (n == -FI_EAVAIL)
		return read_error(cq, sink) ? DOFI_CQ_BATCH : 0;
	return n;
}

static ssize_t deal_with(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink) DOFI_NEEDS(cq->lock)
{
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EAVAIL)
		dofi_progress_fail(cq->progress, n);
	return hand_over(cq, n, sink);
}

/*
 * A read may leave completions behind: if the batch was full, or ended before a failed completion.
 */
static bool left_behind(const struct dofi_cq *cq, ssize_t n)
{
	return n == DOFI_CQ_BATCH || (n > 0 && read_takes_all(cq));
}

static void sweepers_call(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_sweeper *s, *next;

	for (s = LIST_FIRST(&cq->sweepers); s; s = next) {
		next = LIST_NEXT(s, link);
		s->swept(s);
	}
}

/*
 * Call with the lock held. A dofi_cq_want_sweep() during swept(), or by it, asks for another sweep.
 */
static void sweep(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	unsigned wanted;

	if (!dofi_cq_wants_sweep(cq) || !cq->fid)
		return;
	wanted = atomic_load(&cq->sweeps_wanted);
	if (cq->ops->swept)
		cq->ops->swept(cq);
	sweepers_call(cq);
	atomic_store(&cq->sweeps_done, wanted);
}

void dofi_cq_want_sweep(struct dofi_cq *cq)
{
	unsigned before = atomic_fetch_add(&cq->sweeps_wanted, 1);

	/*
	 * If a sweep was wanted already, the progress thread is awake for it. Otherwise it may
	 * sleep, or be about to: it stores the mode before it loads sweeps_wanted.
	 */
	if (before == atomic_load(&cq->sweeps_done) && atomic_load(&cq->mode) == DOFI_CQ_ARMED &&
	    !dofi_progress_on_thread(cq->progress))
		dofi_progress_wake(cq->progress);
	/* a leader sleeps without a deadline and cannot sweep once per tick */
	dofi_lead_depose(&cq->lead);
}

static ssize_t read_batch(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	ssize_t n;

	dofi_cq_enter(cq);
	n = dofi_cq_read(cq);
	dofi_cq_exit(cq);
	return n;
}

#define MOST_BATCHES 4096

/*
 * Returns whether the caller may read another batch. A flood of completions, or a faulty peer with
 * an endless ring, must not keep the caller and the CQ lock for ever: after MOST_BATCHES the
 * progress thread, or the leader, reads on.
 */
static bool may_go_on(struct dofi_cq *cq, unsigned *batches)
{
	if (++*batches < MOST_BATCHES)
		return true;
	dofi_progress_wake(cq->progress);
	dofi_lead_depose(&cq->lead);
	return false;
}

void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
{
	unsigned batches = 0;

	dofi_mutex_assert_held(&cq->lock);
	while (left_behind(cq, deal_with(cq, n, sink)) && may_go_on(cq, &batches))
		n = read_batch(cq);
	sweep(cq);
	dofi_cq_leave(cq);
}

/*
 * The thread that holds the lock delivers to every EVD, also the caller's. If processors are few,
 * the polling caller may keep that thread from running, so it yields now and then.
 */
static __attribute__((noinline)) void give_way(struct dofi_cq *cq)
{
	const unsigned before = atomic_fetch_add_explicit(&cq->refused, 1, memory_order_relaxed);

	if (before % REFUSALS == REFUSALS - 1)
		sched_yield();
}

void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink)
{
	if (dofi_cq_try(cq))
		dofi_cq_go_on(cq, read_batch(cq), sink);
	else
		give_way(cq);
}

void dofi_cq_poll_next(struct dofi_cq *cq)
{
	ssize_t n;

	if (!dofi_cq_try(cq)) {
		give_way(cq);
		return;
	}
	dofi_cq_enter(cq);
	dofi_cq_next(cq, &n);
	dofi_cq_exit(cq);
	dofi_cq_go_on(cq, n, NULL);
}

bool dofi_cq_drain(struct dofi_cq *cq)
{
	unsigned batches = 0;
	bool found = false;

	dofi_mutex_lock(&cq->lock);
	while (deal_with(cq, read_batch(cq), NULL) > 0) {
		found = true;
		if (!may_go_on(cq, &batches))
			break;
	}
	sweep(cq);
	dofi_mutex_unlock(&cq->lock);
	return found;
}

void dofi_cq_kick(struct dofi_cq *cq, struct dofi_shard *shard)
{
	dofi_cq_ask(cq, shard);
	if (read_takes_all(cq))
		dofi_cq_drain(cq);
}

void dofi_cq_sleep_begin(struct dofi_cq *cq)
{
	/* pairs with yield_to_program(), which checks sleepers after it stored the mode */
	atomic_fetch_add(&cq->sleepers, 1);
	if (atomic_load(&cq->mode) != DOFI_CQ_ARMED || cq->silent_errors)
		dofi_progress_wake(cq->progress);
}

void dofi_cq_sleep_end(struct dofi_cq *cq)
{
	atomic_fetch_sub(&cq->sleepers, 1);
}

static bool shards_can_sleep(struct dofi_cq *cq)
{
	bool rest;

	dofi_mutex_lock(&cq->lock);
	rest = dofi_shards_rest(cq->shards, cq->fabric);
	dofi_mutex_unlock(&cq->lock);
	return rest;
}

bool dofi_cq_can_sleep(struct dofi_cq *cq, struct fid_cq *fid_cq)
{
	struct fid *fid = &fid_cq->fid;
	int ret;

	/* without a descriptor the progress thread reads the CQ once more before it sleeps */
	if (cq->fd < 0)
		return true;
	if (cq->several)
		return shards_can_sleep(cq);
	dofi_cq_enter(cq);
	ret = fi_trywait(cq->fabric, &fid, 1);
	dofi_cq_exit(cq);
	return ret == FI_SUCCESS;
}
