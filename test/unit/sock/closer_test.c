/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors are closed on another thread where their close may block. */

#include "sock/linger.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
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
	int i, sockets[2], end[2];

	for (i = 0; i < 100; i++) {
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
		cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
		pass(sockets[0], end[1]);
		dofi_close_socket(sockets[1]);
		await_end(end[0]);
		close(sockets[0]);
	}
}

/* A TCP socket. Its last close blocks for @seconds, as its peer @to reads nothing. */
static int lingering(int *to, int seconds)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct linger linger = { .l_onoff = 1, .l_linger = seconds };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char bytes[65536];

	cr_assert(!bind(listener, (struct sockaddr *)&at, len) && !listen(listener, 1));
	cr_assert(!getsockname(listener, (struct sockaddr *)&at, &len));
	cr_assert(!connect(fd, (struct sockaddr *)&at, len));
	*to = accept(listener, NULL, NULL);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	cr_assert(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	return fd;
}

Test(closer, a_descriptor_whose_close_blocks_delays_no_other_thread)
{
	char bytes[65536];
	int sockets[2], to;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pass(sockets[0], lingering(&to, 600));
	dofi_close_socket(sockets[1]);
	close(sockets[0]);
	/* the close ends once all is read; the end of the stream follows it */
	while (recv(to, bytes, sizeof(bytes), 0) > 0)
		;
	close(to);
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
