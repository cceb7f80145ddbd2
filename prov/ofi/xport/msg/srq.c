/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ receives by frames: a frame, a buffer for its message, the message. */

#include "xport/msg/msg.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/segments.h"

#include <endian.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

/* Frames as bytes */

#define MAGIC 0xdb
enum { KIND_WHOLE = 1, KIND_NEXT };
enum { LENGTH_AT = 4, CQ_DATA_AT = 12 };

void msg_frame_pack(unsigned char buf[MSG_FRAME_HEADER], const struct msg_frame *frame)
{
	const uint64_t length = htobe64(frame->length), cq_data = htobe64(frame->cq_data);

	buf[0] = MAGIC;
	buf[1] = frame->whole ? KIND_WHOLE : KIND_NEXT;
	buf[2] = buf[3] = 0;
	memcpy(buf + LENGTH_AT, &length, sizeof(length));
	memcpy(buf + CQ_DATA_AT, &cq_data, sizeof(cq_data));
}

int msg_frame_unpack(const void *buf, size_t len, struct msg_frame *frame)
{
	const unsigned char *p = buf;
	uint64_t length, cq_data;

	if (len < MSG_FRAME_HEADER || len > MSG_FRAME_MAX || p[0] != MAGIC || p[2] || p[3])
		return -EPROTO;
	memcpy(&length, p + LENGTH_AT, sizeof(length));
	memcpy(&cq_data, p + CQ_DATA_AT, sizeof(cq_data));
	length = be64toh(length);
	len -= MSG_FRAME_HEADER;
	/* a message of no bytes would have fit into the frame */
	if (p[1] == KIND_WHOLE ? length != len : p[1] != KIND_NEXT || len || !length)
		return -EPROTO;
	*frame = (struct msg_frame){
		.length = length, .cq_data = be64toh(cq_data), .whole = p[1] == KIND_WHOLE,
	};
	return 0;
}

/* Receiving frames */

/* Of an endpoint with an SRQ; EP lock. */
struct msg_frame_rx {
	struct dofi_queue frames;	/* one receive, for the next frame */
	struct dofi_mr mr;		/* of buf */
	struct msg_frame frame;		/* the frame that arrived last */
	bool arrived;			/* the message of frame has no buffer yet */
	unsigned char buf[MSG_FRAME_MAX]; /* receives the next frame */
};

void msg_srq_listen(struct dofi_ep *ep)
{
	struct msg_frame_rx *in = msg_part(ep)->inbox;
	struct dofi_dto *dto;

	dofi_ep_assert_locked(ep);
	/* the message of the last frame comes before the next frame */
	if (!ep->rq.open || in->arrived || dofi_queue_waits(&ep->rq))
		return;
	/* the EP must be able to take the next message as well */
	if (dofi_queue_used(&ep->rq) >= (uint32_t)ep->attr.max_recv_dtos)
		return;
	dto = dofi_queue_reserve(&in->frames);
	if (dto) {
		dto->kind = DOFI_DTO_FRAME;
		dto->flags = 0;
		dto->n_iov = 1;
		dto->iov[0] = (struct iovec){ in->buf, MSG_FRAME_MAX };
		dto->desc[0] = in->mr.desc;
		dofi_queue_push(&in->frames);
	}
	dofi_dto_submit_queue(ep, &in->frames);
}

/* Messages */

/*
 * Returns whether the EP receives the message of @frame. The fabric may report the peer's end
 * before the peer's last frame; after that frame it reads no further message.
 */
static bool is_received(const struct dofi_ep *ep, const struct msg_frame *frame)
	DOFI_NEEDS(ep->lock)
{
	return ep->rq.open || (ep->lost && frame->whole);
}

/* Receives an arrived message in a buffer, for which the EP has space; @sink may be NULL. */
static void feed(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	struct msg_frame_rx *in = msg_part(ep)->inbox;
	const struct msg_frame *frame = &in->frame;
	struct dofi_dto *dto = dofi_srq_buffer(ep);
	int err;

	if (!dto)
		return;
	in->arrived = false;
	dto->cq_data = frame->cq_data;
	/* passing the hard watermark ends the connection, which flushes the buffer */
	if (!is_received(ep, frame))
		return;
	err = dofi_srq_buffer_check(ep, dto);
	if (!err && frame->length > dto->length)
		err = FI_ETRUNC;
	if (!err)
		dofi_dto_trim(dto, frame->length);
	if (!err && !frame->whole) {
		dofi_dto_submit_queue(ep, &ep->rq);
	} else {
		if (!err) {
			dofi_iov_scatter(dto->iov, dto->n_iov, 0, in->buf + MSG_FRAME_HEADER,
					 frame->length);
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
	dofi_ep_assert_locked(ep);
	feed(ep, NULL);
}

void msg_srq_arrived(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		      struct dofi_sink *sink)
{
	struct msg_frame_rx *in = msg_part(ep)->inbox;

	dofi_ep_assert_locked(ep);
	dofi_dto_finish(ep, dto, err);
	dofi_queue_retire(&in->frames);
	if (err || !(ep->rq.open || ep->lost))
		return;
	if (msg_frame_unpack(in->buf, len, &in->frame)) {
		dofi_log(DOFI_WARN, DOFI_EP, "ep %p: the peer sent an invalid frame", (void *)ep);
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	if (is_received(ep, &in->frame)) {
		in->arrived = true;
		feed(ep, sink);
	}
}

bool msg_srq_waits(const struct dofi_ep *ep)
{
	dofi_ep_assert_locked(ep);
	return msg_part(ep)->inbox->arrived;
}

/* Beginning and end */

void msg_srq_clear(struct dofi_ep *ep)
{
	struct msg_frame_rx *in = msg_part(ep)->inbox;

	if (!in)
		return;
	in->arrived = false;
	dofi_queue_clear(&in->frames);
}

int msg_srq_open(struct dofi_ep *ep)
{
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };
	struct msg_frame_rx *in = dofi_block_get(sizeof(*in));
	const struct dofi_mr_request memory = { .addr = in ? in->buf : NULL, .len = MSG_FRAME_MAX };
	int ret;

	if (!in)
		return -ENOMEM;
	in->arrived = false;
	ret = dofi_queue_renew(&in->frames, &nothing, ep, 1, 1);
	if (ret)
		goto put_inbox;
	in->frames.open = true;
	ret = dofi_mr_open(&ep->pz->domain, &memory, &in->mr);
	if (ret)
		goto fini_frames;
	msg_part(ep)->inbox = in;
	return 0;

fini_frames:
	dofi_queue_fini(&in->frames);
put_inbox:
	dofi_block_put(in, sizeof(*in));
	return ret;
}

void msg_srq_close(struct dofi_ep *ep)
{
	struct msg_frame_rx *in = msg_part(ep)->inbox;

	if (!in)
		return;
	dofi_mr_close(&in->mr);
	dofi_queue_fini(&in->frames);
	dofi_block_put(in, sizeof(*in));
}
