/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of quirks: whom a row is for, and whom not. */

#include "fab/quirks.h"

#include <criterion/criterion.h>

static const char *const measured[] = { "verbs", "tcp", "net", "sockets" };

Test(quirks, preference_is_hardware_then_faster_software)
{
	int i;

	for (i = 0; i < 4; i++)
		cr_expect_eq(dofi_quirk_of(measured[i])->rank, i + 1, "%s", measured[i]);
}

Test(quirks, unknown_fabrics_come_last)
{
	const struct dofi_quirk *q = dofi_quirk_of("nosuch");

	cr_expect(q->rank > dofi_quirk_of("sockets")->rank);
	cr_expect(!q->late_listen_error);
	cr_expect(!q->blind_when_blocked);
}

Test(quirks, names_match_in_full)
{
	static const char *const other[] = { "", "tc", "tcpx", "tcp;ofi_rxm", "TCP", "sockets " };
	size_t i;

	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		cr_expect_eq(dofi_quirk_of(other[i]), dofi_quirk_of("nosuch"), "%s", other[i]);
}

Test(quirks, every_row_has_a_reason)
{
	int i;

	for (i = 0; i < 4; i++)
		cr_expect(*dofi_quirk_of(measured[i])->reason, "%s", measured[i]);
	cr_expect(*dofi_quirk_of("nosuch")->reason);
}
