/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ensures that a peer learns of a connection's end. */

#include "sock/linger.h"

#include "base/clock.h"
#include "base/container.h"
#include "base/env.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS 1000000LL

/* The time between two checks, which doubles each time. */
#define FIRST_STEP MS
#define LONGEST_STEP (250 * MS)

struct dofi_linger {
	struct dofi_timer timer;
	struct dofi_progress *progress;
	int fd;				/* a duplicate; the fabric closes its own */
	int64_t step;
	int64_t moved;			/* when data was last seen to move */
	int left;			/* bytes that the peer had yet to take then */
	TAILQ_ENTRY(dofi_linger) link;
	size_t rest;			/* unsent bytes, at the end of @data */
	size_t size;
	unsigned char data[];
};

static void linger_close(struct dofi_linger *l)
{
	TAILQ_REMOVE(&l->progress->lingering, l, link);
	close(l->fd);
	free(l);
}

/* Sends as much of the rest as our kernel takes; drops it if the connection is over. */
static void rest_send(struct dofi_linger *l)
{
	ssize_t n;

	if (!l->rest)
		return;
	n = send(l->fd, l->data + l->size - l->rest, l->rest, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		l->rest -= n;
	else if (errno != EAGAIN && errno != EINTR)
		l->rest = 0;
}

/* Returns whether the peer's kernel has yet to take data or the end. Sets *@left to the number of bytes. */
static bool is_outstanding(const struct dofi_linger *l, int *left)
{
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };
	socklen_t len = sizeof(info);

	if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &len) || ioctl(l->fd, SIOCOUTQ, left))
		return false;
	*left += (int)l->rest;
	return l->rest || info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_CLOSING ||
	       info.tcpi_state == TCP_LAST_ACK;
}

void dofi_linger_cut(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (connect(fd, &none, sizeof(none)))
		dofi_log(DOFI_INFO, DOFI_CM, "resetting a closed connection failed");
}

static void check(struct dofi_timer *timer)
{
	struct dofi_linger *l = DOFI_CONTAINER_OF(timer, struct dofi_linger, timer);
	int64_t now = dofi_now(), patience = dofi_settings.linger_ms * MS, next;
	int left;

	rest_send(l);
	/* the fabric may have closed the socket without sending the end */
	if (!l->rest)
		shutdown(l->fd, SHUT_RDWR);
	if (!is_outstanding(l, &left)) {
		linger_close(l);
		return;
	}
	if (left != l->left) {
		l->left = left;
		l->moved = now;
	} else if (now - l->moved >= patience) {
		dofi_linger_cut(l->fd);
		linger_close(l);
		return;
	}
	next = now + l->step < l->moved + patience ? now + l->step : l->moved + patience;
	if (l->step < LONGEST_STEP)
		l->step *= 2;
	dofi_timer_start(l->progress, &l->timer, next);
}

/* The kernel continues to send, but waits for a stalled peer only as long as this module would. */
static void lingering_end(struct dofi_progress *p)
{
	unsigned patience = dofi_settings.linger_ms ? dofi_settings.linger_ms : 1;
	struct dofi_linger *l;

	while ((l = TAILQ_FIRST(&p->lingering))) {
		rest_send(l);
		shutdown(l->fd, SHUT_RDWR);
		setsockopt(l->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience));
		dofi_timer_stop(p, &l->timer);
		linger_close(l);
	}
}

void dofi_linger_begin(struct dofi_progress *p, int fd)
{
	int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (own >= 0)
		dofi_linger_adopt(p, own, NULL, 0);
}

void dofi_linger_adopt(struct dofi_progress *p, int fd, const void *rest, size_t size)
{
	struct dofi_linger *l = malloc(sizeof(*l) + size);

	if (!l) {
		shutdown(fd, SHUT_RDWR);
		close(fd);
		return;
	}
	*l = (struct dofi_linger){
		.timer.fire = check, .progress = p, .fd = fd, .step = FIRST_STEP, .moved = dofi_now(),
		.rest = size, .size = size,
	};
	if (size)
		memcpy(l->data, rest, size);
	p->lingering_end = lingering_end;
	TAILQ_INSERT_TAIL(&p->lingering, l, link);
	dofi_timer_start(p, &l->timer, l->moved);
}
