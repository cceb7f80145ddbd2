/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection Request: a peer's wish to connect, until it is accepted or rejected. */

#include "obj/sp/cr.h"

#include "base/clock.h"
#include "obj/obj.h"
#include "obj/ep/datagram.h"
#include "obj/ep/ep_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

struct dofi_pool dofi_cr_pool = DOFI_POOL_INIT("cr", struct dofi_cr, NULL);

struct reject_call {
	struct dofi_cr *cr;
	enum dofi_reject why;
	const void *data;
	size_t size;
};

static void cr_reject_on_thread(void *arg)
{
	struct reject_call *c = arg;

	c->cr->xport->reject(c->cr, c->why, c->data, c->size);
}

/* Frees @cr, which was answered or handed over. */
static void cr_free(struct dofi_cr *cr)
{
	dofi_obj_unlink(&cr->obj, DAT_HANDLE_TYPE_CR);
	dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, &cr->obj);
}

/* Rejects the peer; after claiming. */
static void turn_down(const struct reject_call *call)
{
	struct dofi_cr *cr = call->cr;

	dofi_obj_unlink(&cr->obj, DAT_HANDLE_TYPE_CR);
	dofi_progress_call(&cr->obj.ia->progress, cr_reject_on_thread, (void *)call);
	if (cr->ep)
		dofi_ep_pass_over(cr->ep);
	dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, &cr->obj);
}

/* The end of a CR that the program did not answer: the peer must not wait for its time-out. */
static void cr_destroy(struct dofi_obj *obj)
{
	const struct reject_call call = { .cr = (struct dofi_cr *)obj,
					  .why = DOFI_REJECT_PROVIDER };

	turn_down(&call);
}

/* The peer as a query of the EP returns it. EP lock held. */
static void show_peer(struct dofi_ep *ep, const struct dofi_cr *cr)
{
	ep->request.peer = cr->peer;
	ep->request.conn_qual = ep->local_port = cr->conn_qual;
	ep->remote_port = cr->peer_port;
}

static struct dofi_cr *cr_new(struct dofi_sp *sp, const struct dofi_arrival *a, struct dofi_ep *ep)
{
	struct dofi_ia *ia = sp->obj.ia;
	struct dofi_cr *cr = dofi_obj_new(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, ia, cr_destroy);

	if (!cr)
		return NULL;
	atomic_store(&cr->obj.provided, true);
	cr->conn_qual = sp->conn_qual;
	cr->ep = ep;
	cr->xport = a->xport ? a->xport : ia->xport;
	cr->request = a->request;
	cr->secret = a->secret;
	cr->mailbox = a->mailbox;
	cr->preambles = a->preambles;
	cr->datagram = a->datagram;
	cr->data_size = a->data_size;
	if (a->data_size)
		memcpy(cr->data, a->data, a->data_size);
	cr->peer = a->peer;
	/* the port is at the same offset in the addresses of both families */
	cr->peer_port = ntohs(((const struct sockaddr_in *)&cr->peer)->sin_port);
	dofi_obj_publish(&cr->obj, DAT_HANDLE_TYPE_CR);
	return cr;
}

static int push_event(struct dofi_sp *sp, struct dofi_cr *cr)
{
	struct dofi_event event = { .number = DAT_CONNECTION_REQUEST_EVENT };

#if DAT_VERSION_MAJOR >= 2
	if (cr->datagram)
		event.number = DAT_IB_UD_CONNECTION_REQUEST_EVENT;
#endif
	event.data.cr_arrival_event_data = (DAT_CR_ARRIVAL_EVENT_DATA){
		.sp_handle.psp_handle = sp,
		.local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&sp->obj.ia->address,
		.conn_qual = sp->conn_qual,
		.cr_handle = cr,
	};
	/* a full backlog loses no request: the request is rejected */
	return dofi_evd_offer(sp->evd, &event);
}

/* The caller that takes the event finds the EP in its new state. */
static int announce(struct dofi_sp *sp, struct dofi_cr *cr)
{
	struct dofi_ep *ep = cr->ep;
	int ret;

	if (!ep)
		return push_event(sp, cr);
	dofi_mutex_lock(&ep->lock);
	ret = push_event(sp, cr);
	if (!ret) {
		show_peer(ep, cr);
		if (ep->state == DAT_EP_STATE_RESERVED)
			dofi_ep_state_set(ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	}
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

int dofi_cr_arrived(struct dofi_sp *sp, const struct dofi_arrival *a)
{
	struct dofi_ep *made = NULL;
	struct dofi_cr *cr;
	int ret;

	if (sp->spent)
		return -EBUSY;
	/* the EPs that come with requests have connections */
	if (a->datagram && (sp->makes_eps || sp->once))
		return -ENOTSUP;
	if (sp->makes_eps) {
		made = dofi_ep_tentative(sp->obj.ia);
		if (!made)
			return -ENOMEM;
	}
	/* an EP is not freed while it is reserved, so that no lock is needed here */
	cr = cr_new(sp, a, made ? made : sp->reserved);
	/* before the event: a program that dequeues it may query the counter at once */
	if (cr && a->datagram)
		dofi_count_exactly(&sp->obj.ia->count.ah_request_arrived);
	ret = cr ? announce(sp, cr) : -ENOMEM;
	if (!ret) {
		sp->spent = sp->once;
		return 0;
	}
	if (cr && dofi_obj_claim(&cr->obj)) {
		dofi_calls_await(&cr->obj.calls);
		cr_free(cr);
	}
	if (made)
		dofi_ep_pass_over(made);
	return ret;
}

DAT_RETURN dofi_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	struct dofi_cr *cr DOFI_CALL = dofi_cr_enter(cr_handle);

	if (!cr)
		return DOFI_BAD_HANDLE(CR);
	if (mask & ~DAT_CR_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_CR_PARAM){
		.remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->peer,
		.remote_port_qual = cr->peer_port,
		.private_data_size = cr->data_size,
		.private_data = cr->data_size ? cr->data : NULL,
		.local_ep_handle = cr->ep,
	};
	return DAT_SUCCESS;
}

static DAT_RETURN accept_connection(struct dofi_cr *cr, struct dofi_ep *ep, DAT_COUNT size,
				    const void *data)
{
	DAT_RETURN ret = DAT_SUCCESS;
	bool may;

	dofi_mutex_lock(&ep->lock);
	/* an EP that came with the request is the only EP that may accept it */
	may = cr->ep ? ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
		       ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING :
		       ep->state == DAT_EP_STATE_UNCONNECTED;
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		ret = DOFI_REFUSED(DOFI_BAD_HANDLE(EP), DOFI_CM, "the EP to accept was freed");
	else if (!may)
		ret = dofi_ep_refuse(ep, "dat_cr_accept");
	else if (!ep->pz || !ep->connect_evd)
		ret = DOFI_REFUSED(DOFI_BAD_STATE(EP_NOTREADY), DOFI_CM,
				   "the EP to accept has no %s", ep->pz ? "connect EVD" : "PZ");
	/* only one of two threads that answer the request gets it */
	else if (!dofi_obj_claim(&cr->obj))
		ret = DOFI_BAD_HANDLE(CR);
	if (ret)
		goto unlock;
	show_peer(ep, cr);
	ep->xport = cr->xport;
	ep->accepting = cr->request;
	cr->request = NULL;
	ep->mailbox = cr->mailbox;
	ep->peer_secret = cr->secret;
	ep->preambles = cr->preambles;
	/* an EP of the provider becomes the consumer's */
	atomic_store(&ep->obj.provided, false);
	dofi_request_set(&ep->request, DOFI_NEVER, DAT_QOS_BEST_EFFORT, data, size);
	dofi_ep_state_set(ep, DAT_EP_STATE_COMPLETION_PENDING);
	dofi_ep_todo(ep, DOFI_EP_ACCEPT);
unlock:
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

/* Accepts @cr, of a datagram EP, with @ep, which is one too. */
static DAT_RETURN accept_exchange(struct dofi_cr *cr, struct dofi_ep *ep, DAT_COUNT size,
				  const void *data)
{
	struct dofi_exchange *x = dofi_exchange_new(ep, false);
	DAT_RETURN ret;

	if (!x)
		return DOFI_NO_RESOURCE(MEMORY);
	dofi_mutex_lock(&ep->lock);
	ret = dofi_exchange_admit(ep);
	if (!ret && !dofi_obj_claim(&cr->obj))
		ret = DOFI_BAD_HANDLE(CR);
	if (!ret) {
		x->accepting = cr->request;
		cr->request = NULL;
		x->request.peer = cr->peer;
		x->request.conn_qual = cr->conn_qual;
		dofi_request_set(&x->request, DOFI_NEVER, DAT_QOS_BEST_EFFORT, data, size);
		x->data_size = cr->data_size;
		memcpy(x->data, cr->data, cr->data_size);
		dofi_exchange_begin(ep, x);
	}
	dofi_mutex_unlock(&ep->lock);
	if (ret)
		dofi_exchange_discard(x);
	return ret;
}

/* Accepts with the request's own EP, or else the consumer's. Claims @cr. */
static DAT_RETURN cr_accept(struct dofi_cr *cr, DAT_EP_HANDLE ep_handle, DAT_COUNT data_size,
			    const void *data)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(cr->ep ? cr->ep : ep_handle);
	const bool fits = cr->ep ? ep_handle == DAT_HANDLE_NULL :
			  ep && ep->obj.ia == cr->obj.ia && ep->datagrams == cr->datagram;

	if (!ep || !fits)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(EP), DOFI_CM, "ep_handle is %p; permitted: %s",
				    ep_handle, cr->ep ?
				    "null, as the request has an EP of its own" :
				    "an EP of the request's IA and service type");
	if (data_size < 0 || data_size > cr->obj.ia->max_private_data)
		return DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_CM,
				    "private_data_size is %d; permitted: 0 to %d", data_size,
				    cr->obj.ia->max_private_data);
	if (data_size && !data)
		return DOFI_REFUSED(DOFI_BAD_ARG(4), DOFI_CM,
				    "no private_data, with a size of %d", data_size);
	return cr->datagram ? accept_exchange(cr, ep, data_size, data) :
			      accept_connection(cr, ep, data_size, data);
}

DAT_RETURN dofi_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT data_size,
			  const DAT_PVOID data)
{
	struct dofi_cr *cr = dofi_cr_enter(cr_handle);
	struct dofi_ia *ia;
	DAT_RETURN ret;

	if (!cr)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(CR), DOFI_CM,
				    "dat_cr_accept: %p is no unanswered request", cr_handle);
	ret = cr_accept(cr, ep_handle, data_size, data);
	if (ret) {
		dofi_obj_leave(&cr->obj);
		return ret;
	}
	ia = dofi_obj_take_over(&cr->obj);
	dofi_count_exactly(&ia->count.cr_accepted);
	cr_free(cr);
	dofi_ia_leave(ia);
	return DAT_SUCCESS;
}

static DAT_RETURN reject(DAT_CR_HANDLE cr_handle, DAT_COUNT data_size, const void *data)
{
	struct dofi_cr *cr = dofi_cr_enter(cr_handle);
	const struct reject_call call = {
		.cr = cr, .why = DOFI_REJECT_CONSUMER, .data = data, .size = data_size,
	};
	struct dofi_ia *ia;
	DAT_RETURN ret;

	if (!cr)
		return DOFI_BAD_HANDLE(CR);
	if (data_size < 0 || data_size > cr->obj.ia->max_private_data)
		ret = DOFI_BAD_ARG(2);
	else if (data_size && !data)
		ret = DOFI_BAD_ARG(3);
	else
		ret = dofi_obj_claim(&cr->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(CR);
	if (ret) {
		dofi_obj_leave(&cr->obj);
		return ret;
	}
	ia = dofi_obj_take_over(&cr->obj);
	dofi_count_exactly(&ia->count.cr_rejected);
	turn_down(&call);
	dofi_ia_leave(ia);
	return DAT_SUCCESS;
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT data_size, const DAT_PVOID data)
{
	return reject(cr_handle, data_size, data);
}
#else
DAT_RETURN dofi_cr_reject(DAT_CR_HANDLE cr_handle)
{
	return reject(cr_handle, 0, NULL);
}
#endif

struct handoff_call {
	DAT_CR_HANDLE cr_handle;
	DAT_CONN_QUAL conn_qual;
	struct dofi_cr *cr;		/* claimed and entered if ret is DAT_SUCCESS */
	DAT_RETURN ret;
};

/*
 * The other service point gets the request as it arrived. If it cannot take the request now, it
 * rejects it as it would a request from the peer.
 */
static void cr_handoff_on_thread(void *arg)
{
	struct handoff_call *c = arg;
	struct dofi_cr *cr = dofi_cr_enter(c->cr_handle);
	struct dofi_sp *to = cr ? dofi_sp_find(cr->obj.ia, c->conn_qual) : NULL;
	struct dofi_arrival arrival;

	c->cr = cr;
	c->ret = cr && !to ? DOFI_BAD_ARG(2) : DOFI_BAD_HANDLE(CR);
	if (!to || !dofi_obj_claim(&cr->obj)) {
		if (cr)
			dofi_obj_leave(&cr->obj);
		return;
	}
	c->ret = DAT_SUCCESS;
	arrival = (struct dofi_arrival){
		.xport = cr->xport, .request = cr->request, .peer = cr->peer, .secret = cr->secret,
		.mailbox = cr->mailbox, .preambles = cr->preambles, .datagram = cr->datagram,
		.data = cr->data, .data_size = cr->data_size,
	};
	if (cr->ep)
		dofi_ep_pass_over(cr->ep);
	if (dofi_cr_arrived(to, &arrival))
		cr->xport->reject(cr, DOFI_REJECT_PROVIDER, NULL, 0);
}

DAT_RETURN dofi_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL conn_qual)
{
	struct handoff_call call = {
		.cr_handle = cr_handle, .conn_qual = conn_qual, .ret = dofi_ret(-ENODEV),
	};
	struct dofi_cr *cr = dofi_cr_enter(cr_handle);
	struct dofi_ia *ia;

	if (!cr)
		return DOFI_BAD_HANDLE(CR);
	ia = dofi_obj_leave_to_ia(&cr->obj);
	dofi_progress_call(&ia->progress, cr_handoff_on_thread, &call);
	if (!call.ret) {
		dofi_ia_leave(dofi_obj_take_over(&call.cr->obj));
		cr_free(call.cr);
	}
	dofi_ia_leave(ia);
	return call.ret;
}
