/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registrations, the check of segments that name them, and atomics of peers. */

#include "obj/fixture.h"
#include "obj/reason.h"

#include <errno.h>
#include <sys/mman.h>

static struct dofi_lmr *look_up(DAT_LMR_CONTEXT context, uint64_t addr, uint64_t len,
				const struct dofi_pz *in, unsigned priv, DAT_RETURN *reason)
{
	struct dofi_lmr *lmr = dofi_lmr_at(context);

	if (dofi_lmr_allows(lmr, addr, len, in, (DAT_MEM_PRIV_FLAGS)priv))
		return lmr;
	*reason = dofi_lmr_refusal(lmr, addr, len, in, (DAT_MEM_PRIV_FLAGS)priv);
	return NULL;
}

static DAT_LMR_HANDLE h;
static DAT_RETURN why;

static DAT_RETURN make(void *addr, DAT_VLEN len, int priv)
{
	return lmr_make(pz, addr, len, (DAT_MEM_PRIV_FLAGS)priv, &h, NULL, NULL);
}

static struct dofi_lmr *find(uint64_t addr, uint64_t len, int priv)
{
	return look_up(lmr_context, addr, len, pz, (DAT_MEM_PRIV_FLAGS)priv, &why);
}

TestSuite(lmr, .init = objects_init, .fini = ia_fini);

/* Creating */

Test(lmr, is_registered_as_asked)
{
	succeed(make(memory + 8, 100,
		     DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG));
	cr_expect_eq(fake.mr_addr, memory + 8);
	cr_expect_eq(fake.mr_len, 100);
	cr_expect(fake.mr_access & FI_REMOTE_WRITE);
	cr_expect(!(fake.mr_access & FI_REMOTE_READ));
}

Test(lmr, handles_are_checked)
{
	DAT_PZ_HANDLE good = pz;

	pz = NULL;
	expect_handle(make(memory, 8, 0), PZ);
	pz = evd;
	expect_handle(make(memory, 8, 0), PZ);
	pz = good;
	ia = (struct dofi_ia *)good;
	expect_handle(make(memory, 8, 0), IA);
	ia = ((struct dofi_obj *)good)->ia;
}

Test(lmr, needs_a_place_for_its_handle)
{
	expect_type(lmr_make(pz, memory, 8, DAT_MEM_PRIV_ALL_FLAG, NULL, NULL, NULL),
		    DAT_INVALID_PARAMETER);
}

Test(lmr, a_pz_of_another_ia_is_refused)
{
	struct dofi_ia *first = ia, *second;

	cr_assert_eq(ia_try_open(&second), 0);
	ia = second;
	expect_handle(make(memory, 8, 0), PZ);
	ia = first;
	succeed(dofi_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
}

Test(lmr, a_refusal_gives_its_reason)
{
	REASON(make(memory, 0, 0), "length is 0; permitted: 1 to");
	REASON(make(memory, UINT64_MAX, 0), "no memory lies at");
	REASON(make(memory, 8, 0x40000), "mem_privileges are 0x40000; permitted: some of 0x");
	REASON(make(memory, 8, DAT_MEM_PRIV_REMOTE_WRITE_FLAG), "remote write needs LOCAL_WRITE");
	REASON(lmr_make(evd, memory, 8, DAT_MEM_PRIV_ALL_FLAG, &h, NULL, NULL), "no live PZ");
	REASON(lmr_make(pz, memory, 8, DAT_MEM_PRIV_ALL_FLAG, NULL, NULL, NULL), "no lmr_handle");
	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_EFAULT;
	REASON(make(memory, 8, 0), "registering 8 bytes: Bad address");
}

Test(lmr, nothing_cannot_be_registered)
{
	expect_type(make(memory, 0, 0), DAT_LENGTH_ERROR);
}

Test(lmr, a_region_must_not_wrap)
{
	expect_arg(make(memory, UINT64_MAX, 0), 3);
	expect_arg(make((void *)UINTPTR_MAX, 2, 0), 3);
	expect_arg(make(NULL, 8, 0), 3);
}

Test(lmr, unknown_privileges_are_refused)
{
	expect_arg(make(memory, 8, 0x40000), 6);
}

Test(lmr, remote_write_needs_local_write)
{
	expect_arg(make(memory, 8, DAT_MEM_PRIV_REMOTE_WRITE_FLAG), 6);
}

Test(lmr, what_the_fabric_calls_a_bad_address_is_one)
{
	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_EFAULT;
	expect_arg(make(memory, 8, 0), 3);
}

Test(lmr, without_resources_of_the_fabric_there_is_none)
{
	DAT_COUNT before = dofi_lmr_pool.used;

	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_ENOMEM;
	expect_type(make(memory, 8, 0), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(dofi_lmr_pool.used, (size_t)before);
}

Test(lmr, without_remote_privilege_there_is_no_remote_key)
{
	DAT_RMR_CONTEXT key = 7;

	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &h, NULL, &key));
	cr_expect_eq(key, 0);
	cr_expect(rmr_context);
}

/* All arguments of a creation, in a form for both versions. */
struct lmr_args {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	int priv;
	bool zero_based;		/* 2.0 only */
	DAT_PZ_HANDLE pz;
};

static DAT_LMR_CONTEXT local;
static DAT_RMR_CONTEXT remote;
static DAT_VLEN size;
static DAT_VADDR address;

static DAT_RETURN lmr_create(const struct lmr_args *w)
{
	const DAT_PZ_HANDLE in = w->pz ? w->pz : pz;

#if DAT_VERSION_MAJOR >= 2
	return dofi_lmr_create(ia, w->type, w->region, w->length, in, (DAT_MEM_PRIV_FLAGS)w->priv,
			       w->zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA, &h, &local, &remote,
			       &size, &address);
#else
	return dofi_lmr_create(ia, w->type, w->region, w->length, in, (DAT_MEM_PRIV_FLAGS)w->priv,
			       &h, &local, &remote, &size, &address);
#endif
}

static struct lmr_args args_of_lmr(DAT_LMR_HANDLE of)
{
	return (struct lmr_args){ .type = DAT_MEM_TYPE_LMR, .region.for_lmr_handle = of };
}

static DAT_LMR_PARAM query(DAT_LMR_HANDLE of)
{
	DAT_LMR_PARAM p;

	succeed(dofi_lmr_query(of, DAT_LMR_FIELD_ALL, &p));
	return p;
}

Test(lmr, unknown_memory_types_are_refused)
{
	expect_arg(lmr_create(&(struct lmr_args){ .type = (DAT_MEM_TYPE)0x55, .length = 8 }), 2);
	expect_arg(lmr_create(&(struct lmr_args){ .type = (DAT_MEM_TYPE)-1, .length = 8 }), 2);
}

Test(lmr, is_no_larger_than_the_attribute_says)
{
	const uint64_t most = (dofi_seg_length)-1;
	DAT_IA_ATTR attr;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	cr_expect_eq(attr.max_lmr_block_size, most);
	if (DAT_VERSION_MAJOR >= 2) {
		expect_arg(make((void *)4096, most + 1, 0), 4);
		succeed(make((void *)4096, most, 0));
	}
}

/* An LMR of another LMR */

Test(lmr, an_lmr_of_an_lmr_has_its_memory)
{
	struct lmr_args w = args_of_lmr(lmr);
	DAT_LMR_PARAM p;

	w.length = 3;			/* is ignored */
	w.priv = DAT_MEM_PRIV_REMOTE_READ_FLAG;
	succeed(lmr_create(&w));
	cr_expect_eq(fake.mr_addr, memory);
	cr_expect_eq(fake.mr_len, sizeof(memory));
	cr_expect_eq(size, sizeof(memory));
	cr_expect_eq(address, (uintptr_t)memory);
	cr_expect(local != lmr_context && remote && remote != rmr_context);
	p = query(h);
	cr_expect_eq(p.mem_type, DAT_MEM_TYPE_LMR);
	cr_expect_eq(p.region_desc.for_lmr_handle, lmr);
	cr_expect_eq(p.length, sizeof(memory));
	cr_expect_eq(p.mem_priv, DAT_MEM_PRIV_REMOTE_READ_FLAG);
}

Test(lmr, an_lmr_of_an_lmr_outlives_it)
{
	struct lmr_args w = args_of_lmr(lmr);
	DAT_LMR_HANDLE derived, again;

	succeed(lmr_create(&w));
	derived = h;
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(find((uintptr_t)memory, 8, 0), NULL);
	lmr_context = local;
	cr_expect_eq(find((uintptr_t)memory, sizeof(memory), 0), derived);
	w = args_of_lmr(derived);
	succeed(lmr_create(&w));
	again = h;
	succeed(dofi_lmr_free(derived));
	cr_expect_eq(query(again).length, sizeof(memory));
}

Test(lmr, an_lmr_of_an_lmr_may_be_of_another_pz)
{
	struct lmr_args w = args_of_lmr(lmr);

	succeed(dofi_pz_create(ia, &w.pz));
	succeed(lmr_create(&w));
	lmr_context = local;
	cr_expect_eq(find((uintptr_t)memory, 8, 0), NULL);
	pz = w.pz;
	cr_expect_eq(find((uintptr_t)memory, 8, 0), h);
}

Test(lmr, what_another_is_made_of_must_be_a_live_lmr_of_the_ia)
{
	const DAT_HANDLE bad[] = { NULL, pz, evd, NOWHERE, memory, ia };
	struct dofi_ia *first = ia, *second;
	struct lmr_args w;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w = args_of_lmr(bad[i]);
		expect_handle(lmr_create(&w), LMR);
	}
	w = args_of_lmr(lmr);
	w.priv = 0x40000;
	expect_arg(lmr_create(&w), 6);
	w.priv = 0;
	cr_assert_eq(ia_try_open(&second), 0);
	ia = second;
	expect_handle(lmr_create(&w), LMR);
	ia = first;
	succeed(dofi_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	succeed(dofi_lmr_free(lmr));
	expect_handle(lmr_create(&w), LMR);
}

/* Shared */

#define SHARED_SIZE 8192u

static char cookie[DAT_LMR_COOKIE_SIZE];

static char *map_shared(void)
{
	return mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static struct lmr_args args_of_shared(void *at, DAT_VLEN length)
{
	return (struct lmr_args){
		.type = DAT_MEM_TYPE_SHARED_VIRTUAL, .length = length,
		.region.for_shared_memory = { .virtual_address = at, .shared_memory_id = &cookie },
	};
}

Test(lmr, shared_memory_keeps_its_cookie)
{
	char *at = map_shared(), given[DAT_LMR_COOKIE_SIZE];
	struct lmr_args w = args_of_shared(at + 8, SHARED_SIZE - 8);
	DAT_SHARED_MEMORY found;
	DAT_LMR_PARAM p;

	memset(cookie, 0x5a, sizeof(cookie));
	memcpy(given, cookie, sizeof(given));
	succeed(lmr_create(&w));
	memset(cookie, 0, sizeof(cookie));	/* the consumer may change its copy */
	cr_expect_eq(fake.mr_addr, at + 8);
	cr_expect_eq(fake.mr_len, SHARED_SIZE - 8);
	p = query(h);
	found = p.region_desc.for_shared_memory;
	cr_expect_eq(p.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	cr_expect_eq(found.virtual_address, at + 8);
	cr_expect(!memcmp(*found.shared_memory_id, given, sizeof(given)));
	/* another LMR over this one */
	w = args_of_lmr(h);
	succeed(lmr_create(&w));
	cr_expect_eq(address, (uintptr_t)at + 8);
}

Test(lmr, shared_memory_must_be_there_and_shared)
{
	char *at = map_shared();
	struct lmr_args w = args_of_shared(at, SHARED_SIZE);

	w.region.for_shared_memory.shared_memory_id = NULL;
	expect_arg(lmr_create(&w), 3);
	w = args_of_shared(NULL, SHARED_SIZE);
	expect_arg(lmr_create(&w), 3);
	w = args_of_shared(at, 0);
	expect_type(lmr_create(&w), DAT_LENGTH_ERROR);
	w = args_of_shared(memory, 8);
	expect_type(lmr_create(&w), DAT_INVALID_STATE);
	munmap(at + SHARED_SIZE / 2, SHARED_SIZE / 2);
	w = args_of_shared(at + SHARED_SIZE / 2, 8);
	expect_arg(lmr_create(&w), 3);
	w = args_of_shared(at, SHARED_SIZE / 2);
	succeed(lmr_create(&w));
}

/* All 40 bytes count, including zeros. */
Test(lmr, a_cookie_stands_for_one_memory)
{
	char *a = map_shared(), *b = map_shared();
	struct lmr_args w = args_of_shared(a, SHARED_SIZE);
	DAT_LMR_HANDLE first;

	succeed(lmr_create(&w));
	first = h;
	succeed(lmr_create(&w));
	w = args_of_shared(b, SHARED_SIZE);
	expect_type(lmr_create(&w), DAT_INVALID_STATE);
	w = args_of_shared(a, SHARED_SIZE / 2);
	expect_type(lmr_create(&w), DAT_INVALID_STATE);
	w = args_of_shared(b, SHARED_SIZE);
	cookie[DAT_LMR_COOKIE_SIZE - 1] = 1;
	succeed(lmr_create(&w));
	cookie[DAT_LMR_COOKIE_SIZE - 1] = 0;
	succeed(dofi_lmr_free(first));
	expect_type(lmr_create(&w), DAT_INVALID_STATE);
}

#if DAT_VERSION_MAJOR >= 2
/* Zero-based */

Test(lmr, addresses_are_virtual_or_offsets_where_the_fabric_can)
{
	const struct lmr_args w = {
		.region.for_va = memory + 64, .length = 100, .zero_based = true,
	};
	DAT_IA_ATTR attr;

	expect_arg(dofi_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, w.region, 8, pz, DAT_MEM_PRIV_ALL_FLAG,
				   (DAT_VA_TYPE)9, &h, NULL, NULL, NULL, NULL), 7);
	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	cr_expect_eq(attr.zb_supported, DAT_TRUE);
	ia->fabric.zero_based = false;
	expect_type(lmr_create(&w), DAT_MODEL_NOT_SUPPORTED);
}

Test(lmr, zero_based_segments_count_from_the_first_byte)
{
	const struct lmr_args w = {
		.region.for_va = memory + 64, .length = 100, .zero_based = true,
	};
	struct dofi_lmr *found;

	succeed(lmr_create(&w));
	cr_expect_eq(fake.mr_addr, memory + 64);
	cr_expect_eq(fake.mr_offset, (uintptr_t)memory + 64);
	cr_expect_eq(address, (uintptr_t)memory + 64);
	cr_expect_eq(query(h).va_type, DAT_VA_TYPE_ZB);
	cr_expect_eq(query(lmr).va_type, DAT_VA_TYPE_VA);
	lmr_context = local;
	found = find(0, 100, 0);
	cr_assert_eq(found, h);
	cr_expect_eq(dofi_lmr_memory(found, 7), memory + 71);
	cr_expect_eq(find(99, 1, 0), h);
	cr_expect_eq(find(99, 2, 0), NULL);
	cr_expect_eq(find((uintptr_t)memory + 64, 1, 0), NULL);
	cr_expect_eq(find(UINT64_MAX, 2, 0), NULL);
}

Test(lmr, an_lmr_of_an_lmr_is_counted_by_itself)
{
	struct lmr_args w = args_of_lmr(lmr);
	DAT_LMR_HANDLE zero_based;

	w.zero_based = true;
	succeed(lmr_create(&w));
	zero_based = h;
	cr_expect_eq(fake.mr_offset, (uintptr_t)memory);
	w = args_of_lmr(zero_based);
	succeed(lmr_create(&w));
	cr_expect_eq(fake.mr_addr, memory);
	cr_expect_eq(fake.mr_offset, 0);
	lmr_context = local;
	cr_expect_eq(find((uintptr_t)memory, sizeof(memory), 0), h);
}

Test(lmr, infinibands_atomic_privilege_is_accepted)
{
	succeed(make(memory, 8, DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
}
#endif

Test(lmr, query_returns_all)
{
	DAT_LMR_PARAM p;

	succeed(dofi_lmr_query(lmr, DAT_LMR_FIELD_ALL, &p));
	cr_expect_eq(p.ia_handle, ia);
	cr_expect_eq(p.pz_handle, pz);
	cr_expect_eq(p.mem_type, DAT_MEM_TYPE_VIRTUAL);
	cr_expect_eq(p.region_desc.for_va, memory);
	cr_expect_eq(p.length, sizeof(memory));
	cr_expect_eq(p.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
	cr_expect_eq(p.lmr_context, lmr_context);
	cr_expect_eq(p.rmr_context, rmr_context);
	cr_expect_eq(p.registered_size, sizeof(memory));
	cr_expect_eq(p.registered_address, (uintptr_t)memory);
}

Test(lmr, query_checks_its_arguments)
{
	DAT_LMR_PARAM p;

	expect_handle(dofi_lmr_query(pz, DAT_LMR_FIELD_ALL, &p), LMR);
	expect_arg(dofi_lmr_query(lmr, (DAT_LMR_PARAM_MASK)(DAT_LMR_FIELD_ALL + 1), &p), 2);
	expect_arg(dofi_lmr_query(lmr, DAT_LMR_FIELD_ALL, NULL), 3);
}

Test(lmr, is_freed_once)
{
	int before = fake.open;

	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake.open, before - 1);
	expect_handle(dofi_lmr_free(lmr), LMR);
}

/* Finding */

TestSuite(lmr_find, .init = objects_init, .fini = ia_fini);

#define BASE ((uint64_t)(uintptr_t)memory)

Test(lmr_find, takes_the_whole_and_every_part)
{
	cr_expect_eq(find(BASE, sizeof(memory), 0), lmr);
	cr_expect_eq(find(BASE, 1, 0), lmr);
	cr_expect_eq(find(BASE + sizeof(memory) - 1, 1, 0), lmr);
}

Test(lmr_find, refuses_what_reaches_beyond)
{
	static const struct {
		int64_t offset;
		uint64_t len;
	} bad[] = {
		{ -1, 1 }, { -1, sizeof(memory) }, { 0, sizeof(memory) + 1 }, { 1, sizeof(memory) },
		{ sizeof(memory), 1 }, { sizeof(memory) - 1, 2 }, { 0, UINT64_MAX },
		{ 1, UINT64_MAX }, { sizeof(memory), UINT64_MAX }, { -4096, 8192 + sizeof(memory) },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect(!find(BASE + bad[i].offset, bad[i].len, 0), "%zu", i);
		expect_arg(why, 3);
	}
}

Test(lmr_find, lengths_that_wrap_the_address_are_refused)
{
	uint64_t addr;

	for (addr = BASE; addr < BASE + 64; addr++) {
		cr_expect(!find(addr, 0 - addr, 0));
		cr_expect(!find(addr, 8 - addr, 0));
		cr_expect(!find(addr, UINT64_MAX - addr + BASE, 0));
	}
}

Test(lmr_find, every_bound_holds)
{
	uint64_t off, len;

	for (off = 0; off < 48; off++)
		for (len = 0; len < 48; len++) {
			uint64_t addr = BASE + sizeof(memory) - 24 + off - 12;
			bool inside = addr + len <= BASE + sizeof(memory);

			cr_assert_eq(find(addr, len, 0) != NULL, inside);
		}
}

Test(lmr_find, contexts_that_never_were_are_refused)
{
	unsigned i;

	for (i = 0; i < 32; i++) {
		cr_expect(!look_up(lmr_context ^ 1u << i, BASE, 1, pz, 0, &why), "bit %u", i);
		expect_type(why, DAT_PROTECTION_VIOLATION);
	}
	cr_expect(!look_up(0, BASE, 1, pz, 0, &why));
	cr_expect(!look_up(UINT32_MAX, BASE, 1, pz, 0, &why));
}

Test(lmr_find, a_freed_context_is_refused)
{
	succeed(dofi_lmr_free(lmr));
	cr_expect(!find(BASE, 1, 0));
}

/* The pool returns the first LMR's memory after all others, with another context. */
Test(lmr_find, a_stale_context_is_refused_when_its_place_is_taken)
{
	DAT_LMR_CONTEXT context = 0;
	int i;

	succeed(dofi_lmr_free(lmr));
	for (i = 0; i < 2 * DOFI_POOL_FIRST; i++) {
		succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &h, &context,
				 NULL));
		if (h == lmr)
			break;
		succeed(dofi_lmr_free(h));
	}
	cr_assert_eq(h, lmr);
	cr_expect(context != lmr_context);
	cr_expect(!find(BASE, 1, 0));
	cr_expect_eq(look_up(context, BASE, 1, pz, 0, &why), lmr);
}

Test(lmr_find, another_pzs_context_is_refused)
{
	DAT_PZ_HANDLE other;

	succeed(dofi_pz_create(ia, &other));
	cr_expect(!look_up(lmr_context, BASE, 1, other, 0, &why));
	expect_type(why, DAT_PROTECTION_VIOLATION);
	cr_expect(!look_up(lmr_context, BASE, 1, NULL, 0, &why));
}

Test(lmr_find, missing_privileges_are_distinguished)
{
	DAT_LMR_CONTEXT context;

	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_LOCAL_READ_FLAG, &h, &context, NULL));
	cr_expect_eq(look_up(context, BASE, 8, pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &why), h);
	cr_expect(!look_up(context, BASE, 8, pz, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &why));
	expect_type(why, DAT_PRIVILEGES_VIOLATION);
}

/* Memory that may be written may be sent. Memory without a local privilege may not. */
Test(lmr_find, sending_needs_a_local_privilege)
{
	DAT_LMR_CONTEXT context;

	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &h, &context, NULL));
	cr_expect_eq(look_up(context, BASE, 8, pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &why), h);
	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_NONE_FLAG, &h, &context, NULL));
	cr_expect(!look_up(context, BASE, 8, pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &why));
	expect_ret(why, DOFI_RET(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ));
	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_REMOTE_READ_FLAG, &h, &context, NULL));
	cr_expect(!look_up(context, BASE, 8, pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &why));
}

/* Synchronising */

Test(lmr, sync_checks_each_segment)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 16), segment(sizeof(memory) - 8, 8) };

	succeed(dofi_lmr_sync(ia, s, 2));
	s[1] = segment(sizeof(memory) - 8, 9);
	expect_arg(dofi_lmr_sync(ia, s, 2), 2);
	succeed(dofi_lmr_sync(ia, s, 1));
}

Test(lmr, sync_checks_its_arguments)
{
	DAT_LMR_TRIPLET s = segment(0, 16);

	expect_handle(dofi_lmr_sync(NULL, &s, 1), IA);
	expect_arg(dofi_lmr_sync(ia, NULL, 1), 2);
	succeed(dofi_lmr_sync(ia, NULL, 0));
	s.lmr_context = 0;
	expect_arg(dofi_lmr_sync(ia, &s, 1), 2);
	s.lmr_context = UINT32_MAX;
	expect_arg(dofi_lmr_sync(ia, &s, 1), 2);
}

Test(lmr, sync_of_a_freed_region_is_refused)
{
	DAT_LMR_TRIPLET s = segment(0, 16);

	succeed(dofi_lmr_free(lmr));
	expect_arg(dofi_lmr_sync(ia, &s, 1), 2);
}

/* Where the target of RDMA moves the bytes */

TestSuite(lmr_granting, .init = objects_init_granting, .fini = ia_fini);

Test(lmr_granting, an_lmr_is_granted_while_it_lives)
{
	const uint64_t at = (uintptr_t)memory, size = sizeof(memory);

	cr_expect_eq(fake.mrs, 0, "nothing is registered");
	cr_expect(peer_may(rmr_context, 0, at, size, FI_REMOTE_READ));
	cr_expect(peer_may(rmr_context, 0, at, size, FI_REMOTE_WRITE));
	cr_expect(!peer_may(rmr_context, 0, at + 1, size, FI_REMOTE_WRITE));
	cr_expect(!peer_may(lmr_context, 0, at, size, FI_REMOTE_READ));
	succeed(dofi_lmr_free(lmr));
	cr_expect(!peer_may(rmr_context, 0, at, size, FI_REMOTE_READ));
}

Test(lmr_granting, its_privileges_are_what_is_granted)
{
	const uint64_t at = (uintptr_t)memory;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE other;

	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_REMOTE_READ_FLAG, &other, &local, &remote));
	cr_expect(peer_may(remote, 0, at, 8, FI_REMOTE_READ));
	cr_expect(!peer_may(remote, 0, at, 8, FI_REMOTE_WRITE));
	succeed(dofi_lmr_free(other));
	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &other, &local, &remote));
	cr_expect_eq(remote, 0);
	cr_expect(!peer_may(((struct dofi_lmr *)other)->mr.key, 0, at, 8, FI_REMOTE_READ));
}

Test(lmr_granting, another_pzs_key_is_refused)
{
	const uint64_t at = (uintptr_t)memory;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE other;
	DAT_PZ_HANDLE other_pz;

	succeed(dofi_pz_create(ia, &other_pz));
	succeed(lmr_make(other_pz, memory, 8, DAT_MEM_PRIV_ALL_FLAG, &other, &local, &remote));
	cr_expect(!peer_may(remote, 0, at, 8, FI_REMOTE_READ));
	pz = other_pz;
	cr_expect(peer_may(remote, 0, at, 8, FI_REMOTE_READ));
}

#if DAT_VERSION_MAJOR >= 2
Test(lmr_granting, peers_may_count_from_its_first_byte)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = memory + 64 };
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE other;

	ia->fabric.zero_based = true;
	succeed(dofi_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 100, pz, DAT_MEM_PRIV_ALL_FLAG,
				DAT_VA_TYPE_ZB, &other, NULL, &remote, NULL, NULL));
	cr_expect(peer_may(remote, 0, 0, 100, FI_REMOTE_WRITE));
	cr_expect(!peer_may(remote, 0, 1, 100, FI_REMOTE_WRITE));
	cr_expect(!peer_may(remote, 0, (uintptr_t)memory + 64, 1, FI_REMOTE_WRITE));
}
#endif

/* Atomics of peers: effects and permitted memory */

#if DAT_VERSION_MAJOR >= 2
#define PRIVILEGES ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC))

static uint64_t target[4];
static DAT_LMR_HANDLE target_lmr;
static DAT_LMR_CONTEXT local;
static DAT_RMR_CONTEXT key;

static void target_init(void)
{
	objects_init();
	memset(target, 0, sizeof(target));
	succeed(lmr_make(pz, target, sizeof(target), PRIVILEGES, &target_lmr, &local, &key));
}

TestSuite(lmr_atomic, .init = target_init, .fini = ia_fini);

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
