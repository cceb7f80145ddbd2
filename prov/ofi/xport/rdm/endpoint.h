/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric's endpoints of a PZ, and their replacement. All on the progress thread, unless stated
 * otherwise.
 */
#ifndef DOFI_XPORT_RDM_ENDPOINT_H
#define DOFI_XPORT_RDM_ENDPOINT_H

#include "fab/endpoint.h"
#include "xport/rdm/rdm.h"
#include "xport/rdm/shm/reserve.h"

/*
 * An endpoint of the fabric. A connection never changes its endpoint. New connections use the PZ's
 * newest endpoint; an older one is closed with its last connection.
 */
struct rdm_endpoint {
	LIST_ENTRY(rdm_endpoint) link;
	struct rdm_pz *rpz;
	struct dofi_rdm rdm;
	/* used by the progress thread alone */
	struct dofi_reservations reservations;	/* reservations for peers of unanswered requests */
	unsigned conns;
	/* repairs of the IA's segment before the endpoint was opened */
	unsigned repairs;
};

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
/*
 * struct dofi_robust's callback: a process died while it used the memory of the IA's endpoints,
 * which cannot be repaired. The connections of the endpoints end as BROKEN, and the endpoints are
 * closed. Any thread.
 */
void rdm_endpoints_damaged(struct dofi_robust *robust);
void rdm_endpoints_renew(struct dofi_work *work);

#endif
