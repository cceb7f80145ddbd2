/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: endpoints, connection events, and operations. */

#include "xport/msg.h"

#include "base/iov.h"
#include "base/log.h"
#include "fab/quirks.h"
#include "obj/beside.h"
#include "xport/msg_listen.h"
#include "xport/msg_mail.h"
#include "xport/wire.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* An open endpoint, found by its fid when an event names it. */
struct msg_conn {
	const struct fid *fid;
	struct dofi_ep *ep;
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

static int msg_ia_init(struct dofi_ia *ia)
{
	struct msg_ia *mia = calloc(1, sizeof(*mia));

	if (!mia)
		return -ENOMEM;
	dofi_ports_init(&mia->ports, &msg_ports_ops);
	ia->xport_ia = mia;
	choose_ops(ia);
	if (!ia->fabric.scoped_keys)
		ia->max_private_data += DOFI_WIRE_SECRET;
	if (msg_mail_offered(ia))
		ia->max_private_data -= DOFI_WIRE_MAILBOX;
	if (ia->max_private_data > DOFI_WIRE_MAX_DATA)
		ia->max_private_data = DOFI_WIRE_MAX_DATA;
	return 0;
}

static void msg_ia_fini(struct dofi_ia *ia)
{
	free(ia->xport_ia);
	ia->xport_ia = NULL;
}

/* Endpoints */

static int conn_add(struct dofi_ep *ep, struct fid_ep *fid)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;
	struct msg_conn *conn = malloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	*conn = (struct msg_conn){ .fid = &fid->fid, .ep = ep };
	if (!tsearch(conn, &mia->endpoints, conn_compare)) {
		free(conn);
		return -ENOMEM;
	}
	ep->conn = conn;
	return 0;
}

static void conn_remove(struct dofi_ep *ep)
{
	struct msg_ia *mia = ep->obj.ia->xport_ia;

	tdelete(ep->conn, &mia->endpoints, conn_compare);
	free(ep->conn);
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

static int endpoint_make(struct dofi_ep *ep, struct fi_info *info, struct fid_ep **out)
{
	struct dofi_domain *domain = &ep->pz->domain;
	struct fid_ep *fid;
	int ret;

	info->tx_attr->tclass = traffic_class(ep);
	ret = fi_endpoint(domain->fid, info, &fid, NULL);
	if (ret)
		return ret;
	ret = fi_ep_bind(fid, &ep->obj.ia->progress.eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fid, &domain->cq.fid->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(fid);
	if (!ret)
		ret = conn_add(ep, fid);
	if (ret) {
		fi_close(&fid->fid);
		return ret;
	}
	*out = fid;
	return 0;
}

/*
 * Opens the fabric endpoint that @info describes and gives it the receives that wait. The
 * peer is to be told of @own.
 */
static int endpoint_open(struct dofi_ep *ep, struct fi_info *info, struct dofi_mailbox *own)
{
	struct msg_mail *mail;
	struct fid_ep *fid;
	int ret;

	ret = msg_mail_open(ep, &mail, own);
	if (ret)
		return ret;
	ret = endpoint_make(ep, info, &fid);
	if (ret) {
		msg_mail_close(mail);
		return ret;
	}
	pthread_mutex_lock(&ep->lock);
	ep->fid = fid;
	ep->mail = mail;
	dofi_ep_gate(ep);
	dofi_dto_pump(ep);
	pthread_mutex_unlock(&ep->lock);
	return 0;
}

static void endpoint_close(struct dofi_ep *ep)
{
	struct msg_mail *mail;
	struct fid_ep *fid;
	int ret;

	pthread_mutex_lock(&ep->lock);
	fid = ep->fid;
	mail = ep->mail;
	ep->fid = NULL;
	ep->mail = NULL;
	ep->owes = false;
	dofi_ep_gate(ep);
	pthread_mutex_unlock(&ep->lock);
	if (!fid)
		return;
	conn_remove(ep);
	if (!ep->obj.ia->fabric.quirk->shutdown_closes)
		fi_shutdown(fid, 0);
	ret = fi_close(&fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_CM, "closing an endpoint: %s", fi_strerror(-ret));
	msg_mail_close(mail);
	dofi_cq_drain(&ep->pz->domain.cq);
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

	pthread_mutex_lock(&ep->lock);
	ep->secret = secret;
	pthread_mutex_unlock(&ep->lock);
	return secret;
}

static int connect_once(struct dofi_ep *ep)
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
	struct sockaddr_storage peer;
	size_t len = dofi_port_address(&peer, &r->peer, false, port);
	struct fi_info *info = connect_info(ep->obj.ia, &peer, len);
	int ret;

	if (!info)
		return -ENOMEM;
	ret = endpoint_open(ep, info, &msg.mailbox);
	if (!ret)
		ret = fi_connect(ep->fid, info->dest_addr, buf, dofi_wire_pack(buf, &msg));
	fi_freeinfo(info);
	return ret;
}

/* One port did not answer for the qualifier: the next may, once this endpoint is gone. */
static void connect_failed(struct dofi_ep *ep, int err)
{
	if (!dofi_port_next(ep, err))
		return;
	endpoint_close(ep);
	dofi_ep_connect_again(ep);
}

static void msg_connect(struct dofi_ep *ep)
{
	int ret = connect_once(ep);

	if (ret)
		connect_failed(ep, -ret);
}

/* The passive side */

static void msg_accept(struct dofi_ep *ep)
{
	struct dofi_wire msg = {
		.kind = DOFI_WIRE_ACCEPT,
		.secret = secret_make(ep),
		.framed = ep->srq,
		.data = ep->request.data,
		.data_size = ep->request.data_size,
	};
	struct msg_request *request = ep->accepting;
	unsigned char buf[DOFI_WIRE_MAX];
	int ret = endpoint_open(ep, request->info, &msg.mailbox);

	if (!ret)
		ret = fi_accept(ep->fid, buf, dofi_wire_pack(buf, &msg));
	ep->accepting = NULL;
	msg_request_free(request);
	if (ret) {
		dofi_log(DOFI_INFO, DOFI_CM, "ep %p: accept: %s", (void *)ep, fi_strerror(-ret));
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
	}
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

	if (dofi_wire_unpack(data, size, &msg) || msg.kind != DOFI_WIRE_ACCEPT) {
		dofi_log(DOFI_WARN, DOFI_CM, "ep %p: the acceptor is not this provider", (void *)ep);
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
		return;
	}
	pthread_mutex_lock(&ep->lock);
	ep->peer_secret = msg.secret;
	ep->mailbox = msg.mailbox;
	ep->framed = msg.framed;
	pthread_mutex_unlock(&ep->lock);
	dofi_ep_established(ep, msg.data, msg.data_size);
}

static void connected(struct dofi_ep *ep, const void *data, size_t size)
{
	if (dofi_ep_state_now(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		accepted(ep, data, size);
	else
		dofi_ep_established(ep, NULL, 0);
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

/* A refusal and a rejection look alike but for our header in the data. */
static void attempt_failed(struct dofi_ep *ep, const struct fi_eq_err_entry *e)
{
	struct dofi_wire msg;

	if (e->err_data_size && !dofi_wire_unpack(e->err_data, e->err_data_size, &msg) &&
	    msg.kind == DOFI_WIRE_REJECT)
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, msg.data, msg.data_size);
	else
		connect_failed(ep, abs(e->err));
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

/* Operations */

static int submit_write(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const struct fi_rma_iov remote = {
		.addr = dto->remote_addr, .len = dto->length, .key = dofi_ep_remote_key(ep, dto),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = dto->n_iov,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = dofi_dto_context(dto),
	};

	/* the endpoint's default flags do not reach plain fi_write on every fabric */
	return fi_writemsg(ep->fid, &msg, ep->obj.ia->fabric.write_flags);
}

/* With room for a byte, where it does no harm: the status is written when all is over. */
static int receive_nothing(struct dofi_ep *ep, struct dofi_dto *dto)
{
	size_t room = ep->obj.ia->fabric.quirk->needs_room ? sizeof(dto->status) : 0;

	return fi_recv(ep->fid, room ? &dto->status : NULL, room, NULL, 0, dofi_dto_context(dto));
}

/* The memory of @dto, as it is. */
static int send_plain(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_send(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0, context);
	return dto->n_iov ? fi_sendv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context) :
			    fi_send(ep->fid, NULL, 0, NULL, 0, context);
}

static ssize_t msg_send(struct dofi_ep *ep, const void *buf, size_t len, void *desc, void *context)
{
	return fi_send(ep->fid, buf, len, desc, 0, context);
}

/* The frame is the message: injected, as it has no memory of its own, and yet completed. */
static int send_whole(struct dofi_ep *ep, struct dofi_dto *dto, const struct dofi_frame *frame,
		      unsigned char buf[DOFI_FRAME_MAX])
{
	const struct iovec iov = { buf, DOFI_FRAME_HEADER + frame->length };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.context = dofi_dto_context(dto),
	};

	dofi_iov_gather(buf + DOFI_FRAME_HEADER, dto->iov, dto->n_iov, 0, frame->length);
	return fi_sendmsg(ep->fid, &msg, FI_INJECT | FI_COMPLETION);
}

/*
 * The peer receives from an SRQ: it is told of a message of @length bytes, none or all of @dto,
 * and of what goes with it, and finds a buffer.
 */
static __attribute__((noinline)) int send_framed(struct dofi_ep *ep, struct dofi_dto *dto,
						 uint64_t length, uint64_t beside)
{
	const size_t room = ep->obj.ia->limits.inject_size < DOFI_FRAME_MAX ?
				    ep->obj.ia->limits.inject_size : DOFI_FRAME_MAX;
	const struct dofi_frame frame = {
		.length = length, .beside = beside, .whole = length <= room - DOFI_FRAME_HEADER,
	};
	unsigned char buf[DOFI_FRAME_MAX];
	int ret;

	dofi_frame_pack(buf, &frame);
	if (frame.whole)
		return send_whole(ep, dto, &frame, buf);
	if (!dto->announced) {
		ret = fi_inject(ep->fid, buf, DOFI_FRAME_HEADER, 0);
		if (ret)
			return ret;
		dto->announced = true;
	}
	return send_plain(ep, dto);
}

/* A message, and beside it what it is and @value, where that can be carried. */
static __attribute__((noinline)) int send_beside(struct dofi_ep *ep, struct dofi_dto *dto,
						 enum dofi_beside_kind kind, uint32_t value)
{
	const bool written = kind == DOFI_BESIDE_WRITE_IMMED;
	const struct fi_msg msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = written ? 0 : dto->n_iov,
		.context = dofi_dto_context(dto),
		.data = dofi_beside(kind, dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG,
				    written ? (uint32_t)dto->length : 0, value),
	};

	if (ep->framed)
		return send_framed(ep, dto, written ? 0 : dto->length, msg.data);
	return fi_sendmsg(ep->fid, &msg, ep->obj.ia->fabric.cq_data ? FI_REMOTE_CQ_DATA : 0);
}

static inline int submit_send(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (__builtin_expect(dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0))
		return send_beside(ep, dto, DOFI_BESIDE_PLAIN, 0);
	if (__builtin_expect(ep->framed, 0))
		return send_framed(ep, dto, dto->length, 0);
	return send_plain(ep, dto);
}

static int submit_recv(struct dofi_ep *ep, struct dofi_dto *dto)
{
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_recv(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0, context);
	return dto->n_iov ? fi_recvv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, context) :
			    receive_nothing(ep, dto);
}

static int submit_read(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const uint64_t addr = dto->remote_addr, key = dofi_ep_remote_key(ep, dto);
	void *context = dofi_dto_context(dto);

	if (dto->n_iov == 1)
		return fi_read(ep->fid, dto->iov->iov_base, dto->iov->iov_len, *dto->desc, 0, addr,
			       key, context);
	return dto->n_iov ? fi_readv(ep->fid, dto->iov, dto->desc, dto->n_iov, 0, addr, key, context) :
			    fi_read(ep->fid, NULL, 0, NULL, 0, addr, key, context);
}

/* The write, and the message behind it that tells of it; where need be, once it is done. */
static int submit_write_immed(struct dofi_ep *ep, struct dofi_dto *dto)
{
	int ret;

	if (!dto->submitted) {
		ret = submit_write(ep, dto);
		if (ret)
			return ret;
		dto->submitted = true;
		dto->parts = 1;
	}
	if (dto->parts && ep->obj.ia->fabric.quirk->goes_on)
		return -FI_EAGAIN;
	return send_beside(ep, dto, DOFI_BESIDE_WRITE_IMMED, dto->immed);
}

static int submit_more(struct dofi_ep *ep, struct dofi_dto *dto)
{
	switch (dto->kind) {
	case DOFI_DTO_SEND_INVALIDATE:
		return send_beside(ep, dto, DOFI_BESIDE_INVALIDATE, dto->immed);
	case DOFI_DTO_SEND_IMMED:
		return send_beside(ep, dto, DOFI_BESIDE_IMMED, dto->immed);
	case DOFI_DTO_WRITE_IMMED:
		return submit_write_immed(ep, dto);
	default:
		return msg_mail_submit(ep, dto);
	}
}

static int msg_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (__builtin_expect(dto->kind == DOFI_DTO_SEND, 1))
		return submit_send(ep, dto);
	switch (dto->kind) {
	case DOFI_DTO_RECV:
	case DOFI_DTO_FRAME:
		return submit_recv(ep, dto);
	case DOFI_DTO_WRITE:
		return submit_write(ep, dto);
	case DOFI_DTO_READ:
		return submit_read(ep, dto);
	default:
		return submit_more(ep, dto);
	}
}

/* Completions */

/* What arrived for a receive. The peer may be anybody: what makes no sense is an error. */
static void received_with_data(const struct fi_cq_data_entry *entry, struct dofi_sink *sink)
{
	struct dofi_arrived arrived;

	dofi_arrived_read(&arrived, entry->data, entry->len);
	dofi_dto_complete_as(entry, &arrived, sink);
}

static __attribute__((noinline)) void completed_with_data(const struct fi_cq_data_entry *entry,
							  int err, struct dofi_sink *sink)
{
	if (!err && entry->flags & FI_REMOTE_WRITE)
		msg_mail_rung(entry->data, sink);
	else if (!err && entry->flags & FI_RECV)
		received_with_data(entry, sink);
	else	/* sockets says it of our own sends, too */
		dofi_dto_complete(entry, err, sink);
}

static void msg_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (__builtin_expect(entry->flags & FI_REMOTE_CQ_DATA, 0))
		completed_with_data(entry, err, sink);
	else
		dofi_dto_complete(entry, err, sink);
}

/* Where the mark may be lost every message has data, and only that tells. */
static void marked_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (!err && entry->flags & FI_RECV && entry->data)
		received_with_data(entry, sink);
	else if (!err && entry->flags & FI_RECV)
		dofi_dto_complete(entry, err, sink);
	else
		msg_completed(entry, err, sink);
}

static int marked_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	/* frames have a place of their own for it */
	if (dto->kind == DOFI_DTO_SEND && !ep->framed)
		return send_beside(ep, dto, DOFI_BESIDE_PLAIN, 0);
	return msg_submit(ep, dto);
}

static const struct dofi_progress_ops marked_progress_ops = {
	.completed = marked_completed,
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

#define OPS                                                                               \
	.name = "msg", .header_size = DOFI_WIRE_HEADER, .ia_init = msg_ia_init,           \
	.ia_fini = msg_ia_fini, .listen = msg_listen, .unlisten = msg_unlisten,           \
	.connect = msg_connect, .accept = msg_accept, .reject = msg_reject,               \
	.close = msg_close, .resume = msg_mail_resume

const struct dofi_xport dofi_msg_xport = {
	OPS, .progress_ops = &msg_progress_ops, .submit = msg_submit, .send = msg_send,
};

static const struct dofi_xport marked_xport = {
	OPS, .progress_ops = &marked_progress_ops, .submit = marked_submit,
};

/* Before there is anything that could complete. */
static void choose_ops(struct dofi_ia *ia)
{
	if (!ia->fabric.cq_data || !ia->fabric.quirk->loses_mark)
		return;
	ia->xport = &marked_xport;
	ia->progress.ops = marked_xport.progress_ops;
}
