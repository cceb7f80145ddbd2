/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Buffers of an SRQ for endpoints with a transport that matches messages to them itself. */

#include "obj/caps.h"
#include "obj/fixture.h"
#include "obj/mem/segments.h"

#define DEPTH 8

static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE async;
static DAT_EP_ATTR attr;

/* The transport of these tests, and the messages of each endpoint that wait for a buffer. */
static struct dofi_xport matching;
static struct { struct dofi_ep *ep; int messages; } waiting[2];
static int resumed, fed;

static int *messages_of(const struct dofi_ep *of)
{
	return &waiting[waiting[0].ep == of ? 0 : 1].messages;
}

/* Receives messages of 8 bytes while there are buffers. */
static void match(struct dofi_ep *of)
{
	struct dofi_dto *dto;

	while (*messages_of(of) && (dto = dofi_srq_receive(of))) {
		of->resume_pending = --*messages_of(of);
		cr_expect(dto->at_fabric && !dto->done && !dto->cq_data);
		cr_expect_eq(dto->flags, DOFI_DTO_SHARED);
		cr_expect_eq(dto->kind, DOFI_DTO_RECV);
		cr_expect_eq(dto->ep, of);
		dofi_dto_trim(dto, 8);
		dofi_dto_end(of, dto, dofi_dto_received(of, dto), NULL);
	}
	of->resume_pending = *messages_of(of);
}

static void resume(struct dofi_ep *of)
{
	resumed++;
	match(of);
}

static void feed(struct dofi_ep *of)
{
	fed++;
	match(of);
}

static void message_at(DAT_EP_HANDLE handle)
{
	struct dofi_ep *of = handle;

	dofi_mutex_lock(&of->lock);
	++*messages_of(of);
	match(of);
	dofi_mutex_unlock(&of->lock);
}

static DAT_EP_HANDLE create(void)
{
	DAT_EP_HANDLE made;

	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &made));
	return made;
}

static void init(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = DEPTH, .max_recv_iov = 2,
				  .low_watermark = DAT_SRQ_LW_DEFAULT };

	objects_init();
	matching = transport_ops;
	matching.srq_fed = feed;
	matching.srq = NULL;
	matching.resume = resume;
	ia->xport = &matching;
	async = evd_make(64, DAT_EVD_ASYNC_FLAG);
	async_set(async);
	succeed(dofi_srq_create(ia, pz, &srq_attr, &srq));
	succeed(dofi_caps_ep_attr(ia, NULL, &attr));
	ep = create();
	waiting[0].ep = ep;
	make_connected(ep);
}

static void fini(void)
{
	async_set(NULL);
	ia_fini();
}

TestSuite(ep_srq, .init = init, .fini = fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static void post(uint64_t n)
{
	succeed(srq_post_at(srq, 256 * n, 256, n));
}

static DAT_COUNT available(void)
{
	DAT_SRQ_PARAM param;

	succeed(dofi_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param.available_dto_count;
}

static void expect_of(DAT_EP_HANDLE of, uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->ep_handle, of);
	cr_expect_eq(d->user_cookie.as_64, n);
	cr_expect_eq(d->status, status);
	cr_expect(status || d->transfered_length == 8);
}

static void expect_dto(uint64_t n)
{
	expect_of(ep, n, DAT_DTO_SUCCESS);
}

static void expect_broken(void)
{
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
}

Test(ep_srq, an_ep_without_frames_registers_and_posts_nothing)
{
	const int before = fake.open;
	DAT_EP_HANDLE other = create();

	cr_expect_eq(fake.open, before, "no memory for them is registered");
	waiting[1].ep = other;
	make_connected(other);
	cr_expect_eq(transport.n, 0, "none is listened for");
	succeed(dofi_ep_disconnect(other, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_free(other));
}

Test(ep_srq, a_message_takes_the_oldest_buffer)
{
	post(1);
	post(2);
	message_at(ep);
	expect_dto(1);
	cr_expect_eq(available(), 1);
	message_at(ep);
	expect_dto(2);
	cr_expect(event_none(evd));
}

Test(ep_srq, a_buffer_whose_event_finds_no_room_in_its_evd_is_free_again)
{
	DAT_EVD_HANDLE small = evd_make(1, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE other;
	unsigned i;

	succeed(dofi_ep_create_with_srq(ia, pz, small, evd, evd, srq, &attr, &other));
	waiting[1].ep = other;
	make_connected(other);
	for (i = 0; i < DEPTH; i++)
		post(i);
	for (i = 0; i < DEPTH; i++)
		message_at(other);
	for (i = 0; i < DEPTH - 1; i++)
		post(i);
	expect_type(srq_post_at(srq, 0, 256, 0), DAT_INSUFFICIENT_RESOURCES);
	event_take(small, DAT_DTO_COMPLETION_EVENT);
	post(i);
}

Test(ep_srq, what_the_transport_has_is_not_given_to_it)
{
	struct dofi_dto *dto;

	post(1);
	dofi_mutex_lock(&inside()->lock);
	dto = dofi_srq_receive(ep);
	cr_assert(dto);
	cr_expect_eq(dto->iov[0].iov_base, memory + 256);
	cr_expect_eq(dto->iov[0].iov_len, 256);
	dofi_dto_submit_pending(ep);
	cr_expect_eq(transport.n, 0);
	dofi_mutex_unlock(&inside()->lock);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_of(ep, 1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep_srq, messages_wait_for_buffers_in_turn)
{
	DAT_EP_HANDLE other = create();
	int i;

	waiting[1].ep = other;
	make_connected(other);
	message_at(ep);
	message_at(other);
	message_at(ep);
	cr_expect(event_none(evd));
	for (i = 0; i < 3; i++)
		post(i);
	expect_of(ep, 0, DAT_DTO_SUCCESS);
	/* for its second message the first endpoint queues up again, behind the other */
	expect_of(other, 1, DAT_DTO_SUCCESS);
	expect_of(ep, 2, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	cr_expect_eq(fed, 3);
}

Test(ep_srq, an_ended_endpoint_leaves_the_line)
{
	DAT_EP_HANDLE other = create();

	waiting[1].ep = other;
	make_connected(other);
	message_at(ep);
	message_at(other);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	post(1);
	expect_of(other, 1, DAT_DTO_SUCCESS);
}

/* The endpoint is closing, but the progress thread has not closed it yet. */
static void end_and_post(void *arg)
{
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dofi_mutex_unlock(&inside()->lock);
	post(1);
	cr_expect_eq(available(), 1);
	cr_expect(!dofi_srq_waits(dofi_srq_check(srq), &inside()->srq_user));
}

Test(ep_srq, an_ending_endpoint_takes_no_buffer)
{
	message_at(ep);
	dofi_progress_call(&ia->progress, end_and_post, NULL);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

/*
 * A thread may be about to feed an endpoint that is freed. It finds an endpoint that waits for
 * nothing.
 */
Test(ep_srq, a_late_feeding_is_harmless)
{
	struct dofi_srq_user *user = &inside()->srq_user;

	post(1);
	user->feed(user);
	cr_expect_eq(available(), 1);
	cr_expect_eq(fed, 0);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	succeed(dofi_ep_free(ep));
	user->feed(user);
	cr_expect_eq(available(), 1);
	cr_expect_eq(fed, 0);
}

Test(ep_srq, an_endpoint_takes_no_more_than_it_may_hold)
{
	struct dofi_dto *dto;

	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_free(ep));
	attr.max_recv_dtos = 1;
	ep = waiting[0].ep = create();
	make_connected(ep);
	post(1);
	post(2);
	dofi_mutex_lock(&inside()->lock);
	dto = dofi_srq_receive(ep);
	cr_assert(dto);
	/* the message waits for the first operation to end, and not for a buffer */
	++*messages_of(ep);
	match(ep);
	cr_expect(inside()->resume_pending);
	cr_expect(!dofi_srq_waits(dofi_srq_check(srq), &inside()->srq_user));
	cr_expect_eq(resumed, 0);
	dofi_dto_trim(dto, 8);
	dofi_dto_end(ep, dto, dofi_dto_received(ep, dto), NULL);
	cr_expect_eq(resumed, 1);
	dofi_mutex_unlock(&inside()->lock);
	expect_dto(1);
	expect_dto(2);
	cr_expect_eq(inside()->receipts[DOFI_DTO_RECV].ops, 2);
	cr_expect_eq(inside()->receipts[DOFI_DTO_RECV].bytes, 16);
}

Test(ep_srq, memory_that_was_freed_is_not_received_into)
{
	static char own[64];
	DAT_LMR_TRIPLET s = segment(0, 64);
	DAT_LMR_HANDLE gone;
	DAT_RMR_CONTEXT remote;

	succeed(lmr_make(pz, own, 64, DAT_MEM_PRIV_ALL_FLAG, &gone, &s.lmr_context, &remote));
	s.virtual_address = (uintptr_t)own;
	succeed(dofi_srq_post_recv(srq, 1, &s, cookie_of(6)));
	post(1);
	succeed(dofi_lmr_free(gone));
	message_at(ep);
	settle();
	expect_of(ep, 6, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_broken();
	cr_expect_eq(available(), 1);
}

static void expect_async(DAT_COUNT reason)
{
	DAT_EVENT event = event_take(async, DAT_ASYNC_ERROR_EP_BROKEN);

	cr_expect_eq(event.event_data.asynch_error_event_data.dat_handle, ep);
	cr_expect_eq(event.event_data.asynch_error_event_data.reason, reason);
}

Test(ep_srq, the_hard_watermark_breaks_the_connection)
{
	post(1);
	dofi_mutex_lock(&inside()->lock);
	inside()->hard_watermark = 0;
	cr_expect(!dofi_srq_receive(ep));
	dofi_mutex_unlock(&inside()->lock);
	settle();
	expect_of(ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_broken();
}

/* Frees the connected EP of the fixture, and makes another. */
static void make_anew(void)
{
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_async(DAT_EP_TRANSFER_TO_ERROR);
	succeed(dofi_ep_free(ep));
	ep = waiting[0].ep = create();
}

/* The EP has a soft watermark of one buffer. */
static void second_buffer_is_reported(void)
{
	make_connected(ep);
	post(1);
	post(2);
	dofi_mutex_lock(&inside()->lock);
	cr_expect(dofi_srq_receive(ep));
	cr_expect(event_none(async));
	cr_expect(dofi_srq_receive(ep));
	dofi_mutex_unlock(&inside()->lock);
	expect_async(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	cr_expect(event_none(async));
}

Test(ep_srq, the_soft_watermark_of_the_attributes_is_reported)
{
	attr.srq_soft_hw = 1;
	make_anew();
	second_buffer_is_reported();
}

Test(ep_srq, a_modified_soft_watermark_is_reported)
{
	DAT_EP_PARAM param;

	make_anew();
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.srq_soft_hw = 1;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	second_buffer_is_reported();
}

Test(ep_srq, an_endpoint_names_what_it_lacks)
{
	DAT_EP_HANDLE made;
	DAT_PZ_HANDLE zone;

	succeed(dofi_pz_create(dofi_ia_export(ia), &zone));
	expect_arg(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, NULL, &made), 7);
	expect_arg(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, NULL), 8);
	expect_arg(dofi_ep_create_with_srq(ia, zone, evd, evd, evd, srq, &attr, &made), 2);
	attr.srq_soft_hw = DAT_HW_DEFAULT - 1;
	expect_arg(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &made), 7);
}
