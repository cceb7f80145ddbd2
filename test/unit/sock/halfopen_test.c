/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ending connections that a passive endpoint has accepted: which are ended, and which are left
 * alone.
 */

#include "sock/watch.h"

#include "fab/fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * A stream fabric. Its event queue's epoll set has the listeners and the connections they accepted.
 * A read of the queue serves one of these connections.
 */
static int set, inner = -1;
static bool idle;			/* reads serve nothing */
static int first_door = -1;		/* the listener of the first door */
static unsigned ended, requests;	/* connections read to their end; requests read */

struct door {
	int fd;
	struct sockaddr_storage address;
	socklen_t len;
	uint16_t port;
};

static void move_on(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
		requests++;
		epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
		return;
	}
	ended++;
	close(fd);
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) && yes;
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct epoll_event ready[16];
	int i, n = idle ? 0 : epoll_wait(inner >= 0 ? inner : set, ready, 16, 0);

	for (i = 0; i < n; i++) {
		int fd = ready[i].data.fd;

		if (fd != first_door && !listens(fd)) {
			move_on(fd);
			break;
		}
	}
	return -FI_EAGAIN;
}

static struct fi_ops_eq ops = { .size = sizeof(ops), .read = eq_read };
static struct fid_eq eq = { .ops = &ops };
static struct dofi_progress progress = { .eq.fid = &eq };

static void init(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	progress.eq.fd = set;
}

static void init_nested(void)
{
	init();
	inner = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(set, EPOLL_CTL_ADD, inner, &(struct epoll_event){ .events = EPOLLIN });
}

TestSuite(halfopen, .init = init);

static void watch(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	cr_assert_eq(epoll_ctl(inner >= 0 ? inner : set, EPOLL_CTL_ADD, fd, &ev), 0);
}

static bool door_open(struct door *d, int family)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&d->address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&d->address;

	memset(d, 0, sizeof(*d));
	d->address.ss_family = family;
	d->len = family == AF_INET6 ? sizeof(*in6) : sizeof(*in);
	if (family == AF_INET6)
		in6->sin6_addr = in6addr_loopback;
	else
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	d->fd = socket(family, SOCK_STREAM, 0);
	if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&d->address, d->len) || listen(d->fd, 16))
		return false;
	getsockname(d->fd, (struct sockaddr *)&d->address, &d->len);
	d->port = ntohs(in->sin_port);
	watch(d->fd);
	if (first_door < 0)
		first_door = d->fd;
	return true;
}

/* Connects to @d and adds the accepted socket to the set. Returns the peer's socket. */
static int come(struct door *d, int *taken)
{
	int fd = socket(d->address.ss_family, SOCK_STREAM, 0), in;

	cr_assert_eq(connect(fd, (struct sockaddr *)&d->address, d->len), 0);
	in = accept(d->fd, NULL, NULL);
	cr_assert(in >= 0);
	watch(in);
	if (taken)
		*taken = in;
	return fd;
}

static bool is_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void ends_one(int family)
{
	struct door d;
	int fd;

	/* a machine without IPv6 has no such connection to end */
	if (!door_open(&d, family))
		return;
	fd = come(&d, NULL);
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(ended, 1);
	cr_expect(is_ended(fd));
}

Test(halfopen, a_silent_connection_is_ended)
{
	ends_one(AF_INET);
}

Test(halfopen, a_silent_connection_over_ipv6_is_ended)
{
	ends_one(AF_INET6);
}

Test(halfopen, a_silent_connection_in_a_nested_set_is_ended, .init = init_nested)
{
	ends_one(AF_INET);
}

Test(halfopen, many_are_ended_though_the_fabric_is_slow)
{
	struct door d;
	int fd[7], i;

	cr_assert(door_open(&d, AF_INET));
	for (i = 0; i < 7; i++)
		fd[i] = come(&d, NULL);
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(ended, 7);
	for (i = 0; i < 7; i++)
		cr_expect(is_ended(fd[i]), "%d", i);
}

Test(halfopen, no_further_connection_is_accepted)
{
	struct door d;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert(door_open(&d, AF_INET));
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(connect(fd, (struct sockaddr *)&d.address, d.len), -1);
	cr_expect_eq(ended, 0);
}

Test(halfopen, a_request_that_has_come_is_read_before)
{
	struct door d;
	int fd, taken;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, &taken);
	cr_assert_eq(send(fd, "ask", 3, 0), 3);
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(requests, 1);
	cr_expect_eq(ended, 0);
	cr_expect_eq(send(taken, "x", 1, 0), 1, "it can be answered");
}

Test(halfopen, a_connection_that_has_asked_is_left_alone)
{
	struct door d;
	char text[3];
	int fd, taken;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, &taken);
	cr_assert_eq(send(fd, "ask", 3, 0), 3);
	cr_assert_eq(recv(taken, text, 3, MSG_WAITALL), 3);
	cr_assert_eq(send(fd, "more", 4, 0), 4);
	idle = true;
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(send(taken, "x", 1, 0), 1);
	cr_expect_eq(recv(fd, text, 1, 0), 1);
}

Test(halfopen, another_port_is_left_alone)
{
	struct door d, other;
	int fd;

	cr_assert(door_open(&d, AF_INET) && door_open(&other, AF_INET));
	fd = come(&other, NULL);
	dofi_halfopen_end(&progress, d.port);
	cr_expect(!is_ended(fd));
	cr_expect_eq(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&other.address,
			     other.len), 0);
}

Test(halfopen, sockets_outside_the_set_are_left_alone)
{
	struct door d;
	int fd, taken;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, &taken);
	epoll_ctl(set, EPOLL_CTL_DEL, taken, NULL);
	dofi_halfopen_end(&progress, d.port);
	cr_expect(!is_ended(fd));
}

Test(halfopen, a_fabric_that_reads_no_end_is_given_up_on, .timeout = 20)
{
	struct door d;
	int fd;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, NULL);
	idle = true;
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(ended, 0);
	cr_expect(is_ended(fd), "the peer knows all the same");
}

Test(halfopen, a_descriptor_that_is_no_set_has_no_connections)
{
	progress.eq.fd = eventfd(0, EFD_CLOEXEC);
	dofi_halfopen_end(&progress, 4711);
	close(progress.eq.fd);
	dofi_halfopen_end(&progress, 4711);
	cr_expect_eq(ended, 0);
}

/* Descriptors are numbered from the lowest free one. */
static int lowest_free(void)
{
	int fd = dup(set);

	close(fd);
	return fd;
}

Test(halfopen, the_spare_descriptor_is_one_and_is_returned)
{
	struct dofi_timer *timer = &progress.listeners.timer;
	struct door d;
	int before;

	progress.wake_fd = set;
	cr_assert(door_open(&d, AF_INET));
	before = lowest_free();
	dofi_halfopen_begin(&progress, d.port);
	cr_expect_eq(progress.listeners.spare, before);
	timer->fire(timer);
	cr_expect_eq(progress.listeners.spare, before);
	cr_expect_eq(lowest_free(), before + 1, "a search keeps none");
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(lowest_free(), before);
}

/* The two queries about a connection. After the first of them, data is sent to @late. */
static int late = -1;

/* As before Linux 4.1: the size of TCP_INFO, without the bytes received. */
#define OLD_INFO 104
static bool short_info;

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

static void bytes_come(void)
{
	int fd = late;

	late = -1;
	if (fd >= 0)
		cr_assert_eq(send(fd, "bytes", 5, MSG_NOSIGNAL), 5);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	ret = __real_ioctl(fd, request, arg);
	if (request == SIOCINQ)
		bytes_come();
	return ret;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = __real_getsockopt(fd, level, name, value, len);

	if (level == IPPROTO_TCP && name == TCP_INFO) {
		bytes_come();
		if (short_info)
			*len = OLD_INFO;
	}
	return ret;
}

Test(halfopen, a_system_that_does_not_count_bytes_ends_none)
{
	struct door d;
	int fd;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, NULL);
	idle = true;
	short_info = true;
	dofi_halfopen_end(&progress, d.port);
	cr_expect(!is_ended(fd));
}

/* libfabric 2.x keeps established connections in the set as well. */
Test(halfopen, a_connection_with_bytes_on_their_way_is_left_alone)
{
	struct door d;
	int fd, taken;
	char byte;

	cr_assert(door_open(&d, AF_INET));
	fd = come(&d, &taken);
	cr_assert_eq(send(fd, "r", 1, 0), 1);
	cr_assert_eq(recv(taken, &byte, 1, 0), 1);
	idle = true;
	late = fd;
	dofi_halfopen_end(&progress, d.port);
	cr_expect_eq(late, -1);
	cr_expect(!is_ended(fd));
}
