/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls that create and free objects change the set of live handles, and the arguments beyond
 * the registers that dispatch_test.c checks.
 */

#include "handles.h"

#define IA	NTH(1)
#define PZ	NTH(2)
#define RECV	NTH(3)
#define REQUEST	NTH(4)
#define CONN	NTH(5)
#define SRQ	NTH(6)
#define LMR	NTH(7)
#define EP	NTH(8)
#define NEW	NTH(9)
#define FAILED	DREG_ERR(DAT_INSUFFICIENT_RESOURCES, 0)

static DAT_PROVIDER table;
static DAT_RETURN outcome;	/* returned by the provider's functions */
static int calls;

static DAT_RETURN make(DAT_HANDLE *out)
{
	calls++;
	if (out)
		*out = NEW;
	return outcome;
}

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN free_any(DAT_HANDLE h)
{
	calls++;
	return outcome;
}

static DAT_RETURN free_twice_used(DAT_PZ_HANDLE pz)
{
	enter(pz, DAT_HANDLE_TYPE_EVD, &table, IA, 0);
	return free_any(pz);
}

static struct {
	DAT_HANDLE handle[6];
	const void *attr;
	DAT_CONN_QUAL qual;
	DAT_PSP_FLAGS flags;
} got;

static DAT_RETURN ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				     DAT_EVD_HANDLE request, DAT_EVD_HANDLE conn,
				     DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				     DAT_EP_HANDLE *out)
{
	got.handle[0] = ia;
	got.handle[1] = pz;
	got.handle[2] = recv;
	got.handle[3] = request;
	got.handle[4] = conn;
	got.handle[5] = srq;
	got.attr = attr;
	return make(out);
}

static DAT_RETURN psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			     DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out)
{
	got.qual = qual;
	got.handle[0] = evd;
	got.flags = flags;
	return make(out);
}

static struct {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN len;
	DAT_PZ_HANDLE pz;
	DAT_MEM_PRIV_FLAGS priv;
	int va;
	const void *out[5];
} lmr;

static DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			     DAT_VLEN len, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
#if DAT_VERSION_MAJOR >= 2
			     DAT_VA_TYPE va,
#endif
			     DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *lc, DAT_RMR_CONTEXT *rc,
			     DAT_VLEN *size, DAT_VADDR *addr)
{
	lmr.type = type;
	lmr.region = region;
	lmr.len = len;
	lmr.pz = pz;
	lmr.priv = priv;
#if DAT_VERSION_MAJOR >= 2
	lmr.va = va;
#endif
	lmr.out[0] = out;
	lmr.out[1] = lc;
	lmr.out[2] = rc;
	lmr.out[3] = size;
	lmr.out[4] = addr;
	return make(out);
}

#if DAT_VERSION_MAJOR >= 2
#define LMR_CREATE(type, region, len, priv, ...) \
	dat_lmr_create(IA, type, region, len, PZ, priv, DAT_VA_TYPE_ZB, __VA_ARGS__)
#else
#define LMR_CREATE(type, region, len, priv, ...) \
	dat_lmr_create(IA, type, region, len, PZ, priv, __VA_ARGS__)
#endif

static void set_up(void)
{
	table.pz_create_func = pz_create;
	table.pz_free_func = free_any;
	table.rmr_create_func = rmr_create;
	table.ep_create_with_srq_func = ep_create_with_srq;
	table.psp_create_func = psp_create;
	table.lmr_create_func = lmr_create;
	enter(IA, DAT_HANDLE_TYPE_IA, &table, IA, DREG_EXTENSIONS);
	enter(PZ, DAT_HANDLE_TYPE_PZ, &table, IA, DREG_EXTENSIONS);
	enter(RECV, DAT_HANDLE_TYPE_EVD, &table, IA, 0);
	enter(REQUEST, DAT_HANDLE_TYPE_EVD, &table, IA, 0);
	enter(CONN, DAT_HANDLE_TYPE_EVD, &table, IA, 0);
	enter(SRQ, DAT_HANDLE_TYPE_SRQ, &table, IA, 0);
	enter(LMR, DAT_HANDLE_TYPE_LMR, &table, IA, 0);
	enter(EP, DAT_HANDLE_TYPE_EP, &table, IA, DREG_EXTENSIONS | DREG_HAS_EP);
}

TestSuite(object, .init = set_up);

/*
 * Creating
 */

Test(object, without_room_there_is_no_memory)
{
	DAT_PZ_HANDLE pz;

	adds_left = 0;
	cr_expect_eq(dat_pz_create(IA, &pz), DREG_NO_MEMORY);
	cr_expect(!is_live(NEW));
}

Test(object, lmr_without_room_there_is_no_memory)
{
	const DAT_REGION_DESCRIPTION none = { NULL };
	DAT_LMR_HANDLE out;

	adds_left = 0;
	cr_expect_eq(LMR_CREATE(DAT_MEM_TYPE_VIRTUAL, none, 1, DAT_MEM_PRIV_ALL_FLAG, &out, NULL,
				NULL, NULL, NULL), DREG_NO_MEMORY);
	cr_expect(!is_live(NEW));
}

Test(object, handle_of_a_failed_call_is_not_entered)
{
	DAT_PZ_HANDLE pz;

	outcome = FAILED;
	cr_expect_eq(dat_pz_create(IA, &pz), FAILED);
	cr_expect(!is_live(NEW));
}

/* The provider decides whether NULL is allowed. */
Test(object, nowhere_to_put_the_handle)
{
	cr_expect_eq(dat_pz_create(IA, NULL), DAT_SUCCESS);
	cr_expect_eq(calls, 1);
	outcome = DREG_BAD_ARG(2);
	cr_expect_eq(dat_pz_create(IA, NULL), outcome);
}

Test(object, function_is_missed_before_anything_is_entered)
{
	DAT_PZ_HANDLE pz = NEW;

	table.pz_create_func = NULL;
	cr_expect_eq(dat_pz_create(IA, &pz), DREG_NOT_IMPLEMENTED);
	cr_expect(!is_live(NEW));
}

Test(object, made_object_belongs_to_the_ia)
{
	DAT_PZ_HANDLE pz;

	cr_expect_eq(dat_pz_create(IA, &pz), DAT_SUCCESS);
	cr_expect_eq(pz, NEW);
	cr_expect_eq(found(NEW).kind, DAT_HANDLE_TYPE_PZ);
	cr_expect_eq(found(NEW).owner, IA);
	cr_expect_eq(found(NEW).provider, &table);
	cr_expect_eq(found(NEW).flags, DREG_EXTENSIONS);
}

Test(object, rmr_belongs_to_the_ia_of_its_pz)
{
	DAT_RMR_HANDLE rmr;

	cr_expect_eq(dat_rmr_create(PZ, &rmr), DAT_SUCCESS);
	cr_expect_eq(found(NEW).kind, DAT_HANDLE_TYPE_RMR);
	cr_expect_eq(found(NEW).owner, IA);
}

Test(object, child_does_not_inherit_provider_made)
{
	DAT_RMR_HANDLE rmr;

	enter(PZ, DAT_HANDLE_TYPE_PZ, &table, IA, DREG_HAS_EP);
	cr_expect_eq(dat_rmr_create(PZ, &rmr), DAT_SUCCESS);
	cr_expect_eq(found(NEW).flags, 0);
}

/*
 * Arguments
 */

Test(object, ep_with_srq_gets_each_handle)
{
	const DAT_HANDLE want[] = { IA, PZ, RECV, REQUEST, CONN, SRQ };
	DAT_EP_HANDLE ep;
	static DAT_EP_ATTR attr;
	size_t i;

	cr_expect_eq(dat_ep_create_with_srq(IA, PZ, RECV, REQUEST, CONN, SRQ, &attr, &ep),
		     DAT_SUCCESS);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		cr_expect_eq(got.handle[i], want[i], "%zu", i);
	cr_expect_eq(got.attr, (const void *)&attr);
	cr_expect_eq(ep, NEW);
	cr_expect_eq(found(NEW).kind, DAT_HANDLE_TYPE_EP);
}

/* Even if the call fails, because a request may have arrived before that. */
Test(object, the_evd_of_a_service_point_takes_requests)
{
	DAT_PSP_HANDLE psp;

	cr_expect_eq(found(CONN).flags & DREG_TAKES_REQUESTS, 0);
	outcome = FAILED;
	cr_expect_eq(dat_psp_create(IA, 1, CONN, DAT_PSP_CONSUMER_FLAG, &psp), FAILED);
	cr_expect_neq(found(CONN).flags & DREG_TAKES_REQUESTS, 0);
	cr_expect_eq(found(RECV).flags & DREG_TAKES_REQUESTS, 0);
}

Test(object, psp_gets_all_64_bits_of_its_qualifier)
{
	DAT_PSP_HANDLE psp;

	cr_expect_eq(dat_psp_create(IA, UINT64_C(0xfedcba9876543210), CONN, DAT_PSP_PROVIDER_FLAG,
				    &psp), DAT_SUCCESS);
	cr_expect_eq(got.qual, UINT64_C(0xfedcba9876543210));
	cr_expect_eq(got.handle[0], CONN);
	cr_expect_eq(got.flags, DAT_PSP_PROVIDER_FLAG);
}

Test(object, lmr_gets_its_arguments)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = &lmr };
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;
	DAT_LMR_HANDLE out;
	DAT_VADDR addr;
	DAT_VLEN size;

	cr_expect_eq(LMR_CREATE(DAT_MEM_TYPE_VIRTUAL, region, UINT64_C(0x123456789a),
				DAT_MEM_PRIV_LOCAL_READ_FLAG, &out, &lc, &rc, &size, &addr),
		     DAT_SUCCESS);
	cr_expect_eq(lmr.type, DAT_MEM_TYPE_VIRTUAL);
	cr_expect_eq(lmr.region.for_va, (void *)&lmr);
	cr_expect_eq(lmr.len, UINT64_C(0x123456789a));
	cr_expect_eq(lmr.pz, PZ);
	cr_expect_eq(lmr.priv, DAT_MEM_PRIV_LOCAL_READ_FLAG);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(lmr.va, DAT_VA_TYPE_ZB);
#endif
	cr_expect_eq(lmr.out[0], (const void *)&out);
	cr_expect_eq(lmr.out[1], (const void *)&lc);
	cr_expect_eq(lmr.out[2], (const void *)&rc);
	cr_expect_eq(lmr.out[3], (const void *)&size);
	cr_expect_eq(lmr.out[4], (const void *)&addr);
	cr_expect_eq(found(NEW).kind, DAT_HANDLE_TYPE_LMR);
}

Test(object, region_that_is_an_lmr_must_be_one)
{
	const DAT_REGION_DESCRIPTION dead = { .for_lmr_handle = NTH(20) };
	const DAT_REGION_DESCRIPTION good = { .for_lmr_handle = LMR };
	DAT_LMR_HANDLE out;

	cr_expect_eq(LMR_CREATE(DAT_MEM_TYPE_LMR, dead, 1, DAT_MEM_PRIV_ALL_FLAG, &out, NULL, NULL,
				NULL, NULL), DREG_BAD_HANDLE(LMR));
	cr_expect_eq(calls, 0);
	cr_expect_eq(LMR_CREATE(DAT_MEM_TYPE_LMR, good, 1, DAT_MEM_PRIV_ALL_FLAG, &out, NULL, NULL,
				NULL, NULL), DAT_SUCCESS);
}

Test(object, region_of_memory_is_not_taken_for_a_handle)
{
	const DAT_REGION_DESCRIPTION memory = { .for_va = NTH(20) };
	DAT_LMR_HANDLE out;

	cr_expect_eq(LMR_CREATE(DAT_MEM_TYPE_VIRTUAL, memory, 1, DAT_MEM_PRIV_ALL_FLAG, &out, NULL,
				NULL, NULL, NULL), DAT_SUCCESS);
}

/*
 * Freeing
 */

Test(object, second_free_does_not_reach_the_provider)
{
	cr_expect_eq(dat_pz_free(PZ), DAT_SUCCESS);
	cr_expect_eq(dat_pz_free(PZ), DREG_BAD_HANDLE(PZ));
	cr_expect_eq(calls, 1);
}

Test(object, refused_free_can_be_repeated)
{
	outcome = DREG_ERR(DAT_INVALID_STATE, 0);
	cr_expect_eq(dat_pz_free(PZ), outcome);
	outcome = DAT_SUCCESS;
	cr_expect_eq(dat_pz_free(PZ), DAT_SUCCESS);
	cr_expect_eq(calls, 2);
	cr_expect(!is_live(PZ));
}

Test(object, address_reused_as_another_kind_lives)
{
	table.pz_free_func = free_twice_used;
	cr_expect_eq(dat_pz_free(PZ), DAT_SUCCESS);
	cr_expect_eq(found(PZ).kind, DAT_HANDLE_TYPE_EVD);
}

/* The program may free an endpoint that a provider made for a CR. */
Test(object, ep_that_the_provider_made_is_freed)
{
	table.ep_free_func = free_any;
	cr_expect_eq(dat_ep_free(EP), DAT_SUCCESS);
	cr_expect(!is_live(EP));
}
