/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Round trips of a measurement of any length, in bounded memory. */
#ifndef PERF_SAMPLES_H
#define PERF_SAMPLES_H

#include "perf_stat.h"

/*
 * Percentiles come from the samples kept in ns. When these fill the room, every other sample is
 * dropped and from then on only half as many are kept, so they stay evenly spread over the
 * measurement. The minimum, maximum, mean and histogram are of all samples.
 */
struct perf_samples {
	uint64_t *ns;
	size_t n, room;
	uint64_t every; /* each every-th sample is kept */
	uint64_t seen, min, max;
	double sum;
	struct perf_hist *hist; /* NULL: none is wanted */
	double div; /* round trips are divided by this for the histogram and the result */
};

/* Returns 0, or -1 without memory. @room is even. */
int perf_samples_init(struct perf_samples *s, size_t room);
void perf_samples_fini(struct perf_samples *s);
/* Forgets all samples; later samples also go to @hist unless it is NULL. */
void perf_samples_reset(struct perf_samples *s, double div, struct perf_hist *hist);
void perf_samples_add(struct perf_samples *s, const uint64_t *ns, size_t n);
/*
 * Sorts the samples; call perf_samples_reset() before more are added. The latency at @percentile is
 * the chosen one.
 */
void perf_samples_lat(struct perf_samples *s, unsigned int percentile, struct perf_lat *lat);

#endif
