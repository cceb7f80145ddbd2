/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posting operations: checks, segments, and the slot that they are filled into. */

#include "obj/ep_post.h"

#include "obj/ep.h"
#include "obj/rmr.h"

#include <string.h>

static inline DAT_MEM_PRIV_FLAGS local_privilege(uint8_t kind)
{
	return dofi_dto_is(kind, DOFI_DTO_READS | 1u << DOFI_DTO_RECV) ?
		DAT_MEM_PRIV_LOCAL_WRITE_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG;
}

#define SENDS (1u << DOFI_DTO_SEND | 1u << DOFI_DTO_SEND_INVALIDATE | 1u << DOFI_DTO_SEND_IMMED)

static inline uint64_t longest_of(uint64_t most)
{
	return most < (dofi_seg_length)-1 ? most : (dofi_seg_length)-1;
}

/*
 * Sends are held to what the EP was made for. Receives may be larger than any message, and
 * programs write and read more than the max_rdma_size that they asked for: what the fabric
 * takes is their limit, as far as a DAT length can tell of it.
 */
static inline uint64_t longest(const struct dofi_ep *ep, uint8_t kind)
{
	const struct dofi_limits *limits = &ep->obj.ia->limits;

	if (dofi_dto_is(kind, SENDS))
		return ep->attr.max_message_size;
	return longest_of(kind == DOFI_DTO_RECV ? limits->max_message_size : limits->max_rdma_size);
}

/* Checks a segment, which is to be of @pz and of @most bytes, and makes it the slot's next. */
static inline DAT_RETURN load_segment(const struct dofi_pz *pz, uint64_t most, struct dofi_dto *dto,
				      DAT_MEM_PRIV_FLAGS priv, const DAT_LMR_TRIPLET *s)
{
	struct dofi_lmr *lmr;
	DAT_RETURN ret;

	lmr = dofi_lmr_find(s->lmr_context, s->virtual_address, s->segment_length, pz, priv, &ret);
	if (__builtin_expect(!lmr, 0))
		return ret;
	if (__builtin_expect(s->segment_length > most, 0))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	dto->iov[dto->n_iov] = (struct iovec){ dofi_lmr_memory(lmr, s->virtual_address),
					       s->segment_length };
	dto->desc[dto->n_iov] = lmr->desc;
	dofi_dto_lmr(dto)[dto->n_iov] = s->lmr_context;
	dto->n_iov++;
	return DAT_SUCCESS;
}

/* The same of any number, together of @most bytes. */
static __attribute__((noinline)) DAT_RETURN load_many(const struct dofi_pz *pz, uint64_t most,
						      struct dofi_dto *dto, DAT_MEM_PRIV_FLAGS priv,
						      DAT_COUNT n, const DAT_LMR_TRIPLET *iov)
{
	uint64_t left = most;
	DAT_RETURN ret;
	DAT_COUNT i;

	dto->n_iov = 0;
	for (i = 0; i < n; i++) {
		if (!iov[i].segment_length)
			continue;
		/* what is left, as a sum would wrap: in 1.2 lengths have 64 bits */
		ret = load_segment(pz, left, dto, priv, &iov[i]);
		if (ret)
			return ret;
		left -= iov[i].segment_length;
	}
	dto->length = most - left;
	return DAT_SUCCESS;
}

/* Turns the consumer's segments into the slot's. */
static DOFI_INTO_CALLER DAT_RETURN load_segments(const struct dofi_pz *pz, uint64_t most,
						 struct dofi_dto *dto, uint8_t kind, DAT_COUNT n,
						 const DAT_LMR_TRIPLET *iov)
{
	const DAT_MEM_PRIV_FLAGS priv = local_privilege(kind);

	if (__builtin_expect(n != 1 || !iov->segment_length, 0))
		return load_many(pz, most, dto, priv, n, iov);
	dto->n_iov = 0;
	dto->length = iov->segment_length;
	return load_segment(pz, most, dto, priv, iov);
}

#if DAT_VERSION_MAJOR >= 2
/* The same with a segment that is named by an RMR's context; one of no bytes names nothing. */
static DAT_RETURN load_grant(struct dofi_ep *ep, struct dofi_dto *dto, const DAT_RMR_TRIPLET *local)
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
	if (dto->length > longest(ep, dto->kind))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	dto->iov[0] = (struct iovec){ memory.base, dto->length };
	dto->desc[0] = memory.desc;
	dofi_dto_lmr(dto)[0] = memory.lmr;
	dto->marks |= DOFI_DTO_GRANTED;
	dto->n_iov = 1;
	return DAT_SUCCESS;
}
#endif

/* A read moves as much as the remote segment holds, however large the local ones are. */
void dofi_dto_trim(struct dofi_dto *dto, uint64_t length)
{
	uint64_t left = length;
	uint8_t i;

	for (i = 0; i < dto->n_iov && left; i++) {
		if (dto->iov[i].iov_len > left)
			dto->iov[i].iov_len = left;
		left -= dto->iov[i].iov_len;
	}
	dto->n_iov = i;
	dto->length = length;
}

static inline uint64_t remote_address(const DAT_RMR_TRIPLET *remote)
{
#if DAT_VERSION_MAJOR >= 2
	return remote->virtual_address;
#else
	return remote->target_address;
#endif
}

static DAT_RETURN load_remote(struct dofi_dto *dto, const DAT_RMR_TRIPLET *remote)
{
	dto->remote_addr = remote_address(remote);
	dto->remote_key = remote->rmr_context;
	if (!dofi_dto_is(dto->kind, DOFI_DTO_READS | 1u << DOFI_DTO_READ_TO_RMR))
		return dto->length > remote->segment_length ? DOFI_RET(DAT_LENGTH_ERROR, 0) :
							      DAT_SUCCESS;
	if (dto->length < remote->segment_length)
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	dofi_dto_trim(dto, remote->segment_length);
	return DAT_SUCCESS;
}

#define REQUEST_FLAGS (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
		       DAT_COMPLETION_BARRIER_FENCE_FLAG)
#if DAT_VERSION_MAJOR >= 2
/* nothing is invalidated late here, so there is nothing to wait for */
#define VERSION_FLAGS DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG
#else
#define VERSION_FLAGS 0
#endif

/* UNSIGNALLED may be used where the EP chose it for the whole stream. */
static inline bool flags_valid(unsigned flags, unsigned allowed, DAT_COMPLETION_FLAGS stream)
{
	return !(flags & ~(allowed | (stream & DAT_COMPLETION_UNSIGNALLED_FLAG)));
}

static inline bool request_flags_valid(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags)
{
	return !flags || flags_valid(flags, REQUEST_FLAGS | VERSION_FLAGS,
				     ep->attr.request_completion_flags);
}

bool dofi_dto_request_flags(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags)
{
	return request_flags_valid(ep, flags);
}

/* What the less usual requests have besides. */
static __attribute__((noinline)) DAT_RETURN fill_more(struct dofi_ep *ep, struct dofi_dto *dto,
						      const struct dofi_post *p)
{
	/* a peer of uDAPL 1.2 has no memory for atomics */
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS) && ep->state == DAT_EP_STATE_CONNECTED &&
	    !ep->mailbox.key && !ep->obj.ia->fabric.atomics)
		return DOFI_NOT_SUPPORTED;
	if (dto->kind == DOFI_DTO_WRITE_IMMED && dto->length > DOFI_WRITE_IMMED_MAX)
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	if (dto->kind == DOFI_DTO_SEND_IMMED)
		dofi_tally_add(&ep->posted[DOFI_DTO_SEND], dto->length);	/* it is one */
	if (dto->marks & DOFI_DTO_GRANTED)
		dto->local_key = p->local->rmr_context;
	else
		dto->immed = p->immed;
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS)) {
		dto->operand = p->operand;
		dto->compare = p->compare;
	}
	return DAT_SUCCESS;
}

static DOFI_INTO_CALLER DAT_RETURN fill(struct dofi_ep *ep, struct dofi_dto *dto, uint8_t kind,
					const struct dofi_post *p)
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
		ret = load_segments(ep->pz, longest(ep, kind), dto, kind, p->n, p->iov);
	if (!ret && p->remote)
		ret = load_remote(dto, p->remote);
	if (!ret && __builtin_expect(kind > DOFI_DTO_BIND, 0))
		ret = fill_more(ep, dto, p);
	return ret;
}

__attribute__((noinline)) void dofi_ep_make_room(struct dofi_ep *ep)
{
	struct dofi_cq *cq = ep->sq.open ? ep->cq : NULL;

	dofi_queue_extend(&ep->sq, ep);
	if (!cq || !dofi_queue_full(&ep->sq))
		return;
	dofi_ep_unlock(ep);
	dofi_cq_poll(cq, NULL);
	dofi_ep_lock(ep);
	dofi_queue_extend(&ep->sq, ep);
}

/* A request whose arguments are good, but for what the segments name. */
static DOFI_INTO_CALLER DAT_RETURN post(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	struct dofi_dto *dto;
	DAT_RETURN ret;

	dofi_ep_lock(ep);
	if (__builtin_expect(dofi_queue_full(&ep->sq), 0))
		dofi_ep_make_room(ep);
	if (ep->state != DAT_EP_STATE_CONNECTED &&
	    !(dofi_ep_state_row(ep->state)->may & DOFI_EP_MAY_REQUEST)) {
		ret = dofi_ep_bad_state(ep);
	} else if (!(dto = dofi_queue_reserve(&ep->sq))) {
		ret = DOFI_NO_RESOURCE(TEP);
	} else {
		ret = fill(ep, dto, kind, p);
		if (!ret) {
			dofi_tally_add(&ep->posted[kind], dto->length);
			dofi_queue_commit(ep, &ep->sq, dto, kind);
		}
	}
	dofi_ep_unlock(ep);
	return ret;
}

static DOFI_INTO_CALLER DAT_RETURN post_request(struct dofi_ep *ep, uint8_t kind, DAT_COUNT max_iov,
						const struct dofi_post *p)
{
	if ((unsigned)p->n > (unsigned)max_iov)
		return DOFI_BAD_ARG(2);
	if (p->n && !p->iov)
		return DOFI_BAD_ARG(3);
	if (!request_flags_valid(ep, p->flags))
		return p->remote && !p->local ? DOFI_BAD_ARG(6) : DOFI_BAD_ARG(5);
	return post(ep, kind, p);
}

/* Segments that a request of @kind may have: a message, or RDMA. */
static inline DAT_COUNT max_iov_of(const struct dofi_ep *ep, uint8_t kind)
{
	switch (kind) {
	case DOFI_DTO_READ:
		return ep->attr.max_rdma_read_iov;
	case DOFI_DTO_WRITE:
		return ep->attr.max_rdma_write_iov;
	default:
		return ep->attr.max_request_iov;
	}
}

/* Where an operation of @kind has its slot. */
static DOFI_INTO_CALLER struct dofi_queue *queue_of(struct dofi_ep *ep, uint8_t kind)
{
	return kind == DOFI_DTO_RECV ? &ep->rq : &ep->sq;
}

/* The LMR of a plain operation, if it may be one, is mostly that of the one before. */
static __attribute__((noinline)) const struct dofi_lmr *lmr_change(struct dofi_ep *ep, uint8_t kind,
								   DAT_LMR_CONTEXT context)
{
	const bool receives = kind == DOFI_DTO_RECV;
	const DAT_MEM_PRIV_FLAGS least = receives ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG;
	const struct dofi_lmr *lmr = (receives ? ep->recv != NULL : ep->send != NULL) ?
					     dofi_lmr_at(context) : NULL;

	if (!lmr || !(lmr->priv & least))
		return &dofi_lmr_none;
	return queue_of(ep, kind)->lmr = lmr;
}

/* Whether RDMA between @s, in @lmr, and @remote need not wait for what is under way. */
static DOFI_INTO_CALLER bool is_plain_rdma(const struct dofi_ep *ep, uint8_t kind,
					   const struct dofi_lmr *lmr, const DAT_LMR_TRIPLET *s,
					   const DAT_RMR_TRIPLET *remote)
{
	if (ep->atomics)
		return false;
	if (kind == DOFI_DTO_WRITE)
		return ep->xport->write && s->segment_length <= remote->segment_length;
	return ep->xport->read && ep->reads < ep->attr.max_rdma_read_out &&
	       lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG && remote->segment_length &&
	       remote->segment_length <= s->segment_length;
}

static DOFI_INTO_CALLER ssize_t submit_plain(struct dofi_ep *ep, uint8_t kind, void *memory,
					     void *desc, const struct dofi_dto *dto,
					     const DAT_RMR_TRIPLET *remote, void *context)
{
	if (kind == DOFI_DTO_SEND)
		return ep->send(ep->plain_to, memory, dto->length, desc, 0, context);
	if (kind == DOFI_DTO_RECV)
		return ep->recv(ep->plain_to, memory, dto->length, desc, 0, context);
	return (kind == DOFI_DTO_WRITE ? ep->xport->write : ep->xport->read)(
		ep, memory, dto->length, desc, remote_address(remote),
		dofi_mr_fabric_key(remote->rmr_context, ep->peer_secret), context);
}

/* A plain operation is the fabric's. */
static DOFI_INTO_CALLER void plain_posted(struct dofi_ep *ep, uint8_t kind,
					  const struct dofi_dto *dto)
{
	struct dofi_queue *q = queue_of(ep, kind);

	q->tail++;
	q->next++;
	if (kind == DOFI_DTO_READ)
		ep->reads++;
	dofi_tally_add(&ep->posted[kind], dto->length);
	/* who posts receives will look for them */
	if (kind != DOFI_DTO_RECV)
		dofi_cq_posted(ep->cq);
}

/* Of which nothing more will be heard. */
static __attribute__((noinline)) bool plain_done(struct dofi_ep *ep, uint8_t kind,
						 struct dofi_dto *dto)
{
	plain_posted(ep, kind, dto);
	dofi_dto_end(ep, dto, 0, NULL);
	return true;
}

/*
 * The LMR of @s if its operation is plain: a message, a receive, or RDMA if there is @remote, of one segment, of
 * which nothing is said but that it be moved, through a connection on which nothing is unusual and nothing waits.
 * Returns NULL if it is another, be it that of a bad argument; or, with @no_change, if the LMR is not that of the
 * operation before. Needs what dofi_ep_plain_lock() says.
 */
static DOFI_INTO_CALLER const struct dofi_lmr *plain_lmr(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
							 const DAT_RMR_TRIPLET *remote, bool no_change)
{
	const struct dofi_queue *q = queue_of(ep, kind);
	const struct dofi_lmr *lmr = q->lmr;

	if (dofi_queue_full(q))
		return NULL;
	if (__builtin_expect(!dofi_lmr_is(lmr, s->lmr_context), 0)) {
		if (no_change)
			return NULL;
		lmr = lmr_change(ep, kind, s->lmr_context);
	}
	/* a length of 0, less 1, is too long */
	if (lmr->pz != ep->pz || !dofi_lmr_covers(lmr, s->virtual_address, s->segment_length) ||
	    s->segment_length - 1 >= longest(ep, kind) ||
	    (remote && !is_plain_rdma(ep, kind, lmr, s, remote)))
		return NULL;
	return lmr;
}

/* Hands a plain operation to the fabric. What its slot @dto needs in other cases only is left out. */
static DOFI_INTO_CALLER ssize_t plain_submit(struct dofi_ep *ep, uint8_t kind, const struct dofi_lmr *lmr,
					     const DAT_LMR_TRIPLET *s, const DAT_RMR_TRIPLET *remote,
					     DAT_DTO_COOKIE cookie, struct dofi_dto *dto)
{
	void *memory = dofi_lmr_memory(lmr, s->virtual_address);
	void *context = dofi_dto_renew_plain(dto);

	dto->number = queue_of(ep, kind)->tail;
	dto->kind = kind;
	dto->at_fabric = true;
	dto->flags = 0;
	dto->n_iov = 0;
	dto->parts = 0;
	dto->done = false;
	dto->step = DOFI_STEP_NONE;
	dto->cookie = cookie.as_64;
	dto->length = kind == DOFI_DTO_READ ? remote->segment_length : s->segment_length;
	dto->memory_lmr = s->lmr_context;
	if (kind == DOFI_DTO_RECV)
		dto->memory = memory;
	return submit_plain(ep, kind, memory, lmr->desc, dto, remote, context);
}

/*
 * Posts a plain operation. Returns false without side effects if the operation is another. Needs what
 * dofi_ep_plain_lock() says.
 */
static DOFI_INTO_CALLER bool post_plain(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
					const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie)
{
	const struct dofi_lmr *lmr = plain_lmr(ep, kind, s, remote, false);
	struct dofi_queue *q = queue_of(ep, kind);
	struct dofi_dto *dto;
	ssize_t ret;

	if (!lmr)
		return false;
	dto = dofi_queue_at(q, q->tail);
	ret = plain_submit(ep, kind, lmr, s, remote, cookie, dto);
	if (__builtin_expect(ret, 0))
		return ret == DOFI_DONE && plain_done(ep, kind, dto);
	plain_posted(ep, kind, dto);
	return true;
}

/* Whether a post is of one segment, without flags: in as few looks as may be. */
static DOFI_INTO_CALLER bool of_one(DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags)
{
	return !((n ^ 1) | (DAT_COUNT)flags) && iov;
}

/* A request of one segment without flags, as any other. */
static __attribute__((noinline)) DAT_RETURN post_any(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
						     const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie)
{
	const struct dofi_post p = { .n = 1, .iov = s, .cookie = cookie, .remote = remote };

	return post_request(ep, kind, max_iov_of(ep, kind), &p);
}

/*
 * Goes on where post_one() has another thread to wait for, or does not know the LMR, or has another operation than
 * a plain one. @lock is held, or NULL.
 */
static __attribute__((noinline)) DAT_RETURN post_otherwise(struct dofi_ep *ep, uint8_t kind,
							   const DAT_LMR_TRIPLET *s, const DAT_RMR_TRIPLET *remote,
							   DAT_DTO_COOKIE cookie, struct dofi_mutex *lock)
{
	bool posted = false;

	if (lock || dofi_ep_plain_lock(ep, &lock)) {
		posted = dofi_ep_plain_lock_holds(ep, lock) && post_plain(ep, kind, s, remote, cookie);
		dofi_mutex_unlock(lock);
	}
	return posted ? DAT_SUCCESS : post_any(ep, kind, s, remote, cookie);
}

/* Goes on where @ret was the fabric's answer to post_one(): the request is done, or its turn is yet to come. */
static __attribute__((noinline)) DAT_RETURN post_answered(struct dofi_ep *ep, struct dofi_dto *dto,
							  const DAT_LMR_TRIPLET *s, const DAT_RMR_TRIPLET *remote,
							  ssize_t ret)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = dto->cookie };
	struct dofi_mutex *lock = ep->plain_lock_when_free;
	const uint8_t kind = dto->kind;

	if (ret == DOFI_DONE)
		plain_done(ep, kind, dto);
	dofi_mutex_unlock(lock);
	return ret == DOFI_DONE ? DAT_SUCCESS : post_any(ep, kind, s, remote, cookie);
}

/*
 * Posts a request of one segment without flags. This is the fast path: it calls nothing but the fabric, and all that it
 * needs after that is @ep, the slot and the segments. The plain lock is plain_lock_when_free while it is held.
 */
static DOFI_INTO_CALLER DAT_RETURN post_one(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
					    const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie)
{
	struct dofi_mutex *lock = atomic_load_explicit(&ep->plain_lock, memory_order_relaxed);
	const struct dofi_lmr *lmr;
	struct dofi_dto *dto;
	ssize_t ret;

	if (__builtin_expect(!dofi_mutex_try(lock), 0))
		return post_otherwise(ep, kind, s, remote, cookie, NULL);
	lmr = dofi_ep_plain_lock_holds(ep, lock) ? plain_lmr(ep, kind, s, remote, true) : NULL;
	if (__builtin_expect(!lmr, 0))
		return post_otherwise(ep, kind, s, remote, cookie, lock);
	dto = dofi_queue_at(&ep->sq, ep->sq.tail);
	ret = plain_submit(ep, kind, lmr, s, remote, cookie, dto);
	if (__builtin_expect(ret, 0))
		return post_answered(ep, dto, s, remote, ret);
	plain_posted(ep, kind, dto);
	dofi_mutex_unlock(ep->plain_lock_when_free);
	return DAT_SUCCESS;
}

static __attribute__((noinline)) DAT_RETURN send_any(struct dofi_ep *ep, DAT_COUNT n,
						     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						     DAT_COMPLETION_FLAGS flags)
{
	const struct dofi_post p = { .n = n, .iov = iov, .cookie = cookie, .flags = flags };

	return post_request(ep, DOFI_DTO_SEND, max_iov_of(ep, DOFI_DTO_SEND), &p);
}

DAT_RETURN dofi_ep_post_ext(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	return post(ep, kind, p);
}

static __attribute__((noinline)) DAT_RETURN post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
						      DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						      DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	return of_one(n, iov, flags) ? post_one(ep, DOFI_DTO_SEND, iov, NULL, cookie) :
				       send_any(ep, n, iov, cookie, flags);
}

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (__builtin_expect(!of_one(n, iov, flags) ||
			     !dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep_handle), 0))
		return post_send(ep_handle, n, iov, cookie, flags);
	return post_one(ep_handle, DOFI_DTO_SEND, iov, NULL, cookie);
}

static __attribute__((noinline)) DAT_RETURN rdma_any(DAT_EP_HANDLE ep_handle, uint8_t kind,
						     DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
						     DAT_DTO_COOKIE cookie,
						     const DAT_RMR_TRIPLET *remote,
						     DAT_COMPLETION_FLAGS flags)
{
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .remote = remote,
	};
	struct dofi_ep *ep = dofi_ep_check(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!remote)
		return DOFI_BAD_ARG(5);
	return post_request(ep, kind, max_iov_of(ep, kind), &p);
}

static DOFI_INTO_CALLER DAT_RETURN post_rdma(DAT_EP_HANDLE ep_handle, uint8_t kind, DAT_COUNT n,
					     const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     const DAT_RMR_TRIPLET *remote,
					     DAT_COMPLETION_FLAGS flags)
{
	if (__builtin_expect(!dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep_handle) ||
			     !of_one(n, iov, flags) || !remote, 0))
		return rdma_any(ep_handle, kind, n, iov, cookie, remote, flags);
	return post_one(ep_handle, kind, iov, remote, cookie);
}

DAT_RETURN dofi_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	return post_rdma(ep_handle, DOFI_DTO_READ, n, iov, cookie, remote, flags);
}

DAT_RETURN dofi_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	return post_rdma(ep_handle, DOFI_DTO_WRITE, n, iov, cookie, remote, flags);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .immed = context,
	};

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!invalidate)
		return dofi_ep_post_send(ep_handle, n, iov, cookie, flags);
	if (!ep->obj.ia->fabric.cq_data)
		return DOFI_NOT_SUPPORTED;
	return post_request(ep, DOFI_DTO_SEND_INVALIDATE, ep->attr.max_request_iov, &p);
}

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
	return post_request(ep, DOFI_DTO_READ_TO_RMR, 0, &p);
}
#endif

DAT_RETURN dofi_dto_receive(struct dofi_dto *dto, const struct dofi_pz *pz, DAT_COUNT n,
			    const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	dto->kind = DOFI_DTO_RECV;
	dto->flags = 0;
	dto->cookie = cookie.as_64;
	return load_segments(pz, longest_of(pz->obj.ia->limits.max_message_size), dto,
			     DOFI_DTO_RECV, n, iov);
}

/* A receive more than a watermark, or than there are slots, is taken; and events may have been dequeued. */
static __attribute__((noinline)) struct dofi_dto *reserve_past_watermark(struct dofi_ep *ep)
{
	dofi_queue_extend(&ep->rq, ep);
	return dofi_queue_reserve(&ep->rq);
}

static bool is_past(uint32_t held, DAT_COUNT watermark)
{
	return watermark != DAT_WATERMARK_INFINITE && held > (uint32_t)watermark;
}

static void depth_limit(struct dofi_queue *q, DAT_COUNT watermark)
{
	if (watermark != DAT_WATERMARK_INFINITE && q->depth > (uint32_t)watermark)
		q->depth = watermark;
}

/* DAT has no event for the soft one: its reason is that of an EP's error. */
void dofi_dto_watermarks(struct dofi_ep *ep)
{
	const bool hard = ep->state == DAT_EP_STATE_CONNECTED;
	uint32_t held = dofi_queue_used(&ep->rq);

	if (is_past(held, ep->soft_watermark)) {
		ep->soft_watermark = DAT_WATERMARK_INFINITE;	/* once per arming */
		dofi_async_error(ep->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep,
				 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	if (hard && is_past(held, ep->hard_watermark))
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	dofi_queue_widen(&ep->rq);
	depth_limit(&ep->rq, ep->soft_watermark);
	if (hard)
		depth_limit(&ep->rq, ep->hard_watermark);
}

/* A watermark is passed, or a message waits for the receive that was posted. */
static __attribute__((noinline)) void receive_posted(struct dofi_ep *ep, bool marked)
{
	if (marked)
		dofi_dto_watermarks(ep);
	if (ep->owes)
		ep->xport->resume(ep);
}

/* Receives may be posted in every state; they wait here until there is a connection. */
static __attribute__((noinline)) DAT_RETURN recv_any(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
						     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						     DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = { .n = n, .iov = iov, .cookie = cookie, .flags = flags };
	struct dofi_cq *first = NULL;	/* where it is the only one, */
	struct dofi_shard *shard = NULL;	/* and there */
	struct dofi_dto *dto;
	bool marked = false;
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (ep->srq)
		return DOFI_BAD_STATE(SRQ_IN_USE);
	if ((unsigned)n > (unsigned)ep->attr.max_recv_iov)
		return DOFI_BAD_ARG(2);
	if (n && !iov)
		return DOFI_BAD_ARG(3);
	if (!flags_valid(flags, 0, ep->attr.recv_completion_flags))
		return DOFI_BAD_ARG(5);
	dofi_ep_lock(ep);
	dto = dofi_queue_reserve(&ep->rq);
	if (__builtin_expect(!dto, 0)) {
		marked = true;
		dto = reserve_past_watermark(ep);
	}
	if (!dto) {
		ret = DOFI_NO_RESOURCE(TEP);
	} else {
		ret = fill(ep, dto, DOFI_DTO_RECV, &p);
		if (!ret && ep->rq.open && ep->rq.head == ep->rq.tail) {
			first = ep->cq;
			shard = ep->shard;
		}
		if (!ret) {
			dofi_tally_add(&ep->posted[DOFI_DTO_RECV], dto->length);
			dofi_queue_commit(ep, &ep->rq, dto, DOFI_DTO_RECV);
		}
	}
	if (__builtin_expect(marked | ep->owes, 0))
		receive_posted(ep, marked);
	dofi_ep_unlock(ep);
	if (first)
		dofi_cq_kick(first, shard);
	return ret;
}

static DOFI_INTO_CALLER bool recv_one(struct dofi_ep *ep, const DAT_LMR_TRIPLET *segment,
				      DAT_DTO_COOKIE cookie)
{
	struct dofi_shard *shard = NULL;
	struct dofi_cq *first = NULL;
	struct dofi_mutex *lock;
	bool posted;

	if (!dofi_ep_plain_lock(ep, &lock))
		return false;
	posted = post_plain(ep, DOFI_DTO_RECV, segment, NULL, cookie);
	if (__builtin_expect(dofi_queue_used(&ep->rq) == 1, 0)) {
		first = ep->cq;
		shard = ep->shard;
	}
	dofi_mutex_unlock(lock);
	if (__builtin_expect(posted && first, 0))
		dofi_cq_kick(first, shard);
	return __builtin_expect(posted, 1);
}

DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (__builtin_expect(!of_one(n, iov, flags) ||
			     !dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep_handle), 0))
		return recv_any(ep_handle, n, iov, cookie, flags);
	return recv_one(ep_handle, iov, cookie) ? DAT_SUCCESS :
	       recv_any(ep_handle, 1, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}
