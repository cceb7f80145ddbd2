/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion of operations: each completes once, the contents of its event, and failures. */

#include "obj/cq_data.h"
#include "obj/cno.h"
#include "obj/ep_bind.h"
#include "obj/ops.h"

#include <rdma/fi_errno.h>

TestSuite(ep_dto, .init = ops_init, .fini = ia_fini);

/* Completing */

Test(ep_dto, events_report_what_ended)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_send(1));
	succeed(post_recv(2));
	succeed(post_write(3, 8, 8));
	complete(0);
	d = take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_SEND);
#endif
	complete_with(1, 0, 5);
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 5);	/* as the fabric reports */
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE);
#endif
	complete(2);
	d = take(3, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RDMA_WRITE);
#endif
}

Test(ep_dto, requests_end_in_the_order_of_their_posting)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_send(2));
	succeed(post_write(3, 8, 8));
	complete(2);
	complete(1);
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_dto, receives_do_not_wait_for_requests)
{
	succeed(post_send(1));
	succeed(post_recv(2));
	complete_with(1, 0, 8);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_suppressed_success_is_silent)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	succeed(post_send(2));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_suppressed_failure_is_not)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	complete_with(0, FI_EIO, 0);
	take(1, DAT_DTO_ERR_TRANSPORT);
}

static bool cno_triggered(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE from;

	return dofi_cno_wait(cno, 0, &from) == DAT_SUCCESS;
}

Test(ep_dto, only_an_unsignalled_success_wakes_no_thread)
{
	DAT_EVD_HANDLE out = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_CNO_HANDLE cno;

	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	make_with(evd, out, &attr);
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(out, cno));
	succeed(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG));
	succeed(send_flags(2, 0));
	complete(0);
	cr_expect(!cno_triggered(cno));
	complete(1);
	cr_expect(cno_triggered(cno));
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	while (cno_triggered(cno))
		;
	succeed(send_flags(3, DAT_COMPLETION_UNSIGNALLED_FLAG));
	complete_with(2, FI_EIO, 0);
	cr_expect(cno_triggered(cno));
}

static void arrive_as(unsigned i, bool solicited)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i], .len = 8 };
	const struct dofi_arrived arrived = {
		.kind = DOFI_DTO_RECV, .solicited = solicited, .length = 8,
	};

	dofi_dto_complete_as(&entry, &arrived, NULL);
}

/* The sender decides which messages notify, but failures always do. */
Test(ep_dto, a_solicited_receive_wakes_when_its_sender_says_so)
{
	DAT_EVD_HANDLE in = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_CNO_HANDLE cno;
	int i;

	ia->fabric.cq_data = true;
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	make_with(in, evd, &attr);
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(in, cno));
	for (i = 0; i < 4; i++)
		succeed(post_recv(i));
	complete(0);
	arrive_as(1, false);
	cr_expect(!cno_triggered(cno));
	arrive_as(2, true);
	cr_expect(cno_triggered(cno));
	for (i = 0; i < 3; i++)
		cr_expect_eq(event_take(in, DAT_DTO_COMPLETION_EVENT)
			     .event_data.dto_completion_event_data.user_cookie.as_64, (DAT_UINT64)i);
	while (cno_triggered(cno))
		;
	complete_with(3, FI_EIO, 0);
	cr_expect(cno_triggered(cno));
}

Test(ep_dto, without_the_solicited_flag_each_receive_notifies)
{
	DAT_CNO_HANDLE cno;

	succeed(post_recv(1));
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	arrive_as(0, false);
	cr_expect(cno_triggered(cno));
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 8);
}

Test(ep_dto, unsignalled_is_agreed_for_each_stream)
{
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_LMR_TRIPLET s = segment(0, 8);

	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	make_with(evd_make(8, DAT_EVD_DTO_FLAG), evd, &attr);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	expect_arg(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
}

Test(ep_dto, each_stream_has_its_own_event_queue)
{
	DAT_EVD_HANDLE in = evd_make(4, DAT_EVD_DTO_FLAG), out = evd_make(4, DAT_EVD_DTO_FLAG);

	make_with(in, out, NULL);
	succeed(post_recv(1));
	succeed(post_send(2));
	complete(0);
	cr_expect(event_none(out));
	complete(1);
	event_take(in, DAT_DTO_COMPLETION_EVENT);
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(in) && event_none(out) && event_none(evd));
}

Test(ep_dto, an_event_that_finds_no_room_still_gives_its_slot_back)
{
	DAT_EVD_HANDLE small = evd_make(1, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(4);
	unsigned i;

	make_with(small, small, &attr);
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	for (i = 0; i < 4; i++)
		complete(i);
	event_take(small, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(small));
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
}

Test(ep_dto, without_an_event_queue_there_is_no_event)
{
	succeed(dofi_ep_create(ia, pz, NULL, NULL, evd, NULL, &ep));
	make_connected(ep);
	succeed(post_send(1));
	complete(0);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(ep_dto, a_completion_counts_once)
{
	succeed(post_send(1));
	complete(0);
	complete(0);
	complete_with(0, FI_EIO, 0);
	take(1, DAT_DTO_SUCCESS);
	settle();
	cr_expect(event_none(evd));
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
}

Test(ep_dto, a_completion_of_a_slots_former_user_is_dropped)
{
	unsigned i, slots = inside()->sq.mask + 1;

	for (i = 0; i < slots; i++) {
		succeed(post_send(i));
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	succeed(post_send(slots));
	cr_assert_eq(transport.dto[slots], transport.dto[0]);
	complete(0);
	cr_expect(event_none(evd));
	complete(slots);
	take(slots, DAT_DTO_SUCCESS);
}

/* An operation that is queued is not at the fabric, so a completion for it must be stale. */
Test(ep_dto, a_completion_of_what_was_not_submitted_is_dropped)
{
	DAT_EP_ATTR attr = attr_of_depth(2);
	struct dofi_dto *slot;

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	slot = transport.dto[0];
	transport.taken = 0;
	succeed(post_send(3));
	cr_assert_eq(slot->cookie, 3);
	transport.context[0] = dofi_dto_context(slot);
	complete(0);
	cr_expect(event_none(evd));
	transport.taken = 1;
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_assert_eq(transport.n, 3);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_completion_of_nothing_is_dropped)
{
	const struct fi_cq_data_entry entry = { 0 };

	dofi_dto_complete(&entry, 0, NULL);
	cr_expect(event_none(evd));
}

/* The polling thread takes the event itself. */
static DAT_EVENT taken;

static bool complete_into_sink(unsigned i, DAT_EVD_HANDLE of)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i] };
	struct dofi_sink sink = { .evd = of, .event = &taken };

	dofi_dto_complete(&entry, 0, &sink);
	return !sink.evd;
}

Test(ep_dto, a_polling_thread_gets_the_event_at_once)
{
	succeed(post_send(7));
	cr_expect(complete_into_sink(0, evd));
	cr_expect_eq(taken.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(taken.evd_handle, evd);
	cr_expect_eq(taken.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	cr_expect(event_none(evd));
}

Test(ep_dto, a_polling_thread_does_not_overtake)
{
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	cr_expect(!complete_into_sink(1, evd));
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_polling_thread_gets_only_what_it_polls_for)
{
	succeed(post_send(1));
	cr_expect(!complete_into_sink(0, evd_make(4, EVD_ALL_FLAGS)));
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_polling_thread_gets_one_of_several)
{
	succeed(post_send(1));
	succeed(post_send(2));
	complete(1);
	cr_expect(complete_into_sink(0, evd));
	cr_expect_eq(taken.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	take(2, DAT_DTO_SUCCESS);
}

/* Failing */

static const struct {
	int err;
	DAT_DTO_COMPLETION_STATUS of_send, of_write, of_recv;
	DAT_EVENT_NUMBER end;
} errors[] = {
	{ FI_ECANCELED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED,
	  DAT_CONNECTION_EVENT_DISCONNECTED },
	{ FI_ECONNRESET, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED,
	  DAT_CONNECTION_EVENT_DISCONNECTED },
	{ FI_ETRUNC, DAT_DTO_ERR_REMOTE_RESPONDER, DAT_DTO_ERR_REMOTE_RESPONDER,
	  DAT_DTO_ERR_LOCAL_LENGTH, DAT_CONNECTION_EVENT_BROKEN },
	{ FI_EACCES, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_ERR_REMOTE_ACCESS,
	  DAT_DTO_ERR_LOCAL_PROTECTION, DAT_CONNECTION_EVENT_BROKEN },
	{ FI_ENOKEY, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_ERR_REMOTE_ACCESS,
	  DAT_DTO_ERR_LOCAL_PROTECTION, DAT_CONNECTION_EVENT_BROKEN },
	{ EREMOTEIO, DAT_DTO_ERR_REMOTE_RESPONDER, DAT_DTO_ERR_REMOTE_RESPONDER,
	  DAT_DTO_ERR_LOCAL_LENGTH, DAT_CONNECTION_EVENT_BROKEN },
	{ EMSGSIZE, DAT_DTO_ERR_LOCAL_LENGTH, DAT_DTO_ERR_LOCAL_LENGTH, DAT_DTO_ERR_LOCAL_LENGTH,
	  DAT_CONNECTION_EVENT_BROKEN },
	{ EFAULT, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_ERR_LOCAL_PROTECTION,
	  DAT_DTO_ERR_LOCAL_PROTECTION, DAT_CONNECTION_EVENT_BROKEN },
	{ EBADFD, DAT_DTO_ERR_LOCAL_EP, DAT_DTO_ERR_LOCAL_EP, DAT_DTO_ERR_LOCAL_LENGTH,
	  DAT_CONNECTION_EVENT_BROKEN },
	{ EBADMSG, DAT_DTO_ERR_BAD_RESPONSE, DAT_DTO_ERR_BAD_RESPONSE, DAT_DTO_ERR_BAD_RESPONSE,
	  DAT_CONNECTION_EVENT_BROKEN },
	{ FI_ETIMEDOUT, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT,
	  DAT_CONNECTION_EVENT_BROKEN },
	{ FI_EIO, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT,
	  DAT_CONNECTION_EVENT_BROKEN },
};

static void fail_with(int err, DAT_DTO_COMPLETION_STATUS status, DAT_EVENT_NUMBER end)
{
	complete_with(transport.n - 1, err, 0);
	settle();
	take(1, status);
	event_take(evd, end);
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
}

Test(ep_dto, a_failure_has_its_status_and_ends_the_connection)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		succeed(post_send(1));
		fail_with(errors[i].err, errors[i].of_send, errors[i].end);
		succeed(post_write(1, 8, 8));
		fail_with(errors[i].err, errors[i].of_write, errors[i].end);
		succeed(post_recv(1));
		fail_with(errors[i].err, errors[i].of_recv, errors[i].end);
	}
}

/* soft-RoCE completes a receive with this error if the peer's bad write had data for it. */
Test(ep_dto, a_write_that_is_refused_leaves_its_receive_to_be_flushed)
{
	succeed(post_recv(1));
	fail_with(FI_EKEYREJECTED, DAT_DTO_ERR_FLUSHED, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(post_write(1, 8, 8));
	fail_with(FI_EKEYREJECTED, DAT_DTO_ERR_REMOTE_ACCESS, DAT_CONNECTION_EVENT_BROKEN);
}

/* The transport may give the fabric one byte for a receive of zero bytes. */
Test(ep_dto, a_byte_for_a_receive_of_none_is_too_long)
{
	DAT_LMR_TRIPLET none = segment(0, 0);

	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 0);
	take(1, DAT_DTO_SUCCESS);
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(1, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &none, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(2, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, after_a_failure_the_rest_is_flushed)
{
	int i;

	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	succeed(post_recv(4));
	complete_with(1, FI_EIO, 0);
	settle();
	take(0, DAT_DTO_ERR_FLUSHED);
	take(1, DAT_DTO_ERR_TRANSPORT);
	take(2, DAT_DTO_ERR_FLUSHED);
	take(3, DAT_DTO_ERR_FLUSHED);
	take(4, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(ep_dto, what_the_fabric_refuses_has_failed)
{
	transport.fail = -FI_EIO;
	succeed(post_send(1));
	settle();
	cr_expect_eq(inside()->state, DAT_EP_STATE_DISCONNECTED);
	take(1, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, what_the_fabric_refuses_waits_for_its_elders)
{
	succeed(post_send(1));
	transport.fail = -FI_EIO;
	succeed(post_send(2));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/*
 * After the connection has ended, an error that the fabric cannot name is no failure of the
 * operation.
 */
Test(ep_dto, an_unknown_error_at_the_end_is_a_flush)
{
	struct dofi_ep *e = inside();

	succeed(post_send(1));
	succeed(post_send(2));
	dofi_mutex_lock(&e->lock);
	e->closing = true;
	dofi_ep_open_queues(e);
	dofi_mutex_unlock(&e->lock);
	complete_with(0, FI_EIO, 0);
	complete_with(1, FI_EACCES, 0);
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_LOCAL_PROTECTION);
}

Test(ep_dto, the_next_connection_knows_nothing_of_the_last_ones_operations)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	complete(0);
	complete_with(0, FI_EIO, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(post_send(2));
	succeed(post_send(3));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

/*
 * Either this thread or the progress thread reads the fabric's queue. Each completion arrives once.
 */
Test(ep_dto, what_the_fabrics_queue_holds_arrives_in_order)
{
	DAT_COUNT more;
	DAT_EVENT event;
	uint64_t n;

	for (n = 0; n < 32; n++)
		succeed(post_send(n));
	for (n = 0; n < 32; n++)
		fake_complete(transport.context[n], 0);
	for (n = 0; n < 32; n++) {
		succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
		cr_assert_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	}
	cr_expect(event_none(evd));
}

/* Remote CQ data of a message */

static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT granted;		/* memory[0..63] */

static void bind_with(int priv, int flags, size_t length, DAT_RMR_CONTEXT *context)
{
	const DAT_LMR_TRIPLET part = segment(0, length);

#if DAT_VERSION_MAJOR >= 2
	succeed(dofi_rmr_bind(rmr, lmr, &part, (DAT_MEM_PRIV_FLAGS)priv, DAT_VA_TYPE_VA, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags, context));
#else
	succeed(dofi_rmr_bind(rmr, &part, (DAT_MEM_PRIV_FLAGS)priv, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags, context));
#endif
}

static void init_granted(void)
{
	ops_init();
	succeed(dofi_rmr_create(pz, &rmr));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
}

TestSuite(ep_data, .init = init_granted, .fini = ia_fini);

/* A message of 8 bytes that invalidates @context completes the @i-th operation. */
static void arrive_with(unsigned i, uint32_t context)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i], .len = 8 };
	const struct dofi_arrived arrived = {
		.kind = DOFI_DTO_RECV_INVALIDATE, .immed = context, .length = 8,
	};

	dofi_dto_complete_as(&entry, &arrived, NULL);
}

static bool is_granted(void)
{
	return dofi_rmr_in_force(pz, ep, granted);
}

/* The transport matches a message of @len bytes, with remote CQ data, to the @i-th operation. */
static void match_with(unsigned i, size_t len, uint64_t cq_data)
{
	transport.dto[i]->flags |= DOFI_DTO_MATCHED;
	transport.dto[i]->cq_data = cq_data;
	complete_with(i, 0, len);
}

Test(ep_data, a_matched_receive_reports_its_remote_cq_data)
{
	const unsigned first = transport.n;
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_recv(1));
	succeed(post_recv(2));
	match_with(first, 5, 0);
	d = take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 5);
	match_with(first + 1, 6, dofi_cq_data(DOFI_CQ_DATA_INVALIDATE, false, 0, granted));
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 6);
	cr_expect(!is_granted());
}

Test(ep_data, a_matched_receive_of_nonsense_breaks_the_connection)
{
	const unsigned first = transport.n;

	succeed(post_recv(1));
	match_with(first, 5, dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 3, 0));
	take(1, DAT_DTO_ERR_TRANSPORT);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	/* remote CQ data counts only for a matched receive */
	make_with(evd, evd, NULL);
	succeed(post_recv(2));
	transport.dto[transport.n - 1]->cq_data = 1;
	complete_with(transport.n - 1, 0, 5);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_data, an_invalidation_is_done_before_its_event)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_recv(1));
	succeed(post_recv(2));
	arrive_with(1, granted);
	cr_expect(!is_granted());
	cr_expect(!fake_mr_live(granted));
	cr_expect(event_none(evd), "the first is not done");
	complete_with(0, 0, 8);
	d = take(1, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE);
	cr_expect_eq(d.rmr_context, 0);
#endif
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	cr_expect_eq(d.rmr_context, granted);
#endif
	/* the next operation in the slot does not inherit the context */
	bind_with(0, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	for (unsigned n = 0; n < 64; n++) {
		succeed(post_recv(n));
		complete_with(2 + n, 0, 8);
		d = take(n, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
		cr_assert_eq(d.operation, DAT_DTO_RECEIVE);
#endif
	}
}

/* A hostile peer may send any value. It only breaks its own connection. */
Test(ep_data, what_is_no_grant_of_ours_breaks_the_connection)
{
	const uint32_t bad[] = { 0, granted ^ 1, rmr_context, lmr_context, UINT32_MAX };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		succeed(post_recv(1));
		arrive_with(transport.n - 1, bad[i]);
		settle();
		take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
		event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
		cr_expect(event_none(evd));
		cr_expect(is_granted());
		succeed(dofi_ep_reset(ep));
		make_connected(ep);
	}
}

#if DAT_VERSION_MAJOR >= 2
static DAT_RETURN send_invalidate(DAT_COUNT n, int flags, DAT_BOOLEAN invalidate)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(64, 8) };

	return dofi_ep_post_send_with_invalidate(ep, n, n ? s : NULL, cookie_of(1),
						 (DAT_COMPLETION_FLAGS)flags, invalidate, 0x1234);
}

Test(ep_data, a_send_names_the_context_to_invalidate)
{
	struct dofi_dto *dto;

	succeed(send_invalidate(2, 0, DAT_TRUE));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_SEND_INVALIDATE);
	cr_expect_eq(dto->immed, 0x1234);
	cr_expect_eq(dto->n_iov, 2);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_SEND);
	succeed(send_invalidate(0, 0, DAT_TRUE));
	cr_expect_eq(transport.dto[1]->n_iov, 0);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.dto[2]->kind, DOFI_DTO_SEND, "nothing is to be invalidated");
}

Test(ep_data, a_send_that_invalidates_is_checked_as_any)
{
	DAT_LMR_TRIPLET s = { .lmr_context = 77, .segment_length = 8 };

	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0, DAT_TRUE, 1),
		      EP);
	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0, DAT_FALSE, 1),
		      EP);
	expect_arg(send_invalidate(1000, 0, DAT_TRUE), 2);
	expect_arg(dofi_ep_post_send_with_invalidate(ep, 1, NULL, cookie_of(1), 0, DAT_TRUE, 1), 3);
	expect_arg(send_invalidate(1, 0x4000, DAT_TRUE), 5);
	expect_type(dofi_ep_post_send_with_invalidate(ep, 1, &s, cookie_of(1), 0, DAT_TRUE, 1),
		    DAT_PROTECTION_VIOLATION);
	ia->fabric.cq_data = false;
	expect_type(send_invalidate(1, 0, DAT_TRUE), DAT_MODEL_NOT_SUPPORTED);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.n, 1);
}

/* Reads into an RMR */

static DAT_RMR_TRIPLET target(size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){
		.rmr_context = granted, .virtual_address = (uintptr_t)memory + offset,
		.segment_length = length,
	};
}

static DAT_RETURN read_into(DAT_RMR_TRIPLET local, size_t remote, int flags)
{
	const DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(1), &r, (DAT_COMPLETION_FLAGS)flags);
}

Test(ep_data, a_read_goes_where_the_rmr_says)
{
	struct dofi_dto *dto;

	succeed(read_into(target(8, 56), 40, 0));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_READ);
	cr_expect_eq(dto->n_iov, 1);
	cr_expect_eq(dto->iov[0].iov_base, memory + 8);
	cr_expect_eq(dto->iov[0].iov_len, 40);
	cr_expect_eq(dto->desc[0], ((struct dofi_lmr *)lmr)->desc);
	cr_expect_eq(dto->remote_addr, 0x5000);
	cr_expect_eq(inside()->reads, 1);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_RDMA_READ);
	cr_expect_eq(inside()->reads, 0);
	succeed(read_into((DAT_RMR_TRIPLET){ 0 }, 0, 0));	/* no bytes, so no RMR is needed */
	complete(1);
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_data, a_read_into_an_rmr_is_checked)
{
	const DAT_RMR_TRIPLET r = remote_segment(8), l = target(0, 8);
	DAT_RMR_TRIPLET other = target(0, 8);

	expect_handle(dofi_ep_post_rdma_read_to_rmr(NOWHERE, &l, cookie_of(1), &r, 0), EP);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, NULL, cookie_of(1), &r, 0), 2);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, &l, cookie_of(1), NULL, 0), 4);
	expect_arg(read_into(l, 8, 0x4000), 5);
	expect_type(read_into(l, 9, 0), DAT_LENGTH_ERROR);
	expect_type(read_into(target(60, 8), 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 65), 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = rmr_context;	/* the context of an LMR */
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = 0;
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	bind_with(DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	expect_type(read_into(l, 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 8), 8, 0), DAT_PRIVILEGES_VIOLATION);
	cr_expect_eq(transport.n, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_ep_reset(ep));
	expect_type(read_into(l, 8, 0), DAT_INVALID_STATE);
}

Test(ep_data, a_read_may_follow_its_bind_at_once)
{
	transport.taken = 0;
	succeed(post_send(7));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 32, &granted);
	cr_expect(!is_granted());
	succeed(read_into(target(0, 32), 32, 0));
	transport.taken = 8;
	dofi_mutex_lock(&inside()->lock);
	dofi_dto_pump(inside());
	dofi_mutex_unlock(&inside()->lock);
	cr_assert_eq(transport.n, 2);
	cr_expect_eq(transport.dto[1]->kind, DOFI_DTO_READ);
	complete(0);
	complete(1);
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_SUCCESS);
}

/* The RMR is bound when the read is posted, and unbound when the read is submitted. */
Test(ep_data, a_read_into_what_was_unbound_fails_in_its_turn)
{
	succeed(post_read(7, 8, 8, 0));
	bind_with(0, DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, 1);
	complete(0);
	settle();
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_data, a_read_into_an_rmr_waits_for_its_turn)
{
	DAT_COUNT most = inside()->attr.max_rdma_read_out, i;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, (unsigned)most);
	complete(0);
	cr_expect_eq(transport.n, (unsigned)most + 1);
	cr_expect_eq(inside()->reads, most);
	succeed(read_into(target(0, 8), 8, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	for (i = 1; i <= most; i++) {
		cr_expect_eq(transport.n, (unsigned)most + 1);
		complete(i);
	}
	cr_expect_eq(transport.n, (unsigned)most + 2);
}

Test(ep_data, a_read_into_an_rmr_is_flushed_as_any)
{
	transport.taken = 0;
	succeed(post_send(7));
	succeed(read_into(target(0, 8), 8, 0));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(7, DAT_DTO_ERR_FLUSHED);
	cr_expect_eq(take(1, DAT_DTO_ERR_FLUSHED).operation, DAT_DTO_RDMA_READ);
}
#endif
