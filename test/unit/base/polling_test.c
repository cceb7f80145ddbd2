/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An observer's results about a thread that notes itself. */

#include "base/polling.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dofi_polling_thread polling;
static sem_t noted, go_on;
static _Atomic bool stop;
static pthread_t thread;

static void *sleeps(void *unused)
{
	dofi_polling_thread_note(&polling);
	sem_post(&noted);
	sem_wait(&go_on);
	return unused;
}

static void *spins(void *unused)
{
	dofi_polling_thread_note(&polling);
	sem_post(&noted);
	while (!atomic_load(&stop))
		;
	return unused;
}

static void start(void *(*run)(void *))
{
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
	sem_wait(&noted);
}

static void end(void)
{
	atomic_store(&stop, true);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	atomic_store(&stop, false);
}

static void init(void)
{
	sem_init(&noted, 0, 0);
	sem_init(&go_on, 0, 0);
}

TestSuite(polling_thread, .init = init);

Test(polling_thread, knows_no_thread_at_first)
{
	cr_expect_eq(dofi_polling_thread_ran(&polling), INT64_MAX);
	cr_expect(!dofi_polling_thread_is_runnable(&polling));
}

Test(polling_thread, the_observer_is_not_looked_at)
{
	dofi_polling_thread_note(&polling);
	cr_expect_eq(dofi_polling_thread_ran(&polling), INT64_MAX);
}

Test(polling_thread, a_thread_that_sleeps)
{
	start(sleeps);
	/* at first not known, then until it sleeps; on a busy machine it waits for a processor */
	while (dofi_polling_thread_ran(&polling) || dofi_polling_thread_is_runnable(&polling))
		sched_yield();
	cr_expect_eq(dofi_polling_thread_ran(&polling), 0);
	end();
}

Test(polling_thread, a_thread_that_runs)
{
	int64_t ran;

	start(spins);
	cr_expect_eq(dofi_polling_thread_ran(&polling), INT64_MAX);
	while (!(ran = dofi_polling_thread_ran(&polling)))
		sched_yield();
	cr_expect(ran > 0 && ran < INT64_MAX);
	cr_expect(dofi_polling_thread_is_runnable(&polling));
	end();
}

Test(polling_thread, another_thread_is_looked_at_afresh)
{
	struct dofi_polling_thread other = { .tid = 0 };

	start(spins);
	dofi_polling_thread_ran(&polling);
	dofi_polling_thread_note(&other);
	polling.tid = other.tid;
	cr_expect_eq(dofi_polling_thread_ran(&polling), INT64_MAX);
	end();
}

Test(polling_thread, a_thread_that_ended_is_forgotten)
{
	start(sleeps);
	end();
	while (polling.tid) {	/* pthread_join() returns before the kernel removes the thread */
		dofi_polling_thread_ran(&polling);
		sched_yield();
	}
	cr_expect_eq(dofi_polling_thread_ran(&polling), INT64_MAX);
	start(spins);
	dofi_polling_thread_ran(&polling);
	cr_expect(dofi_polling_thread_ran(&polling) < INT64_MAX);
	end();
}

static void *looks(void *unused)
{
	dofi_polling_thread_ran(&polling);
	return dofi_polling_thread_ran(&polling) < INT64_MAX ? &polling : unused;
}

static bool is_seen(void)
{
	void *seen;

	dofi_polling_thread_note(&polling);
	cr_assert_eq(pthread_create(&thread, NULL, looks, NULL), 0);
	pthread_join(thread, &seen);
	return seen;
}

/* The child's thread has another number than the parent's, of which it is a copy. */
Test(polling_thread, after_a_fork)
{
	int status;
	pid_t pid;

	cr_expect(is_seen());
	pid = fork();
	if (!pid) {
		is_seen();
		_exit(is_seen() ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

/* How long a wait polls, depending on how long earlier waits took. */

#define LEAST 50000

static struct dofi_spin spin;

static int64_t after(int64_t took)
{
	dofi_spin_learn(&spin, took, LEAST);
	return dofi_spin_time(&spin, LEAST);
}

Test(spin, at_first_as_long_as_is_set)
{
	cr_expect_eq(dofi_spin_time(&spin, LEAST), LEAST);
}

Test(spin, twice_what_short_waits_take_within_limits)
{
	cr_expect_eq(after(0), LEAST);
	cr_expect_eq(after(LEAST / 2), LEAST);
	cr_expect_eq(after(LEAST), 2 * LEAST);
	cr_expect_eq(after(2 * LEAST), 4 * LEAST);
	cr_expect_eq(after(4 * LEAST), 4 * LEAST);
	cr_expect_eq(after(100), LEAST);
}

Test(spin, not_after_many_long_waits)
{
	int i;

	for (i = 0; i < 7; i++)
		cr_expect_eq(after(4 * LEAST + 1), LEAST);
	for (i = 0; i < 100; i++)
		cr_expect_eq(after(INT64_MAX), 0);
	cr_expect_eq(after(10), LEAST, "one short wait is enough");
	for (i = 0; i < 7; i++)
		cr_expect_eq(after(4 * LEAST + 1), LEAST);
	cr_expect_eq(after(4 * LEAST + 1), 0);
}

Test(spin, never_if_it_is_set_so)
{
	int i;

	for (i = 0; i < 3; i++) {
		dofi_spin_learn(&spin, i, 0);
		cr_expect_eq(dofi_spin_time(&spin, 0), 0);
	}
}
