/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer operations end here: how each did, its event, and all that are left over. */

#include "obj/ep_dto.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/beside.h"
#include "obj/ep.h"
#include "obj/rmr.h"

#include <errno.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

static DAT_DTO_COMPLETION_STATUS status_of(int err, uint8_t kind)
{
	if (err && kind == DOFI_DTO_BIND)
		return DAT_RMR_OPERATION_FAILED;
	switch (err) {
	case 0:
		return DAT_DTO_SUCCESS;
	case FI_ECANCELED:	/* what fabrics report when the connection goes away */
	case FI_ENOTCONN:
	case FI_ECONNRESET:
	case FI_ESHUTDOWN:
	case FI_ECONNABORTED:
	case EPIPE:
	case ENOENT:
		return DAT_DTO_ERR_FLUSHED;
	case FI_ETRUNC:
	case FI_ETOOSMALL:
	case EREMOTEIO:
		return kind == DOFI_DTO_RECV ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_ERR_REMOTE_RESPONDER;
	case EMSGSIZE:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case EBADMSG:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case EBADFD:		/* soft-RoCE says so of a receive that is too short */
		return kind == DOFI_DTO_RECV ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_ERR_LOCAL_EP;
	case EFAULT:		/* also ours: an RMR that is not bound */
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case FI_EKEYREJECTED:	/* of a receive: what was to end it, a write with data, was refused */
		if (kind == DOFI_DTO_RECV)
			return DAT_DTO_ERR_FLUSHED;
		/* fall through */
	case FI_EACCES:
	case FI_EPERM:
	case FI_ENOKEY:
		return dofi_dto_is(kind, DOFI_DTO_RDMA) ? DAT_DTO_ERR_REMOTE_ACCESS :
						 DAT_DTO_ERR_LOCAL_PROTECTION;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

static DAT_DTO_COMPLETION_STATUS failure(const struct dofi_dto *dto, int err)
{
	const DAT_DTO_COMPLETION_STATUS status = status_of(err, dto->kind);

	return status == DAT_DTO_ERR_LOCAL_LENGTH && dto->flags & DOFI_DTO_BARRED ?
		DAT_DTO_ERR_LOCAL_PROTECTION : status;
}

/* An operation failed, and with it the connection. */
static __attribute__((noinline)) void fail(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	dto->status = failure(dto, err);
	/* what the fabric calls an operation that it gave up when the connection ended */
	if (dto->status == DAT_DTO_ERR_TRANSPORT && ep->closing)
		dto->status = DAT_DTO_ERR_FLUSHED;
	dofi_log(dto->status == DAT_DTO_ERR_FLUSHED ? DOFI_DEBUG : DOFI_WARN, DOFI_EP,
		 "ep %p: operation failed: %s", (void *)ep, fi_strerror(err));
	/* FI_ECANCELED comes when a fabric has read to the end, another error when it could not send */
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		dofi_ep_lost(ep, err != FI_ECANCELED);
	else
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* Records how @dto ended. */
static DOFI_INTO_CALLER void finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	dto->done = true;
	dto->at_fabric = false;
	dto->status = DAT_DTO_SUCCESS;
	if (__builtin_expect(ep->reads, 0))
		ep->reads -= dofi_dto_is(dto->kind, DOFI_DTO_READS);
	if (__builtin_expect(err, 0))
		fail(ep, dto, err);
}

void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	finish(ep, dto, err);
}

/* Events */

#if DAT_VERSION_MAJOR >= 2
static const DAT_DTOS operation[DOFI_DTO_KINDS] = {
	[DOFI_DTO_SEND] = DAT_DTO_SEND,
	[DOFI_DTO_WRITE] = DAT_DTO_RDMA_WRITE,
	[DOFI_DTO_READ] = DAT_DTO_RDMA_READ,
	[DOFI_DTO_RECV] = DAT_DTO_RECEIVE,
	[DOFI_DTO_SEND_INVALIDATE] = DAT_DTO_SEND,
	[DOFI_DTO_READ_TO_RMR] = DAT_DTO_RDMA_READ,
	/* DAT_IB_DTOS has no name for it */
	[DOFI_DTO_SEND_IMMED] = DAT_DTO_SEND,
	[DOFI_DTO_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RDMA_WRITE_IMMED,
	[DOFI_DTO_FETCH_ADD] = (DAT_DTOS)DAT_IB_DTO_FETCH_ADD,
	[DOFI_DTO_CMP_SWAP] = (DAT_DTOS)DAT_IB_DTO_CMP_SWAP,
	[DOFI_DTO_RECV_INVALIDATE] = DAT_DTO_RECEIVE_WITH_INVALIDATE,
	[DOFI_DTO_RECV_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_MSG_IMMED,
	[DOFI_DTO_RECV_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_IMMED,
};
#endif

static __attribute__((noinline)) DAT_EVENT_NUMBER fill_bind_event(DAT_EVENT_DATA *data,
								  const struct dofi_dto *dto)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *d = &data->rmr_completion_event_data;

	d->rmr_handle = dto->rmr;
	d->user_cookie.as_64 = dto->cookie;
	d->status = (DAT_RMR_BIND_COMPLETION_STATUS)dto->status;
	return DAT_RMR_BIND_COMPLETION_EVENT;
}

static DOFI_INTO_CALLER void fill_dto_event(DAT_DTO_COMPLETION_EVENT_DATA *d, struct dofi_ep *ep,
					    const struct dofi_dto *dto)
{
	d->ep_handle = ep;
	d->user_cookie.as_64 = dto->cookie;
	d->status = (DAT_DTO_COMPLETION_STATUS)dto->status;
	d->transfered_length = dto->length;
#if DAT_VERSION_MAJOR >= 2
	d->operation = operation[dto->kind];
	d->rmr_context = 0;
#endif
}

static __attribute__((noinline)) DAT_EVENT_NUMBER fill_other_event(DAT_EVENT_DATA *data,
								   struct dofi_ep *ep,
								   const struct dofi_dto *dto)
{
	if (dto->kind == DOFI_DTO_BIND)
		return fill_bind_event(data, dto);
	fill_dto_event(&data->dto_completion_event_data, ep, dto);
#if DAT_VERSION_MAJOR >= 2
	if (dto->kind == DOFI_DTO_RECV_INVALIDATE)
		data->dto_completion_event_data.rmr_context = dto->immed;
	if (dofi_dto_is(dto->kind, DOFI_DTO_EXTENDED))
		return (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
#endif
	return DAT_DTO_COMPLETION_EVENT;
}

static DOFI_INTO_CALLER DAT_EVENT_NUMBER fill_event(DAT_EVENT_DATA *data, struct dofi_ep *ep,
						    const struct dofi_dto *dto)
{
	if (__builtin_expect(dto->kind >= DOFI_DTO_BIND, 0))
		return fill_other_event(data, ep, dto);
	fill_dto_event(&data->dto_completion_event_data, ep, dto);
	return DAT_DTO_COMPLETION_EVENT;
}

/* Whether the completion may wake anybody. A receive has the flag of the message's sender. */
static bool notifies(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	if (dto->status != DAT_DTO_SUCCESS)
		return true;
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS) &&
	    ep->attr.recv_completion_flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	return !(dto->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* Where the place of @dto is counted from now on, until the consumer has dequeued its event. */
static struct dofi_unread *place_take(struct dofi_ep *ep, const struct dofi_dto *dto)
{
	struct dofi_queue *q = dofi_dto_is(dto->kind, DOFI_DTO_RECVS) ? &ep->rq : &ep->sq;

	/* a buffer of an SRQ is counted there since the EP took it */
	if (dto->flags & DOFI_DTO_SHARED)
		return &ep->srq->given;
	dofi_unread_add(q->unread);
	dofi_queue_narrow(q);
	return q->unread;
}

/* The event goes through the queue: no thread polls for it now, or others are before it. */
static __attribute__((noinline)) void enqueue(struct dofi_evd *evd, struct dofi_ep *ep,
					      const struct dofi_dto *dto)
{
	struct dofi_event event;

	event.unread = place_take(ep, dto);
	event.life = dofi_unread_life(event.unread);
	event.number = fill_event(&event.data, ep, dto);
	event.immed = dto->immed;
	if (dofi_evd_push(evd, &event, notifies(ep, dto)))
		dofi_event_read(&event);
}

/* A buffer of the SRQ has ended, and no event takes its place. */
static __attribute__((noinline)) void release_buffer(struct dofi_ep *ep)
{
	dofi_unread_done(&ep->srq->given, dofi_unread_life(&ep->srq->given));
}

static DOFI_INTO_CALLER bool has_event(const struct dofi_evd *evd, const struct dofi_dto *dto)
{
	return evd && (!(dto->flags & DAT_COMPLETION_SUPPRESS_FLAG) || dto->status != DAT_DTO_SUCCESS);
}

static DOFI_INTO_CALLER void deliver(struct dofi_ep *ep, struct dofi_evd *evd,
				     const struct dofi_dto *dto, struct dofi_sink *sink)
{
	const bool reported = __builtin_expect(has_event(evd, dto), 1);
	DAT_EVENT *event = reported ? dofi_sink_take(sink, evd) : NULL;

	if (reported && !event) {
		enqueue(evd, ep, dto);
		return;
	}
	if (__builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		release_buffer(ep);
	if (!reported)
		return;
	event->event_number = fill_event(&event->event_data, ep, dto);
	event->evd_handle = evd;
	if (__builtin_expect(dto->kind >= DOFI_DTO_BIND, 0))
		dofi_event_extend(event, dto->immed);
}

static DOFI_INTO_CALLER void queue_retire(struct dofi_ep *ep, struct dofi_queue *q,
					  struct dofi_evd *evd, struct dofi_sink *sink)
{
	while (q->head != q->next) {
		struct dofi_dto *dto = dofi_queue_at(q, q->head);

		if (!dto->done)
			return;
		deliver(ep, evd, dto, sink);
		q->head++;
	}
}

static __attribute__((noinline)) void requests_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	queue_retire(ep, &ep->sq, ep->request_evd, sink);
}

static __attribute__((noinline)) void receives_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	queue_retire(ep, &ep->rq, ep->recv_evd, sink);
}

/* A message may arrive before the event that tells of the connection: it waits. */
static bool announced(const struct dofi_ep *ep)
{
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING;
}

void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	requests_retire(ep, sink);
	if (announced(ep))
		receives_retire(ep, sink);
	if (__builtin_expect(ep->graceful, 0))
		dofi_ep_request_done(ep);
}

static void queue_flush(struct dofi_ep *ep, struct dofi_queue *q)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		if (dto->done)
			continue;
		/* before its event: what it would have granted has ended */
		if (dto->kind == DOFI_DTO_BIND)
			dofi_bind_drop(dto->bind);
		dto->done = true;
		dto->at_fabric = false;
		dto->status = DAT_DTO_ERR_FLUSHED;
	}
	q->next = q->tail;
	if (q == &ep->sq)
		requests_retire(ep, NULL);
	else
		receives_retire(ep, NULL);
}

void dofi_dto_flush(struct dofi_ep *ep)
{
	queue_flush(ep, &ep->sq);
	queue_flush(ep, &ep->rq);
	if (ep->srq) {
		dofi_srq_leave(ep->srq, &ep->srq_user);
		if (ep->obj.ia->xport->srq_clear)
			ep->obj.ia->xport->srq_clear(ep);
	}
	ep->reads = ep->atomics = 0;
}

static inline bool waiting(const struct dofi_ep *ep)
{
	return ep->sq.next != ep->sq.tail || ep->rq.next != ep->rq.tail || ep->owes;
}

static DOFI_INTO_CALLER void end(struct dofi_ep *ep, struct dofi_dto *dto, int err,
				 struct dofi_sink *sink)
{
	finish(ep, dto, err);
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS)) {
		if (announced(ep))
			receives_retire(ep, sink);
	} else {
		queue_retire(ep, &ep->sq, ep->request_evd, sink);
		if (__builtin_expect(ep->graceful, 0))
			dofi_ep_request_done(ep);
	}
	/* a message from an SRQ's buffer made room for the next */
	if (waiting(ep) || __builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		dofi_dto_pump(ep);
}

void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
{
	end(ep, dto, err, sink);
}

void dofi_arrived_read(struct dofi_arrived *a, uint64_t beside, uint64_t length)
{
	const uint32_t written = dofi_beside_length(beside);

	*a = (struct dofi_arrived){
		.solicited = dofi_beside_solicited(beside), .immed = (uint32_t)beside,
		.length = length, .err = written ? FI_EIO : 0,
	};
	switch (dofi_beside_kind(beside)) {
	case DOFI_BESIDE_PLAIN:
		a->kind = DOFI_DTO_RECV;
		if (!a->solicited || a->immed)
			a->err = FI_EIO;
		break;
	case DOFI_BESIDE_INVALIDATE:
		a->kind = DOFI_DTO_RECV_INVALIDATE;
		break;
	case DOFI_BESIDE_IMMED:
		a->kind = DOFI_DTO_RECV_IMMED;
		break;
	case DOFI_BESIDE_WRITE_IMMED:
		a->kind = DOFI_DTO_RECV_WRITE_IMMED;
		a->err = length ? FI_EIO : 0;
		/* uDAPL 1.2 has no such event: its receive got nothing */
		a->length = DAT_VERSION_MAJOR >= 2 ? written : 0;
		break;
	}
}

/*
 * A receive of which more is known: 0, or a positive error. A grant has ended before the
 * completion tells of it, and before a receive behind this one completes.
 */
static __attribute__((noinline)) int receive_more(struct dofi_ep *ep, struct dofi_dto *dto,
						  const struct dofi_arrived *arrived)
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

	if (dto->beside) {
		dofi_arrived_read(&arrived, dto->beside, dto->length);
		err = receive_more(ep, dto, &arrived);
	}
	if (!err)
		dofi_tally_add(&ep->receipts[dto->kind], dto->length);
	return err;
}

/* How a receive ended; a positive error if it did not end well. */
static inline int receive(struct dofi_ep *ep, struct dofi_dto *dto,
			  const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived)
{
	int err;

	if (__builtin_expect(entry->len && !dto->n_iov && !dofi_dto_is_plain(dto), 0))
		return FI_ETRUNC;	/* a transport may give a byte of room */
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

/* A part of the operation is done; others are to come, or to be submitted. */
static __attribute__((noinline)) void part_done(struct dofi_ep *ep, struct dofi_dto *dto)
{
	dto->parts--;
	dofi_dto_pump(ep);
}

/* Of hardware: what it says of a connection comes another way, and may be read later. */
static bool connected_yet(const struct dofi_ep *ep)
{
	return announced(ep) || !ep->obj.ia->fabric.quirk->late_receives_cost;
}

/* A receive that was recalled, and that no message has met. */
static bool is_given_back(const struct dofi_dto *dto, int err)
{
	return err == FI_ECANCELED && dofi_dto_is(dto->kind, DOFI_DTO_RECVS) &&
	       dto->marks & DOFI_DTO_RECALLED;
}

/*
 * A receive is flushed when an attempt fails, which is about to be told (dofi_dto_recall()). A
 * failure of its own came with a message, and so is behind the connection.
 */
static __attribute__((noinline)) void fail_early(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	const DAT_DTO_COMPLETION_STATUS status = failure(dto, err);

	if (status == DAT_DTO_ERR_FLUSHED)
		return;
	dto->done = true;
	dto->at_fabric = false;
	dto->status = status;
	ep->failed_early = true;
}

static inline void complete(const struct fi_cq_data_entry *entry, int err,
			    const struct dofi_arrived *arrived, struct dofi_sink *sink)
{
	struct dofi_dto *dto = dofi_dto_of(entry->op_context);
	struct dofi_ep *ep;

	if (!dto)
		return;
	ep = dto->ep;
	dofi_ep_lock(ep);
	if (dto->at_fabric && dofi_dto_context(dto) == entry->op_context) {
		if (__builtin_expect(err && is_given_back(dto, err), 0)) {
			dto->at_fabric = false;
			goto unlock;
		}
		if (__builtin_expect(err && !connected_yet(ep), 0)) {
			fail_early(ep, dto, err);
			goto unlock;
		}
		if (__builtin_expect(dto->kind == DOFI_DTO_FRAME, 0)) {
			ep->xport->srq_arrived(ep, dto, entry->len, err, sink);
			goto unlock;
		}
		if (dto->kind == DOFI_DTO_RECV && !err)
			err = receive(ep, dto, entry, arrived);
		if (__builtin_expect(dto->parts && !err, 0))
			part_done(ep, dto);
		else
			end(ep, dto, err, sink);
	}
unlock:
	dofi_ep_unlock(ep);
}

void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	complete(entry, err, NULL, sink);
}

void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived,
			  struct dofi_sink *sink)
{
	complete(entry, 0, arrived, sink);
}
