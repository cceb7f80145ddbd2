/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Notices the end of a connection that the fabric cannot see. */

#include "fab/watch.h"

#include "base/env.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Descriptors are given out in order: the next connection's is mostly close to the last one's. */
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
	return a->ss_family == AF_INET6 && !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

static bool joins(int fd, const struct ends *ends)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	if (getpeername(fd, (struct sockaddr *)&address, &len) || !same_address(&address, &ends->peer))
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

static int find_socket(struct dofi_progress *p, struct fid_ep *ep)
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

#define KEEPALIVE_PROBES 6

/* A host that is gone without a word answers none of so many probes, in as long again. */
static void keep_alive(int fd)
{
	int idle = dofi_settings.keepalive_s, yes = 1, probes = KEEPALIVE_PROBES;
	int interval = (idle + KEEPALIVE_PROBES - 1) / KEEPALIVE_PROBES;

	if (!idle)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
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
	keep_alive(w->fd);
	return 0;
}

void dofi_watch_close(struct dofi_watch *w, struct dofi_progress *p)
{
	if (w->fd < 0)
		return;
	epoll_ctl(p->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}
