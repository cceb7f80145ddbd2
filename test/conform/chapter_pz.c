/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection zones. */

#include "conform.h"

#include <stdio.h>

CHAPTER("pz");

CLAUSE("dat_pz_create/SUCCESS/each call creates a new PZ")
{
	DAT_PZ_HANDLE pz[4];
	size_t k, l;

	for (k = 0; k < COUNT(pz); k++)
		OK(dat_pz_create(n->ia, &pz[k]));
	for (k = 0; k < COUNT(pz); k++)
		for (l = 0; l < k; l++)
			CHECK(pz[k] != pz[l], "two calls returned one handle");
	for (k = 0; k < COUNT(pz); k++)
		OK(dat_pz_free(pz[k]));
}

CLAUSE("dat_pz_create/INVALID_PARAMETER/pz_handle NULL")
{
	FAILS(dat_pz_create(n->ia, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_pz_create/INSUFFICIENT_RESOURCES/max_pzs")
{
	DAT_PZ_HANDLE pz;
	DAT_COUNT k;

	SKIP_IF_TOO_MANY(max_pzs);
	for (k = 1; k < n->attr.max_pzs; k++)
		OK(dat_pz_create(n->ia, &pz));
	FAILS(dat_pz_create(n->ia, &pz), DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_pz_query/SUCCESS/ia_handle")
{
	DAT_PZ_PARAM param = { .ia_handle = DAT_HANDLE_NULL };

	OK(dat_pz_query(n->pz, DAT_PZ_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia, "wrong IA");
}

CLAUSE("dat_pz_free/SUCCESS")
{
	DAT_PZ_HANDLE pz = object_make(n, DAT_HANDLE_TYPE_PZ);

	OK(dat_pz_free(pz));
	FAILS(dat_pz_free(pz), DAT_INVALID_HANDLE);
}

/* Types of objects that keep a PZ from being freed. */
static const DAT_HANDLE_TYPE holders[] = {
	DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_SRQ,
};

static void name_holder(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_pz_free/INVALID_STATE/in use by an %s", type_name(holders[i]));
}

FAMILY(COUNT(holders), name_holder)
{
	DAT_HANDLE holder = object_make(n, holders[i]);

	FAILS(dat_pz_free(n->pz), DAT_INVALID_STATE);
	object_free(holders[i], holder);
	OK(dat_pz_free(n->pz));
}
