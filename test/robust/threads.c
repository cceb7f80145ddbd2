/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads on EPs of their own, on a common EVD, asleep while another thread polls, and with other
 * connections opening and closing. No completion is lost, duplicated or late.
 *
 * DAT_TEST_TURNS: number of messages per case, in thousandths of the default.
 */

#include "robust.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define SIZE 2048

static unsigned of_turns(unsigned by_default)
{
	return by_default * env_count("DAT_TEST_TURNS", 1000) / 1000 + 1;
}

typedef void *(*thread_fn)(void *arg);

static pthread_t thread_start(thread_fn fn, void *arg)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, fn, arg), "pthread_create");
	return thread;
}

static bool poll_event(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_RETURN ret = dat_evd_dequeue(evd, event);

	if (ret == DAT_SUCCESS)
		return true;
	SAME(ret, DAT_QUEUE_EMPTY);
	sched_yield();
	return false;
}

/* Threads on endpoints of their own */

struct lane {
	struct node *n;
	bool server;
	bool polls;
	unsigned number;
	DAT_EVD_HANDLE req, recv;
	DAT_EP_HANDLE ep;
	struct mem m;		/* sent, received, written by the peer */
	struct grant peer;
};

/* Expects a completion on @evd next, by polling or by waiting, as the lane does. */
static void lane_completion(struct lane *l, DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;

	if (!l->polls) {
		expect_dto(evd, cookie, DAT_DTO_SUCCESS, SIZE);
		return;
	}
	while (!poll_event(evd, &event))
		CHECK(pair_now() < deadline, "lane %u: no completion", l->number);
	d = &event.event_data.dto_completion_event_data;
	CHECK(d->ep_handle == l->ep, "lane %u: wrong EP", l->number);
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME(d->transfered_length, SIZE);
}

static unsigned seed_of(const struct lane *l, unsigned turn, bool server)
{
	return (turn * THREADS + l->number) * 2 + server;
}

/*
 * Each turn has a write and a message in each direction: the message shows that the write has
 * arrived.
 */
static void *lane_run(void *arg)
{
	const unsigned turns = of_turns(300);
	struct lane *l = arg;
	unsigned turn;

	for (turn = 0; turn < turns; turn++) {
		unsigned mine = seed_of(l, turn, l->server), theirs = seed_of(l, turn, !l->server);

		if (l->server) {
			lane_completion(l, l->recv, turn);
			verify(l->m.base + SIZE, SIZE, theirs);
			verify(l->m.base + 2 * SIZE, SIZE, theirs);
			post_recv(l->ep, &l->m, SIZE, SIZE, turn + 1);
		}
		fill(l->m.base, SIZE, mine);
		post_write(l->ep, &l->m, 0, SIZE, 2 * turn, &l->peer, 2 * SIZE);
		lane_completion(l, l->req, 2 * turn);
		post_send(l->ep, &l->m, 0, SIZE, 2 * turn + 1);
		lane_completion(l, l->req, 2 * turn + 1);
		if (!l->server) {
			lane_completion(l, l->recv, turn);
			verify(l->m.base + SIZE, SIZE, theirs);
			verify(l->m.base + 2 * SIZE, SIZE, theirs);
			post_recv(l->ep, &l->m, SIZE, SIZE, turn + 1);
		}
	}
	return NULL;
}

static void lane_open(struct pair *p, struct lane *l, struct node *n, unsigned number)
{
	*l = (struct lane){
		.n = n, .server = p->server, .number = number, .polls = number & 1,
		.req = node_evd(n, 16, DAT_EVD_DTO_FLAG), .recv = node_evd(n, 16, DAT_EVD_DTO_FLAG),
	};
	OK(dat_ep_create(n->ia, n->pz, l->recv, l->req, n->conn, NULL, &l->ep));
	mem_get(n, &l->m, 3 * SIZE);
	post_recv(l->ep, &l->m, SIZE, SIZE, 0);
	pair_link(p, n, l->ep);
	pair_grant(p, &l->m);
	pair_granted(p, &l->peer);
}

static void lane_close(struct pair *p, struct lane *l)
{
	pair_unlink(p, l->n, l->ep);
	OK(dat_ep_free(l->ep));
	OK(dat_evd_free(l->req));
	OK(dat_evd_free(l->recv));
	mem_put(&l->m);
}

static void own_endpoints(struct pair *p)
{
	struct lane lane[THREADS];
	pthread_t thread[THREADS];
	struct node n;
	unsigned i;

	node_open(&n);
	for (i = 0; i < THREADS; i++)
		lane_open(p, &lane[i], &n, i);
	for (i = 0; i < THREADS; i++)
		thread[i] = thread_start(lane_run, &lane[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < THREADS; i++)
		lane_close(p, &lane[i]);
	node_close(&n);
}

/* Threads that poll one EVD */

#define WINDOW 64

struct pollers {
	struct node n;
	DAT_EP_HANDLE ep[THREADS];
	struct mem m;
	unsigned messages;
	unsigned received;		/* by all threads */
	unsigned by[THREADS];
	unsigned char *seen;		/* indexed by the number in the message */
};

struct poller {
	struct pollers *all;
	unsigned number;
};

static size_t slot_of(unsigned ep, unsigned i)
{
	return (ep * WINDOW + i) * sizeof(uint32_t);
}

static unsigned sender_of(uint32_t message)
{
	return message % THREADS;
}

/* One thread takes a completion, reads the message and posts the receive again. */
static void *poller_run(void *arg)
{
	struct poller *me = arg;
	struct pollers *all = me->all;
	int64_t deadline = pair_deadline(2 * PAIR_LIMIT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;
	uint32_t message;
	unsigned ep;

	while (__atomic_load_n(&all->received, __ATOMIC_ACQUIRE) < all->messages) {
		if (!poll_event(all->n.recv, &event)) {
			CHECK(pair_now() < deadline, "only %u of %u messages", all->received,
			      all->messages);
			continue;
		}
		d = &event.event_data.dto_completion_event_data;
		SAME(d->status, DAT_DTO_SUCCESS);
		SAME(d->transfered_length, sizeof(message));
		ep = d->user_cookie.as_64 / WINDOW;
		CHECK(ep < THREADS && d->ep_handle == all->ep[ep], "wrong EP");
		memcpy(&message, all->m.base + d->user_cookie.as_64 * sizeof(message),
		       sizeof(message));
		CHECK(message < all->messages, "invalid message %u", message);
		SAME(sender_of(message), ep);
		CHECK(!__atomic_exchange_n(&all->seen[message], 1, __ATOMIC_ACQ_REL),
		      "message %u was received twice", message);
		post_recv(all->ep[ep], &all->m, d->user_cookie.as_64 * sizeof(message),
			  sizeof(message), d->user_cookie.as_64);
		all->by[me->number]++;
		__atomic_add_fetch(&all->received, 1, __ATOMIC_ACQ_REL);
	}
	return NULL;
}

static void pollers_open(struct pair *p, struct pollers *all)
{
	unsigned ep, i;

	memset(all, 0, sizeof(*all));
	all->messages = of_turns(4000);
	all->seen = calloc(all->messages, 1);
	node_open(&all->n);
	mem_get(&all->n, &all->m,
		p->server ? slot_of(THREADS, 0) : all->messages * sizeof(uint32_t));
	for (ep = 0; ep < THREADS; ep++) {
		all->ep[ep] = node_ep(&all->n, NULL);
		if (p->server)
			for (i = 0; i < WINDOW; i++)
				post_recv(all->ep[ep], &all->m, slot_of(ep, i), sizeof(uint32_t),
					  ep * WINDOW + i);
		pair_link(p, &all->n, all->ep[ep]);
	}
}

static void pollers_close(struct pair *p, struct pollers *all)
{
	unsigned ep;

	for (ep = 0; ep < THREADS; ep++) {
		pair_unlink(p, &all->n, all->ep[ep]);
		OK(dat_ep_free(all->ep[ep]));
	}
	mem_put(&all->m);
	node_close(&all->n);
	free(all->seen);
}

static void one_evd(struct pair *p)
{
	struct pollers *all = malloc(sizeof(*all));
	struct poller poller[THREADS];
	pthread_t thread[THREADS];
	unsigned i;

	pollers_open(p, all);
	for (i = 0; i < THREADS; i++) {
		poller[i] = (struct poller){ .all = all, .number = i };
		thread[i] = thread_start(poller_run, &poller[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < all->messages; i++)
		CHECK(all->seen[i], "message %u is lost", i);
	pair_note("the threads received %u, %u, %u and %u messages", all->by[0], all->by[1],
		  all->by[2], all->by[3]);
	pollers_close(p, all);
	free(all);
}

static void one_evd_sender(struct pair *p)
{
	struct pollers *all = malloc(sizeof(*all));
	uint32_t *slot;
	unsigned i, done = 0;
	DAT_EVENT event;

	pollers_open(p, all);
	slot = (uint32_t *)all->m.base;
	for (i = 0; done < all->messages;) {
		if (i < all->messages && i - done < WINDOW) {
			slot[i] = i;
			post_send(all->ep[i % THREADS], &all->m, i * sizeof(*slot), sizeof(*slot),
				  i);
			i++;
			continue;
		}
		expect_event(all->n.req, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		done++;
	}
	pollers_close(p, all);
	free(all);
}

/* One thread asleep on an EVD while another thread polls a different EVD of the PZ */

struct sleeper {
	struct node *n;
	DAT_EVD_HANDLE recv;
	DAT_EP_HANDLE ep;
	struct mem m;
	unsigned pings;
	unsigned got;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;
	unsigned i;

	for (i = 0; i < s->pings; i++) {
		expect_dto(s->recv, i, DAT_DTO_SUCCESS, SIZE);
		post_recv(s->ep, &s->m, 0, SIZE, i + 1);
		post_send(s->ep, &s->m, SIZE, SIZE, i);
		expect_dto(s->n->req, i, DAT_DTO_SUCCESS, SIZE);
		__atomic_store_n(&s->got, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Polls an EVD without events until the other thread is done. */
static void sleeper_and_poller(struct pair *p)
{
	int64_t begun, limit;
	struct sleeper s;
	DAT_EP_HANDLE idle;
	pthread_t thread;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	idle = node_ep(&n, NULL);
	s = (struct sleeper){
		.n = &n, .recv = node_evd(&n, 16, DAT_EVD_DTO_FLAG), .pings = of_turns(200),
	};
	OK(dat_ep_create(n.ia, n.pz, s.recv, n.req, n.conn, NULL, &s.ep));
	mem_get(&n, &s.m, 2 * SIZE);
	post_recv(s.ep, &s.m, 0, SIZE, 0);
	pair_link(p, &n, idle);
	pair_link(p, &n, s.ep);
	thread = thread_start(sleeper_run, &s);
	pair_sync(p);
	begun = pair_now();
	limit = pair_deadline(PAIR_LIMIT);
	while (__atomic_load_n(&s.got, __ATOMIC_ACQUIRE) < s.pings) {
		CHECK(pair_now() < limit, "only %u of %u messages", s.got, s.pings);
		FAILS(dat_evd_dequeue(n.recv, &event), DAT_QUEUE_EMPTY);
	}
	pthread_join(thread, NULL);
	pair_note("%lld us for a round trip to a sleeping thread",
		  (long long)(pair_now() - begun) / s.pings);
	pair_unlink(p, &n, s.ep);
	pair_unlink(p, &n, idle);
	OK(dat_ep_free(s.ep));
	OK(dat_ep_free(idle));
	OK(dat_evd_free(s.recv));
	mem_put(&s.m);
	node_close(&n);
}

static void pinger(struct pair *p)
{
	const unsigned pings = of_turns(200);
	DAT_EP_HANDLE idle;
	struct node n;
	unsigned i;

	node_open(&n);
	idle = node_ep(&n, NULL);
	n.ep = node_ep(&n, NULL);
	mem_get(&n, &n.m, 2 * SIZE);
	post_recv(n.ep, &n.m, 0, SIZE, 0);
	pair_link(p, &n, idle);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	for (i = 0; i < pings; i++) {
		post_send(n.ep, &n.m, SIZE, SIZE, i);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, SIZE);
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, SIZE);
		post_recv(n.ep, &n.m, 0, SIZE, i + 1);
	}
	pair_unlink(p, &n, n.ep);
	pair_unlink(p, &n, idle);
	OK(dat_ep_free(idle));
	node_end(&n);
}

/* Traffic on one EP while other EPs of its PZ come and go */

#define CONNECTIONS 60

static void churn(struct pair *p)
{
	struct lane traffic;
	struct node n;
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	struct listener listener = { .qual = 0 };
	pthread_t thread;
	DAT_EP_HANDLE ep;
	unsigned i;

	node_open(&n);
	lane_open(p, &traffic, &n, 1);
	if (p->server) {
		psp = node_listen(&n, &listener.qual);
		pair_send_listener(p, &n, listener.qual);
	} else {
		pair_recv_listener(p, &listener);
	}
	thread = thread_start(lane_run, &traffic);
	for (i = 0; i < CONNECTIONS; i++) {
		ep = node_ep(&n, NULL);
		if (p->server)
			OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
		else
			ep_connect(ep, &listener);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	pthread_join(thread, NULL);
	if (psp)
		OK(dat_psp_free(psp));
	lane_close(p, &traffic);
	node_close(&n);
}

static const struct pair_case cases[] = {
	{ .name = "own_endpoints_of_one_pz", .server = own_endpoints, .client = own_endpoints },
	{ .name = "four_pollers_of_one_evd", .server = one_evd, .client = one_evd_sender },
	{ .name = "sleeper_and_poller", .server = sleeper_and_poller, .client = pinger },
	{ .name = "connections_come_and_go", .server = churn, .client = churn },
};

PAIR_MAIN(cases)
