/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The phases of datperf: client and server agree on a phase and run it.
 *
 * Between phases each side has exactly one receive posted, for a control message. A phase that
 * transfers data by send posts its data receives after it, and the next control receive directly
 * after the last data receive. So a control message never has to wait for a receive, and a dead
 * peer always shows as a failed receive. Only a stream of sends may run ahead of its receiver, and
 * the sender's control message behind that stream; the fabric holds such messages, as DAT
 * requires.
 */
#include "perf_loop.h"
#include "perf_ud.h"

#include <string.h>
#include <unistd.h>

void perf_run_init(struct perf_run *r, struct perf_xport *x)
{
	memset(r, 0, sizeof(*r));
	r->x = x;
	r->poll = x->ops->poll;
	r->patience_ns = x->timeout_ms * 1000000ull;
	r->spin = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? PERF_IDLE_SPIN : 0;
}

/* --- control messages --------------------------------------------------- */

int perf_ctl_send(struct perf_run *r, const struct perf_ctl *ctl)
{
	struct perf_xport *x = r->x;

	perf_ctl_encode(ctl, x->mem + x->lay.ctl_tx);
	if (x->lanes > 1)
		x->ops->select(x, 0);
	RUN_POST(r, x->ops->post_send(x, x->lay.ctl_tx, PERF_CTL_LEN, PERF_COOKIE_CTX));
	RUN_UNTIL(r, x->ctx > 0);
	x->ctx--;
	return 0;
}

/* Takes the next control message; the caller reposts the receive. */
static int ctl_recv(struct perf_run *r, struct perf_ctl *ctl)
{
	struct perf_xport *x = r->x;

	RUN_UNTIL(r, x->crx > 0);
	x->crx--;
	if (perf_ctl_decode(ctl, x->mem + x->lay.ctl_rx, PERF_CTL_LEN))
		return perf_fail(x, "%s: malformed control message", x->ops->name);
	return 0;
}

int perf_ctl_expect(struct perf_run *r, struct perf_ctl *ctl, int type)
{
	if (ctl_recv(r, ctl))
		return -1;
	if (ctl->type != type)
		return perf_fail(r->x, "%s: the peer sent message %d instead of %d",
				 r->x->ops->name, ctl->type, type);
	return 0;
}

int perf_run_arm(struct perf_xport *x)
{
	struct perf_run r;

	perf_run_init(&r, x);
	return perf_post_ctl_recv(&r);
}

int perf_run_next(struct perf_xport *x, struct perf_ctl *ctl)
{
	struct perf_run r;

	perf_run_init(&r, x);
	return ctl_recv(&r, ctl);
}

int perf_run_reply(struct perf_xport *x, const struct perf_ctl *ctl)
{
	struct perf_run r;

	perf_run_init(&r, x);
	return perf_post_ctl_recv(&r) || perf_ctl_send(&r, ctl) ? -1 : 0;
}

int perf_run_request(struct perf_xport *x, const struct perf_ctl *request, struct perf_ctl *reply)
{
	struct perf_run r;

	perf_run_init(&r, x);
	if (perf_ctl_send(&r, request) || ctl_recv(&r, reply))
		return -1;
	return perf_post_ctl_recv(&r);
}

/*
 * Returns whether this side has data receives, which @data says of the kind. A blocked process
 * cannot watch memory, so a message wakes it.
 */
static bool has_receives(struct perf_run *r, const struct perf_kind *k, bool data)
{
	r->notes = r->x->blocking && k->watch;
	r->credit = k->credits ? (r->slots + 1) / 2 : 0;
	return (data || r->notes) && perf_run_receives(r);
}

static int client_phase(struct perf_run *r, const struct perf_kind *k, const struct perf_ctl *start)
{
	const struct perf_ctl fin = { .type = PERF_CTL_FIN };
	const bool recv = has_receives(r, k, k->client_recv);
	struct perf_ctl ctl;
	uint64_t begin, due, cpu;

	if (k->client_prep)
		k->client_prep(r);
	if (recv && perf_run_refill(r, r->slots))
		return -1;
	if (perf_ctl_send(r, start) || perf_ctl_expect(r, &ctl, PERF_CTL_READY))
		return -1;
	if (!recv && perf_post_ctl_recv(r))
		return -1;
	cpu = perf_cpu_ns();
	r->begin_ns = begin = perf_now_ns();
	/* the last message has its interval, too */
	if (k->client(r) || perf_run_pace(r, r->iters, &due))
		return -1;
	r->total_ns = perf_now_ns() - begin;
	r->cpu_ns[PERF_END_CLIENT] = perf_cpu_ns() - cpu;
	if (k->fin && perf_ctl_send(r, &fin))
		return -1;
	if (perf_ctl_expect(r, &ctl, PERF_CTL_DONE) || perf_post_ctl_recv(r))
		return -1;
	r->bad += ctl.value;
	r->cpu_ns[PERF_END_SERVER] = ctl.cpu_ns;
	return 0;
}

/*
 * In a phase without messages to one side, such as RDMA reads, that side hears nothing of its peer
 * until the end. So it waits several times as long as the client expects, because a busy machine
 * may become slower.
 */
#define PATIENCE 10
/*
 * The client ends such a phase early if it takes this many times as long as expected: messages can
 * take a thousand times as long while both processes lack a processor.
 */
#define LIMIT 4
#define EXPECTED_MAX (600 * 1000000000ull)

/* Prepares a phase that is described by @start. */
static void phase_init(struct perf_run *r, struct perf_xport *x, const struct perf_ctl *start)
{
	bool verify = start->kind % PERF_NMETRICS == PERF_VERIFY;

	perf_run_init(r, x);
	r->size = start->size;
	/* each message stays in memory until it is checked */
	if (verify || start->flags & PERF_START_ROTATE ||
	    start->kind / PERF_NMETRICS == PERF_MPI)
		r->stride = perf_stride(start->size);
	r->test = start->kind / PERF_NMETRICS;
	r->slots = start->slots;
	r->iters = start->iters;
	r->seed = start->seed;
	r->patience_ns += PATIENCE * (start->value < EXPECTED_MAX ? start->value : EXPECTED_MAX);
}

/* Whether all messages of a check stay in memory until they are checked. */
static bool stays_in_memory(unsigned int test)
{
	return test == PERF_WRITE || test == PERF_READ || test == PERF_IMM;
}

int perf_run_point(struct perf_xport *x, struct perf_point *point)
{
	struct perf_ctl start = {
		.type = PERF_CTL_START,
		.kind = (uint16_t)PERF_KIND(point->test, point->metric),
		.seed = ++x->seed,
		.slots = perf_slots(&x->lay, point->size),
		.size = point->size,
		.iters = point->iters,
		.value = point->expected_ns,
		.flags = point->rotate ? PERF_START_ROTATE : 0,
	};
	const struct perf_kind *k;
	struct perf_run r;

	if (point->test == PERF_UD)
		return perf_ud_point(x, point);
	if (point->metric == PERF_VERIFY && stays_in_memory(point->test) &&
	    start.iters > start.slots)
		start.iters = start.slots;
	k = &perf_kinds[start.kind];
	phase_init(&r, x, &start);
	r.samples = point->samples;
	r.interval_ns = point->interval_ns;
	/* the client hears nothing between two messages */
	r.patience_ns += (uint64_t)point->interval_ns;
	if (!k->server && point->metric != PERF_VERIFY)
		r.limit_ns = LIMIT * start.value;
	if (client_phase(&r, k, &start))
		return -1;
	point->iters = r.iters;
	point->begin_ns = r.begin_ns;
	point->total_ns = r.total_ns;
	memcpy(point->cpu_ns, r.cpu_ns, sizeof(point->cpu_ns));
	if (r.bad)
		return perf_fail(x,
				 "%s: %s of %zu bytes: wrong data in %llu of "
				 "%llu messages",
				 x->ops->name, k->name, r.size, (unsigned long long)r.bad,
				 (unsigned long long)r.iters);
	return 0;
}

static int server_phase(struct perf_run *r, const struct perf_kind *k)
{
	const struct perf_ctl ready = { .type = PERF_CTL_READY };
	struct perf_ctl ctl = { .type = PERF_CTL_DONE };
	const bool recv = has_receives(r, k, k->server_recv);
	uint64_t cpu;

	if (recv ? perf_run_refill(r, r->slots) : perf_post_ctl_recv(r))
		return -1;
	if (k->server_prep)
		k->server_prep(r);
	cpu = perf_cpu_ns();
	if (perf_ctl_send(r, &ready) || (k->server && k->server(r)))
		return -1;
	if (k->fin && (perf_ctl_expect(r, &ctl, PERF_CTL_FIN) || perf_post_ctl_recv(r)))
		return -1;
	cpu = perf_cpu_ns() - cpu;
	if (k->server_fini)
		k->server_fini(r);
	ctl.type = PERF_CTL_DONE;
	ctl.cpu_ns = cpu;
	ctl.value = r->bad;
	return perf_ctl_send(r, &ctl);
}

/* Checks that a START from a faulty peer does not make this side access other memory. */
static int start_check(struct perf_xport *x, const struct perf_ctl *start)
{
	if (start->kind >= PERF_NTESTS * PERF_NMETRICS || !start->iters ||
	    !perf_test_has_size(start->kind / PERF_NMETRICS, start->size) ||
	    start->size > x->size_max || !start->slots ||
	    start->slots > perf_slots(&x->lay, start->size))
		return perf_fail(x, "%s: the client requested an invalid phase", x->ops->name);
	if (perf_is_ext(start->kind / PERF_NMETRICS) && !x->ops->ext)
		return perf_fail(x, "the client requested a test that needs DAT 2.0");
	if (start->kind % PERF_NMETRICS == PERF_VERIFY &&
	    stays_in_memory(start->kind / PERF_NMETRICS) && start->iters > start->slots)
		return perf_fail(x, "%s: the client requested an invalid check", x->ops->name);
	return 0;
}

int perf_run_serve(struct perf_xport *x, const struct perf_ctl *start)
{
	struct perf_run r;

	if (start_check(x, start))
		return -1;
	if (start->kind / PERF_NMETRICS == PERF_UD)
		return perf_ud_serve(x, start);
	phase_init(&r, x, start);
	return server_phase(&r, &perf_kinds[start->kind]);
}
