/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's phases with datagrams: endpoints, and both ends of a phase. */
#include "perf_ud_loop.h"

#include <string.h>

#define MS 1000000ull
/* A phase of datagrams that are lost ends after this time, or LATE times the expected one. */
#define LATE_NS (3000 * MS)
#define LATE 4
/* Bytes in flight: the receive buffer of a UDP socket has 208 KiB by default. */
#define FLIGHT ((size_t)128 << 10)

/* --- endpoints ---------------------------------------------------------- */

static int open_local(struct perf_xport *x, bool rotate, struct perf_ctl *ctl)
{
	unsigned int i;

	if (!x->ops->ud)
		return perf_fail(x, "datagrams need DAT 2.0, which datperf uses");
	if (x->size_max <= PERF_UD_EXTRA)
		return perf_fail(x, "the client requested invalid datagrams");
	if (x->ops->ud->open(x, ctl))
		return -1;
	ctl->size = x->ud.limit;
	x->ud.stride = rotate ? perf_stride(x->size_max) : 0;
	x->ud.slots = perf_slots(&x->lay, x->size_max);
	/* a window, another one after a stall, and reports */
	for (i = 0; i < 2 * x->lay.window + 2 * perf_ud_lanes(x); i++)
		if (perf_ud_post_recv(x, i))
			return -1;
	return 0;
}

static void limit_by(struct perf_xport *x, const struct perf_ctl *peer)
{
	if (peer->size && peer->size < x->ud.limit)
		x->ud.limit = peer->size;
}

int perf_ud_open(struct perf_xport *x, bool rotate)
{
	struct perf_ctl request = {
		.type = PERF_CTL_OPEN_UD,
		.flags = rotate ? PERF_START_ROTATE : 0,
	};
	struct perf_ctl reply;

	if (open_local(x, rotate, &request) || perf_run_request(x, &request, &reply))
		return -1;
	if (reply.type != PERF_CTL_READY)
		return perf_fail(x, "the server cannot open datagram endpoints");
	limit_by(x, &reply);
	return x->ops->ud->connect(x, &reply);
}

int perf_ud_accept(struct perf_xport *x, const struct perf_ctl *request)
{
	struct perf_ctl reply = { .type = PERF_CTL_READY };

	if (open_local(x, request->flags & PERF_START_ROTATE, &reply)) {
		reply.type = PERF_CTL_ERROR;
		perf_run_reply(x, &reply);
		return -1;
	}
	limit_by(x, request);
	return perf_run_reply(x, &reply) ? -1 : x->ops->ud->accept(x, request);
}

/* --- phases ------------------------------------------------------------- */

static void init(struct perf_ud_run *u, struct perf_xport *x, const struct perf_ctl *start,
		 bool server)
{
	const enum perf_metric metric = start->kind % PERF_NMETRICS;
	const bool answers = metric == PERF_LAT || metric == PERF_VERIFY;
	const uint64_t fit = FLIGHT / start->size;

	memset(u, 0, sizeof(*u));
	perf_run_init(&u->r, x);
	u->r.size = start->size;
	u->r.seed = start->seed;
	u->r.iters = start->iters;
	u->ops = x->ops->ud;
	u->echoes = server && answers;
	u->copies = u->checks = metric == PERF_VERIFY;
	u->both = metric == PERF_BIDIR;
	u->reports = u->both || (server && !answers);
	u->tag = perf_ud_tag(start->seed);
	u->window = fit < 2 ? 2 : fit < x->lay.window ? fit : x->lay.window;
	u->limit_ns = LATE * start->value + LATE_NS;
	u->r.patience_ns += u->limit_ns;
	u->r.begin_ns = u->moved_ns = perf_now_ns();
}

/* The server's part of @start, after it is ready. */
static int server_work(struct perf_ud_run *u, bool sends)
{
	while (!u->r.x->crx || (sends && !perf_ud_stream_is_over(u)))
		if ((sends && perf_ud_stream_some(u)) || perf_ud_turn(u))
			return -1;
	return 0;
}

int perf_ud_serve(struct perf_xport *x, const struct perf_ctl *start)
{
	const struct perf_ctl ready = { .type = PERF_CTL_READY };
	const bool sends = start->kind % PERF_NMETRICS == PERF_BIDIR;
	uint64_t cpu = perf_cpu_ns();
	struct perf_ctl ctl;
	struct perf_ud_run u;

	if (start->size > x->ud.limit)
		return perf_fail(x, "the client requested an invalid phase");
	init(&u, x, start, true);
	if (perf_post_ctl_recv(&u.r) || perf_ctl_send(&u.r, &ready) || server_work(&u, sends) ||
	    perf_ud_drain(&u) || perf_ctl_expect(&u.r, &ctl, PERF_CTL_FIN) ||
	    perf_post_ctl_recv(&u.r))
		return -1;
	ctl = (struct perf_ctl){
		.type = PERF_CTL_DONE,
		.value = u.r.rx,
		.iters = u.sent,
		.cpu_ns = perf_cpu_ns() - cpu,
	};
	return perf_ctl_send(&u.r, &ctl);
}

/* Waits for the server's report on the whole phase; its datagrams may still arrive. */
static int finish(struct perf_ud_run *u, struct perf_ctl *done)
{
	const struct perf_ctl fin = { .type = PERF_CTL_FIN };

	if (perf_ctl_send(&u->r, &fin))
		return -1;
	while (!u->r.x->crx)
		if (perf_ud_turn(u))
			return -1;
	if (perf_ud_drain(u))
		return -1;
	return perf_ctl_expect(&u->r, done, PERF_CTL_DONE) || perf_post_ctl_recv(&u->r) ? -1 : 0;
}

static int client_work(struct perf_ud_run *u, struct perf_point *point)
{
	const bool pingpong = point->metric == PERF_LAT || point->metric == PERF_VERIFY;
	uint64_t cpu = perf_cpu_ns(), end;
	struct perf_ctl done;

	u->r.begin_ns = u->moved_ns = perf_now_ns();
	if (pingpong ? perf_ud_pings(u) : perf_ud_stream(u))
		return -1;
	while (!perf_run_is_due(&u->r, u->sent))
		if (perf_ud_turn(u))
			return -1;
	/* without the time that the last datagrams were given, if they are lost */
	end = pingpong || !u->arrived || u->r.interval_ns ? perf_now_ns() : u->moved_ns;
	if (finish(u, &done))
		return -1;
	if (point->metric == PERF_BIDIR)
		end = perf_now_ns();
	point->total_ns = end - u->r.begin_ns;
	point->cpu_ns[PERF_END_CLIENT] = perf_cpu_ns() - cpu;
	point->cpu_ns[PERF_END_SERVER] = done.cpu_ns;
	point->sent = u->sent;
	point->iters = pingpong ? u->r.iters : done.value;
	point->lost = point->sent - point->iters;
	if (point->metric == PERF_BIDIR) {
		point->sent += done.iters;
		point->lost = point->sent - done.value - u->r.rx;
		point->iters = (done.value + u->r.rx + 1) / 2;
	}
	return 0;
}

int perf_ud_point(struct perf_xport *x, struct perf_point *point)
{
	struct perf_ctl start = {
		.type = PERF_CTL_START,
		.kind = (uint16_t)PERF_KIND(PERF_UD, point->metric),
		.seed = ++x->seed,
		.slots = perf_slots(&x->lay, point->size),
		.size = point->size,
		.iters = point->iters,
		.value = point->expected_ns,
	};
	struct perf_ctl ctl;
	struct perf_ud_run u;

	init(&u, x, &start, false);
	u.r.samples = point->samples;
	u.r.interval_ns = point->interval_ns;
	if (perf_ctl_send(&u.r, &start) || perf_ctl_expect(&u.r, &ctl, PERF_CTL_READY) ||
	    perf_post_ctl_recv(&u.r))
		return -1;
	point->begin_ns = perf_now_ns();
	if (client_work(&u, point))
		return -1;
	if (!point->iters)
		return perf_fail(x, "%s: none of %llu datagrams of %zu bytes arrived", x->ops->name,
				 (unsigned long long)point->sent, point->size);
	if (u.r.bad)
		return perf_fail(x, "%s: wrong data in %llu of %llu datagrams of %zu bytes",
				 x->ops->name, (unsigned long long)u.r.bad,
				 (unsigned long long)point->iters, point->size);
	return 0;
}
