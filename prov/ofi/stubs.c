/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calls that this release answers with DAT_NOT_IMPLEMENTED. */

#include "stubs.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_stub_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
				DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_csp_free(DAT_CSP_HANDLE csp)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address,
				       DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
						  DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
						  DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
					      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					      DAT_COMPLETION_FLAGS flags)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *related)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	return DOFI_NOT_IMPLEMENTED;
}
#endif
