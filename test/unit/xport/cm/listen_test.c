/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listening for CM sockets: ports, and how little strangers can do. */

#include "xport/cm/conn.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture.h"
#include "nomem.h"
#include "side.h"

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
	side_init();
	side.patience_ms = LONG_MS;
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
	side_fini();
}

TestSuite(side_listen, .init = init, .fini = fini, .timeout = 30);

/* Ports */

Test(side_listen, a_port_that_is_taken_is_told)
{
	struct dofi_side_listener *first;

	cr_assert_eq(side_listen(AF_INET), 0);
	cr_expect(dofi_side_port(side.listener));
	first = side.listener;
	cr_expect_eq(side_listen(AF_INET), -EADDRINUSE);
	cr_expect_eq(side.listener, first);
	side_unlisten();
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

Test(side_listen, a_port_that_is_not_ours_to_take_is_told)
{
	uid_t self = geteuid();
	int ret;

	if (!self)
		cr_assert_eq(seteuid(65534), 0);
	((struct sockaddr_in *)&side.address)->sin_port = htons(1);
	ret = side_listen(AF_INET);
	cr_assert_eq(seteuid(self), 0);
	cr_expect_eq(ret, first_free_port() > 1 ? -EACCES : 0, "%d", ret);
	if (!ret)
		side_unlisten();
}

Test(side_listen, both_families_have_a_port_each)
{
	struct dofi_side_listener *first;

	side.wildcard = true;
	cr_assert_eq(side_listen(AF_INET), 0);
	first = side.listener;
	cr_expect_eq(side_listen(AF_INET6), 0);
	cr_expect_eq(dofi_side_port(first), dofi_side_port(side.listener));
	side_unlisten();
	side.listener = first;
	side_unlisten();
}

Test(side_listen, a_port_can_be_had_again_at_once)
{
	int fd;

	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	side_close(side.passive);	/* the closed connection still uses the port at our end */
	side_unlisten();
	cr_expect_eq(side_listen(AF_INET), 0);
	side_unlisten();
	close(fd);
}

Test(side_listen, there_may_be_no_room_for_it)
{
	int ret;

	side_fault.epoll_add = ENOSPC;
	cr_expect_eq(side_listen(AF_INET), -ENOSPC);
	nomem_after(0);
	ret = side_listen(AF_INET);
	cr_expect(nomem_failed());
	cr_expect_eq(ret, -ENOMEM);
	cr_expect(!side.listener);
}

/* Strangers */

struct offender {
	const char *bytes;
	size_t n;
	bool leaves;
	const char *text;
};

static const struct offender offenders[] = {
	{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, false, "no request of ours" },
	{ "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11, false, "no request of ours" },
	{ "\n", 1, false, "no request of ours" },
	{ "DATS\x20\x06\0\0", 8, false, "no request of ours" },		/* a BELL */
	{ "DATS\x20\x01\0\0", 8, false, "no request of ours" },		/* an empty request */
	{ "DATS\x20\x01\xff\xff", 8, false, "no request of ours" },
	{ "DATS\x10\x01\0\0", 8, false, "another version" },
	{ "", 0, true, "left without" },
	{ "DATS\x20\x01", 6, true, "left without" },
};

/* Offenders are logged once, however many there are, and correct peers are still served. */
Test(side_listen, offenders_are_thrown_out_and_told_of_once)
{
	size_t i;
	int fd, round;

	cr_assert_eq(side_listen(AF_INET), 0);
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof(offenders) / sizeof(offenders[0]); i++) {
			fd = side_stranger();
			side_put(fd, offenders[i].bytes, offenders[i].n);
			if (offenders[i].leaves)
				shutdown(fd, SHUT_WR);
			side_end_of(fd);
			close(fd);
			cr_expect_eq(logged(offenders[i].text), 1, "%s", offenders[i].text);
		}
	cr_expect_str_eq(side_trace(), "");
	fd = side_stranger_in();
	cr_expect_eq(logged("port "), 3);
	cr_expect_eq(logged("127.0.0.1"), 3);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

Test(side_listen, random_bytes_are_nothing)
{
	unsigned char bytes[600];
	unsigned seed = 1;
	size_t i;
	int fd, round;

	cr_assert_eq(side_listen(AF_INET), 0);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
		fd = side_stranger();
		side_put(fd, bytes, sizeof(bytes));
		side_end_of(fd);
		close(fd);
	}
	cr_expect_str_eq(side_trace(), "");
	cr_expect_eq(logged("no request of ours"), 1);
	side_unlisten();
}

Test(side_listen, who_says_nothing_has_little_time)
{
	int64_t begun = dofi_now();
	int fds[2], i;

	side.patience_ms = SHORT_MS;
	cr_assert_eq(side_listen(AF_INET), 0);
	fds[0] = side_stranger();
	fds[1] = side_stranger();
	for (i = 0; i < 2; i++) {
		cr_expect_eq(side_end_of(fds[i]), 0);
		close(fds[i]);
	}
	cr_expect(dofi_now() - begun >= SHORT_MS * 1000000LL);
	cr_expect_eq(logged("in time"), 1);
	cr_expect_str_eq(side_trace(), "");
	side_unlisten();
}

/* A byte now and then does not extend the time. */
Test(side_listen, who_is_slow_has_little_time)
{
	const struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);
	unsigned char buf[DOFI_SIDE_MAX];
	size_t n = dofi_side_pack(buf, &request), i;
	struct pollfd p = { .events = POLLIN };

	side.patience_ms = SHORT_MS;
	cr_assert_eq(side_listen(AF_INET), 0);
	p.fd = side_stranger();
	for (i = 0; i < n - 1 && !p.revents; i++) {
		send(p.fd, buf + i, 1, MSG_NOSIGNAL);
		poll(&p, 1, 5);
	}
	cr_expect(i < n - 1, "all but the last byte were taken");
	side_end_of(p.fd);
	close(p.fd);
	cr_expect_eq(logged("in time"), 1);
	side_unlisten();
}

/* The request is there when the connection is accepted. */
static void come_with_request(void *arg)
{
	*(int *)arg = side_stranger();
	side_put_msg(*(int *)arg, DOFI_SIDE_REQUEST);
}

Test(side_listen, who_has_made_a_request_has_time)
{
	int fd, silent;

	side.patience_ms = ENOUGH_MS;
	cr_assert_eq(side_listen(AF_INET), 0);
	side_do(come_with_request, &fd);
	side_await(1);
	silent = side_stranger();
	side_end_of(silent);
	side_settle();
	cr_expect_str_eq(side_trace(), "q");
	side_put_msg(fd, DOFI_SIDE_READY);
	side_await(1);
	cr_expect_str_eq(side_trace(), "qY");
	side_close(side.passive);
	side_unlisten();
	close(silent);
	close(fd);
}

/* Whether neither data nor an end has arrived. */
static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The limit of strangers from one address, in a process with few descriptors. */
#define CROWD (DOFI_SIDE_STRANGERS_LEAST / 2)

/* Strangers send a byte each, because with TCP_DEFER_ACCEPT the system accepts no silent ones. */
static void crowd_come(int fds[CROWD + 2])
{
	int i;

	for (i = 0; i < CROWD + 2; i++) {
		fds[i] = side_stranger();
		side_put(fds[i], "D", 1);
	}
}

static void few_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 4 * DOFI_SIDE_STRANGERS_LEAST;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void crowd_close(const int fds[CROWD + 2])
{
	int i;

	for (i = 0; i < CROWD + 2; i++)
		close(fds[i]);
}

Test(side_listen, of_a_crowd_the_oldest_go)
{
	int fds[CROWD + 2], i;

	few_descriptors();
	cr_assert_eq(side_listen(AF_INET), 0);
	crowd_come(fds);
	cr_expect_eq(side_end_of(fds[0]), 0);
	for (i = 2; i < CROWD + 2; i++)
		cr_expect(is_open(fds[i]), "%d", i);
	cr_expect_eq(logged("the oldest"), 1);
	side_unlisten();
	for (i = 2; i < CROWD + 2; i++)
		cr_expect(!side_end_of(fds[i]), "%d", i);
	crowd_close(fds);
}

static void crowd_come_at_once(void *arg)
{
	crowd_come(arg);
}

/* A program may connect many endpoints at once. */
Test(side_listen, of_a_crowd_nobody_goes_before_he_could_speak)
{
	const int64_t begun = dofi_now();
	int fds[CROWD + 2];

	few_descriptors();
	cr_assert_eq(side_listen(AF_INET), 0);
	side_do(crowd_come_at_once, fds);
	cr_expect_eq(side_end_of(fds[0]), 0);
	cr_expect(dofi_now() - begun >= 50 * 1000000LL, "it went before its time");
	side_unlisten();
	crowd_close(fds);
}

/* Errors of the system */

Test(side_listen, without_descriptors_it_waits_and_goes_on)
{
	int64_t begun = dofi_now();
	int fd;

	side_fault.accept = EMFILE;
	side_fault.accept_times = 2;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	/* two failures, the stranger, and perhaps one call that finds no other */
	cr_expect(side_accepts == 3 || side_accepts == 4, "%u", side_accepts);
	cr_expect(dofi_now() - begun >= 2 * 100 * 1000000LL, "it did not wait");
	cr_expect_eq(logged("accepting a connection: Too many open files"), 1);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

Test(side_listen, it_may_be_closed_while_it_waits)
{
	int fd;

	side_fault.accept = ENFILE;
	side_fault.accept_times = 1;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger();
	side_put(fd, "D", 1);
	side_settle();
	cr_expect_eq(side_accepts, 1);
	side_unlisten();
	cr_expect_eq(side_end_of(fd), -ECONNRESET);
	close(fd);
}

Test(side_listen, who_is_gone_before_he_is_let_in_is_nobody)
{
	int fd;

	side_fault.accept = ECONNABORTED;
	side_fault.accept_times = 1;
	cr_assert_eq(side_listen(AF_INET), 0);
	fd = side_stranger_in();
	cr_expect_eq(logged("port "), 0);
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

static void fail_epoll(void *arg)
{
	(void)arg;
	side_fault.epoll_add = ENOSPC;
}

Test(side_listen, who_cannot_be_let_in_is_sent_away)
{
	int fd, n;

	cr_assert_eq(side_listen(AF_INET), 0);
	side_do(fail_epoll, NULL);
	fd = side_stranger();
	cr_expect_eq(side_end_of(fd), 0);
	close(fd);
	for (n = 0; n < 2; n++) {
		nomem_after(n);
		fd = side_stranger();
		cr_expect_eq(side_end_of(fd), 0);
		cr_expect(nomem_failed());
		close(fd);
	}
	cr_expect_eq(logged("cannot be let in"), 1);
	fd = side_stranger_in();
	side_close(side.passive);
	side_unlisten();
	close(fd);
}

/* Closing */

static void unlisten_in(struct dofi_side *s)
{
	(void)s;
	dofi_side_unlisten(side.listener);
}

Test(side_listen, it_may_be_closed_at_a_request)
{
	int silent, fd;

	side.on_request = unlisten_in;
	cr_assert_eq(side_listen(AF_INET), 0);
	silent = side_stranger();
	side_put(silent, "D", 1);
	fd = side_stranger();
	side_put_msg(fd, DOFI_SIDE_REQUEST);
	side_await(1);
	cr_expect_eq(side_end_of(silent), 0);
	/* accepted connections go on */
	side_put_msg(fd, DOFI_SIDE_READY);
	side_await(1);
	cr_expect_str_eq(side_trace(), "qY");
	side_close(side.passive);
	close(silent);
	close(fd);
}
