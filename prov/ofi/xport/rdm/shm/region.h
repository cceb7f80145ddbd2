/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of libfabric's shm endpoints, as far as a process that dies in there can damage it.
 *
 * libfabric's shm assumes that a process which has begun to send finishes. A process that is killed
 * in between leaves a spin lock taken, and, since libfabric 1.18, an entry of the command queue
 * claimed but never committed, behind which the owner of the queue reads nothing any more. Both can
 * be undone from outside while nobody else is in the memory, which xport/rdm/shm/lock.h ensures.
 */
#ifndef DOFI_SHM_REGION_H
#define DOFI_SHM_REGION_H

#include <stddef.h>

/*
 * Undoes what a dead process left half done in the memory of all endpoints of this process whose
 * files in DOFI_SHM_FOLDER are named @name and a dot. No other thread of any process may be in that
 * memory. 0, or -ENOTSUP if the layout of one of them is not known: that memory may block every
 * process that uses it.
 */
int dofi_regions_repair(const char *name);

/* Repairs one endpoint's memory of @len bytes; as dofi_regions_repair(). */
int dofi_region_repair(void *at, size_t len);

#endif
