/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plain operations: the short way of the commonest. A send, a receive, or an RDMA write or read, of one
 * segment, without flags, on a connection on which nothing is unusual, is posted by ep_post.c without
 * a look at what it does not need, and when the thread that polls finds it completed its event is
 * written at once.
 * All else goes the way of all operations, and so may these at any point.
 */
#ifndef DOFI_OBJ_EP_PLAIN_H
#define DOFI_OBJ_EP_PLAIN_H

#include "obj/ep.h"

#include <rdma/fi_eq.h>

/*
 * Whether there is none behind the oldest that has ended before it. To @cq others may come soon; NULL,
 * if there is no telling when.
 */
static DOFI_INTO_CALLER bool dofi_next_is_pending(const struct dofi_queue *q, struct dofi_cq *cq)
{
	if (q->head + 1 == q->tail)
		return true;
	if (cq)
		dofi_cq_expect(cq);
	return !dofi_queue_at(q, q->head + 1)->done;
}

#if DAT_VERSION_MAJOR >= 2
_Static_assert((int)DOFI_DTO_SEND == DAT_DTO_SEND && (int)DOFI_DTO_WRITE == DAT_DTO_RDMA_WRITE &&
		       (int)DOFI_DTO_READ == DAT_DTO_RDMA_READ && (int)DOFI_DTO_RECV == DAT_DTO_RECEIVE,
	       "a plain operation's kind is what DAT calls it");
#endif

static DOFI_INTO_CALLER void dofi_plain_event(DAT_EVENT *event, struct dofi_evd *evd,
					      struct dofi_ep *ep, const struct dofi_dto *dto,
					      uint64_t length)
{
	DAT_DTO_COMPLETION_EVENT_DATA *d = &event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd;
	d->ep_handle = ep;
	d->user_cookie.as_64 = dto->cookie;
	d->status = DAT_DTO_SUCCESS;
	d->transfered_length = length;
#if DAT_VERSION_MAJOR >= 2
	d->operation = (DAT_DTOS)dto->kind;
	d->rmr_context = 0;
#endif
}

/* A request, of which the fabric says no more than that it is done. */
static DOFI_INTO_CALLER bool dofi_plain_requested(struct dofi_ep *ep, struct dofi_dto *dto,
						  struct dofi_cq *cq, struct dofi_evd *evd,
						  DAT_EVENT *event)
{
	if (__builtin_expect(dto->number != ep->sq.head || !dofi_next_is_pending(&ep->sq, cq) ||
			     ep->plain_request_evd != evd, 0))
		return false;
	ep->sq.head++;
	dto->at_fabric = false;
	if (dto->kind == DOFI_DTO_READ)
		ep->reads--;
	dofi_plain_event(event, evd, ep, dto, dto->length);
	return true;
}

/* A receive, if nothing came beside its message. */
static DOFI_INTO_CALLER bool dofi_plain_received(const struct fi_cq_data_entry *entry,
						 struct dofi_ep *ep, struct dofi_dto *dto,
						 struct dofi_evd *evd, DAT_EVENT *event)
{
	if (__builtin_expect(dto->number != ep->rq.head || !dofi_next_is_pending(&ep->rq, NULL) ||
			     ep->plain_recv_evd != evd || entry->flags & FI_REMOTE_CQ_DATA, 0))
		return false;
	ep->rq.head++;
	dto->at_fabric = false;
	dofi_tally_add(&ep->receipts[DOFI_DTO_RECV], entry->len);
	dofi_plain_event(event, evd, ep, dto, entry->len);
	return true;
}

/* What @entry tells of is @dto, of @ep, whose plain_lock is held. */
static DOFI_INTO_CALLER bool dofi_plain_ended(const struct fi_cq_data_entry *entry, struct dofi_ep *ep,
					      struct dofi_dto *dto, struct dofi_cq *cq,
					      struct dofi_evd *evd, DAT_EVENT *event)
{
	if (__builtin_expect(!dofi_dto_is_plain_of(dto, entry->op_context) ||
			     atomic_load_explicit(&evd->straight_feed, memory_order_relaxed) != cq, 0))
		return false;
	return dto->kind == DOFI_DTO_RECV ? dofi_plain_received(entry, ep, dto, evd, event) :
					    dofi_plain_requested(ep, dto, cq, evd, event);
}

/*
 * Writes the event of a plain operation that ended well, and whose turn it is, for the thread that
 * polls @evd, which @cq feeds. Returns false without side effects if @entry is anything else, or if another
 * thread has the EP: dofi_dto_complete() waits for it. Here @cq is not serial: then an EP has no other plain_lock
 * than its own.
 */
static DOFI_INTO_CALLER bool dofi_plain_take(const struct fi_cq_data_entry *entry, struct dofi_cq *cq,
					     struct dofi_evd *evd, DAT_EVENT *event)
{
	struct dofi_dto *dto = dofi_dto_of(entry->op_context);
	struct dofi_ep *ep;
	bool taken;

	if (__builtin_expect(!dto, 0))
		return false;
	ep = dto->ep;
	if (__builtin_expect(!dofi_mutex_try(&ep->lock), 0))
		return false;
	taken = dofi_plain_ended(entry, ep, dto, cq, evd, event);
	dofi_mutex_unlock(&ep->lock);
	return taken;
}

/* The same where @cq is serial, by who is in there (dofi_cq_enter()). */
static DOFI_INTO_CALLER bool dofi_plain_take_serial(const struct fi_cq_data_entry *entry,
						    struct dofi_cq *cq, struct dofi_evd *evd,
						    DAT_EVENT *event)
{
	struct dofi_dto *dto = dofi_dto_of(entry->op_context);
	struct dofi_ep *ep;

	if (__builtin_expect(!dto, 0))
		return false;
	ep = dto->ep;
	return __builtin_expect(atomic_load_explicit(&ep->plain_lock, memory_order_acquire) == &cq->access, 1) &&
	       dofi_plain_ended(entry, ep, dto, cq, evd, event);
}

#endif
