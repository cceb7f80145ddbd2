/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queues of an endpoint's operations, and in which order these go to the fabric. */
#ifndef DOFI_OBJ_EP_QUEUE_H
#define DOFI_OBJ_EP_QUEUE_H

#include "obj/ep_dto.h"
#include "obj/unread.h"

struct dofi_lmr;

/* Slots of a queue that has not been used; all of a smaller one. */
#define DOFI_QUEUE_FIRST 4
/* How often a queue can double. */
#define DOFI_QUEUE_STEPS 16

/*
 * A ring of slots. Operations enter at tail, go to the fabric at next, leave at
 * head: head <= next <= tail, as counters that wrap. The ring begins small and doubles when more operations are
 * outstanding than it has slots, until it has as many as its limit asks for. A slot never moves: the fabric knows it.
 */
struct dofi_queue {
	struct dofi_dto **slots;	/* that of operation i is at i & mask */
	size_t stride;
	uint32_t mask;
	uint32_t first;			/* slots in memory[0]; memory[i] doubled them for the i-th time */
	uint32_t steps;			/* how often they were doubled */
	char *memory[DOFI_QUEUE_STEPS];
	uint32_t limit;			/* places, of operations outstanding and of events not dequeued */
	uint32_t depth;			/* outstanding operations at which a post looks closer, see below */
	uint32_t max_iov;		/* segments that a slot has room for */
	uint32_t head, next, tail;
	const struct dofi_lmr *lmr;	/* of the last plain one; dofi_lmr_none if the next cannot be */
	struct dofi_unread *unread;	/* its owner's: places that events still take */
	bool open;			/* operations may go to the fabric: dofi_ep_gate() */
	bool held;			/* they wait all the same: some are being taken back from there */
};

/*
 * Makes @next a queue of these sizes with what is outstanding in @q, of which nothing may
 * be at the fabric, and which may be all zero but for unread. @q stays as it is; the two may share their
 * slots. 0 or -ENOMEM. EP lock held, as for the next.
 */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov);
/* Puts @next, from dofi_queue_renew(), in the place of @q. */
void dofi_queue_replace(struct dofi_queue *q, const struct dofi_queue *next);
void dofi_queue_fini(struct dofi_queue *q);
/* @dto, a receive that the fabric has not got, may not use its memory; @zone as DOFI_DTO_BARRED says, or 0. */
void dofi_receive_bar(struct dofi_dto *dto, uint64_t zone);
/* The EP goes from the zone of one id to that of another: what its receives may still do. */
void dofi_queue_rezone(struct dofi_queue *q, uint64_t from, uint64_t to);

static inline struct dofi_dto *dofi_queue_at(const struct dofi_queue *q, uint32_t i)
{
	return q->slots[i & q->mask];
}

static inline struct dofi_dto *dofi_queue_oldest(const struct dofi_queue *q)
{
	return dofi_queue_at(q, q->head);
}

/*
 * Whether there may be no place: certain after dofi_queue_extend() only. Events take places when they are queued,
 * which lowers depth, and give them back without the lock, which does not raise it. So a post need not look at them.
 */
static inline bool dofi_queue_full(const struct dofi_queue *q)
{
	return q->tail - q->head >= q->depth;
}

/* As many operations may be outstanding as places are left by events, and as there are slots. */
static inline void dofi_queue_widen(struct dofi_queue *q)
{
	const uint32_t unread = dofi_unread_count(q->unread);
	const uint32_t places = unread < q->limit ? q->limit - unread : 0;

	q->depth = places <= q->mask ? places : q->mask + 1;
}

/*
 * As dofi_queue_widen(), and there are slots for one more operation of @ep where events leave a place for it. So this is
 * what allocates on behalf of a post: at most DOFI_QUEUE_STEPS times in a queue's life. 0 or -ENOMEM.
 */
int dofi_queue_extend(struct dofi_queue *q, struct dofi_ep *ep);

/* An event has taken a place; a watermark below stays. */
static inline void dofi_queue_narrow(struct dofi_queue *q)
{
	const uint32_t depth = q->depth;

	dofi_queue_widen(q);
	if (depth < q->depth)
		q->depth = depth;
}

/* The slot that the next operation will take, or NULL if dofi_queue_full(). */
static inline struct dofi_dto *dofi_queue_reserve(struct dofi_queue *q)
{
	struct dofi_dto *dto;

	if (dofi_queue_full(q))
		return NULL;
	dto = dofi_queue_at(q, q->tail);
	dofi_dto_renew(dto);
	dto->number = q->tail;
	dto->parts = 0;
	dto->marks = 0;
	dto->at_fabric = dto->done = false;
	dto->step = DOFI_STEP_NONE;
	return dto;
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

/*
 * Whether a queue's operations may go to the fabric follows from the EP's state;
 * worked out when that changes, so that a post only looks at one flag. EP lock held.
 */
void dofi_ep_gate(struct dofi_ep *ep);

/*
 * An attempt to connect has failed: receives that its endpoint was given wait for the next. That
 * endpoint is ep->fid no more. EP lock held.
 */
void dofi_dto_recall(struct dofi_ep *ep);

/* Makes @to, of another queue, the operation @from, whose slots have room for @max_iov segments. */
void dofi_dto_copy(struct dofi_dto *to, const struct dofi_dto *from, uint32_t max_iov);

/* Enters @dto, of @kind, the slot that was reserved in @q of @ep and is filled in. EP lock held. */
void dofi_queue_commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto,
		       uint8_t kind);

/* Sends what waits in @q, of @ep, to the fabric. EP lock held. */
void dofi_queue_pump(struct dofi_ep *ep, struct dofi_queue *q);

/* Sends waiting operations to the fabric, as far as it and the rules allow. EP lock held. */
void dofi_dto_pump(struct dofi_ep *ep);

#endif
