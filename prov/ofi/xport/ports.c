/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Qualifiers and ports: which port to listen at, and which to try next. */

#include "xport/ports.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/ep/ep_cm.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

size_t dofi_port_address(struct sockaddr_storage *address, const struct sockaddr_storage *base,
			 bool wildcard, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	*address = *base;
	if (address->ss_family == AF_INET6) {
		if (wildcard)
			in6->sin6_addr = in6addr_any;
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	if (wildcard)
		in->sin_addr.s_addr = htonl(INADDR_ANY);
	in->sin_port = htons(port);
	return sizeof(*in);
}

bool dofi_port_address_of_none(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&in6->sin6_addr);
	return IN_MULTICAST(ntohl(in->sin_addr.s_addr)) || IN_BADCLASS(ntohl(in->sin_addr.s_addr));
}

void dofi_ports_init(struct dofi_ports *ports, const struct dofi_ports_ops *ops)
{
	ports->ops = ops;
	TAILQ_INIT(&ports->list);
}

/* Adds @sp to its port @number, which is opened unless this IA has it; 0 is any free port. */
static int listen_at(struct dofi_sp *sp, uint16_t number)
{
	struct dofi_ports *ports = sp->obj.ia->xport_ia;
	struct dofi_port *port = NULL;
	int ret;

	if (number)
		TAILQ_FOREACH(port, &ports->list, link)
			if (port->number == number)
				break;
	if (!port) {
		ret = ports->ops->open(sp->obj.ia, number, &port);
		if (ret)
			return ret;
		port->users = 0;
		TAILQ_INIT(&port->sps);
		TAILQ_INSERT_TAIL(&ports->list, port, link);
	}
	if (!number)
		sp->conn_qual = port->number;
	port->users++;
	sp->listener = port;
	TAILQ_INSERT_TAIL(&port->sps, sp, link);
	return 0;
}

void dofi_port_put(struct dofi_port *port)
{
	struct dofi_ports *ports = port->ia->xport_ia;

	if (--port->users)
		return;
	/* requests that arrive meanwhile have no service point, and must not close it again */
	port->users++;
	ports->ops->close(port);
	TAILQ_REMOVE(&ports->list, port, link);
	free(port);
}

struct dofi_sp *dofi_port_sp(struct dofi_port *port, DAT_CONN_QUAL conn_qual)
{
	struct dofi_sp *sp;

	TAILQ_FOREACH(sp, &port->sps, link)
		if (sp->conn_qual == (conn_qual ? conn_qual : port->number))
			return sp;
	return NULL;
}

/* Tries the ports in the order in which a peer tries them. */
int dofi_ports_listen(struct dofi_sp *sp)
{
	const struct dofi_ports *ports = sp->obj.ia->xport_ia;
	unsigned n = dofi_wire_ports(sp->conn_qual), i;
	struct dofi_port *port;
	int ret = -EADDRINUSE;

	if (!sp->conn_qual)
		return listen_at(sp, 0);
	TAILQ_FOREACH(port, &ports->list, link)
		if (dofi_port_sp(port, sp->conn_qual))
			return -EADDRINUSE;
	for (i = 0; i < n; i++) {
		ret = listen_at(sp, dofi_wire_port(sp->conn_qual, i));
		/* if the qualifier's own port is taken, another program serves the qualifier */
		if (!ret || (ret == -EADDRINUSE && !i && sp->conn_qual <= UINT16_MAX) ||
		    (ret != -EADDRINUSE && ret != -EACCES))
			break;
	}
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "listening for qualifier %llu: %s",
			 (unsigned long long)sp->conn_qual, fi_strerror(-ret));
	return ret == -EACCES ? -EADDRINUSE : ret;
}

void dofi_ports_unlisten(struct dofi_sp *sp)
{
	struct dofi_port *port = sp->listener;

	TAILQ_REMOVE(&port->sps, sp, link);
	dofi_port_put(port);
}

/* Attempts */

/* The meaning of errors. A fabric on TCP reports an end or foreign bytes in place of an answer. */
static const struct failure {
	int err;
	DAT_EVENT_NUMBER event;
	const char *why;	/* NULL: the text of the errno */
} failures[] = {
	{ ECONNREFUSED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
	  "refused, no program listens at the port" },
	{ ECONNRESET, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_NO_ANSWER },
	{ ECONNABORTED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_NO_ANSWER },
	{ EPIPE, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_NO_ANSWER },
	{ EIO, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_NO_ANSWER },
	{ ENOPROTOOPT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_FOREIGN_ANSWER },
	{ EPROTO, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DOFI_FOREIGN_ANSWER },
	/* the kernel's time-out, which is longer than ours */
	{ ETIMEDOUT, DAT_CONNECTION_EVENT_UNREACHABLE, "no host answers at the address" },
	{ ENETUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE, "no route leads to the address" },
	{ EHOSTUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE, "the host cannot be reached" },
	{ EACCES, DAT_CONNECTION_EVENT_UNREACHABLE, "the route to the address is prohibited" },
	{ EHOSTDOWN, DAT_CONNECTION_EVENT_UNREACHABLE, NULL },
	{ ENETDOWN, DAT_CONNECTION_EVENT_UNREACHABLE, NULL },
	{ EADDRNOTAVAIL, DAT_CONNECTION_EVENT_UNREACHABLE, NULL },
	{ EINVAL, DAT_CONNECTION_EVENT_UNREACHABLE, "no route can lead to the address" },
	{ ENODEV, DAT_CONNECTION_EVENT_UNREACHABLE, "no device leads to the address" },
};

static struct failure failure_of(int err)
{
	struct failure f = { err, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL };
	size_t i;

	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].err == err)
			f = failures[i];
	if (!f.why)
		f.why = fi_strerror(err);
	return f;
}

void dofi_port_failed(struct dofi_ep *ep, int err, const char *why)
{
	const struct dofi_fabric_choice *fabric = &ep->obj.ia->fabric;
	const struct failure f = failure_of(err);

	if (!why && err == ECONNREFUSED && !fabric->rdm) {
		if (ep->request.peer.ss_family == AF_INET6 && !fabric->quirk->joins_families)
			why = "refused, no program listens at the port, "
			      "or one that listens on IPv4 only";
		else if (fabric->quirk->vague_refusal)
			why = "refused, no program listens at the port, "
			      "or one that speaks another protocol";
	}
	dofi_ep_no_connection(ep, f.event, why ? why : f.why);
}

bool dofi_port_next(struct dofi_ep *ep, int err, const char *why)
{
	const struct failure f = failure_of(err);

	dofi_ep_log(ep, DOFI_DEBUG, DOFI_CM, "connecting: %s", fi_strerror(err));
	if (f.event == DAT_CONNECTION_EVENT_NON_PEER_REJECTED &&
	    ++ep->attempt < dofi_wire_ports(ep->request.conn_qual))
		return true;
	dofi_port_failed(ep, err, why);
	return false;
}

bool dofi_port_attempt_lost(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const char *why)
{
	switch (dofi_ep_state_now(ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		dofi_ep_no_connection(ep, event, why);
		return true;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		return true;
	default:
		return false;
	}
}
