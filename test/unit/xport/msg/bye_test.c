/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BYE messages: the exchange at the end of a connection. The test acts as the peer. */

#include "xport/fabric.h"

#include "xport/msg/msg.h"

#include <errno.h>

#define PORT 4711
#define THEIR_SECRET 0xabcd1234u
#define THEIR_NUMBER 77u

static DAT_EP_HANDLE ep;
static struct dofi_wire ours;

static struct dofi_ep *inside(void)
{
	return ep;
}

static void connect_with(uint32_t id)
{
	unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = {
		.kind = DOFI_WIRE_ACCEPT,
		.secret = THEIR_SECRET,
		.mailbox = { .addr = 0, .key = 1, .id = id },
	};

	connect_to(ep, PORT);
	ours = sent();
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ buf, dofi_wire_pack(buf, &msg) });
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void init(void)
{
	fabric_cq_data = 8;
	xport_init();
	ep = ep_make();
	connect_with(THEIR_NUMBER | MSG_SENDS_BYE);
}

TestSuite(msg_bye, .init = init, .fini = xport_fini);

static uint64_t our_bye(void)
{
	return (uint64_t)ours.secret << 32 | (ours.mailbox.id & ~MSG_SENDS_BYE);
}

/* A write of no bytes arrives, with remote CQ data @data. */
static void hear(uint64_t data)
{
	const struct fi_cq_data_entry entry = {
		.flags = FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = data,
	};

	ia->progress.ops->completed(&entry, 0, NULL);
}

static bool sent_bye(void)
{
	return fake_eps.op == FAKE_WRITE && fake_eps.flags == (FI_INJECT | FI_REMOTE_CQ_DATA);
}

static void stream_ends(DAT_EVENT_NUMBER number)
{
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	event_only(number);
	cr_expect(!sent_bye(), "the peer has gone");
}

Test(msg_bye, is_offered_with_a_number)
{
	cr_expect(ours.mailbox.id & MSG_SENDS_BYE);
	cr_expect_eq(ours.mailbox.id & ~MSG_SENDS_BYE, dofi_pool_index(inside()));
}

Test(msg_bye, a_mailbox_without_memory_takes_no_atomics)
{
	cr_expect_eq(inside()->mailbox.key, 0);
}

Test(msg_bye, is_said_by_a_disconnect)
{
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(sent_bye());
	cr_expect_eq(fake_eps.cq_data, (uint64_t)THEIR_SECRET << 32 | THEIR_NUMBER);
	cr_expect_eq(fake_eps.count, 0);
	cr_expect(!fake_eps.context);
}

Test(msg_bye, is_said_when_the_endpoint_is_freed)
{
	succeed(dofi_ep_free(ep));
	cr_expect(sent_bye());
}

Test(msg_bye, is_not_said_of_a_connection_that_broke)
{
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	event_only(DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(!sent_bye());
}

/* An error that broke an earlier connection of the endpoint does not count. */
Test(msg_bye, is_said_when_the_endpoint_of_another_connection_is_freed)
{
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	event_only(DAT_CONNECTION_EVENT_BROKEN);
	succeed(dofi_ep_reset(ep));
	connect_with(THEIR_NUMBER | MSG_SENDS_BYE);
	succeed(dofi_ep_free(ep));
	cr_expect(sent_bye());
}

Test(msg_bye, is_said_after_refusals)
{
	fake_eps.fault = (struct fake_ep_faults){ .op = -FI_EAGAIN, .op_times = 100 };
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(sent_bye());
}

Test(msg_bye, not_being_said_does_not_stop_the_end)
{
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_bye, makes_the_peers_end_orderly)
{
	hear(our_bye());
	stream_ends(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_bye, a_stream_that_ends_without_it_was_broken)
{
	stream_ends(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_bye, of_another_connection_is_ignored)
{
	hear(our_bye() ^ 1ull << 32);
	hear(our_bye() + 1);
	hear(our_bye() | 0x7fffffff);
	stream_ends(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_bye, counts_for_one_connection)
{
	hear(our_bye());
	stream_ends(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	connect_with(THEIR_NUMBER | MSG_SENDS_BYE);
	stream_ends(DAT_CONNECTION_EVENT_BROKEN);
}

/* A peer of an older version sends no BYE, and its number has no mark. */
Test(msg_bye, is_not_expected_of_a_peer_that_does_not_offer_it)
{
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	fake_eps.flags = 0;
	connect_with(THEIR_NUMBER);
	stream_ends(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* A receive that the fabric flushes does not show how the connection ended. */
Test(msg_bye, a_flush_does_not_say_how_it_ended)
{
	DAT_LMR_TRIPLET none;
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	succeed(dofi_ep_post_recv(ep, 0, &none, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	hear(our_bye());
	fake_complete(fake_eps.context, FI_ECANCELED);
	quiesce();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
}
