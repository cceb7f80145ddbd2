/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: connecting, accepting and closing. All on the progress thread. */
#ifndef DOFI_XPORT_MSG_CONNECT_H
#define DOFI_XPORT_MSG_CONNECT_H

#include "obj/cr.h"
#include "obj/ep.h"

/* Members of dofi_xport. */
void msg_connect(struct dofi_ep *ep);
void msg_accept(struct dofi_ep *ep);
void msg_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
void msg_close(struct dofi_ep *ep);

/*
 * Tries the next port of the qualifier, if there is one, after the endpoint has been closed; else
 * the attempt ends because of @why, or if that is NULL for the usual reason of @err.
 */
void msg_connect_failed(struct dofi_ep *ep, int err, const char *why);

/*
 * Reports the local port of @ep. Some fabrics have no port before they have resolved the peer's
 * address.
 */
void msg_show_port(struct dofi_ep *ep);

#endif
