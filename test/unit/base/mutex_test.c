/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The mutex: it excludes, every waiter gets it, and neither signals nor errno matter. */

#include "base/mutex.h"

#include "forbid.h"
#include "thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define TURNS 20000

static struct dofi_mutex mutex;
static unsigned turns;		/* under the mutex */

TestSuite(mutex, .timeout = 60);

Test(mutex, a_try_of_a_locked_mutex_fails)
{
	cr_assert(dofi_mutex_try(&mutex));
	cr_expect(!dofi_mutex_try(&mutex));
	cr_expect(!dofi_mutex_try(&mutex));
	dofi_mutex_unlock(&mutex);
	cr_assert(dofi_mutex_try(&mutex));
	dofi_mutex_unlock(&mutex);
	cr_expect(!mutex.locked && !mutex.waiters);
}

Test(mutex, memory_of_any_content_becomes_an_unlocked_one)
{
	mutex.locked = mutex.waiters = UINT32_MAX;
	dofi_mutex_init(&mutex);
	cr_expect(dofi_mutex_try(&mutex));
	dofi_mutex_unlock(&mutex);
}

static void *take_turns(void *arg)
{
	int i;

	for (i = 0; i < TURNS; i++) {
		if (i % 3 || !dofi_mutex_try(&mutex))
			dofi_mutex_lock(&mutex);
		turns++;
		dofi_mutex_unlock(&mutex);
	}
	return NULL;
}

static void threads_take_turns(void)
{
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, take_turns, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(turns, THREADS * TURNS);
	cr_expect(!mutex.locked && !mutex.waiters);
}

Test(mutex, threads_exclude_each_other)
{
	threads_take_turns();
}

/* A wakeup may be missed then, so that a sleeping thread looks again by itself. */
Test(mutex, threads_exclude_each_other_without_membarrier)
{
	if (forbid_call(SYS_membarrier, EPERM))
		threads_take_turns();
}

/* A thread that waits for the mutex, and its result. */
struct waiter {
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool has_it;
	int err;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
	errno = ENOTTY;
	dofi_mutex_lock(&mutex);
	w->has_it = true;
	turns++;
	dofi_mutex_unlock(&mutex);
	w->err = errno;
	return NULL;
}

/* Returns when the thread sleeps. */
static void waiter_start(struct waiter *w)
{
	pthread_create(&w->thread, NULL, waiter_run, w);
	while (!thread_rests(w->tid))
		usleep(100);
}

Test(mutex, all_waiting_threads_get_it)
{
	struct waiter w[THREADS] = { 0 };
	int i;

	dofi_mutex_lock(&mutex);
	for (i = 0; i < THREADS; i++)
		waiter_start(&w[i]);
	cr_expect_eq(turns, 0);
	dofi_mutex_unlock(&mutex);
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		cr_expect_eq(w[i].err, ENOTTY);
	}
	cr_expect_eq(turns, THREADS);
	cr_expect(!mutex.locked && !mutex.waiters);
}

Test(mutex, woken_while_it_is_locked_a_thread_sleeps_again)
{
	struct waiter w = { 0 };
	int i;

	dofi_mutex_lock(&mutex);
	waiter_start(&w);
	for (i = 0; i < 20; i++) {
		/* as by an unlock after which another thread took the mutex first */
		dofi_mutex_wake(&mutex);
		while (!thread_rests(w.tid))
			usleep(100);
		cr_expect(!w.has_it);
	}
	dofi_mutex_unlock(&mutex);
	pthread_join(w.thread, NULL);
	cr_expect(w.has_it);
	cr_expect(!mutex.locked && !mutex.waiters);
}

Test(mutex, signals_do_not_end_the_sleep)
{
	struct waiter w = { 0 };

	thread_handles(0);
	dofi_mutex_lock(&mutex);
	waiter_start(&w);
	thread_disturb(w.thread, w.tid, 20);
	cr_expect(!w.has_it);
	dofi_mutex_unlock(&mutex);
	pthread_join(w.thread, NULL);
	cr_expect(w.has_it);
	cr_expect_eq(w.err, ENOTTY);
}

#ifdef DOFI_CHECKS

static void *take(void *arg)
{
	dofi_mutex_lock(arg);
	return NULL;
}

static void lock_on_another_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, take, &mutex);
	pthread_join(thread, NULL);
}

Test(mutex, the_holder_passes_the_assertion)
{
	dofi_mutex_lock(&mutex);
	dofi_mutex_assert_held(&mutex);
	dofi_mutex_unlock(&mutex);
	cr_assert(dofi_mutex_try(&mutex));
	dofi_mutex_assert_held(&mutex);
	dofi_mutex_unlock(&mutex);
}

Test(mutex, a_waiter_that_got_it_passes_the_assertion)
{
	struct waiter w = { 0 };

	dofi_mutex_lock(&mutex);
	waiter_start(&w);
	dofi_mutex_unlock(&mutex);
	dofi_mutex_lock(&mutex);
	dofi_mutex_assert_held(&mutex);
	dofi_mutex_unlock(&mutex);
	pthread_join(w.thread, NULL);
}

Test(mutex, an_assertion_without_it_aborts, .signal = SIGABRT)
{
	dofi_mutex_assert_held(&mutex);
}

Test(mutex, an_assertion_after_the_unlock_aborts, .signal = SIGABRT)
{
	dofi_mutex_lock(&mutex);
	dofi_mutex_unlock(&mutex);
	dofi_mutex_assert_held(&mutex);
}

Test(mutex, an_assertion_while_another_thread_holds_it_aborts, .signal = SIGABRT)
{
	lock_on_another_thread();
	dofi_mutex_assert_held(&mutex);
}

Test(mutex, an_unlock_by_another_thread_aborts, .signal = SIGABRT)
{
	lock_on_another_thread();
	dofi_mutex_unlock(&mutex);
}

Test(mutex, a_second_lock_by_the_holder_aborts, .signal = SIGABRT)
{
	dofi_mutex_lock(&mutex);
	dofi_mutex_lock(&mutex);
}

#endif
