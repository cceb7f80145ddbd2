/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What precedes a message to an endpoint of a shared receive queue.
 *
 *	byte 0     magic
 *	byte 1     1: the message follows in this frame; 2: it is the next message
 *	byte 2-3   zero
 *	byte 4-11  length of the message, big-endian
 *	byte 12-19 the data that goes with it (obj/cq_data.h), big-endian
 *
 * A fabric's own shared receive context names the buffer in its completions but not the
 * endpoint that took it (measured on tcp and sockets of 1.17). It takes buffers without
 * regard to watermarks, and gives none back. A frame arrives at its endpoint, which takes a
 * buffer only when it knows that there is a message, and how long it is. The private data of a
 * connection asks the peer to send frames; other peers send none.
 */
#ifndef DOFI_XPORT_MSG_FRAME_H
#define DOFI_XPORT_MSG_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MSG_FRAME_HEADER 20
#define MSG_FRAME_MAX 128		/* header and message; what software fabrics can inject */

struct msg_frame {
	uint64_t length;		/* of the message */
	uint64_t cq_data;		/* the data that goes with it */
	bool whole;			/* the message is in the frame */
};

/* Renders the header of @frame. */
void msg_frame_pack(unsigned char buf[MSG_FRAME_HEADER], const struct msg_frame *frame);

/* Parses @len bytes of a peer. 0, or -EPROTO when they are no frame. */
int msg_frame_unpack(const void *buf, size_t len, struct msg_frame *frame);

#endif
