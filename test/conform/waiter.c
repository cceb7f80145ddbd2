/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that are blocked in a call. */

#include "conform.h"

#include "../robust/robust.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (w->threshold)
		w->ret = dat_evd_wait(w->handle, DAT_TIMEOUT_INFINITE, w->threshold, &w->event,
				      &w->more);
	else
		w->ret = dat_cno_wait(w->handle, DAT_TIMEOUT_INFINITE, &w->evd);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void waiter_start(struct waiter *w)
{
	pid_t tid;

	SAME(pthread_create(&w->thread, NULL, waiter_run, w), 0);
	while (!(tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE)))
		sched_yield();
	wait_asleep(tid);
}

void evd_waiter_start(struct waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold)
{
	*w = (struct waiter){ .handle = evd, .threshold = threshold };
	waiter_start(w);
}

void cno_waiter_start(struct waiter *w, DAT_CNO_HANDLE cno)
{
	*w = (struct waiter){ .handle = cno, .evd = (DAT_EVD_HANDLE)w };
	waiter_start(w);
}

void waiter_join(struct waiter *w)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += pair_scaled(PAIR_LIMIT) / 1000;
	CHECK(!pthread_timedjoin_np(w->thread, NULL, &until), "the thread still waits");
}

void waiter_expect(struct waiter *w, DAT_RETURN type)
{
	waiter_join(w);
	pair_ret(__FILE__, __LINE__, "the wait", w->ret, type);
}

static _Atomic unsigned handled;

static void on_signal(int sig)
{
	handled++;
}

static void handle(struct sigaction *old, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	handled = 0;
	SAME(sigaction(SIGUSR1, &action, old), 0);
}

void waiter_expect_interrupt(struct waiter *w)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	struct sigaction old;

	handle(&old, 0);
	/* repeat, because a signal before the thread sleeps does not interrupt the wait */
	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
		CHECK(pair_now() < deadline, "signals do not end the wait");
		pthread_kill(w->thread, SIGUSR1);
		poll(NULL, 0, 1);
	}
	waiter_expect(w, DAT_INTERRUPTED_CALL);
	CHECK(handled, "no signal was handled");
	sigaction(SIGUSR1, &old, NULL);
}

void waiter_expect_restart(struct waiter *w, DAT_EVD_HANDLE evd)
{
	struct sigaction old;
	int i;

	handle(&old, SA_RESTART);
	for (i = 0; i < 3; i++) {
		pthread_kill(w->thread, SIGUSR1);
		wait_asleep(w->tid);
	}
	put_se(evd, 1);
	waiter_expect(w, DAT_SUCCESS);
	CHECK(handled, "no signal was handled");
	sigaction(SIGUSR1, &old, NULL);
}
