/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: the lifecycle of a connection and of the endpoint itself. */
#ifndef DOFI_OBJ_EP_EP_CM_H
#define DOFI_OBJ_EP_EP_CM_H

#include "obj/ep/ep.h"

/* Initialises the connection state of @ep. The EP is not published. */
void dofi_ep_cm_init(struct dofi_ep *ep);

/*
 * From the transport, on the progress thread: the connection is established. On the active side
 * @data is the acceptor's private data.
 */
void dofi_ep_established(struct dofi_ep *ep, const void *data, size_t size)
	DOFI_NEEDS_NOT(ep->lock);

/* From the transport, on the progress thread: the local port of @ep, which is connecting. */
void dofi_ep_bound(struct dofi_ep *ep, uint16_t port) DOFI_NEEDS_NOT(ep->lock);

/* From the transport: the connection ends, and @event reports that with @data. */
void dofi_ep_end_with(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const void *data, size_t size)
	DOFI_NEEDS_NOT(ep->lock);

/* From the transport: an attempt to connect failed. Logs @why, the peer and the qualifier. */
void dofi_ep_no_connection(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const char *why)
	DOFI_NEEDS_NOT(ep->lock);

/*
 * Progress thread: the peer of connected @ep has left. The connection ends when its last messages
 * are received, or with @event when no receives are posted for a time.
 */
void dofi_ep_last_receives(struct dofi_ep *ep, DAT_EVENT_NUMBER event) DOFI_NEEDS_NOT(ep->lock);

/*
 * Progress thread: ends the connection at once, as the work of dofi_ep_end() does. On return the
 * fabric has no operation of @ep. No lock held.
 */
void dofi_ep_close_now(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/* Begins the attempt to connect anew, with the present ep->xport and ep->attempt. No lock held. */
void dofi_ep_connect_again(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/* ep_connect.c: connect, duplicate, disconnect, reset. */

DAT_RETURN dofi_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
			   DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT data_size,
			   const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data);
#endif
DAT_RETURN dofi_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE dup_handle,
			       DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data,
			       DAT_QOS qos);
DAT_RETURN dofi_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags);
DAT_RETURN dofi_ep_reset(DAT_EP_HANDLE ep_handle);

/* ep_create.c: create, free, reserve, query. */

/*
 * Makes an EP for an arriving request, with the default attributes, in the state
 * TENTATIVE_CONNECTION_PENDING. NULL when memory is short.
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
 * The request that @ep was to accept was answered without it: an EP of the consumer's is
 * unconnected again, an EP of the provider's is freed.
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
