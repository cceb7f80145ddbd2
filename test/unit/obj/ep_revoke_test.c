/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LMRs and RMRs that are freed while operations are outstanding. */

#include "obj/ops.h"

static DAT_LMR_HANDLE gone;		/* over the memory of lmr */
static DAT_LMR_CONTEXT gone_context;
static DAT_EVD_HANDLE dto;		/* for operations only */

static void init(void)
{
	DAT_EP_ATTR attr = attr_of_depth(16);
	DAT_RMR_CONTEXT remote;

	objects_init();
	dto = evd_make(64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	make_with(dto, dto, &attr);
	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &gone, &gone_context,
			 &remote));
}

TestSuite(ep_revoke, .init = init, .fini = ia_fini);

static DAT_LMR_TRIPLET gone_segment(size_t offset, size_t length)
{
	DAT_LMR_TRIPLET s = segment(offset, length);

	s.lmr_context = gone_context;
	return s;
}

static void send_of(uint64_t n, DAT_LMR_TRIPLET s)
{
	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(n), DAT_COMPLETION_DEFAULT_FLAG));
}

static void recv_of(uint64_t n, DAT_LMR_TRIPLET s)
{
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(n), DAT_COMPLETION_DEFAULT_FLAG));
}

static void expect_end_of(uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = event_take(dto, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, n, "%llu", (unsigned long long)d->user_cookie.as_64);
	cr_expect_eq(d->status, status, "%d", d->status);
}

/* The connection is still up. */
static void expect_connected(void)
{
	settle();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
}

static void expect_broken(void)
{
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED, "before the call returns");
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

/* A message of @len bytes completes operation @i of the fabric. */
static void message(unsigned i, size_t len, int err)
{
	complete_with(i, err, len);
}

/* Requests */

Test(ep_revoke, a_request_that_waits_fails_in_its_turn)
{
	transport.taken = 1;
	send_of(1, segment(0, 8));
	send_of(2, gone_segment(0, 8));
	send_of(3, segment(0, 8));
	succeed(dofi_lmr_free(gone));
	expect_connected();
	transport.taken = 10;
	complete(0);
	settle();
	expect_end_of(1, DAT_DTO_SUCCESS);
	expect_end_of(2, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_end_of(3, DAT_DTO_ERR_FLUSHED);
	expect_broken();
	cr_expect_eq(transport.n, 1, "the fabric never got it");
}

Test(ep_revoke, a_request_that_the_fabric_has_ends_the_connection)
{
	send_of(1, segment(0, 8));
	send_of(2, gone_segment(0, 8));
	send_of(3, segment(0, 8));
	succeed(dofi_lmr_free(gone));
	expect_broken();
	cr_expect_eq(transport.closes, 1);
	expect_end_of(1, DAT_DTO_ERR_FLUSHED);
	expect_end_of(2, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_end_of(3, DAT_DTO_ERR_FLUSHED);
	cr_expect(event_none(dto));
}

Test(ep_revoke, rdma_and_several_segments_are_found)
{
	DAT_LMR_TRIPLET s[] = { segment(0, 8), gone_segment(8, 8) };
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_send(ep, 2, s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_rdma_read(ep, 1, &s[1], cookie_of(2), &r,
				       DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_rdma_write(ep, 1, &s[1], cookie_of(3), &r,
					DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_lmr_free(gone));
	expect_broken();
	expect_end_of(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_end_of(2, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_end_of(3, DAT_DTO_ERR_LOCAL_PROTECTION);
}

Test(ep_revoke, what_is_done_at_the_fabric_is_done)
{
	send_of(1, gone_segment(0, 8));
	recv_of(2, gone_segment(0, 64));
	fake_complete(transport.context[0], 0);
	fake_receive(transport.context[1], 0, 64);
	succeed(dofi_lmr_free(gone));
	expect_connected();
	expect_end_of(1, DAT_DTO_SUCCESS);
	expect_end_of(2, DAT_DTO_SUCCESS);
}

Test(ep_revoke, operations_of_another_lmr_over_the_same_memory_go_on)
{
	send_of(1, segment(0, 8));
	recv_of(2, segment(0, 64));
	succeed(dofi_lmr_free(gone));
	expect_connected();
	cr_expect_eq(transport.cancels, 0);
	complete(0);
	expect_end_of(1, DAT_DTO_SUCCESS);
}

/* Receives */

/* Operations 3 and 4 at the fabric are receives 2 and 3, posted again. */
Test(ep_revoke, receives_are_taken_back_and_posted_again_in_order)
{
	recv_of(1, segment(0, 64));
	recv_of(2, gone_segment(64, 64));
	recv_of(3, segment(128, 32));
	cr_assert_eq(transport.plain, 3);
	succeed(dofi_lmr_free(gone));
	expect_connected();
	cr_expect_eq(transport.cancels, 2, "not the first");
	cr_assert_eq(transport.n, 5);
	cr_expect_eq(transport.dto[3]->cookie, 2);
	cr_expect_eq(transport.dto[3]->n_iov, 0, "without its memory");
	cr_expect_eq(transport.dto[4]->cookie, 3);
	cr_assert_eq(transport.dto[4]->n_iov, 1);
	cr_expect_eq(transport.dto[4]->iov[0].iov_base, memory + 128);
	cr_expect_eq(transport.dto[4]->iov[0].iov_len, 32);
	cr_expect_eq(transport.dto[4]->desc[0], ((struct dofi_lmr *)lmr)->desc);
	message(0, 64, 0);
	message(3, 0, FI_ETRUNC);
	settle();
	expect_end_of(1, DAT_DTO_SUCCESS);
	expect_end_of(2, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_end_of(3, DAT_DTO_ERR_FLUSHED);
	expect_broken();
}

/* Even if the fabric reports only the length of the message. */
Test(ep_revoke, a_message_that_needs_the_memory_is_a_protection_error)
{
	recv_of(1, gone_segment(64, 64));
	succeed(dofi_lmr_free(gone));
	message(1, 1, 0);
	settle();
	expect_end_of(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_broken();
}

Test(ep_revoke, a_receive_of_an_unconnected_endpoint_loses_its_memory)
{
	DAT_EP_ATTR attr = attr_of_depth(4);

	succeed(dofi_ep_create(ia, pz, dto, dto, evd, &attr, &ep));
	recv_of(1, gone_segment(0, 64));
	succeed(dofi_lmr_free(gone));
	make_connected(ep);
	cr_expect_eq(transport.cancels, 0);
	cr_assert_eq(transport.n, 1);
	cr_expect_eq(transport.dto[0]->n_iov, 0);
}

Test(ep_revoke, receives_that_are_posted_afterwards_come_behind)
{
	recv_of(1, gone_segment(0, 64));
	succeed(dofi_lmr_free(gone));
	recv_of(2, segment(0, 64));
	cr_assert_eq(transport.n, 3);
	cr_expect_eq(transport.dto[1]->cookie, 1);
	cr_expect_eq(transport.dto[2]->cookie, 2);
	expect_connected();
}

Test(ep_revoke, a_receive_that_the_fabric_keeps_ends_the_connection)
{
	recv_of(1, segment(0, 64));
	recv_of(2, gone_segment(0, 64));
	transport.keeps = true;
	succeed(dofi_lmr_free(gone));
	expect_broken();
	cr_expect_eq(transport.cancels, 1);
	expect_end_of(1, DAT_DTO_ERR_FLUSHED);
	expect_end_of(2, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* A late completion of a receive that was taken back is ignored. */
Test(ep_revoke, a_receive_that_came_back_has_another_context)
{
	recv_of(1, gone_segment(0, 64));
	succeed(dofi_lmr_free(gone));
	cr_expect(transport.context[1] != transport.context[0]);
	message(0, 64, 0);
	expect_connected();
	cr_expect(event_none(dto));
}

/*
 * A receive is excluded while its EP is in another PZ, and allowed again when the EP returns
 * to the first.
 */
Test(ep_revoke, a_barred_receive_does_not_get_its_memory_back)
{
	DAT_EP_ATTR attr = attr_of_depth(4);
	DAT_EP_PARAM param = { .pz_handle = pz };
	DAT_PZ_HANDLE other;

	succeed(dofi_pz_create(ia, &other));
	succeed(dofi_ep_create(ia, pz, dto, dto, evd, &attr, &ep));
	recv_of(1, gone_segment(0, 64));
	param.pz_handle = other;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	succeed(dofi_lmr_free(gone));
	param.pz_handle = pz;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	make_connected(ep);
	cr_assert_eq(transport.n, 1);
	cr_expect_eq(transport.dto[0]->n_iov, 0);
}

/* The calls */

Test(ep_revoke, handles_are_checked)
{
	expect_handle(dofi_lmr_free(NOWHERE), LMR);
	expect_handle(dofi_rmr_free(NOWHERE), RMR);
	succeed(dofi_lmr_free(gone));
	expect_handle(dofi_lmr_free(gone), LMR);
}

#if DAT_VERSION_MAJOR >= 2
/* RMRs */

static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT granted;

static void bind_to(DAT_LMR_HANDLE to, DAT_LMR_TRIPLET s, uint64_t n, DAT_RMR_CONTEXT *context)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = n };

	succeed(dofi_rmr_bind(rmr, to, &s, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, ep, cookie,
			      DAT_COMPLETION_DEFAULT_FLAG, context));
}

/* Binds an RMR to memory of gone, and posts a read into it. */
static void read_into_grant(uint64_t n)
{
	const DAT_RMR_TRIPLET r = remote_segment(8);
	DAT_RMR_TRIPLET local;

	succeed(dofi_rmr_create(pz, &rmr));
	bind_to(gone, gone_segment(0, 64), 100, &granted);
	event_take(dto, DAT_RMR_BIND_COMPLETION_EVENT);
	local = (DAT_RMR_TRIPLET){ .rmr_context = granted, .virtual_address = (uintptr_t)memory,
				   .segment_length = 8 };
	succeed(dofi_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(n), &r,
					      DAT_COMPLETION_DEFAULT_FLAG));
	cr_assert_eq(transport.n, 1);
}

Test(ep_revoke, a_read_into_an_rmr_fails_when_that_is_freed)
{
	read_into_grant(1);
	succeed(dofi_rmr_free(rmr));
	expect_broken();
	expect_end_of(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	succeed(dofi_lmr_free(gone));
}

/* Whether no request waits in the queue. Events behind the oldest come later. */
static bool all_begun(void)
{
	const struct dofi_queue *q = &((struct dofi_ep *)ep)->sq;

	return q->next == q->tail;
}

Test(ep_revoke, a_bind_waits_for_the_reads_into_what_it_replaces)
{
	DAT_RMR_CONTEXT next;

	read_into_grant(1);
	bind_to(lmr, segment(0, 64), 2, &next);
	cr_expect(event_none(dto));
	cr_expect(!all_begun());
	complete(0);
	expect_end_of(1, DAT_DTO_SUCCESS);
	event_take(dto, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_lmr_free(gone));
	expect_connected();
	succeed(dofi_rmr_free(rmr));
}

Test(ep_revoke, a_bind_does_not_wait_for_a_read_into_another_rmr)
{
	DAT_RMR_CONTEXT first, next;
	DAT_RMR_HANDLE read_into;

	read_into_grant(1);
	read_into = rmr;
	succeed(dofi_rmr_create(pz, &rmr));
	bind_to(lmr, segment(0, 64), 2, &first);
	bind_to(lmr, segment(0, 32), 3, &next);
	cr_expect(all_begun());
	complete(0);
	expect_end_of(1, DAT_DTO_SUCCESS);
	event_take(dto, DAT_RMR_BIND_COMPLETION_EVENT);
	event_take(dto, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_rmr_free(read_into));
	succeed(dofi_lmr_free(gone));
}

/*
 * The grant may end in other ways while the read is outstanding. Freeing the LMR then still fails
 * the read.
 */
Test(ep_revoke, a_read_into_an_rmr_is_found_by_its_lmr)
{
	DAT_EP_ATTR attr = attr_of_depth(4);
	DAT_EP_HANDLE reader;
	DAT_RMR_CONTEXT next;

	read_into_grant(1);
	reader = ep;
	make_with(dto, dto, &attr);
	bind_to(lmr, segment(0, 64), 2, &next);
	event_take(dto, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_lmr_free(gone));
	cr_expect_eq(state_of_ep(reader), DAT_EP_STATE_DISCONNECTED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	expect_end_of(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	succeed(dofi_rmr_free(rmr));
}
#endif
