/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages given to a connectionless fabric: their frames, and when these are sent. */

#include "xport/coupled.h"

#include "obj/cq_data.h"
#include "obj/ep/ep_post.h"

#define FRAME 4096			/* of shm */

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

TestSuite(rdm_send, .init = init, .fini = rdm_fini, .timeout = 60);

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

/* Memory of a freed LMR */

static void delivers_after_refusal(void)
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
	delivers_after_refusal();
	give_credits(1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 2);
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
	delivers_after_refusal();
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
	delivers_after_refusal();
	say("x", 1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
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
