/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the lifecycle of a connection. */

#include "xport/rdm/conn.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/range.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_cm.h"
#include "obj/ep/ep_dto.h"
#include "xport/rdm/peer.h"
#include "xport/rdm/send.h"
#include "xport/rdm/transmit.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

static void conn_go_on(struct dofi_stall *stall)
{
	struct rdm_conn *conn = DOFI_CONTAINER_OF(stall, struct rdm_conn, stall);

	dofi_mutex_lock(&conn->ep->lock);
	rdm_go_on(conn);
	dofi_mutex_unlock(&conn->ep->lock);
}

static void conn_work(struct dofi_work *work);
static void lost_fire(struct dofi_timer *timer);

int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer)
{
	struct rdm_pz *rpz;
	struct rdm_conn *conn;
	int ret = rdm_pz_open(ep->pz, &rpz);

	if (!ret)
		ret = rdm_pz_open_endpoint(rpz);
	if (ret)
		return ret;
	conn = dofi_block_get(sizeof(*conn));
	if (!conn)
		return -ENOMEM;
	conn->ep = ep;
	conn->rpz = rpz;
	conn->peer = peer;
	conn->window = rpz->rings ? RDM_RING_WINDOW : RDM_WINDOW;
	conn->work.run = conn_work;
	conn->lost.fire = lost_fire;
	conn->stall.go_on = conn_go_on;
	STAILQ_INIT(&conn->pending);
	LIST_INIT(&conn->ops);
	if (rpz->rings)
		ret = dofi_inbox_open(rpz->rings, &peer->inbox);
	if (!ret)
		ret = rdm_pz_add(rpz, conn);
	if (ret)
		goto put_conn;
	peer->conn = conn;
	dofi_mutex_lock(&ep->lock);
	ep->conn = conn;
	dofi_ep_set_cq(ep, &rpz->domain->cq);
	ep->secret = ep->obj.ia->fabric.scoped_keys ? dofi_random() : 0;
	dofi_mutex_unlock(&ep->lock);
	return 0;

put_conn:
	dofi_block_put(conn, sizeof(*conn));
	return ret;
}

/* Tries to read the peer's memory. A 32-bit process cannot name 64-bit addresses. */
static void probe_memory_access(struct rdm_conn *conn)
{
	const struct rdm_peer *peer = conn->peer;
	const struct dofi_peer_word alive = { peer->msg.alive_addr, peer->msg.conn_id };
	const bool tries = dofi_settings.cma && sizeof(void *) >= sizeof(uint64_t);
	int ret = tries ? dofi_peer_probe(peer->msg.host.pid, &alive) : -EPERM;

	if (ret) {
		dofi_ep_log(conn->ep, DOFI_INFO, DOFI_CM, "the peer's memory cannot be read: %s",
			    strerror(-ret));
		return;
	}
	conn->pid = peer->msg.host.pid;
	conn->alive = alive;
}

/* Adds the peer to the address vector, and looks for memory that is shared with it. */
static int endpoint_find(struct rdm_conn *conn)
{
	const struct rdm_peer *peer = conn->peer;
	int ret = dofi_rdm_peer_add(&conn->rpz->rdm, peer->addr, peer->msg.addr_len, &conn->to);

	conn->reached = !ret;
	if (ret) {
		dofi_ep_log(conn->ep, DOFI_WARN, DOFI_CM,
			    "the peer is out of the fabric's reach: %s", fi_strerror(-ret));
		return ret;
	}
	conn->same_host = rdm_fabric(conn)->shared_memory &&
		     dofi_host_shares_pids(&conn->rpz->ria->host, &peer->msg.host);
	if (conn->same_host)
		probe_memory_access(conn);
	return 0;
}

/*
 * Gets the outbox to the peer, and lets the peer write to memory for this connection. An offer that
 * is not needed, because earlier connections have an outbox to the peer, is unmapped.
 */
static int rings_find(struct rdm_conn *conn)
{
	struct dofi_grant_book *book = conn->rpz->pz->domain.grants.book;
	struct rdm_peer *peer = conn->peer;
	struct dofi_outbox *out;
	int ret = dofi_outbox_get(conn->rpz->rings, &peer->offer, &conn->ep->lock, &out);

	dofi_outbox_unmap(peer->offer);
	peer->offer = NULL;
	if (ret)
		return ret;
	dofi_mutex_lock(&conn->ep->lock);
	conn->out = out;
	dofi_mutex_unlock(&conn->ep->lock);
	conn->same_host = conn->reached = true;
	/* a process id has a meaning in its namespace alone */
	if (dofi_host_shares_pids(&conn->rpz->ria->host, &peer->msg.host))
		probe_memory_access(conn);
	if (book)
		dofi_grant_book_add_conn(book, conn->id);
	return 0;
}

int rdm_conn_reach(struct rdm_conn *conn)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);
	size_t longest = RDM_INJECT_MAX, in_parts = RDM_EAGER_MAX;
	const struct rdm_peer *peer = conn->peer;
	struct dofi_ep *ep = conn->ep;
	struct fid_ep *fid;
	int ret;

	ret = conn->rpz->rings ? rings_find(conn) : endpoint_find(conn);
	if (ret)
		return ret;
	if (conn->rpz->rings) {
		longest = DOFI_LINK_FRAME;
		in_parts = RDM_EAGER_RING_MAX;
		fid = &conn->rpz->rings->ep;
	} else {
		fid = conn->rpz->rdm.fid;
	}
	dofi_mutex_lock(&conn->ep->lock);
	/* limits that suit both ends; the frames of a message in parts are all injected */
	conn->frame_size = dofi_min(fabric->frame_size, peer->msg.frame_size);
	conn->inject = dofi_min(dofi_min(fabric->info->tx_attr->inject_size, longest),
				conn->frame_size);
	conn->max_copy = conn->rpz->copy ? conn->frame_size : conn->inject;
	conn->eager = conn->max_copy - RDM_FRAME_FULL;
	if (conn->rpz->copy)
		in_parts = dofi_min(RDM_EAGER_COPY_MAX, RDM_PARTS_MAX * conn->eager);
	if (conn->eager < in_parts)
		conn->eager = in_parts;
	conn->credits = conn->max_credits = peer->msg.window;
	conn->peer_id = peer->msg.conn_id;
	conn->matched = ep->rq.next;
	ep->peer_secret = peer->msg.secret;
	ep->mailbox.key = 1;	/* all peers support atomics */
	ep->preambles = false;
	ep->fid = fid;
	dofi_ep_open_queues(conn->ep);
	dofi_dto_submit_pending(conn->ep);
	dofi_mutex_unlock(&conn->ep->lock);
	return 0;
}

/* How long the fabric may use memory of the program after the end of a connection. */
#define LAST_OPS_NS (100 * 1000000LL)

static bool has_ops(struct rdm_conn *conn)
{
	return !LIST_EMPTY(&conn->ops);
}

/* The program may end the connection because it has seen a write while the ACK is still pending. */
static bool is_acking(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock)
{
	return !conn->left && rdm_ack_pending(conn);
}

/* Progresses the CQ while @busy, for a limited time, and once more: the thread may be preempted. */
static void wait_while(struct rdm_conn *conn, bool (*busy)(struct rdm_conn *conn))
{
	struct dofi_cq *cq = conn->ep->cq;
	const int64_t until = dofi_now() + LAST_OPS_NS;
	struct pollfd p = { .fd = cq->fd, .events = POLLIN };
	bool is, over, any;

	for (;;) {
		over = dofi_now() >= until;
		any = dofi_cq_drain(cq);
		dofi_mutex_lock(&conn->ep->lock);
		is = busy(conn);
		dofi_mutex_unlock(&conn->ep->lock);
		if (!is || over)
			return;
		if (!any)
			poll(&p, 1, 1);
	}
}

/* Waits until the fabric uses no memory of the program, which may reuse it after the end. */
static void drain_ops(struct rdm_conn *conn)
{
	struct rdm_op *op;

	dofi_mutex_lock(&conn->ep->lock);
	LIST_FOREACH(op, &conn->ops, link)
		if (op->receives)
			fi_cancel(&conn->rpz->rdm.fid->fid, op);
	dofi_mutex_unlock(&conn->ep->lock);
	wait_while(conn, has_ops);
	dofi_cq_drain(conn->ep->cq);
}

static void detach(struct rdm_conn *conn)
{
	struct dofi_ep *ep = conn->ep;
	struct rdm_pending *w;

	dofi_mutex_lock(&ep->lock);
	ep->conn = NULL;
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	while ((w = STAILQ_FIRST(&conn->pending))) {
		STAILQ_REMOVE_HEAD(&conn->pending, link);
		rdm_pending_put(conn->rpz, w);
	}
	conn->n_pending = 0;
	dofi_mutex_unlock(&ep->lock);
}

/* From now on the peer does not write to memory for this connection. */
static void end_writes(struct rdm_conn *conn)
{
	struct dofi_grant_book *book = conn->rpz->pz->domain.grants.book;

	if (!conn->out || !book)
		return;
	dofi_grant_book_remove_conn(book, conn->id);
	dofi_inboxes_await_writes(conn->rpz->rings, conn->out->peer);
}

void rdm_conn_close(struct dofi_ep *ep)
{
	struct dofi_cm_msg bye = { .kind = DOFI_CM_BYE };
	struct rdm_conn *conn = ep->conn;

	if (!conn)
		return;
	dofi_timer_stop(&conn->ep->obj.ia->progress, &conn->lost);
	wait_while(conn, is_acking);
	dofi_mutex_lock(&ep->lock);
	bye.reason = ep->closing && !ep->no_events && ep->end == DAT_CONNECTION_EVENT_BROKEN;
	ep->fid = NULL;
	ep->resume_pending = false;
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
	drain_ops(conn);
	rdm_pz_remove(conn);
	end_writes(conn);
	atomic_store(&conn->id, 0);
	detach(conn);
	bye.last_frame = conn->sent;
	if (!conn->left)
		dofi_cm_send(conn->peer->cm, &bye);
	if (conn->reached && !conn->rpz->rings)
		dofi_rdm_peer_remove(&conn->rpz->rdm, conn->to);
	dofi_outbox_put(conn->out, &conn->rpz->ria->bell);
	rdm_peer_free(conn->peer);
	rdm_conn_todo(conn, RDM_FREE);
}

/* Frames that the fabric does not carry */

#define SECOND_NS INT64_C(1000000000)

/* How long after a loss the CM connection may report the end that caused it. */
#define LOST_NS (SECOND_NS / 10)

/* How long HELLO and its answer may take without keep-alives: the kernel's default for TCP. */
#define HELLO_S 120

/*
 * How long the frames that a peer sent before it left may take to establish the connection. The
 * fabric has taken them, so only a loaded host or a lossy network delays them.
 */
#define LAST_FRAMES_NS (5 * SECOND_NS)

static void lost_fire(struct dofi_timer *timer)
{
	struct rdm_conn *conn = DOFI_CONTAINER_OF(timer, struct rdm_conn, lost);
	struct dofi_ep *ep = conn->ep;
	const DAT_EVENT_NUMBER event = conn->left ? DAT_CONNECTION_EVENT_NON_PEER_REJECTED :
						    DAT_CONNECTION_EVENT_UNREACHABLE;
	const char *why = conn->left ? RDM_ACCEPTOR_LEFT :
			  "the fabric does not carry frames to the peer and back";

	if (dofi_port_attempt_lost(ep, event, why) || conn->left)
		return;
	dofi_ep_log(ep, DOFI_WARN, DOFI_EP, "the fabric lost data");
	dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
}

/* Ends the connection after @ns, or sooner if that was requested before. */
static void lost_after(struct rdm_conn *conn, int64_t ns)
{
	const int64_t at = dofi_now() + ns;

	if (!conn->lost.at || at < conn->lost.at)
		dofi_timer_start(&conn->ep->obj.ia->progress, &conn->lost, at);
}

void rdm_conn_expect_hello_back(struct rdm_conn *conn)
{
	const int64_t keepalive_s = dofi_settings.keepalive_s;

	lost_after(conn, (keepalive_s ? 2 * keepalive_s : HELLO_S) * SECOND_NS);
}

/* The sockets of a fabric are searched at most once in this time. */
#define SOCKETS_NS 20000000LL

static void sockets_close_on_exec(struct dofi_timer *timer)
{
	struct rdm_pz *rpz = DOFI_CONTAINER_OF(timer, struct rdm_pz, new_sockets);

	dofi_epoll_close_on_exec(rpz->domain->cq.fd);
	rpz->sockets_at = dofi_now();
}

/* The fabric may have opened a socket for @conn. Call before the program learns of it. */
static void expect_sockets(const struct rdm_conn *conn)
{
	struct rdm_pz *rpz = conn->rpz;
	const int64_t next = rpz->sockets_at + SOCKETS_NS;

	if (rpz->rings || rpz->domain->cq.fd < 0 || rpz->new_sockets.at)
		return;
	rpz->new_sockets.fire = sockets_close_on_exec;
	if (dofi_now() >= next)
		sockets_close_on_exec(&rpz->new_sockets);
	else
		dofi_timer_start(&conn->ep->obj.ia->progress, &rpz->new_sockets, next);
}

static void conn_work(struct dofi_work *work)
{
	struct rdm_conn *conn = DOFI_CONTAINER_OF(work, struct rdm_conn, work);
	unsigned todo = atomic_exchange(&conn->todo, 0);
	struct dofi_ep *ep = conn->ep;
	DAT_EP_STATE state;

	if (todo & RDM_FREE) {
		dofi_block_put(conn, sizeof(*conn));
		return;
	}
	if (todo & RDM_LOST)
		lost_after(conn, LOST_NS);
	if (todo & RDM_ESTABLISHED) {
		expect_sockets(conn);
		/* HELLO, or its answer, shows that the peer has claimed the inbox if it needs it */
		dofi_inbox_offer_end(conn->peer->inbox);
		conn->peer->inbox = NULL;
	}
	state = todo & RDM_ESTABLISHED ? dofi_ep_state_now(ep) : DAT_EP_STATE_UNCONNECTED;
	if (state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) {
		dofi_timer_stop(&ep->obj.ia->progress, &conn->lost);
		dofi_ep_established(ep, conn->peer->data, conn->peer->msg.data_size);
		if (conn->left)
			dofi_ep_last_receives(ep, conn->left_event);
	} else if (state == DAT_EP_STATE_COMPLETION_PENDING && !conn->lost.at) {
		/* if HELLO_BACK was lost, the acceptor is not connected */
		dofi_ep_established(ep, NULL, 0);
	}
	if (todo & RDM_OVER)
		dofi_ep_end_with(ep, conn->left_event, NULL, 0);
}

/* The end of the peer */

void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event)
{
	struct dofi_ep *ep = conn->ep;
	bool more, over;

	/* frames that are already there may establish the connection */
	dofi_cq_drain(ep->cq);
	conn_work(&conn->work);
	/* a slower fabric may still carry the frame that establishes the connection */
	dofi_mutex_lock(&ep->lock);
	more = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING && last && *last != conn->seen;
	dofi_mutex_unlock(&ep->lock);
	if (!more && dofi_port_attempt_lost(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					    RDM_ACCEPTOR_LEFT))
		return;
	dofi_mutex_lock(&conn->ep->lock);
	conn->left = true;
	conn->last_frame = last ? *last : conn->seen;
	conn->left_event = event;
	/* ACKs that the peer did not take are not due any more */
	rdm_process_pending(conn);
	over = conn->seen == conn->last_frame && !conn->n_pending;
	dofi_mutex_unlock(&conn->ep->lock);
	if (over)
		dofi_ep_end_with(ep, event, NULL, 0);
	else if (dofi_ep_state_now(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		lost_after(conn, LAST_FRAMES_NS);
	else
		dofi_ep_last_receives(ep, event);
}
