/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters that are always on: how they count. counters.c has their meaning. */
#ifndef DOFI_OBJ_TALLY_H
#define DOFI_OBJ_TALLY_H

#include <stdint.h>

/* Operations of one kind. */
struct dofi_tally {
	uint64_t ops, bytes;
};

static inline void dofi_tally_add(struct dofi_tally *t, uint64_t bytes)
{
	t->ops++;
	t->bytes += bytes;
}

/*
 * Counts without a lock, from several threads. It may lose a count to another thread, and costs no
 * more than an ordinary increment.
 */
static inline void dofi_count(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Like dofi_count(), for rare events that must be counted exactly. */
static inline void dofi_count_exactly(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
