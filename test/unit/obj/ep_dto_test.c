/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations: what may be posted, what the fabric is given, and how each completes once. */

#include "obj/cno.h"
#include "obj/ep_bind.h"
#include "obj/fixture.h"

#include <rdma/fi_errno.h>
#include <sched.h>

#define CONSUMER_FLAGS(f) ((DAT_COMPLETION_FLAGS)(f))

static DAT_EP_HANDLE ep;

static void init_unconnected(void)
{
	objects_init();
	ep = ep_make();
}

static void init(void)
{
	init_unconnected();
	make_connected(ep);
}

TestSuite(ep_dto, .init = init, .fini = ia_fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_DTO_COOKIE cookie_of(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

static DAT_RETURN send_flags(uint64_t n, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	return dofi_ep_post_send(ep, 1, &s, cookie_of(n), CONSUMER_FLAGS(flags));
}

static DAT_RETURN post_send(uint64_t n)
{
	return send_flags(n, 0);
}

static DAT_RETURN post_recv(uint64_t n)
{
	DAT_LMR_TRIPLET s = segment(0, 64);

	return dofi_ep_post_recv(ep, 1, &s, cookie_of(n), DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_read(uint64_t n, size_t local, size_t remote, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, local);
	DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(n), &r, CONSUMER_FLAGS(flags));
}

static DAT_RETURN post_write(uint64_t n, size_t local, size_t remote)
{
	DAT_LMR_TRIPLET s = segment(0, local);
	DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(n), &r, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN send_segment(DAT_LMR_TRIPLET s)
{
	return dofi_ep_post_send(ep, 1, &s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_DTO_COMPLETION_EVENT_DATA take(uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA data = event.event_data.dto_completion_event_data;

	cr_expect_eq(data.user_cookie.as_64, n, "%llu", (unsigned long long)data.user_cookie.as_64);
	cr_expect_eq(data.status, status, "%d", data.status);
	cr_expect_eq(data.ep_handle, ep);
	return data;
}

/* What may be posted */

Test(ep_dto, handles_are_checked)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);
	DAT_DTO_COOKIE c = cookie_of(0);

	expect_handle(dofi_ep_post_send(NULL, 1, &s, c, 0), EP);
	expect_handle(dofi_ep_post_recv(evd, 1, &s, c, 0), EP);
	expect_handle(dofi_ep_post_rdma_read(NOWHERE, 1, &s, c, &r, 0), EP);
	expect_handle(dofi_ep_post_rdma_write(pz, 1, &s, c, &r, 0), EP);
}

Test(ep_dto, segments_are_counted)
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

Test(ep_dto, rdma_needs_a_remote_segment)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_arg(dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(0), NULL, 0), 5);
	expect_arg(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(0), NULL, 0), 5);
}

Test(ep_dto, flags_are_checked)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	expect_arg(send_flags(1, 0x8000), 5);
	expect_arg(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
	expect_arg(post_read(1, 8, 8, 0x8000), 6);
	expect_arg(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_SUPPRESS_FLAG), 5);
	expect_arg(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
	cr_expect_eq(transport.n, 0);
}

Test(ep_dto, requests_need_a_connection, .init = init_unconnected)
{
	expect_state(post_send(1), EP_UNCONNECTED);
	expect_state(post_read(1, 8, 8, 0), EP_UNCONNECTED);
	expect_state(post_write(1, 8, 8), EP_UNCONNECTED);
	start_connecting(ep);
	expect_state(post_send(1), EP_ACTCONNPENDING);
	cr_expect(event_none(evd));
}

Test(ep_dto, receives_may_be_posted_at_any_time, .init = init_unconnected)
{
	succeed(post_recv(1));
	start_connecting(ep);
	succeed(post_recv(2));
	cr_expect_eq(transport.n, 0);
	establish(ep, NULL, 0);
	cr_expect_eq(transport.n, 2);
}

Test(ep_dto, on_a_disconnected_endpoint_all_is_flushed_at_once)
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

Test(ep_dto, the_fabric_is_given_what_was_posted)
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

Test(ep_dto, nothing_may_be_sent)
{
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(1), 0));
	cr_expect_eq(transport.dto[0]->n_iov, 0);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 0);
}

Test(ep_dto, memory_must_be_registered_in_the_zone_with_the_privilege)
{
	static char other_memory[64];
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_LMR_CONTEXT context;
	DAT_PZ_HANDLE zone;
	DAT_LMR_HANDLE h;

	s.lmr_context ^= 1;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	expect_type(send_segment(segment(sizeof(memory) - 4, 8)), DAT_PROTECTION_VIOLATION);
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
}

Test(ep_dto, the_context_of_a_freed_lmr_is_refused)
{
	const DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_lmr_free(lmr));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, NULL));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
}

Test(ep_dto, a_segment_does_not_wrap_around)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	s.virtual_address = UINT64_MAX - 3;
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	expect_type(send_segment(segment((size_t)-1, 8)), DAT_PROTECTION_VIOLATION);
	succeed(send_segment(segment(sizeof(memory) - 8, 8)));
}

Test(ep_dto, empty_segments_are_passed_over)
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

Test(ep_dto, a_message_is_no_longer_than_the_fabric_takes)
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

/* A sum of lengths that wraps must not look short. */
Test(ep_dto, lengths_whose_sum_overflows_are_too_long)
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

Test(ep_dto, a_refused_post_takes_no_room)
{
	unsigned i, depth = inside()->sq.depth;
	DAT_LMR_TRIPLET bad = segment(0, sizeof(memory) + 1);

	for (i = 0; i < 3 * depth; i++)
		expect_type(send_segment(bad), DAT_PROTECTION_VIOLATION);
	for (i = 0; i < depth; i++)
		succeed(post_send(i));
}

Test(ep_dto, a_write_must_fit_the_remote_segment)
{
	expect_type(post_write(1, 9, 8), DAT_LENGTH_ERROR);
	succeed(post_write(1, 8, 8));
	succeed(post_write(2, 4, 8));
	cr_expect_eq(transport.dto[1]->length, 4);
	cr_expect_eq(transport.dto[0]->remote_addr, 0x5000);
	cr_expect_eq(transport.dto[0]->remote_key, 0x1234);
}

Test(ep_dto, a_read_moves_what_the_remote_segment_holds)
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

Test(ep_dto, a_read_uses_no_more_segments_than_it_needs)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(16, 8) };
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_rdma_read(ep, 2, s, cookie_of(1), &r, 0));
	cr_expect_eq(transport.dto[0]->n_iov, 1);
}

/* Completing */

Test(ep_dto, events_tell_what_ended)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_send(1));
	succeed(post_recv(2));
	succeed(post_write(3, 8, 8));
	complete(0);
	d = take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_SEND);
#endif
	complete_with(1, 0, 5);
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 5);	/* as the fabric says */
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE);
#endif
	complete(2);
	d = take(3, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RDMA_WRITE);
#endif
}

Test(ep_dto, requests_end_in_the_order_of_their_posting)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_send(2));
	succeed(post_write(3, 8, 8));
	complete(2);
	complete(1);
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_dto, receives_do_not_wait_for_requests)
{
	succeed(post_send(1));
	succeed(post_recv(2));
	complete_with(1, 0, 8);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_suppressed_success_is_silent)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	succeed(post_send(2));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_suppressed_failure_is_not)
{
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	complete_with(0, FI_EIO, 0);
	take(1, DAT_DTO_ERR_TRANSPORT);
}

/* Puts another EP in the place of ep, of these EVDs and @attr, and connects it. */
static void make_with(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, const DAT_EP_ATTR *attr)
{
	succeed(dofi_ep_create(ia, pz, recv, request, evd, attr, &ep));
	make_connected(ep);
}

static DAT_EP_ATTR attr_of_depth(DAT_COUNT depth)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC };

	attr.max_recv_dtos = attr.max_request_dtos = depth;
	return attr;
}

static bool cno_triggered(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE from;

	return dofi_cno_wait(cno, 0, &from) == DAT_SUCCESS;
}

Test(ep_dto, only_an_unsignalled_success_wakes_nobody)
{
	DAT_EVD_HANDLE out = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_CNO_HANDLE cno;

	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	make_with(evd, out, &attr);
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(out, cno));
	succeed(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG));
	succeed(send_flags(2, 0));
	complete(0);
	cr_expect(!cno_triggered(cno));
	complete(1);
	cr_expect(cno_triggered(cno));
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	while (cno_triggered(cno))
		;
	succeed(send_flags(3, DAT_COMPLETION_UNSIGNALLED_FLAG));
	complete_with(2, FI_EIO, 0);
	cr_expect(cno_triggered(cno));
}

Test(ep_dto, unsignalled_is_agreed_for_each_stream)
{
	DAT_EP_ATTR attr = attr_of_depth(8);
	DAT_LMR_TRIPLET s = segment(0, 8);

	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	make_with(evd, evd, &attr);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	expect_arg(send_flags(1, DAT_COMPLETION_UNSIGNALLED_FLAG), 5);
}

Test(ep_dto, each_stream_has_its_own_event_queue)
{
	DAT_EVD_HANDLE in = evd_make(4, DAT_EVD_DTO_FLAG), out = evd_make(4, DAT_EVD_DTO_FLAG);

	make_with(in, out, NULL);
	succeed(post_recv(1));
	succeed(post_send(2));
	complete(0);
	cr_expect(event_none(out));
	complete(1);
	event_take(in, DAT_DTO_COMPLETION_EVENT);
	event_take(out, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(in) && event_none(out) && event_none(evd));
}

Test(ep_dto, an_event_that_finds_no_room_still_gives_its_slot_back)
{
	DAT_EVD_HANDLE small = evd_make(1, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(4);
	unsigned i;

	make_with(small, small, &attr);
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	for (i = 0; i < 4; i++)
		complete(i);
	event_take(small, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(small));
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
}

Test(ep_dto, without_an_event_queue_nobody_is_told)
{
	succeed(dofi_ep_create(ia, pz, NULL, NULL, evd, NULL, &ep));
	make_connected(ep);
	succeed(post_send(1));
	complete(0);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(ep_dto, a_completion_counts_once)
{
	succeed(post_send(1));
	complete(0);
	complete(0);
	complete_with(0, FI_EIO, 0);
	take(1, DAT_DTO_SUCCESS);
	settle();
	cr_expect(event_none(evd));
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
}

Test(ep_dto, a_completion_of_a_slots_former_user_is_dropped)
{
	unsigned i, slots = inside()->sq.mask + 1;

	for (i = 0; i < slots; i++) {
		succeed(post_send(i));
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	succeed(post_send(slots));
	cr_assert_eq(transport.dto[slots], transport.dto[0]);
	complete(0);
	cr_expect(event_none(evd));
	complete(slots);
	take(slots, DAT_DTO_SUCCESS);
}

/* What waits for room is not at the fabric, whatever the fabric says of it. */
Test(ep_dto, a_completion_of_what_was_not_submitted_is_dropped)
{
	DAT_EP_ATTR attr = attr_of_depth(2);
	struct dofi_dto *slot;

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	slot = transport.dto[0];
	transport.room = 0;
	succeed(post_send(3));
	cr_assert_eq(slot->cookie, 3);
	transport.context[0] = dofi_dto_context(slot);
	complete(0);
	cr_expect(event_none(evd));
	transport.room = 1;
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_assert_eq(transport.n, 3);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_completion_of_nothing_is_dropped)
{
	const struct fi_cq_data_entry entry = { 0 };

	dofi_dto_complete(&entry, 0, NULL);
	cr_expect(event_none(evd));
}

/* The thread that polls takes the event itself. */
static DAT_EVENT taken;

static bool complete_into_sink(unsigned i, DAT_EVD_HANDLE of)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i] };
	struct dofi_sink sink = { .evd = of, .event = &taken };

	dofi_dto_complete(&entry, 0, &sink);
	return sink.taken;
}

Test(ep_dto, a_polling_thread_gets_the_event_at_once)
{
	succeed(post_send(7));
	cr_expect(complete_into_sink(0, evd));
	cr_expect_eq(taken.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(taken.evd_handle, evd);
	cr_expect_eq(taken.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	cr_expect(event_none(evd));
}

Test(ep_dto, a_polling_thread_does_not_overtake)
{
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	cr_expect(!complete_into_sink(1, evd));
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_polling_thread_gets_only_what_it_polls_for)
{
	succeed(post_send(1));
	cr_expect(!complete_into_sink(0, evd_make(4, EVD_ALL_FLAGS)));
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_polling_thread_gets_one_of_several)
{
	succeed(post_send(1));
	succeed(post_send(2));
	complete(1);
	cr_expect(complete_into_sink(0, evd));
	cr_expect_eq(taken.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	take(2, DAT_DTO_SUCCESS);
}

/* Failing */

static const struct {
	int err;
	DAT_DTO_COMPLETION_STATUS of_send, of_write, of_recv;
	DAT_EVENT_NUMBER end;
} errors[] = {
	{ FI_ECANCELED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED,
	  DAT_CONNECTION_EVENT_DISCONNECTED },
	{ FI_ECONNRESET, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED,
	  DAT_CONNECTION_EVENT_DISCONNECTED },
	{ FI_ETRUNC, DAT_DTO_ERR_REMOTE_RESPONDER, DAT_DTO_ERR_REMOTE_RESPONDER,
	  DAT_DTO_ERR_LOCAL_LENGTH, DAT_CONNECTION_EVENT_BROKEN },
	{ FI_EACCES, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_ERR_REMOTE_ACCESS,
	  DAT_DTO_ERR_LOCAL_PROTECTION, DAT_CONNECTION_EVENT_BROKEN },
	{ FI_EKEYREJECTED, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_ERR_REMOTE_ACCESS,
	  DAT_DTO_ERR_LOCAL_PROTECTION, DAT_CONNECTION_EVENT_BROKEN },
	{ FI_EIO, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_TRANSPORT,
	  DAT_CONNECTION_EVENT_BROKEN },
};

static void fail_with(int err, DAT_DTO_COMPLETION_STATUS status, DAT_EVENT_NUMBER end)
{
	complete_with(transport.n - 1, err, 0);
	settle();
	take(1, status);
	event_take(evd, end);
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
}

Test(ep_dto, a_failure_has_its_status_and_ends_the_connection)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		succeed(post_send(1));
		fail_with(errors[i].err, errors[i].of_send, errors[i].end);
		succeed(post_write(1, 8, 8));
		fail_with(errors[i].err, errors[i].of_write, errors[i].end);
		succeed(post_recv(1));
		fail_with(errors[i].err, errors[i].of_recv, errors[i].end);
	}
}

/* Where the fabric was given a byte of room for it, see the transport. */
Test(ep_dto, a_byte_for_a_receive_of_none_is_too_long)
{
	DAT_LMR_TRIPLET none = segment(0, 0);

	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 0);
	take(1, DAT_DTO_SUCCESS);
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(1, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &none, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(2, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, after_a_failure_the_rest_is_flushed)
{
	int i;

	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	succeed(post_recv(4));
	complete_with(1, FI_EIO, 0);
	settle();
	take(0, DAT_DTO_ERR_FLUSHED);
	take(1, DAT_DTO_ERR_TRANSPORT);
	take(2, DAT_DTO_ERR_FLUSHED);
	take(3, DAT_DTO_ERR_FLUSHED);
	take(4, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(ep_dto, what_the_fabric_refuses_has_failed)
{
	transport.fail = -FI_EIO;
	succeed(post_send(1));
	settle();
	cr_expect_eq(inside()->state, DAT_EP_STATE_DISCONNECTED);
	take(1, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, what_the_fabric_refuses_waits_for_its_elders)
{
	succeed(post_send(1));
	transport.fail = -FI_EIO;
	succeed(post_send(2));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* What a fabric cannot name when the connection is over has not failed by itself. */
Test(ep_dto, an_unknown_error_at_the_end_is_a_flush)
{
	struct dofi_ep *e = inside();

	succeed(post_send(1));
	succeed(post_send(2));
	pthread_mutex_lock(&e->lock);
	e->closing = true;
	dofi_ep_gate(e);
	pthread_mutex_unlock(&e->lock);
	complete_with(0, FI_EIO, 0);
	complete_with(1, FI_EACCES, 0);
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_LOCAL_PROTECTION);
}

Test(ep_dto, the_next_connection_knows_nothing_of_the_last_ones_operations)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	complete(0);
	complete_with(0, FI_EIO, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(post_send(2));
	succeed(post_send(3));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

/* Room, and the order in which the fabric is given work */

Test(ep_dto, a_queue_takes_what_was_agreed_and_no_more)
{
	unsigned i, depth = inside()->sq.depth;

	for (i = 0; i < depth; i++)
		succeed(post_send(i));
	expect_type(post_send(99), DAT_INSUFFICIENT_RESOURCES);
	complete(0);
	succeed(post_send(depth));
	expect_type(post_send(99), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_dto, room_is_not_rounded)
{
	static const DAT_COUNT depths[] = { 0, 1, 2, 3, 5, 63 };
	DAT_COUNT i, d;

	for (d = 0; d < (DAT_COUNT)(sizeof(depths) / sizeof(depths[0])); d++) {
		DAT_EP_ATTR attr = attr_of_depth(depths[d]);

		make_with(evd, evd, &attr);
		for (i = 0; i < depths[d]; i++) {
			succeed(post_send(i));
			succeed(post_recv(i));
		}
		expect_type(post_send(i), DAT_INSUFFICIENT_RESOURCES);
		expect_type(post_recv(i), DAT_INSUFFICIENT_RESOURCES);
	}
}

/* Slots are taken and left in order. */
Test(ep_dto, a_later_completion_makes_no_room)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_send(2));
	complete(1);
	expect_type(post_send(3), DAT_INSUFFICIENT_RESOURCES);
	complete(0);
	succeed(post_send(3));
	succeed(post_send(4));
	expect_type(post_send(5), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_dto, the_counters_wrap)
{
	DAT_EP_ATTR attr = attr_of_depth(5);
	struct dofi_queue *q;
	unsigned i;

	make_with(evd, evd, &attr);
	q = &inside()->sq;
	q->head = q->next = q->tail = UINT32_MAX - 1;
	for (i = 0; i < 5; i++)
		succeed(post_send(i));
	expect_type(post_send(9), DAT_INSUFFICIENT_RESOURCES);
	for (i = 0; i < 5; i++) {
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	cr_expect(dofi_queue_empty(q));
	cr_expect_eq(q->head, 3);
}

Test(ep_dto, receives_have_room_of_their_own)
{
	unsigned i;

	for (i = 0; i < inside()->sq.depth; i++)
		succeed(post_send(i));
	for (i = 0; i < inside()->rq.depth; i++)
		succeed(post_recv(i));
	expect_type(post_recv(99), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_dto, what_finds_no_room_at_the_fabric_waits_its_turn)
{
	int i;

	transport.room = 2;
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	cr_assert_eq(transport.n, 2);
	transport.room = 1;
	complete(0);
	cr_assert_eq(transport.n, 3);
	cr_expect_eq(transport.dto[2]->cookie, 2);
	transport.room = 1;
	complete(1);
	cr_assert_eq(transport.n, 4);
	cr_expect_eq(transport.dto[3]->cookie, 3);
}

Test(ep_dto, what_waits_is_not_overtaken)
{
	transport.room = 1;
	succeed(post_send(1));
	succeed(post_send(2));
	transport.room = 1;
	succeed(post_send(3));
	cr_assert_eq(transport.n, 2);
	cr_expect_eq(transport.dto[1]->cookie, 2);
}

Test(ep_dto, a_read_that_found_no_room_is_counted_once)
{
	DAT_EP_ATTR attr = attr_of_depth(4);

	attr.max_rdma_read_out = 1;
	make_with(evd, evd, &attr);
	transport.room = 1;
	succeed(post_send(1));
	succeed(post_read(2, 8, 8, 0));
	cr_expect_eq(inside()->reads, 0);
	transport.room = 2;
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 1);
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_dto, what_waits_is_flushed_too)
{
	transport.room = 0;
	succeed(post_send(1));
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(transport.n, 0);
}

Test(ep_dto, no_more_reads_are_under_way_than_agreed)
{
	unsigned i, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most + 2; i++)
		succeed(post_read(i, 8, 8, 0));
	cr_assert_eq(transport.n, most);
	complete(0);
	cr_assert_eq(transport.n, most + 1);
	complete(1);
	cr_assert_eq(transport.n, most + 2);
	for (i = 2; i < most + 2; i++)
		complete(i);
	for (i = 0; i < most + 2; i++)
		take(i, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_held_read_holds_what_is_behind_it)
{
	unsigned i, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most + 1; i++)
		succeed(post_read(i, 8, 8, 0));
	succeed(post_send(100));
	cr_assert_eq(transport.n, most);
	complete(0);
	cr_assert_eq(transport.n, most + 2);
	cr_expect_eq(transport.dto[most + 1]->cookie, 100);
}

Test(ep_dto, a_fence_waits_for_earlier_reads)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_write(2, 8, 8));
	succeed(send_flags(3, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	cr_assert_eq(transport.n, 2);
	complete(1);
	cr_assert_eq(transport.n, 2);	/* a write is no read */
	complete(0);
	cr_assert_eq(transport.n, 3);
	cr_expect_eq(transport.dto[2]->cookie, 3);
}

Test(ep_dto, a_fence_without_reads_waits_for_nothing)
{
	succeed(post_send(1));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	cr_expect_eq(transport.n, 2);
}

Test(ep_dto, after_an_end_no_read_is_counted)
{
	unsigned i, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	while (!event_none(evd))
		;
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	cr_expect_eq(transport.n, 2 * most);
}

/* Whoever reads the fabric's queue, this thread or the progress thread: each comes once. */
Test(ep_dto, what_the_fabrics_queue_holds_arrives_in_order)
{
	DAT_COUNT more;
	DAT_EVENT event;
	uint64_t n;

	for (n = 0; n < 32; n++)
		succeed(post_send(n));
	for (n = 0; n < 32; n++)
		fake_complete(transport.context[n], 0);
	for (n = 0; n < 32; n++) {
		succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
		cr_assert_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	}
	cr_expect(event_none(evd));
}

/* Threads */

#define THREADS 4
#define POSTS 100

static void *posts(void *arg)
{
	unsigned i;

	for (i = 0; i < POSTS; i++)
		succeed(post_send((uintptr_t)arg * POSTS + i));
	return NULL;
}

static void big_ep(void)
{
	DAT_EVD_HANDLE big = evd_make(2 * THREADS * POSTS, EVD_ALL_FLAGS);
	DAT_EP_PARAM param;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_request_dtos = THREADS * POSTS;
	succeed(dofi_ep_create(ia, pz, big, big, big, &param.ep_attr, &ep));
	evd = big;
	make_connected(ep);
}

Test(ep_dto, threads_post_at_once)
{
	unsigned next[THREADS] = { 0 }, i;
	pthread_t thread[THREADS];
	uintptr_t t;

	big_ep();
	for (t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, posts, (void *)t);
	for (t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	cr_assert_eq(transport.n, THREADS * POSTS);
	for (i = transport.n; i--; )
		complete(i);
	for (i = 0; i < transport.n; i++) {
		DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
		uint64_t n = event.event_data.dto_completion_event_data.user_cookie.as_64;

		cr_assert_eq(n % POSTS, next[n / POSTS]++);
	}
	cr_expect(event_none(evd));
}

/* The context of the @i-th operation at the fabric, NULL while there is none. */
static void *submitted(unsigned i)
{
	void *context;

	pthread_mutex_lock(&inside()->lock);
	context = i < transport.n ? transport.context[i] : NULL;
	pthread_mutex_unlock(&inside()->lock);
	return context;
}

/* The fabric, a thread of its own. */
static void *completes(void *arg)
{
	struct fi_cq_data_entry entry = { .len = 0 };
	unsigned i = 0;

	(void)arg;
	while (i < THREADS * POSTS) {
		entry.op_context = submitted(i);
		i += entry.op_context != NULL;
		dofi_dto_complete(&entry, 0, NULL);
		if (!entry.op_context)
			sched_yield();
	}
	return NULL;
}

Test(ep_dto, completions_come_while_threads_post)
{
	pthread_t thread[THREADS], fabric;
	uintptr_t t;
	unsigned i;

	big_ep();
	pthread_create(&fabric, NULL, completes, NULL);
	for (t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, posts, (void *)t);
	for (t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	pthread_join(fabric, NULL);
	for (i = 0; i < THREADS * POSTS; i++)
		event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}

/* What travels beside a message */

static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT granted;		/* memory[0..63] */

static void bind_with(int priv, int flags, size_t length, DAT_RMR_CONTEXT *context)
{
	const DAT_LMR_TRIPLET part = segment(0, length);

#if DAT_VERSION_MAJOR >= 2
	succeed(dofi_rmr_bind(rmr, lmr, &part, (DAT_MEM_PRIV_FLAGS)priv, DAT_VA_TYPE_VA, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags, context));
#else
	succeed(dofi_rmr_bind(rmr, &part, (DAT_MEM_PRIV_FLAGS)priv, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags, context));
#endif
}

static void init_granted(void)
{
	init();
	succeed(dofi_rmr_create(pz, &rmr));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
}

TestSuite(ep_data, .init = init_granted, .fini = ia_fini);

/* The fabric has received a message with @data, into the @i-th operation. */
static void arrive_with(unsigned i, uint64_t data)
{
	const struct fi_cq_data_entry entry = {
		.op_context = transport.context[i], .flags = FI_RECV | FI_REMOTE_CQ_DATA,
		.len = 8, .data = data,
	};

	dofi_dto_complete(&entry, 0, NULL);
}

static bool is_granted(void)
{
	return dofi_rmr_in_force(pz, ep, granted);
}

Test(ep_data, an_invalidation_is_done_before_its_event)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_recv(1));
	succeed(post_recv(2));
	arrive_with(1, dofi_cq_data(DOFI_CQ_INVALIDATE, granted));
	cr_expect(!is_granted());
	cr_expect(!fake_mr_live(granted));
	cr_expect(event_none(evd), "the first is not done");
	complete_with(0, 0, 8);
	d = take(1, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE);
	cr_expect_eq(d.rmr_context, 0);
#endif
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	cr_expect_eq(d.rmr_context, granted);
#endif
	/* the slot's next user has nothing of it */
	bind_with(0, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	for (unsigned n = 0; n < 64; n++) {
		succeed(post_recv(n));
		complete_with(2 + n, 0, 8);
		d = take(n, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
		cr_assert_eq(d.operation, DAT_DTO_RECEIVE);
#endif
	}
}

/* Whatever a hostile peer sends there: nothing changes but that its connection breaks. */
Test(ep_data, what_is_no_grant_of_ours_breaks_the_connection)
{
	const uint64_t bad[] = {
		0, granted, dofi_cq_data(DOFI_CQ_INVALIDATE, granted ^ 1),
		dofi_cq_data(DOFI_CQ_INVALIDATE, 0),
		dofi_cq_data(DOFI_CQ_INVALIDATE, rmr_context),
		dofi_cq_data(DOFI_CQ_INVALIDATE, lmr_context),
		dofi_cq_data((enum dofi_cq_data_kind)4, granted),
		(uint64_t)UINT32_MAX << 32 | granted, UINT64_MAX,
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		succeed(post_recv(1));
		arrive_with(transport.n - 1, bad[i]);
		settle();
		take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
		event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
		cr_expect(event_none(evd));
		cr_expect(is_granted());
		succeed(dofi_ep_reset(ep));
		make_connected(ep);
	}
}

Test(ep_data, a_failed_receive_invalidates_nothing)
{
	const struct fi_cq_data_entry entry = {
		.flags = FI_RECV | FI_REMOTE_CQ_DATA,
		.data = dofi_cq_data(DOFI_CQ_INVALIDATE, granted),
	};
	struct fi_cq_data_entry e = entry;

	succeed(post_recv(1));
	e.op_context = transport.context[0];
	dofi_dto_complete(&e, FI_ETRUNC, NULL);
	settle();
	take(1, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(is_granted());
}

Test(ep_data, without_its_flag_there_is_none)
{
	const struct fi_cq_data_entry entry = {
		.flags = FI_RECV, .len = 8, .data = dofi_cq_data(DOFI_CQ_INVALIDATE, granted),
	};
	struct fi_cq_data_entry e = entry;

	succeed(post_recv(1));
	e.op_context = transport.context[0];
	dofi_dto_complete(&e, 0, NULL);	/* sockets leaves what was there before */
	take(1, DAT_DTO_SUCCESS);
	cr_expect(is_granted());
}

#if DAT_VERSION_MAJOR >= 2
static DAT_RETURN send_invalidate(DAT_COUNT n, int flags, DAT_BOOLEAN invalidate)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(64, 8) };

	return dofi_ep_post_send_with_invalidate(ep, n, n ? s : NULL, cookie_of(1),
						 (DAT_COMPLETION_FLAGS)flags, invalidate, 0x1234);
}

Test(ep_data, a_send_tells_what_to_invalidate)
{
	struct dofi_dto *dto;

	succeed(send_invalidate(2, 0, DAT_TRUE));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_SEND_INVALIDATE);
	cr_expect_eq(dto->remote_key, 0x1234);
	cr_expect_eq(dto->n_iov, 2);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_SEND);
	succeed(send_invalidate(0, 0, DAT_TRUE));
	cr_expect_eq(transport.dto[1]->n_iov, 0);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.dto[2]->kind, DOFI_DTO_SEND, "nothing is to be invalidated");
}

Test(ep_data, a_send_that_invalidates_is_checked_as_any)
{
	DAT_LMR_TRIPLET s = { .lmr_context = 77, .segment_length = 8 };

	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0, DAT_TRUE, 1),
		      EP);
	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0, DAT_FALSE, 1),
		      EP);
	expect_arg(send_invalidate(1000, 0, DAT_TRUE), 2);
	expect_arg(dofi_ep_post_send_with_invalidate(ep, 1, NULL, cookie_of(1), 0, DAT_TRUE, 1), 3);
	expect_arg(send_invalidate(1, 0x4000, DAT_TRUE), 5);
	expect_type(dofi_ep_post_send_with_invalidate(ep, 1, &s, cookie_of(1), 0, DAT_TRUE, 1),
		    DAT_PROTECTION_VIOLATION);
	ia->fabric.cq_data = false;
	expect_type(send_invalidate(1, 0, DAT_TRUE), DAT_MODEL_NOT_SUPPORTED);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.n, 1);
}

/* Reads into an RMR */

static DAT_RMR_TRIPLET target(size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){
		.rmr_context = granted, .virtual_address = (uintptr_t)memory + offset,
		.segment_length = length,
	};
}

static DAT_RETURN read_into(DAT_RMR_TRIPLET local, size_t remote, int flags)
{
	const DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(1), &r, (DAT_COMPLETION_FLAGS)flags);
}

Test(ep_data, a_read_goes_where_the_rmr_says)
{
	struct dofi_dto *dto;

	succeed(read_into(target(8, 56), 40, 0));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_READ);
	cr_expect_eq(dto->n_iov, 1);
	cr_expect_eq(dto->iov[0].iov_base, memory + 8);
	cr_expect_eq(dto->iov[0].iov_len, 40);
	cr_expect_eq(dto->desc[0], ((struct dofi_lmr *)lmr)->desc);
	cr_expect_eq(dto->remote_addr, 0x5000);
	cr_expect_eq(inside()->reads, 1);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_RDMA_READ);
	cr_expect_eq(inside()->reads, 0);
	succeed(read_into((DAT_RMR_TRIPLET){ 0 }, 0, 0));	/* nothing to name */
	complete(1);
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_data, a_read_into_an_rmr_is_checked)
{
	const DAT_RMR_TRIPLET r = remote_segment(8), l = target(0, 8);
	DAT_RMR_TRIPLET other = target(0, 8);

	expect_handle(dofi_ep_post_rdma_read_to_rmr(NOWHERE, &l, cookie_of(1), &r, 0), EP);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, NULL, cookie_of(1), &r, 0), 2);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, &l, cookie_of(1), NULL, 0), 4);
	expect_arg(read_into(l, 8, 0x4000), 5);
	expect_type(read_into(l, 9, 0), DAT_LENGTH_ERROR);
	expect_type(read_into(target(60, 8), 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 65), 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = rmr_context;	/* an LMR's */
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = 0;
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	bind_with(DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	expect_type(read_into(l, 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 8), 8, 0), DAT_PRIVILEGES_VIOLATION);
	cr_expect_eq(transport.n, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_ep_reset(ep));
	expect_type(read_into(l, 8, 0), DAT_INVALID_STATE);
}

Test(ep_data, a_read_may_follow_its_bind_at_once)
{
	transport.room = 0;
	succeed(post_send(7));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 32, &granted);
	cr_expect(!is_granted());
	succeed(read_into(target(0, 32), 32, 0));
	transport.room = 8;
	pthread_mutex_lock(&inside()->lock);
	dofi_dto_pump(inside());
	pthread_mutex_unlock(&inside()->lock);
	cr_assert_eq(transport.n, 2);
	cr_expect_eq(transport.dto[1]->kind, DOFI_DTO_READ);
	complete(0);
	complete(1);
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_SUCCESS);
}

/* Its RMR was bound when it was posted, and is not when its turn comes. */
Test(ep_data, a_read_into_what_was_unbound_fails_in_its_turn)
{
	succeed(post_read(7, 8, 8, 0));
	bind_with(0, DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, 1);
	complete(0);
	settle();
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_data, a_read_into_an_rmr_waits_for_its_turn)
{
	DAT_COUNT most = inside()->attr.max_rdma_read_out, i;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, (unsigned)most);
	complete(0);
	cr_expect_eq(transport.n, (unsigned)most + 1);
	cr_expect_eq(inside()->reads, most);
	succeed(read_into(target(0, 8), 8, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	for (i = 1; i <= most; i++) {
		cr_expect_eq(transport.n, (unsigned)most + 1);
		complete(i);
	}
	cr_expect_eq(transport.n, (unsigned)most + 2);
}

Test(ep_data, a_read_into_an_rmr_is_flushed_as_any)
{
	transport.room = 0;
	succeed(post_send(7));
	succeed(read_into(target(0, 8), 8, 0));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(7, DAT_DTO_ERR_FLUSHED);
	cr_expect_eq(take(1, DAT_DTO_ERR_FLUSHED).operation, DAT_DTO_RDMA_READ);
}
#endif
