/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of peers for an address, and the listeners that they come by. */

#include "xport/ud/ud.h"

#include "base/log.h"
#include "obj/sp/cr.h"
#include "obj/sp/sp.h"
#include "xport/cm/listen.h"
#include "xport/ports.h"
#include "xport/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ud_listener {
	struct dofi_sp *sp;
	struct dofi_cm_listeners cm;		/* over the network */
	struct dofi_cm_listener *local;	/* the local socket of the qualifier, or NULL */
	LIST_ENTRY(ud_listener) link;
};

/* A request until it is rejected, or accepted and confirmed by the peer. */
struct ud_request {
	struct dofi_cm_conn *cm;	/* NULL: the peer ended before the answer */
	/* after the acceptance: */
	struct dofi_exchange *x;
	struct dofi_inbox *inbox;	/* offered to a peer on this host, or NULL */
	struct ud_peer *ah;
	LIST_ENTRY(ud_request) link;	/* in the answers of its EP */
	struct ud_intro intro;
	/* for the event: dat_cr_query() lends the program another copy, which it may overwrite */
	size_t data_size;
	unsigned char data[DOFI_CM_MAX_DATA];
};

static const struct dofi_exchanged failed = {
	.event = DAT_IB_UD_CONNECTION_ERROR_EVENT,
};

static void request_free(struct ud_request *request)
{
	dofi_cm_close(request->cm);
	dofi_inbox_offer_end(request->inbox);
	ud_intro_drop(&request->intro);
	free(request);
}

static void refuse(struct ud_request *request, enum dofi_cm_reason reason)
{
	dofi_cm_decline(request->cm, reason, NULL, 0);
	request_free(request);
}

/* A service point with an EP of its own takes connections only. */
static void on_request(struct dofi_cm_listener *listener, struct dofi_cm_conn *cm,
		       const struct dofi_cm_msg *msg)
{
	const struct ud_listener *l = dofi_cm_listener_owner(listener);
	struct ud_request *request = calloc(1, sizeof(*request));
	struct dofi_sp *sp = l->sp;
	struct dofi_arrival arrival;

	if (!request || !ud_intro_take(&request->intro, msg, listener == l->local)) {
		free(request);
		dofi_cm_close(cm);
		return;
	}
	request->cm = cm;
	request->data_size = msg->data_size;
	if (msg->data_size)
		memcpy(request->data, msg->data, msg->data_size);
	dofi_cm_set_owner(cm, request);
	arrival = (struct dofi_arrival){
		.xport = sp->obj.ia->datagrams->xport, .request = request, .datagram = true,
		.peer = *dofi_cm_peer(cm), .data = msg->data, .data_size = msg->data_size,
	};
	if (sp->conn_qual != msg->conn_qual || sp->makes_eps || sp->once)
		refuse(request, DOFI_CM_NO_LISTENER);
	else if (!ud_intro_suits(ud_ia_of(sp->obj.ia), &request->intro))
		refuse(request, DOFI_CM_NO_PATH);
	else if (dofi_cr_arrived(sp, &arrival))
		refuse(request, DOFI_CM_BUSY);
}

/* The peer has the answer and reports an address, or will never report one. */
static void answer_end(struct ud_request *request, bool confirmed)
{
	const struct dofi_exchanged established = {
		.event = DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
		.ah = request->ah, .number = request->intro.number,
		.data = request->data, .data_size = request->data_size,
	};
	struct dofi_exchange *x = request->x;

	LIST_REMOVE(request, link);
	if (!confirmed)
		ud_peer_put(request->ah);
	dofi_exchange_end(x, confirmed ? &established : &failed);
	request_free(request);
}

static void on_message(struct dofi_cm_conn *cm, const struct dofi_cm_msg *msg)
{
	struct ud_request *request = dofi_cm_owner(cm);

	if (request->x && msg->kind == DOFI_CM_READY)
		answer_end(request, true);
}

static void on_end(struct dofi_cm_conn *cm, int err)
{
	struct ud_request *request = dofi_cm_owner(cm);

	(void)err;
	if (request->x) {
		answer_end(request, false);
		return;
	}
	/* the program may answer late, or never: the request keeps no descriptor until then */
	dofi_cm_close(request->cm);
	request->cm = NULL;
}

static const struct dofi_cm_ops passive_ops = {
	.request = on_request, .message = on_message, .ended = on_end,
	.first = DOFI_CM_DATAGRAM_REQUEST,
};

/* The event waits for the peer's READY: the peer may have given up when the answer arrives. */
void ud_accept(struct dofi_exchange *x, void *from)
{
	struct ud_request *request = from;
	struct ud_ep *uep = ud_ep_of(x->ep);
	struct dofi_cm_msg msg = {
		.kind = DOFI_CM_DATAGRAM_ACCEPT, .data = x->request.data,
		.data_size = (uint16_t)x->request.data_size,
	};
	int ret = -ECONNRESET;

	if (request->cm)
		ret = request->intro.local ? dofi_inbox_open(uep->upz->rings, &request->inbox) :
					     ud_pz_open_net(uep->upz);
	if (!ret) {
		ud_introduce(uep, request->inbox, &msg);
		ret = ud_peer_get(uep->upz, &request->intro, &request->ah);
	}
	if (ret) {
		dofi_exchange_end(x, &failed);
		refuse(request, DOFI_CM_NO_PATH);
		return;
	}
	dofi_cm_send(request->cm, &msg);
	request->x = x;
	LIST_INSERT_HEAD(&uep->answers, request, link);
}

void ud_answers_drop(struct ud_ep *uep)
{
	struct ud_request *request;

	while ((request = LIST_FIRST(&uep->answers))) {
		LIST_REMOVE(request, link);
		ud_peer_put(request->ah);
		request_free(request);
	}
}

void ud_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	struct ud_request *request = cr->request;

	cr->request = NULL;
	dofi_cm_decline(request->cm, why == DOFI_REJECT_PROVIDER ? DOFI_CM_NO_LISTENER : 0, data,
			size);
	request_free(request);
}

/* Listeners */

static struct ud_listener *listener_of(const struct ud_ia *uia, const struct dofi_sp *sp)
{
	struct ud_listener *l;

	LIST_FOREACH(l, &uia->listeners, link)
		if (l->sp == sp)
			return l;
	return NULL;
}

static void report(const struct dofi_sp *sp, int err, const char *what)
{
	if (err)
		dofi_log(DOFI_WARN, DOFI_CM, "qualifier %llu: not for datagrams%s: %s",
			 (unsigned long long)sp->conn_qual, what, strerror(-err));
}

/* Listens within the host first: a peer that finds no local socket tries the network. */
void ud_listen(struct dofi_sp *sp)
{
	struct ud_ia *uia = ud_ia_of(sp->obj.ia);
	const bool any = sp->obj.ia->fabric.wildcard;
	int local = 0, net = -EADDRINUSE;
	struct sockaddr_storage address;
	struct ud_listener *l;
	unsigned i;

	if (!uia->in_use || listener_of(uia, sp))
		return;
	l = calloc(1, sizeof(*l));
	if (!l)
		return;
	l->sp = sp;
	if (uia->rings)
		local = dofi_local_listen(&uia->ia->progress, DOFI_LOCAL_DATAGRAMS, sp->conn_qual,
					 &passive_ops, l, &l->local);
	/* a name that is taken is reported once for the process */
	if (local != -EADDRINUSE || !uia->fabric)
		report(sp, local, " within the host");
	/* the ports in the order in which a peer tries them */
	for (i = 0; i < DOFI_WIRE_DATAGRAM_PORTS && uia->fabric &&
		    (net == -EADDRINUSE || net == -EACCES); i++) {
		dofi_port_address(&address, &uia->ia->address, any,
				  dofi_wire_datagram_port(sp->conn_qual, i));
		net = dofi_cm_listen_both(&uia->ia->progress, &address, any, &passive_ops, l,
					  &l->cm);
	}
	if (uia->fabric)
		report(sp, net, "");
	if (l->cm.own || l->local)
		LIST_INSERT_HEAD(&uia->listeners, l, link);
	else
		free(l);
}

void ud_unlisten(struct dofi_sp *sp)
{
	struct ud_listener *l = listener_of(ud_ia_of(sp->obj.ia), sp);

	if (!l)
		return;
	LIST_REMOVE(l, link);
	if (l->local)
		dofi_cm_unlisten(l->local);
	dofi_cm_unlisten_both(&l->cm);
	free(l);
}
