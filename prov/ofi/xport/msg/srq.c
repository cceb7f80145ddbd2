/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ receives: a preamble, a buffer for its message, the message. */

#include "xport/msg/msg.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/segments.h"

#include <endian.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

/* Preambles as bytes */

#define MAGIC 0xdb
enum { KIND_WHOLE = 1, KIND_NEXT };
enum { LENGTH_AT = 4, CQ_DATA_AT = 12 };

void msg_preamble_pack(unsigned char buf[MSG_PREAMBLE_SIZE], const struct msg_preamble *preamble)
{
	const uint64_t length = htobe64(preamble->length), cq_data = htobe64(preamble->cq_data);

	buf[0] = MAGIC;
	buf[1] = preamble->whole ? KIND_WHOLE : KIND_NEXT;
	buf[2] = buf[3] = 0;
	memcpy(buf + LENGTH_AT, &length, sizeof(length));
	memcpy(buf + CQ_DATA_AT, &cq_data, sizeof(cq_data));
}

int msg_preamble_unpack(const void *buf, size_t len, struct msg_preamble *preamble)
{
	const unsigned char *p = buf;
	uint64_t length, cq_data;

	if (len < MSG_PREAMBLE_SIZE || len > MSG_PREAMBLE_MAX || p[0] != MAGIC || p[2] || p[3])
		return -EPROTO;
	memcpy(&length, p + LENGTH_AT, sizeof(length));
	memcpy(&cq_data, p + CQ_DATA_AT, sizeof(cq_data));
	length = be64toh(length);
	len -= MSG_PREAMBLE_SIZE;
	/* a message of no bytes would have come with the preamble */
	if (p[1] == KIND_WHOLE ? length != len : p[1] != KIND_NEXT || len || !length)
		return -EPROTO;
	*preamble = (struct msg_preamble){
		.length = length, .cq_data = be64toh(cq_data), .whole = p[1] == KIND_WHOLE,
	};
	return 0;
}

/* Receiving preambles */

/* Of an endpoint with an SRQ; EP lock. */
struct msg_preamble_rx {
	struct dofi_queue queue;	/* one receive, for the next preamble */
	struct dofi_mr mr;		/* of buf */
	struct msg_preamble last;	/* the preamble that arrived last */
	bool arrived;			/* the message of `last` has no buffer yet */
	unsigned char buf[MSG_PREAMBLE_MAX]; /* receives the next preamble */
};

void msg_srq_listen(struct dofi_ep *ep)
{
	struct msg_preamble_rx *in = msg_part(ep)->preamble_rx;
	struct dofi_dto *dto;

	dofi_mutex_assert_held(&ep->lock);
	/* the message of the last preamble comes before the next one */
	if (!ep->rq.open || in->arrived || dofi_queue_waits(&ep->rq))
		return;
	/* the EP must be able to take the next message as well */
	if (dofi_queue_used(&ep->rq) >= (uint32_t)ep->attr.max_recv_dtos)
		return;
	dto = dofi_queue_reserve(&in->queue);
	if (dto) {
		dto->kind = DOFI_DTO_PREAMBLE;
		dto->flags = 0;
		dto->n_iov = 1;
		dto->iov[0] = (struct iovec){ in->buf, MSG_PREAMBLE_MAX };
		dto->desc[0] = in->mr.desc;
		dofi_queue_push(&in->queue);
	}
	dofi_dto_submit_queue(ep, &in->queue);
}

/* Messages */

/*
 * Returns whether the EP receives the message of @preamble. The fabric may report the peer's end
 * before the peer's last preamble; after that it reads no further message.
 */
static bool is_received(const struct dofi_ep *ep, const struct msg_preamble *preamble)
	DOFI_NEEDS(ep->lock)
{
	return ep->rq.open || (ep->lost && preamble->whole);
}

/* Receives an arrived message in a buffer, for which the EP has space; @sink may be NULL. */
static void feed(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	struct msg_preamble_rx *in = msg_part(ep)->preamble_rx;
	const struct msg_preamble *preamble = &in->last;
	struct dofi_dto *dto = dofi_srq_buffer(ep);
	int err;

	if (!dto)
		return;
	in->arrived = false;
	dto->cq_data = preamble->cq_data;
	/* passing the hard watermark ends the connection, which flushes the buffer */
	if (!is_received(ep, preamble))
		return;
	err = dofi_srq_buffer_check(ep, dto);
	if (!err && preamble->length > dto->length)
		err = FI_ETRUNC;
	if (!err)
		dofi_dto_trim(dto, preamble->length);
	if (!err && !preamble->whole) {
		dofi_dto_submit_queue(ep, &ep->rq);
	} else {
		if (!err) {
			dofi_iov_scatter(dto->iov, dto->n_iov, 0, in->buf + MSG_PREAMBLE_SIZE,
					 preamble->length);
			err = dofi_dto_received(ep, dto);
		}
		dofi_queue_advance(&ep->rq);
		dofi_dto_finish(ep, dto, err);
	}
	dofi_dto_retire(ep, sink);
	msg_srq_listen(ep);
}

void msg_srq_fed(struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	feed(ep, NULL);
}

void msg_srq_arrived(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		      struct dofi_sink *sink)
{
	struct msg_preamble_rx *in = msg_part(ep)->preamble_rx;

	dofi_mutex_assert_held(&ep->lock);
	dofi_dto_finish(ep, dto, err);
	dofi_queue_retire(&in->queue);
	if (err || !(ep->rq.open || ep->lost))
		return;
	if (msg_preamble_unpack(in->buf, len, &in->last)) {
		dofi_ep_log(ep, DOFI_WARN, DOFI_EP, "an invalid preamble arrived");
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	if (is_received(ep, &in->last)) {
		in->arrived = true;
		feed(ep, sink);
	}
}

bool msg_srq_waits(const struct dofi_ep *ep)
{
	dofi_mutex_assert_held(&ep->lock);
	return msg_part(ep)->preamble_rx->arrived;
}

/* Beginning and end */

void msg_srq_clear(struct dofi_ep *ep)
{
	struct msg_preamble_rx *in = msg_part(ep)->preamble_rx;

	if (!in)
		return;
	in->arrived = false;
	dofi_queue_clear(&in->queue);
}

int msg_srq_open(struct dofi_ep *ep)
{
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };
	struct msg_preamble_rx *in = dofi_block_get(sizeof(*in));
	struct dofi_mr_request memory = { .len = MSG_PREAMBLE_MAX };
	int ret;

	if (!in)
		return -ENOMEM;
	memory.addr = in->buf;
	in->arrived = false;
	ret = dofi_queue_renew(&in->queue, &nothing, ep, 1, 1);
	if (ret)
		goto put_in;
	in->queue.open = true;
	ret = dofi_mr_open(&ep->pz->domain, &memory, &in->mr);
	if (ret)
		goto fini_queue;
	msg_part(ep)->preamble_rx = in;
	return 0;

fini_queue:
	dofi_queue_fini(&in->queue);
put_in:
	dofi_block_put(in, sizeof(*in));
	return ret;
}

void msg_srq_close(struct dofi_ep *ep)
{
	struct msg_preamble_rx *in = msg_part(ep)->preamble_rx;

	if (!in)
		return;
	dofi_mr_close(&in->mr);
	dofi_queue_fini(&in->queue);
	dofi_block_put(in, sizeof(*in));
}
