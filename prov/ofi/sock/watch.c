/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sockets of a software fabric: silent peers, and connections without a request. */

#include "sock/watch.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"
#include "sock/linger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Descriptors that are searched first: they are allocated in order, so the next one is near. */
#define NEARBY 32

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family || a4->sin_port != b4->sin_port)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* Returns whether @a is the port of any address of its family. */
static bool is_wildcard(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *a6 = (const void *)a;

	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&a6->sin6_addr);
}

/*
 * Returns whether socket @fd joins the two addresses; without @peer, whether it is at @local and
 * not connected. @local may be the address of a listening socket.
 */
static bool joins(int fd, const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	if (peer ? getpeername(fd, (struct sockaddr *)&address, &len) ||
		   !same_address(&address, peer) :
		   !getpeername(fd, (struct sockaddr *)&address, &len))
		return false;
	len = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &len))
		return false;
	return same_address(&address, local) ||
	       (is_wildcard(local) && address.ss_family == local->ss_family &&
		((struct sockaddr_in *)&address)->sin_port ==
			((const struct sockaddr_in *)local)->sin_port);
}

/* Headers before libfabric 2.2 do not have the command. */
#define GET_FD (FI_EXPORT_FID + 1)

/*
 * Returns the socket that joins the addresses, or -1; without @everywhere only among those that are
 * likely. libfabric opens it without the flag that makes exec close it.
 */
static int find_joining(struct dofi_progress *p, const struct sockaddr_storage *local,
			const struct sockaddr_storage *peer, bool everywhere)
{
	struct dirent *d;
	int fd = -1, i;
	DIR *dir;

	for (i = p->socket_hint; fd < 0 && i < p->socket_hint + NEARBY; i++)
		if (joins(i, local, peer))
			fd = i;
	dir = fd < 0 && everywhere ? opendir("/proc/self/fd") : NULL;
	while (dir && fd < 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.' && joins(atoi(d->d_name), local, peer))
			fd = atoi(d->d_name);
	if (dir)
		closedir(dir);
	if (fd < 0)
		return -1;
	p->socket_hint = fd > 4 ? fd - 4 : 0;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* tcp of libfabric 2.2 and newer reports the socket; others are searched by their addresses. */
static int find_socket(struct dofi_progress *p, struct fid_ep *ep)
{
	struct sockaddr_storage local, peer;
	size_t len = sizeof(local);
	int fd = -1;

	if (FI_VERSION_GE(fi_version(), FI_VERSION(2, 2)) && !fi_control(&ep->fid, GET_FD, &fd) &&
	    fd >= 0) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		return fd;
	}
	if (fi_getname(&ep->fid, &local, &len) || !((struct sockaddr_in *)&local)->sin_port)
		return -1;
	len = sizeof(peer);
	if (fi_getpeer(ep, &peer, &len)) {
		/* it connects, or did so meanwhile; connected sockets may share its port */
		fd = find_joining(p, &local, NULL, true);
		len = sizeof(peer);
		if (fd >= 0 || fi_getpeer(ep, &peer, &len))
			return fd;
	}
	return find_joining(p, &local, &peer, true);
}

void dofi_watch_request(struct dofi_progress *p, struct fid *pep, const struct fi_info *info)
{
	struct sockaddr_storage local, peer;
	size_t len = sizeof(local);

	if (!info->dest_addr || info->dest_addrlen > sizeof(peer) || fi_getname(pep, &local, &len))
		return;
	memcpy(&peer, info->dest_addr, info->dest_addrlen);
	find_joining(p, &local, &peer, false);
}

#define KEEPALIVE_PROBES 6

/*
 * Up to KEEPALIVE_PROBES probes, over DAT_OFI_KEEPALIVE_S. libfabric's tcp sets a keep-alive of its
 * own: on the passive side for good (2.2, 2.3), or on the active side until it is connected (2.4 to
 * 2.6). Both are before the connection's event, and so before
 * the call of dofi_watch_open().
 */
void dofi_watch_keep_alive(int fd)
{
	int idle = dofi_settings.keepalive_s, on = idle > 0;
	int interval = (idle + KEEPALIVE_PROBES - 1) / KEEPALIVE_PROBES;
	int probes = idle ? idle / interval : 0;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (!on)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* TCP_SYN_SENT of <netinet/tcp.h>, which conflicts with <linux/tcp.h>. */
#define SYN_SENT 2

bool dofi_watch_unacked(int fd, uint32_t *silent_ms)
{
	struct tcp_info info = { .tcpi_unacked = 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	*silent_ms = info.tcpi_last_ack_recv;
	/* the kernel's time-out ends attempts to reach the host */
	return info.tcpi_state != SYN_SENT && (info.tcpi_unacked || info.tcpi_probes > 1);
}

static void check_later(struct dofi_watch *w)
{
	if (dofi_settings.keepalive_s)
		dofi_timer_start(w->progress, &w->timer,
				 dofi_now() + dofi_settings.keepalive_s * 1000000000LL);
}

/* Ends the connection if a peer that owes an answer has sent nothing since the check before. */
static void check(struct dofi_timer *timer)
{
	struct dofi_watch *w = DOFI_CONTAINER_OF(timer, struct dofi_watch, timer);
	const uint32_t period_ms = dofi_settings.keepalive_s * 1000;
	const bool owed = w->unacked;
	uint32_t silent_ms;

	w->unacked = dofi_watch_unacked(w->fd, &silent_ms);
	if (owed && w->unacked && silent_ms >= period_ms) {
		dofi_log(DOFI_INFO, DOFI_CM, "a peer does not respond");
		w->cut = true;
		dofi_linger_cut(w->fd);
		if (!w->open)
			w->source.ready(&w->source);
	} else {
		check_later(w);
	}
}

/* Sets the keep-alive of a socket that it has found before again: see dofi_watch_keep_alive(). */
void dofi_watch_attempt(struct dofi_watch *w, struct dofi_progress *p, struct fid_ep *ep,
			void (*ended)(struct dofi_source *source))
{
	if (w->fd < 0) {
		*w = (struct dofi_watch){ .source.ready = ended, .fd = find_socket(p, ep),
					  .progress = p, .timer.fire = check };
		if (w->fd >= 0)
			check_later(w);
	}
	if (w->fd >= 0)
		dofi_watch_keep_alive(w->fd);
}

int dofi_watch_open(struct dofi_watch *w, struct dofi_progress *p, struct fid_ep *ep,
		    void (*ended)(struct dofi_source *source))
{
	int ret;

	dofi_watch_attempt(w, p, ep, ended);
	if (w->fd < 0)
		return -ENOENT;
	ret = dofi_source_add(p, &w->source, w->fd, EPOLLRDHUP | EPOLLONESHOT);
	if (ret) {
		dofi_watch_close(w, p);
		return ret;
	}
	w->open = true;
	return 0;
}

bool dofi_watch_is_lost(const struct dofi_watch *w)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (!w->cut && getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return false;
	return w->cut || err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH;
}

bool dofi_watch_has_room(struct dofi_watch *w, void (*ready)(struct dofi_source *source))
{
	struct pollfd pfd = { .fd = w->fd, .events = POLLOUT | POLLRDHUP };

	if (poll(&pfd, 1, 0))
		return true;
	w->source.ready = ready;
	return dofi_source_change(w->progress, &w->source, w->fd,
				  EPOLLOUT | EPOLLRDHUP | EPOLLONESHOT) != 0;
}

bool dofi_watch_requester_gone(struct dofi_progress *p, struct fid_ep *ep)
{
	struct pollfd pfd = { .fd = find_socket(p, ep), .events = POLLRDHUP };

	return pfd.fd >= 0 && poll(&pfd, 1, 0) == 1;
}

void dofi_watch_close(struct dofi_watch *w, struct dofi_progress *p)
{
	if (w->fd < 0)
		return;
	if (w->open)
		dofi_source_remove(p, w->fd);
	dofi_timer_stop(p, &w->timer);
	w->open = false;
	w->fd = -1;
}

/* Half-open connections */

#define MS 1000000LL

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

/* The header of a request of tcp; no request of ours ends with it. */
#define HEAD 32

/*
 * Returns whether @fd received nothing for @ms, and before that at most the header of a request:
 * libfabric's tcp keeps such a connection forever.
 */
static bool is_silent(int fd, unsigned ms)
{
	struct tcp_info info;

	return info_read(fd, &info) && info.tcpi_bytes_received <= HEAD &&
	       info.tcpi_last_data_recv >= ms;
}

/* The sockets of an event queue */

static void collect(void *sockets, int fd, bool is_socket)
{
	if (is_socket)
		dofi_fds_add(sockets, fd);
}

static struct dofi_fds sockets_of(struct dofi_progress *p)
{
	struct dofi_fds sockets = { .fd = NULL };

	dofi_epoll_each(dofi_progress_listen_eq(p)->fd, &p->listeners.spare, collect, &sockets);
	if (p->listeners.spare < 0)
		p->listeners.spare = fcntl(p->wake_fd, F_DUPFD_CLOEXEC, 0);
	return sockets;
}

/* Silent connections */

#define PORTS 65536

/* Shuts silent connections to listening ports down: the fabric reads the end, and closes them. */
static void search(struct dofi_timer *timer)
{
	struct dofi_progress *p = DOFI_CONTAINER_OF(timer, struct dofi_progress, listeners.timer);
	struct dofi_fds s = sockets_of(p);
	unsigned char ports[PORTS / 8] = { 0 };
	size_t silent = 0, ended = 0, i;
	uint16_t port;
	unsigned ms;

	for (i = 0; i < s.n; i++)
		if (listens(s.fd[i])) {
			port = port_of(s.fd[i]);
			ports[port / 8] |= 1u << port % 8;
		}
	for (i = 0; i < s.n; i++) {
		port = port_of(s.fd[i]);
		if (ports[port / 8] & 1u << port % 8 && !listens(s.fd[i]) &&
		    is_silent(s.fd[i], 0))
			s.fd[silent++] = s.fd[i];
	}
	ms = silent > CROWD ? CROWD_MS : SILENT_MS;
	for (i = 0; i < silent; i++)
		if (is_silent(s.fd[i], ms)) {
			shutdown(s.fd[i], SHUT_RDWR);
			ended++;
		}
	if (ended && !p->listeners.reported)
		dofi_log(DOFI_WARN, DOFI_CM,
			 "%zu connections without a request were ended; reported once", ended);
	p->listeners.reported |= ended;
	p->listeners.wakes = 0;
	p->listeners.searched = dofi_now();
	if (silent > ended)
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

void dofi_halfopen_begin(struct dofi_progress *p, uint16_t port)
{
	/* accepted connections inherit the receive time-out of the listening socket */
	const struct timeval patience = { .tv_usec = READ_MS * 1000 };
	const int seconds = DEFER_S;
	struct dofi_fds s;
	size_t i;

	if (!p->listeners.n++) {
		p->listeners.arrived = arrived;
		p->listeners.timer.fire = search;
		p->listeners.spare = -1;
	}
	s = sockets_of(p);
	for (i = 0; i < s.n; i++)
		if (port_of(s.fd[i]) == port && listens(s.fd[i])) {
			fcntl(s.fd[i], F_SETFD, FD_CLOEXEC);
			setsockopt(s.fd[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds,
				   sizeof(seconds));
			setsockopt(s.fd[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		}
	free(s.fd);
}

/*
 * Returns whether the fabric has read nothing from @fd; it has read the request of a connection
 * that it reported. The unread bytes are queried first: bytes that arrive meanwhile make an unread
 * connection look read, but never a read one unread. The end of a connection counts as a byte.
 */
static bool is_unread(int fd)
{
	struct tcp_info info;
	int unread = 0;

	return !ioctl(fd, SIOCINQ, &unread) && info_read(fd, &info) &&
	       info.tcpi_bytes_received <= (uint64_t)unread + 1;
}

void dofi_halfopen_end(struct dofi_progress *p, uint16_t port)
{
	unsigned n = UINT_MAX, last;
	int listener = -1;
	struct dofi_fds s;
	size_t i;

	/* stop to listen; then the fabric accepts a limited number of connections at a time */
	do {
		dofi_progress_events(p);
		last = n;
		n = 0;
		s = sockets_of(p);
		for (i = 0; i < s.n; i++) {
			if (port_of(s.fd[i]) != port || s.fd[i] == listener)
				continue;
			if (listens(s.fd[i])) {
				shutdown(s.fd[i], SHUT_RD);
				listener = s.fd[i];
			} else if (is_unread(s.fd[i])) {
				shutdown(s.fd[i], SHUT_RDWR);
				n++;
			}
		}
		free(s.fd);
	} while (n && n < last);
	if (n)
		dofi_log(DOFI_WARN, DOFI_FAB, "%u connections to port %u were not ended", n, port);
	if (--p->listeners.n)
		return;
	dofi_timer_stop(p, &p->listeners.timer);
	if (p->listeners.spare >= 0)
		close(p->listeners.spare);
}
