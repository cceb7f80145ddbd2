/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One half of a measuring loop at a time, over a transport that records posts and completes them
 * when polled. The clock ticks once per read. perf_run_test.c runs both halves together.
 */
#include "perf_loop.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	8
#define WINDOW	4
#define SEED	7
#define QUEUE	1024

static struct perf_xport x;
static struct perf_run r;
static char trace[4096];	/* s: send, w: write, r: read, R: receive, n: note, c: control */

static struct perf_comp queue[QUEUE];
static unsigned int head, tail;
static unsigned int under_way, most_under_way;
static int busy;		/* this many posts return -EAGAIN */
static size_t last_off;		/* offset of the latest data post */
static bool moved;		/* two data posts had different offsets */
static int fail_at = -1;	/* this post fails, counted from 0; -1: none */
static int checks, check_result;
static bool silent;		/* posts do not complete */
static uint64_t now, tick = 10;

uint64_t __wrap_perf_now_ns(void);
uint64_t __wrap_perf_now_ns(void)
{
	return now += tick;
}

static void complete(uint64_t cookie, uint64_t len)
{
	cr_assert(tail - head < QUEUE);
	queue[tail++ % QUEUE] = (struct perf_comp){ .cookie = cookie, .len = len };
}

static int posted(char op, uint64_t cookie)
{
	if (busy > 0) {
		busy--;
		strcat(trace, "-");
		return -EAGAIN;
	}
	if (!fail_at--)
		return perf_fail(&x, "no more posts");
	strcat(trace, (char[]){ op, '\0' });
	if (cookie & PERF_COOKIE_TX && !silent) {
		if (++under_way > most_under_way)
			most_under_way = under_way;
		complete(cookie, 0);
	}
	return 0;
}

static int post_recv(struct perf_xport *xp, size_t off, size_t len, uint64_t cookie)
{
	return posted(cookie == PERF_COOKIE_CRX ? 'c' : off == xp->lay.note_rx ? 'n' : 'R', 0);
}

static void (*on_send)(size_t off); /* the peer's reaction */

static void note_offset(size_t off)
{
	moved |= last_off && off != last_off;
	last_off = off;
}

static int post_send(struct perf_xport *xp, size_t off, size_t len, uint64_t cookie)
{
	int rc = posted(off == xp->lay.note_tx ? 'n' : 's', cookie);

	note_offset(off);
	if (!rc && on_send)
		on_send(off);
	return rc;
}

static void (*on_write)(size_t off, size_t roff);

static int post_write(struct perf_xport *xp, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	int rc = posted('w', cookie);

	if (!rc && on_write)
		on_write(off, roff);
	return rc;
}

/* The peer's memory is this process's own. */
static int post_read(struct perf_xport *xp, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	int rc = posted('r', cookie);

	if (!rc)
		memcpy(xp->mem + off, xp->mem + roff, len);
	return rc;
}

static void (*on_poll)(const struct perf_comp *comp);

static int poll(struct perf_xport *xp, struct perf_comp *comp)
{
	if (head == tail)
		return 0;
	*comp = queue[head++ % QUEUE];
	under_way -= !!(comp->cookie & PERF_COOKIE_TX);
	if (on_poll)
		on_poll(comp);
	return 1;
}

static int poll_fails(struct perf_xport *xp, struct perf_comp *comp)
{
	*comp = (struct perf_comp){ .cookie = PERF_COOKIE_TX, .len = 0 };
	return perf_fail(xp, "no more polls");
}

static void select_lane(struct perf_xport *xp, unsigned int lane)
{
	strcat(trace, (char[]){ (char)('0' + lane), '\0' });
}

static int check(struct perf_xport *xp)
{
	checks++;
	return check_result ? perf_fail(xp, "the connection ended") : 0;
}

static const struct perf_ops ops = {
	.name = "fake",
	.post_recv = post_recv,
	.post_send = post_send,
	.post_write = post_write,
	.post_read = post_read,
	.select = select_lane,
	.poll = poll,
	.check = check,
};

static uint64_t samples[64];

static void set_up(void)
{
	x.ops = &ops;
	x.size_max = SIZE;
	perf_layout_init(&x.lay, SIZE, WINDOW);
	x.mem = calloc(1, x.lay.total);
	cr_assert(x.mem);
	r = (struct perf_run){
		.x = &x,
		.poll = poll,
		.size = SIZE,
		.stride = perf_stride(SIZE),
		.slots = WINDOW,
		.seed = SEED,
		.iters = 6,
		.samples = samples,
		.patience_ns = 3000000000,
	};
}

static void tear_down(void)
{
	free(x.mem);
}

TestSuite(perf_loop, .init = set_up, .fini = tear_down);

static const struct perf_kind *kind(enum perf_test test, enum perf_metric metric)
{
	return &perf_kinds[PERF_KIND(test, metric)];
}

/* The peer answers each message. */
static void answer(size_t off)
{
	complete(PERF_COOKIE_RX, SIZE);
}

static unsigned char *tx_slot(uint64_t i)
{
	return x.mem + x.lay.tx + i % WINDOW * perf_stride(SIZE);
}

static unsigned char *rx_slot(uint64_t i)
{
	return x.mem + x.lay.rx + i % WINDOW * perf_stride(SIZE);
}

/*
 * Steps
 */

Test(perf_loop, failed_poll_ends_a_step)
{
	r.poll = poll_fails;
	cr_expect(perf_run_step(&r) < 0);
	cr_expect_str_eq(x.err, "no more polls");
	cr_expect_eq(r.tx, 0);
}

Test(perf_loop, completion_is_counted_by_its_cookie)
{
	complete(PERF_COOKIE_TX, 99);
	complete(PERF_COOKIE_RX, 5);
	complete(PERF_COOKIE_CRX, 99);
	complete(PERF_COOKIE_CTX, 99);
	while (head != tail)
		cr_expect_eq(perf_run_step(&r), 0);
	cr_expect_eq(r.tx, 1);
	cr_expect_eq(r.rx, 1);
	cr_expect_eq(r.rx_len, 5);
	cr_expect_eq(x.crx, 1);
	cr_expect_eq(x.ctx, 1);
}

/* Makes @n steps without a completion. Returns the last result. */
static int idle_steps(int n)
{
	int rc = 0;

	while (n-- && !rc)
		rc = perf_run_step(&r);
	return rc;
}

Test(perf_loop, connection_is_not_checked_while_spinning)
{
	cr_expect_eq(idle_steps(4095), 0);
	cr_expect_eq(checks, 0);
	cr_expect_eq(now, 0);
}

static unsigned int yields;

/* Replaces libc's sched_yield(), to count the calls. */
int sched_yield(void)
{
	yields++;
	return 0;
}

Test(perf_loop, yields_after_a_spin)
{
	r.spin = 512;
	cr_expect_eq(idle_steps(512), 0);
	cr_expect_eq(yields, 0);
	cr_expect_eq(idle_steps(100), 0);
	cr_expect_eq(yields, 100);
	complete(PERF_COOKIE_TX, 0);
	cr_expect_eq(idle_steps(1 + 512), 0);
	cr_expect_eq(yields, 100);
}

Test(perf_loop, yields_at_once_on_one_processor)
{
	r.spin = 0;
	cr_expect_eq(idle_steps(3), 0);
	cr_expect_eq(yields, 3);
}

Test(perf_loop, blocking_poll_does_not_yield)
{
	x.blocking = true;
	cr_expect_eq(idle_steps(1000), 0);
	cr_expect_eq(yields, 0);
}

Test(perf_loop, connection_is_checked_now_and_then)
{
	cr_expect_eq(idle_steps(3 * 4096), 0);
	cr_expect_eq(checks, 3);
}

Test(perf_loop, connection_is_checked_after_each_sleep)
{
	x.blocking = true;
	cr_expect_eq(idle_steps(3), 0);
	cr_expect_eq(checks, 3);
}

Test(perf_loop, ended_connection_ends_a_step)
{
	x.blocking = true;
	check_result = -1;
	cr_expect_eq(perf_run_step(&r), -1);
	cr_expect_str_eq(x.err, "the connection ended");
}

Test(perf_loop, silence_up_to_the_timeout_is_no_error)
{
	x.blocking = true;
	tick = 1000000000;
	cr_expect_eq(idle_steps(4), 0);	/* 0, 1, 2 and 3 s after the first */
	cr_expect_eq(idle_steps(1), -1);
	cr_expect_str_eq(x.err, "fake: the peer has been silent for 3 s");
}

Test(perf_loop, any_completion_restarts_the_timeout)
{
	x.blocking = true;
	tick = 1000000000;
	cr_expect_eq(idle_steps(4), 0);
	complete(PERF_COOKIE_TX, 0);
	cr_expect_eq(idle_steps(1), 0);
	cr_expect_eq(idle_steps(4), 0);
	cr_expect_eq(idle_steps(1), -1);
}

/*
 * Receives
 */

Test(perf_loop, control_receive_is_behind_the_last_data)
{
	cr_expect_eq(perf_run_refill(&r, 100), 0);
	cr_expect_str_eq(trace, "RRRRRRc");
	cr_expect_eq(perf_run_refill(&r, 100), 0);
	cr_expect_str_eq(trace, "RRRRRRc");
}

Test(perf_loop, receives_are_posted_no_further_than_asked)
{
	cr_expect_eq(perf_run_refill(&r, 4), 0);
	cr_expect_eq(perf_run_refill(&r, 3), 0);
	cr_expect_str_eq(trace, "RRRR");
	cr_expect_eq(r.rx_posted, 4);
}

Test(perf_loop, notifications_have_a_buffer_of_their_own)
{
	r.notes = true;
	cr_expect_eq(perf_run_refill(&r, 2), 0);
	cr_expect_str_eq(trace, "nn");
}

Test(perf_loop, failed_receive_ends_a_refill)
{
	fail_at = 2;
	cr_expect_eq(perf_run_refill(&r, 4), -1);
	cr_expect_str_eq(trace, "RR");
	cr_expect_str_eq(x.err, "no more posts");
}

Test(perf_loop, full_queue_is_polled_and_tried_again)
{
	busy = 3;
	complete(PERF_COOKIE_TX, 0);
	cr_expect_eq(perf_run_refill(&r, 1), 0);
	cr_expect_str_eq(trace, "---R");
	cr_expect_eq(r.tx, 1);
}

/*
 * Streams
 */

static void check_stream(enum perf_test test, enum perf_metric metric, const char *want)
{
	cr_expect_eq(kind(test, metric)->client(&r), 0);
	cr_expect_str_eq(trace, want);
	cr_expect_eq(r.tx, 6);
	cr_expect_eq(most_under_way, WINDOW);
	cr_expect_eq(under_way, 0);
}

Test(perf_loop, stream_fills_the_window_and_no_more)
{
	check_stream(PERF_WRITE, PERF_BW, "wwwwww");
}

Test(perf_loop, read_stream_fills_the_window_and_no_more)
{
	check_stream(PERF_READ, PERF_BW, "rrrrrr");
}

Test(perf_loop, stream_ends_with_a_failed_post)
{
	fail_at = 3;
	cr_expect_eq(kind(PERF_WRITE, PERF_BW)->client(&r), -1);
	cr_expect_str_eq(trace, "www");
}

Test(perf_loop, send_stream_waits_for_the_control_message)
{
	x.blocking = true;
	check_result = -1;	/* ends the loop, as the peer sends no control message */
	cr_expect_eq(kind(PERF_SEND, PERF_BW)->client(&r), -1);
	cr_expect_eq(r.tx, 6);
	cr_expect_str_eq(trace, "ssssss");
}

Test(perf_loop, send_stream_ends_with_the_control_message)
{
	x.crx = 1;
	check_stream(PERF_SEND, PERF_BW, "ssssss");
}

Test(perf_loop, receiver_of_a_stream_keeps_receives_posted)
{
	int i;

	cr_assert_eq(perf_run_refill(&r, WINDOW), 0);
	for (i = 0; i < 6; i++)
		complete(PERF_COOKIE_RX, SIZE);
	cr_expect_eq(kind(PERF_SEND, PERF_BW)->server(&r), 0);
	cr_expect_str_eq(trace, "RRRRRRc");
}

static void check_buffers(size_t stride, bool want)
{
	r.stride = stride;
	x.crx = 1;
	cr_expect_eq(kind(PERF_SEND, PERF_BW)->client(&r), 0);
	cr_expect_eq(moved, want);
}

Test(perf_loop, one_buffer_serves_all_messages)
{
	check_buffers(0, false);
}

Test(perf_loop, messages_take_buffers_in_turn)
{
	check_buffers(perf_stride(SIZE), true);
}

/*
 * Several connections: message i is on connection i % lanes, at both ends
 */

Test(perf_loop, stream_alternates_between_connections)
{
	x.lanes = 3;
	cr_expect_eq(kind(PERF_WRITE, PERF_BW)->client(&r), 0);
	cr_expect_str_eq(trace, "0w1w2w0w1w2w");
}

Test(perf_loop, receives_alternate_and_control_is_on_the_first_connection)
{
	x.lanes = 4;
	cr_expect_eq(perf_run_refill(&r, 100), 0);
	cr_expect_str_eq(trace, "0R1R2R3R0R1R0c");
}

Test(perf_loop, reads_alternate_between_connections)
{
	x.lanes = 2;
	r.iters = 3;
	cr_expect_eq(kind(PERF_READ, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "0r1r0r");
}

/* The note must not arrive before the write. */
Test(perf_loop, note_is_on_the_connection_of_its_write)
{
	x.lanes = 2;
	r.notes = true;
	r.iters = 3;
	on_send = answer;
	r.rx_posted = r.iters;
	cr_expect_eq(kind(PERF_WRITE, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "0wn1wn0wn");
}

/*
 * Both directions
 */

Test(perf_loop, both_directions_fill_the_window_and_refill_receives)
{
	int i;

	cr_assert_eq(perf_run_refill(&r, WINDOW), 0);
	for (i = 0; i < 6; i++)
		complete(PERF_COOKIE_RX, SIZE);
	cr_expect_eq(kind(PERF_SEND, PERF_BIDIR)->server(&r), 0);
	cr_expect_str_eq(trace, "RRRRssssRRcss");
	cr_expect_eq(r.tx, 6);
	cr_expect_eq(r.rx, 6);
	cr_expect_eq(most_under_way, WINDOW);
}

static void ends_with_the_peer(enum perf_test test)
{
	x.blocking = true;
	check_result = -1;	/* ends the loop, as the peer sends no control message */
	cr_expect_eq(kind(test, PERF_BIDIR)->client(&r), -1);
	cr_expect_eq(r.tx, 6);
	x.crx = 1;
	r.tx = 0;
	cr_expect_eq(kind(test, PERF_BIDIR)->client(&r), 0);
}

Test(perf_loop, both_directions_of_write_end_with_the_peer)
{
	ends_with_the_peer(PERF_WRITE);
}

Test(perf_loop, both_directions_of_read_end_with_the_peer)
{
	ends_with_the_peer(PERF_READ);
}

Test(perf_loop, both_directions_of_send_wait_for_messages_of_the_peer)
{
	x.blocking = true;
	x.crx = 1;
	check_result = -1;
	cr_expect_eq(kind(PERF_SEND, PERF_BIDIR)->client(&r), -1);
	cr_expect_eq(r.tx, 6);
	cr_expect_eq(r.rx, 0);
}

/*
 * Ping-pong
 */

Test(perf_loop, next_ping_waits_for_the_pong)
{
	x.blocking = true;
	check_result = -1;
	cr_expect_eq(kind(PERF_SEND, PERF_LAT)->client(&r), -1);
	cr_expect_str_eq(trace, "s");
}

Test(perf_loop, next_ping_waits_for_its_own_completion)
{
	x.blocking = true;
	check_result = -1;
	silent = true;
	on_send = answer;
	cr_expect_eq(kind(PERF_SEND, PERF_LAT)->client(&r), -1);
	cr_expect_str_eq(trace, "s");
	cr_expect_eq(r.rx, 1);
}

Test(perf_loop, ping_posts_the_receive_of_a_later_pong)
{
	cr_assert_eq(perf_run_refill(&r, WINDOW), 0);
	on_send = answer;
	cr_expect_eq(kind(PERF_SEND, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "RRRRsRsRcssss");
}

/* The clock is read once before the loop, and once per round trip. */
Test(perf_loop, sample_is_the_time_between_two_turns)
{
	int i;

	on_send = answer;
	cr_expect_eq(kind(PERF_SEND, PERF_LAT)->client(&r), 0);
	for (i = 0; i < 6; i++)
		cr_expect_eq(samples[i], 10, "%d", i);
	cr_expect_eq(samples[6], 0);
	cr_expect_eq(now, 70);
}

Test(perf_loop, pong_waits_for_its_ping)
{
	x.blocking = true;
	check_result = -1;
	cr_expect_eq(kind(PERF_SEND, PERF_LAT)->server(&r), -1);
	cr_expect_str_eq(trace, "");
}

Test(perf_loop, reads_wait_for_one_another)
{
	cr_expect_eq(kind(PERF_READ, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "rrrrrr");
	cr_expect_eq(most_under_way, 1);
	cr_expect_eq(samples[5], 10);
}

/* Echoes a write to the polled area, as the server does. */
static unsigned char turns[16];
static int nturns;

static void echo(size_t off, size_t roff)
{
	turns[nturns++] = x.mem[off + SIZE - 1];
	cr_expect_eq(roff, x.lay.rx);
	memcpy(x.mem + roff, x.mem + off, SIZE);
}

Test(perf_loop, each_write_of_a_ping_pong_differs_from_the_last)
{
	int i;

	on_write = echo;
	kind(PERF_WRITE, PERF_LAT)->client_prep(&r);
	cr_expect_eq(kind(PERF_WRITE, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "wwwwww");
	cr_expect_eq(most_under_way, 1);
	for (i = 0; i < 6; i++)
		cr_expect_eq(turns[i], i + 1);
}

Test(perf_loop, stale_byte_of_an_earlier_phase_is_ignored)
{
	rx_slot(0)[SIZE - 1] = 1;
	kind(PERF_WRITE, PERF_LAT)->server_prep(&r);
	x.blocking = true;
	check_result = -1;
	cr_expect_eq(kind(PERF_WRITE, PERF_LAT)->server(&r), -1);
	cr_expect_str_eq(trace, "");
}

Test(perf_loop, sleeping_peer_gets_a_note_behind_each_write)
{
	r.notes = true;
	r.iters = 3;
	on_send = answer;
	r.rx_posted = r.iters;
	cr_expect_eq(kind(PERF_WRITE, PERF_LAT)->client(&r), 0);
	cr_expect_str_eq(trace, "wnwnwn");
	cr_expect_eq(r.tx, 6);
}

/*
 * Verification
 */

/* Fills the receive slots as a correct peer does. */
static void fill_rx(void)
{
	uint64_t i;

	for (i = 0; i < r.iters; i++)
		perf_pattern_fill(rx_slot(i), SIZE, SEED, (uint32_t)i);
}

static void receive_all(uint64_t odd, uint64_t odd_len)
{
	uint64_t i;

	for (i = 0; i < r.iters; i++)
		complete(PERF_COOKIE_RX, i == odd ? odd_len : SIZE);
	cr_expect_eq(kind(PERF_SEND, PERF_VERIFY)->server(&r), 0);
}

Test(perf_loop, received_messages_of_a_wrong_length_are_bad)
{
	r.iters = WINDOW;
	fill_rx();
	receive_all(2, SIZE - 1);
	cr_expect_eq(r.bad, 1);
}

Test(perf_loop, received_messages_with_a_wrong_byte_are_bad)
{
	r.iters = WINDOW;
	fill_rx();
	rx_slot(1)[SIZE - 1] ^= 1;
	rx_slot(3)[0] ^= 1;
	receive_all(WINDOW, SIZE);
	cr_expect_eq(r.bad, 2);
}

Test(perf_loop, received_messages_out_of_order_are_bad)
{
	r.iters = 2;
	perf_pattern_fill(rx_slot(0), SIZE, SEED, 1);
	perf_pattern_fill(rx_slot(1), SIZE, SEED, 0);
	receive_all(2, SIZE);
	cr_expect_eq(r.bad, 2);
}

static void first_arrives_last(const struct perf_comp *comp)
{
	static int polls;

	if (++polls == 2)
		perf_pattern_fill(rx_slot(0), SIZE, SEED, 0);
}

Test(perf_loop, messages_of_several_connections_may_overtake_each_other)
{
	r.iters = 2;
	x.lanes = 2;
	perf_pattern_fill(rx_slot(1), SIZE, SEED, 1);
	on_poll = first_arrives_last;
	receive_all(2, SIZE);
	cr_expect_eq(r.bad, 0);
}

Test(perf_loop, received_messages_of_another_run_are_bad)
{
	r.iters = WINDOW;
	fill_rx();
	r.seed++;
	receive_all(WINDOW, SIZE);
	cr_expect_eq(r.bad, WINDOW);
}

Test(perf_loop, received_messages_that_are_right)
{
	r.iters = WINDOW;
	fill_rx();
	receive_all(WINDOW, SIZE);
	cr_expect_eq(r.bad, 0);
}

/* A send slot is reused only after its message has completed. */
static uint64_t sent_upto;

static void slot_is_intact(const struct perf_comp *comp)
{
	cr_expect_eq(perf_pattern_check(tx_slot(sent_upto), SIZE, SEED, (uint32_t)sent_upto), -1,
		     "message %d", (int)sent_upto);
	sent_upto++;
}

Test(perf_loop, sent_messages_stay_until_they_are_complete)
{
	x.crx = 1;
	on_poll = slot_is_intact;
	cr_expect_eq(kind(PERF_SEND, PERF_VERIFY)->client(&r), 0);
	cr_expect_eq(sent_upto, 6);
	cr_expect_eq(most_under_way, WINDOW);
}

static void write_through(size_t off, size_t roff)
{
	memcpy(x.mem + roff, x.mem + off, SIZE);
}

static uint64_t bad_writes(void)
{
	r.iters = WINDOW;
	cr_expect_eq(kind(PERF_WRITE, PERF_VERIFY)->client(&r), 0);
	kind(PERF_WRITE, PERF_VERIFY)->server_fini(&r);
	return r.bad;
}

Test(perf_loop, writes_that_did_not_happen_are_bad)
{
	cr_expect_eq(bad_writes(), WINDOW);
}

Test(perf_loop, writes_that_are_right)
{
	on_write = write_through;
	cr_expect_eq(bad_writes(), 0);
}

Test(perf_loop, reads_of_a_wrong_byte_are_bad)
{
	r.iters = WINDOW;
	kind(PERF_READ, PERF_VERIFY)->server_prep(&r);
	tx_slot(2)[4] ^= 1;
	cr_expect_eq(kind(PERF_READ, PERF_VERIFY)->client(&r), 0);
	cr_expect_eq(r.bad, 1);
}

Test(perf_loop, reads_that_are_right)
{
	r.iters = WINDOW;
	kind(PERF_READ, PERF_VERIFY)->server_prep(&r);
	cr_expect_eq(kind(PERF_READ, PERF_VERIFY)->client(&r), 0);
	cr_expect_eq(r.bad, 0);
}

/* One nanosecond is over after the first message. */
Test(perf_loop, a_read_latency_phase_ends_at_its_limit)
{
	r.iters = WINDOW;
	r.limit_ns = 1;
	cr_expect_eq(kind(PERF_READ, PERF_LAT)->client(&r), 0);
	cr_expect_eq(r.iters, 1);
	cr_expect_eq(r.tx, 1);
}

/*
 * The pattern of MPI libraries
 */

static int count_of(char op)
{
	const char *at;
	int n = 0;

	for (at = trace; *at; at++)
		n += *at == op;
	return n;
}

static void mpi_init(void)
{
	r.credit = WINDOW / 2;
}

Test(perf_loop, mpi_writes_no_more_messages_than_the_peer_has_buffers)
{
	mpi_init();
	r.patience_ns = 1;
	cr_expect_eq(kind(PERF_MPI, PERF_BW)->client(&r), -1);
	cr_expect_eq(count_of('w'), WINDOW);
	cr_expect(strstr(x.err, "silent"), "%s", x.err);
}

static uint64_t n_writes;

/* The peer takes each message at once. */
static void give_credit(size_t off, size_t roff)
{
	note_offset(off);
	cr_expect_eq(off - x.lay.tx, roff - x.lay.rx);
	if (++n_writes % r.credit == 0)
		complete(PERF_COOKIE_RX, 8);
	if (n_writes == r.iters)
		complete(PERF_COOKIE_CRX, 0);
}

Test(perf_loop, mpi_credits_let_it_write_on)
{
	mpi_init();
	r.iters = 11;
	on_write = give_credit;
	cr_expect_eq(kind(PERF_MPI, PERF_BW)->client(&r), 0);
	cr_expect_eq(count_of('w'), 11);
	cr_expect(moved, "one buffer for all messages");
}

/* Marks the messages of the first round of buffers, which the peer has written. */
static void arrive_all(void)
{
	uint64_t i;

	for (i = 0; i < WINDOW; i++)
		rx_slot(i)[SIZE - 1] = 1;
}

Test(perf_loop, mpi_a_credit_is_sent_for_half_of_the_buffers)
{
	mpi_init();
	r.iters = WINDOW;
	arrive_all();
	cr_expect_eq(kind(PERF_MPI, PERF_BW)->server(&r), 0);
	cr_expect_str_eq(trace, "nn");
}

Test(perf_loop, mpi_credits_use_the_last_connection)
{
	mpi_init();
	x.lanes = 3;
	r.iters = WINDOW;
	arrive_all();
	cr_expect_eq(kind(PERF_MPI, PERF_BW)->server(&r), 0);
	cr_expect_str_eq(trace, "2n2n");
}

Test(perf_loop, mpi_an_old_message_is_not_taken_twice)
{
	mpi_init();
	r.iters = WINDOW + 1;
	r.patience_ns = 1;
	arrive_all();
	cr_expect_eq(kind(PERF_MPI, PERF_BW)->server(&r), -1);
	cr_expect_str_eq(trace, "nn");
	cr_expect(strstr(x.err, "silent"), "%s", x.err);
}

Test(perf_loop, mpi_preparation_removes_marks_of_earlier_phases)
{
	uint64_t i;

	mpi_init();
	arrive_all();
	kind(PERF_MPI, PERF_LAT)->client_prep(&r);
	for (i = 0; i < WINDOW; i++)
		cr_expect_eq(rx_slot(i)[SIZE - 1], 0);
}

/*
 * Kinds
 */

Test(perf_loop, each_kind_has_a_client_and_a_name)
{
	int k;

	for (k = 0; k < PERF_NKINDS; k++) {
		cr_expect(perf_kinds[k].client, "%d", k);
		cr_expect(perf_kinds[k].name, "%d", k);
	}
}

static bool is_bidir(int k)
{
	return k % PERF_NMETRICS == PERF_BIDIR;
}

/*
 * Otherwise neither peer would notice the end. In both directions the server has work of its own.
 */
Test(perf_loop, one_sided_kinds_end_by_fin)
{
	int k;

	for (k = 0; k < PERF_NKINDS; k++)
		cr_expect(perf_kinds[k].fin != (perf_kinds[k].server_recv || is_bidir(k) ||
						perf_kinds[k].credits),
			  "%s", perf_kinds[k].name);
}
