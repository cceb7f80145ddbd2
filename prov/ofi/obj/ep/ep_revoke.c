/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Freeing LMRs and RMRs: operations that were posted before must not use the memory any more.
 * Posting keeps no account: the operations are found in the queues of all EPs of the IA. A request
 * that the fabric has not got is marked, and fails when its turn comes. Receives at the fabric are
 * cancelled and posted again in order, the revoked ones without memory. An operation that the
 * fabric does not give back fails now, and its connection closes, which is the only way to get the
 * memory back.
 */

#include "obj/obj.h"
#include "obj/ep/ep_cm.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/rmr.h"

#include <errno.h>

/* The memory that is freed. */
struct revoked {
	struct dofi_ia *ia;
	uint32_t context;		/* of its LMR, or RMR */
	bool rmr;
	SLIST_HEAD(, dofi_ep) holders;	/* EPs with operations at the fabric that use it */
};

/* Whether @dto uses the memory; false for receives that have lost their memory before. */
static bool uses(const struct dofi_dto *dto, const struct revoked *r)
{
	const bool excluded = dto->flags & DOFI_DTO_EXCLUDED;
	uint32_t i, n;

	if (dto->done || dto->kind == DOFI_DTO_BIND)
		return false;
	if (dofi_dto_is_plain(dto))
		return !r->rmr && dto->memory_lmr == r->context;
	if (r->rmr)
		return dto->marks & DOFI_DTO_GRANTED && dto->local_key == r->context;
	if (excluded && !dto->excluded.pz_id)
		return false;
	n = excluded ? dto->excluded.n_iov_before : dto->n_iov;
	for (i = 0; i < n; i++)
		if (dofi_dto_contexts(dto)[i] == r->context)
			return true;
	return false;
}

static bool is_held(const struct dofi_ep *ep, const struct dofi_dto *dto, const struct revoked *r)
{
	return uses(dto, r) && ep->xport->holds(ep, dto);
}

/* Excludes receives that the fabric does not have, or that the transport matches. */
static void receives_exclude(struct dofi_ep *ep, const struct revoked *r) DOFI_NEEDS(ep->lock)
{
	struct dofi_queue *q = &ep->rq;
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		if (uses(dto, r) && (!dto->at_fabric || !ep->xport->srq) &&
		    !ep->xport->holds(ep, dto)) {
			dofi_receive_unplain(dto);
			dofi_receive_exclude(dto, 0);
		}
	}
}

static bool queue_is_held(const struct dofi_ep *ep, const struct dofi_queue *q,
			  const struct revoked *r) DOFI_NEEDS(ep->lock)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++)
		if (is_held(ep, dofi_queue_at(q, i), r))
			return true;
	return false;
}

/*
 * Marks operations that are not at the fabric. Returns whether fabric or peer use the memory too.
 */
static bool ep_revoke(struct dofi_ep *ep, const struct revoked *r)
{
	struct dofi_queue *sq = &ep->sq;
	uint32_t i;
	bool held;

	dofi_mutex_lock(&ep->lock);
	for (i = sq->next; i != sq->tail; i++)
		if (uses(dofi_queue_at(sq, i), r))
			dofi_queue_at(sq, i)->marks |= DOFI_DTO_REVOKED;
	receives_exclude(ep, r);
	held = queue_is_held(ep, sq, r) || queue_is_held(ep, &ep->rq, r);
	dofi_mutex_unlock(&ep->lock);
	return held;
}

/*
 * Whether ep_revoke() is true for any EP. With @collect, r->holders has these EPs (progress
 * thread).
 */
static bool eps_revoke(struct revoked *r, bool collect)
{
	struct dofi_obj *obj;
	bool held = false;

	SLIST_INIT(&r->holders);
	dofi_mutex_lock(&r->ia->lock);
	TAILQ_FOREACH(obj, &r->ia->children[DOFI_KIND(DAT_HANDLE_TYPE_EP)], sibling) {
		struct dofi_ep *ep = (struct dofi_ep *)obj;

		if (!ep_revoke(ep, r))
			continue;
		held = true;
		if (collect)
			SLIST_INSERT_HEAD(&r->holders, ep, holder);
	}
	dofi_mutex_unlock(&r->ia->lock);
	return held;
}

/*
 * Cancels the receives at the fabric from the oldest one that uses the memory on, the newest first:
 * a message that comes meanwhile meets the oldest receive that is left. No receive is posted there
 * meanwhile. Drops the EP lock for their completions; cancelled receives are pending again.
 */
static void receives_recall(struct dofi_ep *ep, const struct revoked *r) DOFI_NEEDS(ep->lock)
{
	struct dofi_queue *q = &ep->rq;
	uint32_t first = q->head, i;
	struct dofi_dto *dto;

	while (first != q->next && !is_held(ep, dofi_queue_at(q, first), r))
		first++;
	if (first == q->next || !ep->xport->cancel)
		return;
	q->held = true;
	dofi_ep_open_queues(ep);
	for (i = q->next; i != first; i--) {
		dto = dofi_queue_at(q, i - 1);
		if (!dto->at_fabric)
			continue;
		dto->marks = (dofi_dto_is_plain(dto) ? 0 : dto->marks) | DOFI_DTO_RECALLED;
		ep->xport->cancel(ep, dto);
	}
	dofi_mutex_unlock(&ep->lock);
	dofi_cq_drain(ep->cq);
	dofi_mutex_lock(&ep->lock);
	for (i = q->next; i != q->head; i--) {
		dto = dofi_queue_at(q, i - 1);
		if (dto->at_fabric || dto->done || !(dto->marks & DOFI_DTO_RECALLED))
			break;
		dofi_receive_unplain(dto);
		dofi_dto_renew(dto);
		dto->marks &= ~DOFI_DTO_RECALLED;
	}
	dofi_queue_rewind(q, i);
	for (; i != q->head; i--)
		dofi_queue_at(q, i - 1)->marks &= ~DOFI_DTO_RECALLED;
	receives_exclude(ep, r);
	q->held = false;
	dofi_ep_open_queues(ep);
}

/* Fails operations that the fabric keeps. Returns whether there is any. */
static bool held_fail(struct dofi_ep *ep, struct dofi_queue *q, const struct revoked *r)
	DOFI_NEEDS(ep->lock)
{
	bool any = false;
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		if (!is_held(ep, dto, r))
			continue;
		dofi_dto_finish(ep, dto, EFAULT);
		any = true;
	}
	return any;
}

/*
 * Progress thread: cancels the operations at the fabric. The connection of an EP stays if the
 * fabric has completed or returns all of them. This thread alone closes EPs with operations at the
 * fabric, so they outlive this.
 */
static void revoke_run(void *arg)
{
	struct revoked *r = arg;
	struct dofi_ep *ep;
	bool failed;

	eps_revoke(r, true);
	while ((ep = SLIST_FIRST(&r->holders))) {
		SLIST_REMOVE_HEAD(&r->holders, holder);
		if (ep->cq)
			dofi_cq_drain(ep->cq);
		dofi_mutex_lock(&ep->lock);
		receives_recall(ep, r);
		failed = held_fail(ep, &ep->sq, r);
		failed |= held_fail(ep, &ep->rq, r);
		if (!failed)
			dofi_dto_submit_pending(ep);
		dofi_mutex_unlock(&ep->lock);
		if (failed)
			dofi_ep_close_now(ep);
	}
}

/* Returns when no operation that was posted before uses the memory. */
static void revoke(struct dofi_ia *ia, uint32_t context, bool rmr)
{
	struct revoked r = { .ia = ia, .context = context, .rmr = rmr };
	struct dofi_obj *obj;

	if (!context)
		return;
	if (!rmr) {
		/*
		 * Waits for posts to an SRQ that found the LMR. EPs take the buffer only while the
		 * LMR is valid: dofi_srq_buffer_check().
		 */
		dofi_mutex_lock(&ia->lock);
		TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(DAT_HANDLE_TYPE_SRQ)], sibling) {
			struct dofi_srq *srq = (struct dofi_srq *)obj;

			dofi_mutex_lock(&srq->lock);
			dofi_mutex_unlock(&srq->lock);
		}
		dofi_mutex_unlock(&ia->lock);
	}
	if (eps_revoke(&r, false))
		dofi_progress_call(&ia->progress, revoke_run, &r);
}

DAT_RETURN dofi_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct dofi_lmr *lmr = dofi_lmr_enter(lmr_handle);
	struct dofi_ia *ia;
	int err;

	if (!lmr)
		return DOFI_BAD_HANDLE(LMR);
	err = dofi_obj_claim_unused(&lmr->obj);
	if (err) {
		dofi_obj_leave(&lmr->obj);
		return err == -EBUSY ? DOFI_BAD_STATE(LMR_IN_USE) : DOFI_BAD_HANDLE(LMR);
	}
	ia = dofi_obj_take_over(&lmr->obj);
	revoke(ia, dofi_lmr_end(lmr), false);
	lmr->obj.destroy(&lmr->obj);
	dofi_ia_leave(ia);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	struct dofi_rmr *rmr = dofi_rmr_enter(rmr_handle);
	struct dofi_ia *ia;
	DAT_RMR_CONTEXT context;

	if (!rmr)
		return DOFI_BAD_HANDLE(RMR);
	if (!dofi_obj_claim(&rmr->obj)) {
		dofi_obj_leave(&rmr->obj);
		return DOFI_BAD_HANDLE(RMR);
	}
	ia = dofi_obj_take_over(&rmr->obj);
	dofi_mutex_lock(&rmr->pz->rmr_lock);
	context = rmr->bound ? rmr->bound->context : 0;
	dofi_mutex_unlock(&rmr->pz->rmr_lock);
	rmr->obj.destroy(&rmr->obj);
	revoke(ia, context, true);
	dofi_ia_leave(ia);
	return DAT_SUCCESS;
}
