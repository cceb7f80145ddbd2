/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connection's own endpoint, for long messages. */
#ifndef DOFI_XPORT_RDM_DIRECT_H
#define DOFI_XPORT_RDM_DIRECT_H

#include "fab/endpoint.h"
#include "xport/rdm/rdm.h"

struct rdm_direct {
	struct dofi_rdm rdm;
	/* the tag of receive n is tags + n; known to the peer alone */
	uint64_t tags;
	bool reached;			/* the address of the peer's direct endpoint is known */
	fi_addr_t to;			/* the peer's direct endpoint */
};

/*
 * Asks the progress thread to open the direct endpoint, once, on fabrics that need one. EP lock
 * held.
 */
void rdm_direct_want(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/*
 * Opens the direct endpoint. If that fails, long messages go in frames. Progress thread, no lock
 * held.
 */
void rdm_direct_open(struct rdm_conn *conn);
/*
 * Closes the direct endpoint. When this returns, the fabric uses no memory of the connection's long
 * messages. Progress thread, no lock held.
 */
void rdm_direct_close(struct rdm_conn *conn);
/*
 * Sets the address of the peer's direct endpoint. Returns false if that cannot be reached. EP lock
 * held.
 */
bool rdm_direct_reach(struct rdm_conn *conn, const void *address, size_t len)
	DOFI_NEEDS(conn->ep->lock);

#endif
