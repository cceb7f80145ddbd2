/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of the extension: arguments, ordering rules, and completion. */

#include "obj/ep_post.h"

#include "obj/fixture.h"

static DAT_EP_HANDLE ep;

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

Test(ep_ext, a_write_is_not_longer_than_its_length_field)
{
	DAT_LMR_HANDLE big;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	struct dofi_post p = sound(1);
	DAT_VLEN size = (DAT_VLEN)DOFI_WRITE_IMMED_MAX + 1;

	/* the fake registers any range */
	ia->limits.max_message_size = ia->limits.max_rdma_size = UINT32_MAX;
	succeed(lmr_make(pz, memory, size, DAT_MEM_PRIV_ALL_FLAG, &big, &context, &remote));
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
