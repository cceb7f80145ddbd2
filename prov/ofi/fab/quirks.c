/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fi_info does not tell about a fabric: a small table with reasons. */

#include "fab/quirks.h"

#include <string.h>

/*
 * The order of preference is a policy, not a fact that libfabric offers: it
 * lists what was linked first. Hardware comes first, then the faster software.
 *
 * The offset of a registration is reserved in libfabric's text. Fabrics that look addresses
 * up in libfabric's own table have always added it to them (1.5 to 2.6).
 */
static const struct dofi_quirk quirks[] = {
	{ .provider = "verbs", .rank = 1, .reason = "RDMA hardware" },
	{ .provider = "tcp", .rank = 2, .blind_when_blocked = true, .needs_room = true,
	  .takes_offset = true, .forgets_strangers = true,
	  .reason = "the software fabric that is maintained; stops reading without a receive (1.17), "
		    "and at one of no bytes (2.1); uses a passive endpoint that is closed for a "
		    "connection without a request (libfabric pull request 12709)" },
	{ .provider = "net", .rank = 3, .blind_when_blocked = true, .stale_signal = true,
	  .takes_offset = true, .forgets_strangers = true,
	  .reason = "libfabric 1.17's preview of the 2.x tcp provider; likewise, "
		    "and its fi_trywait clears nothing (libfabric issue 8947)" },
	{ .provider = "sockets", .rank = 4, .late_listen_error = true, .shutdown_closes = true,
	  .takes_offset = true, .goes_on = true, .shutdown_overtakes = true, .loses_mark = true,
	  .silent_errors = true,
	  .reason = "deprecated; port in use is EINVAL from fi_listen (1.17, 2.6), "
		    "ends by another socket than data (1.17), "
		    "a connection outlives a refused write, "
		    "a message that waits for a receive loses FI_REMOTE_CQ_DATA but not the data (1.17), "
		    "wakes nobody for a failed completion (1.17), "
		    "descriptors closed twice after fi_shutdown (1.17)" },
};

#define N_QUIRKS (sizeof(quirks) / sizeof(quirks[0]))

static const struct dofi_quirk unmeasured = { .provider = "", .rank = 9, .reason = "not measured" };

const struct dofi_quirk *dofi_quirk_of(const char *provider)
{
	size_t i;

	for (i = 0; i < N_QUIRKS; i++)
		if (!strcmp(quirks[i].provider, provider))
			return &quirks[i];
	return &unmeasured;
}
