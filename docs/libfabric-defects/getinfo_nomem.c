/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fi_getinfo() crashes when an allocation fails.
 *
 * In each round a process lists all fabrics twice: the second time, one allocation after the other
 * fails, a later one in each round.
 */
#include "defect.h"

#define ROUNDS 4000

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static volatile unsigned *next;	/* the allocation that fails in this round */
static unsigned left;		/* allocations until one fails; 0: none does */

static bool fails(void)
{
	return left && !--left;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}

static void list_twice(void)
{
	struct fi_info *info;

	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	fi_freeinfo(info);
	left = *next;
	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	if (left) {
		left = 0;
		end(SKIP, "no allocation fails any more");
	}
}

int main(void)
{
	int status = ABSENT;

	next = shared(sizeof(*next));
	rounds = next;
	while (status == ABSENT && ++*next < ROUNDS)
		status = bounded(list_twice, 20);
	return status == SKIP ? ABSENT : status;
}
