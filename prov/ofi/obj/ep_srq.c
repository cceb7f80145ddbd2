/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ receives: a frame, a buffer for its message, the message. */

#include "obj/ep_srq.h"

#include "base/log.h"
#include "obj/ep.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <string.h>

/* Frames */

void dofi_inbox_listen(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;
	struct dofi_dto *dto;

	/* the message that the last frame told of comes before the next frame */
	if (!ep->rq.open || in->arrived || ep->rq.next != ep->rq.tail)
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
		dto->desc[0] = fi_mr_desc(in->mr);
		in->frames.tail++;
	}
	dofi_queue_pump(ep, &in->frames);
}

/* Messages */

/* What @dto was posted with may have been freed since, or be too small for this message. */
static int buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto, uint64_t length)
{
	DAT_RETURN ret;
	uint8_t i;

	for (i = 0; i < dto->n_iov; i++) {
		const DAT_LMR_CONTEXT context = (DAT_LMR_CONTEXT)(uintptr_t)dto->desc[i];
		struct dofi_lmr *lmr = dofi_lmr_at(context);

		if (!lmr || !dofi_lmr_find(context, (uintptr_t)dto->iov[i].iov_base - lmr->origin,
					   dto->iov[i].iov_len, ep->pz,
					   DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &ret))
			return FI_EACCES;
		dto->desc[i] = lmr->desc;
	}
	return length > dto->length ? FI_ETRUNC : 0;
}

static void copy_in(const struct dofi_dto *dto, const unsigned char *from)
{
	uint8_t i;

	for (i = 0; i < dto->n_iov; i++) {
		memcpy(dto->iov[i].iov_base, from, dto->iov[i].iov_len);
		from += dto->iov[i].iov_len;
	}
}

/* The message goes into @dto, the newest of the EP's receives. */
static void receive(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const struct dofi_frame *frame = &ep->inbox.frame;
	int err = buffer_check(ep, dto, frame->length);

	if (!err) {
		dofi_dto_trim(dto, frame->length);
		if (!frame->whole) {
			dofi_queue_pump(ep, &ep->rq);
			return;
		}
		copy_in(dto, ep->inbox.buf + DOFI_FRAME_HEADER);
		err = dofi_dto_received(ep, dto);
	}
	ep->rq.next++;
	dofi_dto_finish(ep, dto, err);
}

/* Gives the message that a frame told of a buffer, and receives it. */
static void feed(struct dofi_ep *ep, struct dofi_sink *sink)
{
	struct dofi_inbox *in = &ep->inbox;
	struct dofi_dto *dto;

	/* a watermark may have lowered the depth; there is room, or no frame would have come */
	ep->rq.depth = ep->attr.max_recv_dtos;
	dto = dofi_queue_reserve(&ep->rq);
	if (!dofi_srq_take(ep->srq, &in->user, dto))
		return;
	in->arrived = false;
	dto->flags = DOFI_DTO_SHARED;
	dto->beside = in->frame.beside;
	ep->rq.tail++;
	dofi_dto_watermarks(ep);
	/* a hard one ends the connection, and with that flushes the buffer */
	if (ep->rq.open) {
		receive(ep, dto);
		dofi_dto_retire(ep, sink);
		dofi_inbox_listen(ep);
	}
}

/* dofi_srq_user.feed: any thread. */
static void fed(struct dofi_srq_user *user)
{
	struct dofi_ep *ep = (struct dofi_ep *)((char *)user - offsetof(struct dofi_ep, inbox.user));

	pthread_mutex_lock(&ep->lock);
	if (ep->inbox.arrived && ep->rq.open)
		feed(ep, NULL);
	else if (ep->inbox.arrived)
		dofi_srq_leave(ep->srq, user);
	pthread_mutex_unlock(&ep->lock);
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
	feed(ep, sink);
}

/* Beginning and end */

void dofi_inbox_clear(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;

	dofi_srq_leave(ep->srq, &in->user);
	in->arrived = false;
	in->frames.head = in->frames.next = in->frames.tail;
}

void dofi_inbox_ctor(struct dofi_inbox *in)
{
	in->user.feed = fed;
}

int dofi_inbox_open(struct dofi_ep *ep)
{
	struct dofi_inbox *in = &ep->inbox;
	const struct dofi_queue nothing = { .slots = NULL };
	struct dofi_mr_request memory = { .len = DOFI_FRAME_MAX };
	uint32_t key;
	int ret = -ENOMEM;

	in->buf = dofi_block_get(DOFI_FRAME_MAX);
	if (!in->buf)
		return ret;
	ret = dofi_queue_renew(&in->frames, &nothing, ep, 1, 1);
	if (ret)
		goto put_buf;
	in->frames.open = true;
	ep->soft_watermark = ep->attr.srq_soft_hw;
	memory.addr = in->buf;
	ret = dofi_mr_open(&ep->pz->domain, &memory, &in->mr, &key);
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

	fi_close(&in->mr->fid);
	dofi_queue_fini(&in->frames);
	dofi_block_put(in->buf, DOFI_FRAME_MAX);
}
