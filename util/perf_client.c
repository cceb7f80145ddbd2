/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's client: connects the sides to be measured, iterates over sizes and tests, and
 * alternates between DAT and bare libfabric so that other load on the machine affects both.
 */
#include "perf_hosts.h"
#include "perf_measure.h"
#include "perf_plot.h"
#include "perf_stop.h"
#include "perf_ud.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PERF_NO_PROVIDER                                                   \
	"the IA %s does not report its libfabric provider, so bare libfabric " \
	"cannot be measured"

/* Data checked per size and test: at least 4 messages, about this many bytes. */
#define VERIFY_BYTES ((size_t)1 << 20)

struct client {
	struct perf_opts own; /* the caller's options, with sizes that datagrams can have */
	const struct perf_opts *opts;
	struct perf_xport *x[PERF_NSIDES];
	/* connections of each thread; the first thread's are of the measured side */
	struct perf_xport *thread[PERF_THREADS_MAX];
	enum perf_side current; /* side that the server listens to */
	struct perf_fabric fabric;
	struct sockaddr_storage addr; /* address of the server */
	struct perf_measure measure;
	unsigned int done, all; /* points, for the progress line */
	struct perf_row *rows;
	FILE *samples;		/* of --samples; NULL: none */
	char failure[512];	/* why the measurement ended early */
};

int perf_raw_only_fabric(const struct perf_opts *opts, struct perf_fabric *fabric, char *err,
			 size_t errlen)
{
	struct perf_xport *x;
	int rc;

	*fabric = (struct perf_fabric){ .rdm = opts->rdm };
	if (!opts->device) {
		snprintf(fabric->provider, sizeof(fabric->provider), "%s", opts->provider);
		return 0;
	}
	snprintf(err, errlen, "out of memory");
	x = perf_dat_new(opts->device);
	if (!x)
		return -1;
	rc = x->ops->open(x);
	perf_dat_fabric(x, fabric);
	if (!rc && !fabric->provider[0])
		rc = perf_fail(x, PERF_NO_PROVIDER, opts->device);
	if (rc)
		snprintf(err, errlen, "%s", x->err);
	x->ops->close(x);
	return rc;
}

struct perf_xport *perf_xport_new(const struct perf_opts *opts, enum perf_side side,
				  const struct perf_fabric *fabric)
{
	struct perf_xport *x;

	x = side == PERF_SIDE_DAT ? perf_dat_new(opts->device) : perf_raw_new(fabric);
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

/* Distinguishes the connections of this process from other clients'. */
static uint16_t session_new(void)
{
	uint16_t session;

	if (getrandom(&session, sizeof(session), 0) != sizeof(session))
		session = (uint16_t)perf_now_ns();
	return session ? session : 1;
}

static struct perf_xport *side_new(struct client *c, enum perf_side side)
{
	const struct perf_opts *opts = c->opts;
	struct perf_xport *x = perf_xport_new(opts, side, &c->fabric);
	size_t max = 1;
	int i;

	if (!x)
		return NULL;
	for (i = 0; i < opts->nsizes; i++)
		if (opts->sizes[i] > max)
			max = opts->sizes[i];
	if (opts->test[PERF_UD])
		max += PERF_UD_EXTRA;
	x->size_max = (uint32_t)max;
	x->lanes = opts->endpoints;
	x->threads = opts->threads;
	x->srq = opts->srq;
	x->segments = opts->segments;
	x->session = session_new();
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

	raw = side_new(c, PERF_SIDE_RAW);
	if (!raw)
		return perf_fail(dat, "out of memory");
	if (!c->fabric.provider[0])
		return perf_fail(raw, PERF_NO_PROVIDER, c->opts->device);
	if (raw->ops->open(raw) || perf_run_request(dat, &request, &reply))
		return -1;
	if (reply.type != PERF_CTL_READY)
		return perf_fail(raw, "the server cannot open bare libfabric");
	return raw->ops->connect(raw, (struct sockaddr *)&c->addr, (unsigned int)reply.value);
}

/* Connects the endpoints of the other threads. */
static int connect_threads(struct client *c)
{
	struct perf_xport *first = c->x[PERF_SIDE_DAT], *x;
	unsigned int i;

	for (i = 1; i < c->opts->threads; i++) {
		x = perf_dat_share(first);
		if (!x)
			return perf_fail(first, "out of memory");
		c->thread[i] = x;
		x->first_lane = i * c->opts->endpoints;
		if (x->ops->open(x) ||
		    x->ops->connect(x, (struct sockaddr *)&c->addr, c->opts->port))
			return -1;
	}
	return 0;
}

/* Fails if a test needs an operation of the extension that @x lacks. */
static int check_tests(struct client *c, struct perf_xport *x)
{
	int t;

	for (t = 0; t < PERF_NTESTS; t++) {
		if (!c->opts->test[t] || !perf_is_ext(t))
			continue;
		if (!x->ops->ext)
			return perf_fail(x, "the test %s needs DAT 2.0", perf_test_name(t));
		if (x->ops->ext->check(x, t))
			return -1;
	}
	return 0;
}

static int connect_sides(struct client *c)
{
	const bool *side = c->opts->side;
	struct perf_xport *x;

	x = side_new(c, c->current);
	if (!x || x->ops->open(x) || check_tests(c, x))
		return -1;
	if (c->current == PERF_SIDE_DAT)
		perf_dat_fabric(x, &c->fabric);
	if (resolve(c, x) || x->ops->connect(x, (struct sockaddr *)&c->addr, c->opts->port))
		return -1;
	if (c->current == PERF_SIDE_RAW)
		perf_raw_fabric(x, &c->fabric);
	if (connect_threads(c))
		return -1;
	if (side[PERF_SIDE_DAT] && side[PERF_SIDE_RAW] && connect_second(c))
		return -1;
	perf_raw_version(&c->fabric);
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

/* Leaves the sizes that datagrams of each side can have. */
static int limit_sizes(struct client *c)
{
	size_t limit = SIZE_MAX;
	int i, s, n = 0;

	for (s = 0; s < PERF_NSIDES; s++)
		if (c->opts->side[s] && c->x[s]->ud.limit < limit)
			limit = c->x[s]->ud.limit;
	for (i = 0; i < c->own.nsizes; i++)
		if (c->own.sizes[i] <= limit)
			c->own.sizes[n++] = c->own.sizes[i];
	c->own.nsizes = n;
	c->fabric.datagram = limit;
	return n ? 0 : perf_fail(c->x[c->current], "datagrams have at most %zu bytes", limit);
}

static int open_datagrams(struct client *c)
{
	const bool rotate = c->opts->rotate;
	unsigned int i;
	int s;

	for (i = 1; i < c->opts->threads; i++)
		if (perf_ud_open(c->thread[i], rotate))
			return -1;
	for (s = 0; s < PERF_NSIDES; s++)
		if (c->opts->side[s] && (select_side(c, s) || perf_ud_open(c->x[s], rotate)))
			return -1;
	return limit_sizes(c);
}

/* --- measuring ---------------------------------------------------------- */

/* Keeps the server, which awaits the next request of each thread, from giving up. */
static int keep_alive(struct client *c)
{
	struct perf_ctl request = { .type = PERF_CTL_SELECT, .value = c->current }, reply;
	unsigned int i;

	if (perf_run_request(c->x[c->current], &request, &reply))
		return -1;
	request.value = PERF_SIDE_DAT;
	for (i = 1; i < c->opts->threads; i++)
		if (perf_run_request(c->thread[i], &request, &reply))
			return -1;
	return 0;
}

/* Waits for the clients of the other hosts. */
static int meet(struct client *c)
{
	int rc;

	perf_party_come(c->opts->party);
	while (!(rc = perf_party_wait(c->opts->party, c->opts->timeout_ms / 4)))
		if (keep_alive(c))
			return -1;
	return rc > 0 ? 0 : perf_fail(c->x[c->current], "ended with another host's measurement");
}

static int measure(struct client *c, enum perf_side side, const struct perf_point *point,
		   struct perf_series *series, int i)
{
	if (c->opts->party && meet(c))
		return -1;
	if (select_side(c, side))
		return -1;
	c->thread[0] = c->x[side];
	c->measure.out = c->samples;
	c->measure.out_side = perf_side_name(side);
	return perf_measure_once(&c->measure, c->thread, c->opts->threads, point, series, i);
}

/* Measures one point on each side, repeatedly; the sides alternate in going first. */
static int run_point(struct client *c, const struct perf_point *point, struct perf_row *row)
{
	static struct perf_series series[PERF_NSIDES];
	static const char *const metric[] = {
		[PERF_LAT] = "latency",
		[PERF_BW] = "bandwidth",
		[PERF_BIDIR] = "bandwidth both ways",
	};
	const struct perf_opts *opts = c->opts;
	char what[64];
	int i, s, side;

	memset(series, 0, sizeof(series));
	snprintf(what, sizeof(what), "%s %s", perf_test_name(point->test), metric[point->metric]);
	for (i = 0; i < opts->repeat; i++) {
		if (!opts->party || perf_party_leads(opts->party))
			perf_progress(c->done++, c->all, what, point->size);
		for (s = 0; s < PERF_NSIDES; s++) {
			side = (s + i) % PERF_NSIDES;
			if (opts->side[side] && measure(c, side, point, &series[side], i))
				return -1;
		}
	}
	for (s = 0; s < PERF_NSIDES; s++)
		if (opts->side[s])
			perf_series_sum(&series[s], point, opts->repeat,
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
		point.iters = size ? VERIFY_BYTES / size : 32;
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
		/* each thread keeps its share of the rate */
		.interval_ns = c->opts->rate ? 1e9 * c->opts->threads / c->opts->rate : 0,
	};
	int t;

	for (t = 0; t < PERF_NTESTS; t++) {
		if (!perf_opts_measure(c->opts, t, row->size))
			continue;
		point.test = t;
		if (c->opts->verify && verify(c, t, row->size))
			return -1;
		point.metric = PERF_LAT;
		if (run_point(c, &point, row))
			return -1;
		point.metric = c->opts->bidir ? PERF_BIDIR : PERF_BW;
		if (run_point(c, &point, row))
			return -1;
	}
	return 0;
}

/* Copies the error text of the side that failed. */
static void collect_error(const struct client *c, char *err, size_t errlen)
{
	unsigned int i;
	int s;

	snprintf(err, errlen, "out of memory");
	for (i = 1; i < c->opts->threads; i++)
		if (c->thread[i] && c->thread[i]->err[0])
			snprintf(err, errlen, "%s", c->thread[i]->err);
	for (s = PERF_NSIDES - 1; s >= 0; s--)
		if (c->x[s] && c->x[s]->err[0])
			snprintf(err, errlen, "%s", c->x[s]->err);
}

/* Measures and prints all sizes. Sets @n to the number of sizes that were measured. */
static int run_sizes(struct client *c, int *n)
{
	const struct perf_opts *opts = c->opts;
	int i, rc = 0;

	*n = 0;
	/* a row is printed when the next one is known, because that may show that it stands out */
	for (i = 0; !rc && i <= opts->nsizes; i++) {
		if (i < opts->nsizes) {
			c->rows[i].size = opts->sizes[i];
			rc = run_size(c, &c->rows[i]);
			*n += !rc;
		}
		if (!i)
			continue;
		perf_rows_mark(c->rows, i - 1, *n);
		if (!opts->party)
			perf_out_row(opts, &c->fabric, &c->rows[i - 1]);
	}
	return rc;
}

static int run_all(struct client *c)
{
	const struct perf_opts *opts = c->opts;
	int i, t, n, most = 0, rc;

	for (i = 0; i < opts->nsizes; i++)
		for (t = 0; t < PERF_NTESTS; t++)
			if (perf_opts_measure(opts, t, opts->sizes[i]))
				c->all += 2 * (unsigned int)opts->repeat;
	perf_stop_catch();
	if (!opts->party)
		perf_out_begin(opts, &c->fabric);
	do {
		c->done = 0;
		rc = run_sizes(c, &n);
		most = n > most ? n : most;
	} while (opts->endless && !rc);
	rc = rc && !perf_stop ? -1 : 0;
	if (rc) {
		collect_error(c, c->failure, sizeof(c->failure));
		c->own.failure = c->failure;
	}
	c->own.nsizes = most;
	if (opts->party)
		perf_party_end(opts->party, &c->fabric, most);
	else
		perf_out_end(opts, &c->fabric, c->rows);
	return rc;
}

/* Opens the file of --samples. Returns whether that succeeds, or none is wanted. */
static bool samples_open(struct client *c)
{
	c->samples = c->opts->samples ? fopen(c->opts->samples, "we") : NULL;
	if (c->samples)
		fputs("side,test,size,thread,us\n", c->samples);
	return c->samples || !c->opts->samples;
}

/* Returns whether the file has all samples. */
static bool samples_close(struct client *c)
{
	const bool bad = c->samples && ferror(c->samples);

	return !c->samples || (!fclose(c->samples) && !bad);
}

static int quit(struct client *c)
{
	const struct perf_ctl request = { .type = PERF_CTL_QUIT };
	struct perf_ctl reply;
	unsigned int i;
	int s;

	for (i = 1; i < c->opts->threads; i++) {
		if (perf_run_request(c->thread[i], &request, &reply))
			return -1;
		c->thread[i]->ops->disconnect(c->thread[i]);
	}
	if (perf_run_request(c->x[c->current], &request, &reply))
		return -1;
	for (s = 0; s < PERF_NSIDES; s++)
		if (c->x[s])
			c->x[s]->ops->disconnect(c->x[s]);
	return 0;
}

int perf_client(const struct perf_opts *opts, char *err, size_t errlen)
{
	struct client c = { .own = *opts };
	unsigned int i;
	int s, rc = -1;
	bool written;

	c.opts = opts = &c.own;
	c.current = opts->side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	if (c.current == PERF_SIDE_RAW && perf_raw_only_fabric(opts, &c.fabric, err, errlen))
		return -1;
	if (!samples_open(&c)) {
		snprintf(err, errlen, "%s: %s", opts->samples, strerror(errno));
		return -1;
	}
	c.rows = opts->party ? perf_party_rows(opts->party) :
			       calloc(opts->nsizes, sizeof(*c.rows));
	if (!perf_measure_init(&c.measure, opts) && c.rows && !connect_sides(&c) &&
	    (!opts->test[PERF_UD] || !open_datagrams(&c)) && !run_all(&c) &&
	    (!quit(&c) || perf_stop))
		rc = 0;
	perf_progress_clear();
	written = samples_close(&c);
	if (rc) {
		collect_error(&c, err, errlen);
	} else if (!written) {
		rc = -1;
		snprintf(err, errlen, "%s: not all samples were written", opts->samples);
	} else if (opts->plot && opts->nsizes) {
		rc = perf_plot_rows(opts, &c.fabric, c.rows, err, errlen);
	}
	/* sides that share an IA are closed before its owner */
	for (i = 1; i < opts->threads; i++)
		if (c.thread[i])
			c.thread[i]->ops->close(c.thread[i]);
	for (s = PERF_NSIDES - 1; s >= 0; s--)
		if (c.x[s])
			c.x[s]->ops->close(c.x[s]);
	perf_measure_fini(&c.measure);
	if (!opts->party)
		free(c.rows);
	return rc;
}
