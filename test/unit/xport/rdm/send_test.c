/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages given to a connectionless fabric: their frames, and when these are sent. */

#include "xport/coupled.h"

#include "obj/cq_data.h"
#include "obj/ep_ext.h"

#define FRAME 4096			/* of shm */

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

static void init_apart(void)
{
	coupled_init_apart();
	fill(big, 7);
}

TestSuite(rdm_send, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_send_apart, .init = init_apart, .fini = rdm_fini, .timeout = 60);

/* Messages */

Test(rdm_send, a_short_message_is_a_frame)
{
	DAT_LMR_TRIPLET iov[2] = { big_segment(0, 10), big_segment(100, 5) };
	const struct peer_frame *f;

	succeed(dofi_ep_post_send(ep, 2, iov, cookie_of(1), plain));
	done(1);
	f = peer_take(&peer, RDM_FRAME_SEND);
	cr_expect_eq(f->frame.length, 15);
	cr_expect(!memcmp(f->data, big, 10) && !memcmp(f->data + 10, big + 100, 5));
	cr_expect_eq(f->frame.cq_data, 0);

	post_send(0, FRAME - RDM_FRAME_HEADER, 2);
	done(2);
	f = peer_take(&peer, RDM_FRAME_SEND);
	cr_expect_eq(f->frame.length, FRAME - RDM_FRAME_HEADER);
	cr_expect(!memcmp(f->data, big, f->frame.length));

	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(3), plain));
	done(3);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_SEND)->frame.length, 0);
}

Test(rdm_send, a_solicited_one_says_so)
{
	DAT_LMR_TRIPLET iov = big_segment(0, 10);

	succeed(dofi_ep_post_send(ep, 1, &iov, cookie_of(1), DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	done(1);
	cr_expect(dofi_cq_data_solicited(peer_take(&peer, RDM_FRAME_SEND)->frame.cq_data));
}

Test(rdm_send, a_long_message_is_announced_with_its_place)
{
	DAT_LMR_TRIPLET iov[2] = { big_segment(0, 5000), big_segment(6000, 10000) };
	const struct rdm_frame *f;
	uint32_t first;

	succeed(dofi_ep_post_send(ep, 2, iov, cookie_of(1), plain));
	post_send(20000, RDM_EAGER_MAX + 1, 2);
	f = &peer_take(&peer, RDM_FRAME_RTS)->frame;
	first = f->number;
	cr_expect_eq(f->length, 15000);
	cr_expect(f->n_segments == 2 && names(f, 0, big, 5000) && names(f, 1, big + 6000, 10000));
	f = &peer_take(&peer, RDM_FRAME_RTS)->frame;
	cr_expect(f->n_segments == 1 && names(f, 0, big + 20000, RDM_EAGER_MAX + 1));
	cr_expect(event_none(evd));
	/* completions are in order, in whatever order the ACKs arrive */
	answer(f->number, NULL, 0);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd));
	answer(first, NULL, 0);
	done(1);
	done(2);
}

Test(rdm_send, no_more_goes_than_the_peer_has_room_for, .init = rdm_init)
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

/* Memory of a freed LMR */

static void goes_on(void)
{
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
}

/* The first message is in frames. The second is queued, and fails when it could be sent. */
Test(rdm_send, what_waits_for_room_fails_in_its_turn, .init = rdm_init)
{
	couple_narrow(1);
	post_send(0, 1, 1);
	post_send(0, 1, 2);
	done(1);
	succeed(dofi_lmr_free(big_lmr));
	goes_on();
	give_credits(1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 2);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* After the RTS the peer may read the message at any time. */
Test(rdm_send, an_announced_message_ends_the_connection)
{
	post_send(0, BIG, 1);
	peer_take(&peer, RDM_FRAME_RTS);
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED, "before the call returns");
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/*
 * A short write is in its frame and only waits for its ACK. For a read the ACK's data is written to
 * the memory.
 */
Test(rdm_send, a_write_in_frames_needs_no_memory)
{
	uint32_t number;

	post_write(0, 100, 1);
	number = peer_take(&peer, RDM_FRAME_WRITE)->frame.number;
	succeed(dofi_lmr_free(big_lmr));
	goes_on();
	answer(number, NULL, 0);
	done(1);
}

Test(rdm_send, a_read_ends_the_connection)
{
	post_read(0, 100, 1);
	peer_take(&peer, RDM_FRAME_READ);
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* A later message matches the receive, which has no memory any more. */
Test(rdm_send, a_receive_that_no_message_has_met_waits)
{
	receive(0, 100, 1);
	succeed(dofi_lmr_free(big_lmr));
	goes_on();
	say("x", 1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* A receive that still expects DATA. */
Test(rdm_send_apart, a_receive_that_a_message_has_met_ends_the_connection)
{
	struct rdm_frame f = announcement(1, NULL, BIG);

	f.n_segments = 0;
	receive(0, BIG, 1);
	peer_send(&peer, &f, NULL, 0);
	peer_take(&peer, RDM_FRAME_CTS);
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

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
Test(rdm_send, the_short_way_is_left_for_what_is_unusual, .init = rdm_init)
{
	const struct peer_frame *f;
	struct dofi_ep *e;

	couple_narrow(1);
	e = ep;
	cr_expect(is_short(e));
	dofi_mutex_lock(&e->lock);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, FRAME - RDM_FRAME_HEADER + 1, NULL, 0, NULL), -FI_EAGAIN);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), DOFI_DONE);
	cr_expect_eq(rdm_send(dofi_fast_to(e), big, 8, NULL, 0, NULL), -FI_EAGAIN, "the peer has room for one");
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

Test(rdm_send, the_fast_path_is_closed_while_a_message_waits_for_its_receive)
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

Test(rdm_send, answers_need_no_room, .init = rdm_init)
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

#if DAT_VERSION_MAJOR >= 2
Test(rdm_send, cq_data_goes_with_messages)
{
	DAT_LMR_TRIPLET iov = big_segment(0, 100);
	const struct dofi_post p = {
		.n = 1, .iov = &iov, .cookie.as_64 = 1, .immed = 0xfeed,
	};

	succeed(dofi_ep_post_send_immed(ep, &p));
	done(1);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_SEND)->frame.cq_data,
		     dofi_cq_data(DOFI_CQ_DATA_IMMED, false, 0, 0xfeed));
}
#endif

/* Neither process reads the other's memory: all data goes in frames */

Test(rdm_send_apart, a_long_message_goes_in_parts)
{
	static unsigned char came[BIG];
	struct rdm_frame clear;
	const struct peer_frame *f;
	size_t n;

	post_send(0, BIG, 1);
	f = peer_take(&peer, RDM_FRAME_RTS);
	cr_expect(f->frame.length == BIG && !f->frame.n_segments);
	cr_expect(peer_has_none(&peer), "it waits for its receive");
	clear = peer_frame(&peer, RDM_FRAME_CTS);
	clear.number = f->frame.number;
	clear.value[0] = 4711;
	peer_send(&peer, &clear, NULL, 0);
	for (n = 0; n < BIG; n += f->frame.data_size) {
		f = peer_take(&peer, RDM_FRAME_DATA);
		cr_expect(f->frame.number == 4711 && f->frame.addr == n && f->frame.data_size);
		memcpy(came + n, f->data, f->frame.data_size);
	}
	cr_expect(n == BIG && !memcmp(came, big, BIG));
	done(1);
}

Test(rdm_send_apart, and_is_cleared_once)
{
	struct rdm_frame clear;

	post_send(0, BIG, 1);
	clear = peer_frame(&peer, RDM_FRAME_CTS);
	clear.number = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	peer_send(&peer, &clear, NULL, 0);
	done(1);
	clear.sequence++;
	peer_send(&peer, &clear, NULL, 0);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* An ACK does not end a message while its DATA is in flight. */
Test(rdm_send_apart, nor_is_it_answered_then)
{
	struct rdm_frame f;
	unsigned i;

	/* leaves credits for a few DATA frames */
	for (i = 0; i < RDM_WINDOW - 4; i++) {
		post_send(0, 1, 0);
		done(0);
	}
	post_send(0, BIG, 1);
	for (i = 0; i < RDM_WINDOW - 4; i++)
		peer_take(&peer, RDM_FRAME_SEND);
	f = peer_frame(&peer, RDM_FRAME_CTS);
	f.number = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	peer_send(&peer, &f, NULL, 0);
	for (i = 0; i < 3; i++)
		peer_take(&peer, RDM_FRAME_DATA);
	answer(f.number, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}
