/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an endpoint of an SRQ receives where the fabric matches messages to receives: a frame, a
 * buffer for its message, the message. Where the transport does that (dofi_xport.matches), there
 * is none of this, and the functions below do nothing.
 */
#ifndef DOFI_OBJ_EP_INBOX_H
#define DOFI_OBJ_EP_INBOX_H

#include "fab/domain.h"
#include "obj/ep_queue.h"
#include "obj/frame.h"

/* Of an endpoint with an SRQ; on others it is not used. EP lock. */
struct dofi_inbox {
	struct dofi_queue frames;	/* one receive, for the next frame */
	unsigned char *buf;		/* its memory, */
	struct dofi_mr mr;		/* registered */
	struct dofi_frame frame;	/* what came, */
	bool arrived;			/* while its message has no buffer */
};

/* 0 or a negative errno; @ep has its SRQ and zone. Not yet published. */
int dofi_inbox_open(struct dofi_ep *ep);
void dofi_inbox_close(struct dofi_ep *ep);

/* Posts a receive for the next frame, if it is time for that. EP lock held, as for all below. */
void dofi_inbox_listen(struct dofi_ep *ep);
/* The receive in @dto ended, with a positive @err if not well. */
void dofi_inbox_frame(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		      struct dofi_sink *sink);
/* Takes a buffer for the message that has come, and receives it; @sink may be NULL. */
void dofi_inbox_feed(struct dofi_ep *ep, struct dofi_sink *sink);
/* The connection has ended, and the fabric has nothing of it any more. */
void dofi_inbox_clear(struct dofi_ep *ep);

#endif
