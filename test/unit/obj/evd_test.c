/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue of an EVD: bounds, order, overflow, resizing, purging, the CQs that feed it. */

#include "obj/fixture.h"

#include "base/log.h"
#include "capture.h"

#include <errno.h>
#include <sched.h>

static DAT_EVD_PARAM param;
static DAT_EVD_HANDLE h;

/* The next @n events of @from carry the numbers from @first on. */
static void expect_numbers(DAT_EVD_HANDLE from, uintptr_t first, unsigned n)
{
	DAT_EVENT event;

	for (; n--; first++) {
		event = event_take(from, DAT_SOFTWARE_EVENT);
		cr_assert_eq(number_of(&event), first);
	}
	cr_expect(event_none(from));
}

static void post_numbers(DAT_EVD_HANDLE to, uintptr_t first, unsigned n)
{
	while (n--)
		succeed(post_number(to, first++));
}

TestSuite(evd, .init = objects_init, .fini = ia_fini);

/* Creating */

static DAT_RETURN make(DAT_COUNT qlen, DAT_CNO_HANDLE cno, int flags)
{
	return dofi_evd_create(ia, qlen, cno, (DAT_EVD_FLAGS)flags, &h);
}

Test(evd, create_checks_its_arguments)
{
	expect_handle(dofi_evd_create(pz, 1, NULL, DAT_EVD_DTO_FLAG, &h), IA);
	expect_arg(make(0, NULL, DAT_EVD_DTO_FLAG), 2);
	expect_arg(make(-1, NULL, DAT_EVD_DTO_FLAG), 2);
	expect_handle(make(1, evd, DAT_EVD_DTO_FLAG), CNO);
	expect_handle(make(1, NOWHERE, DAT_EVD_DTO_FLAG), CNO);
	expect_arg(make(1, NULL, 0), 4);
	expect_arg(make(1, NULL, 0x100000), 4);
	expect_arg(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, NULL), 5);
}

Test(evd, a_length_beyond_the_ias_is_refused)
{
	DAT_IA_ATTR attr;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	expect_type(make(attr.max_evd_qlen + 1, NULL, DAT_EVD_DTO_FLAG), DAT_INSUFFICIENT_RESOURCES);
	expect_type(make(INT32_MAX, NULL, DAT_EVD_DTO_FLAG), DAT_INSUFFICIENT_RESOURCES);
	succeed(make(attr.max_evd_qlen, NULL, DAT_EVD_DTO_FLAG));
}

Test(evd, query_returns_all)
{
	succeed(make(5, NULL, DAT_EVD_DTO_FLAG));
	succeed(dofi_evd_query(h, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, ia);
	cr_expect_eq(param.evd_qlen, 5);
	cr_expect_eq(param.evd_flags, DAT_EVD_DTO_FLAG);
	cr_expect_eq(param.cno_handle, DAT_HANDLE_NULL);
	cr_expect_eq((int)param.evd_state, (int)(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE));
}

Test(evd, query_returns_what_was_switched_off)
{
	succeed(dofi_evd_disable(evd));
	succeed(dofi_evd_set_unwaitable(evd));
	succeed(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq((int)param.evd_state, (int)(DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE));
}

Test(evd, query_checks_its_arguments)
{
	expect_type(dofi_evd_query(pz, DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	expect_arg(dofi_evd_query(evd, (DAT_EVD_PARAM_MASK)0x20, &param), 2);
	expect_arg(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), 3);
}

Test(evd, every_call_refuses_other_handles)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	expect_type(dofi_evd_enable(pz), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_disable(NULL), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_set_unwaitable(NOWHERE), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_clear_unwaitable((DAT_EVD_HANDLE)5), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_resize(lmr, 5), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_modify_cno(ia, NULL), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_post_se(pz, &event), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_free(pz), DAT_INVALID_HANDLE);
}

/* The queue */

Test(evd, is_first_in_first_out)
{
	post_numbers(evd, 1, 64);
	expect_numbers(evd, 1, 64);
}

Test(evd, holds_exactly_its_length)
{
	static const DAT_COUNT lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100 };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		h = evd_make(lengths[i], DAT_EVD_SOFTWARE_FLAG);
		post_numbers(h, 1, lengths[i]);
		expect_type(post_number(h, 0), DAT_QUEUE_FULL);
		expect_numbers(h, 1, lengths[i]);
	}
}

Test(evd, wraps_around_its_ring)
{
	uintptr_t in = 1, out = 1;
	DAT_EVENT event;
	unsigned i;

	h = evd_make(5, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < 1000; i++) {
		while (in - out < 1 + i % 5)
			succeed(post_number(h, in++));
		while (in - out > i % 3) {
			event = event_take(h, DAT_SOFTWARE_EVENT);
			cr_assert_eq(number_of(&event), out++);
		}
	}
}

Test(evd, survives_the_wrap_of_its_counter)
{
	h = evd_make(6, DAT_EVD_SOFTWARE_FLAG);
	((struct dofi_evd *)h)->head = UINT32_MAX - 2;
	post_numbers(h, 1, 6);
	expect_numbers(h, 1, 6);
	cr_expect_eq(((struct dofi_evd *)h)->head, 3);
}

Test(evd, dequeue_checks_its_arguments)
{
	DAT_EVENT event;

	expect_type(dofi_evd_dequeue(pz, &event), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_dequeue(NULL, &event), DAT_INVALID_HANDLE);
	expect_arg(dofi_evd_dequeue(evd, NULL), 2);
}

/* Programs compare with the bare code, so the return has no error bit. */
Test(evd, an_empty_queue_is_no_error)
{
	DAT_EVENT event;

	cr_expect_eq(dofi_evd_dequeue(evd, &event), (DAT_RETURN)DAT_QUEUE_EMPTY);
}

/* Software events */

Test(evd, software_events_need_their_flag)
{
	h = evd_make(4, DAT_EVD_DTO_FLAG);
	expect_arg(post_number(h, 1), 1);
}

Test(evd, only_software_events_are_posted)
{
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };

	expect_arg(dofi_evd_post_se(evd, NULL), 2);
	expect_arg(dofi_evd_post_se(evd, &event), 2);
	cr_expect(event_none(evd));
}

/* Overflow */

static int push(DAT_EVD_HANDLE to)
{
	const struct dofi_event event = { .number = DAT_SOFTWARE_EVENT };

	return dofi_evd_push(to, &event, true);
}

static void fill(DAT_EVD_HANDLE to, unsigned n)
{
	while (n--)
		cr_assert_eq(push(to), 0);
}

static DAT_EVD_HANDLE async_make(DAT_COUNT qlen)
{
	async_set(evd_make(qlen, DAT_EVD_ASYNC_FLAG));
	return ia->async_evd;
}

Test(evd, overflow_raises_one_asynchronous_event)
{
	DAT_EVD_HANDLE async = async_make(8);
	DAT_EVENT event;

	h = evd_make(2, DAT_EVD_DTO_FLAG);
	fill(h, 2);
	cr_expect_eq(push(h), -ENOSPC);
	cr_expect_eq(push(h), -ENOSPC);
	event = event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	cr_expect_eq(event.event_data.asynch_error_event_data.dat_handle, h);
	cr_expect(event_none(async));
}

static unsigned count_lines(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/*
 * An error is worth one warning. An event that InfiniBand programs wait for at the end of each
 * connection is not.
 */
Test(evd, an_asynchronous_error_is_logged_once)
{
	static struct capture said;

	dofi_log_max = DOFI_WARN;
	async_make(8);
	capture_begin(&said);
	dofi_async_error(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
	cr_expect_eq(count_lines(capture_end(&said), "asynchronous error"), 1);
	capture_begin(&said);
	dofi_async_event(ia, DAT_ASYNC_ERROR_EP_BROKEN, evd, DAT_EP_TRANSFER_TO_ERROR);
	cr_expect_eq(count_lines(capture_end(&said), "asynchronous error"), 0);
}

Test(evd, overflow_after_relief_is_reported_again)
{
	DAT_EVD_HANDLE async = async_make(8);

	h = evd_make(2, DAT_EVD_DTO_FLAG);
	fill(h, 2);
	push(h);
	event_take(h, DAT_SOFTWARE_EVENT);
	fill(h, 1);
	push(h);
	event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	cr_expect(event_none(async));
}

Test(evd, overflow_keeps_what_was_there)
{
	post_numbers(evd, 1, 64);
	cr_expect_eq(push(evd), -ENOSPC);
	expect_numbers(evd, 1, 64);
}

Test(evd, overflow_of_the_asynchronous_evd_ends_there)
{
	DAT_EVD_HANDLE async = async_make(1);

	fill(async, 1);
	cr_expect_eq(push(async), -ENOSPC);
	h = evd_make(1, DAT_EVD_DTO_FLAG);
	fill(h, 1);
	cr_expect_eq(push(h), -ENOSPC);
}

Test(evd, overflow_without_asynchronous_evd_is_survived)
{
	h = evd_make(1, DAT_EVD_DTO_FLAG);
	fill(h, 1);
	cr_expect_eq(push(h), -ENOSPC);
}

Test(evd, a_full_post_is_returned_to_the_poster_alone)
{
	DAT_EVD_HANDLE async = async_make(4);

	h = evd_make(1, DAT_EVD_SOFTWARE_FLAG);
	succeed(post_number(h, 1));
	expect_type(post_number(h, 2), DAT_QUEUE_FULL);
	cr_expect(event_none(async));
}

/* Resizing */

Test(evd, resize_keeps_events_and_order)
{
	unsigned start, n;
	static const DAT_COUNT to[] = { 7, 8, 9, 64, 500 };

	for (start = 0; start < 8; start++)
		for (n = 0; n < 5; n++) {
			h = evd_make(7, DAT_EVD_SOFTWARE_FLAG);
			post_numbers(h, 1, start % 8 < 7 ? start : 7);
			expect_numbers(h, 1, start % 8 < 7 ? start : 7);
			post_numbers(h, 100, 7);
			succeed(dofi_evd_resize(h, to[n]));
			post_numbers(h, 107, to[n] - 7);
			expect_type(post_number(h, 0), DAT_QUEUE_FULL);
			expect_numbers(h, 100, to[n]);
			succeed(dofi_evd_free(h));
		}
}

Test(evd, resize_may_shrink_to_what_is_in_it)
{
	post_numbers(evd, 1, 3);
	expect_type(dofi_evd_resize(evd, 2), DAT_INVALID_STATE);
	succeed(dofi_evd_resize(evd, 3));
	expect_type(post_number(evd, 4), DAT_QUEUE_FULL);
	expect_numbers(evd, 1, 3);
}

Test(evd, resize_checks_its_arguments)
{
	expect_arg(dofi_evd_resize(evd, 0), 2);
	expect_arg(dofi_evd_resize(evd, -5), 2);
	expect_arg(dofi_evd_resize(evd, INT32_MAX), 2);
}

Test(evd, query_returns_the_new_length)
{
	succeed(dofi_evd_resize(evd, 77));
	succeed(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq(param.evd_qlen, 77);
}

/* Purging */

static void push_connection(DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep)
{
	struct dofi_event event = { .number = number };

	event.data.connect_event_data.ep_handle = ep;
	cr_assert_eq(dofi_evd_push(evd, &event, true), 0);
}

Test(evd, purging_takes_the_endpoints_connection_events_only)
{
	DAT_EP_HANDLE mine = ep_make(), other = ep_make();
	struct dofi_event dto = { .number = DAT_DTO_COMPLETION_EVENT };

	dto.data.dto_completion_event_data.ep_handle = mine;
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, other);
	cr_assert_eq(dofi_evd_push(evd, &dto, true), 0);
	push_connection(DAT_CONNECTION_EVENT_UNREACHABLE, mine);
	succeed(post_number(evd, 9));
	push_connection(DAT_CONNECTION_EVENT_BROKEN, other);
	dofi_evd_purge_ep(evd, mine);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_SOFTWARE_EVENT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(evd, purging_over_the_wrap_keeps_the_order)
{
	DAT_EP_HANDLE mine = ep_make();
	unsigned i;

	succeed(dofi_evd_resize(evd, 8));
	((struct dofi_evd *)evd)->head = 5;
	for (i = 0; i < 4; i++) {
		succeed(post_number(evd, i + 1));
		push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	}
	dofi_evd_purge_ep(evd, mine);
	expect_numbers(evd, 1, 4);
}

/* Feeds */

static struct dofi_cq queue[6];

static unsigned feeds(void)
{
	const struct dofi_evd *e = evd;
	unsigned i, n = 0;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		n += e->feed[i] != NULL;
	return n;
}

Test(evd, a_feed_stays_until_its_last_user)
{
	dofi_evd_feed_get(evd, &queue[0]);
	dofi_evd_feed_get(evd, &queue[0]);
	cr_expect_eq(feeds(), 1);
	dofi_evd_feed_put(evd, &queue[0]);
	cr_expect_eq(feeds(), 1);
	dofi_evd_feed_put(evd, &queue[0]);
	cr_expect_eq(feeds(), 0);
}

/*
 * A waiting or polling thread reads only the feeds that have a slot. The progress thread serves the
 * rest whatever the program does.
 */
Test(evd, more_feeds_than_places_are_left_to_the_thread)
{
	unsigned i;

	for (i = 0; i < 6; i++) {
		queue[i].progress = &ia->progress;
		dofi_evd_feed_get(evd, &queue[i]);
	}
	cr_expect_eq(feeds(), DOFI_EVD_FEEDS);
	for (i = 0; i < 6; i++)
		cr_expect_eq(queue[i].sleepers, i < DOFI_EVD_FEEDS ? 0 : 1, "%u", i);
	for (i = 0; i < 6; i++)
		dofi_evd_feed_put(evd, &queue[i]);
	cr_expect_eq(feeds(), 0);
	for (i = 0; i < 6; i++)
		cr_expect_eq(queue[i].sleepers, 0, "%u", i);
}

/*
 * queue[5] had no slot for its first user. When it goes, it must not free the slot of its second.
 */
Test(evd, a_feed_without_place_takes_none_when_it_goes)
{
	unsigned i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		dofi_evd_feed_get(evd, &queue[i]);
	queue[5].progress = &ia->progress;
	dofi_evd_feed_get(evd, &queue[5]);
	dofi_evd_feed_put(evd, &queue[0]);
	dofi_evd_feed_get(evd, &queue[5]);
	cr_expect_eq(feeds(), DOFI_EVD_FEEDS);
	dofi_evd_feed_put(evd, &queue[5]);
	cr_expect_eq(queue[5].sleepers, 1);
	dofi_evd_feed_put(evd, &queue[5]);
	cr_expect_eq(queue[5].sleepers, 0);
	cr_expect_eq(feeds(), DOFI_EVD_FEEDS - 1);
	for (i = 1; i < DOFI_EVD_FEEDS; i++)
		dofi_evd_feed_put(evd, &queue[i]);
}

/*
 * By itself a CQ only notices threads that read it. So a dequeue of any event marks each feed as
 * taken from.
 */
Test(evd, an_event_found_there_is_reported_to_the_feeds)
{
	DAT_EP_HANDLE mine = ep_make();
	DAT_EVENT event;

	dofi_evd_feed_get(evd, &queue[0]);
	dofi_evd_feed_get(evd, &queue[1]);
	cr_expect_eq(DAT_GET_TYPE(dofi_evd_dequeue(evd, &event)), DAT_QUEUE_EMPTY);
	cr_expect(!queue[0].taken && !queue[1].taken);
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	cr_expect_eq(dofi_evd_dequeue(evd, &event), DAT_SUCCESS);
	cr_expect(queue[0].taken);
	cr_expect(queue[1].taken);
	dofi_evd_feed_put(evd, &queue[0]);
	dofi_evd_feed_put(evd, &queue[1]);
}

/*
 * No thread polls for a CNO, so its feeds must be served even if the program has stopped polling.
 */
Test(evd, the_feeds_of_an_evd_with_a_cno_have_a_sleeper)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
	DAT_CNO_HANDLE cno, other;

	queue[0].progress = queue[1].progress = &ia->progress;
	succeed(dofi_cno_create(ia, no_agent, &cno));
	succeed(dofi_cno_create(ia, no_agent, &other));
	dofi_evd_feed_get(evd, &queue[0]);
	cr_expect_eq(queue[0].sleepers, 0);
	succeed(dofi_evd_modify_cno(evd, cno));
	cr_expect_eq(queue[0].sleepers, 1);
	dofi_evd_feed_get(evd, &queue[0]);
	cr_expect_eq(queue[0].sleepers, 1);
	dofi_evd_feed_get(evd, &queue[1]);
	cr_expect_eq(queue[1].sleepers, 1);
	succeed(dofi_evd_modify_cno(evd, other));
	cr_expect_eq(queue[0].sleepers, 1);
	cr_expect_eq(queue[1].sleepers, 1);
	dofi_evd_feed_put(evd, &queue[1]);
	cr_expect_eq(queue[1].sleepers, 0);
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	cr_expect_eq(queue[0].sleepers, 0);
	dofi_evd_feed_put(evd, &queue[0]);
	dofi_evd_feed_put(evd, &queue[0]);
	cr_expect_eq(queue[0].sleepers, 0);
}

/* Streams: how each notifies */

#define ALL DAT_COMPLETION_DEFAULT_FLAG
#define CHOSEN DAT_COMPLETION_UNSIGNALLED_FLAG
#define SOLICITED DAT_COMPLETION_SOLICITED_WAIT_FLAG

/* Creates an endpoint of these streams, with its connection events going to @conn. */
static DAT_RETURN ep_of(DAT_EVD_HANDLE recv, DAT_COMPLETION_FLAGS recv_flags, DAT_EVD_HANDLE request,
			DAT_COMPLETION_FLAGS request_flags, DAT_EVD_HANDLE conn, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC };

	attr.max_recv_dtos = attr.max_request_dtos = 4;
	attr.recv_completion_flags = recv_flags;
	attr.request_completion_flags = request_flags;
	return dofi_ep_create(ia, pz, recv, request, conn, &attr, ep);
}

Test(evd, completions_that_notify_alike_share)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	succeed(ep_of(dto, CHOSEN, dto, CHOSEN, evd, &a));
	succeed(ep_of(dto, CHOSEN, dto, CHOSEN, evd, &b));
	expect_arg(ep_of(dto, ALL, NULL, ALL, evd, &b), 7);
	expect_arg(ep_of(NULL, ALL, dto, ALL, evd, &b), 7);
	expect_arg(ep_of(evd, ALL, dto, DAT_COMPLETION_EVD_THRESHOLD_FLAG, evd, &b), 7);
	succeed(ep_of(NULL, ALL, NULL, ALL, evd, &b));
	succeed(dofi_ep_free(a));
	expect_arg(ep_of(dto, ALL, dto, ALL, evd, &a), 7);
}

Test(evd, the_last_to_leave_frees_the_choice)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	succeed(ep_of(dto, CHOSEN, evd, ALL, evd, &a));
	expect_arg(ep_of(dto, ALL, dto, ALL, evd, &b), 7);
	succeed(dofi_ep_free(a));
	succeed(ep_of(dto, ALL, dto, DAT_COMPLETION_EVD_THRESHOLD_FLAG, evd, &b));
	expect_arg(ep_of(dto, CHOSEN, evd, ALL, evd, &a), 7);
}

Test(evd, one_endpoint_cannot_mix_either)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep;

	expect_arg(ep_of(dto, CHOSEN, dto, ALL, evd, &ep), 7);
	expect_arg(ep_of(dto, ALL, dto, CHOSEN, evd, &ep), 7);
	succeed(ep_of(dto, ALL, dto, ALL, evd, &ep));
	succeed(dofi_ep_free(ep));
	succeed(dofi_evd_free(dto));
}

/* Events other than completions always notify. */
Test(evd, chosen_notices_share_with_completions_alone)
{
	DAT_EVD_HANDLE both = evd_make(8, DAT_EVD_DEFAULT_FLAG);	/* all but software */
	DAT_EVD_HANDLE software = evd_make(8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG));
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;

	expect_arg(ep_of(software, CHOSEN, NULL, ALL, evd, &ep), 7);
	expect_arg(ep_of(NULL, ALL, software, CHOSEN, evd, &ep), 7);
	expect_arg(ep_of(both, CHOSEN, NULL, ALL, both, &ep), 7);
	succeed(ep_of(both, CHOSEN, NULL, ALL, evd, &ep));
	expect_arg(dofi_psp_create(ia, 7, both, DAT_PSP_CONSUMER_FLAG, &psp), 3);
	expect_arg(dofi_rsp_create(ia, 7, DAT_HANDLE_NULL, both, &rsp), 4);
	cr_expect_eq(transport.listens, 0);
	succeed(dofi_ep_free(ep));
	succeed(dofi_psp_create(ia, 7, both, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_arg(ep_of(both, CHOSEN, NULL, ALL, evd, &ep), 7);
	succeed(dofi_psp_free(psp));
	transport.listen_result = -EADDRINUSE;
	expect_type(dofi_psp_create(ia, 7, both, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_IN_USE);
	succeed(ep_of(both, CHOSEN, NULL, ALL, evd, &ep));
}

Test(evd, solicited_notices_share_with_receives_alone)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	ia->fabric.cq_data = false;
	/* the fabric does not report solicited messages */
	expect_arg(ep_of(dto, SOLICITED, evd, ALL, evd, &a), 7);
	ia->fabric.cq_data = true;
	expect_arg(ep_of(dto, SOLICITED, dto, ALL, evd, &a), 7);
	/* not for requests */
	expect_arg(ep_of(evd, ALL, dto, SOLICITED, evd, &a), 7);
	succeed(ep_of(dto, SOLICITED, evd, ALL, evd, &a));
	succeed(ep_of(dto, SOLICITED, evd, ALL, evd, &b));
	expect_arg(ep_of(dto, CHOSEN, evd, ALL, evd, &b), 7);
	expect_arg(ep_of(evd, ALL, dto, CHOSEN, evd, &b), 7);
}

/*
 * A modification is checked against the new values, not the old ones. If refused, it changes
 * nothing.
 */
Test(evd, streams_may_change_with_their_endpoint)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG), other = evd_make(8, DAT_EVD_DTO_FLAG);
	const DAT_EP_PARAM_MASK flags = DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS;
	DAT_EP_PARAM wanted = { .recv_evd_handle = other };
	DAT_EP_HANDLE ep, second;

	succeed(ep_of(dto, ALL, evd, ALL, evd, &ep));
	wanted.ep_attr.recv_completion_flags = CHOSEN;
	succeed(dofi_ep_modify(ep, flags, &wanted));
	expect_arg(ep_of(dto, ALL, evd, ALL, evd, &second), 7);
	succeed(ep_of(dto, CHOSEN, evd, ALL, evd, &second));
	wanted.ep_attr.recv_completion_flags = ALL;
	expect_arg(dofi_ep_modify(ep, flags, &wanted), 3);
	expect_arg(ep_of(dto, ALL, evd, ALL, evd, &second), 7);
	succeed(dofi_ep_modify(ep, flags | DAT_EP_FIELD_RECV_EVD_HANDLE, &wanted));
	succeed(dofi_ep_free(second));
	succeed(ep_of(dto, ALL, evd, ALL, evd, &second));
	expect_arg(ep_of(other, CHOSEN, evd, ALL, evd, &second), 7);
}

/* Freeing */

Test(evd, in_use_it_is_not_freed)
{
	DAT_EP_HANDLE ep = ep_make();
	DAT_PSP_HANDLE psp;

	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(evd));
}

Test(evd, is_freed_once)
{
	succeed(dofi_evd_free(evd));
	expect_type(dofi_evd_free(evd), DAT_INVALID_HANDLE);
}

Test(evd, a_new_one_is_empty_and_switched_on)
{
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2 * DOFI_POOL_FIRST; i++) {
		h = evd_make(4, DAT_EVD_SOFTWARE_FLAG);
		cr_assert_eq(dofi_evd_dequeue(h, &event), (DAT_RETURN)DAT_QUEUE_EMPTY);
		succeed(dofi_evd_query(h, DAT_EVD_FIELD_ALL, &param));
		cr_assert_eq((int)param.evd_state,
			     (int)(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE));
		post_numbers(h, 1, 4);
		succeed(dofi_evd_disable(h));
		succeed(dofi_evd_set_unwaitable(h));
		succeed(dofi_evd_free(h));
	}
}

Test(evd, a_cno_of_another_ia_is_refused)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
	struct dofi_ia *second;
	DAT_CNO_HANDLE cno;

	cr_assert_eq(ia_try_open(&second), 0);
	succeed(dofi_cno_create(second, no_agent, &cno));
	expect_handle(dofi_evd_modify_cno(evd, cno), CNO);
	expect_handle(make(1, cno, DAT_EVD_DTO_FLAG), CNO);
	succeed(dofi_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
}

/* Several threads post while one takes: each event arrives once, and each thread's in order. */

enum { THREADS = 3, EVENTS = 2000 };

static void *post_all(void *arg)
{
	uintptr_t base = (uintptr_t)arg << 16, i;

	for (i = 1; i <= EVENTS; i++)
		while (post_number(evd, base | i) != DAT_SUCCESS)
			sched_yield();
	return NULL;
}

Test(evd, threads_post_while_one_takes)
{
	uintptr_t last[THREADS] = { 0 }, i;
	pthread_t thread[THREADS];
	unsigned taken = 0;
	DAT_EVENT event;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, post_all, (void *)i);
	while (taken < THREADS * EVENTS) {
		if (dofi_evd_dequeue(evd, &event) != DAT_SUCCESS) {
			sched_yield();
			continue;
		}
		cr_assert_eq((number_of(&event) & 0xffff), ++last[number_of(&event) >> 16]);
		taken++;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect(event_none(evd));
}
