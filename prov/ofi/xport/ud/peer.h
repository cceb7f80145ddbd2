/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles: the peers of a PZ. */
#ifndef DOFI_XPORT_UD_PEER_H
#define DOFI_XPORT_UD_PEER_H

#include "xport/cm/wire.h"
#include "xport/ud/inbox.h"
#include "xport/ud/ud.h"

/* What a peer reports of its datagram EP, in a request or an answer, which are untrusted. */
struct ud_intro {
	uint32_t number;		/* never 0 */
	uint64_t key;			/* never 0 */
	char fabric[DOFI_CM_NAME];
	struct dofi_host host;
	char bell[DOFI_CM_NAME];	/* on this host: of the doorbell of its IA */
	size_t frame_size;		/* its longest datagram, with the header */
	size_t addr_len;
	unsigned char addr[DOFI_RDM_ADDRESS];
	/* the inbox that the peer offers, until a peer of ours has it; NULL: over the net */
	struct dofi_link *link;
};

/* Copies what @msg says of its sender. Returns false if that is no peer of any fabric. */
bool ud_intro_take(struct ud_intro *intro, const struct dofi_cm_msg *msg);
/*
 * Like ud_intro_take(), of a sender on this host, and maps the inbox that it offers. Returns false
 * if it offers none, or there is no memory. Call ud_intro_drop() at the end.
 */
bool ud_intro_take_near(struct ud_intro *intro, const struct dofi_cm_msg *msg);
/* Unmaps the inbox if it is not used. */
void ud_intro_drop(struct ud_intro *intro);
/* Returns whether @uia can reach the peer: over rings, or over the fabric of the net. */
bool ud_intro_suits(const struct ud_ia *uia, const struct ud_intro *intro);
/* Fills in @msg, of a kind of datagrams, what a peer has to know of @uep. The net is open. */
void ud_introduce(const struct ud_ep *uep, struct dofi_cm_msg *msg);
/* Like ud_introduce(), for a peer on this host, to which @inbox is offered. */
void ud_introduce_near(const struct ud_ep *uep, const struct ud_inbox *inbox,
		       struct dofi_cm_msg *msg);

/*
 * Returns the address handle of the peer in *@peer, with one more use. May take over @intro->link.
 * Progress thread. Returns -EHOSTUNREACH if the peer is on another fabric or host, -ENOSPC if the
 * fabric takes no further peer, -ECONNRESET if the peer has withdrawn its inbox, or another
 * negative errno.
 */
int ud_peer_get(struct ud_pz *upz, struct ud_intro *intro, struct ud_peer **peer);
/*
 * Whether @peer, of a link, has ended: its PZ, or its process. Call when it takes nothing.
 */
bool ud_peer_has_ended(const struct ud_peer *peer);
/*
 * Gives up a use. After the last one the handle is invalid, and the peer is removed once no copies
 * are on their way to it. Progress thread.
 */
void ud_peer_put(struct ud_peer *peer) DOFI_NEEDS_NOT(peer->upz->lock);
/* Removes peers that are not used any more: upz->reaping. */
void ud_peers_reap(struct dofi_work *work);
/* Removes all peers of @upz, which no thread uses. Progress thread. */
void ud_peers_close(struct ud_pz *upz);

/*
 * @ah as an address handle of @upz, or NULL; @ah may be any value. What is returned stays valid
 * while the lock is held.
 */
struct ud_peer *ud_peer_check(const struct ud_pz *upz, const void *ah) DOFI_NEEDS(upz->lock);
/* Whether @ah is an address handle of @upz at this moment. Any thread. */
bool ud_peer_is_valid(const struct ud_pz *upz, const void *ah);

/* @upz can be recognised by peers in this process, or not any more. */
void ud_peers_here_enter(struct ud_pz *upz);
void ud_peers_here_leave(struct ud_pz *upz);

#endif
