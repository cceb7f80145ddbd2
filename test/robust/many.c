/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thousands of connections of one IA: each delivers, both to a polling and to a waiting thread,
 * and an empty poll does not take longer because of them.
 *
 * DAT_TEST_EPS: number of connections (default 2000).
 */

#include "robust.h"

#include <stdlib.h>

#define BATCHES 50
#define POLLS 100
#define LIMIT 50	/* us: libfabric 1.17 takes more than 100 to poll 2000 endpoints */

struct many {
	struct node n;
	struct mem m;
	DAT_EVD_HANDLE cr, conn, dto;
	DAT_EP_HANDLE *ep;
	bool *seen;
};

static unsigned eps(void)
{
	return env_count("DAT_TEST_EPS", 2000);
}

static void many_open(struct many *k)
{
	unsigned i;

	need_fds(2 * eps() + 1000);
	node_open(&k->n);
	mem_get(&k->n, &k->m, 64);
	k->cr = node_evd(&k->n, eps(), DAT_EVD_CR_FLAG);
	k->conn = node_evd(&k->n, eps(), DAT_EVD_CONNECTION_FLAG);
	k->dto = node_evd(&k->n, 4 * eps(), DAT_EVD_DTO_FLAG);
	k->ep = calloc(eps(), sizeof(*k->ep));
	k->seen = calloc(eps(), sizeof(*k->seen));
	CHECK(k->ep && k->seen, "no memory");
	for (i = 0; i < eps(); i++) {
		OK(dat_ep_create(k->n.ia, k->n.pz, k->dto, k->dto, k->conn, NULL, &k->ep[i]));
		post_recv(k->ep[i], &k->m, 0, 8, i);
	}
}

static void many_close(struct many *k)
{
	OK(dat_ia_close(k->n.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(k->seen);
	free(k->ep);
}

static void next_event(struct many *k, bool waits, DAT_EVENT *event)
{
	const int64_t until = pair_deadline(PAIR_LIMIT);

	if (waits) {
		expect_event(k->dto, DAT_DTO_COMPLETION_EVENT, event);
		return;
	}
	while (dat_evd_dequeue(k->dto, event) != DAT_SUCCESS)
		CHECK(pair_now() < until, "a completion is missing");
	SAME(event->event_number, DAT_DTO_COMPLETION_EVENT);
}

/* Each EP sends one message and receives one. */
static void exchange(struct many *k, bool waits)
{
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < eps(); i++) {
		post_send(k->ep[i], &k->m, 0, 8, eps());
		k->seen[i] = false;
	}
	for (i = 0; i < 2 * eps(); i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d =
			&event.event_data.dto_completion_event_data;
		uint64_t cookie;

		next_event(k, waits, &event);
		SAME(d->status, DAT_DTO_SUCCESS);
		cookie = d->user_cookie.as_64;
		if (cookie == eps())
			continue;
		CHECK(cookie < eps() && !k->seen[cookie], "endpoint %u received twice",
		      (unsigned)cookie);
		k->seen[cookie] = true;
		post_recv(k->ep[cookie], &k->m, 0, 8, cookie);
	}
	for (i = 0; i < eps(); i++)
		CHECK(k->seen[i], "endpoint %u received nothing", i);
}

static void exchanges(struct pair *p, struct many *k)
{
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < eps(); i++)
		expect_event(k->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	pair_sync(p);
	exchange(k, false);
	pair_sync(p);
	exchange(k, true);
	pair_sync(p);
}

/* The shortest time of an empty poll in ns, since the machine may be busy. */
static unsigned empty_poll(struct many *k)
{
	int64_t least = INT64_MAX;
	DAT_EVENT event;
	unsigned b, i;

	for (b = 0; b < BATCHES; b++) {
		const int64_t begin = pair_now();
		int64_t took;

		for (i = 0; i < POLLS; i++)
			SAME(dat_evd_dequeue(k->dto, &event), DAT_QUEUE_EMPTY);
		took = pair_now() - begin;
		if (took < least)
			least = took;
	}
	return least * 1000 / POLLS;
}

static void many_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct many k;
	unsigned i;

	many_open(&k);
	if (node_is_on_verbs(&k.n))
		pair_skip("the device's CQ has fewer entries");
	OK(dat_psp_create_any(k.n.ia, &qual, k.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &k.n, qual);
	for (i = 0; i < eps(); i++) {
		expect_event(k.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, k.ep[i], 0,
				 NULL));
	}
	exchanges(p, &k);
	pair_sync(p);	/* the client has measured */
	many_close(&k);
}

static void many_client(struct pair *p)
{
	struct listener listener;
	struct many k;
	unsigned i, ns;

	many_open(&k);
	if (node_is_on_verbs(&k.n))
		pair_skip("the device's CQ has fewer entries");
	pair_recv_listener(p, &listener);
	for (i = 0; i < eps(); i++)
		connect_with(k.ep[i], &listener, pair_scaled(2 * PAIR_LIMIT), 0, NULL);
	exchanges(p, &k);
	ns = empty_poll(&k);
	pair_note("an empty poll of %u endpoints takes %u ns", eps(), ns);
	CHECK(!pair_fabric_is("tcp") || ns < pair_scaled(LIMIT) * 1000, "an empty poll takes %u ns",
	      ns);
	pair_sync(p);
	many_close(&k);
}

static const struct pair_case cases[] = {
	PAIR_CASE("many connections deliver, and polls stay short", many_server, many_client,
		  .seconds = 60,
		  .not_sockets = "its threads take seconds for hundreds of connections"),
};

PAIR_MAIN(cases)
