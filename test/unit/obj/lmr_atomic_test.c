/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Atomics of peers: what they do, and which memory they may access. */

#include "obj/lmr_atomic.h"

#include "obj/fixture.h"

#include <errno.h>

#if DAT_VERSION_MAJOR >= 2
#define PRIVILEGES ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC))

static uint64_t target[4];
static DAT_LMR_HANDLE target_lmr;
static DAT_LMR_CONTEXT local;
static DAT_RMR_CONTEXT key;

static void init(void)
{
	objects_init();
	memset(target, 0, sizeof(target));
	succeed(lmr_make(pz, target, sizeof(target), PRIVILEGES, &target_lmr, &local, &key));
}

TestSuite(lmr_atomic, .init = init, .fini = ia_fini);

static int add(DAT_PZ_HANDLE in, uint32_t with, const void *addr, uint64_t operand, uint64_t *old)
{
	const struct dofi_atomic a = { .addr = (uintptr_t)addr, .operand = operand, .key = with };

	return dofi_lmr_atomic(in, &a, old);
}

static void refused(DAT_PZ_HANDLE in, uint32_t with, const void *addr)
{
	uint64_t old = 77;

	cr_expect_eq(add(in, with, addr, 1, &old), -EACCES);
	cr_expect_eq(old, 77);
	cr_expect_eq(target[0] | target[1] | target[2] | target[3], 0);
}

Test(lmr_atomic, an_addition_wraps)
{
	uint64_t old;

	target[3] = UINT64_MAX;
	cr_assert_eq(add(pz, key, &target[3], 2, &old), 0);
	cr_expect_eq(old, UINT64_MAX);
	cr_expect_eq(target[3], 1);
}

Test(lmr_atomic, a_swap_needs_what_it_compares_with)
{
	struct dofi_atomic a = {
		.addr = (uintptr_t)&target[0], .operand = 5, .compare = 1, .key = key, .swap = true,
	};
	uint64_t old;

	cr_assert_eq(dofi_lmr_atomic(pz, &a, &old), 0);
	cr_expect_eq(old, 0);
	cr_expect_eq(target[0], 0);
	a.compare = 0;
	cr_assert_eq(dofi_lmr_atomic(pz, &a, &old), 0);
	cr_expect_eq(old, 0);
	cr_expect_eq(target[0], 5);
}

Test(lmr_atomic, what_is_not_granted)
{
	DAT_PZ_HANDLE other;

	succeed(dofi_pz_create(ia, &other));
	refused(pz, key + 1, target);
	refused(pz, 0, target);
	refused(other, key, target);
	refused(pz, key, (char *)target + 4);		/* not aligned */
	refused(pz, key, (char *)target + sizeof(target));	/* behind the end */
	refused(pz, key, (void *)((uintptr_t)target - 8));
	refused(pz, key, (void *)(uintptr_t)(UINT64_MAX - 7));
	refused(pz, rmr_context, memory);		/* without the privilege */
	succeed(dofi_pz_free(other));
}

Test(lmr_atomic, a_freed_region_is_none)
{
	DAT_LMR_HANDLE more;
	DAT_RMR_CONTEXT second;
	uint64_t old;

	succeed(lmr_make(pz, target, 8, PRIVILEGES, &more, &local, &second));
	succeed(dofi_lmr_free(target_lmr));
	refused(pz, key, target);
	cr_expect_eq(add(pz, second, target, 1, &old), 0);
	cr_expect_eq(target[0], 1);
}

Test(lmr_atomic, the_atomic_privilege_needs_the_write_privilege)
{
	expect_arg(lmr_make(pz, target, 8, (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG |
				DAT_IB_MEM_PRIV_REMOTE_ATOMIC), &target_lmr, &local, &key), 6);
	succeed(lmr_make(pz, target, 8, (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				DAT_IB_MEM_PRIV_REMOTE_ATOMIC), &target_lmr, &local, &key));
	cr_expect(key != 0, "it is for peers");
}
#else
TestSuite(lmr_atomic, .init = objects_init, .fini = ia_fini);

/* uDAPL 1.2 has no privilege for atomics. */
Test(lmr_atomic, nothing_is_granted)
{
	const struct dofi_atomic a = { .addr = (uintptr_t)memory,
				       .operand = 1,
				       .key = rmr_context };
	uint64_t old;

	cr_expect_eq(dofi_lmr_atomic(pz, &a, &old), -EACCES);
}
#endif
