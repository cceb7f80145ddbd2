/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which shared memory is mapped at an address of this process. */
#ifndef DOFI_BASE_MAPS_H
#define DOFI_BASE_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* A position in shared memory. Equal in all processes that map it. */
struct dofi_shared {
	uint32_t major, minor;	/* the device of the file, or of anonymous shared memory */
	uint64_t inode;
	uint64_t offset;
};

/*
 * Finds what is mapped at @addr. Returns 0; -EFAULT if a part of the @len bytes is not mapped;
 * -EPERM if a part is private to this process; or another negative errno if /proc cannot be read.
 */
int dofi_shared_find(const void *addr, size_t len, struct dofi_shared *shared);

#endif
