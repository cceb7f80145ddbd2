/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's phases with datagrams, over a transport that copies memory and loses datagrams, with
 * client and server in two threads.
 */
#include "perf_ud.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define QUEUE 1024
#define HEAD 40
#define LIMIT 1000

struct queue {
	struct {
		size_t off, len;
		uint64_t cookie;
	} recv[QUEUE];
	struct perf_comp comp[QUEUE];
	unsigned int recv_head, recv_tail, comp_head, comp_tail;
};

struct fake {
	struct perf_xport x; /* first, because the ops get a pointer to it */
	struct fake *peer;
	struct queue control, data;
	unsigned int sends, lose_every; /* every lose_every-th datagram is lost; 0: none */
	size_t lose_from;		/* shorter datagrams are neither counted nor lost */
	unsigned int busy_every;	/* every busy_every-th send of a datagram returns -EAGAIN */
	unsigned int corrupt_at;	/* the number of a datagram, from 1 */
	size_t longest;			/* datagram sent */
	unsigned int lanes;		/* as bits: the ones with datagrams */
	bool has_none;			/* its open fails */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake client, server;
static pthread_t thread;
static int served;

static struct fake *to_fake(struct perf_xport *x)
{
	return (struct fake *)x;
}

static void complete(struct queue *q, uint64_t cookie, uint64_t len)
{
	q->comp[q->comp_tail++ % QUEUE] = (struct perf_comp){ .cookie = cookie, .len = len };
}

static void post(struct queue *q, size_t off, size_t len, uint64_t cookie)
{
	pthread_mutex_lock(&lock);
	q->recv[q->recv_tail % QUEUE].off = off;
	q->recv[q->recv_tail % QUEUE].len = len;
	q->recv[q->recv_tail++ % QUEUE].cookie = cookie;
	pthread_mutex_unlock(&lock);
}

static int poll_queue(struct queue *q, struct perf_comp *comp)
{
	int n;

	pthread_mutex_lock(&lock);
	n = q->comp_head != q->comp_tail;
	if (n)
		*comp = q->comp[q->comp_head++ % QUEUE];
	pthread_mutex_unlock(&lock);
	return n;
}

/* --- the connection ------------------------------------------------------- */

static int fake_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	post(&to_fake(x)->control, off, len, cookie);
	return 0;
}

static int fake_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct fake *f = to_fake(x);
	struct queue *q = &f->peer->control;
	int rc = -EAGAIN;

	pthread_mutex_lock(&lock);
	if (q->recv_head != q->recv_tail) {
		memcpy(f->peer->x.mem + q->recv[q->recv_head % QUEUE].off, x->mem + off, len);
		complete(q, q->recv[q->recv_head++ % QUEUE].cookie, len);
		complete(&f->control, cookie, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int fake_poll(struct perf_xport *x, struct perf_comp *comp)
{
	return poll_queue(&to_fake(x)->control, comp);
}

static int fake_check(struct perf_xport *x)
{
	return 0;
}

static void fake_select(struct perf_xport *x, unsigned int lane)
{
}

/* --- datagrams -------------------------------------------------------------- */

static int ud_open(struct perf_xport *x, struct perf_ctl *ctl)
{
	if (to_fake(x)->has_none)
		return perf_fail(x, "no datagrams");
	x->ud.mem = x->mem;
	x->ud.head = HEAD;
	/* the client may have the longer ones */
	x->ud.limit = to_fake(x) == &client ? 2 * LIMIT : LIMIT;
	return 0;
}

static int ud_connect(struct perf_xport *x, const struct perf_ctl *ctl)
{
	return 0;
}

static int ud_post_recv(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	post(&to_fake(x)->data, off, len, cookie);
	return 0;
}

/* Without a receive a datagram is lost too. */
static void deliver(struct fake *f, const unsigned char *data, size_t len)
{
	struct queue *q = &f->peer->data;
	unsigned char *to = f->peer->x.mem + q->recv[q->recv_head % QUEUE].off + HEAD;

	if (q->recv_head == q->recv_tail)
		return;
	if (f->lose_every && len >= f->lose_from && f->sends % f->lose_every == 0)
		return;
	cr_assert_leq(len + HEAD, q->recv[q->recv_head % QUEUE].len);
	memcpy(to, data, len);
	if (f->sends == f->corrupt_at)
		to[len - 1] ^= 0xff;
	complete(q, q->recv[q->recv_head++ % QUEUE].cookie, len);
}

static int ud_post_send(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	struct fake *f = to_fake(x);
	int rc = -EAGAIN;

	pthread_mutex_lock(&lock);
	f->sends += len >= f->lose_from;
	f->lanes |= 1u << lane;
	f->longest = len > f->longest ? len : f->longest;
	if (!f->busy_every || f->sends % f->busy_every) {
		deliver(f, x->mem + off, len);
		complete(&f->data, cookie, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int ud_poll(struct perf_xport *x, struct perf_comp *comp)
{
	return poll_queue(&to_fake(x)->data, comp);
}

static const struct perf_ud_ops ud_ops = {
	.open = ud_open,
	.connect = ud_connect,
	.accept = ud_connect,
	.post_recv = ud_post_recv,
	.post_send = ud_post_send,
	.poll = ud_poll,
};

static const struct perf_ops fake_ops = {
	.name = "fake",
	.post_recv = fake_post_recv,
	.post_send = fake_post_send,
	.poll = fake_poll,
	.check = fake_check,
	.select = fake_select,
	.ud = &ud_ops,
};

/* --- a run ------------------------------------------------------------------ */

static void fake_open(struct fake *f, struct fake *peer)
{
	f->x.ops = &fake_ops;
	f->x.timeout_ms = 10000;
	f->x.size_max = LIMIT + PERF_UD_EXTRA;
	f->peer = peer;
	perf_layout_init(&f->x.lay, f->x.size_max, 16);
	cr_assert_eq(perf_mem_alloc(&f->x), 0);
	cr_assert_eq(perf_run_arm(&f->x), 0);
}

static void *serve(void *arg)
{
	struct perf_ctl ctl;
	int rc = 0;

	while (!rc && !perf_run_next(&server.x, &ctl) && ctl.type != PERF_CTL_QUIT)
		rc = ctl.type == PERF_CTL_OPEN_UD ? perf_ud_accept(&server.x, &ctl) :
						    perf_run_serve(&server.x, &ctl);
	served = rc;
	return NULL;
}

static void begin(void)
{
	fake_open(&client, &server);
	fake_open(&server, &client);
	cr_assert_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void end(void)
{
	const struct perf_ctl quit = { .type = PERF_CTL_QUIT };

	perf_ctl_encode(&quit, client.x.mem + client.x.lay.ctl_tx);
	while (!served &&
	       fake_post_send(&client.x, client.x.lay.ctl_tx, PERF_CTL_LEN, PERF_COOKIE_CTX))
		;
	pthread_join(thread, NULL);
	perf_mem_free(&client.x);
	perf_mem_free(&server.x);
}

static uint64_t samples[1000];
static uint64_t expected_ns;	/* a phase of datagrams that are lost ends after four times this */

static int run(enum perf_metric metric, size_t size, uint64_t iters, struct perf_point *point)
{
	*point = (struct perf_point){
		.test = PERF_UD,
		.metric = metric,
		.size = size,
		.iters = iters,
		.samples = samples,
		.expected_ns = expected_ns,
	};
	return perf_run_point(&client.x, point);
}

/*
 * Runs until @lost datagrams are lost. On a busy machine more are: an answer that takes 300 ms, and
 * the datagrams for which a server that does not run for 100 ms has no receive.
 */
static void run_until_lost(enum perf_metric m, size_t size, uint64_t iters, uint64_t lost,
			   struct perf_point *point)
{
	int tries;

	expected_ns = 5000000000;
	point->lost = UINT64_MAX;
	for (tries = 0; tries < 10 && point->lost > lost; tries++) {
		client.sends = server.sends = 0;
		cr_assert_eq(run(m, size, iters, point), 0, "metric %d, size %zu: %s %s", m, size,
			     client.x.err, server.x.err);
	}
	cr_expect_eq(point->lost, lost, "metric %d, size %zu: %llu", m, size,
		     (unsigned long long)point->lost);
}

TestSuite(perf_ud, .init = begin, .fini = end, .timeout = 300);

Test(perf_ud, limit_is_the_smaller_one)
{
	cr_expect_eq(perf_ud_open(&client.x, false), 0);
	cr_expect_eq(client.x.ud.limit, LIMIT);
	cr_expect_eq(client.x.ud.stride, 0);
}

Test(perf_ud, nothing_is_lost_unless_the_fabric_loses_it)
{
	static const size_t sizes[] = { 1, 7, 8, 100, LIMIT };
	struct perf_point point;
	int m;
	size_t i;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.busy_every = server.busy_every = 7;
	for (m = 0; m < PERF_NMETRICS; m++) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			run_until_lost(m, sizes[i], 100, 0, &point);
			cr_expect_eq(point.iters, 100);
			cr_expect_eq(point.sent, m == PERF_BIDIR ? 200 : 100);
			cr_expect_gt(point.total_ns, 0);
		}
	}
	cr_expect_eq(client.longest, LIMIT);
}

Test(perf_ud, buffers_in_turn)
{
	struct perf_point point;
	int m;

	cr_assert_eq(perf_ud_open(&client.x, true), 0);
	cr_expect_eq(client.x.ud.slots, 16);
	for (m = 0; m < PERF_NMETRICS; m++) {
		run_until_lost(m, 100, 100, 0, &point);
	}
}

Test(perf_ud, lost_pings_are_counted_and_not_sampled)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.lose_every = 5;
	run_until_lost(PERF_LAT, 8, 11, 2, &point);
	cr_expect_eq(point.sent, 11);
	cr_expect_eq(point.iters, 9);
}

Test(perf_ud, a_stream_goes_on_after_losses_and_counts_them)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.lose_every = 4;
	run_until_lost(PERF_BW, 100, 1000, 250, &point);
	cr_expect_eq(point.sent, 1000);
	cr_expect_eq(point.iters, 750);
}

Test(perf_ud, lost_reports_do_not_count_as_lost_datagrams)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	server.lose_every = 2;
	run_until_lost(PERF_BW, 100, 300, 0, &point);
	cr_expect_eq(point.iters, 300);
}

Test(perf_ud, both_directions_count_losses)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.lose_every = 10;
	client.lose_from = 100; /* the reports, which have 4 or 8 bytes, arrive */
	run_until_lost(PERF_BIDIR, 100, 200, 20, &point);
	cr_expect_eq(point.sent, 400);
	cr_expect_eq(point.iters, 190);
}

Test(perf_ud, a_fabric_that_loses_all_is_an_error)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.lose_every = 1;
	cr_expect_neq(run(PERF_BW, 8, 10, &point), 0);
	cr_expect_str_eq(client.x.err, "fake: none of 10 datagrams of 8 bytes arrived");
}

Test(perf_ud, wrong_data_is_an_error)
{
	struct perf_point point;

	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	client.corrupt_at = 3;
	cr_expect_neq(run(PERF_VERIFY, 8, 10, &point), 0);
	cr_expect_str_eq(client.x.err,
			 "fake: wrong data in 1 of 10 datagrams of 8 bytes");
}

Test(perf_ud, each_lane_is_used)
{
	struct perf_point point;

	client.x.lanes = server.x.lanes = 3;
	cr_assert_eq(perf_ud_open(&client.x, false), 0);
	cr_expect_eq(run(PERF_BW, 8, 10, &point), 0);
	cr_expect_eq(client.lanes, 7);
}

Test(perf_ud, a_server_without_datagrams_is_named)
{
	server.has_none = true;
	cr_expect_neq(perf_ud_open(&client.x, false), 0);
	cr_expect_str_eq(client.x.err, "the server cannot open datagram endpoints");
}
