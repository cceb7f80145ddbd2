/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints of an SRQ that receive by preambles: the fate of each one and its buffer, and of
 * both at the end of the connection.
 */

#include "obj/caps.h"
#include "obj/fixture.h"
#include "obj/reason.h"
#include "xport/msg/msg.h"

#include <rdma/fi_errno.h>

#define DEPTH 8
#define LARGE 200			/* bytes; more than a preamble carries along */

static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE async;		/* separate from the EVDs of receives */
static DAT_EP_ATTR attr;

static DAT_RETURN create(DAT_EP_HANDLE *out)
{
	return dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, out);
}

static void init_unconnected(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = DEPTH, .max_recv_iov = 2,
				  .low_watermark = DAT_SRQ_LW_DEFAULT };

	objects_init();
	async = evd_make(64, DAT_EVD_ASYNC_FLAG);
	async_set(async);
	succeed(dofi_srq_create(ia, pz, &srq_attr, &srq));
	succeed(dofi_caps_ep_attr(ia, NULL, &attr));
	succeed(create(&ep));
}

static void init(void)
{
	init_unconnected();
	make_connected(ep);
}

static void fini(void)
{
	async_set(NULL);
	ia_fini();
}

TestSuite(msg_srq, .init = init, .fini = fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_RETURN post(uint64_t n)
{
	return srq_post_at(srq, 256 * n, 256, n);
}

static DAT_SRQ_PARAM counts(void)
{
	DAT_SRQ_PARAM param;

	succeed(dofi_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

/* Whether the last operation given to the fabric is a receive for a preamble. */
static bool listens(void)
{
	return transport.n && transport.dto[transport.n - 1]->kind == DOFI_DTO_PREAMBLE &&
	       transport.dto[transport.n - 1]->at_fabric;
}

/*
 * A preamble arrives for a message of @length bytes and carries @with bytes of it. @whole: no bytes
 * follow.
 */
static void preamble_of(uint64_t length, bool whole, int with)
{
	const struct msg_preamble preamble = { .length = length, .whole = whole };
	unsigned last = transport.n - 1;
	unsigned char *buf;

	cr_assert(listens());
	buf = transport.dto[last]->iov[0].iov_base;
	msg_preamble_pack(buf, &preamble);
	if (whole)
		memset(buf + MSG_PREAMBLE_SIZE, with, length);
	complete_with(last, 0, MSG_PREAMBLE_SIZE + (whole ? length : 0));
}

static void short_message(int with)
{
	preamble_of(16, true, with);
}

static void expect_dto(uint64_t n, DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->ep_handle, ep);
	cr_expect_eq(d->user_cookie.as_64, n);
	cr_expect_eq(d->status, status);
	cr_expect(status || d->transfered_length == length);
}

static void expect_async(DAT_COUNT reason)
{
	DAT_EVENT event = event_take(async, DAT_ASYNC_ERROR_EP_BROKEN);

	cr_expect_eq(event.event_data.asynch_error_event_data.dat_handle, ep);
	cr_expect_eq(event.event_data.asynch_error_event_data.reason, reason);
}

/* Blocks that can still be allocated, or -1 for no limit; and blocks in use. */
static _Atomic int blocks_left = -1, blocks_used;
void *__real_dofi_block_get(size_t size);
void *__wrap_dofi_block_get(size_t size);
void __real_dofi_block_put(void *block, size_t size);
void __wrap_dofi_block_put(void *block, size_t size);

void *__wrap_dofi_block_get(size_t size)
{
	if (!blocks_left)
		return NULL;
	blocks_left -= blocks_left > 0;
	blocks_used++;
	return __real_dofi_block_get(size);
}

void __wrap_dofi_block_put(void *block, size_t size)
{
	blocks_used -= !!block;
	__real_dofi_block_put(block, size);
}

/* The connection has ended with event @number, and no other event is left. */
static void expect_end(DAT_EVENT_NUMBER number)
{
	settle();
	event_take(evd, number);
	expect_async(DAT_EP_TRANSFER_TO_ERROR);
	cr_expect(event_none(evd) && event_none(async));
}

/* Creating */

Test(msg_srq, creating_checks_what_it_is_given)
{
	DAT_PZ_HANDLE other_pz;
	DAT_EP_HANDLE other;

	succeed(dofi_pz_create(ia, &other_pz));
	expect_handle(dofi_ep_create_with_srq(NOWHERE, pz, evd, evd, evd, srq, &attr, &other), IA);
	expect_handle(dofi_ep_create_with_srq(ia, evd, evd, evd, evd, srq, &attr, &other), PZ);
	expect_handle(dofi_ep_create_with_srq(ia, pz, pz, evd, evd, srq, &attr, &other), EVD_RECV);
	expect_handle(dofi_ep_create_with_srq(ia, pz, evd, pz, evd, srq, &attr, &other),
		      EVD_REQUEST);
	expect_handle(dofi_ep_create_with_srq(ia, pz, evd, evd, pz, srq, &attr, &other), EVD_CONN);
	expect_handle(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, NULL, &attr, &other), SRQ);
	expect_handle(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, evd, &attr, &other), SRQ);
	expect_arg(dofi_ep_create_with_srq(ia, other_pz, evd, evd, evd, srq, &attr, &other), 2);
	expect_arg(dofi_ep_create_with_srq(ia, NULL, evd, evd, evd, srq, &attr, &other), 2);
	expect_arg(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, NULL, &other), 7);
	expect_arg(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, NULL), 8);
	REASON(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, NULL, &attr, &other), "no live SRQ");
	REASON(dofi_ep_create_with_srq(ia, other_pz, evd, evd, evd, srq, &attr, &other),
	       "not the SRQ's PZ");
	REASON(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, NULL, &other),
	       "needs attributes");
	REASON(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, NULL), "no ep_handle");
	/* the EVD takes software events, which always notify */
	ia->strict = true;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	expect_arg(create(&other), 7);
	attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	attr.qos = (DAT_QOS)16;
	expect_type(create(&other), DAT_MODEL_NOT_SUPPORTED);
	attr.qos = DAT_QOS_BEST_EFFORT;
	attr.srq_soft_hw = DEPTH + 1;
	expect_arg(create(&other), 7);
	attr.srq_soft_hw = -2;
	expect_arg(create(&other), 7);
}

Test(msg_srq, its_attributes_have_defaults_and_are_accepted_back)
{
	DAT_EP_PARAM param;
	DAT_EP_HANDLE other;

	attr.max_recv_dtos = DAT_HW_DEFAULT;
	attr.max_recv_iov = 1000;	/* the SRQ's value counts */
	attr.srq_soft_hw = 0;
	succeed(create(&other));
	succeed(dofi_ep_query(other, DAT_EP_FIELD_ALL, &param));
	cr_expect_eq(param.srq_handle, srq);
	cr_expect_eq(param.ep_attr.max_recv_dtos, DEPTH);
	cr_expect_eq(param.ep_attr.max_recv_iov, 2);
	cr_expect_eq(param.ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
	succeed(dofi_ep_free(other));
	attr = param.ep_attr;
	succeed(create(&other));
	succeed(dofi_ep_free(other));
}

Test(msg_srq, without_memory_nothing_is_left)
{
	DAT_EP_HANDLE other;

	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_ENOMEM;
	expect_ret(create(&other), DOFI_NO_RESOURCE(MEMORY));
	succeed(create(&other));
	succeed(dofi_ep_free(other));
}

Test(msg_srq, an_srq_in_use_is_not_freed)
{
	expect_state(dofi_srq_free(srq), SRQ_IN_USE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_srq_free(srq));
}

Test(msg_srq, an_ep_of_an_srq_has_no_receives_of_its_own)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_state(dofi_ep_post_recv(ep, 1, &s, cookie_of(1),
				       DAT_COMPLETION_DEFAULT_FLAG), SRQ_IN_USE);
}

/* Modifying */

static DAT_RETURN modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	return dofi_ep_modify(ep, mask, param);
}

Test(msg_srq, its_pz_stays_the_srqs, .init = init_unconnected)
{
	DAT_EP_PARAM param = { .pz_handle = pz };

	succeed(modify(DAT_EP_FIELD_PZ_HANDLE, &param));
	succeed(dofi_pz_create(ia, &param.pz_handle));
	expect_arg(modify(DAT_EP_FIELD_PZ_HANDLE, &param), 3);
	expect_arg(modify(DAT_EP_FIELD_SRQ_HANDLE, &param), 2);
}

Test(msg_srq, its_watermark_may_be_changed, .init = init_unconnected)
{
	DAT_EP_PARAM param = { .pz_handle = pz };

	param.ep_attr.srq_soft_hw = 0;
	expect_arg(modify(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param), 3);
	param.ep_attr.srq_soft_hw = DEPTH + 1;
	expect_arg(modify(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param), 3);
	param.ep_attr.srq_soft_hw = DEPTH;
	succeed(modify(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	cr_expect_eq(inside()->soft_watermark, DEPTH);
	param.ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
	succeed(modify(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	cr_expect_eq(inside()->soft_watermark, DAT_WATERMARK_INFINITE);
}

/* Messages */

Test(msg_srq, listens_when_it_may_be_sent_to, .init = init_unconnected)
{
	start_connecting(ep);
	cr_expect_eq(transport.n, 0, "a refused attempt would take it along");
	establish(ep, NULL, 0);
	cr_expect(listens());
	cr_expect_eq(transport.n, 1);
}

Test(msg_srq, a_message_behind_its_preamble_is_copied)
{
	succeed(post(0));
	succeed(post(1));
	short_message('a');
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect(memory[0] == 'a' && memory[15] == 'a' && memory[16] != 'a');
	cr_expect(listens());
	short_message('b');
	expect_dto(1, DAT_DTO_SUCCESS, 16);
	cr_expect_eq(memory[256], 'b');
}

Test(msg_srq, a_message_is_spread_over_segments)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 10), segment(100, 10) };

	succeed(dofi_srq_post_recv(srq, 2, s, cookie_of(3)));
	short_message('c');
	expect_dto(3, DAT_DTO_SUCCESS, 16);
	cr_expect(memory[9] == 'c' && memory[10] != 'c');
	cr_expect(memory[105] == 'c' && memory[106] != 'c');
}

Test(msg_srq, a_message_of_no_bytes_takes_a_buffer)
{
	succeed(dofi_srq_post_recv(srq, 0, NULL, cookie_of(4)));
	preamble_of(0, true, 0);
	expect_dto(4, DAT_DTO_SUCCESS, 0);
}

Test(msg_srq, a_long_message_is_received_in_place_and_no_further)
{
	unsigned receive = transport.n;
	struct dofi_dto *dto;

	succeed(post(2));
	preamble_of(LARGE, false, 0);
	cr_assert_eq(transport.n, receive + 2, "the receive, and one for the next preamble");
	dto = transport.dto[receive];
	cr_expect_eq(dto->kind, DOFI_DTO_RECV);
	cr_expect_eq(dto->iov[0].iov_base, memory + 512);
	cr_expect_eq(dto->iov[0].iov_len, LARGE, "the peer may send no more than it said");
	cr_expect(event_none(evd));
	cr_expect_eq(counts().available_dto_count, 0);
	cr_expect_eq(counts().outstanding_dto_count, 1);
	complete_with(receive, 0, LARGE);
	expect_dto(2, DAT_DTO_SUCCESS, LARGE);
	cr_expect_eq(counts().outstanding_dto_count, 0);
}

Test(msg_srq, what_was_not_dequeued_is_outstanding)
{
	succeed(post(0));
	succeed(post(1));
	succeed(post(2));
	short_message('a');
	cr_expect_eq(counts().available_dto_count, 2);
	cr_expect_eq(counts().outstanding_dto_count, 3);
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect_eq(counts().outstanding_dto_count, 2);
}

Test(msg_srq, a_message_without_a_buffer_waits_for_one)
{
	unsigned before = transport.n;

	short_message('w');
	cr_expect(event_none(evd));
	cr_expect_eq(transport.n, before, "no more is received until then");
	succeed(post(1));
	expect_dto(1, DAT_DTO_SUCCESS, 16);
	cr_expect_eq(memory[256], 'w');
	cr_expect(listens());
	preamble_of(LARGE, false, 0);
	succeed(post(2));
	cr_assert_eq(transport.n, before + 3);
	complete_with(before + 1, 0, LARGE);
	expect_dto(2, DAT_DTO_SUCCESS, LARGE);
}

Test(msg_srq, what_the_fabric_cannot_take_yet_is_tried_again)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	unsigned sent;

	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(9), DAT_COMPLETION_DEFAULT_FLAG));
	sent = transport.n - 1;
	cr_assert_eq(transport.dto[sent]->kind, DOFI_DTO_SEND);
	succeed(post(0));
	transport.taken = 0;
	{
		/* the preamble arrived in the operation before that */
		const struct msg_preamble preamble = { .length = LARGE, .whole = false };

		msg_preamble_pack(transport.dto[sent - 1]->iov[0].iov_base, &preamble);
		complete_with(sent - 1, 0, MSG_PREAMBLE_SIZE);
	}
	cr_expect_eq(transport.n, sent + 1);
	transport.taken = 100;
	complete(sent);
	expect_dto(9, DAT_DTO_SUCCESS, 8);
	cr_assert_eq(transport.n, sent + 3);
	cr_expect_eq(transport.dto[sent + 1]->kind, DOFI_DTO_RECV);
	cr_expect(listens());
}

Test(msg_srq, an_endpoint_takes_no_more_than_it_may_hold, .init = init_unconnected)
{
	unsigned receive;

	succeed(dofi_ep_free(ep));
	attr.max_recv_dtos = 1;
	succeed(create(&ep));
	make_connected(ep);
	succeed(post(0));
	succeed(post(1));
	receive = transport.n;
	preamble_of(LARGE, false, 0);
	cr_expect_eq(transport.n, receive + 1, "the next preamble is not listened for");
	complete_with(receive, 0, LARGE);
	expect_dto(0, DAT_DTO_SUCCESS, LARGE);
	cr_expect(listens());
}

/* Failures */

Test(msg_srq, a_message_that_is_too_long_breaks_the_connection)
{
	succeed(srq_post_at(srq, 0, 8, 5));
	succeed(post(1));
	preamble_of(LARGE, false, 0);
	expect_dto(5, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(counts().available_dto_count, 1);
	cr_expect_eq(counts().outstanding_dto_count, 1);
}

Test(msg_srq, a_short_one_that_is_too_long_leaves_the_memory_alone)
{
	succeed(srq_post_at(srq, 0, 8, 5));
	memory[0] = memory[8] = 'x';
	short_message('y');
	expect_dto(5, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(memory[0] == 'x' && memory[8] == 'x');
}

Test(msg_srq, memory_that_was_freed_is_not_written)
{
	static char own[64];
	DAT_LMR_TRIPLET s = segment(0, 64);
	DAT_LMR_HANDLE gone;
	DAT_RMR_CONTEXT remote;

	succeed(lmr_make(pz, own, 64, DAT_MEM_PRIV_ALL_FLAG, &gone, &s.lmr_context, &remote));
	s.virtual_address = (uintptr_t)own;
	succeed(dofi_srq_post_recv(srq, 1, &s, cookie_of(6)));
	succeed(dofi_lmr_free(gone));
	short_message('z');
	cr_expect_eq(own[0], 0);
	expect_dto(6, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_srq, what_is_no_preamble_breaks_the_connection_and_takes_no_buffer)
{
	unsigned last = transport.n - 1;

	succeed(post(0));
	memset(transport.dto[last]->iov[0].iov_base, 'q', MSG_PREAMBLE_MAX);
	complete_with(last, 0, MSG_PREAMBLE_MAX);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(counts().available_dto_count, 1);
}

/*
 * All slots hold a receive, and the next message needs more slots. @blocks can be allocated for
 * them.
 */
static void without_slots(int blocks)
{
	int used, i;

	for (i = 0; i <= DOFI_QUEUE_FIRST; i++)
		succeed(post(i));
	for (i = 0; i < DOFI_QUEUE_FIRST; i++)
		preamble_of(LARGE, false, 0);
	used = blocks_used;
	blocks_left = blocks;
	preamble_of(LARGE, false, 0);
	blocks_left = -1;
	settle();
	cr_expect_eq(blocks_used, used);
	for (i = 0; i < DOFI_QUEUE_FIRST; i++)
		expect_dto(i, DAT_DTO_ERR_FLUSHED, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(counts().available_dto_count, 1);
	cr_expect_eq(counts().outstanding_dto_count, 1);
}

Test(msg_srq, without_memory_for_slots_the_connection_breaks)
{
	without_slots(0);
}

Test(msg_srq, without_memory_for_all_of_the_slots_it_breaks_too)
{
	without_slots(1);
}

Test(msg_srq, a_preamble_that_fails_ends_the_connection)
{
	complete_with(transport.n - 1, FI_ETRUNC, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_srq, a_preamble_that_the_end_takes_along_is_no_error)
{
	complete_with(transport.n - 1, FI_ECANCELED, 0);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* The end */

Test(msg_srq, only_what_it_took_is_flushed)
{
	succeed(post(0));
	succeed(post(1));
	preamble_of(LARGE, false, 0);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(counts().available_dto_count, 1);
	cr_expect_eq(counts().outstanding_dto_count, 1);
}

/* The fabric reports that the peer has left. */
static void peer_leaves(void)
{
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_lost(ep, false);
	dofi_mutex_unlock(&inside()->lock);
}

/* Completions after an end are given on the progress thread, which closes the EP after the call. */
static void peer_leaves_before_a_message(void *arg)
{
	peer_leaves();
	short_message('l');
}

Test(msg_srq, a_message_whose_preamble_the_peers_end_overtook_is_received)
{
	succeed(post(0));
	succeed(post(1));
	dofi_progress_call(&ia->progress, peer_leaves_before_a_message, NULL);
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect_eq(memory[0], 'l');
	cr_expect(!listens());
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(counts().available_dto_count, 1);
}

static void peer_leaves_before_a_preamble(void *arg)
{
	peer_leaves();
	preamble_of(LARGE, false, 0);
}

Test(msg_srq, a_preamble_without_its_message_takes_no_buffer_when_the_peer_has_left)
{
	succeed(post(0));
	dofi_progress_call(&ia->progress, peer_leaves_before_a_preamble, NULL);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(counts().available_dto_count, 1);
}

static void end_before_a_message(void *arg)
{
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dofi_mutex_unlock(&inside()->lock);
	short_message('o');
}

Test(msg_srq, a_message_that_its_own_end_overtook_is_dropped)
{
	succeed(post(0));
	dofi_progress_call(&ia->progress, end_before_a_message, NULL);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(counts().available_dto_count, 1);
}

Test(msg_srq, an_endpoint_that_waited_for_a_buffer_leaves_the_line)
{
	short_message('g');
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(post(0));
	cr_expect_eq(counts().available_dto_count, 1);
}

Test(msg_srq, an_ending_endpoint_leaves_the_buffer_to_the_next)
{
	short_message('g');
	dofi_mutex_lock(&inside()->lock);
	inside()->closing = true;
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&inside()->lock);
	succeed(post(0));
	cr_expect_eq(counts().available_dto_count, 1);
	dofi_mutex_lock(&inside()->lock);
	inside()->closing = false;
	dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dofi_mutex_unlock(&inside()->lock);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_srq, an_ep_of_an_srq_is_connected_again)
{
	short_message('g');
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(post(0));
	short_message('h');
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect_eq(memory[0], 'h');
}

Test(msg_srq, an_attempt_that_fails_has_no_last_receive, .init = init_unconnected)
{
	start_connecting(ep);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(async));
}

Test(msg_srq, freeing_reports_nothing)
{
	succeed(post(0));
	preamble_of(LARGE, false, 0);
	succeed(dofi_ep_free(ep));
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	cr_expect(event_none(async));
	succeed(dofi_srq_free(srq));
}

Test(msg_srq, closing_the_ia_frees_all)
{
	succeed(post(0));
	succeed(post(1));
	preamble_of(LARGE, false, 0);
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
}

/* Watermarks */

Test(msg_srq, a_query_returns_what_it_holds)
{
	DAT_COUNT buffers, span;
	unsigned receive = transport.n;

	succeed(dofi_ep_recv_query(ep, &buffers, &span));
	cr_expect(!buffers && !span);
	succeed(post(0));
	preamble_of(LARGE, false, 0);
	succeed(dofi_ep_recv_query(ep, &buffers, &span));
	cr_expect(buffers == 1 && span == 1);
	complete_with(receive, 0, LARGE);
	succeed(dofi_ep_recv_query(ep, &buffers, &span));
	cr_expect(!buffers && !span);
}

Test(msg_srq, the_soft_watermark_is_reported_once)
{
	unsigned i;

	succeed(dofi_ep_set_watermark(ep, 0, DAT_WATERMARK_INFINITE));
	for (i = 0; i < 3; i++) {
		succeed(post(i));
		short_message('s');
		expect_dto(i, DAT_DTO_SUCCESS, 16);
	}
	expect_async(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	cr_expect(event_none(async));
}

Test(msg_srq, the_soft_watermark_of_the_attributes_counts, .init = init_unconnected)
{
	succeed(dofi_ep_free(ep));
	attr.srq_soft_hw = 1;
	succeed(create(&ep));
	make_connected(ep);
	succeed(post(0));
	short_message('s');
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect(event_none(async), "one is not more than one");
	cr_expect_eq(inside()->soft_watermark, 1);
}

Test(msg_srq, the_hard_watermark_breaks_the_connection_and_flushes_the_buffer)
{
	succeed(dofi_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, 0));
	succeed(post(0));
	short_message('h');
	settle();
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect_end(DAT_CONNECTION_EVENT_BROKEN);
}

/* Accepting: messages may arrive before the connection's event */

static void init_accepting(void)
{
	DAT_PSP_HANDLE psp;

	init_unconnected();
	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_cr_accept(request_at(psp), ep, 0, NULL));
	settle();
}

Test(msg_srq, early_messages_wait_for_the_event, .init = init_accepting)
{
	cr_expect(listens());
	succeed(post(0));
	short_message('e');
	cr_expect(event_none(evd));
	cr_expect_eq(counts().outstanding_dto_count, 1);
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_dto(0, DAT_DTO_SUCCESS, 16);
	cr_expect(listens());
}
