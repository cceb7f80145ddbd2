/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric's device is in the machine. Built with hwloc (topo.c), or without, and then
 * nothing is known (topo_none.c).
 */
#ifndef DOFI_FAB_TOPO_H
#define DOFI_FAB_TOPO_H

#include <pthread.h>
#include <stdbool.h>

struct fi_info;

struct dofi_locality {
	int node;		/* the NUMA node near the device, as the system numbers them */
	unsigned distance;	/* from where the calling thread may run; 10 is the same node */
};

/*
 * Whether it is known where the device of @info is; *@place is written only then. The
 * first call in a process looks at the machine, which takes milliseconds if it has several
 * nodes. Choosing a fabric calls it, before there is any thread of ours that a fork could
 * meet; so a child finds it done.
 */
bool dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality);

/*
 * Lets @thread run only near the device of @info, as far as the calling thread may run
 * there; does nothing if that is nowhere, or DAT_OFI_NUMA says so.
 */
void dofi_topo_bind(pthread_t thread, const struct fi_info *info);

#endif
