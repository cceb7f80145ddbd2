/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An endpoint's lock, the opening and closing of its queues, and how its end begins. */

#include "obj/ops.h"

TestSuite(ep, .init = ops_init, .fini = ia_fini);

Test(ep, a_plain_operation_has_the_lock)
{
	succeed(post_send(1));
	cr_expect_eq(transport.plain, 1);
	cr_expect(transport.at_ep);
}

/* How a connection's end begins */

static void end_with(DAT_EVENT_NUMBER number)
{
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_end(inside(), number);
	dofi_mutex_unlock(&inside()->lock);
}

/* Before the progress thread closes the endpoint: later posts do not reach the fabric. */
Test(ep, the_end_closes_both_queues_at_once)
{
	dofi_mutex_lock(&inside()->lock);
	cr_assert(inside()->sq.open && inside()->rq.open && inside()->fast.send);
	dofi_ep_end(inside(), DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(!inside()->sq.open && !inside()->rq.open);
	cr_expect(!inside()->fast.send && !inside()->fast.recv);
	dofi_mutex_unlock(&inside()->lock);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(dofi_ep_state_now(inside()), DAT_EP_STATE_DISCONNECTED);
}

Test(ep, without_a_connection_nothing_ends, .init = ops_init_unconnected)
{
	end_with(DAT_CONNECTION_EVENT_BROKEN);
	settle();
	cr_expect(event_none(evd));
	cr_expect(!inside()->closing);
	cr_expect_eq(dofi_ep_state_now(inside()), DAT_EP_STATE_UNCONNECTED);
}

Test(ep, after_the_end_nothing_ends)
{
	end_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	end_with(DAT_CONNECTION_EVENT_BROKEN);
	settle();
	cr_expect(event_none(evd));
}

/* The fast path is closed while an operation waits, and open again when none does. */
Test(ep, what_waits_closes_the_fast_path)
{
	transport.taken = 1;
	succeed(post_send(1));
	cr_expect(inside()->fast.send);
	succeed(post_send(2));
	cr_expect(!inside()->fast.send);
	transport.taken = 10;
	complete(0);
	cr_expect_eq(transport.n, 2);
	cr_expect(inside()->fast.send);
	take(1, DAT_DTO_SUCCESS);
}

/* The table of states, compared with the transitions in the DAT text */

#define N_STATES (DAT_EP_STATE_COMPLETION_PENDING + 1)

/* Every allowed transition. All others are refused. */
static const struct {
	DAT_EP_STATE from, to;
} ways[] = {
	{ DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_RESERVED },
	{ DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING },
	{ DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_COMPLETION_PENDING },
	{ DAT_EP_STATE_RESERVED, DAT_EP_STATE_UNCONNECTED },
	{ DAT_EP_STATE_RESERVED, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING },
	{ DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_COMPLETION_PENDING },
	{ DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_UNCONNECTED },
	{ DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_CONNECTED },
	{ DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_DISCONNECTED },
	{ DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DAT_EP_STATE_COMPLETION_PENDING },
	{ DAT_EP_STATE_COMPLETION_PENDING, DAT_EP_STATE_CONNECTED },
	{ DAT_EP_STATE_COMPLETION_PENDING, DAT_EP_STATE_DISCONNECTED },
	{ DAT_EP_STATE_CONNECTED, DAT_EP_STATE_DISCONNECT_PENDING },
	{ DAT_EP_STATE_CONNECTED, DAT_EP_STATE_DISCONNECTED },
	{ DAT_EP_STATE_DISCONNECT_PENDING, DAT_EP_STATE_DISCONNECTED },
	{ DAT_EP_STATE_DISCONNECTED, DAT_EP_STATE_UNCONNECTED },
};

static bool drawn(int from, int to)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if ((int)ways[i].from == from && (int)ways[i].to == to)
			return true;
	return false;
}

static unsigned may(int state)
{
	return dofi_ep_states[state].may;
}

Test(ep_state, allows_the_drawn_ways_and_no_others)
{
	int from, to;

	for (from = 0; from < N_STATES; from++)
		for (to = 0; to < 32; to++)
			cr_expect_eq(dofi_ep_states[from].next >> to & 1,
				     drawn(from, to), "%d -> %d", from, to);
}

/* DAT consumers cannot make endpoints in the unconfigured states. */
static const DAT_EP_STATE used[] = {
	DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_RESERVED, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	DAT_EP_STATE_CONNECTED, DAT_EP_STATE_DISCONNECT_PENDING, DAT_EP_STATE_DISCONNECTED,
	DAT_EP_STATE_COMPLETION_PENDING,
};
#define N_USED (sizeof(used) / sizeof(used[0]))

Test(ep_state, every_state_has_a_name_and_an_error_of_its_own)
{
	size_t a, b;

	for (a = 0; a < N_USED; a++) {
		cr_expect(dofi_ep_states[used[a]].name, "%d", used[a]);
		cr_expect(dofi_ep_states[used[a]].error, "%d", used[a]);
		for (b = 0; b < a; b++)
			cr_expect(dofi_ep_states[used[a]].error !=
				  dofi_ep_states[used[b]].error, "%d %d", used[a], used[b]);
	}
}

Test(ep_state, requests_are_taken_when_connected_or_disconnected)
{
	int s;

	for (s = 0; s < N_STATES; s++)
		cr_expect_eq(!!(may(s) & DOFI_EP_MAY_REQUEST),
			     s == DAT_EP_STATE_CONNECTED || s == DAT_EP_STATE_DISCONNECTED, "%d",
			     s);
}

Test(ep_state, a_live_endpoint_has_a_peer_and_may_be_freed)
{
	int s;

	for (s = 0; s < N_STATES; s++)
		if (may(s) & DOFI_EP_IS_LIVE)
			cr_expect((may(s) & DOFI_EP_HAS_PEER) && (may(s) & DOFI_EP_MAY_FREE), "%d",
				  s);
}

Test(ep_state, every_live_state_can_end)
{
	int s;

	for (s = 0; s < N_STATES; s++)
		if (may(s) & DOFI_EP_IS_LIVE)
			cr_expect(drawn(s, DAT_EP_STATE_DISCONNECTED), "%d", s);
}

Test(ep_state, a_change_opens_and_shuts_the_queues, .init = objects_init, .fini = ia_fini)
{
	struct dofi_ep *ep = ep_make();

	start_connecting(ep);
	cr_expect(!ep->rq.open && !ep->sq.open);
	establish(ep, NULL, 0);
	cr_expect(ep->rq.open && ep->sq.open);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	cr_expect(!ep->rq.open && !ep->sq.open);
}
