/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A datagram as bytes. Pure functions. */

#include "xport/ud/frame.h"

#include <errno.h>
#include <string.h>

/* Distinguishes a datagram of this version from other bytes that arrive at an endpoint. */
#define VERSION 0xd1
#define FLAGS (UD_FRAME_IMMED | UD_FRAME_SOLICITED)

static void put32(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)(v >> 24);
	p[1] = (unsigned char)(v >> 16);
	p[2] = (unsigned char)(v >> 8);
	p[3] = (unsigned char)v;
}

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void ud_frame_pack(unsigned char buf[UD_FRAME_HEADER], const struct ud_frame *f)
{
	buf[0] = VERSION;
	buf[1] = f->flags;
	buf[2] = buf[3] = 0;
	put32(buf + 4, f->number);
	put32(buf + 8, (uint32_t)(f->key >> 32));
	put32(buf + 12, (uint32_t)f->key);
	put32(buf + 16, f->immed);
}

int ud_frame_unpack(const void *buf, size_t len, struct ud_frame *f)
{
	const unsigned char *p = buf;

	if (len < UD_FRAME_HEADER || p[0] != VERSION || p[1] & ~FLAGS || p[2] || p[3])
		return -EPROTO;
	*f = (struct ud_frame){
		.flags = p[1], .number = get32(p + 4),
		.key = (uint64_t)get32(p + 8) << 32 | get32(p + 12), .immed = get32(p + 16),
		.data = p + UD_FRAME_HEADER, .size = len - UD_FRAME_HEADER,
	};
	return f->immed && !(f->flags & UD_FRAME_IMMED) ? -EPROTO : 0;
}
