/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ gets buffers from it. */

#include "obj/ep_dto.h"

#include "base/layout.h"
#include "obj/ep_attr.h"

#include <rdma/fi_errno.h>

int dofi_srq_buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto)
{
	DAT_RETURN ret;
	uint8_t i;

	dofi_ep_assert_locked(ep);
	for (i = 0; i < dto->n_iov; i++) {
		const DAT_LMR_CONTEXT context = dofi_dto_lmr(dto)[i];
		struct dofi_lmr *lmr = dofi_lmr_at(context);

		if (!lmr || !dofi_lmr_find(context, (uintptr_t)dto->iov[i].iov_base - lmr->origin,
					   dto->iov[i].iov_len, ep->pz,
					   DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &ret))
			return FI_EACCES;
		dto->desc[i] = lmr->desc;
	}
	return 0;
}

struct dofi_dto *dofi_srq_buffer(struct dofi_ep *ep)
{
	struct dofi_dto *dto;

	dofi_ep_assert_locked(ep);
	/* a watermark may have lowered the depth; and a message cannot wait for memory */
	if (dofi_queue_extend(&ep->rq, ep)) {
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
		return NULL;
	}
	dto = dofi_queue_reserve(&ep->rq);
	/*
	 * an EP with its maximum of receives does not join the line: it tries again when a receive
	 * retires
	 */
	if (!dto || !dofi_srq_take(ep->srq, &ep->srq_user, dto))
		return NULL;
	dto->flags = DOFI_DTO_SHARED;
	dto->cq_data = 0;
	dofi_queue_push(&ep->rq);
	dofi_dto_watermarks(ep);
	return dto;
}

struct dofi_dto *dofi_srq_receive(struct dofi_ep *ep)
{
	struct dofi_dto *dto = dofi_srq_buffer(ep);
	int err;

	dofi_ep_assert_locked(ep);
	/* what ends the connection flushes the buffer */
	if (!dto || !ep->rq.open)
		return NULL;
	dofi_queue_advance(&ep->rq);
	err = dofi_srq_buffer_check(ep, dto);
	if (err) {
		dofi_dto_finish(ep, dto, err);
		return NULL;
	}
	dto->at_fabric = true;
	return dto;
}

/* dofi_srq_user.feed: any thread. The memory may be another EP's by now, of another SRQ or none. */
static void fed(struct dofi_srq_user *user)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(user, struct dofi_ep, srq_user);
	struct dofi_srq *srq;

	dofi_ep_lock(ep);
	srq = ep->srq;
	if (srq && dofi_srq_waits(srq, user)) {
		if (!ep->rq.open)
			dofi_srq_leave(srq, user);
		else
			ep->xport->srq_fed(ep);
	}
	dofi_ep_unlock(ep);
}

/* Once for the memory: a thread may still be about to pass a buffer to an earlier EP in it. */
void dofi_ep_srq_init(struct dofi_srq_user *user)
{
	if (!user->feed)
		user->feed = fed;
}
