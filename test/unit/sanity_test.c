/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests that fail, each in its own way. sanity.sh checks that the test runner reports them. Tests
 * of suite good must pass.
 */

#include <criterion/criterion.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static bool initialised;

static void init(void)
{
	initialised = true;
}

static void wrong_at_the_end(void)
{
	cr_expect(false);
}

/* Deadlocks, because this thread would have to unlock it. */
static void lock_twice(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
}

TestSuite(good, .init = init);

Test(good, nothing)
{
}

Test(good, assertions)
{
	cr_assert(1 + 1 == 2);
	cr_assert_eq(2, 2, "and %d", 3);
	cr_assert_str_eq("a", "a");
	cr_expect_str_eq("b", "b");
}

Test(good, the_suites_init)
{
	cr_assert(initialised);
}

Test(good, the_exit_code_it_asks_for, .exit_code = 3)
{
	exit(3);
}

Test(good, the_signal_it_asks_for, .signal = SIGTERM)
{
	raise(SIGTERM);
}

Test(good, time_enough, .timeout = 100)
{
}

Test(bad, assertion)
{
	cr_assert(1 + 1 == 3);
}

Test(bad, assertion_of_equality)
{
	cr_assert_eq(1, 2);
}

Test(bad, assertion_of_strings)
{
	cr_assert_str_eq("a", "b");
}

Test(bad, expectation)
{
	cr_expect(false);
}

Test(bad, expectation_before_others_that_hold)
{
	cr_expect_eq(1, 2);
	cr_expect_eq(1, 1);
}

static void *expect_false(void *arg)
{
	cr_expect(false);
	return NULL;
}

Test(bad, expectation_of_another_thread)
{
	pthread_t t;

	pthread_create(&t, NULL, expect_false, NULL);
	pthread_join(t, NULL);
}

Test(bad, expectation_of_the_fini, .fini = wrong_at_the_end)
{
}

Test(bad, expectation_of_the_init, .init = wrong_at_the_end)
{
}

/* Restores the default action, which a sanitizer may have changed. */
Test(bad, crash)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

Test(bad, abort)
{
	abort();
}

Test(bad, exit_code)
{
	exit(3);
}

Test(bad, another_exit_code, .exit_code = 3)
{
	exit(4);
}

Test(bad, no_exit_with_the_code, .exit_code = 3)
{
}

Test(bad, no_signal, .signal = SIGTERM)
{
}

Test(bad, another_signal, .signal = SIGTERM)
{
	raise(SIGINT);
}

Test(bad, hang, .timeout = 0.25)
{
	for (;;)
		pause();
}

Test(bad, held_lock, .timeout = 0.25)
{
	lock_twice();
}

TestSuite(bad_slow, .timeout = 0.25);

Test(bad_slow, hang_in_a_suite_with_a_limit)
{
	for (;;)
		pause();
}

/* Only a leak checker finds these. sanity.sh runs them if it has one. */

static void *volatile lost;

/* Several: a register or the stack may still have the address of the last. */
Test(leak, of_memory)
{
	int i;

	for (i = 0; i < 10; i++)
		lost = malloc(1000);
	lost = NULL;
}

Test(leak, none)
{
	lost = malloc(1000);
	free(lost);
}
