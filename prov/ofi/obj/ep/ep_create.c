/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: create, free, reserve, query. */

#include "obj/ep/ep_cm.h"

#include "obj/caps.h"
#include "obj/obj.h"
#include "obj/ep/datagram.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_dto.h"

#include <errno.h>
#include <string.h>

static void ep_close(void *arg)
{
	dofi_ep_close_now(arg);
}

static void ep_destroy(struct dofi_obj *obj)
{
	struct dofi_ep *ep = (struct dofi_ep *)obj;
	struct dofi_ia *ia = obj->ia;
	struct dofi_obj *evd;
	bool live;

	dofi_mutex_lock(&ep->lock);
	ep->no_events = true;
	live = dofi_ep_is_live(ep);
	if (live && !ep->closing)
		ep->end = DAT_CONNECTION_EVENT_DISCONNECTED;
	ep->closing |= live;
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
	/* a post that found the handle valid has entered the EP, or has left the lock */
	dofi_calls_await(&obj->calls);
	if (live)
		dofi_progress_call(&ia->progress, ep_close, ep);
	dofi_progress_withdraw(&ia->progress, &ep->work);
	/* not before: an LMR that is freed meanwhile takes its memory back from operations */
	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_EP);
	dofi_mutex_lock(&ia->lock);
	if (ep->reserved_by)
		*ep->reserved_by = NULL;
	ep->reserved_by = NULL;
	/* after dat_ep_modify() any EVD may have connection events of the EP */
	if (ep->had_other_connect_evd)
		TAILQ_FOREACH(evd, &ia->children[DOFI_KIND(DAT_HANDLE_TYPE_EVD)], sibling)
			dofi_evd_purge_ep((struct dofi_evd *)evd, ep);
	dofi_mutex_unlock(&ia->lock);
	if (ep->connect_evd)
		dofi_evd_purge_ep(ep->connect_evd, ep);
	if (ep->datagrams)
		dofi_exchanges_drop(ep);
	if (ep->srq && ia->xport->srq)
		ia->xport->srq->close(ep);
	dofi_ep_parts_drop(ep);
	dofi_obj_free(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, obj);
}

static void ep_reinit(struct dofi_ep *ep, DAT_EP_STATE first, bool datagrams) DOFI_NEEDS(ep->lock)
{
	ep->pz = NULL;
	ep->recv_evd = ep->request_evd = ep->connect_evd = NULL;
	ep->srq = NULL;
	dofi_unread_renew(&ep->sq_unread);
	dofi_unread_renew(&ep->rq_unread);
	ep->sq = (struct dofi_queue){ .unread = &ep->sq_unread, .lmr = &dofi_lmr_none };
	ep->rq = (struct dofi_queue){ .unread = &ep->rq_unread, .lmr = &dofi_lmr_none };
	ep->state = first;
	ep->datagrams = datagrams;
	ep->xport = datagrams ? ep->obj.ia->datagrams->xport : ep->obj.ia->xport;
	TAILQ_INIT(&ep->exchanges);
	TAILQ_INIT(&ep->exchanges_new);
	TAILQ_INIT(&ep->exchanges_kept);
	TAILQ_INIT(&ep->exchanges_failed);
	ep->n_failed = 0;
	ep->cq = ep->feed = ep->second_cq = NULL;
	ep->reserved_by = NULL;
	ep->fid = NULL;
	ep->shard = NULL;
	ep->fast.send = NULL;
	ep->fast.recv = NULL;
	ep->mailbox.key = 0;
	ep->resume_pending = false;
	ep->closing = ep->graceful = ep->finishing = ep->failed_early = ep->no_events = false;
	ep->had_other_connect_evd = ep->scoped = ep->preambles = false;
	ep->lost = ep->no_goodbye = ep->explained = ep->lost_rdma = false;
	ep->lost_request[0] = '\0';
	ep->reads = ep->atomics = 0;
	ep->watched = true;
	ep->probe = (struct dofi_dto){ .ep = ep, .kind = DOFI_DTO_PROBE, .tag = ep->probe.tag };
	ep->secret = ep->peer_secret = 0;
	ep->soft_watermark = ep->hard_watermark = DAT_WATERMARK_INFINITE;
	memset(ep->posted, 0, sizeof(ep->posted));
	memset(ep->receipts, 0, sizeof(ep->receipts));
	memset(ep->base, 0, sizeof(ep->base));
	ep->n_connect = ep->n_disconnect = 0;
	dofi_ep_cm_init(ep);
	dofi_ep_srq_init(&ep->srq_user);
}

struct open_call {
	struct dofi_ep *ep;
	int ret;
};

static void datagrams_open_on_thread(void *arg)
{
	struct open_call *c = arg;
	struct dofi_ep *ep = c->ep;

	c->ret = ep->obj.ia->datagrams->open(ep);
	if (c->ret)
		return;
	dofi_mutex_lock(&ep->lock);
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
}

/* Makes an EP in state @first, which is not published. */
static DAT_RETURN ep_new(struct dofi_ia *ia, DAT_EP_STATE first, const struct dofi_ep_parts *parts,
			 struct dofi_ep **out)
{
	struct dofi_ep *ep = dofi_obj_new(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, ia, ep_destroy);
	struct open_call call = { .ep = ep, .ret = -ENODEV };
	DAT_RETURN why;
	int ret;

	if (!ep)
		return DOFI_REFUSED(DOFI_NO_RESOURCE(TEP), DOFI_EP, "no EP: the IA has %d, or the "
				    "memory is short",
				    dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_EP));
	dofi_mutex_lock(&ep->lock);
	ep_reinit(ep, first, dofi_caps_is_datagram(ia, &parts->attr));
	ret = dofi_ep_parts_set(ep, parts);
	dofi_mutex_unlock(&ep->lock);
	if (ret) {
		why = ret == -EINVAL ? DOFI_BAD_ARG(7) : DOFI_NO_RESOURCE(MEMORY);
		goto free_ep;
	}
	if (ep->srq)
		ep->soft_watermark = ep->attr.srq_soft_hw;
	if (ep->datagrams) {
		dofi_progress_call(&ia->progress, datagrams_open_on_thread, &call);
		ret = call.ret;
	} else if (ep->srq && ia->xport->srq && ia->xport->srq->open(ep)) {
		ret = -ENOMEM;
	}
	if (ret) {
		why = dofi_ret_short(ret);
		goto drop_parts;
	}
	*out = ep;
	return DAT_SUCCESS;

drop_parts:
	dofi_ep_parts_drop(ep);
free_ep:
	dofi_obj_free(&dofi_ep_pool, DAT_HANDLE_TYPE_EP, &ep->obj);
	return why;
}

struct dofi_ep *dofi_ep_tentative(struct dofi_ia *ia)
{
	struct dofi_ep_parts parts = { .pz = NULL };
	struct dofi_ep *ep;

	if (dofi_caps_ep_attr(ia, NULL, &parts.attr) ||
	    ep_new(ia, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, &parts, &ep))
		return NULL;
	atomic_store(&ep->obj.provided, true);
	dofi_obj_publish(&ep->obj, DAT_HANDLE_TYPE_EP);
	return ep;
}

/* Finds the objects of @ia that both calls that create an EP name. Each part has a reference. */
static DAT_RETURN parts_find(struct dofi_ia *ia, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd,
			     DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			     struct dofi_ep_parts *parts)
{
	parts->pz = dofi_pz_use(pz_handle, ia);
	if (pz_handle && !parts->pz)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(PZ), DOFI_EP,
				    "pz_handle %p is no live PZ of the EP's IA", pz_handle);
	if (!dofi_ep_evd_use(ia, "recv_evd_handle", recv_evd, DAT_EVD_DTO_FLAG, &parts->recv_evd))
		return DOFI_BAD_HANDLE(EVD_RECV);
	if (!dofi_ep_evd_use(ia, "request_evd_handle", request_evd, DAT_EVD_DTO_FLAG,
			     &parts->request_evd))
		return DOFI_BAD_HANDLE(EVD_REQUEST);
	if (!dofi_ep_evd_use(ia, "connect_evd_handle", connect_evd, DAT_EVD_CONNECTION_FLAG,
			     &parts->connect_evd))
		return DOFI_BAD_HANDLE(EVD_CONN);
	return DAT_SUCCESS;
}

static DAT_RETURN create(struct dofi_ia *ia, const struct dofi_ep_parts *parts,
			 DAT_EP_HANDLE *ep_handle)
{
	const bool datagrams = dofi_caps_is_datagram(ia, &parts->attr);
	struct dofi_ep *ep;
	DAT_RETURN ret;

	if (datagrams && !parts->pz)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(PZ), DOFI_EP, "a datagram EP needs a PZ");
	ret = ep_new(ia, datagrams ? DAT_EP_STATE_CONNECTED : DAT_EP_STATE_UNCONNECTED, parts, &ep);
	if (ret)
		return ret;
	dofi_obj_publish(&ep->obj, DAT_HANDLE_TYPE_EP);
	*ep_handle = ep;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd,
			  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			  const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_ep_parts parts = { .pz = NULL };
	DAT_RETURN ret;

	if (!ia)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(IA), DOFI_EP, "dat_ep_create: %p is no open IA",
				    ia_handle);
	ret = parts_find(ia, pz_handle, recv_evd, request_evd, connect_evd, &parts);
	if (!ret && !ep_handle)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(7), DOFI_EP, "dat_ep_create: no ep_handle");
	if (!ret)
		ret = dofi_caps_ep_attr(ia, attr, &parts.attr);
	if (!ret)
		ret = create(ia, &parts, ep_handle);
	dofi_ep_parts_put(&parts);
	return ret;
}

/* max_recv_dtos limits the buffers that the EP has taken; the SRQ sets the segments. */
DAT_RETURN dofi_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				   DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				   DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq_handle,
				   const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_ep_parts parts = { .pz = NULL };
	DAT_EP_ATTR wanted;
	DAT_COUNT depth;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	ret = parts_find(ia, pz_handle, recv_evd, request_evd, connect_evd, &parts);
	if (ret)
		goto put_parts;
	parts.srq = dofi_srq_use(srq_handle, ia);
	depth = parts.srq ? dofi_srq_depth(parts.srq) : 0;
	if (!parts.srq)
		ret = DOFI_REFUSED(DOFI_BAD_HANDLE(SRQ), DOFI_EP,
				   "srq_handle is no live SRQ of the EP's IA");
	else if (parts.pz != parts.srq->pz)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(2), DOFI_EP, "pz_handle is not the SRQ's PZ");
	else if (!attr)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(7), DOFI_EP, "an EP with an SRQ needs attributes");
	else if (!ep_handle)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(8), DOFI_EP,
				   "dat_ep_create_with_srq: no ep_handle");
	else if (attr->srq_soft_hw < DAT_HW_DEFAULT || attr->srq_soft_hw > depth)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(7), DOFI_EP, "srq_soft_hw is %d; permitted: 0 to "
				   "%d, or DAT_HW_DEFAULT", attr->srq_soft_hw, depth);
	if (ret)
		goto put_parts;
	wanted = *attr;
	/* programs that set no watermark leave 0 there */
	if (!wanted.srq_soft_hw)
		wanted.srq_soft_hw = DAT_HW_DEFAULT;
	if (!wanted.max_recv_dtos || wanted.max_recv_dtos == DAT_HW_DEFAULT)
		wanted.max_recv_dtos = depth;
	wanted.max_recv_iov = parts.srq->max_recv_iov;
	ret = dofi_caps_ep_attr(ia, &wanted, &parts.attr);
	if (!ret)
		ret = create(ia, &parts, ep_handle);
put_parts:
	dofi_ep_parts_put(&parts);
	return ret;
}

DAT_RETURN dofi_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct dofi_ep *ep = dofi_ep_enter(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	/* claimed under the lock, so that it is not reserved afterwards */
	dofi_mutex_lock(&ep->lock);
	if (!(dofi_ep_states[ep->state].may & DOFI_EP_MAY_FREE))
		ret = dofi_ep_bad_state(ep);
	else if (!dofi_obj_claim(&ep->obj))
		ret = DOFI_BAD_HANDLE(EP);
	dofi_mutex_unlock(&ep->lock);
	if (ret)
		dofi_obj_leave(&ep->obj);
	else
		dofi_obj_end(&ep->obj);
	return ret;
}

DAT_RETURN dofi_ep_reserve(struct dofi_ep *ep, struct dofi_ep **by)
{
	struct dofi_ia *ia = ep->obj.ia;
	DAT_RETURN ret = DAT_SUCCESS;

	dofi_mutex_lock(&ia->lock);
	dofi_mutex_lock(&ep->lock);
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP)) {
		ret = DOFI_BAD_HANDLE(EP);
	} else if (ep->state == DAT_EP_STATE_UNCONNECTED) {
		dofi_ep_state_set(ep, DAT_EP_STATE_RESERVED);
		/* an earlier service point, if its request was rejected */
		if (ep->reserved_by)
			*ep->reserved_by = NULL;
		ep->reserved_by = by;
		*by = ep;
	} else {
		ret = dofi_ep_bad_state(ep);
	}
	dofi_mutex_unlock(&ep->lock);
	dofi_mutex_unlock(&ia->lock);
	return ret;
}

void dofi_ep_unreserve(struct dofi_ia *ia, struct dofi_ep **by)
{
	struct dofi_ep *ep;

	dofi_mutex_lock(&ia->lock);
	ep = *by;
	if (ep) {
		dofi_mutex_lock(&ep->lock);
		if (ep->state == DAT_EP_STATE_RESERVED)
			dofi_ep_state_set(ep, DAT_EP_STATE_UNCONNECTED);
		dofi_mutex_unlock(&ep->lock);
		ep->reserved_by = NULL;
		*by = NULL;
	}
	dofi_mutex_unlock(&ia->lock);
}

void dofi_ep_pass_over(struct dofi_ep *ep)
{
	bool made;

	dofi_mutex_lock(&ep->lock);
	made = ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
	if (!made)
		dofi_ep_state_set(ep, DAT_EP_STATE_UNCONNECTED);
	dofi_mutex_unlock(&ep->lock);
	if (made)
		dofi_obj_destroy(&ep->obj);
}

/* Waits until the progress thread has bound an EP that connects. */
static void await_port(DAT_EP_HANDLE ep_handle)
{
	struct dofi_ep *ep = dofi_ep_enter(ep_handle);
	struct dofi_ia *ia;
	bool unbound;

	if (!ep)
		return;
	dofi_mutex_lock(&ep->lock);
	unbound = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING && !ep->local_port;
	dofi_mutex_unlock(&ep->lock);
	ia = dofi_obj_leave_to_ia(&ep->obj);
	if (unbound)
		dofi_progress_call(&ia->progress, NULL, NULL);
	dofi_ia_leave(ia);
}

DAT_RETURN dofi_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	struct dofi_ep *ep DOFI_CALL = NULL;
	bool has_peer;

	if (mask & DAT_EP_FIELD_LOCAL_PORT_QUAL)
		await_port(ep_handle);
	ep = dofi_ep_enter(ep_handle);
	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (mask & ~(DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	memset(param, 0, sizeof(*param));
	dofi_mutex_lock(&ep->lock);
	has_peer = dofi_ep_has_peer(ep);
	param->ia_handle = dofi_ia_export(ep->obj.ia);
	param->ep_state = ep->state;
#if DAT_VERSION_MAJOR >= 2
	param->comm = dofi_ia_comm(ep->obj.ia);
#endif
	param->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ep->local;
	param->local_port_qual = ep->local_port;
	param->remote_ia_address_ptr = has_peer ? (DAT_IA_ADDRESS_PTR)&ep->request.peer : NULL;
	param->remote_port_qual = has_peer ? ep->remote_port : 0;
	param->pz_handle = ep->pz;
	param->recv_evd_handle = ep->recv_evd;
	param->request_evd_handle = ep->request_evd;
	param->connect_evd_handle = ep->connect_evd;
	param->srq_handle = ep->srq;
	param->ep_attr = ep->attr;
	dofi_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *state,
			      DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_mutex_lock(&ep->lock);
	if (state)
		*state = ep->state;
	if (recv_idle)
		*recv_idle = dofi_queue_empty(&ep->rq) ? DAT_TRUE : DAT_FALSE;
	if (request_idle)
		*request_idle = dofi_queue_empty(&ep->sq) ? DAT_TRUE : DAT_FALSE;
	dofi_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}
