/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer calls for a connection: connect, duplicate, disconnect, reset. */

#include "obj/ep_one.h"
#include "obj/reason.h"

#include <netinet/in.h>

TestSuite(ep_connect, .init = ep_one, .fini = ia_fini);

Test(ep_connect, the_arguments_of_a_connect_are_checked)
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

Test(ep_connect, a_refusal_gives_its_reason)
{
	struct sockaddr strange = { .sa_family = AF_UNIX };
	DAT_IA_ADDRESS_PTR a = some_address();

	REASON(dofi_ep_connect(evd, a, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG), "is no live EP");
	REASON(connect_to(NULL, 1, 1), "no address to connect to");
	REASON(connect_to((DAT_IA_ADDRESS_PTR)&strange, 1, 1), "family 1; permitted: AF_INET (2)");
	REASON(connect_to(a, 0, 1), "remote_conn_qual is 0");
	REASON(connect_to(a, 1, 0), "timeout is 0");
	REASON(dofi_ep_connect(ep, a, 1, 1, -1, memory, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG),
	       "private_data_size is -1; permitted: 0 to 244");
	REASON(dofi_ep_connect(ep, a, 1, 1, 1, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG), "no private_data, with a size of 1");
	REASON(dofi_ep_connect(ep, a, 1, 1, 0, NULL, (DAT_QOS)0x100, DAT_CONNECT_DEFAULT_FLAG),
	       "quality_of_service is 0x100; permitted: DAT_QOS_BEST_EFFORT");
	REASON(dofi_ep_connect(ep, a, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
			       (DAT_CONNECT_FLAGS)0x10), "connect_flags are 0x10; permitted");
	make_connected(ep);
	REASON(connect_to(a, 1, 1), "is in the state CONNECTED");
	succeed(make(pz, evd, evd, NULL, NULL));
	REASON(connect_to(a, 1, 1), "has no connect EVD");
}

Test(ep_connect, without_pz_or_connect_queue_it_is_not_ready)
{
	succeed(make(NULL, evd, evd, evd, NULL));
	expect_state(connect_to(some_address(), 1, 1000), EP_NOTREADY);
	succeed(make(pz, evd, evd, NULL, NULL));
	expect_state(connect_to(some_address(), 1, 1000), EP_NOTREADY);
}

Test(ep_connect, connects_once)
{
	start_connecting(ep);
	cr_expect_eq(state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	expect_state(connect_to(some_address(), 1, 1000), EP_ACTCONNPENDING);
	establish(ep, NULL, 0);
	expect_state(connect_to(some_address(), 1, 1000), EP_CONNECTED);
	cr_expect_eq(transport.connects, 1);
}

Test(ep_connect, gives_private_data_to_the_transport)
{
	succeed(dofi_ep_connect(ep, some_address(), 4711, DAT_TIMEOUT_INFINITE, 5,
				(DAT_PVOID) "hello", DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	settle();
	cr_expect_eq(inside()->request.data_size, 5);
	cr_expect(!memcmp(inside()->request.data, "hello", 5));
	cr_expect_eq(inside()->request.conn_qual, 4711);
}

/* Connecting to the peer of a connected endpoint */

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

Test(ep_connect, the_arguments_of_a_duplicate_are_checked)
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
	expect_type(dofi_ep_dup_connect(ep, dup, 1, 0, NULL, (DAT_QOS)16),
		    DAT_MODEL_NOT_SUPPORTED);
	settle();
	cr_expect_eq(transport.connects, 1);
	cr_expect_eq(state(), DAT_EP_STATE_UNCONNECTED);
	succeed(dofi_ep_free(dup));
	expect_handle(dup_connect(dup), EP);
}

Test(ep_connect, an_endpoint_of_another_ia_is_not_duplicated)
{
	DAT_EP_HANDLE foreign;
	struct dofi_ia *other;

	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_ep_create(other, NULL, NULL, NULL, NULL, NULL, &foreign));
	expect_handle(dup_connect(foreign), EP);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(ep_connect, only_a_connected_endpoint_is_duplicated)
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

Test(ep_connect, only_an_unconnected_endpoint_becomes_a_duplicate)
{
	DAT_EP_HANDLE dup = connected_one();

	make_connected(ep);
	expect_state(dup_connect(dup), EP_CONNECTED);
	expect_state(dup_connect(ep), EP_CONNECTED);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_state(dup_connect(dup), EP_DISCONNECTED);
}

Test(ep_connect, a_duplicate_needs_a_pz_and_a_connect_queue)
{
	DAT_EP_HANDLE dup = connected_one();

	succeed(make(NULL, evd, evd, evd, NULL));
	expect_state(dup_connect(dup), EP_NOTREADY);
	succeed(make(pz, evd, evd, NULL, NULL));
	expect_state(dup_connect(dup), EP_NOTREADY);
}

Test(ep_connect, a_duplicate_goes_to_the_same_peer_with_data_of_its_own)
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

Test(ep_connect, a_duplicate_times_out)
{
	DAT_EP_HANDLE dup = connected_one();
	DAT_EVENT event;
	DAT_COUNT n;

	succeed(dofi_ep_dup_connect(ep, dup, 1000, 0, NULL, DAT_QOS_BEST_EFFORT));
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &n));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
	cr_expect_eq(event.event_data.connect_event_data.ep_handle, ep);
}

Test(ep_connect, a_duplicate_outlives_its_model)
{
	DAT_EP_HANDLE dup = connected_one();

	succeed(dup_connect(dup));
	succeed(dofi_ep_free(dup));
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(state(), DAT_EP_STATE_CONNECTED);
}

/* Disconnecting */

Test(ep_connect, the_arguments_of_a_disconnect_are_checked)
{
	expect_handle(dofi_ep_disconnect(pz, DAT_CLOSE_ABRUPT_FLAG), EP);
	expect_arg(disconnect((DAT_CLOSE_FLAGS)77), 2);
	expect_state(disconnect(DAT_CLOSE_ABRUPT_FLAG), EP_UNCONNECTED);
}

Test(ep_connect, an_abrupt_disconnect_flushes)
{
	make_connected(ep);
	post_send(1);
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	settle();
	expect_flushed(1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

Test(ep_connect, a_graceful_disconnect_waits_for_the_requests)
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

/* The program may not poll any more, and it does not wait for an event of the CQ. */
Test(ep_connect, a_graceful_disconnect_has_the_queue_read)
{
	make_connected(ep);
	post_send(1);
	cr_expect_eq(atomic_load(&inside()->cq->sleepers), 0);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	cr_expect_eq(atomic_load(&inside()->cq->sleepers), 1);
	complete(0);
	settle();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(atomic_load(&inside()->cq->sleepers), 0);
}

/* A transport changes the CQ when it closes its end during a graceful disconnect. */
Test(ep_connect, a_wait_for_the_last_request_moves_to_another_queue)
{
	struct dofi_cq *first, other = { .progress = &inside()->obj.ia->progress, .fd = -1 };

	make_connected(ep);
	post_send(1);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	first = inside()->cq;
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_set_cq(inside(), &other);
	cr_expect_eq(atomic_load(&first->sleepers), 0);
	cr_expect_eq(atomic_load(&other.sleepers), 1);
	dofi_ep_set_cq(inside(), first);
	dofi_mutex_unlock(&inside()->lock);
	complete(0);
	settle();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(atomic_load(&first->sleepers), 0);
	cr_expect_eq(atomic_load(&other.sleepers), 0);
}

Test(ep_connect, an_abrupt_disconnect_cuts_a_graceful_one_short)
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

Test(ep_connect, an_idle_endpoint_disconnects_gracefully_at_once)
{
	make_connected(ep);
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static bool finishes_later(struct dofi_ep *e)
{
	return true;
}

Test(ep_connect, a_graceful_disconnect_that_the_transport_finishes_closes_nothing_yet)
{
	struct dofi_xport xport = transport_ops;

	xport.finish = finishes_later;
	make_connected(ep);
	inside()->xport = &xport;
	succeed(disconnect(DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	cr_expect_eq(transport.closes, 0);
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECT_PENDING);
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	settle();
	cr_expect_eq(transport.closes, 1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep_connect, a_disconnected_endpoint_may_be_disconnected)
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
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	dofi_ep_established(inside(), NULL, 0);
}

Test(ep_connect, a_disconnect_gives_an_attempt_up)
{
	start_connecting(ep);
	dofi_progress_call(&ia->progress, disconnect_and_establish, NULL);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
	cr_expect_eq(state(), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(transport.closes, 1);
}

Test(ep_connect, an_attempt_given_up_before_it_began_does_not_begin)
{
	struct dofi_work work = { .run = hold_run };

	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	succeed(connect_to(some_address(), 1, DAT_TIMEOUT_INFINITE));
	succeed(disconnect(DAT_CLOSE_ABRUPT_FLAG));
	sem_post(&hold);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(transport.connects, 0);
}

/* Resetting */

Test(ep_connect, only_a_disconnected_endpoint_is_reset)
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

Test(ep_connect, a_reset_of_an_unconnected_endpoint_keeps_its_receives)
{
	post_recv(1);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	cr_expect_eq(transport.n, 1);
}

Test(ep_connect, after_a_reset_it_connects_again)
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
