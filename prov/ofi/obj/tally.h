/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters that are always on: how they are kept. What each means is in counters.c. */
#ifndef DOFI_OBJ_TALLY_H
#define DOFI_OBJ_TALLY_H

#include "base/mutex_tsan.h"

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
 * Counts where several threads may do so without a lock: a count may be lost to another thread. Atomic for
 * ThreadSanitizer only, as compilers make three instructions of an atomic load and store, and one of this.
 */
static inline void dofi_count(uint64_t *counter)
{
#if DOFI_HAVE_TSAN
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
#else
	++*counter;
#endif
}

/* The same for what is rare and must be exact. */
static inline void dofi_count_exactly(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
