/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Variables that are lent to the environment. Each test runs in a process of its own. */

#include "base/environ.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *two[] = { (char []){ "OURS_A=1" }, (char []){ "OURS_B=2" } };

static unsigned length(void)
{
	unsigned n = 0;

	while (environ && environ[n])
		n++;
	return n;
}

static void expect(const char *name, const char *value)
{
	const char *found = getenv(name);

	if (!value)
		cr_expect(!found, "%s=%s", name, found);
	else
		cr_expect(found && !strcmp(found, value), "%s=%s", name, found ? found : "nothing");
}

/* The strings of the environment, to be compared with those of later. */
static char *before[4096];
static unsigned n_before;

static void remember(void)
{
	n_before = length();
	memcpy(before, environ, (n_before + 1) * sizeof(*before));
}

static void expect_unchanged(void)
{
	cr_expect_eq(length(), n_before);
	cr_expect(!memcmp(before, environ, (n_before + 1) * sizeof(*before)));
}

Test(environ, is_the_same_afterwards)
{
	remember();
	dofi_environ_lend(two, 2);
	expect("OURS_A", "1");
	expect("OURS_B", "2");
	cr_expect_eq(length(), n_before + 2);
	cr_expect(dofi_environ_return());
	expect_unchanged();
}

Test(environ, may_be_empty)
{
	clearenv();
	dofi_environ_lend(two, 2);
	expect("OURS_B", "2");
	cr_expect(dofi_environ_return());
	cr_expect_eq(length(), 0);
}

/* Readers of the array before, such as main()'s third argument, still find its entries. */
Test(environ, leaves_the_old_array_alone)
{
	char **old;
	unsigned i;

	setenv("PROGRAM", "1", 1);
	old = environ;
	remember();
	dofi_environ_lend(two, 2);
	cr_expect(environ != old);
	for (i = 0; i <= n_before; i++)
		cr_expect_eq(old[i], before[i]);
	dofi_environ_return();
	for (i = 0; i <= n_before; i++)
		cr_expect_eq(old[i], before[i]);
}

/* Each endpoint of a fabric may need this: the memory must not grow. */
Test(environ, uses_its_array_again)
{
	char **array;
	int i;

	dofi_environ_lend(two, 2);
	dofi_environ_return();
	array = environ;
	for (i = 0; i < 100; i++) {
		dofi_environ_lend(two, i % 3);
		cr_expect_eq(environ, array);
		cr_expect(dofi_environ_return());
	}
}

Test(environ, another_value_of_the_program_comes_back)
{
	setenv("OURS_A", "program", 1);
	remember();
	dofi_environ_lend(two, 2);
	expect("OURS_A", "1");
	cr_expect(dofi_environ_return());
	expect("OURS_A", "program");
	expect_unchanged();
}

Test(environ, the_programs_changes_stay)
{
	setenv("PROGRAM", "1", 1);
	setenv("GONE", "1", 1);
	dofi_environ_lend(two, 2);
	setenv("PROGRAM", "2", 1);
	setenv("NEW", "3", 1);
	setenv("OURS_A", "program", 1);
	unsetenv("GONE");
	cr_expect(!dofi_environ_return(), "one was replaced");
	expect("PROGRAM", "2");
	expect("NEW", "3");
	expect("OURS_A", "program");
	expect("OURS_B", NULL);
	expect("GONE", NULL);
}

Test(environ, the_program_may_remove_what_is_lent)
{
	dofi_environ_lend(two, 2);
	unsetenv("OURS_B");
	cr_expect(!dofi_environ_return());
	expect("OURS_A", NULL);
	expect("OURS_B", NULL);
	dofi_environ_lend(two, 2);
	clearenv();
	cr_expect(!dofi_environ_return());
	cr_expect_eq(length(), 0);
}

/* The provider of the other API version lends the same at the same time, and returns it first. */
Test(environ, equal_entries_of_another_provider_are_no_ours)
{
	char theirs[] = "OURS_A=1";

	putenv(theirs);
	dofi_environ_lend(two, 2);
	unsetenv("OURS_A");
	cr_expect(!dofi_environ_return());
	expect("OURS_B", NULL);
}

Test(environ, a_child_does_not_inherit)
{
	int status;
	pid_t pid;

	setenv("OURS_A", "program", 1);
	remember();
	dofi_environ_lend(two, 2);
	pid = fork();
	if (!pid) {
		_exit(length() == n_before && !strcmp(getenv("OURS_A"), "program") &&
		      !memcmp(before, environ, (n_before + 1) * sizeof(*before)) ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	expect("OURS_A", "1");
	expect("OURS_B", "2");
	cr_expect(dofi_environ_return());
}

/* Threads of the program */

static atomic_bool stop, begun;

#define NAMES 32

/* Changes NAMES variables in turn, each to the number of the change, from that at @arg on. */
static void *changes(void *arg)
{
	char name[32], value[32];
	unsigned *i = arg;

	for (; !stop; ++*i) {
		snprintf(name, sizeof(name), "PROGRAM_%u", *i % NAMES);
		snprintf(value, sizeof(value), "%u", *i);
		setenv(name, value, 1);
		begun = true;
	}
	return NULL;
}

/*
 * The thread may change the array that is being copied. It adds no variable: the C library may free
 * the array then, while another thread reads it.
 */
Test(environ, changes_of_a_thread_are_kept)
{
	char name[32], expected[32], *own[4096];
	pthread_t thread;
	unsigned i, n = NAMES, k;

	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "PROGRAM_%u", i);
		setenv(name, "", 1);
	}
	for (k = 0; k < 200; k++) {
		/* an array that is not ours is replaced */
		memmove(own, environ, (length() + 1) * sizeof(*own));
		environ = own;
		stop = begun = false;
		pthread_create(&thread, NULL, changes, &n);
		while (!begun)
			sched_yield();
		dofi_environ_lend(two, 2);
		stop = true;
		pthread_join(thread, NULL);
		cr_expect(dofi_environ_return());
		cr_expect(environ != own);
		for (i = n < 2 * NAMES ? NAMES : n - NAMES; i < n; i++) {
			snprintf(name, sizeof(name), "PROGRAM_%u", i % NAMES);
			snprintf(expected, sizeof(expected), "%u", i);
			expect(name, expected);
		}
	}
	expect("OURS_A", NULL);
	expect("OURS_B", NULL);
}
