/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls in progress on an object, references among objects, and the calls on any handle. */

#include "obj/obj.h"

#include <errno.h>

static struct dofi_obj *ia_of(const struct dofi_obj *obj)
{
	return (struct dofi_obj *)obj->ia;
}

/*
 * The tag is tested after counting: a thread that clears the tag waits for all calls that have seen
 * it. While @obj is entered, obj->ia does not change.
 */
static bool enter(struct dofi_obj *obj, int kind)
{
	dofi_calls_begin(&obj->calls);
	if (dofi_obj_kind(obj) == kind) {
		dofi_calls_begin(&ia_of(obj)->calls);
		if (dofi_obj_kind(ia_of(obj)) == DOFI_KIND(DAT_HANDLE_TYPE_IA)) {
			dofi_log_call_ia = obj->provider->device_name;
			return true;
		}
		dofi_calls_end(&ia_of(obj)->calls);
	}
	dofi_calls_end(&obj->calls);
	return false;
}

void *dofi_obj_enter(struct dofi_pool *pool, DAT_HANDLE_TYPE type, DAT_HANDLE handle)
{
	struct dofi_obj *obj = dofi_obj_check(pool, type, handle);

	return obj && enter(obj, DOFI_KIND(type)) ? obj : NULL;
}

struct dofi_ia *dofi_obj_leave_to_ia(struct dofi_obj *obj)
{
	struct dofi_ia *ia = obj->ia;

	dofi_calls_end(&obj->calls);
	return ia;
}

void dofi_ia_leave(struct dofi_ia *ia)
{
	dofi_log_call_ia = NULL;
	dofi_calls_end(&((struct dofi_obj *)ia)->calls);
}

void dofi_obj_leave(struct dofi_obj *obj)
{
	dofi_ia_leave(dofi_obj_leave_to_ia(obj));
}

bool dofi_obj_get(struct dofi_obj *obj)
{
	int users = atomic_load_explicit(&obj->users, memory_order_relaxed);

	do
		if (users < 0)
			return false;
	while (!atomic_compare_exchange_weak(&obj->users, &users, users + 1));
	return true;
}

void *dofi_obj_use(struct dofi_pool *pool, DAT_HANDLE_TYPE type, DAT_HANDLE handle,
		   const struct dofi_ia *ia)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter(pool, type, handle);

	return obj && obj->ia == ia && dofi_obj_get(obj) ? obj : NULL;
}

int dofi_obj_claim(struct dofi_obj *obj)
{
	return (int)dofi_pool_tag_set(obj, 0);
}

int dofi_obj_claim_unused(struct dofi_obj *obj)
{
	int users = 0;

	if (!atomic_compare_exchange_strong(&obj->users, &users, DOFI_OBJ_ENDED))
		return users > 0 ? -EBUSY : -ENOENT;
	return dofi_obj_claim(obj) ? 0 : -ENOENT;
}

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
	int kind;

	for (i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		if (dofi_pool_owns(pools[i], obj)) {
			kind = dofi_obj_kind(obj);
			return kind && enter(obj, kind) ? obj : NULL;
		}
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
