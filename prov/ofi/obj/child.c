/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of an IA's objects: made, published as handles, retired, freed. */

#include "obj/obj.h"

#include "obj/caps.h"
#include "obj/ia.h"

void *dofi_obj_new(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_ia *ia,
		   void (*destroy)(struct dofi_obj *))
{
	DAT_COUNT *n = &ia->n_children[DOFI_KIND(type)];
	struct dofi_obj *obj = NULL;

	dofi_mutex_lock(&ia->lock);
	if (*n < dofi_caps_max_objects(ia, type))
		obj = dofi_pool_get(pool);
	if (obj)
		++*n;
	dofi_mutex_unlock(&ia->lock);
	if (!obj)
		return NULL;
	obj->provider = ia->obj.provider;
	obj->ia = ia;
	obj->context = (DAT_CONTEXT){ .as_64 = 0 };
	obj->destroy = destroy;
	atomic_store(&obj->users, DOFI_OBJ_ENDED);
	atomic_store(&obj->provided, false);
	return obj;
}

void dofi_obj_publish(struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	struct dofi_ia *ia = obj->ia;

	dofi_mutex_lock(&ia->lock);
	TAILQ_INSERT_TAIL(&ia->children[DOFI_KIND(type)], obj, sibling);
	ia->made[DOFI_KIND(type)]++;
	dofi_mutex_unlock(&ia->lock);
	atomic_store(&obj->users, 0);
	dofi_pool_tag_set(obj, DOFI_KIND(type));
}

void dofi_obj_unlink(struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	struct dofi_ia *ia = obj->ia;

	dofi_mutex_lock(&ia->lock);
	TAILQ_REMOVE(&ia->children[DOFI_KIND(type)], obj, sibling);
	ia->freed[DOFI_KIND(type)]++;
	dofi_mutex_unlock(&ia->lock);
}

struct dofi_ia *dofi_obj_take_over(struct dofi_obj *obj)
{
	struct dofi_ia *ia = dofi_obj_leave_to_ia(obj);

	dofi_calls_await(&obj->calls);
	return ia;
}

void dofi_obj_end(struct dofi_obj *obj)
{
	struct dofi_ia *ia = dofi_obj_take_over(obj);

	obj->destroy(obj);
	dofi_ia_leave(ia);
}

int dofi_obj_free_unused(struct dofi_obj *obj)
{
	int ret = dofi_obj_claim_unused(obj);

	if (ret)
		dofi_obj_leave(obj);
	else
		dofi_obj_end(obj);
	return ret;
}

void dofi_obj_discount(DAT_HANDLE_TYPE type, struct dofi_obj *obj)
{
	if (obj->ia->log_counters)
		obj->ia->log_counters(obj, type);
	dofi_mutex_lock(&obj->ia->lock);
	--obj->ia->n_children[DOFI_KIND(type)];
	dofi_mutex_unlock(&obj->ia->lock);
}

void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj)
{
	dofi_obj_discount(type, obj);
	dofi_pool_put(pool, obj);
}
