/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints: making, connecting, ending in every way, resetting, freeing. */

#include "obj/fixture.h"

#include <netinet/in.h>
#include <semaphore.h>

static DAT_EP_HANDLE ep;

static void init(void)
{
	objects_init();
	ep = ep_make();
}

TestSuite(ep, .init = init, .fini = ia_fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_EP_STATE state(void)
{
	DAT_EP_STATE s;

	succeed(dofi_ep_get_status(ep, &s, NULL, NULL));
	return s;
}

static DAT_RETURN connect_to(DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout)
{
	return dofi_ep_connect(ep, address, qual, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags)
{
	return dofi_ep_disconnect(ep, flags);
}

static void post_recv(uint64_t n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_send(uint64_t n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void expect_flushed(uint64_t n)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);

	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* The connection ends, as the transport says. */
static void end(DAT_EVENT_NUMBER event)
{
	dofi_ep_end_with(inside(), event, NULL, 0);
	settle();
}

/* Making */

static DAT_RETURN make(DAT_PZ_HANDLE zone, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
		       DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr)
{
	return dofi_ep_create(ia, zone, recv, request, connect, attr, &ep);
}

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

/* Asking */

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

Test(ep, the_arguments_of_a_connect_are_checked)
{
	struct sockaddr strange = { .sa_family = AF_UNIX };
	DAT_IA_ADDRESS_PTR a = some_address();

	expect_handle(dofi_ep_connect(evd, a, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
				      DAT_CONNECT_DEFAULT_FLAG), EP);
	expect_type(connect_to(NULL, 1, 1), DAT_INVALID_ADDRESS);
	expect_type(connect_to((DAT_IA_ADDRESS_PTR)&strange, 1, 1), DAT_INVALID_ADDRESS);
	expect_arg(connect_to(a, 0, 1), 3);
	expect_arg(connect_to(a, 1, 0), 4);
	expect_arg(dofi_ep_connect(ep, a, 1, 1, -1, memory, DAT_QOS_BEST_EFFORT,
				   DAT_CONNECT_DEFAULT_FLAG), 5);
	expect_arg(dofi_ep_connect(ep, a, 1, 1, ia->max_private_data + 1, memory,
				   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), 5);
	expect_arg(dofi_ep_connect(ep, a, 1, 1, 1, NULL, DAT_QOS_BEST_EFFORT,
				   DAT_CONNECT_DEFAULT_FLAG), 6);
	settle();
	cr_expect_eq(transport.connects, 0);
	cr_expect_eq(state(), DAT_EP_STATE_UNCONNECTED);
}

Test(ep, without_zone_or_connect_queue_it_is_not_ready)
{
	succeed(make(NULL, evd, evd, evd, NULL));
	expect_state(connect_to(some_address(), 1, 1000), EP_NOTREADY);
	succeed(make(pz, evd, evd, NULL, NULL));
	expect_state(connect_to(some_address(), 1, 1000), EP_NOTREADY);
}

Test(ep, connects_once)
{
	start_connecting(ep);
	cr_expect_eq(state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	expect_state(connect_to(some_address(), 1, 1000), EP_ACTCONNPENDING);
	establish(ep, NULL, 0);
	expect_state(connect_to(some_address(), 1, 1000), EP_CONNECTED);
	cr_expect_eq(transport.connects, 1);
}

Test(ep, gives_private_data_to_the_transport)
{
	succeed(dofi_ep_connect(ep, some_address(), 4711, DAT_TIMEOUT_INFINITE, 5, (DAT_PVOID)"hello",
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	cr_expect_eq(inside()->request.data_size, 5);
	cr_expect(!memcmp(inside()->request.data, "hello", 5));
	cr_expect_eq(inside()->request.conn_qual, 4711);
}

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

/* The timer of an established connection runs when its peer was seen to be gone. */
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

/* Connecting to where another is connected */

static DAT_RETURN dup_connect(DAT_EP_HANDLE dup)
{
	return dofi_ep_dup_connect(ep, dup, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT);
}

static DAT_EP_HANDLE connected_one(void)
{
	DAT_EP_HANDLE one = ep_make();

	make_connected(one);
	return one;
}

Test(ep, the_arguments_of_a_duplicate_are_checked)
{
	const DAT_QOS good = DAT_QOS_BEST_EFFORT;
	DAT_EP_HANDLE dup = connected_one();

	expect_handle(dofi_ep_dup_connect(evd, dup, 1, 0, NULL, good), EP);
	expect_handle(dup_connect(NULL), EP);
	expect_handle(dup_connect(pz), EP);
	expect_arg(dofi_ep_dup_connect(ep, dup, 0, 0, NULL, good), 3);
	expect_arg(dofi_ep_dup_connect(ep, dup, 1, -1, memory, good), 4);
	expect_arg(dofi_ep_dup_connect(ep, dup, 1, ia->max_private_data + 1, memory, good), 4);
	expect_arg(dofi_ep_dup_connect(ep, dup, 1, 1, NULL, good), 5);
	expect_type(dofi_ep_dup_connect(ep, dup, 1, 0, NULL, DAT_QOS_LOW_LATENCY),
		    DAT_MODEL_NOT_SUPPORTED);
	settle();
	cr_expect_eq(transport.connects, 1);
	cr_expect_eq(state(), DAT_EP_STATE_UNCONNECTED);
	succeed(dofi_ep_free(dup));
	expect_handle(dup_connect(dup), EP);
}

Test(ep, an_endpoint_of_another_ia_is_not_duplicated)
{
	DAT_EP_HANDLE foreign;
	struct dofi_ia *other;

	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_ep_create(other, NULL, NULL, NULL, NULL, NULL, &foreign));
	expect_handle(dup_connect(foreign), EP);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(ep, only_a_connected_endpoint_is_duplicated)
{
	DAT_EP_HANDLE dup = ep_make();

	expect_state(dup_connect(dup), EP_UNCONNECTED);
	expect_state(dup_connect(ep), EP_UNCONNECTED);
	start_connecting(dup);
	expect_state(dup_connect(dup), EP_ACTCONNPENDING);
	establish(dup, NULL, 0);
	succeed(dofi_ep_disconnect(dup, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_state(dup_connect(dup), EP_DISCONNECTED);
	cr_expect_eq(state(), DAT_EP_STATE_UNCONNECTED);
}

Test(ep, only_an_unconnected_endpoint_becomes_a_duplicate)
{
	DAT_EP_HANDLE dup = connected_one();

	make_connected(ep);
	expect_state(dup_connect(dup), EP_CONNECTED);
	expect_state(dup_connect(ep), EP_CONNECTED);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_state(dup_connect(dup), EP_DISCONNECTED);
}

Test(ep, a_duplicate_needs_a_zone_and_a_connect_queue)
{
	DAT_EP_HANDLE dup = connected_one();

	succeed(make(NULL, evd, evd, evd, NULL));
	expect_state(dup_connect(dup), EP_NOTREADY);
	succeed(make(pz, evd, evd, NULL, NULL));
	expect_state(dup_connect(dup), EP_NOTREADY);
}

Test(ep, a_duplicate_goes_to_the_same_peer_with_data_of_its_own)
{
	DAT_EP_HANDLE dup = connected_one();
	DAT_EP_PARAM a, b;

	succeed(dofi_ep_dup_connect(ep, dup, DAT_TIMEOUT_INFINITE, 5, (DAT_PVOID)"hello",
				    DAT_QOS_BEST_EFFORT));
	settle();
	cr_expect_eq(transport.connecting, inside());
	cr_expect_eq(inside()->request.conn_qual, 4711);
	cr_expect_eq(inside()->request.data_size, 5);
	cr_expect(!memcmp(inside()->request.data, "hello", 5));
	establish(ep, "hi", 2);
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.private_data_size, 2);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &a));
	succeed(dofi_ep_query(dup, DAT_EP_FIELD_ALL, &b));
	cr_expect_eq(a.remote_port_qual, b.remote_port_qual);
	cr_expect(!memcmp(a.remote_ia_address_ptr, b.remote_ia_address_ptr,
			  sizeof(struct sockaddr_in)));
}

Test(ep, a_duplicate_times_out)
{
	DAT_EP_HANDLE dup = connected_one();
	DAT_EVENT event;
	DAT_COUNT n;

	succeed(dofi_ep_dup_connect(ep, dup, 1000, 0, NULL, DAT_QOS_BEST_EFFORT));
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &n));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
	cr_expect_eq(event.event_data.connect_event_data.ep_handle, ep);
}

Test(ep, a_duplicate_outlives_its_model)
{
	DAT_EP_HANDLE dup = connected_one();

	succeed(dup_connect(dup));
	succeed(dofi_ep_free(dup));
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(state(), DAT_EP_STATE_CONNECTED);
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

/* Work before the end keeps the progress thread busy until both causes are told. */
static sem_t gate;

static void gate_run(struct dofi_work *work)
{
	(void)work;
	while (sem_wait(&gate))
		;
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

/* Disconnecting */

Test(ep, the_arguments_of_a_disconnect_are_checked)
{
	expect_handle(dofi_ep_disconnect(pz, DAT_CLOSE_ABRUPT_FLAG), EP);
	expect_arg(disconnect((DAT_CLOSE_FLAGS)77), 2);
	expect_state(disconnect(DAT_CLOSE_ABRUPT_FLAG), EP_UNCONNECTED);
}

Test(ep, an_abrupt_disconnect_flushes)
{
	make_connected(ep);
	post_send(1);
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_flushed(1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

Test(ep, a_graceful_disconnect_waits_for_the_requests)
{
	make_connected(ep);
	post_send(1);
	post_send(2);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECT_PENDING);
	complete(0);
	settle();
	cr_expect_eq(transport.closes, 0);
	complete(1);
	settle();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECTED);
}

Test(ep, an_abrupt_disconnect_cuts_a_graceful_one_short)
{
	make_connected(ep);
	post_send(1);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_flushed(1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

Test(ep, an_idle_endpoint_disconnects_gracefully_at_once)
{
	make_connected(ep);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep, a_disconnected_endpoint_may_be_disconnected)
{
	make_connected(ep);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	cr_expect(event_none(evd));
}

static void disconnect_and_establish(void *arg)
{
	(void)arg;
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	dofi_ep_established(inside(), NULL, 0);
}

Test(ep, a_disconnect_gives_an_attempt_up)
{
	start_connecting(ep);
	dofi_progress_call(&ia->progress, disconnect_and_establish, NULL);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(transport.closes, 1);
}

Test(ep, an_attempt_given_up_before_it_began_does_not_begin)
{
	struct dofi_work work = { .run = gate_run };

	sem_init(&gate, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	succeed(connect_to(some_address(), 1, DAT_TIMEOUT_INFINITE));
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	sem_post(&gate);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(transport.connects, 0);
}

/* Resetting */

Test(ep, only_a_disconnected_endpoint_is_reset)
{
	expect_handle(dofi_ep_reset(NULL), EP);
	succeed(dofi_ep_reset(ep));
	start_connecting(ep);
	expect_state(dofi_ep_reset(ep), EP_ACTCONNPENDING);
	establish(ep, NULL, 0);
	expect_state(dofi_ep_reset(ep), EP_CONNECTED);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	cr_expect_eq(state(), DAT_EP_STATE_UNCONNECTED);
}

Test(ep, a_reset_of_an_unconnected_endpoint_keeps_its_receives)
{
	post_recv(1);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	cr_expect_eq(transport.n, 1);
}

Test(ep, after_a_reset_it_connects_again)
{
	int i;

	for (i = 0; i < 3; i++) {
		make_connected(ep);
		post_send(i);
		complete(i);
		event_take(evd, DAT_DTO_COMPLETION_EVENT);
		end(DAT_CONNECTION_EVENT_DISCONNECTED);
		event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		succeed(dofi_ep_reset(ep));
	}
	cr_expect_eq(transport.closes, 3);
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
