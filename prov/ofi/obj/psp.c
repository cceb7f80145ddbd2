/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Public Service Point: listens for connection requests on a qualifier. */

#include "obj/psp.h"

#include <errno.h>

struct dofi_pool dofi_psp_pool = DOFI_POOL_INIT("psp", struct dofi_psp, NULL);

struct listen_call {
	struct dofi_psp *psp;
	int ret;
};

static void psp_listen(void *arg)
{
	struct listen_call *c = arg;

	c->ret = c->psp->obj.ia->xport->listen(c->psp);
}

static void psp_unlisten(void *arg)
{
	struct dofi_psp *psp = arg;

	psp->obj.ia->xport->unlisten(psp);
}

static void psp_destroy(struct dofi_obj *obj)
{
	struct dofi_psp *psp = (struct dofi_psp *)obj;

	if (!dofi_obj_retire(obj))
		return;
	dofi_progress_call(&obj->ia->progress, psp_unlisten, psp);
	dofi_obj_put(&psp->evd->obj);
	dofi_obj_free(&dofi_psp_pool, DAT_HANDLE_TYPE_PSP, obj);
}

/* @conn_qual 0 lets the transport choose. */
static DAT_RETURN psp_new(struct dofi_ia *ia, DAT_CONN_QUAL conn_qual, struct dofi_evd *evd,
			  struct dofi_psp **psp)
{
	struct listen_call call = { .ret = -ENODEV };

	call.psp = dofi_obj_new(&dofi_psp_pool, DAT_HANDLE_TYPE_PSP, ia, psp_destroy);
	if (!call.psp)
		return DOFI_NO_RESOURCE(MEMORY);
	call.psp->conn_qual = conn_qual;
	call.psp->evd = evd;
	call.psp->flags = DAT_PSP_CONSUMER_FLAG;
	dofi_obj_get(&evd->obj);
	/* a request may arrive at once, and its event carries the handle */
	dofi_obj_publish(&call.psp->obj, DAT_HANDLE_TYPE_PSP);
	dofi_progress_call(&ia->progress, psp_listen, &call);
	if (!call.ret) {
		*psp = call.psp;
		return DAT_SUCCESS;
	}
	dofi_obj_retire(&call.psp->obj);
	dofi_obj_put(&evd->obj);
	dofi_obj_free(&dofi_psp_pool, DAT_HANDLE_TYPE_PSP, &call.psp->obj);
	return call.ret == -EADDRINUSE ? DOFI_RET(DAT_CONN_QUAL_IN_USE, 0) : dofi_ret(call.ret);
}

/* The arguments that both ways of creation have in common. */
static DAT_RETURN arguments_check(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE evd_handle,
				  DAT_PSP_FLAGS flags, const void *out,
				  struct dofi_ia **ia, struct dofi_evd **evd)
{
	*ia = dofi_ia_check(ia_handle);
	*evd = dofi_evd_check(evd_handle);
	if (!*ia)
		return DOFI_BAD_HANDLE(IA);
	if (!*evd || (*evd)->obj.ia != *ia || !((*evd)->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (flags == DAT_PSP_PROVIDER_FLAG)
		return DOFI_NOT_SUPPORTED;
	if (flags != DAT_PSP_CONSUMER_FLAG)
		return DOFI_BAD_ARG(4);
	return out ? DAT_SUCCESS : DOFI_BAD_ARG(5);
}

DAT_RETURN dofi_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp_handle)
{
	struct dofi_ia *ia;
	struct dofi_evd *evd;
	struct dofi_psp *psp;
	DAT_RETURN ret = arguments_check(ia_handle, evd_handle, flags, psp_handle, &ia, &evd);

	if (ret)
		return ret;
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	ret = psp_new(ia, conn_qual, evd, &psp);
	if (!ret)
		*psp_handle = psp;
	return ret;
}

DAT_RETURN dofi_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *psp_handle)
{
	struct dofi_ia *ia;
	struct dofi_evd *evd;
	struct dofi_psp *psp;
	DAT_RETURN ret = arguments_check(ia_handle, evd_handle, flags, psp_handle, &ia, &evd);

	if (ret)
		return ret;
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	ret = psp_new(ia, 0, evd, &psp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DOFI_RET(DAT_CONN_QUAL_UNAVAILABLE, 0);
	if (ret)
		return ret;
	*conn_qual = psp->conn_qual;
	*psp_handle = psp;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	struct dofi_psp *psp = dofi_psp_check(psp_handle);

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
		.psp_flags = psp->flags,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct dofi_psp *psp = dofi_psp_check(psp_handle);

	if (!psp)
		return DOFI_BAD_HANDLE(PSP);
	psp_destroy(&psp->obj);
	return DAT_SUCCESS;
}
