/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection Zones. */

#include "obj/fixture.h"

#include "registry.h"

static DAT_PZ_PARAM param;

TestSuite(pz, .init = objects_init, .fini = ia_fini);

Test(pz, is_made_on_an_ia_only)
{
	DAT_PZ_HANDLE h;

	expect_handle(dofi_pz_create(NULL, &h), IA);
	expect_handle(dofi_pz_create(pz, &h), IA);
	expect_handle(dofi_pz_create(NOWHERE, &h), IA);
}

Test(pz, needs_a_place_for_its_handle)
{
	expect_arg(dofi_pz_create(ia, NULL), 2);
}

Test(pz, is_a_domain_of_its_own)
{
	int before = fake.open;
	DAT_PZ_HANDLE h;

	succeed(dofi_pz_create(ia, &h));
	cr_expect_eq(fake.open, before + 2, "a domain and its queue");
	succeed(dofi_pz_free(h));
	cr_expect_eq(fake.open, before);
}

Test(pz, without_a_domain_there_is_none)
{
	DAT_PZ_HANDLE h = NOWHERE;

	fake.fault.domain = -FI_ENOMEM;
	expect_type(dofi_pz_create(ia, &h), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(h, NOWHERE, "outputs are written on success only");
}

Test(pz, without_a_queue_there_is_none)
{
	DAT_PZ_HANDLE h;

	fake.fault.cq_open = -FI_EMFILE;
	expect_type(dofi_pz_create(ia, &h), DAT_INSUFFICIENT_RESOURCES);
}

Test(pz, query_returns_its_ia)
{
	succeed(dofi_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, ia);
}

#if DAT_VERSION_MAJOR >= 2
Test(pz, query_returns_the_ia_as_the_program_knows_it)
{
	registry.shown = (DAT_IA_HANDLE)1;
	succeed(dofi_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)1);
}
#endif

Test(pz, query_checks_its_arguments)
{
	expect_handle(dofi_pz_query(NULL, DAT_PZ_FIELD_ALL, &param), PZ);
	expect_handle(dofi_pz_query(ia, DAT_PZ_FIELD_ALL, &param), PZ);
	expect_arg(dofi_pz_query(pz, (DAT_PZ_PARAM_MASK)2, &param), 2);
	expect_arg(dofi_pz_query(pz, DAT_PZ_FIELD_ALL, NULL), 3);
}

Test(pz, in_use_by_an_lmr_is_not_freed)
{
	expect_state(dofi_pz_free(pz), PZ_IN_USE);
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
}

Test(pz, in_use_by_an_ep_is_not_freed)
{
	DAT_EP_HANDLE ep;

	succeed(dofi_lmr_free(lmr));
	ep = ep_make();
	expect_state(dofi_pz_free(pz), PZ_IN_USE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_pz_free(pz));
}

Test(pz, is_freed_once)
{
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	expect_handle(dofi_pz_free(pz), PZ);
}

/* The transport's part */

static struct dofi_xport keeping;
static int kept;

static void let_go(struct dofi_pz *of)
{
	cr_expect(dofi_progress_on_thread(&ia->progress));
	cr_expect(of->domain.fid, "before the domain");
	cr_expect_eq(of->xport_pz, &kept);
	kept--;
}

Test(pz, the_transport_lets_go_of_it_first)
{
	struct dofi_pz *of;
	DAT_PZ_HANDLE h;
	int i;

	keeping = transport_ops;
	keeping.pz_close = let_go;
	ia->xport = &keeping;
	/* often enough to reuse its memory */
	for (i = 0; i < 2 * DOFI_POOL_FIRST; i++) {
		succeed(dofi_pz_create(ia, &h));
		of = h;
		cr_expect(!of->xport_pz);
		of->xport_pz = &kept;
		kept++;
		succeed(dofi_pz_free(h));
		cr_expect_eq(kept, 0);
	}
	ia->xport = &transport_ops;
}
