/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delivery of events, and connection requests.
 *
 * A connection request is the only object that no call creates. The registry learns of it from its
 * event, together with the endpoint that the provider may have created for it.
 */

#include "dispatch.h"

#include "log.h"

/* Returns the EP of a CR, or null. */
static DAT_EP_HANDLE cr_ep(const DAT_PROVIDER *provider, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = { .local_ep_handle = DAT_HANDLE_NULL };

	if (!provider->cr_query_func ||
	    provider->cr_query_func(cr, DAT_CR_FIELD_LOCAL_EP_HANDLE, &param) != DAT_SUCCESS)
		return DAT_HANDLE_NULL;
	return param.local_ep_handle;
}

/*
 * Looks up the EP now, while the CR holds it: it may be freed before a later call returns it. An EP
 * that the program created is in the set already.
 */
static void cr_arrived(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct dreg_handle evd, known, obj;
	DAT_EP_HANDLE ep;
	bool made;

	if (!dreg_handle_live(evd_handle, DAT_HANDLE_TYPE_EVD, &evd))
		return;
	ep = cr_ep(evd.provider, cr);
	made = ep != DAT_HANDLE_NULL && !dreg_handle_live(ep, DAT_HANDLE_TYPE_EP, &known);
	obj = evd;
	obj.kind = DAT_HANDLE_TYPE_CR;
	obj.flags &= DREG_EXTENSIONS;
	obj.flags |= made ? DREG_HAS_EP : 0;
	if (dreg_handle_add(cr, &obj)) {
		dreg_log(DREG_LOG_ERROR, "out of memory: a connection request is lost");
		return;
	}

	obj.kind = DAT_HANDLE_TYPE_EP;
	obj.flags &= DREG_EXTENSIONS;
	if (made && dreg_handle_add(ep, &obj))
		dreg_log(DREG_LOG_ERROR, "out of memory: an endpoint is lost");
}

/* Runs before the program sees an event. A request for a datagram endpoint has a CR as well. */
static DAT_RETURN event_deliver(DAT_RETURN ret, DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	if (ret != DAT_SUCCESS)
		return ret;
#if DAT_VERSION_MAJOR >= 2
	if (event->event_number == DAT_IB_UD_CONNECTION_REQUEST_EVENT)
		cr_arrived(evd, event);
#endif
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		cr_arrived(evd, event);
	return ret;
}

/* Most EVDs take no connection requests; their events need no inspection. */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	const DAT_PROVIDER *to;

	if (__builtin_expect(dreg_handle_route_fast(evd_handle, DAT_HANDLE_TYPE_EVD,
						    DREG_TAKES_REQUESTS, &to) &&
			     to->evd_dequeue_func, 1))
		return to->evd_dequeue_func(evd_handle, event);
	to = dreg_handle_route(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!to)
		return DREG_BAD_HANDLE(EVD);
	NEEDS(to, evd_dequeue_func);
	return event_deliver(to->evd_dequeue_func(evd_handle, event), evd_handle, event);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *n_more)
{
	const DAT_PROVIDER *to = dreg_handle_route(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!to)
		return DREG_BAD_HANDLE(EVD);
	NEEDS(to, evd_wait_func);
	return event_deliver(to->evd_wait_func(evd_handle, timeout, threshold, event, n_more),
			     evd_handle, event);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT size, const DAT_PVOID data)
{
	DAT_RETURN ret;

	LOOK_UP(cr, CR, cr_handle);
	CHECK_ARG(cr.provider, EP, ep_handle, EP);
	NEEDS(cr.provider, cr_accept_func);
	ret = cr.provider->cr_accept_func(cr_handle, ep_handle, size, data);
	if (ret == DAT_SUCCESS)
		dreg_handle_drop(cr_handle, cr.serial);
	return ret;
}

/*
 * Body of a call that rejects a CR: drops its handle, and the handle of an EP that the provider
 * created for it. Looks up the EP before the call, which ends the CR.
 */
#define REFUSE(func, handle, ...)							\
	do {										\
		DAT_EP_HANDLE ep = DAT_HANDLE_NULL;					\
		struct dreg_handle known = { .serial = 0 };				\
		DAT_RETURN ret;								\
											\
		LOOK_UP(cr, CR, handle);						\
		NEEDS(cr.provider, func);						\
		if (cr.flags & DREG_HAS_EP)						\
			ep = cr_ep(cr.provider, handle);				\
		if (!dreg_handle_live(ep, DAT_HANDLE_TYPE_EP, &known))			\
			ep = DAT_HANDLE_NULL;						\
		ret = cr.provider->func(handle, ##__VA_ARGS__);				\
		if (ret == DAT_SUCCESS) {						\
			dreg_handle_drop(handle, cr.serial);				\
			dreg_handle_drop(ep, known.serial);				\
		}									\
		return ret;								\
	} while (0)

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT size, const DAT_PVOID data)
{
	REFUSE(cr_reject_func, cr_handle, size, data);
}
#else
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle)
{
	REFUSE(cr_reject_func, cr_handle);
}
#endif

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	REFUSE(cr_handoff_func, cr_handle, handoff);
}
