/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One slot: its context and generations, its kinds, and copies of an operation. */

#include "wq/ring.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

static void init(void)
{
	ring_make(4, 2);
}

TestSuite(wq_dto, .init = init, .fini = ring_fini);

static struct dofi_dto *slot(void)
{
	return dofi_queue_at(&ring.q, 0);
}

/* Contexts */

Test(wq_dto, a_context_leads_to_its_slot)
{
	struct dofi_dto *dto = slot();
	unsigned i;

	for (i = 0; i < 2 * DOFI_DTO_GENERATIONS; i++) {
		dofi_dto_renew(dto);
		cr_assert_eq(dofi_dto_of(dofi_dto_context(dto)), dto);
	}
	cr_expect(!dofi_dto_of(NULL));
}

Test(wq_dto, no_context_comes_twice_before_all_others_have)
{
	struct dofi_dto *dto = slot();
	void *context[DOFI_DTO_GENERATIONS];
	unsigned i, j;

	for (i = 0; i < DOFI_DTO_GENERATIONS; i++) {
		dofi_dto_renew(dto);
		context[i] = dofi_dto_context(dto);
		for (j = 0; j < i; j++)
			cr_assert(context[j] != context[i], "%u and %u", j, i);
	}
	dofi_dto_renew(dto);
	cr_expect_eq(dofi_dto_context(dto), context[0]);
}

/* The fabric may have a context of the fast path while the slot is used by the slow path. */
Test(wq_dto, plain_and_other_operations_share_the_generations)
{
	struct dofi_dto *dto = slot();
	void *first, *second;

	first = dofi_dto_renew_plain(dto);
	cr_expect(dofi_dto_is_plain(dto));
	cr_expect_eq(first, dofi_dto_context(dto));
	dofi_dto_renew(dto);
	second = dofi_dto_context(dto);
	cr_expect(!dofi_dto_is_plain(dto));
	cr_expect(second != first);
	cr_expect(dofi_dto_renew_plain(dto) != second);
}

Test(wq_dto, awaits_its_newest_context_while_it_is_at_the_fabric)
{
	struct dofi_dto *dto = slot();
	void *old = dofi_dto_renew_plain(dto), *now = dofi_dto_renew_plain(dto);

	dto->at_fabric = true;
	cr_expect(dofi_dto_awaits(dto, now));
	cr_expect(!dofi_dto_awaits(dto, old));
	dofi_dto_set_done(dto, 0);
	cr_expect(!dofi_dto_awaits(dto, now));
}

Test(wq_dto, slots_are_aligned_to_their_generations)
{
	uint32_t i;

	for (i = 0; i <= ring.q.mask; i++)
		cr_expect_eq((uintptr_t)dofi_queue_at(&ring.q, i) % DOFI_DTO_GENERATIONS, 0);
}

/* Beginning and end */

Test(wq_dto, an_operation_begins_away_from_the_fabric)
{
	struct dofi_dto *dto = slot();

	memset(&dto->kind, 0xff,
	       offsetof(struct dofi_dto, status) - offsetof(struct dofi_dto, kind));
	dofi_dto_begin(dto, 17);
	cr_expect_eq(dto->number, 17);
	cr_expect(!dto->at_fabric && !dto->done);
	cr_expect_eq(dto->parts, 0);
	cr_expect_eq(dto->step, DOFI_STEP_NONE);
}

Test(wq_dto, an_operation_that_has_ended_is_not_at_the_fabric)
{
	struct dofi_dto *dto = slot();

	dofi_dto_begin(dto, 0);
	dto->at_fabric = true;
	dofi_dto_set_done(dto, 9);
	cr_expect(dto->done && !dto->at_fabric);
	cr_expect_eq(dto->status, 9);
}

/* Kinds */

Test(wq_dto, a_kind_is_a_send_or_a_receive_or_rdma_or_none)
{
	static const unsigned sets[] = { DOFI_DTO_SENDS | DOFI_DTO_DATAGRAMS, DOFI_DTO_RECVS,
					 DOFI_DTO_RDMA };
	static const unsigned none =
		1u << DOFI_DTO_BIND | 1u << DOFI_DTO_READ_TO_RMR | 1u << DOFI_DTO_PREAMBLE |
		1u << DOFI_DTO_PROBE;
	uint8_t kind;

	for (kind = 0; kind < DOFI_DTO_KINDS; kind++) {
		const int in = dofi_dto_is(kind, sets[0]) + dofi_dto_is(kind, sets[1]) +
			       dofi_dto_is(kind, sets[2]);

		cr_expect_eq(in, !dofi_dto_is(kind, none), "kind %u", kind);
	}
	cr_expect_eq(DOFI_DTO_ATOMICS & ~DOFI_DTO_READS, 0, "an atomic returns data");
	cr_expect_eq(DOFI_DTO_READS & ~DOFI_DTO_RDMA, 0);
	cr_expect_eq(DOFI_DTO_DATAGRAMS & DOFI_DTO_SENDS, 0);
}

/* Copies */

Test(wq_dto, a_copy_keeps_its_own_slot)
{
	struct dofi_dto *from, *to = dofi_queue_at(&ring.q, 1);
	const uint8_t tag = DOFI_DTO_GENERATIONS - 1;
	void **desc = to->desc;
	struct dofi_queue other, nothing = { .unread = &dofi_unread_none };

	cr_assert_eq(dofi_queue_renew(&other, &nothing, NULL, 2, 2), 0);
	from = dofi_queue_at(&other, 0);
	dofi_dto_begin(from, 5);
	from->cookie = 42;
	from->length = 30;
	from->kind = DOFI_DTO_RECV;
	from->n_iov = 2;
	from->iov[0] = (struct iovec){ &ring, 10 };
	from->iov[1] = (struct iovec){ &other, 20 };
	from->desc[0] = from;
	from->desc[1] = to;
	dofi_dto_contexts(from)[0] = 100;
	dofi_dto_contexts(from)[1] = 101;
	to->number = 3;
	to->tag = tag;
	dofi_dto_copy(to, from, 2);
	cr_expect_eq(to->ep, &ring);
	cr_expect_eq(to->tag & (DOFI_DTO_GENERATIONS - 1), tag);
	cr_expect(dofi_dto_is_plain(to));
	dofi_dto_renew(from);
	dofi_dto_copy(to, from, 2);
	cr_expect(!dofi_dto_is_plain(to), "the copy has segments too");
	cr_expect_eq(to->tag & (DOFI_DTO_GENERATIONS - 1), tag);
	cr_expect_eq(to->number, 3);
	cr_expect_eq(to->desc, desc);
	cr_expect(to->cookie == 42 && to->length == 30);
	cr_expect(to->kind == DOFI_DTO_RECV && to->n_iov == 2);
	cr_expect(to->iov[0].iov_base == &ring && to->iov[0].iov_len == 10);
	cr_expect(to->iov[1].iov_base == &other && to->iov[1].iov_len == 20);
	cr_expect(to->desc[0] == from && to->desc[1] == to);
	cr_expect(dofi_dto_contexts(to)[0] == 100 && dofi_dto_contexts(to)[1] == 101);
	dofi_queue_fini(&other);
}

/* Each slot has room for its segments: no slot's fields are in the next slot. */
Test(wq_dto, segments_have_room_in_their_slot)
{
	struct dofi_dto *dto = slot();
	const char *end = (const char *)(dofi_dto_contexts(dto) + ring.q.max_iov);

	cr_expect_eq((void *)dto->desc, (void *)&dto->iov[ring.q.max_iov]);
	cr_expect(end <= (const char *)dto + ring.q.stride);
	cr_expect((const char *)dofi_queue_at(&ring.q, 1) == (const char *)dto + ring.q.stride);
}
