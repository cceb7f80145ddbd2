/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagram service: datagram EPs over connectionless endpoints, and over rings within a host.
 *
 * A PZ has up to two paths to peers, called ways: the net and the rings.
 *
 * The net: all datagram EPs of a PZ share one endpoint of the fabric. Where the IA's fabric is
 * connectionless, that is an endpoint in the PZ's own domain. Elsewhere it is one of libfabric's
 * datagram endpoints (FI_EP_DGRAM), in a second domain of the PZ (fab/datagram.h). In an IA that
 * also has rings the endpoint is opened for the first peer that is not reached over rings.
 *
 * The rings: a PZ has a link (rings/link.h) from each peer's PZ on this host, its inboxes, and a
 * link to each peer's PZ that it has an address handle of, which is an inbox there. The two ends
 * exchange them with their addresses, over a local CM socket.
 *
 * A datagram names the receiving EP by its number, and proves by the key of the receiving PZ that
 * the sender was given its address (frame.h). It arrives in a buffer of the endpoint or in a ring,
 * and is copied into the EP's next receive. If there is none, it is dropped and counted: nothing is
 * kept for a receiver.
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
 *	bell.c		wakes a process that sleeps and shares memory with this one
 *	inbox.c		links over which peers on this host send
 *	peer.c		address handles
 *	send.c		sends, and the copies that wait
 *	recv.c		datagrams that arrive
 *	pz.c		the ways of a PZ; its EPs by number
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
#include "rings/rings.h"
#include "xport/cm/wire.h"
#include "xport/rdm/rdm.h"
#include "xport/ud/bell.h"

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
	/* the fabric of the net: the IA's own, or own; NULL: the IA has rings alone */
	const struct dofi_fabric_choice *fabric;
	const struct dofi_fabric_choice *rings;	/* NULL: the IA has the net alone */
	size_t frame_size;		/* the longest datagram of both ways, with the header */
	struct dofi_fabric_choice own;	/* info is NULL unless it is used */
	struct fid_fabric *fid;		/* of own */
	struct dofi_progress_ops own_ops;	/* of the CQs of own */
	struct ud_bell bell;		/* open if the IA has rings, and is in use */
	char bell_name[DOFI_CM_NAME];
	struct dofi_host host;

	/* progress thread only */
	bool in_use;			/* the IA has had a datagram EP: service points listen */
	LIST_HEAD(, ud_pz) pzs;
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
	struct dofi_link *link;		/* an inbox of the peer; NULL: it is reached by the net */
	bool gone;			/* with a link: the peer's process or PZ has ended */
	fi_addr_t to;			/* without a link */
	uint64_t key;			/* never 0 */
	size_t frame_size;		/* the longest datagram that it takes, with the header */
	/* the key while the endpoint exists, if the peer is in this process; else NULL */
	const _Atomic uint64_t *here;
	bool taken;			/* the fabric took a datagram to it */
	int64_t stuck_since;		/* the fabric takes nothing since then; 0: it does */
	struct ud_sends waiting;	/* oldest first */
	unsigned n_waiting;
	unsigned in_flight;		/* copies at the fabric */
	TAILQ_ENTRY(ud_peer) wait;	/* in upz->waiting, if any copies wait */
	unsigned uses;			/* references of the program; progress thread */
	struct dofi_table_link in_table; /* progress thread */
	char bell[DOFI_CM_NAME];	/* with a link: the doorbell of its IA */
	size_t addr_len;
	unsigned char addr[DOFI_RDM_ADDRESS];
};

TAILQ_HEAD(ud_peers, ud_peer);

struct ud_inbox;
TAILQ_HEAD(ud_inboxes, ud_inbox);

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

/* One of the two paths on which datagrams arrive at a PZ. */
struct ud_way {
	struct ud_pz *upz;
	struct dofi_domain *domain;	/* NULL: the way is not open */
	struct dofi_sweeper sweeper;
	/* under the CQ lock: the EPs of the PZ */
	struct ud_ep **ep;		/* by the low half of the number */
	uint32_t n_eps;
};

/* The service's part of a PZ, made with its first datagram EP. */
struct ud_pz {
	struct dofi_pz *pz;
	struct ud_ia *uia;
	struct ud_way net, near;	/* near: rings */
	struct dofi_rdm rdm;		/* of the net */
	struct dofi_rings *rings;	/* of near */
	size_t inject;			/* most bytes that the fabric injects; 0: none */
	uint64_t key;			/* peers prove by it that they were given our address */
	struct rdm_ring_guest ring_guest; /* with rings */
	struct dofi_work reaping;	/* removes peers that are not used any more */

	LIST_ENTRY(ud_pz) here;		/* in the list of this process, see peer.c */

	/* progress thread only */
	LIST_ENTRY(ud_pz) link;		/* in uia->pzs */
	struct ud_inboxes inboxes;
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

/* Returns the way that ud_pz_open() opens: rings, if the IA has them. EPs complete on its CQ. */
static inline struct ud_way *ud_first_way(struct ud_pz *upz)
{
	return upz->rings ? &upz->near : &upz->net;
}

static inline struct ud_pz *ud_pz_of_rdm(struct dofi_rdm *rdm)
{
	return DOFI_CONTAINER_OF(rdm, struct ud_pz, rdm);
}

#endif
