/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric's endpoints of a PZ, and their replacement. All on the progress thread, unless stated
 * otherwise.
 */
#ifndef DOFI_XPORT_RDM_ENDPOINT_H
#define DOFI_XPORT_RDM_ENDPOINT_H

#include "fab/endpoint.h"
#include "xport/rdm/rdm.h"
#include "xport/rdm/reserve.h"

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
	struct dofi_reservations reservations;	/* reservations for peers of unanswered requests */
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
/* Reposts buffers of the endpoints that the fabric did not take before. CQ lock held. */
void rdm_endpoints_sweep(struct rdm_pz *rpz);
/* A peer of the endpoint has died: probes the endpoint, if the fabric needs that. */
void rdm_endpoint_suspect(struct rdm_endpoint *endpoint);
/* A probe of the endpoint has arrived. Any thread. */
static inline void rdm_endpoint_answered(struct rdm_endpoint *endpoint)
{
	atomic_store(&endpoint->answered, true);
}

#endif
