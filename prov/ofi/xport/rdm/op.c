/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: operations at the fabric, pending frames, and stalled EPs. */

#include "xport/rdm/op.h"

#include "base/layout.h"
#include "obj/ep/ep_dto.h"

#include <errno.h>
#include <stdlib.h>

/* Resources of a PZ */

/* Most operations of a PZ at the fabric, and most copies of frames. */
#define OPS 512
#define COPIES 64

/* Pending frames that need no allocation. More are pending only if receives are posted late. */
#define SPARES 64

int rdm_ops_open(struct rdm_pz *rpz)
{
	const struct dofi_fabric_choice *fabric = rpz->ria->fabric;
	const size_t size = fabric->frame_size, pending = sizeof(struct rdm_pending) + size;
	const size_t stride = (pending + DOFI_CACHE_LINE - 1) / DOFI_CACHE_LINE * DOFI_CACHE_LINE;
	/* for frames that are too long to be injected; a ring takes all frames */
	const bool copies = !rpz->rings && (size > fabric->info->tx_attr->inject_size ||
					    size > RDM_INJECT_MAX);
	int ret = -ENOMEM;
	size_t i;

	dofi_mutex_init(&rpz->lock);
	SLIST_INIT(&rpz->ops);
	SLIST_INIT(&rpz->copies);
	STAILQ_INIT(&rpz->spare);
	rpz->op = calloc(OPS + COPIES, sizeof(*rpz->op));
	rpz->copy = copies ? malloc(COPIES * size) : NULL;
	rpz->spares = aligned_alloc(DOFI_CACHE_LINE, SPARES * stride);
	if (!rpz->op || (copies && !rpz->copy) || !rpz->spares)
		goto close;
	for (i = 0; i < OPS + COPIES; i++)
		rpz->op[i].rpz = rpz;
	for (i = 0; i < OPS; i++)
		SLIST_INSERT_HEAD(&rpz->ops, &rpz->op[i], free);
	for (i = 0; i < COPIES && copies; i++) {
		rpz->op[OPS + i].copy = rpz->copy + i * size;
		SLIST_INSERT_HEAD(&rpz->copies, &rpz->op[OPS + i], free);
	}
	for (i = 0; i < SPARES; i++) {
		struct rdm_pending *w = (struct rdm_pending *)(rpz->spares + i * stride);

		w->is_spare = true;
		STAILQ_INSERT_TAIL(&rpz->spare, w, link);
	}
	ret = dofi_local_mr_open(rpz->domain, rpz->op, OPS * sizeof(*rpz->op), FI_SEND,
				 &rpz->ops_mr);
	if (!ret && copies)
		ret = dofi_local_mr_open(rpz->domain, rpz->copy, COPIES * size, FI_SEND,
					 &rpz->copies_mr);
	if (!ret)
		return 0;
close:
	rdm_ops_close(rpz);
	return ret;
}

void rdm_ops_close(struct rdm_pz *rpz)
{
	dofi_local_mr_close(rpz->copies_mr);
	dofi_local_mr_close(rpz->ops_mr);
	free(rpz->copy);
	free(rpz->op);
	free(rpz->spares);
}

/* Operations */

static struct rdm_op *op_take(struct rdm_conn *conn, struct rdm_ops *ops)
{
	struct rdm_pz *rpz = conn->rpz;
	struct rdm_op *op;

	dofi_mutex_lock(&rpz->lock);
	op = SLIST_FIRST(ops);
	if (op)
		SLIST_REMOVE_HEAD(ops, free);
	dofi_mutex_unlock(&rpz->lock);
	if (!op)
		return NULL;
	op->conn = conn;
	op->receives = op->blocks = op->completes_dto = false;
	LIST_INSERT_HEAD(&conn->ops, op, link);
	return op;
}

struct rdm_op *rdm_op_get(struct rdm_conn *conn, const struct dofi_dto *dto, bool receives)
{
	struct rdm_op *op = op_take(conn, &conn->rpz->ops);

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!op)
		return NULL;
	op->number = dto->number;
	op->receives = receives;
	op->completes_dto = true;
	return op;
}

struct rdm_op *rdm_op_get_copy(struct rdm_conn *conn)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	return op_take(conn, &conn->rpz->copies);
}

static void op_free(struct rdm_op *op)
{
	struct rdm_pz *rpz = op->rpz;

	dofi_mutex_lock(&rpz->lock);
	SLIST_INSERT_HEAD(op->copy ? &rpz->copies : &rpz->ops, op, free);
	dofi_mutex_unlock(&rpz->lock);
}

void rdm_op_put(struct rdm_op *op)
{
	LIST_REMOVE(op, link);
	op_free(op);
}

void rdm_op_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	struct rdm_op *op = entry->op_context;
	struct fi_cq_data_entry of_dto = *entry;
	struct rdm_conn *conn = op->conn;
	const struct dofi_dto *dto;
	const bool completes_dto = op->completes_dto;

	if (!conn) {
		op_free(op);
		return;
	}
	dofi_mutex_lock(&conn->ep->lock);
	if (completes_dto) {
		dto = dofi_queue_at(op->receives ? &conn->ep->rq : &conn->ep->sq, op->number);
		/* a message behind a failed operation is never sent */
		conn->blocking -= op->blocks && !err;
		/* NULL if the slot has another operation by now */
		of_dto.op_context = dto->number == op->number ? dofi_dto_context(dto) : NULL;
	} else if (err) {
		rdm_lost(conn);
	}
	rdm_op_put(op);
	dofi_mutex_unlock(&conn->ep->lock);
	if (completes_dto)
		dofi_dto_complete(&of_dto, err, sink);
}

void rdm_ops_abandon(struct rdm_conn *conn)
{
	struct dofi_cq *cq = &conn->rpz->domain->cq;
	struct rdm_op *op;

	dofi_mutex_assert_held(&cq->lock);
	while ((op = LIST_FIRST(&conn->ops))) {
		LIST_REMOVE(op, link);
		op->conn = NULL;
	}
	dofi_cq_stall_end(cq, &conn->stall);
}

/* Pending frames */

struct rdm_pending *rdm_pending_get(struct rdm_pz *rpz, size_t size)
{
	struct rdm_pending *w;

	dofi_mutex_lock(&rpz->lock);
	w = size <= rpz->ria->fabric->frame_size ? STAILQ_FIRST(&rpz->spare) : NULL;
	if (w)
		STAILQ_REMOVE_HEAD(&rpz->spare, link);
	dofi_mutex_unlock(&rpz->lock);
	if (w)
		return w;
	w = malloc(sizeof(*w) + size);
	if (w)
		w->is_spare = false;
	return w;
}

void rdm_pending_put(struct rdm_pz *rpz, struct rdm_pending *w)
{
	if (!w->is_spare) {
		free(w);
		return;
	}
	dofi_mutex_lock(&rpz->lock);
	STAILQ_INSERT_HEAD(&rpz->spare, w, link);
	dofi_mutex_unlock(&rpz->lock);
}

void rdm_lost(struct rdm_conn *conn)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	if (!conn->left && !conn->ep->closing)
		rdm_conn_todo(conn, RDM_LOST);
}

/* Stalled EPs */

void rdm_stall(struct rdm_conn *conn)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	dofi_cq_stall(&conn->rpz->domain->cq, &conn->stall);
}
