/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: operations posted and completed. */

#include "xport/msg/op.h"

#include "base/iov.h"
#include "fab/quirks.h"
#include "obj/beside.h"
#include "xport/msg/mail.h"

#include <rdma/fi_rma.h>

/* The endpoint's default flags do not reach plain fi_write on every fabric. */
static ssize_t write_segments(struct dofi_ep *ep, const struct iovec *iov, void **desc, size_t n,
			      const struct fi_rma_iov *remote, void *context)
{
	const struct fi_msg_rma msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = n,
		.rma_iov = remote,
		.rma_iov_count = 1,
		.context = context,
	};

	return fi_writemsg(ep->fid, &msg, ep->obj.ia->fabric.write_flags);
}

static int submit_write(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const struct fi_rma_iov remote = {
		.addr = dto->remote_addr, .len = dto->length, .key = dofi_ep_remote_key(ep, dto),
	};

	return write_segments(ep, dto->iov, dto->desc, dto->n_iov, &remote, dofi_dto_context(dto));
}

static __attribute__((noinline)) ssize_t write_flagged(struct dofi_ep *ep, void *buf, size_t len, void *desc,
						       uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = { buf, len };
	const struct fi_rma_iov remote = { .addr = addr, .len = len, .key = key };

	return write_segments(ep, &iov, &desc, 1, &remote, context);
}

ssize_t msg_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr, uint64_t key,
		  void *context)
{
	if (ep->obj.ia->fabric.write_flags)
		return write_flagged(ep, buf, len, desc, addr, key, context);
	return fi_write(ep->fid, buf, len, desc, 0, addr, key, context);
}

ssize_t msg_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr, uint64_t key,
		 void *context)
{
	return fi_read(ep->fid, buf, len, desc, 0, addr, key, context);
}

/* With room for a byte, where it does no harm: the status is written when all is over. */
static int receive_nothing(struct dofi_ep *ep, struct dofi_dto *dto)
{
	size_t room = ep->obj.ia->fabric.quirk->hangs_on_empty_recv ? sizeof(dto->status) : 0;

	return fi_recv(ep->fid, room ? &dto->status : NULL, room, NULL, 0, dofi_dto_context(dto));
}

/* The memory of @dto, as it is. */
static int send_plain(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_send(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0, context);
	return dto->n_iov ? fi_sendv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context) :
			    fi_send(ep->fid, NULL, 0, NULL, 0, context);
}

/* The frame is the message: injected, as it has no memory of its own, and yet completed. */
static int send_whole(struct dofi_ep *ep, struct dofi_dto *dto, const struct dofi_frame *frame,
		      unsigned char buf[DOFI_FRAME_MAX])
{
	const struct iovec iov = { buf, DOFI_FRAME_HEADER + frame->length };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.context = dofi_dto_context(dto),
	};

	dofi_iov_gather(buf + DOFI_FRAME_HEADER, dto->iov, dto->n_iov, 0, frame->length);
	return fi_sendmsg(ep->fid, &msg, FI_INJECT | FI_COMPLETION);
}

/*
 * The peer receives from an SRQ: it is told of a message of @length bytes, none or all of @dto,
 * and of what goes with it, and finds a buffer.
 */
static __attribute__((noinline)) int send_framed(struct dofi_ep *ep, struct dofi_dto *dto,
						 uint64_t length, uint64_t beside)
{
	const size_t room = ep->obj.ia->limits.inject_size < DOFI_FRAME_MAX ?
				    ep->obj.ia->limits.inject_size : DOFI_FRAME_MAX;
	const struct dofi_frame frame = {
		.length = length, .beside = beside, .whole = length <= room - DOFI_FRAME_HEADER,
	};
	unsigned char buf[DOFI_FRAME_MAX];
	int ret;

	dofi_frame_pack(buf, &frame);
	if (frame.whole)
		return send_whole(ep, dto, &frame, buf);
	if (!dto->announced) {
		ret = fi_inject(ep->fid, buf, DOFI_FRAME_HEADER, 0);
		if (ret)
			return ret;
		dto->announced = true;
	}
	return send_plain(ep, dto);
}

/* A message, and beside it what it is and @value, where that can be carried. */
static __attribute__((noinline)) int send_beside(struct dofi_ep *ep, struct dofi_dto *dto,
						 enum dofi_beside_kind kind, uint32_t value)
{
	const bool written = kind == DOFI_BESIDE_WRITE_IMMED;
	const struct fi_msg msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = written ? 0 : dto->n_iov,
		.context = dofi_dto_context(dto),
		.data = dofi_beside(kind, dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG,
				    written ? (uint32_t)dto->length : 0, value),
	};

	if (ep->framed)
		return send_framed(ep, dto, written ? 0 : dto->length, msg.data);
	return fi_sendmsg(ep->fid, &msg, ep->obj.ia->fabric.cq_data ? FI_REMOTE_CQ_DATA : 0);
}

static inline int submit_send(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (__builtin_expect(dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0))
		return send_beside(ep, dto, DOFI_BESIDE_PLAIN, 0);
	if (__builtin_expect(ep->framed, 0))
		return send_framed(ep, dto, dto->length, 0);
	return send_plain(ep, dto);
}

static int submit_recv(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_recv(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0, context);
	return dto->n_iov ? fi_recvv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context) :
			    receive_nothing(ep, dto);
}

static int submit_read(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const uint64_t addr = dto->remote_addr, key = dofi_ep_remote_key(ep, dto);
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return msg_read(ep, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, addr, key, context);
	return dto->n_iov ? fi_readv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, addr, key, context) :
			    fi_read(ep->fid, NULL, 0, NULL, 0, addr, key, context);
}

/* The write, and the message behind it that tells of it; where need be, once it is done. */
static int submit_write_immed(struct dofi_ep *ep, struct dofi_dto *dto)
{
	int ret;

	if (!dto->submitted) {
		ret = submit_write(ep, dto);
		if (ret)
			return ret;
		dto->submitted = true;
		dto->parts = 1;
	}
	if (dto->parts && ep->obj.ia->fabric.quirk->goes_on)
		return -FI_EAGAIN;
	return send_beside(ep, dto, DOFI_BESIDE_WRITE_IMMED, dto->immed);
}

static int submit_more(struct dofi_ep *ep, struct dofi_dto *dto)
{
	switch (dto->kind) {
	case DOFI_DTO_SEND_INVALIDATE:
		return send_beside(ep, dto, DOFI_BESIDE_INVALIDATE, dto->immed);
	case DOFI_DTO_SEND_IMMED:
		return send_beside(ep, dto, DOFI_BESIDE_IMMED, dto->immed);
	case DOFI_DTO_WRITE_IMMED:
		return submit_write_immed(ep, dto);
	default:
		return msg_mail_submit(ep, dto);
	}
}

int msg_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (__builtin_expect(dto->kind == DOFI_DTO_SEND, 1))
		return submit_send(ep, dto);
	switch (dto->kind) {
	case DOFI_DTO_RECV:
	case DOFI_DTO_FRAME:
		return submit_recv(ep, dto);
	case DOFI_DTO_WRITE:
		return submit_write(ep, dto);
	case DOFI_DTO_READ:
		return submit_read(ep, dto);
	default:
		return submit_more(ep, dto);
	}
}

/* Memory whose LMR is freed */

/* A device knows memory by its registration, and refuses what uses one that has ended. */
bool msg_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	return dto->at_fabric && !(ep->obj.ia->fabric.info->domain_attr->mr_mode & FI_MR_LOCAL);
}

void msg_cancel(struct dofi_ep *ep, struct dofi_dto *dto)
{
	fi_cancel(&ep->fid->fid, dofi_dto_context(dto));
}

/* Completions */

/* What arrived for a receive. The peer may be anybody: what makes no sense is an error. */
static void received_with_data(const struct fi_cq_data_entry *entry, struct dofi_sink *sink)
{
	struct dofi_arrived arrived;

	dofi_arrived_read(&arrived, entry->data, entry->len);
	dofi_dto_complete_as(entry, &arrived, sink);
}

static __attribute__((noinline)) void completed_with_data(const struct fi_cq_data_entry *entry,
							  int err, struct dofi_sink *sink)
{
	if (!err && entry->flags & FI_REMOTE_WRITE)
		msg_mail_rung(entry->data, sink);
	else if (!err && entry->flags & FI_RECV)
		received_with_data(entry, sink);
	else	/* sockets says it of our own sends, too */
		dofi_dto_complete(entry, err, sink);
}

void msg_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (__builtin_expect(entry->flags & FI_REMOTE_CQ_DATA, 0))
		completed_with_data(entry, err, sink);
	else
		dofi_dto_complete(entry, err, sink);
}

void msg_marked_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (!err && entry->flags & FI_RECV && entry->data)
		received_with_data(entry, sink);
	else if (!err && entry->flags & FI_RECV)
		dofi_dto_complete(entry, err, sink);
	else
		msg_completed(entry, err, sink);
}

int msg_marked_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	/* frames have a place of their own for it */
	if (dto->kind == DOFI_DTO_SEND && !ep->framed)
		return send_beside(ep, dto, DOFI_BESIDE_PLAIN, 0);
	return msg_submit(ep, dto);
}
