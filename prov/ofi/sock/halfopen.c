/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends connections that a passive endpoint has accepted and that send no request. */

#include "sock/halfopen.h"

#include "base/clock.h"
#include "base/layout.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MS 1000000LL

/*
 * The descriptor of an event queue is an epoll set, which may contain further sets of the fabric.
 */
#define DEPTH 3

/* How long the kernel keeps a silent connection before the fabric can accept it. */
#define DEFER_S 3
/* How long a silent connection stays then; and how long if there are more than CROWD of them. */
#define SILENT_MS 500
#define CROWD_MS 100
#define CROWD 256
/* The least time between two searches. */
#define SEARCH_MS 50
/* How long the fabric may wait for the rest of a request that it began to read. */
#define READ_MS 20

/* Sockets */

static bool is_socket(int fd)
{
	socklen_t len = 0;

	return !getsockname(fd, NULL, &len) || errno != ENOTSOCK;
}

/* Returns the local port, or 0 if @fd is no IP socket. */
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

/* Returns whether the system reports the bytes received: Linux 4.1 or newer, and no emulator. */
static bool info_read(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received) +
			      sizeof(info->tcpi_bytes_received);
}

/*
 * Returns whether the fabric has read nothing from @fd; it has read the request of a connection
 * that it reported. The unread bytes are queried first: bytes that arrive before the second query
 * make an unread connection look read, but never a read one unread. The end of the connection
 * counts as a byte.
 */
static bool is_unread(int fd)
{
	struct tcp_info info;
	int unread = 0;

	return !ioctl(fd, SIOCINQ, &unread) && info_read(fd, &info) &&
	       info.tcpi_bytes_received <= (uint64_t)unread + 1;
}

/* The header of a request of tcp; no request of ours ends with it. */
#define HEAD 32

/*
 * Returns whether @fd received nothing for @ms, and before that no more than the header of a
 * request: tcp keeps a connection forever that sends only the header.
 */
static bool is_silent(int fd, unsigned ms)
{
	struct tcp_info info;

	return info_read(fd, &info) && info.tcpi_bytes_received <= HEAD &&
	       info.tcpi_last_data_recv >= ms;
}

/* The sockets of an event queue */

struct sockets {
	int *fd;
	size_t n, capacity;
};

static bool sockets_add(struct sockets *s, int fd)
{
	const size_t capacity = s->capacity ? 2 * s->capacity : 64;
	int *more = s->n < s->capacity ? s->fd : realloc(s->fd, capacity * sizeof(*more));

	if (!more)
		return false;
	if (s->n == s->capacity)
		s->capacity = capacity;
	s->fd = more;
	s->fd[s->n++] = fd;
	return true;
}

/* Opens @path; closes the spare descriptor for that if no other is free. */
static FILE *path_open(struct dofi_listeners *listeners, const char *path)
{
	FILE *f = fopen(path, "re");

	if (f || errno != EMFILE || listeners->spare < 0)
		return f;
	close(listeners->spare);
	listeners->spare = -1;
	return fopen(path, "re");
}

static void spare_get(struct dofi_progress *p)
{
	if (p->listeners.spare < 0)
		p->listeners.spare = fcntl(p->doorbell, F_DUPFD_CLOEXEC, 0);
}

/* Collects the sockets in the epoll set @set, and in the sets that it contains. */
static void collect(struct dofi_listeners *listeners, struct sockets *sockets, int set, int depth)
{
	struct sockets sets = { .fd = NULL };
	char path[64], line[256];
	size_t i;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	f = path_open(listeners, path);
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "tfd: %d", &fd) == 1)
			sockets_add(is_socket(fd) ? sockets : &sets, fd);
	fclose(f);
	for (i = 0; i < sets.n && depth > 1; i++)
		collect(listeners, sockets, sets.fd[i], depth - 1);
	free(sets.fd);
}

static struct sockets sockets_of(struct dofi_progress *p)
{
	struct sockets sockets = { .fd = NULL };

	collect(&p->listeners, &sockets, dofi_progress_listen_eq(p)->fd, DEPTH);
	spare_get(p);
	return sockets;
}

/* Silent connections */

#define PORTS 65536

static void ports_learn(const struct sockets *s, unsigned char port[PORTS / 8])
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (listens(s->fd[i]))
			port[port_of(s->fd[i]) / 8] |= 1u << port_of(s->fd[i]) % 8;
}

/* Keeps in @s only silent connections to listening ports. */
static void sockets_keep_silent(struct sockets *s)
{
	unsigned char port[PORTS / 8] = { 0 };
	size_t i, n = 0;

	ports_learn(s, port);
	for (i = 0; i < s->n; i++) {
		const uint16_t number = port_of(s->fd[i]);

		if (port[number / 8] & 1u << number % 8 && !listens(s->fd[i]) &&
		    is_silent(s->fd[i], 0))
			s->fd[n++] = s->fd[i];
	}
	s->n = n;
}

/* Shuts silent connections down: the fabric reads the end, and closes them. Returns how many. */
static size_t silent_end(const struct sockets *s)
{
	const unsigned ms = s->n > CROWD ? CROWD_MS : SILENT_MS;
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		if (is_silent(s->fd[i], ms)) {
			shutdown(s->fd[i], SHUT_RDWR);
			n++;
		}
	return n;
}

static void search(struct dofi_timer *timer)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(timer, struct dofi_progress, listeners.timer);
	struct sockets s = sockets_of(p);
	size_t ended;

	sockets_keep_silent(&s);
	ended = silent_end(&s);
	if (ended && !p->listeners.reported)
		dofi_log(DOFI_WARN, DOFI_CM,
			 "%zu connections without a request were ended; reported once", ended);
	p->listeners.reported |= ended;
	p->listeners.wakes = 0;
	p->listeners.searched = dofi_now();
	if (s.n > ended)
		dofi_timer_start(p, timer, p->listeners.searched + CROWD_MS * MS);
	free(s.fd);
}

static void arrived(struct dofi_progress *p, bool many)
{
	struct dofi_listeners *listeners = &p->listeners;
	const int64_t now = dofi_now();

	many |= ++listeners->wakes >= CROWD;
	if (many)
		dofi_timer_start(p, &listeners->timer, now - listeners->searched < SEARCH_MS * MS ?
				 listeners->searched + SEARCH_MS * MS : now);
	else if (!listeners->timer.at)
		dofi_timer_start(p, &listeners->timer, now + SILENT_MS * MS);
}

/* Ports */

/* Accepted connections inherit the receive time-out of the listening socket. */
static void listener_tune(int fd)
{
	const struct timeval patience = { .tv_usec = READ_MS * 1000 };
	const int seconds = DEFER_S;

	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

void dofi_halfopen_begin(struct dofi_progress *p, uint16_t port)
{
	struct sockets s;
	size_t i;

	if (!p->listeners.n++) {
		p->listeners.arrived = arrived;
		p->listeners.timer.fire = search;
		p->listeners.spare = -1;
	}
	s = sockets_of(p);
	for (i = 0; i < s.n; i++)
		if (port_of(s.fd[i]) == port && listens(s.fd[i]))
			listener_tune(s.fd[i]);
	free(s.fd);
}

static void listener_forget(struct dofi_progress *p)
{
	if (--p->listeners.n)
		return;
	dofi_timer_stop(p, &p->listeners.timer);
	if (p->listeners.spare >= 0)
		close(p->listeners.spare);
}

/* Stops listening at @port, and ends unread connections there. Returns how many. */
static unsigned port_end(struct dofi_progress *p, uint16_t port, int *listener)
{
	struct sockets s = sockets_of(p);
	unsigned n = 0;
	size_t i;

	for (i = 0; i < s.n; i++) {
		if (port_of(s.fd[i]) != port || s.fd[i] == *listener)
			continue;
		if (listens(s.fd[i])) {
			shutdown(s.fd[i], SHUT_RD);
			*listener = s.fd[i];
		} else if (is_unread(s.fd[i])) {
			shutdown(s.fd[i], SHUT_RDWR);
			n++;
		}
	}
	free(s.fd);
	return n;
}

void dofi_halfopen_end(struct dofi_progress *p, uint16_t port)
{
	unsigned n = UINT_MAX, last;
	int listener = -1;

	/* the fabric accepts a limited number of connections at a time */
	do {
		dofi_progress_events(p);
		last = n;
		n = port_end(p, port, &listener);
	} while (n && n < last);
	if (n)
		dofi_log(DOFI_WARN, DOFI_FAB, "%u connections to port %u were not ended", n, port);
	listener_forget(p);
}
