/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rendezvous: messages that the receiver reads from the sender's memory, or gets in parts. */

#include "xport/rdm/parts.h"

TestSuite(rdm_rndv, .init = coupled_init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rndv_srq, .init = init_srq, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rndv_sockets, .init = coupled_init_sockets, .fini = rdm_fini, .timeout = 60);

/* Receiving: the receiver reads the message from the sender's memory */

Test(rdm_rndv, an_announced_message_is_fetched)
{
	struct rdm_frame f;

	receive(0, 20000, 1);
	send_rts(7, theirs + 1, 19999);
	got(1, 19999);
	answered(7, RDM_OK);
	cr_expect(!memcmp(big, theirs + 1, 19999) && !big[19999]);

	/* in several segments, and before there is a receive */
	f = announcement(8, theirs, 100);
	f.segment[f.n_segments++] = (struct iovec){ theirs + 200, 0 };
	f.segment[f.n_segments++] = (struct iovec){ theirs + 300, 50 };
	f.length = 150;
	peer_send(&peer, &f, NULL, 0);
	say("next", 4);
	cr_expect(peer_has_none(&peer));
	receive(20000, 200, 2);
	receive(30000, 200, 3);
	got(2, 150);
	got(3, 4);
	answered(8, RDM_OK);
	cr_expect(!memcmp(big + 20000, theirs, 100) && !memcmp(big + 20100, theirs + 300, 50));
	cr_expect(!big[20150]);
}

Test(rdm_rndv, an_announced_message_too_long_is_not)
{
	receive(0, 99, 1);
	send_rts(7, theirs, 100);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 1);
	answered(7, RDM_TOO_LONG);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_rndv, an_announced_message_at_an_unmapped_address_fails)
{
	receive(0, 200, 1);
	send_rts(7, (void *)0x10, 100);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_TRANSPORT), 1);
	answered(7, RDM_NO_MEMORY);
	peer_sees_break(&peer);
	cr_expect(all_zero(big + 100, 100));
}

Test(rdm_rndv, an_announced_message_of_a_sender_that_has_left_fails, .init = rdm_init)
{
	struct dofi_cm_msg request = peer_msg(&peer, DOFI_CM_REQUEST);
	uint64_t word = peer.id;

	ep = ep_make();
	request.alive_addr = (uintptr_t)&word;
	peer_couple_as(&peer, ep, &request, true);
	receive(0, 100, 1);
	/* as if a process has ended the connection, or its number now belongs to another process */
	word = 0;
	send_rts(7, theirs, 100);
	answered(7, RDM_NO_MEMORY);
	peer_hang_up(&peer);
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* If a peer's memory was found to be unreadable, the peer must not name segments of it. */
Test(rdm_rndv, memory_that_cannot_be_read_is_not_to_be_named, .init = rdm_init)
{
	struct dofi_cm_msg request = peer_msg(&peer, DOFI_CM_REQUEST);

	ep = ep_make();
	request.alive_addr = 0x10;
	peer_couple_as(&peer, ep, &request, false);
	receive(0, 100, 1);
	send_rts(7, theirs, 100);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

/* Receiving: the message is sent as DATA after a CTS */

static void announce_parts(uint32_t number, size_t length)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_RTS);

	f.number = number;
	f.length = length;
	peer_send(&peer, &f, NULL, 0);
}

static void is_cleared(uint32_t number)
{
	const struct rdm_frame *f = &peer_take(&peer, RDM_FRAME_CTS)->frame;

	cr_expect_eq(f->number, number);
	part_number = (uint32_t)f->value[0];
}

static void part(uint64_t at, size_t size)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_DATA);

	f.number = part_number;
	f.addr = at;
	peer_send(&peer, &f, theirs + at, size);
}

Test(rdm_rndv, parts_make_a_message)
{
	announce_parts(7, 5000);
	say("next", 4);
	cr_expect(peer_has_none(&peer));
	receive(0, 6000, 1);
	receive(6000, 100, 2);
	is_cleared(7);
	part(0, 3000);
	part(3000, 0);
	cr_assert(peer_has_none(&peer));
	cr_expect(event_none(evd), "completions are in order");
	part(3000, 2000);
	got(1, 5000);
	got(2, 4);
	cr_expect(!memcmp(big, theirs, 5000) && all_zero(big + 5000, 1000));
}

/* Older versions offer an endpoint for the message by value 0, and then accept frames as well. */
Test(rdm_rndv, parts_make_a_message_of_an_older_peer)
{
	struct rdm_frame f = announcement(7, NULL, 5000);

	f.n_segments = 0;
	f.value[0] = 1;
	receive(0, 5000, 1);
	peer_send(&peer, &f, NULL, 0);
	is_cleared(7);
	part(0, 3000);
	part(3000, 2000);
	got(1, 5000);
	cr_expect(!memcmp(big, theirs, 5000));
}

static bool has_pending(void)
{
	struct rdm_conn *conn = rdm_conn_of(ep);
	bool has;

	dofi_mutex_lock(&conn->ep->lock);
	has = conn->n_pending;
	dofi_mutex_unlock(&conn->ep->lock);
	return has;
}

Test(rdm_rndv, an_announced_message_keeps_its_receive_while_the_answer_is_not_taken)
{
	receive(0, 100, 1);
	receive(100, 100, 2);
	fabric_takes(ep, false);
	announce_parts(7, 10);
	while (!has_pending())
		dofi_progress_wake(&ia->progress);
	dofi_cq_drain(((struct dofi_ep *)ep)->cq);
	fabric_takes(ep, true);
	dofi_cq_drain(((struct dofi_ep *)ep)->cq);
	is_cleared(7);
	part(0, 10);
	got(1, 10);
	say("next", 4);
	got(2, 4);
}

/* The sender may change its buffer when the receiver's program has the message. */
Test(rdm_rndv, a_message_is_fetched_once_while_the_answer_is_not_taken)
{
	const unsigned char first = theirs[0];

	receive(0, 100, 1);
	receive(100, 100, 2);
	fabric_takes(ep, false);
	send_rts(7, theirs, 100);
	got(1, 100);
	theirs[0]++;
	fabric_takes(ep, true);
	dofi_cq_drain(((struct dofi_ep *)ep)->cq);
	answered(7, RDM_OK);
	cr_expect_eq(big[0], first);
	say("next", 4);
	got(2, 4);
}

/* The DATA at @at with @size bytes does not fit the message of 100 bytes that is in progress. */
static void no_part(uint64_t at, size_t size)
{
	receive(0, 200, 1);
	receive(200, 200, 2);
	announce_parts(7, 100);
	is_cleared(7);
	part(at, size);
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_rndv, no_part_is_longer_than_its_message) { no_part(0, 101); }
Test(rdm_rndv, no_part_skips_a_byte) { no_part(1, 99); }
Test(rdm_rndv, no_part_begins_behind_its_message) { no_part(100, 1); }

/* DATA frames with a number @number, for which no message is in progress. */
static void no_parts_of(uint32_t number)
{
	receive(0, 200, 1);
	part_number = number;
	part(0, 10);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_rndv, no_receive_has_parts_by_itself) { no_parts_of(0); }
Test(rdm_rndv, no_part_belongs_to_an_unused_number) { no_parts_of(1); }
Test(rdm_rndv, no_part_belongs_to_a_number_out_of_range) { no_parts_of(0x80000000); }

Test(rdm_rndv, no_part_belongs_to_a_message_that_has_ended)
{
	receive(0, 200, 1);
	announce_parts(7, 10);
	is_cleared(7);
	part(0, 10);
	got(1, 10);
	receive(200, 200, 2);
	part(0, 10);
	breaks();
	cr_expect(all_zero(big + 200, 200));
}

Test(rdm_rndv, a_message_that_was_not_taken_fails)
{
	struct rdm_frame f;

	post_send(0, 20000, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_RTS)->frame.number);
	f.key = RDM_TOO_LONG;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_RESPONDER), 2);
	peer_sees_break(&peer);
}

/* Endpoints of an SRQ */

Test(rdm_rndv_srq, parts_go_to_the_buffer_of_their_own_message)
{
	lend(0, 100, 1);
	announce_parts(7, 10);
	is_cleared(7);
	part(0, 5);
	part(5, 5);
	got(1, 10);
	cr_expect(!memcmp(big, theirs, 10));
	part(0, 5);
	peer_sees_break(&peer);
}

/* A fabric that does RDMA itself, and has peers on any host */

static void credits_set(uint32_t credits, uint32_t most)
{
	struct rdm_conn *conn = rdm_conn_of(ep);

	dofi_mutex_lock(&conn->ep->lock);
	conn->credits = credits;
	conn->max_credits = most;
	dofi_mutex_unlock(&conn->ep->lock);
}

Test(rdm_rndv_sockets, no_peer_gets_the_address_of_our_memory)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_HELLO);
	const struct rdm_frame *a;

	f.value[0] = 1;
	peer_send(&peer, &f, NULL, 0);
	/* the HELLO has been handled when a later message is */
	receive(0, 10, 1);
	say("well", 4);
	got(1, 4);
	credits_set(RDM_WINDOW / 2, RDM_WINDOW);
	post_send(0, BIG, 2);
	a = &peer_take(&peer, RDM_FRAME_RTS)->frame;
	cr_expect(a->length == BIG && !a->n_segments);
}

/* The peer returns no credits. */
Test(rdm_rndv_sockets, messages_come_in_copies_while_half_of_the_credits_are_free)
{
	const struct peer_frame *f;
	uint32_t frames = 0;
	DAT_UINT64 cookie;
	size_t n;

	for (cookie = 1; frames < RDM_WINDOW / 2; cookie++) {
		post_send(0, BIG, cookie);
		done(cookie);
		f = peer_take(&peer, RDM_FRAME_FIRST);
		cr_expect_eq(f->frame.length, BIG);
		for (n = 0;; f = peer_take(&peer, RDM_FRAME_MORE)) {
			frames++;
			cr_assert(f->frame.data_size <= BIG - n);
			cr_expect(!memcmp(f->data, big + n, f->frame.data_size));
			n += f->frame.data_size;
			if (n == BIG)
				break;
		}
	}
	cr_expect_eq(frames, 18, "three frames a message: %u", frames);
	post_send(0, BIG, cookie);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_RTS)->frame.length, BIG);
}

/* A message that has begun goes on in frames, with whatever credits. */
Test(rdm_rndv_sockets, a_message_in_copies_goes_on_with_new_credits)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_CREDIT);

	credits_set(1, 1);
	post_send(0, BIG, 1);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_FIRST)->frame.length, BIG);
	cr_expect(event_none(evd));
	credits_set(0, RDM_WINDOW);
	f.credits = 2;
	peer_send(&peer, &f, NULL, 0);
	peer_take(&peer, RDM_FRAME_MORE);
	peer_take(&peer, RDM_FRAME_MORE);
	done(1);
}

Test(rdm_rndv_sockets, a_peers_address_is_never_read)
{
	receive(0, 100, 1);
	send_rts(7, theirs, 100);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_rndv_sockets, messages_have_no_parts) { no_parts_of(0); }

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

TestSuite(rdm_rndv_send, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rndv_apart, .init = init_apart, .fini = rdm_fini, .timeout = 60);

/* Sending */

Test(rdm_rndv_send, a_long_message_is_announced_with_its_place)
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

/* Memory of a freed LMR */

/* After the RTS the peer may read the message at any time. */
Test(rdm_rndv_send, an_announced_message_ends_the_connection)
{
	post_send(0, BIG, 1);
	peer_take(&peer, RDM_FRAME_RTS);
	succeed(dofi_lmr_free(big_lmr));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED, "before the call returns");
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* A receive that still expects DATA. */
Test(rdm_rndv_apart, a_receive_that_a_message_has_met_ends_the_connection)
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

/* Neither process reads the other's memory: all data goes in frames */

Test(rdm_rndv_apart, a_long_message_goes_in_parts)
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

static void clear_to_send(uint32_t number)
{
	struct rdm_frame f = about(RDM_FRAME_CTS, number);

	f.value[0] = number;
	peer_send(&peer, &f, NULL, 0);
}

/* All @length bytes of message @number arrive, and no frame of another message before. */
static void parts_come(uint32_t number, size_t length)
{
	const struct peer_frame *f;
	size_t n;

	for (n = 0; n < length; n += f->frame.data_size) {
		f = peer_take(&peer, RDM_FRAME_DATA);
		cr_assert(f->frame.number == number && f->frame.addr == n && f->frame.data_size);
	}
}

Test(rdm_rndv_apart, a_message_without_a_clear_to_send_waits_while_a_later_one_is_sent)
{
	uint32_t first, second;

	post_send(0, BIG / 2, 1);
	post_send(0, BIG / 2, 2);
	first = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	second = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	clear_to_send(second);
	parts_come(second, BIG / 2);
	cr_expect(peer_has_none(&peer) && event_none(evd));
	clear_to_send(first);
	parts_come(first, BIG / 2);
	done(1);
	done(2);
}

/* The slot of an earlier message has the position in its parts. */
Test(rdm_rndv_apart, a_message_in_the_slot_of_an_earlier_one_goes_in_parts)
{
	const struct dofi_queue *sq = &((struct dofi_ep *)ep)->sq;
	const uint32_t slots = sq->mask + 1;
	uint32_t number;
	unsigned i;

	for (i = 0; i <= slots; i++) {
		post_send(0, BIG / 2, i);
		number = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
		clear_to_send(number);
		parts_come(number, BIG / 2);
		done(i);
	}
	cr_expect_eq(sq->mask + 1, slots);
}

/* It ends when the message has ended, and the peer gets nothing. */
Test(rdm_rndv_apart, a_write_to_nowhere_waits_for_the_message_before_it)
{
	DAT_RMR_TRIPLET nowhere = { .segment_length = 8 };
	DAT_LMR_TRIPLET s = big_segment(0, 8);
	uint32_t number;

#if DAT_VERSION_MAJOR >= 2
	nowhere.virtual_address = UINT64_MAX - 3;
#else
	nowhere.target_address = UINT64_MAX - 3;
#endif
	post_send(0, BIG / 2, 1);
	number = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	succeed(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(2), &nowhere,
					DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect(peer_has_none(&peer) && event_none(evd));
	clear_to_send(number);
	parts_come(number, BIG / 2);
	done(1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_ACCESS), 2);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_rndv_apart, a_second_clear_to_send_breaks_the_connection)
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
Test(rdm_rndv_apart, an_answer_before_all_parts_are_sent_breaks_the_connection)
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
