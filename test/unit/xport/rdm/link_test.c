/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending frames: credits, the fast path of a send, and HELLOs. */

#include "xport/coupled.h"

#define FRAME 4096			/* of shm */

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

/* The fast path */

/* Whether the fast path is open. Takes the EP's lock, so an operation that holds it ends first. */
static bool is_short(struct dofi_ep *e)
{
	bool is;

	dofi_mutex_lock(&e->lock);
	is = e->fast.send == rdm_send;
	cr_expect(is || !e->fast.send);
	dofi_mutex_unlock(&e->lock);
	return is;
}

/* The fast path is for plain messages only: obj/fast.h. */
Test(rdm_transmit, the_short_way_is_left_for_what_is_unusual, .init = rdm_init)
{
	const struct peer_frame *f;
	struct dofi_ep *e;

	couple_narrow(1);
	e = ep;
	cr_expect(is_short(e));
	dofi_mutex_lock(&e->lock);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, FRAME - RDM_FRAME_HEADER + 1, NULL, 0, NULL),
		     -FI_EAGAIN);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), DOFI_DONE);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), -FI_EAGAIN,
		     "the peer has room for one");
	dofi_mutex_unlock(&e->lock);
	f = peer_take(&peer, RDM_FRAME_SEND);
	cr_expect(f->frame.length == 8 && !memcmp(f->data, big, 8));
	cr_expect(peer_has_none(&peer));
	post_send(0, 8, 1);
	cr_expect(!is_short(e), "something waits");
	give_credits(1);
	done(1);
	cr_expect(is_short(e));
}

static bool has_pending(struct dofi_ep *e)
{
	bool has;

	dofi_mutex_lock(&e->lock);
	has = rdm_conn_of(e)->n_pending;
	dofi_mutex_unlock(&e->lock);
	return has;
}

Test(rdm_transmit, the_fast_path_is_closed_while_a_message_waits_for_its_receive)
{
	struct dofi_ep *e = ep;

	cr_expect(is_short(e));
	say("abc", 3);
	while (!has_pending(e))
		dofi_cq_drain(e->cq);
	cr_expect(!is_short(e));
	receive(0, 10, 1);
	got(1, 3);
	cr_expect(is_short(e));
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
