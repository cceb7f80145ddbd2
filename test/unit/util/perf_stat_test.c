/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's size lists, statistics and patterns. */
#include "perf_stat.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(perf_size, reads_digits_and_suffixes)
{
	static const struct {
		const char *text;
		size_t size;
	} good[] = {
		{ "0", 0 },	{ "1", 1 },	   { "1000", 1000 },  { "4k", 4096 },
		{ "4K", 4096 }, { "1M", 1048576 }, { "1g", 1073741824 },
	};
	size_t i, size;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(perf_size_parse(good[i].text, &size), 0, "%s", good[i].text);
		cr_assert_eq(size, good[i].size, "%s", good[i].text);
	}
}

Test(perf_size, refuses_what_is_no_size)
{
	static const char *const bad[] = {
		"",    "-1",   "+1", " 1",	 "1 ",
		"K",   "1KB", "1.5", "0x10", "2g", "1073741825", "99999999999999999999",
		"4,8",
	};
	size_t i, size = 77;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(perf_size_parse(bad[i], &size), -1, "\"%s\"", bad[i]);
	cr_assert_eq(size, 77, "written although there was no size");
}

Test(perf_sizes, reads_lists_and_ranges_in_order)
{
	static const size_t want[] = { 1, 2, 4, 1048576, 3, 6, 12 };
	size_t got[16];
	int n = perf_sizes_parse("1-4,1M,3-12", got, 16);

	cr_assert_eq(n, 7);
	cr_assert_arr_eq(got, want, sizeof(want));
}

Test(perf_sizes, one_follows_zero)
{
	static const size_t want[] = { 0, 1, 2, 4, 0 };
	size_t got[16];

	cr_assert_eq(perf_sizes_parse("0-4,0", got, 16), 5);
	cr_assert_arr_eq(got, want, sizeof(want));
}

Test(perf_sizes, range_ends_at_the_last_power_below_its_end)
{
	size_t got[16];

	cr_assert_eq(perf_sizes_parse("1-7", got, 16), 3);
	cr_assert_eq(got[2], 4);
}

Test(perf_sizes, default_range_has_23_sizes)
{
	size_t got[64];

	cr_assert_eq(perf_sizes_parse("1-4M", got, 64), 23);
	cr_assert_eq(got[22], 4u << 20);
}

Test(perf_sizes, refuses_bad_lists)
{
	static const char *const bad[] = {
		"", ",", "1,", ",1", "1,,2", "4-1", "1-", "-4", "1-4-8", "1;2",
	};
	size_t got[16], i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(perf_sizes_parse(bad[i], got, 16), -1, "\"%s\"", bad[i]);
}

Test(perf_sizes, refuses_more_than_fit)
{
	size_t got[5] = { 0, 0, 0, 0, 99 };

	cr_assert_eq(perf_sizes_parse("1,2,3,4", got, 4), 4);
	cr_assert_eq(perf_sizes_parse("1,2,3,4,5", got, 4), -1);
	cr_assert_eq(got[4], 99);
}

Test(perf_size, name_takes_the_largest_suffix_that_divides)
{
	char buf[32];

	cr_assert_str_eq(perf_size_name(1, buf, sizeof(buf)), "1");
	cr_assert_str_eq(perf_size_name(1000, buf, sizeof(buf)), "1000");
	cr_assert_str_eq(perf_size_name(1024, buf, sizeof(buf)), "1K");
	cr_assert_str_eq(perf_size_name(1536, buf, sizeof(buf)), "1536");
	cr_assert_str_eq(perf_size_name(4 << 20, buf, sizeof(buf)), "4M");
	cr_assert_str_eq(perf_size_name(1 << 30, buf, sizeof(buf)), "1G");
}

Test(perf_percentile, reads_up_to_two_decimals)
{
	static const struct {
		const char *text;
		unsigned int percentile;
	} good[] = {
		{ "50", 5000 }, { "99.9", 9990 }, { "99.99", 9999 }, { "0.01", 1 }, { "5.0", 500 }
	};
	unsigned int got;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_expect_eq(perf_percentile_parse(good[i].text, &got), 0, "%s", good[i].text);
		cr_expect_eq(got, good[i].percentile, "%s: %u", good[i].text, got);
	}
}

Test(perf_percentile, refuses_anything_else)
{
	static const char *const bad[] = {
		"", ".", "0", "0.001", "100", "99.999", "-1", "+5", " 5", "5 ", "1e1", "0x10",
		"5.5.5", "p99", "99%", "nan", "inf",
	};
	unsigned int got = 77;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(perf_percentile_parse(bad[i], &got), -1, "\"%s\"", bad[i]);
	cr_expect_eq(got, 77);
}

Test(perf_percentile, is_the_nearest_rank)
{
	static const uint64_t sorted[] = { 10, 20, 30, 40 };

	cr_expect_eq(perf_percentile(sorted, 4, 1), 10);
	cr_expect_eq(perf_percentile(sorted, 4, 2500), 10);
	cr_expect_eq(perf_percentile(sorted, 4, 2501), 20);
	cr_expect_eq(perf_percentile(sorted, 4, 7500), 30);
	cr_expect_eq(perf_percentile(sorted, 4, 9999), 40);
}

Test(perf_median, is_the_middle_or_the_mean_of_the_two)
{
	double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 2 }, one[] = { 7 };

	cr_assert_eq(perf_median(odd, 3), 5);
	cr_assert_eq(perf_median(even, 4), 2.5);
	cr_assert_eq(perf_median(one, 1), 7);
	cr_assert_eq(perf_median(one, 0), 0);
}

Test(perf_lat, nearest_rank_of_a_hundred)
{
	uint64_t samples[100];
	struct perf_lat lat;
	int i;

	for (i = 0; i < 100; i++)
		samples[i] = (100 - i) * 1000; /* 100 us down to 1 us */
	perf_lat_of(samples, 100, 1, &lat);
	cr_assert_float_eq(lat.min, 1, 1e-9);
	cr_assert_float_eq(lat.median, 50.5, 1e-9);
	cr_assert_float_eq(lat.p90, 90, 1e-9);
	cr_assert_float_eq(lat.p99, 99, 1e-9);
	cr_assert_float_eq(lat.p999, 100, 1e-9);
	cr_assert_float_eq(lat.max, 100, 1e-9);
	cr_assert_float_eq(lat.mean, 50.5, 1e-9);
}

Test(perf_lat, scatters_far_from_the_minimum_or_in_the_tail)
{
	cr_expect(!perf_lat_scatters(&(struct perf_lat){ .min = 1, .median = 2, .p99 = 16 }));
	cr_expect(perf_lat_scatters(&(struct perf_lat){ .min = 1, .median = 2.01, .p99 = 3 }));
	cr_expect(perf_lat_scatters(&(struct perf_lat){ .min = 1, .median = 1, .p99 = 8.01 }));
}

Test(perf_lat, repetitions_scatter)
{
	cr_expect(!perf_repeats_scatter((const double[]){ 2, 1.8, 3 }, 3));
	cr_expect(perf_repeats_scatter((const double[]){ 2, 1.8, 3.01 }, 3));
	cr_expect(!perf_repeats_scatter((const double[]){ 5 }, 1));
}

Test(perf_lat, stands_out_from_both_neighbours)
{
	cr_expect(perf_stands_out(4.1, 1, 1));
	cr_expect(!perf_stands_out(4, 1, 1));
	cr_expect(!perf_stands_out(4.1, 1, 2));
	cr_expect(!perf_stands_out(4.1, 2, 1));
	cr_expect(perf_stands_out(4.1, 0, 1));
	cr_expect(!perf_stands_out(4.1, 1, 0));
}

Test(perf_lat, half_round_trips)
{
	uint64_t samples[] = { 10000, 30000, 20000 };
	struct perf_lat lat;

	perf_lat_of(samples, 3, 2, &lat);
	cr_assert_float_eq(lat.min, 5, 1e-9);
	cr_assert_float_eq(lat.median, 10, 1e-9);
	cr_assert_float_eq(lat.p99, 15, 1e-9);
}

Test(perf_lat, single_sample_and_none)
{
	uint64_t one[] = { 4000 };
	struct perf_lat lat;

	perf_lat_of(one, 1, 1, &lat);
	cr_assert_float_eq(lat.min, 4, 1e-9);
	cr_assert_float_eq(lat.p99, 4, 1e-9);
	perf_lat_of(one, 0, 1, &lat);
	cr_assert_eq(lat.median, 0);
}

Test(perf_lat, no_overflow_near_the_top)
{
	uint64_t samples[] = { UINT64_MAX, UINT64_MAX };
	struct perf_lat lat;

	perf_lat_of(samples, 2, 1, &lat);
	cr_assert_float_eq(lat.median, (double)UINT64_MAX / 1000, 1e6);
}

Test(perf_iters, fill_the_budget_within_limits)
{
	/* 16 iterations took 16 us, so 1 ms is enough for a thousand */
	cr_assert_eq(perf_iters_for(1000000, 16000, 16, 8, 100000), 1000);
	cr_assert_eq(perf_iters_for(1000000, 1600000000, 16, 8, 100000), 8);
	cr_assert_eq(perf_iters_for(1000000000, 16, 16, 8, 5000), 5000);
	cr_assert_eq(perf_iters_for(1000, 0, 16, 8, 5000), 5000);
}

Test(perf_pattern, every_byte_is_checked)
{
	unsigned char buf[37];
	size_t len, i;

	for (len = 1; len <= sizeof(buf); len++) {
		perf_pattern_fill(buf, len, 3, 4);
		cr_assert_eq(perf_pattern_check(buf, len, 3, 4), -1);
		for (i = 0; i < len; i++) {
			buf[i] ^= 0x10;
			cr_assert_eq(perf_pattern_check(buf, len, 3, 4), (long)i, "length %zu",
				     len);
			buf[i] ^= 0x10;
		}
	}
}

Test(perf_pattern, stays_within_its_length)
{
	unsigned char buf[24];

	memset(buf, 0xee, sizeof(buf));
	perf_pattern_fill(buf, 13, 1, 1);
	cr_assert_eq(buf[13], 0xee);
}

Test(perf_pattern, stale_or_misplaced_messages_differ)
{
	unsigned char buf[64];

	perf_pattern_fill(buf, sizeof(buf), 7, 2);
	cr_assert_neq(perf_pattern_check(buf, sizeof(buf), 8, 2), -1);
	cr_assert_neq(perf_pattern_check(buf, sizeof(buf), 7, 3), -1);
	memmove(buf, buf + 8, sizeof(buf) - 8);
	cr_assert_neq(perf_pattern_check(buf, sizeof(buf), 7, 2), -1);
}

Test(stat, a_percentile_needs_ten_larger_samples)
{
	cr_expect_eq(perf_percentile_needs(PERF_MEDIAN), 0);
	cr_expect_eq(perf_percentile_needs(9000), 100);
	cr_expect_eq(perf_percentile_needs(9900), 1000);
	cr_expect_eq(perf_percentile_needs(9990), 10000);
	cr_expect_eq(perf_percentile_needs(9999), 100000);
	cr_expect_eq(perf_percentile_needs(1), 11);
}

Test(stat, percentiles_of_few_samples_are_unknown)
{
	const struct perf_lat all = { .median = 1, .p90 = 2, .p99 = 3, .p999 = 4,
				      .percentile = 99.99, .chosen = 5 };
	struct perf_lat lat = all;

	perf_lat_limit(&lat, 100000);
	cr_expect(!memcmp(&lat, &all, sizeof(lat)));
	perf_lat_limit(&lat, 99999);
	cr_expect(isnan(lat.chosen) && lat.p999 == 4);
	perf_lat_limit(&lat, 999);
	cr_expect(isnan(lat.p999) && isnan(lat.p99) && lat.p90 == 2);
	perf_lat_limit(&lat, 99);
	cr_expect(isnan(lat.p90) && lat.median == 1);
	lat = (struct perf_lat){ .percentile = 50, .chosen = 5 };
	perf_lat_limit(&lat, 1);
	cr_expect_eq(lat.chosen, 5);
}
