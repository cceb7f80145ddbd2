/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests over a connectionless fabric and their answers, including hostile ones. */

#include "xport/rdm/conn.h"

#include "nomem.h"
#include "xport/cm/talk.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Passive: a request of the peer, which may be invalid */

TestSuite(rdm_request_passive, .init = talk_init, .fini = talk_fini, .timeout = 60);

Test(rdm_request_passive, data_goes_both_ways)
{
	struct dofi_cm_msg msg = request();
	DAT_CR_HANDLE cr;
	DAT_CR_PARAM param;

	msg.data = "may I";
	msg.data_size = 5;
	cr = request_sent(&msg);
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_expect(data_is(param.private_data, param.private_data_size, "may I"));
	cr_expect_eq(((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	accept_with(cr, "please");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	cr_expect(data_is(peer.received.data, peer.received.data_size, "please"));
}

Test(rdm_request_passive, a_consumer_may_turn_it_down)
{
	const struct dofi_cm_msg msg = request();

	succeed(turn_down(request_sent(&msg)));
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_REJECT);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

Test(rdm_request_passive, a_request_can_be_accepted_after_its_listener_is_freed)
{
	const struct dofi_cm_msg msg = request();
	DAT_CR_HANDLE cr = request_sent(&msg);

	succeed(dofi_psp_free(psp));
	accept_with(cr, "");
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
}

Test(rdm_request_passive, another_qualifier_has_no_listener)
{
	struct dofi_cm_msg msg = request();

	msg.conn_qual = qual + 1;
	refused_with(&msg, DOFI_CM_NO_LISTENER);
}

Test(rdm_request_passive, a_listener_may_end_without_an_answer, .fini = rdm_fini)
{
	const struct dofi_cm_msg msg = request();

	request_sent(&msg);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_REFUSE);
	cr_expect_eq(peer.received.reason, DOFI_CM_NO_LISTENER);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

Test(rdm_request_passive, a_requester_that_leaves_before_the_accept_fails_it)
{
	const struct dofi_cm_msg msg = request();
	DAT_CR_HANDLE cr = request_sent(&msg);

	peer_hang_up(&peer);
	accept_with(cr, "");
	accept_fails();
}

Test(rdm_request_passive, a_requester_that_shuts_down_before_the_accept_keeps_no_descriptor)
{
	const struct dofi_cm_msg msg = request();
	DAT_CR_HANDLE cr = request_sent(&msg);

	shutdown(peer.fd, SHUT_WR);
	cr_expect_eq(peer_recv_cm(&peer), 0, "our end closed its socket");
	accept_with(cr, "");
	accept_fails();
}

Test(rdm_request_passive, a_requester_may_leave_before_the_reject)
{
	const struct dofi_cm_msg msg = request();
	DAT_CR_HANDLE cr = request_sent(&msg);

	peer_hang_up(&peer);
	succeed(turn_down(cr));
	cr_expect(event_none(evd));
}

Test(rdm_request_passive, answers_from_a_requester_are_ignored)
{
	static const enum dofi_cm_kind kinds[] = {
		DOFI_CM_ACCEPT, DOFI_CM_REJECT, DOFI_CM_READY, DOFI_CM_REFUSE,
	};
	const struct dofi_cm_msg msg = request();
	struct dofi_cm_msg nonsense;
	struct rdm_frame hello;
	DAT_CR_HANDLE cr = request_sent(&msg);
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		nonsense = peer_msg(&peer, kinds[i]);
		nonsense.reason = kinds[i] == DOFI_CM_REFUSE;
		peer_send_cm(&peer, &nonsense);
		if (!i)
			accept_with(cr, "");
	}
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_learn(&peer);
	hello = peer_frame(&peer, RDM_FRAME_HELLO);
	peer_send(&peer, &hello, NULL, 0);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	peer_take(&peer, RDM_FRAME_HELLO_BACK);
}

static ssize_t inject_refused(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	(void)fid;
	(void)buf;
	(void)len;
	(void)to;
	return -FI_EAGAIN;
}

static bool awaits_to_answer(struct dofi_ep *e)
{
	bool due;

	dofi_mutex_lock(&e->lock);
	due = rdm_conn_of(e)->hello_back_due;
	dofi_mutex_unlock(&e->lock);
	return due;
}

/* Else the acceptor could disconnect first, and the requester would never be connected. */
Test(rdm_request_passive, an_acceptor_is_connected_when_the_fabric_has_taken_hello_back)
{
	const struct dofi_cm_msg msg = request();
	struct dofi_ep *e = ep;
	struct rdm_frame hello;
	struct fi_ops_msg *usual, refusing;

	accept_with(request_sent(&msg), "");
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_ACCEPT);
	peer_learn(&peer);
	usual = e->fid->msg;
	refusing = *usual;
	refusing.inject = inject_refused;
	e->fid->msg = &refusing;
	hello = peer_frame(&peer, RDM_FRAME_HELLO);
	peer_send(&peer, &hello, NULL, 0);
	while (!awaits_to_answer(e))
		settle();
	cr_expect(event_none(evd));
	dofi_mutex_lock(&e->lock);
	e->fid->msg = usual;
	dofi_mutex_unlock(&e->lock);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	peer_take(&peer, RDM_FRAME_HELLO_BACK);
}

/* Returns true when the request's event arrives, or false when the peer gets an answer. */
static bool request_arrives(void)
{
	struct pollfd p = { .fd = peer.fd, .events = POLLIN };
	DAT_EVENT event;

	while (poll(&p, 1, 1) <= 0)
		if (dofi_evd_dequeue(evd, &event) == DAT_SUCCESS)
			return true;
	return false;
}

Test(rdm_request_passive, being_asked_without_memory)
{
	int n;

	psp = listen_any(&qual);
	for (n = 0; n < NOMEM_MOST; n++) {
		const struct dofi_cm_msg msg = peer_msg(&peer, DOFI_CM_REQUEST);

		nomem_after(n);
		peer_dial(&peer, qual);
		peer_send_cm(&peer, &msg);
		if (request_arrives())
			break;
		cr_expect(nomem_failed());
		peer_hang_up(&peer);
	}
	cr_expect(!nomem_failed());
	cr_expect(n >= 3, "CM socket, embryo, peer: %d", n);
}

/* Active: the peer listens, and its answer may be invalid */

TestSuite(rdm_request_active, .init = talk_init, .fini = talk_fini, .timeout = 60);

static void is_established(void)
{
	struct rdm_frame f;

	peer_take(&peer, RDM_FRAME_HELLO);
	cr_expect(event_none(evd), "one way is not known to be good yet");
	f = peer_frame(&peer, RDM_FRAME_HELLO_BACK);
	peer_send(&peer, &f, NULL, 0);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	is_heard();
}

Test(rdm_request_active, an_acceptance_and_two_greetings_make_it)
{
	struct dofi_cm_msg msg;
	struct dofi_ep *e = ep;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.data = "come in";
	msg.data_size = 7;
	peer_send_cm(&peer, &msg);
	is_established();
	cr_expect(data_is(e->peer_data, e->peer_data_size, "come in"));
	cr_expect_eq(e->peer_secret, PEER_SECRET);
}

Test(rdm_request_active, a_second_acceptance_is_nothing)
{
	struct dofi_cm_msg msg;

	is_asked();
	reply(DOFI_CM_ACCEPT, 0);
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.conn_id = 77;
	msg.addr = "fi_shm://elsewhere";
	msg.addr_len = 19;
	peer_send_cm(&peer, &msg);
	reply(DOFI_CM_REJECT, 0);
	reply(DOFI_CM_REFUSE, DOFI_CM_NO_LISTENER);
	is_established();
}

Test(rdm_request_active, answers_come_too_late, .init = coupled_init)
{
	const struct dofi_cm_msg accept = peer_msg(&peer, DOFI_CM_ACCEPT);
	const struct dofi_cm_msg reject = peer_msg(&peer, DOFI_CM_REJECT);

	peer_send_cm(&peer, &accept);
	peer_send_cm(&peer, &reject);
	is_heard();
	say_bye(peer.sent, 0);
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(rdm_request_active, a_rejection_brings_its_data)
{
	struct dofi_cm_msg msg;
	struct dofi_ep *e = ep;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_REJECT);
	msg.data = "no";
	msg.data_size = 2;
	peer_send_cm(&peer, &msg);
	reply(DOFI_CM_ACCEPT, 0);
	ends_with(DAT_CONNECTION_EVENT_PEER_REJECTED);
	cr_expect(data_is(e->peer_data, e->peer_data_size, "no"));
}

Test(rdm_request_active, refusals_have_reasons)
{
	static const struct {
		uint8_t reason;
		DAT_EVENT_NUMBER number;
	} refusals[] = {
		{ DOFI_CM_NO_LISTENER, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ DOFI_CM_BUSY, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ DOFI_CM_NO_PATH, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ 77, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	};
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		is_asked();
		/* twice, and likely in one segment */
		reply(DOFI_CM_REFUSE, refusals[i].reason);
		reply(DOFI_CM_REFUSE, DOFI_CM_NO_LISTENER);
		ends_with(refusals[i].number);
		succeed(dofi_ep_reset(ep));
		peer_hang_up(&peer);
	}
}

Test(rdm_request_active, no_answer_is_a_refusal)
{
	is_asked();
	peer_hang_up(&peer);
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	succeed(dofi_ep_reset(ep));
	is_asked();
	say_bye(0, 0);
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(rdm_request_active, frames_before_the_answer_are_nothing)
{
	is_asked();
	say("too early", 9);
	cr_expect(peer_has_none(&peer));
	peer.sent = 0;
	reply(DOFI_CM_ACCEPT, 0);
	is_established();
}

Test(rdm_request_active, no_listener)
{
	close(listener());
	connect_with("", DAT_TIMEOUT_INFINITE);
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(rdm_request_active, time_runs_out)
{
	int fd = listener();

	connect_with("", 20000);
	ends_with(DAT_CONNECTION_EVENT_TIMED_OUT);
	close(fd);
}

Test(rdm_request_active, the_program_gives_up)
{
	is_asked();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	ends_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_expect_eq(peer_recv_cm(&peer), 0);
}

/*
 * Connects until no allocation fails, and returns the number of failures. The first time this also
 * creates the transport's part of the PZ. Nothing listens at the port, so failed allocations end an
 * attempt with the event of any other attempt.
 */
static int asking(void)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		connect_with("", DAT_TIMEOUT_INFINITE);
		ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
		if (!nomem_failed())
			break;
	}
	return n;
}

Test(rdm_request_active, without_memory)
{
	close(listener());
	cr_expect_eq(asking(), 4, "peer, part of the PZ, operations, table of connections");
	cr_expect_eq(asking(), 3, "peer, CM socket, the request until it is sent");
}
