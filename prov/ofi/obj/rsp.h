/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reserved Service Point: listens for one connection request, for one endpoint. */
#ifndef DOFI_OBJ_RSP_H
#define DOFI_OBJ_RSP_H

#include "obj/sp.h"

static inline struct dofi_sp *dofi_rsp_check(DAT_RSP_HANDLE handle)
{
	return dofi_obj_check(&dofi_rsp_pool, DAT_HANDLE_TYPE_RSP, handle);
}

/* Returns the object entered, see dofi_obj_enter(). */
static inline struct dofi_sp *dofi_rsp_enter(DAT_RSP_HANDLE handle)
{
	return dofi_obj_enter(&dofi_rsp_pool, DAT_HANDLE_TYPE_RSP, handle);
}

DAT_RETURN dofi_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			   DAT_RSP_HANDLE *rsp_handle);
DAT_RETURN dofi_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);
DAT_RETURN dofi_rsp_free(DAT_RSP_HANDLE rsp_handle);

#endif
