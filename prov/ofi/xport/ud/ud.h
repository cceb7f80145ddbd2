/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagram service: datagram EPs over connectionless endpoints, and over rings within a host.
 *
 * A PZ has up to two paths to peers, called ways: the net and the rings.
 *
 * The net: all datagram EPs of a PZ share one endpoint of the fabric. Where the IA's fabric is
 * connectionless, that is an endpoint in the PZ's own domain. Elsewhere it is one of libfabric's
 * datagram endpoints (FI_EP_DGRAM), in a second domain of the PZ (dofi_datagram_choose()). In an IA
 * that also has rings the endpoint is opened for the first exchange over the net.
 *
 * The rings: a PZ shares its inboxes and outboxes (rings/link.h) with its connections. The two ends
 * offer inboxes with their addresses, over a local CM socket.
 *
 * A datagram names the receiving EP by its number, and proves by the key of the receiving PZ that
 * the sender was given its address (frame.h). It arrives in a buffer of the endpoint or in a ring,
 * and is copied into the EP's next receive. If there is none, it is dropped and counted: nothing is
 * kept for a receiver.
 *
 * Sends are also copied, or injected, so they are complete at once. The fabric may not take a copy
 * while it connects, or while the peer does not read. Then the copy waits, at its peer, so that
 * datagrams to other peers pass it. A peer that takes nothing for UD_PATIENCE_NS counts as gone:
 * the waiting copies are dropped, and so is each datagram that the fabric does not take at once.
 *
 * Each file calls files above it in this list, and none below it:
 *
 *	frame.c		datagrams as bytes
 *	peer.c		address handles
 *	send.c		sends, and the copies that wait
 *	recv.c		datagrams that arrive
 *	pz.c		the ways of a PZ; its EPs by number
 *	call.c		exchanges of addresses that this end begins
 *	request.c	exchanges that a peer begins; listeners
 *	service.c	struct dofi_datagrams: the service's part of an IA and an EP
 */
#ifndef DOFI_XPORT_UD_UD_H
#define DOFI_XPORT_UD_UD_H

#include "base/mutex.h"
#include "base/table.h"
#include "fab/endpoint.h"
#include "obj/ep/datagram.h"
#include "rings/inbox.h"
#include "xport/cm/wire.h"
#include "xport/rdm/op.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* How long a peer may take nothing before the copies that wait for it are dropped. */
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
	struct ud_pz *upz;		/* read without a lock while the handle is valid */

	/* upz->lock, unless stated otherwise */
	struct dofi_outbox *out;	/* to its PZ on this host; NULL: it is reached by the net */
	bool gone;			/* with an outbox: the peer's process or PZ has ended */
	fi_addr_t to;			/* without an outbox */
	uint64_t key;			/* never 0 */
	size_t frame_size;		/* the longest datagram that it takes, with the header */
	int64_t stuck_since;		/* the fabric takes nothing since then; 0: it does */
	struct ud_sends waiting;	/* oldest first */
	unsigned n_waiting;
	unsigned in_flight;		/* copies at the fabric */
	TAILQ_ENTRY(ud_peer) wait;	/* in upz->waiting, if any copies wait */
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
	/* exchanges that are not reported; progress thread */
	LIST_HEAD(, ud_call) calls;
	LIST_HEAD(, ud_request) answers;	/* accepted, and not confirmed by the peer */
};

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
	struct ud_way net, local;	/* local: rings */
	struct dofi_rdm rdm;		/* of the net */
	struct dofi_rings *rings;	/* of local */
	size_t inject;			/* most bytes that the fabric injects; 0: none */
	uint64_t key;			/* peers prove by it that they were given our address */
	struct dofi_work reaping;	/* removes peers that are not used any more */

	/* progress thread only */
	struct dofi_table table;	/* its peers, by their keys */
	uint16_t generation;		/* of the numbers */

	struct dofi_mutex lock;		/* the fields below; taken under an EP's lock */
	struct ud_peers waiting;	/* peers that copies wait for */
	struct ud_sends free;
	struct ud_send *send;		/* all of them */
	unsigned char *memory;		/* their buffers */
	struct fid_mr *mr;
};

static inline struct ud_ia *ud_ia_of(const struct dofi_ia *ia)
{
	return ia->datagrams_ia;
}

/* The bell of an IA with rings. */
static inline struct dofi_bell *ud_bell(const struct ud_ia *uia)
{
	return &rdm_ia_of(uia->ia)->bell;
}

static inline struct ud_ep *ud_ep_of(const struct dofi_ep *ep)
{
	return ep->conn;
}

/* Returns the way that ud_pz_open() opens: rings, if the IA has them. EPs complete on its CQ. */
static inline struct ud_way *ud_first_way(struct ud_pz *upz)
{
	return upz->rings ? &upz->local : &upz->net;
}

static inline struct ud_pz *ud_pz_of_rdm(struct dofi_rdm *rdm)
{
	return DOFI_CONTAINER_OF(rdm, struct ud_pz, rdm);
}

/* service.c: the datagram service of all fabrics. */

extern const struct dofi_datagrams dofi_ud_datagrams;

/* pz.c: the ways of a PZ, and its EPs by number. Progress thread only. */

/* Sets *@upz to the datagram service's part of @pz, which the first call makes. 0 or -errno. */
int ud_pz_open(struct dofi_pz *pz, struct ud_pz **upz);
/* Opens the net of @upz, if that is not open. Its IA has one. 0 or a negative errno. */
int ud_pz_open_net(struct ud_pz *upz);
/* dofi_datagrams.pz_close. Waits up to UD_PATIENCE_NS until the fabric has all copies. */
void ud_pz_close(struct dofi_pz *pz);
/* Gives @uep a free number, by which datagrams find it. 0, -ENOMEM or -ENOSPC. */
int ud_pz_add(struct ud_pz *upz, struct ud_ep *uep);
/* Hides @uep from datagrams and sweeps. */
void ud_pz_remove(struct ud_ep *uep);

/* peer.c: address handles, the peers of a PZ. */

/* In place of a fabric address: the layout of links, which both ends have to know. */
#define UD_LAYOUT "datagrams/3"

/* A peer's description of its datagram EP, from a request or an answer. Untrusted. */
struct ud_intro {
	uint32_t number;		/* never 0 */
	uint64_t key;			/* never 0 */
	char fabric[DOFI_CM_NAME];
	struct dofi_host host;
	bool local;			/* on this host, by rings */
	size_t frame_size;		/* its longest datagram, with the header */
	size_t addr_len;
	unsigned char addr[DOFI_RDM_ADDRESS];
	struct dofi_outbox *offer;	/* its inbox, unless it is used; or NULL */
};

/*
 * Copies the sender's description from @msg, and maps the inbox of a sender on this host, which is
 * @local. Returns false if the sender is no peer of any fabric, offers no inbox, or memory is
 * short. Call ud_intro_drop() at the end.
 */
bool ud_intro_take(struct ud_intro *intro, const struct dofi_cm_msg *msg, bool local);
/* Unmaps the inbox if it is not used. */
void ud_intro_drop(struct ud_intro *intro);
/* Returns whether @uia can reach the peer: over rings, or over the fabric of the net. */
bool ud_intro_suits(const struct ud_ia *uia, const struct ud_intro *intro);
/*
 * Describes @uep in @msg, a message of datagrams: to a peer on this host, to which @inbox is
 * offered, or if that is NULL to a peer over the net, which is open.
 */
void ud_introduce(const struct ud_ep *uep, const struct dofi_inbox *inbox,
		  struct dofi_cm_msg *msg);
/*
 * Returns the address handle of the peer in *@peer, with one more use. May use @intro->offer.
 * Progress thread. Returns -EHOSTUNREACH if the peer is on another fabric or host, -ENOSPC if the
 * fabric takes no further peer, -ECONNRESET if the peer has withdrawn its inbox, or another
 * negative errno.
 */
int ud_peer_get(struct ud_pz *upz, struct ud_intro *intro, struct ud_peer **peer);
/* Releases a use. After the last one removes the peer, once it has no copies. Progress thread. */
void ud_peer_put(struct ud_peer *peer) DOFI_NEEDS_NOT(peer->upz->lock);
/* Removes peers that are not used any more: upz->reaping. */
void ud_peers_reap(struct dofi_work *work);
/* Removes all peers of @upz, which no thread uses. Progress thread. */
void ud_peers_close(struct ud_pz *upz);
/* Returns @ah, any value, if it is an address handle of @upz, valid under the lock; else NULL. */
struct ud_peer *ud_peer_check(const struct ud_pz *upz, const void *ah) DOFI_NEEDS(upz->lock);
/* Whether @ah is an address handle of @upz at this moment. Any thread. */
bool ud_peer_is_valid(const struct ud_pz *upz, const void *ah);

/* send.c: sends, and the copies that wait. */

/* Makes and frees the copies of @upz. 0 or a negative errno. */
int ud_sends_open(struct ud_pz *upz);
void ud_sends_close(struct ud_pz *upz);
/* dofi_xport.submit. EP lock held. */
int ud_submit(struct dofi_ep *ep, struct dofi_dto *dto);
/* Returns whether @buffer belongs to a copy of a send; other buffers receive datagrams. */
static inline bool ud_is_copy(const struct ud_pz *upz, const struct dofi_rdm_buffer *buffer)
{
	return (uintptr_t)buffer - (uintptr_t)upz->send < UD_SENDS * sizeof(*upz->send);
}

/* The fabric is done with the copy @buffer, or failed with a positive @err. CQ lock held. */
void ud_sent(struct dofi_rdm_buffer *buffer, int err);
/* Callback of a way's sweeper: sends the waiting copies of all peers. CQ lock held. */
void ud_swept(struct dofi_sweeper *sweeper);

/* recv.c: datagrams that arrive. */

/* dofi_rdm.arrived of the endpoint of a PZ. CQ lock held. */
void ud_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		struct dofi_sink *sink);
/* The user of the datagrams in inboxes: rdm_pz.datagrams, with the ud_pz as its owner. */
extern const struct dofi_rings_user ud_rings_user;

/* call.c: exchanges of addresses that this end begins. Progress thread only. */

/* dofi_datagrams.connect */
void ud_connect(struct dofi_exchange *x);
/* Begins exchanges that were delayed: uia->beginning. */
void ud_calls_begin(struct dofi_work *work);
/* Ends the exchanges of @uep that are not reported, without a report. */
void ud_calls_drop(struct ud_ep *uep);

/* request.c: requests of peers for an address, and their listeners. Progress thread only. */

/* dofi_datagrams.accept */
void ud_accept(struct dofi_exchange *x, void *request);
/* Ends the accepted requests that their peers have not confirmed, without a report. */
void ud_answers_drop(struct ud_ep *uep);
/* dofi_xport.reject */
void ud_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
/* dofi_datagrams.listen and unlisten; service points listen once the IA has a datagram EP. */
void ud_listen(struct dofi_sp *sp);
void ud_unlisten(struct dofi_sp *sp);

#endif
