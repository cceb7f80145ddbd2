/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The segments of a post: memory, privileges, lengths, and empty segments. */

#include "obj/ops.h"

TestSuite(segments, .init = ops_init, .fini = ia_fini);

Test(segments, nothing_may_be_sent)
{
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie_of(1), 0));
	cr_expect_eq(transport.dto[0]->n_iov, 0);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 0);
}

Test(segments, memory_must_be_registered_in_the_pz_with_the_privilege)
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
	expect_type(dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(1), &r, 0),
		    DAT_PRIVILEGES_VIOLATION);
	succeed(lmr_make(pz, other_memory, 64, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &h, &context, NULL));
	s.lmr_context = context;
	succeed(send_segment(s));
}

Test(segments, the_context_of_a_freed_lmr_is_refused)
{
	const DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_lmr_free(lmr));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, NULL));
	expect_type(send_segment(s), DAT_PROTECTION_VIOLATION);
}

Test(segments, a_segment_does_not_wrap_around)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	s.virtual_address = UINT64_MAX - 3;
	expect_arg(send_segment(s), 3);
	expect_arg(send_segment(segment((size_t)-1, 8)), 3);
	succeed(send_segment(segment(sizeof(memory) - 8, 8)));
}

Test(segments, empty_segments_are_passed_over)
{
	DAT_LMR_TRIPLET s[3] = { segment(0, 0), segment(16, 8), segment(0, 0) };

	s[0].lmr_context = 0;		/* no byte of it is accessed */
	succeed(dofi_ep_post_send(ep, 3, s, cookie_of(1), 0));
	cr_expect_eq(transport.dto[0]->n_iov, 1);
	cr_expect_eq(transport.dto[0]->iov[0].iov_base, (void *)(memory + 16));
	cr_expect_eq(transport.dto[0]->iov[0].iov_len, 8);
}

/* Registers more memory than there is. That is only checked of memory to write to. */
static DAT_LMR_CONTEXT vast(DAT_VLEN len)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE handle;

	succeed(lmr_make(pz, (void *)0x10000, len, DAT_MEM_PRIV_READ_FLAG, &handle, &context,
			 NULL));
	((struct dofi_lmr *)handle)->priv = DAT_MEM_PRIV_ALL_FLAG;
	return context;
}

static DAT_LMR_TRIPLET vast_segment(DAT_LMR_CONTEXT context, uint64_t length)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = context, .virtual_address = 0x10000, .segment_length = length,
	};
}

Test(segments, a_message_is_no_longer_than_the_fabric_takes)
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

/* A sum of lengths that wraps must not pass as short. */
Test(segments, lengths_whose_sum_overflows_are_too_long)
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

Test(segments, a_read_uses_no_more_segments_than_it_needs)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(16, 8) };
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_rdma_read(ep, 2, s, cookie_of(1), &r, 0));
	cr_expect_eq(transport.dto[0]->n_iov, 1);
}
