/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an endpoint is made of: its zone, its EVDs, its attributes and the queues they size. */
#ifndef DOFI_OBJ_EP_ATTR_H
#define DOFI_OBJ_EP_ATTR_H

#include "obj/ep.h"

/* All but the attributes may be NULL. */
struct dofi_ep_parts {
	struct dofi_pz *pz;
	struct dofi_evd *recv_evd, *request_evd, *connect_evd;
	struct dofi_srq *srq;
	DAT_EP_ATTR attr;
};

/* Whether @handle is NULL or an EVD of @ia that takes @flag; *@evd is it. */
bool dofi_ep_evd(struct dofi_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dofi_evd **evd);

/*
 * Makes @ep consist of @parts in place of what it had, if anything; posted receives stay.
 * Counts it at everything it uses, and lets its EVDs poll its CQ. 0, or nothing has
 * changed: -ENOMEM, or -EINVAL when completions cannot notify as @parts have it, because of
 * what else goes to their EVDs, or of the fabric. EP lock held, or the EP not yet published;
 * nothing at the fabric.
 */
int dofi_ep_parts_set(struct dofi_ep *ep, const struct dofi_ep_parts *parts);
/*
 * Its operations complete at @cq, of its zone, from now on, and its EVDs poll that. EP lock held;
 * nothing at the fabric.
 */
void dofi_ep_set_cq(struct dofi_ep *ep, struct dofi_cq *cq);
/*
 * Compares the receives that the EP holds with its watermarks, tells of those that are passed,
 * and sets the queue's depth to where the next one is: posting up to there need not look. EP
 * lock held, and again whenever receives, watermarks or their meaning in a new state change.
 */
void dofi_dto_watermarks(struct dofi_ep *ep);

/* Gives everything back. */
void dofi_ep_parts_drop(struct dofi_ep *ep);

DAT_RETURN dofi_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param);
DAT_RETURN dofi_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span);
DAT_RETURN dofi_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard);

#endif
