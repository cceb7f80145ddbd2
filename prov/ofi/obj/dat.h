/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The DAT headers of the version being built, and how its return codes are made. */
#ifndef DOFI_OBJ_DAT_H
#define DOFI_OBJ_DAT_H

#include "base/log.h"
#include "dat_select.h"

/* A return code with its class bit; DAT's headers have the parts only. */
#define DOFI_RET(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

#define DOFI_BAD_HANDLE(kind) DOFI_RET(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##kind)
/* For an EVD, or a handle of any type: DAT has no subtype. */
#define DOFI_INVALID_HANDLE DOFI_RET(DAT_INVALID_HANDLE, 0)
#define DOFI_BAD_ARG(n) DOFI_RET(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define DOFI_BAD_STATE(what) DOFI_RET(DAT_INVALID_STATE, DAT_INVALID_STATE_##what)
#define DOFI_NO_RESOURCE(what) DOFI_RET(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_##what)
#define DOFI_NOT_IMPLEMENTED DOFI_RET(DAT_NOT_IMPLEMENTED, 0)
#define DOFI_NOT_SUPPORTED DOFI_RET(DAT_MODEL_NOT_SUPPORTED, 0)

/* @ret of a call that is refused, after a line in the log with the reason. */
#define DOFI_REFUSED(ret, subsys, ...)                                       \
	(dofi_log_on(DOFI_WARN, subsys) ?                                    \
		 dofi_log_write(NULL, DOFI_WARN, subsys, __VA_ARGS__) : (void)0, (ret))

/*
 * Time-outs, masks and lengths keep their DAT types; lengths differ between the versions. No LMR is
 * invalidated late, so the fence of 2.0 has nothing to wait for.
 */
#if DAT_VERSION_MAJOR >= 2
typedef DAT_SEG_LENGTH dofi_seg_length;
#define DOFI_INVALIDATE_FENCE DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG
#else
typedef DAT_VLEN dofi_seg_length;
#define DOFI_INVALIDATE_FENCE 0
#endif

/* The return code for a negative errno where no clause of DAT names a better one. */
DAT_RETURN dofi_ret(int err);

/*
 * The return code of calls that fail only by a shortage: of memory, unless @err names another
 * resource.
 */
DAT_RETURN dofi_ret_short(int err);

#endif
