/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packs and parses the frames of a connectionless fabric. Pure functions. */

#include "xport/rdm/frame.h"

#include <errno.h>

#define FLAG_SEGMENTS 0x01		/* segments follow */

struct header {
	uint64_t conn;
	uint8_t version_kind;
	uint8_t flags;
	uint16_t credits;
	uint32_t sequence;
	uint64_t cq_data;
};

struct body {
	uint32_t number;
	uint32_t key;
	uint64_t addr;
	uint64_t length;
	uint64_t value[2];
};

_Static_assert(sizeof(struct header) == RDM_FRAME_HEADER, "the header has no gaps");
_Static_assert(sizeof(struct header) + sizeof(struct body) == RDM_FRAME_FULL, "nor has the body");

/* The parts that may follow the body of each kind. */
enum tail { TAIL_NONE, TAIL_DATA = 1, TAIL_SEGMENTS = 2 };

static const uint8_t tails[RDM_FRAME_KINDS] = {
	[RDM_FRAME_SEND] = TAIL_DATA,
	[RDM_FRAME_RTS] = TAIL_SEGMENTS,
	[RDM_FRAME_DATA] = TAIL_DATA,
	[RDM_FRAME_WRITE] = TAIL_DATA | TAIL_SEGMENTS,
	[RDM_FRAME_ACK] = TAIL_DATA,
	[RDM_FRAME_FIRST] = TAIL_DATA,
	[RDM_FRAME_MORE] = TAIL_DATA,
};

size_t rdm_frame_pack(unsigned char *buf, const struct rdm_frame *f)
{
	const struct header header = {
		.conn = htobe64(f->conn),
		.version_kind = RDM_FRAME_VERSION << 4 | f->kind,
		.flags = f->n_segments ? FLAG_SEGMENTS : 0,
		.credits = htobe16(f->credits),
		.sequence = htobe32(f->sequence),
		.cq_data = htobe64(f->cq_data),
	};
	const struct body body = {
		.number = htobe32(f->number),
		.key = htobe32(f->key),
		.addr = htobe64(f->addr),
		.length = htobe64(f->length),
		.value = { htobe64(f->value[0]), htobe64(f->value[1]) },
	};
	unsigned char *p = buf + RDM_FRAME_FULL;
	uint32_t i;

	memcpy(buf, &header, sizeof(header));
	if (1u << f->kind & RDM_FRAME_SHORT)
		return RDM_FRAME_HEADER;
	memcpy(buf + RDM_FRAME_HEADER, &body, sizeof(body));
	for (i = 0; i < f->n_segments; i++, p += RDM_FRAME_SEGMENT) {
		const uint64_t pair[2] = {
			htobe64((uintptr_t)f->segment[i].iov_base),
			htobe64(f->segment[i].iov_len),
		};

		memcpy(p, pair, sizeof(pair));
	}
	return (size_t)(p - buf);
}

/* Segments are together as long as the frame's length. */
static int unpack_segments(const unsigned char *p, size_t len, struct rdm_frame *f)
{
	uint64_t total = 0;
	uint32_t i;

	if (!len || len % RDM_FRAME_SEGMENT || len > RDM_FRAME_SEGMENTS * RDM_FRAME_SEGMENT)
		return -EPROTO;
	f->n_segments = len / RDM_FRAME_SEGMENT;
	for (i = 0; i < f->n_segments; i++, p += RDM_FRAME_SEGMENT) {
		uint64_t pair[2];

		memcpy(pair, p, sizeof(pair));
		f->segment[i].iov_base = (void *)(uintptr_t)be64toh(pair[0]);
		f->segment[i].iov_len = be64toh(pair[1]);
		if (f->segment[i].iov_len > f->length - total)
			return -EPROTO;
		total += f->segment[i].iov_len;
	}
	return total == f->length ? 0 : -EPROTO;
}

int rdm_frame_unpack(const void *buf, size_t len, struct rdm_frame *f)
{
	const unsigned char *p = buf;
	struct header header;
	struct body body;

	if (len < sizeof(header))
		return -EPROTO;
	memcpy(&header, p, sizeof(header));
	f->conn = be64toh(header.conn);
	f->kind = header.version_kind & 0xf;
	f->credits = be16toh(header.credits);
	f->sequence = be32toh(header.sequence);
	f->cq_data = be64toh(header.cq_data);
	if (header.version_kind >> 4 != RDM_FRAME_VERSION || header.flags & ~FLAG_SEGMENTS ||
	    !f->kind || f->kind >= RDM_FRAME_KINDS)
		return -EPROTO;
	if (1u << f->kind & RDM_FRAME_SHORT) {
		f->data = p + RDM_FRAME_HEADER;
		f->data_size = f->length = len - RDM_FRAME_HEADER;
		return header.flags || (f->kind == RDM_FRAME_MORE && !f->length) ? -EPROTO : 0;
	}
	if (len < RDM_FRAME_FULL)
		return -EPROTO;
	memcpy(&body, p + RDM_FRAME_HEADER, sizeof(body));
	f->number = be32toh(body.number);
	f->key = be32toh(body.key);
	f->addr = be64toh(body.addr);
	f->length = be64toh(body.length);
	f->value[0] = be64toh(body.value[0]);
	f->value[1] = be64toh(body.value[1]);
	if (f->kind == RDM_FRAME_ACK && f->key >= RDM_RESULTS)
		return -EPROTO;
	p += RDM_FRAME_FULL;
	len -= RDM_FRAME_FULL;
	if (header.flags & FLAG_SEGMENTS)
		return tails[f->kind] & TAIL_SEGMENTS ? unpack_segments(p, len, f) : -EPROTO;
	if (len && !(tails[f->kind] & TAIL_DATA))
		return -EPROTO;
	f->data = p;
	f->data_size = len;
	/* the data of a write is complete, or is in segments */
	if (f->kind == RDM_FRAME_WRITE && f->length != len)
		return -EPROTO;
	/* the first of several frames has some of the bytes, but not all */
	return f->kind == RDM_FRAME_FIRST && (!len || f->length <= len) ? -EPROTO : 0;
}
