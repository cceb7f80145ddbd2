/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the two ends of a connection of the connectionless transport know of each other, and what
 * each must know before it is asked or answered. All on the progress thread.
 */
#ifndef DOFI_XPORT_RDM_PEER_H
#define DOFI_XPORT_RDM_PEER_H

#include "xport/rdm/rdm.h"
#include "xport/cm/conn.h"

/* The other end, as it tells of itself in the side connection. */
struct rdm_peer {
	struct dofi_side *side;
	struct rdm_conn *conn;		/* NULL while its request is not accepted */
	struct dofi_port *port;		/* that its request came to, until that is answered */
	struct dofi_reservation reservation;	/* of a place at our endpoint, until it is answered or answers */
	bool gone;			/* before it was answered */
	bool ready;			/* our request is at a service point of its */
	uint64_t id;			/* where its frames go */
	uint32_t secret;
	uint32_t window;		/* credited frames that it takes, */
	size_t frame_size;		/* and of what size */
	uint64_t alive_addr;		/* of a word that is @id while its memory may be read */
	struct dofi_host host;
	struct dofi_shm_peer *page;	/* where memory is shared; else NULL */
	struct dofi_link *link;		/* where rings are; else NULL */
	size_t addr_len;
	unsigned char addr[DOFI_RDM_ADDRESS];
	size_t data_size;
	unsigned char data[DOFI_SIDE_MAX_DATA];
};

/* One that asked by @side, or is to be asked if that is NULL. NULL without memory. */
struct rdm_peer *rdm_peer_new(struct dofi_side *side);
/* Ends the side connection, too. */
void rdm_peer_free(struct dofi_ia *ia, struct rdm_peer *peer);

/* The port that its request came to is of no use to it any more, nor is a place that it may get. */
void rdm_peer_answered(struct dofi_ia *ia, struct rdm_peer *peer);
/* Says no, and frees it. */
void rdm_peer_turn_down(struct dofi_ia *ia, struct rdm_peer *peer, enum dofi_side_reason reason);

/*
 * Keeps what the request or answer @msg, which may be a lie, says of its sender. -EHOSTUNREACH or
 * another negative errno if no way leads there; of shared memory, see dofi_shm_map().
 */
int rdm_peer_learn(struct dofi_ia *ia, struct rdm_peer *peer, const struct dofi_side_msg *msg);
/* Our own request or answer: who we are, and the consumer's data, to which @msg points. */
void rdm_introduce(const struct rdm_conn *conn, enum dofi_side_kind kind,
		   struct dofi_side_msg *msg);

#endif
