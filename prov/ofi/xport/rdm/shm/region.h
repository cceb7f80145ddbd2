/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Repairs the memory of libfabric's shm endpoints after a process died while it sent to them.
 *
 * Such a process leaves a spin lock locked, and, since libfabric 1.18, an entry of the command
 * queue claimed but not committed, behind which the owner of the queue reads nothing. Both can be
 * undone while no other process accesses the memory, which the robust lock ensures
 * (xport/rdm/shm/lock.h).
 */
#ifndef DOFI_SHM_REGION_H
#define DOFI_SHM_REGION_H

#include <stddef.h>

/*
 * Repairs the memory of all endpoints of this process that have files in DOFI_SHM_FOLDER with names
 * that begin with @name and a dot. Call with the robust lock held. Returns 0, or -ENOTSUP if the
 * layout of one of them is unknown: that memory may block every process that uses it.
 */
int dofi_regions_repair(const char *name);

/* Repairs the memory of one endpoint, of @len bytes. Returns as dofi_regions_repair(). */
int dofi_region_repair(void *at, size_t len);

#endif
