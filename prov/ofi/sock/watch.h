/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sockets of a software fabric: ends that the fabric does not see, and silent connections. */
#ifndef DOFI_SOCK_WATCH_H
#define DOFI_SOCK_WATCH_H

#include "loop/progress.h"

#include <rdma/fi_endpoint.h>
#include <stdbool.h>

/*
 * Detects the end of a connection that the fabric cannot see.
 *
 * The stream fabrics detect that a peer is gone when they read to the end of its socket. A message
 * without a receive stops them from reading: a dead peer would stay connected forever. The kernel
 * knows: the watch finds the endpoint's socket (libfabric reports it from 2.2 on), and epoll
 * reports the peer's end. The watch also makes the kernel probe a peer that is silent for
 * DAT_OFI_KEEPALIVE_S: a host that lost its power or its cable, or has no state of the connection,
 * does not end it. While data is in flight to the peer the kernel does not probe, but sends again
 * for a quarter of an hour; so the watch checks whether data is acknowledged. Both begin with the
 * attempt to connect: the request and its answer are data, too.
 */
struct dofi_watch {
	/* its ready() is called once, when the peer has ended the connection */
	struct dofi_source source;
	int fd;		/* the fabric's socket, which the fabric closes; -1 while not watching */
	struct dofi_progress *progress;
	struct dofi_timer timer;	/* for the next check */
	bool unacked;			/* the last check found unacknowledged data */
	bool open;			/* epoll reports the peer's end */
	bool cut;			/* the peer's host did not respond */
};

/*
 * Makes exec close the socket of @ep, which connects or was accepted, and starts to probe the peer.
 * If its host does not respond, the fabric fails the attempt, or @ended is called. Without a socket
 * nothing happens.
 */
void dofi_watch_attempt(struct dofi_watch *watch, struct dofi_progress *progress, struct fid_ep *ep,
			void (*ended)(struct dofi_source *source));

/* Starts to watch the connected @ep. Returns 0, -ENOENT without a socket, or an error. */
int dofi_watch_open(struct dofi_watch *watch, struct dofi_progress *progress, struct fid_ep *ep,
		    void (*ended)(struct dofi_source *source));
/* Whether the connection has ended because the peer's host does not respond. Call once. */
bool dofi_watch_is_lost(const struct dofi_watch *watch);
/*
 * Makes exec close the socket of a request that @pep reported with @info, if its descriptor is one
 * of the likely ones. dofi_watch_attempt() searches all.
 */
void dofi_watch_request(struct dofi_progress *progress, struct fid *pep,
			const struct fi_info *info);
/*
 * Returns true if the socket takes data, so that the fabric has written everything, or if its
 * connection has ended. Else @ready is called once when it does, in place of @ended.
 */
bool dofi_watch_has_room(struct dofi_watch *watch, void (*ready)(struct dofi_source *source));

/*
 * Returns whether the host of @fd's peer owes an acknowledgement. A live host acknowledges at once,
 * also window probes. Sets *@silent_ms to the time since its last one.
 */
bool dofi_watch_unacked(int fd, uint32_t *silent_ms);

/* Makes the kernel probe the peer of the connected socket @fd when it is silent. */
void dofi_watch_keep_alive(int fd);

/*
 * Returns whether the requester is known to be gone; @ep was opened for its request and is not
 * accepted yet. Before it is accepted, a requester sends nothing but the end of the connection.
 */
bool dofi_watch_requester_gone(struct dofi_progress *progress, struct fid_ep *ep);

/* Call before the endpoint is closed. */
void dofi_watch_close(struct dofi_watch *watch, struct dofi_progress *progress);

/*
 * Half-open connections: a passive endpoint has accepted them, and they send no request.
 *
 * The stream fabrics accept a connection first and then wait for its request, without a limit. So
 * TCP_DEFER_ACCEPT makes the kernel accept connections only when a byte arrives. After 3 s it
 * accepts them without a byte, and at once if there are more than it can keep. Those connections
 * are searched in the epoll sets of the event queue, and ended after another half second without
 * data.
 *
 * Until its request has come, a connection belongs to the passive endpoint, but libfabric does not
 * end it with the passive endpoint: later data or actions of the peer make libfabric use freed
 * memory (until its pull request 12709). Any host can be such a peer: it connects and waits.
 *
 * All on the progress thread.
 */

/* Call when a passive endpoint of the event queue has begun to listen at @port. */
void dofi_halfopen_begin(struct dofi_progress *progress, uint16_t port);

/*
 * Stops accepting connections at @port, handles the requests that have come, and ends connections
 * without one. Then the passive endpoint can be closed. Not within an event.
 */
void dofi_halfopen_end(struct dofi_progress *progress, uint16_t port);

#endif
