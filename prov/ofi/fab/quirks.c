/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fi_info does not tell about a fabric: a small table with reasons. */

#include "fab/quirks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * Programs poll the last byte of an RDMA write. These fabrics receive a message of up to
 * 9000 bytes in a buffer of theirs, and memcpy() from there stores the first bytes last.
 * What is beyond the setting is received in place, after what is below it was copied.
 */
#define BUFFERED_BYTES "128"

/*
 * The order of preference is a policy, not a fact that libfabric offers: it
 * lists what was linked first. Hardware comes first, then the faster software.
 */
static const struct dofi_quirk quirks[] = {
	{ .provider = "verbs", .rank = 1, .reason = "RDMA hardware" },
	{ .provider = "tcp", .rank = 2, .blind_when_blocked = true, .needs_room = true,
	  .setting = "FI_TCP_PREFETCH_RBUF_SIZE=" BUFFERED_BYTES,
	  .reason = "the software fabric that is maintained; stops reading without a receive (1.17), "
		    "and at one of no bytes (2.1)" },
	{ .provider = "net", .rank = 3, .blind_when_blocked = true, .stale_signal = true,
	  .setting = "FI_NET_PREFETCH_RBUF_SIZE=" BUFFERED_BYTES,
	  .reason = "libfabric 1.17's preview of the 2.x tcp provider; likewise, "
		    "and its fi_trywait clears nothing (libfabric issue 8947)" },
	{ .provider = "sockets", .rank = 4, .late_listen_error = true, .shutdown_closes = true,
	  .silent_errors = true,
	  .reason = "deprecated; port in use is EINVAL from fi_listen (1.17, 2.6), "
		    "descriptors closed twice after fi_shutdown (1.17), "
		    "wakes nobody for a failed completion (1.17)" },
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

static void set_all(void)
{
	char name[64];
	size_t i;

	for (i = 0; i < N_QUIRKS; i++) {
		const char *setting = quirks[i].setting;
		const char *value = setting ? strchr(setting, '=') : NULL;

		if (!value || (size_t)(value - setting) >= sizeof(name))
			continue;
		memcpy(name, setting, value - setting);
		name[value - setting] = 0;
		setenv(name, value + 1, 0);
	}
}

void dofi_quirks_set(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_all);
}
