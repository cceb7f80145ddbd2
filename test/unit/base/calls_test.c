/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls in progress: a thread waits for the last of them. */

#include "base/calls.h"

#include "thread.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct dofi_calls calls;
static _Atomic pid_t tid;
static atomic_bool waited;

TestSuite(calls, .timeout = 30);

static void *await_run(void *arg)
{
	(void)arg;
	tid = (pid_t)syscall(SYS_gettid);
	dofi_calls_await(&calls);
	waited = true;
	return NULL;
}

static pthread_t waiter_start(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, await_run, NULL);
	while (!tid || !thread_rests(tid))
		sched_yield();
	return thread;
}

Test(calls, without_any_there_is_no_wait)
{
	dofi_calls_await(&calls);
	dofi_calls_begin(&calls);
	dofi_calls_end(&calls);
	dofi_calls_await(&calls);
	cr_expect_eq(calls.word, 0);
}

Test(calls, the_last_to_end_wakes_the_waiter)
{
	pthread_t thread;

	dofi_calls_begin(&calls);
	dofi_calls_begin(&calls);
	thread = waiter_start();
	dofi_calls_end(&calls);
	while (!thread_rests(tid))
		sched_yield();
	cr_expect(!waited);
	dofi_calls_end(&calls);
	pthread_join(thread, NULL);
	cr_expect(waited);
	cr_expect_eq(calls.word, 0);
}

Test(calls, signals_do_not_end_the_wait)
{
	pthread_t thread;

	thread_handles(0);
	dofi_calls_begin(&calls);
	thread = waiter_start();
	thread_disturb(thread, tid, 5);
	cr_expect(!waited);
	dofi_calls_end(&calls);
	pthread_join(thread, NULL);
}
