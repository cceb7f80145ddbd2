/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which shared memory is mapped at an address of this process. */

#include "base/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* A line of /proc/self/maps. */
struct mapping {
	uint64_t start, end;
	bool is_shared;
	struct dofi_shared object;
};

static bool mapping_read(FILE *maps, struct mapping *m)
{
	char kind = 0;
	int n;

	n = fscanf(maps, "%" SCNx64 "-%" SCNx64 " %*c%*c%*c%c %" SCNx64 " %" SCNx32 ":%" SCNx32
		   " %" SCNu64 "%*[^\n]", &m->start, &m->end, &kind, &m->object.offset,
		   &m->object.major, &m->object.minor, &m->object.inode);
	m->is_shared = kind == 's';
	return n == 7;
}

/* The file lists mappings in the order of addresses. */
static int find_in(FILE *maps, uint64_t addr, uint64_t end, struct dofi_shared *shared)
{
	struct mapping m = { .end = 0 };
	uint64_t at = addr;

	while (at < end && mapping_read(maps, &m)) {
		if (m.end <= at)
			continue;
		if (m.start > at)
			return -EFAULT;
		if (!m.is_shared)
			return -EPERM;
		if (at == addr) {
			*shared = m.object;
			shared->offset += addr - m.start;
		}
		at = m.end;
	}
	return at < end ? -EFAULT : 0;
}

int dofi_shared_find(const void *addr, size_t len, struct dofi_shared *shared)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int ret;

	if (!maps)
		return -errno;
	ret = find_in(maps, (uintptr_t)addr, (uintptr_t)addr + len, shared);
	fclose(maps);
	return ret;
}
