/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of a queue's operations that the consumer has not dequeued. They count against the queue's
 * limit although their operations have ended, so that an EVD with room for as many events as its
 * queues have operations never overflows.
 */
#ifndef DOFI_WQ_UNREAD_H
#define DOFI_WQ_UNREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Any thread, no lock. Events may outlive their EP, and another EP may reuse its memory. So the
 * upper half of the word is the generation of the EP that the count in the lower half belongs to.
 */
struct dofi_unread {
	/* GCC aligns a struct of one such field to 4 bytes on i386, also if the field needs 8 */
	_Alignas(8) _Atomic uint64_t word;
};

_Static_assert(_Alignof(struct dofi_unread) == 8, "an atomic operation stays in a cache line");

/* The count of a queue without events for its operations. */
extern struct dofi_unread dofi_unread_none;

static inline uint32_t dofi_unread_count(const struct dofi_unread *unread)
{
	return (uint32_t)atomic_load_explicit(&unread->word, memory_order_relaxed);
}

static inline uint32_t dofi_unread_life(const struct dofi_unread *unread)
{
	return (uint32_t)(atomic_load_explicit(&unread->word, memory_order_relaxed) >> 32);
}

/* Begins another generation: the count is 0, and events of earlier generations do not change it. */
static inline void dofi_unread_renew(struct dofi_unread *unread)
{
	const uint64_t life = dofi_unread_life(unread) + 1u;

	atomic_store_explicit(&unread->word, life << 32, memory_order_relaxed);
}

/* Counts one event. */
static inline void dofi_unread_add(struct dofi_unread *unread)
{
	atomic_fetch_add_explicit(&unread->word, 1, memory_order_relaxed);
}

/* An event that was counted in the generation @life is dequeued. */
static inline void dofi_unread_done(struct dofi_unread *unread, uint32_t life)
{
	uint64_t word = atomic_load_explicit(&unread->word, memory_order_relaxed);

	while (word >> 32 == life &&
	       !atomic_compare_exchange_weak_explicit(&unread->word, &word, word - 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

#endif
