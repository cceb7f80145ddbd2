/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers for datperf: size lists, order statistics and test patterns. Uses no fabric and no DAT
 * type, so that unit tests can call all of it.
 */
#ifndef PERF_STAT_H
#define PERF_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_SIZE_MAX ((size_t)1 << 30)
#define PERF_MAX_SIZES 128

/* Latencies of one measured point, in microseconds; a percentile may be NAN, unknown. */
struct perf_lat {
	double min;
	double median;
	double p90;
	double p99;
	double p999;
	double max;
	double mean;
	double percentile, chosen; /* see perf_samples_lat() */
};

/* Percentiles are in hundredths of a percent. */
#define PERF_MEDIAN 5000
#define PERF_PERCENTILE_END 10000

/*
 * Numbers of samples by size, in bins with the lower bounds 2^(i/4) ns. The last bin has no upper
 * bound.
 */
#define PERF_HIST_BINS 160
struct perf_hist {
	uint64_t count[PERF_HIST_BINS];
};

/*
 * Reads one size: decimal digits and an optional k, m or g (powers of 1024,
 * either case). Returns 0, or -1 when @text is anything else or above
 * PERF_SIZE_MAX.
 */
int perf_size_parse(const char *text, size_t *size);

/*
 * Reads a list of sizes: single sizes and ranges "low-high" in powers of two, separated by commas
 * ("1-64,1M"); 1 follows 0. Writes at most @max of them, in the order given, and returns
 * their number; -1 when a part cannot be read or there are more than @max.
 */
int perf_sizes_parse(const char *text, size_t *sizes, int max);

/* Writes @size with the largest suffix that divides it ("4K", "1000"). */
const char *perf_size_name(size_t size, char *buf, size_t len);

/* Median of @n values, which are reordered; 0 when @n is 0. */
double perf_median(double *values, int n);

/*
 * Reads a percentile of at most two decimals from 0.01 to 99.99. Returns 0, or -1 for anything
 * else.
 */
int perf_percentile_parse(const char *text, unsigned int *percentile);

/* Nearest rank: of @n > 0 sorted values, the least that is not exceeded by @percentile of all. */
uint64_t perf_percentile(const uint64_t *sorted, size_t n, unsigned int percentile);

/* The number of samples from which @percentile has a meaning: ten exceed it. 0 for the median. */
uint64_t perf_percentile_needs(unsigned int percentile);

/* Makes the percentiles of @lat unknown for which @n samples are too few. */
void perf_lat_limit(struct perf_lat *lat, uint64_t n);

/* Statistics of @n samples in nanoseconds (sorted in place), divided by @div. */
void perf_lat_of(uint64_t *samples, size_t n, double div, struct perf_lat *lat);

/*
 * Whether a latency is unsteady: the median is more than twice the minimum, or the 99th
 * percentile more than eight times the median.
 */
bool perf_lat_scatters(const struct perf_lat *lat);

/* Whether the largest of @n sorted values is more than half again as large as the least. */
bool perf_repeats_scatter(const double *values, int n);

/*
 * Whether a size, which took @value, took more than four times as long as both the next @smaller
 * (0: there is none) and the next @larger size.
 */
bool perf_stands_out(double value, double smaller, double larger);

void perf_hist_add(struct perf_hist *hist, double ns);
/* Lower bound of a bin in microseconds; the first bin's is 0. */
double perf_hist_bound(int bin);

/*
 * How many repetitions fill @budget_ns when @done of them took @took_ns; at
 * least @low, at most @high.
 */
uint64_t perf_iters_for(uint64_t budget_ns, uint64_t took_ns, uint64_t done, uint64_t low,
			uint64_t high);

/* Fills @len bytes with the pattern of message @index of a run with @seed. */
void perf_pattern_fill(void *buf, size_t len, uint32_t seed, uint32_t index);

/* Returns the offset of the first byte that differs from the pattern, or -1. */
long perf_pattern_check(const void *buf, size_t len, uint32_t seed, uint32_t index);

#endif
