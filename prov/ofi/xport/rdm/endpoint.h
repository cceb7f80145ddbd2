/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric's endpoints of a PZ, and their replacement. Progress thread. */
#ifndef DOFI_XPORT_RDM_ENDPOINT_H
#define DOFI_XPORT_RDM_ENDPOINT_H

#include "fab/endpoint.h"
#include "xport/rdm/rdm.h"

/*
 * A reservation of an endpoint's entry for a peer, where a fabric has few entries: a connection
 * request names the local endpoint that the peer has to use, before the fabric knows the peer.
 * Reservations with equal keys share an entry. All zero before it is made.
 */
struct dofi_reservation {
	TAILQ_ENTRY(dofi_reservation) link;
	struct dofi_reservations *of;	/* NULL unless it is reserved */
	bool counts;			/* false if another reservation with an equal key counts */
	size_t key_len;
#define DOFI_RESERVATION_KEY 256
	unsigned char key[DOFI_RESERVATION_KEY];
};

struct dofi_reservations {
	TAILQ_HEAD(, dofi_reservation) list;
	unsigned reserved;
};

void dofi_reservations_init(struct dofi_reservations *reservations);
/* Reserves an entry for the peer @key. Returns false if @entries of them are reserved already. */
bool dofi_reserve(struct dofi_reservations *reservations, struct dofi_reservation *reservation,
		  unsigned entries, const void *key, size_t len);
/* Releases the entry, if one is reserved. */
void dofi_release(struct dofi_reservation *reservation);

/*
 * An endpoint of the fabric. A connection never changes its endpoint. New connections use the PZ's
 * newest endpoint; an older one is closed with its last connection.
 *
 * A process that is killed while it sends to an endpoint of libfabric's shm may leave the
 * endpoint's memory in a state in which nothing arrives. So after the death of a peer the
 * endpoint sends a probe to itself. If the probe does not arrive in time, the endpoint is damaged:
 * its connections end as BROKEN, and new ones use another endpoint.
 */
struct rdm_endpoint {
	LIST_ENTRY(rdm_endpoint) link;
	struct rdm_pz *rpz;
	struct dofi_rdm rdm;
	/* used by the progress thread alone */
	struct dofi_reservations reservations;	/* for peers of unanswered requests */
	unsigned conns;
	struct dofi_timer probe;	/* runs while a probe is awaited */
	unsigned probe_ticks;		/* how often the timer may still fire before the damage */
	bool probe_sent;		/* the fabric took the probe */
	bool damaged;
	_Atomic bool answered;		/* the probe has arrived; any thread */
};

/* Bytes of a probe; each frame has more. */
#define RDM_PROBE_SIZE 8

/*
 * Returns an endpoint for a connection, which it counts, with @reservation for its peer; @key
 * identifies the peer. Opens an endpoint if the newest one is full. Returns 0 or a negative errno.
 */
int rdm_endpoint_get(struct rdm_pz *rpz, struct dofi_reservation *reservation, const void *key,
		     size_t len, struct rdm_endpoint **endpoint);
/* The connection has ended, and its peer was removed. */
void rdm_endpoint_put(struct rdm_endpoint *endpoint);
/* Closes all endpoints of @rpz, which has no connection. */
void rdm_endpoints_close(struct rdm_pz *rpz);
/* A peer of the endpoint has died: probes the endpoint, if the fabric needs that. */
void rdm_endpoint_suspect(struct rdm_endpoint *endpoint);

#endif
