/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A datagram as bytes. Pure functions. */

#include "xport/ud/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Distinguishes a datagram of this version from other bytes that arrive at an endpoint. */
#define VERSION 0xd1
#define FLAGS (UD_FRAME_IMMED | UD_FRAME_SOLICITED)

/* The bytes at their places. */
struct header {
	uint8_t version, flags;
	uint16_t zero;
	uint32_t number, key[2], immed;
};

_Static_assert(sizeof(struct header) == UD_FRAME_HEADER, "the header has no gaps");

void ud_frame_pack(unsigned char buf[UD_FRAME_HEADER], const struct ud_frame *f)
{
	const struct header h = {
		.version = VERSION, .flags = f->flags, .number = htobe32(f->number),
		.key = { htobe32((uint32_t)(f->key >> 32)), htobe32((uint32_t)f->key) },
		.immed = htobe32(f->immed),
	};

	memcpy(buf, &h, sizeof(h));
}

int ud_frame_unpack(const void *buf, size_t len, struct ud_frame *f)
{
	struct header h;

	if (len < sizeof(h))
		return -EPROTO;
	memcpy(&h, buf, sizeof(h));
	if (h.version != VERSION || h.flags & ~FLAGS || h.zero)
		return -EPROTO;
	*f = (struct ud_frame){
		.flags = h.flags, .number = be32toh(h.number),
		.key = (uint64_t)be32toh(h.key[0]) << 32 | be32toh(h.key[1]),
		.immed = be32toh(h.immed), .data = (const unsigned char *)buf + sizeof(h),
		.size = len - sizeof(h),
	};
	return f->immed && !(f->flags & UD_FRAME_IMMED) ? -EPROTO : 0;
}
