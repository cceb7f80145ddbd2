/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: connecting, accepting and closing. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/ep_cm.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* The active side */

static struct fi_info *connect_info(struct dofi_ia *ia, const struct sockaddr_storage *peer,
				    size_t len)
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

/* Makes a secret for the next connection. */
static uint32_t secret_make(struct dofi_ep *ep)
{
	uint32_t secret = ep->obj.ia->fabric.scoped_keys ? dofi_random() : 0;

	dofi_ep_lock(ep);
	ep->secret = secret;
	dofi_ep_unlock(ep);
	return secret;
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
	int ret = msg_endpoint_take(ep, info, fid, &msg.mailbox);

	if (ret)
		return ret;
	dofi_cq_enter(ep->cq);
	ret = fi_connect(fid, info->dest_addr, buf, dofi_wire_pack(buf, &msg));
	dofi_cq_exit(ep->cq);
	if (!ret)
		msg_show_port(ep);
	dofi_progress_await(&ep->obj.ia->progress);
	return ret;
}

static void connect_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret)
{
	if (!ret)
		ret = connect_with(ep, info, fid);
	if (ret)
		msg_connect_failed(ep, -ret, NULL);
}

void msg_connect(struct dofi_ep *ep)
{
	const struct dofi_request *r = &ep->request;
	uint16_t port = dofi_wire_port(r->conn_qual, ep->attempt);
	struct sockaddr_storage peer;
	size_t len = dofi_port_address(&peer, &r->peer, false, port);
	struct fi_info *info;

	if (dofi_port_address_of_none(&r->peer)) {
		msg_connect_failed(ep, ENETUNREACH, NULL);
		return;
	}
	info = connect_info(ep->obj.ia, &peer, len);
	if (!info) {
		msg_connect_failed(ep, ENOMEM, NULL);
		return;
	}
	msg_info_fit(ep, info);
	msg_open(ep, info, connect_opened);
}

/* The passive side */

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
	int ret = msg_endpoint_take(ep, info, fid, &msg.mailbox);

	if (ret)
		return ret;
	dofi_cq_enter(ep->cq);
	ret = fi_accept(fid, buf, dofi_wire_pack(buf, &msg));
	dofi_cq_exit(ep->cq);
	dofi_progress_await(&ep->obj.ia->progress);
	return ret;
}

/*
 * Whether the requester has left, where libfabric would report a connection nevertheless. The
 * request is accepted even then, as it would leak otherwise.
 */
static bool requester_is_gone(const struct dofi_ep *ep, struct fid_ep *fid)
{
	struct dofi_ia *ia = ep->obj.ia;

	return ia->fabric.quirk->blind_when_blocked &&
	       dofi_watch_requester_gone(&ia->progress, fid);
}

void msg_accept(struct dofi_ep *ep)
{
	struct msg_request *request = ep->accepting;
	const bool kept = ep->obj.ia->fabric.quirk->keeps_request;
	struct fid_ep *fid = NULL;
	bool gone = false;
	int ret;

	dofi_ep_lock(ep);
	msg_bye_learn(ep, &ep->mailbox);
	dofi_ep_unlock(ep);
	/* the request's info contains the route */
	msg_info_fit(ep, request->info);
	ret = fi_endpoint(ep->pz->domain.fid, request->info, &fid, NULL);
	if (!ret) {
		gone = requester_is_gone(ep, fid);
		ret = accept_with(ep, request->info, fid);
	}
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "ep %p: accept: %s", (void *)ep, fi_strerror(-ret));
	/* first: freeing the request may close its listener, which processes events */
	if (ret || gone)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
	ep->accepting = NULL;
	/* an endpoint takes the request's socket; without one the requester awaits an answer */
	if (ret && (!fid || kept))
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
}
