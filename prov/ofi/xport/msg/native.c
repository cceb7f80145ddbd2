/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport on hardware, which has its own immediate data, atomics and fences. */

#include "xport/msg/msg.h"

#include "fab/quirks.h"
#include "obj/ep/ep_dto.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static uint64_t fence(const struct dofi_dto *dto)
{
	return dto->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? FI_FENCE : 0;
}

/* libfabric 1.17 reads the first segment and its descriptor, even if there is none. */
static const struct iovec nothing;

static int submit_send(struct dofi_ep *ep, struct dofi_dto *dto, uint64_t flags)
{
	const struct fi_msg msg = {
		.msg_iov = dto->n_iov ? dto->iov : &nothing, .desc = dto->n_iov ? dto->desc : NULL,
		.iov_count = dto->n_iov ? dto->n_iov : 1, .context = dofi_dto_context(dto),
		.data = dto->immed,
	};

	return (int)fi_sendmsg(ep->fid, &msg, flags | fence(dto));
}

static int submit_rdma(struct dofi_ep *ep, struct dofi_dto *dto, uint64_t flags)
{
	const struct fi_rma_iov remote = {
		.addr = dto->remote_addr, .len = dto->length, .key = dofi_ep_remote_key(ep, dto),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = dto->n_iov ? dto->iov : &nothing, .desc = dto->n_iov ? dto->desc : NULL,
		.iov_count = dto->n_iov ? dto->n_iov : 1, .rma_iov = &remote, .rma_iov_count = 1,
		.context = dofi_dto_context(dto), .data = dto->immed,
	};

	flags |= fence(dto);
	return (int)(dto->kind == DOFI_DTO_READ ?
		fi_readmsg(ep->fid, &msg, flags) :
		fi_writemsg(ep->fid, &msg, flags | ep->obj.ia->fabric.write_flags));
}

/* Some fabrics take the operands themselves in place of their addresses. */
static int submit_atomic(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const bool by_value = ep->obj.ia->fabric.quirk->operand_is_address;
	const void *operand = by_value ? (const void *)(uintptr_t)dto->operand : &dto->operand;
	const void *compare = by_value ? (const void *)(uintptr_t)dto->compare : &dto->compare;
	const uint64_t key = dofi_ep_remote_key(ep, dto);
	void *result = dto->iov->iov_base, *context = dofi_dto_context(dto);

	if (dto->kind == DOFI_DTO_FETCH_ADD)
		return (int)fi_fetch_atomic(ep->fid, operand, 1, NULL, result, *dto->desc, 0,
					    dto->remote_addr, key, FI_UINT64, FI_SUM, context);
	return (int)fi_compare_atomic(ep->fid, operand, 1, NULL, compare, NULL, result, *dto->desc,
				      0, dto->remote_addr, key, FI_UINT64, FI_CSWAP, context);
}

/* Operations with data or a fence, and empty writes. A peer with an SRQ gets preambles. */
static __attribute__((noinline)) int submit_more(struct dofi_ep *ep, struct dofi_dto *dto)
	DOFI_NEEDS(ep->lock)
{
	const bool native = !ep->preambles;

	switch (dto->kind) {
	case DOFI_DTO_FETCH_ADD:
	case DOFI_DTO_CMP_SWAP:
		return submit_atomic(ep, dto);
	case DOFI_DTO_SEND_IMMED:
		return native ? submit_send(ep, dto, FI_REMOTE_CQ_DATA) : msg_submit(ep, dto);
	case DOFI_DTO_WRITE_IMMED:
		return native ? submit_rdma(ep, dto, FI_REMOTE_CQ_DATA) : msg_submit(ep, dto);
	case DOFI_DTO_SEND:
		return native ? submit_send(ep, dto, 0) : msg_submit(ep, dto);
	case DOFI_DTO_WRITE:
		return submit_rdma(ep, dto, 0);
	case DOFI_DTO_READ:
		return dto->n_iov ? submit_rdma(ep, dto, 0) : msg_submit(ep, dto);
	default:
		return msg_submit(ep, dto);
	}
}

int msg_native_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	int ret;

	dofi_mutex_assert_held(&ep->lock);
	dofi_cq_lock_access(ep->cq);
	if (__builtin_expect(dto->kind > DOFI_DTO_BIND || fence(dto) ||
			     (dto->kind == DOFI_DTO_WRITE && !dto->n_iov), 0))
		ret = submit_more(ep, dto);
	else
		ret = msg_submit(ep, dto);
	dofi_cq_unlock_access(ep->cq);
	return ret;
}

/* Plain operations */

ssize_t msg_native_send(struct fid_ep *to, const void *buf, size_t len, void *desc,
			uint64_t unused, void *context)
{
	struct dofi_ep *ep = dofi_fast_ep(to);
	ssize_t ret;

	(void)unused;
	dofi_cq_lock_access(ep->cq);
	ret = fi_send(ep->fid, buf, len, desc, 0, context);
	dofi_cq_unlock_access(ep->cq);
	return ret;
}

ssize_t msg_native_recv(struct fid_ep *to, void *buf, size_t len, void *desc, uint64_t unused,
			void *context)
{
	struct dofi_ep *ep = dofi_fast_ep(to);
	ssize_t ret;

	(void)unused;
	dofi_cq_lock_access(ep->cq);
	ret = fi_recv(ep->fid, buf, len, desc, 0, context);
	dofi_cq_unlock_access(ep->cq);
	return ret;
}

ssize_t msg_native_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
			 uint64_t key, void *context)
{
	ssize_t ret;

	dofi_cq_lock_access(ep->cq);
	ret = msg_write(ep, buf, len, desc, addr, key, context);
	dofi_cq_unlock_access(ep->cq);
	return ret;
}

ssize_t msg_native_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
			uint64_t key, void *context)
{
	ssize_t ret;

	dofi_cq_lock_access(ep->cq);
	ret = msg_read(ep, buf, len, desc, addr, key, context);
	dofi_cq_unlock_access(ep->cq);
	return ret;
}

/* A write with immediate data fills no receive, and uDAPL 1.2 has no event that reports more. */
static __attribute__((noinline)) void completed_with_data(const struct fi_cq_data_entry *entry,
							  struct dofi_sink *sink)
{
	const bool written = entry->flags & FI_REMOTE_WRITE;
	const struct dofi_arrived arrived = {
		.kind = written ? DOFI_DTO_RECV_WRITE_IMMED : DOFI_DTO_RECV_IMMED,
		.immed = (uint32_t)entry->data,
		.length = written && DAT_VERSION_MAJOR < 2 ? 0 : entry->len,
	};
	struct fi_cq_data_entry receive = *entry;

	if (written)
		receive.len = 0;
	dofi_dto_complete_as(&receive, 0, &arrived, sink);
}

void msg_native_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (__builtin_expect(!err && entry->flags & FI_REMOTE_CQ_DATA, 0))
		completed_with_data(entry, sink);
	else
		dofi_dto_complete(entry, err, sink);
}
