/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Preambles: packing and unpacking, and refusals. */

#include "xport/msg/msg.h"

#include "obj/cq_data.h"
#include "obj/xport.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned char buf[MSG_PREAMBLE_MAX + 1];

static size_t pack(uint64_t length, bool whole)
{
	const struct msg_preamble preamble = { .length = length, .whole = whole };

	memset(buf, 0xee, sizeof(buf));
	msg_preamble_pack(buf, &preamble);
	return MSG_PREAMBLE_SIZE + (whole ? length : 0);
}

/* Unpacks from memory of exactly this size, so that a sanitizer finds reads beyond it. */
static int unpack(const void *bytes, size_t len, struct msg_preamble *preamble)
{
	void *exact = malloc(len ? len : 1);
	int ret;

	cr_assert(exact);
	memcpy(exact, bytes, len);
	ret = msg_preamble_unpack(exact, len, preamble);
	free(exact);
	return ret;
}

static void survives(uint64_t length, bool whole)
{
	size_t len = pack(length, whole);
	struct msg_preamble preamble;

	cr_assert_eq(unpack(buf, len, &preamble), 0);
	cr_expect_eq(preamble.length, length);
	cr_expect_eq(preamble.whole, whole);
}

static void refused(size_t len)
{
	struct msg_preamble preamble;

	cr_expect_eq(unpack(buf, len, &preamble), -EPROTO, "%zu bytes", len);
}

Test(msg_preamble, every_message_that_fits_goes_along)
{
	size_t length;

	for (length = 0; length <= MSG_PREAMBLE_MAX - MSG_PREAMBLE_SIZE; length++)
		survives(length, true);
}

Test(msg_preamble, any_length_is_announced)
{
	survives(1, false);
	survives(MSG_PREAMBLE_MAX, false);
	survives(UINT64_MAX, false);
}

Test(msg_preamble, a_message_of_no_bytes_is_not_announced)
{
	refused(pack(0, false));
}

Test(msg_preamble, wrong_lengths_are_refused)
{
	size_t len;

	pack(40, true);
	for (len = 0; len < sizeof(buf); len++)
		if (len != MSG_PREAMBLE_SIZE + 40)
			refused(len);
	pack(40, false);
	for (len = 0; len < sizeof(buf); len++)
		if (len != MSG_PREAMBLE_SIZE)
			refused(len);
	pack(MSG_PREAMBLE_MAX + 1 - MSG_PREAMBLE_SIZE, true);
	refused(MSG_PREAMBLE_MAX + 1);
}

/* Tries all values of the first bytes. */
Test(msg_preamble, other_headers_are_refused)
{
	size_t len, at;
	unsigned value;

	for (at = 0; at < 4; at++)
		for (value = 0; value < 256; value++) {
			len = pack(0, true);
			if (buf[at] == value)
				continue;
			buf[at] = (unsigned char)value;
			refused(len);
		}
}

Test(msg_preamble, the_bytes_are_as_documented)
{
	static const unsigned char whole[] = { 0xdb, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 };
	static const unsigned char next[] = { 0xdb, 2, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };

	pack(3, true);
	cr_expect(!memcmp(buf, whole, sizeof(whole)));
	pack(0x0102030405060708ULL, false);
	cr_expect(!memcmp(buf, next, sizeof(next)));
}

/* Remote CQ data */

Test(msg_preamble, the_remote_cq_data_is_as_documented)
{
	cr_expect_eq(dofi_cq_data(DOFI_CQ_DATA_INVALIDATE, false, 0, 0xabcdef01), 0x1abcdef01);
	cr_expect_eq(dofi_cq_data(DOFI_CQ_DATA_IMMED, false, 0, UINT32_MAX), 0x2ffffffff);
	cr_expect_eq(dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 0, 0), 0x300000000);
}

Test(msg_preamble, the_length_of_a_write_survives)
{
	static const uint32_t lengths[] = { 0, 1, 4096, DOFI_WRITE_IMMED_MAX };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t data =
			dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, lengths[i], 0x89abcdef);

		cr_expect_eq(dofi_cq_data_kind(data), DOFI_CQ_DATA_WRITE_IMMED);
		cr_expect_eq(dofi_cq_data_length(data), lengths[i]);
		cr_expect_eq((uint32_t)data, 0x89abcdef);
	}
}
