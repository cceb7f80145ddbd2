/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long a wait polls, depending on how long earlier waits took. */

#include "base/spin.h"

#include <criterion/criterion.h>

#define LEAST 50000

static struct dofi_spin spin;

static int64_t after(int64_t took)
{
	dofi_spin_learn(&spin, took, LEAST);
	return dofi_spin_time(&spin, LEAST);
}

Test(spin, at_first_as_long_as_is_set)
{
	cr_expect_eq(dofi_spin_time(&spin, LEAST), LEAST);
}

Test(spin, twice_what_short_waits_take_within_limits)
{
	cr_expect_eq(after(0), LEAST);
	cr_expect_eq(after(LEAST / 2), LEAST);
	cr_expect_eq(after(LEAST), 2 * LEAST);
	cr_expect_eq(after(2 * LEAST), 4 * LEAST);
	cr_expect_eq(after(4 * LEAST), 4 * LEAST);
	cr_expect_eq(after(100), LEAST);
}

Test(spin, not_after_many_long_waits)
{
	int i;

	for (i = 0; i < 7; i++)
		cr_expect_eq(after(4 * LEAST + 1), LEAST);
	for (i = 0; i < 100; i++)
		cr_expect_eq(after(INT64_MAX), 0);
	cr_expect_eq(after(10), LEAST, "one short wait is enough");
	for (i = 0; i < 7; i++)
		cr_expect_eq(after(4 * LEAST + 1), LEAST);
	cr_expect_eq(after(4 * LEAST + 1), 0);
}

Test(spin, never_if_it_is_set_so)
{
	int i;

	for (i = 0; i < 3; i++) {
		dofi_spin_learn(&spin, i, 0);
		cr_expect_eq(dofi_spin_time(&spin, 0), 0);
	}
}
