/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: RDMA and atomics that we ask of the fabric, or of the peer. */

#include "xport/rdm.h"

#include "base/iov.h"
#include "fab/quirks.h"
#include "obj/beside.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* RDMA by the fabric */

static ssize_t rma_post(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_op *op, bool write)
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

/* Where the fabric goes on behind what was refused, nothing is behind it until that shows. */
static int rma_by_fabric(struct rdm_conn *conn, struct dofi_dto *dto, bool write)
{
	const bool alone = rdm_fabric(conn)->quirk->goes_on;
	struct rdm_op *op;
	ssize_t ret;

	if (alone && conn->blocking)
		return -FI_EAGAIN;
	op = rdm_op_get(conn, dto, false);
	ret = op ? rma_post(conn, dto, op, write) : -FI_EAGAIN;
	if (!ret) {
		op->blocks = alone || (write && !rdm_fabric(conn)->write_ordered);
		conn->blocking += op->blocks;
		return 0;
	}
	if (op)
		rdm_op_put(op);
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

/* What tells of a write with immediate data. */
static uint64_t beside_of(const struct dofi_dto *dto)
{
	const bool solicited = dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	return dofi_beside(DOFI_BESIDE_WRITE_IMMED, solicited, (uint32_t)dto->length, dto->immed);
}

/* The peer is not told of a write that it refuses: what tells of it follows when that is done. */
static int write_immed(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret;

	if (!dto->submitted) {
		ret = rma_by_fabric(conn, dto, true);
		if (ret)
			return ret;
		dto->submitted = true;
		dto->parts = 1;
	}
	return dto->parts ? -FI_EAGAIN : rdm_send_empty(conn, dto, beside_of(dto));
}

/* RDMA by the peer */

static int ask(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *f)
{
	if (!conn->window || conn->blocking)
		return -FI_EAGAIN;
	f->number = dto->number;
	f->key = dto->remote_key;
	f->addr = dto->remote_addr;
	return rdm_transmit(conn, f, NULL, 0, 0, 0);
}

/* How many bytes of a read one frame brings. A bare one names its request by low bits of the number. */
static size_t read_room(const struct rdm_conn *conn, const struct dofi_dto *dto)
{
	const bool bare = conn->bare && dto->number - conn->ep->sq.head <= RDM_BARE_REQUEST;

	return bare ? conn->inject : conn->room - RDM_FRAME_FULL;
}

/* Hands over one part; both send functions of a frame fit. */
typedef int part_send(struct rdm_conn *conn, struct rdm_frame *f, const struct dofi_dto *dto, size_t size);

static int part_alone(struct rdm_conn *conn, struct rdm_frame *f, const struct dofi_dto *dto, size_t size)
{
	return rdm_transmit(conn, f, dto->iov, dto->n_iov, dto->asked, size);
}

/* The bytes from dto->asked on, as many as a frame has @room for. */
static int ask_part(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f, size_t room, part_send *send)
{
	const size_t left = dto->length - dto->asked;
	int ret;

	if (!conn->window)
		return -FI_EAGAIN;
	f->length = left < room ? left : room;
	f->value[1] = left - f->length;
	f->number = dto->number;
	f->key = dto->remote_key;
	f->addr = dto->remote_addr + dto->asked;
	ret = send(conn, f, dto, f->kind == RDM_FRAME_WRITE ? f->length : 0);
	if (!ret)
		dto->asked += f->length;
	return ret;
}

static int ask_write_in_parts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside, part_send *send)
{
	const size_t room = conn->room - RDM_FRAME_FULL;
	int ret;

	do {
		const bool last = dto->length - dto->asked <= room;
		struct rdm_frame f = { .kind = RDM_FRAME_WRITE, .beside = last ? beside : 0 };

		ret = ask_part(conn, dto, &f, room, send);
	} while (!ret && dto->asked < dto->length);
	return ret;
}

static int ask_read_in_parts(struct rdm_conn *conn, struct dofi_dto *dto, part_send *send)
{
	int ret;

	do {
		struct rdm_frame f = { .kind = RDM_FRAME_READ, .value = { dto->asked } };

		ret = ask_part(conn, dto, &f, read_room(conn, dto), send);
	} while (!ret && dto->asked < dto->length);
	return ret;
}

/*
 * Whether the parts pass the gate together. Between two parts that pass it one by one the peer would read the first,
 * inside the gate, and hold up the second.
 */
static bool is_together(const struct rdm_conn *conn)
{
	return conn->gate && conn->room <= conn->inject;
}

static int write_in_parts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside)
{
	int ret;

	if (!is_together(conn))
		return ask_write_in_parts(conn, dto, beside, part_alone);
	if (!conn->window || !rdm_frames_begin(conn))
		return -FI_EAGAIN;
	ret = ask_write_in_parts(conn, dto, beside, rdm_frames_add);
	rdm_frames_end(conn);
	return ret;
}

static int read_in_parts(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret;

	if (!is_together(conn))
		return ask_read_in_parts(conn, dto, part_alone);
	if (!conn->window || !rdm_frames_begin(conn))
		return -FI_EAGAIN;
	ret = ask_read_in_parts(conn, dto, rdm_frames_add);
	rdm_frames_end(conn);
	return ret;
}

/* Whether the bytes go by frames: they are few, or the end that would fetch them cannot read there. */
static bool by_frames(const struct rdm_conn *conn, const struct dofi_dto *dto, bool can_read)
{
	return !can_read || dto->length <= conn->eager;
}

static void begin(struct dofi_dto *dto)
{
	if (!dto->announced)
		dto->asked = dto->got = 0;
	dto->announced = true;
}

static int ask_write(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside)
{
	struct rdm_frame f = { .kind = RDM_FRAME_WRITE, .length = dto->length, .beside = beside };

	begin(dto);
	if (by_frames(conn, dto, conn->peer_reads))
		return write_in_parts(conn, dto, beside);
	rdm_tell_segments(&f, dto);
	return ask(conn, dto, &f);
}

static int ask_read(struct rdm_conn *conn, struct dofi_dto *dto)
{
	struct rdm_frame f = { .kind = RDM_FRAME_READ, .length = dto->length };

	begin(dto);
	return by_frames(conn, dto, conn->pid) ? read_in_parts(conn, dto) : ask(conn, dto, &f);
}

/* The peer does these in their turn among our frames, but the fabric's RDMA may overtake them. */
static int ask_atomic(struct rdm_conn *conn, const struct dofi_dto *dto)
{
	struct rdm_frame f = {
		.kind = dto->kind == DOFI_DTO_CMP_SWAP ? RDM_FRAME_CMP_SWAP : RDM_FRAME_FETCH_ADD,
		.value = { dto->operand, dto->compare },
	};
	int ret = ask(conn, dto, &f);

	conn->ep->atomics += !ret;
	return ret;
}

/* What a read by the peer came to */

/* Out of the peer's memory; a positive error. */
static int read_there(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
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
	default:	/* it is not where the peer says */
		return FI_EIO;
	}
}

/* Frames bring parts in order. */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
{
	if (dto->got == dto->length && !f->data_size)
		return 0;	/* it was of no bytes */
	if (!f->data_size)
		return read_there(conn, dto, f);
	if (f->addr != dto->got || f->data_size > dto->asked - dto->got)
		return FI_EIO;
	dofi_iov_scatter(dto->iov, dto->n_iov, dto->got, f->data, f->data_size);
	dto->got += f->data_size;
	return 0;
}

/* Any of them */

int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto)
{
	const bool by_peer = rdm_fabric(conn)->target_rdma;

	switch (dto->kind) {
	case DOFI_DTO_WRITE:
		return by_peer ? ask_write(conn, dto, 0) : rma_by_fabric(conn, dto, true);
	case DOFI_DTO_READ:
		return by_peer ? ask_read(conn, dto) : rma_by_fabric(conn, dto, false);
	case DOFI_DTO_WRITE_IMMED:
		return by_peer ? ask_write(conn, dto, beside_of(dto)) : write_immed(conn, dto);
	default:
		return ask_atomic(conn, dto);
	}
}
