/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending frames: credits, and HELLOs. */

#include "xport/coupled.h"

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

TestSuite(rdm_transmit, .init = init, .fini = rdm_fini, .timeout = 60);

/* Credits */

Test(rdm_transmit, no_more_goes_than_the_peer_has_room_for, .init = rdm_init)
{
	uint64_t i;

	couple_narrow(3);
	for (i = 0; i < 6; i++)
		post_send(i, 1, i);
	for (i = 0; i < 3; i++) {
		done(i);
		cr_expect_eq(*peer_take(&peer, RDM_FRAME_SEND)->data, big[i]);
	}
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd));
	give_credits(1);
	done(3);
	peer_take(&peer, RDM_FRAME_SEND);
	cr_expect(peer_has_none(&peer));
	give_credits(3);
	done(4);
	done(5);
	peer_take(&peer, RDM_FRAME_SEND);
	peer_take(&peer, RDM_FRAME_SEND);
}

Test(rdm_transmit, credits_come_back)
{
	unsigned i;

	for (i = 0; i < RDM_WINDOW; i++)
		say("x", 1);
	for (i = 0; i < RDM_WINDOW; i++)
		receive(i, 1, i);
	for (i = 0; i < RDM_WINDOW; i++)
		got(i, 1);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_CREDIT)->frame.credits, RDM_WINDOW / 2);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_CREDIT)->frame.credits, RDM_WINDOW / 2);
	cr_expect(peer_has_none(&peer));
}

Test(rdm_transmit, answers_need_no_room, .init = rdm_init)
{
	struct rdm_frame f;

	couple_narrow(1);
	post_send(0, 1, 1);
	done(1);
	peer_take(&peer, RDM_FRAME_SEND);
	f = peer_frame(&peer, RDM_FRAME_READ);
	f.key = big_remote;
	f.addr = (uintptr_t)big;
	f.length = 10;
	peer_send(&peer, &f, NULL, 0);
	cr_expect(!memcmp(peer_take(&peer, RDM_FRAME_ACK)->data, big, 10));
}

/* HELLOs */

Test(rdm_transmit, greetings_out_of_place_are_nothing)
{
	const struct rdm_frame hello = peer_frame(&peer, RDM_FRAME_HELLO);
	struct rdm_frame back;

	peer_send(&peer, &hello, NULL, 0);
	back = peer_frame(&peer, RDM_FRAME_HELLO_BACK);
	peer_send(&peer, &back, NULL, 0);
	receive(0, 10, 1);
	say("well", 4);
	got(1, 4);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd));
}
