/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: connecting, accepting and closing. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/ep/ep_cm.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

/* A host that vanishes before the connection's event must not delay that event without an end. */
static void watch_attempt(struct dofi_ep *ep, struct fid_ep *fid)
{
	if (ep->obj.ia->fabric.quirk->misses_end_while_blocked)
		dofi_watch_attempt(&msg_part(ep)->watch, &ep->obj.ia->progress, fid,
				   msg_peer_ended);
}

/* The active side */

/* Fills the message of @ep to its peer, with a secret for this connection, but no mailbox. */
static void message_begin(struct dofi_ep *ep, enum dofi_wire_kind kind, struct dofi_wire *msg)
{
	*msg = (struct dofi_wire){
		.kind = kind, .secret = ep->obj.ia->fabric.scoped_keys ? dofi_random() : 0,
		.preambles = ep->srq, .data = ep->request.data, .data_size = ep->request.data_size,
	};
	dofi_mutex_lock(&ep->lock);
	ep->secret = msg->secret;
	dofi_mutex_unlock(&ep->lock);
}

void msg_connect_failed(struct dofi_ep *ep, int err, const char *why)
{
	if (!dofi_port_next(ep, err, why))
		return;
	msg_endpoint_close(ep);
	dofi_ep_connect_again(ep);
}

void msg_show_port(struct dofi_ep *ep)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	size_t len = sizeof(own);

	if (ep->fid && !fi_getname(&ep->fid->fid, &own, &len))
		dofi_ep_bound(ep, ntohs(((struct sockaddr_in *)&own)->sin_port));
}

static void connect_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret)
{
	const struct dofi_request *r = &ep->request;
	unsigned char buf[DOFI_WIRE_MAX];
	struct dofi_wire msg;

	if (!ret) {
		message_begin(ep, DOFI_WIRE_REQUEST, &msg);
		ret = msg_endpoint_take(ep, info, fid, &msg.mailbox);
	}
	if (!ret) {
		if (dofi_wire_port(r->conn_qual, ep->attempt) != r->conn_qual)
			msg.conn_qual = r->conn_qual;
		dofi_cq_lock_access(ep->cq);
		ret = fi_connect(fid, info->dest_addr, buf, dofi_wire_pack(buf, &msg));
		dofi_cq_unlock_access(ep->cq);
		if (!ret) {
			msg_show_port(ep);
			watch_attempt(ep, fid);
		}
		dofi_progress_await(&ep->obj.ia->progress);
	}
	if (ret)
		msg_connect_failed(ep, -ret, NULL);
}

void msg_connect(struct dofi_ep *ep)
{
	const struct dofi_request *r = &ep->request;
	uint16_t port = dofi_wire_port(r->conn_qual, ep->attempt);
	struct sockaddr_storage peer;
	size_t len = dofi_port_address(&peer, &r->peer, false, port);
	struct dofi_ia *ia = ep->obj.ia;
	struct fi_info *info;

	if (dofi_port_address_of_none(&r->peer)) {
		msg_connect_failed(ep, ENETUNREACH, NULL);
		return;
	}
	info = msg_info_with(ia, &peer, len, false);
	if (!info) {
		msg_connect_failed(ep, ENOMEM, NULL);
		return;
	}
	if (ia->fabric.wildcard) {
		/* the route to the peer chooses the interface */
		free(info->src_addr);
		info->src_addr = NULL;
		info->src_addrlen = 0;
	}
	msg_info_fit(ep, info);
	msg_open(ep, info, connect_opened);
}

/* The passive side */

/* A request is accepted even if the requester has left, which libfabric may miss: it would leak. */
void msg_accept(struct dofi_ep *ep)
{
	const struct dofi_quirk *quirk = ep->obj.ia->fabric.quirk;
	struct msg_request *request = ep->accepting;
	unsigned char buf[DOFI_WIRE_MAX];
	struct fid_ep *fid = NULL;
	struct dofi_wire msg;
	bool gone = false;
	int ret;

	dofi_mutex_lock(&ep->lock);
	msg_bye_learn(ep, &ep->mailbox);
	dofi_mutex_unlock(&ep->lock);
	/* the request's info contains the route */
	msg_info_fit(ep, request->info);
	ret = fi_endpoint(ep->pz->domain.fid, request->info, &fid, NULL);
	if (!ret) {
		gone = quirk->misses_end_while_blocked &&
		       dofi_watch_requester_gone(&ep->obj.ia->progress, fid);
		message_begin(ep, DOFI_WIRE_ACCEPT, &msg);
		ret = msg_endpoint_take(ep, request->info, fid, &msg.mailbox);
	}
	if (!ret) {
		dofi_cq_lock_access(ep->cq);
		ret = fi_accept(fid, buf, dofi_wire_pack(buf, &msg));
		dofi_cq_unlock_access(ep->cq);
		if (!ret)
			watch_attempt(ep, fid);
		dofi_progress_await(&ep->obj.ia->progress);
	}
	if (ret)
		dofi_ep_log(ep, DOFI_INFO, DOFI_CM, "accept: %s", fi_strerror(-ret));
	/* first: freeing the request may close its listener, which processes events */
	if (ret || gone)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
	ep->accepting = NULL;
	/* an endpoint takes the request's socket; without one the requester awaits an answer */
	if (ret && (!fid || quirk->keeps_request))
		msg_refuse(request, DOFI_REJECT_PROVIDER, NULL, 0);
	else
		msg_request_free(request);
}

void msg_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	msg_refuse(cr->request, why, data, size);
	cr->request = NULL;
}

void msg_close(struct dofi_ep *ep)
{
	if (ep->accepting)
		msg_refuse(ep->accepting, DOFI_REJECT_PROVIDER, NULL, 0);
	ep->accepting = NULL;
	msg_endpoint_close(ep);
	dofi_mutex_lock(&ep->lock);
	ep->no_goodbye = msg_part(ep)->sends_bye && !msg_part(ep)->got_bye;
	msg_part(ep)->sends_bye = msg_part(ep)->got_bye = false;
	dofi_mutex_unlock(&ep->lock);
}
