/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection Zone: one fi_domain, so that the fabric itself refuses the keys of another PZ. */

#include "obj/mem/pz.h"

#include "obj/obj.h"
#include "obj/xport.h"

#include <errno.h>

static void pz_ctor(void *obj)
{
	struct dofi_pz *pz = obj;

	/* outlives the PZ: a thread may poll a CQ that is being closed */
	dofi_cq_init(&pz->domain.cq);
	dofi_cq_init(&pz->local.cq);
	dofi_cq_init(&pz->datagram.cq);
}

struct dofi_pool dofi_pz_pool = DOFI_POOL_INIT("pz", struct dofi_pz, pz_ctor);

struct pz_call {
	struct dofi_pz *pz;
	int ret;
};

static void pz_open(void *arg)
{
	struct pz_call *c = arg;
	struct dofi_ia *ia = c->pz->obj.ia;

	c->ret = dofi_domain_open(&c->pz->domain, &ia->progress, ia->progress.fabric,
				  ia->progress.ops, &ia->fabric);
}

static void pz_close(void *arg)
{
	struct dofi_pz *pz = arg;
	const struct dofi_xport *xport = pz->obj.ia->xport;

	if (pz->datagrams_pz)
		pz->obj.ia->datagrams->pz_close(pz);
	if (xport->pz_close)
		xport->pz_close(pz);
	dofi_domain_close(&pz->domain);
}

static void pz_destroy(struct dofi_obj *obj)
{
	struct dofi_pz *pz = (struct dofi_pz *)obj;

	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_PZ);
	dofi_progress_call(&obj->ia->progress, pz_close, pz);
	dofi_obj_free(&dofi_pz_pool, DAT_HANDLE_TYPE_PZ, obj);
}

DAT_RETURN dofi_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	static _Atomic uint64_t last_id;
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct pz_call call = { .ret = -ENODEV };

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!pz_handle)
		return DOFI_BAD_ARG(2);
	call.pz = dofi_obj_new(&dofi_pz_pool, DAT_HANDLE_TYPE_PZ, ia, pz_destroy);
	if (!call.pz)
		return DOFI_NO_RESOURCE(MEMORY);
	call.pz->xport_pz = NULL;
	call.pz->datagrams_pz = NULL;
	call.pz->id = atomic_fetch_add(&last_id, 1) + 1;
	dofi_progress_call(&ia->progress, pz_open, &call);
	if (call.ret) {
		dofi_obj_free(&dofi_pz_pool, DAT_HANDLE_TYPE_PZ, &call.pz->obj);
		return dofi_ret_short(call.ret);
	}
	dofi_obj_publish(&call.pz->obj, DAT_HANDLE_TYPE_PZ);
	*pz_handle = call.pz;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	struct dofi_pz *pz DOFI_CALL = dofi_pz_enter(pz_handle);

	if (!pz)
		return DOFI_BAD_HANDLE(PZ);
	if (mask & ~DAT_PZ_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	param->ia_handle = dofi_ia_export(pz->obj.ia);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_pz_free(DAT_PZ_HANDLE pz_handle)
{
	struct dofi_pz *pz = dofi_pz_enter(pz_handle);
	int err = pz ? dofi_obj_free_unused(&pz->obj) : -ENOENT;

	if (err)
		return err == -EBUSY ? DOFI_BAD_STATE(PZ_IN_USE) : DOFI_BAD_HANDLE(PZ);
	return DAT_SUCCESS;
}
