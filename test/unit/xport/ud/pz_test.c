/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The endpoint of a PZ, and its EPs by number. */

#include "xport/ud/parts.h"

#include "nomem.h"

#include <errno.h>
#include <stdlib.h>

TestSuite(xport_ud_pz, .init = ud_init, .fini = ud_fini, .timeout = 60);

/* The endpoint */

Test(xport_ud_pz, is_made_with_the_first_ep)
{
	DAT_EP_HANDLE first;
	struct ud_pz *upz;

	succeed(dofi_pz_create(ia, &ud_third.pz));
	cr_expect(!ud_part(&ud_third));
	succeed(ud_ep_try(ud_third.pz, ud_near.evd, &first));
	upz = ud_part(&ud_third);
	cr_assert(upz && upz->rdm.fid);
	succeed(ud_ep_try(ud_third.pz, ud_near.evd, &ud_third.ep));
	cr_expect_eq(ud_part(&ud_third), upz);
	succeed(dofi_ep_free(first));
	succeed(dofi_ep_free(ud_third.ep));
	cr_expect_eq(ud_part(&ud_third), upz, "it stays for the next");
	succeed(dofi_pz_free(ud_third.pz));
	succeed(dofi_pz_create(ia, &ud_third.pz));
	cr_expect(!ud_part(&ud_third));
}

Test(xport_ud_pz, has_a_key_of_its_own)
{
	cr_expect(ud_part(&ud_near)->key && ud_part(&ud_far)->key);
	cr_expect(ud_part(&ud_near)->key != ud_part(&ud_far)->key);
}

Test(xport_ud_pz, may_lack_memory)
{
	DAT_RETURN ret = DAT_INTERNAL_ERROR;
	DAT_EP_HANDLE ep = NULL;
	int n;

	succeed(dofi_pz_create(ia, &ud_third.pz));
	ud_third.evd = ud_near.evd;
	for (n = 0; ret && n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = ud_ep_try(ud_third.pz, ud_near.evd, &ep);
		nomem_failed();
		if (ret)
			cr_expect(!ud_part(&ud_third) || ud_part(&ud_third)->rdm.fid);
	}
	succeed(ret);
	ud_third.ep = ep;
	ud_send(&ud_near, ud_meet(&ud_near, &ud_third), &ud_third, 0, 10, 1);
	ud_sent_one(&ud_near, 1);
	ud_counts(&ud_third, &ia->count.dropped_no_receive, 1);
}

/* A program may free all as soon as its sends are complete. */
Test(xport_ud_pz, sends_what_waits_before_it_is_closed)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	unsigned i;

	ud_works(&ud_near, ah, &ud_far, 1);
	ud_fault_open();
	for (i = 0; i < 5; i++)
		ud_recv(&ud_far, 64 * i, 64, i);
	ud_fault.ret = -FI_EAGAIN;
	for (i = 0; i < 5; i++) {
		ud_send(&ud_near, ah, &ud_far, i, 1, i);
		ud_sent_one(&ud_near, i);
	}
	succeed(dofi_ep_free(ud_near.ep));
	ud_fault.ret = 0;
	succeed(dofi_lmr_free(ud_near.lmr));
	succeed(dofi_pz_free(ud_near.pz));
	for (i = 0; i < 5; i++)
		ud_received(&ud_far, i, 1);
}

Test(xport_ud_pz, is_closed_although_a_peer_is_stuck)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	int64_t before;

	ud_works(&ud_near, ah, &ud_far, 1);
	ud_fault_open();
	ud_fault.ret = -FI_EAGAIN;
	ud_send(&ud_near, ah, &ud_far, 0, 1, 1);
	ud_sent_one(&ud_near, 1);
	succeed(dofi_ep_free(ud_near.ep));
	succeed(dofi_lmr_free(ud_near.lmr));
	before = dofi_now();
	succeed(dofi_pz_free(ud_near.pz));
	cr_expect(dofi_now() - before < 20 * UD_PATIENCE_NS);
	cr_expect(!ud_peer_is_valid(ud_part(&ud_far), ah));
}

/* Numbers */

static uint32_t slot_of(uint32_t number)
{
	return number & (UD_EP_SLOTS - 1);
}

Test(xport_ud_pz, gives_each_ep_a_number)
{
	enum { N = 40 };		/* more than the first table has entries */
	struct ud_side many[N];
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	unsigned i, k;

	for (i = 0; i < N; i++) {
		many[i] = ud_far;
		many[i].ep = ud_ep_make(&ud_far);
		cr_expect(ud_number(many[i].ep));
		for (k = 0; k < i; k++)
			cr_expect(slot_of(ud_number(many[i].ep)) !=
				  slot_of(ud_number(many[k].ep)));
	}
	for (i = 0; i < N; i++)
		ud_works(&ud_near, ah, &many[i], i);
	succeed(dofi_ep_free(many[3].ep));
	many[3].ep = ud_ep_make(&ud_far);
	ud_works(&ud_near, ah, &many[3], 99);
	ud_works(&ud_near, ah, &many[N - 1], 99);
	cr_expect_eq(ud_part(&ud_far)->net.n_eps, 64);
}

/* Exchanges the table of far for @arg. */
static void table_exchange(void *arg)
{
	struct ud_way *way = ud_first_way(ud_part(&ud_far)), *other = arg;
	struct ud_ep **ep = way->ep;
	const uint32_t n = way->n_eps;

	dofi_mutex_lock(&way->domain->cq.lock);
	way->ep = other->ep;
	way->n_eps = other->n_eps;
	dofi_mutex_unlock(&way->domain->cq.lock);
	other->ep = ep;
	other->n_eps = n;
}

static void add_to_full_table(void *arg)
{
	struct ud_ep uep = { .upz = ud_part(&ud_far) };

	table_exchange(arg);
	cr_expect_eq(ud_pz_add(uep.upz, &uep), -ENOSPC);
}

Test(xport_ud_pz, without_a_free_number_an_ep_lacks_resources)
{
	static struct ud_ep *used[UD_EP_SLOTS];
	struct ud_way full = { .ep = used, .n_eps = UD_EP_SLOTS };
	DAT_EP_HANDLE ep;
	unsigned i;

	for (i = 0; i < UD_EP_SLOTS; i++)
		used[i] = ud_ep_of(ud_far.ep);
	dofi_progress_call(&ia->progress, add_to_full_table, &full);
	expect_type(ud_ep_try(ud_far.pz, ud_far.evd, &ep), DAT_INSUFFICIENT_RESOURCES);
	dofi_progress_call(&ia->progress, table_exchange, &full);
	succeed(ud_ep_try(ud_far.pz, ud_far.evd, &ep));
}

/* A late datagram must not find the next EP of the slot. */
Test(xport_ud_pz, does_not_repeat_a_number_soon)
{
	enum { N = 300 };
	uint32_t number[N];
	DAT_EP_HANDLE ep;
	int i;

	for (i = 0; i < N; i++) {
		ep = ud_ep_make(&ud_far);
		number[i] = ud_number(ep);
		cr_expect(number[i] >> 16 >= 1 && number[i] >> 16 <= 255, "%#x", number[i]);
		cr_expect(number[i] < 1u << 24, "programs have numbers of 24 bits");
		cr_expect_eq(slot_of(number[i]), slot_of(number[0]));
		cr_expect(i < 1 || number[i] != number[i - 1]);
		cr_expect(i < 255 || number[i] == number[i - 255]);
		succeed(dofi_ep_free(ep));
	}
}

/* On a fabric of its own */

TestSuite(xport_ud_pz_udp, .init = ud_init_tcp, .fini = ud_fini, .timeout = 60);

Test(xport_ud_pz_udp, has_a_domain_beside_that_of_connections)
{
	const struct dofi_pz *of = ud_near.pz;

	cr_expect_eq(ud_part(&ud_near)->net.domain, &of->datagram);
	cr_expect(ud_part(&ud_near)->net.domain != &of->domain);
	cr_expect_str_eq(ud_ia_of(ia)->fabric->info->fabric_attr->prov_name, "udp");
}

Test(xport_ud_pz_udp, carries_any_size)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	const size_t most = ia->datagram_size;

	cr_assert(most <= UD_HALF - UD_GRH);
	ud_works(&ud_near, ah, &ud_far, 0);
	ud_works(&ud_near, ah, &ud_far, 1);
	ud_works(&ud_near, ah, &ud_far, most / 2);
	ud_works(&ud_near, ah, &ud_far, most - 1);
	ud_works(&ud_near, ah, &ud_far, most);
	cr_expect_eq(ia->count.dropped_sends, 0);
	cr_expect_eq(ia->count.dropped_foreign, 0);
}

Test(xport_ud_pz_udp, waits_for_the_fabric)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	unsigned i;

	ud_fault_open();
	ud_fault.ret = -FI_EAGAIN;
	for (i = 0; i < 3; i++) {
		ud_recv(&ud_far, 4096 * i, 4096, i);
		ud_send(&ud_near, ah, &ud_far, i, 100 + 500 * i, i);
		ud_sent_one(&ud_near, i);
	}
	ud_fault.ret = 0;
	for (i = 0; i < 3; i++) {
		ud_received(&ud_far, i, 100 + 500 * i);
		cr_expect(!memcmp(ud_far.memory + 4096 * i + UD_GRH, ud_near.memory + i,
				  100 + 500 * i));
	}
}

Test(xport_ud_pz_udp, may_lack_memory)
{
	DAT_RETURN ret = DAT_INTERNAL_ERROR;
	DAT_EP_HANDLE ep;
	int n;

	succeed(dofi_pz_create(ia, &ud_third.pz));
	for (n = 0; ret && n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = ud_ep_try(ud_third.pz, ud_near.evd, &ep);
		nomem_failed();
	}
	succeed(ret);
}
