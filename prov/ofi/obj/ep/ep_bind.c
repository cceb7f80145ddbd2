/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binding: the only call on an RMR that is a request of an EP. */

#include "obj/ep/ep_dto.h"
#include "obj/ep/ep_post.h"
#include "obj/mem/rmr.h"

/* The positions of the arguments in the call. */
#if DAT_VERSION_MAJOR >= 2
#define BAD_TRIPLET DOFI_BAD_ARG(3)
#define BAD_PRIVILEGE DOFI_BAD_ARG(4)
#define BAD_FLAGS DOFI_BAD_ARG(8)
#define BAD_CONTEXT DOFI_BAD_ARG(9)
#else
#define BAD_TRIPLET DOFI_BAD_ARG(2)
#define BAD_PRIVILEGE DOFI_BAD_ARG(3)
#define BAD_FLAGS DOFI_BAD_ARG(6)
#define BAD_CONTEXT DOFI_BAD_ARG(7)
#endif

/* Whether @rmr may grant @part. A program may grant its peers only what it may do itself. */
static DAT_RETURN grant_check(const struct dofi_rmr *rmr, const struct dofi_part *part)
{
	const bool reads = part->priv & DAT_MEM_PRIV_REMOTE_READ_FLAG;
	const bool writes = part->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	const struct dofi_lmr *lmr = part->lmr;

	if (part->zero_based && !rmr->obj.ia->fabric.zero_based)
		return DOFI_NOT_SUPPORTED;
	if (lmr->pz != rmr->pz)
		return DOFI_RET(DAT_PROTECTION_VIOLATION, writes ? DAT_PROTECTION_RDMA_WRITE :
								   DAT_PROTECTION_RDMA_READ);
	if (!dofi_lmr_covers(lmr, part->addr, part->len))
		return BAD_TRIPLET;
	if (reads && !(lmr->priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_READ);
	if (writes && !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	return DAT_SUCCESS;
}

/* Posts a bind of @rmr to @part, which was checked, through @ep. */
static DAT_RETURN post_bind(struct dofi_ep *ep, struct dofi_rmr *rmr, const struct dofi_part *part,
			    DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			    DAT_RMR_CONTEXT *context)
{
	struct dofi_dto *dto = NULL;
	struct dofi_bind *bind;
	uint32_t secret;
	DAT_RETURN ret;

	/* by its secret the fabric distinguishes the peer of a connected EP from other peers */
	dofi_mutex_lock(&ep->lock);
	secret = ep->secret;
	dofi_mutex_unlock(&ep->lock);
	ret = dofi_bind_new(rmr, part, secret, &bind);
	if (ret)
		return ret;
	dofi_mutex_lock(&ep->lock);
	if (dofi_queue_may_be_full(&ep->sq))
		dofi_ep_reclaim_slots(ep);
	if (!(dofi_ep_states[ep->state].may & DOFI_EP_MAY_REQUEST))
		ret = dofi_ep_bad_state(ep);
	else if (ep->pz != bind->pz)
		ret = DOFI_RET(DAT_PROTECTION_VIOLATION, 0);
	else if (ep->request_evd && !(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG))
		ret = DOFI_BAD_STATE(EP_EVD_REQUEST);
	else
		dto = dofi_queue_reserve(&ep->sq);
	if (!ret)
		ret = dto ? dofi_bind_post(bind, ep) : DOFI_NO_RESOURCE(TEP);
	if (!ret) {
		dto->kind = DOFI_DTO_BIND;
		dto->flags = flags;
		dto->cookie = cookie.as_64;
		dto->length = 0;
		dto->n_iov = 0;
		dto->rmr = rmr;
		dto->bind = bind;
		ep->scoped |= rmr->ep_scope;
		/* stored now, as its completion may be seen before this returns */
		if (context)
			*context = bind->context;
		dofi_dto_commit(ep, &ep->sq, dto, DOFI_DTO_BIND);
	}
	dofi_mutex_unlock(&ep->lock);
	if (ret)
		dofi_bind_free(bind);
	return ret;
}

/* A triplet of length 0 unbinds: no LMR, and no other argument about the memory, is read. */
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle,
			 DOFI_RMR_LMR const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS priv,
			 DOFI_LMR_VA_TYPE DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	struct dofi_rmr *rmr DOFI_CALL = dofi_rmr_enter(rmr_handle);
	struct dofi_lmr *lmr DOFI_CALL = NULL;
	struct dofi_ep *ep DOFI_CALL = NULL;
	struct dofi_part part = { .priv = priv };
	DAT_RETURN ret;

	if (!rmr)
		return DOFI_BAD_HANDLE(RMR);
	if (!triplet)
		return BAD_TRIPLET;
	part.addr = triplet->virtual_address;
	part.len = triplet->segment_length;
	if (part.len) {
#if DAT_VERSION_MAJOR >= 2
		lmr = dofi_lmr_enter(lmr_handle);
		if (!lmr)
			return DOFI_BAD_HANDLE(LMR);
		if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
			return DOFI_BAD_ARG(5);
		part.zero_based = va_type == DAT_VA_TYPE_ZB;
#else
		lmr = dofi_lmr_enter(dofi_lmr_at(triplet->lmr_context));
		if (!lmr)
			return BAD_TRIPLET;
#endif
	}
	part.lmr = lmr;
	ep = dofi_ep_enter(ep_handle);
	/* without a connection no peer could use the memory */
	if (!ep || ep->datagrams)
		return DOFI_BAD_HANDLE(EP);
	if (!dofi_dto_request_flags(ep, flags))
		return BAD_FLAGS;
	if (lmr && (priv & ~DOFI_LMR_PRIVILEGES))
		return BAD_PRIVILEGE;
	if (lmr && !context)
		return BAD_CONTEXT;
	if (lmr && lmr->context != triplet->lmr_context)
		return BAD_TRIPLET;
	ret = lmr ? grant_check(rmr, &part) : DAT_SUCCESS;
	return ret ? ret : post_bind(ep, rmr, &part, cookie, flags, context);
}
