/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges of addresses: the only arithmetic on an address and a length that a program or a peer
 * chose. No function forms a sum that wraps.
 */
#ifndef DOFI_BASE_RANGE_H
#define DOFI_BASE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Linux has the memory of processes below this address, on all 64-bit processors but sparc64.
 * Offsets into zero-based regions are below it, too, so that fabrics can add the region's address.
 */
#define DOFI_RANGE_MOST 0xffff000000000000u

/* Returns whether a process, perhaps a peer, can have @len bytes at @addr. */
static inline bool dofi_range_exists(uint64_t addr, uint64_t len)
{
	return addr <= DOFI_RANGE_MOST && len <= DOFI_RANGE_MOST - addr;
}

/* Returns whether this process, of 32 or 64 bits, can have @len bytes at @addr. */
static inline bool dofi_range_is_local(const void *addr, uint64_t len)
{
	return dofi_range_exists((uintptr_t)addr, len) && len <= UINTPTR_MAX - (uintptr_t)addr;
}

/* Returns whether the @size bytes in front of @end include all of the @len bytes at @addr. */
static inline bool dofi_range_has(uint64_t end, uint64_t size, uint64_t addr, uint64_t len)
{
	const uint64_t rest = end - addr;	/* greater than @size if @addr is outside */

	return rest <= size && len <= rest;
}

/* Returns whether two existing ranges, @a_len bytes at @a and @b_len at @b, overlap. */
static inline bool dofi_ranges_overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

static inline uint64_t dofi_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the sum of two lengths, or the greatest length if that is smaller. */
static inline uint64_t dofi_length_sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif
