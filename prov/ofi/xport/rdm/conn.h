/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of a connection. All on the progress thread, with no lock held. */
#ifndef DOFI_XPORT_RDM_CONN_H
#define DOFI_XPORT_RDM_CONN_H

#include "xport/rdm/rdm.h"

struct rdm_peer;

/*
 * Makes a connection of @ep to the peer that @key identifies. The connection owns @peer if that
 * succeeds.
 */
int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer, const void *key, size_t len);
/* Makes the peer, which has reported its address, reachable, and accepts its frames. */
int rdm_conn_reach(struct rdm_conn *conn);
/*
 * HELLO is sent. If HELLO_BACK does not arrive, the attempt ends after a limit that is independent
 * of the program's time-out.
 */
void rdm_conn_expect_hello_back(struct rdm_conn *conn);
/*
 * The peer has left, after frame @last, or after the last one that arrived if @last is NULL. When
 * those frames have been processed, the connection ends, with @event; or as one that was never
 * made.
 */
void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event);
/*
 * Closes the connection of @ep, if it has one, at the fabric and for the peer, which may not read
 * our memory from here on.
 */
void rdm_conn_close(struct dofi_ep *ep);

#endif
