/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram endpoints: the UD service of the InfiniBand extension, of 2.0 programs only. A datagram
 * EP has no connection: it is CONNECTED from dat_ep_create() to dat_ep_free(), sends to any address
 * handle of its PZ, and receives from any peer that has an address handle of it. dat_ep_connect()
 * and dat_cr_accept() exchange addresses; an exchange ends with one event. struct dofi_datagrams in
 * obj/xport.h is the transport's part.
 */
#ifndef DOFI_OBJ_EP_DATAGRAM_H
#define DOFI_OBJ_EP_DATAGRAM_H

#include "obj/ep/ep.h"

/* Bytes in front of the data of each received datagram, as InfiniBand's UD service has them. */
#define DOFI_DATAGRAM_HEADER 40

/* Failed exchanges that an EP keeps for the program, which may read the peer's private data. */
#define DOFI_EXCHANGES_FAILED 64

/* How an exchange ended. */
struct dofi_exchanged {
	/* DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, ..._REJECT_EVENT or ..._ERROR_EVENT */
	DAT_EVENT_NUMBER event;
	void *ah;			/* of ESTABLISHED: a reference for the program */
	uint32_t number;
	/* the peer's private data; @data_size 0 on the passive side: the request's */
	const void *data;
	size_t data_size;
};

/*
 * The transport gives up @x: queues its event, unless the EP is being freed. Progress thread, no
 * lock held.
 */
void dofi_exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how)
	DOFI_NEEDS_NOT(x->ep->lock);

/* dat_ep_connect() of a datagram EP, with checked arguments. */
DAT_RETURN dofi_datagram_connect(struct dofi_ep *ep, const struct dofi_request *request)
	DOFI_NEEDS_NOT(ep->lock);

/* For dofi_exchange_begin() or dofi_exchange_discard(). NULL when memory is short. */
struct dofi_exchange *dofi_exchange_new(struct dofi_ep *ep, bool active);
void dofi_exchange_discard(struct dofi_exchange *x);
/* Whether an exchange of @ep may begin; else why not. EP lock held. */
DAT_RETURN dofi_exchange_admit(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock);
/* Hands @x of @ep to the progress thread. EP lock held. */
void dofi_exchange_begin(struct dofi_ep *ep, struct dofi_exchange *x) DOFI_NEEDS(ep->lock);

/*
 * Progress thread: hands the new exchanges of @ep to the transport. If the EP is being freed, only
 * the passive side's, which have a request.
 */
void dofi_exchanges_start(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);
/* Frees all exchanges of @ep, after its events were purged and it was closed. */
void dofi_exchanges_drop(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/*
 * Enters the EP @handle, and stores it, or NULL, in *@ep. Returns DAT_MODEL_NOT_SUPPORTED if its IA
 * has no datagrams, DAT_INVALID_HANDLE for another kind of EP.
 */
DAT_RETURN dofi_datagram_enter(DAT_EP_HANDLE handle, struct dofi_ep **ep);

#if DAT_VERSION_MAJOR >= 2
/* dat_ib_ud_cm_free(), dat_ib_ud_ah_free(): arguments count as for dat_extension_op(). */
DAT_RETURN dofi_ud_cm_free(DAT_EP_HANDLE ep_handle, void *exchange);
DAT_RETURN dofi_ud_ah_free(DAT_EP_HANDLE ep_handle, const DAT_IB_ADDR_HANDLE *ah);
#endif

#endif
