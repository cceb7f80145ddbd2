/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The common part of all DAT objects: the head, its checks, and its lifecycle (child.c). */
#ifndef DOFI_OBJ_OBJ_H
#define DOFI_OBJ_OBJ_H

#include "base/cond.h"
#include "base/pool.h"
#include "obj/dat.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

struct dofi_ia;

/* DAT_HANDLE_TYPE + 1: the tag of an object's memory in its pool, 0 unless it is a valid handle. */
#define DOFI_KIND(type) ((int)(type) + 1)
#define DOFI_KINDS 16

/* Operations of one kind. counters.c has the meaning of this and the other counters. */
struct dofi_tally {
	uint64_t ops, bytes;
};

static inline void dofi_tally_add(struct dofi_tally *t, uint64_t bytes)
{
	t->ops++;
	t->bytes += bytes;
}

/*
 * Counts without a lock, from several threads. It may lose a count to another thread, and costs no
 * more than an ordinary increment.
 */
static inline void dofi_count(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Counts exactly, by an atomic operation: for rare events. */
static inline void dofi_count_exactly(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

struct dofi_obj {
	const DAT_PROVIDER *provider;	/* first: a registry finds our functions through it */
	/* objects that would be harmed if this one were freed; negative without a handle */
	_Atomic int users;
	_Atomic bool provided;		/* the provider made it: the consumer may not free it */
	/*
	 * Calls of the program in progress; of an IA, also the calls on its objects. Dequeues and
	 * waits do not count: they test the tag under the object's lock. Posts of the fast path do
	 * not count either: they test the tag first, and find the queue of a freed EP closed.
	 */
	struct dofi_calls calls;
	struct dofi_ia *ia;
	DAT_CONTEXT context;		/* the consumer's */
	/* Ends the object, which is claimed and has no calls in progress, without events. */
	void (*destroy)(struct dofi_obj *obj);
	TAILQ_ENTRY(dofi_obj) sibling;	/* under the IA's lock */
};

TAILQ_HEAD(dofi_obj_list, dofi_obj);

/* A line of the log with the name of the object's IA, from a call that sets none (base/log.h). */
#define dofi_obj_log(obj, level, subsys, ...) \
	dofi_log_for((obj)->provider->device_name, level, subsys, __VA_ARGS__)

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
 * A call of the program enters each object that it names, and leaves it before it returns. An
 * object that is entered is not freed, and its IA is not closed. A call that waits for the progress
 * thread leaves the object first, because an agent on that thread may be about to free it.
 *
 * Returns @handle as an object of @pool, entered; NULL if it is not a valid handle of @type.
 */
void *dofi_obj_enter(struct dofi_pool *pool, DAT_HANDLE_TYPE type, DAT_HANDLE handle);
/* Returns @handle as an object of any type, entered; NULL if it is not a valid handle. */
struct dofi_obj *dofi_obj_enter_any(DAT_HANDLE handle);
void dofi_obj_leave(struct dofi_obj *obj);
/* Leaves @obj but not its IA, which it returns: dofi_ia_leave() does that. */
struct dofi_ia *dofi_obj_leave_to_ia(struct dofi_obj *obj);
void dofi_ia_leave(struct dofi_ia *ia);

static inline void dofi_call_end(void *var)
{
	struct dofi_obj *obj;

	memcpy(&obj, var, sizeof(obj));
	if (obj)
		dofi_obj_leave(obj);
}

/* Declares a pointer that dofi_obj_enter() returned: the object is left at the end of the block. */
#define DOFI_CALL __attribute__((cleanup(dofi_call_end)))

/*
 * Whether @obj, which lies in a pool and so stays mapped after its end, is a valid handle of @type
 * now. Under its lock it does not end meanwhile.
 */
static inline bool dofi_obj_is_live(const struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	return __builtin_expect(dofi_obj_kind(obj) == DOFI_KIND(type), 1);
}

/*
 * Takes a reference, so that the program cannot free @obj until dofi_obj_put(). Returns false if
 * the program frees it now.
 */
bool dofi_obj_get(struct dofi_obj *obj);
/* Returns @handle, of @type and @ia, with a reference; NULL if it is not a valid handle. */
void *dofi_obj_use(struct dofi_pool *pool, DAT_HANDLE_TYPE type, DAT_HANDLE handle,
		   const struct dofi_ia *ia);

static inline void dofi_obj_put(struct dofi_obj *obj)
{
	atomic_fetch_sub_explicit(&obj->users, 1, memory_order_release);
}

static inline void dofi_use_end(void *var)
{
	struct dofi_obj *obj;

	memcpy(&obj, var, sizeof(obj));
	if (obj)
		dofi_obj_put(obj);
}

/* Declares a pointer that dofi_obj_use() returned: the reference ends with the block. */
#define DOFI_USED __attribute__((cleanup(dofi_use_end)))

/*
 * Defines dofi_NAME_check(), dofi_NAME_enter() and dofi_NAME_use(): dofi_obj_check(), -enter() and
 * -use() for the handles of one type.
 */
#define DOFI_OBJ_HANDLES(name, kind, type)                                                        \
	static inline type *dofi_##name##_check(DAT_HANDLE handle)                                \
	{                                                                                         \
		return dofi_obj_check(&dofi_##name##_pool, DAT_HANDLE_TYPE_##kind, handle);       \
	}                                                                                         \
	static inline type *dofi_##name##_enter(DAT_HANDLE handle)                                \
	{                                                                                         \
		return dofi_obj_enter(&dofi_##name##_pool, DAT_HANDLE_TYPE_##kind, handle);       \
	}                                                                                         \
	static inline type *dofi_##name##_use(DAT_HANDLE handle, const struct dofi_ia *ia)        \
	{                                                                                         \
		return dofi_obj_use(&dofi_##name##_pool, DAT_HANDLE_TYPE_##kind, handle, ia);     \
	}                                                                                         \
	struct dofi_obj

#define DOFI_OBJ_ENDED (INT_MIN / 2)

/* Ends the handle. Returns the kind of @obj to one of several callers, 0 to the others. */
int dofi_obj_claim(struct dofi_obj *obj);
/*
 * Ends the handle for a call that frees @obj. Returns 0, -EBUSY if other objects use it, or
 * -ENOENT if another thread has claimed it.
 */
int dofi_obj_claim_unused(struct dofi_obj *obj);

/* The functions of the table that take a handle of any type. */
DAT_RETURN dofi_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context);
DAT_RETURN dofi_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context);
DAT_RETURN dofi_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type);

/* child.c: the lifecycle of an IA's objects: made, published as handles, retired, freed. */

/* A new object of @ia, not yet a valid handle; NULL when memory or the IA's limit is used up. */
void *dofi_obj_new(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_ia *ia,
		   void (*destroy)(struct dofi_obj *));
/* Makes it a valid handle. */
void dofi_obj_publish(struct dofi_obj *obj, DAT_HANDLE_TYPE type);
/* Removes it from the list of its IA. Takes the IA's lock. */
void dofi_obj_unlink(struct dofi_obj *obj, DAT_HANDLE_TYPE type);
/*
 * Ends @obj for a call that has entered and claimed it. take_over: waits for the other calls; the
 * caller ends @obj then, and calls dofi_ia_leave() for the IA, which this returns.
 */
void dofi_obj_end(struct dofi_obj *obj);
struct dofi_ia *dofi_obj_take_over(struct dofi_obj *obj);
/*
 * Frees @obj for a call that has entered it, and leaves it in any case. Returns 0, -EBUSY if other
 * objects use it, or -ENOENT if another thread has claimed it.
 */
int dofi_obj_free_unused(struct dofi_obj *obj);
/* @obj counts no more for its IA. Call before publishing or after unlinking. */
void dofi_obj_discount(DAT_HANDLE_TYPE type, struct dofi_obj *obj);
/* Frees the memory, and discounts it. Call before publishing or after unlinking. */
void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj);

#endif
