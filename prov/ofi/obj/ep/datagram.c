/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagram endpoints: their exchanges of addresses, from the program's call to their end. */

#include "obj/ep/datagram.h"

#include <string.h>

struct dofi_pool dofi_exchange_pool = DOFI_POOL_INIT("exchange", struct dofi_exchange, NULL);

/* Moves @x of @ep to the end of @to; NULL: it is in no list. */
static void move(struct dofi_ep *ep, struct dofi_exchange *x, struct dofi_exchanges *to)
	DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	if (x->list)
		TAILQ_REMOVE(x->list, x, link);
	ep->n_failed -= x->list == &ep->exchanges_failed;
	ep->n_failed += to == &ep->exchanges_failed;
	x->list = to;
	if (to)
		TAILQ_INSERT_TAIL(to, x, link);
}

void dofi_exchange_discard(struct dofi_exchange *x)
{
	dofi_pool_tag_set(x, 0);
	dofi_pool_put(&dofi_exchange_pool, x);
}

static void exchange_free(struct dofi_ep *ep, struct dofi_exchange *x) DOFI_NEEDS(ep->lock)
{
	move(ep, x, NULL);
	dofi_exchange_discard(x);
}

struct dofi_exchange *dofi_exchange_new(struct dofi_ep *ep, bool active)
{
	struct dofi_exchange *x = dofi_pool_get(&dofi_exchange_pool);

	if (!x)
		return NULL;
	x->ep = ep;
	x->active = active;
	x->reported = false;
	atomic_store_explicit(&x->taken, false, memory_order_relaxed);
	x->list = NULL;
	x->accepting = x->xport = NULL;
	x->ah = NULL;
	x->number = 0;
	x->data_size = 0;
	return x;
}

DAT_RETURN dofi_exchange_admit(const struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	if (ep->state != DAT_EP_STATE_CONNECTED)
		return dofi_ep_bad_state(ep);
	return ep->connect_evd ? DAT_SUCCESS : DOFI_BAD_STATE(EP_NOTREADY);
}

void dofi_exchange_begin(struct dofi_ep *ep, struct dofi_exchange *x)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_pool_tag_set(x, DOFI_EXCHANGE_LIVE);
	move(ep, x, &ep->exchanges_new);
	dofi_ep_todo(ep, DOFI_EP_EXCHANGE);
}

DAT_RETURN dofi_datagram_connect(struct dofi_ep *ep, const struct dofi_request *request)
{
	struct dofi_exchange *x = dofi_exchange_new(ep, true);
	DAT_RETURN ret;

	if (!x)
		return DOFI_NO_RESOURCE(MEMORY);
	x->request = *request;
	dofi_mutex_lock(&ep->lock);
	ret = dofi_exchange_admit(ep);
	if (!ret) {
		ep->n_connect++;
		dofi_count_exactly(&ep->obj.ia->count.ah_requested);
		dofi_exchange_begin(ep, x);
	}
	dofi_mutex_unlock(&ep->lock);
	if (ret)
		dofi_exchange_discard(x);
	return ret;
}

void dofi_exchanges_start(struct dofi_ep *ep)
{
	const struct dofi_datagrams *service = ep->obj.ia->datagrams;
	struct dofi_exchange *x;
	void *request;

	for (;;) {
		dofi_mutex_lock(&ep->lock);
		while ((x = TAILQ_FIRST(&ep->exchanges_new)) && ep->no_events && x->active)
			exchange_free(ep, x);
		if (x)
			move(ep, x, &ep->exchanges);
		dofi_mutex_unlock(&ep->lock);
		if (!x)
			return;
		request = x->accepting;
		x->accepting = NULL;
		if (x->active)
			service->connect(x);
		else
			service->accept(x, request);
	}
}

void dofi_exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how)
{
	const size_t size = dofi_min(how->data_size, sizeof(x->data));
	struct dofi_event event = { .number = how->event, .immed = dofi_pool_index(x) };
	struct dofi_ep *ep = x->ep;
	struct dofi_ia *ia = ep->obj.ia;
	bool seen = false;

	/* before the event: a program that dequeues it may query the counter at once */
	if (how->ah)
		dofi_count_exactly(&ia->count.ah_resolved);
	dofi_mutex_lock(&ep->lock);
#if DAT_VERSION_MAJOR >= 2
	if (how->event == DAT_IB_UD_CONNECTION_REJECT_EVENT)
		x->type = DAT_IB_UD_CONNECT_REJECT;
	else if (how->event != DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED)
		x->type = DAT_IB_UD_CONNECT_ERROR;
	else
		x->type = x->active ? DAT_IB_UD_REMOTE_AH : DAT_IB_UD_PASSIVE_REMOTE_AH;
#endif
	x->ah = how->ah;
	x->number = how->number;
	if (size) {
		memcpy(x->data, how->data, size);
		x->data_size = (DAT_COUNT)size;
	}
	move(ep, x, x->ah || ep->no_events ? &ep->exchanges_kept : &ep->exchanges_failed);
	if (ep->no_events) {
		x->ah = NULL;
	} else {
		x->reported = true;
		event.data.connect_event_data = (DAT_CONNECTION_EVENT_DATA){
			.ep_handle = ep,
			.private_data_size = x->data_size,
			.private_data = x->data_size ? x->data : NULL,
		};
		seen = !dofi_evd_push(ep->connect_evd, &event);
		if (!seen)
			exchange_free(ep, x);
	}
	/* programs free the exchanges that succeeded, but may never free failed ones */
	while (seen && ep->n_failed > DOFI_EXCHANGES_FAILED) {
		x = TAILQ_FIRST(&ep->exchanges_failed);
		if (!atomic_load_explicit(&x->taken, memory_order_relaxed))
			break;
		exchange_free(ep, x);
	}
	dofi_mutex_unlock(&ep->lock);
	/* a program that sees no event cannot free the address handle */
	if (how->ah && !seen)
		ia->datagrams->ah_free(ep, how->ah);
}

/* Gives up the address handles of undequeued events. Progress thread. */
static void unseen_free(void *arg)
{
	struct dofi_ep *ep = arg;
	struct dofi_exchange *x;

	while ((x = TAILQ_FIRST(&ep->exchanges_kept))) {
		TAILQ_REMOVE(&ep->exchanges_kept, x, link);
		if (x->ah && !atomic_load_explicit(&x->taken, memory_order_relaxed))
			ep->obj.ia->datagrams->ah_free(ep, x->ah);
		dofi_exchange_discard(x);
	}
}

void dofi_exchanges_drop(struct dofi_ep *ep)
{
	struct dofi_exchanges *const lists[] = { &ep->exchanges_new, &ep->exchanges,
						 &ep->exchanges_kept, &ep->exchanges_failed };
	struct dofi_exchange *x;
	size_t i;

	if (!TAILQ_EMPTY(&ep->exchanges_kept))
		dofi_progress_call(&ep->obj.ia->progress, unseen_free, ep);
	dofi_mutex_lock(&ep->lock);
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		while ((x = TAILQ_FIRST(lists[i])))
			exchange_free(ep, x);
	dofi_mutex_unlock(&ep->lock);
}

#if DAT_VERSION_MAJOR >= 2
void dofi_exchange_extend(DAT_EVENT *event, uint32_t index)
{
	DAT_IB_EXTENSION_EVENT_DATA extension = { .type = DAT_IB_UD_CONNECT_REQUEST };
	struct dofi_exchange *x;

	if (event->event_number != DAT_IB_UD_CONNECTION_REQUEST_EVENT) {
		x = dofi_pool_at(&dofi_exchange_pool, index);
		extension.type = (DAT_IB_EXT_TYPE)x->type;
		extension.status = x->ah ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
		extension.remote_ah.ah = x->ah;
		extension.remote_ah.qpn = x->number;
		memcpy(&extension.remote_ah.ia_addr, &x->request.peer,
		       sizeof(extension.remote_ah.ia_addr));
		extension.context.as_ptr = x;
		atomic_store_explicit(&x->taken, true, memory_order_relaxed);
	}
	memcpy(event->event_extension_data, &extension, sizeof(extension));
}
#endif

/* The calls of the extension */

DAT_RETURN dofi_datagram_enter(DAT_EP_HANDLE handle, struct dofi_ep **ep)
{
	*ep = dofi_ep_enter(handle);
	if (!*ep)
		return DOFI_BAD_HANDLE(EP);
	if (!(*ep)->obj.ia->datagrams)
		return DOFI_NOT_SUPPORTED;
	return (*ep)->datagrams ? DAT_SUCCESS : DOFI_BAD_HANDLE(EP);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ud_cm_free(DAT_EP_HANDLE ep_handle, void *exchange)
{
	struct dofi_exchange *x = exchange;
	struct dofi_ep *ep DOFI_CALL = NULL;
	DAT_RETURN ret = dofi_datagram_enter(ep_handle, &ep);
	bool found;

	if (ret)
		return ret;
	dofi_mutex_lock(&ep->lock);
	/* @exchange may be any value; the program has it from the event, which was dequeued */
	found = dofi_pool_owns(&dofi_exchange_pool, x) &&
		dofi_pool_tag(x) == DOFI_EXCHANGE_LIVE && x->ep == ep &&
		atomic_load_explicit(&x->taken, memory_order_relaxed);
	if (found)
		exchange_free(ep, x);
	dofi_mutex_unlock(&ep->lock);
	return found ? DAT_SUCCESS : DOFI_BAD_ARG(3);
}

struct free_call {
	DAT_EP_HANDLE ep_handle;
	const DAT_IB_ADDR_HANDLE *ah;
	DAT_RETURN ret;
};

static void ah_free_on_thread(void *arg)
{
	struct free_call *c = arg;
	struct dofi_ep *ep DOFI_CALL = NULL;

	c->ret = dofi_datagram_enter(c->ep_handle, &ep);
	if (!c->ret && !ep->obj.ia->datagrams->ah_free(ep, c->ah->ah))
		c->ret = DOFI_BAD_ARG(3);
}

DAT_RETURN dofi_ud_ah_free(DAT_EP_HANDLE ep_handle, const DAT_IB_ADDR_HANDLE *ah)
{
	struct free_call call = { .ep_handle = ep_handle, .ah = ah, .ret = DOFI_BAD_ARG(3) };
	struct dofi_ep *ep;
	struct dofi_ia *ia;
	DAT_RETURN ret = dofi_datagram_enter(ep_handle, &ep);

	if (ret) {
		if (ep)
			dofi_obj_leave(&ep->obj);
		return ret;
	}
	ia = dofi_obj_leave_to_ia(&ep->obj);
	if (ah && ah->ah)
		dofi_progress_call(&ia->progress, ah_free_on_thread, &call);
	dofi_ia_leave(ia);
	return call.ret;
}
#endif
