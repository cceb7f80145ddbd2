/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notices the end of a connection that the fabric cannot see.
 *
 * The stream fabrics learn that a peer is gone by reading to the end of its socket. A message for
 * which no receive is posted stops them from reading, and then a dead peer would stay connected for
 * ever. The kernel knows: the watch finds the endpoint's socket (libfabric names it from 2.2 on), and
 * epoll reports the peer's end of it. The watch also has the kernel probe a peer that is silent for
 * DAT_OFI_KEEPALIVE_S: a host that lost its power or its cable, or forgot the connection, does not
 * end it otherwise. While data is in flight to the peer the kernel does not probe, and goes on for a
 * quarter of an hour; so the watch looks whether any of it is acknowledged.
 */
#ifndef DOFI_SOCK_WATCH_H
#define DOFI_SOCK_WATCH_H

#include "loop/progress.h"

#include <rdma/fi_endpoint.h>
#include <stdbool.h>

struct dofi_watch {
	struct dofi_source source;	/* its ready() is called once, when the peer ended */
	int fd;				/* the fabric's, not ours to close; -1 when not watching */
	struct dofi_progress *progress;
	struct dofi_timer timer;	/* to the next look */
	bool owes;			/* at the last one the peer had yet to acknowledge something */
};

/*
 * Begins to watch connected @ep. -ENOENT when it has no socket that can be found.
 * All on the progress thread.
 */
int dofi_watch_open(struct dofi_watch *watch, struct dofi_progress *progress, struct fid_ep *ep,
		    void (*ended)(struct dofi_source *source));
/* Has the kernel ask the peer of @fd, a connected socket, as above. */
void dofi_watch_keep_alive(int fd);

/*
 * Whether the requester of @ep, which was opened for its request and is not accepted yet, is known to have
 * gone: it sends nothing before it is accepted but its end.
 */
bool dofi_watch_requester_gone(struct dofi_progress *progress, struct fid_ep *ep);

/* Before the endpoint is closed. */
void dofi_watch_close(struct dofi_watch *watch, struct dofi_progress *progress);

#endif
