/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How datperf describes a message to DAT. */
#include "perf_dat.h"

#include <criterion/criterion.h>

static struct perf_dat dat = {
	.x = { .mem = (unsigned char *)0x10000 },
	.local = { .lmr_context = 7 },
};
static DAT_LMR_TRIPLET iov[PERF_SEGMENTS_MAX];

/* Splits @len bytes at offset 100; checks that the segments are adjacent and have all of them. */
static int split(unsigned int segments, size_t len)
{
	DAT_VADDR at = 0x10000 + 100;
	int i, n;

	dat.x.segments = segments;
	n = perf_dat_split(&dat, 100, len, iov);
	for (i = 0; i < n; i++) {
		cr_expect_eq(iov[i].lmr_context, 7);
		cr_expect_eq(iov[i].virtual_address, at);
		at += iov[i].segment_length;
	}
	cr_expect_eq(at, 0x10000 + 100 + len);
	return n;
}

Test(perf_dat, message_of_one_segment)
{
	cr_expect_eq(split(0, 8), 1);
	cr_expect_eq(split(1, 8), 1);
}

Test(perf_dat, segments_have_about_equal_size)
{
	cr_expect_eq(split(3, 8), 3);
	cr_expect_eq(iov[0].segment_length, 2);
	cr_expect_eq(iov[1].segment_length, 3);
	cr_expect_eq(iov[2].segment_length, 3);
	cr_expect_eq(split(PERF_SEGMENTS_MAX, 4096), PERF_SEGMENTS_MAX);
}

Test(perf_dat, no_segment_is_empty)
{
	cr_expect_eq(split(4, 3), 3);
	cr_expect_eq(iov[0].segment_length, 1);
	cr_expect_eq(split(4, 1), 1);
	cr_expect_eq(split(4, 0), 1);
}
