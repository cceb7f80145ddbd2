/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of an endpoint: its PZ, its EVDs, its attributes and the queues of these sizes. */
#ifndef DOFI_OBJ_EP_EP_ATTR_H
#define DOFI_OBJ_EP_EP_ATTR_H

#include "obj/ep/ep.h"

/* The parts of an EP. All but the attributes may be NULL. */
struct dofi_ep_parts {
	struct dofi_pz *pz;
	struct dofi_evd *recv_evd, *request_evd, *connect_evd;
	struct dofi_srq *srq;
	DAT_EP_ATTR attr;
};

/*
 * Replaces *@evd by the EVD of @handle; each is NULL or has a reference. Returns false without side
 * effects unless @handle is null or an EVD that takes @flag, of @ia or, if that is not strict, of
 * another instance of the IA. The log has the reason, with the argument's @name.
 */
bool dofi_ep_evd_use(struct dofi_ia *ia, const char *name, DAT_EVD_HANDLE handle,
		     DAT_EVD_FLAGS flag, struct dofi_evd **evd);
/* Gives up a reference to each part. */
void dofi_ep_parts_put(const struct dofi_ep_parts *parts);

/*
 * Replaces the parts of @ep, if it had any, by @parts, of which the caller has references; posted
 * receives stay. Takes further references. Returns 0, or without a change -ENOMEM, or -EINVAL if
 * completions cannot notify as @parts have it. EP lock held; the EP has no peer.
 */
int dofi_ep_parts_set(struct dofi_ep *ep, const struct dofi_ep_parts *parts) DOFI_NEEDS(ep->lock);
/*
 * From now on operations of @ep complete at @cq, of its PZ, which its EVDs poll while @ep has a
 * peer. Call after each change of @ep->conn. EP lock held; the fabric has no operations of it.
 */
void dofi_ep_set_cq(struct dofi_ep *ep, struct dofi_cq *cq) DOFI_NEEDS(ep->lock);
/* Sets the second CQ of a datagram EP, which its EVDs poll as well; NULL removes it. */
void dofi_ep_set_second_cq(struct dofi_ep *ep, struct dofi_cq *cq) DOFI_NEEDS(ep->lock);
/*
 * Compares the receives that the EP holds with its watermarks, reports passed ones, and lowers the
 * queue's soft_limit to the next one, so that a post tests that alone. Call after a change of the
 * receives, the watermarks or the state. EP lock held.
 */
void dofi_dto_watermarks(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Gives up all parts. */
void dofi_ep_parts_drop(struct dofi_ep *ep);

DAT_RETURN dofi_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param);
DAT_RETURN dofi_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span);
DAT_RETURN dofi_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard);

#endif
