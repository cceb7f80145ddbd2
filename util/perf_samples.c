/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Round trips of a measurement of any length, in bounded memory. */
#include "perf_samples.h"

#include <stdlib.h>
#include <string.h>

int perf_samples_init(struct perf_samples *s, size_t room)
{
	memset(s, 0, sizeof(*s));
	s->ns = calloc(room, sizeof(*s->ns));
	s->room = room;
	perf_samples_reset(s, 1, NULL);
	return s->ns ? 0 : -1;
}

void perf_samples_fini(struct perf_samples *s)
{
	free(s->ns);
	s->ns = NULL;
}

void perf_samples_reset(struct perf_samples *s, double div, struct perf_hist *hist)
{
	s->n = 0;
	s->every = 1;
	s->seen = 0;
	s->min = UINT64_MAX;
	s->max = 0;
	s->sum = 0;
	s->div = div;
	s->hist = hist;
}

static void thin(struct perf_samples *s)
{
	size_t i;

	for (i = 0; i < s->n / 2; i++)
		s->ns[i] = s->ns[2 * i];
	s->n /= 2;
	s->every *= 2;
}

static void add_one(struct perf_samples *s, uint64_t ns)
{
	if (s->seen % s->every == 0) {
		if (s->n == s->room)
			thin(s);
		/* the room is even, so this sample is a multiple of the doubled distance too */
		s->ns[s->n++] = ns;
	}
	s->seen++;
	s->sum += (double)ns;
	s->min = ns < s->min ? ns : s->min;
	s->max = ns > s->max ? ns : s->max;
	if (s->hist)
		perf_hist_add(s->hist, (double)ns / s->div);
}

void perf_samples_add(struct perf_samples *s, const uint64_t *ns, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		add_one(s, ns[i]);
}

void perf_samples_lat(struct perf_samples *s, unsigned int percentile, struct perf_lat *lat)
{
	double scale = 1000 * s->div;

	perf_lat_of(s->ns, s->n, s->div, lat);
	if (!s->seen)
		return;
	lat->percentile = percentile / 100.0;
	lat->chosen = percentile == PERF_MEDIAN ?
			      lat->median :
			      (double)perf_percentile(s->ns, s->n, percentile) / scale;
	lat->min = (double)s->min / scale;
	lat->max = (double)s->max / scale;
	lat->mean = s->sum / (double)s->seen / scale;
}
