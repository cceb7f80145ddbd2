/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures a point of the table on one side: warm-up, length, repetitions and their summary. */
#include "perf_measure.h"

#include "perf_stop.h"

#include <stdlib.h>
#include <string.h>

/* Round trips of one phase, and the kept ones of a measurement. */
#define MAX_SAMPLES 100000
#define KEPT_SAMPLES 1000000
#define MAX_MESSAGES 1000000
#define MIN_MESSAGES 8
/* Messages that show how fast the fabric is, of small and of large sizes. */
#define FIRST 4
#define LARGE ((size_t)16 << 20)
#define WARM_UP_AGAIN 16
#define SLICE_MS 1000

struct total {
	uint64_t iters, ns, sent, lost;
	uint64_t cpu_ns[PERF_NENDS];
	bool measured;	/* not a warm-up */
};

int perf_measure_init(struct perf_measure *m, const struct perf_opts *opts)
{
	unsigned int slice_ms = opts->timeout_ms / 4 < SLICE_MS ? opts->timeout_ms / 4 : SLICE_MS;

	unsigned int i;

	memset(m, 0, sizeof(*m));
	m->opts = opts;
	m->slice_ns = slice_ms * 1000000ull;
	m->njobs = opts->threads;
	for (i = 0; i < m->njobs; i++) {
		m->job[i].slice = calloc(MAX_SAMPLES, sizeof(uint64_t));
		if (!m->job[i].slice)
			return -1;
		/* no page fault falls into a measurement */
		memset(m->job[i].slice, 1, MAX_SAMPLES * sizeof(uint64_t));
	}
	return perf_samples_init(&m->samples, KEPT_SAMPLES);
}

void perf_measure_fini(struct perf_measure *m)
{
	unsigned int i;

	for (i = 0; i < m->njobs; i++)
		free(m->job[i].slice);
	m->njobs = 0;
	perf_samples_fini(&m->samples);
}

static bool is_latency(const struct perf_point *point)
{
	return point->metric == PERF_LAT;
}

static uint64_t most_messages(const struct perf_point *point)
{
	return is_latency(point) ? MAX_SAMPLES : MAX_MESSAGES;
}

/* --- phases ------------------------------------------------------------- */

static void *job_main(void *arg)
{
	struct perf_job *job = arg;

	job->rc = perf_run_point(job->x, &job->point);
	return NULL;
}

/* Runs the phase @what on each connection at once. */
static int run_jobs(struct perf_measure *m, const struct perf_point *what)
{
	struct perf_job *job = m->job;
	unsigned int i, started;
	int rc = 0;

	for (started = 1; started < m->njobs; started++) {
		job[started].point = *what;
		job[started].point.samples = job[started].slice;
		if (pthread_create(&job[started].thread, NULL, job_main, &job[started])) {
			rc = perf_fail(job->x, "cannot create %u threads", m->njobs);
			break;
		}
	}
	job->point = *what;
	job->point.samples = job->slice;
	if (!rc)
		job_main(job);
	for (i = 1; i < started; i++)
		pthread_join(job[i].thread, NULL);
	for (i = 0; i < started; i++)
		rc |= job[i].rc;
	return rc;
}

/* Time from the first begin to the last end of a connection's phase. */
static uint64_t span(const struct perf_measure *m)
{
	uint64_t begin = UINT64_MAX, end = 0, ends;
	const struct perf_point *point;
	unsigned int i;

	for (i = 0; i < m->njobs; i++) {
		point = &m->job[i].point;
		ends = point->begin_ns + point->total_ns;
		begin = point->begin_ns < begin ? point->begin_ns : begin;
		end = ends > end ? ends : end;
	}
	return end - begin;
}

/* Writes the latencies of a phase; each connection has its messages in their order. */
static void samples_write(const struct perf_measure *m, const struct perf_point *point)
{
	uint64_t k;
	unsigned int i;

	for (i = 0; i < m->njobs; i++)
		for (k = 0; k < m->job[i].point.iters; k++)
			fprintf(m->out, "%s,%s,%zu,%u,%.3f\n", m->out_side,
				perf_test_name(point->test), point->size, i,
				(double)m->job[i].slice[k] / m->samples.div / 1000);
}

static int run_phase(struct perf_measure *m, const struct perf_point *what, uint64_t iters,
		     struct perf_series *s, struct total *total)
{
	struct perf_point point = *what;
	unsigned int i;
	int end;

	if (perf_stop)
		return -1;
	point.iters = iters;
	point.expected_ns = (uint64_t)(point.interval_ns * (double)iters);
	if (s->last_iters)
		point.expected_ns = (uint64_t)((double)s->last_ns * (double)iters /
					       (double)s->last_iters);
	if (run_jobs(m, &point))
		return -1;
	perf_progress_tick();
	s->last_ns = span(m);
	s->last_iters = m->job[0].point.iters;
	for (i = 0; i < m->njobs; i++) {
		total->iters += m->job[i].point.iters;
		total->sent += m->job[i].point.sent;
		total->lost += m->job[i].point.lost;
	}
	total->ns += s->last_ns;
	/* each connection reports the time of all threads of the process */
	for (end = 0; end < PERF_NENDS; end++)
		total->cpu_ns[end] += m->job[0].point.cpu_ns[end];
	for (i = 0; i < m->njobs && is_latency(&point); i++)
		perf_samples_add(&m->samples, m->job[i].slice, m->job[i].point.iters);
	if (m->out && total->measured && is_latency(&point))
		samples_write(m, &point);
	return 0;
}

/* How many messages of each thread fit @ns at the speed of the latest phase. */
static uint64_t fit(const struct perf_measure *m, const struct perf_point *point,
		    const struct perf_series *s, uint64_t ns)
{
	uint64_t few = perf_iters_for(m->slice_ns, s->last_ns, s->last_iters, 1, MIN_MESSAGES);

	return perf_iters_for(ns, s->last_ns, s->last_iters, few, most_messages(point));
}

/* A percentile may need more messages than fit a point's time, and gets this many times as long. */
#define MOST_TIMES 50

/* Whether a measurement of @budget_ns lacks samples for the chosen percentile, and may go on. */
static bool lacks_samples(const struct perf_measure *m, const struct perf_point *point,
			  uint64_t budget_ns, const struct total *total)
{
	return is_latency(point) && total->ns < MOST_TIMES * budget_ns &&
	       total->iters < perf_percentile_needs(m->opts->percentile);
}

/*
 * Runs phases until @want messages are transferred, or if @want is 0 until about @budget_ns have
 * passed: the rest, less than a quarter of a phase, would be too short to mean anything.
 */
static int run_phases(struct perf_measure *m, const struct perf_point *point, uint64_t want,
		      uint64_t budget_ns, struct perf_series *s, struct total *total)
{
	uint64_t whole = budget_ns < m->slice_ns ? budget_ns : m->slice_ns, left, iters;

	do {
		left = want ? m->slice_ns : total->ns < budget_ns ? budget_ns - total->ns : whole;
		iters = fit(m, point, s, left < m->slice_ns ? left : m->slice_ns);
		if (want && iters > (want - total->iters + m->njobs - 1) / m->njobs)
			iters = (want - total->iters + m->njobs - 1) / m->njobs;
		if (run_phase(m, point, iters, s, total))
			return -1;
	} while (want ? total->iters < want :
			total->ns + whole / 4 < budget_ns ||
				lacks_samples(m, point, budget_ns, total));
	return 0;
}

/* Unmeasured messages; in the first call they also show how fast the fabric is. */
static int warm_up(struct perf_measure *m, const struct perf_point *point, struct perf_series *s)
{
	const struct perf_opts *opts = m->opts;
	bool first = !s->last_iters;
	struct total ignored = { 0 };
	uint64_t want;

	if (first && run_phase(m, point, point->size > LARGE ? 1 : FIRST, s, &ignored))
		return -1;
	want = first ? fit(m, point, s, opts->time_ms * 1000000ull) / 8 : WARM_UP_AGAIN;
	if (opts->warm_up >= 0)
		want = (uint64_t)opts->warm_up;
	else if (first && want <= FIRST)
		want = 0; /* few messages, each of which takes long */
	ignored = (struct total){ 0 };
	return want ? run_phases(m, point, want, 0, s, &ignored) : 0;
}

/* --- repetitions ------------------------------------------------------------ */

/* Number of messages that cross the fabric for each one that the client counts. */
static unsigned int directions(const struct perf_point *point)
{
	return point->metric == PERF_BIDIR ? 2 : 1;
}

static void record(struct perf_measure *m, const struct perf_point *point,
		   const struct total *total, struct perf_series *s, int i)
{
	double messages = (double)total->iters * directions(point);
	int end;

	s->iters = total->iters;
	s->sent += total->sent;
	s->lost += total->lost;
	for (end = 0; end < PERF_NENDS; end++)
		s->cpu[end][i] = (double)total->cpu_ns[end] / 1000 / messages;
	if (is_latency(point))
		perf_samples_lat(&m->samples, m->opts->percentile, &s->lat[i]);
	else
		s->rate[i] = messages * 1e9 / (double)total->ns;
}

int perf_measure_once(struct perf_measure *m, struct perf_xport *const *x, unsigned int n,
		      const struct perf_point *point, struct perf_series *s, int i)
{
	/* the latency of a read or an atomic is its round trip, a ping-pong's is half of it */
	double div = point->test == PERF_READ || perf_is_atomic(point->test) ? 1 : 2;
	struct total total = { .measured = true };
	unsigned int k;

	for (k = 0; k < n; k++)
		m->job[k].x = x[k];
	perf_samples_reset(&m->samples, div, NULL);
	if (warm_up(m, point, s))
		return -1;
	perf_samples_reset(&m->samples, div, m->opts->histogram ? &s->hist : NULL);
	if (run_phases(m, point, m->opts->iters, m->opts->time_ms * 1000000ull, s, &total))
		return -1;
	record(m, point, &total, s, i);
	return 0;
}

/* --- summary ------------------------------------------------------------ */

/* Copies the member at @offset of all repetitions to @column. Returns @column. */
static double *column_of(const struct perf_lat *lat, int n, size_t offset, double *column)
{
	int i;

	for (i = 0; i < n; i++)
		column[i] = *(const double *)((const char *)&lat[i] + offset);
	return column;
}

static void lat_sum(const struct perf_series *s, int n, struct perf_cell *cell)
{
	static const size_t medians[] = {
		offsetof(struct perf_lat, p90),	       offsetof(struct perf_lat, p99),
		offsetof(struct perf_lat, p999),       offsetof(struct perf_lat, mean),
		offsetof(struct perf_lat, min),	       offsetof(struct perf_lat, max),
		offsetof(struct perf_lat, percentile), offsetof(struct perf_lat, chosen),
		offsetof(struct perf_lat, median),
	};
	double column[PERF_REPEAT_MAX];
	size_t i;

	for (i = 0; i < sizeof(medians) / sizeof(medians[0]); i++)
		*(double *)((char *)&cell->lat + medians[i]) =
			perf_median(column_of(s->lat, n, medians[i], column), n);
	/* perf_median() has sorted the medians, which were the last column */
	cell->lat_scatters = perf_repeats_scatter(column, n);
	perf_median(column_of(s->lat, n, offsetof(struct perf_lat, min), column), n);
	cell->lat.min = column[0];
	perf_median(column_of(s->lat, n, offsetof(struct perf_lat, max), column), n);
	cell->lat.max = column[n - 1];
	cell->lat_scatters |= perf_lat_scatters(&cell->lat);
}

void perf_series_sum(struct perf_series *s, const struct perf_point *point, int n,
		     struct perf_cell *cell)
{
	double *cpu = is_latency(point) ? cell->lat_cpu : cell->bw_cpu;
	int end;

	for (end = 0; end < PERF_NENDS; end++)
		cpu[end] = perf_median(s->cpu[end], n);
	if (is_latency(point)) {
		lat_sum(s, n, cell);
		perf_lat_limit(&cell->lat, s->iters);
		cell->lat_iters = s->iters;
		cell->lat_lost = s->lost;
		cell->hist = s->hist;
		return;
	}
	cell->rate = perf_median(s->rate, n);
	cell->bw_scatters = perf_repeats_scatter(s->rate, n);
	cell->bw = cell->rate * (double)point->size / 1e6;
	cell->bw_iters = s->iters;
	cell->bw_sent = s->sent;
	cell->bw_lost = s->lost;
}

static double us_per_message(const struct perf_cell *cell)
{
	return cell->rate > 0 ? 1e6 / cell->rate : 0;
}

void perf_rows_mark(struct perf_row *rows, int i, int n)
{
	static const struct perf_row none;
	const struct perf_row *smaller = i > 0 ? &rows[i - 1] : &none, *larger = &rows[i + 1];
	const struct perf_cell *below, *above;
	struct perf_cell *cell;
	int t, s;

	if (i + 1 >= n || larger->size <= rows[i].size || smaller->size > rows[i].size)
		return;
	for (t = 0; t < PERF_NTESTS; t++) {
		for (s = 0; s < PERF_NSIDES; s++) {
			cell = &rows[i].cell[t][s];
			below = &smaller->cell[t][s];
			above = &larger->cell[t][s];
			cell->lat_scatters |= perf_stands_out(cell->lat.median, below->lat.median,
							      above->lat.median);
			cell->bw_scatters |=
				perf_stands_out(us_per_message(cell), us_per_message(below),
						us_per_message(above));
		}
	}
}
