/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binding: the only call on an RMR that is a request of an EP. */

#include "obj/ep/ep_dto.h"
#include "obj/ep/ep_post.h"
#include "obj/mem/rmr.h"

/* A bind as the consumer posted it, without the differences between the versions. */
struct bind_call {
	const DAT_LMR_TRIPLET *triplet;
	DAT_MEM_PRIV_FLAGS priv;
	bool zero_based;
	DAT_EP_HANDLE ep;
	DAT_RMR_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	DAT_RMR_CONTEXT *context;
};

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

/*
 * Whether @rmr may be bound to @lmr as @c says. A program may grant its peers only what it may do
 * itself.
 */
static DAT_RETURN grant_check(const struct dofi_rmr *rmr, const struct dofi_lmr *lmr,
			      const struct bind_call *c)
{
	const bool reads = c->priv & DAT_MEM_PRIV_REMOTE_READ_FLAG;
	const bool writes = c->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	const DAT_LMR_TRIPLET *t = c->triplet;

	if (c->priv & ~DOFI_LMR_PRIVILEGES)
		return BAD_PRIVILEGE;
	if (!c->context)
		return BAD_CONTEXT;
	if (lmr->context != t->lmr_context)
		return BAD_TRIPLET;
	if (c->zero_based && !rmr->obj.ia->fabric.zero_based)
		return DOFI_NOT_SUPPORTED;
	if (lmr->pz != rmr->pz)
		return DOFI_RET(DAT_PROTECTION_VIOLATION, writes ? DAT_PROTECTION_RDMA_WRITE :
								   DAT_PROTECTION_RDMA_READ);
	if (!dofi_lmr_covers(lmr, t->virtual_address, t->segment_length))
		return BAD_TRIPLET;
	if (reads && !(lmr->priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_READ);
	if (writes && !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	return DAT_SUCCESS;
}

/* Reserves the slot of @bind if it may be posted through @ep. EP lock held. */
static DAT_RETURN bind_admit(struct dofi_ep *ep, struct dofi_bind *bind, struct dofi_dto **dto)
	DOFI_NEEDS(ep->lock)
{
	if (!(dofi_ep_states[ep->state].may & DOFI_EP_MAY_REQUEST))
		return dofi_ep_bad_state(ep);
	if (ep->pz != bind->pz)
		return DOFI_RET(DAT_PROTECTION_VIOLATION, 0);
	if (ep->request_evd && !(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG))
		return DOFI_BAD_STATE(EP_EVD_REQUEST);
	*dto = dofi_queue_reserve(&ep->sq);
	return *dto ? dofi_bind_post(bind, ep) : DOFI_NO_RESOURCE(TEP);
}

/* Binds @rmr to @lmr, or unbinds it if @lmr is NULL. */
static DAT_RETURN rmr_bind(struct dofi_rmr *rmr, struct dofi_lmr *lmr, const struct bind_call *c)
{
	const struct dofi_part part = {
		.lmr = lmr, .addr = c->triplet->virtual_address, .len = c->triplet->segment_length,
		.priv = c->priv, .zero_based = c->zero_based,
	};
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(c->ep);
	struct dofi_bind *bind;
	struct dofi_dto *dto;
	uint32_t secret;
	DAT_RETURN ret;

	/* without a connection no peer could use the memory */
	if (!ep || ep->datagrams)
		return DOFI_BAD_HANDLE(EP);
	if (!dofi_dto_request_flags(ep, c->flags))
		return BAD_FLAGS;
	ret = lmr ? grant_check(rmr, lmr, c) : DAT_SUCCESS;
	if (ret)
		return ret;
	/* by its secret the fabric distinguishes the peer of a connected EP from other peers */
	dofi_ep_lock(ep);
	secret = ep->secret;
	dofi_ep_unlock(ep);
	ret = dofi_bind_new(rmr, &part, secret, &bind);
	if (ret)
		return ret;
	dofi_ep_lock(ep);
	if (dofi_queue_full(&ep->sq))
		dofi_ep_reclaim_slots(ep);
	ret = bind_admit(ep, bind, &dto);
	if (!ret) {
		dto->kind = DOFI_DTO_BIND;
		dto->flags = c->flags;
		dto->cookie = c->cookie.as_64;
		dto->length = 0;
		dto->n_iov = 0;
		dto->rmr = rmr;
		dto->bind = bind;
		ep->scoped |= rmr->ep_scope;
		/* stored now, as its completion may be seen before this returns */
		if (c->context)
			*c->context = bind->context;
		dofi_dto_commit(ep, &ep->sq, dto, DOFI_DTO_BIND);
	}
	dofi_ep_unlock(ep);
	if (ret)
		dofi_bind_free(bind);
	return ret;
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS priv,
			 DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	const struct bind_call c = {
		triplet, priv, va_type == DAT_VA_TYPE_ZB, ep_handle, cookie, flags, context
	};
	struct dofi_rmr *rmr DOFI_CALL = dofi_rmr_enter(rmr_handle);
	struct dofi_lmr *lmr DOFI_CALL = NULL;

	if (!rmr)
		return DOFI_BAD_HANDLE(RMR);
	if (!triplet)
		return BAD_TRIPLET;
	if (triplet->segment_length) {
		lmr = dofi_lmr_enter(lmr_handle);
		if (!lmr)
			return DOFI_BAD_HANDLE(LMR);
		if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
			return DOFI_BAD_ARG(5);
	}
	return rmr_bind(rmr, lmr, &c);
}
#else
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *triplet,
			 DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	const struct bind_call c = { triplet, priv, false, ep_handle, cookie, flags, context };
	struct dofi_rmr *rmr DOFI_CALL = dofi_rmr_enter(rmr_handle);
	struct dofi_lmr *lmr DOFI_CALL = NULL;

	if (!rmr)
		return DOFI_BAD_HANDLE(RMR);
	if (!triplet)
		return BAD_TRIPLET;
	if (triplet->segment_length) {
		lmr = dofi_lmr_enter(dofi_lmr_at(triplet->lmr_context));
		if (!lmr)
			return BAD_TRIPLET;
	}
	return rmr_bind(rmr, lmr, &c);
}
#endif
