/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listeners for CM connections, and embryos: connections without a complete request. */

#include "xport/cm/listen.h"

#include "base/clock.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"
#include "sock/linger.h"
#include "xport/cm/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS 1000000LL

/* Most connections that are accepted before other sources are served. */
#define ARRIVALS 16

/* Pause after a failure to accept a connection, such as for want of descriptors. */
#define PAUSE (100 * MS)

/* The time of an embryo until another replaces it. TCP accepts with a byte, or after DEFER_S. */
#define TIME_TO_SPEAK (50 * MS)
#define TIME_TO_SPEAK_LOCAL (1000 * MS)
#define DEFER_S 1

/* Offences of embryos. Each listener logs each of them once. */
enum offence { LEFT, SILENT, CROWD, FOREIGN, VERSION, USER, BARRED, OFFENCES };

static const struct {
	enum dofi_log_level level;
	const char *text;
} offences[OFFENCES] = {
	[LEFT] = { DOFI_INFO, "left without a request" },
	[SILENT] = { DOFI_WARN, "sent no complete request in time" },
	[CROWD] = { DOFI_WARN,
		    "was closed, as the oldest of too many connections without a request" },
	[FOREIGN] = { DOFI_WARN, "sent something other than a request" },
	[VERSION] = { DOFI_WARN, "uses another version of the protocol" },
	[USER] = { DOFI_INFO, "is another user's process" },
	[BARRED] = { DOFI_WARN, "cannot be accepted" },
};

struct embryo {
	struct dofi_cm_listener *listener;
	struct dofi_cm_conn *conn;
	int64_t arrival;
	TAILQ_ENTRY(embryo) link;
};

struct dofi_cm_listener {
	struct dofi_source source;
	struct dofi_work freeing;
	struct dofi_progress *progress;
	const struct dofi_cm_ops *ops;
	void *owner;
	int fd;				/* -1 when closed */
	uint16_t port;			/* 0 if the listener is local */
	bool local;			/* has a name and no port */
	unsigned reported;			/* bit mask of offences that were logged */
	TAILQ_HEAD(embryo_list, embryo) embryos; /* oldest first */
	unsigned n_embryos, most;	/* the number of embryos, and its limit */
	struct dofi_timer patience;	/* runs for the oldest embryo */
	struct dofi_timer pause;	/* runs while no connection is accepted */
	bool crowded;			/* the pause is due to the number of embryos */
};

static int64_t deadline_of(const struct embryo *s)
{
	uint32_t ms = s->listener->ops->patience_ms;

	return s->arrival + (ms ? ms : DOFI_CM_PATIENCE_MS) * MS;
}

static bool is_first(struct dofi_cm_listener *l, enum offence offence)
{
	bool news = !(l->reported & 1u << offence);

	l->reported |= 1u << offence;
	return news;
}

static void report(struct dofi_cm_listener *l, enum offence offence,
		   const struct sockaddr_storage *peer)
{
	const void *ip = peer->ss_family == AF_INET6 ?
		(const void *)&((const struct sockaddr_in6 *)peer)->sin6_addr :
		(const void *)&((const struct sockaddr_in *)peer)->sin_addr;
	char text[INET6_ADDRSTRLEN] = "a peer";

	if (!is_first(l, offence))
		return;
	inet_ntop(peer->ss_family, ip, text, sizeof(text));
	dofi_log(offences[offence].level, DOFI_CM, "port %u: %s %s; reported once",
		 l->port, text, offences[offence].text);
}

static void patience_wind(struct dofi_cm_listener *l)
{
	const struct embryo *oldest = TAILQ_FIRST(&l->embryos);

	dofi_timer_start(l->progress, &l->patience, oldest ? deadline_of(oldest) : DOFI_NEVER);
}

/* Removes the embryo, and leaves its connection open. */
static void embryo_remove(struct embryo *s)
{
	struct dofi_cm_listener *l = s->listener;

	TAILQ_REMOVE(&l->embryos, s, link);
	l->n_embryos--;
	patience_wind(l);
	if (l->crowded)
		dofi_timer_start(l->progress, &l->pause, dofi_now());
	free(s);
}

static void embryo_expel(struct embryo *s, enum offence offence)
{
	report(s->listener, offence, dofi_cm_peer(s->conn));
	dofi_cm_close(s->conn);
	embryo_remove(s);
}

static void embryo_speaks(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg)
{
	struct embryo *s = dofi_cm_owner(conn);
	struct dofi_cm_listener *l = s->listener;

	if (msg->kind != (l->ops->first ? l->ops->first : DOFI_CM_REQUEST)) {
		embryo_expel(s, FOREIGN);
		return;
	}
	embryo_remove(s);
	dofi_cm_hand_over(conn, l->ops, NULL);
	l->ops->request(l, conn, msg);
}

static void embryo_ended(struct dofi_cm_conn *conn, int err)
{
	embryo_expel(dofi_cm_owner(conn),
		       err == -EPROTO ? FOREIGN : err == -EPROTONOSUPPORT ? VERSION : LEFT);
}

static const struct dofi_cm_ops embryo_ops = {
	.message = embryo_speaks,
	.ended = embryo_ended,
};

static void patience_ended(struct dofi_timer *timer)
{
	struct dofi_cm_listener *l = DOFI_CONTAINER_OF(timer, struct dofi_cm_listener, patience);
	int64_t now = dofi_now();
	struct embryo *s;

	while ((s = TAILQ_FIRST(&l->embryos)) && deadline_of(s) <= now)
		embryo_expel(s, SILENT);
	patience_wind(l);
}

/* Listening */

static void admit(struct dofi_cm_listener *l, int fd, const struct sockaddr_storage *peer)
{
	struct embryo *s = NULL;

	if (l->local && !dofi_cm_is_same_user(fd)) {
		report(l, USER, peer);
		dofi_close_socket(fd);
		return;
	}
	s = malloc(sizeof(*s));
	if (!s || dofi_cm_adopt(l->progress, fd, (const struct sockaddr *)peer, &embryo_ops, s,
				&s->conn)) {
		free(s);
		report(l, BARRED, peer);
		dofi_close_socket(fd);
		return;
	}
	s->listener = l;
	s->arrival = dofi_now();
	TAILQ_INSERT_TAIL(&l->embryos, s, link);
	l->n_embryos++;
	patience_wind(l);
}

static void pause_begin(struct dofi_cm_listener *l, int64_t until)
{
	dofi_source_remove(l->progress, l->fd);
	dofi_timer_start(l->progress, &l->pause, until);
}

static void pause_ended(struct dofi_timer *timer)
{
	struct dofi_cm_listener *l = DOFI_CONTAINER_OF(timer, struct dofi_cm_listener, pause);

	l->crowded = false;
	if (dofi_source_add(l->progress, &l->source, l->fd, EPOLLIN))
		pause_begin(l, dofi_now() + PAUSE);
}

/*
 * Returns the embryo to close for the next one: the oldest at the limit, or the oldest of the
 * newest one's address, if that has more than half of the limit.
 */
static struct embryo *excess(struct dofi_cm_listener *l)
{
	const struct embryo *last = TAILQ_LAST(&l->embryos, embryo_list);
	struct embryo *s, *first = NULL;
	unsigned n = 0;

	if (l->n_embryos >= l->most)
		return TAILQ_FIRST(&l->embryos);
	/* local embryos are all of one user */
	if (l->local || l->n_embryos <= l->most / 2)
		return NULL;
	TAILQ_FOREACH(s, &l->embryos, link) {
		if (!dofi_cm_same_ip(dofi_cm_peer(s->conn), dofi_cm_peer(last->conn)))
			continue;
		if (!n++)
			first = s;
	}
	return n > l->most / 2 ? first : NULL;
}

/*
 * A program that connects a thousand endpoints at once also exceeds the limit: within a host all of
 * them connect before the first one sends its request. So an embryo is not closed before it had
 * its time to send; further connections are pending in the kernel until then.
 */
static bool may_accept(struct dofi_cm_listener *l)
{
	const int64_t time = l->local ? TIME_TO_SPEAK_LOCAL : TIME_TO_SPEAK, now = dofi_now();
	struct embryo *s;

	while ((s = excess(l)) && s->arrival + time <= now)
		embryo_expel(s, CROWD);
	if (!s)
		return true;
	l->crowded = true;
	pause_begin(l, s->arrival + time);
	return false;
}

static void listener_ready(struct dofi_source *source)
{
	struct dofi_cm_listener *l = (struct dofi_cm_listener *)source;
	struct sockaddr_storage peer;
	int i, fd, err = 0;

	for (i = 0; i < ARRIVALS && l->fd >= 0 && may_accept(l); i++) {
		socklen_t len = sizeof(peer);

		dofi_std_fds_hold();
		fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			err = errno;
			break;
		}
		if (l->local)
			dofi_cm_show_name(&peer, len);
		admit(l, fd, &peer);
	}
	if (!err || err == EAGAIN || err == EINTR || err == ECONNABORTED)
		return;
	/* an error of the system lasts a while, in which epoll would report the socket always */
	if (is_first(l, BARRED))
		dofi_log(DOFI_WARN, DOFI_CM, "port %u: accepting a connection: %s", l->port,
			 strerror(err));
	pause_begin(l, dofi_now() + PAUSE);
}

static void listener_free(struct dofi_work *work)
{
	free(DOFI_CONTAINER_OF(work, struct dofi_cm_listener, freeing));
}

int dofi_cm_listen(struct dofi_progress *progress, const struct sockaddr *addr,
		   const struct dofi_cm_ops *ops, void *owner, struct dofi_cm_listener **listener)
{
	struct dofi_cm_listener *l = calloc(1, sizeof(*l));
	struct rlimit limit = { .rlim_cur = 0 };
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int yes = 1, defer = DEFER_S, ret;
	rlim_t most;

	if (!l)
		return -ENOMEM;
	getrlimit(RLIMIT_NOFILE, &limit);
	most = limit.rlim_cur / 4;
	l->most = most < DOFI_CM_EMBRYOS_LEAST ? DOFI_CM_EMBRYOS_LEAST :
		  most > DOFI_CM_EMBRYOS_MOST ? DOFI_CM_EMBRYOS_MOST : (unsigned)most;
	l->source.ready = listener_ready;
	l->freeing.run = listener_free;
	l->progress = progress;
	l->ops = ops;
	l->owner = owner;
	TAILQ_INIT(&l->embryos);
	l->patience.fire = patience_ended;
	l->pause.fire = pause_ended;
	l->local = addr->sa_family == AF_UNIX;
	l->fd = ret = dofi_cm_socket(addr);
	if (ret < 0)
		goto free_listener;
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (!l->local)
		setsockopt(l->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof(defer));
	/* IPv6 alone: another listener can have the port of IPv4 */
	if (addr->sa_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(l->fd, addr, dofi_cm_address_len(addr)) || listen(l->fd, SOMAXCONN) ||
	    getsockname(l->fd, (struct sockaddr *)&bound, &len))
		ret = -errno;
	else
		ret = dofi_source_add(progress, &l->source, l->fd, EPOLLIN);
	if (ret)
		goto close_socket;
	if (!l->local)
		l->port = ntohs(*dofi_cm_port(&bound));
	*listener = l;
	return 0;

close_socket:
	close(l->fd);
free_listener:
	free(l);
	return ret;
}

void dofi_cm_unlisten(struct dofi_cm_listener *l)
{
	struct embryo *s;
	int fd;

	while ((s = TAILQ_FIRST(&l->embryos))) {
		dofi_cm_close(s->conn);
		embryo_remove(s);
	}
	dofi_timer_stop(l->progress, &l->pause);
	dofi_source_remove(l->progress, l->fd);
	/* descriptors may have been passed over local connections that were not accepted */
	while (l->local && (fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		dofi_close_socket(fd);
	/* a forked child may also have the socket */
	shutdown(l->fd, SHUT_RDWR);
	close(l->fd);
	l->fd = -1;
	dofi_progress_post(l->progress, &l->freeing);
}

int dofi_cm_listen_both(struct dofi_progress *progress, const struct sockaddr_storage *address,
			bool both, const struct dofi_cm_ops *ops, void *owner,
			struct dofi_cm_listeners *l)
{
	const bool ipv6 = address->ss_family == AF_INET6;
	struct sockaddr_storage other = { .ss_family = ipv6 ? AF_INET : AF_INET6 };
	int ret, second;

	*l = (struct dofi_cm_listeners){ 0 };
	ret = dofi_cm_listen(progress, (const struct sockaddr *)address, ops, owner, &l->own);
	if (ret || !both)
		return ret;
	*dofi_cm_port(&other) = htons(l->own->port);
	second = dofi_cm_listen(progress, (struct sockaddr *)&other, ops, owner, &l->other);
	/* a host without the family has no peers there */
	if (second && second != -EAFNOSUPPORT && second != -EADDRNOTAVAIL)
		dofi_log(DOFI_WARN, DOFI_CM, "port %u: only %s is served; for %s: %s", l->own->port,
			 ipv6 ? "IPv6" : "IPv4", ipv6 ? "IPv4" : "IPv6", strerror(-second));
	return 0;
}

void dofi_cm_unlisten_both(struct dofi_cm_listeners *l)
{
	if (l->own)
		dofi_cm_unlisten(l->own);
	if (l->other)
		dofi_cm_unlisten(l->other);
	*l = (struct dofi_cm_listeners){ 0 };
}

uint16_t dofi_cm_listener_port(const struct dofi_cm_listener *listener)
{
	return listener->port;
}

void *dofi_cm_listener_owner(const struct dofi_cm_listener *listener)
{
	return listener->owner;
}

/* Within a host */

static void local_name(struct sockaddr_un *name, enum dofi_local_service service,
		       uint64_t conn_qual)
{
	static const char *const services[] = {
		[DOFI_LOCAL_CONNECTIONS] = "side", [DOFI_LOCAL_DATAGRAMS] = "datagrams",
	};

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/%s/%" PRIu64,
		 services[service], conn_qual);
}

int dofi_local_listen(struct dofi_progress *progress, enum dofi_local_service service,
		      uint64_t conn_qual, const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener)
{
	struct sockaddr_un name;
	int ret;

	local_name(&name, service, conn_qual);
	ret = dofi_cm_listen(progress, (struct sockaddr *)&name, ops, owner, listener);
	if (ret == -EADDRINUSE)
		dofi_log(DOFI_INFO, DOFI_CM, "@%s is taken, see ss -xlp", name.sun_path + 1);
	return ret;
}

int dofi_local_connect(struct dofi_progress *progress, enum dofi_local_service service,
		       uint64_t conn_qual, const struct sockaddr_storage *to,
		       const struct dofi_cm_ops *ops, void *owner,
		       const struct dofi_cm_msg *first, struct dofi_cm_conn **conn)
{
	struct sockaddr_un name;

	local_name(&name, service, conn_qual);
	return dofi_cm_connect(progress, (struct sockaddr *)&name, to, ops, owner, first, conn);
}
