/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection Request: a peer's wish to connect, until it is accepted or rejected. */
#ifndef DOFI_OBJ_SP_CR_H
#define DOFI_OBJ_SP_CR_H

#include "obj/ep/ep.h"
#include "obj/sp/sp.h"

struct dofi_cr {
	struct dofi_obj obj;
	DAT_CONN_QUAL conn_qual;
	struct sockaddr_storage peer;
	DAT_PORT_QUAL peer_port;
	struct dofi_ep *ep;		/* the EP that came with the request, or NULL */
	const struct dofi_xport *xport;	/* the transport that the request came by */
	void *request;			/* the transport's part; NULL once taken over */
	uint32_t secret;		/* the peer's */
	struct dofi_mailbox mailbox;
	bool preambles;			/* dofi_ep.preambles */
	bool datagram;			/* of a datagram EP: requests an address */
	DAT_COUNT data_size;
	unsigned char data[DOFI_PRIVATE_DATA]; /* the program may write here (dtest does) */
};

DOFI_OBJ_HANDLES(cr, CR, struct dofi_cr);

/* An arriving request, from the transport. */
struct dofi_arrival {
	/* the transport itself; NULL: the IA's */
	const struct dofi_xport *xport;
	void *request;			/* the transport's part, for dofi_xport.accept and reject */
	struct sockaddr_storage peer;	/* address and port of the peer, all zero if unknown */
	uint32_t secret;
	struct dofi_mailbox mailbox;
	bool preambles;
	bool datagram;
	const void *data;
	size_t data_size;
};

/*
 * From the transport, on the progress thread: makes the CR, and its EP at a service point that
 * makes EPs, and queues the event. On a negative errno the transport rejects the request: memory is
 * short, the service point took its request, or does not take datagrams.
 */
int dofi_cr_arrived(struct dofi_sp *sp, const struct dofi_arrival *arrival);

DAT_RETURN dofi_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param);
DAT_RETURN dofi_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT data_size,
			  const DAT_PVOID data);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT data_size, const DAT_PVOID data);
#else
DAT_RETURN dofi_cr_reject(DAT_CR_HANDLE cr_handle);
#endif
DAT_RETURN dofi_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL conn_qual);

#endif
