/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints: creating, being connected, ending in every way, freeing. */

#include "obj/ep_one.h"

#include <netinet/in.h>

TestSuite(ep, .init = ep_one, .fini = ia_fini);

/* Creating */

Test(ep, handles_are_checked)
{
	DAT_EVD_HANDLE cr = evd_make(4, DAT_EVD_CR_FLAG), dto = evd_make(4, DAT_EVD_DTO_FLAG);

	expect_handle(dofi_ep_create(NOWHERE, pz, evd, evd, evd, NULL, &ep), IA);
	expect_handle(make(NOWHERE, evd, evd, evd, NULL), PZ);
	expect_handle(make(evd, evd, evd, evd, NULL), PZ);
	expect_handle(make(pz, pz, evd, evd, NULL), EVD_RECV);
	expect_handle(make(pz, cr, evd, evd, NULL), EVD_RECV);
	expect_handle(make(pz, evd, NOWHERE, evd, NULL), EVD_REQUEST);
	expect_handle(make(pz, evd, cr, evd, NULL), EVD_REQUEST);
	expect_handle(make(pz, evd, evd, dto, NULL), EVD_CONN);
	expect_arg(dofi_ep_create(ia, pz, evd, evd, evd, NULL, NULL), 7);
	cr_expect_eq(dofi_ep_pool.used, 1);
}

Test(ep, parts_of_another_ia_are_foreign)
{
	struct dofi_ia *other;
	DAT_PZ_HANDLE zone;

	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_pz_create(other, &zone));
	expect_handle(make(zone, evd, evd, evd, NULL), PZ);
	expect_handle(dofi_ep_create(other, zone, evd, NULL, NULL, NULL, &ep), EVD_RECV);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(ep, what_a_query_tells_is_accepted_back)
{
	DAT_EP_PARAM a, b;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &a));
	succeed(make(pz, evd, evd, evd, &a.ep_attr));
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &b));
	cr_expect(!memcmp(&a.ep_attr, &b.ep_attr, sizeof(a.ep_attr)));
}

Test(ep, needs_neither_zone_nor_queues_to_be_made)
{
	DAT_EP_PARAM p;

	succeed(make(NULL, NULL, NULL, NULL, NULL));
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect(!p.pz_handle && !p.recv_evd_handle && !p.request_evd_handle && !p.connect_evd_handle);
	succeed(dofi_ep_free(ep));
}

Test(ep, holds_its_zone_and_its_queues)
{
	DAT_EVD_HANDLE own = evd_make(4, EVD_ALL_FLAGS);
	DAT_PZ_HANDLE zone;

	succeed(dofi_pz_create(ia, &zone));
	succeed(make(zone, own, own, own, NULL));
	expect_type(dofi_pz_free(zone), DAT_INVALID_STATE);
	expect_type(dofi_evd_free(own), DAT_INVALID_STATE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_evd_free(own));
	succeed(dofi_pz_free(zone));
}

/* Querying */

Test(ep, the_arguments_of_a_query_are_checked)
{
	DAT_EP_PARAM p;

	expect_handle(dofi_ep_query(evd, DAT_EP_FIELD_ALL, &p), EP);
	expect_arg(dofi_ep_query(ep, (DAT_EP_PARAM_MASK)1 << 31, &p), 2);
	expect_arg(dofi_ep_query(ep, DAT_EP_FIELD_ALL, NULL), 3);
	expect_handle(dofi_ep_get_status(NULL, NULL, NULL, NULL), EP);
}

Test(ep, tells_what_it_was_made_of)
{
	DAT_EP_PARAM p;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect_eq(p.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(p.pz_handle, pz);
	cr_expect_eq(p.recv_evd_handle, evd);
	cr_expect_eq(p.request_evd_handle, evd);
	cr_expect_eq(p.connect_evd_handle, evd);
	cr_expect_eq(p.ep_state, DAT_EP_STATE_UNCONNECTED);
	cr_expect(!p.remote_ia_address_ptr && !p.remote_port_qual);
}

Test(ep, tells_its_peer_while_it_has_one)
{
	DAT_EP_PARAM p;

	start_connecting(ep);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect_eq(p.remote_port_qual, 4711);
	cr_expect_eq(((struct sockaddr_in *)p.remote_ia_address_ptr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	end(DAT_CONNECTION_EVENT_UNREACHABLE);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect(!p.remote_ia_address_ptr && !p.remote_port_qual);
}

Test(ep, is_idle_while_nothing_is_posted)
{
	DAT_BOOLEAN recv, request;

	make_connected(ep);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(recv && request);
	post_recv(1);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(!recv && request);
	post_send(2);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(!recv && !request);
	complete(0);
	complete(1);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(recv && request);
}

/* Connecting */

Test(ep, establishment_is_announced_once_with_the_peers_data)
{
	DAT_CONNECTION_EVENT_DATA data;

	start_connecting(ep);
	cr_expect(event_none(evd));
	establish(ep, "welcome", 7);
	data = event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
	cr_expect_eq(data.ep_handle, ep);
	cr_expect_eq(data.private_data_size, 7);
	cr_expect(!memcmp(data.private_data, "welcome", 7));
	cr_expect(event_none(evd));
	cr_expect_eq(state(), DAT_EP_STATE_CONNECTED);
}

Test(ep, more_data_than_there_is_room_for_is_cut)
{
	char much[DOFI_PRIVATE_DATA + 100] = "";

	start_connecting(ep);
	establish(ep, much, sizeof(much));
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.private_data_size, DOFI_PRIVATE_DATA);
}

Test(ep, receives_from_before_go_to_the_fabric_then)
{
	post_recv(1);
	post_recv(2);
	start_connecting(ep);
	cr_expect_eq(transport.n, 0);
	establish(ep, NULL, 0);
	cr_expect_eq(transport.n, 2);
	cr_expect_eq(transport.dto[0]->cookie, 1);
}

Test(ep, an_attempt_times_out)
{
	DAT_EVENT event;
	DAT_COUNT n;

	succeed(connect_to(some_address(), 1, 1000));
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &n));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
	cr_expect(event_none(evd));
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(transport.closes, 1);
}

Test(ep, a_connection_that_stands_does_not_time_out)
{
	succeed(connect_to(some_address(), 1, 1000000000));
	settle();
	cr_expect(inside()->timer.at);
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(inside()->timer.at, 0);
}

/* Fires the timer of an established connection, which runs when the peer was found to be gone. */
static void fire_on_thread(void *arg)
{
	bool *runs_anew = arg;

	inside()->timer.fire(&inside()->timer);
	*runs_anew = inside()->timer.at != 0;
	dofi_timer_stop(&ia->progress, &inside()->timer);
}

static bool fired_it_runs_anew(void)
{
	bool anew;

	dofi_progress_call(&ia->progress, fire_on_thread, &anew);
	settle();
	return anew;
}

Test(ep, a_peer_that_is_gone_is_waited_for_while_its_messages_come)
{
	make_connected(ep);
	post_recv(1);
	complete_with(0, 0, 8);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(fired_it_runs_anew());
	cr_expect_eq(state(), DAT_EP_STATE_CONNECTED);
	cr_expect(!fired_it_runs_anew());
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep, a_peer_that_is_gone_and_silent_has_disconnected)
{
	make_connected(ep);
	post_recv(1);
	cr_expect(!fired_it_runs_anew());
	expect_flushed(1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

/* Ending */

static const DAT_EVENT_NUMBER failures[] = {
	DAT_CONNECTION_EVENT_PEER_REJECTED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
	DAT_CONNECTION_EVENT_TIMED_OUT, DAT_CONNECTION_EVENT_UNREACHABLE,
};

Test(ep, an_attempt_fails_with_one_event)
{
	size_t i;

	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		start_connecting(ep);
		end(failures[i]);
		event_take(evd, failures[i]);
		cr_expect(event_none(evd));
		cr_expect_eq(state(), DAT_EP_STATE_DISCONNECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(ep, a_reject_brings_the_peers_data)
{
	DAT_CONNECTION_EVENT_DATA data;

	start_connecting(ep);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_PEER_REJECTED, "no", 2);
	settle();
	data = event_take(evd, DAT_CONNECTION_EVENT_PEER_REJECTED).event_data.connect_event_data;
	cr_expect_eq(data.private_data_size, 2);
	cr_expect(!memcmp(data.private_data, "no", 2));
}

Test(ep, the_first_end_counts)
{
	make_connected(ep);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_TIMED_OUT, NULL, 0);
	settle();
	end(DAT_CONNECTION_EVENT_BROKEN);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
	cr_expect_eq(transport.closes, 1);
}

Test(ep, a_failure_is_told_although_the_leaving_was_seen_first)
{
	struct dofi_work work = { .run = gate_run };

	make_connected(ep);
	sem_init(&gate, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	sem_post(&gate);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(ep, what_is_posted_is_flushed_once_and_before_the_event)
{
	make_connected(ep);
	post_recv(1);
	post_recv(2);
	post_send(3);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_flushed(3);
	expect_flushed(1);
	expect_flushed(2);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

Test(ep, what_completed_before_the_end_is_not_flushed)
{
	DAT_EVENT event;

	make_connected(ep);
	post_recv(1);
	complete_with(0, 0, 8);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

/* Freeing */

Test(ep, a_freed_handle_is_none)
{
	succeed(dofi_ep_free(ep));
	expect_handle(dofi_ep_free(ep), EP);
	expect_handle(dofi_ep_reset(ep), EP);
	expect_handle(disconnect(DAT_CLOSE_ABRUPT_FLAG), EP);
	expect_handle(connect_to(some_address(), 1, 1), EP);
}

Test(ep, is_freed_silently_while_connected)
{
	make_connected(ep);
	post_send(1);
	post_recv(2);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(transport.closes, 1);
	while (!event_none(evd))
		;
	cr_expect_eq(dofi_ep_pool.used, 0);
}

Test(ep, takes_its_connection_events_along)
{
	start_connecting(ep);
	establish(ep, NULL, 0);
	succeed(dofi_ep_free(ep));
	cr_expect(event_none(evd));
}

Test(ep, is_freed_while_it_connects)
{
	start_connecting(ep);
	succeed(dofi_ep_free(ep));
	cr_expect(event_none(evd));
	cr_expect_eq(transport.closes, 1);
}
