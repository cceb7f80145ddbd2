/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a fabric's device is in the machine: unknown, in builds without hwloc. */

#include "fab/topo.h"

bool dofi_topo_place(const struct fi_info *info, struct dofi_place *place)
{
	(void)info;
	(void)place;
	return false;
}

void dofi_topo_bind(pthread_t thread, const struct fi_info *info)
{
	(void)thread;
	(void)info;
}
