/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all DAT objects have in common: the head, and its checks. child.h makes and ends them. */
#ifndef DOFI_OBJ_OBJ_H
#define DOFI_OBJ_OBJ_H

#include "base/pool.h"
#include "obj/dat.h"
#include "obj/tally.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

struct dofi_ia;

/* DAT_HANDLE_TYPE + 1: the tag of an object's memory in its pool, 0 unless it is a valid handle. */
#define DOFI_KIND(type) ((int)(type) + 1)
#define DOFI_KINDS 16

struct dofi_obj {
	const DAT_PROVIDER *provider;	/* first: a registry finds our functions through it */
	_Atomic int users;		/* objects that would be harmed if this one were freed */
	_Atomic bool provided;		/* the provider made it: the consumer may not free it */
	struct dofi_ia *ia;
	DAT_CONTEXT context;		/* the consumer's */
	/* Ends the object with its IA, without events. Progress thread. */
	void (*destroy)(struct dofi_obj *obj);
	TAILQ_ENTRY(dofi_obj) sibling;	/* under the IA's lock */
};

TAILQ_HEAD(dofi_obj_list, dofi_obj);

extern struct dofi_pool dofi_ia_pool, dofi_pz_pool, dofi_lmr_pool, dofi_rmr_pool, dofi_cno_pool,
	dofi_evd_pool, dofi_ep_pool, dofi_srq_pool, dofi_psp_pool, dofi_rsp_pool, dofi_csp_pool,
	dofi_cr_pool;

/* The DOFI_KIND() of @obj, which lies in a pool; 0 if it is no valid handle. */
static inline int dofi_obj_kind(const struct dofi_obj *obj)
{
	return (int)dofi_pool_tag(obj);
}

/* @handle as an object of @pool if it is a live one of @type, else NULL; any value is safe. */
static inline void *dofi_obj_check(struct dofi_pool *pool, DAT_HANDLE_TYPE type, DAT_HANDLE handle)
{
	struct dofi_obj *obj = handle;

	if (!dofi_pool_owns(pool, obj))
		return NULL;
	return dofi_obj_kind(obj) == DOFI_KIND(type) ? obj : NULL;
}

/*
 * Whether @handle is a live object of @pool, which is for @type, by one comparison; it may also be
 * live if this returns false.
 */
static inline bool dofi_obj_among_first(const struct dofi_pool *pool, DAT_HANDLE_TYPE type,
					DAT_HANDLE handle)
{
	return dofi_pool_first_tagged(pool, handle, DOFI_KIND(type));
}

/*
 * @obj, which may be NULL, if it is a valid handle of @type now, else NULL. It lies in a pool: the
 * memory of an object stays mapped after its end.
 */
static inline struct dofi_obj *dofi_obj_live(struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	return obj && dofi_obj_kind(obj) == DOFI_KIND(type) ? obj : NULL;
}

static inline void dofi_obj_get(struct dofi_obj *obj)
{
	atomic_fetch_add_explicit(&obj->users, 1, memory_order_relaxed);
}

static inline void dofi_obj_put(struct dofi_obj *obj)
{
	atomic_fetch_sub_explicit(&obj->users, 1, memory_order_release);
}

static inline int dofi_obj_in_use(struct dofi_obj *obj)
{
	return atomic_load_explicit(&obj->users, memory_order_acquire) > 0;
}

#endif
