/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends connections that a passive endpoint has accepted and that send no request.
 *
 * The stream fabrics accept a connection first and then wait for its request, without a limit. So
 * TCP_DEFER_ACCEPT makes the kernel accept connections only when a byte arrives. After 3 s it
 * accepts them without a byte, and at once if there are more than it can keep. Those connections
 * are searched here, in the epoll sets of the event queue, and ended after another half second of
 * silence.
 *
 * Until its request has come, a connection belongs to the passive endpoint, but libfabric does not
 * end it with the passive endpoint: what the peer sends or does later makes libfabric use freed
 * memory (until its pull request 12709). Any host can be such a peer: it connects and waits.
 *
 * All on the progress thread.
 */
#ifndef DOFI_SOCK_HALFOPEN_H
#define DOFI_SOCK_HALFOPEN_H

#include "loop/progress.h"

/* Call when a passive endpoint of the event queue has begun to listen at @port. */
void dofi_halfopen_begin(struct dofi_progress *progress, uint16_t port);

/*
 * Stops accepting connections at @port, and ends those without a complete request. Requests that
 * have come are handled as events before this returns. After it the passive endpoint can be closed.
 * Not within an event.
 */
void dofi_halfopen_end(struct dofi_progress *progress, uint16_t port);

#endif
