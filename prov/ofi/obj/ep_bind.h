/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binding: the only call on an RMR that is a request of an EP. */
#ifndef DOFI_OBJ_EP_BIND_H
#define DOFI_OBJ_EP_BIND_H

#include "obj/dat.h"

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS priv,
			 DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);
#else
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *triplet,
			 DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);
#endif

#endif
