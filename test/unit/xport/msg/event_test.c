/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The meaning of connection events and errors of the fabric, whenever they come. */

#include "xport/msg/one.h"

#include <errno.h>

TestSuite(msg_event, .init = init, .fini = xport_fini);
TestSuite(msg_event_accept, .init = init_request, .fini = xport_fini);

static void carries(DAT_CONNECTION_EVENT_DATA data, const void *want, size_t size)
{
	cr_assert_eq((size_t)data.private_data_size, size);
	cr_expect(!size || !memcmp(data.private_data, want, size));
	cr_expect(size || !data.private_data);
}

/* Connecting: later reports of the fabric */

Test(msg_event, what_errors_mean)
{
	static const struct {
		int err;
		DAT_EVENT_NUMBER number;
	} rows[] = {
		{ ENETUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EHOSTUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EHOSTDOWN, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ENETDOWN, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ETIMEDOUT, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EADDRNOTAVAIL, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EINVAL, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ENODEV, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ECONNREFUSED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ ECONNRESET, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ FI_EOTHER, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ 99999, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	};
	size_t i;
	int sign;

	/* with either sign, because fabrics differ */
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (sign = -1; sign <= 1; sign += 2) {
			connect_to(ep, PORT);
			cm_error(fake_eps.last, rows[i].err * sign, NO_BYTES);
			ended_with(rows[i].number);
			succeed(dofi_ep_reset(ep));
		}
}

Test(msg_event, other_fabrics_mean_that_time_was_up)
{
	connect_to(ep, PORT);
	cm_error_with_reason(fake_eps.last, EPERM);
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(msg_event, a_port_that_is_the_qualifier_is_tried_once)
{
	connect_to(ep, PORT);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_event, the_ports_of_a_qualifier_are_tried_in_order)
{
	unsigned i;

	connect_to(ep, MAPPED);
	for (i = 0; i < TRIES; i++) {
		cr_assert_eq(fake_eps.connects, (int)i + 1);
		cr_expect_eq(fake_eps.connected_to[i], dofi_wire_port(MAPPED, i));
		cr_expect_eq(sent().conn_qual, MAPPED);
		cr_expect_eq(fake_eps.open_at_connect, 1, "the one before is closed");
		cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	}
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, TRIES);
}

Test(msg_event, the_ports_are_tried_though_the_fabric_fails_at_once)
{
	fake_eps.fault.connect = -FI_ECONNREFUSED;
	connect_to(ep, MAPPED);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, TRIES);
}

Test(msg_event, a_later_port_may_answer)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, payload, 3));
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, 3);
	cr_expect_eq(fake_eps.open, 1);
}

Test(msg_event, a_privileged_port_is_tried_as_itself_first)
{
	connect_to(ep, 80);
	cr_expect_eq(fake_eps.connected_to[0], 80);
	cr_expect_eq(sent().conn_qual, 0, "the port tells it");
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cr_expect_eq(fake_eps.connected_to[1], dofi_wire_port(80, 1));
	cr_expect_eq(sent().conn_qual, 80);
}

Test(msg_event, an_unreachable_peer_has_no_other_ports)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, EHOSTUNREACH, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_event, a_providers_refusal_leads_to_the_next_port)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REFUSE, 0, NULL, 0));
	cr_expect_eq(fake_eps.connects, 2);
	cr_expect(event_none(evd));
}

Test(msg_event, a_consumers_rejection_ends_it)
{
	DAT_CONNECTION_EVENT_DATA data;

	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REJECT, 0, payload, sizeof(payload)));
	data = ended_with(DAT_CONNECTION_EVENT_PEER_REJECTED);
	carries(data, payload, sizeof(payload));
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_event, a_rejection_that_is_cut_off_is_none_of_a_consumer)
{
	size_t len, whole = wire(DOFI_WIRE_REJECT, 0, payload, 9).len;

	for (len = 0; len < whole; len++) {
		struct bytes bytes;

		connect_to(ep, PORT);
		bytes = wire(DOFI_WIRE_REJECT, 0, payload, 9);
		bytes.len = len;
		cm_error(fake_eps.last, ECONNREFUSED, bytes);
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg_event, an_acceptance_that_is_cut_off_is_refused)
{
	size_t len, whole = wire(DOFI_WIRE_ACCEPT, 0, payload, 9).len;

	for (len = 0; len < whole; len++) {
		struct bytes bytes;

		connect_to(ep, PORT);
		bytes = wire(DOFI_WIRE_ACCEPT, 0, payload, 9);
		bytes.len = len;
		cm_event(FI_CONNECTED, fake_eps.last, bytes);
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg_event, only_an_acceptance_connects)
{
	static const enum dofi_wire_kind kinds[] = {
		DOFI_WIRE_REQUEST, DOFI_WIRE_REJECT, DOFI_WIRE_REFUSE,
	};
	size_t i;

	for (i = 0; i < 3; i++) {
		connect_to(ep, PORT);
		cm_event(FI_CONNECTED, fake_eps.last, wire(kinds[i], 0, payload, 4));
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg_event, a_embryos_acceptance_is_refused)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ "HTTP/1.1 400 Bad Request", 24 });
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(msg_event, an_end_while_connecting_is_a_refusal)
{
	connect_to(ep, PORT);
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* There is no answer, so the timeout is the only event that can arrive. */
Test(msg_event, a_time_out_ends_the_attempt)
{
	DAT_EVENT event;
	DAT_COUNT more;

	succeed(dofi_ep_connect(ep, some_address(), MAPPED, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(fake_eps.open, 0);
	cr_expect_eq(fake_eps.connects, 1, "the ports share one time-out");
}

/* As the watch reports a host that does not respond. */
static void host_lost(void *arg)
{
	struct dofi_watch *watch = &msg_part(inside())->watch;

	watch->fd = fake.eq_fd;
	watch->cut = true;
	msg_peer_ended(&watch->source);
}

Test(msg_event, a_host_that_does_not_respond_ends_the_attempt)
{
	connect_to(ep, MAPPED);
	dofi_progress_call(&ia->progress, host_lost, NULL);
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_event_accept, a_host_that_does_not_respond_before_the_connection)
{
	accept_request();
	dofi_progress_call(&ia->progress, host_lost, NULL);
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

Test(msg_event, what_comes_after_the_end_is_ignored)
{
	struct fid_ep *gone;

	connect_to(ep, PORT);
	gone = fake_eps.last;
	cm_error(gone, ECONNREFUSED, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cm_event(FI_CONNECTED, gone, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cm_event(FI_SHUTDOWN, gone, NO_BYTES);
	cm_error(gone, ECONNREFUSED, NO_BYTES);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
}

Test(msg_event, events_of_unknown_endpoints_are_ignored)
{
	static struct fid_ep embryo;

	make_established();
	cm_event(FI_CONNECTED, &embryo, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cm_event(FI_SHUTDOWN, &embryo, NO_BYTES);
	cm_error(&embryo, ECONNRESET, NO_BYTES);
	cm_event(FI_SHUTDOWN, NULL, NO_BYTES);
	cm_error(NULL, ECONNRESET, NO_BYTES);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_event, events_of_another_kind_are_ignored)
{
	make_established();
	cm_event(FI_NOTIFY, fake_eps.last, NO_BYTES);
	cm_event(FI_JOIN_COMPLETE, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

/* Acceptances */

Test(msg_event, an_acceptance_connects_with_its_data)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last,
		 wire(DOFI_WIRE_ACCEPT, 0, payload, sizeof(payload)));
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, sizeof(payload));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_event, padding_after_the_acceptance_is_none_of_its_data)
{
	unsigned char padded[200] = { 0 };
	struct bytes bytes = wire(DOFI_WIRE_ACCEPT, 0, payload, 5);

	memcpy(padded, bytes.data, bytes.len);
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ padded, sizeof(padded) });
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, 5);
}

/* The end of an established connection */

Test(msg_event, the_peers_end_is_reported_once)
{
	struct fid_ep *fid;

	make_established();
	fid = fake_eps.last;
	thread_hold();
	fake_event_add(&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fid->fid });
	fake_event_add(&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fid->fid });
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_event, an_error_breaks_a_connection)
{
	make_established();
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_event, a_rejection_of_what_stands_breaks_it_without_data)
{
	DAT_CONNECTION_EVENT_DATA data;

	make_established();
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REJECT, 0, payload, 5));
	data = ended_with(DAT_CONNECTION_EVENT_BROKEN);
	carries(data, NULL, 0);
}

/* Accepting */

Test(msg_event_accept, the_requester_leaves_meanwhile)
{
	accept_request();
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

Test(msg_event_accept, an_error_meanwhile)
{
	accept_request();
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/* The acceptor's event carries no data, even if the fabric delivers some. */
Test(msg_event_accept, an_established_event_of_the_acceptor_has_no_data)
{
	accept_request();
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ "stray", 5 });
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data, NULL,
		0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

/* The whole fabric */

Test(msg_event, a_fabric_that_fails_is_the_end_of_the_ia)
{
	DAT_ASYNCH_ERROR_EVENT_DATA d;

	async_set(evd_make(4, DAT_EVD_ASYNC_FLAG));
	fake.fault.eq_read = -FI_EIO;
	quiesce();
	quiesce();
	d = event_take(ia->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		    .event_data.asynch_error_event_data;
	cr_expect_eq(d.dat_handle, (DAT_HANDLE)ia);
	cr_expect_eq(d.reason, DAT_IA_CATASTROPHIC_ERROR);
	cr_expect(event_none(ia->async_evd));
	fake.fault.eq_read = 0;
}
