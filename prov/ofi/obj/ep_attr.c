/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an endpoint is made of: its PZ, its EVDs, its attributes and the queues of these sizes. */

#include "obj/ep_attr.h"

#include "obj/caps.h"
#include "obj/evd.h"

#include <errno.h>
#include <string.h>

/* Watermarks */

static bool is_past(uint32_t held, DAT_COUNT watermark)
{
	return watermark != DAT_WATERMARK_INFINITE && held > (uint32_t)watermark;
}

static void depth_limit(struct dofi_queue *q, DAT_COUNT watermark)
{
	if (watermark != DAT_WATERMARK_INFINITE && q->depth > (uint32_t)watermark)
		q->depth = watermark;
}

/* DAT has no event for the soft one: it is the reason of an EP's error. */
void dofi_dto_watermarks(struct dofi_ep *ep)
{
	const bool hard = ep->state == DAT_EP_STATE_CONNECTED;
	uint32_t held = dofi_queue_used(&ep->rq);

	dofi_ep_assert_locked(ep);
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

/* Parts */

static void evd_get(struct dofi_evd *evd)
{
	if (evd)
		dofi_evd_keep(evd);
}

static void evd_put(struct dofi_evd *evd)
{
	if (evd)
		dofi_evd_release(evd);
}

/*
 * Whether an EP of @ia may deliver to @evd. DAT requires an EVD of the EP's IA. An IA that is not
 * strict also accepts an EVD of another open instance of the IA, as OFED's provider does.
 */
static bool evd_suits(const struct dofi_ia *ia, const struct dofi_evd *evd)
{
	return evd->obj.ia == ia ||
	       (!ia->strict &&
		!strcmp(evd->obj.provider->device_name, ia->obj.provider->device_name));
}

bool dofi_ep_evd_use(struct dofi_ia *ia, const char *name, DAT_EVD_HANDLE handle,
		     DAT_EVD_FLAGS flag, struct dofi_evd **evd)
{
	struct dofi_evd *next DOFI_CALL = dofi_evd_enter(handle);

	if (handle && (!next || !evd_suits(ia, next) || !dofi_evd_keep(next)))
		return DOFI_REFUSED(false, DOFI_EP, "%s %p is no live EVD of the EP's IA", name,
				    handle);
	if (next && !(next->flags & flag)) {
		dofi_log(DOFI_WARN, DOFI_EP, "%s %p has the flags %#x, without %#x", name, handle,
			 next->flags, flag);
		dofi_evd_release(next);
		return false;
	}
	evd_put(*evd);
	*evd = next;
	return true;
}

static void parts_get(const struct dofi_ep_parts *parts)
{
	if (parts->pz)
		dofi_obj_get(&parts->pz->obj);
	evd_get(parts->recv_evd);
	evd_get(parts->request_evd);
	evd_get(parts->connect_evd);
	if (parts->srq)
		dofi_obj_get(&parts->srq->obj);
}

void dofi_ep_parts_put(const struct dofi_ep_parts *parts)
{
	evd_put(parts->recv_evd);
	evd_put(parts->request_evd);
	evd_put(parts->connect_evd);
	if (parts->srq)
		dofi_obj_put(&parts->srq->obj);
	if (parts->pz)
		dofi_obj_put(&parts->pz->obj);
}

/* The EVDs of completions begin or end to poll @cq, which may be NULL. */
static void feeds(const struct dofi_ep_parts *parts, struct dofi_cq *cq,
		  void (*change)(struct dofi_evd *evd, struct dofi_cq *cq))
{
	if (!cq)
		return;
	if (parts->recv_evd)
		change(parts->recv_evd, cq);
	if (parts->request_evd)
		change(parts->request_evd, cq);
}

static struct dofi_ep_parts parts_of(const struct dofi_ep *ep)
{
	return (struct dofi_ep_parts){
		.pz = ep->pz,
		.recv_evd = ep->recv_evd,
		.request_evd = ep->request_evd,
		.connect_evd = ep->connect_evd,
		.srq = ep->srq,
		.attr = ep->attr,
	};
}

static uint32_t largest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a > b ? a : b;

	return m > c ? m : c;
}

struct queues {
	struct dofi_queue sq, rq;
};

/* Frees what dofi_queue_renew() made in @next. */
static void queue_discard(struct dofi_queue *next, const struct dofi_queue *q)
{
	if (next->slots != q->slots)
		dofi_queue_fini(next);
}

/* Makes queues of the sizes in @a, to be put into @ep or discarded. */
static int queues_make(struct dofi_ep *ep, const DAT_EP_ATTR *a, struct queues *next)
{
	uint32_t iov = largest(a->max_request_iov, a->max_rdma_read_iov, a->max_rdma_write_iov);
	int ret;

	ret = dofi_queue_renew(&next->sq, &ep->sq, ep, a->max_request_dtos, iov);
	if (ret)
		return ret;
	ret = dofi_queue_renew(&next->rq, &ep->rq, ep, a->max_recv_dtos, a->max_recv_iov);
	if (ret)
		queue_discard(&next->sq, &ep->sq);
	return ret;
}

/* EVD_THRESHOLD is another name for the default. */
static DAT_COMPLETION_FLAGS notice_of(DAT_COMPLETION_FLAGS flags)
{
	return flags == DAT_COMPLETION_EVD_THRESHOLD_FLAG ? DAT_COMPLETION_DEFAULT_FLAG : flags;
}

#define STREAMS 3

static bool streams_swap(const struct dofi_ep_parts *old, const struct dofi_ep_parts *parts)
{
	const struct dofi_stream from[STREAMS] = {
		{ old->recv_evd, notice_of(old->attr.recv_completion_flags) },
		{ old->request_evd, notice_of(old->attr.request_completion_flags) },
		{ old->connect_evd, DAT_COMPLETION_DEFAULT_FLAG },
	}, to[STREAMS] = {
		{ parts->recv_evd, notice_of(parts->attr.recv_completion_flags) },
		{ parts->request_evd, notice_of(parts->attr.request_completion_flags) },
		{ parts->connect_evd, DAT_COMPLETION_DEFAULT_FLAG },
	};

	return dofi_evd_streams_swap(from, to, STREAMS);
}

/* Where operations of @ep complete if its PZ is @pz. */
static struct dofi_cq *cq_with(const struct dofi_ep *ep, struct dofi_pz *pz)
{
	if (pz && pz == ep->pz)
		return ep->cq;
	return pz ? &pz->domain.cq : NULL;
}

void dofi_ep_set_cq(struct dofi_ep *ep, struct dofi_cq *cq)
{
	const struct dofi_ep_parts parts = parts_of(ep);

	dofi_ep_assert_locked(ep);
	if (cq == ep->cq)
		return;
	feeds(&parts, ep->cq, dofi_evd_feed_put);
	feeds(&parts, cq, dofi_evd_feed_get);
	if (ep->graceful) {
		dofi_cq_sleep_end(ep->cq);
		dofi_cq_sleep_begin(cq);
	}
	ep->cq = cq;
}

void dofi_ep_set_second_cq(struct dofi_ep *ep, struct dofi_cq *cq)
{
	const struct dofi_ep_parts parts = parts_of(ep);

	dofi_ep_assert_locked(ep);
	feeds(&parts, ep->second_cq, dofi_evd_feed_put);
	feeds(&parts, cq, dofi_evd_feed_get);
	ep->second_cq = cq;
}

int dofi_ep_parts_set(struct dofi_ep *ep, const struct dofi_ep_parts *parts)
{
	const struct dofi_ep_parts old = parts_of(ep);
	struct dofi_cq *cq = cq_with(ep, parts->pz);
	struct queues next;
	int ret = queues_make(ep, &parts->attr, &next);

	dofi_ep_assert_locked(ep);
	if (ret)
		return DOFI_REFUSED(ret, DOFI_EP, "no memory for queues of %d requests and %d "
				    "receives", parts->attr.max_request_dtos,
				    parts->attr.max_recv_dtos);
	if (!streams_swap(&old, parts)) {
		queue_discard(&next.sq, &ep->sq);
		queue_discard(&next.rq, &ep->rq);
		return -EINVAL;
	}
	dofi_queue_replace(&ep->sq, &next.sq);
	dofi_queue_replace(&ep->rq, &next.rq);
	/* what stays is never unused in between; and an EVD can poll few CQs */
	parts_get(parts);
	feeds(&old, ep->cq, dofi_evd_feed_put);
	feeds(parts, cq, dofi_evd_feed_get);
	dofi_ep_parts_put(&old);
	if (old.pz && old.pz != parts->pz)
		dofi_queue_change_pz(&ep->rq, old.pz->id, parts->pz->id);
	ep->pz = parts->pz;
	ep->cq = cq;
	ep->recv_evd = parts->recv_evd;
	ep->request_evd = parts->request_evd;
	ep->moved |= ep->connect_evd && ep->connect_evd != parts->connect_evd;
	ep->connect_evd = parts->connect_evd;
	ep->srq = parts->srq;
	ep->attr = parts->attr;
	dofi_dto_watermarks(ep);
	return 0;
}

void dofi_ep_parts_drop(struct dofi_ep *ep)
{
	static const struct dofi_ep_parts none;
	const struct dofi_ep_parts parts = parts_of(ep);

	feeds(&parts, ep->cq, dofi_evd_feed_put);
	streams_swap(&parts, &none);
	dofi_ep_parts_put(&parts);
	dofi_queue_fini(&ep->sq);
	dofi_queue_fini(&ep->rq);
}

/* Modifying */

/* A modification: the row at hand, and the parts that the EP will have. */
struct change {
	const struct dofi_ep *ep;
	const struct dofi_cap *row;
	const DAT_EP_PARAM *wanted;
	struct dofi_ep_parts parts;
};

/* Puts the wanted value of the row into the parts. Returns false when it cannot be had. */
typedef bool take_fn(struct change *c);

static bool take_pz(struct change *c)
{
	struct dofi_pz *pz = dofi_pz_use(c->wanted->pz_handle, c->ep->obj.ia);

	if (!pz)
		return DOFI_REFUSED(false, DOFI_EP, "pz_handle %p is no live PZ of the EP's IA",
				    c->wanted->pz_handle);
	if (c->parts.pz)
		dofi_obj_put(&c->parts.pz->obj);
	c->parts.pz = pz;
	if (c->parts.srq && c->parts.srq->pz != pz)
		return DOFI_REFUSED(false, DOFI_EP, "pz_handle %p is not the PZ of the EP's SRQ",
				    c->wanted->pz_handle);
	return true;
}

static bool take_recv_evd(struct change *c)
{
	return dofi_ep_evd_use(c->ep->obj.ia, c->row->name, c->wanted->recv_evd_handle,
			       DAT_EVD_DTO_FLAG, &c->parts.recv_evd);
}

static bool take_request_evd(struct change *c)
{
	return dofi_ep_evd_use(c->ep->obj.ia, c->row->name, c->wanted->request_evd_handle,
			       DAT_EVD_DTO_FLAG, &c->parts.request_evd);
}

static bool take_connect_evd(struct change *c)
{
	return dofi_ep_evd_use(c->ep->obj.ia, c->row->name, c->wanted->connect_evd_handle,
			       DAT_EVD_CONNECTION_FLAG, &c->parts.connect_evd);
}

static bool take_attr(struct change *c)
{
	return dofi_caps_ep_take(c->ep->obj.ia, c->row, &c->wanted->ep_attr, &c->parts.attr);
}

/* Whether the operations that are posted fit into the wanted number. */
static bool holds(const struct change *c, const struct dofi_queue *q, DAT_COUNT wanted)
{
	const uint32_t used = dofi_queue_used(q);

	return used <= (uint32_t)wanted ||
	       DOFI_REFUSED(false, DOFI_EP, "%s is %d; permitted: at least %u, which are posted",
			    c->row->name, wanted, used);
}

static bool take_recv_dtos(struct change *c)
{
	return take_attr(c) && holds(c, &c->ep->rq, c->parts.attr.max_recv_dtos);
}

static bool take_request_dtos(struct change *c)
{
	return take_attr(c) && holds(c, &c->ep->sq, c->parts.attr.max_request_dtos);
}

/* The soft watermark of what an endpoint takes from its SRQ, which is at most the SRQ's depth. */
static bool take_srq_mark(struct change *c)
{
	DAT_COUNT mark = c->wanted->ep_attr.srq_soft_hw;

	c->parts.attr.srq_soft_hw = mark;
	/* OFED's provider ignores the member, which is part of DAT_EP_FIELD_EP_ATTR_ALL */
	if (!c->parts.srq)
		return !c->ep->obj.ia->strict ||
		       DOFI_REFUSED(false, DOFI_EP, "%s: the EP has no SRQ; DAT_OFI_STRICT=0 "
				    "ignores that", c->row->name);
	if (mark == DAT_HW_DEFAULT || (mark > 0 && mark <= dofi_srq_depth(c->parts.srq)))
		return true;
	return DOFI_REFUSED(false, DOFI_EP, "%s is %d; permitted: 1 to %d, or DAT_HW_DEFAULT",
			    c->row->name, mark, dofi_srq_depth(c->parts.srq));
}

/* Rows that are not just attributes with a limit. */
static const struct {
	DAT_EP_PARAM_MASK field;
	take_fn *take;
} takes[] = {
	{ DAT_EP_FIELD_PZ_HANDLE, take_pz },
	{ DAT_EP_FIELD_RECV_EVD_HANDLE, take_recv_evd },
	{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, take_request_evd },
	{ DAT_EP_FIELD_CONNECT_EVD_HANDLE, take_connect_evd },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, take_recv_dtos },
	{ DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, take_request_dtos },
	{ DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, take_srq_mark },
};

static take_fn *take_of(const struct dofi_cap *row)
{
	size_t i;

	for (i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
		if (takes[i].field == row->field)
			return takes[i].take;
	return take_attr;
}

/* Takes the lowest bit out of @mask, and returns its row; NULL when there is no such row. */
static const struct dofi_cap *row_next(DAT_EP_PARAM_MASK *mask)
{
	const DAT_EP_PARAM_MASK field = *mask & -*mask;

	*mask &= ~field;
	return dofi_caps_row(DOFI_CAP_EP, field);
}

/* Whether all of @mask may be modified, in some state. */
static bool modifiable(DAT_EP_PARAM_MASK mask)
{
	while (mask) {
		const struct dofi_cap *row = row_next(&mask);

		if (!row || !row->when)
			return DOFI_REFUSED(false, DOFI_EP, "dat_ep_modify: %s cannot be changed",
					    row ? row->name : "an unknown bit of the mask");
	}
	return true;
}

static bool modifiable_now(const struct dofi_ep *ep, DAT_EP_PARAM_MASK mask) DOFI_NEEDS(ep->lock)
{
	while (mask) {
		const struct dofi_cap *row = row_next(&mask);

		if (!(row->when->bits & (1u << ep->state)))
			return DOFI_REFUSED(false, DOFI_EP, "dat_ep_modify: %s in the state %s; "
					    "permitted: %s", row->name,
					    dofi_ep_state_row(ep->state)->name, row->when->words);
		if (row->no_receives && !dofi_queue_empty(&ep->rq))
			return DOFI_REFUSED(false, DOFI_EP, "dat_ep_modify: %s while receives are "
					    "posted", row->name);
	}
	return true;
}

/* Takes all that @mask names into @c, or fails. */
static bool take_all(struct change *c, DAT_EP_PARAM_MASK mask)
{
	while (mask) {
		c->row = row_next(&mask);
		if (!take_of(c->row)(c))
			return false;
	}
	return true;
}

static DAT_RETURN parts_change(struct dofi_ep *ep, const struct dofi_ep_parts *parts)
	DOFI_NEEDS(ep->lock)
{
	switch (dofi_ep_parts_set(ep, parts)) {
	case 0:
		return DAT_SUCCESS;
	case -EINVAL:
		return DOFI_BAD_ARG(3);
	default:
		return DOFI_NO_RESOURCE(MEMORY);
	}
}

/* Takes all that @mask names from @wanted, or nothing. */
static DAT_RETURN modify(struct dofi_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *wanted)
	DOFI_NEEDS(ep->lock)
{
	struct change c = { .ep = ep, .wanted = wanted, .parts = parts_of(ep) };
	DAT_RETURN ret = DOFI_BAD_ARG(3);

	parts_get(&c.parts);
	if (take_all(&c, mask)) {
		if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW && c.parts.srq)
			ep->soft_watermark = c.parts.attr.srq_soft_hw;
		ret = parts_change(ep, &c.parts);
	}
	dofi_ep_parts_put(&c.parts);
	return ret;
}

DAT_RETURN dofi_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(EP), DOFI_EP, "dat_ep_modify: %p is no live EP",
				    ep_handle);
	if (!modifiable(mask))
		return DOFI_BAD_ARG(2);
	dofi_ep_lock(ep);
	if (!modifiable_now(ep, mask))
		ret = dofi_ep_bad_state(ep);
	else if (mask && !param)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_EP, "dat_ep_modify: no ep_param");
	else if (mask)
		ret = modify(ep, mask, param);
	dofi_ep_unlock(ep);
	return ret;
}

/* Receives */

DAT_RETURN dofi_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_COUNT held;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_ep_lock(ep);
	held = dofi_queue_used(&ep->rq);
	dofi_ep_unlock(ep);
	if (buffers)
		*buffers = held;
	/* an EP's own receives complete in the order in which they were posted */
	if (span)
		*span = held;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (soft < 0 && soft != DAT_WATERMARK_INFINITE)
		return DOFI_BAD_ARG(2);
	if (hard < 0 && hard != DAT_WATERMARK_INFINITE)
		return DOFI_BAD_ARG(3);
	dofi_ep_lock(ep);
	ep->soft_watermark = soft;
	ep->hard_watermark = hard;
	dofi_dto_watermarks(ep);
	dofi_ep_unlock(ep);
	return DAT_SUCCESS;
}
