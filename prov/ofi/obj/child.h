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
/* Ends the handle; only one of several callers gets its kind, the others 0. Takes the IA's lock. */
int dofi_obj_retire(struct dofi_obj *obj);
/*
 * The two halves of dofi_obj_retire(), for a caller with a lock that comes after the IA's. claim:
 * the kind, or 0.
 */
int dofi_obj_claim(struct dofi_obj *obj);
void dofi_obj_unlink(struct dofi_obj *obj, int kind);
/* Frees the memory. Call before publishing or after retiring. */
void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj);

#endif
