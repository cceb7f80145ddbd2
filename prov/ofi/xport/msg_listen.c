/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport's passive side: listeners, arriving requests, rejections. */

#include "xport/msg_listen.h"

#include "base/log.h"
#include "fab/halfopen.h"
#include "fab/quirks.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

size_t msg_address(struct sockaddr_storage *address, const struct sockaddr_storage *base,
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

/* The fabric's description of a passive endpoint at @port. */
static struct fi_info *listen_info(struct dofi_ia *ia, uint16_t port)
{
	struct fi_info *info = fi_dupinfo(ia->fabric.info);
	struct sockaddr_storage address;

	if (!info)
		return NULL;
	free(info->src_addr);
	info->src_addrlen = msg_address(&address, &ia->address, ia->fabric.wildcard, port);
	info->src_addr = malloc(info->src_addrlen);
	if (!info->src_addr) {
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(info->src_addr, &address, info->src_addrlen);
	info->addr_format = address.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	return info;
}

static int bound_port(struct fid_pep *pep, uint16_t *port)
{
	struct sockaddr_storage address;
	size_t len = sizeof(address);
	int ret = fi_getname(&pep->fid, &address, &len);

	if (ret)
		return ret;
	*port = ntohs(((struct sockaddr_in *)&address)->sin_port);
	return *port ? 0 : -EADDRNOTAVAIL;
}

static int pep_open(struct dofi_ia *ia, struct fi_info *info, struct fid_pep **pep)
{
	int ret = fi_passive_ep(ia->progress.fabric, info, pep, NULL);

	if (ret)
		return ret;
	ret = fi_pep_bind(*pep, &ia->progress.eq->fid, 0);
	if (!ret) {
		ret = fi_listen(*pep);
		if (ret == -FI_EINVAL && ia->fabric.quirk->late_listen_error)
			ret = -EADDRINUSE;
	}
	if (ret)
		fi_close(&(*pep)->fid);
	return ret;
}

static void listener_free(struct msg_listener *l)
{
	fi_freeinfo(l->info);
	free(l);
}

static int listener_open(struct dofi_ia *ia, uint16_t port, struct msg_listener **out)
{
	struct msg_ia *mia = ia->xport_ia;
	struct msg_listener *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->info = listen_info(ia, port);
	ret = l->info ? pep_open(ia, l->info, &l->pep) : -ENOMEM;
	if (ret)
		goto free_listener;
	l->port = port;
	if (!port)
		ret = bound_port(l->pep, &l->port);
	if (ret)
		goto close_pep;
	l->ia = ia;
	TAILQ_INIT(&l->sps);
	TAILQ_INSERT_TAIL(&mia->listeners, l, link);
	*out = l;
	return 0;

close_pep:
	fi_close(&l->pep->fid);
free_listener:
	listener_free(l);
	return ret;
}

static void listener_close(struct msg_listener *l)
{
	struct msg_ia *mia = l->ia->xport_ia;

	/* requests that come to nobody now go through it, and must not close it again */
	l->users++;
	if (l->ia->fabric.quirk->forgets_strangers)
		dofi_halfopen_end(&l->ia->progress, l->port);
	TAILQ_REMOVE(&mia->listeners, l, link);
	fi_close(&l->pep->fid);
	listener_free(l);
}

void msg_listener_put(struct msg_listener *l)
{
	if (!--l->users)
		listener_close(l);
}

static struct dofi_sp *sp_of(struct msg_listener *l, DAT_CONN_QUAL conn_qual)
{
	struct dofi_sp *sp;

	TAILQ_FOREACH(sp, &l->sps, link)
		if (sp->conn_qual == conn_qual)
			return sp;
	return NULL;
}

static struct msg_listener *listener_at(struct msg_ia *mia, uint16_t port)
{
	struct msg_listener *l;

	TAILQ_FOREACH(l, &mia->listeners, link)
		if (l->port == port)
			return l;
	return NULL;
}

/* Whether this IA listens for @conn_qual already, at whichever of its ports. */
static bool is_taken(struct msg_ia *mia, DAT_CONN_QUAL conn_qual)
{
	struct msg_listener *l;

	TAILQ_FOREACH(l, &mia->listeners, link)
		if (sp_of(l, conn_qual))
			return true;
	return false;
}

static void join(struct msg_listener *l, struct dofi_sp *sp)
{
	l->users++;
	sp->listener = l;
	TAILQ_INSERT_TAIL(&l->sps, sp, link);
}

static int listen_at(struct dofi_sp *sp, uint16_t port)
{
	struct msg_listener *l = listener_at(sp->obj.ia->xport_ia, port);
	int ret = 0;

	if (!l)
		ret = listener_open(sp->obj.ia, port, &l);
	if (!ret)
		join(l, sp);
	return ret;
}

static int listen_anywhere(struct dofi_sp *sp)
{
	struct msg_listener *l;
	int ret = listener_open(sp->obj.ia, 0, &l);

	if (ret)
		return ret;
	sp->conn_qual = l->port;
	join(l, sp);
	return 0;
}

/* The first of the qualifier's ports that can be had; the peer tries them in the same order. */
int msg_listen(struct dofi_sp *sp)
{
	unsigned n = dofi_wire_ports(sp->conn_qual), i;
	int ret = -EADDRINUSE;

	if (!sp->conn_qual)
		return listen_anywhere(sp);
	if (is_taken(sp->obj.ia->xport_ia, sp->conn_qual))
		return -EADDRINUSE;
	for (i = 0; i < n; i++) {
		ret = listen_at(sp, dofi_wire_port(sp->conn_qual, i));
		/* a taken port that is the qualifier itself means that somebody else serves it */
		if (!ret || (ret == -EADDRINUSE && !i && sp->conn_qual <= UINT16_MAX) ||
		    (ret != -EADDRINUSE && ret != -EACCES))
			break;
	}
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "listening for qualifier %llu: %s",
			 (unsigned long long)sp->conn_qual, fi_strerror(-ret));
	return ret == -EACCES ? -EADDRINUSE : ret;
}

void msg_unlisten(struct dofi_sp *sp)
{
	struct msg_listener *l = sp->listener;

	TAILQ_REMOVE(&l->sps, sp, link);
	msg_listener_put(l);
}

void msg_turn_down(struct msg_listener *l, struct fi_info *info, enum dofi_reject why,
		   const void *data, size_t size)
{
	const struct dofi_wire msg = {
		.kind = why == DOFI_REJECT_CONSUMER ? DOFI_WIRE_REJECT : DOFI_WIRE_REFUSE,
		.data = data,
		.data_size = size,
	};
	unsigned char buf[DOFI_WIRE_MAX];
	int ret = fi_reject(l->pep, info->handle, buf, dofi_wire_pack(buf, &msg));

	/* a requester that is gone needs no answer */
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "rejecting a request: %s", fi_strerror(-ret));
	fi_freeinfo(info);
}

static struct msg_listener *listener_of(struct msg_ia *mia, struct fid *pep)
{
	struct msg_listener *l;

	TAILQ_FOREACH(l, &mia->listeners, link)
		if (&l->pep->fid == pep)
			return l;
	return NULL;
}

void msg_request(struct dofi_ia *ia, struct fid *pep, struct fi_info *info,
		 const void *data, size_t size)
{
	struct msg_listener *l = listener_of(ia->xport_ia, pep);
	struct dofi_arrival arrival = { .info = info, .listener = l };
	struct dofi_sp *sp;
	struct dofi_wire msg;

	if (!l) {
		fi_freeinfo(info);
		return;
	}
	if (dofi_wire_unpack(data, size, &msg) || msg.kind != DOFI_WIRE_REQUEST) {
		dofi_log(DOFI_WARN, DOFI_CM, "port %u: a connection request that is not ours", l->port);
		msg_turn_down(l, info, DOFI_REJECT_PROVIDER, NULL, 0);
		return;
	}
	sp = sp_of(l, msg.conn_qual ? msg.conn_qual : l->port);
	arrival.secret = msg.secret;
	arrival.mailbox = msg.mailbox;
	arrival.framed = msg.framed;
	arrival.data = msg.data;
	arrival.data_size = msg.data_size;
	l->users++;
	if (!sp || dofi_cr_arrived(sp, &arrival)) {
		msg_turn_down(l, info, DOFI_REJECT_PROVIDER, NULL, 0);
		msg_listener_put(l);
	}
}
