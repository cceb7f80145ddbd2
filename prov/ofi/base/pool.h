/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Type-stable memory: objects and blocks that are reused but never unmapped.
 *
 * A handle that its owner freed, or a number that never was a handle, can be
 * looked up without touching foreign memory.
 */
#ifndef DOFI_BASE_POOL_H
#define DOFI_BASE_POOL_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DOFI_POOL_CHUNKS 27 /* no 32-bit number lies beyond the last */
#define DOFI_POOL_FIRST 64 /* objects in the first chunk; each next one doubles. As many are made at a time */

struct dofi_pool_chunk {
	char *first;			/* its first object; written once, maybe while it is read */
	_Atomic size_t span;		/* bytes to the end of the last object made; released when that is filled in */
};

struct dofi_pool {
	const char *name;
	size_t stride;			/* from one object to the next */
	void (*ctor)(void *obj);	/* once per object, when its memory is made */

	struct dofi_mutex lock;		/* the fields below */
	void *free_head, *free_tail;	/* oldest first: a freed handle stays dead for long */
	size_t used;
	unsigned n_chunks;
	uint32_t unmade;		/* objects of the last chunk that are still untouched memory */

	struct dofi_pool_chunk chunk[DOFI_POOL_CHUNKS];	/* read without the lock */
};

#define DOFI_POOL_INIT(name_, type_, ctor_)                                  \
	{ .name = (name_), .ctor = (ctor_),                                  \
	  .stride = sizeof(struct dofi_pool_head) + ((sizeof(type_) + 63) & ~(size_t)63) }

/* Sits before each object, so that the object's own first word is free for its user. */
struct dofi_pool_head {
	uintptr_t self;		/* the address and tag of the object, scrambled: no address inside an object matches */
	void *next_free;
	uint32_t index;
	uint32_t pad[11];
};

_Static_assert(sizeof(struct dofi_pool_head) == 64, "objects start on cache lines");

#define DOFI_POOL_SCRAMBLE 0x5aa5c33c0ff0aa55ULL
/* Tags are less; objects are aligned to as many bytes. */
#define DOFI_POOL_TAGS 64

/* NULL without memory. The contents are what the constructor or the last user left. */
void *dofi_pool_get(struct dofi_pool *pool);
void dofi_pool_put(struct dofi_pool *pool, void *obj);

/*
 * Read before span is looked at: while that is 0 nothing is less, whatever is read here. The load is atomic for
 * ThreadSanitizer only, as an atomic one costs each call of the program's an instruction.
 */
static inline char *dofi_chunk_first(const struct dofi_pool_chunk *chunk)
{
#if DOFI_HAVE_TSAN
	return __atomic_load_n(&chunk->first, __ATOMIC_RELAXED);
#else
	return chunk->first;
#endif
}

/* Whether @p lies in an object of @chunk, or between two. */
static inline bool dofi_chunk_has(const struct dofi_pool_chunk *chunk, const void *p)
{
	/* pairs with the release in objects_add() */
	size_t span = atomic_load_explicit(&chunk->span, memory_order_acquire);

	return (uintptr_t)p - (uintptr_t)dofi_chunk_first(chunk) < span;
}

/* What the next two do beyond the first chunk. */
bool dofi_pool_later_has(const struct dofi_pool *pool, const void *p);
void *dofi_pool_later_at(const struct dofi_pool *pool, uint32_t index);

/* Object number @index, or NULL when there never was one. */
static inline void *dofi_pool_at(const struct dofi_pool *pool, uint32_t index)
{
	size_t span = atomic_load_explicit(&pool->chunk[0].span, memory_order_acquire);
	uint64_t at = index * (uint64_t)pool->stride;

	return at < span ? pool->chunk[0].first + at : dofi_pool_later_at(pool, index);
}

static inline uint32_t dofi_pool_index(const void *obj)
{
	return ((const struct dofi_pool_head *)obj - 1)->index;
}

/*
 * What self holds if an object begins at @p, which may lie anywhere in one. Atomic for ThreadSanitizer only, as for
 * dofi_chunk_first(): a handle reaches another thread in an order that the program sees to.
 */
static inline uintptr_t dofi_pool_self(const void *p)
{
	const uintptr_t at = (uintptr_t)p - sizeof(struct dofi_pool_head);
#if DOFI_HAVE_TSAN
	return __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED);
#else
	uintptr_t self;

	memcpy(&self, (const void *)at, sizeof(self));
	return self;
#endif
}

/* Whether an object begins at @p, which may lie anywhere in one. */
static inline bool dofi_pool_begins(const void *p)
{
	return (dofi_pool_self(p) ^ (uintptr_t)p ^ DOFI_POOL_SCRAMBLE) < DOFI_POOL_TAGS;
}

/* Whether @p is the address of an object of @pool, free or in use; any @p is allowed. */
static inline bool dofi_pool_owns(const struct dofi_pool *pool, const void *p)
{
	return (dofi_chunk_has(&pool->chunk[0], p) || dofi_pool_later_has(pool, p)) &&
	       dofi_pool_begins(p);
}

/*
 * Tags: what the owner says of an object, 0 at first. It is kept where the check of an address looks anyway, so that
 * one comparison does for both.
 */

/* The tag of @obj. Pairs with the release of dofi_pool_tag_set(). */
static inline unsigned dofi_pool_tag(const void *obj)
{
	const struct dofi_pool_head *head = (const struct dofi_pool_head *)obj - 1;

	return (unsigned)(__atomic_load_n(&head->self, __ATOMIC_ACQUIRE) ^ (uintptr_t)obj ^ DOFI_POOL_SCRAMBLE);
}

/* Tags @obj, and returns the tag that it had. */
static inline unsigned dofi_pool_tag_set(void *obj, unsigned tag)
{
	struct dofi_pool_head *head = (struct dofi_pool_head *)obj - 1;
	const uintptr_t self = (uintptr_t)obj ^ DOFI_POOL_SCRAMBLE;

	return (unsigned)(__atomic_exchange_n(&head->self, self ^ tag, __ATOMIC_SEQ_CST) ^ self);
}

/*
 * Whether @p is the address of an object of @pool with @tag, among the first objects, which are all that most programs
 * have. False says nothing.
 */
static inline bool dofi_pool_first_tagged(const struct dofi_pool *pool, const void *p, unsigned tag)
{
	return dofi_chunk_has(&pool->chunk[0], p) &&
	       dofi_pool_self(p) == ((uintptr_t)p ^ (DOFI_POOL_SCRAMBLE ^ tag));
}

/* Blocks of any size, zeroed, aligned to 64 bytes, never unmapped. NULL without memory. */
void *dofi_block_get(size_t size);
void dofi_block_put(void *block, size_t size);

#endif
