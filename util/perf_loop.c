/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measuring loops of datperf: a client half and a server half for each kind of phase, over any
 * transport.
 */
#include "perf_loop.h"

#include <sched.h>

/* Empty polls before the clock is read and the connection checked. */
#define IDLE_CHECK 4096

/*
 * Slow path after many empty polls: checks that the peer is alive. On a crowded machine it yields
 * to other threads, including the fabric's.
 */
int perf_run_idle(struct perf_run *r)
{
	struct perf_xport *x = r->x;
	uint64_t now;

	if (!x->blocking && r->idle > r->spin)
		sched_yield();
	if (!x->blocking && r->idle % IDLE_CHECK)
		return 0;
	if (x->ops->check(x))
		return -1;
	now = perf_now_ns();
	if (!r->idle_since)
		r->idle_since = now;
	if (now - r->idle_since > r->patience_ns)
		return perf_fail(x, "%s: the peer has been silent for %u s", x->ops->name,
				 (unsigned int)(r->patience_ns / 1000000000));
	return 0;
}

static inline size_t tx_off(const struct perf_run *r, uint64_t i)
{
	return r->x->lay.tx + i % r->slots * r->stride;
}

static inline size_t rx_off(const struct perf_run *r, uint64_t i)
{
	return r->x->lay.rx + i % r->slots * r->stride;
}

/* Message @i uses the same connection at both ends, so that it meets its receive. */
static inline void select_lane(struct perf_run *r, uint64_t i)
{
	if (r->x->lanes > 1)
		r->x->ops->select(r->x, (unsigned int)(i % r->x->lanes));
}

/* A message that completes a receive: a send, or a write with immediate data. */
static inline int try_send(struct perf_run *r, uint64_t i)
{
	struct perf_xport *x = r->x;

	select_lane(r, i);
	if (r->test == PERF_IMM)
		return x->ops->ext->post_write_imm(x, tx_off(r, i), r->size, rx_off(r, i),
						   (uint32_t)i, PERF_COOKIE_TX);
	return x->ops->post_send(x, tx_off(r, i), r->size, PERF_COOKIE_TX);
}

static inline int post_send(struct perf_run *r, uint64_t i)
{
	RUN_POST(r, try_send(r, i));
	return 0;
}

static inline int post_note(struct perf_run *r)
{
	RUN_POST(r, r->x->ops->post_send(r->x, r->x->lay.note_tx, PERF_NOTE_LEN, PERF_COOKIE_TX));
	return 0;
}

static inline int post_write(struct perf_run *r, uint64_t i)
{
	select_lane(r, i);
	RUN_POST(r,
		 r->x->ops->post_write(r->x, tx_off(r, i), r->size, rx_off(r, i), PERF_COOKIE_TX));
	return 0;
}

static inline int post_read(struct perf_run *r, uint64_t i)
{
	select_lane(r, i);
	RUN_POST(r,
		 r->x->ops->post_read(r->x, rx_off(r, i), r->size, tx_off(r, i), PERF_COOKIE_TX));
	return 0;
}

/*
 * Adds 1 to the first word of the peer's send area. A compare-and-swap does so if atomics execute
 * in the order of their posts.
 */
static inline int post_atomic(struct perf_run *r, uint64_t i)
{
	const struct perf_ext_ops *ext = r->x->ops->ext;
	const size_t off = rx_off(r, i), word = r->x->lay.tx;
	const uint64_t before = r->seed + i;

	select_lane(r, i);
	if (r->test == PERF_FADD)
		RUN_POST(r, ext->post_fadd(r->x, off, word, 1, PERF_COOKIE_TX));
	else
		RUN_POST(r, ext->post_cswap(r->x, off, word, before, before + 1, PERF_COOKIE_TX));
	return 0;
}

int perf_post_ctl_recv(struct perf_run *r)
{
	select_lane(r, 0);
	RUN_POST(r, r->x->ops->post_recv(r->x, r->x->lay.ctl_rx, PERF_CTL_LEN, PERF_COOKIE_CRX));
	return 0;
}

/* Posts the next data receive, and the control receive after the last one. */
static int post_recv(struct perf_run *r)
{
	struct perf_xport *x = r->x;

	select_lane(r, r->credit ? x->lanes - 1 : r->rx_posted);
	if (r->notes || r->credit)
		RUN_POST(r, x->ops->post_recv(x, x->lay.note_rx, PERF_NOTE_LEN, PERF_COOKIE_RX));
	else
		RUN_POST(r, x->ops->post_recv(x, rx_off(r, r->rx_posted), r->size, PERF_COOKIE_RX));
	return ++r->rx_posted == perf_run_receives(r) ? perf_post_ctl_recv(r) : 0;
}

int perf_run_refill(struct perf_run *r, uint64_t upto)
{
	while (r->rx_posted < upto && r->rx_posted < perf_run_receives(r))
		if (post_recv(r))
			return -1;
	return 0;
}

/* --- send --------------------------------------------------------------- */

static int send_lat_client(struct perf_run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (perf_run_pace(r, i, &last) || post_send(r, i))
			return -1;
		RUN_UNTIL(r, r->rx > i && r->tx > i);
		if (perf_run_refill(r, i + 1 + r->slots))
			return -1;
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return 0;
}

static int send_lat_server(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, r->rx > i && r->tx >= i);
		if (perf_run_refill(r, i + 1 + r->slots) || post_send(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx == r->iters);
	return 0;
}

/* Whether the phase is to end early, at time @now. */
static inline bool is_over_time(const struct perf_run *r, uint64_t now)
{
	return r->limit_ns && now - r->begin_ns > r->limit_ns;
}

/*
 * Keeps up to r->slots operations in flight until all are complete. Only empty polls read the
 * clock.
 */
static inline int stream(struct perf_run *r, int (*post)(struct perf_run *, uint64_t))
{
	uint64_t posted = 0;

	while (r->tx < r->iters) {
		while (posted < r->iters && posted - r->tx < r->slots && perf_run_is_due(r, posted))
			if (post(r, posted++))
				return -1;
		if (perf_run_step(r))
			return -1;
		if (r->idle && r->limit_ns && is_over_time(r, perf_now_ns()))
			r->iters = posted;
	}
	return 0;
}

/* Ends when the server reports that the last message arrived. */
static int send_bw_client(struct perf_run *r)
{
	if (stream(r, post_send))
		return -1;
	RUN_UNTIL(r, r->x->crx > 0);
	return 0;
}

static int send_bw_server(struct perf_run *r)
{
	while (r->rx < r->iters)
		if (perf_run_step(r) || perf_run_refill(r, r->rx + r->slots))
			return -1;
	return 0;
}

/*
 * Sends and receives at once, until all messages of both directions are complete. Receives are also
 * posted while the queue is full: the peer may need them before it takes a message.
 */
static int send_both_ways(struct perf_run *r)
{
	uint64_t posted = 0;
	int rc;

	while (r->tx < r->iters || r->rx < r->iters) {
		for (rc = 0; !rc && posted < r->iters && posted - r->tx < r->slots; posted += !rc)
			rc = try_send(r, posted);
		if (rc && rc != -EAGAIN)
			return -1;
		if (perf_run_step(r) || perf_run_refill(r, r->rx + r->slots))
			return -1;
	}
	return 0;
}

/* As stream(), but ends when the server reports that its operations are complete too. */
static int stream_both_ways(struct perf_run *r, int (*post)(struct perf_run *, uint64_t))
{
	if (stream(r, post))
		return -1;
	RUN_UNTIL(r, r->x->crx > 0);
	return 0;
}

/* Ends when the server reports that its messages are complete too. */
static int send_bidir_client(struct perf_run *r)
{
	if (send_both_ways(r))
		return -1;
	RUN_UNTIL(r, r->x->crx > 0);
	return 0;
}

static void verify_slot(struct perf_run *r, size_t off, uint64_t i)
{
	if (perf_pattern_check(r->x->mem + off, r->size, r->seed, (uint32_t)i) >= 0)
		r->bad++;
}

static int send_verify_client(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, r->tx + r->slots > i);
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed, (uint32_t)i);
		if (post_send(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx == r->iters && r->x->crx > 0);
	return 0;
}

/*
 * Messages of one connection arrive in order, so the latest one is the one that is checked, and
 * rx_len is its length. Several are checked when all in flight have arrived.
 */
static int send_verify_server(struct perf_run *r)
{
	const uint64_t batch = r->x->lanes > 1 ? r->slots : 1;
	uint64_t i = 0, end;

	while (i < r->iters) {
		end = i + batch < r->iters ? i + batch : r->iters;
		RUN_UNTIL(r, r->rx >= end);
		for (; i < end; i++) {
			if (r->rx_len != r->size ||
			    (r->test == PERF_IMM && batch == 1 && r->rx_imm != i))
				r->bad++;
			else
				verify_slot(r, rx_off(r, i), i);
		}
		if (perf_run_refill(r, end + r->slots))
			return -1;
	}
	return 0;
}

/* --- write -------------------------------------------------------------- */

/* The byte that distinguishes the i-th write of a ping-pong from the previous write. */
static inline unsigned char turn_byte(uint64_t i)
{
	return (unsigned char)(i % 251 + 1);
}

static inline unsigned char *last_byte(struct perf_run *r, size_t area)
{
	return r->x->mem + area + r->size - 1;
}

static inline bool write_arrived(struct perf_run *r, uint64_t i)
{
	if (r->notes)
		return r->rx > i;
	return __atomic_load_n(last_byte(r, r->x->lay.rx), __ATOMIC_ACQUIRE) == turn_byte(i);
}

/* Writes the next turn byte; a sleeping peer also gets a message. */
static inline int write_turn(struct perf_run *r, uint64_t i)
{
	struct perf_xport *x = r->x;

	*last_byte(r, x->lay.tx) = turn_byte(i);
	select_lane(r, i);
	/* the source must not change before the write completes, so one write is in flight at a
	 * time and the first buffer serves all */
	RUN_POST(r, x->ops->post_write(x, x->lay.tx, r->size, x->lay.rx, PERF_COOKIE_TX));
	return r->notes ? post_note(r) : 0;
}

static inline uint64_t turn_ops(const struct perf_run *r, uint64_t i)
{
	return r->notes ? 2 * i : i;
}

static void write_lat_prep(struct perf_run *r)
{
	*last_byte(r, r->x->lay.rx) = 0;
}

static int write_lat_client(struct perf_run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (perf_run_pace(r, i, &last) || write_turn(r, i))
			return -1;
		RUN_UNTIL(r, write_arrived(r, i) && r->tx >= turn_ops(r, i + 1));
		if (r->notes && perf_run_refill(r, i + 1 + r->slots))
			return -1;
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return 0;
}

static int write_lat_server(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, write_arrived(r, i) && r->tx >= turn_ops(r, i));
		if (r->notes && perf_run_refill(r, i + 1 + r->slots))
			return -1;
		if (write_turn(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx >= turn_ops(r, r->iters));
	return 0;
}

static int write_bw_client(struct perf_run *r)
{
	return stream(r, post_write);
}

static int write_bidir_client(struct perf_run *r)
{
	return stream_both_ways(r, post_write);
}

static int write_verify_client(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed, (uint32_t)i);
	return stream(r, post_write);
}

static void write_verify_fini(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		verify_slot(r, rx_off(r, i), i);
}

/* --- read --------------------------------------------------------------- */

/* Measures one operation after the other. The server only waits. */
static inline int lat_client(struct perf_run *r, int (*post)(struct perf_run *, uint64_t))
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (perf_run_pace(r, i, &last) || post(r, i))
			return -1;
		RUN_UNTIL(r, r->tx > i);
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
		if (is_over_time(r, now))
			r->iters = i + 1;
	}
	return 0;
}

static int read_lat_client(struct perf_run *r)
{
	return lat_client(r, post_read);
}

static int read_bw_client(struct perf_run *r)
{
	return stream(r, post_read);
}

static int read_bidir_client(struct perf_run *r)
{
	return stream_both_ways(r, post_read);
}

static void read_verify_prep(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed, (uint32_t)i);
}

static int read_verify_client(struct perf_run *r)
{
	uint64_t i;

	if (stream(r, post_read))
		return -1;
	for (i = 0; i < r->iters; i++)
		verify_slot(r, rx_off(r, i), i);
	return 0;
}

/* --- atomics ------------------------------------------------------------ */

static inline uint64_t *word_at(struct perf_run *r, size_t off)
{
	return (uint64_t *)(void *)(r->x->mem + off);
}

static void atomic_prep(struct perf_run *r)
{
	__atomic_store_n(word_at(r, r->x->lay.tx), r->seed, __ATOMIC_SEQ_CST);
}

static int atomic_lat_client(struct perf_run *r)
{
	return lat_client(r, post_atomic);
}

static int atomic_bw_client(struct perf_run *r)
{
	return stream(r, post_atomic);
}

static int atomic_bidir_client(struct perf_run *r)
{
	return stream_both_ways(r, post_atomic);
}

/* The word was r->seed before the first operation. */
static int atomic_verify_client(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		if (post_atomic(r, i))
			return -1;
		RUN_UNTIL(r, r->tx > i);
		r->bad += *word_at(r, rx_off(r, i)) != r->seed + i;
	}
	return 0;
}

static void atomic_verify_fini(struct perf_run *r)
{
	r->bad += __atomic_load_n(word_at(r, r->x->lay.tx), __ATOMIC_SEQ_CST) != r->seed + r->iters;
}

const struct perf_kind perf_kinds[PERF_NKINDS] = {
	[PERF_KIND(PERF_SEND, PERF_LAT)] = {
		.name = "send latency",
		.client = send_lat_client, .server = send_lat_server,
		.client_recv = true, .server_recv = true,
	},
	[PERF_KIND(PERF_SEND, PERF_BW)] = {
		.name = "send bandwidth",
		.client = send_bw_client, .server = send_bw_server,
		.server_recv = true,
	},
	[PERF_KIND(PERF_SEND, PERF_BIDIR)] = {
		.name = "send bandwidth both ways",
		.client = send_bidir_client, .server = send_both_ways,
		.client_recv = true, .server_recv = true,
	},
	[PERF_KIND(PERF_SEND, PERF_VERIFY)] = {
		.name = "send",
		.client = send_verify_client, .server = send_verify_server,
		.server_recv = true,
	},
	[PERF_KIND(PERF_WRITE, PERF_LAT)] = {
		.name = "write latency",
		.client = write_lat_client, .server = write_lat_server,
		.client_prep = write_lat_prep, .server_prep = write_lat_prep,
		.watch = true, .fin = true,
	},
	[PERF_KIND(PERF_WRITE, PERF_BW)] = {
		.name = "write bandwidth",
		.client = write_bw_client, .fin = true,
	},
	[PERF_KIND(PERF_WRITE, PERF_BIDIR)] = {
		.name = "write bandwidth both ways",
		.client = write_bidir_client, .server = write_bw_client,
	},
	[PERF_KIND(PERF_WRITE, PERF_VERIFY)] = {
		.name = "write",
		.client = write_verify_client,
		.server_fini = write_verify_fini, .fin = true,
	},
	[PERF_KIND(PERF_READ, PERF_LAT)] = {
		.name = "read latency",
		.client = read_lat_client, .fin = true,
	},
	[PERF_KIND(PERF_READ, PERF_BW)] = {
		.name = "read bandwidth",
		.client = read_bw_client, .fin = true,
	},
	[PERF_KIND(PERF_READ, PERF_BIDIR)] = {
		.name = "read bandwidth both ways",
		.client = read_bidir_client, .server = read_bw_client,
	},
	[PERF_KIND(PERF_READ, PERF_VERIFY)] = {
		.name = "read",
		.client = read_verify_client,
		.server_prep = read_verify_prep, .fin = true,
	},
	[PERF_KIND(PERF_MPI, PERF_LAT)] = {
		.name = "mpi latency",
		.client = perf_mpi_client, .server = perf_mpi_server,
		.client_prep = perf_mpi_prep, .server_prep = perf_mpi_prep,
		.client_recv = true, .server_recv = true, .credits = true,
	},
	[PERF_KIND(PERF_MPI, PERF_BW)] = {
		.name = "mpi bandwidth",
		.client = perf_mpi_source, .server = perf_mpi_sink,
		.server_prep = perf_mpi_prep,
		.client_recv = true, .credits = true,
	},
	[PERF_KIND(PERF_MPI, PERF_BIDIR)] = {
		.name = "mpi bandwidth both ways",
		.client = perf_mpi_both_ways, .server = perf_mpi_both_ways,
		.client_prep = perf_mpi_prep, .server_prep = perf_mpi_prep,
		.client_recv = true, .server_recv = true, .credits = true,
	},
	[PERF_KIND(PERF_MPI, PERF_VERIFY)] = {
		.name = "mpi",
		.client = perf_mpi_verify_source, .server = perf_mpi_verify_sink,
		.server_prep = perf_mpi_prep,
		.client_recv = true, .credits = true,
	},
	[PERF_KIND(PERF_IMM, PERF_LAT)] = {
		.name = "imm latency",
		.client = send_lat_client, .server = send_lat_server,
		.client_recv = true, .server_recv = true,
	},
	[PERF_KIND(PERF_IMM, PERF_BW)] = {
		.name = "imm bandwidth",
		.client = send_bw_client, .server = send_bw_server,
		.server_recv = true,
	},
	[PERF_KIND(PERF_IMM, PERF_BIDIR)] = {
		.name = "imm bandwidth both ways",
		.client = send_bidir_client, .server = send_both_ways,
		.client_recv = true, .server_recv = true,
	},
	[PERF_KIND(PERF_IMM, PERF_VERIFY)] = {
		.name = "imm",
		.client = send_verify_client, .server = send_verify_server,
		.server_recv = true,
	},
	[PERF_KIND(PERF_FADD, PERF_LAT)] = {
		.name = "fadd latency",
		.client = atomic_lat_client, .server_prep = atomic_prep, .fin = true,
	},
	[PERF_KIND(PERF_FADD, PERF_BW)] = {
		.name = "fadd bandwidth",
		.client = atomic_bw_client, .server_prep = atomic_prep, .fin = true,
	},
	[PERF_KIND(PERF_FADD, PERF_BIDIR)] = {
		.name = "fadd bandwidth both ways",
		.client = atomic_bidir_client, .server = atomic_bw_client,
		.client_prep = atomic_prep, .server_prep = atomic_prep,
	},
	[PERF_KIND(PERF_FADD, PERF_VERIFY)] = {
		.name = "fadd",
		.client = atomic_verify_client,
		.server_prep = atomic_prep, .server_fini = atomic_verify_fini, .fin = true,
	},
	[PERF_KIND(PERF_CSWAP, PERF_LAT)] = {
		.name = "cswap latency",
		.client = atomic_lat_client, .server_prep = atomic_prep, .fin = true,
	},
	[PERF_KIND(PERF_CSWAP, PERF_BW)] = {
		.name = "cswap bandwidth",
		.client = atomic_bw_client, .server_prep = atomic_prep, .fin = true,
	},
	[PERF_KIND(PERF_CSWAP, PERF_BIDIR)] = {
		.name = "cswap bandwidth both ways",
		.client = atomic_bidir_client, .server = atomic_bw_client,
		.client_prep = atomic_prep, .server_prep = atomic_prep,
	},
	[PERF_KIND(PERF_CSWAP, PERF_VERIFY)] = {
		.name = "cswap",
		.client = atomic_verify_client,
		.server_prep = atomic_prep, .server_fini = atomic_verify_fini, .fin = true,
	},
};
