/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether this process may write to memory, without writing to it. */

#include "base/mapped.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Whether the pages @at and @last, which may be the same, are mapped for writing. The file lists
 * mappings in the order of addresses.
 */
static bool list_has(uintptr_t at, uintptr_t last)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t from, to;
	bool has = !maps;
	char write;

	while (maps && !has && fscanf(maps, "%" SCNx64 "-%" SCNx64 " %*c%c%*[^\n]", &from, &to,
				      &write) == 3) {
		if (at >= to)
			continue;
		if (at < from || write != 'w')
			break;
		has = last < to;
		at = last;
	}
	if (maps)
		fclose(maps);
	return has;
}

/*
 * Fails for a page without write access, but also for memory of a device, where the system cannot
 * supply a page now, and before Linux 5.14. Then the list decides.
 */
static bool populate(uintptr_t page, size_t size)
{
	return !madvise((void *)page, size, MADV_POPULATE_WRITE);
}

/* Whether the advice has an effect: emulators ignore it, and report success even for code. */
static bool is_followed(size_t size)
{
	static _Atomic int followed = -1;

	if (followed < 0)
		followed = !populate((uintptr_t)is_followed & ~(size - 1), size);
	return followed;
}

bool dofi_mapped_to_write(const void *addr, size_t len)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = (uintptr_t)addr & ~(size - 1);
	const uintptr_t last = ((uintptr_t)addr + (len - 1)) & ~(size - 1);

	return (is_followed(size) && populate(first, size) &&
		(last == first || populate(last, size))) ||
	       list_has(first, last);
}
