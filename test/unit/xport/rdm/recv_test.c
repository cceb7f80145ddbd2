/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames from a connectionless fabric: their effects, and hostile ones. */

#include "xport/rdm/parts.h"

#include "nomem.h"
#include "obj/cq_data.h"

TestSuite(rdm_recv, .init = coupled_init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_recv_srq, .init = init_srq, .fini = rdm_fini, .timeout = 60);

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

Test(rdm_recv, a_frame_may_not_come_twice)
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
