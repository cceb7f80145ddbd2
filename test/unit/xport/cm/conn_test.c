/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM sockets: what arrives, how they end, and what hostile peers can do. */

#include "xport/cm/conn.h"

#include "base/env.h"
#include "nomem.h"
#include "side.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(side, .init = side_init, .fini = side_fini, .timeout = 30);

static void close_in(struct dofi_side *s)
{
	dofi_side_close(s);
	dofi_side_close(s);
}

static void close_all(void)
{
	side_close(side.passive);
	side_close(side.active);
	side_unlisten();
}

/* What arrives */

static void exchange(int family)
{
	struct dofi_side_msg msg = side_msg(DOFI_SIDE_REQUEST);

	cr_assert_eq(side_listen(family), 0);
	msg.data = "data";
	msg.data_size = 4;
	cr_assert_eq(side_connect(&msg), 0);
	side_await(1);
	cr_expect_eq(side.msg.conn_qual, 77);
	cr_expect_eq(side.msg.data_size, 4);
	cr_expect(!memcmp(side.data, "data", 4));
	msg.kind = DOFI_SIDE_ACCEPT;
	side_send(side.passive, &msg);
	side_await(1);
	msg.kind = DOFI_SIDE_READY;
	side_send(side.active, &msg);
	side_await(1);
	msg.kind = DOFI_SIDE_BYE;
	msg.last_frame = 99;
	side_send(side.active, &msg);
	side_close(side.active);
	side_await(2);
	cr_expect_eq(side.msg.last_frame, 99);
	cr_expect_eq(side.passive_err, 0);
	cr_expect_str_eq(side_trace(), "qaYGE", "%s", side_trace());
	side_close(side.passive);
	side_unlisten();
}

Test(side, a_connection_is_made_and_ends)
{
	exchange(AF_INET);
}

Test(side, so_it_is_by_ipv6)
{
	exchange(AF_INET6);
}

Test(side, so_it_is_if_sockets_take_little)
{
	side_fault.send_most = 7;
	exchange(AF_INET);
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

/* Descriptors */

static int pipe_fd[2], taken[DOFI_SIDE_FDS];
static unsigned n_taken;

/* The descriptors are valid only during the call. */
static void take_fds(struct dofi_side *s)
{
	(void)s;
	for (n_taken = 0; n_taken < side.msg.n_fds; n_taken++)
		taken[n_taken] = fcntl(side.msg.fd[n_taken], F_DUPFD_CLOEXEC, 0);
}

static void fds_close(int *fd, unsigned n)
{
	while (n)
		close(fd[--n]);
}

static void expect_taken(unsigned n)
{
	char byte = 0;

	cr_assert_eq(n_taken, n);
	cr_assert_eq(write(pipe_fd[1], "x", 1), 1);
	cr_expect_eq(read(taken[0], &byte, 1), 1);
	cr_expect_eq(byte, 'x');
	fds_close(taken, n_taken);
}

static void exchange_fds(void)
{
	struct dofi_side_msg msg = side_msg(DOFI_SIDE_REQUEST);

	cr_assert_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	side.on_request = side.on_message = take_fds;
	cr_assert_eq(side_listen(AF_UNIX), 0);
	msg.n_fds = 2;
	msg.fd[0] = pipe_fd[0];
	msg.fd[1] = pipe_fd[1];
	cr_assert_eq(side_connect(&msg), 0);
	side_await(1);
	side_settle();
	expect_taken(2);
	msg.kind = DOFI_SIDE_ACCEPT;
	msg.n_fds = 1;
	side_send(side.passive, &msg);
	side_await(1);
	side_settle();
	expect_taken(1);
	msg = side_msg(DOFI_SIDE_READY);
	side_send(side.passive, &msg);
	side_await(1);
	side_settle();
	cr_expect_eq(n_taken, 0);
	fds_close(pipe_fd, 2);
	close_all();
}

Test(side, descriptors_go_with_their_message)
{
	exchange_fds();
}

Test(side, descriptors_go_with_the_first_bytes_that_the_socket_takes)
{
	side_fault.send_most = 7;
	exchange_fds();
}

static void put_with_fds(int fd, const void *bytes, size_t len, const int *fds, unsigned n)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	cr_assert_eq(sendmsg(fd, &msg, MSG_NOSIGNAL), (ssize_t)len);
}

/* If the peer's socket was full, the descriptors are sent with bytes that were queued before. */
Test(side, descriptors_may_come_before_their_message)
{
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY);
	unsigned char buf[DOFI_SIDE_MAX];
	int fd;

	cr_assert_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	side.on_message = take_fds;
	cr_assert_eq(side_listen(AF_UNIX), 0);
	fd = side_stranger_in();
	put_with_fds(fd, buf, dofi_side_pack(buf, &ready), pipe_fd, 1);
	side_await(1);
	side_put_msg(fd, DOFI_SIDE_ACCEPT);
	side_await(1);
	side_settle();
	expect_taken(1);
	close(fd);
	side_await(1);
	fds_close(pipe_fd, 2);
	side_close(side.passive);
	side_unlisten();
}

/* side_fini() checks that. */
Test(side, descriptors_that_nothing_takes_are_closed)
{
	const int fds[] = { STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO };
	int fd;

	cr_assert_eq(side_listen(AF_UNIX), 0);
	fd = side_stranger_in();
	put_with_fds(fd, "DA", 2, fds, 4);
	put_with_fds(fd, "T", 1, fds, 2);
	close(fd);
	side_await(1);
	side_close(side.passive);
	side_unlisten();
}

Test(side, both_know_the_addresses)
{
	const struct dofi_side_msg accept = side_msg(DOFI_SIDE_ACCEPT);

	side_couple();
	side_send(side.passive, &accept);
	side_await(1);
	cr_expect_eq(port_of(dofi_side_peer(side.active)), dofi_side_port(side.listener));
	cr_expect_eq(port_of(dofi_side_local(side.passive)), dofi_side_port(side.listener));
	cr_expect(port_of(dofi_side_local(side.active)));
	cr_expect_eq(port_of(dofi_side_local(side.active)), port_of(dofi_side_peer(side.passive)));
	cr_expect_eq(dofi_side_peer(side.passive)->ss_family, AF_INET);
	close_all();
}

static void is_tuned(int fd)
{
	int v = 0;
	socklen_t len = sizeof(v);

	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_expect(!getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &len) && v);
	v = 0;
	cr_expect(!getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, &len) && v);
	cr_expect(!getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &v, &len));
	cr_expect_eq(v, 2 * dofi_settings.keepalive_s * 1000);
}

Test(side, sockets_are_tuned)
{
	side_couple();
	is_tuned(side_connecting);
	is_tuned(side_accepted);
	close_all();
}

static void answer_twice(struct dofi_side *s)
{
	const struct dofi_side_msg accept = side_msg(DOFI_SIDE_ACCEPT);
	const struct dofi_side_msg bye = side_msg(DOFI_SIDE_BYE);

	dofi_side_send(s, &accept);
	dofi_side_send(s, &bye);
	dofi_side_close(s);
}

Test(side, what_was_sent_arrives_before_the_end)
{
	side.on_request = answer_twice;
	side_couple();
	side_await(3);
	cr_expect_str_eq(side_trace(), "qage");
	cr_expect_eq(side.active_err, 0);
	side_close(side.active);
	side_unlisten();
}

#define PAIRS 100

/* Sent byte by byte, and then all at once with a cut within a message. */
Test(side, messages_may_come_in_pieces_and_in_heaps)
{
	struct dofi_side_msg msg = side_msg(DOFI_SIDE_REQUEST);
	unsigned char buf[DOFI_SIDE_MAX], heap[PAIRS * 32];
	size_t n, i, cut;
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger();
	n = dofi_side_pack(buf, &msg);
	for (i = 0; i < n; i++) {
		side_put(fd, buf + i, 1);
		side_settle();
		cr_expect_eq(strlen(side_trace()), i + 1 == n);
	}
	side_await(1);
	for (i = n = 0; i < 2 * PAIRS; i++) {
		msg.kind = i % 2 ? DOFI_SIDE_BYE : DOFI_SIDE_READY;
		msg.last_frame = i;
		cut = dofi_side_pack(buf, &msg);
		memcpy(heap + n, buf, cut);
		n += cut;
	}
	cut = DOFI_SIDE_HEADER + 6;
	side_put(fd, heap, cut);
	side_await(1);
	side_put(fd, heap + cut, n - cut);
	side_await(2 * PAIRS - 1);
	for (i = 0; i < PAIRS; i++)
		cr_expect(!strncmp(side_trace() + 1 + 2 * i, "YG", 2));
	cr_expect_eq(side.msg.last_frame, 2 * PAIRS - 1);
	close(fd);
	side_await(1);
	cr_expect_eq(side.passive_err, 0);
	side_close(side.passive);
	side_unlisten();
}

#define RINGS 2000

static void *ring(void *arg)
{
	int i;

	for (i = 0; i < RINGS; i++)
		dofi_side_ring(arg);
	return NULL;
}

/* Two threads send BELLs and a third sends messages, which must not be interleaved. */
Test(side, any_thread_rings)
{
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY), bye = side_msg(DOFI_SIDE_BYE);
	pthread_t threads[2];
	const char *trace;
	size_t n, bells;
	int i;

	side_couple();
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, ring, side.active);
	for (i = 0; i < 50; i++)
		side_send(side.active, &ready);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	side_send(side.active, &bye);
	side_close(side.active);
	while (side.passive_err == 1)
		side_await(1);
	cr_expect_eq(side.passive_err, 0);
	trace = side_trace();
	n = strlen(trace);
	cr_expect_str_eq(trace + n - 2, "GE");
	for (i = 0, bells = 0; trace[i]; i++)
		bells += trace[i] == 'B';
	cr_expect(bells && bells <= 2 * RINGS);
	cr_expect_eq(n, 1 + bells + 50 + 2);
	side_close(side.passive);
	side_unlisten();
}

/* Peers that read nothing */

/* A stranger with an accepted request, and small socket buffers at both ends. */
static int narrow_stranger(void)
{
	int small = 2048, fd;

	side_fault.small = small;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	return fd;
}

/* Sends more BELLs than the kernel takes. */
static void ring_until_full(void)
{
	int i;

	for (i = 0; i < 20000; i++)
		dofi_side_ring(side.passive);
}

/* Counts the messages until the end. @last is the kind of the last message. */
static size_t read_all(int fd, int *last)
{
	static unsigned char buf[1 << 20];
	struct dofi_side_msg msg = { 0 };
	size_t len = 0, at = 0, count = 0;
	ssize_t n;

	while ((n = recv(fd, buf + len, sizeof(buf) - len, 0)) > 0)
		len += n;
	cr_expect_eq(n, 0);
	for (; (n = dofi_side_unpack(buf + at, len - at, &msg)) > 0; at += n)
		count++;
	cr_expect_eq(at, len, "bytes that are no message");
	*last = msg.kind;
	return count;
}

Test(side, bells_are_dropped_but_messages_wait)
{
	const struct dofi_side_msg bye = side_msg(DOFI_SIDE_BYE);
	int fd = narrow_stranger(), last;
	size_t n;

	ring_until_full();
	side_send(side.passive, &bye);
	side_close(side.passive);
	side_unlisten();
	n = read_all(fd, &last);
	cr_expect(n > 1 && n < 20000, "%zu", n);
	cr_expect_eq(last, DOFI_SIDE_BYE);
	close(fd);
}

/* Queued bytes are sent when there is room, without a further call. */
Test(side, what_waits_is_sent_later)
{
	const struct dofi_side_msg reject = side_msg(DOFI_SIDE_REJECT);
	int fd = narrow_stranger();
	unsigned char buf[4096];
	struct dofi_side_msg msg = { 0 };
	size_t len = 0;
	ssize_t n;

	ring_until_full();
	side_send(side.passive, &reject);
	while (msg.kind != DOFI_SIDE_REJECT) {
		n = recv(fd, buf + len, sizeof(buf) - len, 0);
		cr_assert(n > 0);
		for (len += n; (n = dofi_side_unpack(buf, len, &msg)) > 0; len -= n)
			memmove(buf, buf + n, len - n);
	}
	/* now there is room for a BELL */
	dofi_side_ring(side.passive);
	cr_expect_eq(recv(fd, buf, DOFI_SIDE_HEADER, MSG_WAITALL), DOFI_SIDE_HEADER);
	cr_expect_eq(buf[5], DOFI_SIDE_BELL);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

Test(side, who_takes_nothing_is_given_up)
{
	const struct dofi_side_msg accept = side_msg(DOFI_SIDE_ACCEPT);
	int fd = narrow_stranger(), i;

	for (i = 0; i < 1000 && side.passive_err == 1; i++)
		side_send(side.passive, &accept);
	side_await(1);
	cr_expect_eq(side.passive_err, -ENOBUFS);
	cr_expect_str_eq(side_trace(), "qE");
	side_send(side.passive, &accept);
	dofi_side_ring(side.passive);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

/* How connections end */

static void ends(int fd, int err, const char *trace)
{
	side_await(1);
	cr_expect_eq(side.passive_err, err, "%d", side.passive_err);
	cr_expect_str_eq(side_trace(), trace);
	side_settle();
	cr_expect_str_eq(side_trace(), trace);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

Test(side, a_peer_may_leave)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	shutdown(fd, SHUT_WR);
	ends(fd, 0, "qE");
}

Test(side, a_peer_may_leave_within_a_message)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put(fd, "DATS", 4);
	shutdown(fd, SHUT_WR);
	ends(fd, -ECONNRESET, "qE");
}

/* A whole message needs no memory, but a part of a message must be stored. */
Test(side, without_memory_a_part_of_a_message_ends_it)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	nomem_after(0);
	side_put_msg(fd, DOFI_SIDE_READY);
	side_await(1);
	side_put(fd, "DATS", 4);
	ends(fd, -ENOMEM, "qYE");
	cr_expect(nomem_failed());
}

static void unsent(void *arg)
{
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY);

	(void)arg;
	side_fault.send = EAGAIN;
	nomem_after(0);
	dofi_side_send(side.passive, &ready);
	cr_expect(nomem_failed());
}

Test(side, without_memory_what_is_not_taken_ends_it)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_do(unsent, NULL);
	ends(fd, -ENOMEM, "qE");
}

Test(side, a_connection_may_be_reset)
{
	const struct linger hard = { .l_onoff = 1 };
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	ends(dup(0), -ECONNRESET, "qE");
}

Test(side, garbage_ends_it)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put(fd, "GET / HTTP/1.0\r\n\r\n", 18);
	ends(fd, -EPROTO, "qE");
}

Test(side, garbage_behind_messages_ends_it_after_them)
{
	const struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);
	unsigned char buf[2 * DOFI_SIDE_MAX];
	size_t n;
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger();
	n = dofi_side_pack(buf, &request);
	memset(buf + n, 0xa5, 500);
	side_put(fd, buf, n + 500);
	side_await(1);
	ends(fd, -EPROTO, "qE");
}

Test(side, another_version_ends_it)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put(fd, "DATS\x10\x06\0\0", 8);
	ends(fd, -EPROTONOSUPPORT, "qE");
}

Test(side, a_second_request_ends_it)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put_msg(fd, DOFI_SIDE_READY);
	side_await(1);
	side_put_msg(fd, DOFI_SIDE_REQUEST);
	ends(fd, -EPROTO, "qYE");
}

/* The errno of a failed write is reported, after the messages that the peer sent before. */
static void failed_write(void *arg)
{
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY);

	side_put_msg(*(int *)arg, DOFI_SIDE_BYE);
	side_fault.send = ETIMEDOUT;
	dofi_side_send(side.passive, &ready);
}

Test(side, what_was_said_before_a_failed_write_is_heard)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_do(failed_write, &fd);
	side_await(1);
	ends(fd, -ETIMEDOUT, "qGE");
}

/* The write reports the reset, and the read then finds an orderly end. */
static void reset_and_write(void *arg)
{
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY);

	close(*(int *)arg);
	dofi_side_send(side.passive, &ready);
}

Test(side, a_reset_that_a_write_meets_is_told)
{
	const struct linger hard = { .l_onoff = 1 };
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	side_do(reset_and_write, &fd);
	ends(dup(0), -ECONNRESET, "qE");
}

/* Connecting fails */

static void cannot_connect(int err)
{
	const struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);

	cr_assert_eq(side_connect(&request), 0);
	side_await(1);
	cr_expect_eq(side.active_err, err, "%d", side.active_err);
	side_settle();
	cr_expect_str_eq(side_trace(), "e");
	side_close(side.active);
}

Test(side, nobody_listens)
{
	cr_assert_eq(side_listen(AF_INET), 0);
	side_unlisten();
	cannot_connect(-ECONNREFUSED);
}

Test(side, no_way_leads_there)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&side.address;

	in->sin_family = AF_INET;
	in->sin_port = htons(1);
	in->sin_addr.s_addr = htonl(INADDR_BROADCAST);
	cannot_connect(-ENETUNREACH);
}

Test(side, nobody_finds_himself)
{
	cr_assert_eq(side_listen(AF_INET), 0);
	side_unlisten();
	side_fault.connect_to_self = true;
	cannot_connect(-ECONNREFUSED);
}

static void connect_and_close(void *arg)
{
	struct sockaddr *address = (struct sockaddr *)&side.address;
	static const struct dofi_side_ops none;
	struct dofi_side *s;

	cr_assert_eq(dofi_side_connect(&side.progress, address, &none, NULL, arg, &s), 0);
	dofi_side_close(s);
}

Test(side, a_side_may_be_closed_before_it_is_connected)
{
	struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);

	cr_assert_eq(side_listen(AF_INET), 0);
	side_do(connect_and_close, &request);
	side_unlisten();
	/* and before ended() reports that it cannot connect */
	side_do(connect_and_close, &request);
	side_settle();
	cr_expect_str_eq(side_trace(), "");
}

Test(side, there_may_be_no_room_for_another)
{
	const struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);
	int n;

	cr_assert_eq(side_listen(AF_INET), 0);
	nomem_after(0);
	n = side_connect(&request);
	cr_expect(nomem_failed());
	cr_expect_eq(n, -ENOMEM);
	side_fault.epoll_add = ENOSPC;
	cr_expect_eq(side_connect(&request), -ENOSPC);
	side_unlisten();
}

/* Closing in any callback */

Test(side, a_side_may_be_closed_at_its_request)
{
	int fd;

	side.on_request = close_in;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger();
	side_put_msg(fd, DOFI_SIDE_REQUEST);
	side_put_msg(fd, DOFI_SIDE_READY);
	side_await(1);
	side_end_of(fd);
	cr_expect_str_eq(side_trace(), "q");
	side_unlisten();
	close(fd);
}

Test(side, a_side_may_be_closed_at_a_message)
{
	unsigned char two[2 * DOFI_SIDE_HEADER];
	unsigned char buf[DOFI_SIDE_MAX];
	const struct dofi_side_msg ready = side_msg(DOFI_SIDE_READY);
	int fd;

	dofi_side_pack(buf, &ready);
	memcpy(two, buf, DOFI_SIDE_HEADER);
	memcpy(two + DOFI_SIDE_HEADER, buf, DOFI_SIDE_HEADER);
	side.on_message = close_in;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put(fd, two, sizeof(two));
	side_await(1);
	side_end_of(fd);
	side_settle();
	cr_expect_str_eq(side_trace(), "qY");
	side_unlisten();
	close(fd);
}

Test(side, a_side_may_be_closed_at_its_end)
{
	int fd;

	side.on_ended = close_in;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_put(fd, "x", 1);
	side_await(1);
	side_end_of(fd);
	side_settle();
	cr_expect_str_eq(side_trace(), "qE");
	side_unlisten();
	close(fd);
}

Test(side, nothing_may_be_closed)
{
	dofi_side_close(NULL);
}

static struct dofi_side *two[2];

static void close_other(struct dofi_side *s)
{
	struct dofi_side **other = &two[s == two[0]];

	dofi_side_close(*other);
	*other = NULL;
}

/* Both have a message to read in one batch of the progress thread. */
static void put_both(void *arg)
{
	int *fds = arg, i;

	for (i = 0; i < 2; i++)
		side_put_msg(fds[i], DOFI_SIDE_READY);
}

Test(side, a_side_that_is_about_to_be_told_may_be_closed)
{
	int fds[2], i;

	cr_assert_eq(side_listen(AF_INET), 0);
	for (i = 0; i < 2; i++) {
		fds[i] = side_stranger_in();
		two[i] = side.passive;
	}
	side.on_message = close_other;
	side_do(put_both, fds);
	side_await(1);
	side_settle();
	cr_expect_str_eq(side_trace(), "qqY");
	side_close(two[0]);
	side_close(two[1]);
	side_unlisten();
	close(fds[0]);
	close(fds[1]);
}
