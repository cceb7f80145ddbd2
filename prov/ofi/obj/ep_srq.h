/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ receives: a frame, a buffer for its message, the message. */
#ifndef DOFI_OBJ_EP_SRQ_H
#define DOFI_OBJ_EP_SRQ_H

#include "obj/frame.h"
#include "obj/srq.h"

struct fid_mr;

/* Of an endpoint with an SRQ; on others it is not used. EP lock, but for what user says. */
struct dofi_inbox {
	struct dofi_srq_user user;
	struct dofi_queue frames;	/* one receive, for the next frame */
	unsigned char *buf;		/* its memory, */
	struct fid_mr *mr;		/* registered */
	struct dofi_frame frame;	/* what came, */
	bool arrived;			/* while its message has no buffer */
};

/*
 * Once in an EP's life of memory: who was about to feed the one that had it before may still do
 * so, and find nothing that waits.
 */
void dofi_inbox_ctor(struct dofi_inbox *in);

/* 0 or a negative errno; @ep has its SRQ and zone. Not yet published. */
int dofi_inbox_open(struct dofi_ep *ep);
void dofi_inbox_close(struct dofi_ep *ep);

/* Posts a receive for the next frame, if it is time for that. EP lock held, as for all below. */
void dofi_inbox_listen(struct dofi_ep *ep);
/* The receive in @dto ended, with a positive @err if not well. */
void dofi_inbox_frame(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		      struct dofi_sink *sink);
/* The connection has ended, and the fabric has nothing of it any more. */
void dofi_inbox_clear(struct dofi_ep *ep);

#endif
