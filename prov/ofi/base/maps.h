/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What memory is behind an address of this process, as far as others can map it, too. */
#ifndef DOFI_BASE_MAPS_H
#define DOFI_BASE_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* A place in memory that processes share. Equal in each of them, wherever they map it. */
struct dofi_shared {
	uint32_t major, minor;	/* the device of the object: a file, or what Linux makes of none */
	uint64_t inode;
	uint64_t offset;
};

/*
 * Where [@addr, @addr + @len) begins. 0; -EFAULT when a part of it is not mapped, -EPERM
 * when one is private to this process, or another negative errno when Linux does not tell.
 */
int dofi_shared_find(const void *addr, size_t len, struct dofi_shared *shared);

#endif
