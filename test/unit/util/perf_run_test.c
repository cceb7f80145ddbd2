/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's measuring loops over a transport that copies memory, with client and server in two
 * threads. The transport counts operations that a real fabric would not tolerate.
 */
#include "perf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define QUEUE 256

struct posted {
	size_t off, len;
	uint64_t cookie;
};

struct fake {
	struct perf_xport x; /* first, because the ops get a pointer to it */
	struct fake *peer;
	struct posted recv[QUEUE];
	struct perf_comp comp[QUEUE];
	unsigned int recv_head, recv_tail, comp_head, comp_tail;
	bool stream;			/* sends may be ahead of the receiver */
	unsigned int unexpected;	/* other sends that found no receive */
	unsigned int posts, busy_every; /* every busy_every-th post returns -EAGAIN */
	unsigned int corrupt_at;	/* the number of a data transfer, from 1 */
	unsigned int transfers;
	uint32_t wrong_imm; /* added to immediate data */
	uint64_t lost;	    /* taken from the word after an atomic */
	bool dead;
	size_t offs[2];			/* offsets of the first two data sends */
	unsigned int noffs;
};

/* A single lock, because the test checks the order of operations and not their speed. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct fake client, server;

static struct fake *to_fake(struct perf_xport *x)
{
	return (struct fake *)x;
}

static void complete(struct fake *f, uint64_t cookie, uint64_t len)
{
	struct perf_comp *comp = &f->comp[f->comp_tail++ % QUEUE];

	comp->cookie = cookie;
	comp->len = len;
}

/* Copies, and corrupts the last byte of transfer corrupt_at. */
static void move(struct fake *f, unsigned char *to, const unsigned char *from, size_t len)
{
	memcpy(to, from, len);
	if (++f->transfers == f->corrupt_at)
		to[len - 1] ^= 0xff;
}

static bool busy(struct fake *f)
{
	return f->busy_every && ++f->posts % f->busy_every == 0;
}

static int fake_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct fake *f = to_fake(x);

	pthread_mutex_lock(&lock);
	f->recv[f->recv_tail++ % QUEUE] = (struct posted){ off, len, cookie };
	pthread_mutex_unlock(&lock);
	return 0;
}

/* In both directions the server's report follows its stream. */
static bool may_run_ahead(const struct fake *f, uint64_t cookie)
{
	return cookie == PERF_COOKIE_TX || f == &server;
}

/* Takes a receive of the peer; copies to its buffer, or to @to. */
static int deliver(struct fake *f, size_t off, size_t len, unsigned char *to, uint64_t cookie)
{
	struct perf_xport *x = &f->x;
	struct fake *p = f->peer;
	struct posted *r;

	pthread_mutex_lock(&lock);
	if (cookie == PERF_COOKIE_TX && f->noffs < 2)
		f->offs[f->noffs++] = off;
	if (busy(f) || p->recv_head == p->recv_tail) {
		/* a real fabric would hold the message, with an equal effect */
		if (p->recv_head == p->recv_tail && (!f->stream || !may_run_ahead(f, cookie)))
			f->unexpected++;
		pthread_mutex_unlock(&lock);
		return -EAGAIN;
	}
	r = &p->recv[p->recv_head++ % QUEUE];
	if (cookie == PERF_COOKIE_CTX)
		memcpy(p->x.mem + r->off, x->mem + off, len);
	else
		move(f, to ? to : p->x.mem + r->off, x->mem + off, len);
	complete(p, r->cookie, len > r->len ? 0 : len);
	complete(f, cookie, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	return deliver(to_fake(x), off, len, NULL, cookie);
}

static int rdma(struct fake *f, unsigned char *to, const unsigned char *from, size_t len,
		uint64_t cookie)
{
	int rc = -EAGAIN;

	pthread_mutex_lock(&lock);
	if (!busy(f)) {
		move(f, to, from, len);
		complete(f, cookie, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int fake_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff,
			   uint64_t cookie)
{
	struct fake *f = to_fake(x);

	return rdma(f, f->peer->x.mem + roff, x->mem + off, len, cookie);
}

static int fake_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff,
			  uint64_t cookie)
{
	struct fake *f = to_fake(x);

	return rdma(f, x->mem + off, f->peer->x.mem + roff, len, cookie);
}

static int fake_post_write_imm(struct perf_xport *x, size_t off, size_t len, size_t roff,
			       uint32_t imm, uint64_t cookie)
{
	struct fake *f = to_fake(x), *p = f->peer;
	int rc;

	pthread_mutex_lock(&lock);
	/* the completion that comes next */
	p->comp[p->comp_tail % QUEUE].imm = imm + f->wrong_imm;
	rc = deliver(f, off, len, p->x.mem + roff, cookie);
	pthread_mutex_unlock(&lock);
	return rc;
}

static uint64_t *word(struct fake *f, size_t off)
{
	return (uint64_t *)(void *)(f->x.mem + off);
}

static int atomic(struct fake *f, size_t off, size_t roff, bool swap, uint64_t compare,
		  uint64_t operand, uint64_t cookie)
{
	uint64_t *to = word(f->peer, roff), old;
	int rc;

	pthread_mutex_lock(&lock);
	old = *to;
	rc = rdma(f, f->x.mem + off, (unsigned char *)&old, sizeof(old), cookie);
	if (!rc && !swap)
		*to += operand - f->lost;
	else if (!rc && *to == compare)
		*to = operand - f->lost;
	pthread_mutex_unlock(&lock);
	return rc;
}

static int fake_post_fadd(struct perf_xport *x, size_t off, size_t roff, uint64_t add,
			  uint64_t cookie)
{
	return atomic(to_fake(x), off, roff, false, 0, add, cookie);
}

static int fake_post_cswap(struct perf_xport *x, size_t off, size_t roff, uint64_t compare,
			   uint64_t swap, uint64_t cookie)
{
	return atomic(to_fake(x), off, roff, true, compare, swap, cookie);
}

static int fake_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct fake *f = to_fake(x);
	int n;

	pthread_mutex_lock(&lock);
	n = f->comp_head != f->comp_tail;
	if (n)
		*comp = f->comp[f->comp_head++ % QUEUE];
	pthread_mutex_unlock(&lock);
	return n;
}

static int fake_check(struct perf_xport *x)
{
	return to_fake(x)->dead ? perf_fail(x, "the connection ended") : 0;
}

static const struct perf_ext_ops fake_ext_ops = {
	.post_write_imm = fake_post_write_imm,
	.post_fadd = fake_post_fadd,
	.post_cswap = fake_post_cswap,
};

static const struct perf_ops fake_ops = {
	.name = "fake",
	.post_recv = fake_post_recv,
	.post_send = fake_post_send,
	.post_write = fake_post_write,
	.post_read = fake_post_read,
	.poll = fake_poll,
	.check = fake_check,
	.ext = &fake_ext_ops,
};

static void fake_open(struct fake *f, struct fake *peer, size_t size_max, unsigned int window)
{
	memset(f, 0, sizeof(*f));
	f->x.ops = &fake_ops;
	f->x.timeout_ms = 10000;
	f->x.size_max = (uint32_t)size_max;
	f->peer = peer;
	perf_layout_init(&f->x.lay, size_max, window);
	cr_assert_eq(perf_mem_alloc(&f->x), 0);
	cr_assert_eq(perf_run_arm(&f->x), 0);
}

static void *serve(void *arg)
{
	struct perf_ctl ctl;

	while (!perf_run_next(&server.x, &ctl) && ctl.type == PERF_CTL_START &&
	       !perf_run_serve(&server.x, &ctl))
		;
	return NULL;
}

static pthread_t thread;

static void begin(size_t size_max, unsigned int window)
{
	fake_open(&client, &server, size_max, window);
	fake_open(&server, &client, size_max, window);
	cr_assert_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void end(void)
{
	const struct perf_ctl quit = { .type = PERF_CTL_QUIT };
	unsigned char *buf = client.x.mem + client.x.lay.ctl_tx;

	if (!server.dead) {
		perf_ctl_encode(&quit, buf);
		fake_post_send(&client.x, client.x.lay.ctl_tx, PERF_CTL_LEN, PERF_COOKIE_CTX);
	}
	pthread_join(thread, NULL);
	perf_mem_free(&client.x);
	perf_mem_free(&server.x);
}

static bool rotate;
static double interval_ns;

static int run(enum perf_test test, enum perf_metric metric, size_t size, uint64_t iters)
{
	static uint64_t samples[1000];
	struct perf_point point = {
		.test = test,
		.metric = metric,
		.size = size,
		.iters = iters,
		.rotate = rotate,
		.interval_ns = interval_ns,
		.samples = samples,
	};
	int rc;

	client.stream = (test == PERF_SEND || test == PERF_IMM) && metric != PERF_LAT;
	server.stream = metric == PERF_BIDIR;
	memset(samples, 0, sizeof(samples));
	rc = perf_run_point(&client.x, &point);
	if (!rc && metric == PERF_LAT) {
		cr_assert_gt(samples[iters - 1], 0);
		cr_assert_eq(samples[iters], 0, "a sample too many");
	}
	if (!rc) {
		cr_assert_gt(point.total_ns, 0);
		cr_assert_geq((double)point.total_ns, (double)iters * interval_ns);
	}
	return rc;
}

static void run_everything(size_t size)
{
	static const uint64_t iters[] = { 1, 3, 4, 5, 100 };
	size_t i;
	int t, m;

	for (i = 0; i < sizeof(iters) / sizeof(iters[0]); i++)
		for (t = 0; t < PERF_UD; t++)
			for (m = 0; m < PERF_NMETRICS; m++)
				cr_assert_eq(run(t, m, size, iters[i]), 0,
					     "test %d metric %d iters %d: %s%s", t, m,
					     (int)iters[i], client.x.err, server.x.err);
}

Test(perf_run, every_phase_ends_and_receives_are_posted_ahead, .timeout = 60)
{
	begin(4096, 4);
	run_everything(1);
	run_everything(1000);
	run_everything(4096);
	end();
	cr_assert_eq(client.unexpected + server.unexpected, 0);
}

Test(perf_run, a_full_queue_is_tried_again, .timeout = 60)
{
	begin(64, 8);
	client.busy_every = 3;
	server.busy_every = 2;
	run_everything(64);
	end();
}

Test(perf_run, blocked_peers_are_woken_by_messages, .timeout = 60)
{
	begin(64, 4);
	client.x.blocking = server.x.blocking = true;
	run_everything(64);
	end();
	cr_assert_eq(client.unexpected + server.unexpected, 0);
}

/* Returns whether both ends moved on to another buffer for the second message of a ping-pong. */
static bool buffers_move(bool want)
{
	begin(64, 4);
	rotate = want;
	cr_assert_eq(run(PERF_SEND, PERF_LAT, 64, 2), 0);
	end();
	cr_assert_eq(client.noffs, 2);
	cr_assert_eq(server.noffs, 2);
	cr_expect_eq(client.offs[0] != client.offs[1], server.offs[0] != server.offs[1]);
	return client.offs[0] != client.offs[1];
}

Test(perf_run, both_ends_use_one_buffer_or_rotate, .timeout = 60)
{
	cr_expect(!buffers_move(false));
	cr_expect(buffers_move(true));
}

static void corrupt_one(enum perf_test test, struct fake *side)
{
	begin(512, 4);
	side->corrupt_at = 3;
	cr_assert_eq(run(test, PERF_VERIFY, 100, 4), -1);
	cr_assert(strstr(client.x.err, "wrong data in 1 of 4"), "%s", client.x.err);
	end();
}

Test(perf_run, messages_keep_an_interval, .timeout = 60)
{
	int t, m;

	begin(8, 4);
	interval_ns = 2e6;
	for (t = 0; t < PERF_UD; t++)
		for (m = 0; m <= PERF_BW; m++)
			cr_assert_eq(run(t, m, 8, 5), 0, "test %d metric %d: %s%s", t, m,
				     client.x.err, server.x.err);
	end();
}

Test(perf_run, a_corrupt_send_is_found, .timeout = 60)
{
	corrupt_one(PERF_SEND, &client);
}

Test(perf_run, a_corrupt_write_is_found, .timeout = 60)
{
	corrupt_one(PERF_WRITE, &client);
}

Test(perf_run, a_corrupt_read_is_found, .timeout = 60)
{
	corrupt_one(PERF_READ, &client);
}

Test(perf_run, a_corrupt_write_with_immediate_data_is_found, .timeout = 60)
{
	corrupt_one(PERF_IMM, &client);
}

Test(perf_run, wrong_immediate_data_are_found, .timeout = 60)
{
	begin(512, 4);
	client.wrong_imm = 1;
	cr_assert_eq(run(PERF_IMM, PERF_VERIFY, 100, 4), -1);
	cr_assert(strstr(client.x.err, "wrong data in 4 of 4"), "%s", client.x.err);
	end();
}

Test(perf_run, a_wrong_result_of_an_atomic_is_found, .timeout = 60)
{
	corrupt_one(PERF_FADD, &client);
	corrupt_one(PERF_CSWAP, &client);
}

/* The results are right, but the last atomic has no effect. */
static void lose_one(enum perf_test test)
{
	begin(512, 4);
	client.lost = 1;
	cr_assert_eq(run(test, PERF_VERIFY, 8, 1), -1);
	cr_assert(strstr(client.x.err, "wrong data in 1 of 1"), "%s", client.x.err);
	end();
}

Test(perf_run, an_atomic_without_an_effect_is_found, .timeout = 60)
{
	lose_one(PERF_FADD);
	lose_one(PERF_CSWAP);
}

Test(perf_run, a_server_without_the_extension_refuses_its_tests, .timeout = 60)
{
	struct perf_ops none = fake_ops;
	const struct perf_ctl start = {
		.type = PERF_CTL_START,
		.kind = PERF_KIND(PERF_FADD, PERF_LAT),
		.size = 8,
		.slots = 1,
		.iters = 1,
	};

	none.ext = NULL;
	fake_open(&client, &server, 64, 4);
	fake_open(&server, &client, 64, 4);
	server.x.ops = &none;
	cr_assert_eq(perf_run_serve(&server.x, &start), -1);
	cr_expect_str_eq(server.x.err, "the client requested a test that needs DAT 2.0");
}

Test(perf_run, an_ended_connection_ends_the_phase, .timeout = 60)
{
	begin(64, 4);
	pthread_mutex_lock(&lock);
	server.dead = client.dead = true;
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	cr_assert_eq(run(PERF_SEND, PERF_LAT, 8, 10), -1);
	cr_assert_str_eq(client.x.err, "the connection ended");
	cr_assert_str_eq(server.x.err, "the connection ended");
}

Test(perf_run, a_silent_peer_times_out, .timeout = 60)
{
	fake_open(&client, &server, 64, 4);
	fake_open(&server, &client, 64, 4);
	client.x.timeout_ms = 50;
	cr_assert_eq(run(PERF_SEND, PERF_LAT, 8, 10), -1);
	cr_assert(strstr(client.x.err, "silent"), "%s", client.x.err);
}

/* An RDMA read does not involve the server, which hears of the client only at its end. */
Test(perf_run, a_long_phase_is_announced, .timeout = 60)
{
	struct perf_ctl start = {
		.type = PERF_CTL_START,
		.kind = PERF_KIND(PERF_READ, PERF_BW),
		.size = 1,
		.slots = 1,
		.iters = 1,
		.value = 100000000, /* 0.1 s */
	};
	uint64_t begin = perf_now_ns();

	fake_open(&client, &server, 64, 4);
	fake_open(&server, &client, 64, 4);
	server.x.timeout_ms = 20;
	cr_assert_eq(perf_run_serve(&server.x, &start), -1);
	cr_expect(strstr(server.x.err, "silent for 1 s"), "%s", server.x.err);
	cr_expect_geq(perf_now_ns() - begin, 1020000000);
}

/* The server checks a client's request before it touches memory. */
static int ask(struct perf_ctl start)
{
	fake_open(&client, &server, 4096, 4);
	fake_open(&server, &client, 4096, 4);
	server.x.timeout_ms = 20;
	start.type = PERF_CTL_START;
	return perf_run_serve(&server.x, &start) && strstr(server.x.err, "invalid") ? -1 : 0;
}

Test(perf_run, invalid_requests_are_refused, .timeout = 60)
{
	const int read_check = PERF_KIND(PERF_READ, PERF_VERIFY);

	cr_assert_eq(
		ask((struct perf_ctl){ .kind = PERF_NKINDS, .size = 1, .slots = 1, .iters = 1 }),
		-1);
	cr_assert_eq(ask((struct perf_ctl){ .size = 4097, .slots = 1, .iters = 1 }), -1);
	cr_assert_eq(ask((struct perf_ctl){
			     .kind = (uint16_t)read_check, .size = 0, .slots = 1, .iters = 1 }),
		     -1);
	cr_assert_eq(ask((struct perf_ctl){ .size = 1, .slots = 5, .iters = 1 }), -1);
	cr_assert_eq(ask((struct perf_ctl){ .size = 1, .slots = 0, .iters = 1 }), -1);
	cr_assert_eq(ask((struct perf_ctl){ .size = 1, .slots = 1, .iters = 0 }), -1);
	cr_assert_eq(ask((struct perf_ctl){
			     .kind = (uint16_t)read_check, .size = 1, .slots = 4, .iters = 5 }),
		     -1);
	/* a valid request fails only because no client takes part */
	cr_assert_eq(ask((struct perf_ctl){ .size = 1, .slots = 4, .iters = 5 }), 0);
	cr_assert_eq(ask((struct perf_ctl){ .size = 0, .slots = 4, .iters = 5 }), 0);
}
