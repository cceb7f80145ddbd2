/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table: each DAT attribute, its value on a fabric, and where that comes from. */
#ifndef DOFI_OBJ_CAPS_H
#define DOFI_OBJ_CAPS_H

#include "obj/obj.h"

#include <stdbool.h>

/* Most segments of any operation on any fabric; sizes the slots. */
#define DOFI_MAX_IOV 8

/* How many objects of @type an IA may have at once. */
DAT_COUNT dofi_caps_max_objects(const struct dofi_ia *ia, DAT_HANDLE_TYPE type);

void dofi_caps_ia_attr(const struct dofi_ia *ia, DAT_IA_ATTR *attr);
void dofi_caps_provider_attr(const struct dofi_ia *ia, DAT_PROVIDER_ATTR *attr);

/* Renders the named attributes of @ia: the fabric, and the source of every value. */
void dofi_caps_named_attrs(struct dofi_ia *ia);

/*
 * The attributes that an endpoint gets when the consumer asks for @wanted (NULL:
 * the defaults). DAT_INVALID_PARAMETER when one is beyond the IA's limits.
 */
DAT_RETURN dofi_caps_ep_attr(const struct dofi_ia *ia, const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr);

/*
 * The same for one attribute that is a size or a count, DAT_EP_FIELD_EP_ATTR_... @field:
 * false when it is beyond the IA's limits, and then @attr stays as it is.
 */
bool dofi_caps_ep_take(const struct dofi_ia *ia, DAT_EP_PARAM_MASK field,
		       const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr);

/* Which completion flags may be chosen for a whole stream, and for one of receives. */
bool dofi_caps_stream_flag(DAT_COMPLETION_FLAGS flag);
bool dofi_caps_recv_flag(DAT_COMPLETION_FLAGS flag);

#endif
