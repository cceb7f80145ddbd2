/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots: how it is made, how it grows, and what concerns all of its operations. */

#include "wq/queue.h"

#include "base/pool.h"

#include <errno.h>
#include <string.h>

struct dofi_unread dofi_unread_none;

static size_t slot_stride(uint32_t max_iov)
{
	const size_t segment = sizeof(struct iovec) + sizeof(void *) + sizeof(uint32_t);
	const size_t size = sizeof(struct dofi_dto) + max_iov * segment;

	return (size + DOFI_DTO_GENERATIONS - 1) & ~(size_t)(DOFI_DTO_GENERATIONS - 1);
}

static uint32_t slots_for(uint32_t depth)
{
	return depth < 2 ? 2 : 1u << (32 - __builtin_clz(depth - 1));
}

/*
 * Memory comes zeroed: if all slots began with generation 0 a stale context could match a new slot.
 */
static uint8_t next_generation(void)
{
	static _Atomic uint8_t generation;

	return atomic_fetch_add(&generation, 7) & (DOFI_DTO_GENERATIONS - 1);
}

/* Makes the @n slots in @memory those of the operations from @from on. */
static void slots_enter(struct dofi_queue *q, struct dofi_ep *ep, char *memory, uint32_t from,
			uint32_t n)
{
	const uint8_t generation = next_generation();
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct dofi_dto *dto = (struct dofi_dto *)(memory + i * q->stride);

		dto->ep = ep;
		dto->tag = generation;
		dto->desc = (void **)&dto->iov[q->max_iov];
		q->slots[(from + i) & q->mask] = dto;
	}
}

/* Makes a queue with as many slots as @slots. */
static int queue_init(struct dofi_queue *q, struct dofi_ep *ep, uint32_t depth, uint32_t max_iov,
		      uint32_t slots)
{
	*q = (struct dofi_queue){ .stride = slot_stride(max_iov), .mask = slots - 1, .first = slots,
				  .limit = depth, .max_iov = max_iov };
	q->slots = dofi_block_get(slots * sizeof(*q->slots));
	if (!q->slots)
		return -ENOMEM;
	q->memory[0] = dofi_block_get(slots * q->stride);
	if (!q->memory[0]) {
		dofi_block_put(q->slots, slots * sizeof(*q->slots));
		return -ENOMEM;
	}
	slots_enter(q, ep, q->memory[0], 0, slots);
	return 0;
}

/* Operations keep their slots, and those behind the newest get the new ones. */
static int queue_double(struct dofi_queue *q, struct dofi_ep *ep)
{
	const uint32_t n = q->mask + 1;
	struct dofi_dto **old = q->slots, **slots = dofi_block_get(2 * n * sizeof(*slots));
	char *memory = slots ? dofi_block_get(n * q->stride) : NULL;
	uint32_t i;

	if (!memory) {
		dofi_block_put(slots, 2 * n * sizeof(*slots));
		return -ENOMEM;
	}
	q->slots = slots;
	q->mask = 2 * n - 1;
	for (i = 0; i < n; i++)
		slots[(q->head + i) & q->mask] = old[(q->head + i) & (n - 1)];
	slots_enter(q, ep, memory, q->head + n, n);
	q->memory[++q->steps] = memory;
	dofi_block_put(old, n * sizeof(*old));
	return 0;
}

int dofi_queue_extend(struct dofi_queue *q, struct dofi_ep *ep)
{
	int ret = 0;

	dofi_queue_widen(q);
	if (dofi_queue_used(q) > q->mask && q->depth > q->mask &&
	    q->mask + 1 < slots_for(q->limit)) {
		ret = queue_double(q, ep);
		dofi_queue_widen(q);
	}
	return ret;
}

/* Copies an operation, except what belongs to the slot. */
void dofi_dto_copy(struct dofi_dto *to, const struct dofi_dto *from, uint32_t max_iov)
{
	const uint8_t tag = (to->tag & (DOFI_DTO_GENERATIONS - 1)) | (from->tag & DOFI_DTO_SLOW);
	const uint32_t number = to->number;
	struct dofi_ep *ep = to->ep;
	void **desc = to->desc;

	*to = *from;
	to->ep = ep;
	to->tag = tag;
	to->number = number;
	to->desc = desc;
	memcpy(to->iov, from->iov, max_iov * sizeof(*to->iov));
	memcpy(to->desc, from->desc, max_iov * sizeof(*to->desc));
	memcpy(dofi_dto_lmr(to), dofi_dto_lmr(from), max_iov * sizeof(uint32_t));
}

/* How many slots a new queue with the operations of @q begins with. */
static uint32_t slots_at_first(const struct dofi_queue *q, uint32_t depth)
{
	const uint32_t most = slots_for(depth), used = slots_for(dofi_queue_used(q));
	const uint32_t least = used > DOFI_QUEUE_FIRST ? used : DOFI_QUEUE_FIRST;

	return least < most ? least : most;
}

/* Slots never get smaller: a thread may have checked a post against the old size. */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov)
{
	uint32_t i;
	int ret;

	if (q->slots && max_iov <= q->max_iov) {
		*next = *q;
		next->limit = depth;
		dofi_queue_widen(next);
		return 0;
	}
	ret = queue_init(next, ep, depth, max_iov > q->max_iov ? max_iov : q->max_iov,
			 slots_at_first(q, depth));
	if (ret)
		return ret;
	next->open = q->open;
	next->failed = q->failed;
	next->lmr = q->lmr;
	next->unread = q->unread;
	dofi_queue_widen(next);
	next->head = q->head;
	next->next = q->next;
	next->tail = q->tail;
	for (i = q->head; i != q->tail; i++) {
		dofi_queue_at(next, i)->number = i;
		dofi_dto_copy(dofi_queue_at(next, i), dofi_queue_at(q, i), q->max_iov);
	}
	return 0;
}

void dofi_queue_replace(struct dofi_queue *q, const struct dofi_queue *next)
{
	if (q->slots != next->slots)
		dofi_queue_fini(q);
	*q = *next;
}

void dofi_queue_fini(struct dofi_queue *q)
{
	uint32_t i;

	if (!q->slots)
		return;
	dofi_block_put(q->slots, ((size_t)q->mask + 1) * sizeof(*q->slots));
	dofi_block_put(q->memory[0], q->first * q->stride);
	for (i = 1; i <= q->steps; i++)
		dofi_block_put(q->memory[i], ((size_t)q->first << (i - 1)) * q->stride);
	q->slots = NULL;
}

void dofi_queue_recall(struct dofi_queue *q)
{
	uint32_t i;

	for (i = q->head; i != q->next; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		dofi_dto_renew(dto);
		dto->at_fabric = false;
	}
	dofi_queue_rewind(q, q->head);
}

void dofi_queue_flush(struct dofi_queue *q, uint8_t status)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++)
		if (!dofi_queue_at(q, i)->done)
			dofi_dto_set_done(dofi_queue_at(q, i), status);
	q->next = q->tail;
}

void dofi_queue_clear(struct dofi_queue *q)
{
	q->head = q->next = q->tail;
}

void dofi_receive_bar(struct dofi_dto *dto, uint64_t pz_id)
{
	dto->flags |= DOFI_DTO_BARRED;
	dto->remote_addr = pz_id;
	dto->remote_key = dto->n_iov;
	dto->n_iov = 0;
}

static void receive_unbar(struct dofi_dto *dto)
{
	dto->flags &= ~DOFI_DTO_BARRED;
	dto->n_iov = dto->remote_key;
}

void dofi_queue_change_pz(struct dofi_queue *q, uint64_t from, uint64_t to)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		if (dto->n_iov)
			dofi_receive_bar(dto, from);
		else if (dto->flags & DOFI_DTO_BARRED && dto->remote_addr == to)
			receive_unbar(dto);
	}
}
