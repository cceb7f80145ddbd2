/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads a completion queue and delivers: polling threads, the leader, the progress thread. */

#include "fab/cq.h"

#include "base/clock.h"
#include "base/cond.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A thread that finds the lock held this many times yields: a read takes less time. */
#define REFUSALS 64

/*
 * Returns whether each read has to take all: it clears the signal that would wake the progress
 * thread when it is armed, or the leader. These store armed or lead.has_leader before they sleep,
 * and then drain the CQ with the lock held, after reads that began before.
 */
static bool read_takes_all(const struct dofi_cq *cq)
{
	return atomic_load(&cq->armed) || dofi_has_leader(&cq->lead);
}

void dofi_cq_route(struct dofi_cq *cq)
{
	/* without a fid, the CQ is being closed, and waits for its leader */
	const bool may_leave = cq->fid && !read_takes_all(cq);
	const bool direct = may_leave && !cq->ops->foreign_contexts && !cq->several;

	dofi_mutex_assert_held(&cq->lock);
	atomic_store(&cq->programs_fid, direct ? cq->fid : NULL);
	atomic_store(&cq->programs_poll, may_leave ? cq->ops->poll : NULL);
}

ssize_t dofi_cq_read(struct dofi_cq *cq)
{
	const ssize_t left = cq->left;
	ssize_t n;

	dofi_mutex_assert_held(&cq->lock);
	dofi_cq_assert_access(cq);
	if (!cq->fid)
		return -FI_EAGAIN;
	if (left) {
		memmove(cq->entry, cq->next, left * sizeof(*cq->entry));
		cq->left = 0;
	}
	if (cq->several)
		return left ? left :
			      dofi_shards_read(cq->shards, cq->fabric, cq->entry, DOFI_CQ_BATCH);
	n = fi_cq_read(cq->fid, &cq->entry[left], DOFI_CQ_BATCH - left);
	/* the next read returns an error again */
	return left ? left + (n > 0 ? n : 0) : n;
}

static ssize_t read_batch(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	ssize_t n;

	dofi_cq_lock_access(cq);
	n = dofi_cq_read(cq);
	dofi_cq_unlock_access(cq);
	return n;
}

/* By enum ibv_wc_status of verbs, which is part of the kernel's ABI. */
static const int wc_errors[] = {
	[1] = EMSGSIZE,			/* LOC_LEN_ERR */
	[2] = EBADFD,			/* LOC_QP_OP_ERR */
	[3] = EBADFD,			/* LOC_EEC_OP_ERR */
	[4] = EFAULT,			/* LOC_PROT_ERR */
	[5] = FI_ECANCELED,		/* WR_FLUSH_ERR */
	[7] = EBADMSG,			/* BAD_RESP_ERR */
	[8] = EFAULT,			/* LOC_ACCESS_ERR */
	[9] = EREMOTEIO,		/* REM_INV_REQ_ERR */
	[10] = FI_EKEYREJECTED,		/* REM_ACCESS_ERR */
	[11] = EREMOTEIO,		/* REM_OP_ERR */
	[12] = FI_ETIMEDOUT,		/* RETRY_EXC_ERR */
	[13] = FI_ETIMEDOUT,		/* RNR_RETRY_EXC_ERR */
};

int dofi_wc_errno(int status, int err)
{
	const size_t n = sizeof(wc_errors) / sizeof(wc_errors[0]);

	return status > 0 && (size_t)status < n && wc_errors[status] ? wc_errors[status] : err;
}

/* Delivers the next failed completion. Returns false if there is none. */
static bool read_error(struct dofi_cq *cq, struct dofi_sink *sink) DOFI_NEEDS(cq->lock)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t n;

	dofi_cq_lock_access(cq);
	n = fi_cq_readerr(cq->several ? cq->shards->last->fid : cq->fid, &e, 0);
	dofi_cq_unlock_access(cq);
	if (n < 1)
		return false;
	entry = (struct fi_cq_data_entry){
		.op_context = e.op_context, .flags = e.flags, .len = e.len,
	};
	/* shm of libfabric 1.17 reports negative errors */
	cq->completed(&entry,
		      cq->quirk->wc_errors ? dofi_wc_errno(e.prov_errno, e.err) : abs(e.err), sink);
	/* usually a connection ended, and the fabric has written the event */
	dofi_progress_expect(cq->progress);
	return true;
}

/* Returns how many were delivered, or DOFI_CQ_BATCH if more may follow a failed completion. */
static ssize_t deal_with(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink) DOFI_NEEDS(cq->lock)
{
	ssize_t i;

	for (i = 0; i < n; i++)
		cq->completed(&cq->entry[i], 0, sink);
	cq->finds += n != -FI_EAGAIN;
	if (n == -FI_EAVAIL)
		return read_error(cq, sink) ? DOFI_CQ_BATCH : 0;
	if (n < 0 && n != -FI_EAGAIN)
		dofi_progress_fail(cq->progress, n);
	return n;
}

void dofi_cq_stall(struct dofi_cq *cq, struct dofi_stall *stall)
{
	dofi_mutex_lock(&cq->stalls_lock);
	if (!stall->queued)
		TAILQ_INSERT_TAIL(&cq->stalls, stall, link);
	stall->queued = true;
	dofi_mutex_unlock(&cq->stalls_lock);
	dofi_cq_want_sweep(cq);
}

void dofi_cq_stall_end(struct dofi_cq *cq, struct dofi_stall *stall)
{
	dofi_mutex_assert_held(&cq->lock);
	dofi_mutex_lock(&cq->stalls_lock);
	if (stall->queued)
		TAILQ_REMOVE(&cq->stalls, stall, link);
	stall->queued = false;
	dofi_mutex_unlock(&cq->stalls_lock);
}

/* An EP that stalls again is left for the next sweep. */
static void stalls_go_on(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_stalls now = TAILQ_HEAD_INITIALIZER(now);
	struct dofi_stall *stall;

	dofi_mutex_lock(&cq->stalls_lock);
	TAILQ_CONCAT(&now, &cq->stalls, link);
	while ((stall = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, stall, link);
		stall->queued = false;
		dofi_mutex_unlock(&cq->stalls_lock);
		stall->go_on(stall);
		dofi_mutex_lock(&cq->stalls_lock);
	}
	dofi_mutex_unlock(&cq->stalls_lock);
}

/* A dofi_cq_want_sweep() during swept(), or by it, asks for another sweep. */
static void sweep(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_sweeper *s, *next;
	unsigned wanted;

	if (!dofi_cq_wants_sweep(cq) || !cq->fid)
		return;
	wanted = atomic_load(&cq->sweeps_wanted);
	if (cq->ops->swept)
		cq->ops->swept(cq);
	for (s = LIST_FIRST(&cq->sweepers); s; s = next) {
		next = LIST_NEXT(s, link);
		s->swept(s);
	}
	stalls_go_on(cq);
	atomic_store(&cq->sweeps_done, wanted);
}

void dofi_cq_want_sweep(struct dofi_cq *cq)
{
	unsigned before = atomic_fetch_add(&cq->sweeps_wanted, 1);

	/*
	 * If a sweep was wanted already, the progress thread is awake for it. Otherwise it may
	 * sleep, or be about to: it stores armed before it loads sweeps_wanted.
	 */
	if (before == atomic_load(&cq->sweeps_done) && atomic_load(&cq->armed) &&
	    !dofi_progress_on_thread(cq->progress))
		dofi_progress_wake(cq->progress);
	/* a leader sleeps without a deadline and cannot sweep once per tick */
	dofi_lead_interrupt(&cq->lead);
}

#define MOST_BATCHES 4096

/*
 * Returns whether the caller may read another batch. A flood, or a faulty peer with an endless
 * ring, must not keep the CQ lock for ever: the progress thread, or the leader, reads on.
 */
static bool may_go_on(struct dofi_cq *cq, unsigned *batches)
{
	if (++*batches < MOST_BATCHES)
		return true;
	dofi_progress_wake(cq->progress);
	dofi_lead_interrupt(&cq->lead);
	return false;
}

void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
{
	unsigned batches = 0;

	dofi_mutex_assert_held(&cq->lock);
	for (;;) {
		n = deal_with(cq, n, sink);
		/* a shorter batch may have ended before a failed completion */
		if (n != DOFI_CQ_BATCH && (n < 1 || !read_takes_all(cq)))
			break;
		if (!may_go_on(cq, &batches))
			break;
		n = read_batch(cq);
	}
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
	struct fid_cq *fid;
	ssize_t n;

	if (!dofi_cq_try(cq)) {
		give_way(cq);
		return;
	}
	fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);
	dofi_cq_lock_access(cq);
	n = fid ? dofi_cq_next(cq, fid) : dofi_cq_read(cq);
	dofi_cq_unlock_access(cq);
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
	/* pairs with yield_to_program(), which checks sleepers after it stored armed */
	atomic_fetch_add(&cq->sleepers, 1);
	if (!atomic_load(&cq->armed) || cq->quirk->silent_errors)
		dofi_progress_wake(cq->progress);
}

void dofi_cq_sleep_end(struct dofi_cq *cq)
{
	atomic_fetch_sub(&cq->sleepers, 1);
}

bool dofi_cq_can_sleep(struct dofi_cq *cq, struct fid_cq *fid_cq)
{
	struct fid *fid = &fid_cq->fid;
	bool can;

	/* without a descriptor the progress thread reads the CQ once more before it sleeps */
	if (cq->fd < 0)
		return true;
	if (cq->several) {
		dofi_mutex_lock(&cq->lock);
		can = dofi_shards_can_sleep(cq->shards, cq->fabric);
		dofi_mutex_unlock(&cq->lock);
		return can;
	}
	dofi_cq_lock_access(cq);
	can = fi_trywait(cq->fabric, &fid, 1) == FI_SUCCESS;
	dofi_cq_unlock_access(cq);
	return can;
}

#define BARREN_MOST 8

bool dofi_cq_is_stuck(struct dofi_cq *cq, bool can)
{
	struct pollfd pfd = { .events = POLLIN };
	bool stuck = false;

	if (cq->fd < 0 || cq->quirk->many_reads)
		return false;
	dofi_mutex_lock(&cq->lock);
	if (cq->finds != cq->finds_seen)
		cq->barren = 0;
	cq->finds_seen = cq->finds;
	if (++cq->barren >= BARREN_MOST) {
		pfd.fd = cq->fd;
		stuck = !can || poll(&pfd, 1, 0) == 1;
		cq->barren = stuck ? BARREN_MOST : 0;
	}
	dofi_mutex_unlock(&cq->lock);
	return stuck;
}

/* The leader */

void dofi_lead_open(struct dofi_cq *cq)
{
	struct dofi_lead *lead = &cq->lead;

	dofi_mutex_assert_held(&cq->lock);
	lead->wakeup_fd = lead->signals = -1;
	atomic_store(&lead->word, NULL);
	atomic_store(&lead->has_leader, false);
	dofi_cond_init(&lead->left);
	/* without descriptors, or with silent errors, the progress thread serves the CQ */
	if (cq->fd >= 0 && !cq->quirk->silent_errors) {
		lead->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		lead->signals = lead->wakeup_fd < 0 ? -1 : dofi_nap_open();
	}
	lead->able = lead->signals >= 0;
}

void dofi_lead_await_end(struct dofi_cq *cq)
{
	struct dofi_lead *lead = &cq->lead;
	const bool able = lead->able;

	dofi_mutex_assert_held(&cq->lock);
	lead->able = false;		/* the leader cannot lead again before this thread runs */
	while (atomic_load(&lead->has_leader)) {
		dofi_lead_interrupt(lead);
		dofi_cond_wait(&lead->left, &cq->lock, DOFI_NEVER);
	}
	lead->able = able;
}

void dofi_lead_close(struct dofi_cq *cq)
{
	struct dofi_lead *lead = &cq->lead;

	dofi_mutex_assert_held(&cq->lock);
	dofi_lead_await_end(cq);
	lead->able = false;
	if (lead->wakeup_fd >= 0)
		close(lead->wakeup_fd);
	if (lead->signals >= 0)
		close(lead->signals);
	lead->wakeup_fd = lead->signals = -1;
	atomic_store(&lead->word, NULL);
}

void dofi_lead_set_word(struct dofi_cq *cq, const struct dofi_lead_word *word)
{
	dofi_mutex_lock(&cq->lock);
	if (cq->fd < 0) {
		atomic_store(&cq->lead.word, word);
		cq->lead.able = word != NULL;
	}
	dofi_mutex_unlock(&cq->lock);
}

int dofi_lead_begin(struct dofi_cq *cq)
{
	struct dofi_lead *lead = &cq->lead;
	const struct dofi_lead_word *word;
	struct fid_cq *fid = NULL;
	int err = -EAGAIN;
	bool read, can;

	if (!dofi_lead_is_able(lead))
		return -EBUSY;
	dofi_mutex_lock(&cq->lock);
	if (lead->able && !lead->has_leader && !atomic_load(&cq->sleepers)) {
		fid = cq->fid;
		atomic_store(&lead->has_leader, fid != NULL);
		atomic_store_explicit(&cq->led, true, memory_order_relaxed);
		dofi_cq_route(cq);
	}
	/* fi_trywait() that reads replaces a read */
	read = cq->fd < 0 || cq->several || cq->left || !cq->quirk->trywait_reads ||
	       dofi_cq_wants_sweep(cq);
	dofi_mutex_unlock(&cq->lock);
	if (!fid)
		return -EBUSY;
	word = atomic_load(&lead->word);
	if (word)
		dofi_lead_word_ask(word);
	if (read && dofi_cq_drain(cq))
		goto end;
	if (dofi_cq_wants_sweep_now(cq)) {
		err = -EBUSY;
		goto end;
	}
	can = dofi_cq_can_sleep(cq, fid);
	if (!can)
		dofi_cq_drain(cq);
	if (dofi_cq_is_stuck(cq, can))
		err = -EBUSY;
	else if (can)
		return 0;
end:
	dofi_lead_end(cq);
	return err;
}

int dofi_lead_sleep(struct dofi_cq *cq, struct dofi_cond *cond, struct dofi_mutex *lock,
		    int64_t deadline)
{
	struct dofi_lead *lead = &cq->lead;
	const struct dofi_lead_word *w = atomic_load(&lead->word);
	uint32_t value;
	int64_t most;
	int err;

	dofi_mutex_assert_held(lock);
	if (cq->fd >= 0)
		return dofi_cond_wait_fd(cond, lock, deadline, cq->fd, lead->wakeup_fd,
					 lead->signals);
	value = w ? atomic_load(w->word) : 0;
	most = dofi_now() + dofi_longest_sleep_ns;
	if (!w || !(value & w->bit))
		return dofi_now() < deadline ? 0 : -ETIMEDOUT;
	err = dofi_cond_wait_word(cond, lock, most < deadline ? most : deadline, w->word, value);
	if (err == -EBUSY) {
		/* each wait would try again, and the next peer would make a system call */
		atomic_store(&lead->able, false);
		atomic_fetch_and(w->word, ~w->bit);
	}
	return err == -ETIMEDOUT && most < deadline ? 0 : err;
}

void dofi_lead_end(struct dofi_cq *cq)
{
	dofi_mutex_lock(&cq->lock);
	atomic_store(&cq->lead.has_leader, false);
	dofi_cq_route(cq);
	dofi_cond_broadcast(&cq->lead.left);
	dofi_mutex_unlock(&cq->lock);
}

void dofi_lead_interrupt(struct dofi_lead *lead)
{
	const struct dofi_lead_word *w;

	if (!atomic_load(&lead->has_leader))
		return;
	w = atomic_load(&lead->word);
	if (w) {
		atomic_fetch_and(w->word, ~w->bit);
		dofi_word_wake(w->word);
	} else if (lead->wakeup_fd >= 0) {
		dofi_nap_end(lead->wakeup_fd);
	}
}
