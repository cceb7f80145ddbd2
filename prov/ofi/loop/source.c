/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What wakes a progress thread: descriptors, timers, and the work and requests of other threads. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/layout.h"
#include "base/log.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

static int source_set(struct dofi_progress *p, int op, int fd, struct dofi_source *source,
		      uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(p->epfd, op, fd, &ev) ? -errno : 0;
}

int dofi_source_add(struct dofi_progress *p, struct dofi_source *source, int fd, uint32_t events)
{
	return source_set(p, EPOLL_CTL_ADD, fd, source, events);
}

int dofi_source_change(struct dofi_progress *p, struct dofi_source *source, int fd, uint32_t events)
{
	return source_set(p, EPOLL_CTL_MOD, fd, source, events);
}

void dofi_source_remove(struct dofi_progress *p, int fd)
{
	source_set(p, EPOLL_CTL_DEL, fd, NULL, 0);
}

void dofi_timer_start(struct dofi_progress *p, struct dofi_timer *timer, int64_t at)
{
	dofi_timer_stop(p, timer);
	if (at == DOFI_NEVER)
		return;
	timer->at = at;
	dofi_heap_insert(&p->timers, &timer->node, at);
}

void dofi_timer_stop(struct dofi_progress *p, struct dofi_timer *timer)
{
	if (!timer->at)
		return;
	dofi_heap_remove(&p->timers, &timer->node);
	timer->at = 0;
}

struct dofi_timer *dofi_timer_next(const struct dofi_progress *p)
{
	struct dofi_heap_node *node = p->timers.top;

	return node ? DOFI_CONTAINER_OF(node, struct dofi_timer, node) : NULL;
}

/* Other threads */

void dofi_progress_wake(struct dofi_progress *p)
{
	uint64_t one = 1;

	/* fails only when the counter is full, and then the thread is awake anyway */
	if (write(p->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void dofi_progress_expect(struct dofi_progress *p)
{
	if (atomic_load(&p->eq_away) && !atomic_exchange(&p->eq_wanted, true) &&
	    !dofi_progress_on_thread(p))
		dofi_progress_wake(p);
}

/* Most attempts to connect take far less. */
#define EQ_STAYS_NS 10000000

void dofi_progress_await(struct dofi_progress *p)
{
	if (p->traits.data_in_eq)
		p->eq_stays_until = dofi_now() + EQ_STAYS_NS;
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
	/* the thread does all that is queued before it sleeps again */
	if (first)
		dofi_progress_wake(p);
}

static void failure_report(struct dofi_work *work)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(work, struct dofi_progress, failure_work);

	dofi_log(DOFI_ERR, DOFI_FAB, "the fabric has failed: %s", fi_strerror(-p->failure));
	p->ops->failed(p, p->failure);
}

void dofi_progress_fail(struct dofi_progress *p, int err)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&p->failure, &none, err))
		return;
	p->failure_work.run = failure_report;
	dofi_progress_post(p, &p->failure_work);
}

struct call {
	struct dofi_work work;
	void (*fn)(void *arg);		/* NULL: only waits for the thread */
	void *arg;
	sem_t done;
};

static void call_run(struct dofi_work *work)
{
	struct call *c = DOFI_CONTAINER_OF(work, struct call, work);

	if (c->fn)
		c->fn(c->arg);
	sem_post(&c->done);
}

void dofi_progress_call(struct dofi_progress *p, void (*fn)(void *arg), void *arg)
{
	struct call c = { .work.run = call_run, .fn = fn, .arg = arg };

	if (dofi_progress_on_thread(p)) {
		if (fn)
			fn(arg);
		return;
	}
	sem_init(&c.done, 0, 0);
	dofi_progress_post(p, &c.work);
	while (sem_wait(&c.done) && errno == EINTR)
		;
	sem_destroy(&c.done);
}

void dofi_progress_withdraw(struct dofi_progress *p, struct dofi_work *work)
{
	bool runs;

	dofi_mutex_lock(&p->lock);
	if (work->queued)
		STAILQ_REMOVE(&p->work, work, dofi_work, link);
	work->queued = false;
	runs = p->running == work;
	dofi_mutex_unlock(&p->lock);
	if (runs)
		dofi_progress_call(p, NULL, NULL);
}

bool dofi_progress_on_thread(const struct dofi_progress *p)
{
	return pthread_equal(p->thread, pthread_self());
}
