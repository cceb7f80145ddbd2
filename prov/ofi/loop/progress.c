/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread of an IA: one loop over work, timers, events and completions. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/polling.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool stopped(struct dofi_progress *p)
{
	bool stop;

	dofi_mutex_lock(&p->lock);
	stop = p->stop;
	dofi_mutex_unlock(&p->lock);
	return stop;
}

/*
 * Empties the event queues after each work: an event of an endpoint that was closed must be gone
 * before the next work opens an endpoint, which may get the address of the closed one.
 */
static void run_work(struct dofi_progress *p)
{
	struct dofi_work *w;

	for (;;) {
		dofi_mutex_lock(&p->lock);
		p->running = w = STAILQ_FIRST(&p->work);
		if (w) {
			STAILQ_REMOVE_HEAD(&p->work, link);
			w->queued = false;
		}
		dofi_mutex_unlock(&p->lock);
		if (!w)
			return;
		w->run(w);
		dofi_progress_events(p);
	}
}

/* One number for all architectures of Linux but alpha; older headers lack it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* epoll_wait with a deadline in nanoseconds. glibc has the function since 2.35, musl lacks it. */
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

#define NO_WAKEUP_TICKS 4

int64_t dofi_longest_sleep_ns = 1000000000;

/*
 * Prepares for a sleep on queues without a descriptor. Returns when to wake if nothing happens.
 * Requests wakeups from peers, and then reads the queues, so that nothing arrives unnoticed. While
 * the program polls one of the queues, no wakeups are requested, and the queues are served by the
 * clock.
 */
static int64_t prepare_sleep(struct dofi_progress *p, int64_t deadline)
{
	bool polled = false, relies = false, found = false;
	struct dofi_served *served;
	int64_t due;

	TAILQ_FOREACH(served, &p->served, link) {
		relies |= dofi_served_relies_on_peer(served);
		polled |= !served->has_fd && !served->ops->is_armed(served);
	}
	if (!relies)
		return deadline;
	p->sleeping = !polled && p->ops->sleep_begin && p->ops->sleep_begin(p);
	if (p->sleeping) {
		TAILQ_FOREACH(served, &p->served, link)
			if (dofi_served_relies_on_peer(served))
				found |= served->ops->drain(served);
		if (found)
			return 0;
		due = dofi_now() + dofi_longest_sleep_ns;
	} else {
		due = dofi_now() + dofi_settings.tick_us * 1000 * (polled ? 1 : NO_WAKEUP_TICKS);
	}
	return due < deadline ? due : deadline;
}

static void wait_for_something(struct dofi_progress *p, int64_t deadline)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };
	struct epoll_event ev[WAKEUPS];
	struct dofi_served *served;
	struct dofi_source *source;
	bool polled = false;
	int i, n;

	dofi_eqs_choose(p);
	TAILQ_FOREACH(served, &p->served, link)
		polled |= !served->ops->is_armed(served);
	atomic_store(&p->cq_away, polled);
	if (!dofi_eqs_arm(p))
		return;
	deadline = prepare_sleep(p, dofi_eqs_deadline(p, deadline));
	n = wait_until(p->epfd, ev, WAKEUPS, deadline);
	if (n < 0 && errno != EINTR) {
		/* as after a program has closed all descriptors: this thread cannot wait */
		dofi_progress_fail(p, -errno);
		nanosleep(&pause, NULL);
	}
	if (p->sleeping)
		p->ops->sleep_end(p);
	p->sleeping = false;
	TAILQ_FOREACH(served, &p->served, link)
		if (dofi_served_relies_on_peer(served))
			served->fired = true;
	p->eq.armed = n == 0 && p->eq.watched;
	for (i = 0; i < n; i++) {
		source = ev[i].data.ptr;
		source->ready(source);
	}
}

static void wake_ready(struct dofi_source *source)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(source, struct dofi_progress, wake_source);
	uint64_t rung;

	if (read(p->wake_fd, &rung, sizeof(rung)) < 0)
		return;
}

static void *progress_run(void *arg)
{
	struct dofi_progress *p = arg;
	struct dofi_served *served;
	int64_t now, next, due;
	struct dofi_timer *t;

	dofi_log_thread_ia = p->log_ia;
	pthread_setname_np(pthread_self(), "dat-ofi");
	dofi_ask_short_slices();
	while (!stopped(p)) {
		run_work(p);
		now = dofi_now();
		while ((t = dofi_timer_next(p)) && t->at <= now) {
			dofi_timer_stop(p, t);
			t->fire(t);
			dofi_progress_events(p);
		}
		/* events that a thread may have missed before it slept */
		if (atomic_load(&p->probe_wanted) && atomic_exchange(&p->probe_wanted, false)) {
			dofi_eq_drain(p, &p->eq);
			TAILQ_FOREACH(served, &p->served, link)
				served->ops->probe(served, now);
		}
		dofi_eqs_serve(p, now);
		t = dofi_timer_next(p);
		next = t ? t->at : DOFI_NEVER;
		TAILQ_FOREACH(served, &p->served, link) {
			due = served->ops->serve(served, now);
			if (due < next)
				next = due;
		}
		wait_for_something(p, next);
	}
	return NULL;
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

int dofi_progress_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
			struct fi_info *info, const struct dofi_eq_traits *traits)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->traits = *traits;
	p->log_ia = dofi_log_call_ia;
	dofi_mutex_init(&p->lock);
	STAILQ_INIT(&p->work);
	TAILQ_INIT(&p->served);
	TAILQ_INIT(&p->lingering);
	p->fabric = info->fabric_attr->fabric;
	ret = p->fabric ? 0 : fi_fabric(info->fabric_attr, &p->fabric, NULL);
	if (ret)
		goto log;
	ret = dofi_eqs_open(p, info);
	if (ret)
		goto close_fabric;
	p->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epfd < 0) {
		ret = -errno;
		goto close_eq;
	}
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0) {
		ret = -errno;
		goto close_epoll;
	}
	p->wake_source.ready = wake_ready;
	ret = dofi_source_add(p, &p->wake_source, p->wake_fd, EPOLLIN);
	if (!ret)
		ret = dofi_eqs_watch(p);
	if (ret)
		goto close_wake_fd;
	ret = dofi_thread_start(&p->thread, progress_run, p);
	if (!ret)
		return 0;

close_wake_fd:
	close(p->wake_fd);
close_epoll:
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
	dofi_mutex_lock(&p->lock);
	p->stop = true;
	dofi_mutex_unlock(&p->lock);
	dofi_progress_wake(p);
	pthread_join(p->thread, NULL);
	if (p->lingering_end)
		p->lingering_end(p);
	close(p->wake_fd);
	close(p->epfd);
	dofi_eqs_close(p);
	fi_close(&p->fabric->fid);
}
