/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The life of a connection: how it is made, and how it ends in every way. */

#include "obj/ep_one.h"

TestSuite(ep_cm, .init = ep_one, .fini = ia_fini);

/* Connecting */

Test(ep_cm, establishment_is_announced_once_with_the_peers_data)
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

Test(ep_cm, more_data_than_there_is_room_for_is_cut)
{
	char much[DOFI_PRIVATE_DATA + 100] = "";

	start_connecting(ep);
	establish(ep, much, sizeof(much));
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.private_data_size, DOFI_PRIVATE_DATA);
}

Test(ep_cm, receives_from_before_go_to_the_fabric_then)
{
	post_recv(1);
	post_recv(2);
	start_connecting(ep);
	cr_expect_eq(transport.n, 0);
	establish(ep, NULL, 0);
	cr_expect_eq(transport.n, 2);
	cr_expect_eq(transport.dto[0]->cookie, 1);
}

static void establish_counted(void *arg)
{
	const unsigned before = fake.cq_reads;

	dofi_ep_established(ep, NULL, 0);
	*(unsigned *)arg = fake.cq_reads - before;
}

/* No signal follows for earlier completions of the fabric. */
Test(ep_cm, what_completed_before_establishment_is_read_with_it)
{
	unsigned reads = 0;

	start_connecting(ep);
	while (!inside()->cq->armed)
		settle();
	dofi_progress_call(&ia->progress, establish_counted, &reads);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect(reads > 0);
}

Test(ep_cm, an_attempt_times_out)
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

Test(ep_cm, a_connection_that_stands_does_not_time_out)
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

/* As the watch of a connection does when the peer has ended it. */
static void peer_gone(void *event)
{
	dofi_ep_last_receives(inside(), *(const DAT_EVENT_NUMBER *)event);
	dofi_timer_stop(&ia->progress, &inside()->timer);
}

static void peer_goes(DAT_EVENT_NUMBER event)
{
	dofi_progress_call(&ia->progress, peer_gone, &event);
}

Test(ep_cm, a_peer_that_is_gone_is_waited_for_while_its_messages_come)
{
	make_connected(ep);
	peer_goes(DAT_CONNECTION_EVENT_DISCONNECTED);
	post_recv(1);
	complete_with(0, 0, 8);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(fired_it_runs_anew());
	cr_expect_eq(state(), DAT_EP_STATE_CONNECTED);
	cr_expect(!fired_it_runs_anew());
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep_cm, a_peer_that_is_gone_and_silent_has_ended_as_it_was_reported)
{
	make_connected(ep);
	post_recv(1);
	peer_goes(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(!fired_it_runs_anew());
	expect_flushed(1);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(evd));
}

Test(ep_cm, a_lost_peer_is_waited_for_too_and_has_not_disconnected)
{
	make_connected(ep);
	post_recv(1);
	peer_goes(DAT_CONNECTION_EVENT_BROKEN);
	complete_with(0, 0, 8);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(fired_it_runs_anew());
	cr_expect(!fired_it_runs_anew());
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* Ending */

static const DAT_EVENT_NUMBER failures[] = {
	DAT_CONNECTION_EVENT_PEER_REJECTED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
	DAT_CONNECTION_EVENT_TIMED_OUT, DAT_CONNECTION_EVENT_UNREACHABLE,
};

Test(ep_cm, an_attempt_fails_with_one_event)
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

Test(ep_cm, a_reject_brings_the_peers_data)
{
	DAT_CONNECTION_EVENT_DATA data;

	start_connecting(ep);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_PEER_REJECTED, "no", 2);
	settle();
	data = event_take(evd, DAT_CONNECTION_EVENT_PEER_REJECTED).event_data.connect_event_data;
	cr_expect_eq(data.private_data_size, 2);
	cr_expect(!memcmp(data.private_data, "no", 2));
}

Test(ep_cm, the_first_end_counts)
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

Test(ep_cm, a_failure_is_reported_although_the_disconnect_was_seen_first)
{
	struct dofi_work work = { .run = hold_run };

	make_connected(ep);
	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	sem_post(&hold);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(ep_cm, what_is_posted_is_flushed_once_and_before_the_event)
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

Test(ep_cm, what_completed_before_the_end_is_not_flushed)
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
