/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measuring loops of datperf: for each kind of phase a client half and a
 * server half, both over any transport.
 *
 * Between phases each side has exactly one receive posted, for a control
 * message. A phase that carries data by send posts its data receives behind
 * it and the next control receive right behind the last of them, so that a
 * control message never has to wait for a receive, and a dead peer always
 * shows as a failed one. Only a stream of sends may run ahead of its receiver;
 * the fabric holds such messages, as DAT asks of it.
 */
#include "perf.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* Polls without result before the clock is read and the connection checked. */
#define IDLE_CHECK	4096
/* From here on other threads of a crowded machine get a chance to run. */
#define IDLE_YIELD	512
#define NOTE_LEN	8

struct run {
	struct perf_xport *x;
	int (*poll)(struct perf_xport *x, struct perf_comp *comp);
	size_t size, stride;
	unsigned int slots;
	uint32_t seed;
	uint64_t iters;
	bool notes;		/* data receives are notifications, not data */
	uint64_t rx, tx;	/* data completions so far */
	uint64_t rx_posted;
	uint64_t rx_len;	/* of the latest data receive */
	unsigned int idle;
	uint64_t idle_since;
	uint64_t bad;		/* messages whose data was wrong */
	long bad_at;		/* first wrong byte of the first of them */
	uint64_t *samples;
	uint64_t total_ns;
};

struct kind {
	const char *name;
	int (*client)(struct run *r);
	int (*server)(struct run *r);
	/* before READY, and after the client's FIN */
	void (*server_prep)(struct run *r);
	void (*server_fini)(struct run *r);
	bool client_recv, server_recv;	/* which side receives data by send */
	bool fin;			/* the server only learns the end by FIN */
};

static void run_init(struct run *r, struct perf_xport *x)
{
	memset(r, 0, sizeof(*r));
	r->x = x;
	r->poll = x->ops->poll;
}

/* Nothing arrived for a while: is the peer still there? */
static __attribute__((noinline)) int run_idle(struct run *r)
{
	struct perf_xport *x = r->x;
	uint64_t now;

	if (!x->blocking && r->idle > IDLE_YIELD)
		sched_yield();
	if (!x->blocking && r->idle % IDLE_CHECK)
		return 0;
	if (x->ops->check(x))
		return -1;
	now = perf_now_ns();
	if (!r->idle_since)
		r->idle_since = now;
	if (now - r->idle_since > x->timeout_ms * 1000000ull)
		return perf_fail(x, "%s: the peer has been silent for %u s",
				 x->ops->name, x->timeout_ms / 1000);
	return 0;
}

/* Takes at most one completion and counts it. */
static inline int run_step(struct run *r)
{
	struct perf_comp comp;
	int n = r->poll(r->x, &comp);

	if (n < 0)
		return n;
	if (n == 0) {
		if (++r->idle < IDLE_YIELD && !r->x->blocking)
			return 0;
		return run_idle(r);
	}
	r->idle = 0;
	r->idle_since = 0;
	r->tx += !!(comp.cookie & PERF_COOKIE_TX);
	if (comp.cookie & PERF_COOKIE_RX) {
		r->rx++;
		r->rx_len = comp.len;
	}
	r->x->crx += !!(comp.cookie & PERF_COOKIE_CRX);
	r->x->ctx += !!(comp.cookie & PERF_COOKIE_CTX);
	return 0;
}

/* Steps until @cond holds; leaves the function on an error. */
#define RUN_UNTIL(r, cond)				\
	do {						\
		while (!(cond))				\
			if (run_step(r))		\
				return -1;		\
	} while (0)

/* Posts; where the transport has no room just now, polls and tries again. */
#define RUN_POST(r, post)				\
	do {						\
		int rc_;				\
							\
		while ((rc_ = (post)) == -EAGAIN)	\
			if (run_step(r))		\
				return -1;		\
		if (rc_)				\
			return -1;			\
	} while (0)

static inline size_t tx_off(const struct run *r, uint64_t i)
{
	return r->x->lay.tx + i % r->slots * r->stride;
}

static inline size_t rx_off(const struct run *r, uint64_t i)
{
	return r->x->lay.rx + i % r->slots * r->stride;
}

static inline int post_send(struct run *r, uint64_t i)
{
	RUN_POST(r, r->x->ops->post_send(r->x, tx_off(r, i), r->size,
					 PERF_COOKIE_TX));
	return 0;
}

static inline int post_note(struct run *r)
{
	RUN_POST(r, r->x->ops->post_send(r->x, r->x->lay.note_tx, NOTE_LEN,
					 PERF_COOKIE_TX));
	return 0;
}

static inline int post_write(struct run *r, uint64_t i)
{
	RUN_POST(r, r->x->ops->post_write(r->x, tx_off(r, i), r->size,
					  rx_off(r, i), PERF_COOKIE_TX));
	return 0;
}

static inline int post_read(struct run *r, uint64_t i)
{
	RUN_POST(r, r->x->ops->post_read(r->x, rx_off(r, i), r->size,
					 tx_off(r, i), PERF_COOKIE_TX));
	return 0;
}

static int post_ctl_recv(struct run *r)
{
	RUN_POST(r, r->x->ops->post_recv(r->x, r->x->lay.ctl_rx, PERF_CTL_LEN,
					 PERF_COOKIE_CRX));
	return 0;
}

/* Posts the next data receive, behind the last one the control receive. */
static int post_recv(struct run *r)
{
	struct perf_xport *x = r->x;

	if (r->notes)
		RUN_POST(r, x->ops->post_recv(x, x->lay.note_rx, NOTE_LEN,
					      PERF_COOKIE_RX));
	else
		RUN_POST(r, x->ops->post_recv(x, rx_off(r, r->rx_posted),
					      r->size, PERF_COOKIE_RX));
	return ++r->rx_posted == r->iters ? post_ctl_recv(r) : 0;
}

static int refill(struct run *r, uint64_t upto)
{
	while (r->rx_posted < upto && r->rx_posted < r->iters)
		if (post_recv(r))
			return -1;
	return 0;
}

/* --- control messages --------------------------------------------------- */

static int ctl_send(struct run *r, const struct perf_ctl *ctl)
{
	struct perf_xport *x = r->x;

	perf_ctl_encode(ctl, x->mem + x->lay.ctl_tx);
	RUN_POST(r, x->ops->post_send(x, x->lay.ctl_tx, PERF_CTL_LEN,
				      PERF_COOKIE_CTX));
	RUN_UNTIL(r, x->ctx > 0);
	x->ctx--;
	return 0;
}

/* Takes the next control message; the caller posts the receive again. */
static int ctl_recv(struct run *r, struct perf_ctl *ctl)
{
	struct perf_xport *x = r->x;

	RUN_UNTIL(r, x->crx > 0);
	x->crx--;
	if (perf_ctl_decode(ctl, x->mem + x->lay.ctl_rx, PERF_CTL_LEN))
		return perf_fail(x, "%s: garbled control message",
				 x->ops->name);
	return 0;
}

static int ctl_expect(struct run *r, struct perf_ctl *ctl, int type)
{
	if (ctl_recv(r, ctl))
		return -1;
	if (ctl->type != type)
		return perf_fail(r->x, "%s: the peer answered %d, not %d",
				 r->x->ops->name, ctl->type, type);
	return 0;
}

int perf_run_arm(struct perf_xport *x)
{
	struct run r;

	run_init(&r, x);
	return post_ctl_recv(&r);
}

int perf_run_next(struct perf_xport *x, struct perf_ctl *ctl)
{
	struct run r;

	run_init(&r, x);
	return ctl_recv(&r, ctl);
}

int perf_run_answer(struct perf_xport *x, const struct perf_ctl *ctl)
{
	struct run r;

	run_init(&r, x);
	return post_ctl_recv(&r) || ctl_send(&r, ctl) ? -1 : 0;
}

int perf_run_ask(struct perf_xport *x, const struct perf_ctl *ask,
		 struct perf_ctl *answer)
{
	struct run r;

	run_init(&r, x);
	if (ctl_send(&r, ask) || ctl_recv(&r, answer))
		return -1;
	return post_ctl_recv(&r);
}

/* --- send --------------------------------------------------------------- */

static int send_lat_client(struct run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (post_send(r, i))
			return -1;
		RUN_UNTIL(r, r->rx > i && r->tx > i);
		if (refill(r, i + 1 + r->slots))
			return -1;
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return 0;
}

static int send_lat_server(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, r->rx > i && r->tx >= i);
		if (refill(r, i + 1 + r->slots) || post_send(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx == r->iters);
	return 0;
}

/* Keeps up to slots operations under way until all are complete. */
static inline int stream(struct run *r, int (*post)(struct run *, uint64_t))
{
	uint64_t posted = 0;

	while (r->tx < r->iters) {
		while (posted < r->iters && posted - r->tx < r->slots)
			if (post(r, posted++))
				return -1;
		if (run_step(r))
			return -1;
	}
	return 0;
}

/* Over when the server has told that the last message arrived. */
static int send_bw_client(struct run *r)
{
	if (stream(r, post_send))
		return -1;
	RUN_UNTIL(r, r->x->crx > 0);
	return 0;
}

static int send_bw_server(struct run *r)
{
	while (r->rx < r->iters)
		if (run_step(r) || refill(r, r->rx + r->slots))
			return -1;
	return 0;
}

static void verify_slot(struct run *r, size_t off, uint64_t i)
{
	long at = perf_pattern_check(r->x->mem + off, r->size, r->seed,
				     (uint32_t)i);

	if (at < 0)
		return;
	if (!r->bad++)
		r->bad_at = at;
}

static int send_verify_client(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, r->tx + r->slots > i);
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed,
				  (uint32_t)i);
		if (post_send(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx == r->iters && r->x->crx > 0);
	return 0;
}

static int send_verify_server(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, r->rx > i);
		/* one completion is taken at a time: the length is this one's */
		if (r->rx_len != r->size)
			r->bad++;
		else
			verify_slot(r, rx_off(r, i), i);
		if (refill(r, i + 1 + r->slots))
			return -1;
	}
	return 0;
}

/* --- write -------------------------------------------------------------- */

/* The byte that tells the i-th write of a ping-pong from the one before. */
static inline unsigned char turn(uint64_t i)
{
	return (unsigned char)(i % 251 + 1);
}

static inline unsigned char *last_byte(struct run *r, size_t area)
{
	return r->x->mem + area + r->size - 1;
}

static inline bool landed(struct run *r, uint64_t i)
{
	if (r->notes)
		return r->rx > i;
	return __atomic_load_n(last_byte(r, r->x->lay.rx),
			       __ATOMIC_ACQUIRE) == turn(i);
}

/* Writes the next turn; a sleeping peer gets a message behind it. */
static inline int write_turn(struct run *r, uint64_t i)
{
	*last_byte(r, r->x->lay.tx) = turn(i);
	/* the source may not be touched before the write is complete, so
	 * there is only one at a time and slot 0 serves all */
	if (post_write(r, 0))
		return -1;
	return r->notes ? post_note(r) : 0;
}

static inline uint64_t turn_ops(const struct run *r, uint64_t i)
{
	return r->notes ? 2 * i : i;
}

static void write_lat_prep(struct run *r)
{
	*last_byte(r, r->x->lay.rx) = 0;
}

static int write_lat_client(struct run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (write_turn(r, i))
			return -1;
		RUN_UNTIL(r, landed(r, i) && r->tx >= turn_ops(r, i + 1));
		if (r->notes && refill(r, i + 1 + r->slots))
			return -1;
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return 0;
}

static int write_lat_server(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, landed(r, i) && r->tx >= turn_ops(r, i));
		if (r->notes && refill(r, i + 1 + r->slots))
			return -1;
		if (write_turn(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx >= turn_ops(r, r->iters));
	return 0;
}

static int write_bw_client(struct run *r)
{
	return stream(r, post_write);
}

static int write_verify_client(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed,
				  (uint32_t)i);
	return stream(r, post_write);
}

static void write_verify_fini(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		verify_slot(r, rx_off(r, i), i);
}

/* --- read --------------------------------------------------------------- */

static int read_lat_client(struct run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (post_read(r, i))
			return -1;
		RUN_UNTIL(r, r->tx > i);
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return 0;
}

static int read_bw_client(struct run *r)
{
	return stream(r, post_read);
}

static void read_verify_prep(struct run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		perf_pattern_fill(r->x->mem + tx_off(r, i), r->size, r->seed,
				  (uint32_t)i);
}

static int read_verify_client(struct run *r)
{
	uint64_t i;

	if (stream(r, post_read))
		return -1;
	for (i = 0; i < r->iters; i++)
		verify_slot(r, rx_off(r, i), i);
	return 0;
}

/* --- phases ------------------------------------------------------------- */

static const struct kind kinds[PERF_NKINDS] = {
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
	[PERF_KIND(PERF_SEND, PERF_VERIFY)] = {
		.name = "send",
		.client = send_verify_client, .server = send_verify_server,
		.server_recv = true,
	},
	[PERF_KIND(PERF_WRITE, PERF_LAT)] = {
		.name = "write latency",
		.client = write_lat_client, .server = write_lat_server,
		.server_prep = write_lat_prep, .fin = true,
	},
	[PERF_KIND(PERF_WRITE, PERF_BW)] = {
		.name = "write bandwidth",
		.client = write_bw_client, .fin = true,
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
	[PERF_KIND(PERF_READ, PERF_VERIFY)] = {
		.name = "read",
		.client = read_verify_client,
		.server_prep = read_verify_prep, .fin = true,
	},
};

/* A blocked process cannot watch memory: it is woken by a message. */
static void run_notes(struct run *r, const struct kind *k, bool *recv)
{
	r->notes = r->x->blocking && k->client == write_lat_client;
	if (r->notes)
		*recv = true;
}

static int client_phase(struct run *r, const struct kind *k,
			const struct perf_ctl *start)
{
	const struct perf_ctl fin = { .type = PERF_CTL_FIN };
	bool recv = k->client_recv;
	struct perf_ctl ctl;
	uint64_t begin;

	run_notes(r, k, &recv);
	if (k->server_prep == write_lat_prep)
		write_lat_prep(r);
	if (recv && refill(r, r->slots))
		return -1;
	if (ctl_send(r, start) || ctl_expect(r, &ctl, PERF_CTL_READY))
		return -1;
	if (!recv && post_ctl_recv(r))
		return -1;
	begin = perf_now_ns();
	if (k->client(r))
		return -1;
	r->total_ns = perf_now_ns() - begin;
	if (k->fin && ctl_send(r, &fin))
		return -1;
	if (ctl_expect(r, &ctl, PERF_CTL_DONE) || post_ctl_recv(r))
		return -1;
	r->bad += ctl.value;
	return 0;
}

int perf_run_point(struct perf_xport *x, struct perf_point *point)
{
	const struct kind *k = &kinds[PERF_KIND(point->test, point->metric)];
	struct perf_ctl start = { .type = PERF_CTL_START };
	struct run r;

	run_init(&r, x);
	r.size = point->size;
	r.stride = perf_stride(point->size);
	r.slots = perf_slots(&x->lay, point->size);
	r.iters = point->iters;
	if (point->metric == PERF_VERIFY && point->test != PERF_SEND &&
	    r.iters > r.slots)
		r.iters = r.slots;	/* all stay in memory until checked */
	r.seed = ++x->seed;
	r.samples = point->samples;
	start.kind = (uint16_t)PERF_KIND(point->test, point->metric);
	start.seed = r.seed;
	start.slots = r.slots;
	start.size = r.size;
	start.iters = r.iters;
	if (client_phase(&r, k, &start))
		return -1;
	point->total_ns = r.total_ns;
	if (r.bad)
		return perf_fail(x, "%s: %s of %zu bytes: wrong data in %llu of "
				 "%llu messages", x->ops->name, k->name,
				 r.size, (unsigned long long)r.bad,
				 (unsigned long long)r.iters);
	return 0;
}

static int server_phase(struct run *r, const struct kind *k)
{
	const struct perf_ctl ready = { .type = PERF_CTL_READY };
	struct perf_ctl ctl = { .type = PERF_CTL_DONE };
	bool recv = k->server_recv;

	run_notes(r, k, &recv);
	if (recv ? refill(r, r->slots) : post_ctl_recv(r))
		return -1;
	if (k->server_prep)
		k->server_prep(r);
	if (ctl_send(r, &ready) || (k->server && k->server(r)))
		return -1;
	if (k->fin && (ctl_expect(r, &ctl, PERF_CTL_FIN) || post_ctl_recv(r)))
		return -1;
	if (k->server_fini)
		k->server_fini(r);
	ctl.type = PERF_CTL_DONE;
	ctl.value = r->bad;
	return ctl_send(r, &ctl);
}

/* A START from a confused peer must not make this side touch other memory. */
static int start_check(struct perf_xport *x, const struct perf_ctl *start)
{
	if (start->kind >= PERF_NKINDS || !start->size || !start->iters ||
	    start->size > x->size_max || !start->slots ||
	    start->slots > perf_slots(&x->lay, start->size))
		return perf_fail(x, "%s: the client asked for an impossible phase",
				 x->ops->name);
	if (start->kind % PERF_NMETRICS == PERF_VERIFY &&
	    start->kind / PERF_NMETRICS != PERF_SEND &&
	    start->iters > start->slots)
		return perf_fail(x, "%s: the client asked for an impossible check",
				 x->ops->name);
	return 0;
}

int perf_run_serve(struct perf_xport *x, const struct perf_ctl *start)
{
	struct run r;

	if (start_check(x, start))
		return -1;
	run_init(&r, x);
	r.size = start->size;
	r.stride = perf_stride(start->size);
	r.slots = start->slots;
	r.iters = start->iters;
	r.seed = start->seed;
	return server_phase(&r, &kinds[start->kind]);
}
