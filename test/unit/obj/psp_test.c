/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points: making, asking, freeing. */

#include "obj/fixture.h"

#include <errno.h>

static DAT_PSP_HANDLE psp;
static DAT_CONN_QUAL qual;

static DAT_RETURN make(DAT_CONN_QUAL conn_qual)
{
	return dofi_psp_create(ia, conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

static DAT_RETURN make_any(void)
{
	return dofi_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

TestSuite(psp, .init = objects_init, .fini = ia_fini);

Test(psp, handles_are_checked)
{
	DAT_EVD_HANDLE dto = evd_make(4, DAT_EVD_DTO_FLAG);

	expect_handle(dofi_psp_create(NOWHERE, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), IA);
	expect_handle(dofi_psp_create(NULL, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), IA);
	expect_handle(dofi_psp_create(ia, 7, NULL, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create(ia, 7, pz, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create(ia, 7, dto, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create_any(ia, &qual, dto, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_query(evd, 0, &(DAT_PSP_PARAM){ 0 }), PSP);
	expect_handle(dofi_psp_free(NULL), PSP);
	cr_expect_eq(transport.listens, 0);
}

Test(psp, an_evd_of_another_ia_is_foreign)
{
	struct dofi_ia *other;

	cr_assert_eq(ia_try_open(&other), 0);
	expect_handle(dofi_psp_create(other, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(psp, arguments_are_checked)
{
	expect_arg(make(0), 2);
	expect_arg(dofi_psp_create(ia, 7, evd, (DAT_PSP_FLAGS)77, &psp), 4);
	expect_arg(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, NULL), 5);
	expect_arg(dofi_psp_create_any(ia, NULL, evd, DAT_PSP_CONSUMER_FLAG, &psp), 2);
	cr_expect_eq(transport.listens, 0);
	succeed(make(7));
	expect_arg(dofi_psp_query(psp, (DAT_PSP_PARAM_MASK)0x100, &(DAT_PSP_PARAM){ 0 }), 2);
	expect_arg(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, NULL), 3);
}

Test(psp, tells_what_it_was_made_of)
{
	DAT_PSP_PARAM param;

	succeed(make(0x123456789abcull));
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(param.conn_qual, 0x123456789abcull);
	cr_expect_eq(param.evd_handle, evd);
	cr_expect_eq(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
}

Test(psp, any_tells_the_qualifier_that_the_transport_chose)
{
	DAT_PSP_PARAM param;

	transport.any_qual = 4242;
	succeed(make_any());
	cr_expect_eq(qual, 4242);
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.conn_qual, 4242);
}

Test(psp, a_taken_qualifier_is_in_use)
{
	transport.listen_result = -EADDRINUSE;
	psp = NOWHERE;
	expect_type(make(7), DAT_CONN_QUAL_IN_USE);
	cr_expect_eq(psp, NOWHERE);
	cr_expect_eq(dofi_psp_pool.used, 0);
}

Test(psp, without_a_free_qualifier_any_is_unavailable)
{
	transport.listen_result = -EADDRINUSE;
	qual = 99;
	expect_type(make_any(), DAT_CONN_QUAL_UNAVAILABLE);
	cr_expect_eq(qual, 99);
	cr_expect_eq(dofi_psp_pool.used, 0);
}

Test(psp, a_failed_one_lets_its_evd_go)
{
	DAT_EVD_HANDLE own = evd_make(4, DAT_EVD_CR_FLAG);

	transport.listen_result = -ENOMEM;
	expect_type(dofi_psp_create(ia, 7, own, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_INSUFFICIENT_RESOURCES);
	succeed(dofi_evd_free(own));
}

Test(psp, holds_its_evd)
{
	DAT_EVD_HANDLE own = evd_make(4, DAT_EVD_CR_FLAG);

	succeed(dofi_psp_create(ia, 7, own, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_type(dofi_evd_free(own), DAT_INVALID_STATE);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(own));
}

Test(psp, listens_until_it_is_freed)
{
	succeed(make(7));
	cr_expect_eq(transport.listens, 1);
	cr_expect_eq(transport.unlistens, 0);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_psp_free(psp), PSP);
	expect_handle(dofi_psp_query(psp, 0, &(DAT_PSP_PARAM){ 0 }), PSP);
	cr_expect_eq(transport.unlistens, 1);
}

Test(psp, ends_with_its_ia)
{
	succeed(make(7));
	expect_type(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_psp_free(psp), PSP);
}
