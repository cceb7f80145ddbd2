/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* EVDs: creating, querying, freeing, and the arguments of their calls. */

#include "obj/evd_one.h"
#include "obj/reason.h"

#include "obj/cno.h"

static DAT_EVD_PARAM param;
static DAT_EVD_HANDLE h;

TestSuite(evd, .init = objects_init, .fini = ia_fini);

/* Creating */

static DAT_RETURN make(DAT_COUNT qlen, DAT_CNO_HANDLE cno, int flags)
{
	return dofi_evd_create(ia, qlen, cno, (DAT_EVD_FLAGS)flags, &h);
}

Test(evd, create_checks_its_arguments)
{
	expect_handle(dofi_evd_create(pz, 1, NULL, DAT_EVD_DTO_FLAG, &h), IA);
	expect_arg(make(0, NULL, DAT_EVD_DTO_FLAG), 2);
	expect_arg(make(-1, NULL, DAT_EVD_DTO_FLAG), 2);
	expect_handle(make(1, evd, DAT_EVD_DTO_FLAG), CNO);
	expect_handle(make(1, NOWHERE, DAT_EVD_DTO_FLAG), CNO);
	expect_arg(make(1, NULL, 0), 4);
	expect_arg(make(1, NULL, 0x100000), 4);
	expect_arg(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, NULL), 5);
}

Test(evd, a_refusal_gives_its_reason)
{
	REASON(dofi_evd_create(pz, 1, NULL, DAT_EVD_DTO_FLAG, &h), "is no open IA");
	REASON(make(0, NULL, DAT_EVD_DTO_FLAG), "evd_min_qlen is 0; permitted: 1 to 1048576");
	REASON(make(1048577, NULL, DAT_EVD_DTO_FLAG), "evd_min_qlen is 1048577; permitted");
	REASON(make(1, NOWHERE, DAT_EVD_DTO_FLAG), "cno_handle 0x7fff00001000 is no live CNO");
	REASON(make(1, NULL, 0x100000), "evd_flags are 0x100000; permitted: some of 0x");
	REASON(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, NULL), "no evd_handle");
}

Test(evd, a_length_beyond_the_ias_is_refused)
{
	DAT_IA_ATTR attr;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	expect_type(make(attr.max_evd_qlen + 1, NULL, DAT_EVD_DTO_FLAG),
		    DAT_INSUFFICIENT_RESOURCES);
	expect_type(make(INT32_MAX, NULL, DAT_EVD_DTO_FLAG), DAT_INSUFFICIENT_RESOURCES);
	succeed(make(attr.max_evd_qlen, NULL, DAT_EVD_DTO_FLAG));
}

Test(evd, query_returns_all)
{
	succeed(make(5, NULL, DAT_EVD_DTO_FLAG));
	succeed(dofi_evd_query(h, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, ia);
	cr_expect_eq(param.evd_qlen, 5);
	cr_expect_eq(param.evd_flags, DAT_EVD_DTO_FLAG);
	cr_expect_eq(param.cno_handle, DAT_HANDLE_NULL);
	cr_expect_eq((int)param.evd_state, (int)(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE));
}

Test(evd, query_returns_what_was_switched_off)
{
	succeed(dofi_evd_disable(evd));
	succeed(dofi_evd_set_unwaitable(evd));
	succeed(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq((int)param.evd_state,
		     (int)(DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE));
}

Test(evd, query_checks_its_arguments)
{
	expect_type(dofi_evd_query(pz, DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	expect_arg(dofi_evd_query(evd, (DAT_EVD_PARAM_MASK)0x20, &param), 2);
	expect_arg(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), 3);
}

Test(evd, every_call_refuses_other_handles)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	expect_type(dofi_evd_enable(pz), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_disable(NULL), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_set_unwaitable(NOWHERE), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_clear_unwaitable((DAT_EVD_HANDLE)5), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_resize(lmr, 5), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_modify_cno(ia, NULL), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_post_se(pz, &event), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_free(pz), DAT_INVALID_HANDLE);
}

/* The queue */

Test(evd, dequeue_checks_its_arguments)
{
	DAT_EVENT event;

	expect_type(dofi_evd_dequeue(pz, &event), DAT_INVALID_HANDLE);
	expect_type(dofi_evd_dequeue(NULL, &event), DAT_INVALID_HANDLE);
	expect_arg(dofi_evd_dequeue(evd, NULL), 2);
}

/* Programs compare with the bare code, so the return has no error bit. */
Test(evd, an_empty_queue_is_no_error)
{
	DAT_EVENT event;

	cr_expect_eq(dofi_evd_dequeue(evd, &event), (DAT_RETURN)DAT_QUEUE_EMPTY);
}

/* Resizing */

Test(evd, resize_checks_its_arguments)
{
	expect_arg(dofi_evd_resize(evd, 0), 2);
	expect_arg(dofi_evd_resize(evd, -5), 2);
	expect_arg(dofi_evd_resize(evd, INT32_MAX), 2);
}

Test(evd, query_returns_the_new_length)
{
	succeed(dofi_evd_resize(evd, 77));
	succeed(dofi_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect_eq(param.evd_qlen, 77);
}

/* Freeing */

Test(evd, in_use_it_is_not_freed)
{
	DAT_EP_HANDLE ep = ep_make();
	DAT_PSP_HANDLE psp;

	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(evd));
}

Test(evd, is_freed_once)
{
	succeed(dofi_evd_free(evd));
	expect_type(dofi_evd_free(evd), DAT_INVALID_HANDLE);
}

/* The other thread has ended the references of the EVD, and not yet its handle. */
Test(evd, an_evd_that_another_thread_frees_is_no_valid_handle)
{
	struct dofi_obj *obj = evd;

	atomic_store(&obj->users, DOFI_OBJ_ENDED);
	expect_type(dofi_evd_free(evd), DAT_INVALID_HANDLE);
	atomic_store(&obj->users, 0);
	succeed(dofi_evd_free(evd));
}

Test(evd, a_new_one_is_empty_and_switched_on)
{
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2 * DOFI_POOL_FIRST; i++) {
		h = evd_make(4, DAT_EVD_SOFTWARE_FLAG);
		cr_assert_eq(dofi_evd_dequeue(h, &event), (DAT_RETURN)DAT_QUEUE_EMPTY);
		succeed(dofi_evd_query(h, DAT_EVD_FIELD_ALL, &param));
		cr_assert_eq((int)param.evd_state,
			     (int)(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE));
		post_numbers(h, 1, 4);
		succeed(dofi_evd_disable(h));
		succeed(dofi_evd_set_unwaitable(h));
		succeed(dofi_evd_free(h));
	}
}

Test(evd, a_cno_of_another_ia_is_refused)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
	struct dofi_ia *second;
	DAT_CNO_HANDLE cno;

	cr_assert_eq(ia_try_open(&second), 0);
	succeed(dofi_cno_create(second, no_agent, &cno));
	expect_handle(dofi_evd_modify_cno(evd, cno), CNO);
	expect_handle(make(1, cno, DAT_EVD_DTO_FLAG), CNO);
	succeed(dofi_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
}
