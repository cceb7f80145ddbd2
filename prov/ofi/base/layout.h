/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The layout of memory: cache lines, and from a member to the structure that contains it. */
#ifndef DOFI_BASE_LAYOUT_H
#define DOFI_BASE_LAYOUT_H

#include <stddef.h>

/* Returns the @type that contains @pointer as its @member. @pointer is not NULL. */
#define DOFI_CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/*
 * The longest cache line of the architecture's processors. Data that different processors write has
 * lines of its own. Processes with different lengths have no ring: their memory has other sizes.
 */
#if defined(DOFI_CACHE_LINE)
/* a test chose it */
#elif defined(__s390x__)
#define DOFI_CACHE_LINE 256
#elif defined(__aarch64__) || defined(__powerpc64__)
#define DOFI_CACHE_LINE 128
#else
#define DOFI_CACHE_LINE 64
#endif

/*
 * Begins to fetch the cache line of @p for a store. GCC compiles __builtin_prefetch() to a fetch
 * for a load unless an option names a processor with prefetchw. Other processors ignore prefetchw.
 */
static inline void dofi_fetch_to_store(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif
