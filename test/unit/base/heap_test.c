/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a heap returns, compared with a search through all its nodes. */

#include "base/heap.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>

#define NODES 500

static struct dofi_heap heap;
static struct dofi_heap_node node[NODES];
static bool held[NODES];

static void insert(unsigned i, int64_t key)
{
	dofi_heap_insert(&heap, &node[i], key);
	held[i] = true;
}

static void take(unsigned i)
{
	dofi_heap_remove(&heap, &node[i]);
	held[i] = false;
}

static struct dofi_heap_node *searched(void)
{
	struct dofi_heap_node *least = NULL;
	unsigned i;

	for (i = 0; i < NODES; i++)
		if (held[i] && (!least || node[i].key < least->key ||
				(node[i].key == least->key && node[i].order < least->order)))
			least = &node[i];
	return least;
}

Test(heap, an_empty_one_has_no_top)
{
	cr_expect(!dofi_heap_top(&heap));
	insert(0, 5);
	take(0);
	cr_expect(!dofi_heap_top(&heap));
}

Test(heap, the_least_comes_first)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, (int64_t)i * 7919 % NODES);
	for (i = 0; i < NODES; i++) {
		cr_assert(dofi_heap_top(&heap) && dofi_heap_top(&heap)->key == i);
		take(dofi_heap_top(&heap) - node);
	}
	cr_expect(!dofi_heap_top(&heap));
}

Test(heap, equal_keys_come_as_inserted)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, -1);
	for (i = 0; i < NODES; i++) {
		cr_assert(dofi_heap_top(&heap) == &node[i]);
		take(i);
	}
}

Test(heap, any_may_be_removed_at_any_time)
{
	unsigned step;

	srandom(4711);
	for (step = 0; step < 20000; step++) {
		const unsigned i = random() % NODES;

		if (held[i])
			take(i);
		else
			insert(i, random() % 100);
		if (step % 16 == 0)
			take(searched() - node);
		cr_assert(dofi_heap_top(&heap) == searched(), "step %u", step);
	}
}

/* Each of many connections restarts its timeout again and again. */
Test(heap, a_removed_node_may_be_inserted_again)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, i);
	for (i = 0; i < NODES; i++) {
		take(i);
		insert(i, NODES + i);
	}
	for (i = 0; i < NODES; i++) {
		cr_assert(dofi_heap_top(&heap) == &node[i]);
		take(i);
	}
}
