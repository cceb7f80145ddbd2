/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: the lifecycle of a connection. */
#ifndef DOFI_OBJ_EP_CM_H
#define DOFI_OBJ_EP_CM_H

#include "obj/ep.h"

/* Initialises the connection state of @ep. The EP is not published. */
void dofi_ep_cm_init(struct dofi_ep *ep);

/*
 * From the transport, on the progress thread: the connection is established. On the active side
 * @data is the acceptor's private data.
 */
void dofi_ep_established(struct dofi_ep *ep, const void *data, size_t size)
	DOFI_NEEDS_NOT(ep->lock);

/* From the transport, on the progress thread: the local port of @ep, which is connecting. */
void dofi_ep_bound(struct dofi_ep *ep, uint16_t port) DOFI_NEEDS_NOT(ep->lock);

/* As dofi_ep_end(), for a transport, without the lock; the event has @data. */
void dofi_ep_end_with(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const void *data, size_t size)
	DOFI_NEEDS_NOT(ep->lock);

/*
 * As dofi_ep_end_with(), for an attempt to connect that failed: logs @why, with the peer's address
 * and qualifier.
 */
void dofi_ep_no_connection(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const char *why)
	DOFI_NEEDS_NOT(ep->lock);

/*
 * Progress thread: the peer of connected @ep has left. Messages that it sent are still received, as
 * long as receives are posted; then the connection ends.
 */
void dofi_ep_last_receives(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/* Closes when the last request is done; the program need not poll until then. EP lock held. */
void dofi_ep_graceful_begin(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/*
 * Progress thread: ends the connection at once, as the work that dofi_ep_end() queues does. On
 * return the fabric has no operation of @ep. No lock held.
 */
void dofi_ep_close_now(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/* Begins the attempt to connect anew, with the present ep->xport and ep->attempt. No lock held. */
void dofi_ep_connect_again(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

#endif
