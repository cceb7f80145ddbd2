/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that are passed through a local socket: arrivals, and messages of hostile peers. */

#include "xport/cm/conn.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int end[2];			/* a pair of sockets */
static int pipes[DOFI_CM_FDS];		/* descriptors to pass, each of a pipe of its own */
static int open_before;

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void init(void)
{
	int pair[2], i;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end), 0);
	for (i = 0; i < DOFI_CM_FDS; i++) {
		cr_assert_eq(pipe2(pair, O_CLOEXEC), 0);
		pipes[i] = pair[1];
		close(pair[0]);
	}
	open_before = descriptors();
}

/* Each test closes the descriptors that it received. */
static void fini(void)
{
	cr_expect_eq(descriptors(), open_before, "descriptors are left");
}

TestSuite(cm_fds, .init = init, .fini = fini);

/* Whether both descriptors are of one file. */
static bool same_file(int a, int b)
{
	struct stat of_a, of_b;

	return a != b && !fstat(a, &of_a) && !fstat(b, &of_b) && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

static struct dofi_cm_fds all_pipes(void)
{
	struct dofi_cm_fds fds = { .n = DOFI_CM_FDS };

	memcpy(fds.fd, pipes, sizeof(pipes));
	return fds;
}

Test(cm_fds, descriptors_arrive_with_their_bytes)
{
	struct dofi_cm_fds out = all_pipes(), in = { 0 };
	char bytes[10];
	int i;

	cr_assert_eq(dofi_cm_fds_send(end[0], "hello", 5, &out), 5);
	cr_expect_eq(out.n, 0, "they are not sent again");
	cr_assert_eq(dofi_cm_fds_receive(end[1], bytes, sizeof(bytes), &in), 5);
	cr_expect(!memcmp(bytes, "hello", 5));
	cr_assert_eq(in.n, DOFI_CM_FDS);
	for (i = 0; i < DOFI_CM_FDS; i++) {
		cr_expect(same_file(in.fd[i], pipes[i]), "%d", i);
		cr_expect(fcntl(in.fd[i], F_GETFD) & FD_CLOEXEC);
		cr_expect(fcntl(pipes[i], F_GETFD) >= 0, "the sender's stays open");
	}
	dofi_cm_fds_close(&in);
	cr_expect_eq(in.n, 0);
}

Test(cm_fds, fewer_than_possible_arrive)
{
	struct dofi_cm_fds out = { .n = 1, .fd = { pipes[1] } }, in = { 0 };
	char byte;

	cr_assert_eq(dofi_cm_fds_send(end[0], "x", 1, &out), 1);
	cr_assert_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 1);
	cr_assert_eq(in.n, 1);
	cr_expect(same_file(in.fd[0], pipes[1]));
	dofi_cm_fds_close(&in);
}

Test(cm_fds, bytes_without_descriptors_bring_none)
{
	struct dofi_cm_fds in = { 0 };
	char bytes[10];

	cr_assert_eq(send(end[0], "hello", 5, 0), 5);
	cr_assert_eq(dofi_cm_fds_receive(end[1], bytes, sizeof(bytes), &in), 5);
	cr_expect_eq(in.n, 0);
}

/* The receiver reads less than was sent with them. */
Test(cm_fds, descriptors_come_with_the_first_byte_of_their_message)
{
	struct dofi_cm_fds out = { .n = 1, .fd = { pipes[0] } }, in = { 0 };
	char bytes[10];

	cr_assert_eq(dofi_cm_fds_send(end[0], "hello", 5, &out), 5);
	cr_assert_eq(dofi_cm_fds_receive(end[1], bytes, 1, &in), 1);
	cr_expect_eq(in.n, 1);
	cr_assert_eq(dofi_cm_fds_receive(end[1], bytes, sizeof(bytes), &in), 4);
	cr_expect_eq(in.n, 1);
	dofi_cm_fds_close(&in);
}

/* Fills the socket to the peer. Returns how many bytes it took. */
static size_t socket_fill(void)
{
	static const char bytes[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = send(end[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	cr_assert_eq(errno, EAGAIN);
	return all;
}

static void socket_empty(size_t n)
{
	struct dofi_cm_fds in = { 0 };
	char bytes[4096];
	ssize_t got;

	for (; n; n -= (size_t)got) {
		got = dofi_cm_fds_receive(end[1], bytes, sizeof(bytes), &in);
		cr_assert(got > 0);
	}
	cr_expect_eq(in.n, 0);
}

Test(cm_fds, a_full_socket_takes_none)
{
	struct dofi_cm_fds out = all_pipes(), in = { 0 };
	const size_t full = socket_fill();
	char byte;

	cr_expect_eq(dofi_cm_fds_send(end[0], "x", 1, &out), -1);
	cr_expect(errno == EAGAIN, "it does not wait");
	cr_expect_eq(out.n, DOFI_CM_FDS, "they are for the next try");
	socket_empty(full);
	cr_assert_eq(dofi_cm_fds_send(end[0], "x", 1, &out), 1);
	cr_assert_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 1);
	cr_expect_eq(in.n, DOFI_CM_FDS);
	dofi_cm_fds_close(&in);
}

Test(cm_fds, an_empty_socket_gives_none)
{
	struct dofi_cm_fds in = { 0 };
	char byte;

	cr_expect_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), -1);
	cr_expect(errno == EAGAIN, "it does not wait");
	cr_expect_eq(in.n, 0);
}

Test(cm_fds, the_end_of_the_peer_is_the_end)
{
	struct dofi_cm_fds out = all_pipes(), in = { 0 };
	char byte;

	close(end[0]);
	cr_expect_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 0);
	cr_expect_eq(dofi_cm_fds_send(end[1], "x", 1, &out), -1);
	cr_expect(errno == EPIPE, "no signal ends the process");
	cr_expect_eq(out.n, DOFI_CM_FDS);
	open_before--;
}

Test(cm_fds, a_descriptor_that_is_closed_is_refused)
{
	struct dofi_cm_fds out = { .n = 1, .fd = { -1 } };

	cr_expect_eq(dofi_cm_fds_send(end[0], "x", 1, &out), -1);
	cr_expect(errno == EBADF);
	cr_expect_eq(out.n, 1);
}

/* Messages of hostile peers */

/* Sends a byte with @n descriptors, more than dofi_cm_fds_send() does. */
static void send_many(int n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE((DOFI_CM_FDS + 1) * sizeof(int))] = { 0 };
	struct iovec iov = { (char[]){ 'x' }, 1 };
	const struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
	int i;

	header->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	for (i = 0; i < n; i++)
		memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &pipes[0], sizeof(int));
	cr_assert_eq(sendmsg(end[0], &msg, 0), 1);
}

/* fini() finds descriptors that stay open. */
Test(cm_fds, more_than_a_message_has_are_closed)
{
	struct dofi_cm_fds in = { 0 };
	char byte;

	send_many(DOFI_CM_FDS + 1);
	cr_assert_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 1);
	cr_expect_eq(in.n, DOFI_CM_FDS);
	dofi_cm_fds_close(&in);
}

/* The descriptors of several reads, before a message is complete. */
Test(cm_fds, those_that_come_later_and_do_not_fit_are_closed)
{
	struct dofi_cm_fds in = { 0 };
	char byte;
	int i;

	send_many(1);
	send_many(DOFI_CM_FDS);
	send_many(DOFI_CM_FDS);
	for (i = 0; i < 3; i++)
		cr_assert_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 1);
	cr_expect_eq(in.n, DOFI_CM_FDS);
	dofi_cm_fds_close(&in);
}

/* A message that has other control data than descriptors. */
Test(cm_fds, what_is_no_descriptor_is_ignored)
{
	struct dofi_cm_fds in = { 0 };
	const int yes = 1;
	char byte;

	cr_assert_eq(setsockopt(end[1], SOL_SOCKET, SO_TIMESTAMP, &yes, sizeof(yes)), 0);
	cr_assert_eq(setsockopt(end[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)), 0);
	cr_assert_eq(send(end[0], "x", 1, 0), 1);
	cr_expect_eq(dofi_cm_fds_receive(end[1], &byte, 1, &in), 1);
	cr_expect_eq(in.n, 0);
}
