/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of an IA's objects: made, published as handles, retired, freed. */

#include "obj/child.h"

#include "obj/caps.h"
#include "obj/ia.h"

/* Counts a child unless the IA has as many as its attributes promise. */
static bool count_in(struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	DAT_COUNT *n = &ia->n_children[DOFI_KIND(type)];
	bool allowed;

	dofi_mutex_lock(&ia->lock);
	allowed = *n < dofi_caps_max_objects(ia, type);
	if (allowed)
		++*n;
	dofi_mutex_unlock(&ia->lock);
	return allowed;
}

static void count_out(struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	dofi_mutex_lock(&ia->lock);
	--ia->n_children[DOFI_KIND(type)];
	dofi_mutex_unlock(&ia->lock);
}

void *dofi_obj_new(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_ia *ia,
		   void (*destroy)(struct dofi_obj *))
{
	struct dofi_obj *obj;

	if (!count_in(ia, type))
		return NULL;
	obj = dofi_pool_get(pool);
	if (!obj) {
		count_out(ia, type);
		return NULL;
	}
	obj->provider = ia->obj.provider;
	obj->ia = ia;
	obj->context = (DAT_CONTEXT){ .as_64 = 0 };
	obj->destroy = destroy;
	atomic_store(&obj->users, 0);
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
	dofi_pool_tag_set(obj, DOFI_KIND(type));
}

int dofi_obj_claim(struct dofi_obj *obj)
{
	return (int)dofi_pool_tag_set(obj, 0);
}

void dofi_obj_unlink(struct dofi_obj *obj, int kind)
{
	struct dofi_ia *ia = obj->ia;

	dofi_mutex_lock(&ia->lock);
	TAILQ_REMOVE(&ia->children[kind], obj, sibling);
	ia->freed[kind]++;
	dofi_mutex_unlock(&ia->lock);
}

int dofi_obj_retire(struct dofi_obj *obj)
{
	int kind = dofi_obj_claim(obj);

	if (kind)
		dofi_obj_unlink(obj, kind);
	return kind;
}

void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj)
{
	if (obj->ia->log_counters)
		obj->ia->log_counters(obj, type);
	count_out(obj->ia, type);
	dofi_pool_put(pool, obj);
}
