/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an endpoint is made of: its zone, its EVDs, its attributes and the queues they size. */

#include "obj/ep_attr.h"

#include "obj/ep.h"

#include <string.h>

/* Parts */

bool dofi_ep_evd(struct dofi_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dofi_evd **evd)
{
	*evd = handle ? dofi_evd_check(handle) : NULL;
	return !handle || (*evd && (*evd)->obj.ia == ia && ((*evd)->flags & flag));
}

static void evd_get(struct dofi_evd *evd, struct dofi_pz *feed)
{
	if (!evd)
		return;
	dofi_obj_get(&evd->obj);
	if (feed)
		dofi_evd_feed_get(evd, &feed->domain.cq);
}

static void evd_put(struct dofi_evd *evd, struct dofi_pz *feed)
{
	if (!evd)
		return;
	if (feed)
		dofi_evd_feed_put(evd, &feed->domain.cq);
	dofi_obj_put(&evd->obj);
}

static void attach(const struct dofi_ep_parts *parts)
{
	if (parts->pz)
		dofi_obj_get(&parts->pz->obj);
	evd_get(parts->recv_evd, parts->pz);
	evd_get(parts->request_evd, parts->pz);
	evd_get(parts->connect_evd, NULL);
}

static void detach(const struct dofi_ep_parts *parts)
{
	evd_put(parts->recv_evd, parts->pz);
	evd_put(parts->request_evd, parts->pz);
	evd_put(parts->connect_evd, NULL);
	if (parts->pz)
		dofi_obj_put(&parts->pz->obj);
}

static struct dofi_ep_parts parts_of(const struct dofi_ep *ep)
{
	return (struct dofi_ep_parts){
		.pz = ep->pz,
		.recv_evd = ep->recv_evd,
		.request_evd = ep->request_evd,
		.connect_evd = ep->connect_evd,
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
	/* in this order, so that what stays is never unused in between */
	attach(parts);
	detach(&old);
	ep->pz = parts->pz;
	ep->recv_evd = parts->recv_evd;
	ep->request_evd = parts->request_evd;
	ep->connect_evd = parts->connect_evd;
	ep->attr = parts->attr;
	return 0;
}

void dofi_ep_parts_drop(struct dofi_ep *ep)
{
	const struct dofi_ep_parts parts = parts_of(ep);

	detach(&parts);
	dofi_queue_fini(&ep->sq);
	dofi_queue_fini(&ep->rq);
}
