/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends the connections that a passive endpoint has taken in and not heard of again.
 *
 * The stream fabrics accept a connection first and read the request from it when that comes.
 * Until then it belongs to the passive endpoint, but nobody ends it when that is closed: what its
 * peer sends or does later makes libfabric use what is freed (until its pull request 12709). Any
 * stranger who opens a connection and waits is such a peer.
 */
#ifndef DOFI_FAB_HALFOPEN_H
#define DOFI_FAB_HALFOPEN_H

#include "fab/progress.h"

/*
 * Lets no more connections in at @port, where one of the event queue's passive endpoints listens,
 * and ends those whose request has not come. Requests that have are handled as events before
 * it returns. Then the passive endpoint can be closed. Progress thread only, not within an event.
 */
void dofi_halfopen_end(struct dofi_progress *progress, uint16_t port);

#endif
