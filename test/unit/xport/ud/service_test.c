/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The datagram service: its part of an IA and of an EP. */

#include "xport/ud/parts.h"

#include "nomem.h"

TestSuite(xport_ud_service, .init = ud_init, .fini = ud_fini, .timeout = 60);

/* The IA */

Test(xport_ud_service, has_datagrams_of_a_frame_less_the_header)
{
	cr_expect_eq(ia->datagram_size, ia->fabric.frame_size - UD_FRAME_HEADER);
	cr_expect_eq(ud_ia_of(ia)->fabric, &ia->fabric);
}

static int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	int __real_fi_getinfo(uint32_t version, const char *name, const char *service,
			      uint64_t with, const struct fi_info *wanted, struct fi_info **found);

	if (hints && hints->ep_attr && hints->ep_attr->type == FI_EP_DGRAM)
		return -FI_ENODATA;
	return __real_fi_getinfo(DOFI_FI_VERSION, node, NULL, flags, hints, info);
}

static void init_without(void)
{
	static const DAT_PROVIDER p = { .device_name = "test-ia" };
	static const struct dofi_xports xports = {
		.connected = &transport_ops, .connectionless = &dofi_rdm_xport,
		.datagrams = &dofi_ud_datagrams,
	};
	const struct dofi_params params = { .provider = "tcp", .endpoint = "msg" };

	fake.getinfo = getinfo;
	cr_assert_eq(dofi_ia_open(&p, &params, &xports, true, &ia), 0);
}

/* Where libfabric has no udp. */
Test(xport_ud_service, may_be_missing, .init = init_without)
{
	cr_expect(!ia->datagrams && !ia->datagrams_ia);
	cr_expect_eq(ia->datagram_size, 0);
}

/* An EP */

Test(xport_ud_service, opens_an_ep_that_is_connected)
{
	const struct dofi_ep *ep = ud_near.ep;

	cr_expect_eq(state_of_ep(ud_near.ep), DAT_EP_STATE_CONNECTED);
	cr_expect_eq(ep->fid, ud_part(&ud_near)->rdm.fid);
	cr_expect_eq(ep->cq, &ud_part(&ud_near)->net.domain->cq);
	cr_expect(!ep->fast.send);
	cr_expect_eq(ep->fast.recv, rdm_fast_recv);
}

Test(xport_ud_service, takes_receives_before_anything_else)
{
	ud_recv(&ud_far, 0, 100, 1);
	ud_send(&ud_near, ud_meet(&ud_near, &ud_far), &ud_far, 0, 10, 2);
	ud_received(&ud_far, 1, 10);
}

Test(xport_ud_service, flushes_receives_of_an_ep_that_is_freed)
{
	DAT_EP_HANDLE ep = ud_far.ep;

	ud_recv(&ud_far, 0, 100, 1);
	ud_recv(&ud_far, 100, 100, 2);
	ud_far.ep = ud_ep_make(&ud_far);
	succeed(dofi_ep_free(ep));
	ud_flushed(&ud_far, ep, 1);
	ud_flushed(&ud_far, ep, 2);
	ud_works(&ud_near, ud_meet(&ud_near, &ud_far), &ud_far, 10);
}

Test(xport_ud_service, has_no_order_of_frees)
{
	struct ud_peer *ah;

	ud_side_open(&ud_third);
	ah = ud_meet(&ud_third, &ud_near);
	ud_works(&ud_third, ah, &ud_near, 1);
	succeed(dofi_ep_free(ud_third.ep));
	ud_third.ep = ud_ep_make(&ud_third);
	cr_expect(ud_peer_is_valid(ud_part(&ud_third), ah), "it is of the PZ");
	ud_works(&ud_third, ah, &ud_near, 2);
}

/* Address handles, as struct dofi_datagrams checks them */

struct free_call {
	void *ah;
	bool freed;
};

static void free_on_thread(void *arg)
{
	struct free_call *c = arg;

	c->freed = dofi_ud_datagrams.ah_free(ud_near.ep, c->ah);
}

static bool ah_free(void *ah)
{
	struct free_call call = { .ah = ah };

	dofi_progress_call(&ia->progress, free_on_thread, &call);
	return call.freed;
}

Test(xport_ud_service, frees_an_address_handle_as_often_as_it_was_given)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);

	ud_meet(&ud_near, &ud_far);
	cr_expect(dofi_ud_datagrams.ah_valid(ud_near.ep, ah));
	cr_expect(ah_free(ah));
	cr_expect(dofi_ud_datagrams.ah_valid(ud_near.ep, ah));
	cr_expect(ah_free(ah));
	cr_expect(!dofi_ud_datagrams.ah_valid(ud_near.ep, ah));
	cr_expect(!ah_free(ah));
}

Test(xport_ud_service, frees_no_address_handle_of_another_pz)
{
	struct ud_peer *ah = ud_meet(&ud_far, &ud_near);

	cr_expect(!dofi_ud_datagrams.ah_valid(ud_near.ep, ah));
	cr_expect(!ah_free(ah));
	cr_expect(!ah_free(NOWHERE));
	cr_expect(dofi_ud_datagrams.ah_valid(ud_far.ep, ah));
}

/* A sleeping process of shared memory is woken. The waiting thread is another one. */
Test(xport_ud_service, wakes_a_thread_that_waits_for_long)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	int i;

	for (i = 0; i < 50; i++)
		ud_works(&ud_near, ah, &ud_far, (size_t)i);
}

Test(xport_ud_service, may_lack_memory_for_an_ep)
{
	DAT_EP_HANDLE ep;
	DAT_RETURN ret = DAT_INTERNAL_ERROR;
	int n;

	for (n = 0; ret && n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = ud_ep_try(ud_near.pz, ud_near.evd, &ep);
		nomem_failed();
		if (ret)
			expect_type(ret, DAT_INSUFFICIENT_RESOURCES);
	}
	succeed(ret);
	succeed(dofi_ep_free(ep));
}
