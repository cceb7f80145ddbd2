/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to connect, and exchanges of addresses: obj/ep/datagram.h begins and ends them. */
#ifndef DOFI_OBJ_EXCHANGE_H
#define DOFI_OBJ_EXCHANGE_H

#include "base/pool.h"
#include "obj/dat.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct dofi_ep;

/* No fabric carries more private data than this. */
#define DOFI_PRIVATE_DATA 256

/* The consumer's arguments of dat_ep_connect or dat_cr_accept. */
struct dofi_request {
	struct sockaddr_storage peer;
	DAT_CONN_QUAL conn_qual;
	int64_t deadline;		/* of the connection attempt */
	DAT_QOS qos;			/* replaces the attribute, unless it is BEST_EFFORT */
	DAT_COUNT data_size;
	unsigned char data[DOFI_PRIVATE_DATA];
};

/* Sets all but the peer and its qualifier. Requires @size bytes at @data, checked before. */
static inline void dofi_request_set(struct dofi_request *request, int64_t deadline, DAT_QOS qos,
				    const void *data, DAT_COUNT size)
{
	request->deadline = deadline;
	request->qos = qos;
	request->data_size = size;
	if (size)
		memcpy(request->data, data, size);
}

TAILQ_HEAD(dofi_exchanges, dofi_exchange);

/* The tag of an exchange that dat_ib_ud_cm_free() may name. */
#define DOFI_EXCHANGE_LIVE 1

/*
 * An exchange of addresses of a datagram EP. Its address is the context of its event;
 * dat_ib_ud_cm_free() frees it, or else the end of its EP.
 */
struct dofi_exchange {
	struct dofi_ep *ep;		/* written once, before the exchange is known to others */
	bool active;			/* dat_ep_connect() began it, not dat_cr_accept() */
	bool reported;			/* its event was queued; EP lock */
	_Atomic bool taken;		/* its event was dequeued; written under the EVD's lock */
	struct dofi_exchanges *list;	/* the list of its EP that it is in, or NULL; EP lock */
	TAILQ_ENTRY(dofi_exchange) link; /* in list; EP lock */
	struct dofi_request request;	/* the peer's address, and the program's arguments */
	void *accepting;		/* the transport's part of a request, until accept() */
	void *xport;			/* the transport's state; progress thread */

	/* the event's data, written before it is queued */
	DAT_COUNT type;			/* DAT_IB_EXT_TYPE */
	void *ah;			/* the address handle, or NULL */
	uint32_t number;		/* of the peer's EP, its "queue pair number" */
	DAT_COUNT data_size;
	unsigned char data[DOFI_PRIVATE_DATA]; /* the peer's private data */
};

extern struct dofi_pool dofi_exchange_pool;

#if DAT_VERSION_MAJOR >= 2
/*
 * The consumer dequeues @event, one of DAT_IB_UD_CONNECTION_...: fills in the extension's data.
 * @index is the pool index of the exchange, which has no meaning for an arriving request. Call with
 * the lock of the event's EVD held: the exchange lives as long as its event is queued.
 */
void dofi_exchange_extend(DAT_EVENT *event, uint32_t index);
#endif

#endif
