/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends the connections of sockets without losing data that has been sent. */

#include "sock/linger.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/mutex.h"
#include "sock/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

/* Closing, where close() may block */

struct item {
	int fd;
	STAILQ_ENTRY(item) link;
};

static struct dofi_mutex lock;
static STAILQ_HEAD(, item) items DOFI_GUARDED_BY(lock) = STAILQ_HEAD_INITIALIZER(items);
/* the process that has a thread here; 0: none. A forked child does not have its parent's. */
static pid_t closing DOFI_GUARDED_BY(lock);

static void *closer_run(void *arg)
{
	struct item *item;

	for (;;) {
		dofi_mutex_lock(&lock);
		item = STAILQ_FIRST(&items);
		if (item)
			STAILQ_REMOVE_HEAD(&items, link);
		else
			closing = 0;
		dofi_mutex_unlock(&lock);
		if (!item)
			return arg;
		close(item->fd);
		free(item);
	}
}

/* Without memory @fd stays open. */
static void close_apart(int fd)
{
	struct item *item = malloc(sizeof(*item));
	pthread_t thread;
	bool start;
	int ret;

	if (!item)
		return;
	item->fd = fd;
	dofi_mutex_lock(&lock);
	STAILQ_INSERT_TAIL(&items, item, link);
	start = closing != getpid();
	closing = getpid();
	dofi_mutex_unlock(&lock);
	if (!start)
		return;
	ret = dofi_thread_start(&thread, closer_run, NULL);
	if (!ret) {
		pthread_detach(thread);
		return;
	}
	dofi_log(DOFI_WARN, DOFI_CM, "a descriptor of another process stays open: %s",
		 strerror(-ret));
	dofi_mutex_lock(&lock);
	closing = 0;
	dofi_mutex_unlock(&lock);
}

void dofi_close_socket(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof(domain);
	char byte;

	/* a forked child may also have the socket */
	shutdown(fd, SHUT_RDWR);
	if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX &&
	    recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0)
		close_apart(fd);
	else
		close(fd);
}

/* Lingering connections */

#define MS 1000000LL

/* The time between two checks, which doubles each time. */
#define FIRST_STEP MS
#define LONGEST_STEP (250 * MS)

struct dofi_linger {
	struct dofi_source source;	/* the peer's data or its end has come; if @heard */
	struct dofi_timer timer;	/* for the next check */
	struct dofi_progress *progress;
	int fd;				/* a duplicate; the fabric closes its own */
	bool heard;			/* the source is in the epoll set */
	bool peer_ended;		/* all data of the peer was discarded */
	int64_t step;
	int64_t moved;			/* when data was last seen to move */
	int left;			/* bytes, the end included, that were outstanding then */
	bool acked;			/* nothing but the end and a goodbye was outstanding */
	dofi_linger_ended *ended;	/* NULL: the connection ends unnoticed */
	void *arg;
	TAILQ_ENTRY(dofi_linger) link;
	size_t rest;			/* unsent bytes, at the end of @data */
	size_t size;
	unsigned char data[];
};

/* Not called within a report of epoll, which may name the source again. */
static void linger_close(struct dofi_linger *l)
{
	TAILQ_REMOVE(&l->progress->lingering, l, link);
	if (l->heard)
		dofi_source_remove(l->progress, l->fd);
	dofi_close_socket(l->fd);
	free(l);
}

static void linger_finish(struct dofi_linger *l, bool whole)
{
	dofi_linger_ended *ended = l->ended;
	void *arg = l->arg;

	linger_close(l);
	if (ended)
		ended(arg, whole);
}

/*
 * Sends as much of the rest as our kernel takes, and then the end. Returns false if the socket is
 * no longer connected. The kernel reports a reset once, to the first call on the socket, which may
 * be the fabric's or the send() here; later reads return only an end of file.
 */
static bool end_send(struct dofi_linger *l)
{
	ssize_t n;

	if (l->rest) {
		n = send(l->fd, l->data + l->size - l->rest, l->rest, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0)
			l->rest -= n;
		else if (errno != EAGAIN && errno != EINTR)
			l->rest = 0;
	}
	return l->rest || !shutdown(l->fd, SHUT_WR) || errno != ENOTCONN;
}

/* Reads of a check: a peer that sends endlessly must not occupy the progress thread. */
#define READS 64

/* Discards the peer's data. Returns 0, or a negative errno if the connection has failed. */
static int discard(struct dofi_linger *l)
{
	char unused[1 << 14];	/* the system does not write to it, but valgrind requires it */
	ssize_t n = 1;
	int i;

	for (i = 0; i < READS && n > 0 && !l->peer_ended; i++) {
		n = recv(l->fd, unused, sizeof(unused), MSG_DONTWAIT | MSG_TRUNC);
		l->peer_ended = n == 0;
	}
	return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
}

void dofi_linger_cut(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (connect(fd, &none, sizeof(none)))
		dofi_log(DOFI_INFO, DOFI_CM, "resetting a closed connection failed");
}

/* Whether the peer's host has all data. */
static bool is_acked(const struct dofi_linger *l)
{
	return l->acked || !l->left;
}

/*
 * Returns how long nothing may move before give_up(), or DOFI_NEVER. When its host has all data, a
 * peer may be slow to read the data, and then to end the connection.
 */
static int64_t patience(const struct dofi_linger *l)
{
	const int64_t keepalive = dofi_settings.keepalive_s * 1000 * MS;

	if (l->ended ? is_acked(l) : l->left || !keepalive)
		return dofi_settings.linger_ms * MS;
	return keepalive ? keepalive : DOFI_NEVER;
}

/* Nothing has moved for the peer's patience. Returns whether @l is freed. */
static bool give_up(struct dofi_linger *l, int64_t now)
{
	dofi_linger_ended *ended = l->ended;
	uint32_t silent_ms;

	if (ended && (is_acked(l) || !dofi_watch_unacked(l->fd, &silent_ms) ||
		      silent_ms < dofi_settings.keepalive_s * 1000)) {
		l->moved = now;
		if (is_acked(l)) {
			l->ended = NULL;
			ended(l->arg, true);
		}
		return false;
	}
	if (l->left)
		dofi_linger_cut(l->fd);
	linger_finish(l, !l->left);
	return true;
}

static void check(struct dofi_timer *timer)
{
	struct dofi_linger *l = DOFI_CONTAINER_OF(timer, struct dofi_linger, timer);
	int64_t now = dofi_now(), next = now + l->step, wait, end;
	bool connected = end_send(l), whole;
	int left = 0;

	if (discard(l)) {
		linger_finish(l, false);
		return;
	}
	/* the bytes, the end included, that the peer's kernel has yet to take */
	if (ioctl(l->fd, SIOCOUTQ, &left))
		left = 0;
	left += (int)l->rest;
	if (left != l->left)
		l->moved = now;
	l->left = left;
	/* the end alone may be outstanding when the socket is closed: the kernel sends it again */
	whole = l->peer_ended && !l->rest && l->left <= 1;
	if (whole || !connected) {
		linger_finish(l, whole);
		return;
	}
	wait = patience(l);
	if (now - l->moved >= wait) {
		if (give_up(l, now))
			return;
		wait = patience(l);
	}
	end = wait == DOFI_NEVER ? DOFI_NEVER : l->moved + wait;
	/* listen for the peer's data and end, which the reads of a check find without epoll too */
	if (l->heard == l->peer_ended) {
		if (l->heard)
			dofi_source_remove(l->progress, l->fd);
		l->heard = !l->heard &&
			   !dofi_source_add(l->progress, &l->source, l->fd, EPOLLIN);
	}
	if (l->step < LONGEST_STEP)
		l->step *= 2;
	dofi_timer_start(l->progress, timer, next < end ? next : end);
}

static void heard(struct dofi_source *source)
{
	struct dofi_linger *l = DOFI_CONTAINER_OF(source, struct dofi_linger, source);

	dofi_timer_start(l->progress, &l->timer, dofi_now());
}

/* The kernel continues to send, but waits for a stalled peer only as long as this module would. */
static void lingering_end(struct dofi_progress *p)
{
	unsigned patience = dofi_settings.linger_ms ? dofi_settings.linger_ms : 1;
	struct dofi_linger *l;

	while ((l = TAILQ_FIRST(&p->lingering))) {
		end_send(l);
		shutdown(l->fd, SHUT_WR);
		discard(l);
		setsockopt(l->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience));
		dofi_timer_stop(p, &l->timer);
		linger_close(l);
	}
}

/* Takes over @fd. Returns NULL without memory. */
static struct dofi_linger *linger_open(struct dofi_progress *p, int fd, const void *rest,
				       size_t size)
{
	struct dofi_linger *l = malloc(sizeof(*l) + size);

	if (!l)
		return NULL;
	*l = (struct dofi_linger){
		.source.ready = heard, .timer.fire = check, .progress = p, .fd = fd,
		.step = FIRST_STEP, .moved = dofi_now(), .rest = size, .size = size,
	};
	if (size)
		memcpy(l->data, rest, size);
	p->lingering_end = lingering_end;
	TAILQ_INSERT_TAIL(&p->lingering, l, link);
	dofi_timer_start(p, &l->timer, l->moved);
	return l;
}

bool dofi_linger_is_acked(int fd)
{
	int left = 0;

	return !ioctl(fd, SIOCOUTQ, &left) && !left;
}

struct dofi_linger *dofi_linger_begin(struct dofi_progress *p, int fd, dofi_linger_ended *ended,
				      void *arg, bool acked)
{
	int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	struct dofi_linger *l = own >= 0 ? linger_open(p, own, NULL, 0) : NULL;

	if (l) {
		l->ended = ended;
		l->arg = arg;
		l->acked = acked;
	} else if (own >= 0) {
		close(own);
	}
	return l;
}

void dofi_linger_leave(struct dofi_linger *l)
{
	l->ended = NULL;
	l->moved = dofi_now();
}

void dofi_linger_adopt(struct dofi_progress *p, int fd, const void *rest, size_t size)
{
	if (!linger_open(p, fd, rest, size))
		dofi_close_socket(fd);
}
