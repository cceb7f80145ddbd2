/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Repairs the memory of libfabric's shm endpoints after a process died while it sent to them. */

#include "xport/rdm/shm/region.h"

#include "base/log.h"
#include "xport/rdm/shm/files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The layout of the memory by its version, which is the first byte. Offsets in bytes. */
struct layout {
	uint8_t version;
	uint16_t lock;			/* of the spin lock */
	/* of the word with the offset of the command queue; 0: no such queue */
	uint16_t queue;
	uint16_t entry;			/* the size of an entry of the command queue */
};

/* From libfabric's prov/shm/src/smr_util.h, tested with the versions named here. */
static const struct layout layouts[] = {
	{ .version = 4, .lock = 24 },				/* 1.17: sends are under the lock */
	{ .version = 7, .lock = 56, .queue = 80, .entry = 576 },	/* 1.21, 1.22 */
	{ .version = 8, .lock = 56, .queue = 80, .entry = 576 },	/* 2.0 to 2.4 */
	{ .version = 10, .lock = 64, .queue = 128, .entry = 384 },	/* 2.6 */
};

/* The longest part of the memory that a layout's offsets reach into. */
#define HEAD 192

/* libfabric's ofi_atomic_queue.h: a bounded queue of several producers. */
struct queue {
	_Alignas(64) _Atomic int64_t write_pos;
	_Alignas(64) _Atomic int64_t read_pos;
	_Alignas(64) int32_t size;
	int32_t mask;
	_Alignas(64) unsigned char entries[];
};

struct entry {
	/* the position it is free for; one more once it is committed */
	_Atomic int64_t seq;
	bool noop;			/* the reader skips it */
};

static const struct layout *layout_of(const unsigned char *region)
{
	size_t i;

	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == region[0])
			return &layouts[i];
	return NULL;
}

static bool is_queue(const struct queue *q, size_t len, const struct layout *layout)
{
	const int64_t written = q->write_pos - q->read_pos;

	return q->size > 0 && !(q->size & (q->size - 1)) && q->mask == q->size - 1 &&
	       (size_t)q->size <= (len - sizeof(*q)) / layout->entry && written >= 0 &&
	       written <= q->size;
}

/* Returns the command queue, or NULL if there is none at the offset. */
static struct queue *queue_find(unsigned char *region, size_t len, const struct layout *layout)
{
	struct queue *q;
	size_t at;

	memcpy(&at, region + layout->queue, sizeof(at));
	if (at % _Alignof(struct queue) || at < HEAD || at > len || len - at < sizeof(*q))
		return NULL;
	q = (struct queue *)(region + at);
	return is_queue(q, len - at, layout) ? q : NULL;
}

/*
 * Turns claimed entries into commands that do nothing: the process that would commit them is dead.
 */
static unsigned queue_repair(struct queue *q, const struct layout *layout)
{
	unsigned repaired = 0;
	int64_t pos;

	for (pos = q->read_pos; pos < q->write_pos; pos++) {
		struct entry *e =
			(struct entry *)(q->entries + (size_t)(pos & q->mask) * layout->entry);

		if (atomic_load(&e->seq) != pos)
			continue;
		e->noop = true;
		atomic_store_explicit(&e->seq, pos + 1, memory_order_release);
		repaired++;
	}
	return repaired;
}

static bool lock_open(pthread_spinlock_t *lock)
{
	const bool was_taken = pthread_spin_trylock(lock);

	pthread_spin_unlock(lock);
	return was_taken;
}

int dofi_region_repair(void *at, size_t len)
{
	unsigned char *region = at;
	const struct layout *layout = len < HEAD ? NULL : layout_of(region);
	struct queue *q = NULL;
	unsigned entries = 0;
	bool was_taken;

	if (layout && layout->queue)
		q = queue_find(region, len, layout);
	if (!layout || (layout->queue && !q)) {
		dofi_log(DOFI_ERR, DOFI_FAB,
			 "a process died within an endpoint's memory, whose layout "
			 "(version %u) is not known",
			 len ? region[0] : 0);
		return -ENOTSUP;
	}
	was_taken = lock_open((pthread_spinlock_t *)(region + layout->lock));
	if (q)
		entries = queue_repair(q, layout);
	if (was_taken || entries)
		dofi_log(DOFI_INFO, DOFI_FAB, "a process died within an endpoint's memory: %s, %u "
			 "unfinished commands skipped", was_taken ? "lock opened" : "no lock taken",
			 entries);
	return 0;
}

int dofi_regions_repair(const char *name)
{
	char line[512], path[256], want[DOFI_SHM_NAME + sizeof(DOFI_SHM_FOLDER) + 2];
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end, offset;
	int len, ret = 0;

	if (!maps)
		return -ENOTSUP;
	/* the files may have been removed, but the mappings still have their names */
	len = snprintf(want, sizeof(want), "%s/%s.", DOFI_SHM_FOLDER, name);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx rw-s %lx %*s %*s %255s", &begin, &end, &offset, path)
		    == 4 && !offset && !strncmp(path, want, len) &&
		    dofi_region_repair((void *)begin, end - begin))
			ret = -ENOTSUP;
	fclose(maps);
	return ret;
}
