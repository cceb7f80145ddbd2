/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The order in which an endpoint's operations go to the fabric. */

#include "obj/ep/ep_dto.h"

#include "obj/mem/rmr.h"

#include <rdma/fi_errno.h>

/* Whether a read at the fabric has its memory in the RMR of @context, which may be 0. */
static bool is_read_into(const struct dofi_queue *q, DAT_RMR_CONTEXT context)
{
	uint32_t i;

	for (i = q->head; context && i != q->next; i++) {
		const struct dofi_dto *dto = dofi_queue_at(q, i);

		if (!dofi_dto_is_plain(dto) && !dto->done && dto->marks & DOFI_DTO_GRANTED &&
		    dto->local_key == context)
			return true;
	}
	return false;
}

/*
 * A fence waits for earlier reads and atomics, unless the fabric delays the request itself: not a
 * message with a preamble, which may be two for the fabric, and no empty message or atomic, which
 * are posted without flags. A read waits while as many as agreed are in flight; if none are agreed,
 * for all before it. A bind waits for reads into the grant that it ends. The target's program
 * carries out atomics when it reads them: RDMA that would reach its memory directly waits for them
 * here.
 */
static __attribute__((noinline)) bool must_wait(const struct dofi_ep *ep,
						const struct dofi_dto *dto) DOFI_NEEDS(ep->lock)
{
	const bool fabric_fences = ep->obj.ia->fabric.fences && !ep->preambles && dto->n_iov &&
				   !dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS);

	if (dto->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG && !fabric_fences)
		return true;
	if (dofi_dto_is(dto->kind, DOFI_DTO_READS) && ep->reads >= ep->attr.max_rdma_read_out)
		return true;
	if (dto->kind == DOFI_DTO_BIND && is_read_into(&ep->sq, dofi_bind_replaces(dto->bind)))
		return true;
	return ep->atomics && dofi_dto_is(dto->kind, DOFI_DTO_RDMA & ~DOFI_DTO_ATOMICS);
}

/* Kinds that do not go to the fabric, or not yet. */
#define OURS (1u << DOFI_DTO_BIND | 1u << DOFI_DTO_READ_TO_RMR)

/*
 * Carries out the next request, a bind, so operations behind it find it done. A read to an RMR
 * becomes a read if its context is bound. A request that may not use its memory, or that no peer
 * has the memory for, fails here.
 */
static __attribute__((noinline)) void execute_here(struct dofi_ep *ep, struct dofi_dto *dto)
	DOFI_NEEDS(ep->lock)
{
	int err = EFAULT;

	if (dto->kind == DOFI_DTO_READ_TO_RMR && !(dto->marks & DOFI_DTO_REVOKED) &&
	    dofi_rmr_in_force(ep->pz, ep, dto->local_key)) {
		dto->kind = DOFI_DTO_READ;
		return;
	}
	dofi_queue_advance(&ep->sq);
	if (dto->kind == DOFI_DTO_BIND)
		err = -dofi_bind_execute(dto->bind);
	else if (!(dto->marks & DOFI_DTO_REVOKED) && dto->marks & DOFI_DTO_NOWHERE)
		err = EACCES;
	dofi_dto_finish(ep, dto, err);
	dofi_dto_retire(ep, NULL);
}

/*
 * @dto failed or is done: no completion comes. A failure ends a connection, which flushes the
 * operation; a datagram EP goes on.
 */
static __attribute__((noinline)) void ended(struct dofi_ep *ep, struct dofi_dto *dto, int ret)
	DOFI_NEEDS(ep->lock)
{
	dofi_dto_finish(ep, dto, ret == DOFI_DONE ? 0 : -ret);
	if (ret == DOFI_DONE || ep->datagrams)
		dofi_dto_retire(ep, NULL);
}

/* The fabric refused @dto, the next operation of @q. */
static __attribute__((noinline)) void refused(struct dofi_ep *ep, const struct dofi_queue *q,
					      struct dofi_dto *dto) DOFI_NEEDS(ep->lock)
{
	dto->at_fabric = dto->parts;
	if (ep->xport->retries && !dto->parts && !dofi_queue_has_flight(q))
		dofi_cq_stall(ep->cq, &ep->stall);
}

/* The first read after a while without one. */
static __attribute__((noinline)) void watch(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	ep->watched = true;
	ep->watched_head = ep->sq.head;
	dofi_ep_todo(ep, DOFI_EP_WATCH);
}

/*
 * Hands @dto, the next operation of @q, to the fabric. Returns false if the fabric's queue is full
 * for it now.
 */
static DOFI_INTO_CALLER bool submit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto,
				    uint8_t kind) DOFI_NEEDS(ep->lock)
{
	int ret;

	dto->at_fabric = true;
	ret = ep->xport->submit(ep, dto);
	if (__builtin_expect(ret == -FI_EAGAIN, 0)) {
		refused(ep, q, dto);
		return false;
	}
	if (dofi_dto_is(kind, DOFI_DTO_RECVS | 1u << DOFI_DTO_PREAMBLE)) {
		if (!dofi_queue_has_flight(q))
			dofi_cq_ask(ep->cq, ep->shard);
	} else if (__builtin_expect(dofi_dto_is(kind, DOFI_DTO_READS), 0)) {
		ep->reads++;
		if (kind == DOFI_DTO_READ && !ep->watched)
			watch(ep);
	}
	dofi_queue_advance(q);
	if (__builtin_expect(ret, 0))
		ended(ep, dto, ret);
	return true;
}

void dofi_dto_submit_queue(struct dofi_ep *ep, struct dofi_queue *q)
{
	struct dofi_dto *dto;

	dofi_mutex_assert_held(&ep->lock);
	while ((dto = dofi_queue_ready(q))) {
		if (__builtin_expect(ep->reads, 0) && must_wait(ep, dto))
			break;
		if (__builtin_expect(dto->marks & DOFI_DTO_NOWHERE, 0) && dofi_queue_has_flight(q))
			break;
		if (__builtin_expect(dto->marks & (DOFI_DTO_REVOKED | DOFI_DTO_NOWHERE) ||
				     dofi_dto_is(dto->kind, OURS), 0))
			execute_here(ep, dto);
		else if (!submit(ep, q, dto, dto->kind))
			break;
	}
	dofi_fast_renew(ep);
}

/* A disconnected EP accepts operations and flushes them at once. */
void dofi_dto_commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto, uint8_t kind)
{
	const bool first = !dofi_queue_waits(q);

	dofi_mutex_assert_held(&ep->lock);
	dofi_queue_push(q);
	if (__builtin_expect(!q->open, 0)) {
		if (ep->state == DAT_EP_STATE_DISCONNECTED)
			dofi_dto_flush(ep);
		return;
	}
	dofi_cq_posted(ep->cq);
	/* no operation is before it, and it need not wait for any */
	if (__builtin_expect(kind >= DOFI_DTO_BIND && !dofi_dto_is(kind, DOFI_DTO_DATAGRAMS), 0) ||
	    __builtin_expect(!first || ep->reads || q->held || dto->marks, 0))
		dofi_dto_submit_queue(ep, q);
	else if (__builtin_expect(!submit(ep, q, dto, kind), 0))
		dofi_fast_renew(ep);
}

void dofi_dto_submit_pending(struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_dto_submit_queue(ep, &ep->rq);
	dofi_dto_submit_queue(ep, &ep->sq);
	if (__builtin_expect(ep->srq != NULL, 0) && ep->xport->srq)
		ep->xport->srq->listen(ep);
	if (__builtin_expect(ep->resume_pending, 0))
		ep->xport->resume(ep);
}

void dofi_receive_unplain(struct dofi_dto *dto)
{
	const DAT_LMR_CONTEXT context = dto->memory_lmr;
	const struct dofi_lmr *lmr = dofi_lmr_at(context);

	if (!dofi_dto_is_plain(dto))
		return;
	dto->tag |= DOFI_DTO_SLOW;
	dto->iov[0] = (struct iovec){ dto->memory, dto->length };
	dto->desc[0] = lmr ? lmr->desc : NULL;
	dofi_dto_contexts(dto)[0] = context;
	dto->n_iov = 1;
	dto->marks = 0;
}

void dofi_dto_recall(struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_queue_recall(&ep->rq);
	if (ep->srq && ep->obj.ia->xport->srq)
		ep->obj.ia->xport->srq->clear(ep);
}
