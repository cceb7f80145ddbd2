/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: RDMA and atomics, carried out by the fabric or by the peer. */

#include "xport/rdm/rma.h"

#include "base/iov.h"
#include "fab/quirks.h"
#include "obj/cq_data.h"
#include "xport/rdm/link.h"
#include "xport/rdm/onesided.h"
#include "xport/rdm/op.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* RDMA by the fabric */

static ssize_t rma_post(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_op *op, bool write)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct fi_rma_iov remote = {
		.addr = dto->remote_addr,
		.len = dto->length,
		.key = dofi_ep_remote_key(conn->ep, dto),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = dto->n_iov,
		.addr = conn->to,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = op,
	};

	if (!write)
		return fi_readmsg(conn->ep->fid, &msg, FI_COMPLETION);
	return fi_writemsg(conn->ep->fid, &msg, FI_COMPLETION | rdm_fabric(conn)->write_flags);
}

/*
 * A fabric that keeps no order between RDMA operations and messages, or goes on after it refused
 * one, gets nothing more until the operation has completed.
 */
static int rma_by_fabric(struct rdm_conn *conn, struct dofi_dto *dto, bool write)
	DOFI_NEEDS(conn->ep->lock)
{
	const bool alone = !rdm_fabric(conn)->write_ordered;
	struct rdm_op *op;
	ssize_t ret;

	if (alone && conn->blocking)
		return -FI_EAGAIN;
	op = rdm_op_get(conn, dto, false);
	ret = op ? rma_post(conn, dto, op, write) : -FI_EAGAIN;
	if (!ret) {
		op->blocks = alone;
		conn->blocking += op->blocks;
		return 0;
	}
	if (op)
		rdm_op_put(op);
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

uint64_t rdm_write_cq_data(const struct dofi_dto *dto)
{
	const bool solicited = dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	return dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, solicited, (uint32_t)dto->length, dto->immed);
}

int rdm_write_before_message(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret;

	dofi_ep_assert_locked(conn->ep);
	if (dto->step != DOFI_STEP_BEGUN) {
		ret = rma_by_fabric(conn, dto, true);
		if (ret)
			return ret;
		dto->step = DOFI_STEP_BEGUN;
		dto->parts = 1;
	}
	return dto->parts ? -FI_EAGAIN : 0;
}

/* RDMA by the peer */

static int ask(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *f)
	DOFI_NEEDS(conn->ep->lock)
{
	if (!conn->credits || conn->blocking)
		return -FI_EAGAIN;
	f->number = dto->number;
	f->key = dto->remote_key;
	f->addr = dto->remote_addr;
	return rdm_transmit(conn, f, NULL, 0, 0, 0);
}

/* Requests or writes the bytes from dto->rma.asked on, at most @most of them. */
static int ask_part(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f, size_t most,
		    bool data) DOFI_NEEDS(conn->ep->lock)
{
	const size_t left = dto->length - dto->rma.asked;
	int ret;

	if (!conn->credits)
		return -FI_EAGAIN;
	f->length = left < most ? left : most;
	f->value[1] = left - f->length;
	f->number = dto->number;
	f->key = dto->remote_key;
	f->addr = dto->remote_addr + dto->rma.asked;
	ret = rdm_transmit(conn, f, dto->iov, dto->n_iov, dto->rma.asked, data ? f->length : 0);
	if (!ret)
		dto->rma.asked += f->length;
	return ret;
}

static int ask_write_in_parts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock)
{
	const size_t most = conn->max_copy - RDM_FRAME_FULL;
	int ret;

	do {
		const bool last = dto->length - dto->rma.asked <= most;
		struct rdm_frame f = { .kind = RDM_FRAME_WRITE, .cq_data = last ? cq_data : 0 };

		ret = ask_part(conn, dto, &f, most, true);
	} while (!ret && dto->rma.asked < dto->length);
	return ret;
}

static int ask_read_in_parts(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const size_t most = conn->max_copy - RDM_FRAME_FULL;
	int ret;

	do {
		struct rdm_frame f = { .kind = RDM_FRAME_READ, .value = { dto->rma.asked } };

		ret = ask_part(conn, dto, &f, most, false);
	} while (!ret && dto->rma.asked < dto->length);
	return ret;
}

/*
 * Whether frames carry the bytes: because they are few, or the end that would read them cannot do
 * that.
 */
static bool by_frames(const struct rdm_conn *conn, const struct dofi_dto *dto, bool can_read)
{
	return !can_read || dto->length <= conn->eager;
}

static void begin(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	if (dto->step == DOFI_STEP_ASKED)
		return;
	dto->rma.asked = dto->rma.got = 0;
	dto->step = DOFI_STEP_ASKED;
	conn->asked++;
	conn->ask_next = conn->ask_always;
}

static int ask_write(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock)
{
	struct rdm_frame f = { .kind = RDM_FRAME_WRITE, .length = dto->length, .cq_data = cq_data };

	begin(conn, dto);
	if (by_frames(conn, dto, conn->peer_reads))
		return ask_write_in_parts(conn, dto, cq_data);
	rdm_name_segments(&f, dto);
	return ask(conn, dto, &f);
}

static int ask_read(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	struct rdm_frame f = { .kind = RDM_FRAME_READ, .length = dto->length };

	begin(conn, dto);
	return by_frames(conn, dto, conn->pid) ? ask_read_in_parts(conn, dto) : ask(conn, dto, &f);
}

/* The peer carries atomics out in the order of frames, but RDMA of the fabric may overtake them. */
static int ask_atomic(struct rdm_conn *conn, const struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	struct rdm_frame f = {
		.kind = dto->kind == DOFI_DTO_CMP_SWAP ? RDM_FRAME_CMP_SWAP : RDM_FRAME_FETCH_ADD,
		.value = { dto->operand, dto->compare },
	};
	int ret = ask(conn, dto, &f);

	conn->ep->atomics += !ret;
	return ret;
}

/* Results of a read by the peer */

/* Reads the peer's memory. Returns 0 or a positive error. */
static int read_there(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_peer_word word = { f->value[0], f->value[1] };
	const struct iovec from = { (void *)(uintptr_t)f->addr, f->length };
	int ret;

	if (f->length != dto->length || !conn->pid)
		return FI_EIO;
	ret = dofi_peer_pull(conn->pid, dto->iov, dto->n_iov, &from, 1, &word);
	switch (ret) {
	case 0:
		return 0;
	case -ESTALE:	/* the grant ended in between, and so did the right to read */
		return FI_EACCES;
	case -ESRCH:
		return FI_ECANCELED;
	default:	/* the memory is not where the peer says */
		return FI_EIO;
	}
}

/* ACKs of parts arrive in order. */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
{
	dofi_ep_assert_locked(conn->ep);
	if (dto->rma.got == dto->length && !f->data_size)
		return 0;	/* a read of no bytes */
	if (!f->data_size)
		return read_there(conn, dto, f);
	if (f->addr != dto->rma.got || f->data_size > dto->rma.asked - dto->rma.got)
		return FI_EIO;
	dofi_iov_scatter(dto->iov, dto->n_iov, dto->rma.got, f->data, f->data_size);
	dto->rma.got += f->data_size;
	return 0;
}

/* Submission */

int rdm_write_alone(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret;

	dofi_ep_assert_locked(conn->ep);
	if (dto->step == DOFI_STEP_BEGUN)
		return 0;
	ret = dto->step == DOFI_STEP_ASKED ? -FI_EAGAIN : rdm_onesided(conn, dto);
	if (!ret)
		dto->step = DOFI_STEP_BEGUN;
	return ret;
}

/* Without the peer if that is possible. */
static int write_within_host(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const int ret = rdm_write_alone(conn, dto);

	if (ret == -FI_EAGAIN)
		return ask_write(conn, dto, 0);
	return ret ? ret : DOFI_DONE;
}

static int read_within_host(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const int ret = dto->step == DOFI_STEP_ASKED ? -FI_EAGAIN : rdm_onesided(conn, dto);

	if (ret == -FI_EAGAIN)
		return ask_read(conn, dto);
	return ret ? ret : DOFI_DONE;
}

int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto)
{
	const bool by_peer = rdm_fabric(conn)->target_rdma;

	dofi_ep_assert_locked(conn->ep);
	switch (dto->kind) {
	case DOFI_DTO_WRITE:
		return by_peer ? write_within_host(conn, dto) : rma_by_fabric(conn, dto, true);
	case DOFI_DTO_READ:
		return by_peer ? read_within_host(conn, dto) : rma_by_fabric(conn, dto, false);
	case DOFI_DTO_WRITE_IMMED:
		return ask_write(conn, dto, rdm_write_cq_data(dto));
	default:
		return ask_atomic(conn, dto);
	}
}
