/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The length of a cache line. */
#ifndef DOFI_BASE_LINE_H
#define DOFI_BASE_LINE_H

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

#endif
