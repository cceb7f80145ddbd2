/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's DAT side: immediate data and atomics, of the InfiniBand extension. DAT 2.0 only. */
#include "perf_dat.h"

#include <dat2/dat_ib_extensions.h>

#include <string.h>

static int check(struct perf_xport *x, enum perf_test test)
{
	static const char *const name[PERF_NTESTS] = {
		[PERF_IMM] = DAT_IB_ATTR_IMMED_DATA,
		[PERF_FADD] = DAT_IB_ATTR_FETCH_AND_ADD,
		[PERF_CSWAP] = DAT_IB_ATTR_CMP_AND_SWAP,
	};
	struct perf_dat *dat = perf_to_dat(x);
	DAT_PROVIDER_ATTR attr;
	const char *value;
	DAT_RETURN ret;

	ret = dat_ia_query(dat->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_ia_query", ret);
	value = dat_named_attr(&attr, name[test]);
	if (!value || strcmp(value, "TRUE"))
		return perf_fail(x, "%s: the IA lacks an operation: its attribute %s is not TRUE",
				 dat->device, name[test]);
	return 0;
}

static int post_write_imm(struct perf_xport *x, size_t off, size_t len, size_t roff, uint32_t imm,
			  uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov[PERF_SEGMENTS_MAX];
	DAT_COUNT n = perf_dat_split(dat, off, len, iov);
	DAT_RMR_TRIPLET target = perf_dat_remote(dat, roff, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ib_post_rdma_write_immed(dat->ep, n, iov, user, &target, imm,
					   DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ib_post_rdma_write_immed", ret);
}

static int post_fadd(struct perf_xport *x, size_t off, size_t roff, uint64_t add, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = perf_dat_local(dat, off, PERF_ATOMIC_LEN);
	DAT_RMR_TRIPLET target = perf_dat_remote(dat, roff, PERF_ATOMIC_LEN);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ib_post_fetch_and_add(dat->ep, add, &iov, user, &target,
					DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ib_post_fetch_and_add", ret);
}

static int post_cswap(struct perf_xport *x, size_t off, size_t roff, uint64_t compare,
		      uint64_t swap, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = perf_dat_local(dat, off, PERF_ATOMIC_LEN);
	DAT_RMR_TRIPLET target = perf_dat_remote(dat, roff, PERF_ATOMIC_LEN);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ib_post_cmp_and_swap(dat->ep, compare, swap, &iov, user, &target,
				       DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ib_post_cmp_and_swap", ret);
}

const struct perf_ext_ops perf_dat_ext_ops = {
	.check = check,
	.post_write_imm = post_write_imm,
	.post_fadd = post_fadd,
	.post_cswap = post_cswap,
};
