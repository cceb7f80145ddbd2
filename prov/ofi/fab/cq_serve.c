/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the progress thread serves a completion queue: when it reads it, arms it, or leaves it to the
 * program.
 */

#include "fab/cq_serve.h"

#include "base/clock.h"
#include "base/container.h"
#include "base/env.h"
#include "fab/cq.h"

#include <errno.h>
#include <sys/epoll.h>

static void cq_ready(struct dofi_source *source)
{
	DOFI_CONTAINER_OF(source, struct dofi_cq, source)->poller.fired = true;
}

/* Lets epoll report once that there is something to read. */
static int watch(struct dofi_cq *cq)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = &cq->source };

	if (cq->fd < 0)
		return 0;
	if (epoll_ctl(cq->progress->epfd, cq->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, cq->fd, &ev))
		return -errno;
	cq->watched = true;
	return 0;
}

void dofi_cq_forget(struct dofi_cq *cq)
{
	if (cq->watched)
		epoll_ctl(cq->progress->epfd, EPOLL_CTL_DEL, cq->fd, NULL);
	cq->watched = false;
}

/*
 * A descriptor in the epoll set without events still costs the kernel time with each packet, so it
 * is removed. The set of several shards stays: to add it again, the kernel searches for loops
 * through each socket.
 */
static void unwatch(struct dofi_cq *cq)
{
	struct epoll_event none = { .events = EPOLLONESHOT, .data.ptr = &cq->source };

	if (!cq->several)
		dofi_cq_forget(cq);
	else if (cq->watched)
		epoll_ctl(cq->progress->epfd, EPOLL_CTL_MOD, cq->fd, &none);
}

static void set_mode(struct dofi_cq *cq, enum dofi_cq_mode mode)
{
	const bool was_armed = atomic_load(&cq->mode) == DOFI_CQ_ARMED;

	if (was_armed == (mode == DOFI_CQ_ARMED)) {
		atomic_store(&cq->mode, mode);
		return;
	}
	dofi_mutex_lock(&cq->lock);
	atomic_store(&cq->mode, mode);
	dofi_cq_route(cq);
	dofi_mutex_unlock(&cq->lock);
}

/* One read may take longer than the pause between two checks: it copies what has arrived. */
static bool being_read(struct dofi_cq *cq)
{
	if (!dofi_mutex_try(&cq->lock))
		return true;
	dofi_mutex_unlock(&cq->lock);
	return false;
}

/*
 * The longest pauses, in ticks. A check takes ten microseconds from a busy program, in a virtual
 * machine far more. So pauses grow while the program polls. If hardware moves the data, no peer
 * depends on the checks, and all pauses are long; a waiting thread of this process counts as a
 * sleeper.
 */
#define RAREST_LOOK 4
#define OFFLOADED_LOOK 64

/*
 * The pause before the next check: short at first and while the program only posts, then longer
 * each time. It grows slowly: a program that polls in bursts would reach long pauses otherwise,
 * during which its peers wait for answers. A check that found no poll only halves it, as on a busy
 * machine a polling thread may have had no processor. A leader reads the CQ whenever something
 * arrives, so its pause is at least a tick: after a shorter one both threads would wake.
 */
static long next_pause(const struct dofi_cq *cq, bool posts_alone, bool led)
{
	const long tick = dofi_settings.tick_us,
		   most = tick * (cq->offloaded ? OFFLOADED_LOOK : RAREST_LOOK);
	long pause = cq->pause_us + (cq->pause_us + 3) / 4;

	if (atomic_load(&cq->mode) == DOFI_CQ_ARMED)
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
 * thread has to serve.
 */
static bool yield_to_program(struct dofi_cq *cq, int64_t now, long pause)
{
	const bool first = atomic_load(&cq->mode) == DOFI_CQ_ARMED;

	unwatch(cq);
	cq->pause_us = pause;
	cq->due_at = now + pause * 1000;
	set_mode(cq, first ? DOFI_CQ_PROBED : DOFI_CQ_OWNED);
	return !atomic_load(&cq->sleepers);
}

void dofi_cq_probe(struct dofi_cq *cq, int64_t now)
{
	if (atomic_load(&cq->mode) == DOFI_CQ_ARMED)
		return;
	atomic_store(&cq->polled, false);
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->due_at = now + cq->pause_us * 1000;
}

/*
 * Returns whether the program posts but does not poll, so that its CQ has to be served as if it
 * slept. A program that waits for its peer by reading memory (the eager RDMA of MPI libraries)
 * calls nothing while it waits. One check that finds only posts does not prove that: a long post,
 * or many in a row, delay the next poll of a polling program. So checks are counted, up for posts
 * alone and down for polls, and the limit is SILENT_LOOKS. Where hardware moves the data there is
 * nothing to serve.
 */
#define SILENT_LOOKS 4
#define SILENT_MOST 8

static bool is_silent(struct dofi_cq *cq, bool posts_alone, bool at_work)
{
	if (posts_alone && cq->silent < SILENT_MOST)
		cq->silent++;
	else if (at_work && cq->silent)
		cq->silent--;
	return cq->silent >= SILENT_LOOKS;
}

/*
 * Whether the polling thread has no processor now. It counts as polling then: where processors are
 * few it may be kept waiting for longer than any pause. If that armed the CQ, its peers would send
 * a wakeup with each message, and the progress threads that these wake would keep all polling
 * threads waiting for longer still. A thread that ran for a while without a poll, or that sleeps,
 * does something else.
 */
static bool lacks_processor(struct dofi_cq *cq, int64_t ran)
{
	return atomic_load(&cq->mode) != DOFI_CQ_ARMED && ran < dofi_settings.probe_us * 1000 &&
	       dofi_runner_is_runnable(&cq->runner);
}

/*
 * Leaves the CQ to the program if its threads use it. A program that has events queued, or posts,
 * does not poll for a while. If the progress thread read the CQ then, it would queue events again,
 * and every completion would cost two switches of threads. So it drains the CQ once per check, as
 * other EVDs and peers need that.
 */
static bool leave_to_program(struct dofi_cq *cq, int64_t now)
{
	const bool polled = atomic_exchange(&cq->polled, false) || being_read(cq);
	const bool led = atomic_exchange(&cq->led, false);
	const bool at_work = atomic_exchange(&cq->taken, false) || polled || led;
	const bool posted = atomic_exchange(&cq->posted, false);
	const bool posts_alone = posted && !at_work && !cq->offloaded;
	const int64_t ran = dofi_runner_ran(&cq->runner);

	if (is_silent(cq, posts_alone, at_work) || atomic_load(&cq->sleepers) ||
	    (!at_work && !posted && !lacks_processor(cq, ran)))
		return false;
	if (!polled)
		dofi_cq_drain(cq);
	return yield_to_program(cq, now, next_pause(cq, posts_alone, led));
}

#define ARM_TRIES 8
#define SILENT_TICKS 200	/* or an idle program would feel it */

/*
 * After how many ticks an armed CQ is read though no event reported it; 0: never. Where the
 * descriptor does not report failed completions, a CQ with a sleeper is read now and then.
 */
static int armed_ticks(const struct dofi_cq *cq)
{
	if (atomic_load(&cq->sweeps_wanted) != atomic_load(&cq->sweeps_done))
		return 1;
	return cq->silent_errors && atomic_load(&cq->sleepers) ? SILENT_TICKS : 0;
}

/* Empties the CQ and arms it: epoll, or a peer, reports the next completion. */
static void drain_and_arm(struct dofi_cq *cq, int64_t now)
{
	int i;

	/* before the CQ is drained, so that dofi_cq_kick() after a later receive sees the mode */
	set_mode(cq, DOFI_CQ_ARMED);
	for (i = 0; i < ARM_TRIES; i++) {
		if (!dofi_cq_drain(cq) && cq->fd >= 0 && cq->progress->traits.stale_signal &&
		    dofi_cq_clear_signal(cq))
			continue;
		if (dofi_cq_can_sleep(cq, cq->fid)) {
			if (!watch(cq)) {
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
	set_mode(cq, DOFI_CQ_OWNED);
}

int64_t dofi_cq_due(const struct dofi_cq *cq)
{
	int ticks;

	if (atomic_load(&cq->mode) != DOFI_CQ_ARMED || cq->poller.fired)
		return cq->due_at;
	ticks = armed_ticks(cq);
	return ticks ? cq->due_at + dofi_settings.tick_us * 1000 * ticks : DOFI_NEVER;
}

/*
 * The event that woke this thread also woke the leader, which reads the CQ. If it does not, the
 * next check finds that.
 */
static bool leave_to_leader(struct dofi_cq *cq, int64_t now)
{
	if (!dofi_lead_is_taken(&cq->lead) || dofi_cq_wants_sweep(cq))
		return false;
	atomic_store(&cq->led, false);
	return yield_to_program(cq, now, next_pause(cq, false, true));
}

void dofi_cq_serve(struct dofi_cq *cq, int64_t now)
{
	bool armed = atomic_load(&cq->mode) == DOFI_CQ_ARMED;
	bool woken = armed && cq->poller.fired;

	if (now < dofi_cq_due(cq) && (armed || !atomic_load(&cq->sleepers)))
		return;
	cq->poller.fired = false;
	if (woken && leave_to_leader(cq, now))
		return;
	if (!leave_to_program(cq, now))
		drain_and_arm(cq, now);
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

	return atomic_load(&cq->mode) == DOFI_CQ_ARMED;
}

static const struct dofi_poller_ops poller_ops = {
	.serve = poller_serve,
	.probe = poller_probe,
	.drain = poller_drain,
	.is_armed = poller_is_armed,
};

int dofi_cq_serve_open(struct dofi_cq *cq)
{
	cq->source.ready = cq_ready;
	cq->watched = false;
	return watch(cq);
}

void dofi_cq_serve_begin(struct dofi_cq *cq)
{
	atomic_store(&cq->polled, false);
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->silent = 0;
	cq->poller.fired = true;	/* arms it in the next round */
	cq->poller.ops = &poller_ops;
	cq->poller.has_fd = cq->fd >= 0;
	dofi_poller_add(cq->progress, &cq->poller);
}

void dofi_cq_serve_end(struct dofi_cq *cq)
{
	dofi_poller_remove(cq->progress, &cq->poller);
	dofi_cq_forget(cq);
}
