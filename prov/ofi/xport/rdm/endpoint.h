/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric's endpoints of a PZ, and their replacement. All on the progress thread, unless it says otherwise. */
#ifndef DOFI_XPORT_RDM_ENDPOINT_H
#define DOFI_XPORT_RDM_ENDPOINT_H

#include "fab/endpoint.h"
#include "fab/places.h"
#include "xport/rdm/rdm.h"

/*
 * An endpoint of the fabric. A connection uses one for life. New connections use the PZ's newest;
 * an older one is closed with its last connection.
 */
struct rdm_endpoint {
	LIST_ENTRY(rdm_endpoint) link;
	struct rdm_pz *rpz;
	struct dofi_rdm rdm;
	/* progress thread only */
	struct dofi_places places;	/* for peers of unanswered requests */
	unsigned conns;
	unsigned repairs;		/* of the IA's gate when the endpoint was opened */
};

/*
 * The endpoint for a connection, which is counted there, and a place for its peer there, which
 * @claim stands for; @key says which peer that is. Opens an endpoint if none has a place. 0 or a
 * negative errno.
 */
int rdm_endpoint_get(struct rdm_pz *rpz, struct dofi_claim *claim, const void *key, size_t len,
		     struct rdm_endpoint **endpoint);
/* The connection is gone, and its peer was removed. */
void rdm_endpoint_put(struct rdm_endpoint *endpoint);
/* Closes all of them. The PZ has no connection. */
void rdm_endpoints_close(struct rdm_pz *rpz);
/* Posts again what the fabric did not take of the endpoints' buffers. CQ lock held. */
void rdm_endpoints_sweep(struct rdm_pz *rpz);
/*
 * For struct dofi_gate: a process died within the memory of the IA's endpoints, which cannot be
 * repaired. Their connections end as BROKEN and all endpoints are closed. Any thread.
 */
void rdm_endpoints_damaged(struct dofi_gate *gate);
void rdm_endpoints_renew(struct dofi_work *work);

#endif
