/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: frames that arrive. */

#include "xport/rdm/send.h"

#include "base/iov.h"
#include "base/layout.h"
#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/segments.h"
#include "xport/rdm/rma.h"
#include "xport/rdm/rndv.h"
#include "xport/rdm/transmit.h"

#include <rdma/fi_errno.h>
#include <string.h>

/* Messages */

struct dofi_dto *rdm_receive_find(struct dofi_ep *ep, uint32_t *matched)
{
	struct dofi_dto *dto;

	dofi_mutex_assert_held(&ep->lock);
	if (!ep->rq.open)
		return NULL;
	if (ep->srq)
		return dofi_srq_receive(ep);
	if (*matched == ep->rq.next)
		return NULL;
	dto = dofi_queue_at(&ep->rq, (*matched)++);
	dofi_receive_unplain(dto);
	return dto;
}

/* Makes @dto the receive of the message; returns a positive error if the message does not fit. */
static int receive_fit(struct dofi_dto *dto, const struct rdm_frame *f)
{
	if (f->length > (dto->flags & DOFI_DTO_EXCLUDED ? 0 : dto->length)) {
		dofi_ep_log(dto->ep, DOFI_WARN, DOFI_EP,
			    "a message of %llu bytes for a receive of %llu",
			    (unsigned long long)f->length, (unsigned long long)dto->length);
		return FI_ETRUNC;
	}
	dofi_dto_trim(dto, f->length);
	dto->cq_data = f->cq_data;
	dto->flags |= DOFI_DTO_MATCHED;
	return 0;
}

static bool take_message(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_dto *dto = rdm_receive_find(conn->ep, &conn->matched);
	const struct rdm_frame *f = &task->frame;
	int err;

	if (!dto)
		return false;
	err = receive_fit(dto, f);
	if (!err)
		dofi_iov_scatter(dto->iov, dto->n_iov, 0, f->data, f->data_size);
	if (!err && f->kind == RDM_FRAME_FIRST) {
		dto->got = f->data_size;
		conn->filling = true;
		conn->filled = dto->number;
		return true;
	}
	if (!err)
		err = dofi_dto_received(conn->ep, dto);
	dofi_dto_end(conn->ep, dto, err, sink);
	return true;
}

static bool take_rts(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_ep *ep = conn->ep;
	struct dofi_dto *dto;
	int err;

	if (task->matched)
		return rdm_rndv_take(conn, task, dofi_queue_at(&ep->rq, task->receive), sink);
	dto = rdm_receive_find(conn->ep, &conn->matched);
	if (!dto)
		return false;
	task->matched = true;
	task->receive = dto->number;
	err = receive_fit(dto, &task->frame);
	if (!err)
		return rdm_rndv_take(conn, task, dto, sink);
	/* the sender gets the reason as well, if the fabric takes the ACK */
	task->result = RDM_TOO_LONG;
	rdm_ack(conn, task);
	dofi_dto_end(conn->ep, dto, err, sink);
	return true;
}

/* Credited frames, in order */

/*
 * Whether the connection was reported to the program, and not its end. Messages may cause the
 * program to end the connection, so they are pending before that.
 */
static bool is_up(const struct rdm_conn *conn)
{
	return conn->ep->sq.open;
}

/* Returns false if the frame is to be processed again later. */
static bool process(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	if (conn->refused)
		return true;
	if (conn->filling != (task->frame.kind == RDM_FRAME_MORE)) {
		rdm_peer_error(conn, conn->filling ? "left a message incomplete" :
			       "continued no message");
		return true;
	}
	switch (task->frame.kind) {
	case RDM_FRAME_SEND:
	case RDM_FRAME_FIRST:
		return take_message(conn, task, sink);
	case RDM_FRAME_MORE:
		rdm_eager_take(conn, &task->frame, sink);
		return true;
	case RDM_FRAME_RTS:
		return take_rts(conn, task, sink);
	default:
		/* a write with immediate data turns into a message of no bytes */
		return rdm_target_execute(conn, task) && (task->frame.kind != RDM_FRAME_SEND ||
						     take_message(conn, task, sink));
	}
}

/* Call after a change of n_pending: ep->resume_pending is true while frames are pending. */
static void resume_pending_update(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock)
{
	const bool pending = conn->n_pending;

	if (conn->ep->resume_pending == pending)
		return;
	conn->ep->resume_pending = pending;
	dofi_fast_renew(conn->ep);
}

/* Reports the end once the peer has left and all its frames have been processed. */
static void report_end_if_drained(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock)
{
	if (conn->left && conn->seen == conn->last_frame && !conn->n_pending)
		rdm_conn_todo(conn, RDM_OVER);
}

bool rdm_ack_pending(const struct rdm_conn *conn)
{
	const struct rdm_pending *w = STAILQ_FIRST(&conn->pending);

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!w || !w->task.carried_out)
		return false;
	/* the message of an RTS without segments has not arrived, and is no longer requested */
	return w->task.frame.kind != RDM_FRAME_RTS || w->task.frame.n_segments;
}

void rdm_process_pending(struct rdm_conn *conn)
{
	struct rdm_pending *w;

	dofi_mutex_assert_held(&conn->ep->lock);
	/* processing a frame may lead here again */
	if (conn->processing)
		return;
	conn->processing = true;
	while ((is_up(conn) || rdm_ack_pending(conn)) && (w = STAILQ_FIRST(&conn->pending)) &&
	       process(conn, &w->task, NULL)) {
		STAILQ_REMOVE_HEAD(&conn->pending, link);
		conn->n_pending--;
		conn->credits_owed++;
		rdm_pending_put(conn->rpz, w);
	}
	conn->processing = false;
	resume_pending_update(conn);
	rdm_give_credits(conn);
	report_end_if_drained(conn);
}

/* Credited frames are processed in the order of their arrival, or are pending. */
static void take_credited(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	const size_t size = task->frame.data_size;
	struct rdm_pending *w;
	bool done = true;

	if (conn->n_pending + conn->credits_owed >= conn->window) {
		rdm_peer_error(conn, "exceeded its credits");
		return;
	}
	if (task->frame.n_segments && !conn->pid) {
		rdm_peer_error(conn, "requested a read of its memory, which was not agreed");
		return;
	}
	if (task->frame.kind == RDM_FRAME_DATA) {
		/* the message was matched when its RTS was processed */
		rdm_rndv_data(conn, &task->frame, sink);
	} else {
		conn->processing = true;
		done = is_up(conn) && !conn->n_pending && process(conn, task, sink);
		conn->processing = false;
	}
	w = done || conn->ep->closing ? NULL : rdm_pending_get(conn->rpz, size);
	if (w) {
		w->task = *task;
		if (size)
			memcpy(w->data, task->frame.data, size);
		w->task.frame.data = w->data;
		STAILQ_INSERT_TAIL(&conn->pending, w, link);
		conn->n_pending++;
		resume_pending_update(conn);
	} else if (done) {
		conn->credits_owed++;
	} else if (!conn->ep->closing) {
		rdm_peer_error(conn, "sent a frame that cannot be stored for want of memory");
	}
	rdm_give_credits(conn);
}

/* ACKs, CTSs and HELLOs */

/* The request @number that the peer may answer, perhaps the next one, sent in part; or NULL. */
static struct dofi_dto *request_find(struct rdm_conn *conn, uint32_t number)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_queue *q = &conn->ep->sq;
	struct dofi_dto *dto = dofi_queue_at(q, number);
	const bool begun = number == q->next && number != q->tail && dto->step == DOFI_STEP_ASKED;

	return (dofi_queue_in_flight(q, number) || begun) && !dto->done ? dto : NULL;
}

static const int errors[RDM_RESULTS] = {
	[RDM_OK] = 0,
	[RDM_NO_ACCESS] = FI_EACCES,
	[RDM_TOO_LONG] = FI_ETRUNC,
	[RDM_NO_MEMORY] = FI_EIO,
};

/*
 * The peer may end by an ACK the operations that it carries out, and a message that it reads or
 * refuses; not receives that the fabric still has, and may write to.
 */
static void take_ack(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_dto *dto = request_find(conn, f->number);
	const bool atomic = dto && dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS);
	const uint64_t old = f->value[0];
	int err = errors[f->key];

	if (!dto || !(atomic || dto->step == DOFI_STEP_ASKED || dto->step == DOFI_STEP_RTS)) {
		rdm_peer_error(conn, "sent an ACK without a request");
		return;
	}
	if (!err && dto->kind == DOFI_DTO_READ) {
		err = rdm_take_data(conn, dto, f);
		if (!err && f->data_size && dto->rma.got < dto->length)
			return;
	}
	if (atomic) {
		if (!err)
			dofi_iov_scatter(dto->iov, dto->n_iov, 0, &old, sizeof(old));
		conn->ep->atomics--;
	} else if (dto->step == DOFI_STEP_ASKED) {
		conn->n_asked--;
	}
	dofi_dto_end(conn->ep, dto, err, sink);
}

static void take_cts(struct rdm_conn *conn, const struct rdm_frame *f) DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_dto *dto = request_find(conn, f->number);

	if (!dto || dto->step != DOFI_STEP_RTS)
		rdm_peer_error(conn, "sent a CTS without an RTS");
	else
		rdm_rndv_cts(conn, dto, f->value[0]);
}

void rdm_go_on(struct rdm_conn *conn)
{
	struct rdm_frame hello = { .kind = RDM_FRAME_HELLO, .value = { conn->pid != 0 } };
	struct rdm_frame back = { .kind = RDM_FRAME_HELLO_BACK, .value = { conn->pid != 0 } };

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!conn->ep->fid)
		return;
	if (conn->hello_due)
		conn->hello_due = rdm_transmit(conn, &hello, NULL, 0, 0, 0) == -FI_EAGAIN;
	if (conn->hello_back_due && rdm_transmit(conn, &back, NULL, 0, 0, 0) != -FI_EAGAIN) {
		conn->hello_back_due = false;
		rdm_conn_todo(conn, RDM_ESTABLISHED);
	}
	rdm_rndv_go_on(conn);
	rdm_process_pending(conn);
	dofi_dto_submit_pending(conn->ep);
}

void rdm_arrived(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
{
	const struct rdm_frame *f = &task->frame;
	const bool waited = !conn->credits;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (conn->ep->closing || !conn->ep->fid)
		return;
	if (f->sequence != conn->seen + 1) {
		rdm_peer_error(conn, "left out a frame");
		return;
	}
	conn->seen++;
	if (f->credits > conn->max_credits - conn->credits) {
		rdm_peer_error(conn, "returned more credits than it received");
		return;
	}
	conn->credits += f->credits;
	if (1u << f->kind & RDM_FRAME_CREDITED) {
		take_credited(conn, task, sink);
	} else if (f->kind == RDM_FRAME_ACK) {
		take_ack(conn, f, sink);
	} else if (f->kind == RDM_FRAME_CTS) {
		take_cts(conn, f);
	} else if (f->kind == RDM_FRAME_HELLO || f->kind == RDM_FRAME_HELLO_BACK) {
		conn->peer_reads = conn->same_host && f->value[0];
		if (f->kind == RDM_FRAME_HELLO_BACK) {
			rdm_conn_todo(conn, RDM_ESTABLISHED);
		} else if (conn->ep->state == DAT_EP_STATE_COMPLETION_PENDING) {
			conn->hello_back_due = true;
			rdm_go_on(conn);
		}
	}
	if (waited && conn->credits)
		rdm_go_on(conn);
	report_end_if_drained(conn);
}

/* Frames as they come from the fabric */

static void stray(struct rdm_pz *rpz, const char *what)
{
	if (!atomic_fetch_add_explicit(&rpz->ria->strays, 1, memory_order_relaxed))
		dofi_obj_log(&rpz->pz->obj, DOFI_WARN, DOFI_EP, "received %s; reported once", what);
}

static void task_begin(struct rdm_task *task)
{
	rdm_frame_begin(&task->frame, 0);
	task->matched = task->carried_out = false;
	task->result = RDM_OK;
	task->old = 0;
}

/* Takes a frame for the connection with its id. Returns false if it is malformed. CQ lock held. */
static bool frame_arrived(struct rdm_pz *rpz, const unsigned char *frame, size_t len,
			  struct dofi_sink *sink)
{
	struct rdm_conn *conn;
	struct rdm_task task;

	task_begin(&task);
	if (rdm_frame_unpack(frame, len, &task.frame))
		return false;
	conn = rdm_conn_find(rpz, task.frame.conn);
	if (!conn) {
		stray(rpz, "a frame for no connection");
		return true;
	}
	dofi_mutex_lock(&conn->ep->lock);
	rdm_arrived(conn, &task, sink);
	dofi_mutex_unlock(&conn->ep->lock);
	return true;
}

void rdm_buffer_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry,
			int err, struct dofi_sink *sink)
{
	struct rdm_pz *rpz = DOFI_CONTAINER_OF(buffer->rdm, struct rdm_pz, rdm);

	if (!err && !frame_arrived(rpz, buffer->data, entry->len, sink))
		stray(rpz, "an invalid frame");
	if (err && err != FI_ECANCELED)
		dofi_obj_log(&rpz->pz->obj, DOFI_WARN, DOFI_EP, "a frame was lost: %s",
			     fi_strerror(err));
	dofi_rdm_repost(buffer);
}

/* A faulty peer: its ring is not read any more, and all connections with it end. */
static void broken(struct rdm_pz *rpz, struct dofi_inbox *inbox)
{
	struct rdm_conn *conn;
	uint32_t i;

	dofi_inbox_shut(inbox);
	stray(rpz, "a malformed record of a ring");
	for (i = 0; i < rpz->n_conns; i++) {
		conn = rpz->conn[i];
		if (!conn)
			continue;
		dofi_mutex_lock(&conn->ep->lock);
		if (conn->out && conn->out->peer == dofi_inbox_peer(inbox))
			rdm_peer_error(conn, "broke the ring");
		dofi_mutex_unlock(&conn->ep->lock);
	}
}

void rdm_rings_arrived(void *owner, struct dofi_inbox *inbox, const unsigned char *frame,
		       size_t len, struct dofi_sink *sink)
{
	struct rdm_pz *rpz = owner;

	/* a late datagram must not end the connections that share the ring */
	if (frame && len && *frame < RDM_ID_FIRST) {
		if (rpz->datagrams)
			rpz->datagrams->arrived(rpz->datagrams_owner, inbox, frame, len, sink);
		else
			stray(rpz, "a datagram in a PZ without datagram endpoints");
	} else if (!frame || !frame_arrived(rpz, frame, len, sink)) {
		broken(rpz, inbox);
	}
}
