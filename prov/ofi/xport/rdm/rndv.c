/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: rendezvous, at both ends. */

#include "xport/rdm/rndv.h"

#include "base/iov.h"
#include "obj/ep_done.h"
#include "obj/ep_dto.h"
#include "xport/rdm/direct.h"
#include "xport/rdm/link.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* The sender */

int rdm_rndv_rts(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f)
{
	int ret;

	f->kind = RDM_FRAME_RTS;
	f->number = dto->number;
	f->length = dto->length;
	if (conn->peer_reads)
		rdm_name_segments(f, dto);
	else
		rdm_direct_want(conn);
	f->value[0] = conn->direct != NULL;
	ret = rdm_transmit(conn, f, NULL, 0, 0, 0);
	dto->step = ret ? DOFI_STEP_NONE : DOFI_STEP_RTS;
	return ret;
}

/* Sends the message to the tag of the receive. */
static int send_tagged(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const struct rdm_direct *direct = dto->step == DOFI_STEP_CTS_DIRECT ? conn->direct : NULL;
	struct rdm_op *op = rdm_op_get(conn, dto, false);
	const struct fi_msg_tagged msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = dto->n_iov,
		.addr = direct ? direct->to : conn->to,
		.tag = dto->rndv.tag,
		.context = op,
	};
	struct fid_ep *fid = direct ? direct->rdm.fid : conn->ep->fid;
	/*
	 * a direct endpoint may be closed once the send has completed: the peer has to have the
	 * message by then
	 */
	const uint64_t flags = FI_COMPLETION | (direct ? FI_DELIVERY_COMPLETE : 0);
	ssize_t ret;

	if (op)
		op->direct = direct;
	ret = op ? fi_tsendmsg(fid, &msg, flags) : -FI_EAGAIN;
	if (ret && op)
		rdm_op_put(op);
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

/*
 * Sends a DATA frame, where suits_zero_copy() excludes the fabric's own transfer. Shared memory has
 * a further reason: a sleeping peer would not be woken for messages that the fabric sends by
 * itself.
 */
static int send_data(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const size_t most = conn->max_copy - RDM_FRAME_FULL, left = dto->length - dto->rndv.sent;
	const size_t size = left < most ? left : most;
	struct rdm_frame f = {
		.kind = RDM_FRAME_DATA, .number = (uint32_t)dto->rndv.tag, .addr = dto->rndv.sent,
	};
	int ret;

	if (!conn->credits)
		return -FI_EAGAIN;
	if (size == left && conn->rpz->copy)
		ret = rdm_transmit_copy(conn, dto, &f, dto->rndv.sent, size);
	else
		ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, dto->rndv.sent, size);
	if (!ret)
		dto->rndv.sent += size;
	return ret;
}

static int send_all_data(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	int ret = 0;

	while (!ret && dto->rndv.sent < dto->length)
		ret = send_data(conn, dto);
	return ret || conn->rpz->copy ? ret : DOFI_DONE;
}

static void send_message(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const bool by_frames = rdm_fabric(conn)->target_rdma && dto->step == DOFI_STEP_CTS;
	int ret = by_frames ? send_all_data(conn, dto) : send_tagged(conn, dto);

	if (ret == -FI_EAGAIN)
		return;
	dto->step = DOFI_STEP_DATA;
	conn->n_cts--;
	if (ret)
		dofi_dto_finish(conn->ep, dto, ret == DOFI_DONE ? 0 : -ret);
}

static bool has_cts(const struct dofi_dto *dto)
{
	return !dto->done && (dto->step == DOFI_STEP_CTS || dto->step == DOFI_STEP_CTS_DIRECT);
}

void rdm_rndv_go_on(struct rdm_conn *conn)
{
	struct dofi_queue *q = &conn->ep->sq;
	uint32_t i;

	if (!conn->n_cts)
		return;
	for (i = q->head; i != q->next; i++)
		if (has_cts(dofi_queue_at(q, i)))
			send_message(conn, dofi_queue_at(q, i));
	dofi_dto_retire(conn->ep, NULL);
}

void rdm_rndv_cts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag, bool direct)
{
	dto->step = direct ? DOFI_STEP_CTS_DIRECT : DOFI_STEP_CTS;
	dto->rndv.tag = tag;
	dto->rndv.sent = 0;
	conn->n_cts++;
	rdm_rndv_go_on(conn);
}

/* The receiver */

/* Reads the message from the sender's memory. */
static void read_message(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto,
		  struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock)
{
	int ret = rdm_pull(conn, dto->iov, dto->n_iov, &task->frame);

	task->result = ret ? RDM_NO_MEMORY : RDM_OK;
	/* the sender has ended the connection, which flushes the receive */
	if (ret == -ESTALE || ret == -ESRCH)
		return;
	dofi_dto_end(conn->ep, dto, ret ? FI_EIO : dofi_dto_received(conn->ep, dto), sink);
}

/*
 * The tag of @dto, at the direct endpoint or at the PZ's. Receives of one PZ have different tags
 * while they can be matched.
 */
static uint64_t tag_of(const struct rdm_conn *conn, const struct dofi_dto *dto, bool direct)
{
	return direct ? conn->direct->tags + dto->number : (uint64_t)(uint32_t)conn->id << 32 | dto->number;
}

/* Has DATA frames fill the receive. */
static int await_data(struct dofi_dto *dto)
{
	dto->step = DOFI_STEP_AWAITS_DATA;
	dto->got = 0;
	return 0;
}

void rdm_rndv_data(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
{
	const struct dofi_queue *q = &conn->ep->rq;
	struct dofi_dto *dto = dofi_queue_at(q, f->number);

	if (f->number - q->head >= q->next - q->head || dto->done || dto->step != DOFI_STEP_AWAITS_DATA ||
	    f->addr != dto->got || f->data_size > dto->length - dto->got) {
		rdm_peer_error(conn, "sent a part of no message");
		return;
	}
	dofi_iov_scatter(dto->iov, dto->n_iov, dto->got, f->data, f->data_size);
	dto->got += f->data_size;
	if (dto->got == dto->length)
		dofi_dto_end(conn->ep, dto, dofi_dto_received(conn->ep, dto), sink);
}

/* Has the fabric fill and complete the receive. */
static int await(struct rdm_conn *conn, struct dofi_dto *dto, bool direct) DOFI_NEEDS(conn->ep->lock)
{
	struct fid_ep *fid = direct ? conn->direct->rdm.fid : conn->ep->fid;
	struct rdm_op *op = rdm_op_get(conn, dto, true);
	const struct fi_msg_tagged msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = dto->n_iov,
		.addr = direct ? FI_ADDR_UNSPEC : conn->to,
		.tag = tag_of(conn, dto, direct),
		.context = op,
	};
	ssize_t ret;

	if (op)
		op->direct = direct;
	ret = op ? fi_trecvmsg(fid, &msg, FI_COMPLETION) : -FI_EAGAIN;
	if (ret && op)
		rdm_op_put(op);
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

static bool send_cts(struct rdm_conn *conn, const struct rdm_task *task, const struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock)
{
	struct iovec address = { NULL, 0 };
	struct rdm_frame f = {
		.kind = RDM_FRAME_CTS, .number = task->frame.number,
		.value = { tag_of(conn, dto, task->direct) },
	};

	if (task->direct)
		address = (struct iovec){ conn->direct->rdm.address, conn->direct->rdm.address_len };
	return rdm_transmit(conn, &f, &address, 1, 0, address.iov_len) != -FI_EAGAIN;
}

static int await_message(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock)
{
	dto->step = DOFI_STEP_NONE;
	rdm_direct_want(conn);
	task->direct = conn->direct && task->frame.value[0];
	if (rdm_fabric(conn)->target_rdma && !task->direct)
		return await_data(dto);
	return await(conn, dto, task->direct);
}

static bool ask_for_message(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto,
			    struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock)
{
	int ret;

	if (!task->carried_out) {
		ret = await_message(conn, task, dto);
		if (ret == -FI_EAGAIN)
			return false;
		task->carried_out = true;
		if (ret) {
			dofi_dto_end(conn->ep, dto, -ret, sink);
			return true;
		}
	}
	return send_cts(conn, task, dto);
}

bool rdm_rndv_take(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto, struct dofi_sink *sink)
{
	if (!task->frame.n_segments)
		return ask_for_message(conn, task, dto, sink);
	if (!task->carried_out)
		read_message(conn, task, dto, sink);
	task->carried_out = true;
	return rdm_ack(conn, task);
}
