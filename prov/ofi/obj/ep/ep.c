/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: its lock, its state, its queues at the fabric, and the begin of a connection's end. */

#include "obj/ep/ep.h"

#include "base/log.h"
#include "fab/quirks.h"

#include <assert.h>

#define TO(state) (1u << DAT_EP_STATE_##state)

/* One row each. dofi_ep_state_set() changes the state. */
const struct dofi_ep_state dofi_ep_states[] = {
	[DAT_EP_STATE_UNCONNECTED] = {
		"UNCONNECTED", DOFI_EP_MAY_FREE,
		TO(RESERVED) | TO(ACTIVE_CONNECTION_PENDING) | TO(COMPLETION_PENDING),
		DAT_INVALID_STATE_EP_UNCONNECTED },
	[DAT_EP_STATE_RESERVED] = {
		"RESERVED", 0, TO(UNCONNECTED) | TO(PASSIVE_CONNECTION_PENDING),
		DAT_INVALID_STATE_EP_RESERVED },
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = {
		"PASSIVE_CONNECTION_PENDING", DOFI_EP_HAS_PEER,
		TO(COMPLETION_PENDING) | TO(UNCONNECTED), DAT_INVALID_STATE_EP_PASSCONNPENDING },
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = {
		"ACTIVE_CONNECTION_PENDING", DOFI_EP_MAY_FREE | DOFI_EP_HAS_PEER | DOFI_EP_IS_LIVE,
		TO(CONNECTED) | TO(DISCONNECTED), DAT_INVALID_STATE_EP_ACTCONNPENDING },
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = {
		"TENTATIVE_CONNECTION_PENDING", DOFI_EP_HAS_PEER, TO(COMPLETION_PENDING),
		DAT_INVALID_STATE_EP_TENTCONNPENDING },
	[DAT_EP_STATE_COMPLETION_PENDING] = {
		"COMPLETION_PENDING", DOFI_EP_MAY_FREE | DOFI_EP_HAS_PEER | DOFI_EP_IS_LIVE,
		TO(CONNECTED) | TO(DISCONNECTED), DAT_INVALID_STATE_EP_COMPLPENDING },
	[DAT_EP_STATE_CONNECTED] = {
		"CONNECTED",
		DOFI_EP_MAY_REQUEST | DOFI_EP_MAY_FREE | DOFI_EP_HAS_PEER | DOFI_EP_IS_LIVE,
		TO(DISCONNECT_PENDING) | TO(DISCONNECTED), DAT_INVALID_STATE_EP_CONNECTED },
	[DAT_EP_STATE_DISCONNECT_PENDING] = {
		"DISCONNECT_PENDING", DOFI_EP_MAY_FREE | DOFI_EP_HAS_PEER | DOFI_EP_IS_LIVE,
		TO(DISCONNECTED), DAT_INVALID_STATE_EP_DISCPENDING },
	[DAT_EP_STATE_DISCONNECTED] = {
		"DISCONNECTED", DOFI_EP_MAY_REQUEST | DOFI_EP_MAY_FREE, TO(UNCONNECTED),
		DAT_INVALID_STATE_EP_DISCONNECTED },
};

struct dofi_pool dofi_ep_pool = DOFI_POOL_INIT("ep", struct dofi_ep, NULL);

void dofi_fast_renew(struct dofi_ep *ep)
{
	const struct dofi_xport *xport = ep->xport;
	const bool plain = ep->sq.open && ep->state == DAT_EP_STATE_CONNECTED && !ep->preambles &&
			   !dofi_queue_waits(&ep->sq) && !dofi_queue_waits(&ep->rq) &&
			   !ep->rq.held && !ep->resume_pending && xport->fast;
	struct dofi_fast *fast = &ep->fast;

	dofi_mutex_assert_held(&ep->lock);
	fast->send = NULL;
	fast->recv = NULL;
	if (plain)
		xport->fast(ep, fast);
	if (ep->srq)
		fast->recv = NULL;
	/* the fast path tests the LMR alone */
	if (!fast->send)
		ep->sq.lmr = &dofi_lmr_none;
	if (!fast->recv)
		ep->rq.lmr = &dofi_lmr_none;
}

/*
 * Receives must be posted before the peer may send, but not while an attempt to connect may still
 * be refused: the fabric would flush them with it. Where a message that arrives before its receive
 * is delayed for long, they are posted early, and recalled when the attempt fails.
 */
void dofi_ep_open_queues(struct dofi_ep *ep)
{
	bool open = ep->fid && !ep->closing;
	bool trying = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;

	dofi_mutex_assert_held(&ep->lock);
	ep->rq.open = open && (!trying || ep->obj.ia->fabric.quirk->late_receives_cost);
	ep->sq.open = open && !trying && ep->state != DAT_EP_STATE_COMPLETION_PENDING;
	dofi_fast_renew(ep);
}

void dofi_ep_state_set(struct dofi_ep *ep, DAT_EP_STATE next)
{
	dofi_mutex_assert_held(&ep->lock);
	assert(dofi_ep_states[ep->state].next & (1u << next));
	dofi_ep_log(ep, DOFI_DEBUG, DOFI_EP, "%s -> %s", dofi_ep_states[ep->state].name,
		    dofi_ep_states[next].name);
	ep->state = next;
	dofi_ep_open_queues(ep);
}

DAT_EP_STATE dofi_ep_state_now(struct dofi_ep *ep)
{
	DAT_EP_STATE state;

	dofi_mutex_lock(&ep->lock);
	state = ep->state;
	dofi_mutex_unlock(&ep->lock);
	return state;
}

void dofi_ep_todo(struct dofi_ep *ep, unsigned what)
{
	dofi_mutex_assert_held(&ep->lock);
	ep->todo |= what;
	dofi_progress_post(&ep->obj.ia->progress, &ep->work);
}

void dofi_ep_end(struct dofi_ep *ep, DAT_EVENT_NUMBER event)
{
	dofi_mutex_assert_held(&ep->lock);
	if (ep->datagrams)
		return;
	/* the peer's disconnect may be seen before the failure that caused it */
	if (ep->closing && event == DAT_CONNECTION_EVENT_BROKEN &&
	    ep->state == DAT_EP_STATE_CONNECTED)
		ep->end = event;
	if (!dofi_ep_is_live(ep) || ep->closing)
		return;
	ep->closing = true;
	dofi_ep_open_queues(ep);
	ep->end = event;
	dofi_ep_todo(ep, DOFI_EP_CLOSE);
}

void dofi_ep_lost(struct dofi_ep *ep, bool data_lost)
{
	dofi_mutex_assert_held(&ep->lock);
	if (!ep->datagrams && dofi_ep_is_live(ep) && !ep->closing) {
		ep->lost = true;
		ep->data_lost = data_lost;
		ep->peer_data_size = 0;
	}
	dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void dofi_ep_request_done(struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	if (dofi_queue_empty(&ep->sq))
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}
