/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time: deadlines at their extremes. */

#include "base/clock.h"

#include <criterion/criterion.h>

Test(clock, never_goes_back)
{
	int64_t before = dofi_now(), now;
	int i;

	for (i = 0; i < 10000; i++) {
		now = dofi_now();
		cr_assert(now >= before);
		before = now;
	}
}

Test(clock, infinite_is_never)
{
	cr_expect_eq(dofi_deadline(UINT32_MAX), DOFI_NEVER);
}

Test(clock, zero_is_past_at_once)
{
	int64_t deadline = dofi_deadline(0);

	cr_expect(deadline <= dofi_now());
}

Test(clock, deadlines_are_microseconds_ahead)
{
	static const uint32_t us[] = { 1, 1000, 1000000, UINT32_MAX - 1 };
	size_t i;

	for (i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
		int64_t before = dofi_now(), deadline = dofi_deadline(us[i]), after = dofi_now();

		cr_expect(deadline >= before + us[i] * 1000LL);
		cr_expect(deadline <= after + us[i] * 1000LL);
	}
}

Test(clock, timespec_has_both_parts)
{
	struct dofi_timespec ts = dofi_timespec(1999999999);

	cr_expect_eq(ts.tv_sec, 1);
	cr_expect_eq(ts.tv_nsec, 999999999);
}

Test(clock, timespec_of_never_is_valid)
{
	struct dofi_timespec ts = dofi_timespec(DOFI_NEVER);

	cr_expect(ts.tv_sec > 0);
	cr_expect(ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000);
}
