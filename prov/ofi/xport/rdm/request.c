/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: requests and their answers, active and passive side. */

#include "xport/rdm/conn.h"

#include "fab/grant.h"
#include "obj/ep/ep_cm.h"
#include "xport/cm/address.h"
#include "xport/cm/listen.h"
#include "xport/rdm/peer.h"
#include "xport/rdm/send.h"
#include "xport/wire.h"

#include <errno.h>
#include <stdlib.h>

static const struct dofi_cm_ops cm_ops;

#define NO_PATH \
	"the peer uses another fabric or address family, or cannot be reached over this one"
#define NO_MEMORY "there is no memory for the connection"
#define OTHER_HOST "the address is not one of this host, which shared memory does not leave"
#define OTHER_USER "the peer is another user's process, with which no memory is shared"

/* The active side */

/*
 * The peer cannot be reached by this fabric. Without memory no other fabric is tried: libfabric's
 * tcp connects, and then returns EAGAIN for each operation until there is memory again.
 */
static void connect_otherwise(struct dofi_ep *ep, int err)
{
	if (err == ENOMEM) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NO_MEMORY);
		return;
	}
	if (!rdm_ia_of(ep->obj.ia)->second) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_UNREACHABLE, NO_PATH);
		return;
	}
	dofi_ep_log(ep, DOFI_INFO, DOFI_CM,
		    "the peer on this host is reached by the network, not by shared memory: %s",
		    err ? strerror(err) : "it refused the memory");
	rdm_conn_close(ep);
	ep->obj.ia->xport->connect_otherwise(ep);
}

/*
 * Once a service point of the peer has the request, no other transport may send it again, unless an
 * end finds that it cannot share memory (connect_otherwise()).
 */
static void attempt_failed(struct dofi_ep *ep, int err, const char *why)
{
	const struct rdm_ia *ria = rdm_ia_of(ep->obj.ia);
	const struct rdm_conn *conn = rdm_conn_of(ep);

	if (conn && conn->peer->ready) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
				      why ? why : "the peer ended before it answered");
	} else if (ria->second) {
		connect_otherwise(ep, err);
	} else if (ria->rings) {
		if (err == EACCES)
			dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_UNREACHABLE, OTHER_USER);
		else
			dofi_port_failed(ep, err, why);
	} else if (dofi_port_next(ep, err, why)) {
		rdm_conn_close(ep);
		dofi_ep_connect_again(ep);
	}
}

void rdm_connect(struct dofi_ep *ep)
{
	const struct rdm_ia *ria = rdm_ia_of(ep->obj.ia);
	struct dofi_progress *p = &ep->obj.ia->progress;
	const struct dofi_request *r = &ep->request;
	const DAT_CONN_QUAL qual = r->conn_qual;
	struct sockaddr_storage address;
	struct dofi_cm_msg msg;
	struct rdm_peer *peer;
	int ret = -ENOMEM;

	/* with another transport the IA does not choose rings for a peer on another host */
	if (!ria->second && ria->rings && !dofi_cm_is_here(&r->peer)) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_UNREACHABLE, OTHER_HOST);
		return;
	}
	peer = rdm_peer_new(NULL);
	if (!peer)
		goto failed;
	ret = rdm_conn_open(ep, peer);
	if (ret) {
		rdm_peer_free(peer);
		goto failed;
	}
	rdm_introduce(ep->conn, DOFI_CM_REQUEST, &msg);
	msg.conn_qual = qual;
	if (dofi_port_address_of_none(&r->peer)) {
		ret = -ENETUNREACH;
	} else if (ria->rings) {
		ret = dofi_local_connect(p, DOFI_LOCAL_CONNECTIONS, qual, &r->peer, &cm_ops, peer,
					 &msg, &peer->cm);
	} else {
		dofi_port_address(&address, &r->peer, false, dofi_wire_port(qual, ep->attempt));
		ret = dofi_cm_connect(p, (struct sockaddr *)&address, NULL, &cm_ops, peer, &msg,
				      &peer->cm);
	}
	if (ret)
		goto failed;
	dofi_ep_bound(ep, dofi_cm_local_port(peer->cm));
	return;

failed:
	attempt_failed(ep, -ret, NULL);
}

/* HELLO is the first frame. Its answer shows that the fabric carries frames in both directions. */
static void accepted(struct rdm_conn *conn, const struct dofi_cm_msg *msg)
{
	struct dofi_ep *ep = conn->ep;
	int ret = rdm_peer_learn(conn->rpz->ria, conn->peer, msg);

	if (!ret)
		ret = rdm_conn_reach(conn);
	if (!ret) {
		rdm_conn_expect_hello_back(conn);
		dofi_mutex_lock(&conn->ep->lock);
		conn->hello_due = true;
		rdm_go_on(conn);
		dofi_mutex_unlock(&conn->ep->lock);
	} else if (ret == -ECONNRESET) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
				      RDM_ACCEPTOR_LEFT);
	} else if (conn->rpz->rings) {
		connect_otherwise(ep, -ret);
	} else {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_UNREACHABLE, NO_PATH);
	}
}

/* The passive side */

struct rdm_listener {
	struct dofi_port port;
	struct dofi_cm_listeners cm;
	/* the only service point of a local listener; NULL where there is a port */
	struct dofi_sp *sp;
};

static int listener_open(struct dofi_ia *ia, uint16_t number, struct dofi_port **out)
{
	struct rdm_listener *l = calloc(1, sizeof(*l));
	const bool any = ia->fabric.wildcard;
	struct sockaddr_storage address;
	int ret;

	if (!l)
		return -ENOMEM;
	dofi_port_address(&address, &ia->address, any, number);
	ret = dofi_cm_listen_both(&ia->progress, &address, any, &cm_ops, l, &l->cm);
	if (ret) {
		free(l);
		return ret;
	}
	l->port.ia = ia;
	l->port.number = dofi_cm_listener_port(l->cm.own);
	*out = &l->port;
	return 0;
}

/* The port is the first member. */
static void listener_close(struct dofi_port *port)
{
	dofi_cm_unlisten_both(&((struct rdm_listener *)port)->cm);
}

const struct dofi_ports_ops rdm_ports_ops = { .open = listener_open, .close = listener_close };

/* How many names are tried for a service point that takes any qualifier. */
#define NAME_TRIES 64

/*
 * The qualifiers behind the ports that Linux chooses by default: an IA that also has a fabric on
 * TCP names a service point after such a port, and its peers must not find another process there.
 */
#define NAMES_FIRST 61000
#define NAMES (65536 - NAMES_FIRST)

/* Listens with the qualifier's name; with an unused one if the service point takes any. */
int rdm_listen_local(struct dofi_sp *sp)
{
	struct rdm_listener *l = calloc(1, sizeof(*l));
	int tries = sp->conn_qual ? 1 : NAME_TRIES, ret;
	DAT_CONN_QUAL qual = sp->conn_qual;

	if (!l)
		return -ENOMEM;
	l->port.ia = sp->obj.ia;
	l->sp = sp;
	do {
		if (!sp->conn_qual)
			qual = NAMES_FIRST + dofi_random() % NAMES;
		ret = dofi_local_listen(&sp->obj.ia->progress, DOFI_LOCAL_CONNECTIONS, qual,
					&cm_ops, l, &l->cm.own);
	} while (ret == -EADDRINUSE && --tries);
	if (ret) {
		free(l);
		return ret;
	}
	sp->conn_qual = qual;
	sp->local_listener = l;
	return 0;
}

void rdm_unlisten_local(struct dofi_sp *sp)
{
	struct rdm_listener *l = sp->local_listener;

	if (!l)
		return;
	dofi_cm_unlisten(l->cm.own);
	free(l);
	sp->local_listener = NULL;
}

/* Delivers a request to its service point, or refuses it. */
static void on_request(struct dofi_cm_listener *listener, struct dofi_cm_conn *cm,
		       const struct dofi_cm_msg *msg)
{
	static const struct dofi_cm_msg ready = { .kind = DOFI_CM_READY };
	struct rdm_listener *l = dofi_cm_listener_owner(listener);
	struct dofi_sp *sp = l->sp ? l->sp : dofi_port_sp(&l->port, msg->conn_qual);
	struct rdm_peer *peer = rdm_peer_new(cm);
	const struct dofi_arrival arrival = {
		.xport = l->sp ? &dofi_rings_xport : &dofi_rdm_xport,
		.request = peer, .peer = *dofi_cm_peer(cm),
		.secret = msg->secret, .mailbox = { .key = 1 },
		.data = msg->data, .data_size = msg->data_size,
	};
	int ret;

	if (!peer) {
		dofi_cm_close(cm);
		return;
	}
	dofi_cm_set_owner(cm, peer);
	if (!sp || (l->sp && sp->conn_qual != msg->conn_qual)) {
		rdm_peer_refuse(peer, DOFI_CM_NO_LISTENER);
		return;
	}
	ret = rdm_peer_learn(rdm_ia_of(l->port.ia), peer, msg);
	if (ret) {
		rdm_peer_refuse(peer, ret == -ENOMEM ? DOFI_CM_BUSY : DOFI_CM_NO_PATH);
		return;
	}
	if (!l->sp) {
		peer->port = &l->port;
		l->port.users++;
	}
	if (dofi_cr_arrived(sp, &arrival))
		rdm_peer_refuse(peer, DOFI_CM_BUSY);
	else if (l->sp)
		dofi_cm_send(cm, &ready);
}

void rdm_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	struct rdm_peer *peer = cr->request;

	cr->request = NULL;
	dofi_cm_decline(peer->cm, why == DOFI_REJECT_PROVIDER ? DOFI_CM_NO_LISTENER : 0, data,
			size);
	rdm_peer_free(peer);
}

void rdm_accept(struct dofi_ep *ep)
{
	struct rdm_peer *peer = ep->accepting;
	struct dofi_cm_msg msg;
	int ret = -ECONNABORTED;

	ep->accepting = NULL;
	if (peer->cm)
		ret = rdm_conn_open(ep, peer);
	if (ret) {
		/* the network needs fewer descriptors */
		rdm_peer_refuse(peer, ret == -EMFILE || ret == -ENFILE ? DOFI_CM_NO_PATH :
									 DOFI_CM_BUSY);
	} else {
		rdm_peer_answered(peer);
		ret = rdm_conn_reach(ep->conn);
		if (ret) {
			dofi_cm_decline(peer->cm, DOFI_CM_NO_PATH, NULL, 0);
		} else {
			rdm_introduce(ep->conn, DOFI_CM_ACCEPT, &msg);
			dofi_cm_send(peer->cm, &msg);
		}
	}
	if (ret)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
}

void rdm_close(struct dofi_ep *ep)
{
	if (ep->accepting)
		rdm_peer_refuse(ep->accepting, DOFI_CM_NO_LISTENER);
	ep->accepting = NULL;
	rdm_conn_close(ep);
}

/* Messages of a CM connection */

static void on_answer(struct rdm_conn *conn, const struct dofi_cm_msg *msg)
{
	struct dofi_ep *ep = conn->ep;
	bool awaited;

	dofi_mutex_lock(&ep->lock);
	awaited = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING && !ep->closing;
	dofi_mutex_unlock(&ep->lock);
	if (!awaited || conn->reached)
		return;
	switch (msg->kind) {
	case DOFI_CM_ACCEPT:
		accepted(conn, msg);
		break;
	case DOFI_CM_REJECT:
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, msg->data, msg->data_size);
		break;
	default:
		if (msg->reason == DOFI_CM_NO_PATH)
			connect_otherwise(ep, 0);
		else if (msg->reason == DOFI_CM_NO_LISTENER)
			attempt_failed(ep, ECONNREFUSED, DOFI_NO_LISTENER);
		else
			dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					      DOFI_NO_LISTENER);
	}
}

static void on_message(struct dofi_cm_conn *cm, const struct dofi_cm_msg *msg)
{
	struct rdm_peer *peer = dofi_cm_owner(cm);
	struct rdm_conn *conn = peer->conn;

	if (!conn)
		return;
	switch (msg->kind) {
	case DOFI_CM_ACCEPT:
	case DOFI_CM_REJECT:
	case DOFI_CM_REFUSE:
		on_answer(conn, msg);
		break;
	case DOFI_CM_READY:
		peer->ready = true;
		break;
	case DOFI_CM_BYE:
		rdm_conn_gone(conn, &msg->last_frame, msg->reason ? DAT_CONNECTION_EVENT_BROKEN :
							  DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	default:
		break;
	}
}

static void on_end(struct dofi_cm_conn *cm, int err)
{
	struct rdm_peer *peer = dofi_cm_owner(cm);
	struct rdm_conn *conn = peer->conn;

	/* the program may answer late, or never: the request keeps no descriptor until then */
	if (!conn) {
		dofi_cm_close(peer->cm);
		peer->cm = NULL;
		return;
	}
	if (!conn->reached && dofi_ep_state_now(conn->ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		attempt_failed(conn->ep, err ? -err : ECONNRESET, NULL);
	else if (!conn->left)
		rdm_conn_gone(conn, NULL, DAT_CONNECTION_EVENT_BROKEN);
}

static const struct dofi_cm_ops cm_ops = {
	.request = on_request,
	.message = on_message,
	.ended = on_end,
};
