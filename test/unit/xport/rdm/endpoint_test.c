/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric endpoints of a PZ: opening, closing, replacement, and reservations of entries. */

#include "xport/coupled.h"

#include "xport/rdm/endpoint.h"
#include "xport/cm/talk.h"

TestSuite(rdm_endpoint, .init = coupled_init, .fini = rdm_fini, .timeout = 60);

static struct rdm_pz *rpz(void)
{
	return ((struct dofi_pz *)pz)->xport_pz;
}

static struct rdm_endpoint *newest(void)
{
	return LIST_FIRST(&rpz()->endpoints);
}

static unsigned endpoints(void)
{
	struct rdm_endpoint *e;
	unsigned n = 0;

	LIST_FOREACH(e, &rpz()->endpoints, link)
		n++;
	return n;
}

static struct rdm_endpoint *endpoint_of(DAT_EP_HANDLE handle)
{
	return ((struct rdm_conn *)((struct dofi_ep *)handle)->conn)->endpoint;
}

static DAT_EP_HANDLE pair[2];

static void pair_make(void)
{
	pair[0] = ep_make();
	pair[1] = ep_make();
	pair_connect(pair[0], pair[1]);
}

static void pair_free(void)
{
	succeed(dofi_ep_free(pair[0]));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_free(pair[1]));
}

Test(rdm_endpoint, connections_share_one)
{
	struct rdm_endpoint *first = newest();

	pair_make();
	cr_expect(endpoint_of(pair[0]) == first && endpoint_of(pair[1]) == first);
	cr_expect_eq(first->conns, 3);
	cr_expect_eq(first->reservations.reserved, 0);
	pair_free();
	cr_expect_eq(first->conns, 1);
	cr_expect_eq(endpoints(), 1);
}

Test(rdm_endpoint, without_a_place_another_one_is_opened)
{
	struct rdm_endpoint *first = newest();

	first->rdm.used_peers = first->rdm.max_peers;
	pair_make();
	cr_expect_eq(endpoints(), 2);
	cr_expect(newest() != first && endpoint_of(pair[0]) == newest());
	pair_works(pair[0], pair[1]);
	is_heard();
	pair_free();
	cr_expect_eq(endpoints(), 2, "the newest stays for the next connection");
	succeed(dofi_ep_free(ep));
	cr_expect_eq(endpoints(), 1, "an older one is closed with its last connection");
	pair_make();
	pair_works(pair[1], pair[0]);
	cr_expect_eq(endpoints(), 1);
}

Test(rdm_endpoint, an_unused_one_is_closed_when_another_is_opened)
{
	pair_make();
	pair_free();
	succeed(dofi_ep_free(ep));
	newest()->rdm.used_peers = newest()->rdm.max_peers;
	pair_make();
	cr_expect_eq(endpoints(), 1);
	pair_works(pair[0], pair[1]);
}

/* Probes */

/* @arg sends no probe, and awaits one. */
static void probe_lose(void *arg)
{
	struct rdm_endpoint *e = arg;

	e->probe_sent = true;
	e->probe_ticks = 0;
	atomic_store(&e->answered, false);
}

static void suspect(void *arg)
{
	rdm_endpoint_suspect(arg);
}

static void on_thread(void (*fn)(void *arg))
{
	dofi_progress_call(&((struct dofi_ia *)ia)->progress, fn, newest());
}

static void is_answered(const struct rdm_endpoint *e)
{
	while (!atomic_load(&e->answered))
		dofi_progress_wake(&((struct dofi_ia *)ia)->progress);
}

Test(rdm_endpoint, a_probe_arrives_while_it_works)
{
	struct rdm_endpoint *first = newest();

	on_thread(suspect);
	is_answered(first);
	cr_expect(!first->damaged);
	is_heard();
	pair_make();
	pair_works(pair[0], pair[1]);
	cr_expect_eq(newest(), first);
}

static void damage(void)
{
	on_thread(suspect);
	is_answered(newest());
	on_thread(probe_lose);
}

Test(rdm_endpoint, without_its_probe_its_connections_end_and_it_is_replaced)
{
	damage();
	ends_with(DAT_CONNECTION_EVENT_BROKEN);
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_expect(peer.received.reason, "the peer is not to take it for a disconnect");
	pair_make();
	pair_works(pair[0], pair[1]);
	cr_expect_eq(endpoints(), 1);
	cr_expect_eq(newest()->conns, 2);
}

Test(rdm_endpoint, without_its_probe_a_request_ends, .init = talk_init)
{
	is_asked();
	damage();
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
}

/* Reservations of entries for peers */

static struct dofi_reservations reservations;
static struct dofi_reservation reservation[6];

static void reservations_init(void)
{
	memset(reservation, 0, sizeof(reservation));
	dofi_reservations_init(&reservations);
}

TestSuite(reservations, .init = reservations_init);

static bool reserves(int i, unsigned room, const char *key)
{
	return dofi_reserve(&reservations, &reservation[i], room, key, strlen(key));
}

static void let_go(int i)
{
	dofi_release(&reservation[i]);
}

Test(reservations, there_are_as_many_as_there_is_room)
{
	cr_expect(!reserves(0, 0, "a"));
	cr_expect(reserves(0, 2, "a"));
	cr_expect(reserves(1, 2, "b"));
	cr_expect(!reserves(2, 2, "c"));
	let_go(2);	/* has no reservation */
	cr_expect_eq(reservations.reserved, 2);
	let_go(0);
	cr_expect(reserves(2, 2, "c"));
	cr_expect_eq(reservations.reserved, 2);
}

Test(reservations, a_process_has_one_reservation_for_all_of_its_uses)
{
	cr_expect(reserves(0, 1, "a"));
	cr_expect(reserves(1, 1, "a"));
	cr_expect(reserves(2, 0, "a"));
	cr_expect(!reserves(3, 1, "aa"));
	cr_expect_eq(reservations.reserved, 1);
	let_go(0);
	cr_expect(!reserves(3, 1, "b"));
	let_go(2);
	cr_expect(!reserves(3, 1, "b"));
	let_go(1);
	let_go(1);
	cr_expect_eq(reservations.reserved, 0);
	cr_expect(TAILQ_EMPTY(&reservations.list));
	cr_expect(reserves(3, 1, "b"));
}
