/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What precedes a message to an endpoint of a shared receive queue. Pure functions. */

#include "xport/msg/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define MAGIC 0xdb
#define KIND_WHOLE 1
#define KIND_NEXT 2

#define LENGTH_AT 4
#define CQ_DATA_AT 12

static void put(unsigned char *to, uint64_t v)
{
	v = htobe64(v);
	memcpy(to, &v, sizeof(v));
}

static uint64_t get(const unsigned char *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return be64toh(v);
}

void msg_frame_pack(unsigned char buf[MSG_FRAME_HEADER], const struct msg_frame *frame)
{
	buf[0] = MAGIC;
	buf[1] = frame->whole ? KIND_WHOLE : KIND_NEXT;
	buf[2] = buf[3] = 0;
	put(buf + LENGTH_AT, frame->length);
	put(buf + CQ_DATA_AT, frame->cq_data);
}

int msg_frame_unpack(const void *buf, size_t len, struct msg_frame *frame)
{
	const unsigned char *p = buf;
	uint64_t length;

	if (len < MSG_FRAME_HEADER || len > MSG_FRAME_MAX || p[0] != MAGIC || p[2] || p[3])
		return -EPROTO;
	length = get(p + LENGTH_AT);
	len -= MSG_FRAME_HEADER;
	/* a message of no bytes would have fit into the frame */
	if (p[1] == KIND_WHOLE ? length != len : p[1] != KIND_NEXT || len || !length)
		return -EPROTO;
	*frame = (struct msg_frame){
		.length = length, .cq_data = get(p + CQ_DATA_AT), .whole = p[1] == KIND_WHOLE,
	};
	return 0;
}
