/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: messages longer than a frame, at both ends. */

#include "xport/rdm/rndv.h"

#include "base/iov.h"
#include "obj/ep/ep_dto.h"
#include "xport/rdm/transmit.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/*
 * Sends a part of @dto in @f. The fabric's completion of a copy of the last part completes @dto;
 * DOFI_DONE if there is no such copy. The fabric never keeps memory of the program.
 */
static int send_part(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f,
		     size_t offset, size_t size) DOFI_NEEDS(conn->ep->lock)
{
	const bool last = offset + size == dto->length;
	int ret;

	if (last && conn->rpz->copy)
		return rdm_transmit_copy(conn, dto, f, offset, size);
	ret = rdm_transmit(conn, f, dto->iov, dto->n_iov, offset, size);
	return ret || !last ? ret : DOFI_DONE;
}

/*
 * Eager messages in several frames, which are sent before the peer has a receive for them
 *
 * The frames are injected, in a ring, or copies: the fabric keeps no memory of the program. A
 * message is done when its last frame has been handed over, or when the fabric has sent the last
 * copy. The frames of a message follow each other without other messages in between, so they need
 * not identify it.
 */

int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
{
	struct rdm_frame f;
	size_t most, left, size;
	bool first;
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (dto->step != DOFI_STEP_BEGUN)
		dto->eager.sent = 0;
	do {
		if (!conn->credits)
			return -FI_EAGAIN;
		first = dto->step != DOFI_STEP_BEGUN;
		rdm_frame_begin(&f, first ? RDM_FRAME_FIRST : RDM_FRAME_MORE);
		f.length = dto->length;
		f.cq_data = first ? cq_data : 0;
		most = conn->max_copy - rdm_frame_head(&f);
		left = dto->length - dto->eager.sent;
		size = left < most ? left : most;
		ret = send_part(conn, dto, &f, dto->eager.sent, size);
		if (ret && ret != DOFI_DONE)
			return ret;
		dto->step = DOFI_STEP_BEGUN;
		dto->eager.sent += size;
	} while (dto->eager.sent < dto->length);
	return ret;
}

/* Adds the bytes of the frame to the receive, which is done with the last ones. */
static void fill(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f,
		 struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock)
{
	dofi_iov_scatter(dto->iov, dto->n_iov, dto->got, f->data, f->data_size);
	dto->got += f->data_size;
	if (dto->got == dto->length)
		dofi_dto_end(conn->ep, dto, dofi_dto_received(conn->ep, dto), sink);
}

void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
{
	struct dofi_dto *dto = dofi_queue_at(&conn->ep->rq, conn->filled);

	dofi_mutex_assert_held(&conn->ep->lock);
	if (f->data_size > dto->length - dto->got) {
		rdm_peer_error(conn, "sent more bytes of a message than it announced");
		return;
	}
	conn->filling = f->data_size < dto->length - dto->got;
	fill(conn, dto, f, sink);
}

/* Rendezvous: the sender */

int rdm_rndv_rts(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f)
{
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	f->kind = RDM_FRAME_RTS;
	f->number = dto->number;
	f->length = dto->length;
	if (conn->peer_reads)
		rdm_name_segments(f, dto);
	ret = rdm_transmit(conn, f, NULL, 0, 0, 0);
	dto->step = ret ? DOFI_STEP_NONE : DOFI_STEP_RTS;
	return ret;
}

/* Sends @dto, or receives it, at @tag. */
static int post_tagged(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag, bool receives)
	DOFI_NEEDS(conn->ep->lock)
{
	struct rdm_op *op = rdm_op_get(conn, dto, receives);
	struct fi_msg_tagged msg = {
		.msg_iov = dto->iov, .desc = dto->desc, .iov_count = dto->n_iov,
		.addr = conn->to, .tag = tag, .context = op,
	};
	struct fid_ep *fid = conn->ep->fid;
	ssize_t ret = -FI_EAGAIN;

	if (op) {
		ret = receives ? fi_trecvmsg(fid, &msg, FI_COMPLETION) :
				 fi_tsendmsg(fid, &msg, FI_COMPLETION);
		if (ret)
			rdm_op_put(op);
	}
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

/* Sends DATA frames, where the fabric is to have no memory, or would not wake a sleeping peer. */
static int send_data(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const size_t most = conn->max_copy - RDM_FRAME_FULL;
	int ret = 0;

	while (dto->rndv.sent < dto->length) {
		const size_t left = dto->length - dto->rndv.sent, size = left < most ? left : most;
		struct rdm_frame f = {
			.kind = RDM_FRAME_DATA, .number = (uint32_t)dto->rndv.tag,
			.addr = dto->rndv.sent,
		};

		if (!conn->credits)
			return -FI_EAGAIN;
		ret = send_part(conn, dto, &f, dto->rndv.sent, size);
		if (ret && ret != DOFI_DONE)
			return ret;
		dto->rndv.sent += size;
	}
	return ret;
}

static void send_after_cts(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	int ret = rdm_fabric(conn)->target_rdma ? send_data(conn, dto) :
		post_tagged(conn, dto, dto->rndv.tag, false);

	if (ret == -FI_EAGAIN)
		return;
	dto->step = DOFI_STEP_DATA;
	conn->n_cts--;
	if (ret)
		dofi_dto_finish(conn->ep, dto, ret == DOFI_DONE ? 0 : -ret);
}

void rdm_rndv_go_on(struct rdm_conn *conn)
{
	struct dofi_queue *q = &conn->ep->sq;
	struct dofi_dto *dto;
	uint32_t i;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!conn->n_cts)
		return;
	for (i = q->head; i != q->next; i++) {
		dto = dofi_queue_at(q, i);
		if (!dto->done && dto->step == DOFI_STEP_CTS)
			send_after_cts(conn, dto);
	}
	dofi_dto_retire(conn->ep, NULL);
}

void rdm_rndv_cts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	dto->step = DOFI_STEP_CTS;
	dto->rndv.tag = tag;
	dto->rndv.sent = 0;
	conn->n_cts++;
	rdm_rndv_go_on(conn);
	/* the next request may have waited for the end of this one */
	if (dofi_queue_waits(&conn->ep->sq))
		dofi_dto_submit_queue(conn->ep, &conn->ep->sq);
}

/* Rendezvous: the receiver */

void rdm_rndv_data(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
{
	const struct dofi_queue *q = &conn->ep->rq;
	struct dofi_dto *dto = dofi_queue_at(q, f->number);

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!dofi_queue_in_flight(q, f->number) || dto->done ||
	    dto->step != DOFI_STEP_AWAITS_DATA || f->addr != dto->got ||
	    f->data_size > dto->length - dto->got)
		rdm_peer_error(conn, "sent a part of no message");
	else
		fill(conn, dto, f, sink);
}

/* The tag of @dto. Receives of one PZ have different tags while they can be matched. */
static uint64_t tag_of(const struct rdm_conn *conn, const struct dofi_dto *dto)
{
	return (uint64_t)(uint32_t)conn->id << 32 | dto->number;
}

/*
 * Sends a CTS once the receive awaits the message: DATA frames fill it, or the fabric fills and
 * completes it.
 */
static bool ask_for_message(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto,
			    struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock)
{
	struct rdm_frame f = { .kind = RDM_FRAME_CTS, .number = task->frame.number };
	int ret = 0;

	if (!task->carried_out) {
		dto->step = DOFI_STEP_NONE;
		if (rdm_fabric(conn)->target_rdma) {
			dto->step = DOFI_STEP_AWAITS_DATA;
			dto->got = 0;
		} else {
			ret = post_tagged(conn, dto, tag_of(conn, dto), true);
		}
		if (ret == -FI_EAGAIN)
			return false;
		task->carried_out = true;
		if (ret) {
			dofi_dto_end(conn->ep, dto, -ret, sink);
			return true;
		}
	}
	f.value[0] = tag_of(conn, dto);
	return rdm_transmit(conn, &f, NULL, 0, 0, 0) != -FI_EAGAIN;
}

bool rdm_rndv_take(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto,
		   struct dofi_sink *sink)
{
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!task->frame.n_segments)
		return ask_for_message(conn, task, dto, sink);
	if (!task->carried_out) {
		ret = rdm_pull(conn, dto->iov, dto->n_iov, &task->frame);
		task->carried_out = true;
		task->result = ret ? RDM_NO_MEMORY : RDM_OK;
		/* if the sender has ended the connection, the end flushes the receive */
		if (ret != -ESTALE && ret != -ESRCH)
			dofi_dto_end(conn->ep, dto,
				     ret ? FI_EIO : dofi_dto_received(conn->ep, dto), sink);
	}
	return rdm_ack(conn, task);
}
