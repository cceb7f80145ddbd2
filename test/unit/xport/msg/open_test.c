/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening endpoints on a fabric where that takes time. */

#include "xport/msg/one.h"

#include <semaphore.h>

TestSuite(msg_open, .init = init, .fini = xport_fini);

static void init_slow(void)
{
	fabric_name = "verbs";
	init();
	fake_eps.fault.endpoint_waits = true;
}

static void connect_slowly(DAT_TIMEOUT timeout)
{
	succeed(dofi_ep_connect(ep, some_address(), PORT, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	while (sem_wait(&fake_eps.waits))
		;
}

static DAT_EVENT_NUMBER event_awaited(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	succeed(dofi_evd_wait(evd, 10 * 1000000, 1, &event, &more));
	return event.event_number;
}

/* The opening thread finishes a little after it was let go. */
static void go_on_until(const _Atomic int *count, int value)
{
	sem_post(&fake_eps.go);
	do
		quiesce();
	while (*count != value);
}

Test(msg_open, a_pending_open_delays_no_other, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	cr_expect_eq(fake_eps.connects, 0);
	go_on_until(&fake_eps.connects, 1);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

Test(msg_open, a_pending_open_is_timed_out, .init = init_slow)
{
	connect_slowly(1000);
	cr_expect_eq(event_awaited(), DAT_CONNECTION_EVENT_TIMED_OUT);
	sem_post(&fake_eps.go);
}

Test(msg_open, what_opens_after_the_end_is_closed, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	sem_post(&fake_eps.go);
	do
		quiesce();
	while (!fake_eps.opened || fake_eps.open);
	cr_expect_eq(fake_eps.connects, 0);
}

/* An endpoint that opens for one attempt is not used by the next. */
Test(msg_open, another_attempt_while_the_last_still_opens, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	connect_slowly(DAT_TIMEOUT_INFINITE);
	sem_post(&fake_eps.go);
	go_on_until(&fake_eps.connects, 1);
	do
		quiesce();
	while (fake_eps.open != 1);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

Test(msg_open, the_end_of_a_pz_waits_for_what_is_opened_there, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_free(ep));
	sem_post(&fake_eps.go);
}

#define CROWD 40			/* more than are opened at once */

/*
 * The attempts beyond the limit are queued. All of them are made, except for the EP that was
 * freed.
 */
Test(msg_open, many_wait_to_open, .init = init_slow)
{
	DAT_EP_HANDLE eps[CROWD];
	int i, inside = 0;

	for (i = 0; i < CROWD; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
	}
	while (!sem_trywait(&fake_eps.waits))
		inside++;
	cr_expect(inside < CROWD, "%d at once", inside);
	succeed(dofi_ep_free(eps[CROWD - 1]));
	for (i = 0; i < CROWD - 1; i++)
		sem_post(&fake_eps.go);
	do
		quiesce();
	while (fake_eps.connects != CROWD - 1);
	quiesce();
	cr_expect_eq(fake_eps.opened, CROWD - 1);
	for (i = 0; i < CROWD - 1; i++)
		succeed(dofi_ep_free(eps[i]));
}

Test(msg_open, the_end_of_a_pz_drops_what_waits_to_open_there, .init = init_slow)
{
	DAT_EP_HANDLE eps[CROWD];
	int i;

	for (i = 0; i < CROWD; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
	}
	for (i = 0; i < CROWD; i++) {
		succeed(dofi_ep_free(eps[i]));
		sem_post(&fake_eps.go);
	}
}

Test(msg_open, what_cannot_be_opened_in_time_is_unreachable, .init = init_slow)
{
	fake_eps.fault.endpoint = -FI_ENODEV;
	connect_slowly(DAT_TIMEOUT_INFINITE);
	sem_post(&fake_eps.go);
	cr_expect_eq(event_awaited(), DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
}
