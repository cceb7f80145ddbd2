/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Type-stable memory: objects and blocks that are reused but never unmapped.
 *
 * So a handle that was freed, or a number that never was a handle, can be checked without a fault.
 * A forked child has no objects: the handles of its parent are not valid there.
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
/* Objects of the first chunk; each next chunk has twice as many. So many are made at a time. */
#define DOFI_POOL_FIRST 64

struct dofi_pool_chunk {
	char *first;	/* the first object; written once, possibly while another thread reads it */
	_Atomic size_t span;		/* bytes to the end of the last object that was made */
};

struct dofi_pool {
	const char *name;
	size_t stride;			/* from one object to the next */
	void (*ctor)(void *obj);	/* once per object, when it is made, all zero; or NULL */

	struct dofi_mutex lock;		/* the fields below */
	/* oldest first, so that a freed handle is not reused soon */
	void *free_head, *free_tail;
	size_t used;
	unsigned n_chunks;
	struct dofi_pool *next;	/* pool.c: in the list of pools that have objects */
	uint32_t unmade; /* objects of the last chunk that were not made yet: untouched memory */

	struct dofi_pool_chunk chunk[DOFI_POOL_CHUNKS];	/* read without the lock */
};

#define DOFI_POOL_INIT(name_, type_, ctor_)                                  \
	{ .name = (name_), .ctor = (ctor_),                                  \
	  .stride = sizeof(struct dofi_pool_head) + ((sizeof(type_) + 63) & ~(size_t)63) }

/* Precedes each object. */
struct dofi_pool_head {
	/* the object's address and tag, scrambled: no address inside an object matches */
	_Alignas(64) uintptr_t self;
	void *next_free;
	uint32_t index;
};

_Static_assert(sizeof(struct dofi_pool_head) == 64, "objects start on cache lines");

#define DOFI_POOL_SCRAMBLE ((uintptr_t)0x5aa5c33c0ff0aa55ULL)
/* Tags are less than this, which is the alignment of objects. */
#define DOFI_POOL_TAGS 64

/* Returns an object as its constructor or last user left it; NULL without memory. */
void *dofi_pool_get(struct dofi_pool *pool) DOFI_NEEDS_NOT(pool->lock);
void dofi_pool_put(struct dofi_pool *pool, void *obj) DOFI_NEEDS_NOT(pool->lock);

/*
 * May be loaded before span: while that is 0, any value here is safe. The load is atomic for
 * ThreadSanitizer only, as an atomic load costs an instruction in each call of the program.
 */
static inline char *dofi_chunk_first(const struct dofi_pool_chunk *chunk)
{
#if DOFI_HAVE_TSAN
	return __atomic_load_n(&chunk->first, __ATOMIC_RELAXED);
#else
	return chunk->first;
#endif
}

/* Returns whether @p is between the first and the last object of @chunk. */
static inline bool dofi_chunk_has(const struct dofi_pool_chunk *chunk, const void *p)
{
	/* pairs with the release in objects_add() */
	size_t span = atomic_load_explicit(&chunk->span, memory_order_acquire);

	return (uintptr_t)p - (uintptr_t)dofi_chunk_first(chunk) < span;
}

/* The slow paths of dofi_pool_owns() and dofi_pool_at(): chunks after the first. */
bool dofi_pool_later_has(const struct dofi_pool *pool, const void *p);
void *dofi_pool_later_at(const struct dofi_pool *pool, uint32_t index);

/* Returns object number @index, or NULL if it was never made. */
static inline void *dofi_pool_at(const struct dofi_pool *pool, uint32_t index)
{
	size_t span = atomic_load_explicit(&pool->chunk[0].span, memory_order_acquire);
	uint64_t at = index * (uint64_t)pool->stride;

	return at < span ? pool->chunk[0].first + at : dofi_pool_later_at(pool, index);
}

/*
 * Returns the first object of number *@index or higher, and stores its number in *@index; NULL if
 * there is none.
 */
void *dofi_pool_next(const struct dofi_pool *pool, uint32_t *index);

static inline uint32_t dofi_pool_index(const void *obj)
{
	return ((const struct dofi_pool_head *)obj - 1)->index;
}

/*
 * Returns the word that is self if an object begins at @p, which may be anywhere in an object. The
 * load is atomic for ThreadSanitizer only: the program synchronizes threads that pass a handle.
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

/* Returns whether @p is the address of an object of @pool, free or in use; @p may be any value. */
static inline bool dofi_pool_owns(const struct dofi_pool *pool, const void *p)
{
	return (dofi_chunk_has(&pool->chunk[0], p) || dofi_pool_later_has(pool, p)) &&
	       (dofi_pool_self(p) ^ (uintptr_t)p ^ DOFI_POOL_SCRAMBLE) < DOFI_POOL_TAGS;
}

/* Tags: a number that the user gives an object. One comparison checks address and tag. */

/* Returns the tag of @obj. Sequentially consistent, as dofi_calls_await() requires. */
static inline unsigned dofi_pool_tag(const void *obj)
{
	const struct dofi_pool_head *head = (const struct dofi_pool_head *)obj - 1;

	return (unsigned)(__atomic_load_n(&head->self, __ATOMIC_SEQ_CST) ^ (uintptr_t)obj ^
			  DOFI_POOL_SCRAMBLE);
}

/* Sets the tag of @obj, and returns the tag before. */
static inline unsigned dofi_pool_tag_set(void *obj, unsigned tag)
{
	struct dofi_pool_head *head = (struct dofi_pool_head *)obj - 1;
	const uintptr_t self = (uintptr_t)obj ^ DOFI_POOL_SCRAMBLE;

	return (unsigned)(__atomic_exchange_n(&head->self, self ^ tag, __ATOMIC_SEQ_CST) ^ self);
}

/* Returns whether @p is an object with @tag in the first chunk; false if in another chunk. */
static inline bool dofi_pool_first_tagged(const struct dofi_pool *pool, const void *p, unsigned tag)
{
	return dofi_chunk_has(&pool->chunk[0], p) &&
	       dofi_pool_self(p) == ((uintptr_t)p ^ (DOFI_POOL_SCRAMBLE ^ tag));
}

/* Blocks of any size, zeroed, aligned to 64 bytes, never unmapped. NULL without memory. */
void *dofi_block_get(size_t size);
void dofi_block_put(void *block, size_t size);

#endif
