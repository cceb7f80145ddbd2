/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies connections of xport/rdm/, and the entries that its endpoints reserve for peers. */

#include "check/check.h"
#include "xport/rdm/endpoint.h"
#include "xport/rdm/op.h"

#include <string.h>

/* The counts of frames and operations of a connection. EP lock held. */
static void counts_check(const struct rdm_conn *conn)
{
	const struct dofi_queue *q = &conn->ep->sq;
	uint32_t n = 0, blocking = 0, asked = 0, i;
	const struct rdm_pending *pending;
	const struct rdm_op *op;

	STAILQ_FOREACH(pending, &conn->pending, link)
		n++;
	CHECK("connection", conn, conn->n_pending == n, "%u, %u", conn->n_pending, n);
	LIST_FOREACH(op, &conn->ops, link) {
		CHECK("connection", conn, op->conn == conn, "operation %p of %p", (const void *)op,
		      (void *)op->conn);
		blocking += op->blocks;
	}
	CHECK("connection", conn, conn->blocking == blocking, "%u, %u", conn->blocking, blocking);
	/* a request that the peer carries out may also be the next of the queue, sent in part */
	for (i = q->head; i != q->tail; i++) {
		const struct dofi_dto *dto = dofi_queue_at(q, i);

		asked += !dto->done && dofi_dto_is(dto->kind, DOFI_DTO_RDMA) &&
			 dto->step == DOFI_STEP_ASKED;
	}
	CHECK("connection", conn, conn->asked == asked, "%u, %u", conn->asked, asked);
}

static void conn_check(struct rdm_pz *rpz, struct rdm_conn *conn, uint32_t slot)
{
	struct dofi_ep *ep = conn->ep;

	CHECK("connection", conn, (uint32_t)conn->id == slot, "%#llx, slot %u",
	      (unsigned long long)conn->id, slot);
	CHECK("connection", conn, conn->rpz == rpz, "%p, %p", (void *)conn->rpz, (void *)rpz);
	CHECK("connection", conn, !conn->endpoint == (conn->ring != NULL), "endpoint %p, ring %p",
	      (void *)conn->endpoint, (void *)conn->ring);
	dofi_ep_lock(ep);
	CHECK("connection", conn, ep->conn == conn, "EP %p has %p", (void *)ep, ep->conn);
	CHECK("connection", conn, ep->cq == &rpz->domain->cq, "EP %p", (void *)ep);
	CHECK("connection", conn, dofi_ep_is_live(ep), "EP %p is %s", (void *)ep,
	      dofi_ep_states[ep->state].name);
	CHECK("connection", conn, conn->credits <= conn->max_credits, "%u, %u", conn->credits,
	      conn->max_credits);
	CHECK("connection", conn, conn->credits_owed <= conn->window, "%u", conn->credits_owed);
	CHECK("connection", conn, !conn->processing, "%d", conn->processing);
	counts_check(conn);
	dofi_ep_unlock(ep);
}

/* Reservations with equal keys share an entry, which one of them counts. */
static void reservations_check(const struct rdm_endpoint *e)
{
	const struct dofi_reservations *all = &e->reservations;
	const struct dofi_reservation *r, *other;
	unsigned n = 0, counted;

	TAILQ_FOREACH(r, &all->list, link) {
		CHECK("endpoint", e, r->of == all, "reservation %p of %p", (const void *)r,
		      (void *)r->of);
		n += r->counts;
		counted = 0;
		TAILQ_FOREACH(other, &all->list, link)
			counted += other->counts && other->key_len == r->key_len &&
				   !memcmp(other->key, r->key, r->key_len);
		CHECK("endpoint", e, counted == 1, "reservation %p is counted %u times",
		      (const void *)r, counted);
	}
	CHECK("endpoint", e, all->reserved == n, "%u, %u", all->reserved, n);
}

static void rpz_check(struct rdm_pz *rpz)
{
	const struct rdm_endpoint *e;
	unsigned users = 0, conns = 0;
	uint32_t i;

	CHECK("pz", rpz->pz, rpz->pz->xport_pz == rpz, "%p, %p", rpz->pz->xport_pz, (void *)rpz);
	for (i = 0; i < rpz->n_conns; i++)
		if (rpz->conn[i]) {
			conn_check(rpz, rpz->conn[i], i);
			conns += rpz->conn[i]->endpoint != NULL;
		}
	LIST_FOREACH(e, &rpz->endpoints, link) {
		CHECK("endpoint", e, e->rpz == rpz, "%p, %p", (void *)e->rpz, (void *)rpz);
		reservations_check(e);
		users += e->conns;
	}
	CHECK("pz", rpz->pz, users == conns, "%u users of endpoints, %u connections", users, conns);
}

void check_connections(struct dofi_ia *ia)
{
	struct rdm_ia *ria = rdm_ia_of(ia);
	struct rdm_pz *rpz;

	if (!ria)
		return;
	LIST_FOREACH(rpz, &ria->pzs, link)
		rpz_check(rpz);
}
