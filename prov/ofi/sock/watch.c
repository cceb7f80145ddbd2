/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Detects the end of a connection that the fabric cannot see. */

#include "sock/watch.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/layout.h"
#include "base/log.h"
#include "sock/linger.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/*
 * How many descriptors are searched first: they are allocated in order, so that of the next
 * connection is near.
 */
#define NEARBY 32

struct ends {
	struct sockaddr_storage local, peer;
};

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

static bool joins(int fd, const struct ends *ends)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	if (getpeername(fd, (struct sockaddr *)&address, &len) ||
	    !same_address(&address, &ends->peer))
		return false;
	len = sizeof(address);
	return !getsockname(fd, (struct sockaddr *)&address, &len) &&
	       same_address(&address, &ends->local);
}

static int search_all(const struct ends *ends)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int found = -1;

	if (!dir)
		return -1;
	while (found < 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.' && joins(atoi(d->d_name), ends))
			found = atoi(d->d_name);
	closedir(dir);
	return found;
}

static int search_near(int start, const struct ends *ends)
{
	int fd;

	for (fd = start; fd < start + NEARBY; fd++)
		if (joins(fd, ends))
			return fd;
	return -1;
}

/* Headers before libfabric 2.2 do not have the command. */
#define GET_FD (FI_EXPORT_FID + 1)

/* Returns -1 but for tcp of libfabric 2.2 and newer. */
static int ask_for_socket(struct fid_ep *ep)
{
	int fd = -1;

	if (FI_VERSION_LT(fi_version(), FI_VERSION(2, 2)) || fi_control(&ep->fid, GET_FD, &fd))
		return -1;
	return fd;
}

static int search_socket(struct dofi_progress *p, struct fid_ep *ep)
{
	struct ends ends;
	size_t len = sizeof(ends.local);
	int fd;

	if (fi_getname(&ep->fid, &ends.local, &len))
		return -1;
	len = sizeof(ends.peer);
	if (fi_getpeer(ep, &ends.peer, &len))
		return -1;
	fd = search_near(p->socket_hint, &ends);
	if (fd < 0)
		fd = search_all(&ends);
	if (fd >= 0)
		p->socket_hint = fd > 4 ? fd - 4 : 0;
	return fd;
}

static int find_socket(struct dofi_progress *p, struct fid_ep *ep)
{
	int fd = ask_for_socket(ep);

	return fd >= 0 ? fd : search_socket(p, ep);
}

#define KEEPALIVE_PROBES 6

/*
 * libfabric's tcp sets a keep-alive of its own: on the passive side for good (2.2, 2.3), or on the
 * active side until it is connected (2.4 to 2.6). Both are before the connection's event, and so
 * before this call.
 *
 * The kernel sends up to KEEPALIVE_PROBES probes, over DAT_OFI_KEEPALIVE_S, to a host that does not
 * answer.
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

bool dofi_watch_owes(int fd, uint32_t *silent_ms)
{
	struct tcp_info info = { .tcpi_unacked = 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	*silent_ms = info.tcpi_last_ack_recv;
	return info.tcpi_unacked || info.tcpi_probes > 1;
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
	const bool owed = w->owes;
	uint32_t silent_ms;

	w->owes = dofi_watch_owes(w->fd, &silent_ms);
	if (owed && w->owes && silent_ms >= period_ms) {
		dofi_log(DOFI_INFO, DOFI_CM, "a peer does not respond");
		dofi_linger_cut(w->fd);
	} else {
		check_later(w);
	}
}

int dofi_watch_open(struct dofi_watch *w, struct dofi_progress *p, struct fid_ep *ep,
		    void (*ended)(struct dofi_source *source))
{
	struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = w };

	w->source.ready = ended;
	w->fd = find_socket(p, ep);
	if (w->fd < 0)
		return -ENOENT;
	if (epoll_ctl(p->epfd, EPOLL_CTL_ADD, w->fd, &ev)) {
		w->fd = -1;
		return -errno;
	}
	dofi_watch_keep_alive(w->fd);
	w->progress = p;
	w->owes = false;
	w->timer = (struct dofi_timer){ .fire = check };
	check_later(w);
	return 0;
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
	epoll_ctl(p->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	dofi_timer_stop(p, &w->timer);
	w->fd = -1;
}
