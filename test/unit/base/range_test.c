/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges at the edges of the addresses, where sums wrap. */

#include "base/range.h"

#include <criterion/criterion.h>

#define END DOFI_RANGE_MOST

TestSuite(range);

Test(range, exists_below_the_kernels_addresses)
{
	cr_expect(dofi_range_exists(0, 0));
	cr_expect(dofi_range_exists(0, END));
	cr_expect(dofi_range_exists(END - 1, 1));
	cr_expect(dofi_range_exists(END, 0));
	cr_expect(!dofi_range_exists(0, END + 1));
	cr_expect(!dofi_range_exists(END - 1, 2));
	cr_expect(!dofi_range_exists(END, 1));
	cr_expect(!dofi_range_exists(END + 1, 0));
}

Test(range, does_not_exist_where_its_end_wraps)
{
	cr_expect(!dofi_range_exists(UINT64_MAX, 1));
	cr_expect(!dofi_range_exists(UINT64_MAX, UINT64_MAX));
	cr_expect(!dofi_range_exists(UINT64_MAX - 99, 100), "ends at 2^64");
	cr_expect(!dofi_range_exists(UINT64_MAX - 99, 4096));
	cr_expect(!dofi_range_exists(1, UINT64_MAX));
	cr_expect(!dofi_range_exists(0x5000, 0 - UINT64_C(0x4000)));
}

/* A fabric adds where the region begins, to any offset that exists. */
Test(range, an_offset_that_exists_does_not_wrap_with_its_base)
{
	const uint64_t bases[] = { 0x1000, 0x7f0000000000, 0x7ffffffff000, 0xfffffffff000 };
	const uint64_t len = 4096, last = END - len;
	unsigned i;

	cr_assert(dofi_range_exists(last, len));
	for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		cr_expect(bases[i] + last + len > last);
}

Test(range, of_this_process_ends_at_its_last_address)
{
	char byte = 0;

	cr_expect(dofi_range_is_local(&byte, 1));
	cr_expect(!dofi_range_is_local(&byte, UINT64_MAX));
	cr_expect(!dofi_range_is_local(&byte, (uint64_t)UINTPTR_MAX));
	cr_expect(!dofi_range_is_local((void *)UINTPTR_MAX, 2));
	cr_expect(!dofi_range_is_local((void *)(UINTPTR_MAX - 4095), 4097));
}

Test(range, has_each_part_and_no_more)
{
	cr_expect(dofi_range_has(0x2000, 0x1000, 0x1000, 0x1000));
	cr_expect(dofi_range_has(0x2000, 0x1000, 0x1000, 0));
	cr_expect(dofi_range_has(0x2000, 0x1000, 0x1fff, 1));
	cr_expect(dofi_range_has(0x2000, 0x1000, 0x2000, 0));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0xfff, 1));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0xfff, 0));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0x1001, 0x1000));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0x2000, 1));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0x2001, 0));
}

Test(range, has_nothing_that_wraps)
{
	cr_expect(!dofi_range_has(0x2000, 0x1000, UINT64_MAX - 99, 4096));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0x1800, UINT64_MAX));
	cr_expect(!dofi_range_has(0x2000, 0x1000, 0x1800, 0 - UINT64_C(0x800)));
	cr_expect(!dofi_range_has(0x2000, 0x1000, UINT64_MAX, 1));
	/* counted from the first byte */
	cr_expect(dofi_range_has(16, 16, 0, 16));
	cr_expect(!dofi_range_has(16, 16, UINT64_MAX, 1));
	cr_expect(!dofi_range_has(16, 16, UINT64_MAX, 2));
}

Test(range, a_range_may_end_with_the_last_address)
{
	cr_expect(dofi_range_has(0, 0x1000, 0 - UINT64_C(0x1000), 0x1000));
	cr_expect(dofi_range_has(0, 0x1000, UINT64_MAX, 1));
	cr_expect(!dofi_range_has(0, 0x1000, UINT64_MAX, 2));
	cr_expect(!dofi_range_has(0, 0x1000, 1, 1));
}

Test(range, a_sum_of_lengths_does_not_wrap)
{
	cr_expect_eq(dofi_length_sum(0, 0), 0);
	cr_expect_eq(dofi_length_sum(3, 4), 7);
	cr_expect_eq(dofi_length_sum(UINT64_MAX, 0), UINT64_MAX);
	cr_expect_eq(dofi_length_sum(UINT64_MAX, 1), UINT64_MAX);
	cr_expect_eq(dofi_length_sum(UINT64_MAX, UINT64_MAX), UINT64_MAX);
	cr_expect_eq(dofi_length_sum(UINT64_MAX - 4, 4), UINT64_MAX);
}

Test(range, overlaps_with_a_common_byte_alone)
{
	cr_expect(dofi_ranges_overlap(0x1000, 16, 0x100f, 1));
	cr_expect(dofi_ranges_overlap(0x100f, 1, 0x1000, 16));
	cr_expect(dofi_ranges_overlap(0x1000, 16, 0x1004, 4));
	cr_expect(!dofi_ranges_overlap(0x1000, 16, 0x1010, 16));
	cr_expect(!dofi_ranges_overlap(0x1010, 16, 0x1000, 16));
	cr_expect(!dofi_ranges_overlap(0x1000, 0, 0x1000, 16), "no byte");
}
