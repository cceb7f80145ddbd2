/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that work on a handle of any type. */
#ifndef DOFI_OBJ_HANDLE_H
#define DOFI_OBJ_HANDLE_H

#include "obj/obj.h"

/* Like dofi_obj_enter(), for an object of any type. */
struct dofi_obj *dofi_obj_enter_any(DAT_HANDLE handle);

/* Functions of the table. */
DAT_RETURN dofi_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context);
DAT_RETURN dofi_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context);
DAT_RETURN dofi_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type);

#endif
