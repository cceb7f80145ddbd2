/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: the fabric's endpoints, from fi_endpoint() to fi_close(). */

#include "xport/msg/msg.h"

#include "base/clock.h"
#include "base/log.h"
#include "fab/quirks.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_dto.h"
#include "sock/linger.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* An open endpoint, found by its fid when an event arrives. */
struct msg_conn {
	const struct fid *fid;
	struct dofi_ep *ep;
	struct dofi_cq *cq;
	struct dofi_shard *shard;	/* of the CQ */
	unsigned reserved;		/* completions reserved in the CQ */
	bool said_bye;
	bool acked;			/* nothing was outstanding before the goodbye */
};

static int conn_compare(const void *a, const void *b)
{
	const struct fid *x = ((const struct msg_conn *)a)->fid;
	const struct fid *y = ((const struct msg_conn *)b)->fid;

	return (x > y) - (x < y);
}

struct dofi_ep *msg_ep_of(struct dofi_ia *ia, const struct fid *fid)
{
	struct msg_ia *mia = ia->xport_ia;
	const struct msg_conn key = { .fid = fid };
	struct msg_conn **found = tfind(&key, &mia->endpoints, conn_compare);

	return found ? (*found)->ep : NULL;
}

static void conn_free(struct msg_conn *conn)
{
	dofi_cq_leave_shard(conn->cq, conn->shard);
	dofi_domain_cq_release(conn->cq, conn->reserved);
	free(conn);
}

static void conn_remove(struct dofi_ep *ep)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;
	struct msg_conn *conn = ep->conn;

	tdelete(conn, &mia->endpoints, conn_compare);
	conn_free(conn);
	ep->conn = NULL;
}

struct fi_info *msg_info_with(const struct dofi_ia *ia, const struct sockaddr_storage *address,
			      size_t len, bool own)
{
	struct fi_info *info = fi_dupinfo(ia->fabric.info);
	void *copy = info ? malloc(len) : NULL;

	if (!copy) {
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(copy, address, len);
	if (own) {
		free(info->src_addr);
		info->src_addr = copy;
		info->src_addrlen = len;
	} else {
		free(info->dest_addr);
		info->dest_addr = copy;
		info->dest_addrlen = len;
	}
	info->addr_format = address->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	return info;
}

#define LEAST_QUEUE 4			/* a message and its preamble */

/* Requests beyond the fabric's default, @most, are pending in the EP. */
static size_t queue_size(size_t dtos, size_t most)
{
	if (dtos < LEAST_QUEUE)
		dtos = LEAST_QUEUE;
	return dtos < most ? dtos : most;
}

void msg_info_fit(const struct dofi_ep *ep, struct fi_info *info)
{
	const struct dofi_fabric_choice *fabric = &ep->obj.ia->fabric;

	switch (ep->request.qos ? ep->request.qos : ep->attr.qos) {
	case DAT_QOS_HIGH_THROUGHPUT:
		info->tx_attr->tclass = FI_TC_BULK_DATA;
		break;
	case DAT_QOS_LOW_LATENCY:
		info->tx_attr->tclass = FI_TC_LOW_LATENCY;
		break;
	case DAT_QOS_ECONOMY:
		info->tx_attr->tclass = FI_TC_SCAVENGER;
		break;
	case DAT_QOS_PREMIUM:
		info->tx_attr->tclass = FI_TC_DEDICATED_ACCESS;
		break;
	default:
		info->tx_attr->tclass = FI_TC_UNSPEC;
	}
	if (!fabric->quirk->fixed_queues)
		return;
	info->tx_attr->size = queue_size(ep->attr.max_request_dtos, fabric->info->tx_attr->size);
	info->rx_attr->size = queue_size(ep->srq ? 0 : ep->attr.max_recv_dtos,
					 fabric->info->rx_attr->size);
}

/* Whether the peer needs a goodbye, because the end is orderly. EP lock held. */
static bool bye_pending(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING && msg_part(ep)->sends_bye &&
	       !ep->lost && ep->end != DAT_CONNECTION_EVENT_BROKEN;
}

static void endpoint_end(struct fid_ep *fid, struct dofi_cq *cq, bool shut_down)
{
	int ret;

	dofi_cq_lock_access(cq);
	if (shut_down)
		fi_shutdown(fid, 0);
	ret = fi_close(&fid->fid);
	dofi_cq_unlock_access(cq);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_CM, "closing an endpoint: %s", fi_strerror(-ret));
}

/* Records and enables @fid, with @reserved completions in a CQ of its PZ. Closes it on failure. */
static int endpoint_enable(struct dofi_ep *ep, struct fid_ep *fid, unsigned reserved)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;
	struct msg_conn *conn = malloc(sizeof(*conn));
	struct dofi_cq *cq = conn ? dofi_domain_cq_reserve(&ep->pz->domain, reserved) : NULL;
	int ret = -ENOMEM;

	if (!cq) {
		ret = conn ? -FI_ENOSPC : -ENOMEM;
		free(conn);
		goto close_endpoint;
	}
	*conn = (struct msg_conn){
		.fid = &fid->fid, .ep = ep, .cq = cq, .shard = dofi_cq_enter_shard(cq),
		.reserved = reserved,
	};
	if (!tsearch(conn, &mia->endpoints, conn_compare)) {
		conn_free(conn);
		goto close_endpoint;
	}
	ep->conn = conn;
	dofi_cq_lock_access(cq);
	ret = fi_ep_bind(fid, &ep->obj.ia->progress.eq.fid->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fid, &conn->shard->fid->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(fid);
	dofi_cq_unlock_access(cq);
	if (ret) {
		endpoint_end(fid, cq, false);
		conn_remove(ep);
	}
	return ret;

close_endpoint:
	fi_close(&fid->fid);
	return ret;
}

int msg_endpoint_take(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid,
		      struct dofi_mailbox *own)
{
	const struct msg_conn *conn;
	struct msg_mail *mail;
	int ret = msg_mail_open(ep, &mail, own);

	if (ret) {
		fi_close(&fid->fid);
		return ret;
	}
	ret = endpoint_enable(ep, fid, info->tx_attr->size + info->rx_attr->size);
	if (ret) {
		msg_mail_close(mail);
		return ret;
	}
	conn = ep->conn;
	dofi_mutex_lock(&ep->lock);
	ep->fid = fid;
	ep->shard = conn->shard;
	msg_part(ep)->mail = mail;
	dofi_ep_set_cq(ep, conn->cq);
	dofi_ep_open_queues(ep);
	dofi_dto_submit_pending(ep);
	dofi_mutex_unlock(&ep->lock);
	return 0;
}

#define READS_FOR_BYE 16

/* Progresses the CQ after a failed send: the goodbye may be queued, and a poll reads a part. */
static void await_bye(struct dofi_ep *ep)
{
	bool may_arrive;
	int i;

	for (i = 0; i < READS_FOR_BYE; i++) {
		dofi_mutex_lock(&ep->lock);
		may_arrive = ep->lost && ep->data_lost && msg_part(ep)->sends_bye &&
			     !msg_part(ep)->got_bye;
		dofi_mutex_unlock(&ep->lock);
		if (!may_arrive)
			return;
		dofi_cq_drain(ep->cq);
	}
}

/* How long a socket may be silent, and how long replies to reads may arrive, before it is cut. */
#define SILENCE_MS 2
#define REPLIES_NS (100 * 1000000LL)
/* Least reads of the CQ after the cut: the thread may have had no processor for REPLIES_NS. */
#define READS_OF_CUT 1000

static bool has_reads(struct dofi_ep *ep)
{
	bool has;

	dofi_mutex_lock(&ep->lock);
	has = ep->reads;
	dofi_mutex_unlock(&ep->lock);
	return has;
}

/*
 * Ends the reads of @ep before its endpoint closes. A fabric with the quirk frees a read twice if
 * its endpoint is closed while the reply arrives, and then gives the memory to two operations of
 * other connections. If its socket ends, it frees the read once. So replies may arrive for a short
 * time, and then the socket is cut.
 */
static void finish_reads(struct dofi_ep *ep)
{
	struct pollfd pfd = { .fd = msg_part(ep)->watch.fd, .events = POLLIN };
	const int64_t until = dofi_now() + REPLIES_NS;
	int i;

	dofi_cq_drain(ep->cq);
	while (has_reads(ep) && poll(&pfd, 1, SILENCE_MS) == 1 && dofi_now() < until)
		dofi_cq_drain(ep->cq);
	if (!has_reads(ep) || shutdown(pfd.fd, SHUT_RD))
		return;
	for (i = 0; has_reads(ep) && (i < READS_OF_CUT || dofi_now() < until + REPLIES_NS); i++)
		dofi_cq_drain(ep->cq);
}

/* Closes the endpoint of @ep, if any. If @ended is not NULL, ep->lingering has the socket. */
static void endpoint_close(struct dofi_ep *ep, dofi_linger_ended *ended)
{
	struct dofi_progress *p = &ep->obj.ia->progress;
	const struct msg_conn *conn = ep->conn;
	struct dofi_linger *linger;
	struct msg_mail *mail;
	struct fid_ep *fid;
	bool bye, attempt;

	msg_open_cancel(ep);
	await_bye(ep);
	dofi_mutex_lock(&ep->lock);
	bye = bye_pending(ep);
	attempt = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
		  ep->state == DAT_EP_STATE_COMPLETION_PENDING;
	fid = ep->fid;
	mail = msg_part(ep)->mail;
	ep->fid = NULL;
	msg_part(ep)->mail = NULL;
	ep->resume_pending = false;
	dofi_ep_open_queues(ep);
	if (ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		dofi_dto_recall(ep);
	dofi_mutex_unlock(&ep->lock);
	if (!fid)
		return;
	if (bye && !conn->said_bye)
		msg_bye_send(ep, fid);
	if (ep->obj.ia->fabric.quirk->frees_reads_twice)
		finish_reads(ep);
	linger = dofi_linger_begin(p, attempt ? -1 : msg_part(ep)->watch.fd, ended, ep,
				   conn->acked);
	dofi_watch_close(&msg_part(ep)->watch, p);
	endpoint_end(fid, ep->cq, !linger && !ep->obj.ia->fabric.quirk->shutdown_closes);
	ep->lingering = ended ? linger : NULL;
	msg_mail_close(mail);
	dofi_cq_ask(ep->cq, ep->shard);
	dofi_cq_drain(ep->cq);
	dofi_mutex_lock(&ep->cq->lock);
	dofi_cq_stall_end(ep->cq, &ep->stall);
	dofi_mutex_unlock(&ep->cq->lock);
	conn_remove(ep);
	dofi_mutex_lock(&ep->lock);
	ep->shard = NULL;
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	dofi_mutex_unlock(&ep->lock);
}

void msg_ep_init(struct dofi_ep *ep)
{
	msg_part(ep)->watch.fd = -1;
}

void msg_endpoint_close(struct dofi_ep *ep)
{
	if (ep->lingering)
		dofi_linger_leave(ep->lingering);
	ep->lingering = NULL;
	endpoint_close(ep, NULL);
}

/* The peer has taken everything and left, or is lost. */
static void peer_left(void *arg, bool whole)
{
	struct dofi_ep *ep = arg;

	ep->lingering = NULL;
	dofi_mutex_lock(&ep->lock);
	if (!whole)
		ep->end = DAT_CONNECTION_EVENT_BROKEN;
	dofi_ep_todo(ep, DOFI_EP_CLOSE);
	dofi_mutex_unlock(&ep->lock);
}

static void has_room(struct dofi_source *source)
{
	struct dofi_watch *watch = (struct dofi_watch *)source;
	struct dofi_ep *ep = msg_watch_owner(watch);

	dofi_mutex_lock(&ep->lock);
	if (watch->fd >= 0)
		dofi_ep_todo(ep, DOFI_EP_CLOSE);
	dofi_mutex_unlock(&ep->lock);
}

/* Before an endpoint with a known socket closes, the fabric writes its buffered bytes. */
bool msg_endpoint_finish(struct dofi_ep *ep)
{
	struct msg_conn *conn = ep->conn;
	bool bye;

	if (msg_part(ep)->watch.fd < 0)
		return ep->lingering;
	dofi_mutex_lock(&ep->lock);
	bye = bye_pending(ep) && !conn->said_bye;
	dofi_mutex_unlock(&ep->lock);
	if (bye) {
		conn->acked = dofi_linger_is_acked(msg_part(ep)->watch.fd);
		msg_bye_send(ep, ep->fid);
		conn->said_bye = true;
	}
	dofi_cq_ask(ep->cq, ep->shard);
	dofi_cq_drain(ep->cq);
	if (!dofi_watch_has_room(&msg_part(ep)->watch, has_room))
		return true;
	endpoint_close(ep, peer_left);
	return ep->lingering;
}
