/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Public Service Point: listens for connection requests on a qualifier. */
#ifndef DOFI_OBJ_PSP_H
#define DOFI_OBJ_PSP_H

#include "obj/sp.h"

static inline struct dofi_sp *dofi_psp_check(DAT_PSP_HANDLE handle)
{
	return dofi_obj_check(&dofi_psp_pool, DAT_HANDLE_TYPE_PSP, handle);
}

/* Returns the object entered, see dofi_obj_enter(). */
static inline struct dofi_sp *dofi_psp_enter(DAT_PSP_HANDLE handle)
{
	return dofi_obj_enter(&dofi_psp_pool, DAT_HANDLE_TYPE_PSP, handle);
}

DAT_RETURN dofi_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			   DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dofi_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dofi_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);
DAT_RETURN dofi_psp_free(DAT_PSP_HANDLE psp_handle);

#endif
