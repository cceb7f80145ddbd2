/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM sockets: arrivals, ends, and hostile peers. */

#include "xport/cm/conn.h"

#include "base/env.h"
#include "nomem.h"
#include "cm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(cm, .init = cm_init, .fini = cm_fini, .timeout = 30);

static void close_in(struct dofi_cm_conn *s)
{
	dofi_cm_close(s);
	dofi_cm_close(s);
}

static void close_all(void)
{
	cm_close(cm.passive);
	cm_close(cm.active);
	cm_unlisten();
}

/* Arrivals */

static void exchange(int family)
{
	struct dofi_cm_msg msg = cm_msg(DOFI_CM_REQUEST);

	cr_assert_eq(cm_listen(family), 0);
	msg.data = "data";
	msg.data_size = 4;
	cr_assert_eq(cm_connect(&msg), 0);
	cm_await(1);
	cr_expect_eq(cm.msg.conn_qual, 77);
	cr_expect_eq(cm.msg.data_size, 4);
	cr_expect(!memcmp(cm.data, "data", 4));
	msg.kind = DOFI_CM_ACCEPT;
	cm_send(cm.passive, &msg);
	cm_await(1);
	msg.kind = DOFI_CM_READY;
	cm_send(cm.active, &msg);
	cm_await(1);
	msg.kind = DOFI_CM_BYE;
	msg.last_frame = 99;
	cm_send(cm.active, &msg);
	cm_close(cm.active);
	cm_await(2);
	cr_expect_eq(cm.msg.last_frame, 99);
	cr_expect_eq(cm.passive_err, 0);
	cr_expect_str_eq(cm_trace(), "qaYGE", "%s", cm_trace());
	cm_close(cm.passive);
	cm_unlisten();
}

Test(cm, a_connection_is_made_and_ends)
{
	exchange(AF_INET);
}

Test(cm, a_connection_is_made_and_ends_over_ipv6)
{
	exchange(AF_INET6);
}

Test(cm, a_connection_is_made_over_sockets_that_take_few_bytes)
{
	cm_fault.send_most = 7;
	exchange(AF_INET);
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

/* Descriptors */

static int pipe_fd[2], taken[DOFI_CM_FDS];
static unsigned n_taken;

/* The descriptors are valid only during the call. */
static void take_fds(struct dofi_cm_conn *s)
{
	(void)s;
	for (n_taken = 0; n_taken < cm.msg.n_fds; n_taken++)
		taken[n_taken] = fcntl(cm.msg.fd[n_taken], F_DUPFD_CLOEXEC, 0);
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

static void exchange_fds(enum dofi_cm_kind request, enum dofi_cm_kind answer)
{
	struct dofi_cm_msg msg = cm_msg(request);

	cm.first = request;
	cr_assert_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	cm.on_request = cm.on_message = take_fds;
	cr_assert_eq(cm_listen(AF_UNIX), 0);
	msg.n_fds = 2;
	msg.fd[0] = pipe_fd[0];
	msg.fd[1] = pipe_fd[1];
	cr_assert_eq(cm_connect(&msg), 0);
	cm_await(1);
	cm_settle();
	expect_taken(2);
	msg.kind = answer;
	msg.n_fds = 1;
	cm_send(cm.passive, &msg);
	cm_await(1);
	cm_settle();
	expect_taken(1);
	msg = cm_msg(DOFI_CM_READY);
	cm_send(cm.passive, &msg);
	cm_await(1);
	cm_settle();
	cr_expect_eq(n_taken, 0);
	fds_close(pipe_fd, 2);
	close_all();
}

Test(cm, descriptors_go_with_their_message)
{
	exchange_fds(DOFI_CM_REQUEST, DOFI_CM_ACCEPT);
}

Test(cm, descriptors_go_with_addresses_of_datagram_eps)
{
	exchange_fds(DOFI_CM_DATAGRAM_REQUEST, DOFI_CM_DATAGRAM_ACCEPT);
}

Test(cm, descriptors_go_with_the_first_bytes_that_the_socket_takes)
{
	cm_fault.send_most = 7;
	exchange_fds(DOFI_CM_REQUEST, DOFI_CM_ACCEPT);
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
Test(cm, descriptors_may_come_before_their_message)
{
	const struct dofi_cm_msg ready = cm_msg(DOFI_CM_READY);
	unsigned char buf[DOFI_CM_MAX];
	int fd;

	cr_assert_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	cm.on_message = take_fds;
	cr_assert_eq(cm_listen(AF_UNIX), 0);
	fd = cm_embryo_in();
	put_with_fds(fd, buf, dofi_cm_pack(buf, &ready), pipe_fd, 1);
	cm_await(1);
	cm_put_msg(fd, DOFI_CM_ACCEPT);
	cm_await(1);
	cm_settle();
	expect_taken(1);
	close(fd);
	cm_await(1);
	fds_close(pipe_fd, 2);
	cm_close(cm.passive);
	cm_unlisten();
}

/* cm_fini() checks that. */
Test(cm, descriptors_that_nothing_takes_are_closed)
{
	/* a kind that is closed at once */
	const int event = eventfd(0, EFD_CLOEXEC);
	const int fds[] = { event, event, event, event };
	int fd;

	cr_assert_eq(cm_listen(AF_UNIX), 0);
	fd = cm_embryo_in();
	put_with_fds(fd, "DA", 2, fds, 4);
	put_with_fds(fd, "T", 1, fds, 2);
	close(fd);
	close(event);
	cm_await(1);
	cm_close(cm.passive);
	cm_unlisten();
}

Test(cm, both_know_the_addresses)
{
	const struct dofi_cm_msg accept = cm_msg(DOFI_CM_ACCEPT);

	cm_couple();
	cm_send(cm.passive, &accept);
	cm_await(1);
	cr_expect_eq(port_of(dofi_cm_peer(cm.active)), dofi_cm_listener_port(cm.listener));
	cr_expect_eq(dofi_cm_local_port(cm.passive), dofi_cm_listener_port(cm.listener));
	cr_expect(dofi_cm_local_port(cm.active));
	cr_expect_eq(dofi_cm_local_port(cm.active), port_of(dofi_cm_peer(cm.passive)));
	cr_expect_eq(dofi_cm_peer(cm.passive)->ss_family, AF_INET);
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

Test(cm, sockets_are_tuned)
{
	cm_couple();
	is_tuned(cm_connecting);
	is_tuned(cm_accepted);
	close_all();
}

static void answer_twice(struct dofi_cm_conn *s)
{
	const struct dofi_cm_msg accept = cm_msg(DOFI_CM_ACCEPT);
	const struct dofi_cm_msg bye = cm_msg(DOFI_CM_BYE);

	dofi_cm_send(s, &accept);
	dofi_cm_send(s, &bye);
	dofi_cm_close(s);
}

Test(cm, what_was_sent_arrives_before_the_end)
{
	cm.on_request = answer_twice;
	cm_couple();
	cm_await(3);
	cr_expect_str_eq(cm_trace(), "qage");
	cr_expect_eq(cm.active_err, 0);
	cm_close(cm.active);
	cm_unlisten();
}

#define PAIRS 100

/* Sent byte by byte, and then all at once with a cut within a message. */
Test(cm, messages_may_come_in_pieces_and_in_heaps)
{
	struct dofi_cm_msg msg = cm_msg(DOFI_CM_REQUEST);
	unsigned char buf[DOFI_CM_MAX], heap[PAIRS * 32];
	size_t n, i, cut;
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo();
	n = dofi_cm_pack(buf, &msg);
	for (i = 0; i < n; i++) {
		cm_put(fd, buf + i, 1);
		cm_settle();
		cr_expect_eq(strlen(cm_trace()), i + 1 == n);
	}
	cm_await(1);
	for (i = n = 0; i < 2 * PAIRS; i++) {
		msg.kind = i % 2 ? DOFI_CM_BYE : DOFI_CM_READY;
		msg.last_frame = i;
		cut = dofi_cm_pack(buf, &msg);
		memcpy(heap + n, buf, cut);
		n += cut;
	}
	cut = DOFI_CM_HEADER + 6;
	cm_put(fd, heap, cut);
	cm_await(1);
	cm_put(fd, heap + cut, n - cut);
	cm_await(2 * PAIRS - 1);
	for (i = 0; i < PAIRS; i++)
		cr_expect(!strncmp(cm_trace() + 1 + 2 * i, "YG", 2));
	cr_expect_eq(cm.msg.last_frame, 2 * PAIRS - 1);
	close(fd);
	cm_await(1);
	cr_expect_eq(cm.passive_err, 0);
	cm_close(cm.passive);
	cm_unlisten();
}

/* Peers that read nothing */

/* An embryo with an accepted request, and small socket buffers at both ends. */
static int narrow_embryo(void)
{
	int small = 2048, fd;

	cm_fault.small = small;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	return fd;
}

/* Queued bytes are sent when there is room, without a further call. */
Test(cm, what_waits_is_sent_later)
{
	const struct dofi_cm_msg reject = cm_msg(DOFI_CM_REJECT), ready = cm_msg(DOFI_CM_READY);
	const int fd = narrow_embryo();
	unsigned char buf[4096];
	struct dofi_cm_msg msg = { 0 };
	size_t len = 0;
	ssize_t n;

	while (!cm_full_sends)
		cm_send(cm.passive, &ready);
	cm_send(cm.passive, &reject);
	while (msg.kind != DOFI_CM_REJECT) {
		n = recv(fd, buf + len, sizeof(buf) - len, 0);
		cr_assert(n > 0);
		for (len += n; (n = dofi_cm_unpack(buf, len, &msg)) > 0; len -= n)
			memmove(buf, buf + n, len - n);
	}
	cm_send(cm.passive, &ready);
	cr_expect_eq(recv(fd, buf, DOFI_CM_HEADER, MSG_WAITALL), DOFI_CM_HEADER);
	cr_expect_eq(buf[5], DOFI_CM_READY);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

Test(cm, a_peer_that_reads_nothing_is_given_up)
{
	const struct dofi_cm_msg accept = cm_msg(DOFI_CM_ACCEPT);
	int fd = narrow_embryo(), i;

	for (i = 0; i < 1000 && cm.passive_err == 1; i++)
		cm_send(cm.passive, &accept);
	cm_await(1);
	cr_expect_eq(cm.passive_err, -ENOBUFS);
	cr_expect_str_eq(cm_trace(), "qE");
	cm_send(cm.passive, &accept);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

/* How connections end */

static void ends(int fd, int err, const char *trace)
{
	cm_await(1);
	cr_expect_eq(cm.passive_err, err, "%d", cm.passive_err);
	cr_expect_str_eq(cm_trace(), trace);
	cm_settle();
	cr_expect_str_eq(cm_trace(), trace);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

Test(cm, a_peer_may_leave)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	shutdown(fd, SHUT_WR);
	ends(fd, 0, "qE");
}

Test(cm, a_peer_may_leave_within_a_message)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put(fd, "DATS", 4);
	shutdown(fd, SHUT_WR);
	ends(fd, -ECONNRESET, "qE");
}

/* A whole message needs no memory, but a part of a message must be stored. */
Test(cm, without_memory_a_part_of_a_message_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	nomem_after(0);
	cm_put_msg(fd, DOFI_CM_READY);
	cm_await(1);
	cm_put(fd, "DATS", 4);
	ends(fd, -ENOMEM, "qYE");
	cr_expect(nomem_failed());
}

static void unsent(void *arg)
{
	const struct dofi_cm_msg ready = cm_msg(DOFI_CM_READY);

	(void)arg;
	cm_fault.send = EAGAIN;
	nomem_after(0);
	dofi_cm_send(cm.passive, &ready);
	cr_expect(nomem_failed());
}

Test(cm, without_memory_what_is_not_taken_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_do(unsent, NULL);
	ends(fd, -ENOMEM, "qE");
}

Test(cm, a_connection_may_be_reset)
{
	const struct linger hard = { .l_onoff = 1 };
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	ends(dup(0), -ECONNRESET, "qE");
}

Test(cm, garbage_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put(fd, "GET / HTTP/1.0\r\n\r\n", 18);
	ends(fd, -EPROTO, "qE");
}

Test(cm, garbage_behind_messages_ends_it_after_them)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);
	unsigned char buf[2 * DOFI_CM_MAX];
	size_t n;
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo();
	n = dofi_cm_pack(buf, &request);
	memset(buf + n, 0xa5, 500);
	cm_put(fd, buf, n + 500);
	cm_await(1);
	ends(fd, -EPROTO, "qE");
}

Test(cm, another_version_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put(fd, "DATS\x10\x06\0\0", 8);
	ends(fd, -EPROTONOSUPPORT, "qE");
}

Test(cm, a_second_request_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put_msg(fd, DOFI_CM_READY);
	cm_await(1);
	cm_put_msg(fd, DOFI_CM_REQUEST);
	ends(fd, -EPROTO, "qYE");
}

Test(cm, a_second_request_of_another_kind_ends_it)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put_msg(fd, DOFI_CM_DATAGRAM_REQUEST);
	ends(fd, -EPROTO, "qE");
}

/* Addresses are exchanged in one message each way. */
Test(cm, a_datagram_request_is_answered)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_DATAGRAM_REQUEST);
	struct dofi_cm_msg accept = cm_msg(DOFI_CM_DATAGRAM_ACCEPT);

	cm.first = DOFI_CM_DATAGRAM_REQUEST;
	accept.number = 4711;
	accept.data = "yes";
	accept.data_size = 3;
	cr_assert_eq(cm_listen(AF_INET), 0);
	cr_assert_eq(cm_connect(&request), 0);
	cm_await(1);
	cm_send(cm.passive, &accept);
	cm_await(1);
	cr_expect_str_eq(cm_trace(), "qd");
	cr_expect_eq(cm.msg.number, 4711);
	cr_expect(cm.msg.data_size == 3 && !memcmp(cm.msg.data, "yes", 3));
	cm_close(cm.active);
	cm_await(1);
	cm_close(cm.passive);
	cm_unlisten();
}

/* The errno of a failed write is reported, after the messages that the peer sent before. */
static void failed_write(void *arg)
{
	const struct dofi_cm_msg ready = cm_msg(DOFI_CM_READY);

	cm_put_msg(*(int *)arg, DOFI_CM_BYE);
	cm_fault.send = ETIMEDOUT;
	dofi_cm_send(cm.passive, &ready);
}

Test(cm, what_was_said_before_a_failed_write_is_heard)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_do(failed_write, &fd);
	cm_await(1);
	ends(fd, -ETIMEDOUT, "qGE");
}

/* The write reports the reset, and the read then finds an orderly end. */
static void reset_and_write(void *arg)
{
	const struct dofi_cm_msg ready = cm_msg(DOFI_CM_READY);

	close(*(int *)arg);
	dofi_cm_send(cm.passive, &ready);
}

Test(cm, a_reset_that_a_write_meets_is_reported)
{
	const struct linger hard = { .l_onoff = 1 };
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	cm_do(reset_and_write, &fd);
	ends(dup(0), -ECONNRESET, "qE");
}

/* Connecting fails */

static void cannot_connect(int err)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);

	cr_assert_eq(cm_connect(&request), 0);
	cm_await(1);
	cr_expect_eq(cm.active_err, err, "%d", cm.active_err);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "e");
	cm_close(cm.active);
}

Test(cm, no_listener)
{
	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_unlisten();
	cannot_connect(-ECONNREFUSED);
}

Test(cm, no_way_leads_there)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&cm.address;

	in->sin_family = AF_INET;
	in->sin_port = htons(1);
	in->sin_addr.s_addr = htonl(INADDR_BROADCAST);
	cannot_connect(-ENETUNREACH);
}

Test(cm, a_socket_does_not_connect_to_itself)
{
	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_unlisten();
	cm_fault.connect_to_self = true;
	cannot_connect(-ECONNREFUSED);
}

static void connect_and_close(void *arg)
{
	struct sockaddr *address = (struct sockaddr *)&cm.address;
	static const struct dofi_cm_ops none;
	struct dofi_cm_conn *s;

	cr_assert_eq(dofi_cm_connect(&cm.progress, address, NULL, &none, NULL, arg, &s), 0);
	dofi_cm_close(s);
}

Test(cm, a_side_may_be_closed_before_it_is_connected)
{
	struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);

	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_do(connect_and_close, &request);
	cm_unlisten();
	/* and before ended() reports that it cannot connect */
	cm_do(connect_and_close, &request);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "");
}

Test(cm, there_may_be_no_room_for_another)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);
	int n;

	cr_assert_eq(cm_listen(AF_INET), 0);
	nomem_after(0);
	n = cm_connect(&request);
	cr_expect(nomem_failed());
	cr_expect_eq(n, -ENOMEM);
	cm_fault.epoll_add = ENOSPC;
	cr_expect_eq(cm_connect(&request), -ENOSPC);
	cm_unlisten();
}

/* Closing in any callback */

Test(cm, a_side_may_be_closed_at_its_request)
{
	int fd;

	cm.on_request = close_in;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo();
	cm_put_msg(fd, DOFI_CM_REQUEST);
	cm_put_msg(fd, DOFI_CM_READY);
	cm_await(1);
	cm_end_of(fd);
	cr_expect_str_eq(cm_trace(), "q");
	cm_unlisten();
	close(fd);
}

Test(cm, a_side_may_be_closed_at_a_message)
{
	unsigned char two[2 * DOFI_CM_HEADER];
	unsigned char buf[DOFI_CM_MAX];
	const struct dofi_cm_msg ready = cm_msg(DOFI_CM_READY);
	int fd;

	dofi_cm_pack(buf, &ready);
	memcpy(two, buf, DOFI_CM_HEADER);
	memcpy(two + DOFI_CM_HEADER, buf, DOFI_CM_HEADER);
	cm.on_message = close_in;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put(fd, two, sizeof(two));
	cm_await(1);
	cm_end_of(fd);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "qY");
	cm_unlisten();
	close(fd);
}

Test(cm, a_side_may_be_closed_at_its_end)
{
	int fd;

	cm.on_ended = close_in;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_put(fd, "x", 1);
	cm_await(1);
	cm_end_of(fd);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "qE");
	cm_unlisten();
	close(fd);
}

Test(cm, nothing_may_be_closed)
{
	dofi_cm_close(NULL);
}

static struct dofi_cm_conn *two[2];

static void close_other(struct dofi_cm_conn *s)
{
	struct dofi_cm_conn **other = &two[s == two[0]];

	dofi_cm_close(*other);
	*other = NULL;
}

/* Both have a message to read in one batch of the progress thread. */
static void put_both(void *arg)
{
	int *fds = arg, i;

	for (i = 0; i < 2; i++)
		cm_put_msg(fds[i], DOFI_CM_READY);
}

Test(cm, a_connection_with_a_pending_event_may_be_closed)
{
	int fds[2], i;

	cr_assert_eq(cm_listen(AF_INET), 0);
	for (i = 0; i < 2; i++) {
		fds[i] = cm_embryo_in();
		two[i] = cm.passive;
	}
	cm.on_message = close_other;
	cm_do(put_both, fds);
	cm_await(1);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "qqY");
	cm_close(two[0]);
	cm_close(two[1]);
	cm_unlisten();
	close(fds[0]);
	close(fds[1]);
}
