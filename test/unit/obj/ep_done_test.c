/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How operations end: the contents of events, which of them notify, failures, and the flush. */

#include "obj/ops.h"

#include "base/log.h"
#include "capture.h"
#include "obj/evd/cno.h"

#include <rdma/fi_errno.h>
#include <errno.h>
#include <string.h>

TestSuite(ep_done, .init = ops_init, .fini = ia_fini);

/* Completing */

Test(ep_done, requests_end_in_the_order_of_their_posting)
{
	succeed(post_write(1, 8, 8));
	succeed(post_send(2));
	succeed(post_read(3, 8, 8, 0));
	complete(2);
	complete(1);
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_done, receives_do_not_wait_for_requests)
{
	succeed(post_send(1));
	succeed(post_recv(2));
	complete_with(1, 0, 8);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_done, a_suppressed_success_is_silent)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	succeed(post_send(2));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_done, a_suppressed_failure_is_not)
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

Test(ep_done, only_an_unsignalled_success_wakes_no_thread)
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

	dofi_dto_complete_as(&entry, 0, &arrived, NULL);
}

/* The sender decides which messages notify, but failures always do. */
Test(ep_done, a_solicited_receive_wakes_when_its_sender_says_so)
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
				     .event_data.dto_completion_event_data.user_cookie.as_64,
			     (DAT_UINT64)i);
	while (cno_triggered(cno))
		;
	complete_with(3, FI_EIO, 0);
	cr_expect(cno_triggered(cno));
}

Test(ep_done, without_the_solicited_flag_each_receive_notifies)
{
	DAT_CNO_HANDLE cno;

	succeed(post_recv(1));
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	arrive_as(0, false);
	cr_expect(cno_triggered(cno));
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 8);
}

Test(ep_done, unsignalled_is_agreed_for_each_stream)
{
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_LMR_TRIPLET s = segment(0, 8);

	ia->strict = true;
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	make_with(evd_make(8, DAT_EVD_DTO_FLAG), evd, &attr);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	expect_arg(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
}

/* As with OFED's provider, which ignores the flag of the operation. */
Test(ep_done, unsignalled_has_no_effect_where_the_stream_did_not_choose_it)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_CNO_HANDLE cno;

	ia->strict = false;
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	succeed(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG));
	complete(0);
	cr_expect(cno_triggered(cno));
	take(1, DAT_DTO_SUCCESS);
	while (cno_triggered(cno))
		;
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(2),
				  (DAT_COMPLETION_FLAGS)(DAT_COMPLETION_UNSIGNALLED_FLAG |
							 DAT_COMPLETION_SUPPRESS_FLAG)));
	complete_with(1, 0, 8);
	cr_expect(cno_triggered(cno));
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_done, each_stream_has_its_own_event_queue)
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

Test(ep_done, an_event_that_finds_no_room_still_gives_its_slot_back)
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

Test(ep_done, without_an_event_queue_there_is_no_event)
{
	succeed(dofi_ep_create(ia, pz, NULL, NULL, evd, NULL, &ep));
	make_connected(ep);
	succeed(post_send(1));
	complete(0);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
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

Test(ep_done, a_polling_thread_gets_the_event_at_once)
{
	succeed(post_send(7));
	cr_expect(complete_into_sink(0, evd));
	cr_expect_eq(taken.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(taken.evd_handle, evd);
	cr_expect_eq(taken.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	cr_expect(event_none(evd));
}

Test(ep_done, a_polling_thread_does_not_overtake)
{
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	cr_expect(!complete_into_sink(1, evd));
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_done, a_polling_thread_gets_only_what_it_polls_for)
{
	succeed(post_send(1));
	cr_expect(!complete_into_sink(0, evd_make(4, EVD_ALL_FLAGS)));
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_done, a_polling_thread_gets_one_of_several)
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
	{ EINVAL, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_ERR_TRANSPORT,
	  DAT_CONNECTION_EVENT_BROKEN },
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

Test(ep_done, a_failure_has_its_status_and_ends_the_connection)
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
Test(ep_done, a_write_that_is_refused_leaves_its_receive_to_be_flushed)
{
	succeed(post_recv(1));
	fail_with(FI_EKEYREJECTED, DAT_DTO_ERR_FLUSHED, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(post_write(1, 8, 8));
	fail_with(FI_EKEYREJECTED, DAT_DTO_ERR_REMOTE_ACCESS, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_done, after_a_failure_the_rest_is_flushed)
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

Test(ep_done, a_request_that_completed_before_a_failed_one_does_not_succeed_behind_it)
{
	succeed(post_write(1, 8, 8));
	succeed(post_send(2));
	complete(1);
	complete_with(0, FI_EIO, 0);
	settle();
	take(1, DAT_DTO_ERR_TRANSPORT);
	take(2, DAT_DTO_ERR_FLUSHED);
}

Test(ep_done, a_request_that_completed_before_a_flushed_one_does_not_succeed_behind_it)
{
	succeed(post_write(1, 8, 8));
	succeed(send_flags(2, DAT_COMPLETION_SUPPRESS_FLAG));
	complete(1);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_FLUSHED);
}

Test(ep_done, requests_of_the_next_connection_succeed_after_a_failure)
{
	succeed(post_send(1));
	fail_with(FI_EIO, DAT_DTO_ERR_TRANSPORT, DAT_CONNECTION_EVENT_BROKEN);
	succeed(post_send(2));
	complete(transport.n - 1);
	take(2, DAT_DTO_SUCCESS);
}

/* The fabric's queue of completions may be read before its queue of connection events. */
Test(ep_done, a_flush_before_the_event_of_the_connection_does_not_end_the_attempt)
{
	DAT_PSP_HANDLE psp;
	int first;

	ep = ep_make();
	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_cr_accept(request_at(psp), ep, 0, NULL));
	settle();
	first = transport.n;
	succeed(post_recv(1));
	succeed(post_recv(2));
	complete_with(first, 0, 8);
	complete_with(first + 1, FI_ECANCELED, 0);
	settle();
	cr_expect(event_none(evd));
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	take(1, DAT_DTO_SUCCESS);
}

/*
 * After the connection has ended, an error that the fabric cannot name is no failure of the
 * operation.
 */
Test(ep_done, an_unknown_error_at_the_end_is_a_flush)
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

/* The log */

/* Ends the connection, with operation 0 failing with @err unless that is 0, and returns the log. */
static const char *log_of_end(int err, bool goodbye)
{
	static struct capture said;
	struct dofi_ep *of = inside();

	dofi_log_max = DOFI_WARN;
	capture_begin(&said);
	dofi_mutex_lock(&of->lock);
	of->no_goodbye = !goodbye;
	if (!err)
		dofi_ep_lost(of, true);
	dofi_mutex_unlock(&of->lock);
	if (err)
		complete_with(0, err, 0);
	settle();
	return capture_end(&said);
}

static void expect_in(const char *log, const char *text)
{
	cr_expect(strstr(log, text), "%s", log);
}

Test(ep_done, the_log_names_the_failed_operation)
{
	const char *log;

	succeed(post_write(7, 8, 8));
	log = log_of_end(FI_EACCES, false);
	expect_in(log, ": RDMA write of 8 bytes, cookie 0x7, to address 0x");
	expect_in(log, ", context 0x");
	expect_in(log, ": Permission denied\n");
	cr_expect(!strstr(log, "broke"), "once is enough: %s", log);
}

Test(ep_done, the_log_names_the_rdma_that_a_lost_connection_ended)
{
	const char *log;

	succeed(post_write(7, 8, 8));
	succeed(post_send(8));
	log = log_of_end(FI_ECANCELED, false);
	expect_in(log, "the connection with 127.0.0.1 ");
	expect_in(log, "broke; in flight: RDMA write of 8 bytes, cookie 0x7, to address 0x");
	expect_in(log, ": the peer may have refused its context, range or privilege\n");
}

Test(ep_done, the_log_names_a_request_without_a_completion)
{
	const char *log;

	succeed(post_send(8));
	log = log_of_end(0, false);
	expect_in(log, "broke; in flight: send of 8 bytes, cookie 0x8\n");
}

Test(ep_done, the_log_tells_of_an_idle_connection_that_broke)
{
	succeed(post_recv(8));
	expect_in(log_of_end(FI_ECANCELED, false), "broke; in flight: no request\n");
}

Test(ep_done, an_orderly_end_is_not_logged)
{
	const char *log;

	succeed(post_send(8));
	log = log_of_end(FI_ECANCELED, true);
	cr_expect_str_eq(log, "");
}
