/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ receives by frames: a frame, a buffer for its message, the message. */

#include "obj/ep_inbox.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep.h"

#include <errno.h>
#include <rdma/fi_errno.h>

/* Whatever transport it comes to be connected by. */
static bool has_inbox(const struct dofi_ep *ep)
{
	return !ep->obj.ia->xport->matches;
}

/* Frames */

void dofi_inbox_listen(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;
	struct dofi_dto *dto;

	/* the message that the last frame told of comes before the next frame */
	if (ep->xport->matches || !ep->rq.open || in->arrived || ep->rq.next != ep->rq.tail)
		return;
	/* there is to be a place for the next message, too */
	if (dofi_queue_used(&ep->rq) >= (uint32_t)ep->attr.max_recv_dtos)
		return;
	dto = dofi_queue_reserve(&in->frames);
	if (dto) {
		dto->kind = DOFI_DTO_FRAME;
		dto->flags = 0;
		dto->n_iov = 1;
		dto->iov[0] = (struct iovec){ in->buf, DOFI_FRAME_MAX };
		dto->desc[0] = in->mr.desc;
		in->frames.tail++;
	}
	dofi_queue_pump(ep, &in->frames);
}

/* Messages */

/* The message goes into @dto, the newest of the EP's receives. */
static void receive(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const struct dofi_frame *frame = &ep->inbox.frame;
	int err = dofi_srq_buffer_check(ep, dto);

	if (!err && frame->length > dto->length)
		err = FI_ETRUNC;
	if (!err) {
		dofi_dto_trim(dto, frame->length);
		if (!frame->whole) {
			dofi_queue_pump(ep, &ep->rq);
			return;
		}
		dofi_iov_scatter(dto->iov, dto->n_iov, 0, ep->inbox.buf + DOFI_FRAME_HEADER,
				 frame->length);
		err = dofi_dto_received(ep, dto);
	}
	ep->rq.next++;
	dofi_dto_finish(ep, dto, err);
}

void dofi_inbox_feed(struct dofi_ep *ep, struct dofi_sink *sink)
{
	struct dofi_inbox *in = &ep->inbox;
	/* the EP has room for it, or no frame would have come */
	struct dofi_dto *dto = dofi_srq_buffer(ep);

	if (!dto)
		return;
	in->arrived = false;
	dto->beside = in->frame.beside;
	/* a hard one ends the connection, and with that flushes the buffer */
	if (ep->rq.open) {
		receive(ep, dto);
		dofi_dto_retire(ep, sink);
		dofi_inbox_listen(ep);
	}
}

void dofi_inbox_frame(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		      struct dofi_sink *sink)
{
	struct dofi_inbox *in = &ep->inbox;

	dofi_dto_finish(ep, dto, err);
	in->frames.head++;
	if (err || !ep->rq.open)
		return;
	if (dofi_frame_unpack(in->buf, len, &in->frame)) {
		dofi_log(DOFI_WARN, DOFI_EP, "ep %p: the peer sent what is no frame", (void *)ep);
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	in->arrived = true;
	dofi_inbox_feed(ep, sink);
}

/* Beginning and end */

void dofi_inbox_clear(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;

	in->arrived = false;
	in->frames.head = in->frames.next = in->frames.tail;
}

int dofi_inbox_open(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };
	struct dofi_mr_request memory = { .len = DOFI_FRAME_MAX };
	int ret = -ENOMEM;

	if (!has_inbox(ep))
		return 0;
	in->buf = dofi_block_get(DOFI_FRAME_MAX);
	if (!in->buf)
		return ret;
	ret = dofi_queue_renew(&in->frames, &nothing, ep, 1, 1);
	if (ret)
		goto put_buf;
	in->frames.open = true;
	memory.addr = in->buf;
	ret = dofi_mr_open(&ep->pz->domain, &memory, &in->mr);
	if (ret)
		goto fini_frames;
	return 0;

fini_frames:
	dofi_queue_fini(&in->frames);
put_buf:
	dofi_block_put(in->buf, DOFI_FRAME_MAX);
	return ret;
}

void dofi_inbox_close(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;

	if (!has_inbox(ep))
		return;
	dofi_mr_close(&in->mr);
	dofi_queue_fini(&in->frames);
	dofi_block_put(in->buf, DOFI_FRAME_MAX);
}
