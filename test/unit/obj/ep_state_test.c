/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of endpoint states, compared with the transitions in the DAT text. */

#include "obj/fixture.h"

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
	return dofi_ep_state_row((DAT_EP_STATE)state)->may;
}

Test(ep_state, allows_the_drawn_ways_and_no_others)
{
	int from, to;

	for (from = 0; from < N_STATES; from++)
		for (to = 0; to < 32; to++)
			cr_expect_eq(dofi_ep_state_row((DAT_EP_STATE)from)->next >> to & 1,
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
		cr_expect(dofi_ep_state_row(used[a])->name, "%d", used[a]);
		cr_expect(dofi_ep_state_row(used[a])->error, "%d", used[a]);
		for (b = 0; b < a; b++)
			cr_expect(dofi_ep_state_row(used[a])->error !=
				  dofi_ep_state_row(used[b])->error, "%d %d", used[a], used[b]);
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
