/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calls that this release answers with DAT_NOT_IMPLEMENTED. */

#include "stubs.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

DAT_RETURN dofi_stub_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
					DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
					DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
					DAT_EP_HANDLE *ep)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
				DAT_SRQ_HANDLE *srq)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_free(DAT_SRQ_HANDLE srq)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT n)
{
	return DOFI_NOT_IMPLEMENTED;
}

DAT_RETURN dofi_stub_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low)
{
	return DOFI_NOT_IMPLEMENTED;
}
