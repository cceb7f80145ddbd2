/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the life of a connection, from its place in a zone to its end. */

#include "xport/rdm/rdm.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/pool.h"
#include "xport/rdm/peer.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <string.h>

static void conn_work(struct dofi_work *work);

static struct rdm_conn *conn_new(struct dofi_ep *ep, struct rdm_zone *zone, struct rdm_peer *peer)
{
	struct rdm_conn *conn = dofi_block_get(sizeof(*conn));

	if (!conn)
		return NULL;
	conn->ep = ep;
	conn->zone = zone;
	conn->peer = peer;
	conn->work.run = conn_work;
	STAILQ_INIT(&conn->waiting);
	LIST_INIT(&conn->ops);
	return conn;
}

int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer, const void *key, size_t len)
{
	struct rdm_zone *zone;
	struct rdm_conn *conn;
	int ret = rdm_zone_open(ep->pz, &zone);

	if (ret)
		return ret;
	conn = conn_new(ep, zone, peer);
	if (!conn)
		return -ENOMEM;
	ret = zone->rings ? rdm_link_open(conn, peer) :
			    rdm_endpoint_get(zone, &peer->reservation, key, len, &conn->endpoint);
	if (ret)
		goto put_conn;
	ret = rdm_zone_enter(zone, conn);
	if (ret)
		goto put_endpoint;
	peer->conn = conn;
	dofi_ep_lock(ep);
	ep->conn = conn;
	dofi_ep_set_cq(ep, &zone->domain->cq);
	ep->secret = ep->obj.ia->fabric.scoped_keys ? dofi_random() : 0;
	dofi_ep_unlock(ep);
	return 0;

put_endpoint:
	dofi_release(&peer->reservation);
	if (conn->endpoint)
		rdm_endpoint_put(conn->endpoint);
put_conn:
	dofi_block_put(conn, sizeof(*conn));
	return ret;
}

/* Finds out whether the peer's own memory can be read. */
static void read_memory(struct rdm_conn *conn)
{
	const struct rdm_peer *peer = conn->peer;
	const struct dofi_peer_word alive = { peer->alive_addr, peer->id };
	int ret = dofi_settings.cma ? dofi_peer_probe(peer->host.pid, &alive) : -EPERM;

	if (ret) {
		dofi_log(DOFI_INFO, DOFI_CM, "ep %p: the peer's memory cannot be read: %s",
			 (void *)conn->ep, strerror(-ret));
		return;
	}
	conn->pid = peer->host.pid;
	conn->alive = alive;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Both ends' limits. EP lock held. */
static void set_limits(struct rdm_conn *conn)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);
	const size_t longest = conn->link ? DOFI_LINK_FRAME : RDM_INJECT_MAX;
	const size_t inject = least(fabric->info->tx_attr->inject_size, longest);

	conn->frame_size = least(fabric->frame_size, conn->peer->frame_size);
	conn->inject = least(inject, conn->frame_size);
	conn->room = conn->zone->copy ? conn->frame_size : conn->inject;
	conn->eager = conn->room - RDM_FRAME_FULL;
	/* the frames of such a message are all injected */
	if (fabric->target_rdma && !conn->zone->copy)
		conn->eager = most(conn->link ? RDM_EAGER_RING_MAX : RDM_EAGER_MAX, conn->eager);
	conn->window = conn->most = conn->peer->window;
}

static bool is_in_process(const struct rdm_conn *conn)
{
	return conn->peer->host.pid == rdm_ia_of(conn->ep->obj.ia)->host.pid;
}

/* A number of a process means something in its namespace alone. */
static int link_find(struct rdm_conn *conn)
{
	const struct dofi_host *host = &rdm_ia_of(conn->ep->obj.ia)->host;

	if (dofi_host_shares_pids(host, &conn->peer->host))
		read_memory(conn);
	conn->reached = true;
	return 0;
}

/* The peer's endpoint is known to ours, and its memory to us where it is shared. */
static int endpoint_find(struct rdm_conn *conn)
{
	const struct rdm_peer *peer = conn->peer;
	int ret = dofi_rdm_peer_add(&conn->endpoint->rdm, peer->addr, peer->addr_len, &conn->to);

	conn->reached = !ret;
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_CM, "ep %p: the peer is out of the fabric's reach: %s",
			 (void *)conn->ep, fi_strerror(-ret));
		return ret;
	}
	conn->page = peer->page;
	if (conn->page) {
		conn->robust = &conn->page->robust;
		conn->peer_here = is_in_process(conn) ? rdm_conn_here(peer->id) : NULL;
		read_memory(conn);
	}
	return 0;
}

int rdm_conn_reach(struct rdm_conn *conn)
{
	const struct rdm_peer *peer = conn->peer;
	struct dofi_ep *ep = conn->ep;
	int ret = conn->link ? link_find(conn) : endpoint_find(conn);

	if (ret)
		return ret;
	dofi_ep_lock(ep);
	set_limits(conn);
	conn->peer_id = peer->id;
	conn->matched = ep->rq.next;
	ep->peer_secret = peer->secret;
	ep->mailbox.key = 1;	/* all peers do atomics */
	ep->framed = false;
	ep->fid = conn->link ? dofi_rings_ep(conn->zone->rings) : conn->endpoint->rdm.fid;
	dofi_ep_gate(ep);
	dofi_dto_pump(ep);
	dofi_ep_unlock(ep);
	return 0;
}

/* What the fabric was to do that is not done, and will not be. EP lock held, as for the next. */
static void cancel(struct rdm_conn *conn)
{
	struct rdm_op *op;

	LIST_FOREACH(op, &conn->ops, link)
		if (op->receives && !op->direct)
			fi_cancel(&conn->endpoint->rdm.fid->fid, op);
}

static bool has_ops(struct rdm_conn *conn)
{
	return !LIST_EMPTY(&conn->ops);
}

/* How long memory of the program may be in the fabric's hands after the end of a connection. */
#define LAST_OPS_NS (100 * 1000000LL)

static bool is_greeting(struct rdm_conn *conn)
{
	return conn->hello_due;
}

/* The program may have seen what the peer wrote, and end the connection for that. */
static bool is_answering(struct rdm_conn *conn)
{
	return !conn->left && rdm_owes_answer(conn);
}

/* As long as something of @conn is as @busy says, but not for ever. */
static void wait_while(struct rdm_conn *conn, bool (*busy)(struct rdm_conn *conn))
{
	struct dofi_cq *cq = conn->ep->cq;
	const int64_t until = dofi_now() + LAST_OPS_NS;
	struct pollfd p = { .fd = cq->fd, .events = POLLIN };
	bool is;

	for (;;) {
		dofi_ep_lock(conn->ep);
		is = busy(conn);
		dofi_ep_unlock(conn->ep);
		if (!is || dofi_now() >= until)
			return;
		if (!dofi_cq_drain(cq))
			poll(&p, 1, 1);
	}
}

/* The program may do with its memory what it wants when it hears of the end. */
static void settle(struct rdm_conn *conn)
{
	dofi_ep_lock(conn->ep);
	cancel(conn);
	dofi_ep_unlock(conn->ep);
	wait_while(conn, has_ops);
	dofi_cq_drain(conn->ep->cq);
}

/* What the peer waits for, or would not bear if it did not come. */
static void finish(struct rdm_conn *conn)
{
	/* shm takes the first frame when its peer has us mapped, and crashes that if it cannot */
	if (conn->page)
		wait_while(conn, is_greeting);
	wait_while(conn, is_answering);
}

static void forget_waiting(struct rdm_conn *conn)
{
	struct rdm_waiting *w;

	while ((w = STAILQ_FIRST(&conn->waiting))) {
		STAILQ_REMOVE_HEAD(&conn->waiting, link);
		rdm_waiting_put(conn->zone, w);
	}
	conn->n_waiting = 0;
}

/* Its EP has none any more. */
static void detach(struct rdm_conn *conn)
{
	struct dofi_ep *ep = conn->ep;

	dofi_ep_lock(ep);
	ep->conn = NULL;
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	forget_waiting(conn);
	dofi_ep_unlock(ep);
}

static void say_goodbye(struct rdm_conn *conn, bool broken)
{
	const struct dofi_side_msg bye = {
		.kind = DOFI_SIDE_BYE, .last_frame = conn->sent, .reason = broken,
	};

	if (conn->peer->side && !conn->left)
		dofi_side_send(conn->peer->side, &bye);
}

/*
 * Whether libfabric's shm can remove the peer (dofi_rdm_peer_remove()). When it does it writes to
 * the peer's memory, at a place that the peer named when it heard of us (2.x; written in front of an
 * array if it did not); that memory may be gone if it is this process's own. 1.17 does not forget
 * that it waits for a peer to hear of us. EP lock held.
 */
static bool is_removable(const struct rdm_conn *conn)
{
	const bool heard = conn->untaken != conn->sent + 1;

	return heard && !is_in_process(conn);
}

void rdm_conn_close(struct dofi_ep *ep)
{
	struct rdm_conn *conn = ep->conn;
	struct rdm_endpoint *endpoint;
	bool broken, removable;

	if (!conn)
		return;
	endpoint = conn->endpoint;
	finish(conn);
	dofi_ep_lock(ep);
	broken = ep->closing && !ep->silent && ep->end == DAT_CONNECTION_EVENT_BROKEN;
	removable = is_removable(conn);
	ep->fid = NULL;
	ep->owes = false;
	dofi_ep_gate(ep);
	dofi_ep_unlock(ep);
	rdm_direct_close(conn);
	settle(conn);
	rdm_zone_leave(conn);
	atomic_store(&conn->id, 0);
	detach(conn);
	say_goodbye(conn, broken);
	if (conn->reached && endpoint)
		dofi_rdm_peer_remove(&endpoint->rdm, conn->to, removable);
	rdm_peer_free(ep->obj.ia, conn->peer);
	if (endpoint)
		rdm_endpoint_put(endpoint);
	rdm_conn_todo(conn, RDM_FREE);
}

void rdm_conn_break(struct rdm_conn *conn)
{
	switch (dofi_ep_state_now(conn->ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		break;
	default:
		dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	}
}

static void established(struct rdm_conn *conn)
{
	switch (dofi_ep_state_now(conn->ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		dofi_ep_established(conn->ep, conn->peer->data, conn->peer->data_size);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_established(conn->ep, NULL, 0);
		break;
	default:
		break;
	}
}

static void conn_work(struct dofi_work *work)
{
	struct rdm_conn *conn = (struct rdm_conn *)((char *)work - offsetof(struct rdm_conn, work));
	unsigned todo = atomic_exchange(&conn->todo, 0);

	if (todo & RDM_FREE) {
		dofi_block_put(conn, sizeof(*conn));
		return;
	}
	if (todo & RDM_DIRECT)
		rdm_direct_open(conn);
	if (todo & RDM_ESTABLISHED)
		established(conn);
	if (todo & RDM_DIRECT_LOST)
		rdm_direct_lost(conn);
	if (todo & RDM_OVER)
		dofi_ep_end_with(conn->ep, conn->left_event, NULL, 0);
}

void rdm_conn_todo(struct rdm_conn *conn, unsigned what)
{
	/* it may be freed as soon as that is known */
	struct dofi_progress *p = &conn->zone->pz->obj.ia->progress;

	atomic_fetch_or(&conn->todo, what);
	dofi_progress_post(p, &conn->work);
}

/* The end */

/* The peer sends nothing behind its frame @last. */
static void left(struct rdm_conn *conn, uint32_t last, DAT_EVENT_NUMBER event)
{
	struct dofi_ep *ep = conn->ep;
	bool over;

	dofi_ep_lock(ep);
	conn->left = true;
	conn->last_frame = last;
	conn->left_event = event;
	/* answers that the peer did not take are not due any more */
	rdm_catch_up(conn, NULL);
	over = conn->seen == last && !conn->n_waiting;
	dofi_ep_unlock(ep);
	if (over)
		dofi_ep_end_with(ep, event, NULL, 0);
	else
		dofi_ep_last_receives(ep);
}

static bool has_more(struct rdm_conn *conn, const uint32_t *last)
{
	bool more;

	dofi_ep_lock(conn->ep);
	more = last && *last != conn->seen;
	dofi_ep_unlock(conn->ep);
	return more;
}

void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event)
{
	struct dofi_ep *ep = conn->ep;

	/* what it sent before may tell that the connection had been made */
	dofi_cq_drain(conn->ep->cq);
	conn_work(&conn->work);
	switch (dofi_ep_state_now(ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		/* or it is still under way, on a fabric that is slower */
		if (has_more(conn, last))
			left(conn, *last, event);
		else
			dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		break;
	default:
		left(conn, last ? *last : conn->seen, event);
	}
}
