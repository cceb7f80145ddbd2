/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's client: connects the sides to be measured, iterates over sizes and tests, and
 * alternates between DAT and bare libfabric so that other load on the machine affects both.
 */
#include "datperf.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES 100000
#define MAX_MESSAGES 1000000
#define MIN_MESSAGES 8
#define WARM_UP 4
#define WARM_UP_AGAIN 16
/* Data checked per size and test: at least 4 messages, about this many bytes. */
#define VERIFY_BYTES ((size_t)1 << 20)

struct client {
	const struct perf_opts *opts;
	struct perf_xport *x[PERF_NSIDES];
	enum perf_side current; /* side that the server listens to */
	struct perf_fabric fabric;
	struct sockaddr_storage addr; /* address of the server */
	uint64_t *samples;
	unsigned int done, all; /* points, for the progress line */
	struct perf_row *rows;
};

/* The results of one point's repetitions on one side. */
struct series {
	uint64_t iters; /* 0: not calibrated yet */
	double median[PERF_REPEAT_MAX], min[PERF_REPEAT_MAX], p99[PERF_REPEAT_MAX];
	double mean[PERF_REPEAT_MAX], bw[PERF_REPEAT_MAX];
};

struct perf_xport *perf_xport_new(const struct perf_opts *opts, enum perf_side side,
				  const struct perf_fabric *fabric)
{
	struct perf_fabric named = { .rdm = opts->rdm };
	struct perf_xport *x;

	if (!fabric)
		snprintf(named.provider, sizeof(named.provider), "%s", opts->provider);
	if (side == PERF_SIDE_DAT)
		x = perf_dat_new(opts->device);
	else
		x = perf_raw_new(fabric ? fabric : &named);
	if (!x)
		return NULL;
	x->timeout_ms = opts->timeout_ms;
	x->wait_client_ms = -1;
	x->blocking = opts->wait;
	x->bare_cq = opts->bare_cq;
	return x;
}

/* --- connecting --------------------------------------------------------- */

int perf_resolve(struct perf_xport *x, const char *host, struct sockaddr_storage *addr)
{
	struct addrinfo *list = NULL;
	int rc;

	rc = getaddrinfo(host ? host : "127.0.0.1", NULL, NULL, &list);
	if (rc)
		return perf_fail(x, "%s: %s", host, gai_strerror(rc));
	memcpy(addr, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int resolve(struct client *c, struct perf_xport *x)
{
	if (c->opts->host || !c->fabric.addr.ss_family)
		return perf_resolve(x, c->opts->host, &c->addr);
	c->addr = c->fabric.addr;
	return 0;
}

static struct perf_xport *side_new(struct client *c, enum perf_side side,
				   const struct perf_fabric *fabric)
{
	const struct perf_opts *opts = c->opts;
	struct perf_xport *x = perf_xport_new(opts, side, fabric);
	size_t max = 0;
	int i;

	if (!x)
		return NULL;
	for (i = 0; i < opts->nsizes; i++)
		if (opts->sizes[i] > max)
			max = opts->sizes[i];
	x->size_max = (uint32_t)max;
	perf_layout_init(&x->lay, max, opts->window);
	c->x[side] = x;
	return x;
}

/* Connects the raw side on the fabric of the DAT side, which is connected already. */
static int connect_second(struct client *c)
{
	const struct perf_ctl request = { .type = PERF_CTL_OPEN_RAW };
	struct perf_xport *dat = c->x[PERF_SIDE_DAT], *raw;
	struct perf_ctl reply;

	raw = side_new(c, PERF_SIDE_RAW, &c->fabric);
	if (!raw)
		return perf_fail(dat, "out of memory");
	if (!c->fabric.provider[0])
		return perf_fail(raw,
				 "the IA %s does not report its libfabric "
				 "provider, so bare libfabric cannot be measured",
				 c->opts->device);
	if (raw->ops->open(raw) || perf_run_request(dat, &request, &reply))
		return -1;
	if (reply.type != PERF_CTL_READY)
		return perf_fail(raw, "the server cannot open bare libfabric");
	return raw->ops->connect(raw, (struct sockaddr *)&c->addr, (unsigned int)reply.value);
}

static int connect_sides(struct client *c)
{
	const bool *side = c->opts->side;
	struct perf_xport *x;

	c->current = side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	x = side_new(c, c->current, NULL);
	if (!x || x->ops->open(x))
		return -1;
	if (c->current == PERF_SIDE_DAT)
		perf_dat_fabric(x, &c->fabric);
	if (resolve(c, x) || x->ops->connect(x, (struct sockaddr *)&c->addr, c->opts->port))
		return -1;
	if (c->current == PERF_SIDE_RAW)
		perf_raw_fabric(x, &c->fabric);
	if (side[PERF_SIDE_DAT] && side[PERF_SIDE_RAW] && connect_second(c))
		return -1;
	if (side[PERF_SIDE_RAW])
		c->fabric.has_wait_obj = perf_raw_has_wait_obj(c->x[PERF_SIDE_RAW]);
	return 0;
}

static int select_side(struct client *c, enum perf_side side)
{
	const struct perf_ctl request = { .type = PERF_CTL_SELECT, .value = side };
	struct perf_ctl reply;

	if (side == c->current)
		return 0;
	if (perf_run_request(c->x[c->current], &request, &reply))
		return -1;
	c->current = side;
	return 0;
}

/* --- measuring ---------------------------------------------------------- */

static int warm_up(struct client *c, struct perf_point *point, uint64_t iters, uint64_t *fit)
{
	uint64_t most = point->metric == PERF_LAT ? MAX_SAMPLES : MAX_MESSAGES;

	point->iters = iters;
	if (perf_run_point(c->x[c->current], point))
		return -1;
	*fit = perf_iters_for(c->opts->time_ms * 1000000ull, point->total_ns, iters, MIN_MESSAGES,
			      most);
	return 0;
}

/* Warms up; the first call also determines how many messages fit the time. */
static int calibrate(struct client *c, struct perf_point *point, uint64_t *iters)
{
	uint64_t fit;

	if (*iters)
		return warm_up(c, point, WARM_UP_AGAIN, &fit);
	if (warm_up(c, point, WARM_UP, &fit))
		return -1;
	/* a second, longer measurement: the first one was cold */
	if (fit / 8 > WARM_UP && warm_up(c, point, fit / 8, &fit))
		return -1;
	*iters = c->opts->iters ? c->opts->iters : fit;
	if (point->metric == PERF_LAT && *iters > MAX_SAMPLES)
		*iters = MAX_SAMPLES;
	return 0;
}

static void record(struct client *c, const struct perf_point *point, struct series *s, int i)
{
	/* a read's latency is its round trip, a ping-pong's is half of it */
	double div = point->test == PERF_READ ? 1 : 2;
	struct perf_lat lat;

	if (point->metric == PERF_BW) {
		s->bw[i] = (double)point->size * point->iters * 1000 / point->total_ns;
		return;
	}
	perf_lat_of(c->samples, point->iters, div, &lat);
	s->median[i] = lat.median;
	s->min[i] = lat.min;
	s->p99[i] = lat.p99;
	s->mean[i] = lat.mean;
}

static int measure(struct client *c, enum perf_side side, struct perf_point *point,
		   struct series *s, int i)
{
	if (select_side(c, side) || calibrate(c, point, &s->iters))
		return -1;
	point->iters = s->iters;
	if (perf_run_point(c->x[side], point))
		return -1;
	record(c, point, s, i);
	return 0;
}

static void series_sum(struct series *s, enum perf_metric metric, int n, struct perf_cell *cell)
{
	if (metric == PERF_BW) {
		cell->bw = perf_median(s->bw, n);
		cell->bw_iters = s->iters;
		return;
	}
	cell->lat.median = perf_median(s->median, n);
	cell->lat.p99 = perf_median(s->p99, n);
	cell->lat.mean = perf_median(s->mean, n);
	perf_median(s->min, n);
	cell->lat.min = s->min[0]; /* perf_median() has sorted it */
	cell->lat_iters = s->iters;
}

/* Measures one point on each side, repeatedly; the sides alternate in going first. */
static int run_point(struct client *c, struct perf_point *point, struct perf_row *row)
{
	static struct series series[PERF_NSIDES];
	static const char *const metric[] = { "latency", "bandwidth" };
	const struct perf_opts *opts = c->opts;
	char what[32];
	int i, s, side;

	series[PERF_SIDE_DAT].iters = series[PERF_SIDE_RAW].iters = 0;
	snprintf(what, sizeof(what), "%s %s", perf_test_name(point->test), metric[point->metric]);
	for (i = 0; i < opts->repeat; i++) {
		perf_out_progress(c->done++, c->all, what, point->size);
		for (s = 0; s < PERF_NSIDES; s++) {
			side = (s + i) % PERF_NSIDES;
			if (opts->side[side] && measure(c, side, point, &series[side], i))
				return -1;
		}
	}
	for (s = 0; s < PERF_NSIDES; s++)
		if (opts->side[s])
			series_sum(&series[s], point->metric, opts->repeat,
				   &row->cell[point->test][s]);
	return 0;
}

static int verify(struct client *c, enum perf_test test, size_t size)
{
	struct perf_point point = {
		.test = test,
		.metric = PERF_VERIFY,
		.size = size,
	};
	int s;

	for (s = 0; s < PERF_NSIDES; s++) {
		if (!c->opts->side[s])
			continue;
		point.iters = VERIFY_BYTES / size;
		if (point.iters < 4)
			point.iters = 4;
		if (point.iters > 32)
			point.iters = 32;
		if (select_side(c, s) || perf_run_point(c->x[s], &point))
			return -1;
	}
	return 0;
}

static int run_size(struct client *c, struct perf_row *row)
{
	struct perf_point point = {
		.size = row->size,
		.rotate = c->opts->rotate,
		.samples = c->samples,
	};
	int t;

	for (t = 0; t < PERF_NTESTS; t++) {
		if (!c->opts->test[t])
			continue;
		point.test = t;
		if (c->opts->verify && verify(c, t, row->size))
			return -1;
		point.metric = PERF_LAT;
		if (run_point(c, &point, row))
			return -1;
		point.metric = PERF_BW;
		if (run_point(c, &point, row))
			return -1;
	}
	return 0;
}

static int run_all(struct client *c)
{
	const struct perf_opts *opts = c->opts;
	int i, t;

	for (t = 0; t < PERF_NTESTS; t++)
		c->all += opts->test[t] ? 2 * opts->nsizes * opts->repeat : 0;
	perf_out_begin(opts, &c->fabric);
	for (i = 0; i < opts->nsizes; i++) {
		c->rows[i].size = opts->sizes[i];
		if (run_size(c, &c->rows[i]))
			return -1;
		perf_out_row(opts, &c->rows[i]);
	}
	if (opts->json)
		perf_out_json(opts, &c->fabric, c->rows);
	return 0;
}

static int quit(struct client *c)
{
	const struct perf_ctl request = { .type = PERF_CTL_QUIT };
	struct perf_ctl reply;
	int s;

	if (perf_run_request(c->x[c->current], &request, &reply))
		return -1;
	for (s = 0; s < PERF_NSIDES; s++)
		if (c->x[s])
			c->x[s]->ops->disconnect(c->x[s]);
	return 0;
}

/* Copies the error text of the side that failed. */
static void collect_error(const struct client *c, char *err, size_t errlen)
{
	int s;

	snprintf(err, errlen, "out of memory");
	for (s = PERF_NSIDES - 1; s >= 0; s--)
		if (c->x[s] && c->x[s]->err[0])
			snprintf(err, errlen, "%s", c->x[s]->err);
}

int perf_client(const struct perf_opts *opts, char *err, size_t errlen)
{
	struct client c = { .opts = opts };
	int s, rc = -1;

	c.samples = calloc(MAX_SAMPLES, sizeof(*c.samples));
	c.rows = calloc(opts->nsizes, sizeof(*c.rows));
	if (c.samples && c.rows && !connect_sides(&c) && !run_all(&c) && !quit(&c))
		rc = 0;
	perf_out_progress_end();
	if (rc)
		collect_error(&c, err, errlen);
	for (s = PERF_NSIDES - 1; s >= 0; s--)
		if (c.x[s])
			c.x[s]->ops->close(c.x[s]);
	free(c.samples);
	free(c.rows);
	return rc;
}
