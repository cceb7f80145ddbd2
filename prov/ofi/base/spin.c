/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long it pays to poll before sleeping. */

#include "base/spin.h"

/* How many long waits in a row end polling: programs may alternate between short and long ones. */
#define LONG_WAITS 8

int64_t dofi_spin_time(const struct dofi_spin *spin, int64_t least)
{
	const int64_t most = DOFI_SPIN_MOST * least;

	if (spin->long_waits >= LONG_WAITS)
		return 0;
	if (2 * spin->usual <= least)
		return least;
	return 2 * spin->usual < most ? 2 * spin->usual : most;
}

void dofi_spin_learn(struct dofi_spin *spin, int64_t took, int64_t least)
{
	if (took > DOFI_SPIN_MOST * least) {
		spin->long_waits += spin->long_waits < LONG_WAITS;
		return;
	}
	spin->usual = took;
	spin->long_waits = 0;
}
