/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections with CM messages that a proxy changes: neither peer may crash or hang, each attempt
 * ends, and connections with unchanged messages in between work.
 *
 * DAT_TEST_SEED: selects the changes (default 1). DAT_TEST_BATCHES: number of batches of eight
 * connections (default 24). DAT_TEST_IA: ofi-shm, ofi-rxm or ofi.
 */

#include "../robust/robust.h"
#include "proxy.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define EPS 8			/* per batch, connecting at the same time */
#define MESSAGE 20000
#define SHORT 64
#define HONEST_EVERY 6		/* one batch in this many is not changed */
#define ATTEMPT 150		/* ms for a changed attempt */

#define ALL (DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG)

/* An IA with one EVD for all events, so that the test takes them in any order. */
struct end {
	struct node n;
	DAT_EVD_HANDLE evd;
	struct mem m;
};

static void end_open(struct end *e)
{
	node_open(&e->n);
	e->evd = node_evd(&e->n, NODE_QLEN, ALL);
	mem_get(&e->n, &e->m, 2 * MESSAGE);
}

/* An IA can be closed, whatever its peer has sent. */
static void end_close(struct end *e)
{
	OK(dat_ia_close(e->n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static DAT_EP_HANDLE end_ep(struct end *e)
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(e->n.ia, e->n.pz, e->evd, e->evd, e->evd, NULL, &ep));
	post_recv(ep, &e->m, 0, MESSAGE, 1);
	return ep;
}

/* Ignores errors, because the connection may have ended already. */
static void end_send(struct end *e, DAT_EP_HANDLE ep, size_t length)
{
	DAT_LMR_TRIPLET part = mem_segment(&e->m, MESSAGE, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };

	dat_ep_post_send(ep, 1, &part, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static bool next_event(struct end *e, unsigned ms, DAT_EVENT *event)
{
	DAT_COUNT more;

	return dat_evd_wait(e->evd, ms * 1000, 1, event, &more) == DAT_SUCCESS;
}

/* The server accepts each request and sends a message on each connection. */

static void answer(struct end *e, const DAT_EVENT *event)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;

	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		OK(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, end_ep(e), 0,
				 NULL));
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		end_send(e, ep, next_random(4) ? SHORT : MESSAGE);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		break;
	default:
		OK(dat_ep_free(ep));
	}
}

static bool client_is_done(struct pair *p)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	struct end e;

	end_open(&e);
	OK(dat_psp_create_any(e.n.ia, &qual, e.evd, DAT_PSP_CONSUMER_FLAG, &(DAT_PSP_HANDLE){ 0 }));
	pair_send_listener(p, &e.n, qual);
	while (!client_is_done(p))
		if (next_event(&e, 50, &event))
			answer(&e, &event);
	pair_sync(p);
	end_close(&e);
}

/* The client */

struct attempt {
	DAT_EP_HANDLE ep;
	bool up, got, over, ending;
};

struct batch {
	struct end *e;
	struct attempt attempt[EPS];
	bool honest;
};

static void batch_begin(struct batch *b, struct end *e, const struct listener *listener,
			bool honest)
{
	int i;

	memset(b, 0, sizeof(*b));
	b->e = e;
	b->honest = honest;
	for (i = 0; i < EPS; i++) {
		b->attempt[i].ep = end_ep(e);
		connect_with(b->attempt[i].ep, listener, pair_scaled(honest ? PAIR_LIMIT : ATTEMPT),
			     0, NULL);
	}
}

static void attempt_end(struct attempt *a)
{
	if (!a->up || a->over || a->ending)
		return;
	a->ending = true;
	OK(dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void connection_event(struct batch *b, struct attempt *a, DAT_EVENT_NUMBER number)
{
	if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		a->up = true;
		end_send(b->e, a->ep, next_random(4) ? SHORT : MESSAGE);
	} else {
		CHECK(!b->honest || a->ending, "%s", event_name(number));
		a->over = true;
	}
}

static void take(struct batch *b, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const bool is_dto = event->event_number == DAT_DTO_COMPLETION_EVENT;
	DAT_EP_HANDLE ep = is_dto ? dto->ep_handle : event->event_data.connect_event_data.ep_handle;
	int i;

	for (i = 0; i < EPS; i++) {
		struct attempt *a = &b->attempt[i];

		if (a->ep != ep)
			continue;
		if (!is_dto)
			connection_event(b, a, event->event_number);
		else if (dto->user_cookie.as_64 == 1 && dto->status == DAT_DTO_SUCCESS)
			a->got = true;
		if (a->got)
			attempt_end(a);
	}
}

static bool is_over(const struct batch *b)
{
	int i;

	for (i = 0; i < EPS; i++)
		if (!b->attempt[i].over)
			return false;
	return true;
}

static void batch_fail(const struct batch *b)
{
	int i;

	for (i = 0; i < EPS; i++)
		if (!b->attempt[i].over)
			pair_note("attempt %d, state %d: up %d, got %d, ending %d", i,
				  ep_state(b->attempt[i].ep), b->attempt[i].up, b->attempt[i].got,
				  b->attempt[i].ending);
	CHECK(false, "an attempt does not end");
}

/*
 * Runs until all attempts have ended. Connections that remain are ended when the others have had
 * time.
 */
static void batch_run(struct batch *b)
{
	const int64_t until = pair_deadline(b->honest ? PAIR_LIMIT : 2 * ATTEMPT);
	const int64_t limit = pair_deadline(2 * PAIR_LIMIT);
	DAT_EVENT event;
	int i;

	while (!is_over(b)) {
		if (pair_now() >= limit)
			batch_fail(b);
		if (next_event(b->e, 20, &event))
			take(b, &event);
		for (i = 0; i < EPS && pair_now() >= until; i++)
			attempt_end(&b->attempt[i]);
	}
	for (i = 0; i < EPS; i++) {
		CHECK(!b->honest || b->attempt[i].got, "no message over an unchanged connection");
		OK(dat_ep_free(b->attempt[i].ep));
	}
	while (next_event(b->e, 0, &event))
		;
}

static bool is_local(void)
{
	return !strcmp(pair_ia_name(), "ofi") || !strcmp(pair_ia_name(), "ofi-shm");
}

static void client(struct pair *p)
{
	const unsigned seed = env_count("DAT_TEST_SEED", 1), n = env_count("DAT_TEST_BATCHES", 24);
	struct proxy *proxy;
	struct listener listener;
	struct batch b;
	struct end e;
	unsigned i;

	pair_recv_listener(p, &listener);
	end_open(&e);
	proxy = proxy_open(&listener.address, listener.qual, is_local(), seed);
	listener.qual = proxy_qual(proxy);
	pair_note("DAT_TEST_SEED=%u", seed);
	for (i = 0; i < n; i++) {
		const bool honest = i % HONEST_EVERY == HONEST_EVERY - 1;

		proxy_set_honest(proxy, honest);
		batch_begin(&b, &e, &listener, honest);
		batch_run(&b);
	}
	pair_note("%u messages changed", proxy_changes(proxy));
	CHECK(proxy_changes(proxy), "no message was changed");
	pair_sync(p);
	proxy_close(proxy);
	end_close(&e);
}

static const struct pair_case cases[] = {
	PAIR_CASE("CM messages changed by a proxy", server, client, .seconds = 120),
};

PAIR_MAIN(cases)
