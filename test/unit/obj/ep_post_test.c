/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What may be posted, and what the fabric is given of it. */

#include "obj/ops.h"

#include <pthread.h>
#include <sched.h>

TestSuite(ep_post, .init = ops_init, .fini = ia_fini);
TestSuite(ep_plain, .init = ops_init, .fini = ia_fini);
TestSuite(ep_serial, .init = ops_init_serial, .fini = ia_fini);

/* What may be posted */

Test(ep_post, handles_are_checked)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);
	DAT_DTO_COOKIE c = cookie_of(0);

	expect_handle(dofi_ep_post_send(NULL, 1, &s, c, 0), EP);
	expect_handle(dofi_ep_post_recv(evd, 1, &s, c, 0), EP);
	expect_handle(dofi_ep_post_rdma_read(NOWHERE, 1, &s, c, &r, 0), EP);
	expect_handle(dofi_ep_post_rdma_write(pz, 1, &s, c, &r, 0), EP);
}

Test(ep_post, segments_are_counted)
{
	DAT_LMR_TRIPLET s[8] = { { 0 } };
	DAT_RMR_TRIPLET r = remote_segment(0);
	DAT_DTO_COOKIE c = cookie_of(0);

	expect_arg(dofi_ep_post_send(ep, inside()->attr.max_request_iov + 1, s, c, 0), 2);
	expect_arg(dofi_ep_post_send(ep, -1, s, c, 0), 2);
	expect_arg(dofi_ep_post_send(ep, 1, NULL, c, 0), 3);
	expect_arg(dofi_ep_post_recv(ep, inside()->attr.max_recv_iov + 1, s, c, 0), 2);
	expect_arg(dofi_ep_post_recv(ep, -1, s, c, 0), 2);
	expect_arg(dofi_ep_post_recv(ep, 1, NULL, c, 0), 3);
	expect_arg(dofi_ep_post_rdma_read(ep, inside()->attr.max_rdma_read_iov + 1, s, c, &r, 0), 2);
	expect_arg(dofi_ep_post_rdma_write(ep, inside()->attr.max_rdma_write_iov + 1, s, c, &r, 0), 2);
	cr_expect_eq(transport.n, 0);
}

Test(ep_post, rdma_needs_a_remote_segment)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_arg(dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(0), NULL, 0), 5);
	expect_arg(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(0), NULL, 0), 5);
}

Test(ep_post, flags_are_checked)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_arg(send_flags(1, 0x8000), 5);
	expect_arg(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
	expect_arg(post_read(1, 8, 8, 0x8000), 6);
	expect_arg(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_SUPPRESS_FLAG), 5);
	expect_arg(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
	cr_expect_eq(transport.n, 0);
}

Test(ep_post, requests_need_a_connection, .init = ops_init_unconnected)
{
	expect_state(post_send(1), EP_UNCONNECTED);
	expect_state(post_read(1, 8, 8, 0), EP_UNCONNECTED);
	expect_state(post_write(1, 8, 8), EP_UNCONNECTED);
	start_connecting(ep);
	expect_state(post_send(1), EP_ACTCONNPENDING);
	cr_expect(event_none(evd));
}

/* The transport owes something until it is reminded of it. */
static unsigned receives_when_reminded;

static void pay(struct dofi_ep *of)
{
	of->owes = false;
	receives_when_reminded = dofi_queue_used(&of->rq);
}

Test(ep_post, a_receive_reminds_a_transport_that_owes)
{
	struct dofi_xport reminded = transport_ops;

	reminded.resume = pay;
	inside()->xport = &reminded;
	succeed(post_recv(1));
	cr_expect_eq(receives_when_reminded, 0);
	dofi_mutex_lock(&inside()->lock);
	inside()->owes = true;
	dofi_ep_open_queues(inside());
	dofi_mutex_unlock(&inside()->lock);
	succeed(post_recv(2));
	cr_expect_eq(receives_when_reminded, 2);
	cr_expect(!inside()->owes);
	inside()->xport = &transport_ops;
}

Test(ep_post, receives_may_be_posted_at_any_time, .init = ops_init_unconnected)
{
	succeed(post_recv(1));
	start_connecting(ep);
	succeed(post_recv(2));
	cr_expect_eq(transport.n, 0);
	establish(ep, NULL, 0);
	cr_expect_eq(transport.n, 2);
}

Test(ep_post, on_a_disconnected_endpoint_all_is_flushed_at_once)
{
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(post_send(1));
	take(1, DAT_DTO_ERR_FLUSHED);
	succeed(post_recv(2));
	take(2, DAT_DTO_ERR_FLUSHED);
	succeed(post_read(3, 8, 8, 0));
	take(3, DAT_DTO_ERR_FLUSHED);
	cr_expect(event_none(evd));
	cr_expect_eq(transport.n, 0);
}

/* Segments */

Test(ep_post, the_fabric_is_given_what_was_posted)
{
	DAT_LMR_TRIPLET s[3] = { segment(16, 8), segment(100, 0), segment(32, 4) };
	struct dofi_dto *dto;

	succeed(dofi_ep_post_send(ep, 3, s, cookie_of(1), 0));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_SEND);
	cr_assert_eq(dto->n_iov, 2, "%d", dto->n_iov);
	cr_expect_eq(dto->iov[0].iov_base, memory + 16);
	cr_expect_eq(dto->iov[0].iov_len, 8);
	cr_expect_eq(dto->iov[1].iov_base, memory + 32);
	cr_expect_eq(dto->iov[1].iov_len, 4);
	cr_expect_eq(dto->length, 12);
}

Test(ep_post, nothing_may_be_sent)
{
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(1), 0));
	cr_expect_eq(transport.dto[0]->n_iov, 0);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 0);
}

Test(ep_post, memory_must_be_registered_in_the_zone_with_the_privilege)
{
	static char other_memory[64];
	DAT_LMR_TRIPLET s = segment(0, 8);
	const DAT_RMR_TRIPLET r = remote_segment(8);
	DAT_LMR_CONTEXT context;
	DAT_PZ_HANDLE zone;
	DAT_LMR_HANDLE h;

	s.lmr_context ^= 1;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	expect_arg(send_segment(segment(sizeof(memory) - 4, 8)), 3);
	succeed(dofi_pz_create(ia, &zone));
	succeed(lmr_make(zone, other_memory, 64, DAT_MEM_PRIV_ALL_FLAG, &h, &context, NULL));
	s = (DAT_LMR_TRIPLET){ .lmr_context = context,
			       .virtual_address = (uintptr_t)other_memory, .segment_length = 8 };
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	succeed(lmr_make(pz, other_memory, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG, &h, &context, NULL));
	s.lmr_context = context;
	expect_type(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), 0), DAT_PRIVILEGES_VIOLATION);
	succeed(send_segment(s));
	cr_expect_eq(transport.n, 1);
	succeed(lmr_make(pz, other_memory, 64, DAT_MEM_PRIV_REMOTE_READ_FLAG, &h, &context, NULL));
	s.lmr_context = context;
	expect_type(send_segment(s), DAT_PRIVILEGES_VIOLATION);
	expect_type(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(1), &r, 0), DAT_PRIVILEGES_VIOLATION);
	succeed(lmr_make(pz, other_memory, 64, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &h, &context, NULL));
	s.lmr_context = context;
	succeed(send_segment(s));
}

Test(ep_post, the_context_of_a_freed_lmr_is_refused)
{
	const DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_lmr_free(lmr));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, NULL));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
}

Test(ep_post, a_segment_does_not_wrap_around)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	s.virtual_address = UINT64_MAX - 3;
	expect_arg(send_segment(s), 3);
	expect_arg(send_segment(segment((size_t)-1, 8)), 3);
	succeed(send_segment(segment(sizeof(memory) - 8, 8)));
}

Test(ep_post, empty_segments_are_passed_over)
{
	DAT_LMR_TRIPLET s[3] = { segment(0, 0), segment(16, 8), segment(0, 0) };

	s[0].lmr_context = 0;		/* nothing that it could name is touched */
	succeed(dofi_ep_post_send(ep, 3, s, cookie_of(1), 0));
	cr_expect_eq(transport.dto[0]->n_iov, 1);
	cr_expect_eq(transport.dto[0]->iov[0].iov_base, (void *)(memory + 16));
	cr_expect_eq(transport.dto[0]->iov[0].iov_len, 8);
}

/* Registers more memory than there is: the fake fabric does not look. */
static DAT_LMR_CONTEXT vast(DAT_VLEN len)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE handle;

	succeed(lmr_make(pz, (void *)0x10000, len, DAT_MEM_PRIV_ALL_FLAG, &handle, &context, NULL));
	return context;
}

static DAT_LMR_TRIPLET vast_segment(DAT_LMR_CONTEXT context, uint64_t length)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = context, .virtual_address = 0x10000, .segment_length = length,
	};
}

Test(ep_post, a_message_is_no_longer_than_the_fabric_takes)
{
	const uint64_t most = inside()->obj.ia->limits.max_message_size;
	DAT_LMR_CONTEXT context = vast(2 * most);
	DAT_LMR_TRIPLET s[2] = { vast_segment(context, most), vast_segment(context, 1) };

	succeed(dofi_ep_post_send(ep, 1, s, cookie_of(1), 0));
	expect_type(dofi_ep_post_send(ep, 2, s, cookie_of(1), 0), DAT_LENGTH_ERROR);
	expect_type(dofi_ep_post_recv(ep, 2, s, cookie_of(1), 0), DAT_LENGTH_ERROR);
	expect_type(send_segment(vast_segment(context, most + 1)), DAT_LENGTH_ERROR);
	cr_expect_eq(transport.n, 1);
}

Test(ep_post, a_send_is_no_longer_than_the_endpoint_was_made_for)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 60), segment(100, 41) };
	DAT_EP_PARAM param = { .ep_attr = { .max_message_size = 100, .max_rdma_size = 100 } };

	succeed(dofi_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE |
			       DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &param));
	make_connected(ep);
	expect_type(dofi_ep_post_send(ep, 2, s, cookie_of(1), 0), DAT_LENGTH_ERROR);
	expect_type(send_segment(segment(0, 101)), DAT_LENGTH_ERROR);
	s[1].segment_length--;
	succeed(dofi_ep_post_send(ep, 2, s, cookie_of(1), 0));
	cr_expect_eq(transport.n, 1);
	/* a buffer may be larger; and programs that say how much they write do not keep to it */
	s[1].segment_length++;
	succeed(dofi_ep_post_recv(ep, 2, s, cookie_of(2), 0));
	succeed(post_write(3, 101, 101));
	succeed(post_read(4, 101, 101, 0));
}

/* A sum of lengths that wraps must not look short. */
Test(ep_post, lengths_whose_sum_overflows_are_too_long)
{
	const unsigned bits = 8 * sizeof(((DAT_LMR_TRIPLET *)0)->segment_length);
	const uint64_t quarter = (uint64_t)1 << (bits - 2);
	DAT_LMR_CONTEXT context = vast(2 * quarter);
	DAT_LMR_TRIPLET s[4];
	int i;

	for (i = 0; i < 4; i++)
		s[i] = vast_segment(context, quarter);
	expect_type(dofi_ep_post_send(ep, 4, s, cookie_of(1), 0), DAT_LENGTH_ERROR);
	expect_type(dofi_ep_post_recv(ep, 4, s, cookie_of(1), 0), DAT_LENGTH_ERROR);
	cr_expect_eq(transport.n, 0);
}

Test(ep_post, a_refused_post_takes_no_room)
{
	unsigned i, depth = inside()->sq.limit;
	DAT_LMR_TRIPLET bad = segment(0, sizeof(memory) + 1);

	for (i = 0; i < 3 * depth; i++)
		expect_arg(send_segment(bad), 3);
	for (i = 0; i < depth; i++)
		succeed(post_send(i));
}

Test(ep_post, a_write_must_fit_the_remote_segment)
{
	expect_type(post_write(1, 9, 8), DAT_LENGTH_ERROR);
	succeed(post_write(1, 8, 8));
	succeed(post_write(2, 4, 8));
	cr_expect_eq(transport.dto[1]->length, 4);
	cr_expect_eq(transport.remote_addr[0], 0x5000);
	cr_expect_eq(transport.remote_key[0], 0x1234);
}

Test(ep_post, a_read_moves_what_the_remote_segment_holds)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(16, 8) };
	DAT_RMR_TRIPLET r = remote_segment(12);

	expect_type(post_read(1, 8, 9, 0), DAT_LENGTH_ERROR);
	succeed(dofi_ep_post_rdma_read(ep, 2, s, cookie_of(1), &r, 0));
	cr_expect_eq(transport.dto[0]->n_iov, 2);
	cr_expect_eq(transport.dto[0]->iov[1].iov_len, 4);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 12);
}

Test(ep_post, a_read_uses_no_more_segments_than_it_needs)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(16, 8) };
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_rdma_read(ep, 2, s, cookie_of(1), &r, 0));
	cr_expect_eq(transport.dto[0]->n_iov, 1);
}

/* Plain operations */

Test(ep_plain, a_send_of_one_segment_takes_the_short_way)
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

Test(ep_plain, so_does_rdma_of_one_segment)
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

Test(ep_plain, so_does_a_receive)
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

Test(ep_plain, a_receive_that_the_fabric_refuses_fails)
{
	transport.fail = -FI_EINVAL;
	succeed(post_recv(1));
	cr_expect_eq(transport.plain, 0);
	cr_expect_eq(transport.n, 0);
	settle();
	take(1, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_plain, no_more_receives_than_there_are_slots)
{
	unsigned i, most = inside()->attr.max_recv_dtos;

	for (i = 0; i < most; i++)
		succeed(post_recv(i));
	cr_expect_eq(transport.plain, most - inside()->rq.steps, "all but those that doubled the slots");
	expect_type(post_recv(most), DAT_INSUFFICIENT_RESOURCES);
	complete(0);
	take(0, DAT_DTO_SUCCESS);
	succeed(post_recv(most));
	cr_expect_eq(transport.n, most + 1);
}

/* Each of the two remembers its own. */
Test(ep_plain, sends_and_receives_may_have_memory_of_their_own)
{
	static char more[64];
	DAT_LMR_TRIPLET s = { .segment_length = 8, .virtual_address = (uintptr_t)more };
	DAT_LMR_CONTEXT unused;
	DAT_LMR_HANDLE other;
	int i;

	succeed(lmr_make(pz, more, sizeof(more), DAT_MEM_PRIV_ALL_FLAG, &other, &s.lmr_context, &unused));
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

Test(ep_plain, no_more_reads_than_agreed)
{
	unsigned i, plain, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	plain = most - inside()->sq.steps;	/* those that doubled the slots were not */
	succeed(post_read(most, 8, 8, 0));
	cr_expect_eq(transport.plain, plain);
	cr_expect_eq(transport.n, most);
	succeed(post_write(100, 8, 8));
	cr_expect_eq(transport.n, most, "it is behind a read that waits");
	complete(0);
	cr_expect_eq(transport.n, most + 2);
	cr_expect_eq(transport.plain, plain);
}

Test(ep_plain, a_read_and_a_receive_need_memory_to_write_to)
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

Test(ep_plain, all_others_do_not)
{
	DAT_LMR_TRIPLET two[] = { segment(0, 8), segment(8, 8) };
	const DAT_RMR_TRIPLET r = remote_segment(16);

	succeed(send_flags(1, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	succeed(dofi_ep_post_send(ep, 2, two, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(3), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(send_segment(segment(0, 0)));
	succeed(post_read(5, 8, 8, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	succeed(dofi_ep_post_rdma_write(ep, 2, two, cookie_of(6), &r, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(post_write(7, 0, 8));
	succeed(post_read(8, 8, 0, 0));
	succeed(dofi_ep_post_recv(ep, 2, two, cookie_of(9), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(10), DAT_COMPLETION_DEFAULT_FLAG));
	two[0].segment_length = 0;
	succeed(dofi_ep_post_recv(ep, 1, two, cookie_of(11), DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(transport.n, 11);
	cr_expect_eq(transport.plain, 0);
}

Test(ep_plain, the_peers_srq_needs_frames)
{
	dofi_mutex_lock(&inside()->lock);
	inside()->framed = true;
	dofi_ep_open_queues(inside());
	dofi_mutex_unlock(&inside()->lock);
	succeed(post_send(1));
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(transport.plain, 0);
}

/* What an LMR refuses is refused no matter which was used before. */
Test(ep_plain, memory_is_checked_each_time)
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

/* Neither by its context nor by that of no LMR. */
Test(ep_plain, a_freed_lmr_is_forgotten)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(send_segment(s));
	succeed(dofi_lmr_free(lmr));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	s.lmr_context = 0;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	cr_expect_eq(transport.n, 1);
}

Test(ep_plain, what_waits_is_not_overtaken)
{
	uint64_t n;

	transport.room = 1;
	for (n = 0; n < 3; n++)
		succeed(post_send(n));
	cr_expect_eq(transport.n, 1);
	transport.room = SUBMITS;
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

Test(ep_plain, nor_is_a_receive_that_waits)
{
	transport.room = 0;
	succeed(post_recv(1));
	transport.room = SUBMITS;
	succeed(post_recv(2));
	cr_expect_eq(transport.n, 2);
	cr_expect_eq(transport.plain, 0);
	complete(0);
	complete(1);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_plain, nor_is_a_receive_kept_waiting)
{
	transport.room = 0;
	succeed(post_recv(1));
	transport.room = SUBMITS;
	succeed(post_send(2));
	complete(0);
	cr_expect_eq(transport.n, 2, "its completion makes room for the receive");
	take(2, DAT_DTO_SUCCESS);
}

/* With a serial CQ */

static struct dofi_mutex *access_to_cq(void)
{
	return &inside()->cq->access;
}

static bool is_wanted(struct dofi_mutex *mutex)
{
	return atomic_load(&mutex->word) & ~DOFI_MUTEX_LOCKED;
}

Test(ep_plain, a_plain_operation_has_the_lock)
{
	succeed(post_send(1));
	cr_expect_eq(transport.plain, 1);
	cr_expect(transport.at_ep && !transport.in_cq);
}

Test(ep_serial, a_plain_operation_has_its_cq_alone)
{
	succeed(post_send(1));
	succeed(post_recv(2));
	succeed(post_write(3, 8, 8));
	succeed(post_read(4, 8, 8, 0));
	cr_expect_eq(transport.plain, 4);
	cr_expect(!transport.at_ep && transport.in_cq);
	cr_expect_eq(atomic_load(&access_to_cq()->word), 0);
	cr_expect_eq(atomic_load(&inside()->lock.word), 0);
}

Test(ep_serial, without_a_connection_there_is_the_lock_only)
{
	dofi_ep_lock(inside());
	dofi_ep_end(inside(), DAT_CONNECTION_EVENT_BROKEN);
	dofi_ep_unlock(inside());
	settle();
	cr_expect_eq(atomic_load(&inside()->fast.lock), &inside()->lock);
	succeed(post_recv(1));
	cr_expect_eq(transport.plain, 0);
}

static void *post_one(void *arg)
{
	succeed(post_send((uintptr_t)arg));
	return NULL;
}

Test(ep_serial, who_has_the_lock_is_alone)
{
	pthread_t thread;

	dofi_ep_lock(inside());
	cr_expect_eq(atomic_load(&access_to_cq()->word), 0);
	cr_assert(!pthread_create(&thread, NULL, post_one, (void *)7));
	while (!is_wanted(&inside()->lock))
		sched_yield();
	cr_expect_eq(transport.n, 0);
	dofi_ep_unlock(inside());
	pthread_join(thread, NULL);
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(transport.plain, 0);	/* by the way of all operations: it may have changed */
	succeed(post_send(8));
	cr_expect_eq(transport.plain, 1);
}

static void *query(void *arg)
{
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, arg));
	return NULL;
}

Test(ep_serial, who_wants_the_lock_waits_for_plain_operations)
{
	struct dofi_mutex *lock;
	DAT_EP_PARAM param;
	pthread_t thread;

	cr_assert(dofi_fast_lock(inside(), &lock));
	cr_expect_eq(lock, access_to_cq());
	cr_assert(!pthread_create(&thread, NULL, query, &param));
	while (!is_wanted(lock))
		sched_yield();
	cr_expect(atomic_load(&inside()->lock.word) & DOFI_MUTEX_LOCKED);
	dofi_mutex_unlock(lock);
	pthread_join(thread, NULL);
	cr_expect_eq(param.ep_state, DAT_EP_STATE_CONNECTED);
	cr_assert(dofi_fast_lock(inside(), &lock));
	cr_expect_eq(lock, access_to_cq());
	dofi_mutex_unlock(lock);
}
