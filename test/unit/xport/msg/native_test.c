/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations left to a fabric that has immediate data, atomics and fences of its own. */

#include "xport/fabric.h"

#include "fab/quirks.h"
#include "obj/ep/ep_post.h"
#include "xport/msg/msg.h"

#define PORT 4711

static DAT_EP_HANDLE ep;

/* All tests also check that only one thread at a time calls the fabric. */
static void fabric_make(void)
{
	fabric_name = "verbs";
	fabric_cq_data = 4;
	fabric_mode = FI_RX_CQ_DATA;
	xport_init();
	fake.guard = &((struct dofi_pz *)pz)->domain.cq.access;
}

static void fabric_end(void)
{
	xport_fini();
	cr_expect_eq(fake.unguarded, 0);
}

static void init(void)
{
	fabric_make();
	ep = ep_make();
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TestSuite(msg_native, .init = init, .fini = fabric_end);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_DTO_COOKIE cookie(uint64_t n)
{
	return cookie_of(n);
}

static DAT_RMR_TRIPLET there(size_t length)
{
	DAT_RMR_TRIPLET r = { .rmr_context = 0xbeef, .segment_length = length };

#if DAT_VERSION_MAJOR >= 2
	r.virtual_address = 0x7000;
#else
	r.target_address = 0x7000;
#endif
	return r;
}

/* Without FI_MR_LOCAL the domain checks no registration of a receive: the receive is cancelled. */
Test(msg_native, a_receive_is_cancelled_by_one_thread_at_a_time)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake_eps.cancels, 1);
}

static void send_flagged(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_send(ep, 1, &s, cookie(1), flags));
}

static void write_flagged(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = there(8);

	succeed(dofi_ep_post_rdma_write(ep, 1, &s, cookie(2), &r, flags));
}

static void read_flagged(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET s = segment(8, 8);
	DAT_RMR_TRIPLET r = there(8);

	succeed(dofi_ep_post_rdma_read(ep, 1, &s, cookie(3), &r, flags));
}

static void receive(DAT_COUNT n)
{
	DAT_LMR_TRIPLET s = segment(0, 16);

	succeed(dofi_ep_post_recv(ep, n, &s, cookie(4), DAT_COMPLETION_DEFAULT_FLAG));
}

/* Connecting */

#define MAPPED 70000			/* a qualifier that maps to several ports */

static void init_unconnected(void)
{
	fabric_make();
	ep = ep_make();
	receive(1);
	receive(1);
	connect_to(ep, MAPPED);
}

TestSuite(msg_native_connect, .init = init_unconnected, .fini = fabric_end);

static void failed_receive(void *context)
{
	fake_complete(context, FI_ECANCELED);
	dofi_cq_drain(inside()->cq);
}

Test(msg_native_connect, receives_are_there_before_a_message_can_come)
{
	cr_expect_eq(fake_eps.ops_at_connect, 2);
	fake_complete(fake_eps.context, 0);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cr_expect_eq(fake_eps.ops, 2);
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

Test(msg_native_connect, receives_are_not_lost_with_an_attempt)
{
	void *stale = fake_eps.context;

	failed_receive(stale);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cr_expect_eq(fake_eps.connects, 2);
	cr_expect_eq(fake_eps.ops_at_connect, 4);
	cr_expect(fake_eps.context != stale);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	failed_receive(stale);
	cr_expect(event_none(evd));
}

static void flushed(int n)
{
	while (n--) {
		DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);

		cr_expect_eq(event.event_data.dto_completion_event_data.status,
			     DAT_DTO_ERR_FLUSHED);
	}
}

Test(msg_native_connect, receives_end_with_the_last_attempt)
{
	int i;

	for (i = 0; i < 8 && state_of_ep(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING; i++) {
		failed_receive(fake_eps.context);
		cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	}
	flushed(2);
	event_only(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* EPERM: librdmacm could not use the answer. */
Test(msg_native_connect, an_acceptor_that_left_was_reached)
{
	int i;

	for (i = 0; i < 8 && state_of_ep(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING; i++)
		cm_error_with_reason(fake_eps.last, EPERM);
	flushed(2);
	event_only(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(msg_native_connect, a_peer_that_does_not_answer_is_unreachable)
{
	cm_error_with_reason(fake_eps.last, ETIMEDOUT);
	flushed(2);
	event_only(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(fake_eps.connects, 1, "the host has no other ports");
}

/* The CQ may be read before the event queue. */
Test(msg_native_connect, a_message_may_fail_before_the_connection_is_reported)
{
	const struct fake_completion too_long = {
		.entry.op_context = fake_eps.context, .err = FI_EIO, .prov_errno = 1,
	};
	DAT_EVENT event;

	pthread_mutex_lock(&fake.lock);
	fake.completion[fake.cq_tail++ % FAKE_QUEUE] = too_long;
	pthread_mutex_unlock(&fake.lock);
	dofi_cq_drain(inside()->cq);
	cr_expect(event_none(evd));
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_LOCAL_LENGTH);
	event_only(DAT_CONNECTION_EVENT_BROKEN);
}

/* A default endpoint has other queue lengths than the fabric's default. */
Test(msg_native_connect, queues_have_their_places_until_the_end)
{
	struct dofi_cq *cq = inside()->cq;
	unsigned before =
		cq->unreserved + inside()->attr.max_recv_dtos + inside()->attr.max_request_dtos;

	cr_expect(cq->quirk->fixed_queues);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	cr_expect_eq(cq->unreserved, before);
}

Test(msg_native_connect, a_full_pz_connects_no_more)
{
	DAT_EP_HANDLE other = ep_make();

	fake.guard = NULL;	/* the endpoint has no CQ at first, and then another one */
	inside()->pz->domain.cq.unreserved = 5;
	fake.fault.cq_open = -FI_ENOMEM;
	connect_to(other, PORT);
	event_only(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(inside()->pz->domain.cq.unreserved, 5);
	fake.fault.cq_open = 0;
	succeed(dofi_ep_reset(other));
	connect_to(other, PORT);
	cr_expect(((struct dofi_ep *)other)->cq != inside()->cq);
	succeed(dofi_ep_free(other));
	cr_expect_eq(inside()->pz->domain.cq.unreserved, 5);
}

Test(msg_native_connect, what_is_longer_than_the_fabrics_queues_waits_here)
{
	const DAT_EP_ATTR attr = { .max_recv_dtos = 1000, .max_request_dtos = 1 };
	DAT_EP_PARAM param = { .ep_attr = attr };
	DAT_EP_HANDLE other = ep_make();
	unsigned before = inside()->cq->unreserved;

	succeed(dofi_ep_modify(other, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				      DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
	connect_to(other, PORT);
	cr_expect_eq(before - inside()->cq->unreserved, 384 + 4);
	succeed(dofi_ep_free(other));
}

Test(msg_native_connect, an_endpoint_that_cannot_be_enabled_is_closed)
{
	DAT_EP_HANDLE other = ep_make();
	int open = fake_eps.open;
	unsigned unreserved = inside()->cq->unreserved;

	fake_eps.fault.enable = -FI_ENOMEM;
	connect_to(other, PORT);
	event_only(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.open, open);
	cr_expect_eq(inside()->cq->unreserved, unreserved);
}

Test(msg_native_connect, accepting)
{
	DAT_EP_HANDLE other = ep_make();

	psp_make(PORT);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	succeed(dofi_cr_accept(cr_take(), other, 0, NULL));
	quiesce();
	cr_expect_eq(fake_eps.accepts, 1);
	cr_expect_eq(state_of_ep(other), DAT_EP_STATE_COMPLETION_PENDING);
}

/* Operations */

Test(msg_native, what_is_usual_goes_the_usual_way)
{
	send_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	write_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_WRITE);
	cr_expect_eq(fake_eps.flags & (FI_FENCE | FI_REMOTE_CQ_DATA), 0);
	read_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_READ);
}

/* On verbs a completed write is in memory without a flag. */
Test(msg_native, a_write_without_flags_goes_at_once)
{
	((struct dofi_ia *)ia)->fabric.write_flags = 0;
	write_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_WRITE_NOW);
	cr_expect_eq(fake_eps.remote_addr, 0x7000);
}

Test(msg_native, fences_are_the_fabrics)
{
	read_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	send_flagged(DAT_COMPLETION_BARRIER_FENCE_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.flags, FI_FENCE);
	write_flagged(DAT_COMPLETION_BARRIER_FENCE_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_WRITE);
	cr_expect(fake_eps.flags & FI_FENCE);
	read_flagged(DAT_COMPLETION_BARRIER_FENCE_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_READMSG);
	cr_expect_eq(fake_eps.flags, FI_FENCE);
	cr_expect_eq(fake_eps.remote_addr, 0x7000);
}

Test(msg_native, a_write_of_nothing_has_a_segment_for_the_fabric_to_look_at)
{
	DAT_RMR_TRIPLET r = there(0);

	succeed(dofi_ep_post_rdma_write(ep, 0, NULL, cookie(2), &r, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.op, FAKE_WRITE);
	cr_expect_eq(fake_eps.count, 1);
	cr_expect_eq(fake_eps.iov[0].iov_len, 0);
	read_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	cr_expect_eq(fake_eps.op, FAKE_READ);
	/* and the provider does the fence */
	succeed(dofi_ep_post_rdma_write(ep, 0, NULL, cookie(2), &r,
					DAT_COMPLETION_BARRIER_FENCE_FLAG));
	cr_expect_eq(fake_eps.op, FAKE_READ);
}

/* Such a message is two messages of the fabric, and the first would pass the fence. */
Test(msg_native, a_message_with_a_preamble_waits_for_reads_here)
{
	int before;

	inside()->preambles = true;
	read_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	before = fake_eps.ops;
	send_flagged(DAT_COMPLETION_BARRIER_FENCE_FLAG);
	cr_expect_eq(fake_eps.ops, before);
}

/* Completes the receive that was posted last, with remote CQ data. */
static void arrives(uint64_t flags, uint32_t data, size_t len)
{
	struct fake_completion c = {
		.entry = { .op_context = fake_eps.context, .flags = flags | FI_REMOTE_CQ_DATA,
			   .data = data, .len = len },
	};

	pthread_mutex_lock(&fake.lock);
	fake.completion[fake.cq_tail++ % FAKE_QUEUE] = c;
	pthread_mutex_unlock(&fake.lock);
}

#if DAT_VERSION_MAJOR >= 2

static DAT_EVENT extended(DAT_IB_EXT_TYPE type, uint64_t length)
{
	DAT_EVENT event = event_take(evd, DAT_IB_DTO_EVENT);
	DAT_IB_EXTENSION_EVENT_DATA x;

	memcpy(&x, event.event_extension_data, sizeof(x));
	cr_expect_eq(x.type, type);
	cr_expect_eq(x.val.immed.data, 0xfedcba98);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, length);
	return event;
}

Test(msg_native, immediate_data_arrives_with_a_message)
{
	receive(1);
	arrives(FI_RECV | FI_MSG, 0xfedcba98, 12);
	extended(DAT_IB_RECV_IMMED_DATA, 12);
}

/* The receive needs no memory. */
Test(msg_native, immediate_data_arrives_with_a_write)
{
	receive(0);
	arrives(FI_RMA | FI_REMOTE_WRITE, 0xfedcba98, 12);
	extended(DAT_IB_RDMA_WRITE_IMMED_DATA, 12);
}

Test(msg_native, immediate_data_goes_along)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	const DAT_RMR_TRIPLET r = there(8);
	struct dofi_post p = { .n = 1, .iov = &s, .immed = 0xfedcba98 };

	succeed(dofi_ep_post_send_immed(ep, &p));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
	cr_expect_eq(fake_eps.cq_data, 0xfedcba98);
	p.remote = &r;
	p.flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	succeed(dofi_ep_post_write_immed(ep, &p));
	cr_expect_eq(fake_eps.op, FAKE_WRITE);
	cr_expect_eq(fake_eps.flags & (FI_REMOTE_CQ_DATA | FI_FENCE), FI_REMOTE_CQ_DATA | FI_FENCE);
	cr_expect_eq(fake_eps.cq_data, 0xfedcba98);
}

Test(msg_native, immediate_data_for_an_srq_is_in_a_preamble)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	const struct dofi_post p = { .n = 1, .iov = &s, .immed = 7 };

	inside()->preambles = true;
	succeed(dofi_ep_post_send_immed(ep, &p));
	cr_expect_eq(fake_eps.flags & FI_REMOTE_CQ_DATA, 0);
	cr_expect_eq(fake_eps.iov[0].iov_len, MSG_PREAMBLE_SIZE + 8);
}

static uint64_t passed(const void *operand)
{
	return ia->fabric.quirk->operand_is_address ? (uintptr_t)operand :
						      *(const uint64_t *)operand;
}

Test(msg_native, atomics_are_the_fabrics)
{
	DAT_LMR_TRIPLET s = segment(8, 8);
	const DAT_RMR_TRIPLET r = there(64);
	struct dofi_post p = {
		.n = 1, .iov = &s, .remote = &r, .operand = 0x1122334455667788, .compare = 42,
	};

	succeed(dofi_ep_post_fetch_add(ep, &p));
	cr_expect_eq(fake_eps.op, FAKE_FETCH_ADD);
	cr_expect_eq(passed(fake_eps.operand), 0x1122334455667788);
	cr_expect_eq(fake_eps.iov[0].iov_base, memory + 8);
	cr_expect_eq(fake_eps.remote_addr, 0x7000);
	cr_expect_eq(fake_eps.remote_key, 0xbeef);
	succeed(dofi_ep_post_cmp_swap(ep, &p));
	cr_expect_eq(fake_eps.op, FAKE_CMP_SWAP);
	cr_expect_eq(passed(fake_eps.operand), 0x1122334455667788);
	cr_expect_eq(passed(fake_eps.compare), 42);
}

/* The fabric has no separate access right for atomics. */
Test(msg_native, memory_for_atomics_may_be_written)
{
	DAT_LMR_HANDLE other;
	DAT_RMR_CONTEXT key;
	DAT_LMR_CONTEXT context;

	succeed(lmr_make(pz, memory, 8, (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
							  DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
			 &other, &context, &key));
	cr_expect(fake.mr_access & FI_REMOTE_WRITE);
	cr_expect(key);
	succeed(dofi_lmr_free(other));
	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_LOCAL_READ_FLAG, &other, &context, &key));
	cr_expect_eq(fake.mr_access, FI_SEND | FI_WRITE);
	succeed(dofi_lmr_free(other));
}

Test(msg_native, atomics_wait_for_reads_here_when_they_are_fenced)
{
	DAT_LMR_TRIPLET s = segment(8, 8);
	const DAT_RMR_TRIPLET r = there(64);
	const struct dofi_post p = {
		.n = 1, .iov = &s, .remote = &r, .flags = DAT_COMPLETION_BARRIER_FENCE_FLAG,
	};
	int before;

	read_flagged(DAT_COMPLETION_DEFAULT_FLAG);
	before = fake_eps.ops;
	succeed(dofi_ep_post_fetch_add(ep, &p));
	cr_expect_eq(fake_eps.ops, before);
}

Test(msg_native, no_operation_says_what_a_receiver_would_have_to_know)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_type(dofi_ep_post_send_with_invalidate(ep, 1, &s, cookie(1),
						      DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 7),
		    DAT_MODEL_NOT_SUPPORTED);
}
#else
/* uDAPL 1.2 has no such event. */
Test(msg_native, immediate_data_of_a_write_ends_a_receive)
{
	DAT_EVENT event;

	receive(1);
	arrives(FI_RMA | FI_REMOTE_WRITE, 7, 12);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, 0);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}
#endif
