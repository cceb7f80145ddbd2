/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version of the loaded libfabric, which may be newer than the tested ones. */

#include "fab/info.h"

#include "base/log.h"

#include <rdma/fabric.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* The newest libfabric with which the tests of this provider have passed. */
#define TESTED FI_VERSION(2, 6)

static bool is_untested(uint32_t version)
{
	return !FI_VERSION_GE(TESTED, version);
}

void dofi_version_text(uint32_t version, char *text, size_t size)
{
	int len = snprintf(text, size, "%u.%u", FI_MAJOR(version), FI_MINOR(version));

	if (is_untested(version) && len > 0 && (size_t)len < size)
		snprintf(text + len, size - len, ", untested (tested up to %u.%u)",
			 FI_MAJOR(TESTED), FI_MINOR(TESTED));
}

void dofi_version_check(uint32_t version)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (is_untested(version) && !atomic_flag_test_and_set(&logged))
		dofi_log(DOFI_WARN, DOFI_FAB,
			 "libfabric %u.%u is newer than %u.%u, the newest that "
			 "this provider was tested with",
			 FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(TESTED), FI_MINOR(TESTED));
}
