/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors are closed on another thread where their close may block. */

#include "sock/linger.h"

#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(closer, .timeout = 30);

/* Returns when every writing end of the pipe @fd is closed. */
static void await_end(int fd)
{
	char byte;

	cr_expect_eq(read(fd, &byte, 1), 0);
	close(fd);
}

Test(closer, descriptors_are_closed)
{
	int i, end[2];

	for (i = 0; i < 100; i++) {
		cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
		dofi_close_apart(end[1]);
		await_end(end[0]);
	}
}

Test(closer, a_descriptor_that_is_closed_is_not_logged)
{
	struct capture capture;
	int end[2];

	dofi_log_max = DOFI_DEBUG;
	cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
	capture_begin(&capture);
	dofi_close_apart(end[1]);
	cr_expect_str_eq(capture_end(&capture), "");
	await_end(end[0]);
}

/* Passes @fd over @socket with one byte, and closes it here. */
static void pass(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	cr_assert_eq(sendmsg(socket, &msg, 0), 1);
	close(fd);
}

Test(closer, a_socket_with_unread_descriptors_is_closed_with_them)
{
	int sockets[2], end[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
	pass(sockets[0], end[1]);
	dofi_close_socket(sockets[1]);
	await_end(end[0]);
	close(sockets[0]);
}

Test(closer, a_socket_is_closed_at_once_if_all_was_read)
{
	int sockets[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	dofi_close_socket(sockets[1]);
	cr_expect_eq(fcntl(sockets[1], F_GETFD), -1);
	close(sockets[0]);
}

/* A forked child may have the socket as well. */
Test(closer, the_peer_sees_the_end_although_another_descriptor_of_the_socket_is_open)
{
	int sockets[2], other;
	char byte;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	other = dup(sockets[1]);
	dofi_close_socket(sockets[1]);
	cr_expect_eq(recv(sockets[0], &byte, 1, MSG_DONTWAIT), 0);
	close(other);
	close(sockets[0]);
}

Test(closer, only_a_unix_socket_is_local)
{
	const int local = socket(AF_UNIX, SOCK_STREAM, 0);
	const int network = socket(AF_INET, SOCK_STREAM, 0);

	cr_expect(dofi_socket_is_local(local));
	cr_expect(!dofi_socket_is_local(network));
	close(local);
	close(network);
	cr_expect(!dofi_socket_is_local(local), "it is no descriptor");
}
