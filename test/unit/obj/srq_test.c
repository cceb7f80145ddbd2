/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SRQs: their arguments, their limits, the queue of waiting endpoints, and the error of each bad
 * call.
 */

#include "obj/caps.h"
#include "obj/fixture.h"

#define DEPTH 4

static DAT_SRQ_HANDLE srq;
static DAT_SRQ_ATTR attr;

static DAT_RETURN create(DAT_SRQ_HANDLE *out)
{
	return dofi_srq_create(ia, pz, &attr, out);
}

static void init(void)
{
	objects_init();
	attr = (DAT_SRQ_ATTR){ .max_recv_dtos = DEPTH, .max_recv_iov = 2,
			       .low_watermark = DAT_SRQ_LW_DEFAULT };
	succeed(create(&srq));
	async_set(evd);
}

static void fini(void)
{
	async_set(NULL);
	ia_fini();
}

TestSuite(srq, .init = init, .fini = fini);

static struct dofi_srq *inside(void)
{
	return srq;
}

static DAT_RETURN post_segment(DAT_LMR_TRIPLET s, uint64_t n)
{
	return dofi_srq_post_recv(srq, 1, &s, cookie_of(n));
}

static DAT_RETURN post(uint64_t n)
{
	return post_segment(segment(64 * n, 64), n);
}

static DAT_SRQ_PARAM ask(void)
{
	DAT_SRQ_PARAM param;

	succeed(dofi_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

static void expect_low(void)
{
	DAT_EVENT event = event_take(evd, DAT_ASYNC_ERROR_EP_BROKEN);

	cr_expect_eq(event.event_data.asynch_error_event_data.dat_handle, srq);
	cr_expect_eq(event.event_data.asynch_error_event_data.reason,
		     (DAT_COUNT)DAT_SRQ_LOW_WATERMARK_EVENT);
}

/* Takes buffers from the SRQ like an endpoint. */
struct taker {
	struct dofi_srq_user user;
	struct dofi_queue queue;
	unsigned fed;
	bool refuses;
};

static void feed(struct dofi_srq_user *user)
{
	struct taker *t = (struct taker *)user;

	t->fed++;
	if (t->refuses)
		dofi_srq_leave(srq, user);
	else if (dofi_srq_take(srq, user, dofi_queue_reserve(&t->queue)))
		t->queue.tail++;
}

static void taker_init(struct taker *t)
{
	const struct dofi_queue nothing = { .unread = &dofi_unread_none };

	*t = (struct taker){ .user.feed = feed };
	cr_assert_eq(dofi_queue_renew(&t->queue, &nothing, NULL, 8, 2), 0);
}

static bool takes(struct taker *t)
{
	bool got = dofi_srq_take(srq, &t->user, dofi_queue_reserve(&t->queue));

	t->queue.tail += got;
	return got;
}

/* Releases the oldest buffer of @t. Returns its cookie. */
static uint64_t had(struct taker *t)
{
	uint64_t cookie = dofi_queue_oldest(&t->queue)->cookie;

	cr_assert(!dofi_queue_empty(&t->queue));
	t->queue.head++;
	dofi_unread_done(&inside()->given, dofi_unread_generation(&inside()->given));
	return cookie;
}

/* Creating */

Test(srq, creating_checks_what_it_is_given)
{
	DAT_SRQ_HANDLE other;

	expect_handle(dofi_srq_create(NOWHERE, pz, &attr, &other), IA);
	expect_handle(dofi_srq_create(ia, NULL, &attr, &other), PZ);
	expect_handle(dofi_srq_create(ia, evd, &attr, &other), PZ);
	expect_arg(dofi_srq_create(ia, pz, NULL, &other), 3);
	expect_arg(dofi_srq_create(ia, pz, &attr, NULL), 4);
}

Test(srq, creating_checks_each_attribute)
{
	const DAT_SRQ_ATTR good = attr;
	DAT_SRQ_HANDLE other;
	DAT_IA_ATTR most;

	dofi_caps_ia_attr(ia, &most);
	attr.max_recv_dtos = 0;
	expect_arg(create(&other), 3);
	attr.max_recv_dtos = -1;
	expect_arg(create(&other), 3);
	attr.max_recv_dtos = most.max_recv_per_srq + 1;
	expect_arg(create(&other), 3);
	attr = good;
	attr.max_recv_iov = -1;
	expect_arg(create(&other), 3);
	attr.max_recv_iov = most.max_iov_segments_per_dto + 1;
	expect_arg(create(&other), 3);
	attr = good;
	attr.low_watermark = 1;
	expect_arg(create(&other), 3);
}

Test(srq, the_largest_is_made)
{
	DAT_SRQ_HANDLE other;
	DAT_IA_ATTR most;

	dofi_caps_ia_attr(ia, &most);
	attr.max_recv_dtos = most.max_recv_per_srq;
	attr.max_recv_iov = most.max_iov_segments_per_dto;
	succeed(create(&other));
	succeed(dofi_srq_free(other));
}

Test(srq, without_any_the_model_is_not_supported)
{
	DAT_SRQ_HANDLE other;

	ia->limits.max_srqs = 0;
	expect_type(create(&other), DAT_MODEL_NOT_SUPPORTED);
}

Test(srq, the_promised_number_and_no_more)
{
	DAT_SRQ_HANDLE other;

	ia->limits.max_srqs = 2;
	attr.max_recv_dtos = 1;	/* max_srqs limits the receives of an SRQ, too */
	succeed(create(&other));
	expect_ret(create(&other), DOFI_NO_RESOURCE(SRQ));
}

Test(srq, holds_its_pz)
{
	DAT_PZ_HANDLE own;

	succeed(dofi_pz_create(ia, &own));
	succeed(dofi_srq_free(srq));
	succeed(dofi_srq_create(ia, own, &attr, &srq));
	expect_state(dofi_pz_free(own), PZ_IN_USE);
	succeed(dofi_srq_free(srq));
	succeed(dofi_pz_free(own));
}

Test(srq, is_an_object_like_any_other)
{
	DAT_CONTEXT context = { .as_64 = 99 }, got;
	DAT_HANDLE_TYPE type;

	succeed(dofi_get_handle_type(srq, &type));
	cr_expect_eq(type, DAT_HANDLE_TYPE_SRQ);
	succeed(dofi_set_consumer_context(srq, context));
	succeed(dofi_get_consumer_context(srq, &got));
	cr_expect_eq(got.as_64, 99);
	cr_expect(dofi_ia_in_use(ia));
}

Test(srq, a_freed_one_is_no_handle)
{
	DAT_SRQ_PARAM param;

	succeed(dofi_srq_free(srq));
	expect_handle(dofi_srq_free(srq), SRQ);
	expect_handle(dofi_srq_free(NULL), SRQ);
	expect_handle(dofi_srq_query(srq, DAT_SRQ_FIELD_ALL, &param), SRQ);
	expect_handle(dofi_srq_resize(srq, 1), SRQ);
	expect_handle(dofi_srq_set_lw(evd, 1), SRQ);
	expect_handle(dofi_srq_post_recv(NOWHERE, 0, NULL, cookie_of(1)), SRQ);
}

/* Posting */

Test(srq, posting_checks_its_segments)
{
	DAT_LMR_TRIPLET s[3] = { segment(0, 8), segment(8, 8), segment(16, 8) };

	expect_arg(dofi_srq_post_recv(srq, 3, s, cookie_of(1)), 2);
	expect_arg(dofi_srq_post_recv(srq, -1, s, cookie_of(1)), 2);
	expect_arg(dofi_srq_post_recv(srq, 1, NULL, cookie_of(1)), 3);
	s[1].lmr_context ^= 1;
	expect_type(dofi_srq_post_recv(srq, 2, s, cookie_of(1)), DAT_PROTECTION_VIOLATION);
	expect_arg(post_segment(segment(0, sizeof(memory) + 1), 1), 3);
	cr_expect_eq(ask().available_dto_count, 0);
	succeed(dofi_srq_post_recv(srq, 0, NULL, cookie_of(1)));
}

Test(srq, posting_wants_memory_of_its_pz_that_may_be_written)
{
	static char other_memory[64];
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_LMR_HANDLE foreign, readable;
	DAT_RMR_CONTEXT remote;
	DAT_PZ_HANDLE own;

	s.virtual_address = (uintptr_t)other_memory;
	succeed(dofi_pz_create(ia, &own));
	succeed(lmr_make(own, other_memory, 64, DAT_MEM_PRIV_ALL_FLAG, &foreign, &s.lmr_context,
			 &remote));
	expect_type(post_segment(s, 1), DAT_PROTECTION_VIOLATION);
	succeed(lmr_make(pz, other_memory, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG, &readable,
			 &s.lmr_context, &remote));
	expect_type(post_segment(s, 1), DAT_PRIVILEGES_VIOLATION);
}

Test(srq, is_full_at_its_depth)
{
	uint64_t i;

	for (i = 0; i < DEPTH; i++)
		succeed(post(i));
	expect_ret(post(i), DOFI_NO_RESOURCE(SRQ));
	cr_expect_eq(ask().available_dto_count, DEPTH);
}

/* Taking */

Test(srq, buffers_leave_in_the_order_in_which_they_came)
{
	struct taker a;
	uint64_t i;

	taker_init(&a);
	for (i = 0; i < 3; i++)
		succeed(post(i));
	for (i = 0; i < 3; i++) {
		cr_expect(takes(&a));
		cr_expect_eq(had(&a), i);
	}
	cr_expect(!takes(&a));
	dofi_srq_leave(srq, &a.user);
	dofi_queue_fini(&a.queue);
}

Test(srq, what_is_taken_is_all_of_the_post)
{
	DAT_LMR_TRIPLET s[2] = { segment(8, 24), segment(128, 16) };
	struct dofi_dto *dto;
	struct taker a;

	taker_init(&a);
	succeed(dofi_srq_post_recv(srq, 2, s, cookie_of(7)));
	cr_assert(takes(&a));
	dto = dofi_queue_oldest(&a.queue);
	cr_expect_eq(dto->cookie, 7);
	cr_expect_eq(dto->length, 40);
	cr_expect_eq(dto->n_iov, 2);
	cr_expect_eq(dto->iov[1].iov_base, memory + 128);
	cr_expect_eq(dto->iov[1].iov_len, 16);
	had(&a);
	dofi_queue_fini(&a.queue);
}

Test(srq, waiting_endpoints_get_buffers_in_order)
{
	struct taker a, b;

	taker_init(&a);
	taker_init(&b);
	cr_expect(!takes(&a));
	cr_expect(!takes(&b));
	cr_expect(!takes(&a), "it waits already");
	succeed(post(0));
	succeed(post(1));
	succeed(post(2));
	cr_expect_eq(a.fed, 1);
	cr_expect_eq(b.fed, 1);
	cr_expect_eq(had(&a), 0);
	cr_expect_eq(had(&b), 1);
	cr_expect_eq(ask().available_dto_count, 1);
	dofi_queue_fini(&a.queue);
	dofi_queue_fini(&b.queue);
}

Test(srq, an_endpoint_that_needs_no_buffer_leaves_it_to_the_next)
{
	struct taker a, b;

	taker_init(&a);
	taker_init(&b);
	takes(&a);
	takes(&b);
	a.refuses = true;
	succeed(post(5));
	cr_expect_eq(a.fed, 1);
	cr_expect_eq(had(&b), 5);
	dofi_queue_fini(&a.queue);
	dofi_queue_fini(&b.queue);
}

Test(srq, no_endpoint_overtakes_the_line)
{
	struct taker a, b;

	taker_init(&a);
	taker_init(&b);
	takes(&a);
	/* a new buffer: its poster has not served the waiting endpoints yet */
	inside()->queue.tail++;
	cr_expect(!takes(&b));
	cr_expect(takes(&a));
	had(&a);
	dofi_srq_leave(srq, &b.user);
	dofi_queue_fini(&a.queue);
	dofi_queue_fini(&b.queue);
}

/* Querying and modifying */

Test(srq, a_query_checks_what_it_is_given)
{
	DAT_SRQ_PARAM param;

	expect_arg(dofi_srq_query(srq, (DAT_SRQ_PARAM_MASK)(DAT_SRQ_FIELD_ALL + 1), &param), 2);
	expect_arg(dofi_srq_query(srq, DAT_SRQ_FIELD_ALL, NULL), 3);
}

Test(srq, a_query_returns_all)
{
	DAT_SRQ_PARAM param;

	succeed(post(0));
	param = ask();
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	cr_expect_eq(param.pz_handle, pz);
	cr_expect_eq(param.max_recv_dtos, DEPTH);
	cr_expect_eq(param.max_recv_iov, 2);
	cr_expect_eq(param.low_watermark, 0);
	cr_expect_eq(param.available_dto_count, 1);
	cr_expect_eq(param.outstanding_dto_count, 1);
}

Test(srq, what_was_taken_is_still_outstanding)
{
	struct taker a;

	taker_init(&a);
	succeed(post(0));
	succeed(post(1));
	takes(&a);
	cr_expect_eq(ask().available_dto_count, 1);
	cr_expect_eq(ask().outstanding_dto_count, 2);
	had(&a);
	cr_expect_eq(ask().outstanding_dto_count, 1);
	dofi_queue_fini(&a.queue);
}

Test(srq, resizing_keeps_what_is_there)
{
	struct taker a;
	uint64_t i;

	taker_init(&a);
	for (i = 0; i < DEPTH; i++)
		succeed(post(i));
	succeed(dofi_srq_resize(srq, 3 * DEPTH));
	for (; i < 3 * DEPTH; i++)
		succeed(post(i));
	expect_ret(post(i), DOFI_NO_RESOURCE(SRQ));
	for (i = 0; i < 3 * DEPTH; i++) {
		cr_expect(takes(&a));
		cr_expect_eq(had(&a), i);
	}
	succeed(dofi_srq_resize(srq, 1));
	cr_expect_eq(ask().max_recv_dtos, 1);
	succeed(post(0));
	expect_ret(post(1), DOFI_NO_RESOURCE(SRQ));
	dofi_queue_fini(&a.queue);
}

Test(srq, resizing_below_what_is_outstanding_or_watched_is_refused)
{
	struct taker a;

	taker_init(&a);
	succeed(post(0));
	succeed(post(1));
	takes(&a);
	expect_type(dofi_srq_resize(srq, 1), DAT_INVALID_STATE);
	had(&a);
	succeed(dofi_srq_set_lw(srq, 1));
	succeed(dofi_srq_resize(srq, 1));
	succeed(dofi_srq_resize(srq, 3));
	succeed(dofi_srq_set_lw(srq, 3));
	expect_low();
	expect_type(dofi_srq_resize(srq, 2), DAT_INVALID_STATE);
	cr_expect_eq(ask().max_recv_dtos, 3);
	dofi_queue_fini(&a.queue);
}

Test(srq, resizing_checks_the_size)
{
	DAT_IA_ATTR most;

	dofi_caps_ia_attr(ia, &most);
	expect_arg(dofi_srq_resize(srq, 0), 2);
	expect_arg(dofi_srq_resize(srq, -1), 2);
	expect_arg(dofi_srq_resize(srq, most.max_recv_per_srq + 1), 2);
	succeed(dofi_srq_resize(srq, most.max_recv_per_srq));
	cr_expect_eq(ask().max_recv_dtos, most.max_recv_per_srq);
}

/* The low watermark */

Test(srq, the_low_watermark_is_reported_once_when_it_is_passed)
{
	struct taker a;
	uint64_t i;

	taker_init(&a);
	for (i = 0; i < DEPTH; i++)
		succeed(post(i));
	succeed(dofi_srq_set_lw(srq, 3));
	takes(&a);
	cr_expect(event_none(evd), "three are left");
	takes(&a);
	expect_low();
	takes(&a);
	had(&a);
	had(&a);
	succeed(post(0));
	succeed(post(0));
	takes(&a);
	cr_expect(event_none(evd), "once per arming");
	cr_expect_eq(ask().low_watermark, 3);
	while (!dofi_queue_empty(&a.queue))
		had(&a);
	dofi_queue_fini(&a.queue);
}

Test(srq, a_low_watermark_that_is_passed_already_is_reported_at_once)
{
	succeed(dofi_srq_set_lw(srq, 1));
	expect_low();
	succeed(dofi_srq_set_lw(srq, 1));
	expect_low();
	succeed(dofi_srq_set_lw(srq, 0));
	cr_expect(event_none(evd));
}

Test(srq, a_low_watermark_is_no_higher_than_the_depth)
{
	expect_arg(dofi_srq_set_lw(srq, DEPTH + 1), 2);
	expect_arg(dofi_srq_set_lw(srq, -1), 2);
	cr_expect(event_none(evd));
	succeed(dofi_srq_set_lw(srq, DEPTH));
	expect_low();
}
