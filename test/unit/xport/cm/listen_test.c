/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listening for CM sockets: ports, and how little embryos can do. */

#include "xport/cm/listen.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture.h"
#include "nomem.h"
#include "cm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 60000
#define SHORT_MS 30
#define ENOUGH_MS 250			/* for a thread that has nothing else to do */

static struct capture capture;

static void init(void)
{
	cm_init();
	cm.patience_ms = LONG_MS;
	dofi_log_max = DOFI_INFO;
	capture_begin(&capture);
}

/* The number of times @text is in the log. */
static unsigned logged(const char *text)
{
	static char log[1 << 16];
	ssize_t n = pread(capture.file, log, sizeof(log) - 1, 0);
	unsigned count = 0;
	const char *p;

	log[n > 0 ? n : 0] = 0;
	for (p = log; (p = strstr(p, text)); p++)
		count++;
	return count;
}

static void fini(void)
{
	capture_end(&capture);
	cm_fini();
}

TestSuite(cm_listen, .init = init, .fini = fini, .timeout = 30);

/* Ports */

Test(cm_listen, a_port_that_is_taken_is_reported)
{
	struct dofi_cm_listener *first;

	cr_assert_eq(cm_listen(AF_INET), 0);
	cr_expect(dofi_cm_listener_port(cm.listener));
	first = cm.listener;
	cr_expect_eq(cm_listen(AF_INET), -EADDRINUSE);
	cr_expect_eq(cm.listener, first);
	cm_unlisten();
}

static long first_free_port(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
	long port = 1024;

	if (f && fscanf(f, "%ld", &port) != 1)
		port = 1024;
	if (f)
		fclose(f);
	return port;
}

Test(cm_listen, a_port_without_permission_is_reported)
{
	uid_t self = geteuid();
	int ret;

	if (!self)
		cr_assert_eq(seteuid(65534), 0);
	((struct sockaddr_in *)&cm.address)->sin_port = htons(1);
	ret = cm_listen(AF_INET);
	cr_assert_eq(seteuid(self), 0);
	cr_expect_eq(ret, first_free_port() > 1 ? -EACCES : 0, "%d", ret);
	if (!ret)
		cm_unlisten();
}

Test(cm_listen, both_families_have_a_port_each)
{
	struct dofi_cm_listener *first;

	cm.wildcard = true;
	cr_assert_eq(cm_listen(AF_INET), 0);
	first = cm.listener;
	cr_expect_eq(cm_listen(AF_INET6), 0);
	cr_expect_eq(dofi_cm_listener_port(first), dofi_cm_listener_port(cm.listener));
	cm_unlisten();
	cm.listener = first;
	cm_unlisten();
}

Test(cm_listen, a_port_can_be_had_again_at_once)
{
	int fd;

	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cm_close(cm.passive);	/* the closed connection still uses the port at our end */
	cm_unlisten();
	cr_expect_eq(cm_listen(AF_INET), 0);
	cm_unlisten();
	close(fd);
}

Test(cm_listen, there_may_be_no_room_for_it)
{
	int ret;

	cm_fault.epoll_add = ENOSPC;
	cr_expect_eq(cm_listen(AF_INET), -ENOSPC);
	nomem_after(0);
	ret = cm_listen(AF_INET);
	cr_expect(nomem_failed());
	cr_expect_eq(ret, -ENOMEM);
	cr_expect(!cm.listener);
}

/* Both families */

static const struct dofi_cm_ops no_ops;

struct both_call {
	struct sockaddr_storage address;
	bool both;
	struct dofi_cm_listeners l;
	int ret;
};

static void do_listen_both(void *arg)
{
	struct both_call *c = arg;

	c->ret = dofi_cm_listen_both(&cm.progress, &c->address, c->both, &no_ops, NULL, &c->l);
}

static void do_unlisten_both(void *arg)
{
	dofi_cm_unlisten_both(arg);
}

/* Whether a connection to @port of this host succeeds. */
static bool connects(int family, uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ret = family == AF_INET ? connect(fd, (struct sockaddr *)&in, sizeof(in)) :
				      connect(fd, (struct sockaddr *)&in6, sizeof(in6));

	close(fd);
	return !ret;
}

static void listens_to_both(int family)
{
	struct both_call c = { .address.ss_family = (sa_family_t)family, .both = true };
	uint16_t port;

	cm_do(do_listen_both, &c);
	cr_assert_eq(c.ret, 0);
	cr_assert(c.l.own && c.l.other);
	port = dofi_cm_listener_port(c.l.own);
	cr_expect_eq(dofi_cm_listener_port(c.l.other), port);
	cr_expect(connects(AF_INET, port) && connects(AF_INET6, port));
	cm_do(do_unlisten_both, &c.l);
	cr_expect(!c.l.own && !c.l.other);
	cr_expect(!connects(AF_INET, port) && !connects(AF_INET6, port));
}

Test(cm_listen, a_listener_serves_both_families)
{
	listens_to_both(AF_INET);
	listens_to_both(AF_INET6);
}

Test(cm_listen, a_listener_serves_a_family_if_the_port_of_the_other_is_taken)
{
	struct both_call c = { .address.ss_family = AF_INET, .both = true };
	uint16_t port;

	cm.wildcard = true;
	cr_assert_eq(cm_listen(AF_INET6), 0);
	port = dofi_cm_listener_port(cm.listener);
	((struct sockaddr_in *)&c.address)->sin_port = htons(port);
	cm_do(do_listen_both, &c);
	cr_assert_eq(c.ret, 0);
	cr_expect(c.l.own && !c.l.other);
	cr_expect_eq(logged("only IPv4 is served; for IPv6: Address already in use"), 1);
	cm_do(do_unlisten_both, &c.l);
	c.address.ss_family = AF_INET6;
	cm_do(do_listen_both, &c);
	cr_expect_eq(c.ret, -EADDRINUSE);
	cr_expect(!c.l.own && !c.l.other);
	cm_unlisten();
}

Test(cm_listen, a_listener_serves_the_requested_family_only)
{
	struct both_call c = { .address.ss_family = AF_INET };
	uint16_t port;

	cm_do(do_listen_both, &c);
	cr_assert_eq(c.ret, 0);
	cr_expect(!c.l.other);
	port = dofi_cm_listener_port(c.l.own);
	cr_expect(connects(AF_INET, port) && !connects(AF_INET6, port));
	cm_do(do_unlisten_both, &c.l);
}

/* Embryos */

struct offender {
	const char *bytes;
	size_t n;
	bool leaves;
	const char *text;
};

static const struct offender offenders[] = {
	{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, false, "other than a request" },
	{ "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11, false, "other than a request" },
	{ "\n", 1, false, "other than a request" },
	{ "DATS\x20\x05\0\0", 8, false, "other than a request" }, /* a READY */
	{ "DATS\x20\x01\0\0", 8, false, "other than a request" }, /* an empty request */
	{ "DATS\x20\x01\xff\xff", 8, false, "other than a request" },
	{ "DATS\x10\x01\0\0", 8, false, "another version" },
	{ "", 0, true, "left without" },
	{ "DATS\x20\x01", 6, true, "left without" },
};

/* Offenders are logged once, however many there are, and correct peers are still served. */
Test(cm_listen, offenders_are_closed_and_reported_once)
{
	size_t i;
	int fd, round;

	cr_assert_eq(cm_listen(AF_INET), 0);
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof(offenders) / sizeof(offenders[0]); i++) {
			fd = cm_embryo();
			cm_put(fd, offenders[i].bytes, offenders[i].n);
			if (offenders[i].leaves)
				shutdown(fd, SHUT_WR);
			cm_end_of(fd);
			close(fd);
			cr_expect_eq(logged(offenders[i].text), 1, "%s", offenders[i].text);
		}
	cr_expect_str_eq(cm_trace(), "");
	fd = cm_embryo_in();
	cr_expect_eq(logged("port "), 3);
	cr_expect_eq(logged("127.0.0.1"), 3);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

static void expelled(enum dofi_cm_kind kind)
{
	int fd = cm_embryo();

	cm_put_msg(fd, kind);
	cm_end_of(fd);
	close(fd);
	cr_expect_str_eq(cm_trace(), "");
	cr_expect_eq(logged("other than a request"), 1);
}

/* An IA has listeners for connections, and others for addresses of datagram EPs. */
Test(cm_listen, a_listener_takes_no_request_of_another_kind)
{
	cr_assert_eq(cm_listen(AF_INET), 0);
	expelled(DOFI_CM_DATAGRAM_REQUEST);
	expelled(DOFI_CM_DATAGRAM_ACCEPT);
	close(cm_embryo_in());
	cm_await(1);
	cm_close(cm.passive);
	cm_unlisten();
}

Test(cm_listen, a_listener_for_datagrams_takes_their_requests_only)
{
	int fd;

	cm.first = DOFI_CM_DATAGRAM_REQUEST;
	cr_assert_eq(cm_listen(AF_INET), 0);
	expelled(DOFI_CM_REQUEST);
	expelled(DOFI_CM_READY);
	fd = cm_embryo();
	cm_put_msg(fd, DOFI_CM_DATAGRAM_REQUEST);
	cm_await(1);
	cr_expect_str_eq(cm_trace(), "q");
	cr_expect_eq(cm.msg.kind, DOFI_CM_DATAGRAM_REQUEST);
	cr_expect(cm.msg.number == 1 && cm.msg.key == 1 && cm.msg.conn_qual == 77);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

Test(cm_listen, random_bytes_are_nothing)
{
	unsigned char bytes[600];
	unsigned seed = 1;
	size_t i;
	int fd, round;

	cr_assert_eq(cm_listen(AF_INET), 0);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
		fd = cm_embryo();
		cm_put(fd, bytes, sizeof(bytes));
		cm_end_of(fd);
		close(fd);
	}
	cr_expect_str_eq(cm_trace(), "");
	cr_expect_eq(logged("other than a request"), 1);
	cm_unlisten();
}

Test(cm_listen, a_silent_embryo_has_little_time)
{
	int64_t begun = dofi_now();
	int fds[2], i;

	cm.patience_ms = SHORT_MS;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fds[0] = cm_embryo();
	fds[1] = cm_embryo();
	for (i = 0; i < 2; i++) {
		cr_expect_eq(cm_end_of(fds[i]), 0);
		close(fds[i]);
	}
	cr_expect(dofi_now() - begun >= SHORT_MS * 1000000LL);
	cr_expect_eq(logged("in time"), 1);
	cr_expect_str_eq(cm_trace(), "");
	cm_unlisten();
}

/* A byte now and then does not extend the time. */
Test(cm_listen, a_slow_embryo_has_little_time)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);
	unsigned char buf[DOFI_CM_MAX];
	size_t n = dofi_cm_pack(buf, &request), i;
	struct pollfd p = { .events = POLLIN };

	cm.patience_ms = SHORT_MS;
	cr_assert_eq(cm_listen(AF_INET), 0);
	p.fd = cm_embryo();
	for (i = 0; i < n - 1 && !p.revents; i++) {
		send(p.fd, buf + i, 1, MSG_NOSIGNAL);
		poll(&p, 1, 5);
	}
	cr_expect(i < n - 1, "all but the last byte were taken");
	cm_end_of(p.fd);
	close(p.fd);
	cr_expect_eq(logged("in time"), 1);
	cm_unlisten();
}

/* The request is there when the connection is accepted. */
static void come_with_request(void *arg)
{
	*(int *)arg = cm_embryo();
	cm_put_msg(*(int *)arg, DOFI_CM_REQUEST);
}

Test(cm_listen, a_connection_with_a_request_has_time)
{
	int fd, silent;

	cm.patience_ms = ENOUGH_MS;
	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_do(come_with_request, &fd);
	cm_await(1);
	silent = cm_embryo();
	cm_end_of(silent);
	cm_settle();
	cr_expect_str_eq(cm_trace(), "q");
	cm_put_msg(fd, DOFI_CM_READY);
	cm_await(1);
	cr_expect_str_eq(cm_trace(), "qY");
	cm_close(cm.passive);
	cm_unlisten();
	close(silent);
	close(fd);
}

/* Whether neither data nor an end has arrived. */
static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The limit of embryos from one address, in a process with few descriptors. */
#define CROWD (DOFI_CM_EMBRYOS_LEAST / 2)

/* Embryos send a byte each, because with TCP_DEFER_ACCEPT the system accepts no silent ones. */
static void crowd_come(int fds[CROWD + 2])
{
	int i;

	for (i = 0; i < CROWD + 2; i++) {
		fds[i] = cm_embryo();
		cm_put(fds[i], "D", 1);
	}
}

static void few_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 4 * DOFI_CM_EMBRYOS_LEAST;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void crowd_close(const int fds[CROWD + 2])
{
	int i;

	for (i = 0; i < CROWD + 2; i++)
		close(fds[i]);
}

Test(cm_listen, of_a_crowd_the_oldest_go)
{
	int fds[CROWD + 2], i;

	few_descriptors();
	cr_assert_eq(cm_listen(AF_INET), 0);
	crowd_come(fds);
	cr_expect_eq(cm_end_of(fds[0]), 0);
	for (i = 2; i < CROWD + 2; i++)
		cr_expect(is_open(fds[i]), "%d", i);
	cr_expect_eq(logged("the oldest"), 1);
	cm_unlisten();
	for (i = 2; i < CROWD + 2; i++)
		cr_expect(!cm_end_of(fds[i]), "%d", i);
	crowd_close(fds);
}

static void crowd_come_at_once(void *arg)
{
	crowd_come(arg);
}

static void one_too_many_come(void *arg)
{
	int *fds = arg, i;

	for (i = 0; i <= DOFI_CM_EMBRYOS_LEAST; i++)
		fds[i] = cm_embryo();
}

/* Local embryos have a second to send. */
Test(cm_listen, the_limit_of_embryos_is_exact)
{
	const int64_t begun = dofi_now();
	int fds[DOFI_CM_EMBRYOS_LEAST + 1], i;

	few_descriptors();
	cr_assert_eq(cm_listen(AF_UNIX), 0);
	cm_do(one_too_many_come, fds);
	while (cm_accepts < DOFI_CM_EMBRYOS_LEAST)
		cm_settle();
	/* a round of the loop that would accept the last */
	cm_settle();
	cm_settle();
	cr_expect(cm_accepts == DOFI_CM_EMBRYOS_LEAST || dofi_now() - begun > 1000 * 1000000LL);
	cm_unlisten();
	for (i = 0; i <= DOFI_CM_EMBRYOS_LEAST; i++)
		close(fds[i]);
}

/* A program may connect many endpoints at once. */
Test(cm_listen, in_a_crowd_each_embryo_has_time_to_send)
{
	const int64_t begun = dofi_now();
	int fds[CROWD + 2];

	few_descriptors();
	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_do(crowd_come_at_once, fds);
	cr_expect_eq(cm_end_of(fds[0]), 0);
	cr_expect(dofi_now() - begun >= 50 * 1000000LL, "it went before its time");
	cm_unlisten();
	crowd_close(fds);
}

/* Errors of the system */

Test(cm_listen, without_descriptors_it_waits_and_goes_on)
{
	int64_t begun = dofi_now();
	int fd;

	cm_fault.accept = EMFILE;
	cm_fault.accept_times = 2;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	/* two failures, the embryo, and perhaps one call that finds no other */
	cr_expect(cm_accepts == 3 || cm_accepts == 4, "%u", cm_accepts);
	cr_expect(dofi_now() - begun >= 2 * 100 * 1000000LL, "it did not wait");
	cr_expect_eq(logged("accepting a connection: Too many open files"), 1);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

Test(cm_listen, a_listener_may_be_closed_while_it_waits)
{
	int fd;

	cm_fault.accept = ENFILE;
	cm_fault.accept_times = 1;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo();
	cm_put(fd, "D", 1);
	cm_settle();
	cr_expect_eq(cm_accepts, 1);
	cm_unlisten();
	cr_expect_eq(cm_end_of(fd), -ECONNRESET);
	close(fd);
}

Test(cm_listen, a_peer_that_leaves_before_the_accept_is_ignored)
{
	int fd;

	cm_fault.accept = ECONNABORTED;
	cm_fault.accept_times = 1;
	cr_assert_eq(cm_listen(AF_INET), 0);
	fd = cm_embryo_in();
	cr_expect_eq(logged("port "), 0);
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

static void fail_epoll(void *arg)
{
	(void)arg;
	cm_fault.epoll_add = ENOSPC;
}

Test(cm_listen, a_peer_that_cannot_be_accepted_is_closed)
{
	int fd, n;

	cr_assert_eq(cm_listen(AF_INET), 0);
	cm_do(fail_epoll, NULL);
	fd = cm_embryo();
	cr_expect_eq(cm_end_of(fd), 0);
	close(fd);
	for (n = 0; n < 2; n++) {
		nomem_after(n);
		fd = cm_embryo();
		cr_expect_eq(cm_end_of(fd), 0);
		cr_expect(nomem_failed());
		close(fd);
	}
	cr_expect_eq(logged("cannot be accepted"), 1);
	fd = cm_embryo_in();
	cm_close(cm.passive);
	cm_unlisten();
	close(fd);
}

/* Closing */

static void unlisten_in(struct dofi_cm_conn *s)
{
	(void)s;
	dofi_cm_unlisten(cm.listener);
}

Test(cm_listen, a_listener_may_be_closed_in_its_request_handler)
{
	int silent, fd;

	cm.on_request = unlisten_in;
	cr_assert_eq(cm_listen(AF_INET), 0);
	silent = cm_embryo();
	cm_put(silent, "D", 1);
	fd = cm_embryo();
	cm_put_msg(fd, DOFI_CM_REQUEST);
	cm_await(1);
	cr_expect_eq(cm_end_of(silent), 0);
	/* accepted connections go on */
	cm_put_msg(fd, DOFI_CM_READY);
	cm_await(1);
	cr_expect_str_eq(cm_trace(), "qY");
	cm_close(cm.passive);
	close(silent);
	close(fd);
}
