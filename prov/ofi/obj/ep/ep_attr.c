/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of an endpoint: its PZ, its EVDs, its attributes and the queues of these sizes. */

#include "obj/ep/ep_attr.h"

#include "obj/caps.h"
#include "obj/evd/evd.h"

#include <errno.h>
#include <string.h>

/* Watermarks */

static bool is_past(uint32_t held, DAT_COUNT watermark)
{
	return watermark != DAT_WATERMARK_INFINITE && held > (uint32_t)watermark;
}

/* DAT has no event for the soft one: it is the reason of an EP's error. */
void dofi_dto_watermarks(struct dofi_ep *ep)
{
	const bool hard = ep->state == DAT_EP_STATE_CONNECTED;
	uint32_t held = dofi_queue_used(&ep->rq);
	struct dofi_queue *rq = &ep->rq;

	dofi_mutex_assert_held(&ep->lock);
	if (is_past(held, ep->soft_watermark)) {
		ep->soft_watermark = DAT_WATERMARK_INFINITE;	/* once per arming */
		dofi_async_error(ep->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep,
				 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	if (hard && is_past(held, ep->hard_watermark))
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	dofi_queue_widen(rq);
	if (is_past(rq->soft_limit, ep->soft_watermark))
		rq->soft_limit = ep->soft_watermark;
	if (hard && is_past(rq->soft_limit, ep->hard_watermark))
		rq->soft_limit = ep->hard_watermark;
}

/* Parts */

static void evd_put(struct dofi_evd *evd)
{
	if (evd)
		dofi_evd_release(evd);
}

/*
 * DAT requires an EVD of the EP's IA. An IA that is not strict also accepts an EVD of another open
 * instance of the IA, as OFED's provider does.
 */
bool dofi_ep_evd_use(struct dofi_ia *ia, const char *name, DAT_EVD_HANDLE handle,
		     DAT_EVD_FLAGS flag, struct dofi_evd **evd)
{
	struct dofi_evd *next DOFI_CALL = dofi_evd_enter(handle);
	const bool suits = next && (next->obj.ia == ia ||
				    (!ia->strict && !strcmp(next->obj.provider->device_name,
							    ia->obj.provider->device_name)));

	if (handle && (!suits || !dofi_evd_keep(next)))
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
	struct dofi_evd *const evds[] = { parts->recv_evd, parts->request_evd, parts->connect_evd };
	size_t i;

	if (parts->pz)
		dofi_obj_get(&parts->pz->obj);
	for (i = 0; i < sizeof(evds) / sizeof(evds[0]); i++)
		if (evds[i])
			dofi_evd_keep(evds[i]);
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

#define STREAMS 3

static void streams_of(const struct dofi_ep_parts *parts, struct dofi_stream streams[STREAMS])
{
	int i;

	streams[0] = (struct dofi_stream){ parts->recv_evd, parts->attr.recv_completion_flags };
	streams[1] = (struct dofi_stream){ parts->request_evd,
					   parts->attr.request_completion_flags };
	streams[2] = (struct dofi_stream){ parts->connect_evd, DAT_COMPLETION_DEFAULT_FLAG };
	/* another name for the default */
	for (i = 0; i < STREAMS; i++)
		if (streams[i].notice == DAT_COMPLETION_EVD_THRESHOLD_FLAG)
			streams[i].notice = DAT_COMPLETION_DEFAULT_FLAG;
}

static bool streams_swap(const struct dofi_ep_parts *old, const struct dofi_ep_parts *parts)
{
	struct dofi_stream from[STREAMS], to[STREAMS];

	streams_of(old, from);
	streams_of(parts, to);
	return dofi_evd_streams_swap(from, to, STREAMS);
}

void dofi_ep_set_cq(struct dofi_ep *ep, struct dofi_cq *cq)
{
	const struct dofi_ep_parts parts = parts_of(ep);
	/*
	 * With a pool of EPs without a peer, a program would read the CQ of their PZ at each poll,
	 * and no thread could lead the one CQ of its connections.
	 */
	struct dofi_cq *feed = ep->conn ? cq : NULL;

	dofi_mutex_assert_held(&ep->lock);
	if (feed != ep->feed) {
		feeds(&parts, ep->feed, dofi_evd_feed_put);
		feeds(&parts, feed, dofi_evd_feed_get);
		ep->feed = feed;
	}
	if (cq == ep->cq)
		return;
	if (ep->graceful) {
		dofi_cq_sleep_end(ep->cq);
		dofi_cq_sleep_begin(cq);
	}
	ep->cq = cq;
}

void dofi_ep_set_second_cq(struct dofi_ep *ep, struct dofi_cq *cq)
{
	const struct dofi_ep_parts parts = parts_of(ep);

	dofi_mutex_assert_held(&ep->lock);
	feeds(&parts, ep->second_cq, dofi_evd_feed_put);
	feeds(&parts, cq, dofi_evd_feed_get);
	ep->second_cq = cq;
}

/* Frees the slots that dofi_queue_renew() made for @next. */
static void queue_discard(struct dofi_queue *next, const struct dofi_queue *q)
{
	if (next->slots != q->slots)
		dofi_queue_fini(next);
}

int dofi_ep_parts_set(struct dofi_ep *ep, const struct dofi_ep_parts *parts)
{
	const struct dofi_ep_parts old = parts_of(ep);
	const DAT_EP_ATTR *a = &parts->attr;
	DAT_COUNT iov = a->max_request_iov;
	struct dofi_queue sq, rq;
	struct dofi_cq *cq;
	int ret;

	dofi_mutex_assert_held(&ep->lock);
	if (iov < a->max_rdma_read_iov)
		iov = a->max_rdma_read_iov;
	if (iov < a->max_rdma_write_iov)
		iov = a->max_rdma_write_iov;
	ret = dofi_queue_renew(&sq, &ep->sq, ep, a->max_request_dtos, iov);
	if (ret)
		goto refuse;
	ret = dofi_queue_renew(&rq, &ep->rq, ep, a->max_recv_dtos, a->max_recv_iov);
	if (ret)
		goto discard_sq;
	if (!streams_swap(&old, parts)) {
		ret = -EINVAL;
		goto discard_rq;
	}
	dofi_queue_replace(&ep->sq, &sq);
	dofi_queue_replace(&ep->rq, &rq);
	/* an EVD that stays is never unused in between */
	parts_get(parts);
	/* a transport may have set the CQ of the PZ that the EP keeps */
	if (!parts->pz)
		cq = NULL;
	else
		cq = parts->pz == old.pz ? ep->cq : &parts->pz->domain.cq;
	dofi_ep_parts_put(&old);
	if (old.pz && old.pz != parts->pz)
		dofi_queue_change_pz(&ep->rq, old.pz->id, parts->pz->id);
	ep->pz = parts->pz;
	ep->cq = cq;
	ep->recv_evd = parts->recv_evd;
	ep->request_evd = parts->request_evd;
	ep->had_other_connect_evd |= ep->connect_evd && ep->connect_evd != parts->connect_evd;
	ep->connect_evd = parts->connect_evd;
	ep->srq = parts->srq;
	ep->attr = parts->attr;
	dofi_dto_watermarks(ep);
	return 0;

discard_rq:
	queue_discard(&rq, &ep->rq);
discard_sq:
	queue_discard(&sq, &ep->sq);
refuse:
	if (ret == -ENOMEM)
		dofi_log(DOFI_WARN, DOFI_EP, "no memory for queues of %d requests and %d receives",
			 a->max_request_dtos, a->max_recv_dtos);
	return ret;
}

void dofi_ep_parts_drop(struct dofi_ep *ep)
{
	static const struct dofi_ep_parts none;
	const struct dofi_ep_parts parts = parts_of(ep);

	streams_swap(&parts, &none);
	dofi_ep_parts_put(&parts);
	dofi_queue_fini(&ep->sq);
	dofi_queue_fini(&ep->rq);
}

/* Modifying */

static bool take_pz(const struct dofi_ep *ep, DAT_PZ_HANDLE pz_handle, struct dofi_ep_parts *parts)
{
	struct dofi_pz *pz = dofi_pz_use(pz_handle, ep->obj.ia);

	if (!pz)
		return DOFI_REFUSED(false, DOFI_EP, "pz_handle %p is no live PZ of the EP's IA",
				    pz_handle);
	if (parts->pz)
		dofi_obj_put(&parts->pz->obj);
	parts->pz = pz;
	return !parts->srq || parts->srq->pz == pz ||
	       DOFI_REFUSED(false, DOFI_EP, "pz_handle %p is not the PZ of the EP's SRQ",
			    pz_handle);
}

/* The soft watermark of an endpoint's buffers from its SRQ, which is at most the SRQ's depth. */
static bool take_srq_mark(const struct dofi_ep *ep, const char *name, DAT_COUNT mark,
			  struct dofi_ep_parts *parts)
{
	parts->attr.srq_soft_hw = mark;
	/* OFED's provider ignores the member, which is part of DAT_EP_FIELD_EP_ATTR_ALL */
	if (!parts->srq)
		return !ep->obj.ia->strict ||
		       DOFI_REFUSED(false, DOFI_EP, "%s: the EP has no SRQ; DAT_OFI_STRICT=0 "
				    "ignores that", name);
	return mark == DAT_HW_DEFAULT || (mark > 0 && mark <= dofi_srq_depth(parts->srq)) ||
	       DOFI_REFUSED(false, DOFI_EP, "%s is %d; permitted: 1 to %d, or DAT_HW_DEFAULT",
			    name, mark, dofi_srq_depth(parts->srq));
}

/* Whether the operations that are posted fit into the wanted number. */
static bool holds(const char *name, const struct dofi_queue *q, DAT_COUNT wanted)
{
	const uint32_t used = dofi_queue_used(q);

	return used <= (uint32_t)wanted ||
	       DOFI_REFUSED(false, DOFI_EP, "%s is %d; permitted: at least %u, which are posted",
			    name, wanted, used);
}

/* Puts the wanted value of @row into @parts. Returns false when it cannot be had. */
static bool take(const struct dofi_ep *ep, const struct dofi_cap *row, const DAT_EP_PARAM *wanted,
		 struct dofi_ep_parts *parts)
{
	struct dofi_ia *ia = ep->obj.ia;

	switch (row->field) {
	case DAT_EP_FIELD_PZ_HANDLE:
		return take_pz(ep, wanted->pz_handle, parts);
	case DAT_EP_FIELD_RECV_EVD_HANDLE:
		return dofi_ep_evd_use(ia, row->name, wanted->recv_evd_handle, DAT_EVD_DTO_FLAG,
				       &parts->recv_evd);
	case DAT_EP_FIELD_REQUEST_EVD_HANDLE:
		return dofi_ep_evd_use(ia, row->name, wanted->request_evd_handle, DAT_EVD_DTO_FLAG,
				       &parts->request_evd);
	case DAT_EP_FIELD_CONNECT_EVD_HANDLE:
		return dofi_ep_evd_use(ia, row->name, wanted->connect_evd_handle,
				       DAT_EVD_CONNECTION_FLAG, &parts->connect_evd);
	case DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW:
		return take_srq_mark(ep, row->name, wanted->ep_attr.srq_soft_hw, parts);
	}
	if (!dofi_caps_ep_take(ia, row, &wanted->ep_attr, &parts->attr))
		return false;
	if (row->field == DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
		return holds(row->name, &ep->rq, parts->attr.max_recv_dtos);
	if (row->field == DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)
		return holds(row->name, &ep->sq, parts->attr.max_request_dtos);
	return true;
}

/* Takes the lowest bit out of @mask, and returns its row; NULL when there is no such row. */
static const struct dofi_cap *row_next(DAT_EP_PARAM_MASK *mask)
{
	const DAT_EP_PARAM_MASK field = *mask & -*mask;

	*mask &= ~field;
	return dofi_caps_row(DOFI_CAP_EP, field);
}

/* Takes all that @mask names from @wanted, or nothing. Each bit of @mask has a row with states. */
static DAT_RETURN modify(struct dofi_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *wanted)
	DOFI_NEEDS(ep->lock)
{
	struct dofi_ep_parts parts = parts_of(ep);
	DAT_EP_PARAM_MASK left;
	int err = -EINVAL;

	for (left = mask; left;) {
		const struct dofi_cap *row = row_next(&left);

		if (!(row->when->bits & (1u << ep->state)))
			return DOFI_REFUSED(dofi_ep_bad_state(ep), DOFI_EP, "dat_ep_modify: %s in "
					    "the state %s; permitted: %s", row->name,
					    dofi_ep_states[ep->state].name, row->when->words);
		if (row->no_receives && !dofi_queue_empty(&ep->rq))
			return DOFI_REFUSED(dofi_ep_bad_state(ep), DOFI_EP, "dat_ep_modify: %s "
					    "while receives are posted", row->name);
	}
	if (mask && !wanted)
		return DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_EP, "dat_ep_modify: no ep_param");
	if (!mask)
		return DAT_SUCCESS;
	parts_get(&parts);
	for (left = mask; left;)
		if (!take(ep, row_next(&left), wanted, &parts))
			goto put_parts;
	if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW && parts.srq)
		ep->soft_watermark = parts.attr.srq_soft_hw;
	err = dofi_ep_parts_set(ep, &parts);
put_parts:
	dofi_ep_parts_put(&parts);
	if (err)
		return err == -EINVAL ? DOFI_BAD_ARG(3) : DOFI_NO_RESOURCE(MEMORY);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_EP_PARAM_MASK left = mask;
	DAT_RETURN ret;

	if (!ep)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(EP), DOFI_EP, "dat_ep_modify: %p is no live EP",
				    ep_handle);
	while (left) {
		const struct dofi_cap *row = row_next(&left);

		if (!row || !row->when)
			return DOFI_REFUSED(DOFI_BAD_ARG(2), DOFI_EP,
					    "dat_ep_modify: %s cannot be changed",
					    row ? row->name : "an unknown bit of the mask");
	}
	dofi_mutex_lock(&ep->lock);
	ret = modify(ep, mask, param);
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_COUNT held;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_mutex_lock(&ep->lock);
	held = dofi_queue_used(&ep->rq);
	dofi_mutex_unlock(&ep->lock);
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
	dofi_mutex_lock(&ep->lock);
	ep->soft_watermark = soft;
	ep->hard_watermark = hard;
	dofi_dto_watermarks(ep);
	dofi_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}
