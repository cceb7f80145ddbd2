/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagram endpoints: their exchanges of addresses, from the program's call to their end. */

#include "obj/datagram.h"

#include <string.h>

/* Lists */

/* Moves @x of @ep to the end of @to; NULL: it is in no list. */
static void move(struct dofi_ep *ep, struct dofi_exchange *x, struct dofi_exchanges *to)
	DOFI_NEEDS(ep->lock)
{
	dofi_ep_assert_locked(ep);
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

/* Beginning */

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
	dofi_ep_assert_locked(ep);
	if (ep->state != DAT_EP_STATE_CONNECTED)
		return dofi_ep_bad_state(ep);
	return ep->connect_evd ? DAT_SUCCESS : DOFI_BAD_STATE(EP_NOTREADY);
}

void dofi_exchange_begin(struct dofi_ep *ep, struct dofi_exchange *x)
{
	dofi_ep_assert_locked(ep);
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
	x->peer = request->peer;
	dofi_ep_lock(ep);
	ret = dofi_exchange_admit(ep);
	if (!ret) {
		ep->n_connect++;
		dofi_count_exactly(&ep->obj.ia->count.ah_requested);
		dofi_exchange_begin(ep, x);
	}
	dofi_ep_unlock(ep);
	if (ret)
		dofi_exchange_discard(x);
	return ret;
}

/* Moves the oldest new exchange to those of the transport. Returns NULL if there is none. */
static struct dofi_exchange *take_new(struct dofi_ep *ep)
{
	struct dofi_exchange *x;

	dofi_ep_lock(ep);
	while ((x = TAILQ_FIRST(&ep->exchanges_new)) && ep->silent && x->active)
		exchange_free(ep, x);
	if (x)
		move(ep, x, &ep->exchanges);
	dofi_ep_unlock(ep);
	return x;
}

void dofi_exchanges_start(struct dofi_ep *ep)
{
	const struct dofi_datagrams *service = ep->obj.ia->datagrams;
	struct dofi_exchange *x;
	void *request;

	while ((x = take_new(ep))) {
		request = x->accepting;
		x->accepting = NULL;
		if (x->active)
			service->connect(x);
		else
			service->accept(x, request);
	}
}

/* Ending */

#if DAT_VERSION_MAJOR >= 2
static DAT_COUNT type_of(const struct dofi_exchange *x, DAT_EVENT_NUMBER event)
{
	switch ((int)event) {
	case DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED:
		return x->active ? DAT_IB_UD_REMOTE_AH : DAT_IB_UD_PASSIVE_REMOTE_AH;
	case DAT_IB_UD_CONNECTION_REJECT_EVENT:
		return DAT_IB_UD_CONNECT_REJECT;
	default:
		return DAT_IB_UD_CONNECT_ERROR;
	}
}
#else
static DAT_COUNT type_of(const struct dofi_exchange *x, DAT_EVENT_NUMBER event)
{
	return (DAT_COUNT)event * x->active;
}
#endif

static void result_keep(struct dofi_exchange *x, const struct dofi_exchanged *how)
{
	const size_t size = how->data_size < sizeof(x->data) ? how->data_size : sizeof(x->data);

	x->type = type_of(x, how->event);
	x->ah = how->ah;
	x->number = how->number;
	if (how->peer.ss_family)
		x->peer = how->peer;
	if (!size)
		return;
	memcpy(x->data, how->data, size);
	x->data_size = (DAT_COUNT)size;
}

/*
 * Frees the oldest failed exchanges if there are too many. Programs free those that succeeded, but
 * may never free those that failed.
 */
static void failed_trim(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	struct dofi_exchange *x;

	while (ep->n_failed > DOFI_EXCHANGES_FAILED) {
		x = TAILQ_FIRST(&ep->exchanges_failed);
		if (!atomic_load_explicit(&x->taken, memory_order_relaxed))
			break;
		exchange_free(ep, x);
	}
}

static int push_event(struct dofi_ep *ep, struct dofi_exchange *x, DAT_EVENT_NUMBER number)
	DOFI_NEEDS(ep->lock)
{
	struct dofi_event event = { .number = number, .immed = dofi_pool_index(x) };

	event.data.connect_event_data = (DAT_CONNECTION_EVENT_DATA){
		.ep_handle = ep,
		.private_data_size = x->data_size,
		.private_data = x->data_size ? x->data : NULL,
	};
	return dofi_evd_push(ep->connect_evd, &event, true);
}

/*
 * Queues the event of @x. Returns false if the program will not see it, and so not free the address
 * handle; @x is freed then, or is when its EP ends.
 */
static bool report(struct dofi_ep *ep, struct dofi_exchange *x, DAT_EVENT_NUMBER event)
	DOFI_NEEDS(ep->lock)
{
	move(ep, x, x->ah || ep->silent ? &ep->exchanges_kept : &ep->exchanges_failed);
	if (ep->silent) {
		x->ah = NULL;
		return false;
	}
	x->reported = true;
	if (push_event(ep, x, event)) {
		exchange_free(ep, x);
		return false;
	}
	failed_trim(ep);
	return true;
}

void dofi_exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how)
{
	struct dofi_ep *ep = x->ep;
	struct dofi_ia *ia = ep->obj.ia;
	bool seen;

	dofi_ep_lock(ep);
	result_keep(x, how);
	seen = report(ep, x, how->event);
	dofi_ep_unlock(ep);
	if (how->ah)
		dofi_count_exactly(&ia->count.ah_resolved);
	if (how->ah && !seen)
		ia->datagrams->ah_free(ep, how->ah);
}

static void list_free(struct dofi_exchanges *list)
{
	struct dofi_exchange *x, *next;

	for (x = TAILQ_FIRST(list); x; x = next) {
		next = TAILQ_NEXT(x, link);
		dofi_exchange_discard(x);
	}
	TAILQ_INIT(list);
}

/* Gives up the address handles whose events the program did not dequeue. Progress thread. */
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
	if (!TAILQ_EMPTY(&ep->exchanges_kept))
		dofi_progress_call(&ep->obj.ia->progress, unseen_free, ep);
	dofi_ep_lock(ep);
	list_free(&ep->exchanges_new);
	list_free(&ep->exchanges);
	list_free(&ep->exchanges_kept);
	list_free(&ep->exchanges_failed);
	ep->n_failed = 0;
	dofi_ep_unlock(ep);
}

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
/* The exchange at @p, which may be any value, if it is of @ep and its event was dequeued. */
static struct dofi_exchange *exchange_find(struct dofi_ep *ep, void *p) DOFI_NEEDS(ep->lock)
{
	struct dofi_exchange *x = p;

	dofi_ep_assert_locked(ep);
	if (!dofi_pool_owns(&dofi_exchange_pool, p) || dofi_pool_tag(p) != DOFI_EXCHANGE_LIVE)
		return NULL;
	return x->ep == ep && atomic_load_explicit(&x->taken, memory_order_relaxed) ? x : NULL;
}

DAT_RETURN dofi_ud_cm_free(DAT_EP_HANDLE ep_handle, void *exchange)
{
	struct dofi_exchange *x;
	struct dofi_ep *ep DOFI_CALL = NULL;
	DAT_RETURN ret = dofi_datagram_enter(ep_handle, &ep);

	if (ret)
		return ret;
	dofi_ep_lock(ep);
	x = exchange_find(ep, exchange);
	if (x)
		exchange_free(ep, x);
	dofi_ep_unlock(ep);
	return x ? DAT_SUCCESS : DOFI_BAD_ARG(3);
}

struct free_call {
	DAT_EP_HANDLE ep_handle;
	const DAT_IB_ADDR_HANDLE *ah;
	DAT_RETURN ret;
};

static DAT_RETURN ah_free(const struct free_call *c)
{
	struct dofi_ep *ep DOFI_CALL = NULL;
	DAT_RETURN ret = dofi_datagram_enter(c->ep_handle, &ep);

	if (ret)
		return ret;
	return ep->obj.ia->datagrams->ah_free(ep, c->ah->ah) ? DAT_SUCCESS : DOFI_BAD_ARG(3);
}

static void ah_free_on_thread(void *arg)
{
	struct free_call *c = arg;

	c->ret = ah_free(c);
}

/* The IA of the datagram EP @handle, entered. */
static DAT_RETURN ia_enter(DAT_EP_HANDLE handle, struct dofi_ia **ia)
{
	struct dofi_ep *ep;
	DAT_RETURN ret = dofi_datagram_enter(handle, &ep);

	if (!ret)
		*ia = dofi_obj_leave_to_ia(&ep->obj);
	else if (ep)
		dofi_obj_leave(&ep->obj);
	return ret;
}

DAT_RETURN dofi_ud_ah_free(DAT_EP_HANDLE ep_handle, const DAT_IB_ADDR_HANDLE *ah)
{
	struct free_call call = {
		.ep_handle = ep_handle, .ah = ah, .ret = DOFI_BAD_ARG(3),
	};
	struct dofi_ia *ia;
	DAT_RETURN ret = ia_enter(ep_handle, &ia);

	if (ret)
		return ret;
	if (ah && ah->ah)
		dofi_progress_call(&ia->progress, ah_free_on_thread, &call);
	dofi_ia_leave(ia);
	return call.ret;
}
#endif
