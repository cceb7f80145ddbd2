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

/* What the program did since the last check. */
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
 * Whether a thread polls in a loop. A program that waits by reading memory polls too, once for each
 * completion of its own. So the processor time for each poll decides. A thread in a long read
 * counts as polling: the read copies what has arrived. Where hardware moves the data, no peer
 * depends on the answer.
 */
#define POLLS_PER_PROBE 4		/* DAT_OFI_PROBE_US */

static bool polls_in_loop(const struct dofi_cq *cq, const struct use *use)
{
	const int64_t time = use->ran < use->passed ? use->ran : use->passed,
		      longest = dofi_settings.probe_us * 1000 / POLLS_PER_PROBE;

	return use->reads || (use->polls && (cq->offloaded || time / use->polls <= longest));
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
	use_since_check(cq, now);
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
static bool leave_to_program(struct dofi_cq *cq, const struct use *use, int64_t now)
{
	const bool polled = polls_in_loop(cq, use);
	const bool at_work = polled || use->taken || use->led;
	const bool posts_alone = use->posted && !at_work && !cq->offloaded;

	if (is_silent(cq, posts_alone, at_work) || atomic_load(&cq->sleepers) ||
	    (!at_work && !use->posted && !lacks_processor(cq, use->ran)))
		return false;
	if (!polled)
		dofi_cq_drain(cq);
	return yield_to_program(cq, now, next_pause(cq, posts_alone, use->led));
}

/*
 * Returns whether the woken progress thread has to serve the CQ at once although the program polls
 * or waits now and then: the program reads memory that its peer writes to. A wakeup proves this if
 * the program works but hardly polled, no thread leads, and no event of the program arrived. The
 * proof holds for the next wakeups too, because between two writes of its peer the program polls
 * for the completion of its own write. The first wakeups after the program stopped polling are
 * served without a proof: if the CQ was left to the program then, no wakeup would show a write.
 *
 * Sets *@found to true if the CQ was drained and had completions.
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

#define ARM_TRIES 8
#define SILENT_TICKS 200	/* or an idle program would feel it */

/*
 * After how many ticks an armed CQ is read though no event reported it; 0: never. Where the
 * descriptor does not report failed completions, a CQ with a sleeper is read now and then.
 */
static int armed_ticks(const struct dofi_cq *cq)
{
	if (dofi_cq_wants_sweep_now(cq))
		return 1;
	return cq->silent_errors && atomic_load(&cq->sleepers) ? SILENT_TICKS : 0;
}

/*
 * Empties the CQ and arms it: epoll, or a peer, reports the next completion. Set @found if the CQ
 * is ARMED, and was drained just now and had completions.
 */
static void drain_and_arm(struct dofi_cq *cq, bool found, int64_t now)
{
	int i;

	/* before the CQ is drained, so that dofi_cq_kick() after a later receive sees the mode */
	set_mode(cq, DOFI_CQ_ARMED);
	for (i = 0; i < ARM_TRIES; i++) {
		if (!found)
			dofi_cq_drain(cq);
		found = false;
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

/* Returns whether the CQ is left to the program. Sets *@found as reads_memory(). */
static bool leave(struct dofi_cq *cq, bool woken, bool *found, int64_t now)
{
	const struct use use = use_since_check(cq, now);

	if (woken && reads_memory(cq, &use, found))
		return false;
	return (woken && leave_to_leader(cq, now)) || leave_to_program(cq, &use, now);
}

void dofi_cq_serve(struct dofi_cq *cq, int64_t now)
{
	bool armed = atomic_load(&cq->mode) == DOFI_CQ_ARMED;
	bool woken = armed && cq->poller.fired;
	bool found = false;

	if (now < dofi_cq_due(cq) && (armed || !atomic_load(&cq->sleepers)))
		return;
	cq->poller.fired = false;
	if (leave(cq, woken, &found, now))
		return;
	if (!armed && cq->served < WAKEUPS_FIRST)
		cq->served = WAKEUPS_FIRST;
	drain_and_arm(cq, found, now);
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
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->silent = 0;
	cq->checked_at = 0;
	cq->served = WAKEUPS_FIRST;
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
