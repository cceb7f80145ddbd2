/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors 0, 1 and 2 that the program has closed, and the epoll sets of libfabric. */

#include "base/fds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int saved[3];

static void init(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

/* The runner reports through them. */
static void fini(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		dup2(saved[fd], fd);
}

TestSuite(std_fds, .init = init, .fini = fini);

Test(std_fds, closed_ones_are_held_and_still_fail)
{
	bool held = true, fail = true;
	char byte = 0;
	int fd, next;

	for (fd = 0; fd < 3; fd++)
		close(fd);
	errno = ENOENT;
	dofi_std_fds_hold();
	held &= errno == ENOENT;
	for (fd = 0; fd < 3; fd++) {
		held &= fcntl(fd, F_GETFD) == FD_CLOEXEC;
		fail &= read(fd, &byte, 1) < 0 && errno == EBADF;
		fail &= write(fd, &byte, 1) < 0 && errno == EBADF;
	}
	next = dup(saved[0]);
	close(next);
	fini();
	cr_expect(held);
	cr_expect(fail);
	cr_expect(next > 2);
}

Test(std_fds, open_ones_are_left_alone)
{
	int before = fcntl(0, F_DUPFD, 0), after;

	close(before);
	dofi_std_fds_hold();
	after = fcntl(0, F_DUPFD, 0);
	close(after);
	cr_expect_eq(before, after);
	cr_expect(!(fcntl(1, F_GETFL) & O_PATH));
}

/* The growth of the kernel's table of descriptors. */

/* The descriptors that the table has room for, open or not. */
static unsigned room(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned size = 0;
	char line[128];

	cr_assert(f != NULL);
	while (!size && fgets(line, sizeof(line), f))
		if (sscanf(line, "FDSize: %u", &size) != 1)
			size = 0;
	fclose(f);
	return size;
}

static void limit_to(rlim_t most)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* ThreadSanitizer has a thread of its own in each process. */
static bool has_one_thread(void)
{
	struct stat st;

	cr_assert_eq(stat("/proc/self/task", &st), 0);
	return st.st_nlink == 3;
}

Test(fd_table, a_process_of_one_thread_has_room_after_growth)
{
	const int next = dup(0);

	close(next);
	if (!has_one_thread())
		return;
	limit_to(2 * DOFI_FD_ROOM);
	errno = ENOENT;
	dofi_fd_table_grow();
	cr_expect_eq(errno, ENOENT);
	cr_expect(room() >= DOFI_FD_ROOM, "%u", room());
	cr_expect_eq(dup(0), next, "no descriptor stays open");
}

Test(fd_table, no_more_than_the_process_may_have)
{
	if (!has_one_thread())
		return;
	limit_to(512);
	dofi_fd_table_grow();
	cr_expect(room() >= 512 && room() < DOFI_FD_ROOM, "%u", room());
	dofi_fd_table_grow();
}

Test(fd_table, no_descriptor_left)
{
	const int first = dup(0);
	int fd;

	limit_to(32);
	while (dup(0) >= 0)
		;
	dofi_fd_table_grow();
	cr_expect_eq(fcntl(31, F_GETFD), 0, "open ones stay");
	/* a checker needs some when the test ends */
	for (fd = first; fd < 32; fd++)
		close(fd);
}

static void *waits(void *arg)
{
	sem_wait(arg);
	return NULL;
}

/* Growing would wait, and the caller may need no more descriptors than there are. */
Test(fd_table, several_threads)
{
	const unsigned before = room();
	pthread_t thread;
	sem_t end;

	sem_init(&end, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, waits, &end), 0);
	limit_to(2 * DOFI_FD_ROOM);
	dofi_fd_table_grow();
	cr_expect_eq(room(), before);
	sem_post(&end);
	pthread_join(thread, NULL);
}

/* Epoll sets of libfabric */

static bool closes(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void contain(int set, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	cr_assert_eq(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev), 0);
}

/* Another end that the program opened next to one of libfabric keeps its flag. */
Test(close_on_exec, covers_a_set_and_all_in_it_and_nothing_else)
{
	int outer = epoll_create1(0), inner = epoll_create1(0), signal[2], program[2];
	int tcp = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
	int gap = dup(0);

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, signal), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, program), 0);
	contain(outer, inner);
	contain(outer, signal[0]);
	contain(inner, tcp);
	dofi_epoll_close_on_exec(outer);
	cr_expect(closes(outer) && closes(inner) && closes(tcp));
	cr_expect(closes(signal[0]) && closes(signal[1]), "both ends");
	cr_expect(!closes(other) && !closes(gap) && !closes(program[0]) && !closes(program[1]));
}

/* The lowest free descriptors need not be neighbours. */
Test(close_on_exec, finds_an_end_that_is_apart)
{
	int set = epoll_create1(0), low = dup(0), between = dup(0), pair[2];

	close(low);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert(pair[0] == low && pair[1] > between);
	contain(set, pair[0]);
	dofi_epoll_close_on_exec(set);
	cr_expect(closes(pair[0]) && closes(pair[1]));
	cr_expect(!closes(between));
}

static bool has_successive_inodes(const int pair[2])
{
	struct stat first, second;

	cr_assert_eq(fstat(pair[0], &first) + fstat(pair[1], &second), 0);
	return second.st_ino == first.st_ino + 1;
}

/* Each processor takes inode numbers by the thousand. */
Test(close_on_exec, finds_an_end_with_an_inode_number_apart)
{
	int set = epoll_create1(0), pair[2] = { -1, -1 }, program[2], tries;

	for (tries = 0; tries < 20000; tries++) {
		/* so that at times one number of a pair is left */
		if (tries % 600 == 0)
			close(socket(AF_UNIX, SOCK_STREAM, 0));
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		if (!has_successive_inodes(pair))
			break;
		close(pair[0]);
		close(pair[1]);
	}
	if (tries == 20000) {
		fprintf(stderr, "skipped: inodes of pairs are in succession here\n");
		return;
	}
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, program), 0);
	contain(set, pair[0]);
	dofi_epoll_close_on_exec(set);
	cr_expect(closes(pair[0]) && closes(pair[1]));
	cr_expect(!closes(program[0]) && !closes(program[1]));
}

static void count(void *arg, int fd, bool is_socket)
{
	*(int *)arg += is_socket ? 100 : 1;
}

Test(close_on_exec, a_set_is_read_with_the_spare_descriptor)
{
	int set = epoll_create1(0), n = 0, none = -1, spare;
	struct rlimit limit;

	contain(set, socket(AF_INET, SOCK_STREAM, 0));
	/* the lowest free one, and the highest that is allowed */
	spare = dup(0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)spare + 1;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dofi_epoll_each(set, NULL, count, &n);
	dofi_epoll_each(set, &none, count, &n);
	cr_expect_eq(n, 0, "no descriptor is free");
	dofi_epoll_each(set, &spare, count, &n);
	cr_expect_eq(spare, -1);
	cr_expect_eq(n, 100);
}
