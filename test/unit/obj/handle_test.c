/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Handles of every kind: which are valid, and the calls that all of them have. */

#include "obj/fixture.h"

#include "obj/cno.h"
#include "obj/sp.h"

/* One object of each kind. */
static struct {
	DAT_HANDLE handle;
	DAT_HANDLE_TYPE type;
} each[11];
static unsigned n_each;

static void each_add(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	each[n_each].handle = handle;
	each[n_each++].type = type;
}

static void init(void)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
#if DAT_VERSION_MAJOR >= 2
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
#endif
	const struct dofi_arrival arrival = { .data = "" };
	DAT_HANDLE h;

	objects_init();
	each_add(ia, DAT_HANDLE_TYPE_IA);
	each_add(pz, DAT_HANDLE_TYPE_PZ);
	each_add(evd, DAT_HANDLE_TYPE_EVD);
	each_add(lmr, DAT_HANDLE_TYPE_LMR);
	each_add(ep_make(), DAT_HANDLE_TYPE_EP);
	succeed(dofi_cno_create(ia, no_agent, &h));
	each_add(h, DAT_HANDLE_TYPE_CNO);
	succeed(dofi_rmr_create(pz, &h));
	each_add(h, DAT_HANDLE_TYPE_RMR);
	succeed(dofi_rsp_create(ia, 8, DAT_HANDLE_NULL, evd, &h));
	each_add(h, DAT_HANDLE_TYPE_RSP);
#if DAT_VERSION_MAJOR >= 2
	succeed(dofi_csp_create(ia, &comm, some_address(), evd, &h));
	each_add(h, DAT_HANDLE_TYPE_CSP);
#endif
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &h));
	each_add(h, DAT_HANDLE_TYPE_PSP);
	cr_assert_eq(dofi_cr_arrived(h, &arrival), 0);
	each_add(event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
			 .event_data.cr_arrival_event_data.cr_handle,
		 DAT_HANDLE_TYPE_CR);
}

TestSuite(handle, .init = init, .fini = ia_fini);

/* Whether no kind of object is at @h. */
static bool refused(DAT_HANDLE h)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(h);
	DAT_HANDLE_TYPE type;

	return !obj && !dofi_ia_check(h) && !dofi_pz_check(h) && !dofi_evd_check(h) &&
	       !dofi_lmr_check(h) && !dofi_ep_check(h) && !dofi_cno_check(h) &&
	       !dofi_psp_check(h) && !dofi_cr_check(h) &&
	       DAT_GET_TYPE(dofi_get_handle_type(h, &type)) == DAT_INVALID_HANDLE;
}

Test(handle, null_is_no_handle)
{
	cr_expect(refused(DAT_HANDLE_NULL));
}

Test(handle, small_numbers_are_no_handles)
{
	uintptr_t n;

	for (n = 0; n < 100000; n++)
		cr_assert(refused((DAT_HANDLE)n));
}

Test(handle, wild_pointers_are_no_handles)
{
	int here;

	cr_expect(refused(&here));
	cr_expect(refused((DAT_HANDLE)UINTPTR_MAX));
	cr_expect(refused(NOWHERE));
	cr_expect(refused(&refused));
}

Test(handle, addresses_inside_objects_are_no_handles)
{
	unsigned i, off;

	for (i = 0; i < n_each; i++)
		for (off = 1; off < 200; off++) {
			char *p = (char *)each[i].handle + off;

			cr_assert(refused(p) || dofi_pool_index(p), "%u+%u", i, off);
		}
}

Test(handle, every_handle_has_its_type)
{
	DAT_HANDLE_TYPE type;
	unsigned i;

	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_handle_type(each[i].handle, &type));
		cr_expect_eq(type, each[i].type);
	}
}

Test(handle, a_handle_of_one_kind_is_none_of_another)
{
	unsigned i;

	for (i = 0; i < n_each; i++) {
		DAT_HANDLE h = each[i].handle;
		DAT_HANDLE_TYPE t = each[i].type;

		cr_expect_eq(dofi_ia_check(h) != NULL, t == DAT_HANDLE_TYPE_IA);
		cr_expect_eq(dofi_pz_check(h) != NULL, t == DAT_HANDLE_TYPE_PZ);
		cr_expect_eq(dofi_evd_check(h) != NULL, t == DAT_HANDLE_TYPE_EVD);
		cr_expect_eq(dofi_lmr_check(h) != NULL, t == DAT_HANDLE_TYPE_LMR);
		cr_expect_eq(dofi_ep_check(h) != NULL, t == DAT_HANDLE_TYPE_EP);
		cr_expect_eq(dofi_cno_check(h) != NULL, t == DAT_HANDLE_TYPE_CNO);
		cr_expect_eq(dofi_psp_check(h) != NULL, t == DAT_HANDLE_TYPE_PSP);
		cr_expect_eq(dofi_cr_check(h) != NULL, t == DAT_HANDLE_TYPE_CR);
	}
}

Test(handle, every_handle_is_dead_after_the_ia)
{
	unsigned i;

	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < n_each; i++)
		cr_expect(refused(each[i].handle), "%u", i);
}

Test(handle, a_freed_handle_is_dead_though_its_neighbour_lives)
{
	DAT_EP_HANDLE a = ep_make(), b = ep_make();

	succeed(dofi_ep_free(a));
	cr_expect(refused(a));
	expect_handle(dofi_ep_free(a), EP);
	cr_expect(!refused(b));
}

Test(handle, the_consumers_context_is_kept_for_each)
{
	DAT_CONTEXT context;
	unsigned i;

	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_consumer_context(each[i].handle, &context));
		cr_expect_eq(context.as_64, 0, "%u", i);
		context.as_64 = 0x1122334455667788ull + i;
		succeed(dofi_set_consumer_context(each[i].handle, context));
	}
	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_consumer_context(each[i].handle, &context));
		cr_expect_eq(context.as_64, 0x1122334455667788ull + i);
	}
}

Test(handle, a_new_object_has_no_old_context)
{
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_PZ_HANDLE h;
	int i;

	for (i = 0; i < 200; i++) {	/* more than the pool's first chunk holds */
		succeed(dofi_pz_create(ia, &h));
		succeed(dofi_get_consumer_context(h, &context));
		cr_assert_eq(context.as_64, 0);
		context.as_64 = 5;
		succeed(dofi_set_consumer_context(h, context));
		succeed(dofi_pz_free(h));
	}
}

Test(handle, context_calls_check_their_arguments)
{
	DAT_CONTEXT context = { .as_64 = 0 };

	expect_type(dofi_set_consumer_context(NOWHERE, context), DAT_INVALID_HANDLE);
	expect_type(dofi_get_consumer_context(DAT_HANDLE_NULL, &context), DAT_INVALID_HANDLE);
	expect_arg(dofi_get_consumer_context(ia, NULL), 2);
	expect_arg(dofi_get_handle_type(ia, NULL), 2);
}
