/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagram service: datagram EPs over connectionless endpoints.
 *
 * All datagram EPs of a PZ share one endpoint of the fabric. Where the IA's fabric is
 * connectionless, that is an endpoint in the PZ's own domain. Elsewhere it is one of libfabric's
 * datagram endpoints (FI_EP_DGRAM), in a second domain of the PZ (fab/datagram.h). A datagram names
 * the receiving EP by its number, and proves by the key of the receiving PZ that the sender was
 * given its address (frame.h). It arrives in a buffer of the endpoint, and is copied into the EP's
 * next receive. If there is none, it is dropped and counted: nothing is kept for a receiver.
 *
 * A datagram is copied when it is sent as well, or injected, so its send is complete at once. The
 * fabric may be unable to take it: because it is making the connection to that peer, or the peer
 * takes nothing. Then the copy waits, at its peer, so that datagrams to other peers pass it. A peer
 * that takes nothing for UD_PATIENCE_NS is treated as gone: what waits for it is dropped, and each
 * further datagram is dropped unless the fabric takes it at once.
 *
 * Each file calls files above it in this list, and none below it:
 *
 *	frame.c		datagrams as bytes
 *	peer.c		address handles
 *	send.c		sends, and the copies that wait
 *	recv.c		datagrams that arrive
 *	pz.c		the endpoint of a PZ; its EPs by number
 *	call.c		exchanges of addresses that this end begins
 *	request.c	those that a peer begins; listeners
 *	service.c	struct dofi_datagrams: the service's part of an IA and an EP
 */
#ifndef DOFI_XPORT_UD_UD_H
#define DOFI_XPORT_UD_UD_H

#include "base/mutex.h"
#include "base/table.h"
#include "fab/endpoint.h"
#include "obj/datagram.h"
#include "xport/rdm/rdm.h"

#include <stdatomic.h>
#include <sys/queue.h>

/* How long a peer may take nothing before what waits for it is dropped. */
#define UD_PATIENCE_NS (1000 * 1000000LL)

/* Most copies that wait for one peer; further sends to it wait in their EP. */
#define UD_WAITING_MAX 32

/* Copies of a PZ: waiting for the fabric, or at it. */
#define UD_SENDS 256

/* Longer datagrams are sent from a copy even if the fabric would inject them. */
#define UD_INJECT_MAX 4096

struct ud_call;
struct ud_listener;

/* The service's part of an IA. */
struct ud_ia {
	struct dofi_ia *ia;
	/* the fabric of datagrams: the IA's own, or own */
	const struct dofi_fabric_choice *fabric;
	struct dofi_fabric_choice own;	/* info is NULL unless it is used */
	struct fid_fabric *fid;		/* of own */
	struct dofi_progress_ops own_ops;	/* of the CQs of own */
	struct dofi_host host;

	/* progress thread only */
	bool in_use;			/* the IA has had a datagram EP: service points listen */
	LIST_HEAD(, ud_listener) listeners;
	TAILQ_HEAD(ud_calls, ud_call) delayed;	/* exchanges that have not begun */
	unsigned n_calls;		/* active exchanges that have begun */
	struct dofi_work beginning;	/* begins delayed ones */
};

/* A copy of a datagram on its way. */
struct ud_send {
	struct dofi_rdm_buffer buffer;	/* the context of its operation */
	struct ud_peer *peer;
	size_t len;			/* bytes in the buffer */
	STAILQ_ENTRY(ud_send) link;	/* waiting at its peer, or free */
};

STAILQ_HEAD(ud_sends, ud_send);

/* The datagram EPs of a peer's PZ: the address handle of the program. In a pool. */
struct ud_peer {
	struct ud_pz *upz;		/* under upz->lock, as all below unless stated */
	fi_addr_t to;
	uint64_t key;			/* never 0 */
	size_t frame_size;		/* the longest datagram that it takes, with the header */
	/* the key while the endpoint exists, if the peer is in this process; else NULL */
	const _Atomic uint64_t *here;
	bool taken;			/* the fabric took a datagram to it */
	int64_t stuck_since;		/* the fabric takes nothing since then; 0: it does */
	struct ud_sends waiting;	/* oldest first */
	unsigned n_waiting;
	unsigned in_flight;		/* copies at the fabric */
	TAILQ_ENTRY(ud_peer) link;	/* in upz->waiting, if any copies wait */
	unsigned uses;			/* references of the program; progress thread */
	struct dofi_table_link in_table; /* progress thread */
	size_t addr_len;
	unsigned char addr[DOFI_RDM_ADDRESS];
};

TAILQ_HEAD(ud_peers, ud_peer);

#define UD_EP_SLOTS 65536

/* A datagram EP. */
struct ud_ep {
	struct dofi_ep *ep;
	struct ud_pz *upz;
	uint32_t number;
	uint32_t matched;		/* number of the next receive to be matched; EP lock */
	bool stalled;			/* in upz->stalled; under upz->lock */
	TAILQ_ENTRY(ud_ep) stall;
	/* exchanges that are not reported; progress thread */
	LIST_HEAD(, ud_call) calls;
	LIST_HEAD(, ud_request) answers;	/* accepted, and not confirmed by the peer */
};

TAILQ_HEAD(ud_eps, ud_ep);

/* The service's part of a PZ, made with its first datagram EP. */
struct ud_pz {
	struct dofi_pz *pz;
	struct ud_ia *uia;
	struct dofi_domain *domain;	/* the PZ's, or pz->datagram */
	struct dofi_rdm rdm;
	size_t inject;			/* most bytes that are injected; 0: none */
	uint64_t key;			/* peers prove by it that they were given our address */
	struct dofi_sweeper sweeper;
	struct dofi_work reaping;	/* removes peers that are not used any more */

	/* under the CQ lock */
	struct ud_ep **ep;		/* by the low half of the number */
	uint32_t n_eps;

	LIST_ENTRY(ud_pz) here;		/* in the list of this process, see peer.c */

	/* progress thread only */
	struct dofi_table table;	/* its peers, by their keys */
	uint16_t generation;		/* of the numbers */

	struct dofi_mutex lock;		/* the fields below; taken under an EP's lock; a leaf */
	struct ud_peers waiting;	/* peers that copies wait for */
	struct ud_eps stalled;		/* EPs with a send that the fabric has not taken */
	struct ud_sends free;
	struct ud_send *send;		/* all of them */
	unsigned char *memory;		/* their buffers */
	struct fid_mr *mr;
};

static inline struct ud_ia *ud_ia_of(const struct dofi_ia *ia)
{
	return ia->datagrams_ia;
}

static inline struct ud_ep *ud_ep_of(const struct dofi_ep *ep)
{
	return ep->conn;
}

static inline struct ud_pz *ud_pz_of_rdm(struct dofi_rdm *rdm)
{
	return DOFI_CONTAINER_OF(rdm, struct ud_pz, rdm);
}

#endif
