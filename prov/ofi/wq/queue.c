/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots: its creation and growth, and functions on all of its operations. */

#include "wq/queue.h"

#include "base/pool.h"

#include <errno.h>
#include <string.h>

struct dofi_unread dofi_unread_none;

static uint32_t slots_for(uint32_t depth)
{
	return depth < 2 ? 2 : 1u << (32 - __builtin_clz(depth - 1));
}

/*
 * Gives the @n slots in @memory to the operations from @from on. Memory comes zeroed: if all
 * slots began with generation 0 a stale context could match a new slot.
 */
static void slots_enter(struct dofi_queue *q, struct dofi_ep *ep, char *memory, uint32_t from,
			uint32_t n)
{
	static _Atomic uint8_t generation;
	const uint8_t tag = atomic_fetch_add(&generation, 7) & (DOFI_DTO_GENERATIONS - 1);
	struct dofi_dto *dto;
	uint32_t i;

	for (i = 0; i < n; i++) {
		dto = (struct dofi_dto *)(memory + i * q->stride);
		dto->ep = ep;
		dto->tag = tag;
		dto->desc = (void **)&dto->iov[q->max_iov];
		q->slots[(from + i) & q->mask] = dto;
	}
}

/* Operations keep their slots, and later operations get the new ones. */
int dofi_queue_extend(struct dofi_queue *q, struct dofi_ep *ep)
{
	const uint32_t n = q->mask + 1;
	struct dofi_dto **old = q->slots, **slots;
	char *memory;
	uint32_t i;

	dofi_queue_widen(q);
	if (dofi_queue_used(q) < n || q->soft_limit < n || n >= slots_for(q->limit))
		return 0;
	slots = dofi_block_get(2 * n * sizeof(*slots));
	memory = slots ? dofi_block_get(n * q->stride) : NULL;
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
	dofi_queue_widen(q);
	return 0;
}

/* Copies an operation, except the slot's members. */
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
	memcpy(dofi_dto_contexts(to), dofi_dto_contexts(from), max_iov * sizeof(uint32_t));
}

/* Slots never get smaller: a thread may have checked a post against the old size. */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov)
{
	const size_t segment = sizeof(struct iovec) + sizeof(void *) + sizeof(uint32_t);
	const uint32_t most = slots_for(depth);
	uint32_t slots = slots_for(dofi_queue_used(q)), i;
	size_t size;

	if (q->slots && max_iov <= q->max_iov) {
		*next = *q;
		next->limit = depth;
		dofi_queue_widen(next);
		return 0;
	}
	if (max_iov < q->max_iov)
		max_iov = q->max_iov;
	if (slots < DOFI_QUEUE_FIRST)
		slots = DOFI_QUEUE_FIRST;
	if (slots > most)
		slots = most;
	size = sizeof(struct dofi_dto) + max_iov * segment;
	*next = (struct dofi_queue){
		.stride = (size + DOFI_DTO_GENERATIONS - 1) & ~(size_t)(DOFI_DTO_GENERATIONS - 1),
		.mask = slots - 1, .first = slots, .limit = depth, .max_iov = max_iov,
		.open = q->open, .failed = q->failed, .lmr = q->lmr, .unread = q->unread,
		.head = q->head, .next = q->next, .tail = q->tail,
	};
	next->slots = dofi_block_get(slots * sizeof(*next->slots));
	if (!next->slots)
		return -ENOMEM;
	next->memory[0] = dofi_block_get(slots * next->stride);
	if (!next->memory[0]) {
		dofi_block_put(next->slots, slots * sizeof(*next->slots));
		return -ENOMEM;
	}
	slots_enter(next, ep, next->memory[0], 0, slots);
	dofi_queue_widen(next);
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

void dofi_receive_exclude(struct dofi_dto *dto, uint64_t pz_id)
{
	dto->flags |= DOFI_DTO_EXCLUDED;
	dto->excluded.pz_id = pz_id;
	dto->excluded.n_iov_before = dto->n_iov;
	dto->n_iov = 0;
}

void dofi_queue_change_pz(struct dofi_queue *q, uint64_t from, uint64_t to)
{
	uint32_t i;

	for (i = q->head; i != q->tail; i++) {
		struct dofi_dto *dto = dofi_queue_at(q, i);

		if (dto->n_iov) {
			dofi_receive_exclude(dto, from);
		} else if (dto->flags & DOFI_DTO_EXCLUDED && dto->excluded.pz_id == to) {
			dto->flags &= ~DOFI_DTO_EXCLUDED;
			dto->n_iov = dto->excluded.n_iov_before;
		}
	}
}
