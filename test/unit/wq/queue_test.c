/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring of slots: its capacity, how it grows, and the order in which operations pass it. */

#include "wq/ring.h"

#include <criterion/criterion.h>
#include <errno.h>

#define DEPTH 16

static void init(void)
{
	ring_make(DEPTH, 1);
}

TestSuite(wq_queue, .init = init, .fini = ring_fini);
/* Tests that make their rings themselves. */
TestSuite(wq_queue_made);

/* Posts operations with the cookies from @first to before @end. */
static void post(uint64_t first, uint64_t end)
{
	uint64_t i;

	for (i = first; i < end; i++)
		cr_assert(ring_post(i), "%llu", (unsigned long long)i);
}

/* The operations with the cookies from 0 to before @n have left the ring, in order. */
static void expect_retired(uint32_t n)
{
	uint32_t i;

	cr_expect_eq(ring.n_retired, n, "%u", ring.n_retired);
	for (i = 0; i < ring.n_retired; i++)
		cr_assert_eq(ring.retired[i], i);
}

static void expect_at_fabric(uint32_t n)
{
	cr_expect_eq(ring.n, n, "%u", ring.n);
}

/* Capacity */

Test(wq_queue_made, room_is_not_rounded)
{
	static const uint32_t depths[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65 };
	unsigned d;

	for (d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
		ring_make(depths[d], 1);
		post(0, depths[d]);
		cr_expect(!ring_post(99), "depth %u", depths[d]);
		cr_expect_eq(dofi_queue_used(&ring.q), depths[d]);
		dofi_queue_fini(&ring.q);
	}
}

Test(wq_queue, begins_with_few_slots)
{
	cr_expect_eq(ring.q.mask + 1, DOFI_QUEUE_FIRST);
	cr_expect_eq(ring.q.steps, 0);
}

/* Operation i has the slot at i & mask. */
Test(wq_queue_made, the_number_of_slots_is_a_power_of_two)
{
	uint32_t depth;

	for (depth = 0; depth < 10; depth++) {
		ring_make(depth, 1);
		cr_expect_eq(ring.q.mask & (ring.q.mask + 1), 0, "depth %u", depth);
		ring_fini();
	}
}

Test(wq_queue_made, a_slot_holds_its_segments_and_only_the_alignment_more)
{
	const size_t segment = sizeof(struct iovec) + sizeof(void *) + sizeof(uint32_t);
	uint32_t iovs;
	size_t needed;

	for (iovs = 0; iovs < 40; iovs++) {
		ring_make(1, iovs);
		needed = sizeof(struct dofi_dto) + iovs * segment;
		cr_expect(ring.q.stride >= needed, "%u segments", iovs);
		cr_expect(ring.q.stride < needed + DOFI_DTO_GENERATIONS, "%u segments", iovs);
		ring_fini();
	}
}

Test(wq_queue, a_reserved_slot_that_is_not_pushed_stays_free)
{
	struct dofi_dto *dto = dofi_queue_reserve(&ring.q);

	cr_assert(dto);
	cr_expect(dofi_queue_empty(&ring.q));
	cr_expect_eq(dofi_queue_reserve(&ring.q), dto);
	cr_expect_eq(dto->number, ring.q.tail);
}

Test(wq_queue, a_slot_is_free_again_when_its_operation_retires)
{
	post(0, DEPTH);
	cr_expect(!ring_post(99));
	ring_complete(1);
	cr_expect(!ring_post(99), "the oldest is still there");
	ring_complete(0);
	post(DEPTH, DEPTH + 2);
	cr_expect(!ring_post(99));
}

/* Growth */

Test(wq_queue, slots_that_are_free_again_are_used_before_it_doubles)
{
	uint32_t i;

	for (i = 0; i < 10 * DOFI_QUEUE_FIRST; i++) {
		post(i, i + 1);
		ring_complete(i);
	}
	cr_expect_eq(ring.q.steps, 0);
	expect_retired(10 * DOFI_QUEUE_FIRST);
}

/*
 * The ring doubles while operations are outstanding, the oldest of which is at any position. They
 * keep their slots, because the fabric has their addresses.
 */
static void doubles_at(uint32_t start, uint32_t first)
{
	uint32_t i;

	ring_make(DEPTH, 1);
	ring_start_at(start);
	post(0, first);
	for (i = 0; i < first; i++)
		ring_complete(i);
	post(first, first + DEPTH);
	cr_expect_eq(ring.q.mask + 1, DEPTH);
	cr_expect_eq(ring.q.steps, 2);
	cr_expect(!ring_post(99));
	for (i = first; i < first + DEPTH; i++) {
		cr_assert_eq(dofi_queue_at(&ring.q, start + i), dofi_dto_of(ring.context[i]),
			     "slot %u", i);
		cr_assert_eq(dofi_queue_at(&ring.q, start + i)->number, start + i);
	}
	for (i = first; i < first + DEPTH; i++)
		ring_complete(i);
	expect_retired(first + DEPTH);
	ring_fini();
}

Test(wq_queue_made, doubles_under_outstanding_operations)
{
	uint32_t first;

	for (first = 0; first < DOFI_QUEUE_FIRST; first++)
		doubles_at(0, first);
}

Test(wq_queue_made, doubles_where_the_counters_wrap)
{
	uint32_t before;

	for (before = 1; before < DEPTH; before++)
		doubles_at(UINT32_MAX - before, 0);
}

Test(wq_queue, doubles_at_most_to_its_limit)
{
	post(0, DEPTH);
	cr_expect_eq(dofi_queue_extend(&ring.q, &ring), 0);
	cr_expect_eq(dofi_queue_extend(&ring.q, &ring), 0);
	cr_expect_eq(ring.q.mask + 1, DEPTH);
	cr_expect(dofi_queue_may_be_full(&ring.q));
}

Test(wq_queue_made, all_memory_is_given_back)
{
	static const uint32_t depths[] = { 0, 1, 4, 5, 100, 400 };
	unsigned d;

	for (d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
		ring_make(depths[d], 3);
		cr_expect(ring_bytes() > 0);
		post(0, depths[d]);
		ring_fini();
	}
	dofi_queue_fini(&ring.q);
	cr_expect_eq(ring_bytes(), 0, "a second end is harmless");
}

/* Without memory */

Test(wq_queue_made, without_memory_there_is_no_ring)
{
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };
	struct dofi_queue next;
	int n;

	for (n = 0; n < 2; n++) {
		ring_nomem_after(n);
		cr_expect_eq(dofi_queue_renew(&next, &nothing, &ring, DEPTH, 1), -ENOMEM);
		cr_expect_eq(ring_bytes(), 0);
	}
	cr_assert_eq(dofi_queue_renew(&next, &nothing, &ring, DEPTH, 1), 0,
		     "there are two allocations");
	dofi_queue_fini(&next);
}

Test(wq_queue, without_memory_it_does_not_double_and_goes_on)
{
	uint32_t i, n;

	post(0, DOFI_QUEUE_FIRST);
	for (n = 0; n < 2; n++) {
		const size_t before = ring_bytes();

		ring_nomem_after((int)n);
		cr_expect_eq(dofi_queue_extend(&ring.q, &ring), -ENOMEM);
		cr_expect_eq(ring_bytes(), before);
		cr_expect(dofi_queue_may_be_full(&ring.q));
		cr_expect_eq(ring.q.mask + 1, DOFI_QUEUE_FIRST);
		ring_complete(n);
		post(DOFI_QUEUE_FIRST + n, DOFI_QUEUE_FIRST + n + 1);
	}
	post(DOFI_QUEUE_FIRST + n, DEPTH + n);
	cr_expect_eq(ring.q.mask + 1, DEPTH, "with memory it doubles");
	for (i = n; i < DEPTH + n; i++)
		ring_complete(i);
	expect_retired(DEPTH + n);
}

Test(wq_queue, only_a_ring_that_is_full_asks_for_memory)
{
	ring_blocks_got();
	post(0, DOFI_QUEUE_FIRST);
	cr_expect_eq(ring_blocks_got(), 0);
	post(DOFI_QUEUE_FIRST, DOFI_QUEUE_FIRST + 1);
	cr_expect_eq(ring_blocks_got(), 2);
	post(DOFI_QUEUE_FIRST + 1, 2 * DOFI_QUEUE_FIRST);
	cr_expect_eq(ring_blocks_got(), 0);
}

/* Events that are not dequeued */

/* As the owner does when it queues an event of an operation that has retired. */
static void event_add(void)
{
	dofi_unread_add(&ring.unread);
	dofi_queue_narrow(&ring.q);
}

static void event_dequeue(void)
{
	dofi_unread_done(&ring.unread, dofi_unread_generation(&ring.unread));
}

Test(wq_queue, an_event_keeps_the_place_of_its_operation)
{
	uint32_t i;

	post(0, DEPTH);
	for (i = 0; i < 3; i++) {
		ring_complete(i);
		event_add();
	}
	cr_expect(!ring_post(99));
	event_dequeue();
	post(DEPTH, DEPTH + 1);
	cr_expect(!ring_post(99));
	event_dequeue();
	event_dequeue();
	post(DEPTH + 1, DEPTH + 3);
	cr_expect(!ring_post(99));
}

Test(wq_queue, events_alone_can_fill_it)
{
	uint32_t i;

	for (i = 0; i < DEPTH; i++) {
		post(i, i + 1);
		ring_complete(i);
		event_add();
	}
	cr_expect(dofi_queue_empty(&ring.q));
	cr_expect(!ring_post(99));
	cr_expect_eq(ring.q.steps, 0, "events need no slots");
	event_dequeue();
	cr_expect(ring_post(99));
}

/* Another queue of the EP may have had the count when its limit was higher. */
Test(wq_queue, more_events_than_its_limit_leave_no_room)
{
	uint32_t i;

	for (i = 0; i < DEPTH + 5; i++)
		event_add();
	cr_expect(!ring_post(0));
	for (i = 0; i < 5; i++)
		event_dequeue();
	cr_expect(!ring_post(0));
	event_dequeue();
	cr_expect(ring_post(0));
}

/* Only a post that finds no room reads the number of events again. */
Test(wq_queue, a_dequeued_event_makes_room_at_the_next_extension)
{
	uint32_t i;

	for (i = 0; i < DEPTH - 1; i++)
		event_add();
	cr_assert_eq(ring.q.soft_limit, 1);
	for (i = 0; i < DEPTH - 1; i++)
		event_dequeue();
	cr_expect_eq(ring.q.soft_limit, 1);
	dofi_queue_widen(&ring.q);
	cr_expect_eq(ring.q.soft_limit, DOFI_QUEUE_FIRST);
}

Test(wq_queue, an_event_leaves_a_lower_watermark)
{
	ring.q.soft_limit = 2;
	event_add();
	cr_expect_eq(ring.q.soft_limit, 2);
}

Test(wq_queue_made, a_ring_without_events_is_not_narrowed)
{
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };
	struct dofi_queue q;

	cr_assert_eq(dofi_queue_renew(&q, &nothing, NULL, 2, 1), 0);
	dofi_queue_narrow(&q);
	cr_expect_eq(q.soft_limit, 2);
	dofi_queue_fini(&q);
}

/* Order */

Test(wq_queue, operations_reach_the_fabric_as_they_were_posted)
{
	uint32_t i;

	ring.room = 2;
	post(0, 5);
	expect_at_fabric(2);
	ring.room = 1;
	post(5, 6);
	expect_at_fabric(3);
	ring.room = 10;
	ring_pump();
	expect_at_fabric(6);
	for (i = 0; i < 6; i++)
		cr_expect_eq(ring_cookie(i), i);
}

/* Every order of three completions. */
Test(wq_queue, completions_in_any_order_retire_as_they_were_posted)
{
	static const uint32_t orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	uint32_t i, j;

	for (i = 0; i < 6; i++) {
		post(3 * i, 3 * i + 3);
		for (j = 0; j < 3; j++) {
			cr_expect_eq(dofi_queue_used(&ring.q) > 0, true);
			ring_complete(3 * i + orders[i][j]);
		}
		cr_expect(dofi_queue_empty(&ring.q));
		expect_retired(3 * i + 3);
	}
}

Test(wq_queue, a_completion_waits_for_those_before_it)
{
	post(0, 3);
	ring_complete(2);
	ring_complete(1);
	expect_retired(0);
	cr_expect(!dofi_queue_ended(&ring.q));
	ring_complete(0);
	expect_retired(3);
}

/* An operation that ended without the fabric is behind next, too, when it retires. */
Test(wq_queue, only_what_has_passed_next_retires)
{
	ring.room = 0;
	post(0, 2);
	dofi_dto_set_done(dofi_queue_at(&ring.q, 0), 0);
	cr_expect(!dofi_queue_ended(&ring.q));
	dofi_queue_advance(&ring.q);
	cr_expect_eq(dofi_queue_ended(&ring.q), dofi_queue_at(&ring.q, 0));
}

Test(wq_queue, a_completion_that_comes_twice_has_no_effect)
{
	void *context;

	post(0, 2);
	context = ring.context[0];
	ring_complete_context(context);
	ring_complete_context(context);
	expect_retired(1);
	/* the slot has another operation by now */
	post(2, 1 + DOFI_QUEUE_FIRST);
	cr_assert_eq(dofi_dto_of(context), dofi_queue_at(&ring.q, 4));
	ring_complete_context(context);
	cr_expect(!dofi_queue_at(&ring.q, 4)->done);
	expect_retired(1);
}

/* Two rings of one process do not begin with the same generation, as memory is used again. */
Test(wq_queue, the_slots_of_another_ring_begin_with_another_generation)
{
	const uint8_t tag = dofi_queue_at(&ring.q, 0)->tag;

	dofi_queue_fini(&ring.q);
	ring_make(DEPTH, 1);
	cr_expect(dofi_queue_at(&ring.q, 0)->tag != tag);
}

Test(wq_queue_made, new_rings_begin_with_every_generation_before_they_repeat_one)
{
	uint64_t seen = 0;
	unsigned i;

	for (i = 0; i < DOFI_DTO_GENERATIONS; i++) {
		ring_make(1, 1);
		cr_assert(dofi_queue_at(&ring.q, 0)->tag < DOFI_DTO_GENERATIONS);
		seen |= 1ull << dofi_queue_at(&ring.q, 0)->tag;
		ring_fini();
	}
	cr_expect_eq(seen, UINT64_MAX);
}

Test(wq_queue, a_number_is_in_flight_from_the_fabric_to_its_end)
{
	const uint32_t start = UINT32_MAX - 1;
	uint32_t i;

	ring_start_at(start);
	ring.room = 3;
	post(0, 4);
	ring_complete(0);
	cr_expect(!dofi_queue_in_flight(&ring.q, start), "it has retired");
	for (i = 1; i < 3; i++)
		cr_expect(dofi_queue_in_flight(&ring.q, start + i), "%u", i);
	cr_expect(!dofi_queue_in_flight(&ring.q, start + 3), "it is pending");
	cr_expect(!dofi_queue_in_flight(&ring.q, start + 4), "it was not posted");
	cr_expect(!dofi_queue_in_flight(&ring.q, start + (1u << 31)));
}
