/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How operations end: their status, their event, and the flush. */

#include "obj/ep_done.h"

#include "base/log.h"
#include "obj/rmr.h"

#include <errno.h>
#include <rdma/fi_errno.h>

/* Whether @kind is that of a receive that failed: see receive_name(). */
static bool is_receive(uint8_t kind)
{
	return kind == DOFI_DTO_RECV || kind == DOFI_DTO_RECV_UD || kind == DOFI_DTO_RECV_UD_IMMED;
}

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
		return is_receive(kind) ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_ERR_REMOTE_RESPONDER;
	case EMSGSIZE:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case EBADMSG:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case EBADFD:		/* what soft-RoCE reports for a receive that is too short */
		return is_receive(kind) ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_ERR_LOCAL_EP;
	case EFAULT:		/* also from the provider: an RMR that is not bound */
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case EINVAL:		/* what EFA reports for an address or a key that the peer refused */
		return dofi_dto_is(kind, DOFI_DTO_RDMA) ? DAT_DTO_ERR_REMOTE_ACCESS :
						 DAT_DTO_ERR_TRANSPORT;
	/* of a receive: the write with data that was to end it was refused */
	case FI_EKEYREJECTED:
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

DAT_DTO_COMPLETION_STATUS dofi_dto_failure(const struct dofi_dto *dto, int err)
{
	const DAT_DTO_COMPLETION_STATUS status = status_of(err, dto->kind);

	return status == DAT_DTO_ERR_LOCAL_LENGTH && dto->flags & DOFI_DTO_BARRED ?
		DAT_DTO_ERR_LOCAL_PROTECTION : status;
}

/* A receive of a datagram EP completes with the extension's event even if no datagram came. */
static void receive_name(const struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (ep->datagrams && dto->kind == DOFI_DTO_RECV) {
		dto->kind = DOFI_DTO_RECV_UD;
		dto->immed = 0;
	}
}

/* An operation failed, and with it the connection. */
__attribute__((noinline)) void dofi_dto_fail(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	bool quiet;

	dofi_ep_assert_locked(ep);
	receive_name(ep, dto);
	dto->status = dofi_dto_failure(dto, err);
	/* the error of an operation that the fabric gave up when the connection ended */
	if (dto->status == DAT_DTO_ERR_TRANSPORT && ep->closing)
		dto->status = DAT_DTO_ERR_FLUSHED;
	/* a peer may send any number of datagrams that are too long */
	quiet = ep->datagrams || dto->status == DAT_DTO_ERR_FLUSHED;
	dofi_log(quiet ? DOFI_DEBUG : DOFI_WARN, DOFI_EP,
		 "ep %p: operation failed: %s", (void *)ep, fi_strerror(err));
	/*
	 * FI_ECANCELED comes after the fabric has read to the end, another error if it could not
	 * send
	 */
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		dofi_ep_lost(ep, err != FI_ECANCELED);
	else
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
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
	/* DAT_IB_DTOS has no name for this kind */
	[DOFI_DTO_SEND_IMMED] = DAT_DTO_SEND,
	[DOFI_DTO_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RDMA_WRITE_IMMED,
	[DOFI_DTO_FETCH_ADD] = (DAT_DTOS)DAT_IB_DTO_FETCH_ADD,
	[DOFI_DTO_CMP_SWAP] = (DAT_DTOS)DAT_IB_DTO_CMP_SWAP,
	[DOFI_DTO_RECV_INVALIDATE] = DAT_DTO_RECEIVE_WITH_INVALIDATE,
	[DOFI_DTO_RECV_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_MSG_IMMED,
	[DOFI_DTO_RECV_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_IMMED,
	[DOFI_DTO_SEND_UD] = (DAT_DTOS)DAT_IB_DTO_SEND_UD,
	[DOFI_DTO_SEND_UD_IMMED] = (DAT_DTOS)DAT_IB_DTO_SEND_UD,
	[DOFI_DTO_RECV_UD] = (DAT_DTOS)DAT_IB_DTO_RECV_UD,
	[DOFI_DTO_RECV_UD_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_UD_IMMED,
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
#if DAT_VERSION_MAJOR >= 2
	const unsigned shown = operation[dto->kind];
#else
	const unsigned shown = 0;
#endif

	dofi_dto_event(d, ep, dto, shown, (DAT_DTO_COMPLETION_STATUS)dto->status, dto->length);
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

/* Whether the completion may notify. A receive has the flag of the message's sender. */
static bool notifies(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	const bool receive = dofi_dto_is(dto->kind, DOFI_DTO_RECVS);
	const unsigned chosen = receive ? ep->attr.recv_completion_flags :
					  ep->attr.request_completion_flags;

	if (dto->status != DAT_DTO_SUCCESS)
		return true;
	if (receive && chosen == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	return !(dto->flags & chosen & DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/*
 * Counts the event of @dto as unread, and returns the count, until the consumer has dequeued the
 * event.
 */
static struct dofi_unread *count_unread(struct dofi_ep *ep, const struct dofi_dto *dto)
{
	struct dofi_queue *q = dofi_dto_is(dto->kind, DOFI_DTO_RECVS) ? &ep->rq : &ep->sq;

	/* a buffer of an SRQ counts since the EP took it */
	if (dto->flags & DOFI_DTO_SHARED)
		return &ep->srq->given;
	dofi_unread_add(q->unread);
	dofi_queue_narrow(q);
	return q->unread;
}

/* A buffer of the SRQ is done, without an event. */
static __attribute__((noinline)) void release_buffer(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_unread_done(&ep->srq->given, dofi_unread_life(&ep->srq->given));
}

/* Queues the event: no thread polls for it now, or other events are before it. */
static __attribute__((noinline)) void enqueue(struct dofi_evd *evd, struct dofi_ep *ep,
					      const struct dofi_dto *dto) DOFI_NEEDS(ep->lock)
{
	struct dofi_event *event;

	dofi_mutex_lock(&evd->lock);
	event = dofi_evd_reserve(evd);
	if (event) {
		event->unread = count_unread(ep, dto);
		event->life = dofi_unread_life(event->unread);
		event->number = fill_event(&event->data, ep, dto);
		event->immed = dto->immed;
		dofi_count(&evd->count_of.completion);
		dofi_evd_append(evd, notifies(ep, dto));
	}
	dofi_mutex_unlock(&evd->lock);
	if (__builtin_expect(!event, 0)) {
		if (dto->flags & DOFI_DTO_SHARED)
			release_buffer(ep);
		dofi_evd_lost(evd);
	}
	dofi_cq_delivered(ep->cq);
}

static DOFI_INTO_CALLER bool has_event(const struct dofi_evd *evd, const struct dofi_dto *dto)
{
	return evd &&
	       (!(dto->flags & DAT_COMPLETION_SUPPRESS_FLAG) || dto->status != DAT_DTO_SUCCESS);
}

static DOFI_INTO_CALLER void deliver(struct dofi_ep *ep, struct dofi_evd *evd,
				     const struct dofi_dto *dto, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock)
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

/*
 * The oldest operation @dto has failed, or one before it: no operation of a connection succeeds
 * behind one that has failed, although the fabric may have completed it first. A bind keeps its
 * status, as its grant may be in force. Datagrams are independent of each other.
 */
static __attribute__((noinline)) void failed_retire(const struct dofi_ep *ep, struct dofi_queue *q,
						    struct dofi_dto *dto)
{
	if (dto->status != DAT_DTO_SUCCESS)
		q->failed = !ep->datagrams;
	else if (dto->kind != DOFI_DTO_BIND)
		dto->status = DAT_DTO_ERR_FLUSHED;
}

static DOFI_INTO_CALLER void queue_retire(struct dofi_ep *ep, struct dofi_queue *q,
					  struct dofi_evd *evd, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto;

	while ((dto = dofi_queue_ended(q))) {
		if (__builtin_expect(dto->status != DAT_DTO_SUCCESS || q->failed, 0))
			failed_retire(ep, q, dto);
		deliver(ep, evd, dto, sink);
		dofi_queue_retire(q);
	}
}

__attribute__((noinline)) void dofi_requests_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	dofi_ep_assert_locked(ep);
	queue_retire(ep, &ep->sq, ep->request_evd, sink);
}

__attribute__((noinline)) void dofi_receives_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	dofi_ep_assert_locked(ep);
	queue_retire(ep, &ep->rq, ep->recv_evd, sink);
}

void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	dofi_ep_assert_locked(ep);
	dofi_requests_retire(ep, sink);
	if (dofi_ep_may_deliver(ep))
		dofi_receives_retire(ep, sink);
	if (__builtin_expect(ep->graceful, 0))
		dofi_ep_request_done(ep);
}

/* Before the flush, so that a grant has ended when the event of its bind is read. */
static void binds_drop(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	const struct dofi_queue *q = &ep->sq;
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		const struct dofi_dto *dto = dofi_queue_at(q, i);

		if (!dto->done && dto->kind == DOFI_DTO_BIND)
			dofi_bind_drop(dto->bind);
	}
}

static void receives_name(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	uint32_t i;

	for (i = ep->rq.head; ep->datagrams && i != ep->rq.tail; i++)
		receive_name(ep, dofi_queue_at(&ep->rq, i));
}

void dofi_dto_flush(struct dofi_ep *ep)
{
	dofi_ep_assert_locked(ep);
	binds_drop(ep);
	dofi_queue_flush(&ep->sq, DAT_DTO_ERR_FLUSHED);
	dofi_requests_retire(ep, NULL);
	receives_name(ep);
	dofi_queue_flush(&ep->rq, DAT_DTO_ERR_FLUSHED);
	dofi_receives_retire(ep, NULL);
	ep->sq.failed = ep->rq.failed = false;
	if (ep->srq) {
		dofi_srq_leave(ep->srq, &ep->srq_user);
		if (ep->inbox && ep->obj.ia->xport->srq_clear)
			ep->obj.ia->xport->srq_clear(ep);
	}
	ep->reads = ep->atomics = 0;
}
