/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Type-stable memory: objects and blocks that are reused but never unmapped. */

#include "base/pool.h"

#include <pthread.h>
#include <stdlib.h>

static struct dofi_pool_head *head_of(void *obj)
{
	return (struct dofi_pool_head *)obj - 1;
}

static void free_append(struct dofi_pool *pool, void *obj) DOFI_NEEDS(pool->lock)
{
	head_of(obj)->next_free = NULL;
	if (pool->free_tail)
		head_of(pool->free_tail)->next_free = obj;
	else
		pool->free_head = obj;
	pool->free_tail = obj;
}

/* Locks the lists of free blocks, and the list of pools. */
static struct dofi_mutex block_lock;
static struct dofi_pool *pools DOFI_GUARDED_BY(block_lock);

/*
 * Another thread of the parent may have held any lock, also one inside of an object. So the child
 * has none of the objects. Their memory stays reachable, for leak checkers.
 */
static void in_child(void) DOFI_UNCHECKED_LOCKS
{
	struct dofi_pool *pool;
	unsigned c;

	for (pool = pools; pool; pool = pool->next) {
		for (c = 0; c < pool->n_chunks; c++)
			atomic_store(&pool->chunk[c].span, 0);
		pool->free_head = pool->free_tail = NULL;
		pool->used = 0;
		pool->unmade = 0;
		dofi_mutex_init(&pool->lock);
	}
	dofi_mutex_init(&block_lock);
}

static void handler_install(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void pool_register(struct dofi_pool *pool)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, handler_install);
	dofi_mutex_lock(&block_lock);
	pool->next = pools;
	pools = pool;
	dofi_mutex_unlock(&block_lock);
}

/* Makes DOFI_POOL_FIRST objects, if need be in a new chunk. Untouched memory takes no pages. */
static int objects_add(struct dofi_pool *pool) DOFI_NEEDS(pool->lock)
{
	struct dofi_pool_chunk *chunk;
	struct dofi_pool_head *head;
	uint32_t first, made, i;
	size_t count;
	char *base;

	if (!pool->unmade) {
		count = (size_t)DOFI_POOL_FIRST << pool->n_chunks;
		if (pool->n_chunks == DOFI_POOL_CHUNKS)
			return -1;
		base = aligned_alloc(64, count * pool->stride);
		if (!base)
			return -1;
		if (!pool->n_chunks)
			pool_register(pool);
		__atomic_store_n(&pool->chunk[pool->n_chunks++].first,
				 base + sizeof(struct dofi_pool_head), __ATOMIC_RELAXED);
		pool->unmade = count;
	}
	chunk = &pool->chunk[pool->n_chunks - 1];
	base = chunk->first - sizeof(struct dofi_pool_head);
	first = DOFI_POOL_FIRST * ((1u << (pool->n_chunks - 1)) - 1);
	made = (DOFI_POOL_FIRST << (pool->n_chunks - 1)) - pool->unmade;
	for (i = made; i < made + DOFI_POOL_FIRST; i++) {
		head = (struct dofi_pool_head *)(base + i * pool->stride);
		memset(head, 0, pool->stride);
		head->self = (uintptr_t)(head + 1) ^ DOFI_POOL_SCRAMBLE;
		head->index = first + i;
		if (pool->ctor)
			pool->ctor(head + 1);
		free_append(pool, head + 1);
	}
	pool->unmade -= DOFI_POOL_FIRST;
	/* pairs with the acquire in dofi_chunk_has() and dofi_pool_at() */
	atomic_store_explicit(&chunk->span, i * pool->stride - sizeof(struct dofi_pool_head),
			      memory_order_release);
	return 0;
}

bool dofi_pool_later_has(const struct dofi_pool *pool, const void *p)
{
	unsigned c;

	for (c = 1; c < DOFI_POOL_CHUNKS; c++)
		if (dofi_chunk_has(&pool->chunk[c], p))
			return true;
	return false;
}

void *dofi_pool_later_at(const struct dofi_pool *pool, uint32_t index)
{
	/* chunk c starts at number FIRST * (2^c - 1) */
	unsigned c = 63 - __builtin_clzll((uint64_t)index / DOFI_POOL_FIRST + 1);
	uint64_t within = index - DOFI_POOL_FIRST * ((1ull << c) - 1);

	if (c >= DOFI_POOL_CHUNKS || within * pool->stride >=
	    atomic_load_explicit(&pool->chunk[c].span, memory_order_acquire))
		return NULL;
	return pool->chunk[c].first + within * pool->stride;
}

/* In a forked child the chunks of the parent are empty. */
void *dofi_pool_next(const struct dofi_pool *pool, uint32_t *index)
{
	uint64_t first = 0, n;
	unsigned c;

	for (c = 0; c < DOFI_POOL_CHUNKS; first += (uint64_t)DOFI_POOL_FIRST << c, c++) {
		n = (atomic_load_explicit(&pool->chunk[c].span, memory_order_acquire) +
		     sizeof(struct dofi_pool_head)) / pool->stride;
		if (!n || *index >= first + n)
			continue;
		if (*index < first)
			*index = (uint32_t)first;
		return pool->chunk[c].first + (*index - first) * pool->stride;
	}
	return NULL;
}

void *dofi_pool_get(struct dofi_pool *pool)
{
	void *obj = NULL;

	dofi_mutex_lock(&pool->lock);
	if (pool->free_head || !objects_add(pool)) {
		obj = pool->free_head;
		pool->free_head = head_of(obj)->next_free;
		if (!pool->free_head)
			pool->free_tail = NULL;
		pool->used++;
	}
	dofi_mutex_unlock(&pool->lock);
	return obj;
}

void dofi_pool_put(struct dofi_pool *pool, void *obj)
{
	dofi_mutex_lock(&pool->lock);
	free_append(pool, obj);
	pool->used--;
	dofi_mutex_unlock(&pool->lock);
}

/* Blocks: a free list for each power of two */

#define BLOCK_CLASSES (sizeof(size_t) > 4 ? 40 : 31)

struct free_block {
	struct free_block *next;
};

static struct free_block *block_free[BLOCK_CLASSES] DOFI_GUARDED_BY(block_lock);

static unsigned block_class(size_t size)
{
	return size <= 64 ? 6 : 64 - __builtin_clzll(size - 1);
}

void *dofi_block_get(size_t size)
{
	unsigned c = block_class(size);
	struct free_block *b;

	if (c >= BLOCK_CLASSES)
		return NULL;
	dofi_mutex_lock(&block_lock);
	b = block_free[c];
	if (b)
		block_free[c] = b->next;
	dofi_mutex_unlock(&block_lock);
	if (!b)
		b = aligned_alloc(64, (size_t)1 << c);
	if (b)
		memset(b, 0, (size_t)1 << c);
	return b;
}

void dofi_block_put(void *block, size_t size)
{
	struct free_block *b = block;
	unsigned c = block_class(size);

	if (!b)
		return;
	dofi_mutex_lock(&block_lock);
	b->next = block_free[c];
	block_free[c] = b;
	dofi_mutex_unlock(&block_lock);
}
