/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a fabric's device is in the machine: unknown, in builds without hwloc. */

#include "fab/info.h"

bool dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality)
{
	(void)info;
	(void)locality;
	return false;
}

void dofi_topo_bind(pthread_t thread, const struct fi_info *info)
{
	(void)thread;
	(void)info;
}
