/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers for datperf: size lists, order statistics and test patterns. */
#include "perf_stat.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a size at *@text and moves *@text past it. */
static int size_scan(const char **text, size_t *size)
{
	unsigned long long value;
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -1;
	value = strtoull(*text, &end, 10);
	switch (tolower((unsigned char)*end)) {
	case 'g':
		shift += 10;
		/* fall through */
	case 'm':
		shift += 10;
		/* fall through */
	case 'k':
		shift += 10;
		end++;
	}
	if (value > (PERF_SIZE_MAX >> shift))
		return -1;
	*size = (size_t)value << shift;
	*text = end;
	return 0;
}

int perf_size_parse(const char *text, size_t *size)
{
	size_t value;

	if (size_scan(&text, &value) || *text)
		return -1;
	*size = value;
	return 0;
}

int perf_sizes_parse(const char *text, size_t *sizes, int max)
{
	size_t low, high;
	int n = 0;

	for (;;) {
		if (size_scan(&text, &low))
			return -1;
		high = low;
		if (*text == '-') {
			text++;
			if (size_scan(&text, &high) || high < low)
				return -1;
		}
		for (; low <= high; low = low ? 2 * low : 1) {
			if (n == max)
				return -1;
			sizes[n++] = low;
		}
		if (*text == '\0')
			return n;
		if (*text++ != ',')
			return -1;
	}
}

const char *perf_size_name(size_t size, char *buf, size_t len)
{
	static const char suffix[] = { 0, 'K', 'M', 'G' };
	unsigned int i = 0;

	while (i < 3 && size && size % 1024 == 0) {
		size /= 1024;
		i++;
	}
	snprintf(buf, len, i ? "%zu%c" : "%zu", size, suffix[i]);
	return buf;
}

static int double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int u64_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double perf_median(double *values, int n)
{
	if (n <= 0)
		return 0;
	qsort(values, n, sizeof(*values), double_cmp);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int perf_percentile_parse(const char *text, unsigned int *percentile)
{
	char *end;
	double value = strtod(text, &end) * 100;

	/* strtod() would also read a sign, an exponent and hexadecimal digits */
	if (!*text || *end || text[strspn(text, "0123456789.")] || value < 1 ||
	    value >= PERF_PERCENTILE_END || fabs(value - round(value)) > 1e-6)
		return -1;
	*percentile = (unsigned int)round(value);
	return 0;
}

uint64_t perf_percentile(const uint64_t *sorted, size_t n, unsigned int percentile)
{
	return sorted[(n * percentile + PERF_PERCENTILE_END - 1) / PERF_PERCENTILE_END - 1];
}

uint64_t perf_percentile_needs(unsigned int percentile)
{
	const uint64_t end = PERF_PERCENTILE_END;

	return percentile == PERF_MEDIAN ? 0 :
					   (10 * end + end - percentile - 1) / (end - percentile);
}

void perf_lat_limit(struct perf_lat *lat, uint64_t n)
{
	const struct {
		unsigned int percentile;
		double *value;
	} of[] = {
		{ 9000, &lat->p90 }, { 9900, &lat->p99 }, { 9990, &lat->p999 },
		{ (unsigned int)lround(lat->percentile * 100), &lat->chosen },
	};
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (n < perf_percentile_needs(of[i].percentile))
			*of[i].value = NAN;
}

void perf_lat_of(uint64_t *samples, size_t n, double div, struct perf_lat *lat)
{
	double sum = 0, scale = 1000 * div;
	size_t i;

	memset(lat, 0, sizeof(*lat));
	if (!n)
		return;
	qsort(samples, n, sizeof(*samples), u64_cmp);
	for (i = 0; i < n; i++)
		sum += samples[i];
	lat->min = samples[0] / scale;
	lat->p90 = perf_percentile(samples, n, 9000) / scale;
	lat->p99 = perf_percentile(samples, n, 9900) / scale;
	lat->p999 = perf_percentile(samples, n, 9990) / scale;
	lat->max = samples[n - 1] / scale;
	lat->mean = sum / n / scale;
	lat->median = n % 2 ? samples[n / 2] / scale :
			      ((double)samples[n / 2 - 1] + samples[n / 2]) / 2 / scale;
}

bool perf_lat_scatters(const struct perf_lat *lat)
{
	return lat->median > 2 * lat->min || lat->p99 > 8 * lat->median;
}

bool perf_repeats_scatter(const double *values, int n)
{
	return n > 1 && values[n - 1] > 1.5 * values[0];
}

bool perf_stands_out(double value, double smaller, double larger)
{
	return value > 4 * smaller && value > 4 * larger && larger > 0;
}

void perf_hist_add(struct perf_hist *hist, double ns)
{
	int bin = ns > 1 ? (int)(4 * log2(ns)) : 0;

	hist->count[bin < PERF_HIST_BINS ? bin : PERF_HIST_BINS - 1]++;
}

double perf_hist_bound(int bin)
{
	return bin ? exp2(bin / 4.0) / 1000 : 0;
}

uint64_t perf_iters_for(uint64_t budget_ns, uint64_t took_ns, uint64_t done, uint64_t low,
			uint64_t high)
{
	double n;

	if (!took_ns)
		took_ns = 1;
	n = (double)budget_ns * done / took_ns;
	if (n < low)
		return low;
	return n > high ? high : (uint64_t)n;
}

/* One step of a multiplicative hash: distinct for each seed, message, word. */
static uint64_t pattern_word(uint64_t base, uint64_t word)
{
	uint64_t v = (base + word) * 0x9e3779b97f4a7c15ull;

	return v ^ (v >> 29);
}

static uint64_t pattern_base(uint32_t seed, uint32_t index)
{
	return pattern_word((uint64_t)seed << 32 | index, 0x5bd1e995);
}

void perf_pattern_fill(void *buf, size_t len, uint32_t seed, uint32_t index)
{
	uint64_t base = pattern_base(seed, index), word;
	unsigned char *out = buf;
	size_t i, n = len / sizeof(word);

	for (i = 0; i < n; i++) {
		word = pattern_word(base, i);
		memcpy(out + i * sizeof(word), &word, sizeof(word));
	}
	word = pattern_word(base, n);
	memcpy(out + n * sizeof(word), &word, len % sizeof(word));
}

long perf_pattern_check(const void *buf, size_t len, uint32_t seed, uint32_t index)
{
	uint64_t base = pattern_base(seed, index), word;
	const unsigned char *in = buf;
	size_t i, part;

	for (i = 0; i < len; i += part) {
		word = pattern_word(base, i / sizeof(word));
		part = len - i < sizeof(word) ? len - i : sizeof(word);
		if (memcmp(in + i, &word, part))
			break;
	}
	if (i >= len)
		return -1;
	while (in[i] == ((unsigned char *)&word)[i % sizeof(word)])
		i++;
	return (long)i;
}
