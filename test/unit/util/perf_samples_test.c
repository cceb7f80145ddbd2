/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Round trips of measurements that are longer than the memory for them. */
#include "perf_samples.h"

#include <criterion/criterion.h>

static struct perf_samples s;

static void fini(void)
{
	perf_samples_fini(&s);
}

TestSuite(perf_samples, .fini = fini);

/* Adds @n samples of 1000 ns, 2000 ns, ... in parts of 7. */
static void add_ramp(uint64_t n)
{
	uint64_t part[7], i, k;

	for (i = 0; i < n; i += k) {
		for (k = 0; k < 7 && i + k < n; k++)
			part[k] = (i + k + 1) * 1000;
		perf_samples_add(&s, part, k);
	}
}

Test(perf_samples, few_are_exact)
{
	struct perf_lat lat;

	cr_assert_eq(perf_samples_init(&s, 100), 0);
	add_ramp(100);
	perf_samples_lat(&s, PERF_MEDIAN, &lat);
	cr_expect_float_eq(lat.min, 1, 1e-9);
	cr_expect_float_eq(lat.median, 50.5, 1e-9);
	cr_expect_float_eq(lat.p90, 90, 1e-9);
	cr_expect_float_eq(lat.p99, 99, 1e-9);
	cr_expect_float_eq(lat.p999, 100, 1e-9);
	cr_expect_float_eq(lat.max, 100, 1e-9);
	cr_expect_float_eq(lat.mean, 50.5, 1e-9);
}

/* The kept samples are evenly spread; minimum, maximum and mean are of all. */
Test(perf_samples, many_are_thinned)
{
	struct perf_lat lat;

	cr_assert_eq(perf_samples_init(&s, 100), 0);
	add_ramp(1601);
	cr_expect_leq(s.n, 100);
	cr_expect_geq(s.n, 50);
	cr_expect_eq(s.ns[1] - s.ns[0], s.ns[s.n - 1] - s.ns[s.n - 2]);
	perf_samples_lat(&s, PERF_MEDIAN, &lat);
	cr_expect_float_eq(lat.min, 1, 1e-9);
	cr_expect_float_eq(lat.max, 1601, 1e-9);
	cr_expect_float_eq(lat.mean, 801, 1e-6);
	cr_expect_float_eq(lat.median, 801, 32);
	cr_expect_float_eq(lat.p99, 1585, 32);
}

/* The median of an even number is between two samples; other percentiles are samples. */
Test(perf_samples, latency_at_the_chosen_percentile)
{
	struct perf_lat lat;

	cr_assert_eq(perf_samples_init(&s, 1000), 0);
	add_ramp(1000);
	perf_samples_lat(&s, PERF_MEDIAN, &lat);
	cr_expect_float_eq(lat.percentile, 50, 1e-9);
	cr_expect_float_eq(lat.chosen, 500.5, 1e-9);
	perf_samples_lat(&s, 9990, &lat);
	cr_expect_float_eq(lat.percentile, 99.9, 1e-9);
	cr_expect_float_eq(lat.chosen, 999, 1e-9);
	cr_expect_float_eq(lat.median, 500.5, 1e-9);
	perf_samples_lat(&s, 1, &lat);
	cr_expect_float_eq(lat.chosen, 1, 1e-9);
}

Test(perf_samples, reset_forgets)
{
	struct perf_lat lat;

	cr_assert_eq(perf_samples_init(&s, 100), 0);
	add_ramp(1000);
	perf_samples_reset(&s, 2, NULL);
	perf_samples_lat(&s, PERF_MEDIAN, &lat);
	cr_expect_eq(lat.max, 0);
	add_ramp(3);
	perf_samples_lat(&s, PERF_MEDIAN, &lat);
	cr_expect_float_eq(lat.min, 0.5, 1e-9);
	cr_expect_float_eq(lat.median, 1, 1e-9);
	cr_expect_float_eq(lat.mean, 1, 1e-9);
	cr_expect_float_eq(lat.max, 1.5, 1e-9);
}

Test(perf_samples, histogram_has_all)
{
	struct perf_hist hist = { .count = { 0 } };

	cr_assert_eq(perf_samples_init(&s, 4), 0);
	perf_samples_reset(&s, 2, &hist);
	perf_samples_add(&s, (const uint64_t[]){ 2048, 2049, 2048 }, 3);
	perf_samples_add(&s, (const uint64_t[]){ 4096, 1, 0, UINT64_MAX }, 4);
	cr_expect_eq(hist.count[40], 3); /* 1024 ns */
	cr_expect_eq(hist.count[44], 1);
	cr_expect_eq(hist.count[0], 2);
	cr_expect_eq(hist.count[PERF_HIST_BINS - 1], 1);
	cr_expect_float_eq(perf_hist_bound(40), 1.024, 1e-9);
	cr_expect_eq(perf_hist_bound(0), 0);
}
