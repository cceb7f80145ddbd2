/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When the fast path is open, on a fabric without rings; rings_test.c has arrivals from a ring. */

#include "xport/coupled.h"

#include "xport/rdm/send.h"

#define FRAME 4096			/* of shm */

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

TestSuite(rdm_fast, .init = init, .fini = rdm_fini, .timeout = 60);

/* Whether the fast path is open. Takes the EP's lock, so an operation that holds it ends first. */
static bool is_fast(struct dofi_ep *e)
{
	bool is;

	dofi_mutex_lock(&e->lock);
	is = e->fast.send == rdm_fast_send;
	cr_expect(is || !e->fast.send);
	dofi_mutex_unlock(&e->lock);
	return is;
}

/* The fast path is for plain messages only: obj/ep/fast.h. */
Test(rdm_fast, only_plain_messages_are_sent_fast, .init = rdm_init)
{
	const struct peer_frame *f;
	struct dofi_ep *e;

	couple_narrow(1);
	e = ep;
	cr_expect(is_fast(e));
	dofi_mutex_lock(&e->lock);
	cr_expect_eq(rdm_fast_send(dofi_fast_to(e), big, FRAME - RDM_FRAME_HEADER + 1, NULL, 0,
				   NULL), -FI_EAGAIN);
	cr_expect_eq(rdm_fast_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), DOFI_DONE);
	cr_expect_eq(rdm_fast_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), -FI_EAGAIN,
		     "the peer has room for one");
	dofi_mutex_unlock(&e->lock);
	f = peer_take(&peer, RDM_FRAME_SEND);
	cr_expect(f->frame.length == 8 && !memcmp(f->data, big, 8));
	cr_expect(peer_has_none(&peer));
	post_send(0, 8, 1);
	cr_expect(!is_fast(e), "something waits");
	give_credits(1);
	done(1);
	cr_expect(is_fast(e));
}

static bool has_pending(struct dofi_ep *e)
{
	bool has;

	dofi_mutex_lock(&e->lock);
	has = rdm_conn_of(e)->n_pending;
	dofi_mutex_unlock(&e->lock);
	return has;
}

Test(rdm_fast, the_fast_path_is_closed_while_a_message_waits_for_its_receive)
{
	struct dofi_ep *e = ep;

	cr_expect(is_fast(e));
	say("abc", 3);
	while (!has_pending(e))
		dofi_cq_drain(e->cq);
	cr_expect(!is_fast(e));
	receive(0, 10, 1);
	got(1, 3);
	cr_expect(is_fast(e));
}

static bool is_plain(struct dofi_ep *e, uint32_t n)
{
	bool is;

	dofi_mutex_lock(&e->lock);
	is = dofi_dto_is_plain(dofi_queue_at(&e->rq, e->rq.head + n));
	dofi_mutex_unlock(&e->lock);
	return is;
}

Test(rdm_fast, receives_of_one_segment_are_posted_fast)
{
	receive(0, 10, 1);
	receive(10, 10, 2);
	cr_expect(is_plain(ep, 0) && is_plain(ep, 1));
	say("first", 5);
	say("second", 6);
	got(1, 5);
	got(2, 6);
	cr_expect(!memcmp(big, "first", 5) && !memcmp(big + 10, "second", 6));
}

Test(rdm_fast, a_message_of_two_frames_fills_a_receive_that_was_posted_fast)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_FIRST);

	receive(0, 20, 1);
	cr_expect(is_plain(ep, 0));
	f.length = 10;
	peer_send(&peer, &f, "first", 5);
	f = peer_frame(&peer, RDM_FRAME_MORE);
	peer_send(&peer, &f, "after", 5);
	got(1, 10);
	cr_expect(!memcmp(big, "firstafter", 10));
}
