/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mailboxes: offers, requests, replies and refusals. The test acts as the peer. */

#include "xport/fabric.h"

#include "obj/cq_data.h"
#include "obj/ep/ep_post.h"
#include "xport/msg/msg.h"

#include <endian.h>

#define PORT 4711

static DAT_EP_HANDLE ep;

static void init_without(void)
{
	fabric_cq_data = 0;
	xport_init();
	ep = ep_make();
}

Test(msg_mail, none_without_cq_data, .init = init_without, .fini = xport_fini)
{
	const struct dofi_post p = { .n = 0 };

	connect_to(ep, PORT);
	cr_expect_eq(sent().mailbox.key, 0);
	cr_expect(!msg_mail_offered(ia));
	cr_expect_eq(ia->max_private_data, DOFI_WIRE_MAX_DATA);
	expect_type(dofi_ep_post_send_immed(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ep_post_fetch_add(ep, &p), DAT_MODEL_NOT_SUPPORTED);
}

#if DAT_VERSION_MAJOR < 2
static void init(void)
{
	fabric_cq_data = 8;
	xport_init();
	ep = ep_make();
}

Test(msg_mail, none_in_the_old_version, .init = init, .fini = xport_fini)
{
	connect_to(ep, PORT);
	/* the mailbox has a number, for BYE messages, and no memory */
	cr_expect_eq(sent().mailbox.addr, 0);
	cr_expect(sent().mailbox.key);
	cr_expect_eq(ia->max_private_data,
		     256 - DOFI_WIRE_FIXED - DOFI_WIRE_SECRET - DOFI_WIRE_MAILBOX - DOFI_WIRE_QUAL);
}
#else
/* Big-endian, as documented in msg_mail.c. */
struct request {
	uint32_t number, key;
	uint64_t addr, operand, compare, swap;
};

struct reply {
	uint32_t number, refused;
	uint64_t old;
};

static const struct dofi_mailbox theirs = { .addr = 0x700000001000, .key = 0xbeef, .id = 77 };
static DAT_LMR_HANDLE target_lmr;
static DAT_RMR_CONTEXT target_key;
static DAT_LMR_CONTEXT target_context;
static uint64_t target[4];
static struct dofi_mailbox ours;

static struct bytes acceptance(struct dofi_mailbox mailbox)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_ACCEPT, .mailbox = mailbox };

	return (struct bytes){ buf, dofi_wire_pack(buf, &msg) };
}

static void connected_with(struct dofi_mailbox mailbox)
{
	connect_to(ep, PORT);
	ours = sent().mailbox;
	cm_event(FI_CONNECTED, fake_eps.last, acceptance(mailbox));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void init_unconnected(void)
{
	fabric_cq_data = 8;
	xport_init();
	ep = ep_make();
	memset(target, 0, sizeof(target));
	memset(memory, 0, sizeof(memory));
	succeed(lmr_make(pz, target, sizeof(target),
			 (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
					      DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
			 &target_lmr, &target_context, &target_key));
}

static void init(void)
{
	init_unconnected();
	connected_with(theirs);
}

TestSuite(msg_mail, .init = init, .fini = xport_fini);

static struct request *request_place(uint32_t number)
{
	return (struct request *)(uintptr_t)ours.addr + number % MSG_MAIL_SLOTS;
}

static struct reply *reply_slot(uint32_t number)
{
	return (struct reply *)(uintptr_t)(ours.addr + MSG_MAIL_SLOTS * sizeof(struct request)) +
	       number % MSG_MAIL_SLOTS;
}

/* The fabric reports a write with this data. */
static void ring(uint64_t data)
{
	const struct fi_cq_data_entry entry = {
		.op_context = (void *)(uintptr_t)0xdeadbee0, /* tcp leaves the old value there */
		.flags = FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = data,
	};

	dofi_msg_xport.progress_ops->completed(&entry, 0, NULL);
}

static void ask(uint32_t number, uint32_t key, const void *addr, uint64_t add)
{
	*request_place(number) = (struct request){
		.number = htobe32(number), .key = htobe32(key), .addr = htobe64((uintptr_t)addr),
		.operand = htobe64(add),
	};
	ring(ours.id);
}

static void answer(uint32_t number, uint32_t refused, uint64_t old)
{
	*reply_slot(number) = (struct reply){ htobe32(number), htobe32(refused), htobe64(old) };
	ring(ours.id);
}

static DAT_RETURN fetch_add(uint64_t cookie)
{
	DAT_LMR_TRIPLET old = segment(8, 8);
	DAT_RMR_TRIPLET there = { .rmr_context = 0x1234,
				  .virtual_address = 0x5000,
				  .segment_length = 8 };
	const struct dofi_post p = {
		.n = 1, .iov = &old, .remote = &there, .cookie.as_64 = cookie, .operand = 3,
	};

	return dofi_ep_post_fetch_add(ep, &p);
}

static DAT_DTO_COMPLETION_STATUS completed(uint64_t cookie)
{
	DAT_EVENT event = event_take(evd, DAT_IB_DTO_EVENT);

	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	return event.event_data.dto_completion_event_data.status;
}

static uint64_t old_value(void)
{
	uint64_t v;

	memcpy(&v, memory + 8, sizeof(v));
	return v;
}

/* Offers */

Test(msg_mail, is_offered_and_costs_private_data)
{
	cr_expect(ours.key != 0);
	cr_expect(ours.addr != 0);
	cr_expect_eq(dofi_pool_at(&dofi_ep_pool, ours.id & ~MSG_SENDS_BYE), ep);
	cr_expect_eq(ia->max_private_data, 224);
	cr_expect_eq((uintptr_t)fake.mr_addr, ours.addr);
	cr_expect_eq(fake.mr_len, MSG_MAIL_SLOTS * (sizeof(struct request) + sizeof(struct reply)));
	cr_expect(fake.mr_access & FI_REMOTE_WRITE);
	cr_expect(!(fake.mr_access & FI_REMOTE_READ));
}

Test(msg_mail, is_offered_in_an_acceptance, .init = init_unconnected)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_REQUEST, .mailbox = theirs };
	DAT_PSP_HANDLE psp = psp_make(PORT);
	DAT_CR_HANDLE cr;

	cm_request(fake_eps.last_pep, (struct bytes){ buf, dofi_wire_pack(buf, &msg) });
	cr = cr_take();
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	quiesce();
	ours = sent().mailbox;
	cr_expect(ours.key != 0);
	cm_event(FI_CONNECTED, fake_eps.last, NO_BYTES);
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(fetch_add(1));
	cr_expect_eq(fake_eps.remote_key, theirs.key, "the key of the request");
	succeed(dofi_psp_free(psp));
}

Test(msg_mail, no_connection_without_memory_for_it, .init = init_unconnected)
{
	fake.fault.mr = -FI_ENOMEM;
	fake.fault.mr_times = 1;
	connect_to(ep, PORT);
	event_only(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.open, 0);
}

Test(msg_mail, goes_with_its_connection, .init = init_unconnected)
{
	int before = fake.open;

	connected_with(theirs);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake.open, before);
	ring(ours.id);
}

/* Requests */

Test(msg_mail, a_peer_without_one_is_not_asked, .init = init_unconnected)
{
	connected_with((struct dofi_mailbox){ .key = 0 });
	expect_type(fetch_add(1), DAT_MODEL_NOT_SUPPORTED);
}

Test(msg_mail, a_request_is_as_documented)
{
	struct request r;

	succeed(fetch_add(1));
	memcpy(&r, fake_eps.letter, sizeof(r));
	cr_expect_eq(fake_eps.op, FAKE_LETTER);
	cr_expect_eq(fake_eps.iov[0].iov_len, sizeof(r));
	cr_expect_eq(fake_eps.remote_addr, theirs.addr + sizeof(r));
	cr_expect_eq(fake_eps.remote_key, theirs.key);
	cr_expect_eq(fake_eps.cq_data, theirs.id);
	cr_expect_eq(be32toh(r.number), 1);
	cr_expect_eq(be32toh(r.key), 0x1234);
	cr_expect_eq(be64toh(r.addr), 0x5000);
	cr_expect_eq(be64toh(r.operand), 3);
	cr_expect_eq(r.swap, 0);
}

Test(msg_mail, a_reply_completes_the_request)
{
	succeed(fetch_add(1));
	answer(1, 0, 0x1122334455667788);
	cr_expect_eq(completed(1), DAT_DTO_SUCCESS);
	cr_expect_eq(old_value(), 0x1122334455667788);
}

Test(msg_mail, a_refusal_breaks_the_connection)
{
	succeed(fetch_add(1));
	answer(1, 1, 99);
	cr_expect_eq(completed(1), DAT_DTO_ERR_REMOTE_ACCESS);
	cr_expect_eq(old_value(), 0);
	quiesce();
	event_only(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_mail, a_reply_to_nothing_is_ignored)
{
	answer(2, 0, 5);
	succeed(fetch_add(1));
	ring(ours.id);
	cr_expect(event_none(evd));
	*reply_slot(1) = (struct reply){ .number = htobe32(1) };
	ring(ours.id + 1000000);
	ring((uint64_t)ours.id | 1ull << 32);
	cr_expect(event_none(evd), "the ids are of no connection");
	ring(ours.id);
	cr_expect_eq(completed(1), DAT_DTO_SUCCESS);
	cr_expect(event_none(evd), "the second was never asked");
}

Test(msg_mail, no_more_requests_than_places)
{
	unsigned i;

	((struct dofi_ep *)ep)->attr.max_rdma_read_out = 64;
	for (i = 1; i <= MSG_MAIL_SLOTS + 1; i++)
		succeed(fetch_add(i));
	cr_expect_eq(fake_eps.ops, MSG_MAIL_SLOTS);
	answer(1, 0, 0);
	cr_expect_eq(fake_eps.ops, MSG_MAIL_SLOTS + 1);
	cr_expect_eq(fake_eps.remote_addr, theirs.addr + sizeof(struct request),
		     "the first's place");
	completed(1);
}

Test(msg_mail, what_is_not_answered_is_flushed)
{
	succeed(fetch_add(1));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	cr_expect_eq(completed(1), DAT_DTO_ERR_FLUSHED);
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Replies */

static struct reply last_reply(void)
{
	struct reply r;

	cr_assert_eq(fake_eps.op, FAKE_LETTER);
	cr_assert_eq(fake_eps.iov[0].iov_len, sizeof(r));
	memcpy(&r, fake_eps.letter, sizeof(r));
	return r;
}

Test(msg_mail, a_request_is_done_and_answered)
{
	target[1] = 40;
	ask(1, target_key, &target[1], 2);
	cr_expect_eq(target[1], 42);
	cr_expect_eq(be64toh(last_reply().old), 40);
	cr_expect_eq(be32toh(last_reply().number), 1);
	cr_expect_eq(last_reply().refused, 0);
	cr_expect_eq(fake_eps.remote_addr, theirs.addr +
		     MSG_MAIL_SLOTS * sizeof(struct request) + sizeof(struct reply));
	cr_expect_eq(fake_eps.cq_data, theirs.id);
	ring(ours.id);
	cr_expect_eq(target[1], 42, "once");
	ask(2, target_key, &target[1], 1);
	cr_expect_eq(target[1], 43);
}

Test(msg_mail, a_request_without_right_is_refused)
{
	ask(1, target_key + 1, &target[1], 2);
	cr_expect_eq(be32toh(last_reply().refused), 1);
	ask(2, rmr_context, memory, 2);		/* its LMR has no atomics */
	cr_expect_eq(be32toh(last_reply().refused), 1);
	cr_expect_eq(memory[0], 0);
	cr_expect_eq(target[1], 0);
}

Test(msg_mail, a_number_out_of_turn_is_ignored)
{
	ask(2, target_key, &target[1], 2);
	ask(0, target_key, &target[1], 2);
	cr_expect_eq(fake_eps.ops, 0);
	cr_expect_eq(target[1], 0);
}

/* The reply is sent after another operation of the EP has completed, or after a tick. */
/* The progress thread repeats a reply that found no room, so its fault changes under the lock. */
static void refuse_replies(int fault)
{
	struct dofi_ep *locked = ep;

	dofi_mutex_lock(&locked->lock);
	fake_eps.fault.letter = fault;
	dofi_mutex_unlock(&locked->lock);
}

Test(msg_mail, a_reply_that_finds_no_room_waits)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	void *context;

	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(9), DAT_COMPLETION_DEFAULT_FLAG));
	context = fake_eps.context;
	refuse_replies(-FI_EAGAIN);
	ask(1, target_key, &target[1], 2);
	ask(2, target_key, &target[1], 2);
	cr_expect_eq(target[1], 4);
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	refuse_replies(0);
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	/* the progress thread may have delivered the completion, and sends the reply now */
	settle();
	cr_expect_eq(fake_eps.ops, 3);
	cr_expect_eq(be32toh(last_reply().number), 2);
	cr_expect_eq(be64toh(last_reply().old), 2);
}

Test(msg_mail, a_request_for_whose_reply_there_is_no_place_is_not_carried_out)
{
	uint32_t number;

	refuse_replies(-FI_EAGAIN);
	for (number = 1; number <= MSG_MAIL_SLOTS + 1; number++)
		ask(number, target_key, &target[1], 2);
	cr_expect_eq(target[1], 2 * MSG_MAIL_SLOTS);
	refuse_replies(0);
}

/*
 * The peer may be connected before our end knows it, and an endpoint that is not connected cannot
 * send.
 */
Test(msg_mail, a_request_before_the_connection_is_answered_after, .init = init_unconnected)
{
	connect_to(ep, PORT);
	ours = sent().mailbox;
	ask(1, target_key, &target[1], 2);
	cr_expect_eq(fake_eps.ops, 0);
	cm_event(FI_CONNECTED, fake_eps.last, acceptance(theirs));
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(be32toh(last_reply().number), 1);
}

/* Immediate data, and which peers may send it */

static void receive_posted(uint64_t cookie)
{
	DAT_LMR_TRIPLET s = segment(0, 64);

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

static void message(uint64_t data, size_t len)
{
	const struct fi_cq_data_entry entry = {
		.op_context = fake_eps.context, .len = len,
		.flags = FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA, .data = data,
	};

	dofi_msg_xport.progress_ops->completed(&entry, 0, NULL);
}

static void immediate(uint64_t data, size_t len, DAT_IB_EXT_TYPE type, uint64_t length)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event;

	receive_posted(3);
	message(data, len);
	event = event_take(evd, DAT_IB_DTO_EVENT);
	memcpy(&x, event.event_extension_data, sizeof(x));
	cr_expect_eq(x.type, type);
	cr_expect_eq(x.status, DAT_OP_SUCCESS);
	cr_expect_eq(x.val.immed.data, 0xcafebabe);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, length);
}

Test(msg_mail, immediate_data_of_a_message)
{
	immediate(dofi_cq_data(DOFI_CQ_DATA_IMMED, false, 0, 0xcafebabe), 5, DAT_IB_RECV_IMMED_DATA,
		  5);
}

Test(msg_mail, immediate_data_of_a_write)
{
	immediate(dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 1 << 20, 0xcafebabe), 0,
		  DAT_IB_RDMA_WRITE_IMMED_DATA, 1 << 20);
}

static void nonsense(uint64_t data, size_t len)
{
	DAT_EVENT event;

	receive_posted(3);
	message(data, len);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_TRANSPORT);
	quiesce();
	event_only(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_mail, a_message_of_no_kind)
{
	nonsense(77, 0);
}

Test(msg_mail, a_message_with_the_length_of_a_write)
{
	nonsense(dofi_cq_data(DOFI_CQ_DATA_IMMED, false, 5, 0), 5);
}

Test(msg_mail, a_message_with_bytes_that_reports_a_write)
{
	nonsense(dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 5, 0), 5);
}

/* A write with immediate data is two operations of the fabric. */

static DAT_RETURN write_immed(uint64_t cookie, size_t length)
{
	DAT_LMR_TRIPLET from = segment(0, length);
	DAT_RMR_TRIPLET to = { .rmr_context = 0x1234,
			       .virtual_address = 0x5000,
			       .segment_length = length };
	const struct dofi_post p = {
		.n = 1, .iov = &from, .remote = &to, .cookie.as_64 = cookie, .immed = 0xabcd,
	};

	return dofi_ep_post_write_immed(ep, &p);
}

Test(msg_mail, a_write_with_immediate_data_is_done_when_both_are)
{
	succeed(write_immed(4, 32));
	cr_expect_eq(fake_eps.ops, 2);
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.count, 0);
	cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
	cr_expect_eq(fake_eps.cq_data, dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 32, 0xabcd));
	fake_complete(fake_eps.context, 0);
	settle();
	cr_expect(event_none(evd));
	fake_complete(fake_eps.context, 0);
	cr_expect_eq(completed(4), DAT_DTO_SUCCESS);
}

Test(msg_mail, a_write_whose_message_finds_no_room)
{
	succeed(dofi_ep_get_status(ep, NULL, NULL, NULL));
	fake_eps.fault.sendmsg = -FI_EAGAIN;
	succeed(write_immed(4, 32));
	cr_expect_eq(fake_eps.ops, 1);
	cr_expect_eq(fake_eps.op, FAKE_WRITE);
	fake_eps.fault.sendmsg = 0;
	fake_complete(fake_eps.context, 0);
	cr_expect(event_none(evd));
	/* the progress thread may have delivered the completion, and sends the message now */
	settle();
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.ops, 2, "the write is not repeated");
	fake_complete(fake_eps.context, 0);
	cr_expect_eq(completed(4), DAT_DTO_SUCCESS);
}

Test(msg_mail, a_write_that_fails_ends_with_that)
{
	void *context;

	succeed(write_immed(4, 32));
	context = fake_eps.context;
	fake_complete(context, FI_EACCES);
	fake_complete(context, 0);
	cr_expect_eq(completed(4), DAT_DTO_ERR_REMOTE_ACCESS);
	quiesce();
	event_only(DAT_CONNECTION_EVENT_BROKEN);
}

static void init_sockets(void)
{
	fabric_name = "sockets";
	init();
}

static void fini_sockets(void)
{
	xport_fini();
	fabric_name = "tcp";
}

/* If the peer continued to receive after a refused write, the message waits for the write. */
Test(msg_mail, a_message_waits_for_its_write_where_need_be, .init = init_sockets,
     .fini = fini_sockets)
{
	succeed(write_immed(4, 32));
	succeed(fetch_add(5));
	cr_expect_eq(fake_eps.ops, 1);
	fake_complete(fake_eps.context, 0);
	cr_expect(event_none(evd));
	/* the progress thread may have delivered the completion, and sends the message now */
	settle();
	cr_expect_eq(fake_eps.ops, 3, "the message, and what was behind");
}

/*
 * If the fabric may lose FI_REMOTE_CQ_DATA of a completion, each message has data, and only the
 * value counts.
 */
Test(msg_mail, every_message_says_what_it_is_where_need_be, .init = init_sockets,
     .fini = fini_sockets)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	struct fi_cq_data_entry entry = { .flags = FI_RECV | FI_MSG, .len = 8 };

	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
	cr_expect_eq(fake_eps.cq_data, 0);
	receive_posted(2);
	entry.op_context = fake_eps.context;
	ia->progress.ops->completed(&entry, 0, NULL);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	receive_posted(3);
	entry.op_context = fake_eps.context;
	entry.data = dofi_cq_data(DOFI_CQ_DATA_IMMED, false, 0, 5);
	ia->progress.ops->completed(&entry, 0, NULL);
	cr_expect_eq(completed(3), DAT_DTO_SUCCESS);
}
#endif
