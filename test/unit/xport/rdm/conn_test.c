/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections over a connectionless fabric: how they are established, and how they end. */

#include "xport/rdm/conn.h"

#include "base/env.h"
#include "nomem.h"
#include "xport/cm/talk.h"

/* A fabric that loses its way to the peer */

static ssize_t inject_nowhere(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return -FI_ENETUNREACH;
}

static ssize_t inject_nothing(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return 0;
}

/* From now on the endpoint of ep's connection sends by @inject. */
static void inject_by(ssize_t (*inject)(struct fid_ep *fid, const void *buf, size_t len,
					fi_addr_t to))
{
	static struct fi_ops_msg ops;
	struct dofi_ep *e = ep;
	struct fid_ep *fid;

	dofi_mutex_lock(&e->lock);
	fid = rdm_conn_of(e)->rpz->rdm.fid;
	ops = *fid->msg;
	ops.inject = inject;
	fid->msg = &ops;
	dofi_mutex_unlock(&e->lock);
}

/* The peer connects */

TestSuite(rdm_conn_passive, .init = talk_init, .fini = talk_fini, .timeout = 60);

Test(rdm_conn_passive, with_an_address_that_is_none)
{
	struct dofi_cm_msg msg = request();

	msg.addr = "fi_shm://../x";
	msg.addr_len = 14;
	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_REFUSE);
	cr_expect_eq(peer.received.reason, DOFI_CM_NO_PATH);
	accept_fails();
}

Test(rdm_conn_passive, a_peer_that_leaves_before_its_first_frame_fails_the_accept)
{
	const struct dofi_cm_msg msg = request();

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_hang_up(&peer);
	accept_fails();
}

Test(rdm_conn_passive, a_goodbye_before_the_first_frame_fails_the_accept)
{
	const struct dofi_cm_msg msg = request(), bye = peer_msg(&peer, DOFI_CM_BYE);

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_send_cm(&peer, &bye);
	accept_fails();
}

Test(rdm_conn_passive, a_disconnect_before_the_first_frame_is_announced)
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

static void hello_send(void)
{
	struct rdm_frame hello;

	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_learn(&peer);
	hello = peer_frame(&peer, RDM_FRAME_HELLO);
	peer_send(&peer, &hello, NULL, 0);
}

Test(rdm_conn_passive, a_peer_that_cannot_be_answered_fails_the_accept)
{
	const struct dofi_cm_msg msg = request();

	accept_with(request_sent(&msg), "");
	settle();
	inject_by(inject_nowhere);
	hello_send();
	accept_fails();
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
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
	cr_expect_eq(accepting(), 4, "part of the PZ, operations, tables of connections and peers");
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

/* Attempts without a time-out end all the same if the fabric carries nothing. */

Test(rdm_conn_active, an_acceptor_that_cannot_be_sent_a_frame_is_unreachable)
{
	is_asked();
	inject_by(inject_nowhere);
	reply(DOFI_CM_ACCEPT, 0);
	ends_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
}

Test(rdm_conn_active, an_acceptor_whose_frames_do_not_arrive_is_unreachable)
{
	dofi_settings.keepalive_s = 1;
	is_asked();
	inject_by(inject_nothing);
	reply(DOFI_CM_ACCEPT, 0);
	ends_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
}

Test(rdm_conn_active, the_limit_of_the_program_is_observed)
{
	dofi_settings.keepalive_s = 0;
	/* on a busy machine, too, the attempt must not end before the answer */
	is_asked_within(2000000);
	inject_by(inject_nothing);
	reply(DOFI_CM_ACCEPT, 0);
	ends_with(DAT_CONNECTION_EVENT_TIMED_OUT);
}

/* An acceptor that leaves after it sent frames */

Test(rdm_conn_active, frames_of_an_acceptor_that_left_are_not_awaited_for_long)
{
	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	peer_take(&peer, RDM_FRAME_HELLO);
	say_bye(peer.sent + 1, 0);
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(rdm_conn_active, an_acceptor_that_left_is_connected_until_its_messages_are_received)
{
	struct rdm_frame back;

	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	peer_take(&peer, RDM_FRAME_HELLO);
	say_bye(peer.sent + 2, 0);
	settle();
	back = peer_frame(&peer, RDM_FRAME_HELLO_BACK);
	peer_send(&peer, &back, NULL, 0);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	say("without a receive", 17);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* On a network that loses packets, the frames of an acceptor may be slower than its BYE. */
Test(rdm_conn_active, a_frame_one_second_behind_the_bye_of_the_acceptor_still_connects)
{
	struct rdm_frame back;
	DAT_EVENT event;
	DAT_COUNT more;

	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	peer_take(&peer, RDM_FRAME_HELLO);
	say_bye(peer.sent + 1, 0);
	cr_assert_eq(DAT_GET_TYPE(dofi_evd_wait(evd, 1000000, 1, &event, &more)),
		     DAT_TIMEOUT_EXPIRED);
	back = peer_frame(&peer, RDM_FRAME_HELLO_BACK);
	peer_send(&peer, &back, NULL, 0);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
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

/* For longer than the last messages of a peer that left may take. */
static void say_and_hold_up_the_progress_thread(void *arg)
{
	const struct timespec time = { .tv_nsec = 600 * 1000000 };

	say("meanwhile", 9);
	nanosleep(&time, arg);
}

Test(rdm_conn, a_message_that_arrived_while_the_progress_thread_was_held_up_is_received)
{
	receive(0, 100, 1);
	say_bye(peer.sent + 2, 0);
	settle();
	dofi_progress_call(&ia->progress, say_and_hold_up_the_progress_thread, NULL);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(rdm_conn, a_goodbye_that_denies_received_messages_ends_at_once)
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

Test(rdm_conn, a_frame_that_is_lost_breaks_it)
{
	unsigned i;

	inject_by(inject_nowhere);
	/* the answer has only credits */
	for (i = 0; i < RDM_WINDOW / 2; i++) {
		receive(0, 100, 1);
		say("x", 1);
		cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
	}
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_conn, a_loss_that_the_end_of_the_peer_caused_does_not_break_it)
{
	struct dofi_ep *e = ep;

	dofi_mutex_lock(&e->lock);
	rdm_lost(rdm_conn_of(e));
	dofi_mutex_unlock(&e->lock);
	say_bye(peer.sent, 0);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

static uint64_t word;

static void word_read(struct dofi_work *work)
{
	word = *(const uint64_t *)(uintptr_t)peer.received.alive_addr;
}

/* Reads the connection's word after its end, before the progress thread frees the memory. */
static void end_and_read(void *arg)
{
	static struct dofi_work work = { .run = word_read };

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
