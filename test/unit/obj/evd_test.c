/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * EVDs: creating, querying, freeing, the arguments of their calls, and the CQs and streams
 * that feed them.
 */

#include "obj/evd_one.h"
#include "obj/reason.h"

#include "base/log.h"
#include "capture.h"
#include "obj/evd/cno.h"

#include <string.h>

static DAT_EVD_PARAM param;
static DAT_EVD_HANDLE h;

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

Test(evd, a_refusal_gives_its_reason)
{
	REASON(dofi_evd_create(pz, 1, NULL, DAT_EVD_DTO_FLAG, &h), "is no open IA");
	REASON(make(0, NULL, DAT_EVD_DTO_FLAG), "evd_min_qlen is 0; permitted: 1 to 1048576");
	REASON(make(1048577, NULL, DAT_EVD_DTO_FLAG), "evd_min_qlen is 1048577; permitted");
	REASON(make(1, NOWHERE, DAT_EVD_DTO_FLAG), "cno_handle 0x7fff00001000 is no live CNO");
	REASON(make(1, NULL, 0x100000), "evd_flags are 0x100000; permitted: some of 0x");
	REASON(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, NULL), "no evd_handle");
}

Test(evd, a_length_beyond_the_ias_is_refused)
{
	DAT_IA_ATTR attr;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	expect_type(make(attr.max_evd_qlen + 1, NULL, DAT_EVD_DTO_FLAG),
		    DAT_INSUFFICIENT_RESOURCES);
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
	cr_expect_eq((int)param.evd_state,
		     (int)(DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE));
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

/* Resizing */

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

/* The other thread has ended the references of the EVD, and not yet its handle. */
Test(evd, an_evd_that_another_thread_frees_is_no_valid_handle)
{
	struct dofi_obj *obj = evd;

	atomic_store(&obj->users, DOFI_OBJ_ENDED);
	expect_type(dofi_evd_free(evd), DAT_INVALID_HANDLE);
	atomic_store(&obj->users, 0);
	succeed(dofi_evd_free(evd));
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

/* The CQs that feed an EVD, and the streams that may share one */

TestSuite(evd_feed, .init = objects_init, .fini = ia_fini);

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

Test(evd_feed, a_feed_stays_until_its_last_user)
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
Test(evd_feed, more_feeds_than_places_are_left_to_the_thread)
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
Test(evd_feed, a_feed_without_place_takes_none_when_it_goes)
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
Test(evd_feed, an_event_found_there_is_reported_to_the_feeds)
{
	DAT_EP_HANDLE mine = ep_make();
	DAT_EVENT event;

	dofi_evd_feed_get(evd, &queue[0]);
	dofi_evd_feed_get(evd, &queue[1]);
	cr_expect_eq(DAT_GET_TYPE(dofi_evd_dequeue(evd, &event)), DAT_QUEUE_EMPTY);
	cr_expect(!queue[0].took_queued && !queue[1].took_queued);
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	cr_expect_eq(dofi_evd_dequeue(evd, &event), DAT_SUCCESS);
	cr_expect(queue[0].took_queued);
	cr_expect(queue[1].took_queued);
	dofi_evd_feed_put(evd, &queue[0]);
	dofi_evd_feed_put(evd, &queue[1]);
}

/*
 * No thread polls for a CNO, so its feeds must be served even if the program has stopped polling.
 */
Test(evd_feed, the_feeds_of_an_evd_with_a_cno_have_a_sleeper)
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
static DAT_RETURN ep_of(DAT_EVD_HANDLE recv, DAT_COMPLETION_FLAGS recv_flags,
			DAT_EVD_HANDLE request, DAT_COMPLETION_FLAGS request_flags,
			DAT_EVD_HANDLE conn, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC };

	attr.max_recv_dtos = attr.max_request_dtos = 4;
	attr.recv_completion_flags = recv_flags;
	attr.request_completion_flags = request_flags;
	return dofi_ep_create(ia, pz, recv, request, conn, &attr, ep);
}

Test(evd_feed, completions_that_notify_alike_share)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	ia->strict = true;
	succeed(ep_of(dto, CHOSEN, dto, CHOSEN, evd, &a));
	succeed(ep_of(dto, CHOSEN, dto, CHOSEN, evd, &b));
	expect_arg(ep_of(dto, ALL, NULL, ALL, evd, &b), 7);
	expect_arg(ep_of(NULL, ALL, dto, ALL, evd, &b), 7);
	expect_arg(ep_of(evd, ALL, dto, DAT_COMPLETION_EVD_THRESHOLD_FLAG, evd, &b), 7);
	succeed(ep_of(NULL, ALL, NULL, ALL, evd, &b));
	succeed(dofi_ep_free(a));
	expect_arg(ep_of(dto, ALL, dto, ALL, evd, &a), 7);
}

Test(evd_feed, the_last_to_leave_frees_the_choice)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	ia->strict = true;
	succeed(ep_of(dto, CHOSEN, evd, ALL, evd, &a));
	expect_arg(ep_of(dto, ALL, dto, ALL, evd, &b), 7);
	succeed(dofi_ep_free(a));
	succeed(ep_of(dto, ALL, dto, DAT_COMPLETION_EVD_THRESHOLD_FLAG, evd, &b));
	expect_arg(ep_of(dto, CHOSEN, evd, ALL, evd, &a), 7);
}

Test(evd_feed, an_endpoint_cannot_mix_notification_on_one_evd)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep;

	ia->strict = true;
	expect_arg(ep_of(dto, CHOSEN, dto, ALL, evd, &ep), 7);
	expect_arg(ep_of(dto, ALL, dto, CHOSEN, evd, &ep), 7);
	succeed(ep_of(dto, ALL, dto, ALL, evd, &ep));
	succeed(dofi_ep_free(ep));
	succeed(dofi_evd_free(dto));
}

/* Events other than completions always notify. */
Test(evd_feed, chosen_notices_share_with_completions_alone)
{
	DAT_EVD_HANDLE both = evd_make(8, DAT_EVD_DEFAULT_FLAG);	/* all but software */
	DAT_EVD_HANDLE software =
		evd_make(8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG));
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;

	ia->strict = true;
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
	expect_type(dofi_psp_create(ia, 7, both, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_CONN_QUAL_IN_USE);
	succeed(ep_of(both, CHOSEN, NULL, ALL, evd, &ep));
}

Test(evd_feed, solicited_notices_share_with_receives_alone)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE a, b;

	ia->strict = true;
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
Test(evd_feed, streams_may_change_with_their_endpoint)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG), other = evd_make(8, DAT_EVD_DTO_FLAG);
	const DAT_EP_PARAM_MASK flags = DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS;
	DAT_EP_PARAM wanted = { .recv_evd_handle = other };
	DAT_EP_HANDLE ep, second;

	ia->strict = true;
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

/* Without the strictness of DAT any streams share an EVD, which knows how each notifies. */

static DAT_COMPLETION_FLAGS notice_of(DAT_EVD_HANDLE handle)
{
	return ((struct dofi_evd *)handle)->notice;
}

Test(evd_feed, any_streams_share_an_evd_that_is_not_strict)
{
	DAT_EVD_HANDLE all = evd_make(8, DAT_EVD_DEFAULT_FLAG);	/* all but software */
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE a, b, c;

	ia->fabric.cq_data = true;
	ia->strict = false;
	succeed(ep_of(all, ALL, all, CHOSEN, all, &a));
	cr_expect_eq(notice_of(all), CHOSEN);
	succeed(ep_of(all, SOLICITED, all, ALL, all, &b));
	cr_expect_eq((int)notice_of(all), CHOSEN | SOLICITED);
	succeed(ep_of(all, CHOSEN, all, CHOSEN, all, &c));
	succeed(dofi_psp_create(ia, 7, all, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_ep_free(a));
	cr_expect_eq((int)notice_of(all), CHOSEN | SOLICITED);
	succeed(dofi_ep_free(c));
	cr_expect_eq(notice_of(all), SOLICITED);
	succeed(dofi_ep_free(b));
	cr_expect_eq(notice_of(all), ALL);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(all));
}

Test(evd_feed, software_and_asynchronous_events_share_as_well)
{
	DAT_EVD_HANDLE software = evd_make(8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG |
			DAT_EVD_SOFTWARE_FLAG | DAT_EVD_ASYNC_FLAG));
	DAT_EP_HANDLE a, b;

	ia->strict = false;
	succeed(ep_of(software, CHOSEN, NULL, ALL, evd, &a));
	cr_expect(dofi_evd_take_async(software));
	succeed(ep_of(software, CHOSEN, NULL, ALL, evd, &b));
}

/* The log has the reason of a refusal, and how to lift it. */
Test(evd_feed, a_refusal_names_the_reason_and_the_setting)
{
	DAT_EVD_HANDLE dto = evd_make(8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_ASYNC_FLAG));
	static struct capture said;
	const char *text;
	DAT_EP_HANDLE ep;

	ia->strict = true;
	dofi_log_max = DOFI_WARN;
	capture_begin(&said);
	expect_arg(ep_of(dto, ALL, dto, CHOSEN, evd, &ep), 7);
	text = capture_end(&said);
	cr_expect(strstr(text, "flags 0x4 are refused"), "%s", text);
	cr_expect(strstr(text, "notify differently; DAT_OFI_STRICT=0 accepts"), "%s", text);
	succeed(ep_of(dto, CHOSEN, NULL, ALL, evd, &ep));
	capture_begin(&said);
	cr_expect(!dofi_evd_take_async(dto));
	text = capture_end(&said);
	cr_expect(strstr(text, "DAT_OFI_STRICT=0"), "%s", text);
}
