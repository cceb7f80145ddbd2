/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots that is closed, held, recalled, flushed or renewed. */

#include "wq/ring.h"

#include <criterion/criterion.h>

#define DEPTH 8

static void init(void)
{
	ring_make(DEPTH, 2);
}

TestSuite(wq_state, .init = init, .fini = ring_fini);

/* Posts operations with the cookies from @first to before @end. */
static void post(uint64_t first, uint64_t end)
{
	uint64_t i;

	for (i = first; i < end; i++)
		cr_assert(ring_post(i), "%llu", (unsigned long long)i);
}

/* The operation at @i, counted from the oldest one. */
static struct dofi_dto *from_oldest(uint32_t i)
{
	return dofi_queue_at(&ring.q, ring.q.head + i);
}

/* Closed and held */

Test(wq_state, a_closed_ring_hands_nothing_to_the_fabric)
{
	ring.q.open = false;
	post(0, 3);
	cr_expect_eq(ring.n, 0);
	cr_expect(dofi_queue_waits(&ring.q));
	ring.q.open = true;
	ring_pump();
	cr_expect_eq(ring.n, 3);
	cr_expect(!dofi_queue_waits(&ring.q));
}

Test(wq_state, a_held_ring_hands_nothing_to_the_fabric)
{
	post(0, 1);
	ring.q.held = true;
	post(1, 3);
	cr_expect_eq(ring.n, 1);
	ring_complete(0);
	cr_expect_eq(ring.n_retired, 1, "completions retire");
	ring.q.held = false;
	ring_pump();
	cr_expect_eq(ring.n, 3);
}

Test(wq_state, an_empty_ring_has_nothing_ready_and_nothing_ended)
{
	cr_expect(!dofi_queue_ready(&ring.q));
	cr_expect(!dofi_queue_ended(&ring.q));
	cr_expect(!dofi_queue_waits(&ring.q));
	cr_expect(dofi_queue_empty(&ring.q));
}

/* Pending again */

Test(wq_state, recalled_operations_go_to_the_fabric_again)
{
	void *context[3];
	uint32_t i;

	ring.room = 3;
	post(0, 5);
	for (i = 0; i < 3; i++)
		context[i] = ring.context[i];
	dofi_queue_recall(&ring.q);
	cr_expect_eq(dofi_queue_ready(&ring.q), from_oldest(0));
	for (i = 0; i < 3; i++)
		ring_complete_context(context[i]);
	cr_expect_eq(ring.n_retired, 0, "the completions are of an earlier endpoint");
	ring.room = 5;
	ring.n = 0;
	ring_pump();
	cr_assert_eq(ring.n, 5);
	for (i = 0; i < 5; i++)
		cr_expect_eq(ring_cookie(i), i);
	for (i = 0; i < 3; i++)
		cr_expect(ring.context[i] != context[i]);
	for (i = 0; i < 5; i++)
		ring_complete(i);
	cr_expect_eq(ring.n_retired, 5);
}

Test(wq_state, operations_from_a_number_on_are_pending_again)
{
	uint32_t i;

	post(0, 5);
	ring_complete(0);
	for (i = 3; i < 5; i++)
		dofi_queue_at(&ring.q, i)->at_fabric = false;
	dofi_queue_rewind(&ring.q, 3);
	cr_expect(dofi_queue_in_flight(&ring.q, 2));
	cr_expect(!dofi_queue_in_flight(&ring.q, 3));
	cr_expect_eq(dofi_queue_ready(&ring.q)->cookie, 3);
	ring_pump();
	cr_expect_eq(ring.n, 7);
	cr_expect_eq(ring_cookie(5), 3);
	cr_expect_eq(ring_cookie(6), 4);
}

/* The end */

Test(wq_state, a_flush_ends_all_that_has_not_ended)
{
	uint32_t i;

	ring.room = 3;
	post(0, 5);
	ring_complete(1);
	dofi_queue_flush(&ring.q, 7);
	for (i = 0; i < 5; i++) {
		struct dofi_dto *dto = dofi_queue_ended(&ring.q);

		cr_assert(dto);
		cr_expect_eq(dto->cookie, i);
		cr_expect_eq(dto->status, i == 1 ? 0 : 7, "%u", i);
		cr_expect(!dto->at_fabric);
		dofi_queue_retire(&ring.q);
	}
	cr_expect(dofi_queue_empty(&ring.q));
	cr_expect(!dofi_queue_waits(&ring.q));
	for (i = 0; i < 3; i++)
		ring_complete(i);
	cr_expect_eq(ring.n_retired, 0, "late completions are ignored");
}

Test(wq_state, a_cleared_ring_is_empty)
{
	ring.room = 2;
	post(0, 3);
	dofi_queue_clear(&ring.q);
	cr_expect(dofi_queue_empty(&ring.q));
	cr_expect(!dofi_queue_waits(&ring.q));
	cr_expect(!dofi_queue_ended(&ring.q));
	ring.room = 2;
	post(3, 4);
	cr_expect_eq(ring_cookie(2), 3);
}

/* A ring of other sizes */

static void renew(uint32_t depth, uint32_t max_iov)
{
	struct dofi_queue next;

	cr_assert_eq(dofi_queue_renew(&next, &ring.q, &ring, depth, max_iov), 0);
	dofi_queue_replace(&ring.q, &next);
}

Test(wq_state, another_limit_needs_no_other_slots)
{
	ring.q.open = false;
	post(0, 3);
	ring_blocks_got();
	renew(3, 1);
	cr_expect_eq(ring_blocks_got(), 0);
	cr_expect_eq(ring.q.max_iov, 2, "slots never get smaller");
	cr_expect(!ring_post(99));
	renew(20, 2);
	cr_expect_eq(ring_blocks_got(), 0);
	post(3, 20);
	cr_expect(!ring_post(99));
}

/* A smaller limit does not end operations. */
Test(wq_state, a_limit_below_what_is_posted_takes_no_more)
{
	ring.q.open = false;
	post(0, 6);
	renew(4, 2);
	cr_expect_eq(dofi_queue_used(&ring.q), 6);
	cr_expect(!ring_post(99));
}

static void fill_segments(struct dofi_dto *dto, uint64_t n)
{
	dto->n_iov = 2;
	dto->iov[0] = (struct iovec){ &ring, n };
	dto->iov[1] = (struct iovec){ &ring, n + 1 };
	dto->desc[0] = &ring;
	dto->desc[1] = dto;
	dofi_dto_contexts(dto)[0] = (uint32_t)n;
	dofi_dto_contexts(dto)[1] = (uint32_t)n + 1;
}

/* The counters wrap among the operations that are copied. */
Test(wq_state, more_segments_make_other_slots_with_the_same_operations)
{
	uint32_t i;
	void *desc;

	ring.q.open = false;
	ring_start_at(UINT32_MAX - 2);
	post(0, 6);
	for (i = 0; i < 6; i++)
		fill_segments(from_oldest(i), 10 * i);
	desc = from_oldest(5);
	renew(DEPTH, 5);
	cr_expect_eq(ring.q.max_iov, 5);
	cr_expect_eq(dofi_queue_used(&ring.q), 6);
	for (i = 0; i < 6; i++) {
		const struct dofi_dto *dto = from_oldest(i);

		cr_assert(dto->cookie == i && dto->ep == &ring && dto->n_iov == 2);
		cr_expect_eq(dto->number, ring.q.head + i);
		cr_expect(dto->iov[0].iov_len == 10 * i && dto->iov[1].iov_len == 10 * i + 1);
		cr_expect_eq(dto->desc[0], (void *)&ring);
		cr_expect_eq(dofi_dto_contexts(dto)[0], 10 * i);
		cr_expect_eq(dofi_dto_contexts(dto)[1], 10 * i + 1);
	}
	cr_expect_eq(from_oldest(5)->desc[1], desc);
	ring.q.open = true;
	ring_pump();
	cr_assert_eq(ring.n, 6);
	cr_expect_eq(ring_cookie(5), 5);
}

Test(wq_state, without_memory_the_old_ring_stays)
{
	struct dofi_queue next;
	uint32_t n;

	ring.q.open = false;
	post(0, 3);
	for (n = 0; n < 2; n++) {
		const size_t before = ring_bytes();

		ring_nomem_after((int)n);
		cr_expect(dofi_queue_renew(&next, &ring.q, &ring, DEPTH, 3) < 0);
		cr_expect_eq(ring_bytes(), before);
	}
	ring.q.open = true;
	ring_pump();
	cr_expect_eq(ring.n, 3);
	cr_expect_eq(ring_cookie(2), 2);
}

/* The unread events and the state go along with the operations. */
Test(wq_state, a_new_ring_keeps_its_events_and_its_state)
{
	dofi_unread_add(&ring.unread);
	ring.q.failed = true;
	renew(3, 4);
	cr_expect(ring.q.open && ring.q.failed);
	cr_expect_eq(ring.q.unread, &ring.unread);
	cr_expect_eq(ring.q.soft_limit, 2);
	post(0, 2);
	cr_expect(!ring_post(99));
}

/* Receives that may not use their memory */

static void receive_fill(struct dofi_dto *dto, uint8_t n_iov)
{
	dto->kind = DOFI_DTO_RECV;
	fill_segments(dto, 10);
	dto->n_iov = n_iov;
}

Test(wq_state, a_receive_of_another_pz_is_barred_until_the_pz_is_its_own)
{
	ring.q.open = false;
	post(0, 2);
	receive_fill(from_oldest(0), 2);
	receive_fill(from_oldest(1), 0);
	dofi_queue_change_pz(&ring.q, 1, 2);
	cr_expect(from_oldest(0)->flags & DOFI_DTO_EXCLUDED);
	cr_expect_eq(from_oldest(0)->n_iov, 0);
	cr_expect(!(from_oldest(1)->flags & DOFI_DTO_EXCLUDED), "an empty receive has no memory");
	dofi_queue_change_pz(&ring.q, 2, 3);
	cr_expect_eq(from_oldest(0)->n_iov, 0, "not its PZ either");
	dofi_queue_change_pz(&ring.q, 3, 1);
	cr_expect(!(from_oldest(0)->flags & DOFI_DTO_EXCLUDED));
	cr_expect_eq(from_oldest(0)->n_iov, 2);
	cr_expect_eq(from_oldest(0)->iov[1].iov_len, 11);
}

Test(wq_state, a_receive_whose_memory_is_gone_stays_barred)
{
	ring.q.open = false;
	post(0, 1);
	receive_fill(from_oldest(0), 2);
	dofi_receive_exclude(from_oldest(0), 0);
	dofi_queue_change_pz(&ring.q, 1, 2);
	dofi_queue_change_pz(&ring.q, 2, 1);
	cr_expect(from_oldest(0)->flags & DOFI_DTO_EXCLUDED);
	cr_expect_eq(from_oldest(0)->n_iov, 0);
}
