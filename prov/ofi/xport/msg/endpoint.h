/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: the fabric's endpoints, from fi_endpoint() to fi_close(). All on the
 * progress thread.
 */
#ifndef DOFI_XPORT_MSG_ENDPOINT_H
#define DOFI_XPORT_MSG_ENDPOINT_H

#include "obj/ep.h"

/* Returns the EP of @fid; NULL if @fid was closed after the event was queued. */
struct dofi_ep *msg_ep_of(struct dofi_ia *ia, const struct fid *fid);

/*
 * Sets the sizes of queues and the traffic class in @info for the endpoint of @ep. Queues of fixed
 * size are as long as @ep needs them, so that a CQ has room for many.
 */
void msg_info_fit(const struct dofi_ep *ep, struct fi_info *info);

/*
 * Takes over @fid, an endpoint that was opened with @info, and posts the pending receives. Sets
 * @own for the peer.
 */
int msg_endpoint_take(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid,
		      struct dofi_mailbox *own);
/* Closes the endpoint of @ep, if it has one, or cancels its opening. */
void msg_endpoint_close(struct dofi_ep *ep);
/* dofi_xport.finish */
bool msg_endpoint_finish(struct dofi_ep *ep);

#endif
