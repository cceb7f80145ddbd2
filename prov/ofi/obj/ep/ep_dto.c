/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completions from the fabric, with a transport's additions. */

#include "obj/ep/ep_dto.h"

#include "base/layout.h"
#include "fab/quirks.h"
#include "obj/cq_data.h"
#include "obj/ep/ep_attr.h"
#include "obj/mem/rmr.h"

#include <errno.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

static DOFI_INTO_CALLER void end(struct dofi_ep *ep, struct dofi_dto *dto, int err,
				 struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	dofi_dto_finish(ep, dto, err);
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS)) {
		if (dofi_ep_may_deliver(ep))
			dofi_receives_retire(ep, sink);
	} else {
		dofi_requests_retire(ep, sink);
		if (__builtin_expect(ep->graceful, 0))
			dofi_ep_request_done(ep);
	}
	/* a message that ended in an SRQ's buffer lets the EP take the next */
	if (dofi_queue_waits(&ep->sq) || dofi_queue_waits(&ep->rq) || ep->resume_pending ||
	    __builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		dofi_dto_submit_pending(ep);
}

void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
{
	dofi_mutex_assert_held(&ep->lock);
	end(ep, dto, err, sink);
}

void dofi_arrived_read(struct dofi_arrived *a, uint64_t cq_data, uint64_t length)
{
	const uint32_t written = dofi_cq_data_length(cq_data);

	*a = (struct dofi_arrived){
		.solicited = dofi_cq_data_solicited(cq_data), .immed = (uint32_t)cq_data,
		.length = length, .err = written ? FI_EIO : 0,
	};
	switch (dofi_cq_data_kind(cq_data)) {
	case DOFI_CQ_DATA_PLAIN:
		a->kind = DOFI_DTO_RECV;
		if (!a->solicited || a->immed)
			a->err = FI_EIO;
		break;
	case DOFI_CQ_DATA_INVALIDATE:
		a->kind = DOFI_DTO_RECV_INVALIDATE;
		break;
	case DOFI_CQ_DATA_IMMED:
		a->kind = DOFI_DTO_RECV_IMMED;
		break;
	case DOFI_CQ_DATA_WRITE_IMMED:
		a->kind = DOFI_DTO_RECV_WRITE_IMMED;
		a->err = length ? FI_EIO : 0;
		/* uDAPL 1.2 has no such event: the receive is empty */
		a->length = DAT_VERSION_MAJOR >= 2 ? written : 0;
		break;
	}
}

/*
 * Completes the receive @dto as @arrived says. Returns 0 or a positive error. A grant ends before
 * the event that reports its end, and before the next receive completes.
 */
static __attribute__((noinline)) int receive_more(struct dofi_ep *ep, struct dofi_dto *dto,
						  const struct dofi_arrived *arrived)
	DOFI_NEEDS(ep->lock)
{
	int err = arrived->err;

	if (!err && arrived->kind == DOFI_DTO_RECV_INVALIDATE)
		err = -dofi_rmr_invalidate(ep->pz, ep, arrived->immed);
	if (err)
		return err;
	if (arrived->solicited)
		dto->flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	dto->kind = arrived->kind;
	dto->immed = arrived->immed;
	dto->length = arrived->length;
	return 0;
}

int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto)
{
	struct dofi_arrived arrived;
	int err = 0;

	dofi_mutex_assert_held(&ep->lock);
	if (dto->cq_data) {
		dofi_arrived_read(&arrived, dto->cq_data, dto->length);
		err = receive_more(ep, dto, &arrived);
	}
	if (!err)
		dofi_tally_add(&ep->receipts[dto->kind], dto->length);
	return err;
}

/* Completes the receive @dto. Returns a positive error if it did not end well. */
static inline int receive(struct dofi_ep *ep, struct dofi_dto *dto,
			  const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived)
	DOFI_NEEDS(ep->lock)
{
	int err;

	if (__builtin_expect(entry->len && !dto->n_iov && !dofi_dto_is_plain(dto), 0))
		return FI_ETRUNC;	/* the transport may have posted it with a byte of room */
	dto->length = entry->len;
	if (__builtin_expect(dto->flags & (DOFI_DTO_SHARED | DOFI_DTO_MATCHED), 0))
		return dofi_dto_received(ep, dto);
	if (__builtin_expect(arrived != NULL, 0)) {
		err = receive_more(ep, dto, arrived);
		if (err)
			return err;
	}
	dofi_tally_add(&ep->receipts[dto->kind], dto->length);
	return 0;
}

/*
 * A receive is flushed when an attempt fails; its event is about to come (dofi_dto_recall()). A
 * receive that failed for a reason of its own got a message, so the connection exists.
 */
static __attribute__((noinline)) void fail_early(struct dofi_ep *ep, struct dofi_dto *dto, int err)
	DOFI_NEEDS(ep->lock)
{
	const DAT_DTO_COMPLETION_STATUS status = dofi_dto_failure(dto, err);

	if (status == DAT_DTO_ERR_FLUSHED)
		return;
	dofi_dto_set_done(dto, status);
	ep->failed_early = true;
}

bool dofi_ep_loses_answers(const struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	/* an IA of the fabric also has connections over rings */
	return ep->xport->probe && ep->obj.ia->fabric.quirk->loses_answers;
}

/*
 * The peer has answered @dto, a write or the probe, so it answered the reads before it or lost the
 * answer, for example because its program has unmapped the memory. The next read's answer would
 * complete the lost read. The requests before a probe may have left the queue.
 */
static __attribute__((noinline)) void lost_fail(struct dofi_ep *ep, const struct dofi_dto *dto,
						struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	uint32_t i;

	for (i = ep->sq.head; (int32_t)(dto->number - i) > 0; i++) {
		struct dofi_dto *read = dofi_queue_at(&ep->sq, i);

		if (read->kind != DOFI_DTO_READ || read->done)
			continue;
		end(ep, read, EREMOTEIO, sink);
		break;
	}
}

static void complete(struct dofi_ep *ep, struct dofi_dto *dto,
		     const struct fi_cq_data_entry *entry, int err,
		     const struct dofi_arrived *arrived, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock)
{
	/* a receive that was recalled, and got no message */
	if (err == FI_ECANCELED && dofi_dto_is(dto->kind, DOFI_DTO_RECVS) &&
	    dto->marks & DOFI_DTO_RECALLED) {
		dto->at_fabric = false;
		return;
	}
	/* the fabric reports the connection by another queue, which may be read later */
	if (err && !dofi_ep_may_deliver(ep)) {
		fail_early(ep, dto, err);
		return;
	}
	if (dto->kind == DOFI_DTO_PREAMBLE) {
		ep->xport->srq->arrived(ep, dto, entry->len, err, sink);
		return;
	}
	if (dto->kind == DOFI_DTO_PROBE) {
		dto->at_fabric = false;
		if (!err)
			lost_fail(ep, dto, sink);
		return;
	}
	if (dto->kind == DOFI_DTO_RECV && !err)
		err = receive(ep, dto, entry, arrived);
	if (dto->parts && !err) {
		/* other parts of the operation are in flight, or to be submitted */
		dto->parts--;
		dofi_dto_submit_pending(ep);
		return;
	}
	if (ep->reads && dto->kind == DOFI_DTO_WRITE && !err && dofi_ep_loses_answers(ep))
		lost_fail(ep, dto, sink);
	end(ep, dto, err, sink);
}

void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, int err,
			  const struct dofi_arrived *arrived, struct dofi_sink *sink)
{
	struct dofi_dto *dto = dofi_dto_of(entry->op_context);

	if (!dto)
		return;
	dofi_mutex_lock(&dto->ep->lock);
	if (dofi_dto_awaits(dto, entry->op_context))
		complete(dto->ep, dto, entry, err, arrived, sink);
	dofi_mutex_unlock(&dto->ep->lock);
}

/* Buffers of an SRQ */

int dofi_srq_buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto)
{
	uint8_t i;

	dofi_mutex_assert_held(&ep->lock);
	for (i = 0; i < dto->n_iov; i++) {
		const DAT_LMR_CONTEXT context = dofi_dto_contexts(dto)[i];
		struct dofi_lmr *lmr = dofi_lmr_at(context);

		if (!lmr || !dofi_lmr_allows(lmr, (uintptr_t)dto->iov[i].iov_base - lmr->origin,
					     dto->iov[i].iov_len, ep->pz,
					     DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
			return FI_EACCES;
		dto->desc[i] = lmr->desc;
	}
	return 0;
}

struct dofi_dto *dofi_srq_buffer(struct dofi_ep *ep)
{
	struct dofi_dto *dto;

	dofi_mutex_assert_held(&ep->lock);
	/* a watermark may have lowered soft_limit; and a message cannot wait for memory */
	if (dofi_queue_extend(&ep->rq, ep)) {
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
		return NULL;
	}
	dto = dofi_queue_reserve(&ep->rq);
	/* an EP with its maximum of receives tries again when one retires, and not in the line */
	if (!dto || !dofi_srq_take(ep->srq, &ep->srq_user, dto))
		return NULL;
	dto->flags = DOFI_DTO_SHARED;
	dto->cq_data = 0;
	dofi_queue_push(&ep->rq);
	dofi_dto_watermarks(ep);
	return dto;
}

struct dofi_dto *dofi_srq_receive(struct dofi_ep *ep)
{
	struct dofi_dto *dto = dofi_srq_buffer(ep);
	int err;

	dofi_mutex_assert_held(&ep->lock);
	/* the end of the connection flushes the buffer */
	if (!dto || !ep->rq.open)
		return NULL;
	dofi_queue_advance(&ep->rq);
	err = dofi_srq_buffer_check(ep, dto);
	if (err) {
		dofi_dto_finish(ep, dto, err);
		return NULL;
	}
	dto->at_fabric = true;
	return dto;
}

/* dofi_srq_user.feed: any thread. The memory may be another EP's by now, of another SRQ or none. */
static void fed(struct dofi_srq_user *user)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(user, struct dofi_ep, srq_user);
	struct dofi_srq *srq;

	dofi_mutex_lock(&ep->lock);
	srq = ep->srq;
	if (srq && dofi_srq_waits(srq, user)) {
		if (!ep->rq.open)
			dofi_srq_leave(srq, user);
		else
			ep->xport->srq_fed(ep);
	}
	dofi_mutex_unlock(&ep->lock);
}

/* Once for the memory: a thread may still be about to pass a buffer to an earlier EP in it. */
void dofi_ep_srq_init(struct dofi_srq_user *user)
{
	if (!user->feed)
		user->feed = fed;
}
