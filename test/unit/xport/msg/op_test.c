/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations and completions: how requests and receives go to the fabric. */

#include "xport/msg/one.h"

#include "obj/cq_data.h"
#include "xport/msg/msg.h"

TestSuite(msg_op, .init = init_established, .fini = xport_fini);
TestSuite(msg_op_early, .init = init, .fini = xport_fini);
TestSuite(msg_op_accept, .init = init_request, .fini = xport_fini);

/* Operations */

/* The last operation was of @kind, with segments of 8 bytes at offsets 0, 64, ... */
static void reached(enum fake_op kind, size_t count)
{
	size_t i;

	cr_assert_eq(fake_eps.op, kind);
	cr_assert_eq(fake_eps.count, count);
	for (i = 0; i < count; i++) {
		cr_expect_eq(fake_eps.iov[i].iov_base, memory + 64 * i);
		cr_expect_eq(fake_eps.iov[i].iov_len, 8);
	}
}

static void empty(enum fake_op kind)
{
	cr_expect_eq(fake_eps.op, kind);
	cr_expect_eq(fake_eps.iov[0].iov_len, 0);
}

Test(msg_op, sends)
{
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_SEND, 1);
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_SENDV, 3);
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	empty(FAKE_SEND);
}

#if DAT_VERSION_MAJOR >= 2
Test(msg_op, sends_that_invalidate)
{
	DAT_COUNT n;

	ia->fabric.cq_data = true;
	for (n = 0; n <= 3; n++) {
		succeed(dofi_ep_post_send_with_invalidate(ep, n, n ? segments() : NULL, cookie,
							  DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE,
							  0x87654321));
		reached(FAKE_SENDMSG, (size_t)n);
		cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
		cr_expect_eq(fake_eps.cq_data, 0x187654321);
	}
}
#endif

Test(msg_op, plain_operations_call_the_fabric_without_another_function_between)
{
	const struct dofi_ep *e = ep;

	cr_expect(e->fast.send == e->fid->msg->send);
	cr_expect(e->fast.recv == e->fid->msg->recv);
	cr_expect(e->fast.to == e->fid);
}

Test(msg_op, receives)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECV, 1);
	succeed(dofi_ep_post_recv(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECVV, 3);
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1,
		     "tcp does not end a message that finds no room at all");
}

Test(msg_op, a_receive_is_had_back_when_its_lmr_is_freed)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake_eps.cancels, 1);
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1, "posted again, without the memory");
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

/* The device uses the memory by its registration, which has ended. */
Test(msg_op, a_device_keeps_a_receive_whose_lmr_is_freed)
{
	int ops;

	ia->fabric.info->domain_attr->mr_mode |= FI_MR_LOCAL;
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	ops = fake_eps.ops;
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake_eps.cancels, 0);
	cr_expect_eq(fake_eps.ops, ops);
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_op, a_probe_names_no_memory_at_either_end)
{
	struct dofi_ep *e = ep;

	dofi_mutex_lock(&e->lock);
	cr_expect_eq(msg_probe(e, &e->probe), 0);
	dofi_mutex_unlock(&e->lock);
	reached(FAKE_WRITE, 0);
	cr_expect_eq(fake_eps.remote_len, 0);
	cr_expect_eq(fake_eps.flags, ia->fabric.write_flags);
	cr_expect(fake_eps.flags & FI_DELIVERY_COMPLETE);
}

#define FLAG DAT_COMPLETION_SOLICITED_WAIT_FLAG

Test(msg_op, a_solicited_message_says_so)
{
	ia->fabric.cq_data = true;
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 1);
	cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
	cr_expect_eq(fake_eps.cq_data, dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0));
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 3);
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie, FLAG));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.count, 0);
}

/* On such a fabric no receiver can have requested the notification. */
Test(msg_op, a_fabric_without_remote_cq_data_carries_the_message)
{
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 1);
	cr_expect_eq(fake_eps.flags, 0);
}

static void receive_with_data(uint64_t data)
{
	struct fake_completion *c;

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	thread_hold();
	c = &fake.completion[fake.cq_tail % FAKE_QUEUE];
	fake_complete(fake_eps.context, 0);
	c->entry.flags = FI_RECV | FI_REMOTE_CQ_DATA;
	c->entry.data = data;
	thread_release();
	/* the progress thread may have left the queue to the program, or may be reading it */
	dofi_cq_drain(&((struct dofi_ep *)ep)->pz->domain.cq);
	quiesce();
}

static DAT_DTO_COMPLETION_STATUS status_next(void)
{
	return event_take(evd, DAT_DTO_COMPLETION_EVENT)
		.event_data.dto_completion_event_data.status;
}

Test(msg_op, a_solicited_message_is_received)
{
	receive_with_data(dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0));
	cr_expect_eq(status_next(), DAT_DTO_SUCCESS);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_op, what_no_peer_of_ours_sends_breaks_the_connection)
{
	receive_with_data(0xdead000000000000);
	cr_expect_eq(status_next(), DAT_DTO_ERR_TRANSPORT);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

static void init_established_sockets(void)
{
	init_sockets();
	make_established();
}

Test(msg_op, an_empty_receive_is_empty_elsewhere, .init = init_established_sockets)
{
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	empty(FAKE_RECV);
}

static void reached_remote(uint64_t len)
{
	DAT_RMR_TRIPLET remote = remote_segment(len);

	cr_expect_eq(fake_eps.remote_key, remote.rmr_context);
	cr_expect_eq(fake_eps.remote_addr, 0x5000);
}

Test(msg_op, reads)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	succeed(dofi_ep_post_rdma_read(ep, 1, segments(), cookie, &one,
				       DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_READ, 1);
	reached_remote(8);
	succeed(dofi_ep_post_rdma_read(ep, 3, segments(), cookie, &three,
				       DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_READV, 3);
	reached_remote(24);
}

/* A completed write must be in the peer's memory. The fabric's flags ensure that. */
Test(msg_op, writes)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	ia->fabric.write_flags = FI_DELIVERY_COMPLETE;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one,
					DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 1);
	reached_remote(8);
	cr_expect_eq(fake_eps.remote_len, 8);
	cr_expect_eq(fake_eps.flags, FI_DELIVERY_COMPLETE);
	succeed(dofi_ep_post_rdma_write(ep, 3, segments(), cookie, &three,
					DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 3);
	cr_expect_eq(fake_eps.remote_len, 24);
}

/* The peer's secret completes a context of connection scope. */
Test(msg_op, keys_of_one_connection)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	((struct dofi_ep *)ep)->peer_secret = 0xcafe0003;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one,
					DAT_COMPLETION_DEFAULT_FLAG));
	reached_remote(8);
	one.rmr_context |= DOFI_KEY_SCOPED;
	three.rmr_context |= DOFI_KEY_SCOPED;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one,
					DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | one.rmr_context);
	succeed(dofi_ep_post_rdma_read(ep, 1, segments(), cookie, &one,
				       DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | one.rmr_context);
	succeed(dofi_ep_post_rdma_read(ep, 3, segments(), cookie, &three,
				       DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | three.rmr_context);
}

Test(msg_op, what_fails_breaks_the_connection)
{
	fake_eps.fault.op = -FI_EOTHER;
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	quiesce();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_op, what_finds_no_room_waits_for_a_completion)
{
	void *context;

	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	context = fake_eps.context;
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.ops, 1);
	fake_eps.fault.op = 0;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	/* the progress thread may have delivered the completion, and sends what is queued now */
	settle();
	cr_expect_eq(fake_eps.ops, 2);
	reached(FAKE_SENDV, 3);
}

/* Waits for the fabric to take an operation. */
static void op_await(void)
{
	int ops;

	do {
		settle();
		dofi_mutex_lock(&inside()->lock);
		ops = fake_eps.ops;
		dofi_mutex_unlock(&inside()->lock);
	} while (!ops);
}

Test(msg_op, a_send_refused_with_nothing_in_flight_is_tried_again)
{
	fake_eps.fault = (struct fake_ep_faults){ .op = -FI_EAGAIN, .op_times = 5 };
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	op_await();
	reached(FAKE_SEND, 1);
}

Test(msg_op, a_receive_refused_with_nothing_in_flight_is_tried_again)
{
	fake_eps.fault = (struct fake_ep_faults){ .op = -FI_EAGAIN, .op_times = 5 };
	succeed(dofi_ep_post_recv(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	op_await();
	reached(FAKE_RECVV, 3);
}

Test(msg_op, a_refused_send_is_flushed_by_a_disconnect)
{
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* The peer receives from an SRQ, and its answer reports that. */

static struct bytes preambles_answer(void)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_ACCEPT, .preambles = true };

	return (struct bytes){ buf, dofi_wire_pack(buf, &msg) };
}

static void init_preambles(void)
{
	init();
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, preambles_answer());
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static DAT_RETURN send_bytes(size_t length)
{
	DAT_LMR_TRIPLET s = segment(0, length);

	return dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static struct msg_preamble preamble_sent(size_t len)
{
	struct msg_preamble preamble = { .length = 0 };

	cr_expect_eq(msg_preamble_unpack(fake_eps.injected, len, &preamble), 0);
	return preamble;
}

Test(msg_op, a_short_message_goes_along_with_its_preamble, .init = init_preambles)
{
	size_t i;

	for (i = 0; i < 3; i++)
		memset(memory + 64 * i, 'a' + (int)i, 8);
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_assert_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.ops, 1);
	cr_expect(fake_eps.flags & FI_INJECT && fake_eps.flags & FI_COMPLETION);
	cr_expect(preamble_sent(MSG_PREAMBLE_SIZE + 24).whole);
	cr_expect(!memcmp(fake_eps.injected + MSG_PREAMBLE_SIZE, "aaaaaaaabbbbbbbbcccccccc", 24));
	fake_complete(fake_eps.context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
}

Test(msg_op, the_longest_that_goes_along_fills_what_can_be_injected, .init = init_preambles)
{
	succeed(send_bytes(MSG_PREAMBLE_MAX - MSG_PREAMBLE_SIZE));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	succeed(send_bytes(MSG_PREAMBLE_MAX - MSG_PREAMBLE_SIZE + 1));
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	ia->limits.inject_size = MSG_PREAMBLE_SIZE + 8;
	succeed(send_bytes(8));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	succeed(send_bytes(9));
	cr_expect_eq(fake_eps.op, FAKE_SEND);
}

Test(msg_op, a_long_message_is_announced_and_sent_from_where_it_is, .init = init_preambles)
{
	succeed(send_bytes(1000));
	cr_expect_eq(fake_eps.ops, 2);
	cr_assert_eq(fake_eps.op, FAKE_SEND);
	cr_expect_eq(fake_eps.iov[0].iov_base, memory);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1000);
	cr_expect_eq(preamble_sent(MSG_PREAMBLE_SIZE).length, 1000);
	cr_expect(!preamble_sent(MSG_PREAMBLE_SIZE).whole);
}

Test(msg_op, a_message_is_announced_once, .init = init_preambles)
{
	void *context;

	succeed(send_bytes(8));
	context = fake_eps.context;
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(send_bytes(1000));
	cr_expect_eq(fake_eps.ops, 1, "not even announced");
	fake_eps.fault.op_only = FAKE_SEND;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	settle();
	cr_expect_eq(fake_eps.ops, 2, "announced");
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	context = fake_eps.context;
	fake_eps.fault.op = 0;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	settle();
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	cr_expect_eq(fake_eps.ops, 4, "and then sent");
}

Test(msg_op, only_sends_have_a_preamble, .init = init_preambles)
{
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECV, 1);
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &r,
					DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 1);
}

Test(msg_op, an_endpoint_of_an_srq_asks_for_preambles, .init = init)
{
	make_shared();
	connect_to(ep, PORT);
	cr_expect(sent().preambles);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, MSG_PREAMBLE_MAX);
	cr_expect(!inside()->preambles, "its peer does not");
}

/* A refused attempt would flush the receives. */
Test(msg_op_early, receives_wait_until_an_attempt_succeeds)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cr_expect_eq(fake_eps.connects, 2);
	cr_expect_eq(fake_eps.ops, 0);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(fake_eps.ops, 2);
	reached(FAKE_RECVV, 3);
}

/* The peer may send as soon as it is accepted. */
Test(msg_op_accept, receives_are_there_before_the_answer)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	accept_request();
	cr_expect_eq(fake_eps.ops_at_connect, 2);
}
