/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a point is measured: over a fabric where a message takes a given time, without that time
 * passing.
 */
#include "perf_measure.h"
#include "perf_stop.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define MS 1000000ull
#define PHASES 4096

static struct perf_opts opts;
static struct perf_measure m;
static struct perf_series series;
static struct perf_point point;
static struct perf_xport x[3];

static uint64_t message_ns; /* the time of a message */
static uint64_t expected[PHASES];
static uint64_t phase[PHASES]; /* messages of each phase */
static int nphases, fail_at, stop_at;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int __wrap_perf_run_point(struct perf_xport *xp, struct perf_point *p);
int __wrap_perf_run_point(struct perf_xport *xp, struct perf_point *p)
{
	uint64_t i;
	int nth;

	pthread_mutex_lock(&lock);
	nth = nphases++;
	pthread_mutex_unlock(&lock);
	cr_assert_lt(nth, PHASES);
	cr_assert_gt(p->iters, 0);
	phase[nth] = p->iters;
	expected[nth] = p->expected_ns;
	if (nth + 1 == fail_at)
		return perf_fail(xp, "the fabric failed");
	if (nth + 1 == stop_at)
		perf_stop = SIGINT;
	/* connection i begins i us later */
	p->begin_ns = MS + 1000 * (uint64_t)(xp - x);
	p->total_ns = p->iters * message_ns;
	p->cpu_ns[PERF_END_CLIENT] = p->iters * 3000;
	p->cpu_ns[PERF_END_SERVER] = p->iters * 1000;
	for (i = 0; p->metric == PERF_LAT && i < p->iters; i++)
		p->samples[i] = message_ns;
	return 0;
}

/* A stand-in, which the names of tests are linked with. */
const char *perf_dat_api(void)
{
	return "9.9";
}

static void set_up(void)
{
	opts = (struct perf_opts){ .time_ms = 40, .timeout_ms = 10000, .repeat = 1, .warm_up = -1 };
	opts.threads = 1;
	opts.percentile = PERF_MEDIAN;
	point = (struct perf_point){ .test = PERF_SEND, .metric = PERF_BW, .size = 8 };
	memset(&series, 0, sizeof(series));
	message_ns = 10000;
	nphases = fail_at = stop_at = 0;
	perf_stop = 0;
}

static void tear_down(void)
{
	perf_measure_fini(&m);
}

TestSuite(perf_measure, .init = set_up, .fini = tear_down);

static int once(int i)
{
	struct perf_xport *const all[] = { &x[0], &x[1], &x[2] };

	perf_measure_fini(&m);
	cr_assert_eq(perf_measure_init(&m, &opts), 0);
	return perf_measure_once(&m, all, opts.threads, &point, &series, i);
}

static uint64_t longest(void)
{
	uint64_t most = 0;
	int i;

	for (i = 0; i < nphases; i++)
		most = phase[i] > most ? phase[i] : most;
	return most;
}

Test(perf_measure, short_measurement_is_one_phase_after_the_warm_up)
{
	cr_expect_eq(once(0), 0);
	cr_expect_eq(nphases, 3);
	cr_expect_eq(phase[0], 4);
	cr_expect_eq(phase[1], 4000 / 8);
	cr_expect_eq(phase[2], 4000);
	cr_expect_eq(series.iters, 4000);
}

Test(perf_measure, repetition_needs_less_warm_up)
{
	once(0);
	nphases = 0;
	cr_expect_eq(once(1), 0);
	cr_expect_eq(nphases, 2);
	cr_expect_eq(phase[0], 16);
	cr_expect_eq(phase[1], 4000);
}

Test(perf_measure, long_measurement_has_phases_of_a_second)
{
	opts.time_ms = 4000;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(series.iters, 400000);
	cr_expect_leq(longest() * message_ns, 1000 * MS);
}

Test(perf_measure, phases_are_shorter_than_a_short_timeout)
{
	opts.time_ms = 4000;
	opts.timeout_ms = 1000;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(series.iters, 400000);
	cr_expect_leq(longest() * message_ns, 250 * MS);
}

Test(perf_measure, server_learns_how_long_a_phase_takes)
{
	cr_expect_eq(once(0), 0);
	cr_expect_eq(expected[0], 0);
	cr_expect_eq(expected[1], phase[1] * message_ns);
	cr_expect_eq(expected[2], phase[2] * message_ns);
}

Test(perf_measure, slow_messages_go_one_by_one)
{
	point.size = 1 << 30;
	message_ns = 3000 * MS;
	opts.time_ms = 20000;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(longest(), 1);
	cr_expect_geq(series.iters, 5);
}

Test(perf_measure, number_of_messages_is_exact)
{
	opts.iters = 250001;
	point.metric = PERF_LAT;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(series.iters, 250001);
	cr_expect_leq(longest(), 100000);
	opts.iters = 3;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(series.iters, 3);
}

Test(perf_measure, warm_up_is_as_long_as_requested)
{
	opts.warm_up = 77;
	once(0);
	cr_expect_eq(phase[1], 77);
	nphases = 0;
	once(1);
	cr_expect_eq(phase[0], 77);
	opts.warm_up = nphases = 0;
	once(2);
	cr_expect_eq(nphases, 1);
}

Test(perf_measure, failure_ends_a_measurement)
{
	for (fail_at = 1; fail_at <= 3; fail_at++) {
		memset(&series, 0, sizeof(series));
		nphases = 0;
		cr_expect_eq(once(0), -1);
		cr_expect_eq(nphases, fail_at);
	}
	cr_expect_str_eq(x[0].err, "the fabric failed");
}

Test(perf_measure, signal_ends_a_measurement_after_a_phase)
{
	opts.time_ms = 4000;
	stop_at = 4;
	cr_expect_eq(once(0), -1);
	cr_expect_eq(nphases, 4);
	cr_expect_str_eq(x[0].err, "");
}

/*
 * Threads
 */

Test(perf_measure, threads_share_the_messages)
{
	opts.threads = 3;
	opts.iters = 100;
	opts.warm_up = 0;
	cr_expect_eq(once(0), 0);
	cr_expect_eq(nphases, 2 * 3);
	cr_expect_eq(phase[3], 34);
	cr_expect_eq(phase[5], 34);
	cr_expect_eq(series.iters, 102);
}

/* The time is from the first begin to the last end, 2 us more than a thread's. */
Test(perf_measure, threads_add_up)
{
	struct perf_cell cell = { 0 };

	point.size = 1000;
	opts.threads = 3;
	opts.iters = 300;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.bw, 300 * 1000 / (100 * 10 + 2.0), 1e-6);
	/* each connection reports the time of the whole process: 3 us for each of 100 messages */
	cr_expect_float_eq(cell.bw_cpu[PERF_END_CLIENT], 1, 1e-9);
}

Test(perf_measure, samples_of_all_threads_count)
{
	uint64_t sum = 0;
	int i;

	opts.threads = 2;
	opts.iters = 20;
	opts.histogram = true;
	point.metric = PERF_LAT;
	cr_expect_eq(once(0), 0);
	for (i = 0; i < PERF_HIST_BINS; i++)
		sum += series.hist.count[i];
	cr_expect_eq(sum, 20);
}

Test(perf_measure, failure_of_any_thread_fails)
{
	opts.threads = 3;
	for (fail_at = 1; fail_at <= 3; fail_at++) {
		memset(&series, 0, sizeof(series));
		nphases = 0;
		cr_expect_eq(once(0), -1);
	}
}

/*
 * Summaries
 */

Test(perf_measure, bandwidth_and_rate)
{
	struct perf_cell cell = { 0 };

	point.size = 1000;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.bw, 100, 1e-6);
	cr_expect_float_eq(cell.rate, 100000, 1e-3);
	cr_expect_float_eq(cell.bw_cpu[PERF_END_CLIENT], 3, 1e-9);
	cr_expect_float_eq(cell.bw_cpu[PERF_END_SERVER], 1, 1e-9);
	cr_expect(!cell.bw_scatters);
	cr_expect_eq(cell.lat_iters, 0);
}

Test(perf_measure, messages_without_bytes_have_a_rate)
{
	struct perf_cell cell = { .bw = 1 };

	point.size = 0;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.bw, 0, 1e-9);
	cr_expect_float_eq(cell.rate, 100000, 1e-3);
}

Test(perf_measure, both_directions_count)
{
	struct perf_cell cell = { 0 };

	point.size = 1000;
	point.metric = PERF_BIDIR;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.bw, 200, 1e-6);
	cr_expect_float_eq(cell.rate, 200000, 1e-3);
	cr_expect_float_eq(cell.bw_cpu[PERF_END_CLIENT], 1.5, 1e-9);
}

/* Measures the latency for @time_ms. Returns the number of samples. */
static uint64_t samples_at(unsigned int percentile, unsigned int time_ms)
{
	struct perf_cell cell = { 0 };

	series = (struct perf_series){ 0 };
	opts.percentile = percentile;
	opts.time_ms = time_ms;
	point.metric = PERF_LAT;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_eq(isnan(cell.lat.chosen), cell.lat_iters < perf_percentile_needs(percentile));
	return cell.lat_iters;
}

/* 40 ms are 4,000 round trips of the stand-in. */
Test(perf_measure, a_percentile_takes_as_long_as_it_needs)
{
	cr_expect(samples_at(PERF_MEDIAN, 40) < 5000);
	cr_expect(samples_at(9900, 40) < 5000);
	cr_expect(samples_at(9990, 40) >= 10000);
	cr_expect(samples_at(9990, 40) < 15000);
}

Test(perf_measure, a_percentile_has_a_limit_of_time)
{
	const uint64_t n = samples_at(9999, 1);

	cr_expect(n >= 4000 && n < 10000, "%llu", (unsigned long long)n);
}

Test(perf_measure, latency_is_half_a_round_trip_except_of_reads_and_atomics)
{
	struct perf_cell cell = { 0 };

	point.metric = PERF_LAT;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.lat.median, 5, 1e-9);
	cr_expect_float_eq(cell.lat.p99, 5, 1e-9);
	cr_expect(isnan(cell.lat.p999), "of %llu samples", (unsigned long long)cell.lat_iters);
	cr_expect_float_eq(cell.lat_cpu[PERF_END_CLIENT], 3, 1e-9);
	point.test = PERF_READ;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.lat.median, 10, 1e-9);
	point.test = PERF_CSWAP;
	cr_expect_eq(once(0), 0);
	perf_series_sum(&series, &point, 1, &cell);
	cr_expect_float_eq(cell.lat.median, 10, 1e-9);
}

Test(perf_measure, repetitions_that_differ_are_marked)
{
	struct perf_cell cell = { 0 };

	once(0);
	message_ns = 14000;
	once(1);
	perf_series_sum(&series, &point, 2, &cell);
	cr_expect(!cell.bw_scatters);
	message_ns = 10000;
	once(0);
	message_ns = 16000;
	once(1);
	perf_series_sum(&series, &point, 2, &cell);
	cr_expect(cell.bw_scatters);
}

/* Of the repetitions' percentiles, the median. */
Test(perf_measure, repetitions_at_another_percentile)
{
	struct perf_cell cell = { 0 };
	int i;

	opts.percentile = 9000;
	point.metric = PERF_LAT;
	for (i = 0; i < 3; i++) {
		message_ns = 10000 + 2000 * (uint64_t)i;
		cr_expect_eq(once(i), 0);
		series.lat[i].median = 1;
	}
	perf_series_sum(&series, &point, 3, &cell);
	cr_expect_float_eq(cell.lat.percentile, 90, 1e-9);
	cr_expect_float_eq(cell.lat.chosen, 6, 1e-9);
}

Test(perf_measure, histogram_has_no_sample_of_the_warm_up)
{
	uint64_t sum = 0;
	int i;

	opts.histogram = true;
	point.metric = PERF_LAT;
	once(0);
	for (i = 0; i < PERF_HIST_BINS; i++)
		sum += series.hist.count[i];
	cr_expect_eq(sum, series.iters);
	opts.histogram = false;
	once(1);
	cr_expect_eq(sum, series.iters);
}

/*
 * Neighbours
 */

/* Rows in which the figures of the second stand out. */
static void three_rows(struct perf_row rows[3])
{
	struct perf_cell *cell;
	int i;

	memset(rows, 0, 3 * sizeof(rows[0]));
	for (i = 0; i < 3; i++) {
		rows[i].size = 8u << i;
		cell = &rows[i].cell[PERF_WRITE][PERF_SIDE_RAW];
		cell->lat.median = i == 1 ? 20 : 1;
		cell->rate = i == 1 ? 1000 : 20000;
	}
}

static bool is_marked(const struct perf_row *row)
{
	const struct perf_cell *cell = &row->cell[PERF_WRITE][PERF_SIDE_RAW];

	cr_expect_eq(cell->lat_scatters, cell->bw_scatters);
	cr_expect(!row->cell[PERF_SEND][PERF_SIDE_DAT].lat_scatters);
	return cell->lat_scatters;
}

Test(perf_measure, a_row_that_stands_out_is_marked)
{
	struct perf_row rows[3];
	int i;

	three_rows(rows);
	for (i = 0; i < 3; i++)
		perf_rows_mark(rows, i, 3);
	cr_expect(!is_marked(&rows[0]));
	cr_expect(is_marked(&rows[1]));
	cr_expect(!is_marked(&rows[2]));
}

Test(perf_measure, the_first_row_has_one_neighbour)
{
	struct perf_row rows[3];

	three_rows(rows);
	perf_rows_mark(rows + 1, 0, 2);
	cr_expect(is_marked(&rows[1]));
}

Test(perf_measure, without_a_larger_size_nothing_is_marked)
{
	struct perf_row rows[3];

	three_rows(rows);
	perf_rows_mark(rows, 1, 2);
	rows[2].size = 16;
	perf_rows_mark(rows, 1, 3);
	rows[2].size = 32;
	rows[0].size = 1024;
	perf_rows_mark(rows, 1, 3);
	cr_expect(!is_marked(&rows[1]));
}
