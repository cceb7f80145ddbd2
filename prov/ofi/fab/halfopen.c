/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends the connections that a passive endpoint has taken in and not heard of again. */

#include "fab/halfopen.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* An event queue's descriptor is an epoll set, and may hold the fabric's own sets. */
#define DEPTH 3

struct door {
	uint16_t port;
	int listener;			/* the socket that listened at it, once it does no more */
};

static bool is_socket(int fd)
{
	socklen_t len = 0;

	return !getsockname(fd, NULL, &len) || errno != ENOTSOCK;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) ||
	    (address.ss_family != AF_INET && address.ss_family != AF_INET6))
		return 0;
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) && yes;
}

/*
 * Whether nothing was read from it. Of a connection that was accepted, or is about to be, the
 * request was. What is unread is asked first: bytes that come before the second question then make
 * a connection look read, which it may be, and never make one that was read look unread. An end
 * counts as a byte.
 */
static bool is_unread(int fd)
{
	struct tcp_info info = { .tcpi_bytes_received = 0 };
	socklen_t len = sizeof(info);
	int unread = 0;

	return !ioctl(fd, SIOCINQ, &unread) && !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_bytes_received <= (uint64_t)unread + 1;
}

/* Whether @fd was one that nobody knows of. The fabric reads its end and forgets it. */
static bool socket_end(struct door *door, int fd)
{
	if (fd == door->listener)
		return false;
	if (listens(fd)) {
		shutdown(fd, SHUT_RD);
		door->listener = fd;
		return false;
	}
	if (!is_unread(fd))
		return false;
	shutdown(fd, SHUT_RDWR);
	return true;
}

/* How many connections it ended of those in the epoll set @set, and in the sets in that. */
static unsigned set_end(struct door *door, int set, int depth)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "tfd: %d", &fd) != 1)
			continue;
		if (port_of(fd) == door->port)
			n += socket_end(door, fd);
		else if (depth > 1 && !is_socket(fd))
			n += set_end(door, fd, depth - 1);
	}
	fclose(f);
	return n;
}

void dofi_halfopen_end(struct dofi_progress *p, uint16_t port)
{
	struct door door = { .port = port, .listener = -1 };
	unsigned n = UINT_MAX, last;

	/* the fabric looks at so many at a time */
	do {
		dofi_progress_events(p);
		last = n;
		n = set_end(&door, dofi_progress_listen_eq(p)->fd, DEPTH);
	} while (n && n < last);
	if (n)
		dofi_log(DOFI_WARN, DOFI_FAB, "%u connections to port %u have no end", n, port);
}
