/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection Request: a peer's wish to connect, until it is accepted or rejected. */

#include "obj/cr.h"

#include "base/clock.h"

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

	c->cr->obj.ia->xport->reject(c->cr, c->why, c->data, c->size);
}

/* The end of a CR that nobody answered: the peer must not wait for its time-out. */
static void cr_destroy(struct dofi_obj *obj)
{
	struct reject_call call = { .cr = (struct dofi_cr *)obj, .why = DOFI_REJECT_PROVIDER };

	if (!dofi_obj_retire(obj))
		return;
	dofi_progress_call(&obj->ia->progress, cr_reject_on_thread, &call);
	dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, obj);
}

static DAT_PORT_QUAL port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void peer_of(const struct fi_info *info, struct sockaddr_storage *peer)
{
	memset(peer, 0, sizeof(*peer));
	if (info->dest_addr && info->dest_addrlen <= sizeof(*peer))
		memcpy(peer, info->dest_addr, info->dest_addrlen);
}

static int announce(struct dofi_sp *sp, struct dofi_cr *cr)
{
	struct dofi_event event = { .number = DAT_CONNECTION_REQUEST_EVENT };

	event.data.cr_arrival_event_data = (DAT_CR_ARRIVAL_EVENT_DATA){
		.sp_handle.psp_handle = sp,
		.local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&sp->obj.ia->address,
		.conn_qual = sp->conn_qual,
		.cr_handle = cr,
	};
	return dofi_evd_push(sp->evd, &event, true);
}

int dofi_cr_arrived(struct dofi_sp *sp, const struct dofi_arrival *a)
{
	struct dofi_cr *cr = dofi_obj_new(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, sp->obj.ia, cr_destroy);
	int ret;

	if (!cr)
		return -ENOMEM;
	cr->conn_qual = sp->conn_qual;
	cr->info = a->info;
	cr->listener = a->listener;
	cr->data_size = a->data_size;
	if (a->data_size)
		memcpy(cr->data, a->data, a->data_size);
	peer_of(a->info, &cr->peer);
	cr->peer_port = port_of(&cr->peer);
	dofi_obj_publish(&cr->obj, DAT_HANDLE_TYPE_CR);
	ret = announce(sp, cr);
	if (ret) {
		dofi_obj_retire(&cr->obj);
		dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, &cr->obj);
	}
	return ret;
}

DAT_RETURN dofi_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	struct dofi_cr *cr = dofi_cr_check(cr_handle);

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
		.local_ep_handle = DAT_HANDLE_NULL,
	};
	return DAT_SUCCESS;
}

/* Moves the request from the CR to the EP. EP lock held. */
static void take_over(struct dofi_ep *ep, struct dofi_cr *cr)
{
	ep->request.peer = cr->peer;
	ep->request.conn_qual = ep->local_port = cr->conn_qual;
	ep->remote_port = cr->peer_port;
	ep->accept_info = cr->info;
	ep->listener = cr->listener;
	cr->info = NULL;
}

static DAT_RETURN accept_with(struct dofi_cr *cr, struct dofi_ep *ep, DAT_COUNT size,
			      const void *data)
{
	if (ep->state != DAT_EP_STATE_UNCONNECTED)
		return dofi_ep_bad_state(ep);
	if (!ep->pz || !ep->connect_evd)
		return DOFI_BAD_STATE(EP_NOTREADY);
	/* only one of two threads that answer the request gets it */
	if (!dofi_obj_retire(&cr->obj))
		return DOFI_BAD_HANDLE(CR);
	take_over(ep, cr);
	ep->request.deadline = DOFI_NEVER;
	ep->request.data_size = size;
	if (size)
		memcpy(ep->request.data, data, size);
	dofi_ep_state_set(ep, DAT_EP_STATE_COMPLETION_PENDING);
	dofi_ep_todo(ep, DOFI_EP_ACCEPT);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT data_size,
			  const DAT_PVOID data)
{
	struct dofi_cr *cr = dofi_cr_check(cr_handle);
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	DAT_RETURN ret;

	if (!cr)
		return DOFI_BAD_HANDLE(CR);
	if (!ep || ep->obj.ia != cr->obj.ia)
		return DOFI_BAD_HANDLE(EP);
	if (data_size < 0 || data_size > cr->obj.ia->max_private_data)
		return DOFI_BAD_ARG(3);
	if (data_size && !data)
		return DOFI_BAD_ARG(4);
	pthread_mutex_lock(&ep->lock);
	ret = accept_with(cr, ep, data_size, data);
	pthread_mutex_unlock(&ep->lock);
	if (!ret)
		dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, &cr->obj);
	return ret;
}

static DAT_RETURN reject(DAT_CR_HANDLE cr_handle, DAT_COUNT data_size, const void *data)
{
	struct dofi_cr *cr = dofi_cr_check(cr_handle);
	struct reject_call call = {
		.cr = cr, .why = DOFI_REJECT_CONSUMER, .data = data, .size = data_size,
	};

	if (!cr)
		return DOFI_BAD_HANDLE(CR);
	if (data_size < 0 || data_size > cr->obj.ia->max_private_data)
		return DOFI_BAD_ARG(2);
	if (data_size && !data)
		return DOFI_BAD_ARG(3);
	if (!dofi_obj_retire(&cr->obj))
		return DOFI_BAD_HANDLE(CR);
	dofi_progress_call(&cr->obj.ia->progress, cr_reject_on_thread, &call);
	dofi_obj_free(&dofi_cr_pool, DAT_HANDLE_TYPE_CR, &cr->obj);
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
