/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram endpoints: the UD service of the InfiniBand extension. Only 2.0 programs have them.
 *
 * A datagram EP has no connection. It is in the state CONNECTED from dat_ep_create() to
 * dat_ep_free(), sends to any address handle of its PZ, and receives from any peer that has an
 * address handle of it. dat_ep_connect() and dat_cr_accept() exchange addresses: each makes an
 * exchange, which ends with one event.
 */
#ifndef DOFI_OBJ_DATAGRAM_H
#define DOFI_OBJ_DATAGRAM_H

#include "obj/ep.h"

struct dofi_cr;
struct dofi_sp;

/* Bytes in front of the data of each received datagram, as InfiniBand's UD service has them. */
#define DOFI_DATAGRAM_HEADER 40

/*
 * An exchange of addresses of a datagram EP. Its address is the context of its event;
 * dat_ib_ud_cm_free() frees it, or else the end of its EP.
 */
struct dofi_exchange {
	struct dofi_ep *ep;		/* written once, before the exchange is known to others */
	bool active;			/* dat_ep_connect() began it, not dat_cr_accept() */
	bool reported;			/* its event was queued; EP lock */
	TAILQ_ENTRY(dofi_exchange) link; /* in ep->exchanges; EP lock */
	struct dofi_request request;	/* the program's arguments */
	void *xport;			/* the transport's state; progress thread */

	/* what the event reports, written before it is queued */
	DAT_COUNT type;			/* DAT_IB_EXT_TYPE */
	void *ah;			/* the address handle, or NULL */
	uint32_t number;		/* of the peer's EP, its "queue pair number" */
	struct sockaddr_storage peer;	/* address of the peer's IA */
	DAT_COUNT data_size;
	unsigned char data[DOFI_PRIVATE_DATA]; /* the peer's private data */
};

/* How an exchange ended. */
struct dofi_exchanged {
	/* DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, ..._REJECT_EVENT or ..._ERROR_EVENT */
	DAT_EVENT_NUMBER event;
	void *ah;			/* with ESTABLISHED: a reference for the program */
	uint32_t number;
	struct sockaddr_storage peer;
	const void *data;
	size_t data_size;
};

/*
 * Reports the end of @x, which the transport gives up: queues the event, unless the EP is being
 * freed. Progress thread, no lock held.
 */
void dofi_exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how)
	DOFI_NEEDS_NOT(x->ep->lock);

/*
 * The service as a transport implements it. All functions run on the progress thread with no lock
 * held, unless a comment says otherwise.
 */
struct dofi_datagrams {
	/*
	 * The transport of its EPs and of requests for them. Of its members only reject, close,
	 * submit, holds, resume, srq_fed and matches (which is true) are used. close() also ends
	 * the exchanges of the EP that were not reported, without a report.
	 */
	const struct dofi_xport *xport;

	/*
	 * Finds the fabric of @ia's datagrams, and sets ia->datagram_size. Returns 0 or a negative
	 * errno if there is none. Called once @ia has its transport; ia_fini() ends that.
	 */
	int (*ia_init)(struct dofi_ia *ia);
	void (*ia_fini)(struct dofi_ia *ia);
	/* Ends the state of a PZ, and its address handles, before its domain closes. */
	void (*pz_close)(struct dofi_pz *pz);

	/*
	 * Opens @ep, which has its parts and is not published: sets ep->conn, ep->fid and the CQ.
	 * Returns 0 or a negative errno. ep->xport->close() ends that.
	 */
	int (*open)(struct dofi_ep *ep);

	/* @sp listens, or ends; also called while the IA has no datagram EP. */
	void (*listen)(struct dofi_sp *sp);
	void (*unlisten)(struct dofi_sp *sp);

	/* Requests the peer's address as x->request says; ends in dofi_exchange_end(). */
	void (*connect)(struct dofi_exchange *x);
	/* Accepts @request, of a CR, with x->ep; ends in dofi_exchange_end(). */
	void (*accept)(struct dofi_exchange *x, void *request);

	/* Whether @ah, which may be any value, is an address handle of the PZ of @ep. Any thread. */
	bool (*ah_valid)(const struct dofi_ep *ep, const void *ah);
	/* Gives up a reference to @ah. Returns false if it is no address handle of the EP's PZ. */
	bool (*ah_free)(struct dofi_ep *ep, void *ah);
};

#if DAT_VERSION_MAJOR >= 2
/*
 * The exchange of the event @event, one of DAT_IB_UD_CONNECTION_..., which has the pool index
 * @index: fills in the extension's data. Any thread.
 */
void dofi_exchange_extend(DAT_EVENT *event, uint32_t index);

/* dat_ib_post_send_ud() and dat_ib_post_send_ud_immed(). */
struct dofi_post;
DAT_RETURN dofi_ep_post_send_ud(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_send_ud_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ud_cm_free(DAT_EP_HANDLE ep_handle, void *exchange);
DAT_RETURN dofi_ud_ah_free(DAT_EP_HANDLE ep_handle, DAT_IB_ADDR_HANDLE *ah);
#endif

/* dat_ep_connect() of a datagram EP, with checked arguments. */
DAT_RETURN dofi_datagram_connect(struct dofi_ep *ep, const struct dofi_request *request);
/* dat_cr_accept() with a datagram EP, with checked arguments; claims @cr. */
DAT_RETURN dofi_datagram_accept(struct dofi_ep *ep, struct dofi_cr *cr, DAT_COUNT data_size,
				const void *data);

/* Frees all exchanges of @ep, which is being freed and closed. */
void dofi_exchanges_drop(struct dofi_ep *ep);
#endif
