/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points: they listen for connection requests. */
#ifndef DOFI_OBJ_SP_SP_H
#define DOFI_OBJ_SP_SP_H

#include "obj/ep/ep.h"

struct dofi_sp {
	struct dofi_obj obj;
	const struct dofi_sp_kind *kind;
	DAT_CONN_QUAL conn_qual;
	struct dofi_evd *evd;
	bool makes_eps;			/* each request comes with an EP that the provider made */
	bool once;			/* a reserved SP: takes one request */
	struct dofi_ep *reserved;	/* the consumer's EP; written under the IA's lock */

	/* progress thread */
	bool listening;
	bool spent;			/* got the one request that it takes */

	/* the transport's, on the progress thread */
	void *listener;
	/* the listener for peers on this host, if the IA has a local fabric */
	void *local_listener;
	TAILQ_ENTRY(dofi_sp) link;

#if DAT_VERSION_MAJOR >= 2
	/* for dat_csp_query(), which returns pointers */
	DAT_COMM comm;
	struct sockaddr_storage address;
#endif
};

/* The service point of @ia for requests with @conn_qual, or NULL. Progress thread. */
struct dofi_sp *dofi_sp_find(struct dofi_ia *ia, DAT_CONN_QUAL conn_qual);
/* Calls @fn for each service point of @ia that listens. Progress thread. */
void dofi_sps_each(struct dofi_ia *ia, void (*fn)(struct dofi_sp *sp));

/* A Public Service Point listens for connection requests on a qualifier. */

DOFI_OBJ_HANDLES(psp, PSP, struct dofi_sp);

DAT_RETURN dofi_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			   DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dofi_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dofi_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);
DAT_RETURN dofi_psp_free(DAT_PSP_HANDLE psp_handle);

/* A Reserved Service Point listens for one connection request, for one endpoint. */

DOFI_OBJ_HANDLES(rsp, RSP, struct dofi_sp);

DAT_RETURN dofi_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			   DAT_RSP_HANDLE *rsp_handle);
DAT_RETURN dofi_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);
DAT_RETURN dofi_rsp_free(DAT_RSP_HANDLE rsp_handle);

/*
 * A Common Service Point of DAT 2.0 listens at a port of the IA's address. Its qualifier is the
 * port, so a request is like one for any other service point.
 */

#if DAT_VERSION_MAJOR >= 2

DOFI_OBJ_HANDLES(csp, CSP, struct dofi_sp);

DAT_RETURN dofi_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle);
DAT_RETURN dofi_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dofi_csp_free(DAT_CSP_HANDLE csp_handle);

#endif

#endif
