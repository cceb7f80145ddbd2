/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Type-stable memory: objects and blocks that are reused but never unmapped.
 *
 * A handle that its owner freed, or a number that never was a handle, can be
 * looked up without touching foreign memory.
 */
#ifndef DOFI_BASE_POOL_H
#define DOFI_BASE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOFI_POOL_CHUNKS 27 /* no 32-bit number lies beyond the last */
#define DOFI_POOL_FIRST 64 /* objects in the first chunk; each next one doubles */

struct dofi_pool_chunk {
	char *base;
	size_t bytes;
};

struct dofi_pool {
	const char *name;
	size_t obj_size;
	void (*ctor)(void *obj);	/* once per object, when its memory is made */

	pthread_mutex_t lock;		/* the fields below */
	size_t stride;			/* set before the first chunk is there */
	void *free_head, *free_tail;	/* oldest first: a freed handle stays dead for long */
	size_t used;
	_Atomic unsigned n_chunks;	/* released after the chunk is filled in */
	struct dofi_pool_chunk chunk[DOFI_POOL_CHUNKS];
};

#define DOFI_POOL_INIT(name_, type_, ctor_)                                  \
	{ .name = (name_), .obj_size = sizeof(type_), .ctor = (ctor_),       \
	  .lock = PTHREAD_MUTEX_INITIALIZER }

/* Sits before each object, so that the object's own first word is free for its user. */
struct dofi_pool_head {
	void *self;		/* the object, scrambled: tells it from an address inside one */
	void *next_free;
	uint32_t index;
	uint32_t pad[11];
};

_Static_assert(sizeof(struct dofi_pool_head) == 64, "objects start on cache lines");

#define DOFI_POOL_SCRAMBLE 0x5aa5c33c0ff0aa55ULL

/* NULL without memory. The contents are what the constructor or the last user left. */
void *dofi_pool_get(struct dofi_pool *pool);
void dofi_pool_put(struct dofi_pool *pool, void *obj);

/* Object number @index, or NULL when there never was one. */
static inline void *dofi_pool_at(struct dofi_pool *pool, uint32_t index)
{
	unsigned n = atomic_load_explicit(&pool->n_chunks, memory_order_acquire);
	/* chunk c starts at number FIRST * (2^c - 1) */
	unsigned c = 63 - __builtin_clzll((uint64_t)index / DOFI_POOL_FIRST + 1);
	uint64_t within = index - DOFI_POOL_FIRST * ((1ull << c) - 1);

	if (c >= n)
		return NULL;
	return pool->chunk[c].base + within * pool->stride + sizeof(struct dofi_pool_head);
}

static inline uint32_t dofi_pool_index(const void *obj)
{
	return ((const struct dofi_pool_head *)obj - 1)->index;
}

/* Whether @p is the address of an object of @pool, free or in use; any @p is allowed. */
static inline bool dofi_pool_owns(struct dofi_pool *pool, const void *p)
{
	/* pairs with the release in chunk_add() */
	unsigned n = atomic_load_explicit(&pool->n_chunks, memory_order_acquire);
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct dofi_pool_chunk *c = &pool->chunk[i];
		uintptr_t off = (uintptr_t)p - (uintptr_t)c->base;

		if (off < c->bytes) {
			const struct dofi_pool_head *h =
				(const void *)((uintptr_t)p - sizeof(struct dofi_pool_head));

			return off >= sizeof(*h) && !((uintptr_t)p & 63) &&
			       (uintptr_t)h->self == ((uintptr_t)p ^ DOFI_POOL_SCRAMBLE);
		}
	}
	return false;
}

/* Blocks of any size, zeroed, aligned to 64 bytes, never unmapped. NULL without memory. */
void *dofi_block_get(size_t size);
void dofi_block_put(void *block, size_t size);

#endif
