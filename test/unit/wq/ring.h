/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots with an owner of the test, and allocations that fail when a test requests it. */
#ifndef UNIT_WQ_RING_H
#define UNIT_WQ_RING_H

#include "wq/queue.h"

#define RING_MOST 512

/* The owner of the ring, and the fabric that it hands operations to. wq/ sees its address only. */
struct dofi_ep {
	struct dofi_queue q;
	struct dofi_unread unread;
	uint32_t room;			/* operations that the fabric still takes */
	void *context[RING_MOST];	/* of the operations that the fabric took, in order */
	uint32_t n;
	uint64_t retired[RING_MOST];	/* cookies of the operations that left the ring */
	uint32_t n_retired;
};

extern struct dofi_ep ring;

/* Makes the ring for @depth operations of @max_iov segments, open, with a fabric that takes all. */
void ring_make(uint32_t depth, uint32_t max_iov);
/* Frees the ring. All blocks must have been put back. */
void ring_fini(void);
/* Makes head, next and tail of the empty ring @at. */
void ring_start_at(uint32_t at);

/* Posts an operation. Returns false if the ring has no room for it. */
bool ring_post(uint64_t cookie);
/* Hands operations to the fabric, as many as it takes. */
void ring_pump(void);
/*
 * The fabric completes the operation of @context, and the ring retires ended operations. A context
 * that is not of an operation in flight has no effect.
 */
void ring_complete_context(void *context);
/* Completes the @i-th operation that the fabric took. */
void ring_complete(uint32_t i);
/* The cookie of the @i-th operation that the fabric took. */
uint64_t ring_cookie(uint32_t i);

/* Makes one dofi_block_get() fail: the next one if @n is 0, else the @n-th after it. */
void ring_nomem_after(int n);
/* dofi_block_get() was called @n times with success since the last call of this. */
int ring_blocks_got(void);
/* Bytes in blocks that were not put back. */
size_t ring_bytes(void);

#endif
