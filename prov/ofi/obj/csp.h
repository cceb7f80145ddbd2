/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common Service Point of DAT 2.0: listens at a port of the IA's address. */
#ifndef DOFI_OBJ_CSP_H
#define DOFI_OBJ_CSP_H

#include "obj/sp.h"

#if DAT_VERSION_MAJOR >= 2

/* The qualifier of a CSP is the port, so a request is like one for any other service point. */
struct dofi_csp {
	struct dofi_sp sp;
	DAT_COMM comm;
	struct sockaddr_storage address;
};

static inline struct dofi_csp *dofi_csp_check(DAT_CSP_HANDLE handle)
{
	return dofi_obj_check(&dofi_csp_pool, DAT_HANDLE_TYPE_CSP, handle);
}

/* Returns the object entered, see dofi_obj_enter(). */
static inline struct dofi_csp *dofi_csp_enter(DAT_CSP_HANDLE handle)
{
	return dofi_obj_enter(&dofi_csp_pool, DAT_HANDLE_TYPE_CSP, handle);
}

DAT_RETURN dofi_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle);
DAT_RETURN dofi_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dofi_csp_free(DAT_CSP_HANDLE csp_handle);

#endif

#endif
