/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: sending a frame, and credits. */

#include "xport/rdm/transmit.h"

#include "base/iov.h"
#include "base/log.h"

#include <rdma/fi_errno.h>

/* Wakes the peer, and counts the frame unless @ret, which it returns, is an error. */
static int handed_over(struct rdm_conn *conn, const struct rdm_frame *f, ssize_t ret)
	DOFI_NEEDS(conn->ep->lock)
{
	if (conn->out)
		dofi_outbox_notify(conn->out, &conn->rpz->ria->bell);
	if (ret == -FI_EAGAIN) {
		rdm_stall(conn);
		return -FI_EAGAIN;
	}
	if (ret) {
		dofi_ep_log(conn->ep, DOFI_WARN, DOFI_EP, "sending a frame: %s",
			    fi_strerror((int)-ret));
		rdm_lost(conn);
		return (int)ret;
	}
	conn->sent++;
	conn->credits_owed -= f->credits;
	conn->credits -= (1u << f->kind & RDM_FRAME_CREDITED) != 0;
	return 0;
}

static void frame_address(const struct rdm_conn *conn, struct rdm_frame *f)
{
	f->conn = conn->peer_id;
	f->sequence = conn->sent + 1;
	f->credits = (uint16_t)conn->credits_owed;
}

/* Sends a frame that is too long to be injected from the copy in @op. */
static ssize_t send_copy(struct rdm_conn *conn, struct rdm_op *op, const struct rdm_frame *f,
			 const struct iovec *from, size_t n, size_t offset, size_t size)
	DOFI_NEEDS(conn->ep->lock)
{
	struct iovec iov;
	void *desc;
	struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = conn->to, .context = op,
	};
	ssize_t ret;

	if (!op)
		return -FI_EAGAIN;
	desc = dofi_local_mr_desc(conn->rpz->copies_mr);
	iov = (struct iovec){ op->copy, rdm_frame_pack(op->copy, f) };
	iov.iov_len += dofi_iov_gather(op->copy + iov.iov_len, from, n, offset, size);
	ret = fi_sendmsg(conn->ep->fid, &msg, FI_COMPLETION);
	if (ret)
		rdm_op_put(op);
	return ret;
}

static ssize_t send_ring(struct rdm_conn *conn, const struct rdm_frame *f, const struct iovec *from,
			 size_t n, size_t offset, size_t size) DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_outbox *out = conn->out;
	unsigned char *frame;
	int ret;

	dofi_outbox_lock(out);
	ret = dofi_outbox_reserve(out, rdm_frame_head(f) + size, &frame);
	if (!ret) {
		dofi_iov_gather(frame + rdm_frame_pack(frame, f), from, n, offset, size);
		dofi_outbox_send(out);
	}
	dofi_outbox_unlock(out);
	return ret;
}

/* Packs the frame into the ring, or into a buffer that the fabric injects, or into a copy. */
int rdm_transmit(struct rdm_conn *conn, struct rdm_frame *f, const struct iovec *iov, size_t n,
		 size_t offset, size_t size)
{
	unsigned char frame[RDM_INJECT_MAX];
	size_t len = rdm_frame_head(f) + size;
	ssize_t ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	frame_address(conn, f);
	if (len > conn->inject) {
		ret = send_copy(conn, rdm_op_get_copy(conn), f, iov, n, offset, size);
	} else if (conn->out) {
		ret = send_ring(conn, f, iov, n, offset, size);
	} else {
		len = rdm_frame_pack(frame, f);
		len += dofi_iov_gather(frame + len, iov, n, offset, size);
		ret = fi_inject(conn->ep->fid, frame, len, conn->to);
	}
	return handed_over(conn, f, ret);
}

int rdm_transmit_zero_copy(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f)
{
	struct iovec iov[1 + RDM_FRAME_SEGMENTS];
	void *desc[1 + RDM_FRAME_SEGMENTS];
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = 1 + dto->n_iov, .addr = conn->to,
	};
	struct rdm_op *op = rdm_op_get(conn, dto, false);
	uint8_t i;
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (!op) {
		rdm_stall(conn);
		return -FI_EAGAIN;
	}
	frame_address(conn, f);
	iov[0] = (struct iovec){ op->header, rdm_frame_pack(op->header, f) };
	desc[0] = dofi_local_mr_desc(conn->rpz->ops_mr);
	for (i = 0; i < dto->n_iov; i++) {
		iov[1 + i] = dto->iov[i];
		desc[1 + i] = dto->desc[i];
	}
	msg.context = op;
	ret = handed_over(conn, f, fi_sendmsg(conn->ep->fid, &msg, FI_COMPLETION));
	if (ret)
		rdm_op_put(op);
	return ret;
}

int rdm_transmit_copy(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *f,
		      size_t offset, size_t size)
{
	struct rdm_op *op = rdm_op_get_copy(conn);

	dofi_mutex_assert_held(&conn->ep->lock);
	if (op) {
		op->completes_dto = true;
		op->number = dto->number;
	}
	frame_address(conn, f);
	return handed_over(conn, f, send_copy(conn, op, f, dto->iov, dto->n_iov, offset, size));
}

void rdm_name_segments(struct rdm_frame *f, const struct dofi_dto *dto)
{
	uint8_t i;

	f->n_segments = dto->n_iov;
	for (i = 0; i < dto->n_iov; i++)
		f->segment[i] = dto->iov[i];
}

int rdm_pull(struct rdm_conn *conn, const struct iovec *to, size_t n, const struct rdm_frame *f)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	return dofi_peer_pull(conn->pid, to, n, f->segment, f->n_segments, &conn->alive);
}

void rdm_peer_error(struct rdm_conn *conn, const char *how)
{
	dofi_mutex_assert_held(&conn->ep->lock);
	dofi_ep_log(conn->ep, DOFI_WARN, DOFI_EP, "the peer %s", how);
	dofi_ep_end(conn->ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* A peer that has left awaits no ACK. */
bool rdm_ack(struct rdm_conn *conn, const struct rdm_task *task)
{
	struct rdm_frame f = {
		.kind = RDM_FRAME_ACK, .number = task->frame.number, .key = task->result,
		.value = { task->old },
	};
	const bool sent = conn->left || rdm_transmit(conn, &f, NULL, 0, 0, 0) != -FI_EAGAIN;

	dofi_mutex_assert_held(&conn->ep->lock);
	conn->refused |= sent && task->result;
	return sent;
}

void rdm_send_credits(struct rdm_conn *conn)
{
	struct rdm_frame f;

	dofi_mutex_assert_held(&conn->ep->lock);
	rdm_frame_begin(&f, RDM_FRAME_CREDIT);
	rdm_transmit(conn, &f, NULL, 0, 0, 0);
}
