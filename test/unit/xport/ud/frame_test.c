/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams as bytes. */

#include "xport/ud/frame.h"

#include <criterion/criterion.h>
#include <errno.h>

TestSuite(xport_ud_frame);

static const unsigned char sample[UD_FRAME_HEADER + 3] = {
	0xd1, UD_FRAME_IMMED | UD_FRAME_SOLICITED, 0, 0,
	0x01, 0x02, 0x03, 0x04,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	0xde, 0xad, 0xbe, 0xef,
	'a', 'b', 'c',
};

static const struct ud_frame parsed = {
	.flags = UD_FRAME_IMMED | UD_FRAME_SOLICITED, .number = 0x01020304,
	.key = 0x1112131415161718, .immed = 0xdeadbeef,
};

Test(xport_ud_frame, has_these_bytes)
{
	unsigned char bytes[UD_FRAME_HEADER];

	ud_frame_pack(bytes, &parsed);
	cr_expect(!memcmp(bytes, sample, sizeof(bytes)));
}

Test(xport_ud_frame, is_parsed)
{
	struct ud_frame f;

	cr_assert_eq(ud_frame_unpack(sample, sizeof(sample), &f), 0);
	cr_expect_eq(f.flags, parsed.flags);
	cr_expect_eq(f.number, parsed.number);
	cr_expect_eq(f.key, parsed.key);
	cr_expect_eq(f.immed, parsed.immed);
	cr_expect_eq(f.data, sample + UD_FRAME_HEADER);
	cr_expect_eq(f.size, 3);
}

Test(xport_ud_frame, may_have_no_data)
{
	struct ud_frame f;

	cr_assert_eq(ud_frame_unpack(sample, UD_FRAME_HEADER, &f), 0);
	cr_expect_eq(f.size, 0);
}

Test(xport_ud_frame, is_no_shorter_than_its_header)
{
	struct ud_frame f;
	size_t len;

	for (len = 0; len < UD_FRAME_HEADER; len++)
		cr_expect_eq(ud_frame_unpack(sample, len, &f), -EPROTO, "%zu", len);
}

/* Returns the kind of the sample with byte @i set to @value. */
static int changed(size_t i, unsigned char value)
{
	unsigned char bytes[sizeof(sample)];
	struct ud_frame f;

	memcpy(bytes, sample, sizeof(bytes));
	bytes[i] = value;
	return ud_frame_unpack(bytes, sizeof(bytes), &f);
}

Test(xport_ud_frame, of_another_version_is_refused)
{
	int version;

	for (version = 0; version < 256; version++)
		cr_expect_eq(changed(0, (unsigned char)version), version == 0xd1 ? 0 : -EPROTO,
			     "%#x", version);
}

Test(xport_ud_frame, with_unknown_flags_is_refused)
{
	int bit;

	for (bit = 4; bit < 256; bit *= 2)
		cr_expect_eq(changed(1, (unsigned char)(UD_FRAME_IMMED | bit)), -EPROTO, "%d", bit);
}

Test(xport_ud_frame, with_reserved_bytes_is_refused)
{
	cr_expect_eq(changed(2, 1), -EPROTO);
	cr_expect_eq(changed(3, 1), -EPROTO);
}

Test(xport_ud_frame, without_the_flag_has_no_immediate_data)
{
	unsigned char bytes[sizeof(sample)];
	struct ud_frame f;

	cr_expect_eq(changed(1, UD_FRAME_SOLICITED), -EPROTO);
	memcpy(bytes, sample, sizeof(bytes));
	bytes[1] = 0;
	memset(bytes + 16, 0, 4);
	cr_expect_eq(ud_frame_unpack(bytes, sizeof(bytes), &f), 0);
}

Test(xport_ud_frame, may_have_immediate_data_of_zero)
{
	const struct ud_frame zero = { .flags = UD_FRAME_IMMED, .number = 1, .key = 2 };
	unsigned char bytes[UD_FRAME_HEADER];
	struct ud_frame f;

	ud_frame_pack(bytes, &zero);
	cr_assert_eq(ud_frame_unpack(bytes, sizeof(bytes), &f), 0);
	cr_expect_eq(f.flags, UD_FRAME_IMMED);
	cr_expect_eq(f.immed, 0);
}
