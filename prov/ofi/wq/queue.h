/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots: operations in the order in which they were posted. */
#ifndef DOFI_WQ_QUEUE_H
#define DOFI_WQ_QUEUE_H

#include "wq/dto.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dofi_lmr;

/*
 * Events of a queue's operations that the consumer has not dequeued. They count against the queue's
 * limit although their operations have ended, so that an EVD with room for as many events as its
 * queues have operations never overflows.
 *
 * Any thread, no lock. Events may outlive their EP, and another EP may reuse its memory. So the
 * upper half of the word is the generation of the EP that the count in the lower half belongs to.
 */
struct dofi_unread {
	/* GCC aligns a struct of one such field to 4 bytes on i386, also if the field needs 8 */
	_Alignas(8) _Atomic uint64_t word;
};

_Static_assert(_Alignof(struct dofi_unread) == 8, "an atomic operation stays in a cache line");

/* The count of a queue without events for its operations. */
extern struct dofi_unread dofi_unread_none;

static inline uint32_t dofi_unread_count(const struct dofi_unread *unread)
{
	return (uint32_t)atomic_load_explicit(&unread->word, memory_order_relaxed);
}

static inline uint32_t dofi_unread_generation(const struct dofi_unread *unread)
{
	return (uint32_t)(atomic_load_explicit(&unread->word, memory_order_relaxed) >> 32);
}

/* Begins another generation: the count is 0, and events of earlier generations do not change it. */
static inline void dofi_unread_renew(struct dofi_unread *unread)
{
	const uint64_t generation = dofi_unread_generation(unread) + 1u;

	atomic_store_explicit(&unread->word, generation << 32, memory_order_relaxed);
}

/* Counts one event. */
static inline void dofi_unread_add(struct dofi_unread *unread)
{
	atomic_fetch_add_explicit(&unread->word, 1, memory_order_relaxed);
}

/* An event that was counted in @generation is dequeued. */
static inline void dofi_unread_done(struct dofi_unread *unread, uint32_t generation)
{
	uint64_t word = atomic_load_explicit(&unread->word, memory_order_relaxed);

	while (word >> 32 == generation &&
	       !atomic_compare_exchange_weak_explicit(&unread->word, &word, word - 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* Slots that a queue begins with; a smaller queue has all its slots from the start. */
#define DOFI_QUEUE_FIRST 4
/* How often a queue can double. */
#define DOFI_QUEUE_STEPS 16

/*
 * A ring of slots. Operations enter at tail, go to the fabric at next, leave at head: head <= next
 * <= tail, as counters that wrap. Only the functions below change these. The owner decides when an
 * operation goes to the fabric and the meaning of its end:
 *
 *	dofi_queue_reserve()	a slot, which the owner fills in
 *	dofi_queue_push()	the operation is posted
 *	dofi_queue_ready()	the next operation for the fabric; the owner submits it
 *	dofi_queue_advance()	it is in flight, or has ended without the fabric
 *	dofi_dto_set_done()	it has ended, in any order
 *	dofi_queue_ended()	the oldest operation, once it has ended; the owner reports it
 *	dofi_queue_retire()	its slot is free
 *
 * The queue of an SRQ has no fabric: it does not use next.
 *
 * The ring begins small and doubles when more operations are outstanding than it has slots, until
 * it has as many as its limit requires. A slot never moves: the fabric has its address.
 */
struct dofi_queue {
	struct dofi_dto **slots;	/* operation i has the slot at i & mask */
	size_t stride;
	uint32_t mask;
	uint32_t first;			/* slots in memory[0]; memory[i] has the i-th doubling */
	uint32_t steps;			/* how often the slots were doubled */
	char *memory[DOFI_QUEUE_STEPS];
	uint32_t limit;			/* most operations outstanding and events not dequeued */
	uint32_t soft_limit; /* at this many outstanding, dofi_queue_extend() decides */
	uint32_t max_iov;		/* segments that a slot has room for */
	uint32_t head;			/* the oldest operation */
	uint32_t next;			/* the next operation for the fabric */
	uint32_t tail;			/* the next operation to be posted */
	/* the LMR of the last plain operation, or dofi_lmr_none: obj/ep/fast.h */
	const struct dofi_lmr *lmr;
	struct dofi_unread *unread;	/* its owner's: events that are not dequeued */
	/* set by the owner: */
	bool open;			/* operations may go to the fabric */
	bool held;			/* they wait although open: the owner cancels some */
	bool failed;			/* an operation has failed: no later one succeeds */
};

/*
 * Makes @next a queue of these sizes with the operations of @q, none of which may be at the fabric.
 * @q may be all zero except unread and lmr. @q stays as it is; the two may share their slots.
 * Returns 0 or -ENOMEM. EP lock held, as for dofi_queue_replace().
 */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov);
/* Replaces @q by @next, from dofi_queue_renew(). */
void dofi_queue_replace(struct dofi_queue *q, const struct dofi_queue *next);
void dofi_queue_fini(struct dofi_queue *q);
/* Excludes the receive @dto, not at the fabric, from its memory. @pz_id: 0 if its LMR is freed. */
void dofi_receive_exclude(struct dofi_dto *dto, uint64_t pz_id);
/* The EP changes from the PZ of id @from to the PZ of @to: excludes or readmits its receives. */
void dofi_queue_change_pz(struct dofi_queue *q, uint64_t from, uint64_t to);

static inline struct dofi_dto *dofi_queue_at(const struct dofi_queue *q, uint32_t i)
{
	return q->slots[i & q->mask];
}

static inline struct dofi_dto *dofi_queue_oldest(const struct dofi_queue *q)
{
	return dofi_queue_at(q, q->head);
}

/*
 * True if possibly full; exact after dofi_queue_extend(). An event that is queued lowers
 * soft_limit; the thread that dequeues it has no lock, and does not raise it. So a post need not
 * read the number of events.
 */
static inline bool dofi_queue_may_be_full(const struct dofi_queue *q)
{
	return q->tail - q->head >= q->soft_limit;
}

/* How many operations may be outstanding, given the events that are not dequeued. */
static inline uint32_t dofi_queue_places(const struct dofi_queue *q)
{
	const uint32_t unread = dofi_unread_count(q->unread);

	return unread < q->limit ? q->limit - unread : 0;
}

/* Sets soft_limit: the room that events leave, and at most the slots. */
static inline void dofi_queue_widen(struct dofi_queue *q)
{
	const uint32_t places = dofi_queue_places(q);

	q->soft_limit = places <= q->mask ? places : q->mask + 1;
}

/*
 * Sets soft_limit anew, and makes slots for another operation of @ep if events leave room: all
 * that allocates for a post, at most DOFI_QUEUE_STEPS times per queue. Returns 0 or -ENOMEM.
 */
int dofi_queue_extend(struct dofi_queue *q, struct dofi_ep *ep);

/* An event was queued: lowers soft_limit. A watermark that is lower stays. */
static inline void dofi_queue_narrow(struct dofi_queue *q)
{
	const uint32_t places = dofi_queue_places(q);

	if (places < q->soft_limit)
		q->soft_limit = places;
}

/* The slot for the next operation, or NULL if dofi_queue_may_be_full(). */
static inline struct dofi_dto *dofi_queue_reserve(struct dofi_queue *q)
{
	struct dofi_dto *dto;

	if (dofi_queue_may_be_full(q))
		return NULL;
	dto = dofi_queue_at(q, q->tail);
	dofi_dto_renew(dto);
	dofi_dto_begin(dto, q->tail);
	dto->marks = 0;
	return dto;
}

/* The operation in the reserved slot is the newest one. */
static inline void dofi_queue_push(struct dofi_queue *q)
{
	q->tail++;
}

/* Whether operations of @q have yet to go to the fabric. */
static inline bool dofi_queue_waits(const struct dofi_queue *q)
{
	return q->next != q->tail;
}

/* The next operation for the fabric, or NULL if there is none or the queue is closed or held. */
static inline struct dofi_dto *dofi_queue_ready(const struct dofi_queue *q)
{
	return dofi_queue_waits(q) && q->open && !q->held ? dofi_queue_at(q, q->next) : NULL;
}

/* The next operation is in flight, or has ended without the fabric. */
static inline void dofi_queue_advance(struct dofi_queue *q)
{
	q->next++;
}

/* Whether an operation is between head and next. */
static inline bool dofi_queue_has_flight(const struct dofi_queue *q)
{
	return q->head != q->next;
}

/* The oldest operation if it has ended, or NULL. Later ones that ended stay behind it. */
static inline struct dofi_dto *dofi_queue_ended(const struct dofi_queue *q)
{
	struct dofi_dto *dto;

	if (!dofi_queue_has_flight(q))
		return NULL;
	dto = dofi_queue_oldest(q);
	return dto->done ? dto : NULL;
}

/* The oldest operation leaves the queue. */
static inline void dofi_queue_retire(struct dofi_queue *q)
{
	q->head++;
}

/* Whether operation @number, which may be any number, is between head and next. */
static inline bool dofi_queue_in_flight(const struct dofi_queue *q, uint32_t number)
{
	return number - q->head < q->next - q->head;
}

/* Operations outstanding. */
static inline uint32_t dofi_queue_used(const struct dofi_queue *q)
{
	return q->tail - q->head;
}

static inline bool dofi_queue_empty(const struct dofi_queue *q)
{
	return q->head == q->tail;
}

/* The operations from @number on are pending again. None of them is at the fabric. */
static inline void dofi_queue_rewind(struct dofi_queue *q, uint32_t number)
{
	q->next = number;
}

/* All operations in flight are pending again; late completions match no operation. */
void dofi_queue_recall(struct dofi_queue *q);
/* Ends the operations that have not ended, with @status. None of them is at the fabric any more. */
void dofi_queue_flush(struct dofi_queue *q, uint8_t status);
/* Drops all operations. */
void dofi_queue_clear(struct dofi_queue *q);

/* Makes @to, of another queue, the operation @from; the slots have room for @max_iov segments. */
void dofi_dto_copy(struct dofi_dto *to, const struct dofi_dto *from, uint32_t max_iov);

#endif
