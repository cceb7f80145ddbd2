/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pairing heap. The nodes are members of what it holds. */

#include "base/heap.h"

#include <stdbool.h>

static bool is_before(const struct dofi_heap_node *a, const struct dofi_heap_node *b)
{
	return a->key < b->key || (a->key == b->key && a->order < b->order);
}

/* Melds the heaps with tops @a and @b, each of which may be NULL. Returns the top. */
static struct dofi_heap_node *meld(struct dofi_heap_node *a, struct dofi_heap_node *b)
{
	struct dofi_heap_node *child;

	if (!a || !b)
		return a ? a : b;
	child = b;
	if (is_before(b, a)) {
		child = a;
		a = b;
	}
	child->next = a->child;
	if (child->next)
		child->next->prev = child;
	child->prev = a;
	a->child = child;
	return a;
}

/*
 * Melds @first and its siblings: first in pairs, then the pairs from the last to the first. Returns
 * the top.
 */
static struct dofi_heap_node *meld_siblings(struct dofi_heap_node *first)
{
	struct dofi_heap_node *pairs = NULL, *top = NULL;

	while (first) {
		struct dofi_heap_node *second = first->next;
		struct dofi_heap_node *rest = second ? second->next : NULL;
		struct dofi_heap_node *pair = meld(first, second);

		pair->next = pairs;
		pairs = pair;
		first = rest;
	}
	while (pairs) {
		struct dofi_heap_node *rest = pairs->next;

		top = meld(top, pairs);
		pairs = rest;
	}
	return top;
}

static void top_set(struct dofi_heap *heap, struct dofi_heap_node *top)
{
	if (top)
		top->next = top->prev = NULL;
	heap->top = top;
}

static void cut(struct dofi_heap_node *node)
{
	if (node->prev->child == node)
		node->prev->child = node->next;
	else
		node->prev->next = node->next;
	if (node->next)
		node->next->prev = node->prev;
}

void dofi_heap_insert(struct dofi_heap *heap, struct dofi_heap_node *node, int64_t key)
{
	*node = (struct dofi_heap_node){ .key = key, .order = heap->inserted++ };
	top_set(heap, meld(heap->top, node));
}

void dofi_heap_remove(struct dofi_heap *heap, struct dofi_heap_node *node)
{
	struct dofi_heap_node *children = meld_siblings(node->child);

	if (node == heap->top) {
		top_set(heap, children);
		return;
	}
	cut(node);
	top_set(heap, meld(heap->top, children));
}
