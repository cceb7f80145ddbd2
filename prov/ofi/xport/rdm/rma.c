/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: RDMA and atomics, carried out by the fabric or by the peer. */

#include "xport/rdm/rma.h"

#include "base/iov.h"
#include "base/range.h"
#include "obj/cq_data.h"
#include "xport/rdm/transmit.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/*
 * RDMA within a host that this end carries out alone
 *
 * The peer's grants are in memory that this end can read (fab/grant_book.h). A write is
 * announced in a word, for which the end of the grant and the end of the connection wait. A read is
 * not:
 * its bytes count only if the grant has not ended when they have been read.
 *
 * Requests that the peer carries out keep their order: while one is in flight, or a message that
 * ends a grant may be, the peer carries out the next request, too.
 */

static int write_all(struct rdm_conn *conn, const struct iovec *iov, size_t n, size_t size,
		     const struct dofi_right *permit) DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_outbox *out = conn->out;
	/* one thread at a time announces its write in a word */
	const uint32_t i = (uint32_t)conn->id % DOFI_WRITINGS;
	struct dofi_writing *writing = &out->link->writing[i];
	size_t offset, len;
	int ret = 0;

	for (offset = 0; offset < size && !ret; offset += len) {
		len = size - offset;
		if (len > DOFI_WRITE_PIECE)
			len = DOFI_WRITE_PIECE;
		ret = -EAGAIN;
		dofi_mutex_lock(&out->writes[i].lock);
		dofi_writing_begin(writing, &out->writes[i].count, permit->page);
		if (dofi_grant_pages_has_conn(out->grants, conn->peer_id) &&
		    dofi_grant_pages_hold(out->grants, permit))
			ret = dofi_peer_push(conn->pid, iov, n, offset, len,
					     permit->memory + offset);
		dofi_writing_end(writing);
		dofi_mutex_unlock(&out->writes[i].lock);
	}
	return ret;
}

/*
 * Carries out the write or read @use, with the memory @iov of this process. Returns -EAGAIN if the
 * peer has to carry it out: the peer can if this end cannot, and refuses an access that its grants
 * do not permit. Returns -EIO if the peer has unmapped the memory.
 */
static int onesided_execute(struct rdm_conn *conn, const struct iovec *iov, size_t n,
		     const struct dofi_access *use) DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_right permit;
	struct iovec from;
	int ret;

	if (!conn->out || !conn->out->grants || !conn->pid || conn->n_asked ||
	    conn->by_target_next || !dofi_grant_pages_find(conn->out->grants, use, &permit))
		return -EAGAIN;
	if (use->access == FI_REMOTE_READ) {
		from = (struct iovec){ (void *)(uintptr_t)permit.memory, use->len };
		ret = dofi_peer_pull(conn->pid, iov, n, &from, 1, &conn->alive);
		if (!dofi_grant_pages_held(conn->out->grants, &permit))
			return -EAGAIN;
	} else {
		ret = write_all(conn, iov, n, use->len, &permit);
	}
	if (__builtin_expect(!ret, 1))
		return 0;
	/* this process may not access the peer's memory; the peer may still access ours */
	if (ret == -EPERM || ret == -ENOSYS)
		conn->by_target_next = conn->by_target_always = true;
	return ret == -EFAULT ? -EIO : -EAGAIN;
}

static int onesided(struct rdm_conn *conn, const struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_access use = {
		.key = dto->remote_key, .secret = conn->ep->peer_secret,
		.addr = dto->remote_addr, .len = dto->length,
		.access = dto->kind == DOFI_DTO_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE,
	};

	/* once the peer was asked, it carries out all of @dto */
	return dto->step == DOFI_STEP_ASKED ? -EAGAIN :
					      onesided_execute(conn, dto->iov, dto->n_iov, &use);
}

/* The slow path makes the attempt again, and asks the peer or reports an error. */
static ssize_t fast(struct dofi_ep *ep, void *buf, size_t len, uint64_t addr, uint64_t key,
		    uint64_t access)
{
	struct rdm_conn *conn = rdm_conn_of(ep);
	const struct iovec iov = { buf, len };
	const struct dofi_access use = {
		.key = (uint32_t)key, .secret = ep->peer_secret, .addr = addr, .len = len,
		.access = access,
	};

	dofi_mutex_assert_held(&conn->ep->lock);
	return onesided_execute(conn, &iov, 1, &use) ? -FI_EAGAIN : DOFI_DONE;
}

ssize_t rdm_fast_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		       uint64_t key, void *context)
{
	(void)desc, (void)context;
	return fast(ep, buf, len, addr, key, FI_REMOTE_WRITE);
}

ssize_t rdm_fast_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		      uint64_t key, void *context)
{
	(void)desc, (void)context;
	return fast(ep, buf, len, addr, key, FI_REMOTE_READ);
}

/* RDMA by the fabric */

/*
 * Whether a write in flight may change the memory that @dto reads. Ranges in regions that count
 * from zero cannot be compared.
 */
static bool reads_written(struct rdm_conn *conn, const struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct rdm_op *op;
	const struct dofi_dto *w;

	LIST_FOREACH(op, &conn->ops, link) {
		w = dofi_queue_at(&conn->ep->sq, op->number);
		if (op->blocks && w->kind != DOFI_DTO_READ &&
		    (rdm_fabric(conn)->zero_based ||
		     dofi_ranges_overlap(w->remote_addr, w->length, dto->remote_addr,
					 dto->length)))
			return true;
	}
	return false;
}

/*
 * A fabric that does not order messages after writes, or goes on after a refusal, has writes and
 * reads of a connection in flight together. Reads of written memory wait; so do messages and
 * atomics, of which none may be delivered behind a refused operation.
 */
static int rma_by_fabric(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);
	const struct fi_rma_iov remote = {
		.addr = dto->remote_addr, .len = dto->length,
		.key = dofi_ep_remote_key(conn->ep, dto),
	};
	struct fi_msg_rma msg = {
		.msg_iov = dto->iov, .desc = dto->desc, .iov_count = dto->n_iov,
		.addr = conn->to, .rma_iov = &remote, .rma_iov_count = 1,
	};
	const bool reads = dto->kind == DOFI_DTO_READ;
	struct fid_ep *fid = conn->ep->fid;
	ssize_t ret = -FI_EAGAIN;
	struct rdm_op *op;

	if (reads && conn->blocking && reads_written(conn, dto))
		return -FI_EAGAIN;
	op = rdm_op_get(conn, dto, false);
	msg.context = op;
	if (op)
		ret = reads ? fi_readmsg(fid, &msg, FI_COMPLETION) :
			      fi_writemsg(fid, &msg, FI_COMPLETION | fabric->write_flags);
	if (!ret) {
		op->blocks = !fabric->write_ordered;
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

	dofi_mutex_assert_held(&conn->ep->lock);
	if (dto->step != DOFI_STEP_BEGUN) {
		ret = rma_by_fabric(conn, dto);
		if (ret)
			return ret;
		dto->step = DOFI_STEP_BEGUN;
		dto->parts = 1;
	}
	return dto->parts ? -FI_EAGAIN : 0;
}

/* RDMA by the peer */

/*
 * Has the peer carry out @dto. The peer accesses the memory of a long one, or this end reads it, if
 * that is possible. Else the bytes are in frames, as many as credits permit.
 */
static int ask_rma(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock)
{
	const bool read = dto->kind == DOFI_DTO_READ;
	size_t most = conn->max_copy - RDM_FRAME_FULL;
	bool whole;
	int ret;

	if (dto->step != DOFI_STEP_ASKED) {
		dto->rma.asked = dto->rma.got = 0;
		dto->step = DOFI_STEP_ASKED;
		conn->n_asked++;
		conn->by_target_next = conn->by_target_always;
	}
	whole = !dto->rma.asked && dto->length > conn->eager &&
		(read ? conn->pid != 0 : conn->peer_reads);
	if (whole)
		most = dto->length;
	do {
		const size_t left = dto->length - dto->rma.asked, size = left < most ? left : most;
		struct rdm_frame f = {
			.kind = read ? RDM_FRAME_READ : RDM_FRAME_WRITE,
			/* the CQ data goes with the last frame */
			.cq_data = size == left ? cq_data : 0,
			.number = dto->number, .key = dto->remote_key,
			.addr = dto->remote_addr + dto->rma.asked, .length = size,
			.value = { read ? dto->rma.asked : 0, left - size },
		};

		if (!conn->credits)
			return -FI_EAGAIN;
		if (whole && !read)
			rdm_name_segments(&f, dto);
		ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, dto->rma.asked,
				   read || whole ? 0 : size);
		/* rma.asked counts bytes in frames: the peer still needs the memory (rdm_holds) */
		if (ret || whole)
			return ret;
		dto->rma.asked += size;
	} while (dto->rma.asked < dto->length);
	return 0;
}

/* Results of a read by the peer */

/* ACKs with bytes arrive in order. One without bytes names the peer's memory. */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
{
	const struct dofi_peer_word word = { f->value[0], f->value[1] };
	const struct iovec from = { (void *)(uintptr_t)f->addr, f->length };

	dofi_mutex_assert_held(&conn->ep->lock);
	if (f->data_size) {
		if (f->addr != dto->rma.got || f->data_size > dto->rma.asked - dto->rma.got)
			return FI_EIO;
		dofi_iov_scatter(dto->iov, dto->n_iov, dto->rma.got, f->data, f->data_size);
		dto->rma.got += f->data_size;
		return 0;
	}
	/* a read of no bytes has no data either */
	if (dto->rma.got == dto->length)
		return 0;
	if (f->length != dto->length || !conn->pid)
		return FI_EIO;
	switch (dofi_peer_pull(conn->pid, dto->iov, dto->n_iov, &from, 1, &word)) {
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

/* Submission */

int rdm_write_alone(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	if (dto->step == DOFI_STEP_BEGUN)
		return 0;
	ret = onesided(conn, dto);
	if (!ret)
		dto->step = DOFI_STEP_BEGUN;
	return ret;
}

int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto)
{
	struct rdm_frame f;
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	switch (dto->kind) {
	case DOFI_DTO_WRITE:
	case DOFI_DTO_READ:
		if (!rdm_fabric(conn)->target_rdma)
			return rma_by_fabric(conn, dto);
		/* without the peer if that is possible */
		ret = onesided(conn, dto);
		if (ret == -FI_EAGAIN)
			return ask_rma(conn, dto, 0);
		return ret ? ret : DOFI_DONE;
	case DOFI_DTO_WRITE_IMMED:
		return ask_rma(conn, dto, rdm_write_cq_data(dto));
	default:
		/* the peer keeps the order of frames, but RDMA of the fabric may overtake it */
		if (!conn->credits || conn->blocking)
			return -FI_EAGAIN;
		rdm_frame_begin(&f, dto->kind == DOFI_DTO_CMP_SWAP ? RDM_FRAME_CMP_SWAP :
								     RDM_FRAME_FETCH_ADD);
		f.number = dto->number;
		f.key = dto->remote_key;
		f.addr = dto->remote_addr;
		f.value[0] = dto->operand;
		f.value[1] = dto->compare;
		ret = rdm_transmit(conn, &f, NULL, 0, 0, 0);
		conn->ep->atomics += !ret;
		return ret;
	}
}
