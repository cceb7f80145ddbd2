/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots with an owner of the test, and allocations that fail when a test requests it. */

#include "wq/ring.h"

#include "base/pool.h"

#include <criterion/criterion.h>
#include <limits.h>

struct dofi_ep ring;

/* Allocations, by the linker's --wrap */

static int left = INT_MAX;		/* dofi_block_get() calls until the one that fails */
static int got;
static size_t bytes;

void *__real_dofi_block_get(size_t size);
void *__wrap_dofi_block_get(size_t size);
void *__wrap_dofi_block_get(size_t size)
{
	void *block = left != INT_MAX && !left-- ? NULL : __real_dofi_block_get(size);

	if (block) {
		got++;
		bytes += size;
	}
	return block;
}

void __real_dofi_block_put(void *block, size_t size);
void __wrap_dofi_block_put(void *block, size_t size);
void __wrap_dofi_block_put(void *block, size_t size)
{
	if (block)
		bytes -= size;
	__real_dofi_block_put(block, size);
}

void ring_nomem_after(int n)
{
	left = n;
}

int ring_blocks_got(void)
{
	const int n = got;

	got = 0;
	return n;
}

size_t ring_bytes(void)
{
	return bytes;
}

/* The owner */

void ring_make(uint32_t depth, uint32_t max_iov)
{
	const struct dofi_queue nothing = { .unread = &ring.unread };

	ring = (struct dofi_ep){ .room = UINT32_MAX };
	cr_assert_eq(dofi_queue_renew(&ring.q, &nothing, &ring, depth, max_iov), 0);
	ring.q.open = true;
}

void ring_fini(void)
{
	dofi_queue_fini(&ring.q);
	cr_expect_eq(bytes, 0, "%zu bytes are left", bytes);
}

void ring_start_at(uint32_t at)
{
	cr_assert(dofi_queue_empty(&ring.q));
	ring.q.head = ring.q.next = ring.q.tail = at;
}

bool ring_post(uint64_t cookie)
{
	struct dofi_dto *dto;

	if (dofi_queue_may_be_full(&ring.q) && dofi_queue_extend(&ring.q, &ring))
		return false;
	dto = dofi_queue_reserve(&ring.q);
	if (!dto)
		return false;
	dto->kind = DOFI_DTO_SEND;
	dto->flags = 0;
	dto->n_iov = 0;
	dto->cookie = cookie;
	dofi_queue_push(&ring.q);
	ring_pump();
	return true;
}

void ring_pump(void)
{
	struct dofi_dto *dto;

	while (ring.room && (dto = dofi_queue_ready(&ring.q))) {
		cr_assert(ring.n < RING_MOST);
		cr_assert_eq(dto->ep, &ring);
		cr_assert(!dto->at_fabric && !dto->done);
		ring.room--;
		dto->at_fabric = true;
		ring.context[ring.n++] = dofi_dto_context(dto);
		dofi_queue_advance(&ring.q);
	}
}

static void retire(void)
{
	struct dofi_dto *dto;

	while ((dto = dofi_queue_ended(&ring.q))) {
		cr_assert(ring.n_retired < RING_MOST);
		ring.retired[ring.n_retired++] = dto->cookie;
		dofi_queue_retire(&ring.q);
	}
}

void ring_complete_context(void *context)
{
	struct dofi_dto *dto = dofi_dto_of(context);

	if (!dto->at_fabric || dofi_dto_context(dto) != context)
		return;
	dofi_dto_set_done(dto, 0);
	retire();
}

void ring_complete(uint32_t i)
{
	cr_assert(i < ring.n);
	ring_complete_context(ring.context[i]);
}

uint64_t ring_cookie(uint32_t i)
{
	cr_assert(i < ring.n);
	return dofi_dto_of(ring.context[i])->cookie;
}
