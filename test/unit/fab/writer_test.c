/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a grant waits for a peer that writes: while it writes, and while it lives. */

#include "fab/writer.h"

#include "child.h"
#include "thread.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static struct dofi_mark *mark;		/* shared with children */
static struct dofi_writer writer;
static uint64_t count;

static void init(void)
{
	mark = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(mark != MAP_FAILED);
	writer = (struct dofi_writer){ .mark = mark, .pid = getpid() };
	count = 0;
	dofi_writer_patience_ns = INT64_C(60000000000);
}

static void fini(void)
{
	munmap(mark, 4096);
}

TestSuite(writer, .init = init, .fini = fini, .timeout = 30);

Test(writer, only_its_own_page_is_waited_for)
{
	dofi_writer_await(&writer, 1);
	dofi_mark_set(mark, &count, 2);
	dofi_writer_await(&writer, 1);
	dofi_mark_clear(mark);
	dofi_writer_await(&writer, 2);
	cr_expect(!dofi_mark_over(mark));
	dofi_writer_end(&writer);
	cr_expect(dofi_mark_over(mark));
}

static _Atomic pid_t waiter;
static _Atomic bool returned;

static void *await_page(void *arg)
{
	atomic_store(&waiter, (pid_t)syscall(SYS_gettid));
	dofi_writer_await(&writer, 7);
	atomic_store(&returned, true);
	return arg;
}

static void *await_end(void *arg)
{
	atomic_store(&waiter, (pid_t)syscall(SYS_gettid));
	dofi_writer_end(&writer);
	atomic_store(&returned, true);
	return arg;
}

/* A writer that begins again, with another mark, has found that it may not write. */
static void wait_and_change(void *(*run)(void *arg), bool again)
{
	pthread_t thread;

	returned = false;
	waiter = 0;
	dofi_mark_set(mark, &count, 7);
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
	while (!thread_rests(atomic_load(&waiter)))
		usleep(100);
	cr_expect(!atomic_load(&returned));
	if (again)
		dofi_mark_set(mark, &count, 7);
	else
		dofi_mark_clear(mark);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	dofi_mark_clear(mark);
}

Test(writer, until_the_mark_is_cleared_or_another)
{
	wait_and_change(await_page, false);
	wait_and_change(await_page, true);
	wait_and_change(await_end, false);
	wait_and_change(await_end, true);
}

static void write_on(int fd)
{
	dofi_mark_set(mark, &count, 7);
	say(fd, "", 1);
	child_rest(fd);
}

Test(writer, until_its_process_is_dead)
{
	struct child c = child_start_ready(write_on);

	writer.pid = c.pid;
	kill(c.pid, SIGKILL);
	dofi_writer_await(&writer, 7);	/* perhaps a zombie */
	child_end(&c);
	dofi_writer_await(&writer, 7);
	dofi_writer_end(&writer);
	cr_expect(mark->busy != 0);
}

/* A stopped process holds up the owner once, and for a limited time. */
Test(writer, or_until_patience_ends)
{
	struct child c = child_start_ready(write_on);

	writer.pid = c.pid;
	kill(c.pid, SIGSTOP);
	dofi_writer_patience_ns = 20000000;
	dofi_writer_await(&writer, 7);
	cr_expect_eq(writer.given_up, mark->busy);
	dofi_writer_patience_ns = INT64_C(60000000000);
	dofi_writer_await(&writer, 7);
	dofi_writer_end(&writer);
	child_kill(&c);
}
