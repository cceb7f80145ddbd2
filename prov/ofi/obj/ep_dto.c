/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer operations: check, slot, segments, submit; then complete and retire in order. */

#include "obj/ep_dto.h"

#include "base/log.h"
#include "obj/beside.h"
#include "obj/ep.h"
#include "obj/rmr.h"

#include <errno.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <string.h>

/* Of the data path: into each caller, where most of it falls away with what is constant there. */
#define ALWAYS inline __attribute__((always_inline))

/* Queues */

static inline struct dofi_dto *slot_at(const struct dofi_queue *q, uint32_t i)
{
	return (struct dofi_dto *)(q->slots + (i & q->mask) * q->stride);
}

static size_t slot_stride(uint32_t max_iov)
{
	size_t size = sizeof(struct dofi_dto) + max_iov * (sizeof(struct iovec) + sizeof(void *));

	return (size + DOFI_DTO_GENERATIONS - 1) & ~(size_t)(DOFI_DTO_GENERATIONS - 1);
}

static uint32_t slots_for(uint32_t depth)
{
	return depth < 2 ? 2 : 1u << (32 - __builtin_clz(depth - 1));
}

static int queue_init(struct dofi_queue *q, struct dofi_ep *ep, uint32_t depth, uint32_t max_iov)
{
	static _Atomic uint8_t first_generation;
	/* blocks come zeroed: without another start a stale context could fit a new slot */
	uint8_t generation = atomic_fetch_add(&first_generation, 7);
	uint32_t slots = slots_for(depth);
	uint32_t i;

	*q = (struct dofi_queue){ .stride = slot_stride(max_iov), .mask = slots - 1, .depth = depth,
				  .max_iov = max_iov };
	q->slots = dofi_block_get(slots * q->stride);
	if (!q->slots)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		struct dofi_dto *dto = slot_at(q, i);

		dto->ep = ep;
		dto->generation = generation;
		dto->desc = (void **)&dto->iov[max_iov];
	}
	return 0;
}

/* All of an operation but what belongs to its slot. */
void dofi_dto_copy(struct dofi_dto *to, const struct dofi_dto *from, uint32_t max_iov)
{
	const uint8_t generation = to->generation;
	struct dofi_ep *ep = to->ep;
	void **desc = to->desc;

	*to = *from;
	to->ep = ep;
	to->generation = generation;
	to->desc = desc;
	memcpy(to->iov, from->iov, max_iov * sizeof(*to->iov));
	memcpy(to->desc, from->desc, max_iov * sizeof(*to->desc));
}

/* Slots never get smaller: a thread may just have checked a post against the old size. */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov)
{
	uint32_t i;
	int ret;

	if (q->slots && slots_for(depth) == q->mask + 1 && max_iov <= q->max_iov) {
		*next = *q;
		next->depth = depth;
		return 0;
	}
	ret = queue_init(next, ep, depth, max_iov > q->max_iov ? max_iov : q->max_iov);
	if (ret)
		return ret;
	next->open = q->open;
	next->head = q->head;
	next->next = q->next;
	next->tail = q->tail;
	for (i = q->head; i != q->tail; i++)
		dofi_dto_copy(slot_at(next, i), slot_at(q, i), q->max_iov);
	return 0;
}

void dofi_queue_replace(struct dofi_queue *q, const struct dofi_queue *next)
{
	if (q->slots != next->slots)
		dofi_queue_fini(q);
	*q = *next;
}

void dofi_queue_fini(struct dofi_queue *q)
{
	dofi_block_put(q->slots, ((size_t)q->mask + 1) * q->stride);
	q->slots = NULL;
}

static void receive_bar(struct dofi_dto *dto, uint64_t zone)
{
	dto->flags |= DOFI_DTO_BARRED;
	dto->remote_addr = zone;
	dto->remote_key = dto->n_iov;
	dto->n_iov = 0;
}

static void receive_unbar(struct dofi_dto *dto)
{
	dto->flags &= ~DOFI_DTO_BARRED;
	dto->n_iov = dto->remote_key;
}

void dofi_queue_rezone(struct dofi_queue *q, uint64_t from, uint64_t to)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = slot_at(q, i);

		if (dto->n_iov)
			receive_bar(dto, from);
		else if (dto->flags & DOFI_DTO_BARRED && dto->remote_addr == to)
			receive_unbar(dto);
	}
}

static inline bool queue_full(const struct dofi_queue *q)
{
	return q->tail - q->head >= q->depth;
}

/* The slot that the next operation will take, or NULL when all are in use. */
static inline struct dofi_dto *queue_reserve(struct dofi_queue *q)
{
	struct dofi_dto *dto;

	if (queue_full(q))
		return NULL;
	dto = slot_at(q, q->tail);
	dto->generation++;
	dto->at_fabric = dto->done = dto->announced = false;
	dto->parts = 0;
	return dto;
}

struct dofi_dto *dofi_queue_reserve(struct dofi_queue *q)
{
	return queue_reserve(q);
}

struct dofi_dto *dofi_queue_oldest(const struct dofi_queue *q)
{
	return slot_at(q, q->head);
}

/* Posting */

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
static ALWAYS DAT_RETURN load_segments(const struct dofi_pz *pz, uint64_t most, struct dofi_dto *dto,
				       uint8_t kind, DAT_COUNT n, const DAT_LMR_TRIPLET *iov)
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
	dto->local_key = local->rmr_context;
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

static DAT_RETURN load_remote(struct dofi_dto *dto, const DAT_RMR_TRIPLET *remote)
{
#if DAT_VERSION_MAJOR >= 2
	dto->remote_addr = remote->virtual_address;
#else
	dto->remote_addr = remote->target_address;
#endif
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

static void finish(struct dofi_ep *ep, struct dofi_dto *dto, int err);
static void queue_pump(struct dofi_ep *ep, struct dofi_queue *q);

/* Hands @dto, which is the next, to the fabric. False if that has no room for it now. */
static ALWAYS bool submit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto, uint8_t kind)
{
	int ret;

	dto->at_fabric = true;
	ret = ep->obj.ia->xport->submit(ep, dto);
	if (__builtin_expect(ret == -FI_EAGAIN, 0)) {
		dto->at_fabric = dto->parts;
		return false;
	}
	q->next++;
	ep->reads += dofi_dto_is(kind, DOFI_DTO_READS);
	if (__builtin_expect(ret, 0))
		finish(ep, dto, -ret);
	return true;
}

/* An EP that is disconnected accepts operations and flushes them at once. */
static ALWAYS void commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto, uint8_t kind)
{
	const bool first = q->next == q->tail;

	q->tail++;
	if (__builtin_expect(!q->open, 0)) {
		if (ep->state == DAT_EP_STATE_DISCONNECTED)
			dofi_dto_flush(ep);
		return;
	}
	dofi_cq_used(&ep->pz->domain.cq);
	/* nothing is before it, and there is nothing that it might have to wait for */
	if (__builtin_expect(kind < DOFI_DTO_BIND && first && !ep->reads, 1))
		submit(ep, q, dto, kind);
	else
		queue_pump(ep, q);
}

/* What the less usual requests have besides. */
static __attribute__((noinline)) DAT_RETURN fill_more(struct dofi_ep *ep, struct dofi_dto *dto,
						      const struct dofi_post *p)
{
	/* a peer of uDAPL 1.2 has no memory for atomics */
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS) && ep->state == DAT_EP_STATE_CONNECTED &&
	    !ep->mailbox.key)
		return DOFI_NOT_SUPPORTED;
	if (dto->kind == DOFI_DTO_WRITE_IMMED && dto->length > DOFI_WRITE_IMMED_MAX)
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	if (dto->kind == DOFI_DTO_SEND_IMMED)
		dofi_tally_add(&ep->posted[DOFI_DTO_SEND], dto->length);	/* it is one */
	dto->submitted = false;
	dto->immed = p->immed;
	if (dofi_dto_is(dto->kind, DOFI_DTO_ATOMICS)) {
		dto->operand = p->operand;
		dto->compare = p->compare;
	}
	return DAT_SUCCESS;
}

static ALWAYS DAT_RETURN fill(struct dofi_ep *ep, struct dofi_dto *dto, uint8_t kind,
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

/*
 * A program that wants no event of its requests has no reason to poll for any: that they are
 * done is seen here at the latest. Drops the EP lock meanwhile.
 */
static __attribute__((noinline)) void make_room(struct dofi_ep *ep)
{
	struct dofi_cq *cq = ep->sq.open ? &ep->pz->domain.cq : NULL;

	if (!cq)
		return;
	pthread_mutex_unlock(&ep->lock);
	dofi_cq_poll(cq, NULL);
	pthread_mutex_lock(&ep->lock);
}

/* A request whose arguments are good, but for what the segments name. */
static ALWAYS DAT_RETURN post(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	struct dofi_dto *dto;
	DAT_RETURN ret;

	pthread_mutex_lock(&ep->lock);
	if (__builtin_expect(queue_full(&ep->sq), 0))
		make_room(ep);
	if (ep->state != DAT_EP_STATE_CONNECTED &&
	    !(dofi_ep_state_row(ep->state)->may & DOFI_EP_MAY_REQUEST)) {
		ret = dofi_ep_bad_state(ep);
	} else if (!(dto = queue_reserve(&ep->sq))) {
		ret = DOFI_NO_RESOURCE(TEP);
	} else {
		ret = fill(ep, dto, kind, p);
		if (!ret) {
			dofi_tally_add(&ep->posted[kind], dto->length);
			commit(ep, &ep->sq, dto, kind);
		}
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

static ALWAYS DAT_RETURN post_request(struct dofi_ep *ep, uint8_t kind, DAT_COUNT max_iov,
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

DAT_RETURN dofi_ep_post_ext(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p)
{
	return post(ep, kind, p);
}

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = { .n = n, .iov = iov, .cookie = cookie, .flags = flags };

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	return post_request(ep, DOFI_DTO_SEND, ep->attr.max_request_iov, &p);
}

DAT_RETURN dofi_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .remote = remote,
	};

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!remote)
		return DOFI_BAD_ARG(5);
	return post_request(ep, DOFI_DTO_READ, ep->attr.max_rdma_read_iov, &p);
}

DAT_RETURN dofi_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .remote = remote,
	};

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!remote)
		return DOFI_BAD_ARG(5);
	return post_request(ep, DOFI_DTO_WRITE, ep->attr.max_rdma_write_iov, &p);
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

/* Whether @bind may be posted through @ep, and then the slot for it. EP lock held. */
static DAT_RETURN bind_admit(struct dofi_ep *ep, struct dofi_bind *bind, struct dofi_dto **dto)
{
	if (!(dofi_ep_state_row(ep->state)->may & DOFI_EP_MAY_REQUEST))
		return dofi_ep_bad_state(ep);
	if (ep->pz != bind->pz)
		return DOFI_RET(DAT_PROTECTION_VIOLATION, 0);
	if (ep->request_evd && !(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG))
		return DOFI_BAD_STATE(EP_EVD_REQUEST);
	*dto = queue_reserve(&ep->sq);
	return *dto ? dofi_bind_post(bind, ep) : DOFI_NO_RESOURCE(TEP);
}

DAT_RETURN dofi_ep_post_bind(struct dofi_ep *ep, struct dofi_bind *bind, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	struct dofi_rmr *rmr = bind->rmr;
	struct dofi_dto *dto;
	DAT_RETURN ret;

	pthread_mutex_lock(&ep->lock);
	if (queue_full(&ep->sq))
		make_room(ep);
	ret = bind_admit(ep, bind, &dto);
	if (!ret) {
		dto->kind = DOFI_DTO_BIND;
		dto->flags = flags;
		dto->cookie = cookie.as_64;
		dto->length = 0;
		dto->n_iov = 0;
		dto->rmr = rmr;
		dto->bind = bind;
		ep->scoped |= rmr->ep_scope;
		/* now: its completion may be seen before this returns */
		if (context)
			*context = bind->context;
		commit(ep, &ep->sq, dto, DOFI_DTO_BIND);
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_dto_receive(struct dofi_dto *dto, const struct dofi_pz *pz, DAT_COUNT n,
			    const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	dto->kind = DOFI_DTO_RECV;
	dto->flags = 0;
	dto->cookie = cookie.as_64;
	return load_segments(pz, longest_of(pz->obj.ia->limits.max_message_size), dto,
			     DOFI_DTO_RECV, n, iov);
}

/* A receive buffer more than a watermark is no reason not to take it. */
static __attribute__((noinline)) struct dofi_dto *reserve_past_watermark(struct dofi_ep *ep)
{
	ep->rq.depth = ep->attr.max_recv_dtos;
	return queue_reserve(&ep->rq);
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
	ep->rq.depth = ep->attr.max_recv_dtos;
	depth_limit(&ep->rq, ep->soft_watermark);
	if (hard)
		depth_limit(&ep->rq, ep->hard_watermark);
}

/* Receives may be posted in every state; they wait here until there is a connection. */
DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_post p = { .n = n, .iov = iov, .cookie = cookie, .flags = flags };
	struct dofi_dto *dto;
	bool first = false, marked = false;
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
	pthread_mutex_lock(&ep->lock);
	dto = queue_reserve(&ep->rq);
	if (__builtin_expect(!dto, 0)) {
		marked = true;
		dto = reserve_past_watermark(ep);
	}
	if (!dto) {
		ret = DOFI_NO_RESOURCE(TEP);
	} else {
		ret = fill(ep, dto, DOFI_DTO_RECV, &p);
		first = !ret && ep->rq.open && ep->rq.head == ep->rq.tail;
		if (!ret) {
			dofi_tally_add(&ep->posted[DOFI_DTO_RECV], dto->length);
			commit(ep, &ep->rq, dto, DOFI_DTO_RECV);
		}
	}
	if (__builtin_expect(marked, 0))
		dofi_dto_watermarks(ep);
	pthread_mutex_unlock(&ep->lock);
	if (first)
		dofi_cq_kick(&ep->pz->domain.cq);
	return ret;
}

/* To the fabric */

/* Requests that name memory of the peer. */
#define RDMA (DOFI_DTO_READS | 1u << DOFI_DTO_WRITE | 1u << DOFI_DTO_WRITE_IMMED)

static DAT_DTO_COMPLETION_STATUS status_of(int err, uint8_t kind)
{
	if (err && kind == DOFI_DTO_BIND)
		return DAT_RMR_OPERATION_FAILED;
	switch (err) {
	case 0:
		return DAT_DTO_SUCCESS;
	case FI_ECANCELED:	/* what fabrics report when the connection goes away */
	case FI_ENOTCONN:
	case FI_ECONNRESET:
	case FI_ESHUTDOWN:
	case FI_ECONNABORTED:
	case EPIPE:
	case ENOENT:
		return DAT_DTO_ERR_FLUSHED;
	case FI_ETRUNC:
	case FI_ETOOSMALL:
		return kind == DOFI_DTO_RECV ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_ERR_REMOTE_RESPONDER;
	case EFAULT:		/* ours: an RMR that is not bound */
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case FI_EACCES:
	case FI_EPERM:
	case FI_ENOKEY:
	case FI_EKEYREJECTED:
		return dofi_dto_is(kind, RDMA) ? DAT_DTO_ERR_REMOTE_ACCESS :
						 DAT_DTO_ERR_LOCAL_PROTECTION;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* An operation failed, and with it the connection. */
static __attribute__((noinline)) void fail(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	dto->status = status_of(err, dto->kind);
	if (dto->status == DAT_DTO_ERR_LOCAL_LENGTH && dto->flags & DOFI_DTO_BARRED)
		dto->status = DAT_DTO_ERR_LOCAL_PROTECTION;
	/* what the fabric calls an operation that it gave up when the connection ended */
	if (dto->status == DAT_DTO_ERR_TRANSPORT && ep->closing)
		dto->status = DAT_DTO_ERR_FLUSHED;
	dofi_log(dto->status == DAT_DTO_ERR_FLUSHED ? DOFI_DEBUG : DOFI_WARN, DOFI_EP,
		 "ep %p: operation failed: %s", (void *)ep, fi_strerror(err));
	dofi_ep_end(ep, dto->status == DAT_DTO_ERR_FLUSHED ? DAT_CONNECTION_EVENT_DISCONNECTED :
							     DAT_CONNECTION_EVENT_BROKEN);
}

/* Records how @dto ended. */
static ALWAYS void finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	dto->done = true;
	dto->at_fabric = false;
	dto->status = DAT_DTO_SUCCESS;
	if (__builtin_expect(ep->reads, 0))
		ep->reads -= dofi_dto_is(dto->kind, DOFI_DTO_READS);
	if (__builtin_expect(err, 0))
		fail(ep, dto, err);
}

void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
{
	finish(ep, dto, err);
}

/*
 * A fence waits for earlier reads, atomics among them; a read waits while as many as agreed
 * are under way. The target's program does the atomics, when it reads of them: what would go
 * straight to its memory waits here, to come after them.
 */
static __attribute__((noinline)) bool must_wait(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	if (dto->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
		return true;
	if (dofi_dto_is(dto->kind, DOFI_DTO_READS) && ep->reads >= ep->attr.max_rdma_read_out)
		return true;
	return ep->atomics && dofi_dto_is(dto->kind, RDMA & ~DOFI_DTO_ATOMICS);
}

static inline bool held_back(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	return __builtin_expect(ep->reads, 0) && must_wait(ep, dto);
}

/* A bind's turn has come: it is done here, and what is posted behind it finds it done. */
static void bind_execute(struct dofi_ep *ep, struct dofi_dto *dto)
{
	ep->sq.next++;
	finish(ep, dto, -dofi_bind_execute(dto->bind));
	dofi_dto_retire(ep, NULL);
}

/* So has that of a read to an RMR: it is a read like any other if what it names is bound. */
static void read_to_rmr_execute(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (dofi_rmr_in_force(ep->pz, ep, dto->local_key)) {
		dto->kind = DOFI_DTO_READ;
		return;
	}
	ep->sq.next++;
	finish(ep, dto, EFAULT);
	dofi_dto_retire(ep, NULL);
}

static __attribute__((noinline)) void special_execute(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (dto->kind == DOFI_DTO_BIND)
		bind_execute(ep, dto);
	else
		read_to_rmr_execute(ep, dto);
}

/* What is not the fabric's, or not yet. */
#define OURS (1u << DOFI_DTO_BIND | 1u << DOFI_DTO_READ_TO_RMR)

static void queue_pump(struct dofi_ep *ep, struct dofi_queue *q)
{
	while (q->next != q->tail && q->open) {
		struct dofi_dto *dto = slot_at(q, q->next);

		if (held_back(ep, dto))
			return;
		if (__builtin_expect(dofi_dto_is(dto->kind, OURS), 0))
			special_execute(ep, dto);
		else if (!submit(ep, q, dto, dto->kind))
			return;
	}
}

void dofi_queue_pump(struct dofi_ep *ep, struct dofi_queue *q)
{
	queue_pump(ep, q);
}

void dofi_dto_pump(struct dofi_ep *ep)
{
	queue_pump(ep, &ep->rq);
	queue_pump(ep, &ep->sq);
	if (__builtin_expect(ep->srq != NULL, 0))
		dofi_inbox_listen(ep);
	if (__builtin_expect(ep->owes, 0))
		ep->obj.ia->xport->resume(ep);
}

/*
 * Receives must be there before the peer may send, but not while a connection is
 * still being tried: a refused attempt would take them with it.
 */
void dofi_ep_gate(struct dofi_ep *ep)
{
	bool open = ep->fid && !ep->closing;

	ep->rq.open = open && ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	ep->sq.open = ep->rq.open && ep->state != DAT_EP_STATE_COMPLETION_PENDING;
}

/* From the fabric */

#if DAT_VERSION_MAJOR >= 2
static const DAT_DTOS operation[DOFI_DTO_KINDS] = {
	[DOFI_DTO_SEND] = DAT_DTO_SEND,
	[DOFI_DTO_WRITE] = DAT_DTO_RDMA_WRITE,
	[DOFI_DTO_READ] = DAT_DTO_RDMA_READ,
	[DOFI_DTO_RECV] = DAT_DTO_RECEIVE,
	[DOFI_DTO_SEND_INVALIDATE] = DAT_DTO_SEND,
	[DOFI_DTO_READ_TO_RMR] = DAT_DTO_RDMA_READ,
	/* DAT_IB_DTOS has no name for it */
	[DOFI_DTO_SEND_IMMED] = DAT_DTO_SEND,
	[DOFI_DTO_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RDMA_WRITE_IMMED,
	[DOFI_DTO_FETCH_ADD] = (DAT_DTOS)DAT_IB_DTO_FETCH_ADD,
	[DOFI_DTO_CMP_SWAP] = (DAT_DTOS)DAT_IB_DTO_CMP_SWAP,
	[DOFI_DTO_RECV_INVALIDATE] = DAT_DTO_RECEIVE_WITH_INVALIDATE,
	[DOFI_DTO_RECV_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_MSG_IMMED,
	[DOFI_DTO_RECV_WRITE_IMMED] = (DAT_DTOS)DAT_IB_DTO_RECV_IMMED,
};
#endif

static __attribute__((noinline)) DAT_EVENT_NUMBER fill_bind_event(DAT_EVENT_DATA *data,
								  const struct dofi_dto *dto)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *d = &data->rmr_completion_event_data;

	d->rmr_handle = dto->rmr;
	d->user_cookie.as_64 = dto->cookie;
	d->status = (DAT_RMR_BIND_COMPLETION_STATUS)dto->status;
	return DAT_RMR_BIND_COMPLETION_EVENT;
}

static ALWAYS void fill_dto_event(DAT_DTO_COMPLETION_EVENT_DATA *d, struct dofi_ep *ep,
				  const struct dofi_dto *dto)
{
	d->ep_handle = ep;
	d->user_cookie.as_64 = dto->cookie;
	d->status = (DAT_DTO_COMPLETION_STATUS)dto->status;
	d->transfered_length = dto->length;
#if DAT_VERSION_MAJOR >= 2
	d->operation = operation[dto->kind];
	d->rmr_context = 0;
#endif
}

static __attribute__((noinline)) DAT_EVENT_NUMBER fill_other_event(DAT_EVENT_DATA *data,
								   struct dofi_ep *ep,
								   const struct dofi_dto *dto)
{
	if (dto->kind == DOFI_DTO_BIND)
		return fill_bind_event(data, dto);
	fill_dto_event(&data->dto_completion_event_data, ep, dto);
#if DAT_VERSION_MAJOR >= 2
	if (dto->kind == DOFI_DTO_RECV_INVALIDATE)
		data->dto_completion_event_data.rmr_context = dto->immed;
	if (dofi_dto_is(dto->kind, DOFI_DTO_EXTENDED))
		return (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
#endif
	return DAT_DTO_COMPLETION_EVENT;
}

static ALWAYS DAT_EVENT_NUMBER fill_event(DAT_EVENT_DATA *data, struct dofi_ep *ep,
					  const struct dofi_dto *dto)
{
	if (__builtin_expect(dto->kind >= DOFI_DTO_BIND, 0))
		return fill_other_event(data, ep, dto);
	fill_dto_event(&data->dto_completion_event_data, ep, dto);
	return DAT_DTO_COMPLETION_EVENT;
}

/* Whether the completion may wake anybody. A receive has the flag of the message's sender. */
static bool notifies(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	if (dto->status != DAT_DTO_SUCCESS)
		return true;
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS) &&
	    ep->attr.recv_completion_flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	return !(dto->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* The event goes through the queue: nobody polls for it now, or others are before it. */
static __attribute__((noinline)) void enqueue(struct dofi_evd *evd, struct dofi_ep *ep,
					      const struct dofi_dto *dto)
{
	struct dofi_event event;

	event.shared = dto->flags & DOFI_DTO_SHARED ? ep->srq->id : 0;
	event.number = fill_event(&event.data, ep, dto);
	event.immed = dto->immed;
	dofi_evd_push(evd, &event, notifies(ep, dto));
}

/* What else there is to do with some; whether there is an event. */
static __attribute__((noinline)) bool deliver_flagged(struct dofi_ep *ep, const struct dofi_dto *dto)
{
	if (dto->flags & DOFI_DTO_SHARED)
		atomic_fetch_sub_explicit(&ep->srq->taken, 1, memory_order_relaxed);
	return !(dto->flags & DAT_COMPLETION_SUPPRESS_FLAG) || dto->status != DAT_DTO_SUCCESS;
}

static ALWAYS void deliver(struct dofi_ep *ep, struct dofi_evd *evd, const struct dofi_dto *dto,
			   struct dofi_sink *sink)
{
	DAT_EVENT *event;

	if (__builtin_expect(dto->flags & (DOFI_DTO_SHARED | DAT_COMPLETION_SUPPRESS_FLAG), 0) &&
	    !deliver_flagged(ep, dto))
		return;
	if (__builtin_expect(!evd, 0))
		return;
	event = dofi_sink_take(sink, evd);
	if (!event) {
		enqueue(evd, ep, dto);
		return;
	}
	event->event_number = fill_event(&event->event_data, ep, dto);
	event->evd_handle = evd;
	if (__builtin_expect(dto->kind >= DOFI_DTO_BIND, 0))
		dofi_event_extend(event, dto->immed);
}

static ALWAYS void queue_retire(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_evd *evd,
				struct dofi_sink *sink)
{
	while (q->head != q->next) {
		struct dofi_dto *dto = slot_at(q, q->head);

		if (!dto->done)
			return;
		deliver(ep, evd, dto, sink);
		q->head++;
	}
}

static __attribute__((noinline)) void requests_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	queue_retire(ep, &ep->sq, ep->request_evd, sink);
}

static __attribute__((noinline)) void receives_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	queue_retire(ep, &ep->rq, ep->recv_evd, sink);
}

/* A message may arrive before the event that tells of the connection: it waits. */
static bool announced(const struct dofi_ep *ep)
{
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING;
}

void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink)
{
	requests_retire(ep, sink);
	if (announced(ep))
		receives_retire(ep, sink);
	if (__builtin_expect(ep->graceful, 0))
		dofi_ep_request_done(ep);
}

static void queue_flush(struct dofi_ep *ep, struct dofi_queue *q)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = slot_at(q, i);

		if (dto->done)
			continue;
		/* before its event: what it would have granted has ended */
		if (dto->kind == DOFI_DTO_BIND)
			dofi_bind_drop(dto->bind);
		dto->done = true;
		dto->at_fabric = false;
		dto->status = DAT_DTO_ERR_FLUSHED;
	}
	q->next = q->tail;
	if (q == &ep->sq)
		requests_retire(ep, NULL);
	else
		receives_retire(ep, NULL);
}

void dofi_dto_flush(struct dofi_ep *ep)
{
	queue_flush(ep, &ep->sq);
	queue_flush(ep, &ep->rq);
	if (ep->srq)
		dofi_inbox_clear(ep);
	ep->reads = ep->atomics = 0;
}

static inline bool waiting(const struct dofi_ep *ep)
{
	return ep->sq.next != ep->sq.tail || ep->rq.next != ep->rq.tail || ep->owes;
}

static ALWAYS void end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
{
	finish(ep, dto, err);
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS)) {
		if (announced(ep))
			receives_retire(ep, sink);
	} else {
		queue_retire(ep, &ep->sq, ep->request_evd, sink);
		if (__builtin_expect(ep->graceful, 0))
			dofi_ep_request_done(ep);
	}
	/* a message from an SRQ's buffer made room for the next */
	if (waiting(ep) || __builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		dofi_dto_pump(ep);
}

void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
{
	end(ep, dto, err, sink);
}

void dofi_arrived_read(struct dofi_arrived *a, uint64_t beside, uint64_t length)
{
	const uint32_t written = dofi_beside_length(beside);

	*a = (struct dofi_arrived){
		.solicited = dofi_beside_solicited(beside), .immed = (uint32_t)beside,
		.length = length, .err = written ? FI_EIO : 0,
	};
	switch (dofi_beside_kind(beside)) {
	case DOFI_BESIDE_PLAIN:
		a->kind = DOFI_DTO_RECV;
		if (!a->solicited || a->immed)
			a->err = FI_EIO;
		break;
	case DOFI_BESIDE_INVALIDATE:
		a->kind = DOFI_DTO_RECV_INVALIDATE;
		break;
	case DOFI_BESIDE_IMMED:
		a->kind = DOFI_DTO_RECV_IMMED;
		break;
	case DOFI_BESIDE_WRITE_IMMED:
		a->kind = DOFI_DTO_RECV_WRITE_IMMED;
		a->err = length ? FI_EIO : 0;
		/* uDAPL 1.2 has no such event: its receive got nothing */
		a->length = DAT_VERSION_MAJOR >= 2 ? written : 0;
		break;
	}
}

/*
 * A receive of which more is known: 0, or a positive error. A grant has ended before the
 * completion tells of it, and before a receive behind this one completes.
 */
static __attribute__((noinline)) int receive_more(struct dofi_ep *ep, struct dofi_dto *dto,
						  const struct dofi_arrived *arrived)
{
	int err = arrived->err;

	if (!err && arrived->kind == DOFI_DTO_RECV_INVALIDATE)
		err = -dofi_rmr_invalidate(ep->pz, ep, arrived->immed);
	if (err)
		return err;
	if (arrived->solicited)
		dto->flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	dto->kind = arrived->kind;
	dto->immed = arrived->immed;
	dto->length = arrived->length;
	return 0;
}

int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto)
{
	struct dofi_arrived arrived;
	int err = 0;

	if (dto->beside) {
		dofi_arrived_read(&arrived, dto->beside, dto->length);
		err = receive_more(ep, dto, &arrived);
	}
	if (!err)
		dofi_tally_add(&ep->receipts[dto->kind], dto->length);
	return err;
}

/* How a receive ended; a positive error if it did not end well. */
static inline int receive(struct dofi_ep *ep, struct dofi_dto *dto,
			  const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived)
{
	int err;

	if (__builtin_expect(entry->len && !dto->n_iov, 0))
		return FI_ETRUNC;	/* a transport may give a byte of room */
	dto->length = entry->len;
	if (__builtin_expect(dto->flags & DOFI_DTO_SHARED, 0))
		return dofi_dto_received(ep, dto);
	if (__builtin_expect(arrived != NULL, 0)) {
		err = receive_more(ep, dto, arrived);
		if (err)
			return err;
	}
	dofi_tally_add(&ep->receipts[dto->kind], dto->length);
	return 0;
}

/* A part of the operation is done; others are to come, or to be submitted. */
static __attribute__((noinline)) void part_done(struct dofi_ep *ep, struct dofi_dto *dto)
{
	dto->parts--;
	dofi_dto_pump(ep);
}

static inline void complete(const struct fi_cq_data_entry *entry, int err,
			    const struct dofi_arrived *arrived, struct dofi_sink *sink)
{
	uintptr_t context = (uintptr_t)entry->op_context;
	struct dofi_dto *dto = (struct dofi_dto *)(context & ~(uintptr_t)(DOFI_DTO_GENERATIONS - 1));
	struct dofi_ep *ep;

	if (!dto)
		return;
	ep = dto->ep;
	pthread_mutex_lock(&ep->lock);
	if (dto->at_fabric && dofi_dto_context(dto) == entry->op_context) {
		if (__builtin_expect(dto->kind == DOFI_DTO_FRAME, 0)) {
			dofi_inbox_frame(ep, dto, entry->len, err, sink);
			goto unlock;
		}
		if (dto->kind == DOFI_DTO_RECV && !err)
			err = receive(ep, dto, entry, arrived);
		if (__builtin_expect(dto->parts && !err, 0))
			part_done(ep, dto);
		else
			end(ep, dto, err, sink);
	}
unlock:
	pthread_mutex_unlock(&ep->lock);
}

void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	complete(entry, err, NULL, sink);
}

void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived,
			  struct dofi_sink *sink)
{
	complete(entry, 0, arrived, sink);
}
