/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What arrives from a connectionless fabric: the effect of frames, and what hostile frames must not
 * do.
 */

#include "xport/coupled.h"

#include "nomem.h"
#include "obj/cq_data.h"
#include "obj/caps.h"

TestSuite(rdm_recv, .init = coupled_init, .fini = rdm_fini, .timeout = 60);

/* Eager messages */

Test(rdm_recv, messages_meet_receives_in_order)
{
	receive(0, 10, 1);
	receive(10, 10, 2);
	receive(20, 0, 3);
	say("first", 5);
	say("second", 6);
	say(NULL, 0);
	got(1, 5);
	got(2, 6);
	got(3, 0);
	cr_expect(!memcmp(big, "first\0\0\0\0\0second\0", 17));
}

Test(rdm_recv, messages_wait_for_receives)
{
	say("first", 5);
	say("second", 6);
	cr_assert(peer_has_none(&peer));
	cr_expect(event_none(evd));
	cr_expect(all_zero(big, sizeof(big)));
	receive(0, 10, 1);
	got(1, 5);
	receive(10, 10, 2);
	got(2, 6);
	cr_expect(!memcmp(big, "first\0\0\0\0\0second\0", 17));
}

Test(rdm_recv, a_message_too_long_for_its_receive_writes_nothing)
{
	receive(0, 4, 1);
	receive(4, 4, 2);
	say("first", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 1);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_recv, the_cq_data_of_a_message_must_be_valid)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_SEND);

	receive(0, 10, 1);
	f.cq_data = dofi_cq_data(DOFI_CQ_DATA_PLAIN, false, 0, 77);
	peer_send(&peer, &f, "first", 5);
	done_await(evd, DAT_DTO_ERR_TRANSPORT);
	peer_sees_break(&peer);
}

Test(rdm_recv, only_contexts_of_this_connection_can_be_invalidated)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_SEND);

	receive(0, 10, 1);
	f.cq_data = dofi_cq_data(DOFI_CQ_DATA_INVALIDATE, false, 0, big_remote);
	peer_send(&peer, &f, "first", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 1);
	peer_sees_break(&peer);
	cr_expect(peer_may(big_remote, 0, (uintptr_t)big, 1, FI_REMOTE_READ), "an LMR's stays");
}

Test(rdm_recv, credits_come_back)
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

/* Rendezvous messages */

static void send_rts(uint32_t number, const void *at, size_t length)
{
	const struct rdm_frame f = announcement(number, at, length);

	peer_send(&peer, &f, NULL, 0);
}

Test(rdm_recv, an_announced_message_is_fetched)
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

Test(rdm_recv, an_announced_message_too_long_is_not)
{
	receive(0, 99, 1);
	send_rts(7, theirs, 100);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 1);
	answered(7, RDM_TOO_LONG);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_recv, nor_one_that_is_nowhere)
{
	receive(0, 200, 1);
	send_rts(7, (void *)0x10, 100);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_TRANSPORT), 1);
	answered(7, RDM_NO_MEMORY);
	peer_sees_break(&peer);
	cr_expect(all_zero(big + 100, 100));
}

Test(rdm_recv, nor_one_whose_sender_has_left, .init = rdm_init)
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
Test(rdm_recv, memory_that_cannot_be_read_is_not_to_be_named, .init = rdm_init)
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

/* Rendezvous messages that are sent as DATA after a CTS */

static uint32_t part_number;		/* the number of the DATA frames, from the last CTS */

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

Test(rdm_recv, parts_make_a_message)
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

Test(rdm_recv, no_part_is_longer_than_its_message) { no_part(0, 101); }
Test(rdm_recv, nor_elsewhere) { no_part(1, 99); }
Test(rdm_recv, nor_behind_it) { no_part(100, 1); }

/* DATA frames with a number @number, for which no message is in progress. */
static void no_parts_of(uint32_t number)
{
	receive(0, 200, 1);
	part_number = number;
	part(0, 10);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_recv, no_receive_has_parts_by_itself) { no_parts_of(0); }
Test(rdm_recv, nor_has_one_that_is_none) { no_parts_of(1); }
Test(rdm_recv, nor_one_far_away) { no_parts_of(0x80000000); }

Test(rdm_recv, nor_one_that_has_ended)
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

static bool untouched(void)
{
	return all_zero(big, sizeof(big)) && all_zero(memory, sizeof(memory));
}

/* Hostile frames: each breaks its own connection only */

static DAT_EP_HANDLE pair[2];

static void pair_make(void)
{
	pair[0] = ep_make();
	pair[1] = ep_make();
	pair_connect(pair[0], pair[1]);
	receive(0, 100, 1);
}

/*
 * @f, which is sent next, breaks its connection. Other connections stay up, and nothing is written.
 */
static void hostile(const struct rdm_frame *f, size_t size)
{
	peer_send(&peer, f, theirs, size);
	breaks();
	cr_expect(untouched());
	pair_works(pair[0], pair[1]);
	pair_works(pair[1], pair[0]);
}

Test(rdm_recv, a_frame_may_not_be_left_out)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_SEND);

	pair_make();
	f.sequence++;
	hostile(&f, 10);
}

Test(rdm_recv, nor_come_twice)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_SEND);

	pair_make();
	f.sequence--;
	hostile(&f, 10);
}

Test(rdm_recv, credits_must_have_been_had)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_CREDIT);

	pair_make();
	f.credits = 1;
	hostile(&f, 0);
}

Test(rdm_recv, a_full_window_is_full)
{
	unsigned i;

	for (i = 0; i < RDM_WINDOW; i++)
		say("x", 1);
	cr_assert(peer_has_none(&peer));
	say("x", 1);
	peer_sees_break(&peer);
	pair[0] = ep_make();
	pair[1] = ep_make();
	pair_connect(pair[0], pair[1]);
	pair_works(pair[0], pair[1]);
}

/* A frame that was handled counts until its credit is returned. */
Test(rdm_recv, answers_do_not_make_room_by_themselves)
{
	unsigned i;

	for (i = 0; i < RDM_WINDOW; i++)
		say("x", 1);
	for (i = 0; i < RDM_WINDOW / 2 - 1; i++)
		receive(i, 1, i);
	for (i = 0; i < RDM_WINDOW / 2 - 1; i++)
		got(i, 1);
	cr_assert(peer_has_none(&peer));
	say("x", 1);
	peer_sees_break(&peer);
}

/* ACKs without a request, and CTSs without an RTS */
static uint32_t next_request(void)
{
	return ((struct dofi_ep *)ep)->sq.next;
}

Test(rdm_recv, nothing_was_asked)
{
	const struct rdm_frame f = about(RDM_FRAME_ACK, next_request());

	pair_make();
	hostile(&f, 0);
}

Test(rdm_recv, nothing_was_announced)
{
	const struct rdm_frame f = about(RDM_FRAME_CTS, next_request());

	pair_make();
	hostile(&f, 0);
}

Test(rdm_recv, an_answer_comes_once)
{
	struct rdm_frame f;

	pair_make();
	post_read(100, 3, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_READ)->frame.number);
	peer_send(&peer, &f, "abc", 3);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 2);
	cr_expect(!memcmp(big + 100, "abc", 4));
	memset(big + 100, 0, 3);
	f.sequence++;
	hostile(&f, 3);
}

/*
 * No frame requested this operation, and the ACK's data would be written to memory that the program
 * may have got back.
 */
Test(rdm_recv, an_answer_ends_nothing_that_the_fabric_has)
{
	struct dofi_ep *e = ep;
	struct rdm_frame f;

	pair_make();
	post_read(100, 3, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_READ)->frame.number);
	dofi_mutex_lock(&e->lock);
	dofi_queue_at(&e->sq, f.number)->step = DOFI_STEP_NONE;
	dofi_mutex_unlock(&e->lock);
	peer_send(&peer, &f, theirs, 3);
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	breaks();
	cr_expect(untouched());
}

Test(rdm_recv, a_read_is_not_to_be_cleared)
{
	struct rdm_frame f;

	pair_make();
	post_read(100, 3, 2);
	f = about(RDM_FRAME_CTS, peer_take(&peer, RDM_FRAME_READ)->frame.number);
	peer_send(&peer, &f, NULL, 0);
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	breaks();
	cr_expect(untouched());
}

Test(rdm_recv, results_are_reported_as_they_are)
{
	struct rdm_frame f;

	post_read(100, 3, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_READ)->frame.number);
	f.key = RDM_NO_ACCESS;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_ACCESS), 2);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_recv, a_message_that_was_not_taken_fails)
{
	struct rdm_frame f;

	post_send(0, 20000, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_RTS)->frame.number);
	f.key = RDM_TOO_LONG;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_RESPONDER), 2);
	peer_sees_break(&peer);
}

Test(rdm_recv, greetings_out_of_place_are_nothing)
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

Test(rdm_recv, a_message_that_there_is_no_memory_for_ends_the_connection)
{
	struct rdm_pz *rpz = ((struct dofi_pz *)pz)->xport_pz;
	struct rdm_pending *taken[1024];
	int n = 0;

	/* all spare frames of the PZ are in use */
	do
		taken[n] = rdm_pending_get(rpz, 8);
	while (taken[n++]->is_spare);
	nomem_after(0);
	say("first", 5);
	peer_sees_break(&peer);
	cr_expect(nomem_failed());
	while (n)
		rdm_pending_put(rpz, taken[--n]);
}

/* Endpoints of an SRQ */

static struct peer second;
static DAT_EP_HANDLE second_ep;
static DAT_SRQ_HANDLE srq;

static DAT_EP_HANDLE ep_of_srq(void)
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE handle;

	cr_assert_eq(dofi_caps_ep_attr(ia, NULL, &attr), 0);
	attr.srq_soft_hw = DAT_HW_DEFAULT;
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &handle));
	return handle;
}

static void init_srq(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT,
	};

	rdm_init();
	succeed(dofi_srq_create(ia, pz, &attr, &srq));
	ep = ep_of_srq();
	second_ep = ep_of_srq();
	peer_couple(&peer, ep);
	peer_couple(&second, second_ep);
	fill(theirs, 5);
	part_number = 0;
}

TestSuite(rdm_recv_srq, .init = init_srq, .fini = rdm_fini, .timeout = 60);

static void lend(size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);
	const DAT_DTO_COOKIE c = { .as_64 = cookie };

	succeed(dofi_srq_post_recv(srq, 1, &iov, c));
}

Test(rdm_recv_srq, messages_take_buffers_as_they_come)
{
	struct rdm_frame f;

	lend(0, 100, 1);
	say("first", 5);
	got(1, 5);
	/* no buffer for either message: the endpoint that waited first is served first */
	send_rts(7, theirs, 3000);
	cr_assert(peer_has_none(&peer));
	f = peer_frame(&second, RDM_FRAME_SEND);
	peer_send(&second, &f, "second", 6);
	cr_assert(peer_has_none(&second));
	cr_expect(event_none(evd));
	lend(100, 4000, 2);
	got(2, 3000);
	answered(7, RDM_OK);
	lend(5000, 100, 3);
	got(3, 6);
	cr_expect(!memcmp(big, "first", 5) && !memcmp(big + 100, theirs, 3000) &&
		  !memcmp(big + 5000, "second", 6));
}

Test(rdm_recv_srq, a_peer_that_sends_too_much_takes_no_more_than_a_buffer)
{
	struct rdm_frame f;

	lend(0, 4, 1);
	lend(100, 100, 2);
	say("first", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 1);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, sizeof(big)));
	f = peer_frame(&second, RDM_FRAME_SEND);
	peer_send(&second, &f, "second", 6);
	got(2, 6);
}

Test(rdm_recv_srq, a_peer_that_leaves_leaves_the_line)
{
	struct rdm_frame f;

	say("first", 5);
	f = peer_frame(&second, RDM_FRAME_SEND);
	peer_send(&second, &f, "second", 6);
	cr_assert(peer_has_none(&peer));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	lend(0, 100, 1);
	got(1, 6);
	cr_expect(!memcmp(big, "second", 6));
}

Test(rdm_recv_srq, parts_go_to_the_buffer_of_their_own_message)
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

TestSuite(rdm_recv_sockets, .init = coupled_init_sockets, .fini = rdm_fini, .timeout = 60);

Test(rdm_recv_sockets, no_peer_gets_the_address_of_our_memory)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_HELLO);
	const struct rdm_frame *a;

	f.value[0] = 1;
	peer_send(&peer, &f, NULL, 0);
	/* the HELLO has been handled when a later message is */
	receive(0, 10, 1);
	say("well", 4);
	got(1, 4);
	post_send(0, BIG, 2);
	a = &peer_take(&peer, RDM_FRAME_RTS)->frame;
	cr_expect(a->length == BIG && !a->n_segments);
}

Test(rdm_recv_sockets, nor_is_theirs_looked_at)
{
	receive(0, 100, 1);
	send_rts(7, theirs, 100);
	breaks();
	cr_expect(all_zero(big, sizeof(big)));
}

Test(rdm_recv_sockets, messages_have_no_parts) { no_parts_of(0); }
