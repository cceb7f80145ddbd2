/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The grants as peers read them: which they find, and until when. */

#include "fab/grant_book.h"

#include "child.h"
#include "nomem.h"
#include "thread.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define SIZE 64
#define SECRET 0x12345678u
#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct dofi_grants grants;
static const struct dofi_grant_pages *pages;	/* as a peer maps them */
static char memory[SIZE];
static struct dofi_mr_request request = { .addr = memory, .len = SIZE, .remote = BOTH };
static struct dofi_grant *grant;
static uint32_t key;
static struct dofi_right permit;

static void init(void)
{
	dofi_grants_init(&grants);
	cr_assert_eq(dofi_grants_publish(&grants), 0);
	cr_assert_eq(dofi_grant_pages_map(dofi_grant_book_fd(grants.book), &pages), 0);
	cr_assert_eq(dofi_grant_open(&grants, &request, &grant, &key), 0);
}

static void fini(void)
{
	if (grant)
		dofi_grant_close(grant);
	dofi_grant_pages_unmap(pages);
	dofi_grants_fini(&grants);
}

TestSuite(grant_book, .init = init, .fini = fini, .timeout = 60);

static bool found(uint32_t with, uint64_t addr, uint64_t len, uint64_t access)
{
	const struct dofi_access use = {
		.key = with, .secret = SECRET, .addr = addr, .len = len, .access = access,
	};

	return dofi_grant_pages_find(pages, &use, &permit);
}

static bool all_found(uint32_t with)
{
	return found(with, (uintptr_t)memory, SIZE, BOTH) &&
	       permit.memory == (uintptr_t)memory && dofi_grant_pages_hold(pages, &permit);
}

Test(grant_book, a_grant_is_found_until_it_ends)
{
	cr_expect(all_found(key));
	dofi_grant_close(grant);
	grant = NULL;
	cr_expect(!dofi_grant_pages_hold(pages, &permit), "a peer that found it before");
	cr_expect(!all_found(key));
}

Test(grant_book, what_it_does_not_permit_is_not_found)
{
	const uint64_t at = (uintptr_t)memory;

	cr_expect(!found(key ^ 1, at, 1, FI_REMOTE_WRITE));
	cr_expect(found(key, at + SIZE - 1, 1, FI_REMOTE_WRITE));
	cr_expect_eq(permit.memory, at + SIZE - 1);
	cr_expect(!found(key, at + SIZE - 1, 2, FI_REMOTE_WRITE));
	cr_expect(!found(key, at - 1, 1, FI_REMOTE_WRITE));
	cr_expect(!found(key, at + SIZE, 0, FI_REMOTE_WRITE));
	cr_expect(!found(key, at, UINT64_MAX, FI_REMOTE_WRITE));
	cr_expect(!found(key, at, 1, 0));
}

Test(grant_book, a_right_that_was_not_granted_is_not_found)
{
	struct dofi_mr_request read = request;
	struct dofi_grant *second;
	uint32_t other;

	read.remote = FI_REMOTE_READ;
	cr_assert_eq(dofi_grant_open(&grants, &read, &second, &other), 0);
	cr_expect(found(other, (uintptr_t)memory, 1, FI_REMOTE_READ));
	cr_expect(!found(other, (uintptr_t)memory, 1, FI_REMOTE_WRITE));
	dofi_grant_close(second);
}

Test(grant_book, a_scoped_grant_is_found_with_its_secret)
{
	struct dofi_mr_request scoped = request;
	struct dofi_grant *second;
	uint32_t other;

	scoped.scoped = true;
	scoped.secret = SECRET;
	cr_assert_eq(dofi_grant_open(&grants, &scoped, &second, &other), 0);
	cr_expect(all_found(other));
	dofi_grant_close(second);
	scoped.secret = SECRET + 1;
	cr_assert_eq(dofi_grant_open(&grants, &scoped, &second, &other), 0);
	cr_expect(!all_found(other));
	dofi_grant_close(second);
}

Test(grant_book, peers_may_count_from_0)
{
	struct dofi_mr_request zero_based = request;
	struct dofi_grant *second;
	uint32_t other;

	zero_based.zero_based = true;
	cr_assert_eq(dofi_grant_open(&grants, &zero_based, &second, &other), 0);
	cr_expect(found(other, 3, 5, FI_REMOTE_WRITE));
	cr_expect_eq(permit.memory, (uintptr_t)memory + 3);
	dofi_grant_close(second);
}

Test(grant_book, a_registration_for_local_use_is_not_in_it)
{
	struct dofi_mr_request local = request;
	struct dofi_grant *second;
	uint32_t other;

	local.remote = 0;
	cr_assert_eq(dofi_grant_open(&grants, &local, &second, &other), 0);
	cr_expect(!found(other, (uintptr_t)memory, 1, 0));
	dofi_grant_close(second);
}

/* A peer that found the first grant does not use the second one, which has its page. */
Test(grant_book, the_next_grant_has_another_word)
{
	struct dofi_right former;

	cr_assert(all_found(key));
	former = permit;
	dofi_grant_close(grant);
	cr_assert_eq(dofi_grant_open_as(&grants, &request, key, &grant), 0);
	cr_assert(all_found(key));
	cr_expect_eq(permit.page, former.page);
	cr_expect(!dofi_grant_pages_hold(pages, &former));
}

/* Grants from before the first connection. */
Test(grant_book, earlier_grants_are_published)
{
	const struct dofi_grant_pages *theirs = pages;
	struct dofi_grants earlier;
	struct dofi_grant *g[100];
	uint32_t k[100];
	size_t i;

	dofi_grants_init(&earlier);
	for (i = 0; i < 100; i++)
		cr_assert_eq(dofi_grant_open(&earlier, &request, &g[i], &k[i]), 0);
	cr_assert_eq(dofi_grants_publish(&earlier), 0);
	cr_assert_eq(dofi_grants_publish(&earlier), 0, "it may be published again");
	cr_assert_eq(dofi_grant_pages_map(dofi_grant_book_fd(earlier.book), &pages), 0);
	for (i = 0; i < 100; i++)
		cr_expect(all_found(k[i]));
	for (i = 0; i < 100; i++)
		dofi_grant_close(g[i]);
	dofi_grant_pages_unmap(pages);
	dofi_grants_fini(&earlier);
	pages = theirs;
}

#define MANY 10000			/* more than there are pages */

Test(grant_book, what_finds_no_page_stays_with_its_owner)
{
	struct dofi_grant **g = calloc(MANY, sizeof(*g));
	struct dofi_access use = { .addr = (uintptr_t)memory, .len = 1, .access = BOTH };
	uint32_t *k = calloc(MANY, sizeof(*k));
	int i, round, n = 0;
	void *at;

	for (round = 0; round < 2; round++) {
		for (i = n = 0; i < MANY; i++) {
			cr_assert_eq(dofi_grant_open(&grants, &request, &g[i], &k[i]), 0);
			n += all_found(k[i]);
		}
		cr_expect_eq(n, 8191, "%d", n);
		for (i = n = 0; i < MANY; i++)
			n += all_found(k[i]);
		cr_expect_eq(n, 8191, "behind newer grants: %d", n);
		use.key = k[MANY - 1];
		cr_assert_eq(dofi_grant_enter(&grants, &use, &at), 0);
		dofi_grant_leave(&grants);
		for (i = 0; i < MANY; i++)
			dofi_grant_close(g[i]);
		for (i = n = 0; i < MANY; i++)
			n += all_found(k[i]);
		cr_expect_eq(n, 0);
	}
	cr_expect(all_found(key));
	free(g);
	free(k);
}

static void free_in_child(int fd)
{
	cr_assert(found(key, (uintptr_t)memory, 1, FI_REMOTE_READ));
	cr_assert(!dofi_grant_book_remove(grants.book, permit.page));
	dofi_grant_close(grant);
	dofi_grants_fini(&grants);
	say(fd, "", 1);
}

Test(grant_book, a_forked_child_ends_nothing)
{
	struct child c = child_start_ready(free_in_child);

	child_end(&c);
	cr_expect(all_found(key));
}

static void own(int fd)
{
	struct dofi_grants theirs;

	dofi_grants_init(&theirs);
	cr_assert_eq(dofi_grants_publish(&theirs), 0);
	cr_assert_eq(dofi_grant_open_as(&theirs, &request, 5, &grant), 0);
	fd = dofi_grant_book_fd(theirs.book) == *(int *)memory ? fd : -1;
	say(fd, "", 1);
	child_rest(fd);
}

/* A dead process's grants are still found, but do not hold. */
Test(grant_book, a_dead_owner_grants_nothing)
{
	char path[64];
	struct child c;
	int fd = dup(0);

	/* the descriptor that the child gets next */
	close(fd);
	*(int *)memory = fd;
	c = child_start_ready(own);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)c.pid, fd);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0);
	dofi_grant_pages_unmap(pages);
	cr_assert_eq(dofi_grant_pages_map(fd, &pages), 0);
	close(fd);
	cr_expect(all_found(5));
	child_kill(&c);
	cr_expect(found(5, (uintptr_t)memory, 1, FI_REMOTE_WRITE));
	cr_expect(!dofi_grant_pages_hold(pages, &permit));
}

Test(grant_book, other_memory_is_refused)
{
	const struct dofi_grant_pages *other = NULL;

	cr_expect_eq(dofi_grant_pages_map(-1, &other), -EPROTO);
	cr_expect(!other);
	dofi_grant_pages_unmap(NULL);
}

Test(grant_book, without_memory_or_descriptors_there_is_none)
{
	struct rlimit limit, none = { 0, 0 };
	struct dofi_grant_book *book = NULL;

	nomem_after(0);
	cr_expect_eq(dofi_grant_book_make(&book), -ENOMEM);
	cr_assert(nomem_failed());
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(dofi_grant_book_make(&book), -EMFILE);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect(!book);
	dofi_grant_book_free(NULL);
}

/* The end of a grant waits for a peer that writes: while it writes, and while it lives. */

static struct dofi_writing *mark;		/* shared with children */
static _Atomic uint32_t writer_pid;
static struct dofi_writer writer;
static uint64_t count;

static void writer_init(void)
{
	mark = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(mark != MAP_FAILED);
	writer = (struct dofi_writer){ .writing = mark, .pid = &writer_pid };
	writer_pid = (uint32_t)getpid();
	count = 0;
	dofi_writer_patience_ns = INT64_C(60000000000);
}

static void writer_fini(void)
{
	munmap(mark, 4096);
}

TestSuite(writer, .init = writer_init, .fini = writer_fini, .timeout = 30);

Test(writer, only_its_own_page_is_waited_for)
{
	dofi_writer_await(&writer, 1);
	dofi_writing_begin(mark, &count, 2);
	dofi_writer_await(&writer, 1);
	dofi_writing_end(mark);
	dofi_writer_await(&writer, 2);
	dofi_writer_await(&writer, 0);
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

static void *await_all(void *arg)
{
	atomic_store(&waiter, (pid_t)syscall(SYS_gettid));
	dofi_writer_await(&writer, 0);
	atomic_store(&returned, true);
	return arg;
}

/* A writer that begins again, with another mark, has found that it may not write. */
static void wait_and_change(void *(*run)(void *arg), bool again)
{
	pthread_t thread;

	returned = false;
	waiter = 0;
	dofi_writing_begin(mark, &count, 7);
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
	while (!thread_rests(atomic_load(&waiter)))
		usleep(100);
	cr_expect(!atomic_load(&returned));
	if (again)
		dofi_writing_begin(mark, &count, 7);
	else
		dofi_writing_end(mark);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	dofi_writing_end(mark);
}

Test(writer, until_the_mark_is_cleared_or_another)
{
	wait_and_change(await_page, false);
	wait_and_change(await_page, true);
	wait_and_change(await_all, false);
	wait_and_change(await_all, true);
}

static void write_on(int fd)
{
	dofi_writing_begin(mark, &count, 7);
	say(fd, "", 1);
	child_rest(fd);
}

Test(writer, until_its_process_is_dead)
{
	struct child c = child_start_ready(write_on);

	writer_pid = (uint32_t)c.pid;
	kill(c.pid, SIGKILL);
	dofi_writer_await(&writer, 7);	/* perhaps a zombie */
	child_end(&c);
	dofi_writer_await(&writer, 7);
	dofi_writer_await(&writer, 0);
	cr_expect(mark->busy != 0);
}

/* A stopped process holds up the owner once, and for a limited time. */
Test(writer, or_until_patience_ends)
{
	struct child c = child_start_ready(write_on);

	writer_pid = (uint32_t)c.pid;
	kill(c.pid, SIGSTOP);
	dofi_writer_patience_ns = 20000000;
	dofi_writer_await(&writer, 7);
	cr_expect_eq(writer.given_up[0], mark->busy);
	dofi_writer_patience_ns = INT64_C(60000000000);
	dofi_writer_await(&writer, 7);
	dofi_writer_await(&writer, 0);
	child_kill(&c);
}

/* The memory of a PZ is used again. */
Test(grant_book, a_new_table_is_not_published)
{
	fini();
	grant = NULL;
	dofi_grants_init(&grants);
	cr_expect_eq(grants.book, NULL);
	cr_assert_eq(dofi_grants_publish(&grants), 0);
	cr_assert_eq(dofi_grant_pages_map(dofi_grant_book_fd(grants.book), &pages), 0);
}
