/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: endpoints and connection events. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "xport/msg/bye.h"
#include "xport/msg/listen.h"
#include "xport/msg/mail.h"
#include "xport/msg/native.h"
#include "xport/msg/op.h"
#include "xport/msg/open.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* An open endpoint, found by its fid when an event names it. */
struct msg_conn {
	const struct fid *fid;
	struct dofi_ep *ep;
	struct dofi_cq *cq;
	struct dofi_shard *shard;	/* of that */
	unsigned places;		/* that it has there */
};

static int conn_compare(const void *a, const void *b)
{
	const struct fid *x = ((const struct msg_conn *)a)->fid;
	const struct fid *y = ((const struct msg_conn *)b)->fid;

	return (x > y) - (x < y);
}

/* The EP of @fid; NULL when it was closed since the event was queued. */
static struct dofi_ep *ep_of(struct dofi_ia *ia, const struct fid *fid)
{
	struct msg_ia *mia = ia->xport_ia;
	const struct msg_conn key = { .fid = fid };
	struct msg_conn **found = tfind(&key, &mia->endpoints, conn_compare);

	return found ? (*found)->ep : NULL;
}

static void choose_ops(struct dofi_ia *ia);

/* What the DAT text promises programs, where a fabric can carry it. */
#define PLENTY 64

/*
 * Private data besides our own. Where there is little, requests for a qualifier that is no port
 * carry less than others; else all carry the same.
 */
static void room_find(struct dofi_ia *ia)
{
	struct msg_ia *mia = ia->xport_ia;
	DAT_COUNT room = (DAT_COUNT)ia->limits.cm_data_size - DOFI_WIRE_FIXED;

	if (ia->fabric.scoped_keys)
		room -= DOFI_WIRE_SECRET;
	if (msg_mail_offered(ia) || ia->fabric.says_bye)
		room -= DOFI_WIRE_MAILBOX;
	mia->room = room;
	if (room - DOFI_WIRE_QUAL >= PLENTY)
		room -= DOFI_WIRE_QUAL;
	ia->max_private_data = room < DOFI_WIRE_MAX_DATA ? room : DOFI_WIRE_MAX_DATA;
}

static DAT_COUNT msg_request_room(const struct dofi_ia *ia, DAT_CONN_QUAL conn_qual)
{
	const struct msg_ia *mia = ia->xport_ia;
	DAT_COUNT room = mia->room - (DAT_COUNT)dofi_wire_qual_size(conn_qual);

	return room < ia->max_private_data ? room : ia->max_private_data;
}

static int msg_ia_init(struct dofi_ia *ia)
{
	struct msg_ia *mia = calloc(1, sizeof(*mia));

	if (!mia)
		return -ENOMEM;
	dofi_ports_init(&mia->ports, &msg_ports_ops);
	TAILQ_INIT(&mia->openings.list);
	ia->xport_ia = mia;
	choose_ops(ia);
	room_find(ia);
	return 0;
}

static void msg_ia_fini(struct dofi_ia *ia)
{
	free(ia->xport_ia);
	ia->xport_ia = NULL;
}

/* Endpoints */

static void conn_free(struct msg_conn *conn)
{
	dofi_cq_leave_shard(conn->cq, conn->shard);
	dofi_domain_cq_release(conn->cq, conn->places);
	free(conn);
}

/* @fid is to complete at a CQ of its zone that has so many @places left. */
static int conn_add(struct dofi_ep *ep, struct fid_ep *fid, unsigned places)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;
	struct msg_conn *conn = malloc(sizeof(*conn));
	struct dofi_cq *cq = conn ? dofi_domain_cq_reserve(&ep->pz->domain, places) : NULL;

	if (!conn)
		return -ENOMEM;
	if (!cq) {
		free(conn);
		return -FI_ENOSPC;
	}
	*conn = (struct msg_conn){
		.fid = &fid->fid, .ep = ep, .cq = cq, .shard = dofi_cq_enter_shard(cq), .places = places,
	};
	if (!tsearch(conn, &mia->endpoints, conn_compare)) {
		conn_free(conn);
		return -ENOMEM;
	}
	ep->conn = conn;
	return 0;
}

static void conn_remove(struct dofi_ep *ep)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;
	struct msg_conn *conn = ep->conn;

	tdelete(conn, &mia->endpoints, conn_compare);
	conn_free(conn);
	ep->conn = NULL;
}

/* The class of traffic that the fabric is to treat as the program wishes. */
static uint32_t traffic_class(const struct dofi_ep *ep)
{
	switch (ep->request.qos ? ep->request.qos : ep->attr.qos) {
	case DAT_QOS_HIGH_THROUGHPUT:
		return FI_TC_BULK_DATA;
	case DAT_QOS_LOW_LATENCY:
		return FI_TC_LOW_LATENCY;
	case DAT_QOS_ECONOMY:
		return FI_TC_SCAVENGER;
	case DAT_QOS_PREMIUM:
		return FI_TC_DEDICATED_ACCESS;
	default:
		return FI_TC_UNSPEC;
	}
}

#define LEAST_QUEUE 4			/* a message and its announcement */

/* What is more than the fabric's own choice, @most, waits in the EP. */
static size_t queue_size(size_t dtos, size_t most)
{
	if (dtos < LEAST_QUEUE)
		dtos = LEAST_QUEUE;
	return dtos < most ? dtos : most;
}

/*
 * An endpoint of @info is to be made as @ep wants it. Where queues are of a fixed size, they are so
 * long as it needs them, so that many find room in a CQ.
 */
static void info_fit(const struct dofi_ep *ep, struct fi_info *info)
{
	const struct dofi_fabric_choice *fabric = &ep->obj.ia->fabric;

	info->tx_attr->tclass = traffic_class(ep);
	if (!fabric->quirk->fixed_queues)
		return;
	info->tx_attr->size = queue_size(ep->attr.max_request_dtos, fabric->info->tx_attr->size);
	info->rx_attr->size = queue_size(ep->srq ? 0 : ep->attr.max_recv_dtos,
					 fabric->info->rx_attr->size);
}

static int endpoint_setup(struct dofi_ep *ep, struct fid_ep *fid)
{
	const struct msg_conn *conn = ep->conn;
	int ret;

	dofi_cq_enter(conn->cq);
	ret = fi_ep_bind(fid, &ep->obj.ia->progress.eq.fid->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fid, &conn->shard->fid->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(fid);
	dofi_cq_exit(conn->cq);
	return ret;
}

/* Whether the peer is to learn that the end is orderly. EP lock held. */
static bool owes_bye(const struct dofi_ep *ep)
{
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING && ep->says_bye && !ep->lost &&
	       ep->end != DAT_CONNECTION_EVENT_BROKEN;
}

static void endpoint_end(struct fid_ep *fid, struct dofi_cq *cq, bool shut_down)
{
	int ret;

	dofi_cq_enter(cq);
	if (shut_down)
		fi_shutdown(fid, 0);
	ret = fi_close(&fid->fid);
	dofi_cq_exit(cq);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_CM, "closing an endpoint: %s", fi_strerror(-ret));
}

/* With so many @places for completions that there may be of it at a time. Closes @fid if that fails. */
static int endpoint_enable(struct dofi_ep *ep, struct fid_ep *fid, unsigned places)
{
	int ret = conn_add(ep, fid, places);

	if (ret) {
		fi_close(&fid->fid);
		return ret;
	}
	ret = endpoint_setup(ep, fid);
	if (ret) {
		endpoint_end(fid, ((struct msg_conn *)ep->conn)->cq, false);
		conn_remove(ep);
	}
	return ret;
}

/*
 * Takes over @fid, an endpoint that was just opened as @info says, and gives it the receives that
 * wait. The peer is to be told of @own.
 */
static int endpoint_take(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid,
			 struct dofi_mailbox *own)
{
	struct msg_mail *mail;
	int ret;

	ret = msg_mail_open(ep, &mail, own);
	if (ret) {
		fi_close(&fid->fid);
		return ret;
	}
	ret = endpoint_enable(ep, fid, info->tx_attr->size + info->rx_attr->size);
	if (ret) {
		msg_mail_close(mail);
		return ret;
	}
	msg_bye_offer(ep, own);
	dofi_ep_lock(ep);
	ep->fid = fid;
	ep->shard = ((struct msg_conn *)ep->conn)->shard;
	ep->mail = mail;
	dofi_ep_set_cq(ep, ((struct msg_conn *)ep->conn)->cq);
	dofi_ep_gate(ep);
	dofi_dto_pump(ep);
	dofi_ep_unlock(ep);
	return 0;
}

static bool may_hear_bye(struct dofi_ep *ep)
{
	bool may;

	dofi_ep_lock(ep);
	may = ep->lost && ep->unheard && ep->says_bye && !ep->said_bye;
	dofi_ep_unlock(ep);
	return may;
}

#define READS_FOR_BYE 16

/* A send failed: what came before is in this host's memory, but a read of the CQ takes a part of it. */
static void hear_out(struct dofi_ep *ep)
{
	int i;

	for (i = 0; i < READS_FOR_BYE && may_hear_bye(ep); i++)
		dofi_cq_drain(ep->cq);
}

static void endpoint_close(struct dofi_ep *ep)
{
	struct msg_mail *mail;
	struct fid_ep *fid;
	bool bye;

	msg_open_cancel(ep);
	hear_out(ep);
	dofi_ep_lock(ep);
	bye = owes_bye(ep);
	fid = ep->fid;
	mail = ep->mail;
	ep->fid = NULL;
	ep->mail = NULL;
	ep->owes = false;
	dofi_ep_gate(ep);
	if (ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		dofi_dto_recall(ep);
	dofi_ep_unlock(ep);
	if (!fid)
		return;
	if (bye)
		msg_bye_say(ep, fid);
	endpoint_end(fid, ep->cq, !ep->obj.ia->fabric.quirk->shutdown_closes);
	msg_mail_close(mail);
	dofi_cq_ask(ep->cq, ep->shard);
	dofi_cq_drain(ep->cq);
	conn_remove(ep);
	dofi_ep_lock(ep);
	ep->shard = NULL;
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	dofi_ep_unlock(ep);
}

/* The active side */

static struct fi_info *connect_info(struct dofi_ia *ia, const struct sockaddr_storage *peer, size_t len)
{
	struct fi_info *info = fi_dupinfo(ia->fabric.info);

	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = malloc(len);
	if (!info->dest_addr) {
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, peer, len);
	info->dest_addrlen = len;
	info->addr_format = peer->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (ia->fabric.wildcard) {
		/* the route to the peer chooses the interface */
		free(info->src_addr);
		info->src_addr = NULL;
		info->src_addrlen = 0;
	}
	return info;
}

/* A new one for each connection. */
static uint32_t secret_make(struct dofi_ep *ep)
{
	uint32_t secret = ep->obj.ia->fabric.scoped_keys ? dofi_random() : 0;

	dofi_ep_lock(ep);
	ep->secret = secret;
	dofi_ep_unlock(ep);
	return secret;
}

/* One port did not answer for the qualifier: the next may, once this endpoint is gone. */
static void connect_failed(struct dofi_ep *ep, int err)
{
	if (!dofi_port_next(ep, err))
		return;
	endpoint_close(ep);
	dofi_ep_connect_again(ep);
}

/* Some fabrics have no port before they have resolved the peer's address. */
static void show_port(struct dofi_ep *ep)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	size_t len = sizeof(own);

	if (ep->fid && !fi_getname(&ep->fid->fid, &own, &len))
		dofi_ep_bound(ep, ntohs(((struct sockaddr_in *)&own)->sin_port));
}

static int connect_with(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid)
{
	const struct dofi_request *r = &ep->request;
	uint16_t port = dofi_wire_port(r->conn_qual, ep->attempt);
	struct dofi_wire msg = {
		.kind = DOFI_WIRE_REQUEST,
		.conn_qual = port == r->conn_qual ? 0 : r->conn_qual,
		.secret = secret_make(ep),
		.framed = ep->srq,
		.data = r->data,
		.data_size = r->data_size,
	};
	unsigned char buf[DOFI_WIRE_MAX];
	int ret = endpoint_take(ep, info, fid, &msg.mailbox);

	if (ret)
		return ret;
	dofi_cq_enter(ep->cq);
	ret = fi_connect(fid, info->dest_addr, buf, dofi_wire_pack(buf, &msg));
	dofi_cq_exit(ep->cq);
	if (!ret)
		show_port(ep);
	dofi_progress_await(&ep->obj.ia->progress);
	return ret;
}

static void connect_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret)
{
	if (!ret)
		ret = connect_with(ep, info, fid);
	if (ret)
		connect_failed(ep, -ret);
}

static void msg_connect(struct dofi_ep *ep)
{
	const struct dofi_request *r = &ep->request;
	uint16_t port = dofi_wire_port(r->conn_qual, ep->attempt);
	struct sockaddr_storage peer;
	size_t len = dofi_port_address(&peer, &r->peer, false, port);
	struct fi_info *info;

	if (dofi_port_address_of_none(&r->peer)) {
		connect_failed(ep, ENETUNREACH);
		return;
	}
	info = connect_info(ep->obj.ia, &peer, len);
	if (!info) {
		connect_failed(ep, ENOMEM);
		return;
	}
	info_fit(ep, info);
	msg_open(ep, info, connect_opened);
}

/* The passive side */

/* After an acceptance, or when there can be none. */
static void request_end(struct msg_request *request, const struct dofi_quirk *quirk, bool accepted)
{
	if (!accepted && quirk->keeps_request)
		msg_turn_down(request, DOFI_REJECT_PROVIDER, NULL, 0);
	else
		msg_request_free(request);
}

static int accept_with(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid)
{
	struct dofi_wire msg = {
		.kind = DOFI_WIRE_ACCEPT,
		.secret = secret_make(ep),
		.framed = ep->srq,
		.data = ep->request.data,
		.data_size = ep->request.data_size,
	};
	unsigned char buf[DOFI_WIRE_MAX];
	int ret = endpoint_take(ep, info, fid, &msg.mailbox);

	if (ret)
		return ret;
	dofi_cq_enter(ep->cq);
	ret = fi_accept(fid, buf, dofi_wire_pack(buf, &msg));
	dofi_cq_exit(ep->cq);
	return ret;
}

/* Where libfabric would report a connection first. The request has to be accepted all the same: else it leaks. */
static bool requester_is_gone(const struct dofi_ep *ep, struct fid_ep *fid)
{
	struct dofi_ia *ia = ep->obj.ia;

	return ia->fabric.quirk->blind_when_blocked && dofi_watch_requester_gone(&ia->progress, fid);
}

static void msg_accept(struct dofi_ep *ep)
{
	struct msg_request *request = ep->accepting;
	bool gone = false;
	struct fid_ep *fid;
	int ret;

	dofi_ep_lock(ep);
	msg_bye_learn(ep, &ep->mailbox);
	dofi_ep_unlock(ep);
	/* the request knows the way */
	info_fit(ep, request->info);
	ret = fi_endpoint(ep->pz->domain.fid, request->info, &fid, NULL);
	if (!ret) {
		gone = requester_is_gone(ep, fid);
		ret = accept_with(ep, request->info, fid);
	}
	ep->accepting = NULL;
	request_end(request, ep->obj.ia->fabric.quirk, !ret);
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "ep %p: accept: %s", (void *)ep, fi_strerror(-ret));
	if (ret || gone)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
}

static void msg_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	msg_turn_down(cr->request, why, data, size);
	cr->request = NULL;
}

static void msg_close(struct dofi_ep *ep)
{
	if (ep->accepting)
		msg_turn_down(ep->accepting, DOFI_REJECT_PROVIDER, NULL, 0);
	ep->accepting = NULL;
	endpoint_close(ep);
}

/* Events */

static void accepted(struct dofi_ep *ep, const void *data, size_t size)
{
	struct dofi_wire msg;

	if (!ep->local_port)
		show_port(ep);
	if (dofi_wire_unpack(data, size, &msg) || msg.kind != DOFI_WIRE_ACCEPT) {
		dofi_log(DOFI_WARN, DOFI_CM, "ep %p: the acceptor is not this provider", (void *)ep);
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
		return;
	}
	dofi_ep_lock(ep);
	ep->peer_secret = msg.secret;
	msg_bye_learn(ep, &msg.mailbox);
	ep->framed = msg.framed;
	dofi_ep_unlock(ep);
	dofi_ep_established(ep, msg.data, msg.data_size);
}

static void connected(struct dofi_ep *ep, const void *data, size_t size)
{
	if (dofi_ep_state_now(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		accepted(ep, data, size);
	else
		dofi_ep_established(ep, NULL, 0);
}

static void lost(struct dofi_ep *ep)
{
	dofi_ep_lock(ep);
	dofi_ep_lost(ep, false);
	dofi_ep_unlock(ep);
}

/* The peer, or the path to it, is gone. */
static void gone(struct dofi_ep *ep, DAT_EVENT_NUMBER when_connected)
{
	switch (dofi_ep_state_now(ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		break;
	default:
		if (when_connected == DAT_CONNECTION_EVENT_DISCONNECTED)
			lost(ep);
		else
			dofi_ep_end_with(ep, when_connected, NULL, 0);
	}
}

/*
 * An endpoint of an SRQ receives one frame after the other, and so may still have messages to
 * come that another's posted receives would have held by now.
 */
static void peer_left(struct dofi_ep *ep)
{
	if (ep->srq && ep->obj.ia->fabric.quirk->shutdown_overtakes &&
	    dofi_ep_state_now(ep) == DAT_EP_STATE_CONNECTED)
		dofi_ep_last_receives(ep);
	else
		gone(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void msg_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry, size_t len)
{
	struct dofi_ia *ia = dofi_ia_of(p);
	size_t data_size = len > sizeof(*entry) ? len - sizeof(*entry) : 0;
	struct dofi_ep *ep;

	if (event == FI_CONNREQ) {
		msg_arrived(ia, entry->fid, entry->info, entry->data, data_size);
		return;
	}
	ep = ep_of(ia, entry->fid);
	if (!ep)
		return;
	if (event == FI_CONNECTED)
		connected(ep, entry->data, data_size);
	else if (event == FI_SHUTDOWN)
		peer_left(ep);
}

/*
 * Where libfabric says that time was up, the fabric may have more to say: an acceptor that left before
 * its answer was taken did answer.
 */
static int reason_of(const struct dofi_ep *ep, const struct fi_eq_err_entry *e)
{
	const bool beside = ep->obj.ia->fabric.quirk->reason_in_prov_errno && abs(e->err) == FI_ETIMEDOUT;

	return abs(beside && e->prov_errno ? e->prov_errno : e->err);
}

/* A refusal and a rejection look alike but for our header in the data. */
static void attempt_failed(struct dofi_ep *ep, const struct fi_eq_err_entry *e)
{
	struct dofi_wire msg;

	if (e->err_data_size && !dofi_wire_unpack(e->err_data, e->err_data_size, &msg) &&
	    msg.kind == DOFI_WIRE_REJECT)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, msg.data, msg.data_size);
	else
		connect_failed(ep, reason_of(ep, e));
}

static void msg_error(struct dofi_progress *p, const struct fi_eq_err_entry *e)
{
	struct dofi_ep *ep = ep_of(dofi_ia_of(p), e->fid);

	if (!ep)
		return;
	if (dofi_ep_state_now(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		attempt_failed(ep, e);
	else
		gone(ep, DAT_CONNECTION_EVENT_BROKEN);
}

static const struct dofi_progress_ops marked_progress_ops = {
	.completed = msg_marked_completed,
	.cm_event = msg_event,
	.cm_error = msg_error,
	.failed = dofi_async_ia_failed,
};

static const struct dofi_progress_ops msg_progress_ops = {
	.completed = msg_completed,
	.cm_event = msg_event,
	.cm_error = msg_error,
	.failed = dofi_async_ia_failed,
};

static const struct dofi_progress_ops native_progress_ops = {
	.completed = msg_native_completed,
	.cm_event = msg_event,
	.cm_error = msg_error,
	.failed = dofi_async_ia_failed,
};

#define OPS                                                                               \
	.name = "msg", .header_size = DOFI_WIRE_FIXED, .ia_init = msg_ia_init,            \
	.ia_fini = msg_ia_fini, .listen = msg_listen, .unlisten = msg_unlisten,           \
	.connect = msg_connect, .accept = msg_accept, .reject = msg_reject,               \
	.close = msg_close, .pz_close = msg_open_pz_close, .resume = msg_mail_resume,         \
	.request_room = msg_request_room, .holds = msg_holds, .cancel = msg_cancel

const struct dofi_xport dofi_msg_xport = {
	OPS, .progress_ops = &msg_progress_ops, .submit = msg_submit,
	.fabric_sends = true, .write = msg_write, .read = msg_read,
};

static const struct dofi_xport marked_xport = {
	OPS, .progress_ops = &marked_progress_ops, .submit = msg_marked_submit,
};

static const struct dofi_xport native_xport = {
	OPS, .progress_ops = &native_progress_ops, .submit = msg_native_submit,
	.fabric_sends = true, .write = msg_write, .read = msg_read,
};

/* Before there is anything that could complete. */
static void choose_ops(struct dofi_ia *ia)
{
	if (ia->fabric.immed)
		ia->xport = &native_xport;
	else if (ia->fabric.cq_data && ia->fabric.quirk->loses_cq_data_flag)
		ia->xport = &marked_xport;
	ia->progress.ops = ia->xport->progress_ops;
}
