/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Eager messages of several frames: sending, reassembly, and hostile frames. */

#include "xport/coupled.h"

#include "obj/cq_data.h"
#include "obj/caps.h"

#define FRAME 4096			/* of shm */
#define FIRST_ROOM (FRAME - RDM_FRAME_FULL)
#define MORE_ROOM (FRAME - RDM_FRAME_HEADER)

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

static void init_empty(void)
{
	coupled_init();
}

static void init_apart(void)
{
	coupled_init_apart();
	fill(big, 7);
}

TestSuite(rdm_eager_send, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_eager_take, .init = init_empty, .fini = rdm_fini, .timeout = 60);

/* Sending */

/* The next frames carry @length bytes of big from @offset on. */
static void comes_in_frames(size_t offset, size_t length)
{
	const struct peer_frame *f = peer_take(&peer, RDM_FRAME_FIRST);
	size_t n;

	cr_expect_eq(f->frame.length, length);
	cr_expect_eq(f->frame.data_size, FIRST_ROOM);
	for (n = 0;; f = peer_take(&peer, RDM_FRAME_MORE)) {
		cr_assert(f->frame.data_size <= length - n);
		cr_expect(!memcmp(f->data, big + offset + n, f->frame.data_size));
		n += f->frame.data_size;
		if (n == length)
			return;
	}
}

Test(rdm_eager_send, what_a_frame_has_no_room_for_goes_in_several)
{
	post_send(0, MORE_ROOM + 1, 1);
	done(1);
	comes_in_frames(0, MORE_ROOM + 1);
	post_send(10, 4096, 2);
	done(2);
	comes_in_frames(10, 4096);
	post_send(20, RDM_EAGER_MAX, 3);
	done(3);
	comes_in_frames(20, RDM_EAGER_MAX);
	cr_expect(peer_has_none(&peer));
}

Test(rdm_eager_send, what_is_longer_is_announced)
{
	post_send(0, RDM_EAGER_MAX + 1, 1);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_RTS)->frame.length, RDM_EAGER_MAX + 1);
}

Test(rdm_eager_send, a_message_to_a_peer_without_reads_goes_in_frames, .init = init_apart)
{
	post_send(0, 5000, 1);
	done(1);
	comes_in_frames(0, 5000);
}

/* A segment may begin in one frame and end in the next. */
Test(rdm_eager_send, segments_are_put_together)
{
	DAT_LMR_TRIPLET iov[2] = { big_segment(0, 3000), big_segment(3000, 3000) };

	succeed(dofi_ep_post_send(ep, 2, iov, cookie_of(1), plain));
	done(1);
	comes_in_frames(0, 6000);
}

Test(rdm_eager_send, the_first_frame_says_that_it_is_solicited)
{
	DAT_LMR_TRIPLET iov = big_segment(0, 5000);

	succeed(dofi_ep_post_send(ep, 1, &iov, cookie_of(1), DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	done(1);
	cr_expect(dofi_cq_data_solicited(peer_take(&peer, RDM_FRAME_FIRST)->frame.cq_data));
}

/* A completed message leaves nothing in its slot for the next one. */
Test(rdm_eager_send, a_slot_serves_any_number_of_messages_of_several_segments)
{
	const uint32_t slots = ((struct dofi_ep *)ep)->sq.mask + 1;
	uint32_t i;

	for (i = 0; i <= slots; i++) {
		DAT_LMR_TRIPLET iov[2] = { big_segment(i, 1000), big_segment(i + 1000, 4000) };

		succeed(dofi_ep_post_send(ep, 2, iov, cookie_of(i), plain));
		done(i);
		comes_in_frames(i, 5000);
		give_credits(2);
	}
	cr_expect(peer_has_none(&peer));
}

/* The message stops when the peer's window is full, and no other frame overtakes the rest of it. */
Test(rdm_eager_send, a_message_goes_on_when_there_is_room, .init = rdm_init)
{
	const struct peer_frame *f;

	couple_narrow(2);
	post_send(0, RDM_EAGER_MAX, 1);
	post_send(1, 1, 2);
	f = peer_take(&peer, RDM_FRAME_FIRST);
	cr_expect_eq(f->frame.data_size, FIRST_ROOM);
	f = peer_take(&peer, RDM_FRAME_MORE);
	cr_expect_eq(f->frame.data_size, MORE_ROOM);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd), "it is not done");
	give_credits(1);
	done(1);
	f = peer_take(&peer, RDM_FRAME_MORE);
	cr_expect_eq(f->frame.data_size, RDM_EAGER_MAX - FIRST_ROOM - MORE_ROOM);
	cr_expect(!memcmp(f->data, big + FIRST_ROOM + MORE_ROOM, f->frame.data_size));
	cr_expect(peer_has_none(&peer));
	give_credits(1);
	done(2);
	peer_take(&peer, RDM_FRAME_SEND);
}

/* The remaining frames would need the memory that is freed. */
Test(rdm_eager_send, a_message_that_has_begun_ends_the_connection_with_its_memory, .init = rdm_init)
{
	couple_narrow(1);
	post_send(0, 5000, 1);
	peer_take(&peer, RDM_FRAME_FIRST);
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED, "before the call returns");
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_eager_send, a_message_that_has_begun_is_flushed_once, .init = rdm_init)
{
	couple_narrow(1);
	post_send(0, 5000, 1);
	peer_take(&peer, RDM_FRAME_FIRST);
	peer_hang_up(&peer);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

/*
 * An eager message has no request and no RTS, so an ACK for it is invalid even while it is in
 * flight.
 */
Test(rdm_eager_send, a_message_that_has_begun_is_not_answered, .init = rdm_init)
{
	couple_narrow(1);
	post_send(0, 5000, 1);
	peer_take(&peer, RDM_FRAME_FIRST);
	answer(((struct dofi_ep *)ep)->sq.next, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	peer_sees_break(&peer);
}

/* Receiving */

static void begin(size_t size, uint64_t length)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_FIRST);

	f.length = length;
	peer_send(&peer, &f, theirs, size);
}

static void more(size_t at, size_t size)
{
	const struct rdm_frame f = peer_frame(&peer, RDM_FRAME_MORE);

	peer_send(&peer, &f, theirs + at, size);
}

Test(rdm_eager_take, frames_make_a_message)
{
	receive(0, 9000, 1);
	receive(10000, 10, 2);
	begin(1000, 8192);
	more(1000, 4000);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd));
	more(5000, 3192);
	say("next", 4);
	got(1, 8192);
	got(2, 4);
	cr_expect(!memcmp(big, theirs, 8192) && all_zero(big + 8192, 10000 - 8192));
	cr_expect(!memcmp(big + 10000, "next", 4));
}

Test(rdm_eager_take, into_segments)
{
	DAT_LMR_TRIPLET iov[2] = { big_segment(0, 1500), big_segment(2000, 3000) };

	succeed(dofi_ep_post_recv(ep, 2, iov, cookie_of(1), plain));
	begin(1000, 3000);
	more(1000, 2000);
	got(1, 3000);
	cr_expect(!memcmp(big, theirs, 1500) && !memcmp(big + 2000, theirs + 1500, 1500));
	cr_expect(all_zero(big + 1500, 500) && all_zero(big + 3500, 1500));
}

/* A message waits as a whole, or with the frames that have arrived. */
Test(rdm_eager_take, a_message_waits_for_its_receive)
{
	begin(1000, 5000);
	more(1000, 4000);
	begin(100, 200);
	cr_assert(peer_has_none(&peer));
	cr_expect(event_none(evd));
	receive(0, 5000, 1);
	receive(6000, 5000, 2);
	got(1, 5000);
	cr_expect(event_none(evd));
	more(100, 100);
	got(2, 200);
	cr_expect(!memcmp(big, theirs, 5000) && !memcmp(big + 6000, theirs, 200));
}

Test(rdm_eager_take, each_frame_gives_its_credit_back)
{
	unsigned i;

	for (i = 0; i < RDM_WINDOW / 4; i++)
		receive(i * 2, 2, i);
	for (i = 0; i < RDM_WINDOW / 4; i++) {
		begin(1, 2);
		more(1, 1);
		got(i, 2);
	}
	cr_expect_eq(peer_take(&peer, RDM_FRAME_CREDIT)->frame.credits, RDM_WINDOW / 2);
}

Test(rdm_eager_take, cq_data_is_processed_when_the_message_is_complete)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_FIRST);

	receive(0, 100, 1);
	f.length = 100;
	f.cq_data = dofi_cq_data(DOFI_CQ_DATA_PLAIN, false, 0, 77);
	peer_send(&peer, &f, theirs, 50);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd));
	more(50, 50);
	done_await(evd, DAT_DTO_ERR_TRANSPORT);
	peer_sees_break(&peer);
}

Test(rdm_eager_take, a_message_too_long_for_its_receive_writes_nothing)
{
	receive(0, 4999, 1);
	begin(1000, 5000);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 1);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_eager_take, a_receive_that_is_being_filled_ends_the_connection_with_its_memory)
{
	receive(0, 5000, 1);
	begin(1000, 5000);
	cr_expect(peer_has_none(&peer));
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED, "before the call returns");
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	more(1000, 4000);
	cr_expect(peer_has_none(&peer));
	cr_expect(all_zero(big + 1000, 4000));
}

Test(rdm_eager_take, a_receive_that_is_being_filled_is_flushed_once)
{
	receive(0, 5000, 1);
	begin(1000, 5000);
	cr_expect(peer_has_none(&peer));
	peer_hang_up(&peer);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

/* The next connection of an EP has no message begun. */
Test(rdm_eager_take, a_new_connection_has_no_message_begun)
{
	struct dofi_cm_msg request;

	receive(0, 5000, 1);
	begin(1000, 5000);
	cr_expect(peer_has_none(&peer));
	peer_hang_up(&peer);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	succeed(dofi_ep_reset(ep));
	request = peer_msg(&peer, DOFI_CM_REQUEST);
	peer_couple_as(&peer, ep, &request, true);
	receive(0, 5000, 2);
	say("whole", 5);
	got(2, 5);
}

/* Hostile frames */

/* The connection ends, and the memory of two receives is unchanged beyond the first @n bytes. */
static void is_broken(size_t n)
{
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 2);
	peer_sees_break(&peer);
	cr_expect(all_zero(big + n, sizeof(big) - n));
}

static void two_receives(void)
{
	receive(0, 100, 1);
	receive(200, 100, 2);
}

Test(rdm_eager_take, no_frame_goes_on_with_what_has_not_begun)
{
	two_receives();
	more(0, 10);
	is_broken(0);
}

Test(rdm_eager_take, no_frame_goes_on_with_a_complete_message)
{
	receive(200, 100, 1);
	begin(10, 20);
	more(10, 10);
	got(1, 20);
	memset(big, 0, sizeof(big));
	two_receives();
	more(20, 10);
	is_broken(0);
}

Test(rdm_eager_take, no_frame_goes_beyond_the_length)
{
	two_receives();
	begin(10, 20);
	more(10, 11);
	is_broken(10);
}

Test(rdm_eager_take, a_message_does_not_begin_within_another)
{
	two_receives();
	begin(10, 20);
	begin(10, 20);
	is_broken(10);
}

/* A frame of @kind arrives instead of the second frame of a message. */
static void breaks_off(enum rdm_frame_kind kind)
{
	struct rdm_frame f;

	two_receives();
	begin(10, 20);
	f = about(kind, 9);
	f.key = big_remote;
	f.addr = (uintptr_t)big + 1000;
	peer_send(&peer, &f, NULL, 0);
	is_broken(10);
}

Test(rdm_eager_take, a_short_message_does_not_begin_within_another) { breaks_off(RDM_FRAME_SEND); }
Test(rdm_eager_take, no_announced_message_begins_within_another) { breaks_off(RDM_FRAME_RTS); }
Test(rdm_eager_take, a_write_does_not_begin_within_a_message) { breaks_off(RDM_FRAME_WRITE); }
Test(rdm_eager_take, a_read_does_not_begin_within_a_message) { breaks_off(RDM_FRAME_READ); }
Test(rdm_eager_take, an_atomic_does_not_begin_within_a_message) { breaks_off(RDM_FRAME_FETCH_ADD); }

/* A whole message arrives instead of the second frame, while the first waits for its receive. */
Test(rdm_eager_take, no_message_begins_within_another_that_waits_for_its_receive)
{
	begin(10, 20);
	say("whole", 5);
	cr_assert(peer_has_none(&peer));
	receive(0, 100, 1);
	breaks();
	cr_expect(all_zero(big + 10, sizeof(big) - 10));
}

/* A whole window of frames: no more frames are kept. */
Test(rdm_eager_take, a_full_window_is_full)
{
	unsigned i;

	begin(10, 1000);
	for (i = 1; i < RDM_WINDOW; i++)
		more(10, 10);
	cr_assert(peer_has_none(&peer));
	more(10, 10);
	peer_sees_break(&peer);
}

/* Endpoints of an SRQ */

Test(rdm_eager_take, a_message_takes_one_buffer_of_an_srq, .init = rdm_init)
{
	DAT_SRQ_ATTR limits = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_LMR_TRIPLET iov;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;

	cr_assert_eq(dofi_caps_ep_attr(ia, NULL, &attr), 0);
	attr.srq_soft_hw = DAT_HW_DEFAULT;
	succeed(dofi_srq_create(ia, pz, &limits, &srq));
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &ep));
	peer_couple(&peer, ep);
	fill(theirs, 5);
	begin(1000, 5000);
	more(1000, 1000);
	cr_assert(peer_has_none(&peer));
	iov = big_segment(0, 5000);
	succeed(dofi_srq_post_recv(srq, 1, &iov, cookie_of(1)));
	iov = big_segment(6000, 100);
	succeed(dofi_srq_post_recv(srq, 1, &iov, cookie_of(2)));
	more(2000, 3000);
	say("next", 4);
	got(1, 5000);
	got(2, 4);
	cr_expect(!memcmp(big, theirs, 5000) && !memcmp(big + 6000, "next", 4));
}
