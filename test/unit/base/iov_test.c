/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes into and out of pieces: each offset and length, and nothing beside them. */

#include "base/iov.h"

#include <criterion/criterion.h>

#define TOTAL 8
#define MOST 12				/* beyond what there is */

/* Pieces of 0, 3, 0, 1 and 4 bytes, with a byte between each two that belongs to nobody. */
static char memory[TOTAL + 6];
static struct iovec pieces[5];
static const size_t lengths[5] = { 0, 3, 0, 1, 4 };

static void init(void)
{
	char *at = memory + 1;
	int i;

	memset(memory, '-', sizeof(memory));
	for (i = 0; i < 5; i++) {
		pieces[i] = (struct iovec){ at, lengths[i] };
		at += lengths[i] + 1;
	}
}

TestSuite(iov, .init = init);

static size_t fitting(size_t offset, size_t len)
{
	const size_t room = offset < TOTAL ? TOTAL - offset : 0;

	return len < room ? len : room;
}

/* The byte of memory[] that is the @i-th of all pieces. */
static char *byte(size_t i)
{
	return memory + (i < 3 ? 2 + i : i < 4 ? 7 : 5 + i);
}

Test(iov, the_pieces_are_where_the_test_believes)
{
	size_t i;

	cr_expect_eq(byte(0), pieces[1].iov_base);
	cr_expect_eq(byte(3), pieces[3].iov_base);
	for (i = 4; i < TOTAL; i++)
		cr_expect_eq(byte(i), (char *)pieces[4].iov_base + i - 4);
}

Test(iov, scatter_writes_what_it_is_given_and_no_more)
{
	size_t offset, len, i;

	for (offset = 0; offset < MOST; offset++)
		for (len = 0; len < MOST; len++) {
			char want[sizeof(memory)];

			init();
			memcpy(want, memory, sizeof(want));
			for (i = 0; i < fitting(offset, len); i++)
				want[byte(offset + i) - memory] = "abcdefghijkl"[i];
			cr_assert_eq(dofi_iov_scatter(pieces, 5, offset, "abcdefghijkl", len),
				     fitting(offset, len));
			cr_assert(!memcmp(memory, want, sizeof(want)), "%zu bytes at %zu", len, offset);
		}
}

Test(iov, gather_reads_them_back)
{
	char got[MOST], want[MOST];
	size_t offset, len, i;

	for (i = 0; i < TOTAL; i++)
		*byte(i) = "ABCDEFGH"[i];
	for (offset = 0; offset < MOST; offset++)
		for (len = 0; len < MOST; len++) {
			memset(got, '.', sizeof(got));
			memset(want, '.', sizeof(want));
			for (i = 0; i < fitting(offset, len); i++)
				want[i] = "ABCDEFGH"[offset + i];
			cr_assert_eq(dofi_iov_gather(got, pieces, 5, offset, len), fitting(offset, len));
			cr_assert(!memcmp(got, want, sizeof(want)), "%zu bytes at %zu", len, offset);
		}
}

Test(iov, no_pieces_hold_nothing)
{
	char c = 'x';

	cr_expect_eq(dofi_iov_scatter(NULL, 0, 0, "y", 1), 0);
	cr_expect_eq(dofi_iov_gather(&c, NULL, 0, 0, 1), 0);
	cr_expect_eq(c, 'x');
}
