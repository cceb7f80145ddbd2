/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pairing heap. The nodes are members of what it holds. */
#ifndef DOFI_BASE_HEAP_H
#define DOFI_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct dofi_heap_node {
	int64_t key;
	uint64_t order;			/* of insertion: decides between equal keys */
	struct dofi_heap_node *child;	/* the first child; children are not less */
	struct dofi_heap_node *next;	/* sibling */
	struct dofi_heap_node *prev;	/* sibling; of the first child, the parent */
};

/* All zero is an empty one. */
struct dofi_heap {
	struct dofi_heap_node *top;
	uint64_t inserted;
};

/*
 * Returns the node with the least key; of equal keys, the one that was inserted first. NULL if the
 * heap is empty.
 */
static inline struct dofi_heap_node *dofi_heap_top(const struct dofi_heap *heap)
{
	return heap->top;
}

void dofi_heap_insert(struct dofi_heap *heap, struct dofi_heap_node *node, int64_t key);
/* @node is in @heap. Amortised, the cost is logarithmic. */
void dofi_heap_remove(struct dofi_heap *heap, struct dofi_heap_node *node);

#endif
