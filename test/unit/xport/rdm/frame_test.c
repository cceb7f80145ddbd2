/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames of a connectionless fabric, which peers of any release must agree on. */

#include "xport/rdm/frame.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#define DATA 40
#define MOST (RDM_FRAME_FULL + RDM_FRAME_SEGMENTS * RDM_FRAME_SEGMENT)

/* Offsets of fields, which peers of other releases rely on. */
enum {
	AT_VERSION_KIND = 8, AT_FLAGS = 9, AT_KEY = 28, AT_LENGTH = 40, AT_TAIL = RDM_FRAME_FULL,
};

#define WITH_SEGMENTS (1u << RDM_FRAME_RTS | 1u << RDM_FRAME_WRITE)
#define WITH_DATA                                                                          \
	(RDM_FRAME_SHORT | 1u << RDM_FRAME_DATA | 1u << RDM_FRAME_WRITE | 1u << RDM_FRAME_ACK | \
	 1u << RDM_FRAME_FIRST)

/* Kinds that are invalid without data. */
#define NEEDS_DATA (1u << RDM_FRAME_FIRST | 1u << RDM_FRAME_MORE)

static unsigned char buf[MOST + RDM_FRAME_SEGMENT], data[DATA];
static struct rdm_frame got;

/* Every field has a large value, and no two are equal. */
static struct rdm_frame full(enum rdm_frame_kind kind)
{
	struct rdm_frame f = {
		.conn = 0xf1f2f3f4f5f6f7f8, .cq_data = 0xe1e2e3e4e5e6e7e8, .sequence = 0xd1d2d3d4,
		.credits = 0xc1c2, .kind = kind,
	};

	if (1u << kind & RDM_FRAME_SHORT)
		return f;
	f.number = 0xb1b2b3b4;
	f.key = kind == RDM_FRAME_ACK ? RDM_RESULTS - 1 : 0xa1a2a3a4;
	f.addr = 0x9192939495969798;
	f.length = 0x8182838485868788;
	f.value[0] = 0x7172737475767778;
	f.value[1] = 0x6162636465666768;
	return f;
}

static void add_segment(struct rdm_frame *f, uintptr_t addr, size_t len)
{
	f->segment[f->n_segments++] = (struct iovec){ (void *)addr, len };
}

/* The length is the sum of the segments. */
static struct rdm_frame with_segments(enum rdm_frame_kind kind, uint32_t n)
{
	struct rdm_frame f = full(kind);
	uint32_t i;

	f.length = 0;
	for (i = 0; i < n; i++) {
		add_segment(&f, 0x1112131415161718 + i, i * 1000);
		f.length += i * 1000;
	}
	return f;
}

/* Unpacks from a block that ends with the bytes, so that tools find reads beyond it. */
static int unpack(const unsigned char *bytes, size_t len)
{
	unsigned char *exact = malloc(len ? len : 1);
	int ret;

	memcpy(exact, bytes, len);
	memset(&got, 0, sizeof(got));
	ret = rdm_frame_unpack(exact, len, &got);
	if (!ret && got.data_size) {
		cr_assert_eq(got.data, exact + len - got.data_size);
		got.data = memcpy(data, got.data, got.data_size < DATA ? got.data_size : DATA);
	}
	free(exact);
	return ret;
}

static void same_head(const struct rdm_frame *a, const struct rdm_frame *b)
{
	cr_expect_eq(a->conn, b->conn);
	cr_expect_eq(a->cq_data, b->cq_data);
	cr_expect_eq(a->sequence, b->sequence);
	cr_expect_eq(a->credits, b->credits);
	cr_expect_eq(a->kind, b->kind);
	cr_expect_eq(a->n_segments, b->n_segments);
}

static void same_body(const struct rdm_frame *a, const struct rdm_frame *b)
{
	cr_expect_eq(a->number, b->number);
	cr_expect_eq(a->key, b->key);
	cr_expect_eq(a->addr, b->addr);
	cr_expect_eq(a->length, b->length);
	cr_expect_eq(a->value[0], b->value[0]);
	cr_expect_eq(a->value[1], b->value[1]);
	cr_expect(!memcmp(a->segment, b->segment, a->n_segments * sizeof(a->segment[0])));
}

TestSuite(rdm_frame);

Test(rdm_frame, is_what_it_was)
{
	uint8_t kind;

	for (kind = 1; kind < RDM_FRAME_KINDS; kind++) {
		struct rdm_frame f = full(kind);
		size_t len;

		if (kind == RDM_FRAME_WRITE)
			f.length = 0;	/* of its data: none */
		len = rdm_frame_pack(buf, &f);
		cr_expect_eq(len, rdm_frame_head(&f));
		if (1u << kind & NEEDS_DATA)
			continue;
		cr_assert_eq(unpack(buf, len), 0, "%d", kind);
		same_head(&got, &f);
		same_body(&got, &f);
		cr_expect_eq(got.data_size, 0);
	}
}

Test(rdm_frame, stays_what_it_was_as_bytes)
{
	static const unsigned char header[RDM_FRAME_HEADER] = {
		0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0x29, 0x00, 0xc1, 0xc2,
		0xd1, 0xd2, 0xd3, 0xd4, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
	};
	static const unsigned char body[RDM_FRAME_FULL - RDM_FRAME_HEADER] = {
		0xb1, 0xb2, 0xb3, 0xb4, 0xa1, 0xa2, 0xa3, 0xa4,
		0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
		0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,
		0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
		0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
	};
	const struct rdm_frame f = full(RDM_FRAME_READ);

	rdm_frame_pack(buf, &f);
	cr_expect(!memcmp(buf, header, sizeof(header)));
	cr_expect(!memcmp(buf + RDM_FRAME_HEADER, body, sizeof(body)));
}

Test(rdm_frame, brings_its_data)
{
	static const uint8_t kinds[] = {
		RDM_FRAME_SEND, RDM_FRAME_DATA, RDM_FRAME_WRITE, RDM_FRAME_ACK, RDM_FRAME_FIRST,
		RDM_FRAME_MORE,
	};
	unsigned char bytes[DATA];
	size_t i, len;

	memset(bytes, 0x5a, sizeof(bytes));
	for (i = 0; i < sizeof(kinds); i++) {
		struct rdm_frame f = full(kinds[i]);

		if (kinds[i] == RDM_FRAME_WRITE)
			f.length = DATA;
		len = rdm_frame_pack(buf, &f);
		memcpy(buf + len, bytes, DATA);
		cr_assert_eq(unpack(buf, len + DATA), 0);
		cr_expect_eq(got.data_size, DATA);
		cr_expect(!memcmp(data, bytes, DATA));
		if (1u << kinds[i] & RDM_FRAME_SHORT)
			cr_expect_eq(got.length, DATA);
		else
			same_body(&got, &f);
	}
}

Test(rdm_frame, names_its_segments)
{
	uint32_t n;

	for (n = 1; n <= RDM_FRAME_SEGMENTS; n++) {
		const struct rdm_frame f =
			with_segments(n % 2 ? RDM_FRAME_WRITE : RDM_FRAME_RTS, n);
		size_t len = rdm_frame_pack(buf, &f);

		cr_assert_eq(len, RDM_FRAME_FULL + n * RDM_FRAME_SEGMENT);
		cr_assert_eq(unpack(buf, len), 0);
		same_head(&got, &f);
		same_body(&got, &f);
		cr_expect_eq(got.data_size, 0);
	}
}

/* Hostile bytes: everything that is not exactly a frame */

Test(rdm_frame, a_frame_that_is_cut_short_is_refused)
{
	uint8_t kind;
	size_t len, n;

	for (kind = 1; kind < RDM_FRAME_KINDS; kind++) {
		const bool segments = 1u << kind & WITH_SEGMENTS;
		const struct rdm_frame f = segments ? with_segments(kind, 3) : full(kind);

		len = rdm_frame_pack(buf, &f);
		for (n = 0; n < len; n++)
			cr_expect_eq(unpack(buf, n), -EPROTO, "%d: %zu", kind, n);
	}
}

Test(rdm_frame, of_an_unknown_kind_or_version_is_none)
{
	const struct rdm_frame f = full(RDM_FRAME_CREDIT);
	const size_t len = rdm_frame_pack(buf, &f);
	unsigned i;

	for (i = 0; i < 256; i++) {
		const unsigned kind = i & 0xf;
		const bool known = i >> 4 == 2 && kind && kind < RDM_FRAME_KINDS;

		buf[AT_VERSION_KIND] = (unsigned char)i;
		/* these kinds have another body */
		if (kind < RDM_FRAME_KINDS && 1u << kind & (WITH_DATA & ~(1u << RDM_FRAME_DATA)))
			continue;
		cr_expect_eq(unpack(buf, len), known ? 0 : -EPROTO, "%#x", i);
	}
}

Test(rdm_frame, with_an_unknown_flag_is_none)
{
	struct rdm_frame f = full(RDM_FRAME_SEND);
	size_t len = rdm_frame_pack(buf, &f);
	unsigned flags;

	for (flags = 1; flags < 256; flags++) {
		buf[AT_FLAGS] = (unsigned char)flags;
		cr_expect_eq(unpack(buf, len + DATA), -EPROTO, "a message has none: %#x", flags);
	}
	f = with_segments(RDM_FRAME_RTS, 2);
	len = rdm_frame_pack(buf, &f);
	for (flags = 0; flags < 256; flags++) {
		buf[AT_FLAGS] = (unsigned char)flags;
		cr_expect_eq(unpack(buf, len), flags == 1 ? 0 : -EPROTO, "%#x", flags);
	}
}

Test(rdm_frame, with_more_than_its_kind_has_is_none)
{
	uint8_t kind;

	for (kind = 1; kind < RDM_FRAME_KINDS; kind++) {
		struct rdm_frame f = full(kind);
		size_t len = rdm_frame_pack(buf, &f);

		if (!(1u << kind & WITH_DATA))
			cr_expect_eq(unpack(buf, len + 1), -EPROTO, "%d", kind);
		f = with_segments(kind, 1);
		len = rdm_frame_pack(buf, &f);
		if (!(1u << kind & RDM_FRAME_SHORT))
			cr_expect_eq(unpack(buf, len), 1u << kind & WITH_SEGMENTS ? 0 : -EPROTO,
				     "%d", kind);
	}
}

Test(rdm_frame, a_frame_that_writes_more_or_less_than_it_has_is_refused)
{
	struct rdm_frame f = full(RDM_FRAME_WRITE);
	static const uint64_t lies[] = { 0, DATA - 1, DATA + 1, 1ULL << 32 | DATA, UINT64_MAX };
	size_t i, len;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		f.length = lies[i];
		len = rdm_frame_pack(buf, &f);
		cr_expect_eq(unpack(buf, len + DATA), -EPROTO, "%zu", i);
	}
}

/* The whole message would fit into the first frame, or the first frame has no bytes of it. */
Test(rdm_frame, a_first_frame_as_long_as_its_message_is_refused)
{
	struct rdm_frame f = full(RDM_FRAME_FIRST);
	static const uint64_t lies[] = { 0, 1, DATA - 1, DATA };
	size_t i, len;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		f.length = lies[i];
		len = rdm_frame_pack(buf, &f);
		cr_expect_eq(unpack(buf, len + DATA), -EPROTO, "%zu", i);
	}
	f.length = DATA + 1;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len + DATA), 0);
	cr_expect_eq(unpack(buf, len), -EPROTO, "nothing");
	cr_expect_eq(unpack(buf, len + 1), 0);
}

Test(rdm_frame, a_further_frame_without_bytes_is_refused)
{
	struct rdm_frame f = full(RDM_FRAME_MORE);
	size_t len = rdm_frame_pack(buf, &f);

	cr_expect_eq(unpack(buf, len), -EPROTO);
	cr_expect_eq(unpack(buf, len + 1), 0);
	buf[AT_FLAGS] = 1;
	cr_expect_eq(unpack(buf, len + 1), -EPROTO);
}

Test(rdm_frame, whose_segments_lie_is_none)
{
	struct rdm_frame f;
	size_t len;

	/* the length is too long, and then too short */
	f = with_segments(RDM_FRAME_RTS, 3);
	f.length++;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len), -EPROTO);
	f.length -= 2;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len), -EPROTO);

	/* the length is right only if the sum wraps */
	f = full(RDM_FRAME_WRITE);
	add_segment(&f, 0x1000, SIZE_MAX);
	add_segment(&f, 0x1000, 9);
	f.length = 8;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len), -EPROTO);
	f.length = UINT64_MAX;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len), -EPROTO);
}

Test(rdm_frame, with_no_segment_or_too_many_is_none)
{
	struct rdm_frame f = with_segments(RDM_FRAME_WRITE, RDM_FRAME_SEGMENTS);
	size_t len = rdm_frame_pack(buf, &f);

	memset(buf + len, 0, RDM_FRAME_SEGMENT);
	cr_expect_eq(unpack(buf, len + RDM_FRAME_SEGMENT), -EPROTO, "one more, of no bytes");
	memset(buf + AT_LENGTH, 0, 8);
	cr_expect_eq(unpack(buf, AT_TAIL), -EPROTO, "the flag, and none");
}

Test(rdm_frame, with_an_unknown_result_is_none)
{
	struct rdm_frame f = full(RDM_FRAME_ACK);
	size_t len = rdm_frame_pack(buf, &f);

	cr_expect_eq(unpack(buf, len), 0);
	f.key = RDM_RESULTS;
	len = rdm_frame_pack(buf, &f);
	cr_expect_eq(unpack(buf, len), -EPROTO);
	buf[AT_KEY] = 0x80;
	cr_expect_eq(unpack(buf, len), -EPROTO);
}

/* The header of a message, packed at once */

Test(rdm_frame, a_message_is_packed_at_once_as_field_by_field)
{
	const struct rdm_frame f = {
		.conn = 0xf1f2f3f4f5f6f7f8, .sequence = 0xd1d2d3d4, .credits = 0xc1c2,
		.kind = RDM_FRAME_SEND,
	};
	unsigned char once[RDM_FRAME_HEADER];
	uint16_t credits;

	cr_expect_eq(rdm_frame_pack(buf, &f), RDM_FRAME_HEADER);
	rdm_frame_pack_send(once, f.conn, f.credits, f.sequence);
	cr_expect(!memcmp(buf, once, sizeof(once)));
	cr_expect(rdm_frame_is_send(buf, f.conn, f.sequence, &credits));
	cr_expect_eq(credits, f.credits);
}

Test(rdm_frame, any_other_header_is_no_such_message)
{
	unsigned char header[RDM_FRAME_HEADER];
	uint16_t credits;
	size_t i;

	for (i = 0; i < sizeof(header); i++) {
		rdm_frame_pack_send(header, 1, 2, 3);
		header[i] ^= 0x10;
		cr_expect_eq(rdm_frame_is_send(header, 1, 3, &credits), i == 10 || i == 11,
			     "%zu", i);
	}
	rdm_frame_pack_send(header, 1, 2, 3);
	cr_expect(!rdm_frame_is_send(header, 1, 4, &credits) &&
		  !rdm_frame_is_send(header, 2, 3, &credits));
}
