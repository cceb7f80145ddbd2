/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The other end of a connection, and its description in requests and answers. Progress thread. */
#ifndef DOFI_XPORT_RDM_PEER_H
#define DOFI_XPORT_RDM_PEER_H

#include "xport/cm/conn.h"
#include "xport/rdm/rdm.h"

/* The other end of a connection. */
struct rdm_peer {
	struct dofi_cm_conn *cm;	/* NULL: the peer ended before its request was answered */
	struct rdm_conn *conn;		/* NULL until the request is accepted */
	struct dofi_port *port;		/* the port of its request, until that is answered */
	bool ready;			/* our request has reached a service point of the peer */
	/* its request or answer, addr and data copied below; conn_id goes into frames to it */
	struct dofi_cm_msg msg;
	/* with rings: our inbox for the peer's frames, until the exchange ends; and the peer's */
	struct dofi_inbox *inbox;
	struct dofi_outbox *offer;
	unsigned char addr[DOFI_RDM_ADDRESS];
	unsigned char data[DOFI_CM_MAX_DATA];
};

/* Returns a peer: its request came over @cm, or if NULL, ours goes to it. NULL without memory. */
struct rdm_peer *rdm_peer_new(struct dofi_cm_conn *cm);
/* Frees @peer, and closes its CM connection. */
void rdm_peer_free(struct rdm_peer *peer);
/* Releases the port of @peer's request. */
void rdm_peer_answered(struct rdm_peer *peer);
/* Refuses the request of @peer, and frees @peer. */
void rdm_peer_refuse(struct rdm_peer *peer, enum dofi_cm_reason reason);
/* Learns of the peer from the untrusted @msg. -EHOSTUNREACH or another errno if out of reach. */
int rdm_peer_learn(const struct rdm_ia *ria, struct rdm_peer *peer, const struct dofi_cm_msg *msg);
/* Fills our request or answer, with pointers to the consumer's data. */
void rdm_introduce(const struct rdm_conn *conn, enum dofi_cm_kind kind, struct dofi_cm_msg *msg);

#endif
