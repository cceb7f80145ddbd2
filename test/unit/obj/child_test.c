/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of an IA's objects: how many there are, and how they end. */

#include "obj/fixture.h"

#include "obj/caps.h"
#include "obj/obj.h"

#include <pthread.h>
#include <rdma/fi_errno.h>

TestSuite(child, .init = objects_init, .fini = ia_fini);

Test(child, the_ia_makes_as_many_as_it_promises)
{
	DAT_COUNT most = dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_EVD), n;
	DAT_EVD_HANDLE h = NULL, last;
	DAT_IA_ATTR attr;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	cr_expect_eq(attr.max_evds, most);
	for (n = 1; n < most; n++)	/* one exists already */
		h = evd_make(1, DAT_EVD_DTO_FLAG);
	last = h;
	expect_type(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, &h), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(h, last);
	succeed(dofi_evd_free(last));
	succeed(dofi_evd_create(ia, 1, NULL, DAT_EVD_DTO_FLAG, &h));
}

Test(child, failed_creations_do_not_use_up_the_limit)
{
	DAT_COUNT most = dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_PZ), n;
	DAT_PZ_HANDLE h;

	fake.fault.domain = -FI_ENOMEM;
	for (n = 0; n < 2 * most; n++)
		cr_assert(dofi_pz_create(ia, &h) != DAT_SUCCESS);
	fake.fault.domain = 0;
	succeed(dofi_pz_create(ia, &h));
}

Test(child, an_object_ends_once)
{
	struct dofi_obj *o = ep_make();

	dofi_obj_destroy(o);
	cr_expect(!dofi_obj_claim(o));
	dofi_obj_destroy(o);	/* does nothing; the pools' counts are checked at the end */
}

enum { THREADS = 4, ROUNDS = 300 };

static void *make_and_free(void *arg)
{
	DAT_EP_HANDLE h;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		h = ep_make();
		cr_assert(dofi_ep_check(h));
		succeed(dofi_ep_free(h));
	}
	return NULL;
}

Test(child, threads_make_and_free_at_once)
{
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, make_and_free, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(dofi_ep_pool.used, 0);
}
