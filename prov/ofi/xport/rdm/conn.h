/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The life of a connection, from its place in a PZ to its end. All on the progress thread, and no lock held. */
#ifndef DOFI_XPORT_RDM_CONN_H
#define DOFI_XPORT_RDM_CONN_H

#include "xport/rdm/rdm.h"

struct rdm_peer;

/*
 * A connection for @ep, in its PZ, to the peer that @key names. Only if it is made, @peer goes
 * with it.
 */
int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer, const void *key, size_t len);
/* From here on frames go to the peer, which told where, and its own are for us. */
int rdm_conn_reach(struct rdm_conn *conn);
/*
 * The peer is gone, having sent all frames up to @last, or as many as have come if that is NULL.
 * When those were dealt with the connection ends: with @event, or as one that was never made.
 */
void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event);
/*
 * The connection of @ep, if it has one, is gone: for the fabric, and for the peer, which may not
 * read our memory from here on.
 */
void rdm_conn_close(struct dofi_ep *ep);

#endif
