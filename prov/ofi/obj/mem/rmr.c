/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote Memory Region: a grant of a part of an LMR to peers, which binds make, change and end. */

#include "obj/mem/rmr.h"

#include "base/log.h"
#include "obj/obj.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

struct dofi_pool dofi_rmr_pool = DOFI_POOL_INIT("rmr", struct dofi_rmr, NULL);

/* Grants */

static inline unsigned bucket_of(DAT_RMR_CONTEXT context)
{
	return context & (DOFI_PZ_GRANTS - 1);
}

/* The static functions of this file require the PZ's rmr_lock, or a bind that is not listed. */

static void unlist(struct dofi_bind *bind)
{
	if (bind->listed)
		LIST_REMOVE(bind, by_context);
	bind->listed = false;
}

/* Ends the fabric's registration, so that no new access succeeds. On failure the grant stays. */
static int grant_end(struct dofi_bind *bind)
{
	int ret;

	if (!bind || !dofi_mr_is_open(&bind->mr))
		return 0;
	ret = dofi_mr_close(&bind->mr);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_MEM, "ending a grant: %s", fi_strerror(-ret));
		return ret;
	}
	unlist(bind);
	dofi_obj_put(&bind->part.lmr->obj);
	return 0;
}

/* A registration that the fabric does not close is lost, like an LMR's. */
void dofi_bind_free(struct dofi_bind *bind)
{
	if (grant_end(bind))
		dofi_obj_put(&bind->part.lmr->obj);
	free(bind);
}

DAT_RETURN dofi_bind_new(struct dofi_rmr *rmr, const struct dofi_part *part, uint32_t secret,
			 struct dofi_bind **out)
{
	struct dofi_bind *bind = malloc(sizeof(*bind));
	struct dofi_mr_request mr;
	int ret;

	if (!bind)
		return DOFI_NO_RESOURCE(MEMORY);
	if (part->lmr && !dofi_obj_get(&part->lmr->obj)) {
		free(bind);
		return DOFI_BAD_HANDLE(LMR);	/* the LMR is being freed */
	}
	*bind = (struct dofi_bind){ .rmr = rmr, .pz = rmr->pz, .part = *part };
	*out = bind;
	if (!part->lmr)
		return DAT_SUCCESS;
	mr = (struct dofi_mr_request){
		.addr = dofi_lmr_memory(part->lmr, part->addr), .len = part->len,
		.remote = dofi_lmr_remote_access(part->priv), .zero_based = part->zero_based,
		.read_only = !(part->lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG),
		.scoped = rmr->ep_scope, .secret = secret,
	};
	ret = dofi_mr_open(&rmr->pz->domain, &mr, &bind->mr);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_MEM, "granting %llu bytes: %s",
			 (unsigned long long)part->len, fi_strerror(-ret));
		dofi_obj_put(&part->lmr->obj);
		free(bind);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	bind->context = bind->mr.key;
	return DAT_SUCCESS;
}

/* An RMR of EP scope belongs to its EP while a bind is pending or in force. */
static void scope_update(struct dofi_rmr *rmr)
{
	if (!rmr->bound && LIST_EMPTY(&rmr->pending))
		rmr->ep = NULL;
}

DAT_RETURN dofi_bind_post(struct dofi_bind *bind, const struct dofi_ep *ep)
{
	struct dofi_rmr *rmr = bind->rmr;
	DAT_RETURN ret = DAT_SUCCESS;

	dofi_mutex_lock(&bind->pz->rmr_lock);
	if (!dofi_rmr_check(rmr)) {
		ret = DOFI_BAD_HANDLE(RMR);	/* the RMR was freed meanwhile */
	} else if (rmr->ep_scope && rmr->ep && rmr->ep != ep) {
		ret = DOFI_RET(DAT_PROTECTION_VIOLATION, 0);
	} else {
		rmr->ep = rmr->ep_scope ? ep : NULL;
		LIST_INSERT_HEAD(&rmr->pending, bind, link);
		bind->listed = dofi_mr_is_open(&bind->mr);
		if (bind->listed)
			LIST_INSERT_HEAD(&bind->pz->grants[bucket_of(bind->context)], bind,
					 by_context);
	}
	dofi_mutex_unlock(&bind->pz->rmr_lock);
	return ret;
}

int dofi_bind_execute(struct dofi_bind *bind)
{
	struct dofi_bind *spent = bind;	/* the grant that is not in force, or not any more */
	struct dofi_rmr *rmr;
	int ret = 0;

	dofi_mutex_lock(&bind->pz->rmr_lock);
	rmr = bind->rmr;
	if (rmr) {
		ret = grant_end(rmr->bound);
		LIST_REMOVE(bind, link);
		if (ret) {
			unlist(bind);
		} else if (bind->part.lmr) {
			spent = rmr->bound;
			rmr->bound = bind;
		} else {
			free(rmr->bound);
			rmr->bound = NULL;
		}
		scope_update(rmr);
	}
	dofi_mutex_unlock(&bind->pz->rmr_lock);
	if (spent)
		dofi_bind_free(spent);
	return ret;
}

DAT_RMR_CONTEXT dofi_bind_replaces(struct dofi_bind *bind)
{
	DAT_RMR_CONTEXT context;

	dofi_mutex_lock(&bind->pz->rmr_lock);
	context = bind->rmr && bind->rmr->bound ? bind->rmr->bound->context : 0;
	dofi_mutex_unlock(&bind->pz->rmr_lock);
	return context;
}

void dofi_bind_drop(struct dofi_bind *bind)
{
	struct dofi_pz *pz = bind->pz;

	dofi_mutex_lock(&pz->rmr_lock);
	if (bind->rmr) {
		LIST_REMOVE(bind, link);
		unlist(bind);
		scope_update(bind->rmr);
	}
	dofi_mutex_unlock(&pz->rmr_lock);
	dofi_bind_free(bind);
}

/* Grants by context */

/* The grant of @context, in force or pending, if its scope lets @ep use it. */
static struct dofi_bind *grant_of(struct dofi_pz *pz, const struct dofi_ep *ep,
				  DAT_RMR_CONTEXT context) DOFI_NEEDS(pz->rmr_lock)
{
	struct dofi_bind *bind;

	LIST_FOREACH(bind, &pz->grants[bucket_of(context)], by_context)
		if (bind->context == context && (!bind->rmr->ep_scope || bind->rmr->ep == ep))
			return bind;
	return NULL;
}

static bool in_force(const struct dofi_bind *bind)
{
	return bind && bind->rmr->bound == bind;
}

bool dofi_rmr_in_force(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context)
{
	bool is;

	dofi_mutex_lock(&pz->rmr_lock);
	is = in_force(grant_of(pz, ep, context));
	dofi_mutex_unlock(&pz->rmr_lock);
	return is;
}

/* An RDMA read writes to the memory, like a peer with the privilege of remote write. */
DAT_RETURN dofi_rmr_find(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context,
			 uint64_t addr, uint64_t len, struct dofi_rmr_memory *memory)
{
	const struct dofi_part *part;
	DAT_RETURN ret = DAT_SUCCESS;
	struct dofi_bind *bind;
	uint64_t first = 0;

	dofi_mutex_lock(&pz->rmr_lock);
	bind = grant_of(pz, ep, context);
	part = bind ? &bind->part : NULL;
	if (part && !part->zero_based)
		first = (uintptr_t)dofi_lmr_memory(part->lmr, part->addr);
	if (!part || !dofi_range_has(first + part->len, part->len, addr, len)) {
		ret = DOFI_RET(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	} else if (!(part->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)) {
		ret = DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	} else {
		memory->base = dofi_lmr_memory(part->lmr, part->addr + (addr - first));
		memory->desc = part->lmr->desc;
		memory->lmr = part->lmr->context;
	}
	dofi_mutex_unlock(&pz->rmr_lock);
	return ret;
}

/* RMRs */

/* Ends the grant in force. */
static void unbind(struct dofi_rmr *rmr)
{
	if (rmr->bound) {
		unlist(rmr->bound);
		dofi_bind_free(rmr->bound);
	}
	rmr->bound = NULL;
	scope_update(rmr);
}

int dofi_rmr_invalidate(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context)
{
	struct dofi_bind *bind;
	int ret = -EACCES;

	dofi_mutex_lock(&pz->rmr_lock);
	bind = grant_of(pz, ep, context);
	if (in_force(bind)) {
		ret = grant_end(bind);
		if (!ret)
			unbind(bind->rmr);
	}
	dofi_mutex_unlock(&pz->rmr_lock);
	return ret;
}

void dofi_rmr_end_scope(struct dofi_ia *ia, const struct dofi_ep *ep)
{
	struct dofi_obj *obj;

	dofi_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(DAT_HANDLE_TYPE_RMR)], sibling) {
		struct dofi_rmr *rmr = (struct dofi_rmr *)obj;

		dofi_mutex_lock(&rmr->pz->rmr_lock);
		if (rmr->ep == ep)
			unbind(rmr);
		dofi_mutex_unlock(&rmr->pz->rmr_lock);
	}
	dofi_mutex_unlock(&ia->lock);
}

/*
 * Binds that are still in an EP's queue complete in order, as if they had been carried out before.
 */
static void rmr_destroy(struct dofi_obj *obj)
{
	struct dofi_rmr *rmr = (struct dofi_rmr *)obj;
	struct dofi_bind *bind;

	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_RMR);
	dofi_mutex_lock(&rmr->pz->rmr_lock);
	while ((bind = LIST_FIRST(&rmr->pending))) {
		LIST_REMOVE(bind, link);
		unlist(bind);
		bind->rmr = NULL;
		grant_end(bind);
	}
	unbind(rmr);
	dofi_mutex_unlock(&rmr->pz->rmr_lock);
	dofi_obj_put(&rmr->pz->obj);
	dofi_obj_free(&dofi_rmr_pool, DAT_HANDLE_TYPE_RMR, obj);
}

static DAT_RETURN rmr_new(DAT_PZ_HANDLE pz_handle, bool ep_scope, DAT_RMR_HANDLE *rmr_handle)
{
	struct dofi_pz *pz DOFI_CALL = dofi_pz_enter(pz_handle);
	struct dofi_rmr *rmr;

	if (!pz)
		return DOFI_BAD_HANDLE(PZ);
	if (ep_scope && !pz->obj.ia->fabric.scoped_keys)
		return DOFI_NOT_SUPPORTED;
	if (!rmr_handle)
		return DOFI_BAD_ARG(2);
	rmr = dofi_obj_new(&dofi_rmr_pool, DAT_HANDLE_TYPE_RMR, pz->obj.ia, rmr_destroy);
	if (!rmr)
		return DOFI_NO_RESOURCE(MEMORY);
	if (!dofi_obj_get(&pz->obj)) {
		dofi_obj_free(&dofi_rmr_pool, DAT_HANDLE_TYPE_RMR, &rmr->obj);
		return DOFI_BAD_HANDLE(PZ);	/* the PZ is being freed */
	}
	rmr->pz = pz;
	rmr->ep_scope = ep_scope;
	rmr->bound = NULL;
	LIST_INIT(&rmr->pending);
	rmr->ep = NULL;
	dofi_obj_publish(&rmr->obj, DAT_HANDLE_TYPE_RMR);
	*rmr_handle = rmr;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return rmr_new(pz_handle, false, rmr_handle);
}

#if DAT_VERSION_MAJOR >= 2
/* Where each peer in the PZ can use each key there is no EP scope. */
DAT_RETURN dofi_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return rmr_new(pz_handle, true, rmr_handle);
}
#endif

DAT_RETURN dofi_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	struct dofi_rmr *rmr DOFI_CALL = dofi_rmr_enter(rmr_handle);
	DAT_RMR_PARAM now = { .mem_priv = DAT_MEM_PRIV_NONE_FLAG };
	const struct dofi_bind *bound;

	if (!rmr)
		return DOFI_BAD_HANDLE(RMR);
	if (mask & ~DAT_RMR_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	now.ia_handle = dofi_ia_export(rmr->obj.ia);
	now.pz_handle = rmr->pz;
	dofi_mutex_lock(&rmr->pz->rmr_lock);
	bound = rmr->bound;
#if DAT_VERSION_MAJOR >= 2
	now.rmr_scope = rmr->ep_scope ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ;
	now.va_type = bound && bound->part.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
#endif
	if (bound) {
		now.lmr_triplet.lmr_context = bound->part.lmr->context;
		now.lmr_triplet.virtual_address = bound->part.addr;
		now.lmr_triplet.segment_length = bound->part.len;
		now.mem_priv = bound->part.priv;
		now.rmr_context = bound->context;
	}
	dofi_mutex_unlock(&rmr->pz->rmr_lock);
	if (!bound && (mask & DAT_RMR_FIELD_LMR_TRIPLET))
		return DOFI_BAD_ARG(2);
	*param = now;
	return DAT_SUCCESS;
}
