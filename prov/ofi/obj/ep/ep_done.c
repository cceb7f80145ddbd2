/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How operations end: their status, their event, and the flush. */

#include "obj/ep/ep_dto.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/mem/rmr.h"

#include <errno.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdio.h>

DAT_DTO_COMPLETION_STATUS dofi_dto_failure(const struct dofi_dto *dto, int err)
{
	/* a receive that failed has kept its kind, or receive_name() has changed it */
	const bool receive = dofi_dto_is(dto->kind, 1u << DOFI_DTO_RECV | 1u << DOFI_DTO_RECV_UD |
					 1u << DOFI_DTO_RECV_UD_IMMED);
	const bool rdma = dofi_dto_is(dto->kind, DOFI_DTO_RDMA);
	/* a message did not fit in a receive that lost its segments: DOFI_DTO_EXCLUDED */
	const DAT_DTO_COMPLETION_STATUS too_long = dto->flags & DOFI_DTO_EXCLUDED ?
		DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_LOCAL_LENGTH;

	if (err && dto->kind == DOFI_DTO_BIND)
		return DAT_RMR_OPERATION_FAILED;
	switch (err) {
	case 0:
		return DAT_DTO_SUCCESS;
	case FI_ECANCELED:	/* fabrics report it when the connection goes away */
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
		return receive ? too_long : DAT_DTO_ERR_REMOTE_RESPONDER;
	case EMSGSIZE:
		return too_long;
	case EBADMSG:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case EBADFD:		/* soft-RoCE, of a receive that is too short */
		return receive ? too_long : DAT_DTO_ERR_LOCAL_EP;
	case EFAULT:		/* also from the provider: an RMR that is not bound */
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case EINVAL:		/* EFA, of an address or a key that the peer refused */
		return rdma ? DAT_DTO_ERR_REMOTE_ACCESS : DAT_DTO_ERR_TRANSPORT;
	/* of a receive: the write with data that was to end it was refused */
	case FI_EKEYREJECTED:
		if (dto->kind == DOFI_DTO_RECV)
			return DAT_DTO_ERR_FLUSHED;
		/* fall through */
	case FI_EACCES:
	case FI_EPERM:
	case FI_ENOKEY:
		return rdma ? DAT_DTO_ERR_REMOTE_ACCESS : DAT_DTO_ERR_LOCAL_PROTECTION;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* A receive of a datagram EP completes with the extension's event even if no datagram came. */
static void receive_name(const struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (ep->datagrams && dto->kind == DOFI_DTO_RECV) {
		dto->kind = DOFI_DTO_RECV_UD;
		dto->immed = 0;
	}
}

static const char *const kind_name[DOFI_DTO_KINDS] = {
	[DOFI_DTO_SEND] = "send",
	[DOFI_DTO_WRITE] = "RDMA write",
	[DOFI_DTO_READ] = "RDMA read",
	[DOFI_DTO_RECV] = "receive",
	[DOFI_DTO_BIND] = "RMR bind",
	[DOFI_DTO_READ_TO_RMR] = "RDMA read to an RMR",
	[DOFI_DTO_PREAMBLE] = "receive of a preamble",
	[DOFI_DTO_PROBE] = "probe",
	[DOFI_DTO_SEND_INVALIDATE] = "send with invalidate",
	[DOFI_DTO_SEND_IMMED] = "send with immediate data",
	[DOFI_DTO_WRITE_IMMED] = "RDMA write with immediate data",
	[DOFI_DTO_FETCH_ADD] = "fetch-and-add",
	[DOFI_DTO_CMP_SWAP] = "compare-and-swap",
	[DOFI_DTO_SEND_UD] = "datagram",
	[DOFI_DTO_SEND_UD_IMMED] = "datagram with immediate data",
	[DOFI_DTO_RECV_INVALIDATE] = "receive",
	[DOFI_DTO_RECV_IMMED] = "receive",
	[DOFI_DTO_RECV_WRITE_IMMED] = "receive",
	[DOFI_DTO_RECV_UD] = "receive",
	[DOFI_DTO_RECV_UD_IMMED] = "receive",
};

static void describe(const struct dofi_dto *dto, char text[DOFI_DTO_TEXT])
{
	const bool plain = dofi_dto_is_plain(dto);
	int n = snprintf(text, DOFI_DTO_TEXT, "%s of %llu bytes, cookie %#llx",
			 kind_name[dto->kind], (unsigned long long)dto->length,
			 (unsigned long long)dto->cookie);

	if (dofi_dto_is(dto->kind, DOFI_DTO_RDMA))
		snprintf(text + n, DOFI_DTO_TEXT - (size_t)n, ", to address %#llx, context %#x",
			 (unsigned long long)(plain ? dto->plain_addr : dto->remote_addr),
			 plain ? dto->plain_key : dto->remote_key);
}

/* Describes @dto, which the loss of the connection ended, if it is the first such request. */
static void lost_request(struct dofi_ep *ep, const struct dofi_dto *dto) DOFI_NEEDS(ep->lock)
{
	if (ep->closing || ep->lost_request[0] || dofi_dto_is(dto->kind, DOFI_DTO_RECVS))
		return;
	ep->lost_rdma = dofi_dto_is(dto->kind, DOFI_DTO_RDMA);
	describe(dto, ep->lost_request);
}

void dofi_dto_explain_end(struct dofi_ep *ep, bool broken)
{
	const bool refused = ep->lost_rdma && ep->obj.ia->fabric.quirk->ends_silently;
	char peer[INET6_ADDRSTRLEN];

	dofi_mutex_assert_held(&ep->lock);
	if (broken && !ep->explained) {
		if (!ep->lost_request[0] && !dofi_queue_empty(&ep->sq))
			describe(dofi_queue_oldest(&ep->sq), ep->lost_request);
		dofi_ep_log(ep, DOFI_WARN, DOFI_EP, "the connection with %s broke; in flight: %s%s",
			    dofi_address_text(&ep->request.peer, peer),
			    ep->lost_request[0] ? ep->lost_request : "no request",
			    !refused ? "" :
			    ": the peer may have refused its context, range or privilege");
	}
	ep->explained = ep->lost_rdma = false;
	ep->lost_request[0] = '\0';
}

__attribute__((noinline)) void dofi_dto_fail(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	char text[DOFI_DTO_TEXT];
	enum dofi_log_level level;
	bool flushed;

	dofi_mutex_assert_held(&ep->lock);
	receive_name(ep, dto);
	dto->status = dofi_dto_failure(dto, err);
	/* the error of an operation that the fabric gave up when the connection ended */
	if (dto->status == DAT_DTO_ERR_TRANSPORT && ep->closing)
		dto->status = DAT_DTO_ERR_FLUSHED;
	flushed = dto->status == DAT_DTO_ERR_FLUSHED;
	/* a peer may send any number of datagrams that are too long */
	level = ep->datagrams || flushed ? DOFI_DEBUG : DOFI_WARN;
	if (dofi_log_on(level, DOFI_EP)) {
		describe(dto, text);
		dofi_ep_log(ep, level, DOFI_EP, "%s: %s", text, fi_strerror(err));
	}
	/* FI_ECANCELED comes after a read to the end, other errors when a send failed */
	if (flushed) {
		lost_request(ep, dto);
		dofi_ep_lost(ep, err != FI_ECANCELED);
	} else {
		ep->explained = true;
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	}
}

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
	if (dto->kind == DOFI_DTO_BIND) {
		data->rmr_completion_event_data = (DAT_RMR_BIND_COMPLETION_EVENT_DATA){
			.rmr_handle = dto->rmr, .user_cookie.as_64 = dto->cookie,
			.status = (DAT_RMR_BIND_COMPLETION_STATUS)dto->status,
		};
		return DAT_RMR_BIND_COMPLETION_EVENT;
	}
	fill_dto_event(&data->dto_completion_event_data, ep, dto);
#if DAT_VERSION_MAJOR >= 2
	if (dto->kind == DOFI_DTO_RECV_INVALIDATE)
		data->dto_completion_event_data.rmr_context = dto->immed;
	if (dofi_dto_is(dto->kind, DOFI_DTO_EXTENDED))
		return DAT_IB_DTO_EVENT;
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

/* A buffer of the SRQ is done, without an event. */
static __attribute__((noinline)) void release_buffer(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_unread_done(&ep->srq->given, dofi_unread_generation(&ep->srq->given));
}

/*
 * Queues the event: no thread polls for it now, or other events are before it. It counts as unread
 * until the consumer dequeues it; a buffer of an SRQ has counted since the EP took it.
 */
static __attribute__((noinline)) void enqueue(struct dofi_evd *evd, struct dofi_ep *ep,
					      const struct dofi_dto *dto) DOFI_NEEDS(ep->lock)
{
	struct dofi_queue *q = dofi_dto_is(dto->kind, DOFI_DTO_RECVS) ? &ep->rq : &ep->sq;
	const bool shared = dto->flags & DOFI_DTO_SHARED;
	struct dofi_event *event;

	dofi_mutex_lock(&evd->lock);
	event = dofi_evd_reserve(evd);
	if (event) {
		if (!shared) {
			dofi_unread_add(q->unread);
			dofi_queue_narrow(q);
		}
		event->unread = shared ? &ep->srq->given : q->unread;
		event->generation = dofi_unread_generation(event->unread);
		event->number = fill_event(&event->data, ep, dto);
		event->immed = dto->immed;
		dofi_count(&evd->count_of.completion);
		dofi_evd_append(evd, notifies(ep, dto));
	}
	dofi_mutex_unlock(&evd->lock);
	if (__builtin_expect(!event, 0)) {
		if (shared)
			release_buffer(ep);
		dofi_evd_lost(evd);
	}
	dofi_cq_delivered(ep->cq);
}

static DOFI_INTO_CALLER void deliver(struct dofi_ep *ep, struct dofi_evd *evd,
				     const struct dofi_dto *dto, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock)
{
	const bool reported = __builtin_expect(
		evd && (!(dto->flags & DAT_COMPLETION_SUPPRESS_FLAG) ||
			dto->status != DAT_DTO_SUCCESS), 1);
	DAT_EVENT *event;

	if (reported && !dofi_sink_wants(sink, evd)) {
		enqueue(evd, ep, dto);
		return;
	}
	if (__builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		release_buffer(ep);
	if (!reported)
		return;
	event = dofi_sink_take(sink);
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
	dofi_mutex_assert_held(&ep->lock);
	queue_retire(ep, &ep->sq, ep->request_evd, sink);
}

__attribute__((noinline)) void dofi_receives_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	dofi_mutex_assert_held(&ep->lock);
	queue_retire(ep, &ep->rq, ep->recv_evd, sink);
}

void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_requests_retire(ep, sink);
	if (dofi_ep_may_deliver(ep))
		dofi_receives_retire(ep, sink);
	if (__builtin_expect(ep->graceful, 0))
		dofi_ep_request_done(ep);
}

/* Whether no operation behind the oldest one of @q has ended before it. */
static DOFI_INTO_CALLER bool next_is_pending(const struct dofi_queue *q)
{
	return q->head + 1 == q->tail || !dofi_queue_at(q, q->head + 1)->done;
}

/*
 * Writes the event of @dto for the thread that polls for it. Returns false without side effects
 * unless the operation ended well and in order, with nothing else to do: see ep->fast.
 */
static DOFI_INTO_CALLER bool end_straight(struct dofi_ep *ep, struct dofi_dto *dto,
					  const struct fi_cq_data_entry *entry,
					  struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	const bool receive = dto->kind == DOFI_DTO_RECV;
	struct dofi_queue *q = receive ? &ep->rq : &ep->sq;
	struct dofi_evd *evd = receive ? ep->recv_evd : ep->request_evd;
	uint64_t length = dto->length;
	DAT_EVENT *event;

	/* the oldest operation is at the fabric, as none waits: fast.send */
	if (__builtin_expect(dofi_dto_context(dto) != entry->op_context || !ep->fast.send ||
			     dto->kind > DOFI_DTO_RECV || dto->parts ||
			     (dto->kind == DOFI_DTO_WRITE && ep->reads) ||
			     dto->flags & (DAT_COMPLETION_SUPPRESS_FLAG | DOFI_DTO_SHARED |
					   DOFI_DTO_MATCHED) ||
			     dto->number != q->head || !next_is_pending(q), 0))
		return false;
	if (receive) {
		length = entry->len;
		/* the receive has no memory, or lost it: the message is too long */
		if (length && !dto->n_iov && !dofi_dto_is_plain(dto))
			return false;
	}
	if (__builtin_expect(!dofi_sink_wants(sink, evd), 0))
		return false;
	event = dofi_sink_take(sink);
	if (receive)
		dofi_tally_add(&ep->receipts[DOFI_DTO_RECV], length);
	else if (dto->kind == DOFI_DTO_READ)
		ep->reads--;
	dofi_queue_retire(q);
	dto->at_fabric = false;
	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd;
	dofi_dto_event(&event->event_data.dto_completion_event_data, ep, dto, dto->kind,
		       DAT_DTO_SUCCESS, length);
	return true;
}

#if DAT_VERSION_MAJOR >= 2
_Static_assert((int)DOFI_DTO_SEND == DAT_DTO_SEND && (int)DOFI_DTO_WRITE == DAT_DTO_RDMA_WRITE &&
		       (int)DOFI_DTO_READ == DAT_DTO_RDMA_READ &&
		       (int)DOFI_DTO_RECV == DAT_DTO_RECEIVE,
	       "plain operations have DAT's numbers: also for fast.c");
#endif

void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
	DOFI_UNCHECKED_LOCKS
{
	struct dofi_dto *dto = dofi_dto_of(entry->op_context);
	struct dofi_ep *ep;
	bool ended;

	if (!dto)
		return;
	ep = dto->ep;
	/* continued by a tail call, so that the usual case saves few registers */
	if (__builtin_expect(sink && sink->evd && !err && dofi_mutex_try(&ep->lock), 1)) {
		ended = end_straight(ep, dto, entry, sink);
		dofi_mutex_unlock(&ep->lock);
		if (__builtin_expect(ended, 1))
			return;
	}
	dofi_dto_complete_as(entry, err, NULL, sink);
}

void dofi_dto_flush(struct dofi_ep *ep)
{
	struct dofi_queue *sq = &ep->sq, *rq = &ep->rq;
	uint32_t i;

	dofi_mutex_assert_held(&ep->lock);
	/* before the flush, so that a grant has ended when the event of its bind is read */
	for (i = sq->head; i != sq->tail; i++) {
		const struct dofi_dto *dto = dofi_queue_at(sq, i);

		if (!dto->done && dto->kind == DOFI_DTO_BIND)
			dofi_bind_drop(dto->bind);
	}
	dofi_queue_flush(sq, DAT_DTO_ERR_FLUSHED);
	dofi_requests_retire(ep, NULL);
	for (i = rq->head; ep->datagrams && i != rq->tail; i++)
		receive_name(ep, dofi_queue_at(rq, i));
	dofi_queue_flush(rq, DAT_DTO_ERR_FLUSHED);
	dofi_receives_retire(ep, NULL);
	sq->failed = rq->failed = false;
	if (ep->srq) {
		dofi_srq_leave(ep->srq, &ep->srq_user);
		if (ep->obj.ia->xport->srq)
			ep->obj.ia->xport->srq->clear(ep);
	}
	ep->reads = ep->atomics = 0;
	ep->probe.at_fabric = false;
}
