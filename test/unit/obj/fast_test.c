/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fast path of posts: which operations take it. Their completions are in dequeue_test.c. */

#include "obj/ops.h"

TestSuite(fast, .init = ops_init, .fini = ia_fini);

Test(fast, a_send_of_one_segment_takes_the_fast_path)
{
	succeed(post_send(1));
	succeed(post_send(2));
	cr_expect_eq(transport.plain, 2);
	cr_expect_eq(transport.dto[0]->iov[0].iov_base, (void *)memory);
	cr_expect_eq(transport.dto[0]->iov[0].iov_len, 8);
	cr_expect_eq(inside()->posted[DOFI_DTO_SEND].ops, 2);
	cr_expect_eq(inside()->posted[DOFI_DTO_SEND].bytes, 16);
	complete(0);
	complete(1);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(fast, rdma_of_one_segment_takes_the_fast_path)
{
	succeed(post_write(1, 8, 16));
	succeed(post_read(2, 16, 12, 0));
	cr_expect_eq(transport.plain, 2);
	cr_expect_eq(transport.dto[0]->iov[0].iov_len, 8);
	cr_expect_eq(transport.dto[1]->iov[0].iov_len, 12, "what the remote segment holds");
	cr_expect_eq(transport.dto[1]->iov[0].iov_base, (void *)memory);
	cr_expect_eq(transport.remote_addr[1], 0x5000);
	cr_expect_eq(transport.remote_key[1], 0x1234);
	cr_expect_eq(inside()->posted[DOFI_DTO_WRITE].bytes, 8);
	cr_expect_eq(inside()->posted[DOFI_DTO_READ].bytes, 12);
	cr_expect_eq(inside()->reads, 1);
	complete(0);
	complete(1);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 8);
	cr_expect_eq(take(2, DAT_DTO_SUCCESS).transfered_length, 12);
	cr_expect_eq(inside()->reads, 0);
}

Test(fast, a_receive_of_one_segment_takes_the_fast_path)
{
	DAT_LMR_TRIPLET s = segment(16, 100);

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(post_recv(2));
	cr_expect_eq(transport.plain, 2);
	cr_expect_eq(transport.dto[0]->iov[0].iov_base, (void *)(memory + 16));
	cr_expect_eq(transport.dto[0]->iov[0].iov_len, 100);
	cr_expect_eq(inside()->posted[DOFI_DTO_RECV].ops, 2);
	cr_expect_eq(inside()->posted[DOFI_DTO_RECV].bytes, 164);
	complete_with(0, 0, 60);
	complete_with(1, 0, 0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 60);
	cr_expect_eq(take(2, DAT_DTO_SUCCESS).transfered_length, 0);
	cr_expect_eq(inside()->receipts[DOFI_DTO_RECV].bytes, 60);
}

Test(fast, a_receive_that_the_fabric_refuses_fails)
{
	transport.fail = -FI_EINVAL;
	succeed(post_recv(1));
	cr_expect_eq(transport.plain, 0);
	cr_expect_eq(transport.n, 0);
	settle();
	take(1, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(fast, no_more_receives_than_there_are_slots)
{
	unsigned i, most = inside()->attr.max_recv_dtos;

	for (i = 0; i < most; i++)
		succeed(post_recv(i));
	cr_expect_eq(transport.plain, most - inside()->rq.steps,
		     "all but those that doubled the slots");
	expect_type(post_recv(most), DAT_INSUFFICIENT_RESOURCES);
	complete(0);
	take(0, DAT_DTO_SUCCESS);
	succeed(post_recv(most));
	cr_expect_eq(transport.n, most + 1);
}

/* Both queues remember the LMR that they used last. */
Test(fast, sends_and_receives_may_have_memory_of_their_own)
{
	static char more[64];
	DAT_LMR_TRIPLET s = { .segment_length = 8, .virtual_address = (uintptr_t)more };
	DAT_LMR_CONTEXT unused;
	DAT_LMR_HANDLE other;
	int i;

	succeed(lmr_make(pz, more, sizeof(more), DAT_MEM_PRIV_ALL_FLAG, &other, &s.lmr_context,
			 &unused));
	for (i = 0; i < 2; i++) {
		succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(i), DAT_COMPLETION_DEFAULT_FLAG));
		succeed(post_send(i));
	}
	cr_expect_eq(transport.plain, 4);
	cr_expect_eq(inside()->rq.lmr, dofi_lmr_at(s.lmr_context));
	cr_expect_eq(inside()->sq.lmr, dofi_lmr_at(lmr_context));
	cr_expect_eq(transport.dto[2]->iov[0].iov_base, (void *)more);
	cr_expect_eq(transport.dto[3]->iov[0].iov_base, (void *)memory);
}

Test(fast, no_more_reads_than_agreed)
{
	unsigned i, plain, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	plain = most - inside()->sq.steps;	/* doubling the slots is the slow path */
	succeed(post_read(most, 8, 8, 0));
	cr_expect_eq(transport.plain, plain);
	cr_expect_eq(transport.n, most);
	succeed(post_write(100, 8, 8));
	cr_expect_eq(transport.n, most, "it is behind a read that waits");
	complete(0);
	cr_expect_eq(transport.n, most + 2);
	cr_expect_eq(transport.plain, plain);
}

Test(fast, a_read_and_a_receive_need_memory_to_write_to)
{
	DAT_RMR_TRIPLET r = remote_segment(8);
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_LMR_CONTEXT unused;
	DAT_LMR_HANDLE read_only;

	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_LOCAL_READ_FLAG, &read_only,
			 &s.lmr_context, &unused));
	succeed(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(1), &r, 0));
	expect_type(dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(2), &r, 0),
		    DAT_PRIVILEGES_VIOLATION);
	succeed(post_recv(3));
	expect_type(dofi_ep_post_recv(ep, 1, &s, cookie_of(4), 0), DAT_PRIVILEGES_VIOLATION);
	cr_expect_eq(transport.plain, 2);
	cr_expect_eq(transport.n, 2);
}

/* No peer and no fence that waits has to do with them. */
Test(fast, a_request_may_have_flags_of_its_own)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	succeed(post_write(3, 8, 8));
	cr_expect_eq(transport.plain, 3);
	complete(0);
	complete(1);
	complete(2);
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	expect_arg(send_flags(4, (DAT_COMPLETION_FLAGS)0x1000), 5);
}

Test(fast, a_fence_waits_for_a_read)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	cr_expect_eq(transport.plain, 1);
	cr_expect_eq(transport.n, 1);
	complete(0);
	cr_expect_eq(transport.n, 2);
	complete(1);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(fast, solicited_and_several_or_empty_segments_take_the_queue)
{
	DAT_LMR_TRIPLET two[] = { segment(0, 8), segment(8, 8) };
	const DAT_RMR_TRIPLET r = remote_segment(16);

	succeed(send_flags(1, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	succeed(dofi_ep_post_send(ep, 2, two, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(3), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(send_segment(segment(0, 0)));
	succeed(dofi_ep_post_rdma_write(ep, 2, two, cookie_of(6), &r, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(post_write(7, 0, 8));
	succeed(post_read(8, 8, 0, 0));
	succeed(dofi_ep_post_recv(ep, 2, two, cookie_of(9), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(10), DAT_COMPLETION_DEFAULT_FLAG));
	two[0].segment_length = 0;
	succeed(dofi_ep_post_recv(ep, 1, two, cookie_of(11), DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(transport.n, 10);
	cr_expect_eq(transport.plain, 0);
}

Test(fast, the_peers_srq_needs_preambles)
{
	dofi_mutex_lock(&inside()->lock);
	inside()->preambles = true;
	dofi_ep_open_queues(inside());
	dofi_mutex_unlock(&inside()->lock);
	succeed(post_send(1));
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(transport.plain, 0);
}

/* A segment is refused whatever LMR the queue used last. */
Test(fast, memory_is_checked_each_time)
{
	static char more[64];
	DAT_LMR_CONTEXT second, unused, foreign;
	DAT_LMR_HANDLE lmrs[2];
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_PZ_HANDLE zone;

	succeed(dofi_pz_create(dofi_ia_export(ia), &zone));
	succeed(lmr_make(pz, more, sizeof(more), DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmrs[0], &second,
			 &unused));
	succeed(lmr_make(zone, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &lmrs[1], &foreign,
			 &unused));
	succeed(send_segment(s));
	s.lmr_context = second;
	expect_arg(send_segment(s), 3);
	s.virtual_address = (uintptr_t)more;
	succeed(send_segment(s));
	s.virtual_address += sizeof(more) - 7;
	expect_arg(send_segment(s), 3);
	s.virtual_address = (uintptr_t)more - 1;
	expect_arg(send_segment(s), 3);
	s = segment(0, 8);
	s.lmr_context = foreign;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	s.lmr_context = 0;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	succeed(send_segment(segment(0, 8)));
	cr_expect_eq(transport.plain, 3);
}

/* Its context is refused, and so is the context of no LMR. */
Test(fast, a_freed_lmr_is_forgotten)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(send_segment(s));
	succeed(dofi_lmr_free(lmr));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	s.lmr_context = 0;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	cr_expect_eq(transport.n, 1);
}

Test(fast, what_waits_is_not_overtaken)
{
	uint64_t n;

	transport.taken = 1;
	for (n = 0; n < 3; n++)
		succeed(post_send(n));
	cr_expect_eq(transport.n, 1);
	transport.taken = SUBMITS;
	succeed(post_send(3));
	cr_expect_eq(transport.n, 4);
	cr_expect_eq(transport.plain, 1);
	complete(0);
	take(0, DAT_DTO_SUCCESS);
	succeed(post_send(4));
	cr_expect_eq(transport.plain, 2);
	for (n = 1; n < 5; n++)
		complete(n);
	for (n = 1; n < 5; n++)
		take(n, DAT_DTO_SUCCESS);
}

Test(fast, a_receive_that_waits_is_not_overtaken)
{
	transport.taken = 0;
	succeed(post_recv(1));
	transport.taken = SUBMITS;
	succeed(post_recv(2));
	cr_expect_eq(transport.n, 2);
	cr_expect_eq(transport.plain, 0);
	complete(0);
	complete(1);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(fast, a_send_does_not_keep_a_receive_waiting)
{
	transport.taken = 0;
	succeed(post_recv(1));
	transport.taken = SUBMITS;
	succeed(post_send(2));
	complete(0);
	cr_expect_eq(transport.n, 2, "its completion makes room for the receive");
	take(2, DAT_DTO_SUCCESS);
}

/* Sends that are done with their post */

static DAT_RETURN send_done(uint64_t n)
{
	DAT_RETURN ret;

	transport.fail = DOFI_DONE;
	ret = post_send(n);
	transport.fail = 0;
	return ret;
}

Test(fast, a_send_that_is_done_with_its_post_takes_no_slot)
{
	const uint32_t tail = inside()->sq.tail;
	uint64_t n;

	for (n = 0; n < 10; n++) {
		succeed(send_done(n));
		cr_expect_eq(inside()->sq.tail, tail);
		cr_expect_eq(take(n, DAT_DTO_SUCCESS).transfered_length, 8);
	}
	cr_expect_eq(inside()->posted[DOFI_DTO_SEND].ops, 10);
	cr_expect_eq(inside()->posted[DOFI_DTO_SEND].bytes, 80);
}

Test(fast, a_send_that_is_done_with_its_post_may_have_flags)
{
	transport.fail = DOFI_DONE;
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	transport.fail = 0;
	take(2, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(fast, a_fast_request_does_not_overtake_one_in_flight)
{
	succeed(post_write(1, 8, 8));
	succeed(send_done(2));
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(fast, its_event_counts_until_it_is_dequeued)
{
	DAT_EP_ATTR attr = attr_of_depth(4);
	uint64_t n;

	make_with(evd, evd, &attr);
	for (n = 0; n < 4; n++)
		succeed(send_done(n));
	expect_type(send_done(4), DAT_INSUFFICIENT_RESOURCES);
	take(0, DAT_DTO_SUCCESS);
	succeed(send_done(4));
	for (n = 1; n < 5; n++)
		take(n, DAT_DTO_SUCCESS);
}

Test(fast, its_event_may_find_no_room)
{
	DAT_EVD_HANDLE small = evd_make(1, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(4);
	uint64_t n;

	make_with(small, small, &attr);
	for (n = 0; n < 8; n++)
		succeed(send_done(n));
	event_take(small, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(small));
}

Test(fast, without_an_event_queue_it_has_no_event)
{
	make_with(NULL, NULL, NULL);
	succeed(send_done(1));
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}
