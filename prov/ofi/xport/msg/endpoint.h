/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: the fabric's endpoints, from fi_endpoint() to fi_close(). All on the progress thread. */
#ifndef DOFI_XPORT_MSG_ENDPOINT_H
#define DOFI_XPORT_MSG_ENDPOINT_H

#include "obj/ep.h"

/* The EP of @fid; NULL when it was closed since the event was queued. */
struct dofi_ep *msg_ep_of(struct dofi_ia *ia, const struct fid *fid);

/*
 * An endpoint of @info is to be made as @ep wants it. Where queues are of a fixed size, they are so
 * long as it needs them, so that many find room in a CQ.
 */
void msg_info_fit(const struct dofi_ep *ep, struct fi_info *info);

/*
 * Takes over @fid, an endpoint that was just opened as @info says, and gives it the receives that
 * wait. The peer is to be told of @own.
 */
int msg_endpoint_take(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid,
		      struct dofi_mailbox *own);
/* Closes the endpoint of @ep, if it has one, or cancels its opening. */
void msg_endpoint_close(struct dofi_ep *ep);

#endif
