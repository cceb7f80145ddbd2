/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports a lock that its user does not hold. Only in builds with --enable-debug. */

#include "base/owner.h"

#include <stdio.h>
#include <stdlib.h>

void dofi_owner_abort(const char *function, const char *lock, const char *wrong)
{
	fprintf(stderr, "%s: %s %s\n", function, lock, wrong);
	abort();
}
