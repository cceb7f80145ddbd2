/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that work on a handle of any type. */

#include "obj/handle.h"

static struct dofi_pool *const pools[] = {
	&dofi_ep_pool,	&dofi_srq_pool, &dofi_evd_pool, &dofi_lmr_pool,
	&dofi_pz_pool,	&dofi_cr_pool,	&dofi_psp_pool, &dofi_rsp_pool,
	&dofi_rmr_pool, &dofi_cno_pool, &dofi_ia_pool,
#if DAT_VERSION_MAJOR >= 2
	&dofi_csp_pool,
#endif
};

struct dofi_obj *dofi_obj_enter_any(DAT_HANDLE handle)
{
	struct dofi_obj *obj = handle;
	size_t i;

	for (i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		if (dofi_pool_owns(pools[i], obj))
			return dofi_obj_enter_as(obj, dofi_obj_kind(obj));
	return NULL;
}

DAT_RETURN dofi_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(handle);

	if (!obj)
		return DOFI_INVALID_HANDLE;
	__atomic_store(&obj->context.as_64, &context.as_64, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(handle);

	if (!obj)
		return DOFI_INVALID_HANDLE;
	if (!context)
		return DOFI_BAD_ARG(2);
	__atomic_load(&obj->context.as_64, &context->as_64, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(handle);
	int kind = obj ? dofi_obj_kind(obj) : 0;

	if (!kind)
		return DOFI_INVALID_HANDLE;
	if (!type)
		return DOFI_BAD_ARG(2);
	*type = (DAT_HANDLE_TYPE)(kind - 1);
	return DAT_SUCCESS;
}
