/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which operations may be posted, and the operations that the fabric gets. */

#include "obj/ops.h"

TestSuite(ep_post, .init = ops_init, .fini = ia_fini);

/* Operations that may be posted */

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
	expect_arg(dofi_ep_post_rdma_read(ep, inside()->attr.max_rdma_read_iov + 1, s, c, &r, 0),
		   2);
	expect_arg(dofi_ep_post_rdma_write(ep, inside()->attr.max_rdma_write_iov + 1, s, c, &r, 0),
		   2);
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
	expect_arg(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), (DAT_COMPLETION_FLAGS)0x8000), 5);
	ia->strict = true;
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

/* The transport's resume(): records how many receives there were. */
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
	/* a buffer may be larger, and programs exceed the RDMA size that they requested */
	s[1].segment_length++;
	succeed(dofi_ep_post_recv(ep, 2, s, cookie_of(2), 0));
	succeed(post_write(3, 101, 101));
	succeed(post_read(4, 101, 101, 0));
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
