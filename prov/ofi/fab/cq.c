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
	DOFI_CONTAINER_OF(source, struct dofi_cq, source)->poller.fired = true;
}

/* What epoll reports: once that there is something to read; each arrival; nothing. */
#define ONCE (EPOLLIN | EPOLLONESHOT)
#define ARRIVALS (EPOLLIN | EPOLLET)
#define NOTHING EPOLLONESHOT

static int watch(struct dofi_cq *cq, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = &cq->source };

	if (cq->fd < 0)
		return 0;
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
	cq->watched = cq->stuck = false;
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

/* The program's calls since the last check. */
struct use {
	unsigned polls;
	bool reads;		/* a poll holds the lock, and is not counted in polls */
	bool led;
	bool taken;
	bool posted;
	int64_t ran;		/* processor time of the polling thread: dofi_runner_ran() */
	int64_t passed;		/* time since the last check, in ns */
};

static struct use use_since_check(struct dofi_cq *cq, int64_t now)
{
	struct use use = {
		.led = atomic_exchange(&cq->led, false),
		.taken = atomic_exchange(&cq->taken, false),
		.posted = atomic_exchange(&cq->posted, false),
		.ran = dofi_runner_ran(&cq->runner),
		.passed = now - cq->checked_at,
	};

	cq->checked_at = now;
	if (!dofi_mutex_try(&cq->lock)) {
		use.reads = true;
		return use;
	}
	use.polls = cq->polls - cq->polls_checked;
	cq->polls_checked = cq->polls;
	dofi_mutex_unlock(&cq->lock);
	return use;
}

/*
 * Returns whether a thread polls in a loop, by the processor time for each poll: a program that
 * reads memory also polls, once per completion. A long read counts as polling, as it copies what
 * has arrived. Where hardware moves the data, no peer depends on the answer.
 */
#define POLLS_PER_PROBE 4		/* DAT_OFI_PROBE_US */

static bool polls_in_loop(const struct dofi_cq *cq, const struct use *use)
{
	const int64_t time = use->ran < use->passed ? use->ran : use->passed,
		      longest = dofi_settings.probe_us * 1000 / POLLS_PER_PROBE;

	return use->reads || (use->polls && (cq->offloaded || time / use->polls <= longest));
}

/*
 * The longest pauses, in ticks. A check takes ten microseconds from a busy program, so pauses grow.
 * If hardware moves the data, no peer depends on the checks, and all pauses are long.
 */
#define RAREST_LOOK 4
#define OFFLOADED_LOOK 64

/*
 * The pause before the next check: short at first and while the program only posts, then growing
 * slowly, as the peers of a program that polls in bursts wait for answers. A check without a poll
 * only halves it: on a busy machine the thread may have had no processor. Below a leader it is at
 * least a tick: both threads would wake otherwise.
 */
static long next_pause(const struct dofi_cq *cq, bool posts_alone, bool led)
{
	const long tick = dofi_settings.tick_us,
		   most = tick * (cq->offloaded ? OFFLOADED_LOOK : RAREST_LOOK);
	long pause = cq->pause_us + (cq->pause_us + 3) / 4;

	if (atomic_load(&cq->armed))
		pause = cq->pause_us / 2;
	else if (cq->offloaded)
		pause = most;
	if (posts_alone || pause < dofi_settings.probe_us)
		pause = dofi_settings.probe_us;
	if (led && pause < tick)
		pause = tick;
	return pause < most ? pause : most;
}

/*
 * Leaves the CQ to the program until due_at. Returns false if a thread sleeps, which the progress
 * thread has to serve. A descriptor without events in the epoll set still costs the kernel time
 * with each packet, so it is removed; but adding the set of several shards again searches each
 * socket for loops.
 */
static bool yield_to_program(struct dofi_cq *cq, int64_t now, long pause)
{
	if (!cq->several)
		forget(cq);
	else if (cq->watched)
		watch(cq, NOTHING);
	cq->stuck = false;
	cq->pause_us = pause;
	cq->due_at = now + pause * 1000;
	set_armed(cq, false);
	return !atomic_load(&cq->sleepers);
}

void dofi_cq_probe(struct dofi_cq *cq, int64_t now)
{
	if (atomic_load(&cq->armed))
		return;
	use_since_check(cq, now);
	cq->pause_us = dofi_settings.probe_us;
	cq->due_at = now + cq->pause_us * 1000;
}

/* The checks that found posts alone, and their count that makes a program silent. */
#define SILENT_LOOKS 4
#define SILENT_MOST 8

/*
 * Leaves the CQ to the program if its threads use it. A program that has events queued, or posts,
 * does not poll for a while. If the progress thread read the CQ then, it would queue events again,
 * and every completion would cost two switches of threads. So it drains the CQ once per check, as
 * other EVDs and peers need that.
 *
 * A silent program posts but does not poll, so that its CQ has to be served as if it slept: one
 * that waits for its peer by reading memory (the eager RDMA of MPI libraries) calls nothing
 * meanwhile. One check that finds only posts does not prove that: a long post, or many in a row,
 * delay the next poll. So checks are counted, up for posts alone and down for polls. Where hardware
 * moves the data there is nothing to serve.
 *
 * A thread that lacks a processor counts as polling: where processors are few it may be kept
 * waiting for longer than any pause. If the CQ were armed then, its peers would send a wakeup with
 * each message, and the progress threads that these wake would keep all polling threads waiting
 * for longer still. A thread that ran for a while without a poll, or that sleeps, does something
 * else.
 */
static bool leave_to_program(struct dofi_cq *cq, const struct use *use, int64_t now)
{
	const bool polled = polls_in_loop(cq, use);
	const bool at_work = polled || use->taken || use->led;
	const bool posts_alone = use->posted && !at_work && !cq->offloaded;

	if (posts_alone && cq->silent < SILENT_MOST)
		cq->silent++;
	else if (at_work && cq->silent)
		cq->silent--;
	if (cq->silent >= SILENT_LOOKS || atomic_load(&cq->sleepers))
		return false;
	if (!at_work && !use->posted &&
	    (atomic_load(&cq->armed) || use->ran >= dofi_settings.probe_us * 1000 ||
	     !dofi_runner_is_runnable(&cq->runner)))
		return false;
	if (!polled)
		dofi_cq_drain(cq);
	return yield_to_program(cq, now, next_pause(cq, posts_alone, use->led));
}

/*
 * Returns whether the woken progress thread has to serve the CQ although the program polls now and
 * then: the program reads memory that its peer writes. A wakeup proves this if the program works
 * but hardly polled, no thread leads, and no event of the program arrived. The proof holds for the
 * next wakeups, as the program polls for its own writes in between. The first wakeups after polling
 * are served without a proof, as no wakeup would show a write otherwise. Sets *@found if the CQ was
 * drained and had completions.
 */
#define HARDLY 4
#define WAKEUPS_PROVEN 32
#define WAKEUPS_FIRST 2

static bool reads_memory(struct dofi_cq *cq, const struct use *use, bool *found)
{
	const bool active = use->posted || use->polls || use->taken;

	if (active && !use->reads && use->polls <= HARDLY && !use->led &&
	    !dofi_lead_is_taken(&cq->lead)) {
		atomic_store(&cq->delivered, false);
		*found = dofi_cq_drain(cq);
		if (!atomic_load(&cq->delivered))
			cq->served = WAKEUPS_PROVEN;
	}
	if (!cq->served)
		return false;
	cq->served--;
	return true;
}

/*
 * Watches a descriptor that stays readable with nothing to read. Data may still arrive, for other
 * connections or for RDMA writes, so epoll reports each arrival, which costs nothing meanwhile. A
 * program that posts a receive drains the CQ itself (dofi_cq_kick()). Many arrivals without a
 * completion may be an effect of reading (nested epoll sets before Linux 5.6), and are ignored from
 * then on. The CQ is also read after growing times, for what epoll does not report, and to end
 * this.
 */
#define STUCK_WAKEUPS 64
#define STUCK_TICKS 4

static int watch_stuck(struct dofi_cq *cq, bool woken)
{
	const long most = dofi_settings.tick_us * STUCK_TICKS;

	if (!cq->stuck) {
		cq->stuck_wakeups = 0;
		cq->stuck_us = dofi_settings.tick_us;
		return watch(cq, ARRIVALS);
	}
	cq->stuck_us = cq->stuck_us < most / 2 ? cq->stuck_us * 2 : most;
	if (woken && ++cq->stuck_wakeups == STUCK_WAKEUPS) {
		cq->stuck_us = dofi_settings.probe_us;
		return watch(cq, NOTHING);
	}
	return 0;
}

#define ARM_TRIES 8

/*
 * Empties the CQ and arms it. Set @found if it is armed and was drained with completions, @woken if
 * its descriptor woke this thread.
 */
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
			cq->stuck = false;
		stuck = dofi_cq_is_stuck(cq, can);
		if (can || stuck) {
			if (!(stuck ? watch_stuck(cq, woken) : watch(cq, ONCE))) {
				cq->stuck = stuck;
				cq->due_at = now;
				return;
			}
			/* no memory for epoll: try again after a tick */
			now += dofi_settings.tick_us * 1000;
			break;
		}
	}
	/* completions arrive faster than they are read: continue after the other queues */
	cq->due_at = now;
	cq->stuck = false;
	set_armed(cq, false);
}

#define SILENT_TICKS 200	/* or an idle program would feel it */

int64_t dofi_cq_due(const struct dofi_cq *cq)
{
	int64_t ticks;

	if (!atomic_load(&cq->armed) || cq->poller.fired)
		return cq->due_at;
	/* where the descriptor does not report failures, a sleeper's CQ is read as well */
	if (dofi_cq_wants_sweep_now(cq))
		ticks = 1;
	else if (cq->stuck)
		return cq->due_at + cq->stuck_us * 1000;
	else if (cq->silent_errors && atomic_load(&cq->sleepers))
		ticks = SILENT_TICKS;
	else
		return DOFI_NEVER;
	return cq->due_at + dofi_settings.tick_us * 1000 * ticks;
}

void dofi_cq_serve(struct dofi_cq *cq, int64_t now)
{
	const bool armed = atomic_load(&cq->armed);
	const bool woken = armed && cq->poller.fired;
	bool found = false;
	struct use use;

	if (now < dofi_cq_due(cq) && (armed || !atomic_load(&cq->sleepers)))
		return;
	cq->poller.fired = false;
	use = use_since_check(cq, now);
	if (!woken || !reads_memory(cq, &use, &found)) {
		/* the leader also woke; the next check finds if it does not read the CQ */
		if (woken && dofi_lead_is_taken(&cq->lead) && !dofi_cq_wants_sweep(cq)) {
			atomic_store(&cq->led, false);
			if (yield_to_program(cq, now, next_pause(cq, false, true)))
				return;
		}
		if (leave_to_program(cq, &use, now))
			return;
	}
	if (!armed && cq->served < WAKEUPS_FIRST)
		cq->served = WAKEUPS_FIRST;
	drain_and_arm(cq, found, woken, now);
}

static struct dofi_cq *cq_of(struct dofi_poller *poller)
{
	return DOFI_CONTAINER_OF(poller, struct dofi_cq, poller);
}

static int64_t poller_serve(struct dofi_poller *poller, int64_t now)
{
	dofi_cq_serve(cq_of(poller), now);
	return dofi_cq_due(cq_of(poller));
}

static void poller_probe(struct dofi_poller *poller, int64_t now)
{
	dofi_cq_probe(cq_of(poller), now);
}

static bool poller_drain(struct dofi_poller *poller)
{
	return dofi_cq_drain(cq_of(poller));
}

static bool poller_is_armed(const struct dofi_poller *poller)
{
	const struct dofi_cq *cq = DOFI_CONTAINER_OF(poller, const struct dofi_cq, poller);

	return atomic_load(&cq->armed);
}

static const struct dofi_poller_ops poller_ops = {
	.serve = poller_serve,
	.probe = poller_probe,
	.drain = poller_drain,
	.is_armed = poller_is_armed,
};

/* Opening and closing */

#define CQ_SIZE 4096			/* software CQs grow when they are full */
#define SHARD_SIZE 256			/* of a shard but the first: it has few endpoints */
#define LEAST_FIXED_SIZE 1024		/* more than one endpoint reserves */

void dofi_cq_init(struct dofi_cq *cq)
{
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
	unsigned size = cq->fixed ? cq->unreserved : CQ_SIZE;
	struct fid_cq *fid;
	int ret;

	while ((ret = fid_open(cq, domain, size, &fid, &cq->fd)) && cq->fixed &&
	       size / 2 >= LEAST_FIXED_SIZE)
		size /= 2;
	if (cq->fixed)
		cq->unreserved = size;
	if (ret)
		goto log;
	cq->progress = progress;
	cq->source.ready = cq_ready;
	cq->watched = cq->stuck = false;
	ret = watch(cq, ONCE);
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
	cq->mixed = ops->mixed;
	cq->owner = NULL;
	LIST_INIT(&cq->sweepers);
	cq->left = 0;
	cq->barren = 0;
	cq->most = 1;
	/* an EVD may still poll the CQ, as part of the memory's former PZ */
	cq->polls_checked = cq->polls;
	atomic_store(&cq->armed, true);
	dofi_cq_route(cq);
	dofi_lead_open(cq);
	dofi_mutex_unlock(&cq->lock);
	atomic_store(&cq->sleepers, 0);
	atomic_store(&cq->sweeps_done, atomic_load(&cq->sweeps_wanted));
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->silent = 0;
	cq->checked_at = 0;
	cq->served = WAKEUPS_FIRST;
	cq->poller.fired = true;	/* the next round arms the CQ */
	cq->poller.ops = &poller_ops;
	cq->poller.has_fd = cq->fd >= 0;
	dofi_poller_add(progress, &cq->poller);
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

	dofi_poller_remove(cq->progress, &cq->poller);
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
		dofi_lead_expel(cq);	/* the leader sleeps on the descriptor of the first shard */
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
	struct dofi_shard *shard = cq->reads_each && cq->fd >= 0 ? shard_not_full(cq) : &cq->first;
	int ret;

	if (!shard) {
		ret = shard_add(cq);
		/* cq->fd or its set has changed: the next round arms the CQ again */
		cq->poller.fired = true;
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
