/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of an IA's objects: made, published as handles, retired, freed. */
#ifndef DOFI_OBJ_CHILD_H
#define DOFI_OBJ_CHILD_H

#include "obj/obj.h"

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
 * Frees @obj for a call that has entered it, and leaves it in any case. Returns as
 * dofi_obj_claim_unused().
 */
int dofi_obj_free_unused(struct dofi_obj *obj);
/* @obj counts no more for its IA. Call before publishing or after unlinking. */
void dofi_obj_discount(DAT_HANDLE_TYPE type, struct dofi_obj *obj);
/* Frees the memory, and discounts it. Call before publishing or after unlinking. */
void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj);

#endif
