/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread of an IA: one loop over work, timers, events and completions. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/runner.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct dofi_work *work_next(struct dofi_progress *p)
{
	struct dofi_work *w;

	dofi_mutex_lock(&p->lock);
	p->running = w = STAILQ_FIRST(&p->work);
	if (w) {
		STAILQ_REMOVE_HEAD(&p->work, link);
		w->queued = false;
	}
	dofi_mutex_unlock(&p->lock);
	return w;
}

/*
 * Empties the event queues after each work: an event of an endpoint that was closed must be gone
 * before the next work opens an endpoint, which may get the address of the closed one.
 */
static void run_work(struct dofi_progress *p)
{
	struct dofi_work *w;

	while ((w = work_next(p))) {
		w->run(w);
		dofi_progress_events(p);
	}
}

static void run_timers(struct dofi_progress *p, int64_t now)
{
	struct dofi_timer *t;

	while ((t = dofi_timer_next(p)) && t->at <= now) {
		dofi_timer_stop(p, t);
		t->fire(t);
		dofi_progress_events(p);
	}
}

/* Serves every poller. Returns when to wake if nothing happens. */
static int64_t serve_pollers(struct dofi_progress *p, int64_t now)
{
	const struct dofi_timer *t = dofi_timer_next(p);
	int64_t next = t ? t->at : DOFI_NEVER, due;
	struct dofi_poller *poller;

	TAILQ_FOREACH(poller, &p->pollers, link) {
		due = poller->ops->serve(poller, now);
		if (due < next)
			next = due;
	}
	return next;
}

/* One number for all architectures of Linux but alpha; older headers lack it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/*
 * epoll_wait with a deadline in nanoseconds. By system call: glibc has the function since 2.35, and
 * musl does not have it.
 */
static int wait_until(int epfd, struct epoll_event *ev, int n, int64_t deadline)
{
	static _Atomic bool old_kernel;	/* Linux before 5.11, or valgrind */
	int64_t left = deadline == DOFI_NEVER ? -1 : deadline - dofi_now();
	struct dofi_timespec ts;
	int ret;

	if (deadline != DOFI_NEVER && left < 0)
		left = 0;
	if (!old_kernel) {
		ts = dofi_timespec(left);
		ret = (int)syscall(SYS_epoll_pwait2, epfd, ev, n, left < 0 ? NULL : &ts, NULL, 0);
		if (ret >= 0 || errno != ENOSYS)
			return ret;
		old_kernel = true;
	}
	return epoll_wait(epfd, ev, n, left < 0 ? -1 : (int)(left / 1000000 + 1));
}

#define WAKEUPS 32

/*
 * epoll_wait() fails, as after a program has closed all descriptors: the thread cannot wait for
 * anything.
 */
static void epoll_failed(struct dofi_progress *p)
{
	const struct timespec rest = { .tv_nsec = 10 * 1000000 };

	if (errno == EINTR)
		return;
	dofi_progress_fail(p, -errno);
	nanosleep(&rest, NULL);
}

static bool program_polls(const struct dofi_progress *p)
{
	const struct dofi_poller *poller;

	TAILQ_FOREACH(poller, &p->pollers, link)
		if (!poller->ops->is_armed(poller))
			return true;
	return false;
}

static bool program_polls_without_fd(const struct dofi_progress *p)
{
	const struct dofi_poller *poller;

	TAILQ_FOREACH(poller, &p->pollers, link)
		if (!poller->has_fd && !poller->ops->is_armed(poller))
			return true;
	return false;
}

static bool relies_on_peers(const struct dofi_progress *p)
{
	const struct dofi_poller *poller;

	TAILQ_FOREACH(poller, &p->pollers, link)
		if (dofi_poller_relies_on_peer(poller))
			return true;
	return false;
}

/* Reads what peers sent before they saw that the thread sleeps. */
static bool drain_before_rest(struct dofi_progress *p)
{
	struct dofi_poller *poller;
	bool found = false;

	TAILQ_FOREACH(poller, &p->pollers, link)
		if (dofi_poller_relies_on_peer(poller))
			found |= poller->ops->drain(poller);
	return found;
}

#define NO_WAKEUP_TICKS 4

int64_t dofi_longest_rest_ns = 1000000000;

/*
 * Prepares for a sleep on queues without a descriptor. Returns when to wake if nothing happens.
 * First the thread requests wakeups from peers, then it reads the queues, so that nothing arrives
 * unnoticed in between. While the program polls one of the queues, no wakeups are requested: they
 * would wake the thread for what the program finds by itself. The thread serves that queue by the
 * clock then, and the others with it.
 */
static int64_t rest(struct dofi_progress *p, int64_t deadline)
{
	const bool polled = program_polls_without_fd(p);
	int64_t due;

	if (!relies_on_peers(p))
		return deadline;
	p->resting = !polled && p->ops->rest && p->ops->rest(p);
	if (p->resting && drain_before_rest(p))
		return 0;
	if (p->resting)
		due = dofi_now() + dofi_longest_rest_ns;
	else
		due = dofi_now() + dofi_settings.tick_us * 1000 * (polled ? 1 : NO_WAKEUP_TICKS);
	return due < deadline ? due : deadline;
}

static void rise(struct dofi_progress *p)
{
	struct dofi_poller *poller;

	if (p->resting)
		p->ops->rise(p);
	p->resting = false;
	TAILQ_FOREACH(poller, &p->pollers, link)
		if (dofi_poller_relies_on_peer(poller))
			poller->fired = true;
}

static void wait_for_something(struct dofi_progress *p, int64_t deadline)
	DOFI_NEEDS(p->fork_guard.busy)
{
	struct epoll_event ev[WAKEUPS];
	int i, n;

	dofi_eqs_choose(p);
	atomic_store(&p->cq_away, program_polls(p));
	if (!dofi_eqs_arm(p))
		return;
	deadline = rest(p, dofi_eqs_deadline(p, deadline));
	dofi_fork_guard_rest(&p->fork_guard);
	n = wait_until(p->epfd, ev, WAKEUPS, deadline);
	dofi_fork_guard_work(&p->fork_guard);
	if (n < 0)
		epoll_failed(p);
	rise(p);
	p->eq.armed = n == 0 && p->eq.watched;
	for (i = 0; i < n; i++) {
		struct dofi_source *source = ev[i].data.ptr;

		source->ready(source);
	}
}

static void doorbell_ready(struct dofi_source *source)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(source, struct dofi_progress, doorbell_source);
	uint64_t rung;

	if (read(p->doorbell, &rung, sizeof(rung)) < 0)
		return;
}

static bool stopped(struct dofi_progress *p)
{
	bool stop;

	dofi_mutex_lock(&p->lock);
	stop = p->stop;
	dofi_mutex_unlock(&p->lock);
	return stop;
}

/*
 * Reads what a thread that begins to sleep may have missed; the event queue is watched again soon.
 */
static void run_probe(struct dofi_progress *p, int64_t now)
{
	struct dofi_poller *poller;

	if (!atomic_load(&p->probe_wanted) || !atomic_exchange(&p->probe_wanted, false))
		return;
	dofi_eq_drain(p, &p->eq);
	TAILQ_FOREACH(poller, &p->pollers, link)
		poller->ops->probe(poller, now);
}

static void *progress_run(void *arg)
{
	struct dofi_progress *p = arg;

	pthread_setname_np(pthread_self(), "dat-ofi");
	dofi_prompt();
	dofi_fork_guard_work(&p->fork_guard);
	while (!stopped(p)) {
		int64_t now, next;

		run_work(p);
		now = dofi_now();
		run_timers(p, now);
		run_probe(p, now);
		dofi_eqs_serve(p, now);
		next = serve_pollers(p, now);
		wait_for_something(p, next);
	}
	dofi_fork_guard_rest(&p->fork_guard);
	return NULL;
}

static int epoll_open(struct dofi_progress *p)
{
	int ret;

	p->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epfd < 0)
		return -errno;
	p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->doorbell < 0) {
		ret = -errno;
		goto close_epoll;
	}
	p->doorbell_source.ready = doorbell_ready;
	ret = dofi_source_add(p, &p->doorbell_source, p->doorbell, EPOLLIN);
	if (!ret)
		ret = dofi_eqs_watch(p);
	if (!ret)
		return 0;
	close(p->doorbell);
close_epoll:
	close(p->epfd);
	return ret;
}

int dofi_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void failure_report(struct dofi_work *work)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(work, struct dofi_progress, failure_work);

	dofi_log(DOFI_ERR, DOFI_FAB, "the fabric has failed: %s", fi_strerror(-p->failure));
	p->ops->failed(p, p->failure);
}

int dofi_progress_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
			struct fi_info *info, const struct dofi_eq_traits *traits)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->owner = getpid();
	p->traits = *traits;
	p->failure_work.run = failure_report;
	dofi_mutex_init(&p->lock);
	STAILQ_INIT(&p->work);
	TAILQ_INIT(&p->pollers);
	TAILQ_INIT(&p->lingering);
	p->fabric = info->fabric_attr->fabric;
	ret = p->fabric ? 0 : fi_fabric(info->fabric_attr, &p->fabric, NULL);
	if (ret)
		goto log;
	ret = dofi_eqs_open(p, info);
	if (ret)
		goto close_fabric;
	ret = epoll_open(p);
	if (ret)
		goto close_eq;
	dofi_fork_guard_add(&p->fork_guard);
	ret = dofi_thread_start(&p->thread, progress_run, p);
	if (!ret)
		return 0;

	dofi_fork_guard_remove(&p->fork_guard);
	close(p->doorbell);
	close(p->epfd);
close_eq:
	dofi_eqs_close(p);
close_fabric:
	fi_close(&p->fabric->fid);
log:
	dofi_log(DOFI_ERR, DOFI_FAB, "opening fabric %s: %s",
		 info->fabric_attr->prov_name, fi_strerror(-ret));
	return ret;
}

void dofi_progress_stop(struct dofi_progress *p)
{
	if (dofi_progress_orphaned(p))
		return;
	dofi_mutex_lock(&p->lock);
	p->stop = true;
	dofi_mutex_unlock(&p->lock);
	dofi_progress_wake(p);
	pthread_join(p->thread, NULL);
	if (p->lingering_end)
		p->lingering_end(p);
	dofi_fork_guard_remove(&p->fork_guard);
	close(p->doorbell);
	close(p->epfd);
	dofi_eqs_close(p);
	fi_close(&p->fabric->fid);
}

void dofi_progress_wake(struct dofi_progress *p)
{
	uint64_t one = 1;

	/* fails only when the counter is full, and then the thread is awake anyway */
	if (write(p->doorbell, &one, sizeof(one)) < 0)
		return;
}

void dofi_progress_probe(struct dofi_progress *p)
{
	const bool away = atomic_load(&p->eq_away) || atomic_load(&p->cq_away);

	if (away && !atomic_exchange(&p->probe_wanted, true))
		dofi_progress_wake(p);
}

void dofi_progress_post(struct dofi_progress *p, struct dofi_work *work)
{
	bool first;

	dofi_mutex_lock(&p->lock);
	first = STAILQ_EMPTY(&p->work);
	if (!work->queued) {
		work->queued = true;
		STAILQ_INSERT_TAIL(&p->work, work, link);
	}
	dofi_mutex_unlock(&p->lock);
	/*
	 * the thread does all that is queued before it sleeps again, so the first is enough to wake
	 * it
	 */
	if (first)
		dofi_progress_wake(p);
}

void dofi_progress_fail(struct dofi_progress *p, int err)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&p->failure, &none, err))
		dofi_progress_post(p, &p->failure_work);
}

struct call {
	struct dofi_work work;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void call_run(struct dofi_work *work)
{
	struct call *c = DOFI_CONTAINER_OF(work, struct call, work);

	c->fn(c->arg);
	sem_post(&c->done);
}

void dofi_progress_call(struct dofi_progress *p, void (*fn)(void *arg), void *arg)
{
	struct call c = { .work.run = call_run, .fn = fn, .arg = arg };

	if (dofi_progress_orphaned(p))
		return;
	if (dofi_progress_on_thread(p)) {
		fn(arg);
		return;
	}
	sem_init(&c.done, 0, 0);
	dofi_progress_post(p, &c.work);
	while (sem_wait(&c.done) && errno == EINTR)
		;
	sem_destroy(&c.done);
}

static void nothing(void *arg)
{
	(void)arg;
}

void dofi_progress_withdraw(struct dofi_progress *p, struct dofi_work *work)
{
	bool runs;

	if (dofi_progress_orphaned(p))
		return;
	dofi_mutex_lock(&p->lock);
	if (work->queued)
		STAILQ_REMOVE(&p->work, work, dofi_work, link);
	work->queued = false;
	runs = p->running == work;
	dofi_mutex_unlock(&p->lock);
	if (runs)
		dofi_progress_call(p, nothing, NULL);
}

bool dofi_progress_on_thread(const struct dofi_progress *p)
{
	return pthread_equal(p->thread, pthread_self());
}

bool dofi_progress_orphaned(const struct dofi_progress *p)
{
	return p->owner != getpid();
}

void dofi_poller_add(struct dofi_progress *p, struct dofi_poller *poller)
{
	TAILQ_INSERT_TAIL(&p->pollers, poller, link);
}

void dofi_poller_remove(struct dofi_progress *p, struct dofi_poller *poller)
{
	TAILQ_REMOVE(&p->pollers, poller, link);
}
