/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The word that shows whether a thread lives: until the thread ends, by any cause. */

#include "base/alive.h"

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct dofi_alive *alive;	/* shared with children */

static void init(void)
{
	alive = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(alive != MAP_FAILED);
}

static void fini(void)
{
	munmap(alive, 4096);
}

TestSuite(alive, .init = init, .fini = fini, .timeout = 30);

Test(alive, from_the_beginning_to_the_end)
{
	cr_expect(!dofi_alive_is(alive));
	cr_assert_eq(dofi_alive_begin(alive), 0);
	cr_expect(dofi_alive_is(alive));
	dofi_alive_end(alive);
	cr_expect(!dofi_alive_is(alive));
}

static void *live(void *arg)
{
	cr_assert_eq(dofi_alive_begin(alive), 0);
	cr_expect(dofi_alive_is(alive));
	return arg;
}

Test(alive, until_the_thread_ends)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, live, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect(!dofi_alive_is(alive));
}

static void run(int fd)
{
	live(NULL);
	say(fd, "", 1);
	child_rest(fd);
}

Test(alive, until_the_process_is_killed)
{
	struct child c = child_start_ready(run);

	cr_expect(dofi_alive_is(alive));
	child_kill(&c);
	cr_expect(!dofi_alive_is(alive));
}

/* The new program holds the process's number, and ends when the test closes the socket. */
static void run_and_exec(int fd)
{
	cr_assert_eq(dup2(fd, 0), 0);
	cr_assert_eq(dup2(fd, 1), 1);
	live(NULL);
	execl("/bin/sh", "sh", "-c", "echo; read line", (char *)NULL);
}

Test(alive, until_the_process_runs_another_program)
{
	struct child c = child_start_ready(run_and_exec);

	cr_expect(!dofi_alive_is(alive));
	cr_expect(!kill(c.pid, 0));
	child_end(&c);
}

static void end_in_child(int fd)
{
	dofi_alive_end(alive);
	say(fd, "", 1);
}

Test(alive, whatever_a_forked_child_does)
{
	struct child c;

	cr_assert_eq(dofi_alive_begin(alive), 0);
	c = child_start_ready(end_in_child);
	child_end(&c);
	cr_expect(dofi_alive_is(alive));
	dofi_alive_end(alive);
}

/* The kernel would not change the word of a thread that has ended. */
Test(alive, not_without_the_kernels_list)
{
	syscall(SYS_set_robust_list, NULL, sizeof(struct robust_list_head));
	cr_expect_eq(dofi_alive_begin(alive), -ENOTSUP);
	cr_expect(!dofi_alive_is(alive));
}

/* A hostile process wrote it. */
Test(alive, an_index_beyond_the_words_is_not_followed)
{
	alive->value = 1;
	alive->at = DOFI_ALIVE_WORDS;
	cr_expect(!dofi_alive_is(alive));
	alive->at = UINT32_MAX;
	cr_expect(!dofi_alive_is(alive));
	alive->at = 0;
	alive->value = 0;
	cr_expect(!dofi_alive_is(alive), "0 is the word of a mutex that nobody holds");
}
