/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an endpoint of an SRQ receives where the fabric matches messages to receives: a frame, a
 * buffer for its message, the message.
 */
#ifndef DOFI_XPORT_MSG_SRQ_H
#define DOFI_XPORT_MSG_SRQ_H

#include "obj/ep.h"

/* The functions of dofi_xport with these names. */
int msg_srq_open(struct dofi_ep *ep);
void msg_srq_close(struct dofi_ep *ep);
void msg_srq_listen(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);
void msg_srq_arrived(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		     struct dofi_sink *sink) DOFI_NEEDS(ep->lock);
void msg_srq_fed(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);
void msg_srq_clear(struct dofi_ep *ep);

/* Whether a message has arrived, and the SRQ has no buffer for it. */
bool msg_srq_waits(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#endif
