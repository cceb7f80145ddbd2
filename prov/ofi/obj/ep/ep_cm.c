/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: the lifecycle of a connection. Calls of the consumer are in ep_connect.c. */

#include "obj/ep/ep_cm.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"
#include "fab/info.h"
#include "obj/ep/datagram.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/rmr.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

static void push_connection_event(struct dofi_ep *ep, DAT_EVENT_NUMBER number) DOFI_NEEDS(ep->lock)
{
	struct dofi_event event = { .number = number };

	if (ep->no_events || !ep->connect_evd)
		return;
	event.data.connect_event_data = (DAT_CONNECTION_EVENT_DATA){
		.ep_handle = ep,
		.private_data_size = ep->peer_data_size,
		.private_data = ep->peer_data_size ? ep->peer_data : NULL,
	};
	dofi_evd_push(ep->connect_evd, &event);
}

static void keep_peer_data(struct dofi_ep *ep, const void *data, size_t size) DOFI_NEEDS(ep->lock)
{
	if (size > sizeof(ep->peer_data))
		size = sizeof(ep->peer_data);
	if (size)
		memcpy(ep->peer_data, data, size);
	ep->peer_data_size = size;
}

/* How long a consumer may take to post receives after its peer has left. */
#define LAST_RECEIVE_NS (500 * 1000000LL)

void dofi_ep_last_receives(struct dofi_ep *ep, DAT_EVENT_NUMBER event)
{
	dofi_mutex_lock(&ep->lock);
	ep->received = ep->rq.head;
	ep->last_event = event;
	dofi_mutex_unlock(&ep->lock);
	dofi_timer_start(&ep->obj.ia->progress, &ep->timer, dofi_now() + LAST_RECEIVE_NS);
}

static void ep_timeout(struct dofi_timer *timer)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(timer, struct dofi_ep, timer);
	bool connecting, receiving;

	/* the thread may have had no processor since the last messages arrived */
	dofi_cq_drain(ep->cq);
	dofi_mutex_lock(&ep->lock);
	connecting = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	receiving = ep->received != ep->rq.head;
	dofi_mutex_unlock(&ep->lock);
	if (connecting)
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_TIMED_OUT,
				      "no answer within the time-out");
	else if (receiving)
		dofi_ep_last_receives(ep, ep->last_event);
	else
		dofi_ep_end_with(ep, ep->last_event, NULL, 0);
}

static void ep_go_on(struct dofi_stall *stall)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(stall, struct dofi_ep, stall);

	dofi_mutex_lock(&ep->lock);
	dofi_dto_submit_pending(ep);
	dofi_mutex_unlock(&ep->lock);
	dofi_cq_want_sweep(ep->cq);	/* a further read, for arrivals before a receive */
}

/* Posts the probe, unless it is at the fabric. If the fabric refuses it, the next tick tries. */
static void probe(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto = &ep->probe;

	if (dto->at_fabric)
		return;
	dofi_dto_renew(dto);
	dofi_dto_begin(dto, ep->sq.next);
	dto->at_fabric = !ep->xport->probe(ep, dto);
}

/* How long reads may be outstanding, and no request end, before a probe: a second by default. */
#define WATCH_TICKS 1000

static int64_t watch_due(void)
{
	return dofi_now() + WATCH_TICKS * dofi_settings.tick_us * 1000;
}

static void ep_watch(struct dofi_timer *timer)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(timer, struct dofi_ep, watch);
	bool watched;

	dofi_mutex_lock(&ep->lock);
	/* an active connection stays watched: another start would need a system call */
	watched = ep->sq.open && (ep->reads || ep->watched_head != ep->sq.head);
	ep->watched = watched;
	if (watched && ep->watched_head == ep->sq.head)
		probe(ep);
	ep->watched_head = ep->sq.head;
	dofi_mutex_unlock(&ep->lock);
	if (watched)
		dofi_timer_start(&ep->obj.ia->progress, timer, watch_due());
}

void dofi_ep_established(struct dofi_ep *ep, const void *data, size_t size)
{
	struct dofi_ia *ia = ep->obj.ia;

	dofi_timer_stop(&ia->progress, &ep->timer);
	dofi_mutex_lock(&ep->lock);
	if (!ep->closing) {
		dofi_count_exactly(ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ?
				   &ia->count.active : &ia->count.passive);
		keep_peer_data(ep, data, size);
		ep->watched = !dofi_ep_loses_answers(ep);
		dofi_ep_state_set(ep, DAT_EP_STATE_CONNECTED);
		push_connection_event(ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dofi_dto_retire(ep, NULL);
		dofi_dto_submit_pending(ep);
		dofi_dto_watermarks(ep);
		if (ep->failed_early)
			dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	}
	dofi_mutex_unlock(&ep->lock);
	dofi_cq_kick(ep->cq, ep->shard);
}

void dofi_ep_bound(struct dofi_ep *ep, uint16_t port)
{
	dofi_mutex_lock(&ep->lock);
	ep->local_port = port;
	dofi_mutex_unlock(&ep->lock);
}

void dofi_ep_end_with(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const void *data, size_t size)
{
	dofi_mutex_lock(&ep->lock);
	if (!ep->closing)
		keep_peer_data(ep, data, size);
	dofi_ep_end(ep, event);
	dofi_mutex_unlock(&ep->lock);
}

void dofi_ep_no_connection(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const char *why)
{
	char text[INET6_ADDRSTRLEN];

	dofi_ep_log(ep, DOFI_WARN, DOFI_CM, "no connection to %s, qualifier %llu: %s",
		    dofi_address_text(&ep->request.peer, text),
		    (unsigned long long)ep->request.conn_qual, why);
	dofi_ep_end_with(ep, event, NULL, 0);
}

void dofi_ep_connect_again(struct dofi_ep *ep)
{
	dofi_mutex_lock(&ep->lock);
	dofi_ep_todo(ep, DOFI_EP_CONNECT);
	dofi_mutex_unlock(&ep->lock);
}

static void graceful_end(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	if (ep->graceful)
		dofi_cq_sleep_end(ep->cq);
	ep->graceful = false;
}

/* The counter of ends by @event. */
static uint64_t *end_counter(struct dofi_ia *ia, DAT_EVENT_NUMBER event)
{
	switch (event) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return &ia->count.rejected;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return &ia->count.refused;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return &ia->count.timeout;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		return &ia->count.disconnected;
	default:
		return &ia->count.broken;
	}
}

/*
 * Ends a connection for any cause: nothing more can complete at the fabric, operations without a
 * completion are flushed, and the event comes last.
 */
void dofi_ep_close_now(struct dofi_ep *ep)
{
	struct dofi_ia *ia = ep->obj.ia;
	bool scoped, connected;

	dofi_timer_stop(&ia->progress, &ep->timer);
	dofi_timer_stop(&ia->progress, &ep->watch);
	if (ep->datagrams)
		dofi_exchanges_start(ep);
	ep->xport->close(ep);
	dofi_mutex_lock(&ep->lock);
	scoped = ep->scoped;
	ep->scoped = false;
	dofi_mutex_unlock(&ep->lock);
	/* only the peer of this connection had a right to these grants */
	if (scoped)
		dofi_rmr_end_scope(ia, ep);
	/* all that the peer sent has been read, and the fabric has no operation of @ep */
	dofi_mutex_lock(&ep->lock);
	connected = ep->state == DAT_EP_STATE_CONNECTED ||
		    ep->state == DAT_EP_STATE_DISCONNECT_PENDING;
	ep->xport = ia->xport;
	ep->todo = 0;	/* drops work that was queued meanwhile */
	if (ep->lost && connected && ep->no_goodbye)
		ep->end = DAT_CONNECTION_EVENT_BROKEN;
	else if (ep->lost && ep->state == DAT_EP_STATE_COMPLETION_PENDING)
		ep->end = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	ep->lost = ep->no_goodbye = false;
	if (!dofi_ep_is_live(ep))
		goto unlock;
	dofi_dto_explain_end(ep, connected && ep->end == DAT_CONNECTION_EVENT_BROKEN);
	dofi_dto_flush(ep);
	/*
	 * The connection takes no more buffers from the SRQ. InfiniBand's providers report that
	 * once for each connection, and programs wait for it before they free an endpoint.
	 */
	if (ep->srq && connected && !ep->no_events)
		dofi_async_event(ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
	dofi_ep_state_set(ep, DAT_EP_STATE_DISCONNECTED);
	graceful_end(ep);
	ep->closing = ep->failed_early = ep->finishing = false;
	dofi_ep_open_queues(ep);
	if (!ep->datagrams)
		dofi_count_exactly(end_counter(ia, ep->end));
	push_connection_event(ep, ep->end);
unlock:
	dofi_mutex_unlock(&ep->lock);
}

/* Progress thread. After a close, an open that has not begun is skipped. */
static void ep_work(struct dofi_work *work)
{
	struct dofi_ep *ep = DOFI_CONTAINER_OF(work, struct dofi_ep, work);
	bool finish = false;
	unsigned todo;

	dofi_mutex_lock(&ep->lock);
	/* a thread that closes it without this work has also set closing */
	todo = ep->closing ? ep->todo & DOFI_EP_CLOSE : ep->todo;
	ep->todo = 0;
	if (todo & DOFI_EP_CLOSE) {
		/* a graceful disconnect, all requests of which are done */
		if (ep->graceful && dofi_queue_empty(&ep->sq) && !ep->lost &&
		    ep->end == DAT_CONNECTION_EVENT_DISCONNECTED) {
			graceful_end(ep);
			ep->finishing = true;
		}
		finish = ep->finishing && ep->xport->finish;
	}
	dofi_mutex_unlock(&ep->lock);
	if (todo & DOFI_EP_WATCH)
		dofi_timer_start(&ep->obj.ia->progress, &ep->watch, watch_due());
	if (todo & DOFI_EP_CLOSE) {
		if (!finish || !ep->xport->finish(ep))
			dofi_ep_close_now(ep);
	} else if (todo & DOFI_EP_CONNECT) {
		dofi_timer_start(&ep->obj.ia->progress, &ep->timer, ep->request.deadline);
		dofi_std_fds_hold();
		ep->xport->connect(ep);
	} else if (todo & DOFI_EP_ACCEPT) {
		dofi_std_fds_hold();
		ep->xport->accept(ep);
	} else if (todo & DOFI_EP_EXCHANGE) {
		dofi_exchanges_start(ep);
	}
}

void dofi_ep_cm_init(struct dofi_ep *ep)
{
	ep->work = (struct dofi_work){ .run = ep_work };
	ep->todo = 0;
	ep->conn = NULL;
	ep->accepting = NULL;
	ep->timer = (struct dofi_timer){ .fire = ep_timeout };
	ep->stall = (struct dofi_stall){ .go_on = ep_go_on };
	ep->watch = (struct dofi_timer){ .fire = ep_watch };
	memset(ep->part, 0, sizeof(ep->part));
	if (ep->obj.ia->xport->ep_init)
		ep->obj.ia->xport->ep_init(ep);
	ep->lingering = NULL;
	ep->peer_data_size = 0;
	ep->local_port = ep->remote_port = 0;
	memset(&ep->request.peer, 0, sizeof(ep->request.peer));
	ep->local = ep->obj.ia->address;
}
