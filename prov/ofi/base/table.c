/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash table and a pairing heap of objects that have a link in them. */

#include "base/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define FIRST_BUCKETS 64

/* FNV-1a, with its high bits folded into the low ones, which select the bucket. */
uint32_t dofi_hash(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t hash = 2166136261u;

	while (len--)
		hash = (hash ^ *p++) * 16777619u;
	return hash ^ hash >> 16;
}

static struct dofi_table_link **bucket_of(const struct dofi_table *t, uint32_t hash)
{
	return &t->bucket[hash & (t->n_buckets - 1)];
}

static void insert(struct dofi_table *t, struct dofi_table_link *link)
{
	struct dofi_table_link **bucket = bucket_of(t, link->hash);

	link->next = *bucket;
	*bucket = link;
}

/* Without memory the table stays as it is: its buckets only have more objects. */
static void grow(struct dofi_table *t)
{
	struct dofi_table more = {
		.n_buckets = t->n_buckets ? 2 * t->n_buckets : FIRST_BUCKETS, .n = t->n,
	};
	struct dofi_table_link *link, *next;
	uint32_t i;

	more.bucket = calloc(more.n_buckets, sizeof(more.bucket[0]));
	if (!more.bucket)
		return;
	for (i = 0; i < t->n_buckets; i++)
		for (link = t->bucket[i]; link; link = next) {
			next = link->next;
			insert(&more, link);
		}
	free(t->bucket);
	*t = more;
}

int dofi_table_add(struct dofi_table *t, struct dofi_table_link *link, uint32_t hash)
{
	if (t->n >= t->n_buckets)
		grow(t);
	if (!t->n_buckets)
		return -ENOMEM;
	link->hash = hash;
	insert(t, link);
	t->n++;
	return 0;
}

void dofi_table_remove(struct dofi_table *t, struct dofi_table_link *link)
{
	struct dofi_table_link **at = bucket_of(t, link->hash);

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	t->n--;
}

/* @link, or the first behind it with @hash. */
static struct dofi_table_link *match(struct dofi_table_link *link, uint32_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct dofi_table_link *dofi_table_find(const struct dofi_table *t, uint32_t hash)
{
	return t->n_buckets ? match(*bucket_of(t, hash), hash) : NULL;
}

struct dofi_table_link *dofi_table_next(const struct dofi_table_link *link)
{
	return match(link->next, link->hash);
}

void dofi_table_each(struct dofi_table *t, void (*fn)(struct dofi_table_link *link, void *arg),
		     void *arg)
{
	struct dofi_table_link *link, *next;
	uint32_t i;

	for (i = 0; i < t->n_buckets; i++)
		for (link = t->bucket[i]; link; link = next) {
			next = link->next;
			fn(link, arg);
		}
}

void dofi_table_fini(struct dofi_table *t)
{
	free(t->bucket);
	*t = (struct dofi_table){ .n = 0 };
}

/* The heap */

/* Melds the heaps with tops @a and @b, each of which may be NULL. Returns the top. */
static struct dofi_heap_node *meld(struct dofi_heap_node *a, struct dofi_heap_node *b)
{
	struct dofi_heap_node *child;

	if (!a || !b)
		return a ? a : b;
	child = b;
	if (b->key < a->key || (b->key == a->key && b->order < a->order)) {
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

static void top_set(struct dofi_heap *heap, struct dofi_heap_node *top)
{
	if (top)
		top->next = top->prev = NULL;
	heap->top = top;
}

void dofi_heap_insert(struct dofi_heap *heap, struct dofi_heap_node *node, int64_t key)
{
	*node = (struct dofi_heap_node){ .key = key, .order = heap->inserted++ };
	top_set(heap, meld(heap->top, node));
}

/* Melds the children of @node in pairs, and then the pairs from the last on. */
void dofi_heap_remove(struct dofi_heap *heap, struct dofi_heap_node *node)
{
	struct dofi_heap_node *child, *next, *pair, *pairs = NULL, *children = NULL;

	for (child = node->child; child; child = next) {
		next = child->next ? child->next->next : NULL;
		pair = meld(child, child->next);
		pair->next = pairs;
		pairs = pair;
	}
	for (; pairs; pairs = next) {
		next = pairs->next;
		children = meld(children, pairs);
	}
	if (node == heap->top) {
		top_set(heap, children);
		return;
	}
	if (node->prev->child == node)
		node->prev->child = node->next;
	else
		node->prev->next = node->next;
	if (node->next)
		node->next->prev = node->prev;
	top_set(heap, meld(heap->top, children));
}
