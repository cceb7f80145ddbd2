/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies connections of xport/rdm/. */

#include "check/check.h"
#include "xport/rdm/op.h"

static void conn_check(struct rdm_pz *rpz, struct rdm_conn *conn, uint32_t slot)
{
	struct dofi_ep *ep = conn->ep;
	const struct dofi_queue *q = &ep->sq;
	uint32_t n = 0, blocking = 0, asked = 0, i;
	const struct rdm_pending *pending;
	const struct rdm_op *op;

	CHECK_SAME("connection", conn, (uint32_t)conn->id, slot);
	CHECK_SAME("connection", conn, conn->rpz, rpz);
	CHECK("connection", conn, !conn->out == !(rpz->rings && conn->reached),
	      "outbox %p, rings %p", (void *)conn->out, (void *)rpz->rings);
	dofi_mutex_lock(&ep->lock);
	CHECK_SAME("connection", conn, ep->conn, conn);
	CHECK("connection", conn, ep->cq == &rpz->domain->cq, "EP %p", (void *)ep);
	CHECK("connection", conn, dofi_ep_is_live(ep), "EP %p is %s", (void *)ep,
	      dofi_ep_states[ep->state].name);
	CHECK("connection", conn, conn->credits <= conn->max_credits, "%u, %u", conn->credits,
	      conn->max_credits);
	CHECK("connection", conn, conn->credits_owed <= conn->window, "%u", conn->credits_owed);
	CHECK("connection", conn, !conn->processing, "%d", conn->processing);
	STAILQ_FOREACH(pending, &conn->pending, link)
		n++;
	CHECK_SAME("connection", conn, conn->n_pending, n);
	LIST_FOREACH(op, &conn->ops, link) {
		CHECK("connection", conn, op->conn == conn, "operation %p of %p", (const void *)op,
		      (void *)op->conn);
		blocking += op->blocks;
	}
	/* a failed operation still counts, but ends the connection */
	CHECK("connection", conn,
	      conn->blocking == blocking || (ep->closing && conn->blocking > blocking), "%u, %u",
	      conn->blocking, blocking);
	/* a request that the peer carries out may also be the next of the queue, sent in part */
	for (i = q->head; i != q->tail; i++) {
		const struct dofi_dto *dto = dofi_queue_at(q, i);

		asked += !dto->done && dofi_dto_is(dto->kind, DOFI_DTO_RDMA) &&
			 dto->step == DOFI_STEP_ASKED;
	}
	CHECK_SAME("connection", conn, conn->n_asked, asked);
	dofi_mutex_unlock(&ep->lock);
}

void check_connections(struct dofi_ia *ia)
{
	struct rdm_ia *ria = rdm_ia_of(ia);
	struct rdm_pz *rpz;
	uint32_t i;

	if (!ria)
		return;
	LIST_FOREACH(rpz, &ria->pzs, link) {
		CHECK_SAME("pz", rpz->pz, rpz->pz->xport_pz, rpz);
		for (i = 0; i < rpz->n_conns; i++)
			if (rpz->conn[i])
				conn_check(rpz, rpz->conn[i], i);
	}
}
