/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A completion queue and its shards, and its service by the progress thread. */

#include "fab/cq.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

static void cq_ready(struct dofi_source *source)
{
	DOFI_CONTAINER_OF(source, struct dofi_cq, source)->served.fired = true;
}

static int watch(struct dofi_cq *cq, enum dofi_cq_watch what)
{
	static const uint32_t events[] = {
		[DOFI_CQ_ONCE] = EPOLLIN | EPOLLONESHOT,
		[DOFI_CQ_ARRIVALS] = EPOLLIN | EPOLLET,
		[DOFI_CQ_NOTHING] = EPOLLONESHOT,
	};
	struct epoll_event ev = { .data.ptr = &cq->source };

	if (cq->fd < 0 || what == DOFI_CQ_AS_BEFORE)
		return 0;
	ev.events = events[what];
	if (epoll_ctl(cq->progress->epfd, cq->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, cq->fd, &ev))
		return -errno;
	cq->watched = true;
	return 0;
}

/* Takes cq->fd out of the epoll set: call before it changes. */
static void forget(struct dofi_cq *cq)
{
	if (cq->watched)
		epoll_ctl(cq->progress->epfd, EPOLL_CTL_DEL, cq->fd, NULL);
	cq->watched = cq->policy.stuck = false;
}

static void set_armed(struct dofi_cq *cq, bool armed)
{
	if (atomic_load(&cq->armed) == armed)
		return;
	dofi_mutex_lock(&cq->lock);
	atomic_store(&cq->armed, armed);
	dofi_cq_route(cq);
	dofi_mutex_unlock(&cq->lock);
}

/*
 * Observes the CQ and the program. The thread that polled last is examined only if nothing
 * else shows that the CQ is in use: that reads /proc.
 */
static struct dofi_cq_seen look(struct dofi_cq *cq, int64_t now)
{
	struct dofi_cq_seen seen = {
		.offloaded = cq->quirk->offloaded,
		.armed = atomic_load(&cq->armed),
		.sleeper = atomic_load(&cq->sleepers),
		.sweep = dofi_cq_wants_sweep(cq),
		.has_leader = dofi_has_leader(&cq->lead),
		.led = atomic_exchange(&cq->led, false),
		.took_queued = atomic_exchange(&cq->took_queued, false),
		.posted = atomic_exchange(&cq->posted, false),
		.ran = dofi_polling_thread_ran(&cq->last_reader),
		.passed = now - cq->looked_at,
	};

	seen.woken = seen.armed && cq->served.fired;
	seen.preempted = !seen.armed && !seen.led && !seen.took_queued && !seen.posted &&
			 seen.ran < dofi_settings.probe_us * 1000 &&
			 dofi_polling_thread_is_runnable(&cq->last_reader);
	cq->looked_at = now;
	if (!dofi_mutex_try(&cq->lock)) {
		seen.reads = true;
		return seen;
	}
	seen.polls = cq->polls - cq->polls_seen;
	cq->polls_seen = cq->polls;
	dofi_mutex_unlock(&cq->lock);
	return seen;
}

/*
 * Leaves the CQ to the program until due_at. Returns false if a thread sleeps, which the progress
 * thread has to serve. A descriptor without events in the epoll set still costs the kernel time
 * with each packet, so it is removed; but adding the set of several shards again searches each
 * socket for loops.
 */
static bool yield_to_program(struct dofi_cq *cq, int64_t now)
{
	if (!cq->several)
		forget(cq);
	else if (cq->watched)
		watch(cq, DOFI_CQ_NOTHING);
	cq->policy.stuck = false;
	cq->due_at = now + cq->policy.pause_us * 1000;
	set_armed(cq, false);
	return !atomic_load(&cq->sleepers);
}

void dofi_cq_probe(struct dofi_cq *cq, int64_t now)
{
	if (atomic_load(&cq->armed))
		return;
	look(cq, now);
	cq->policy.pause_us = dofi_settings.probe_us;
	cq->due_at = now + cq->policy.pause_us * 1000;
}

#define ARM_TRIES 8

/* Empties the CQ and arms it. @found: the CQ is armed and was drained, with completions. */
static void drain_and_arm(struct dofi_cq *cq, bool found, bool woken, int64_t now)
{
	bool can, stuck;
	int i;

	/*
	 * before the CQ is drained, so that dofi_cq_kick() after a later receive sees that it is
	 * armed
	 */
	set_armed(cq, true);
	if (!found)
		found = dofi_cq_drain(cq);
	for (i = 0; i < ARM_TRIES; i++) {
		can = dofi_cq_can_sleep(cq, cq->fid);
		if (!can)
			found |= dofi_cq_drain(cq);
		/* arrivals that bring completions are not to be ignored */
		if (found)
			cq->policy.stuck = false;
		stuck = dofi_cq_is_stuck(cq, can);
		if (can || stuck) {
			cq->due_at = now;
			if (!watch(cq, dofi_cq_watch(&cq->policy, stuck, woken)))
				return;
			/* no memory for epoll: try again after a tick */
			now += dofi_settings.tick_us * 1000;
			break;
		}
	}
	/* completions arrive faster than they are read: continue after the other queues */
	cq->due_at = now;
	cq->policy.stuck = false;
	set_armed(cq, false);
}

int64_t dofi_cq_due(const struct dofi_cq *cq)
{
	long us;

	if (!atomic_load(&cq->armed) || cq->served.fired)
		return cq->due_at;
	us = dofi_cq_rest_us(&cq->policy, dofi_cq_wants_sweep_now(cq),
			     cq->quirk->silent_errors && atomic_load(&cq->sleepers));
	return us < 0 ? DOFI_NEVER : cq->due_at + us * 1000;
}

void dofi_cq_serve(struct dofi_cq *cq, int64_t now)
{
	struct dofi_cq_seen seen;
	enum dofi_cq_turn turn;
	bool found = false;

	if (now < dofi_cq_due(cq) && (atomic_load(&cq->armed) || !atomic_load(&cq->sleepers)))
		return;
	seen = look(cq, now);
	cq->served.fired = false;
	if (dofi_cq_suspects_memory(&seen)) {
		atomic_store(&cq->delivered, false);
		found = dofi_cq_drain(cq);
		seen.eventless = !atomic_load(&cq->delivered);
	}
	turn = dofi_cq_turn(&cq->policy, &seen);
	if (turn == DOFI_CQ_READ_AND_LEAVE)
		dofi_cq_drain(cq);
	if (turn == DOFI_CQ_ARM || !yield_to_program(cq, now))
		drain_and_arm(cq, found, seen.woken, now);
}

static struct dofi_cq *cq_of(struct dofi_served *served)
{
	return DOFI_CONTAINER_OF(served, struct dofi_cq, served);
}

static int64_t serve(struct dofi_served *served, int64_t now)
{
	dofi_cq_serve(cq_of(served), now);
	return dofi_cq_due(cq_of(served));
}

static void probe(struct dofi_served *served, int64_t now)
{
	dofi_cq_probe(cq_of(served), now);
}

static bool drain(struct dofi_served *served)
{
	return dofi_cq_drain(cq_of(served));
}

static bool is_armed(const struct dofi_served *served)
{
	const struct dofi_cq *cq = DOFI_CONTAINER_OF(served, const struct dofi_cq, served);

	return atomic_load(&cq->armed);
}

static const struct dofi_served_ops served_ops = {
	.serve = serve,
	.probe = probe,
	.drain = drain,
	.is_armed = is_armed,
};

/* Opening and closing */

#define CQ_SIZE 4096			/* software CQs grow when they are full */
#define SHARD_SIZE 256			/* of a shard but the first: it has few endpoints */
#define LEAST_FIXED_SIZE 1024		/* more than one endpoint reserves */

void dofi_cq_init(struct dofi_cq *cq)
{
	static const struct dofi_quirk none;

	cq->quirk = &none;
	dofi_mutex_init(&cq->lock);
	dofi_mutex_init(&cq->access);
	atomic_init(&cq->shards, NULL);
	cq->several = false;
}

/* *@fd is -1 if the fabric has no descriptor for epoll, or none that reports everything. */
static int fid_open(const struct dofi_cq *cq, struct fid_domain *domain, size_t size,
		    struct fid_cq **fid, int *fd)
{
	struct fi_cq_attr attr = {
		.size = size,
		.format = FI_CQ_FORMAT_DATA,
		/* with FI_WAIT_UNSPEC, FI_GETWAIT writes a larger structure */
		.wait_obj = FI_WAIT_FD,
	};
	int ret = cq->by_clock ? -FI_ENOSYS : fi_cq_open(domain, &attr, fid, NULL);

	if (ret == -FI_ENOSYS) {
		*fd = -1;
		attr.wait_obj = FI_WAIT_NONE;
		return fi_cq_open(domain, &attr, fid, NULL);
	}
	if (ret)
		return ret;
	ret = fi_control(&(*fid)->fid, FI_GETWAIT, fd);
	if (ret)
		fi_close(&(*fid)->fid);
	else
		dofi_epoll_close_on_exec(*fd);
	return ret;
}

int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_fabric *fabric,
		 struct fid_domain *domain, const struct dofi_progress_ops *ops)
{
	unsigned size = cq->quirk->fixed_queues ? cq->unreserved : CQ_SIZE;
	struct fid_cq *fid;
	int ret;

	while ((ret = fid_open(cq, domain, size, &fid, &cq->fd)) && cq->quirk->fixed_queues &&
	       size / 2 >= LEAST_FIXED_SIZE)
		size /= 2;
	if (cq->quirk->fixed_queues)
		cq->unreserved = size;
	if (ret)
		goto log;
	cq->progress = progress;
	cq->source.ready = cq_ready;
	cq->watched = false;
	dofi_cq_policy_init(&cq->policy);
	ret = watch(cq, DOFI_CQ_ONCE);
	if (ret)
		goto close_cq;
	dofi_mutex_lock(&cq->lock);
	cq->fid = cq->first.fid = fid;
	cq->first.fd = cq->fd;
	cq->first.endpoints = 0;
	cq->fabric = fabric;
	cq->domain = domain;
	cq->ops = ops;
	cq->completed = ops->completed;
	cq->owner = NULL;
	LIST_INIT(&cq->sweepers);
	TAILQ_INIT(&cq->stalls);
	cq->left = 0;
	cq->barren = 0;
	cq->most = 1;
	/* an EVD may still poll the CQ, as part of the memory's former PZ */
	cq->polls_seen = cq->polls;
	atomic_store(&cq->armed, true);
	dofi_cq_route(cq);
	dofi_lead_open(cq);
	dofi_mutex_unlock(&cq->lock);
	/* a thread may still sleep on the CQ of the memory's former PZ: sleepers stays */
	atomic_store(&cq->sweeps_done, atomic_load(&cq->sweeps_wanted));
	atomic_store(&cq->took_queued, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->looked_at = 0;
	cq->served.fired = true;	/* the next round arms the CQ */
	cq->served.ops = &served_ops;
	cq->served.has_fd = cq->fd >= 0;
	TAILQ_INSERT_TAIL(&progress->served, &cq->served, link);
	return 0;

close_cq:
	fi_close(&fid->fid);
log:
	dofi_log(DOFI_WARN, DOFI_FAB, "opening a completion queue: %s", fi_strerror(-ret));
	return ret;
}

void dofi_cq_close(struct dofi_cq *cq)
{
	struct fid_cq *fid = cq->fid;
	int ret;

	TAILQ_REMOVE(&cq->progress->served, &cq->served, link);
	forget(cq);
	dofi_mutex_lock(&cq->lock);
	cq->fid = NULL;
	dofi_cq_route(cq);
	dofi_lead_close(cq);
	if (cq->several)
		dofi_shards_close(cq->shards);
	cq->several = false;
	dofi_mutex_unlock(&cq->lock);
	ret = fi_close(&fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "closing a completion queue: %s", fi_strerror(-ret));
}

/* Shards */

/* From the second shard on, reads go to the shards; a direct read of the first holds the lock. */
static int shard_add(struct dofi_cq *cq)
{
	struct fid_cq *fid;
	int fd, ret = 0;

	if (!cq->shards)
		cq->shards = calloc(1, sizeof(*cq->shards));
	if (!cq->shards)
		return -ENOMEM;
	if (!cq->several) {
		dofi_mutex_lock(&cq->lock);
		/* the leader sleeps on the descriptor of the first shard */
		dofi_lead_await_end(cq);
		ret = dofi_shards_open(cq->shards, &cq->first);
		if (!ret) {
			forget(cq);
			cq->several = true;
			cq->fd = cq->shards->set;
			atomic_store(&cq->programs_fid, NULL);
		}
		dofi_mutex_unlock(&cq->lock);
	}
	if (!ret)
		ret = fid_open(cq, cq->domain, SHARD_SIZE, &fid, &fd);
	if (ret)
		return ret;
	dofi_mutex_lock(&cq->lock);
	ret = fd < 0 ? -FI_ENOSYS : dofi_shards_add(cq->shards, fid, fd);
	dofi_mutex_unlock(&cq->lock);
	if (ret)
		fi_close(&fid->fid);
	return ret;
}

static struct dofi_shard *shard_not_full(struct dofi_cq *cq)
{
	if (cq->several)
		return dofi_shards_not_full(cq->shards);
	return cq->first.endpoints < DOFI_SHARD_ENDPOINTS ? &cq->first : NULL;
}

struct dofi_shard *dofi_cq_enter_shard(struct dofi_cq *cq)
{
	struct dofi_shard *shard =
		cq->quirk->reads_each && cq->fd >= 0 ? shard_not_full(cq) : &cq->first;
	int ret;

	if (!shard) {
		ret = shard_add(cq);
		/* cq->fd or its set has changed: the next round arms the CQ again */
		cq->served.fired = true;
		if (ret)
			dofi_log(DOFI_INFO, DOFI_FAB, "endpoints share a completion queue: %s",
				 fi_strerror(-ret));
		shard = ret ? &cq->first : shard_not_full(cq);
	}
	shard->endpoints++;
	return shard;
}

void dofi_cq_leave_shard(struct dofi_cq *cq, struct dofi_shard *shard)
{
	if (cq->several)
		dofi_shards_leave(cq->shards, shard);
	else
		shard->endpoints--;
}
