/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a fabric's device is in the machine: topo.c, or topo_none.c in builds without hwloc. */
#ifndef DOFI_FAB_TOPO_H
#define DOFI_FAB_TOPO_H

#include <pthread.h>
#include <stdbool.h>

struct fi_info;

struct dofi_locality {
	int node;		/* the kernel's number of the NUMA node near the device */
	/* from the nodes where the calling thread may run; 10: the device's own node */
	unsigned distance;
};

/*
 * Returns whether the location of the device of @info is known, and sets *@locality. The first call
 * reads the topology, in milliseconds; choosing a fabric makes it before any thread runs or forks.
 */
bool dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality);

/* Binds @thread to the processors near the device of @info, unless DAT_OFI_NUMA disables it. */
void dofi_topo_bind(pthread_t thread, const struct fi_info *info);

#endif
