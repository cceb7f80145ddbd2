/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common rules of all queries; the objects' chapters check the values. */

#include "conform.h"

#include <stdio.h>

CHAPTER("query");

#define QUERY(object, OBJECT)                                                        \
	static DAT_RETURN object##_query(DAT_HANDLE h, uint64_t mask, void *param)   \
	{                                                                            \
		return dat_##object##_query(h, (DAT_##OBJECT##_PARAM_MASK)mask, param); \
	}

QUERY(cno, CNO)
QUERY(cr, CR)
QUERY(ep, EP)
QUERY(evd, EVD)
QUERY(lmr, LMR)
QUERY(psp, PSP)
QUERY(pz, PZ)
QUERY(rmr, RMR)
QUERY(rsp, RSP)
QUERY(srq, SRQ)
#if DAT_VERSION_MAJOR >= 2
QUERY(csp, CSP)
#endif

static const struct {
	const char *name;
	DAT_HANDLE_TYPE type;
	DAT_RETURN (*call)(DAT_HANDLE h, uint64_t mask, void *param);
	uint64_t all;			/* all fields that exist */
} queries[] = {
#define ROW(object, OBJECT, all) \
	{ "dat_" #object "_query", DAT_HANDLE_TYPE_##OBJECT, object##_query, all }
	ROW(cno, CNO, 0x7),		/* in 2.0 DAT_CNO_FIELD_ALL does not include all of them */
	ROW(cr, CR, DAT_CR_FIELD_ALL),
	ROW(ep, EP, DAT_EP_FIELD_ALL),
	ROW(evd, EVD, DAT_EVD_FIELD_ALL),
	ROW(lmr, LMR, DAT_LMR_FIELD_ALL),
	ROW(psp, PSP, DAT_PSP_FIELD_ALL),
	ROW(pz, PZ, DAT_PZ_FIELD_ALL),
	ROW(rmr, RMR, DAT_RMR_FIELD_ALL),
	ROW(rsp, RSP, DAT_RSP_FIELD_ALL),
	ROW(srq, SRQ, DAT_SRQ_FIELD_ALL),
#if DAT_VERSION_MAJOR >= 2
	ROW(csp, CSP, DAT_CSP_FIELD_ALL),
#endif
};

/* Large enough for every query. */
static union {
	DAT_EP_PARAM ep;
	DAT_LMR_PARAM lmr;
	unsigned char bytes[1024];
} param;

static void name_unknown(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/INVALID_PARAMETER/mask", queries[i].name);
}

FAMILY(COUNT(queries), name_unknown)
{
	DAT_HANDLE h = object(n, queries[i].type);
	unsigned bit;

	for (bit = 0; bit < 32; bit++)
		if (!(queries[i].all & UINT64_C(1) << bit))
			FAILS(queries[i].call(h, UINT64_C(1) << bit, &param),
			      DAT_INVALID_PARAMETER);
}

static void name_null(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/INVALID_PARAMETER/param NULL", queries[i].name);
}

FAMILY(COUNT(queries), name_null)
{
	FAILS(queries[i].call(object(n, queries[i].type), 1, NULL), DAT_INVALID_PARAMETER);
}

static void name_single(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/each field alone, and none", queries[i].name);
}

FAMILY(COUNT(queries), name_single)
{
	DAT_HANDLE h = object(n, queries[i].type);
	unsigned bit;

	OK(queries[i].call(h, 0, &param));
	for (bit = 0; bit < 32; bit++) {
		uint64_t mask = UINT64_C(1) << bit;

		if (!(queries[i].all & mask) ||
		    (queries[i].type == DAT_HANDLE_TYPE_RMR && mask == DAT_RMR_FIELD_LMR_TRIPLET))
			continue;	/* an unbound RMR has no triplet */
		OK(queries[i].call(h, mask, &param));
	}
}
