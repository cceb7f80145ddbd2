/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections, one after the other and at once: afterwards descriptors, threads and memory
 * are as before.
 *
 * DAT_TEST_CYCLES: connections one after the other (default 300). DAT_TEST_MANY: connections at
 * once (default 1000).
 */

#include "robust.h"

#include <stdlib.h>
#include <sys/mman.h>

#define WARM_UP 100
#define FRESH_EP 16		/* cycles after which the EP is freed without disconnecting */
#define SIZE 1024
/* for memory that allocators keep, independent of the number of cycles */
#define GROWTH (512 * 1024)
#define IA_CYCLES 15

/* One connection with a message in each direction. Its end alternates between four ways. */
static void cycle(struct pair *p, struct node *n, struct mem *m, const struct listener *listener,
		  DAT_EP_HANDLE *ep, unsigned i)
{
	unsigned mode = i & 3;
	bool abandon = i % FRESH_EP == FRESH_EP - 1;

	post_recv(*ep, m, 0, SIZE, i);
	post_recv(*ep, m, SIZE, SIZE, i + 1);
	if (p->server) {
		OK(dat_cr_accept(node_request(n), *ep, 0, NULL));
	} else {
		ep_connect(*ep, listener);
	}
	expect_conn(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, *ep);
	post_send(*ep, m, 2 * SIZE, SIZE, i);
	expect_dto(n->req, i, DAT_DTO_SUCCESS, SIZE);
	expect_dto(n->recv, i, DAT_DTO_SUCCESS, SIZE);
	pair_sync(p);
	if (abandon && !p->server) {
		OK(dat_ep_free(*ep));
		*ep = node_ep(n, NULL);
		expect_dto(n->recv, i + 1, DAT_DTO_ERR_FLUSHED, 0);
		return;
	}
	if (!abandon && (mode == 0 || (mode == 1) == p->server))
		OK(dat_ep_disconnect(*ep,
				     mode == 2 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, *ep);
	expect_dto(n->recv, i + 1, DAT_DTO_ERR_FLUSHED, 0);
	OK(dat_ep_reset(*ep));
}

static void cycles(struct pair *p)
{
	unsigned count = WARM_UP + env_count("DAT_TEST_CYCLES", 300), i;
	struct resources before = { 0 };
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	struct listener listener = { .qual = 0 };
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, 3 * SIZE);
	ep = node_ep(&n, NULL);
	if (p->server) {
		psp = node_listen(&n, &listener.qual);
		pair_send_listener(p, &n, listener.qual);
	} else {
		pair_recv_listener(p, &listener);
	}
	for (i = 0; i < count; i++) {
		if (i == WARM_UP) {
			/* the peer must not connect during the measurement */
			pair_sync(p);
			before = resources_settled();
			pair_sync(p);
		}
		cycle(p, &n, &n.m, &listener, &ep, i);
	}
	/* nothing of the last connection is left in either process */
	pair_sync(p);
	expect_resources(&before, GROWTH, GROWTH);
	pair_sync(p);
	if (psp)
		OK(dat_psp_free(psp));
	OK(dat_ep_free(ep));
	node_end(&n);
}

/* Expects @number for both EPs, in either order. */
static void expect_one_each(struct node *n, DAT_EVENT_NUMBER number, DAT_EP_HANDLE a,
			    DAT_EP_HANDLE b)
{
	DAT_EP_HANDLE first, second;
	DAT_EVENT event;

	expect_event(n->conn, number, &event);
	first = event.event_data.connect_event_data.ep_handle;
	expect_event(n->conn, number, &event);
	second = event.event_data.connect_event_data.ep_handle;
	CHECK((first == a && second == b) || (first == b && second == a), "%s: wrong endpoints",
	      event_name(number));
}

/* Each peer connects while the other connects to it, which must not deadlock. */
static void both_connect(struct pair *p)
{
	unsigned count = env_count("DAT_TEST_CYCLES", 300) / 3 + 1, i;
	DAT_EP_HANDLE connecting, accepting;
	struct listener listener;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	pair_recv_listener(p, &listener);
	connecting = node_ep(&n, NULL);
	accepting = node_ep(&n, NULL);
	for (i = 0; i < count; i++) {
		pair_sync(p);
		ep_connect(connecting, &listener);
		OK(dat_cr_accept(node_request(&n), accepting, 0, NULL));
		expect_one_each(&n, DAT_CONNECTION_EVENT_ESTABLISHED, connecting, accepting);
		pair_sync(p);
		OK(dat_ep_disconnect(connecting, DAT_CLOSE_ABRUPT_FLAG));
		expect_one_each(&n, DAT_CONNECTION_EVENT_DISCONNECTED, connecting, accepting);
		OK(dat_ep_reset(connecting));
		OK(dat_ep_reset(accepting));
	}
	OK(dat_ep_free(connecting));
	OK(dat_ep_free(accepting));
	OK(dat_psp_free(psp));
	node_close(&n);
}

/* An IA with an object of most types, closed gracefully or abruptly. */
static void ia_cycle(bool graceful)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct node n;

	node_begin(&n, SIZE);
	post_recv(n.ep, &n.m, 0, SIZE, 1);
	psp = node_listen(&n, &qual);
	if (!graceful) {
		OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
		munmap(n.m.base, n.m.size);
		return;
	}
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void ia_cycles(struct pair *p)
{
	struct resources before = { 0 };
	unsigned i;

	for (i = 0; i < 2 * IA_CYCLES; i++) {
		if (i == IA_CYCLES)
			before = resources_settled();
		ia_cycle(i & 1);
	}
	expect_resources(&before, GROWTH, GROWTH);
}

/* Many at once */

struct crowd {
	struct node n;
	unsigned count;
	DAT_EVD_HANDLE cr, conn, req, recv;
	DAT_EP_HANDLE *ep;
	struct mem m;	/* two words per EP: sent, received */
};

static void crowd_open(struct crowd *c)
{
	unsigned i;

	c->count = env_count("DAT_TEST_MANY", 1000);
	/* some fabrics use several descriptors per connection */
	need_fds(8 * c->count + 100);
	node_open(&c->n);
	c->cr = node_evd(&c->n, c->count, DAT_EVD_CR_FLAG);
	c->conn = node_evd(&c->n, 2 * c->count, DAT_EVD_CONNECTION_FLAG);
	c->req = node_evd(&c->n, c->count, DAT_EVD_DTO_FLAG);
	c->recv = node_evd(&c->n, c->count, DAT_EVD_DTO_FLAG);
	mem_get(&c->n, &c->m, c->count * 2 * sizeof(uint64_t));
	c->ep = calloc(c->count, sizeof(*c->ep));
	for (i = 0; i < c->count; i++) {
		OK(dat_ep_create(c->n.ia, c->n.pz, c->recv, c->req, c->conn, NULL, &c->ep[i]));
		post_recv(c->ep[i], &c->m, (2 * i + 1) * sizeof(uint64_t), sizeof(uint64_t), i);
	}
}

static void crowd_close(struct crowd *c)
{
	free(c->ep);
	mem_put(&c->m);
	OK(dat_evd_free(c->cr));
	OK(dat_evd_free(c->conn));
	OK(dat_evd_free(c->req));
	OK(dat_evd_free(c->recv));
	node_close(&c->n);
}

static unsigned index_of(const struct crowd *c, DAT_EP_HANDLE ep)
{
	unsigned i;

	for (i = 0; i < c->count; i++)
		if (c->ep[i] == ep)
			return i;
	pair_fail(__FILE__, __LINE__, "unknown EP");
}

/* Expects one event of this kind for each EP in [from, count). */
static void one_each(struct crowd *c, DAT_EVENT_NUMBER number, unsigned from)
{
	bool *seen = calloc(c->count, sizeof(*seen));
	DAT_EVENT event;
	unsigned i, at;

	for (i = from; i < c->count; i++) {
		expect_event_in(c->conn, number, 3 * PAIR_LIMIT, &event);
		at = index_of(c, event.event_data.connect_event_data.ep_handle);
		CHECK(!seen[at], "%s twice", event_name(number));
		seen[at] = true;
	}
	expect_quiet(c->conn);
	free(seen);
}

/* Each connection carries its own number in each direction. */
static void all_exchange(struct crowd *c)
{
	uint64_t *word = (uint64_t *)c->m.base, sum = 0, wanted = 0;
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < c->count; i++) {
		word[2 * i] = 1000 + i;
		wanted += 1000 + i;
		post_send(c->ep[i], &c->m, 2 * i * sizeof(*word), sizeof(*word), i);
	}
	for (i = 0; i < c->count; i++) {
		expect_event_in(c->req, DAT_DTO_COMPLETION_EVENT, 3 * PAIR_LIMIT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		expect_event_in(c->recv, DAT_DTO_COMPLETION_EVENT, 3 * PAIR_LIMIT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		SAME(event.event_data.dto_completion_event_data.transfered_length, sizeof(*word));
	}
	for (i = 0; i < c->count; i++)
		sum += word[2 * i + 1];
	SAME(sum, wanted);
}

/*
 * Some EPs are disconnected, some freed without that, and the peer's remaining EPs report the
 * end.
 */
static void all_disconnect(struct pair *p, struct crowd *c)
{
	unsigned half = c->count / 2, i;

	pair_sync(p);
	if (!p->server) {
		for (i = 0; i < half; i++)
			OK(dat_ep_free(c->ep[i]));
		for (; i < c->count; i++)
			OK(dat_ep_disconnect(c->ep[i], DAT_CLOSE_GRACEFUL_FLAG));
	}
	one_each(c, DAT_CONNECTION_EVENT_DISCONNECTED, p->server ? 0 : half);
	for (i = p->server ? 0 : half; i < c->count; i++)
		OK(dat_ep_free(c->ep[i]));
}

/* Notes the memory and descriptors per connected EP, including its share of common resources. */
static void note_costs(const struct crowd *c, const struct resources *before)
{
	struct resources now = resources_settled();
	const size_t memory = now.own + now.shared - before->own - before->shared;

	pair_note("%u connected endpoints: %zu KiB and %u descriptors; "
		  "each: %zu bytes and %.2f descriptors",
		  c->count, memory >> 10, now.fds - before->fds, memory / c->count,
		  (double)(now.fds - before->fds) / c->count);
}

static void crowd(struct pair *p)
{
	struct resources before;
	struct listener listener;
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	struct crowd c;
	DAT_EVENT event;
	unsigned i;

	ia_cycle(true);
	before = resources_settled();
	crowd_open(&c);
	if (p->server) {
		OK(dat_psp_create_any(c.n.ia, &listener.qual, c.cr, DAT_PSP_CONSUMER_FLAG, &psp));
		pair_send_listener(p, &c.n, listener.qual);
		for (i = 0; i < c.count; i++) {
			expect_event_in(c.cr, DAT_CONNECTION_REQUEST_EVENT, 3 * PAIR_LIMIT, &event);
			OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, c.ep[i],
					 0, NULL));
		}
	} else {
		pair_recv_listener(p, &listener);
		for (i = 0; i < c.count; i++)
			OK(dat_ep_connect(c.ep[i], (DAT_IA_ADDRESS_PTR)&listener.address,
					  listener.qual, pair_scaled(3 * PAIR_LIMIT) * 1000, 0,
					  NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	one_each(&c, DAT_CONNECTION_EVENT_ESTABLISHED, 0);
	all_exchange(&c);
	note_costs(&c, &before);
	all_disconnect(p, &c);
	if (psp)
		OK(dat_psp_free(psp));
	crowd_close(&c);
	/* pools keep their memory */
	expect_resources(&before, SIZE_MAX - before.own, SIZE_MAX - before.shared);
}

static struct pair_case cases[] = {
	{ .name = "cycles_leak_nothing",
	  .server = cycles,
	  .client = cycles,
	  .not_sockets =
		  "one of several hundred connections transfers nothing, "
		  "also with bare libfabric" },
	{ .name = "both_connect_at_once", .server = both_connect, .client = both_connect },
	{ .name = "ia_cycles_leak_nothing", .client = ia_cycles, .seconds = 60 },
	{ .name = "thousand_at_once", .server = crowd, .client = crowd, .seconds = 120 },
};

int main(int argc, char **argv)
{
	cases[0].seconds = cases[1].seconds = 30 + env_count("DAT_TEST_CYCLES", 300) / 20;
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
