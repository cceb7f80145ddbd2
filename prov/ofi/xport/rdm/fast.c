/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport: the fast path of messages that fit a frame, in the order of a
 * message: it is sent, a receive is posted for it, and it arrives. Each step may continue in the
 * slow path: obj/ep/ep_post.c and send.c, recv.c, xport.c.
 */

#include "xport/rdm/send.h"

#include "obj/ep/ep_dto.h"
#include "xport/rdm/transmit.h"

#include <rdma/fi_errno.h>
#include <string.h>

/* Sending; called with the EP lock held. */

static __attribute__((noinline)) ssize_t send_frame(struct rdm_conn *conn, const void *buf,
						     size_t len) DOFI_NEEDS(conn->ep->lock)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct rdm_frame f;
	int ret;

	if (conn->blocking)
		return -FI_EAGAIN;
	rdm_frame_begin(&f, RDM_FRAME_SEND);
	ret = rdm_transmit(conn, &f, &iov, 1, 0, len);
	return ret ? ret : DOFI_DONE;
}

ssize_t rdm_fast_send(struct fid_ep *to, const void *buf, size_t len, void *desc, uint64_t unused,
		      void *context)
{
	struct rdm_conn *conn = rdm_conn_of(dofi_fast_ep(to));
	struct dofi_outbox *out = conn->out;
	unsigned char *frame;
	int ret;

	(void)desc, (void)unused, (void)context;
	dofi_mutex_assert_held(&conn->ep->lock);
	if (!conn->credits || RDM_FRAME_HEADER + len > conn->inject)
		return -FI_EAGAIN;
	if (!out)
		return send_frame(conn, buf, len);
	dofi_outbox_lock(out);
	ret = dofi_outbox_reserve(out, RDM_FRAME_HEADER + len, &frame);
	if (!ret) {
		rdm_frame_pack_send(frame, conn->peer_id, (uint16_t)conn->credits_owed,
				    ++conn->sent);
		memcpy(frame + RDM_FRAME_HEADER, buf, len);
		dofi_outbox_send(out);
	}
	dofi_outbox_unlock(out);
	/* the slow path reserves again, and reports a full or broken ring */
	if (ret)
		return -FI_EAGAIN;
	conn->credits--;
	conn->credits_owed = 0;
	dofi_outbox_notify(out, &conn->rpz->ria->bell);
	return DOFI_DONE;
}

/* A receive stays in its slot until a message, or a datagram, is matched with it. */
ssize_t rdm_fast_recv(struct fid_ep *to, void *buf, size_t len, void *desc, uint64_t unused,
		      void *context)
{
	(void)to, (void)buf, (void)len, (void)desc, (void)unused, (void)context;
	return 0;
}

/* Arrival */

/* Whether @record is the next message of @conn, plain and short enough for the oldest receive. */
static bool completes_oldest(struct rdm_conn *conn, const struct dofi_ring_record *record,
			     uint16_t *credits, const struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_ep *ep = conn->ep;
	const struct dofi_queue *q = &ep->rq;
	const struct dofi_dto *dto = dofi_queue_oldest(q);

	/* the slow path also submits sends that waited for credits, and reports the peer's end */
	return ep->fast.recv && ep->recv_evd == sink->evd &&
	       !dofi_evd_pending(sink->evd) &&
	       dofi_queue_has_flight(q) && conn->matched == q->head && dofi_dto_is_plain(dto) &&
	       conn->credits && !conn->refused && !conn->left &&
	       record->len - RDM_FRAME_HEADER <= dto->length &&
	       rdm_frame_is_send(record->data,
				 atomic_load_explicit(&conn->id, memory_order_relaxed),
				 conn->seen + 1, credits) &&
	       *credits <= conn->max_credits - conn->credits;
}

/* Returns false without side effects if the message takes the slow path. */
static bool take(struct rdm_conn *conn, struct dofi_ring_in *in,
		 const struct dofi_ring_record *record, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_ep *ep = conn->ep;
	struct dofi_dto *dto = dofi_queue_oldest(&ep->rq);
	const size_t len = record->len - RDM_FRAME_HEADER;
	uint16_t credits;

	if (__builtin_expect(!completes_oldest(conn, record, &credits, sink), 0))
		return false;
	memcpy(dto->memory, record->data + RDM_FRAME_HEADER, len);
	dofi_ring_consume(in, record);
	conn->seen++;
	conn->matched++;
	conn->credits += credits;
	conn->credits_owed++;
	dofi_queue_retire(&ep->rq);
	dto->at_fabric = false;
	dofi_tally_add(&ep->receipts[DOFI_DTO_RECV], len);
	sink->event->event_number = DAT_DTO_COMPLETION_EVENT;
	sink->event->evd_handle = sink->evd;
	dofi_dto_event(&sink->event->event_data.dto_completion_event_data, ep, dto, DOFI_DTO_RECV,
		       DAT_DTO_SUCCESS, len);
	sink->evd = NULL;
	rdm_give_credits(conn);
	return true;
}

/* Takes the next record: a short message for the oldest receive of its EP, or a datagram. */
static bool rings_poll(void *owner, struct dofi_inbox *inbox, struct dofi_sink *sink)
{
	const struct rdm_pz *rpz = owner;
	struct dofi_ring_record record;
	struct rdm_conn *conn;
	bool taken;

	if (!dofi_ring_peek(&inbox->in, &record))
		return false;
	/* the shortest datagrams are shorter than a frame; an empty record has a line as well */
	if (record.data[0] < RDM_ID_FIRST)
		return record.len && rpz->datagrams &&
		       rpz->datagrams->poll(rpz->datagrams_owner, inbox, sink);
	if (record.len < RDM_FRAME_HEADER)
		return false;
	conn = rdm_conn_find(rpz, rdm_frame_conn(record.data));
	if (!conn || !dofi_mutex_try(&conn->ep->lock))
		return false;
	taken = take(conn, &inbox->in, &record, sink);
	dofi_mutex_unlock(&conn->ep->lock);
	return taken;
}

const struct dofi_rings_user rdm_rings_user = { .arrived = rdm_rings_arrived, .poll = rings_poll };

void rdm_fast(struct dofi_ep *ep, struct dofi_fast *fast)
{
	fast->send = rdm_fast_send;
	fast->recv = rdm_fast_recv;
	fast->to = dofi_fast_to(ep);
}
