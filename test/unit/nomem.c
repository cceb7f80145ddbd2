/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An allocation that fails when a test requests it: the allocators, by the linker's --wrap. */

#include "nomem.h"

#include <limits.h>
#include <rdma/fabric.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int left = INT_MAX;	/* allocations until the one that fails */

void nomem_after(int n)
{
	atomic_store(&left, n);
}

bool nomem_failed(void)
{
	return atomic_exchange(&left, INT_MAX) < 0;
}

static bool fails(void)
{
	return atomic_load(&left) != INT_MAX && !atomic_fetch_sub(&left, 1);
}

#define WRAP(type, name, parameters, ...)          \
	type __real_##name parameters;             \
	type __wrap_##name parameters;             \
	type __wrap_##name parameters              \
	{                                          \
		if (fails())                       \
			return NULL;               \
		return __real_##name(__VA_ARGS__); \
	}

WRAP(void *, malloc, (size_t size), size)
WRAP(void *, calloc, (size_t n, size_t size), n, size)
WRAP(void *, realloc, (void *p, size_t size), p, size)
WRAP(char *, strdup, (const char *s), s)
WRAP(void *, tsearch, (const void *key, void **root, int (*compare)(const void *, const void *)),
     key, root, compare)
WRAP(struct fi_info *, fi_dupinfo, (const struct fi_info *info), info)
