/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an endpoint is made of: its zone, its EVDs, its attributes and the queues they size. */

#include "obj/ep_attr.h"

#include "obj/caps.h"
#include "obj/ep.h"

#include <string.h>

/* Parts */

bool dofi_ep_evd(struct dofi_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dofi_evd **evd)
{
	*evd = handle ? dofi_evd_check(handle) : NULL;
	return !handle || (*evd && (*evd)->obj.ia == ia && ((*evd)->flags & flag));
}

static void evd_get(struct dofi_evd *evd)
{
	if (evd)
		dofi_obj_get(&evd->obj);
}

static void evd_put(struct dofi_evd *evd)
{
	if (evd)
		dofi_obj_put(&evd->obj);
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

static void parts_put(const struct dofi_ep_parts *parts)
{
	evd_put(parts->recv_evd);
	evd_put(parts->request_evd);
	evd_put(parts->connect_evd);
	if (parts->srq)
		dofi_obj_put(&parts->srq->obj);
	if (parts->pz)
		dofi_obj_put(&parts->pz->obj);
}

/* The EVDs of completions poll the zone's CQ from now on, or no more. */
static void feeds(const struct dofi_ep_parts *parts,
		  void (*change)(struct dofi_evd *evd, struct dofi_cq *cq))
{
	if (!parts->pz)
		return;
	if (parts->recv_evd)
		change(parts->recv_evd, &parts->pz->domain.cq);
	if (parts->request_evd)
		change(parts->request_evd, &parts->pz->domain.cq);
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

/* Queues of the sizes that @a says. */
static int queues_set(struct dofi_ep *ep, const DAT_EP_ATTR *a)
{
	uint32_t iov = largest(a->max_request_iov, a->max_rdma_read_iov, a->max_rdma_write_iov);
	struct dofi_queue sq, rq;
	int ret;

	ret = dofi_queue_renew(&sq, &ep->sq, ep, a->max_request_dtos, iov);
	if (ret)
		return ret;
	ret = dofi_queue_renew(&rq, &ep->rq, ep, a->max_recv_dtos, a->max_recv_iov);
	if (ret) {
		if (sq.slots != ep->sq.slots)
			dofi_queue_fini(&sq);
		return ret;
	}
	dofi_queue_replace(&ep->sq, &sq);
	dofi_queue_replace(&ep->rq, &rq);
	return 0;
}

int dofi_ep_parts_set(struct dofi_ep *ep, const struct dofi_ep_parts *parts)
{
	const struct dofi_ep_parts old = parts_of(ep);
	int ret = queues_set(ep, &parts->attr);

	if (ret)
		return ret;
	/* what stays is never unused in between; and an EVD has few places for CQs to poll */
	parts_get(parts);
	feeds(&old, dofi_evd_feed_put);
	feeds(parts, dofi_evd_feed_get);
	parts_put(&old);
	if (old.pz && old.pz != parts->pz)
		dofi_queue_rezone(&ep->rq, old.pz->id, parts->pz->id);
	ep->pz = parts->pz;
	ep->recv_evd = parts->recv_evd;
	ep->request_evd = parts->request_evd;
	ep->connect_evd = parts->connect_evd;
	ep->srq = parts->srq;
	ep->attr = parts->attr;
	dofi_dto_watermarks(ep);
	return 0;
}

void dofi_ep_parts_drop(struct dofi_ep *ep)
{
	const struct dofi_ep_parts parts = parts_of(ep);

	feeds(&parts, dofi_evd_feed_put);
	parts_put(&parts);
	dofi_queue_fini(&ep->sq);
	dofi_queue_fini(&ep->rq);
}

/* Modifying */

/* One field of a modification, and what becomes of the EP by all of them. */
struct change {
	const struct dofi_ep *ep;
	DAT_EP_PARAM_MASK bit;
	const DAT_EP_PARAM *wanted;
	struct dofi_ep_parts parts;
};

/* Puts what is wanted of the field into the parts; false when it cannot be had. */
typedef bool take_fn(struct change *c);

/* What dat_ep_modify may do to a field of DAT_EP_PARAM. */
struct field {
	DAT_EP_PARAM_MASK bit;
	uint32_t states;		/* bits of those in which it may change; 0: never */
	bool no_receives;		/* and only while no receive is posted */
	take_fn *take;
};

static take_fn take_pz, take_recv_evd, take_request_evd, take_connect_evd, take_service_type,
	take_number, take_qos, take_recv_flags, take_request_flags, take_recv_dtos,
	take_request_dtos, take_srq_mark, take_transport_attr, take_provider_attr;

#define STATE(state) (1u << DAT_EP_STATE_##state)
#define NEVER 0
#define UNCONNECTED STATE(UNCONNECTED)
/* The endpoint is nobody's peer yet, or the provider made it without a zone. */
#define MAKING (UNCONNECTED | STATE(TENTATIVE_CONNECTION_PENDING))
/* No connection is being made by this side. */
#define WAITING (MAKING | STATE(RESERVED) | STATE(PASSIVE_CONNECTION_PENDING))

#define FIELD(name, states, ...) { DAT_EP_FIELD_##name, states, __VA_ARGS__ }
#define ATTR(name, ...) FIELD(EP_ATTR_##name, __VA_ARGS__)

static const struct field fields[] = {
	FIELD(IA_HANDLE, NEVER, false, NULL),
	FIELD(EP_STATE, NEVER, false, NULL),
#if DAT_VERSION_MAJOR >= 2
	FIELD(COMM, NEVER, false, NULL),
#endif
	FIELD(LOCAL_IA_ADDRESS_PTR, NEVER, false, NULL),
	FIELD(LOCAL_PORT_QUAL, NEVER, false, NULL),
	FIELD(REMOTE_IA_ADDRESS_PTR, NEVER, false, NULL),
	FIELD(REMOTE_PORT_QUAL, NEVER, false, NULL),
	FIELD(PZ_HANDLE, MAKING, false, take_pz),
	FIELD(RECV_EVD_HANDLE, WAITING, false, take_recv_evd),
	FIELD(REQUEST_EVD_HANDLE, WAITING, false, take_request_evd),
	FIELD(CONNECT_EVD_HANDLE, WAITING, false, take_connect_evd),
	FIELD(SRQ_HANDLE, NEVER, false, NULL),
	ATTR(SERVICE_TYPE, WAITING, false, take_service_type),
	ATTR(MAX_MESSAGE_SIZE, WAITING, false, take_number),
	ATTR(MAX_RDMA_SIZE, WAITING, false, take_number),
	ATTR(QOS, WAITING, false, take_qos),
	ATTR(RECV_COMPLETION_FLAGS, WAITING, true, take_recv_flags),
	ATTR(REQUEST_COMPLETION_FLAGS, WAITING, false, take_request_flags),
	ATTR(MAX_RECV_DTOS, WAITING, false, take_recv_dtos),
	ATTR(MAX_REQUEST_DTOS, WAITING, false, take_request_dtos),
	ATTR(MAX_RECV_IOV, WAITING, false, take_number),
	ATTR(MAX_REQUEST_IOV, WAITING, false, take_number),
	ATTR(MAX_RDMA_READ_IN, WAITING, false, take_number),
	ATTR(MAX_RDMA_READ_OUT, WAITING, false, take_number),
	/* the DAT text does not mention these three here */
	ATTR(SRQ_SOFT_HW, WAITING, false, take_srq_mark),
	ATTR(MAX_RDMA_READ_IOV, WAITING, false, take_number),
	ATTR(MAX_RDMA_WRITE_IOV, WAITING, false, take_number),
	ATTR(NUM_TRANSPORT_ATTR, UNCONNECTED, false, take_transport_attr),
	ATTR(TRANSPORT_SPECIFIC_ATTR, UNCONNECTED, false, take_transport_attr),
	ATTR(NUM_PROVIDER_ATTR, UNCONNECTED, false, take_provider_attr),
	ATTR(PROVIDER_SPECIFIC_ATTR, UNCONNECTED, false, take_provider_attr),
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool take_pz(struct change *c)
{
	c->parts.pz = dofi_pz_check(c->wanted->pz_handle);
	return c->parts.pz && c->parts.pz->obj.ia == c->ep->obj.ia &&
	       (!c->parts.srq || c->parts.srq->pz == c->parts.pz);
}

static bool take_recv_evd(struct change *c)
{
	return dofi_ep_evd(c->ep->obj.ia, c->wanted->recv_evd_handle, DAT_EVD_DTO_FLAG,
			   &c->parts.recv_evd);
}

static bool take_request_evd(struct change *c)
{
	return dofi_ep_evd(c->ep->obj.ia, c->wanted->request_evd_handle, DAT_EVD_DTO_FLAG,
			   &c->parts.request_evd);
}

static bool take_connect_evd(struct change *c)
{
	return dofi_ep_evd(c->ep->obj.ia, c->wanted->connect_evd_handle, DAT_EVD_CONNECTION_FLAG,
			   &c->parts.connect_evd);
}

static bool take_service_type(struct change *c)
{
	return c->wanted->ep_attr.service_type == DAT_SERVICE_TYPE_RC;
}

static bool take_number(struct change *c)
{
	return dofi_caps_ep_take(c->ep->obj.ia, c->bit, &c->wanted->ep_attr, &c->parts.attr);
}

static bool take_qos(struct change *c)
{
	c->parts.attr.qos = c->wanted->ep_attr.qos;
	return c->parts.attr.qos == DAT_QOS_BEST_EFFORT;
}

static bool take_recv_flags(struct change *c)
{
	c->parts.attr.recv_completion_flags = c->wanted->ep_attr.recv_completion_flags;
	return dofi_caps_stream_flag(c->parts.attr.recv_completion_flags);
}

static bool take_request_flags(struct change *c)
{
	c->parts.attr.request_completion_flags = c->wanted->ep_attr.request_completion_flags;
	return dofi_caps_stream_flag(c->parts.attr.request_completion_flags);
}

static bool take_recv_dtos(struct change *c)
{
	return take_number(c) &&
	       dofi_queue_used(&c->ep->rq) <= (uint32_t)c->parts.attr.max_recv_dtos;
}

static bool take_request_dtos(struct change *c)
{
	return take_number(c) &&
	       dofi_queue_used(&c->ep->sq) <= (uint32_t)c->parts.attr.max_request_dtos;
}

/* Of what an endpoint takes from its SRQ, which has no more than its depth to be taken. */
static bool take_srq_mark(struct change *c)
{
	DAT_COUNT mark = c->wanted->ep_attr.srq_soft_hw;

	c->parts.attr.srq_soft_hw = mark;
	return c->parts.srq && (mark == DAT_HW_DEFAULT ||
				(mark > 0 && mark <= dofi_srq_depth(c->parts.srq)));
}

/* No named attributes are known, so only none can be given; then their address is nothing. */
static bool take_transport_attr(struct change *c)
{
	c->parts.attr.ep_transport_specific = NULL;
	return c->bit != DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR ||
	       !c->wanted->ep_attr.ep_transport_specific_count;
}

static bool take_provider_attr(struct change *c)
{
	c->parts.attr.ep_provider_specific = NULL;
	return c->bit != DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR ||
	       !c->wanted->ep_attr.ep_provider_specific_count;
}

/* Whether the text lets any of @mask be modified at all. */
static bool modifiable(DAT_EP_PARAM_MASK mask)
{
	size_t i;

	for (i = 0; i < N_FIELDS; i++)
		if (fields[i].states)
			mask &= ~fields[i].bit;
	return !mask;
}

static bool modifiable_now(const struct dofi_ep *ep, DAT_EP_PARAM_MASK mask)
{
	size_t i;

	for (i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];

		if (!(mask & f->bit))
			continue;
		if (!(f->states & (1u << ep->state)))
			return false;
		if (f->no_receives && !dofi_queue_empty(&ep->rq))
			return false;
	}
	return true;
}

/* All that @mask names of @wanted, or nothing. */
static DAT_RETURN modify(struct dofi_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *wanted)
{
	struct change c = { .ep = ep, .wanted = wanted, .parts = parts_of(ep) };
	size_t i;

	for (i = 0; i < N_FIELDS; i++) {
		c.bit = mask & fields[i].bit;
		if (c.bit && !fields[i].take(&c))
			return DOFI_BAD_ARG(3);
	}
	if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
		ep->soft_watermark = c.parts.attr.srq_soft_hw;
	return dofi_ep_parts_set(ep, &c.parts) ? DOFI_NO_RESOURCE(MEMORY) : DAT_SUCCESS;
}

DAT_RETURN dofi_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!modifiable(mask))
		return DOFI_BAD_ARG(2);
	pthread_mutex_lock(&ep->lock);
	if (!modifiable_now(ep, mask))
		ret = dofi_ep_bad_state(ep);
	else if (mask && !param)
		ret = DOFI_BAD_ARG(3);
	else if (mask)
		ret = modify(ep, mask, param);
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

/* Receives */

DAT_RETURN dofi_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	DAT_COUNT held;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	pthread_mutex_lock(&ep->lock);
	held = dofi_queue_used(&ep->rq);
	pthread_mutex_unlock(&ep->lock);
	if (buffers)
		*buffers = held;
	/* an EP's own receives complete in the order in which they were posted */
	if (span)
		*span = held;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (soft < 0 && soft != DAT_WATERMARK_INFINITE)
		return DOFI_BAD_ARG(2);
	if (hard < 0 && hard != DAT_WATERMARK_INFINITE)
		return DOFI_BAD_ARG(3);
	pthread_mutex_lock(&ep->lock);
	ep->soft_watermark = soft;
	ep->hard_watermark = hard;
	dofi_dto_watermarks(ep);
	pthread_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}
