/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash table, which doubles when it is full, and a pairing heap. Not thread-safe. */
#ifndef DOFI_BASE_TABLE_H
#define DOFI_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* In an object of a table; the table's while the object is in it. */
struct dofi_table_link {
	struct dofi_table_link *next;
	uint32_t hash;
};

/* All zero at first. */
struct dofi_table {
	struct dofi_table_link **bucket;
	uint32_t n_buckets;		/* 0, or a power of two */
	uint32_t n;			/* objects */
};

/* A hash of @len bytes. */
uint32_t dofi_hash(const void *bytes, size_t len);

/* Returns 0, or -ENOMEM if the table has no memory for its first object. */
int dofi_table_add(struct dofi_table *table, struct dofi_table_link *link, uint32_t hash);
void dofi_table_remove(struct dofi_table *table, struct dofi_table_link *link);

/* The first object with @hash, and the next with the hash of @link; NULL: there is none. */
struct dofi_table_link *dofi_table_find(const struct dofi_table *table, uint32_t hash);
struct dofi_table_link *dofi_table_next(const struct dofi_table_link *link);

/* Calls @fn for each object, which @fn may remove, and free. */
void dofi_table_each(struct dofi_table *table, void (*fn)(struct dofi_table_link *link, void *arg),
		     void *arg);

/* Frees the table's memory, and makes it all zero. Its objects stay. */
void dofi_table_fini(struct dofi_table *table);

/* A pairing heap. The nodes are members of its elements. */

struct dofi_heap_node {
	int64_t key;
	uint64_t order;			/* of insertion: decides between equal keys */
	struct dofi_heap_node *child;	/* the first child; children are not less */
	struct dofi_heap_node *next;	/* sibling */
	struct dofi_heap_node *prev;	/* sibling; of the first child, the parent */
};

/* All zero is an empty one. */
struct dofi_heap {
	struct dofi_heap_node *top;	/* with the least key, of equal keys the oldest; or NULL */
	uint64_t inserted;
};

void dofi_heap_insert(struct dofi_heap *heap, struct dofi_heap_node *node, int64_t key);
/* @node is in @heap. Amortised, the cost is logarithmic. */
void dofi_heap_remove(struct dofi_heap *heap, struct dofi_heap_node *node);

#endif
