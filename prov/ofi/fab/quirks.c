/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fi_info does not tell about a fabric: a small table with reasons. */

#include "fab/quirks.h"

#include <string.h>

/*
 * The order of preference is a policy, not a fact that libfabric offers: it
 * lists what was linked first. Hardware comes first, then the faster software.
 */
static const struct dofi_quirk quirks[] = {
	{ "verbs", 1, false, "RDMA hardware" },
	{ "tcp", 2, false, "the software fabric that is maintained" },
	{ "net", 3, false, "libfabric 1.17's preview of the 2.x tcp provider" },
	{ "sockets", 4, true, "deprecated; port in use is EINVAL from fi_listen (1.17, 2.6)" },
};

static const struct dofi_quirk unmeasured = { "", 9, false, "not measured" };

const struct dofi_quirk *dofi_quirk_of(const char *provider)
{
	size_t i;

	for (i = 0; i < sizeof(quirks) / sizeof(quirks[0]); i++)
		if (!strcmp(quirks[i].provider, provider))
			return &quirks[i];
	return &unmeasured;
}
