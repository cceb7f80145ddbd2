/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path, top to bottom: how a plain operation is posted, and how a polling thread gets its
 * event. Each step may leave it for the slow path: ep_post.c, ep_dto.c,
 * obj/evd/evd_queue.c. DOFI_UNCHECKED_LOCKS: clang cannot follow sole_try(), which returns the CQ
 * that it has locked.
 */

#include "obj/ep/fast.h"

#include "obj/ep/ep_dto.h"
#include "obj/ep/ep_post.h"
#include "obj/evd/evd.h"

#include <rdma/fi_eq.h>

/* Posting */

static DOFI_INTO_CALLER struct dofi_queue *queue_of(struct dofi_ep *ep, uint8_t kind)
{
	return kind == DOFI_DTO_RECV ? &ep->rq : &ep->sq;
}

/* The LMR of @context if plain operations may use it. */
static __attribute__((noinline)) const struct dofi_lmr *change_lmr(struct dofi_ep *ep, uint8_t kind,
								   DAT_LMR_CONTEXT context)
{
	const bool receives = kind == DOFI_DTO_RECV;
	const DAT_MEM_PRIV_FLAGS least = receives ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG :
						    DAT_MEM_PRIV_LOCAL_READ_FLAG;
	const struct dofi_lmr *lmr = (receives ? ep->fast.recv != NULL : ep->fast.send != NULL) ?
					     dofi_lmr_at(context) : NULL;

	if (!lmr || !(lmr->priv & least))
		return &dofi_lmr_none;
	return queue_of(ep, kind)->lmr = lmr;
}

/* Whether RDMA between @s, in @lmr, and @remote need not wait for operations in flight. */
static DOFI_INTO_CALLER bool is_plain_rdma(const struct dofi_ep *ep, uint8_t kind,
					   const struct dofi_lmr *lmr, const DAT_LMR_TRIPLET *s,
					   const DAT_RMR_TRIPLET *remote)
{
	const uint64_t length = kind == DOFI_DTO_WRITE ? s->segment_length : remote->segment_length;

	if (ep->atomics || !dofi_range_exists(dofi_remote_address(remote), length))
		return false;
	if (kind == DOFI_DTO_WRITE)
		return ep->xport->write && length <= remote->segment_length;
	return ep->xport->read && ep->watched && ep->reads < ep->attr.max_rdma_read_out &&
	       lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG && length && length <= s->segment_length;
}

/*
 * The LMR of @s, or NULL if the operation is not plain or the connection is not in a state for the
 * fast path; with @no_change also if the LMR is not the former operation's.
 */
static DOFI_INTO_CALLER const struct dofi_lmr *fast_lmr(struct dofi_ep *ep, uint8_t kind,
							const DAT_LMR_TRIPLET *s,
							const DAT_RMR_TRIPLET *remote,
							bool no_change)
{
	const struct dofi_queue *q = queue_of(ep, kind);
	const struct dofi_lmr *lmr = q->lmr;

	if (dofi_queue_may_be_full(q))
		return NULL;
	if (__builtin_expect(!dofi_lmr_is(lmr, s->lmr_context), 0)) {
		if (no_change)
			return NULL;
		lmr = change_lmr(ep, kind, s->lmr_context);
	}
	/* a length of 0, less 1, is too long */
	if (dofi_lmr_pz(lmr) != ep->pz ||
	    !dofi_lmr_covers(lmr, s->virtual_address, s->segment_length) ||
	    s->segment_length - 1 >= dofi_post_longest(ep, kind) ||
	    (remote && !is_plain_rdma(ep, kind, lmr, s, remote)))
		return NULL;
	return lmr;
}

/* Sets the fields of the slot @dto that a plain operation needs, and hands it to the fabric. */
static DOFI_INTO_CALLER ssize_t fast_submit(struct dofi_ep *ep, uint8_t kind,
					    const struct dofi_lmr *lmr, const DAT_LMR_TRIPLET *s,
					    const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags, struct dofi_dto *dto)
{
	void *memory = dofi_lmr_memory(lmr, s->virtual_address);
	void *context = dofi_dto_renew_plain(dto);

	dofi_dto_begin(dto, queue_of(ep, kind)->tail);
	dto->kind = kind;
	dto->at_fabric = true;
	dto->flags = (uint8_t)flags;
	dto->n_iov = 0;
	dto->cookie = cookie.as_64;
	dto->length = kind == DOFI_DTO_READ ? remote->segment_length : s->segment_length;
	dto->memory_lmr = s->lmr_context;
	if (kind == DOFI_DTO_RECV)
		dto->memory = memory;
	if (remote) {
		dto->plain_addr = dofi_remote_address(remote);
		dto->plain_key = remote->rmr_context;
	}
	if (kind == DOFI_DTO_SEND)
		return ep->fast.send(ep->fast.to, memory, dto->length, lmr->desc, 0, context);
	if (kind == DOFI_DTO_RECV)
		return ep->fast.recv(ep->fast.to, memory, dto->length, lmr->desc, 0, context);
	return (kind == DOFI_DTO_WRITE ? ep->xport->write : ep->xport->read)(
		ep, memory, dto->length, lmr->desc, dofi_remote_address(remote),
		dofi_mr_fabric_key(remote->rmr_context, ep->peer_secret), context);
}

/* The plain operation @dto is at the fabric. */
static DOFI_INTO_CALLER void fast_posted(struct dofi_ep *ep, uint8_t kind,
					  const struct dofi_dto *dto)
{
	struct dofi_queue *q = queue_of(ep, kind);

	dofi_queue_push(q);
	dofi_queue_advance(q);
	if (kind == DOFI_DTO_READ)
		ep->reads++;
	dofi_tally_add(&ep->posted[kind], dto->length);
	/* a program that posts receives is going to poll for them */
	if (kind != DOFI_DTO_RECV)
		dofi_cq_posted(ep->cq);
}

/* Writes the event of @dto, a plain send that has ended well, to the queue of its EVD. */
static DOFI_INTO_CALLER void queue_send_event(struct dofi_ep *ep, const struct dofi_dto *dto)
{
	struct dofi_unread *unread = ep->sq.unread;
	struct dofi_evd *evd = ep->request_evd;
	struct dofi_event *event;

	if (__builtin_expect(!evd, 0))
		return;
	dofi_mutex_lock(&evd->lock);
	event = dofi_evd_reserve(evd);
	if (__builtin_expect(event != NULL, 1)) {
		dofi_unread_add(unread);
		dofi_queue_narrow(&ep->sq);
		event->unread = unread;
		event->generation = dofi_unread_generation(unread);
		event->number = DAT_DTO_COMPLETION_EVENT;
		dofi_dto_event(&event->data.dto_completion_event_data, ep, dto, DOFI_DTO_SEND,
			       DAT_DTO_SUCCESS, dto->length);
		dofi_count(&evd->count_of.completion);
		dofi_evd_append(evd, true);
	}
	dofi_mutex_unlock(&evd->lock);
	if (__builtin_expect(!event, 0))
		dofi_evd_lost(evd);
}

/*
 * The plain request @dto is done, and no completion comes. A send that finds the queue empty takes
 * no slot.
 */
static DOFI_INTO_CALLER void fast_done(struct dofi_ep *ep, struct dofi_dto *dto)
	DOFI_NEEDS(ep->lock)
{
	if (__builtin_expect(dto->kind == DOFI_DTO_SEND && !dto->flags &&
			     dofi_queue_empty(&ep->sq), 1)) {
		dofi_tally_add(&ep->posted[DOFI_DTO_SEND], dto->length);
		dofi_cq_posted(ep->cq);
		dto->at_fabric = false;
		queue_send_event(ep, dto);
	} else {
		fast_posted(ep, dto->kind, dto);
		dofi_dto_end(ep, dto, 0, NULL);
	}
}

/* Returns false if the operation is not plain, or the fabric refused it: then it is not queued. */
static DOFI_INTO_CALLER bool fast_post(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
					const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags) DOFI_NEEDS(ep->lock)
{
	const struct dofi_lmr *lmr = fast_lmr(ep, kind, s, remote, false);
	struct dofi_queue *q = queue_of(ep, kind);
	struct dofi_dto *dto;
	ssize_t ret;

	if (!lmr)
		return false;
	dto = dofi_queue_at(q, q->tail);
	ret = fast_submit(ep, kind, lmr, s, remote, cookie, flags, dto);
	if (__builtin_expect(!ret, 1))
		fast_posted(ep, kind, dto);
	else if (ret == DOFI_DONE)
		fast_done(ep, dto);
	else
		return false;
	return true;
}

/* Whether a post is of one segment, without flags. One test of both is cheaper than two. */
static DOFI_INTO_CALLER bool of_one(DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				    DAT_COMPLETION_FLAGS flags)
{
	return !((n ^ 1) | (DAT_COUNT)flags) && iov;
}

/* Whether a plain operation of @ep may have @flags: the peer is sent none, and no fence waits. */
static bool flags_are_plain(struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags) DOFI_NEEDS(ep->lock)
{
	return !flags || (!(flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) && !ep->reads &&
			  dofi_dto_request_flags(ep, flags));
}

/*
 * Posts a request of one segment: continues post_one() after lock contention, a change of the LMR,
 * or for an operation that is not plain. DOFI_UNCHECKED_LOCKS: the EP lock is held if @locked.
 */
static __attribute__((noinline)) DAT_RETURN
post_otherwise(struct dofi_ep *ep, uint8_t kind, const DAT_LMR_TRIPLET *s,
	       const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
	       bool locked) DOFI_UNCHECKED_LOCKS
{
	bool posted;

	if (!locked)
		dofi_mutex_lock(&ep->lock);
	posted = flags_are_plain(ep, flags) && fast_post(ep, kind, s, remote, cookie, flags);
	dofi_mutex_unlock(&ep->lock);
	return posted ? DAT_SUCCESS : dofi_ep_post_any(ep, kind, 1, s, remote, cookie, flags);
}

/* Continues post_one() after the fabric returned @ret: the request is done, or is posted anew. */
static __attribute__((noinline)) DAT_RETURN post_answered(struct dofi_ep *ep, struct dofi_dto *dto,
							  const DAT_LMR_TRIPLET *s,
							  const DAT_RMR_TRIPLET *remote,
							  ssize_t ret) DOFI_DROPS(ep->lock)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = dto->cookie };
	const uint8_t kind = dto->kind;

	if (__builtin_expect(ret == DOFI_DONE, 1)) {
		fast_done(ep, dto);
		dofi_mutex_unlock(&ep->lock);
		return DAT_SUCCESS;
	}
	dofi_mutex_unlock(&ep->lock);
	return dofi_ep_post_any(ep, kind, 1, s, remote, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

/*
 * Posts a request of one segment without flags. It calls only the fabric, and after that needs only
 * @ep, the slot and the segments, so that it saves few registers.
 */
static DOFI_INTO_CALLER DAT_RETURN post_one(struct dofi_ep *ep, uint8_t kind,
					    const DAT_LMR_TRIPLET *s, const DAT_RMR_TRIPLET *remote,
					    DAT_DTO_COOKIE cookie) DOFI_UNCHECKED_LOCKS
{
	const struct dofi_lmr *lmr;
	struct dofi_dto *dto;
	ssize_t ret;

	if (__builtin_expect(!dofi_mutex_try(&ep->lock), 0))
		return post_otherwise(ep, kind, s, remote, cookie, DAT_COMPLETION_DEFAULT_FLAG,
				      false);
	lmr = fast_lmr(ep, kind, s, remote, true);
	if (__builtin_expect(!lmr, 0))
		return post_otherwise(ep, kind, s, remote, cookie, DAT_COMPLETION_DEFAULT_FLAG,
				      true);
	dto = dofi_queue_at(&ep->sq, ep->sq.tail);
	ret = fast_submit(ep, kind, lmr, s, remote, cookie, DAT_COMPLETION_DEFAULT_FLAG, dto);
	if (__builtin_expect(ret, 0))
		return post_answered(ep, dto, s, remote, ret);
	fast_posted(ep, kind, dto);
	dofi_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}

/* A request with flags, of several segments, or of an EP that is not among the first. */
static DAT_RETURN post_any(DAT_EP_HANDLE ep_handle, uint8_t kind, DAT_COUNT n,
			   const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			   const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (kind != DOFI_DTO_SEND && !remote)
		return DOFI_BAD_ARG(5);
	return n == 1 && iov ? post_otherwise(ep, kind, iov, remote, cookie, flags, false) :
			       dofi_ep_post_any(ep, kind, n, iov, remote, cookie, flags);
}

/* post_any() with the arguments of its caller, in their registers. */
static __attribute__((noinline)) DAT_RETURN post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
						      DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						      DAT_COMPLETION_FLAGS flags)
{
	return post_any(ep_handle, DOFI_DTO_SEND, n, iov, cookie, NULL, flags);
}

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (__builtin_expect(
		    !of_one(n, iov, flags) ||
		    !dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep_handle), 0))
		return post_send(ep_handle, n, iov, cookie, flags);
	return post_one(ep_handle, DOFI_DTO_SEND, iov, NULL, cookie);
}

static DOFI_INTO_CALLER DAT_RETURN post_rdma(DAT_EP_HANDLE ep_handle, uint8_t kind, DAT_COUNT n,
					     const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     const DAT_RMR_TRIPLET *remote,
					     DAT_COMPLETION_FLAGS flags)
{
	if (__builtin_expect(!dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep_handle) ||
			     !of_one(n, iov, flags) || !remote, 0))
		return post_any(ep_handle, kind, n, iov, cookie, remote, flags);
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

/* Continues dofi_ep_post_recv() after the first receive of @cq. @ep is entered. */
static __attribute__((noinline)) void first_posted(struct dofi_ep *ep, struct dofi_cq *cq,
						   struct dofi_shard *shard)
{
	dofi_cq_kick(cq, shard);
	dofi_calls_end(&ep->obj.calls);
}

DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dofi_ep *ep = ep_handle;
	struct dofi_shard *shard = NULL;
	struct dofi_cq *first = NULL;
	bool posted;

	if (__builtin_expect(!of_one(n, iov, flags) ||
			     !dofi_obj_among_first(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ep), 0))
		return dofi_ep_recv_any(ep, n, iov, cookie, flags);
	/* constants from here on: n and flags need no registers */
	dofi_mutex_lock(&ep->lock);
	posted = fast_post(ep, DOFI_DTO_RECV, iov, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	if (__builtin_expect(posted && dofi_queue_used(&ep->rq) == 1, 0)) {
		first = ep->cq;
		shard = ep->shard;
		dofi_calls_begin(&ep->obj.calls);
	}
	dofi_mutex_unlock(&ep->lock);
	if (__builtin_expect(first != NULL, 0))
		first_posted(ep, first, shard);
	if (__builtin_expect(posted, 1))
		return DAT_SUCCESS;
	return dofi_ep_recv_any(ep, 1, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	const struct dofi_post p = {
		.n = n, .iov = iov, .cookie = cookie, .flags = flags, .immed = context,
	};

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!invalidate)
		return dofi_ep_post_send(ep_handle, n, iov, cookie, flags);
	if (!ep->obj.ia->fabric.cq_data)
		return DOFI_NOT_SUPPORTED;
	return dofi_ep_post_request(ep, DOFI_DTO_SEND_INVALIDATE, &p);
}
#endif

/* Dequeue: a poll of the CQ that alone feeds an EVD */

/* Reads a batch, unless @n is the result of a read that found none, and delivers to each EVD. */
static __attribute__((noinline)) void poll_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
	DOFI_DROPS(cq->lock)
{
	if (n > 0) {
		dofi_cq_lock_access(cq);
		n = dofi_cq_read(cq);
		dofi_cq_unlock_access(cq);
	}
	dofi_cq_go_on(cq, n, sink);
}

static __attribute__((noinline)) ssize_t next_serial(struct dofi_cq *cq, struct fid_cq *fid)
	DOFI_NEEDS(cq->lock)
{
	ssize_t n;

	dofi_cq_lock_access(cq);
	n = dofi_cq_next(cq, fid);
	dofi_cq_unlock_access(cq);
	return n;
}

/*
 * Polls @cq, the only one of @evd. Called with its lock held, and releases it. Returns true if
 * @event was written; if not, an event may be queued now. DOFI_UNCHECKED_LOCKS: the access lock is
 * taken for a serial CQ alone.
 */
static DOFI_INTO_CALLER bool poll_sole(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq)
	DOFI_DROPS(cq->lock) DOFI_UNCHECKED_LOCKS
{
	struct fid_cq *fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);
	struct dofi_sink sink = { .evd = evd, .event = event };
	dofi_polled *poll;
	ssize_t n = 1;

	if (__builtin_expect(fid != NULL, 1)) {
		n = __builtin_expect(cq->serial, 0) ? next_serial(cq, fid) : dofi_cq_next(cq, fid);
		/* the completion may be another EVD's */
		if (n == 1)
			cq->completed(cq->entry, 0, &sink);
	} else {
		poll = atomic_load_explicit(&cq->programs_poll, memory_order_relaxed);
		if (poll && poll(cq, &sink))
			n = -FI_EAGAIN;
	}
	if (__builtin_expect(!sink.evd, 1)) {
		dofi_cq_leave(cq);
		return true;
	}
	if (__builtin_expect(n != -FI_EAGAIN || dofi_cq_wants_sweep(cq), 0)) {
		poll_on(cq, n, &sink);
		return !sink.evd;
	}
	dofi_cq_leave(cq);
	return false;
}

/*
 * Locks and returns evd->sole_cq; NULL if there is none, events are queued, or its lock is held.
 */
static DOFI_INTO_CALLER struct dofi_cq *sole_try(struct dofi_evd *evd) DOFI_UNCHECKED_LOCKS
{
	struct dofi_cq *cq = atomic_load_explicit(&evd->sole_cq, memory_order_relaxed);

	return cq && !dofi_evd_pending(evd) && dofi_cq_try(cq) ? cq : NULL;
}

bool dofi_evd_poll(struct dofi_evd *evd, DAT_EVENT *event) DOFI_UNCHECKED_LOCKS
{
	struct dofi_cq *cq = sole_try(evd);

	return cq && poll_sole(evd, event, cq);
}

/* Continues dofi_evd_dequeue(), which saves no registers where it is not needed. */
static __attribute__((noinline)) DAT_RETURN dequeue_sole(struct dofi_evd *evd, DAT_EVENT *event,
							 struct dofi_cq *cq) DOFI_DROPS(cq->lock)
{
	if (__builtin_expect(poll_sole(evd, event, cq), 1)) {
		dofi_count(&evd->count_of.straight);
		return DAT_SUCCESS;
	}
	dofi_count(&evd->count_of.poll);
	return dofi_evd_dequeue_queued(evd, event);
}

DAT_RETURN dofi_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event) DOFI_UNCHECKED_LOCKS
{
	struct dofi_cq *cq;

	if (__builtin_expect(
		    !event ||
		    !dofi_obj_among_first(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, evd_handle), 0))
		return dofi_evd_dequeue_feeds(evd_handle, event);
	cq = sole_try(evd_handle);
	if (__builtin_expect(!cq, 0))
		return dofi_evd_pending(evd_handle) ? dofi_evd_take_queued(evd_handle, event) :
						      dofi_evd_dequeue_feeds(evd_handle, event);
	return dequeue_sole(evd_handle, event, cq);
}
