/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One completion queue over the fake fabric. There is no progress thread: the test makes its
 * rounds, and passes the time.
 */
#ifndef TEST_FAB_CQ_ONE_H
#define TEST_FAB_CQ_ONE_H

#include "base/env.h"
#include "fab/cq.h"
#include "fab/fake.h"

#include <criterion/criterion.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define US 1000LL

static struct dofi_progress progress;
static struct dofi_cq cq;
static struct dofi_quirk quirk;
static int64_t now = 1000000000;

static unsigned delivered, out_of_order;
static uintptr_t next_context = 1;
static int last_err;
static struct dofi_sink *last_sink;
static bool suppressed;		/* the program gets no events of the completions */
static bool endless;		/* each completion is followed by another */

static inline void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if ((uintptr_t)entry->op_context != ++delivered)
		out_of_order++;
	last_err = err;
	last_sink = sink;
	if (!suppressed)
		dofi_cq_delivered(&cq);
	if (endless)
		fake_complete((void *)next_context++, 0);
}

static unsigned sweeps, idle_sweeps;

/* The sweep callback: the fabric still takes nothing for the first idle_sweeps sweeps. */
static inline void swept(struct dofi_cq *q)
{
	cr_assert(q == &cq && !dofi_mutex_try(&q->lock));
	cr_expect_eq(fake_unread(), 0);
	sweeps++;
	if (idle_sweeps) {
		idle_sweeps--;
		dofi_cq_want_sweep(q);
	}
}

static const struct dofi_progress_ops ops = { .completed = completed, .swept = swept };

static inline void init(void)
{
	fake_init();
	dofi_settings_read();
	dofi_settings.probe_us = 100;
	dofi_settings.tick_us = 1000;
	progress.ops = &ops;
	progress.fabric = &fake.fabric;
	progress.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.served);
	STAILQ_INIT(&progress.work);
	dofi_cq_init(&cq);
	cq.quirk = &quirk;
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
}

static inline void complete(unsigned n)
{
	while (n--)
		fake_complete((void *)next_context++, 0);
}

static inline bool armed(void)
{
	return cq.armed;
}

/* Runs the handler of a source that epoll reports. Returns whether epoll reported one. */
static inline bool epoll_fires(void)
{
	struct epoll_event ev;

	if (epoll_wait(progress.epfd, &ev, 1, 0) != 1)
		return false;
	((struct dofi_source *)ev.data.ptr)->ready(ev.data.ptr);
	return true;
}

/* One round of the progress thread at the time now. */
static inline void serve(void)
{
	dofi_cq_serve(&cq, now);
}

static inline void poll_once(void)
{
	dofi_cq_poll(&cq, NULL);
}

/* Like a thread that polls in a loop: many polls since the last check, of which the last counts. */
static inline void poll_in_loop(void)
{
	poll_once();
	dofi_mutex_lock(&cq.lock);
	cq.polls += 1000000;
	dofi_mutex_unlock(&cq.lock);
}

static inline bool was_woken(void)
{
	uint64_t n;

	return read(progress.wake_fd, &n, sizeof(n)) == sizeof(n);
}

/* Epoll fires while the program polls, and none of the first wakeups is left. */
static inline void wake_polled(void)
{
	cq.policy.wakeups_kept = 0;
	complete(1);
	poll_in_loop();
	complete(1);
	cr_assert(epoll_fires());
	serve();
	cr_assert(!armed());
}

/* The CQ was armed after the first round, and epoll fired while the program polled. */
static inline void make_left(void)
{
	serve();
	wake_polled();
}

static inline void make_owned(void)
{
	make_left();
	poll_in_loop();
	now = cq.due_at;
	serve();
	cr_assert(!armed());
}

static inline void init_shards(void)
{
	unsigned i;

	init();
	quirk.reads_each = true;
	for (i = 0; i < DOFI_SHARD_ENDPOINTS; i++)
		cr_assert(dofi_cq_enter_shard(&cq) == &cq.first);
}

#endif
