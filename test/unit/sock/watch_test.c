/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The watch on a connection's socket: how it finds the socket, and notices that the peer is gone.
 */

#include "sock/watch.h"

#include "base/clock.h"
#include "base/env.h"
#include "fab/fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct dofi_progress progress;
static struct dofi_watch watch = { .fd = -1 };
static int mine, its;			/* the two ends of a connection */
static int ended_times;

static struct sockaddr_storage name, peer;	/* the endpoint's own report */
static int name_error, peer_error;

static int get_name(fid_t fid, void *address, size_t *len)
{
	memcpy(address, &name, sizeof(name) < *len ? sizeof(name) : *len);
	return name_error;
}

static int get_peer(struct fid_ep *ep, void *address, size_t *len)
{
	memcpy(address, &peer, sizeof(peer) < *len ? sizeof(peer) : *len);
	return peer_error;
}

static struct fi_ops_cm cm = { .size = sizeof(cm), .getname = get_name, .getpeer = get_peer };

static int named_fd, asked;		/* the endpoint's socket as it reports it; queries */

static int control(struct fid *fid, int command, void *arg)
{
	asked++;
	if (command != 20)		/* FI_GET_FD of libfabric 2.2 */
		return -FI_ENOSYS;
	*(int *)arg = named_fd;
	return 0;
}

static struct fi_ops fid_ops = { .size = sizeof(fid_ops), .control = control };
static struct fid_ep ep = { .fid = { .fclass = FI_CLASS_EP, .ops = &fid_ops }, .cm = &cm };

static void ended(struct dofi_source *source)
{
	cr_expect_eq(source, &watch.source);
	ended_times++;
}

static void connect_pair(int family)
{
	struct sockaddr_storage a = { .ss_family = family };
	socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
	int l = socket(family, SOCK_STREAM, 0);

	if (family == AF_INET6)
		((struct sockaddr_in6 *)&a)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(l, (struct sockaddr *)&a, len), 0);
	cr_assert_eq(listen(l, 1), 0);
	cr_assert_eq(getsockname(l, (struct sockaddr *)&a, &len), 0);
	its = socket(family, SOCK_STREAM, 0);
	cr_assert_eq(connect(its, (struct sockaddr *)&a, len), 0);
	mine = accept(l, NULL, NULL);
	close(l);
	len = sizeof(name);
	getsockname(mine, (struct sockaddr *)&name, &len);
	len = sizeof(peer);
	getpeername(mine, (struct sockaddr *)&peer, &len);
}

static void init(void)
{
	fake.version = FI_VERSION(2, 1);
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	connect_pair(AF_INET);
}

static int watch_open(void)
{
	return dofi_watch_open(&watch, &progress, &ep, ended);
}

/* One round of the progress thread, waiting at most @ms. */
static void look(int ms)
{
	struct epoll_event ev;

	if (epoll_wait(progress.epfd, &ev, 1, ms) == 1)
		((struct dofi_source *)ev.data.ptr)->ready(ev.data.ptr);
}

TestSuite(watch, .init = init);

Test(watch, finds_the_endpoints_socket)
{
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
}

Test(watch, finds_it_far_from_where_it_searches_first)
{
	progress.socket_hint = 500;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
	cr_expect(progress.socket_hint <= mine);
}

Test(watch, asks_for_the_endpoints_socket_where_libfabric_knows_it)
{
	fake.version = FI_VERSION(2, 2);
	name_error = -FI_ENOSYS;	/* a search is not needed */
	named_fd = mine;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
	cr_expect_eq(asked, 1);
}

Test(watch, searches_where_libfabric_is_older)
{
	named_fd = its;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
	cr_expect_eq(asked, 0);
}

Test(watch, searches_where_the_fabric_does_not_say)
{
	fake.version = FI_VERSION(2, 6);
	named_fd = -1;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
}

Test(watch, does_not_take_the_other_end)
{
	close(mine);
	cr_expect_eq(watch_open(), -ENOENT);
	cr_expect_eq(watch.fd, -1);
}

Test(watch, the_peers_end_is_reported_once)
{
	cr_assert_eq(watch_open(), 0);
	close(its);
	look(5000);
	look(0);
	cr_expect_eq(ended_times, 1);
}

Test(watch, half_a_close_is_an_end_too)
{
	cr_assert_eq(watch_open(), 0);
	shutdown(its, SHUT_WR);
	look(5000);
	cr_expect_eq(ended_times, 1);
}

Test(watch, an_end_behind_unread_data_is_seen)
{
	cr_assert_eq(watch_open(), 0);
	cr_assert_eq(write(its, "data", 4), 4);
	close(its);
	look(5000);
	cr_expect_eq(ended_times, 1);
}

Test(watch, an_end_before_the_watch_is_seen)
{
	close(its);
	cr_assert_eq(watch_open(), 0);
	look(5000);
	cr_expect_eq(ended_times, 1);
}

Test(watch, data_is_no_end)
{
	cr_assert_eq(watch_open(), 0);
	cr_assert_eq(write(its, "data", 4), 4);
	look(20);
	cr_expect_eq(ended_times, 0);
}

Test(watch, after_the_close_nothing_is_reported)
{
	cr_assert_eq(watch_open(), 0);
	dofi_watch_close(&watch, &progress);
	cr_expect_eq(watch.fd, -1);
	close(its);
	look(20);
	cr_expect_eq(ended_times, 0);
	cr_expect_eq(write(mine, "x", 1), 1, "the socket is the fabric's");
}

Test(watch, closing_twice_is_harmless)
{
	cr_assert_eq(watch_open(), 0);
	dofi_watch_close(&watch, &progress);
	dofi_watch_close(&watch, &progress);
	cr_expect_eq(watch.fd, -1);
}

static int option(int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	cr_expect_eq(getsockopt(mine, level, name, &value, &len), 0);
	return value;
}

static int asking(void)
{
	return option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT);
}

Test(watch, a_silent_peer_is_asked_for_a_sign_of_life)
{
	dofi_settings.keepalive_s = 13;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(option(SOL_SOCKET, SO_KEEPALIVE), 1);
	cr_expect_eq(option(IPPROTO_TCP, TCP_KEEPIDLE), 13);
	cr_expect(asking() <= 13 && asking() > 13 / 2);
}

/* A probed peer has as much time again to answer, and no more. */
Test(watch, however_short_its_time)
{
	dofi_settings.keepalive_s = 1;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(option(IPPROTO_TCP, TCP_KEEPIDLE), 1);
	cr_expect_eq(asking(), 1);
}

Test(watch, or_is_not_asked)
{
	const int yes = 1;

	/* as tcp of libfabric 2.2 does on the passive end */
	cr_assert_eq(setsockopt(mine, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)), 0);
	dofi_settings.keepalive_s = 0;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(option(SOL_SOCKET, SO_KEEPALIVE), 0);
}

/*
 * Drops data sent to @fd before its kernel sees it. Returns false if only root may attach the
 * filter.
 */
static bool host_die(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &nothing };

	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		return true;
	cr_assert(geteuid() && errno == EPERM, "%s", strerror(errno));
	fprintf(stderr, "skipped: a host that is silent: %s\n", strerror(errno));
	return false;
}

/* Runs @n looks of the watch at their times, or fewer if its timer has stopped. */
static void looks(int n)
{
	int64_t left;

	for (; n && watch.timer.at; n--) {
		while ((left = watch.timer.at - dofi_now()) > 0)
			look((int)(left / 1000000 + 1));
		dofi_timer_stop(&progress, &watch.timer);
		watch.timer.fire(&watch.timer);
	}
	look(0);
}

static void keep_alive_watch(void)
{
	dofi_settings.keepalive_s = 1;
	cr_assert_eq(watch_open(), 0);
}

/* Data in flight keeps the socket from sending probes. */
Test(watch, a_host_that_acknowledges_nothing_is_gone)
{
	char byte;

	keep_alive_watch();
	if (!host_die(its))
		return;
	cr_assert_eq(write(mine, "data", 4), 4);
	looks(2);
	cr_expect_eq(ended_times, 1);
	cr_expect(dofi_watch_is_lost(&watch));
	cr_expect_eq(recv(mine, &byte, 1, MSG_DONTWAIT), -1);
}

static void attempt_watch(void)
{
	dofi_settings.keepalive_s = 1;
	dofi_watch_attempt(&watch, &progress, &ep, ended);
	cr_assert_eq(watch.fd, mine);
}

Test(watch, an_attempt_asks_for_a_sign_of_life_and_reports_no_end)
{
	attempt_watch();
	cr_expect_eq(option(SOL_SOCKET, SO_KEEPALIVE), 1);
	close(its);
	look(20);
	cr_expect_eq(ended_times, 0, "the fabric fails the attempt");
}

Test(watch, the_connection_goes_on_with_the_attempts_watch)
{
	const int no = 0;

	attempt_watch();
	/* as tcp of libfabric 2.4 does on the active end */
	cr_assert_eq(setsockopt(mine, SOL_SOCKET, SO_KEEPALIVE, &no, sizeof(no)), 0);
	name_error = -FI_ENOSYS;	/* another search would fail */
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(option(SOL_SOCKET, SO_KEEPALIVE), 1);
	close(its);
	look(5000);
	cr_expect_eq(ended_times, 1);
}

Test(watch, a_host_that_does_not_acknowledge_the_request_ends_the_attempt)
{
	attempt_watch();
	if (!host_die(its))
		return;
	cr_assert_eq(write(mine, "request", 7), 7);
	looks(2);
	cr_expect_eq(ended_times, 1);
	cr_expect(dofi_watch_is_lost(&watch));
}

Test(watch, an_end_of_the_peer_is_no_lost_path)
{
	const struct linger reset = { .l_onoff = 1 };

	cr_assert_eq(watch_open(), 0);
	cr_expect(!dofi_watch_is_lost(&watch));
	shutdown(its, SHUT_WR);
	look(5000);
	cr_expect(!dofi_watch_is_lost(&watch));
	setsockopt(its, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(its);
	cr_expect(!dofi_watch_is_lost(&watch));
}

Test(watch, an_attempt_without_a_socket_is_not_watched)
{
	name_error = -FI_ENOSYS;
	dofi_watch_attempt(&watch, &progress, &ep, ended);
	cr_expect_eq(watch.fd, -1);
	cr_expect_eq(watch.timer.at, 0);
	dofi_watch_close(&watch, &progress);
}

/* A peer that reads nothing still acknowledges, although much is never taken. */
Test(watch, a_host_that_acknowledges_is_there)
{
	static char much[1 << 20];

	keep_alive_watch();
	while (send(mine, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	looks(2);
	cr_expect_eq(ended_times, 0);
	cr_expect(watch.timer.at > 0);
}

/* The system retransmits lost data when it has time. */
static void await_acknowledged(void)
{
	char data[4];
	int left = 1;

	cr_assert_eq(recv(its, data, sizeof(data), MSG_WAITALL), (ssize_t)sizeof(data));
	while (!ioctl(mine, SIOCOUTQ, &left) && left)
		sched_yield();
	cr_assert_eq(left, 0);
}

/* Lost data is retransmitted. */
Test(watch, a_host_may_be_silent_between_two_checks)
{
	const int none = 0;

	keep_alive_watch();
	if (!host_die(its))
		return;
	cr_assert_eq(write(mine, "data", 4), 4);
	looks(1);
	cr_assert_eq(setsockopt(its, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), 0);
	await_acknowledged();
	looks(1);
	cr_expect_eq(ended_times, 0);
}

Test(watch, without_keepalive_there_is_no_check)
{
	dofi_settings.keepalive_s = 0;
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.timer.at, 0);
}

Test(watch, there_is_no_check_after_the_close)
{
	keep_alive_watch();
	dofi_watch_close(&watch, &progress);
	cr_expect_eq(watch.timer.at, 0);
}

Test(watch, an_endpoint_without_name_has_no_socket)
{
	name_error = -FI_ENOSYS;
	cr_expect_eq(watch_open(), -ENOENT);
}

/* An attempt has no peer before the connection. A connected socket may share its port. */
Test(watch, an_endpoint_without_peer_is_found_by_its_own_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int attempt = socket(AF_INET, SOCK_STREAM, 0);

	peer_error = -FI_ENOTCONN;
	cr_expect_eq(watch_open(), -ENOENT, "a connected socket is no attempt");
	cr_assert_eq(bind(attempt, (struct sockaddr *)&address, len), 0);
	cr_assert_eq(getsockname(attempt, (struct sockaddr *)&address, &len), 0);
	memcpy(&name, &address, sizeof(address));
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, attempt);
	dofi_watch_close(&watch, &progress);
	((struct sockaddr_in *)&name)->sin_port = 0;
	cr_expect_eq(watch_open(), -ENOENT);
	close(attempt);
}

Test(watch, another_port_is_another_connection)
{
	((struct sockaddr_in *)&name)->sin_port ^= 1;
	cr_expect_eq(watch_open(), -ENOENT);
}

Test(watch, another_address_is_another_connection)
{
	((struct sockaddr_in *)&peer)->sin_addr.s_addr ^= 1;
	cr_expect_eq(watch_open(), -ENOENT);
}

Test(watch, ipv6_connections_are_found)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int s = socket(AF_INET6, SOCK_STREAM, 0);

	/* a machine without IPv6 has no such connection to find */
	if (s < 0 || bind(s, (struct sockaddr *)&in6, sizeof(in6)))
		return;
	close(s);
	connect_pair(AF_INET6);
	cr_assert_eq(watch_open(), 0);
	cr_expect_eq(watch.fd, mine);
}
