/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reserved Service Point: listens for one connection request, for one endpoint. */

#include "obj/sp.h"

#include "obj/child.h"

struct dofi_pool dofi_rsp_pool = DOFI_POOL_INIT("rsp", struct dofi_sp, NULL);

static const struct dofi_sp_kind rsp_kind = {
	.pool = &dofi_rsp_pool,
	.type = DAT_HANDLE_TYPE_RSP,
	.evd_taken = DOFI_BAD_ARG(4),
	.once = true,
};

DAT_RETURN dofi_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			   DAT_RSP_HANDLE *rsp_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	const struct dofi_sp_plan plan = {
		.kind = &rsp_kind,
		.ia = ia,
		.conn_qual = conn_qual,
		.evd = evd,
		.makes_eps = ep_handle == DAT_HANDLE_NULL,
		.reserve = ep,
	};
	struct dofi_sp *rsp;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!plan.makes_eps && (!ep || ep->obj.ia != ia))
		return DOFI_BAD_HANDLE(EP);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	if (!rsp_handle)
		return DOFI_BAD_ARG(5);
	ret = dofi_sp_new(&plan, &rsp);
	if (!ret)
		*rsp_handle = rsp;
	return ret;
}

DAT_RETURN dofi_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	struct dofi_sp *rsp DOFI_CALL = dofi_rsp_enter(rsp_handle);

	if (!rsp)
		return DOFI_BAD_HANDLE(RSP);
	if (mask & ~DAT_RSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_RSP_PARAM){
		.ia_handle = dofi_ia_export(rsp->obj.ia),
		.conn_qual = rsp->conn_qual,
		.evd_handle = rsp->evd,
	};
	dofi_mutex_lock(&rsp->obj.ia->lock);
	param->ep_handle = rsp->reserved;
	dofi_mutex_unlock(&rsp->obj.ia->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	struct dofi_sp *rsp = dofi_rsp_enter(rsp_handle);

	return rsp && !dofi_obj_free_unused(&rsp->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(RSP);
}
