/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Public Service Point: listens for connection requests on a qualifier. */

#include "obj/sp.h"

#include "obj/child.h"

struct dofi_pool dofi_psp_pool = DOFI_POOL_INIT("psp", struct dofi_sp, NULL);

static const struct dofi_sp_kind psp_kind = {
	.pool = &dofi_psp_pool,
	.type = DAT_HANDLE_TYPE_PSP,
	.evd_taken = DOFI_BAD_ARG(3),
};

/* The arguments that both calls that create a PSP have in common. */
static DAT_RETURN plan_make(struct dofi_ia *ia, struct dofi_evd *evd, DAT_PSP_FLAGS flags,
			    const void *out, struct dofi_sp_plan *plan)
{
	*plan = (struct dofi_sp_plan){
		.kind = &psp_kind,
		.ia = ia,
		.evd = evd,
		.makes_eps = flags == DAT_PSP_PROVIDER_FLAG,
	};
	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return DOFI_BAD_ARG(4);
	return out ? DAT_SUCCESS : DOFI_BAD_ARG(5);
}

DAT_RETURN dofi_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			   DAT_PSP_HANDLE *psp_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct dofi_sp_plan plan;
	struct dofi_sp *psp;
	DAT_RETURN ret = plan_make(ia, evd, flags, psp_handle, &plan);

	if (ret)
		return ret;
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	plan.conn_qual = conn_qual;
	ret = dofi_sp_new(&plan, &psp);
	if (!ret)
		*psp_handle = psp;
	return ret;
}

DAT_RETURN dofi_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *psp_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct dofi_sp_plan plan;
	struct dofi_sp *psp;
	DAT_RETURN ret = plan_make(ia, evd, flags, psp_handle, &plan);

	if (ret)
		return ret;
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	ret = dofi_sp_new(&plan, &psp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DOFI_RET(DAT_CONN_QUAL_UNAVAILABLE, 0);
	if (ret)
		return ret;
	dofi_count_exactly(&ia->count.psp_any);
	*conn_qual = psp->conn_qual;
	*psp_handle = psp;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	struct dofi_sp *psp DOFI_CALL = dofi_psp_enter(psp_handle);

	if (!psp)
		return DOFI_BAD_HANDLE(PSP);
	if (mask & ~DAT_PSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_PSP_PARAM){
		.ia_handle = dofi_ia_export(psp->obj.ia),
		.conn_qual = psp->conn_qual,
		.evd_handle = psp->evd,
		.psp_flags = psp->makes_eps ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct dofi_sp *psp = dofi_psp_enter(psp_handle);

	return psp && !dofi_obj_free_unused(&psp->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(PSP);
}
