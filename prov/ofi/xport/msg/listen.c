/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport, passive side: listeners, arriving requests, rejections. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "sock/watch.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whether a socket at [::] takes IPv4, too: not without IPv6, or with net.ipv6.bindv6only. */
static bool ipv6_takes_ipv4(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), apart = 1;
	socklen_t len = sizeof(apart);

	if (fd < 0)
		return false;
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &apart, &len))
		apart = 1;
	close(fd);
	return !apart;
}

/* Sets info and pep of @l, both or none, at @number of the IA's address; @both: at [::]. */
static int listener_begin(struct msg_listener *l, struct dofi_ia *ia, uint16_t number, bool both)
{
	static const struct sockaddr_storage ipv6 = { .ss_family = AF_INET6 };
	struct sockaddr_storage address;
	const size_t len = dofi_port_address(&address, both ? &ipv6 : &ia->address,
					     ia->fabric.wildcard, number);
	int ret;

	l->info = msg_info_with(ia, &address, len, true);
	if (!l->info)
		return -ENOMEM;
	ret = fi_passive_ep(ia->progress.fabric, l->info, &l->pep, NULL);
	if (ret)
		goto free_info;
	ret = fi_pep_bind(l->pep, &dofi_progress_listen_eq(&ia->progress)->fid->fid, 0);
	if (!ret) {
		ret = fi_listen(l->pep);
		if (ret == -FI_EINVAL && ia->fabric.quirk->late_listen_error)
			ret = -EADDRINUSE;
	}
	if (!ret)
		return 0;
	fi_close(&l->pep->fid);
free_info:
	fi_freeinfo(l->info);
	l->info = NULL;
	return ret;
}

/* No call of libfabric keeps strangers out, so the user has to know. */
static void warn_of_strangers(const struct dofi_fabric_choice *fabric)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (fabric->quirk->strangers_crash && !atomic_flag_test_and_set(&warned))
		dofi_log(DOFI_WARN, DOFI_CM, "fabric %s: by a fault of libfabric, any TCP client "
			 "that reaches a port of this program can crash it, also one that uses "
			 "another fabric; use tcp", fabric->info->fabric_attr->prov_name);
}

/* Listens to both families where one socket can, or to IPv4 if another program has IPv6. */
static int listener_open(struct dofi_ia *ia, uint16_t number, struct dofi_port **out)
{
	const bool both = ia->fabric.wildcard && ia->address.ss_family == AF_INET &&
			  ia->fabric.quirk->joins_families && ipv6_takes_ipv4();
	struct msg_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	size_t len = sizeof(address);
	int ret;

	if (!l)
		return -ENOMEM;
	ret = listener_begin(l, ia, number, both);
	if (ret == -EADDRINUSE && both) {
		ret = listener_begin(l, ia, number, false);
		if (!ret)
			dofi_log(DOFI_WARN, DOFI_CM,
				 "port %u: another program has it for IPv6; only IPv4 is served",
				 number);
	}
	if (ret)
		goto free_listener;
	if (!number) {
		ret = fi_getname(&l->pep->fid, &address, &len);
		number = ntohs(((struct sockaddr_in *)&address)->sin_port);
		if (!ret && !number)
			ret = -EADDRNOTAVAIL;
	}
	if (ret)
		goto close_pep;
	l->port.ia = ia;
	l->port.number = number;
	warn_of_strangers(&ia->fabric);
	if (ia->fabric.quirk->keeps_half_open)
		dofi_halfopen_begin(&ia->progress, number);
	*out = &l->port;
	return 0;

close_pep:
	fi_close(&l->pep->fid);
	fi_freeinfo(l->info);
free_listener:
	free(l);
	return ret;
}

static void listener_close(struct dofi_port *port)
{
	struct msg_listener *l = (struct msg_listener *)port;

	if (port->ia->fabric.quirk->keeps_half_open)
		dofi_halfopen_end(&port->ia->progress, port->number);
	fi_close(&l->pep->fid);
	fi_freeinfo(l->info);
}

const struct dofi_ports_ops msg_ports_ops = { .open = listener_open, .close = listener_close };

/* Requests */

void msg_request_free(struct msg_request *r)
{
	fi_freeinfo(r->info);
	dofi_port_put(&r->listener->port);
	free(r);
}

static void reject(struct msg_listener *l, const struct fi_info *info, enum dofi_reject why,
		   const void *data, size_t size)
{
	const struct dofi_wire msg = {
		.kind = why == DOFI_REJECT_CONSUMER ? DOFI_WIRE_REJECT : DOFI_WIRE_REFUSE,
		.data = data, .data_size = size,
	};
	unsigned char buf[DOFI_WIRE_MAX];
	int ret = fi_reject(l->pep, info->handle, buf, dofi_wire_pack(buf, &msg));

	/* a requester that has left needs no answer */
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "rejecting a request: %s", fi_strerror(-ret));
}

void msg_refuse(struct msg_request *r, enum dofi_reject why, const void *data, size_t size)
{
	reject(r->listener, r->info, why, data, size);
	msg_request_free(r);
}

/* Sets @peer to the requester's address. Sockets of both families report IPv4 as ::ffff:a.b.c.d. */
static void peer_of(const struct fi_info *info, struct sockaddr_storage *peer)
{
	struct sockaddr_in *in = (struct sockaddr_in *)peer;
	struct sockaddr_in6 in6;

	memset(peer, 0, sizeof(*peer));
	if (info->dest_addr && info->dest_addrlen <= sizeof(*peer))
		memcpy(peer, info->dest_addr, info->dest_addrlen);
	in6 = *(const struct sockaddr_in6 *)peer;
	if (in6.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memset(peer, 0, sizeof(*peer));
	in->sin_family = AF_INET;
	in->sin_port = in6.sin6_port;
	memcpy(&in->sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in->sin_addr));
}

void msg_arrived(struct dofi_ia *ia, struct fid *pep, struct fi_info *info, const void *data,
		 size_t size)
{
	struct msg_ia *mia = ia->xport_ia;
	struct msg_request *r = NULL;
	struct msg_listener *l = NULL;
	struct dofi_arrival arrival;
	struct dofi_port *port;
	struct dofi_wire msg;
	struct dofi_sp *sp;

	TAILQ_FOREACH(port, &mia->ports.list, link) {
		l = (struct msg_listener *)port;
		if (&l->pep->fid == pep)
			break;
	}
	if (port)
		r = malloc(sizeof(*r));
	if (!r) {
		if (port)
			reject(l, info, DOFI_REJECT_PROVIDER, NULL, 0);
		fi_freeinfo(info);
		return;
	}
	*r = (struct msg_request){ .info = info, .listener = l };
	port->users++;
	if (ia->fabric.quirk->misses_end_while_blocked)
		dofi_watch_request(&ia->progress, pep, info);
	if (dofi_wire_unpack(data, size, &msg) || msg.kind != DOFI_WIRE_REQUEST) {
		dofi_log(DOFI_WARN, DOFI_CM, "port %u: a connection request that is not ours",
			 port->number);
		goto refuse;
	}
	sp = dofi_port_sp(port, msg.conn_qual);
	arrival = (struct dofi_arrival){
		.request = r, .secret = msg.secret, .mailbox = msg.mailbox,
		.preambles = msg.preambles, .data = msg.data, .data_size = msg.data_size,
	};
	peer_of(info, &arrival.peer);
	if (sp && !dofi_cr_arrived(sp, &arrival))
		return;
refuse:
	msg_refuse(r, DOFI_REJECT_PROVIDER, NULL, 0);
}
