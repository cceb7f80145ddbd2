/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calls that this release answers with DAT_NOT_IMPLEMENTED. */
#ifndef DOFI_STUBS_H
#define DOFI_STUBS_H

#include "obj/dat.h"

DAT_RETURN dofi_stub_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
					DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
					DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
					DAT_EP_HANDLE *ep);
DAT_RETURN dofi_stub_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
				DAT_SRQ_HANDLE *srq);
DAT_RETURN dofi_stub_srq_free(DAT_SRQ_HANDLE srq);
DAT_RETURN dofi_stub_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie);
DAT_RETURN dofi_stub_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);
DAT_RETURN dofi_stub_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT n);
DAT_RETURN dofi_stub_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low);

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_stub_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
				DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp);
DAT_RETURN dofi_stub_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dofi_stub_csp_free(DAT_CSP_HANDLE csp);
DAT_RETURN dofi_stub_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address,
				       DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data);
DAT_RETURN dofi_stub_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno);
DAT_RETURN dofi_stub_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd);
DAT_RETURN dofi_stub_ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *related);
#endif

#endif
