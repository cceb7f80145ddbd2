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
	of->resume_pending = false;
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
	inside()->resume_pending = true;
	dofi_ep_open_queues(inside());
	dofi_mutex_unlock(&inside()->lock);
	succeed(post_recv(2));
	cr_expect_eq(receives_when_reminded, 2);
	cr_expect(!inside()->resume_pending);
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

/* RDMA to addresses that no peer has */

static DAT_RMR_TRIPLET remote_at(uint64_t addr, size_t length)
{
	DAT_RMR_TRIPLET r = remote_segment(length);

#if DAT_VERSION_MAJOR >= 2
	r.virtual_address = addr;
#else
	r.target_address = addr;
#endif
	return r;
}

static DAT_RETURN post_at(uint64_t n, uint64_t addr, bool read, int flags)
{
	DAT_RMR_TRIPLET r = remote_at(addr, 8);
	DAT_LMR_TRIPLET s = segment(0, 8);

	return (read ? dofi_ep_post_rdma_read : dofi_ep_post_rdma_write)(
		ep, 1, &s, cookie_of(n), &r, CONSUMER_FLAGS(flags));
}

/* With and without a flag: by the slow path and the fast path. */
static const struct {
	uint64_t addr;
	bool read;
	int flags;
} nowhere[] = {
	{ UINT64_MAX - 3, false, 0 },
	{ UINT64_MAX - 7, false, 0 },
	{ UINT64_MAX - 3, true, 0 },
	{ UINT64_MAX - 3, false, DAT_COMPLETION_SOLICITED_WAIT_FLAG },
	{ UINT64_MAX - 3, true, DAT_COMPLETION_BARRIER_FENCE_FLAG },
	{ UINT64_C(0xfffeffffffffff) << 8 | 0xf9, true, 0 },
};

#define N_NOWHERE (sizeof(nowhere) / sizeof(nowhere[0]))

Test(ep_post, the_fabric_gets_no_address_that_no_peer_has)
{
	unsigned i;

	for (i = 0; i < N_NOWHERE; i++) {
		succeed(dofi_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
		make_connected(ep);
		succeed(post_at(i, nowhere[i].addr, nowhere[i].read, nowhere[i].flags));
		take(i, DAT_DTO_ERR_REMOTE_ACCESS);
		settle();
		event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	}
	cr_expect_eq(transport.n, 0);
}

Test(ep_post, the_highest_address_of_a_peer_is_one)
{
	succeed(post_at(1, UINT64_C(0xffff000000000000) - 8, false, 0));
	succeed(post_at(2, UINT64_C(0xffff000000000000) - 8, true, 0));
	cr_expect_eq(transport.n, 2);
}

/* As where the peer refuses it. */
Test(ep_post, what_is_refused_here_ends_in_its_order)
{
	succeed(post_send(1));
	succeed(post_write(2, 8, 8));
	succeed(post_read(3, 8, 8, 0));
	succeed(post_at(4, UINT64_MAX - 3, false, 0));
	succeed(post_send(5));
	cr_expect_eq(transport.n, 3);
	cr_expect(event_none(evd));
	complete(1);
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	complete(2);
	take(3, DAT_DTO_SUCCESS);
	take(4, DAT_DTO_ERR_REMOTE_ACCESS);
	settle();
	take(5, DAT_DTO_ERR_FLUSHED);
	cr_expect_eq(transport.n, 3);
}

/* Requests of the extension */

static void init(void)
{
	objects_init();
	ia->fabric.cq_data = true;
	ep = ep_make();
	make_connected(ep);
	((struct dofi_ep *)ep)->mailbox.key = 1;
}

TestSuite(ep_ext, .init = init, .fini = ia_fini);

static DAT_LMR_TRIPLET here;
static DAT_RMR_TRIPLET there;

static struct dofi_post sound(uint64_t cookie)
{
	here = segment(0, 8);
	there = remote_segment(8);
	return (struct dofi_post){ .n = 1, .iov = &here, .remote = &there, .cookie.as_64 = cookie };
}

Test(ep_ext, handles_are_checked)
{
	const struct dofi_post p = sound(1);

	expect_handle(dofi_ep_post_send_immed(NULL, &p), EP);
	expect_handle(dofi_ep_post_write_immed(NOWHERE, &p), EP);
	expect_handle(dofi_ep_post_fetch_add(evd, &p), EP);
	expect_handle(dofi_ep_post_cmp_swap(pz, &p), EP);
}

Test(ep_ext, a_fabric_without_the_means_has_none_of_it)
{
	const struct dofi_post p = sound(1);

	ia->fabric.cq_data = false;
	expect_type(dofi_ep_post_send_immed(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ep_post_write_immed(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ep_post_fetch_add(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ep_post_cmp_swap(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	cr_expect_eq(transport.n, 0);
}

Test(ep_ext, arguments_are_checked)
{
	struct dofi_post p = sound(1);

	p.n = -1;
	expect_arg(dofi_ep_post_send_immed(ep, &p), 3);
	p.n = 100;
	expect_arg(dofi_ep_post_write_immed(ep, &p), 3);
	p = sound(1);
	p.iov = NULL;
	expect_arg(dofi_ep_post_send_immed(ep, &p), 4);
	expect_arg(dofi_ep_post_write_immed(ep, &p), 4);
	expect_arg(dofi_ep_post_fetch_add(ep, &p), 4);
	expect_arg(dofi_ep_post_cmp_swap(ep, &p), 5);
	p = sound(1);
	p.remote = NULL;
	expect_arg(dofi_ep_post_write_immed(ep, &p), 6);
	expect_arg(dofi_ep_post_fetch_add(ep, &p), 6);
	expect_arg(dofi_ep_post_cmp_swap(ep, &p), 7);
	p = sound(1);
	p.flags = (DAT_COMPLETION_FLAGS)0x8000;
	expect_arg(dofi_ep_post_send_immed(ep, &p), 7);
	expect_arg(dofi_ep_post_write_immed(ep, &p), 8);
	expect_arg(dofi_ep_post_fetch_add(ep, &p), 7);
	expect_arg(dofi_ep_post_cmp_swap(ep, &p), 8);
	cr_expect_eq(transport.n, 0);
}

Test(ep_ext, atomics_are_of_eight_aligned_bytes)
{
	struct dofi_post p = sound(1);

	here.segment_length = 4;
	expect_type(dofi_ep_post_fetch_add(ep, &p), DAT_LENGTH_ERROR);
	here.segment_length = 16;
	expect_type(dofi_ep_post_fetch_add(ep, &p), DAT_LENGTH_ERROR);
	p = sound(1);
	there.segment_length = 7;
	expect_type(dofi_ep_post_cmp_swap(ep, &p), DAT_LENGTH_ERROR);
	there.segment_length = 8;
#if DAT_VERSION_MAJOR >= 2
	there.virtual_address += 4;
#else
	there.target_address += 4;
#endif
	expect_arg(dofi_ep_post_cmp_swap(ep, &p), 7);
	/* a longer segment is used at its beginning: Debian's dtestx passes its whole buffer */
	p = sound(1);
	there.segment_length = 4096;
	succeed(dofi_ep_post_cmp_swap(ep, &p));
	cr_expect_eq(transport.dto[0]->length, 8);
}

/* The event is the extension's. */
static void expect_refused(uint64_t cookie)
{
#if DAT_VERSION_MAJOR >= 2
	DAT_EVENT event = event_take(evd, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
#else
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
#endif
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, cookie);
	cr_expect_eq(d->status, DAT_DTO_ERR_REMOTE_ACCESS);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_ext, atomics_and_writes_go_to_no_address_that_no_peer_has)
{
	struct dofi_post p = sound(1);

	there = remote_at(UINT64_MAX - 7, 8);
	succeed(dofi_ep_post_fetch_add(ep, &p));
	expect_refused(1);
	make_connected(ep = ep_make());
	((struct dofi_ep *)ep)->mailbox.key = 1;
	succeed(dofi_ep_post_write_immed(ep, &p));
	expect_refused(1);
	cr_expect_eq(transport.n, 0);
}

Test(ep_ext, a_write_is_not_longer_than_its_length_field)
{
	DAT_LMR_HANDLE big;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	struct dofi_post p = sound(1);
	DAT_VLEN size = (DAT_VLEN)DOFI_WRITE_IMMED_MAX + 1;

	/* the fake registers any range for reading */
	ia->limits.max_message_size = ia->limits.max_rdma_size = UINT32_MAX;
	succeed(lmr_make(pz, memory, size, DAT_MEM_PRIV_READ_FLAG, &big, &context, &remote));
	here.lmr_context = context;
	here.segment_length = there.segment_length = (dofi_seg_length)size;
	expect_type(dofi_ep_post_write_immed(ep, &p), DAT_LENGTH_ERROR);
	here.segment_length--;
	succeed(dofi_ep_post_write_immed(ep, &p));
}

Test(ep_ext, a_peer_without_mailbox_takes_no_atomics)
{
	const struct dofi_post p = sound(1);

	((struct dofi_ep *)ep)->mailbox.key = 0;
	expect_type(dofi_ep_post_fetch_add(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	succeed(dofi_ep_post_write_immed(ep, &p));
}

/* Order */

static DAT_RETURN plain(DAT_RETURN (*rdma)(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *,
					   DAT_DTO_COOKIE, const DAT_RMR_TRIPLET *,
					   DAT_COMPLETION_FLAGS),
			uint64_t cookie)
{
	const struct dofi_post p = sound(cookie);

	return rdma(ep, 1, &here, p.cookie, &there, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Ends the atomic as the transport does. */
static void end_atomic(unsigned i)
{
	struct dofi_ep *e = ep;

	dofi_mutex_lock(&e->lock);
	e->atomics--;
	dofi_dto_end(e, transport.dto[i], 0, NULL);
	dofi_mutex_unlock(&e->lock);
}

static void posted_atomic(uint64_t cookie)
{
	const struct dofi_post p = sound(cookie);

	succeed(dofi_ep_post_fetch_add(ep, &p));
	((struct dofi_ep *)ep)->atomics++;
}

Test(ep_ext, rdma_waits_for_an_atomic_and_messages_do_not)
{
	struct dofi_post p;

	posted_atomic(1);
	p = sound(2);
	succeed(dofi_ep_post_send_immed(ep, &p));
	cr_expect_eq(transport.n, 2);
	succeed(plain(dofi_ep_post_rdma_write, 3));
	succeed(plain(dofi_ep_post_rdma_read, 4));
	p = sound(5);
	succeed(dofi_ep_post_write_immed(ep, &p));
	cr_expect_eq(transport.n, 2);
	end_atomic(0);
	cr_expect_eq(transport.n, 5);
}

Test(ep_ext, atomics_wait_for_a_fence_and_count_as_reads)
{
	struct dofi_post p = sound(2);

	((struct dofi_ep *)ep)->attr.max_rdma_read_out = 2;
	posted_atomic(1);
	p.flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	succeed(dofi_ep_post_send_immed(ep, &p));
	cr_expect_eq(transport.n, 1);
	end_atomic(0);
	cr_expect_eq(transport.n, 2);
	posted_atomic(3);
	posted_atomic(4);
	p = sound(5);
	succeed(dofi_ep_post_cmp_swap(ep, &p));
	cr_expect_eq(transport.n, 4, "two are under way");
}

#if DAT_VERSION_MAJOR >= 2
Test(ep_ext, each_completes_as_what_it_is)
{
	static const struct {
		DAT_RETURN (*post)(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
		DAT_EVENT_NUMBER number;
		int operation, type;
	} row[] = {
		{ dofi_ep_post_send_immed, DAT_DTO_COMPLETION_EVENT, DAT_DTO_SEND, 0 },
		{ dofi_ep_post_write_immed, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT,
		  DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED },
		{ dofi_ep_post_fetch_add, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT,
		  DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD },
		{ dofi_ep_post_cmp_swap, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT,
		  DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP },
	};
	unsigned i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct dofi_post p = sound(i);
		DAT_IB_EXTENSION_EVENT_DATA x;
		DAT_EVENT event;

		succeed(row[i].post(ep, &p));
		complete(i);
		event = event_take(evd, row[i].number);
		memcpy(&x, event.event_extension_data, sizeof(x));
		cr_expect_eq((int)event.event_data.dto_completion_event_data.operation,
			     row[i].operation);
		cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		if (event.event_number != DAT_DTO_COMPLETION_EVENT)
			cr_expect_eq((int)x.type, row[i].type);
	}
}
#endif
