/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Out-of-band TCP connection of two datperf processes, for connectionless fabrics and --peers. */
#include "perf_oob.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

void perf_oob_init(struct perf_oob *oob)
{
	oob->listener = oob->fd = -1;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void perf_oob_close(struct perf_oob *oob)
{
	shut(&oob->fd);
	shut(&oob->listener);
}

static int oob_fail(struct perf_xport *x, const char *what, int err)
{
	return perf_fail(x, "%s: %s", what, strerror(err));
}

/* Opens a socket that serves both address families where the host has both. */
static int any_address(struct sockaddr_in6 *any, unsigned int port)
{
	const int off = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(any, 0, sizeof(*any));
	any->sin6_family = fd < 0 ? AF_INET : AF_INET6;
	any->sin6_port = htons((uint16_t)port); /* same offset in both families */
	if (fd < 0)
		return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	return fd;
}

int perf_oob_listen(struct perf_oob *oob, struct perf_xport *x, unsigned int *port)
{
	const int on = 1;
	struct sockaddr_in6 addr;
	socklen_t len = sizeof(addr);
	char what[PERF_LISTEN_TEXT];

	oob->listener = any_address(&addr, *port);
	if (oob->listener < 0)
		return oob_fail(x, "cannot listen", errno);
	setsockopt(oob->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(oob->listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(oob->listener, 1) ||
	    getsockname(oob->listener, (struct sockaddr *)&addr, &len))
		return oob_fail(x, perf_listen_text(*port, what, sizeof(what)), errno);
	*port = ntohs(addr.sin6_port);
	return 0;
}

void perf_oob_set_timeout(struct perf_oob *oob, unsigned int timeout_ms)
{
	const struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	setsockopt(oob->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(oob->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int perf_oob_accept(struct perf_oob *oob, struct perf_xport *x)
{
	struct pollfd pfd = { .fd = oob->listener, .events = POLLIN };
	int n;

	do {
		n = poll(&pfd, 1, x->wait_client_ms);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return oob_fail(x, "no client connected", ETIMEDOUT);
	oob->fd = accept4(oob->listener, NULL, NULL, SOCK_CLOEXEC);
	if (oob->fd < 0)
		return oob_fail(x, "no client connected", errno);
	perf_oob_set_timeout(oob, x->timeout_ms);
	return 0;
}

int perf_oob_connect(struct perf_oob *oob, struct perf_xport *x, const struct sockaddr *addr,
		     unsigned int port)
{
	struct sockaddr_storage to;

	memcpy(&to, addr, sizeof(to));
	((struct sockaddr_in *)&to)->sin_port = htons((uint16_t)port);
	oob->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (oob->fd < 0)
		return oob_fail(x, "cannot connect", errno);
	perf_oob_set_timeout(oob, x->timeout_ms);
	if (connect(oob->fd, (struct sockaddr *)&to,
		    to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					       sizeof(struct sockaddr_in)))
		/* Linux returns EINPROGRESS when SO_SNDTIMEO expires */
		return oob_fail(x, "cannot connect", errno == EINPROGRESS ? ETIMEDOUT : errno);
	return 0;
}

/* A message is far smaller than a socket buffer, so it is sent at once or not at all. */
int perf_oob_send(struct perf_oob *oob, struct perf_xport *x, const void *buf, size_t len)
{
	if (send(oob->fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		return perf_fail(x, "the peer closed the connection");
	return 0;
}

int perf_oob_recv(struct perf_oob *oob, struct perf_xport *x, void *buf, size_t len)
{
	ssize_t n = recv(oob->fd, buf, len, MSG_WAITALL);

	if (n == (ssize_t)len)
		return 0;
	if (n < 0 && errno == EAGAIN)
		return oob_fail(x, "no answer from the peer", ETIMEDOUT);
	return perf_fail(x, "the peer closed the connection, is not a datperf of this version, or "
			    "has other options (--peers, --raw-only)");
}

bool perf_oob_peer_closed(const struct perf_oob *oob)
{
	char byte;

	return recv(oob->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != EINTR);
}
