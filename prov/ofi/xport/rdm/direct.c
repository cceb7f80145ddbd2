/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport: long messages that the fabric moves from the sender's buffer into
 * the receiver's.
 *
 * A software fabric keeps the memory that it was handed until the peer takes or sends the bytes.
 * Neither a send nor a receive that has begun can be cancelled, and only closing the endpoint
 * returns the memory. The endpoint of the PZ serves other connections too. So a connection opens a
 * direct endpoint of its own with the first RTS of a long message, and closes it at its end. Until
 * both ends have a direct endpoint, and where none can be opened, long messages go in frames.
 */

#include "xport/rdm/rndv.h"

#include "base/clock.h"
#include "fab/quirks.h"

#include <stdlib.h>

/* Most direct endpoints of a PZ: each costs a listening socket and a connection. */
#define DIRECT_MAX 64

void rdm_direct_want(struct rdm_conn *conn)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);

	dofi_ep_assert_locked(conn->ep);
	if (conn->direct_wanted || !conn->endpoint || !fabric->target_rdma ||
	    !fabric->quirk->closes_wholly)
		return;
	conn->direct_wanted = true;
	rdm_conn_todo(conn, RDM_DIRECT);
}

void rdm_direct_open(struct rdm_conn *conn)
{
	const struct dofi_rdm_options no_buffers = { .n_buffers = 0 };
	struct rdm_pz *rpz = conn->rpz;
	struct rdm_direct *direct;

	if (rpz->n_directs >= DIRECT_MAX)
		return;
	direct = calloc(1, sizeof(*direct));
	if (!direct)
		return;
	direct->tags = dofi_random();
	if (!direct->tags ||
	    dofi_rdm_open(&direct->rdm, rpz->domain, rdm_fabric(conn), &no_buffers)) {
		free(direct);
		return;
	}
	rpz->n_directs++;
	dofi_ep_lock(conn->ep);
	conn->direct = direct;
	dofi_ep_unlock(conn->ep);
}

bool rdm_direct_reach(struct rdm_conn *conn, const void *address, size_t len)
{
	struct rdm_direct *direct = conn->direct;

	dofi_ep_assert_locked(conn->ep);
	if (!direct)
		return false;
	if (!direct->reached)
		direct->reached = !dofi_rdm_peer_add(&direct->rdm, address, len, &direct->to);
	return direct->reached;
}

/* Releases operations that the endpoint did not complete before: no completion follows. */
void rdm_direct_close(struct rdm_conn *conn)
{
	struct rdm_direct *direct = conn->direct;
	struct dofi_cq *cq = &conn->rpz->domain->cq;
	struct rdm_op *op, *next;

	if (!direct)
		return;
	dofi_ep_lock(conn->ep);
	conn->direct = NULL;
	dofi_ep_unlock(conn->ep);
	dofi_rdm_close(&direct->rdm);
	dofi_mutex_lock(&cq->lock);
	dofi_ep_lock(conn->ep);
	for (op = LIST_FIRST(&conn->ops); op; op = next) {
		next = LIST_NEXT(op, link);
		if (op->direct)
			rdm_op_put(op);
	}
	dofi_ep_unlock(conn->ep);
	dofi_mutex_unlock(&cq->lock);
	conn->rpz->n_directs--;
	free(direct);
}
