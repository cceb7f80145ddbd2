/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: create, free, reserve, query. */
#ifndef DOFI_OBJ_EP_CREATE_H
#define DOFI_OBJ_EP_CREATE_H

#include "obj/ep.h"

/*
 * Makes an endpoint of the provider's for an arriving request, with the default attributes, in
 * state TENTATIVE_CONNECTION_PENDING. NULL when memory is short.
 */
struct dofi_ep *dofi_ep_tentative(struct dofi_ia *ia);

/*
 * Reserves an unconnected @ep for the service point that has *@by point to it. *@by becomes NULL
 * when the EP is freed or reserved again.
 */
DAT_RETURN dofi_ep_reserve(struct dofi_ep *ep, struct dofi_ep **by);
/* The service point ends: an EP that got no request is unconnected again. */
void dofi_ep_unreserve(struct dofi_ia *ia, struct dofi_ep **by);

/*
 * The request that @ep was to accept (PASSIVE_ or TENTATIVE_CONNECTION_PENDING) was answered
 * without it: an EP of the consumer's is unconnected again, an EP of the provider's is freed.
 */
void dofi_ep_pass_over(struct dofi_ep *ep);

DAT_RETURN dofi_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd,
			  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			  const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle);
DAT_RETURN dofi_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				   DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				   DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq_handle,
				   const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle);
DAT_RETURN dofi_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
DAT_RETURN dofi_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *state,
			      DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);
DAT_RETURN dofi_ep_free(DAT_EP_HANDLE ep_handle);

#endif
