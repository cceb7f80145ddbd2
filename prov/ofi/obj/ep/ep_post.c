/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posting operations: checks, and the slot that they are filled into; also of the extension. */

#include "obj/ep/ep_post.h"

#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/rmr.h"
#include "obj/mem/segments.h"

#if DAT_VERSION_MAJOR >= 2
/*
 * Makes the memory that an RMR's context names the segment of @dto; an empty segment names no
 * memory.
 */
static DAT_RETURN load_grant(struct dofi_ep *ep, struct dofi_dto *dto, const DAT_RMR_TRIPLET *local)
	DOFI_NEEDS(ep->lock)
{
	struct dofi_rmr_memory memory;
	DAT_RETURN ret;

	dto->n_iov = 0;
	dto->length = local->segment_length;
	if (!dto->length) {
		dto->kind = DOFI_DTO_READ;
		return DAT_SUCCESS;
	}
	ret = dofi_rmr_find(ep->pz, ep, local->rmr_context, local->virtual_address, dto->length,
			    &memory);
	if (ret)
		return ret;
	if (dto->length > dofi_post_longest(ep, dto->kind))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	dto->iov[0] = (struct iovec){ memory.base, dto->length };
	dto->desc[0] = memory.desc;
	dofi_dto_contexts(dto)[0] = memory.lmr;
	dto->marks |= DOFI_DTO_GRANTED;
	dto->n_iov = 1;
	return DAT_SUCCESS;
}
#endif

static DAT_RETURN load_remote(struct dofi_dto *dto, const DAT_RMR_TRIPLET *remote)
{
	const bool read = dofi_dto_is(dto->kind, DOFI_DTO_READS | 1u << DOFI_DTO_READ_TO_RMR);
	const uint64_t length = remote->segment_length;

	dto->remote_addr = dofi_remote_address(remote);
	dto->remote_key = remote->rmr_context;
	if (read ? dto->length < length : dto->length > length)
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	if (read)
		dofi_dto_trim(dto, length);
	if (!dofi_range_exists(dto->remote_addr, dto->length))
		dto->marks |= DOFI_DTO_NOWHERE;
	return DAT_SUCCESS;
}

#define REQUEST_FLAGS (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
		       DAT_COMPLETION_BARRIER_FENCE_FLAG | DOFI_INVALIDATE_FENCE)

/*
 * UNSIGNALLED may be used where the EP chose it for the whole stream. Elsewhere an IA that is not
 * strict accepts and ignores it, and receives may have the flags of requests, without effect.
 */
static inline bool flags_valid(const struct dofi_ep *ep, unsigned flags, unsigned allowed,
			       DAT_COMPLETION_FLAGS stream)
{
	if (!ep->obj.ia->strict)
		allowed = REQUEST_FLAGS | DAT_COMPLETION_UNSIGNALLED_FLAG;
	return !(flags & ~(allowed | (stream & DAT_COMPLETION_UNSIGNALLED_FLAG)));
}

bool dofi_dto_request_flags(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags)
{
	return !(flags & ~REQUEST_FLAGS) ||
	       flags_valid(ep, flags, REQUEST_FLAGS, ep->attr.request_completion_flags);
}

/* Fills in the additional members of less usual requests. */
static __attribute__((noinline)) DAT_RETURN fill_more(struct dofi_ep *ep, struct dofi_dto *dto,
						      const struct dofi_post *p)
	DOFI_NEEDS(ep->lock)
{
	/* a peer of uDAPL 1.2 has no memory for atomics */
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS) && ep->state == DAT_EP_STATE_CONNECTED &&
	    !ep->mailbox.key && !ep->obj.ia->fabric.atomics)
		return DOFI_NOT_SUPPORTED;
	if (dto->kind == DOFI_DTO_WRITE_IMMED && dto->length > DOFI_WRITE_IMMED_MAX)
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	if (dto->kind == DOFI_DTO_SEND_IMMED)
		dofi_tally_add(&ep->posted[DOFI_DTO_SEND], dto->length); /* also counts as a send */
	if (dto->marks & DOFI_DTO_GRANTED)
		dto->local_key = p->local->rmr_context;
	else
		dto->immed = p->immed;
#if DAT_VERSION_MAJOR >= 2
	if (dofi_dto_is(dto->kind, DOFI_DTO_DATAGRAMS)) {
		dto->remote_addr = (uintptr_t)p->ah->ah;
		dto->remote_key = p->ah->qpn;
	}
#endif
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS)) {
		dto->operand = p->operand;
		dto->compare = p->compare;
	}
	return DAT_SUCCESS;
}

static DOFI_INTO_CALLER DAT_RETURN fill(struct dofi_ep *ep, struct dofi_dto *dto, uint8_t kind,
					const struct dofi_post *p) DOFI_NEEDS(ep->lock)
{
	DAT_RETURN ret;

	dto->kind = kind;
	dto->flags = p->flags;
	dto->cookie = p->cookie.as_64;
#if DAT_VERSION_MAJOR >= 2
	if (kind == DOFI_DTO_READ_TO_RMR)
		ret = load_grant(ep, dto, p->local);
	else
#endif
		ret = dofi_dto_load(dto, ep->pz, dofi_post_longest(ep, kind), p->n, p->iov);
	if (!ret && p->remote)
		ret = load_remote(dto, p->remote);
	if (!ret && __builtin_expect(kind > DOFI_DTO_BIND, 0))
		ret = fill_more(ep, dto, p);
	return ret;
}

/* False if the EP was freed while its lock was dropped. */
static bool is_full(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		return false;
	dofi_queue_extend(&ep->sq, ep);
	return dofi_queue_may_be_full(&ep->sq);
}

/*
 * A poll reads nothing while another thread holds the CQ lock. So the queue counts as full only
 * after a drain, which waits for that thread.
 */
__attribute__((noinline)) void dofi_ep_reclaim_slots(struct dofi_ep *ep)
{
	struct dofi_cq *cq = ep->sq.open ? ep->cq : NULL;

	dofi_mutex_assert_held(&ep->lock);
	if (!is_full(ep) || !cq)
		return;
	dofi_mutex_unlock(&ep->lock);
	dofi_cq_poll(cq, NULL);
	dofi_mutex_lock(&ep->lock);
	if (!is_full(ep))
		return;
	dofi_mutex_unlock(&ep->lock);
	dofi_cq_drain(cq);
	dofi_mutex_lock(&ep->lock);
	is_full(ep);
}

/*
 * Reserves a slot where the fast path is closed, or the queue may be full. The EP may be freed
 * before it is locked, and while the CQ is read.
 */
static __attribute__((noinline)) DAT_RETURN reserve(struct dofi_ep *ep, uint8_t kind,
						    struct dofi_dto **dto) DOFI_NEEDS(ep->lock)
{
	if (ep->datagrams != dofi_dto_is(kind, DOFI_DTO_DATAGRAMS))
		return DOFI_BAD_HANDLE(EP);
	if (dofi_queue_may_be_full(&ep->sq))
		dofi_ep_reclaim_slots(ep);
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		return DOFI_BAD_HANDLE(EP);
	if (!(dofi_ep_states[ep->state].may & DOFI_EP_MAY_REQUEST))
		return dofi_ep_bad_state(ep);
	*dto = dofi_queue_reserve(&ep->sq);
	return *dto ? DAT_SUCCESS : DOFI_NO_RESOURCE(TEP);
}

/* Posts a request after its number of segments, pointers and flags have been checked. */
static DOFI_INTO_CALLER DAT_RETURN post_locked(struct dofi_ep *ep, uint8_t kind,
					       const struct dofi_post *p) DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto = ep->fast.send ? dofi_queue_reserve(&ep->sq) : NULL;
	DAT_RETURN ret = DAT_SUCCESS;

	if (__builtin_expect(!dto, 0))
		ret = reserve(ep, kind, &dto);
	if (!ret)
		ret = fill(ep, dto, kind, p);
	if (!ret) {
		dofi_tally_add(&ep->posted[kind], dto->length);
		dofi_dto_commit(ep, &ep->sq, dto, kind);
	}
	return ret;
}

DAT_RETURN dofi_ep_post_request(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	const DAT_EP_ATTR *a = &ep->attr;
	DAT_COUNT most;
	DAT_RETURN ret;

	dofi_mutex_lock(&ep->lock);
	most = kind == DOFI_DTO_READ ? a->max_rdma_read_iov :
	       kind == DOFI_DTO_WRITE ? a->max_rdma_write_iov : a->max_request_iov;
	if ((unsigned)p->n > (unsigned)most)
		ret = DOFI_BAD_ARG(2);
	else if (p->n && !p->iov)
		ret = DOFI_BAD_ARG(3);
	else if (p->flags & ~REQUEST_FLAGS && !dofi_dto_request_flags(ep, p->flags))
		ret = p->remote && !p->local ? DOFI_BAD_ARG(6) : DOFI_BAD_ARG(5);
	else
		ret = post_locked(ep, kind, p);
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_ep_post_any(struct dofi_ep *ep, uint8_t kind, DAT_COUNT n,
			    const DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .remote = remote,
	};

	return dofi_ep_post_request(ep, kind, &p);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = {
		.cookie = cookie, .flags = flags, .remote = remote, .local = local,
	};

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!local)
		return DOFI_BAD_ARG(2);
	if (!remote)
		return DOFI_BAD_ARG(4);
	return dofi_ep_post_request(ep, DOFI_DTO_READ_TO_RMR, &p);
}
#endif

/* Sets *@first if this is the first receive of an open queue. */
static DOFI_INTO_CALLER DAT_RETURN receive_locked(struct dofi_ep *ep, const struct dofi_post *p,
						  bool *first) DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto;
	DAT_RETURN ret;
	bool marked;

	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		return DOFI_BAD_HANDLE(EP);
	if (ep->srq)
		return DOFI_BAD_STATE(SRQ_IN_USE);
	if ((unsigned)p->n > (unsigned)ep->attr.max_recv_iov)
		return DOFI_BAD_ARG(2);
	if (p->n && !p->iov)
		return DOFI_BAD_ARG(3);
	if (p->flags && !flags_valid(ep, p->flags, 0, ep->attr.recv_completion_flags))
		return DOFI_BAD_ARG(5);
	dto = dofi_queue_reserve(&ep->rq);
	marked = !dto;
	if (__builtin_expect(marked, 0)) {
		/* the slot is above a watermark, or the consumer may have dequeued events */
		dofi_queue_extend(&ep->rq, ep);
		dto = dofi_queue_reserve(&ep->rq);
	}
	ret = dto ? fill(ep, dto, DOFI_DTO_RECV, p) : DOFI_NO_RESOURCE(TEP);
	if (!ret) {
		dto->flags &= DAT_COMPLETION_UNSIGNALLED_FLAG;
		*first = ep->rq.open && dofi_queue_empty(&ep->rq);
		dofi_tally_add(&ep->posted[DOFI_DTO_RECV], dto->length);
		dofi_dto_commit(ep, &ep->rq, dto, DOFI_DTO_RECV);
	}
	if (__builtin_expect(marked, 0))
		dofi_dto_watermarks(ep);
	/* a message waits for a receive */
	if (__builtin_expect(ep->resume_pending, 0))
		ep->xport->resume(ep);
	return ret;
}

/* Receives may be posted in every state; they wait in the queue until there is a connection. */
DAT_RETURN dofi_ep_recv_any(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = { .n = n, .iov = iov, .cookie = cookie, .flags = flags };
	struct dofi_shard *shard = NULL;
	struct dofi_cq *cq = NULL;
	bool first = false;
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_mutex_lock(&ep->lock);
	ret = receive_locked(ep, &p, &first);
	if (first) {
		cq = ep->cq;
		shard = ep->shard;
		dofi_calls_begin(&ep->obj.calls);
	}
	dofi_mutex_unlock(&ep->lock);
	if (first) {
		dofi_cq_kick(cq, shard);
		dofi_calls_end(&ep->obj.calls);
	}
	return ret;
}

/* The requests of the InfiniBand extension */

/* Arguments count as for dat_extension_op(): the operation's first is the third there. */
static DAT_RETURN bad_arg(int n)
{
	return DOFI_RET(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + (n - 1));
}

/* Posts a request whose segments, pointers and flags were checked. */
static DAT_RETURN post_checked(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	DAT_RETURN ret;

	dofi_mutex_lock(&ep->lock);
	ret = post_locked(ep, kind, p);
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

/* The segments are arguments 3 and 4; of a write, the remote segment is 6. */
static DAT_RETURN post_immed(DAT_EP_HANDLE ep_handle, uint8_t kind, const struct dofi_post *p)
{
	const bool write = kind == DOFI_DTO_WRITE_IMMED;
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_COUNT most;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (write && !p->remote)
		return bad_arg(6);
	if (!dofi_fabric_has_immed(&ep->obj.ia->fabric))
		return DOFI_NOT_SUPPORTED;
	most = write ? ep->attr.max_rdma_write_iov : ep->attr.max_request_iov;
	if ((unsigned)p->n > (unsigned)most)
		return bad_arg(3);
	if (p->n && !p->iov)
		return bad_arg(4);
	if (!dofi_dto_request_flags(ep, p->flags))
		return bad_arg(write ? 8 : 7);
	return post_checked(ep, kind, p);
}

DAT_RETURN dofi_ep_post_send_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_immed(ep_handle, DOFI_DTO_SEND_IMMED, p);
}

DAT_RETURN dofi_ep_post_write_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_immed(ep_handle, DOFI_DTO_WRITE_IMMED, p);
}

/* The local segment is argument @first; the cookie, the remote segment and the flags follow. */
static DAT_RETURN post_atomic(DAT_EP_HANDLE ep_handle, uint8_t kind, int first,
			      const struct dofi_post *p)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	struct dofi_post exact = *p;
	DAT_RMR_TRIPLET remote;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!dofi_fabric_has_atomics(&ep->obj.ia->fabric))
		return DOFI_NOT_SUPPORTED;
	if (!p->iov)
		return bad_arg(first);
	if (!p->remote || dofi_remote_address(p->remote) % sizeof(uint64_t))
		return bad_arg(first + 2);
	if (!dofi_dto_request_flags(ep, p->flags))
		return bad_arg(first + 3);
	if (p->iov->segment_length != sizeof(uint64_t) ||
	    p->remote->segment_length < sizeof(uint64_t))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	/* programs name a whole region, and mean its first 8 bytes */
	remote = *p->remote;
	remote.segment_length = sizeof(uint64_t);
	exact.remote = &remote;
	return post_checked(ep, kind, &exact);
}

DAT_RETURN dofi_ep_post_fetch_add(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_atomic(ep_handle, DOFI_DTO_FETCH_ADD, 4, p);
}

DAT_RETURN dofi_ep_post_cmp_swap(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_atomic(ep_handle, DOFI_DTO_CMP_SWAP, 5, p);
}

#if DAT_VERSION_MAJOR >= 2
/*
 * The segments are arguments 3 and 4, the address handle 5, the flags argument @flags_arg. Checks
 * under the lock, as other posts do: the EP may be freed meanwhile.
 */
static DAT_RETURN post_datagram(DAT_EP_HANDLE ep_handle, uint8_t kind, int flags_arg,
				const struct dofi_post *p)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_datagrams *service;
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_mutex_lock(&ep->lock);
	service = ep->obj.ia->datagrams;
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		ret = DOFI_BAD_HANDLE(EP);
	else if (!service)
		ret = DOFI_NOT_SUPPORTED;
	else if (!ep->datagrams)
		ret = DOFI_BAD_HANDLE(EP);
	else if ((unsigned)p->n > (unsigned)ep->attr.max_request_iov)
		ret = bad_arg(3);
	else if (p->n && !p->iov)
		ret = bad_arg(4);
	else if (!p->ah || !service->ah_valid(ep, p->ah->ah))
		ret = bad_arg(5);
	else if (!dofi_dto_request_flags(ep, p->flags))
		ret = bad_arg(flags_arg);
	else
		ret = post_locked(ep, kind, p);
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_ep_post_send_ud(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_datagram(ep_handle, DOFI_DTO_SEND_UD, 7, p);
}

DAT_RETURN dofi_ep_post_send_ud_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_datagram(ep_handle, DOFI_DTO_SEND_UD_IMMED, 8, p);
}
#endif
