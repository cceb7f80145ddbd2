/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM connections: the ends of connections on a connectionless fabric exchange requests. */

#include "xport/cm/conn.h"

#include "base/env.h"
#include "base/layout.h"
#include "sock/linger.h"
#include "sock/watch.h"
#include "xport/cm/address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A connection has few messages. */
#define OUT_MAX (2 * DOFI_CM_MAX)

enum state {
	CONNECTING,
	OPEN,
	/* ended() was called, and the owner has to close the connection */
	ENDED,
	/* the memory stays until no event of the connection can be pending */
	CLOSED,
};

struct dofi_cm_conn {
	struct dofi_source source;
	struct dofi_work later;		/* calls ended() with @error, or frees the connection */
	struct dofi_progress *progress;
	const struct dofi_cm_ops *ops;
	void *owner;
	struct sockaddr_storage peer;
	enum state state;

	/* nothing has arrived yet from a peer that connected to us */
	bool may_request;
	/* DOFI_CM_MAX bytes while a part of a message has arrived, else NULL */
	unsigned char *in;
	size_t in_len;
	struct dofi_cm_fds in_fds;	/* received, for a message that is not complete */

	int fd;				/* -1 when closed */
	int error;			/* a negative errno of connecting or writing */
	bool has_sent;			/* the peer may not have taken all bytes that were sent */
	/* OUT_MAX bytes while the socket has not taken all, else NULL */
	unsigned char *out;
	size_t out_len;
	struct dofi_cm_fds out_fds;	/* to be passed with the next bytes */
};

/* Schedules ended(), which must not be called within a call of the owner. */
static void fail(struct dofi_cm_conn *s, int err)
{
	if (!s->error)
		s->error = err;
	dofi_progress_post(s->progress, &s->later);
}

/* Writing */

/* Returns how many bytes need not be stored: the ones taken, or all if the socket takes no more. */
static size_t transmit(struct dofi_cm_conn *s, const void *bytes, size_t n)
{
	ssize_t sent = s->out_fds.n ? dofi_cm_fds_send(s->fd, bytes, n, &s->out_fds) :
				      send(s->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent >= 0)
		return sent;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	/* the peer has closed the connection; its last messages are still to be read */
	if (errno != EPIPE)
		fail(s, -errno);
	return n;
}

static void out_add(struct dofi_cm_conn *s, const unsigned char *bytes, size_t n)
{
	size_t taken = s->out_len ? 0 : transmit(s, bytes, n);

	s->has_sent = true;
	n -= taken;
	if (!n)
		return;
	if (s->out_len + n > OUT_MAX) {
		fail(s, -ENOBUFS);
		return;
	}
	if (!s->out)
		s->out = malloc(OUT_MAX);
	if (!s->out) {
		fail(s, -ENOMEM);
		return;
	}
	if (!s->out_len)
		dofi_source_change(s->progress, &s->source, s->fd, EPOLLIN | EPOLLOUT);
	memcpy(s->out + s->out_len, bytes + taken, n);
	s->out_len += n;
}

static void out_drop(struct dofi_cm_conn *s)
{
	free(s->out);
	s->out = NULL;
	s->out_len = 0;
}

static void flush(struct dofi_cm_conn *s)
{
	size_t taken;

	taken = s->out_len ? transmit(s, s->out, s->out_len) : 0;
	s->out_len -= taken;
	if (s->out_len) {
		memmove(s->out, s->out + taken, s->out_len);
	} else if (s->out) {
		out_drop(s);
		dofi_source_change(s->progress, &s->source, s->fd, EPOLLIN);
	}
}

/* Reading */

static void conn_end(struct dofi_cm_conn *s, int err)
{
	dofi_source_remove(s->progress, s->fd);
	s->state = ENDED;
	s->ops->ended(s, err);
}

/*
 * Processes all complete messages; the owner may close the connection in any of them. Descriptors
 * arrive before the last byte of their message, perhaps with an earlier message.
 */
static void in_take(struct dofi_cm_conn *s, const unsigned char *bytes, size_t len)
{
	struct dofi_cm_msg msg;
	ssize_t n = 0;

	while (s->state == OPEN && (n = dofi_cm_unpack(bytes, len, &msg)) > 0) {
		const bool asks = dofi_cm_is_request(msg.kind);
		const bool takes_fds = asks || msg.kind == DOFI_CM_ACCEPT ||
				       msg.kind == DOFI_CM_DATAGRAM_ACCEPT;
		const bool unexpected = asks && !s->may_request;

		bytes += n;
		len -= n;
		s->may_request = false;
		msg.n_fds = takes_fds ? s->in_fds.n : 0;
		memcpy(msg.fd, s->in_fds.fd, sizeof(msg.fd));
		if (unexpected)
			conn_end(s, -EPROTO);
		else
			s->ops->message(s, &msg);
		if (takes_fds)
			dofi_cm_fds_close(&s->in_fds);
	}
	if (s->state != OPEN)
		return;
	if (!n && len && !s->in) {
		s->in = malloc(DOFI_CM_MAX);
		n = s->in ? 0 : -ENOMEM;
	}
	if (n < 0) {
		conn_end(s, (int)n);
		return;
	}
	s->in_len = len;
	if (len) {
		memcpy(s->in, bytes, len);
	} else if (s->in) {
		free(s->in);
		s->in = NULL;
	}
}

/* The buffer is never full: that many bytes contain a message, or are malformed. */
static void conn_read(struct dofi_cm_conn *s)
{
	unsigned char bytes[DOFI_CM_MAX];
	ssize_t n;

	if (s->in_len)
		memcpy(bytes, s->in, s->in_len);
	n = dofi_cm_fds_receive(s->fd, bytes + s->in_len, sizeof(bytes) - s->in_len, &s->in_fds);
	if (n > 0) {
		in_take(s, bytes, s->in_len + n);
	} else if (!n) {
		/* a write may have taken the error away from this read */
		conn_end(s, !s->error && s->in_len ? -ECONNRESET : s->error);	/* in a message */
	} else if (errno != EAGAIN && errno != EINTR) {
		conn_end(s, -errno);
	}
}

/* Connecting */

/* If nothing listens at a port, the kernel may choose it for the socket that connects to it. */
static void conn_ready(struct dofi_source *source)
{
	struct dofi_cm_conn *s = (struct dofi_cm_conn *)source;
	const bool local = s->peer.ss_family == AF_UNIX;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own), err_len = sizeof(int);
	int err = 0;

	if (s->state == OPEN) {
		flush(s);
		conn_read(s);
		return;
	}
	if (s->state != CONNECTING)
		return;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &err_len))
		err = errno;
	if (!err && !local && !getsockname(s->fd, (struct sockaddr *)&own, &len) &&
	    *dofi_cm_port(&own) == *dofi_cm_port(&s->peer) && dofi_cm_same_ip(&own, &s->peer))
		err = ECONNREFUSED;
	if (!err && local && !dofi_cm_is_same_user(s->fd))
		err = EACCES;
	if (err) {
		conn_end(s, -err);
		return;
	}
	s->state = OPEN;
	flush(s);
}

static void conn_free(struct dofi_cm_conn *s)
{
	dofi_cm_fds_close(&s->in_fds);
	free(s->in);
	free(s->out);
	free(s);
}

/* Reports a failure, after the peer's last messages, or frees a closed connection. */
static void later_run(struct dofi_work *work)
{
	struct dofi_cm_conn *s = DOFI_CONTAINER_OF(work, struct dofi_cm_conn, later);

	if (s->state == CLOSED) {
		conn_free(s);
		return;
	}
	if (s->state == OPEN)
		conn_read(s);
	if (s->state == OPEN || s->state == CONNECTING)
		conn_end(s, s->error);
}

/* Passes the descriptors of @msg with the next bytes. */
static void out_fds_add(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg)
{
	if (!msg->n_fds)
		return;
	s->out_fds.n = msg->n_fds;
	memcpy(s->out_fds.fd, msg->fd, sizeof(s->out_fds.fd));
}

/* Makes a connection with @fd. A peer that takes no bytes is noticed as fast as a silent one. */
static struct dofi_cm_conn *conn_new(struct dofi_progress *p, int fd, const struct sockaddr *peer,
				     const struct dofi_cm_ops *ops, void *owner)
{
	struct dofi_cm_conn *s = calloc(1, sizeof(*s));
	unsigned patience = 2 * dofi_settings.keepalive_s * 1000;
	int yes = 1;

	if (!s)
		return NULL;
	s->source.ready = conn_ready;
	s->later.run = later_run;
	s->progress = p;
	s->ops = ops;
	s->owner = owner;
	memcpy(&s->peer, peer, dofi_cm_address_len(peer));
	s->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience));
	dofi_watch_keep_alive(fd);
	return s;
}

int dofi_cm_connect(struct dofi_progress *progress, const struct sockaddr *addr,
		    const struct sockaddr_storage *named_after, const struct dofi_cm_ops *ops,
		    void *owner, const struct dofi_cm_msg *first, struct dofi_cm_conn **conn)
{
	const int fd = dofi_cm_socket(addr);
	struct dofi_cm_conn *s;
	int ret = -ENOMEM;

	if (fd < 0)
		return fd;
	if (named_after)
		dofi_cm_name_socket(fd, named_after);
	s = conn_new(progress, fd, addr, ops, owner);
	if (!s)
		goto close_socket;
	s->out = malloc(OUT_MAX);
	if (!s->out)
		goto free_conn;
	s->has_sent = true;
	s->out_len = dofi_cm_pack(s->out, first);
	out_fds_add(s, first);
	if (connect(fd, addr, dofi_cm_address_len(addr)) && errno != EINPROGRESS) {
		fail(s, -errno);
	} else {
		ret = dofi_source_add(progress, &s->source, fd, EPOLLIN | EPOLLOUT);
		if (ret)
			goto free_conn;
	}
	*conn = s;
	return 0;

free_conn:
	conn_free(s);
close_socket:
	close(fd);
	return ret;
}

int dofi_cm_adopt(struct dofi_progress *progress, int fd, const struct sockaddr *peer,
		  const struct dofi_cm_ops *ops, void *owner, struct dofi_cm_conn **conn)
{
	struct dofi_cm_conn *s = conn_new(progress, fd, peer, ops, owner);
	int ret;

	if (!s)
		return -ENOMEM;
	s->state = OPEN;
	s->may_request = true;
	ret = dofi_source_add(progress, &s->source, fd, EPOLLIN);
	if (ret) {
		conn_free(s);
		return ret;
	}
	*conn = s;
	return 0;
}

void dofi_cm_hand_over(struct dofi_cm_conn *conn, const struct dofi_cm_ops *ops, void *owner)
{
	conn->ops = ops;
	conn->owner = owner;
}

void dofi_cm_send(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg)
{
	unsigned char buf[DOFI_CM_MAX];
	size_t n = dofi_cm_pack(buf, msg);

	if (!s || (s->state != OPEN && s->state != CONNECTING))
		return;
	out_fds_add(s, msg);
	out_add(s, buf, n);
}

void dofi_cm_decline(struct dofi_cm_conn *conn, unsigned reason, const void *data, size_t size)
{
	const struct dofi_cm_msg msg = {
		.kind = reason ? DOFI_CM_REFUSE : DOFI_CM_REJECT, .reason = (uint8_t)reason,
		.data = data, .data_size = (uint16_t)size,
	};

	dofi_cm_send(conn, &msg);
}

void dofi_cm_close(struct dofi_cm_conn *s)
{
	enum state was;

	if (!s || s->state == CLOSED)
		return;
	was = s->state;
	s->state = CLOSED;
	if (was != ENDED)
		dofi_source_remove(s->progress, s->fd);
	/* bytes that a local socket has taken are not lost */
	if (was == OPEN && (s->out_len || (s->has_sent && s->peer.ss_family != AF_UNIX)))
		dofi_linger_adopt(s->progress, s->fd, s->out, s->out_len);
	else
		dofi_close_socket(s->fd);
	out_drop(s);
	s->fd = -1;
	dofi_progress_post(s->progress, &s->later);
}

void dofi_cm_set_owner(struct dofi_cm_conn *conn, void *owner)
{
	conn->owner = owner;
}

void *dofi_cm_owner(const struct dofi_cm_conn *conn)
{
	return conn->owner;
}

const struct sockaddr_storage *dofi_cm_peer(const struct dofi_cm_conn *conn)
{
	return &conn->peer;
}

uint16_t dofi_cm_local_port(const struct dofi_cm_conn *conn)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(own);

	if (getsockname(conn->fd, (struct sockaddr *)&own, &len))
		return 0;
	if (own.ss_family == AF_UNIX)
		dofi_cm_show_name(&own, len);
	return ntohs(*dofi_cm_port(&own));
}
