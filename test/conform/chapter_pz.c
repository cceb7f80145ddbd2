/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection zones. */

#include "conform.h"

CHAPTER("pz");

CLAUSE("dat_pz_create/SUCCESS")
{
	DAT_PZ_HANDLE pz;

	OK(dat_pz_create(n->ia, &pz));
	CHECK(pz != n->pz, "the same twice");
	OK(dat_pz_free(pz));
}
