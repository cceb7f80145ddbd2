/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: operations and completions. */

#include "xport/msg/msg.h"

#include "base/iov.h"
#include "fab/quirks.h"
#include "obj/cq_data.h"
#include "obj/ep/ep_dto.h"

#include <rdma/fi_rma.h>

/* Uses fi_writemsg: on some fabrics an endpoint's default flags do not apply to fi_write. */
static ssize_t write_segments(struct dofi_ep *ep, const struct iovec *iov, void **desc, size_t n,
			      const struct fi_rma_iov *remote, void *context)
{
	const struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = desc, .iov_count = n, .rma_iov = remote, .rma_iov_count = 1,
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

static __attribute__((noinline)) ssize_t write_flagged(struct dofi_ep *ep, void *buf, size_t len,
						       void *desc, uint64_t addr, uint64_t key,
						       void *context)
{
	const struct iovec iov = { buf, len };
	const struct fi_rma_iov remote = { .addr = addr, .len = len, .key = key };

	return write_segments(ep, &iov, &desc, 1, &remote, context);
}

ssize_t msg_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		  uint64_t key, void *context)
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

static int send_segments(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_send(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0,
			       context);
	return dto->n_iov ? fi_sendv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context) :
			    fi_send(ep->fid, NULL, 0, NULL, 0, context);
}

/* Sends @length bytes to a peer with an SRQ: a preamble and they in one message, or in two. */
static __attribute__((noinline)) int send_with_preamble(struct dofi_ep *ep, struct dofi_dto *dto,
						 uint64_t length, uint64_t cq_data)
{
	const size_t most = dofi_min(ep->obj.ia->limits.inject_size, MSG_PREAMBLE_MAX);
	const struct msg_preamble preamble = {
		.length = length, .cq_data = cq_data, .whole = length <= most - MSG_PREAMBLE_SIZE,
	};
	unsigned char buf[MSG_PREAMBLE_MAX];
	const struct iovec iov = { buf, MSG_PREAMBLE_SIZE + length };
	const struct fi_msg whole = {
		.msg_iov = &iov, .iov_count = 1, .context = dofi_dto_context(dto),
	};
	int ret;

	msg_preamble_pack(buf, &preamble);
	if (preamble.whole) {
		dofi_iov_gather(buf + MSG_PREAMBLE_SIZE, dto->iov, dto->n_iov, 0, length);
		return fi_sendmsg(ep->fid, &whole, FI_INJECT | FI_COMPLETION);
	}
	if (dto->step != DOFI_STEP_RTS) {
		ret = fi_inject(ep->fid, buf, MSG_PREAMBLE_SIZE, 0);
		if (ret)
			return ret;
		dto->step = DOFI_STEP_RTS;
	}
	return send_segments(ep, dto);
}

/* Sends a message with @kind and @value as remote CQ data, where the fabric carries that. */
static __attribute__((noinline)) int send_with_data(struct dofi_ep *ep, struct dofi_dto *dto,
						    enum dofi_cq_data_kind kind, uint32_t value)
{
	const bool written = kind == DOFI_CQ_DATA_WRITE_IMMED;
	const struct fi_msg msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = written ? 0 : dto->n_iov,
		.context = dofi_dto_context(dto),
		.data = dofi_cq_data(kind, dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG,
				    written ? (uint32_t)dto->length : 0, value),
	};

	if (ep->preambles)
		return send_with_preamble(ep, dto, written ? 0 : dto->length, msg.data);
	return fi_sendmsg(ep->fid, &msg, ep->obj.ia->fabric.cq_data ? FI_REMOTE_CQ_DATA : 0);
}

/* Where fabrics hang on empty receives, the status serves: it is written after completion. */
static int submit_recv(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_recv(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0,
			       context);
	if (dto->n_iov)
		return fi_recvv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context);
	if (ep->obj.ia->fabric.quirk->hangs_on_empty_recv)
		return fi_recv(ep->fid, &dto->status, sizeof(dto->status), NULL, 0, context);
	return fi_recv(ep->fid, NULL, 0, NULL, 0, context);
}

/* Fabrics neither check nor store anything for a write without a segment. */
int msg_probe(struct dofi_ep *ep, struct dofi_dto *dto)
{
	static const struct iovec nothing;
	static const struct fi_rma_iov nowhere;
	const struct fi_msg_rma msg = {
		.msg_iov = &nothing, .rma_iov = &nowhere, .context = dofi_dto_context(dto),
	};

	dofi_mutex_assert_held(&ep->lock);
	return fi_writemsg(ep->fid, &msg, ep->obj.ia->fabric.write_flags);
}

static int submit_read(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const uint64_t addr = dto->remote_addr, key = dofi_ep_remote_key(ep, dto);
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return msg_read(ep, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, addr, key,
				context);
	return dto->n_iov ?
		       fi_readv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, addr, key, context) :
		       fi_read(ep->fid, NULL, 0, NULL, 0, addr, key, context);
}

/* Sends the write, and the message behind it, on some fabrics after the write's completion. */
static int submit_write_immed(struct dofi_ep *ep, struct dofi_dto *dto)
{
	int ret;

	if (dto->step != DOFI_STEP_BEGUN) {
		ret = submit_write(ep, dto);
		if (ret)
			return ret;
		dto->step = DOFI_STEP_BEGUN;
		dto->parts = 1;
	}
	if (dto->parts && ep->obj.ia->fabric.quirk->delivers_after_refusal)
		return -FI_EAGAIN;
	return send_with_data(ep, dto, DOFI_CQ_DATA_WRITE_IMMED, dto->immed);
}

int msg_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	dofi_mutex_assert_held(&ep->lock);
	if (__builtin_expect(dto->kind == DOFI_DTO_SEND, 1)) {
		if (__builtin_expect(dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0))
			return send_with_data(ep, dto, DOFI_CQ_DATA_PLAIN, 0);
		if (__builtin_expect(ep->preambles, 0))
			return send_with_preamble(ep, dto, dto->length, 0);
		return send_segments(ep, dto);
	}
	switch (dto->kind) {
	case DOFI_DTO_RECV:
	case DOFI_DTO_PREAMBLE:
		return submit_recv(ep, dto);
	case DOFI_DTO_WRITE:
		return submit_write(ep, dto);
	case DOFI_DTO_READ:
		return submit_read(ep, dto);
	case DOFI_DTO_SEND_INVALIDATE:
		return send_with_data(ep, dto, DOFI_CQ_DATA_INVALIDATE, dto->immed);
	case DOFI_DTO_SEND_IMMED:
		return send_with_data(ep, dto, DOFI_CQ_DATA_IMMED, dto->immed);
	case DOFI_DTO_WRITE_IMMED:
		return submit_write_immed(ep, dto);
	default:
		return msg_mail_submit(ep, dto);
	}
}

/* A device refuses memory after its registration has ended; software fabrics hold memory. */
bool msg_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	dofi_mutex_assert_held(&ep->lock);
	return dto->at_fabric && !(ep->obj.ia->fabric.info->domain_attr->mr_mode & FI_MR_LOCAL);
}

void msg_cancel(struct dofi_ep *ep, struct dofi_dto *dto)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_cq_lock_access(ep->cq);
	fi_cancel(&ep->fid->fid, dofi_dto_context(dto));
	dofi_cq_unlock_access(ep->cq);
}

/* Completions */

/* Processes remote CQ data of an untrusted peer: an invalid value is an error. */
static void received_with_data(const struct fi_cq_data_entry *entry, struct dofi_sink *sink)
{
	struct dofi_arrived arrived;

	dofi_arrived_read(&arrived, entry->data, entry->len);
	dofi_dto_complete_as(entry, 0, &arrived, sink);
}

static __attribute__((noinline)) void completed_with_data(const struct fi_cq_data_entry *entry,
							  int err, struct dofi_sink *sink)
{
	if (!err && entry->flags & FI_REMOTE_WRITE)
		msg_mail_arrived(entry->data, sink);
	else if (!err && entry->flags & FI_RECV)
		received_with_data(entry, sink);
	else	/* sockets also sets the flag for our own sends */
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
	dofi_mutex_assert_held(&ep->lock);
	/* a preamble has CQ data itself */
	if (dto->kind == DOFI_DTO_SEND && !ep->preambles)
		return send_with_data(ep, dto, DOFI_CQ_DATA_PLAIN, 0);
	return msg_submit(ep, dto);
}
