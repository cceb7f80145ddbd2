/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections over a connectionless fabric: how they are established, and how they end. */

#include "xport/rdm/conn.h"

#include "nomem.h"
#include "xport/cm/talk.h"

/* The peer connects */

TestSuite(rdm_conn_passive, .init = talk_init, .fini = talk_fini, .timeout = 60);

Test(rdm_conn_passive, with_an_address_that_is_none)
{
	struct dofi_cm_msg msg = request();

	msg.addr = "fi_shm://../x";
	msg.addr_len = 14;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_conn_passive, that_leaves_before_it_sends_a_frame)
{
	const struct dofi_cm_msg msg = request();

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_hang_up(&peer);
	accept_fails();
}

Test(rdm_conn_passive, that_says_so)
{
	const struct dofi_cm_msg msg = request(), bye = peer_msg(&peer, DOFI_CM_BYE);

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_send_cm(&peer, &bye);
	accept_fails();
}

Test(rdm_conn_passive, one_is_let_go_before_it_is_connected)
{
	const struct dofi_cm_msg msg = request();

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_expect_eq(peer.received.last_frame, 0);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

static int accepting(void)
{
	const struct dofi_cm_msg msg = peer_msg(&peer, DOFI_CM_REQUEST);
	int n, kind;

	for (n = 0; n < NOMEM_MOST; n++) {
		DAT_CR_HANDLE cr;

		peer_dial(&peer, qual);
		cr = request_sent(&msg);
		nomem_after(n);
		accept_with(cr, "");
		kind = peer_recv_cm(&peer);
		cr_expect_eq(kind, nomem_failed() ? DOFI_CM_REFUSE : DOFI_CM_ACCEPT);
		peer_hang_up(&peer);
		accept_fails();
		succeed(dofi_ep_reset(ep));
		if (kind == DOFI_CM_ACCEPT)
			break;
	}
	return n;
}

Test(rdm_conn_passive, accepting_without_memory)
{
	psp = listen_any(&qual);
	/* allocations that succeeded before a failure are kept for the next attempt */
	cr_expect_eq(accepting(), 4, "endpoint, its info and name, table of connections");
	cr_expect_eq(accepting(), 0);
}

/* The EP connects */

TestSuite(rdm_conn_active, .init = talk_init, .fini = talk_fini, .timeout = 60);

Test(rdm_conn_active, an_address_that_is_none_is_unreachable)
{
	struct dofi_cm_msg msg;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.addr = "127.0.0.1";
	msg.addr_len = 10;
	peer_send_cm(&peer, &msg);
	/* a later message does not help */
	reply(DOFI_CM_ACCEPT, 0);
	ends_with(DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(rdm_conn_active, a_peer_that_never_greets_has_refused)
{
	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	peer_take(&peer, RDM_FRAME_HELLO);
	peer_hang_up(&peer);
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/*
 * libfabric's shm looks up the sender of a HELLO, and the receiver crashes if the sender is gone.
 */
Test(rdm_conn_active, one_ends_as_it_greets, .fini = rdm_fini)
{
	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_expect(peer.received.last_frame <= 1);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

/* Established connections, and how they end */

TestSuite(rdm_conn, .init = coupled_init, .fini = talk_fini, .timeout = 60);

Test(rdm_conn, a_bye_ends_it)
{
	receive(0, 100, 1);
	say_bye(peer.sent, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(peer_recv_cm(&peer), 0, "it needs no answer");
}

Test(rdm_conn, or_says_that_it_broke)
{
	say_bye(peer.sent, 1);
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_conn, what_was_sent_before_is_received)
{
	/* one frame waits for a receive, and one is still to come */
	say("first", 5);
	say_bye(peer.sent + 1, 0);
	receive(0, 100, 1);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
	receive(0, 100, 2);
	say("second", 6);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 2);
	cr_expect(!memcmp(big, "second", 6));
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(rdm_conn, what_never_comes_is_not_waited_for_long)
{
	receive(0, 100, 1);
	say_bye(peer.sent + 1000, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(rdm_conn, nor_is_what_came_and_is_denied)
{
	say_bye(peer.sent - 1, 0);
	say_bye(peer.sent, 0);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(rdm_conn, a_peer_that_dies_ends_it)
{
	receive(0, 100, 1);
	peer_hang_up(&peer);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_conn, a_second_request_ends_it)
{
	const struct dofi_cm_msg msg = peer_msg(&peer, DOFI_CM_REQUEST);

	peer_send_cm(&peer, &msg);
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
}

static uint64_t word;

static void word_read(struct dofi_work *work)
{
	(void)work;
	word = *(const uint64_t *)(uintptr_t)peer.received.alive_addr;
}

/* Reads the connection's word after its end, before the progress thread frees the memory. */
static void end_and_read(void *arg)
{
	static struct dofi_work work = { .run = word_read };

	(void)arg;
	word_read(NULL);
	cr_expect_eq(word, peer.conn);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	dofi_progress_post(&ia->progress, &work);
}

Test(rdm_conn, the_program_ends_it)
{
	receive(0, 100, 1);
	dofi_progress_call(&ia->progress, end_and_read, NULL);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	settle();
	cr_expect_eq(word, 0, "our memory is not to be read any more");
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_expect_eq(peer.received.last_frame, peer.seen);
	cr_expect_eq(peer.received.reason, 0);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

Test(rdm_conn, an_endpoint_connects_again)
{
	int i;

	for (i = 0; i < 3; i++) {
		peer_hang_up(&peer);
		ends_with(DAT_CONNECTION_EVENT_BROKEN);
		succeed(dofi_ep_reset(ep));
		peer_couple(&peer, ep);
		is_heard();
	}
	peer_hang_up(&peer);
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_conn, both_ends_may_be_here, .init = talk_init)
{
	DAT_EP_HANDLE other = ep_make();

	pair_connect(ep, other);
	pair_works(ep, other);
	pair_works(other, ep);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}
