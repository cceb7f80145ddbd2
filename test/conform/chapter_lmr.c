/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Local memory regions; other chapters transfer data with them. */

#include "conform.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

CHAPTER("lmr");

#define SIZE 8192

static unsigned char memory[SIZE] __attribute__((aligned(4096)));
static DAT_LMR_CONTEXT lmr_context;
static DAT_RMR_CONTEXT rmr_context;

static DAT_RETURN register_it(struct node *n, void *base, DAT_VLEN length, unsigned priv,
			      DAT_LMR_HANDLE *lmr)
{
	return lmr_create(n->ia, base, length, n->pz, (DAT_MEM_PRIV_FLAGS)priv, lmr, &lmr_context,
			  &rmr_context);
}

static DAT_LMR_HANDLE registered(struct node *n, unsigned priv)
{
	DAT_LMR_HANDLE lmr;

	OK(register_it(n, memory, SIZE, priv, &lmr));
	return lmr;
}

static DAT_LMR_PARAM query(DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param;

	memset(&param, 0xff, sizeof(param));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	return param;
}

/* dat_lmr_create of virtual memory */

CLAUSE("dat_lmr_query/SUCCESS/the arguments of dat_lmr_create()")
{
	DAT_LMR_HANDLE lmr = registered(n, DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_PARAM param = query(lmr);

	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "wrong IA or PZ");
	SAME(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
	CHECK(param.region_desc.for_va == memory, "wrong address");
	SAME(param.length, SIZE);
	SAME(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
	SAME(param.lmr_context, lmr_context);
	SAME(param.rmr_context, rmr_context);
	CHECK(param.registered_address <= (uintptr_t)memory &&
	      param.registered_address + param.registered_size >= (uintptr_t)memory + SIZE,
	      "not covered");
#if DAT_VERSION_MAJOR >= 2
	SAME(param.va_type, DAT_VA_TYPE_VA);
#endif
	OK(dat_lmr_free(lmr));
}

CLAUSE("dat_lmr_create/SUCCESS/one byte at an odd address")
{
	DAT_LMR_HANDLE lmr;

	OK(register_it(n, memory + 4093, 1, DAT_MEM_PRIV_ALL_FLAG, &lmr));
	SAME(query(lmr).length, 1);
	OK(dat_lmr_free(lmr));
}

CLAUSE("dat_lmr_create/SUCCESS/two LMRs of one buffer")
{
	DAT_LMR_HANDLE a = registered(n, DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_CONTEXT context = lmr_context;
	DAT_LMR_HANDLE b = registered(n, DAT_MEM_PRIV_ALL_FLAG);

	CHECK(a != b && context != lmr_context, "both calls returned one LMR");
	OK(dat_lmr_free(a));
	SAME(query(b).length, SIZE);
	OK(dat_lmr_free(b));
}

CLAUSE("dat_lmr_create/SUCCESS/rmr_context only with a remote privilege")
{
	static const struct {
		unsigned priv;
		bool remote;
	} cases[] = {
		{ DAT_MEM_PRIV_NONE_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, false },
		{ DAT_MEM_PRIV_READ_FLAG, true },
		{ DAT_MEM_PRIV_WRITE_FLAG, true },
		{ DAT_MEM_PRIV_ALL_FLAG, true },
	};
	size_t k;

	for (k = 0; k < COUNT(cases); k++) {
		DAT_LMR_HANDLE lmr = registered(n, cases[k].priv);

		CHECK(!rmr_context == !cases[k].remote, "privileges %#x: context %#x",
		      cases[k].priv, rmr_context);
		OK(dat_lmr_free(lmr));
	}
}

CLAUSE("dat_lmr_create/SUCCESS/optional results may be NULL")
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_HANDLE lmr;

	OK(dat_lmr_create(n->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, n->pz, DAT_MEM_PRIV_ALL_FLAG,
#if DAT_VERSION_MAJOR >= 2
			  DAT_VA_TYPE_VA,
#endif
			  &lmr, &lmr_context, NULL, NULL, NULL));
	CHECK(query(lmr).rmr_context, "no rmr_context");
	OK(dat_lmr_free(lmr));
}

CLAUSE("dat_lmr_create/LENGTH_ERROR/length 0")
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, memory, 0, DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_LENGTH_ERROR);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/region NULL")
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, NULL, SIZE, DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/region wraps around")
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, memory, UINT64_MAX, DAT_MEM_PRIV_ALL_FLAG, &lmr),
	      DAT_INVALID_PARAMETER);
	FAILS(register_it(n, memory, UINT64_MAX - (uintptr_t)memory + 2, DAT_MEM_PRIV_ALL_FLAG,
			  &lmr),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/mem_type")
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_HANDLE lmr;

	FAILS(lmr_create_as(n->ia, (DAT_MEM_TYPE)77, region, SIZE, n->pz, DAT_MEM_PRIV_ALL_FLAG,
			    &lmr),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/unknown privilege")
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, memory, SIZE, DAT_MEM_PRIV_ALL_FLAG | 0x1000, &lmr),
	      DAT_INVALID_PARAMETER);
	FAILS(register_it(n, memory, SIZE, 0x1000, &lmr), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/remote write without local write")
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, memory, SIZE, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &lmr),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/lmr_handle NULL")
{
	FAILS(register_it(n, memory, SIZE, DAT_MEM_PRIV_ALL_FLAG, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_lmr_create/INSUFFICIENT_RESOURCES/max_lmr_block_size")
{
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;

	if (n->attr.max_lmr_block_size >= UINT32_MAX)
		skip("max_lmr_block_size is %#llx", (unsigned long long)n->attr.max_lmr_block_size);
	ret = register_it(n, memory, (DAT_VLEN)n->attr.max_lmr_block_size + 1,
			  DAT_MEM_PRIV_ALL_FLAG, &lmr);
	CHECK(DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ||
	      DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER || DAT_GET_TYPE(ret) == DAT_LENGTH_ERROR,
	      "%#x", ret);
}

CLAUSE("dat_lmr_create/INSUFFICIENT_RESOURCES/max_lmrs")
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_LMR_HANDLE lmr;
	DAT_COUNT k;

	SKIP_IF_TOO_MANY(max_lmrs);
	for (k = 0; !ret && k <= n->attr.max_lmrs; k++)
		ret = register_it(n, memory, SIZE, DAT_MEM_PRIV_ALL_FLAG, &lmr);
	SAME(k, n->attr.max_lmrs + 1);
	FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
}

/* LMRs of an LMR */

static bool supported(struct node *n, DAT_MEM_TYPE type)
{
	return n->prov.lmr_mem_types_supported & type;
}

/* Memory that the program may only read. */
static char *read_only(int flags)
{
	char *base = mmap(NULL, SIZE, PROT_READ, flags | MAP_ANONYMOUS, -1, 0);

	CHECK(base != MAP_FAILED, "no memory");
	return base;
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/local write to memory that is mapped to read")
{
	char *base = read_only(MAP_PRIVATE);
	DAT_LMR_HANDLE lmr;

	FAILS(register_it(n, base, SIZE, DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_INVALID_PARAMETER);
	FAILS(register_it(n, base, SIZE, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr),
	      DAT_INVALID_PARAMETER);
	munmap(base, SIZE);
}

static DAT_RETURN derive(struct node *n, DAT_LMR_HANDLE of, DAT_PZ_HANDLE pz, unsigned priv,
			 DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = of };

	return lmr_create_as(n->ia, DAT_MEM_TYPE_LMR, region, 0, pz, (DAT_MEM_PRIV_FLAGS)priv, lmr);
}

CLAUSE("dat_lmr_create/SUCCESS/of an LMR, in another PZ, with other privileges, length ignored")
{
	DAT_LMR_HANDLE of = registered(n, DAT_MEM_PRIV_ALL_FLAG), lmr;
	DAT_PZ_HANDLE pz = object(n, DAT_HANDLE_TYPE_PZ);
	DAT_LMR_PARAM param;

	if (!supported(n, DAT_MEM_TYPE_LMR)) {
		FAILS(derive(n, of, pz, DAT_MEM_PRIV_READ_FLAG, &lmr), DAT_MODEL_NOT_SUPPORTED);
		skip("lmr_mem_types_supported is %#x", n->prov.lmr_mem_types_supported);
	}
	OK(derive(n, of, pz, DAT_MEM_PRIV_READ_FLAG, &lmr));
	param = query(lmr);
	SAME(param.mem_type, DAT_MEM_TYPE_LMR);
	CHECK(param.region_desc.for_lmr_handle == of, "wrong LMR");
	CHECK(param.pz_handle == pz, "wrong PZ");
	SAME(param.mem_priv, DAT_MEM_PRIV_READ_FLAG);
	CHECK(param.registered_address <= (uintptr_t)memory &&
	      param.registered_address + param.registered_size >= (uintptr_t)memory + SIZE,
	      "not covered");
	/* the second LMR outlives the first, and holds a reference to its PZ */
	OK(dat_lmr_free(of));
	FAILS(dat_pz_free(pz), DAT_INVALID_STATE);
	OK(dat_lmr_free(lmr));
	OK(dat_pz_free(pz));
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/of an LMR to read, with local write")
{
	char *base = read_only(MAP_PRIVATE);
	DAT_LMR_HANDLE of, lmr;

	if (!supported(n, DAT_MEM_TYPE_LMR))
		skip("lmr_mem_types_supported is %#x", n->prov.lmr_mem_types_supported);
	/* a device may refuse the read-only mapping for reading, too */
	if (register_it(n, base, SIZE, DAT_MEM_PRIV_READ_FLAG, &of))
		skip("memory that is mapped to read cannot be registered");
	FAILS(derive(n, of, n->pz, DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_INVALID_PARAMETER);
	OK(dat_lmr_free(of));
	munmap(base, SIZE);
}

/* Shared */

CLAUSE("dat_lmr_create/SUCCESS/shared virtual")
{
	static char cookie[DAT_LMR_COOKIE_SIZE] = "conform";
	void *base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	DAT_REGION_DESCRIPTION region = {
		.for_shared_memory = { .virtual_address = base, .shared_memory_id = &cookie },
	};
	DAT_LMR_HANDLE a, b;

	CHECK(base != MAP_FAILED, "no shared memory");
	if (!supported(n, DAT_MEM_TYPE_SHARED_VIRTUAL)) {
		FAILS(lmr_create_as(n->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, SIZE, n->pz,
				    DAT_MEM_PRIV_ALL_FLAG, &a), DAT_MODEL_NOT_SUPPORTED);
		skip("lmr_mem_types_supported is %#x", n->prov.lmr_mem_types_supported);
	}
	OK(lmr_create_as(n->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, SIZE, n->pz,
			 DAT_MEM_PRIV_ALL_FLAG, &a));
	OK(lmr_create_as(n->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, SIZE, n->pz,
			 DAT_MEM_PRIV_ALL_FLAG, &b));
	SAME(query(a).mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	OK(dat_lmr_free(a));
	SAME(query(b).length, SIZE);
	OK(dat_lmr_free(b));
	munmap(base, SIZE);
}

CLAUSE("dat_lmr_create/INVALID_STATE/memory that is not shared")
{
	static char cookie[DAT_LMR_COOKIE_SIZE] = "conform-private";
	DAT_REGION_DESCRIPTION region = {
		.for_shared_memory = { .virtual_address = memory, .shared_memory_id = &cookie },
	};
	DAT_LMR_HANDLE lmr;

	if (!supported(n, DAT_MEM_TYPE_SHARED_VIRTUAL))
		skip("lmr_mem_types_supported is %#x", n->prov.lmr_mem_types_supported);
	FAILS(lmr_create_as(n->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, SIZE, n->pz,
			    DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_INVALID_STATE);
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/shared memory that is mapped to read, with local write")
{
	static char cookie[DAT_LMR_COOKIE_SIZE] = "conform-read";
	char *base = read_only(MAP_SHARED);
	DAT_REGION_DESCRIPTION region = {
		.for_shared_memory = { .virtual_address = base, .shared_memory_id = &cookie },
	};
	DAT_LMR_HANDLE lmr;

	if (!supported(n, DAT_MEM_TYPE_SHARED_VIRTUAL))
		skip("lmr_mem_types_supported is %#x", n->prov.lmr_mem_types_supported);
	FAILS(lmr_create_as(n->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, SIZE, n->pz,
			    DAT_MEM_PRIV_ALL_FLAG, &lmr), DAT_INVALID_PARAMETER);
	munmap(base, SIZE);
}

#if DAT_VERSION_MAJOR >= 2
/* Zero-based */

static DAT_RETURN create_va(struct node *n, DAT_VA_TYPE type, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };

	return dat_lmr_create(n->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, n->pz,
			      DAT_MEM_PRIV_ALL_FLAG, type, lmr, &lmr_context, &rmr_context, NULL,
			      NULL);
}

CLAUSE("dat_lmr_create/SUCCESS/zero-based")
{
	DAT_LMR_HANDLE lmr;

	if (!n->attr.zb_supported) {
		FAILS(create_va(n, DAT_VA_TYPE_ZB, &lmr), DAT_MODEL_NOT_SUPPORTED);
		skip("zb_supported is 0");
	}
	OK(create_va(n, DAT_VA_TYPE_ZB, &lmr));
	SAME(query(lmr).va_type, DAT_VA_TYPE_ZB);
	OK(dat_lmr_free(lmr));
}

CLAUSE("dat_lmr_create/INVALID_PARAMETER/va_type")
{
	DAT_LMR_HANDLE lmr;

	FAILS(create_va(n, (DAT_VA_TYPE)7, &lmr), DAT_INVALID_PARAMETER);
}
#endif

/* dat_lmr_free */

CLAUSE("dat_lmr_free/SUCCESS/a receive is posted into it")
{
	DAT_LMR_HANDLE lmr = registered(n, DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)memory,
		.segment_length = SIZE,
		.lmr_context = lmr_context,
	};
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);

	OK(dat_ep_post_recv(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_lmr_free(lmr));
	FAILS(dat_ep_post_recv(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_PROTECTION_VIOLATION);
}

/* dat_lmr_sync_rdma_read and _write */

static DAT_RETURN (*const syncs[])(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN) = {
	dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write,
};
static const char *const sync_names[] = { "dat_lmr_sync_rdma_read", "dat_lmr_sync_rdma_write" };

static void segments(struct node *n, DAT_LMR_TRIPLET s[2])
{
	registered(n, DAT_MEM_PRIV_ALL_FLAG);
	s[0] = s[1] = (DAT_LMR_TRIPLET){
		.virtual_address = (uintptr_t)memory + 100,
		.segment_length = 200,
		.lmr_context = lmr_context,
	};
}

static void name_sync(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS", sync_names[i]);
}

FAMILY(COUNT(syncs), name_sync)
{
	DAT_LMR_TRIPLET s[2];

	segments(n, s);
	OK(syncs[i](n->ia, s, 2));
	OK(syncs[i](n->ia, NULL, 0));
}

static void name_bad_sync(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/INVALID_PARAMETER/segments", sync_names[i]);
}

FAMILY(COUNT(syncs), name_bad_sync)
{
	DAT_LMR_TRIPLET s[2];

	segments(n, s);
	FAILS(syncs[i](n->ia, NULL, 1), DAT_INVALID_PARAMETER);
	s[1].lmr_context ^= 0x10000;
	FAILS(syncs[i](n->ia, s, 2), DAT_INVALID_PARAMETER);
	s[1] = s[0], s[1].virtual_address -= 101;
	FAILS(syncs[i](n->ia, s, 2), DAT_INVALID_PARAMETER);
	s[1] = s[0], s[1].segment_length = SIZE;
	FAILS(syncs[i](n->ia, s, 2), DAT_INVALID_PARAMETER);
	s[1] = s[0], s[1].virtual_address = UINT64_MAX - 10;
	FAILS(syncs[i](n->ia, s, 2), DAT_INVALID_PARAMETER);
}
