/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connection's own endpoint, for long messages. */
#ifndef DOFI_XPORT_RDM_DIRECT_H
#define DOFI_XPORT_RDM_DIRECT_H

#include "fab/endpoint.h"
#include "xport/rdm/rdm.h"

/* A connection's own endpoint for long messages. */
struct rdm_direct {
	struct dofi_rdm rdm;
	uint64_t tags;			/* the tag of receive n is tags + n; only the peer knows them */
	bool reached;			/* the peer's direct endpoint is known, */
	fi_addr_t to;			/* by this address */
	struct rdm_conn *conn;
	struct dofi_timer lost;		/* after a failure; progress thread */
};

/* Asks the progress thread for the direct endpoint, once, where the fabric is one that needs it. EP lock held. */
void rdm_direct_want(struct rdm_conn *conn);
/* Opens it; if that fails long messages continue to go in frames. Progress thread, no lock held, as for the next. */
void rdm_direct_open(struct rdm_conn *conn);
/* An operation failed there: ends the connection soon, unless the CM connection reports an end first. */
void rdm_direct_lost(struct rdm_conn *conn);
/* Closes it. When this returns the fabric has no memory of the connection's long messages. */
void rdm_direct_close(struct rdm_conn *conn);
/* Learns the address of the peer's direct endpoint. Returns false if there is no way there. EP lock held. */
bool rdm_direct_reach(struct rdm_conn *conn, const void *address, size_t len);

#endif
