/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends the connections that a passive endpoint has taken in and not heard of again.
 *
 * The stream fabrics accept a connection first and read the request from it when that comes. They wait for
 * it without a limit, and accept whatever comes to the port. So the system is asked to keep connections to
 * itself until they bring a byte (TCP_DEFER_ACCEPT). After 3 s it lets them in all the same, and
 * connections whose number is beyond its own limits at once: those are searched here, in the sets of
 * the event queue, and ended after another half second of silence.
 *
 * Until a request has come a connection belongs to the passive endpoint, but libfabric does not end it when that is
 * closed: what its peer sends or does later makes libfabric use what is freed (until its pull request
 * 12709). Any host that opens a connection and waits is such a peer.
 *
 * All on the progress thread.
 */
#ifndef DOFI_SOCK_HALFOPEN_H
#define DOFI_SOCK_HALFOPEN_H

#include "loop/progress.h"

/* One of the event queue's passive endpoints begins to listen at @port. */
void dofi_halfopen_begin(struct dofi_progress *progress, uint16_t port);

/*
 * Lets no more connections in at @port, where a passive endpoint has begun to listen, and ends those
 * whose request has not come. Requests that have are handled as events before it returns. Then the passive
 * endpoint can be closed. Not within an event.
 */
void dofi_halfopen_end(struct dofi_progress *progress, uint16_t port);

#endif
