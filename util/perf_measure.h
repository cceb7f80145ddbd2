/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures a point of the table on one side: warm-up, length, repetitions and their summary. A
 * measurement consists of phases of at most about a second, so that neither side considers the
 * other silent, however long the measurement is.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "datperf.h"
#include "perf_samples.h"

#include <pthread.h>

/* Work of a thread in a phase: the caller's in the first, a new thread's in each other. */
struct perf_job {
	pthread_t thread;
	struct perf_xport *x;
	struct perf_point point;
	uint64_t *slice; /* its round trips */
	int rc;
};

struct perf_measure {
	const struct perf_opts *opts;
	uint64_t slice_ns; /* intended length of a phase */
	struct perf_job job[PERF_THREADS_MAX];
	unsigned int njobs;
	struct perf_samples samples;
	FILE *out;		/* for the latency of each message; NULL: none */
	const char *out_side;	/* the side that is measured, for @out */
};

/* The repetitions of a point on one side; starts as zeroes. */
struct perf_series {
	uint64_t last_ns, last_iters; /* time and messages per thread of the latest phase */
	uint64_t iters;		      /* messages of the latest repetition */
	struct perf_lat lat[PERF_REPEAT_MAX];
	double rate[PERF_REPEAT_MAX]; /* messages/s */
	uint64_t sent, lost; /* datagrams of all repetitions */
	double cpu[PERF_NENDS][PERF_REPEAT_MAX]; /* us per message */
	struct perf_hist hist;
};

/* Returns 0, or -1 without memory. */
int perf_measure_init(struct perf_measure *m, const struct perf_opts *opts);
void perf_measure_fini(struct perf_measure *m);

/*
 * Makes repetition @i of @point on @x[0] to @x[n - 1] at once. Returns 0, or -1 with an error text
 * in one of these; without a text if perf_stop ended it.
 */
int perf_measure_once(struct perf_measure *m, struct perf_xport *const *x, unsigned int n,
		      const struct perf_point *point, struct perf_series *s, int i);

/* Summarises @n repetitions: fills the members of @cell that belong to point->metric. */
void perf_series_sum(struct perf_series *s, const struct perf_point *point, int n,
		     struct perf_cell *cell);

/* Marks the figures of rows[i] that exceed both neighbours. Sizes ascend; @n rows are known. */
void perf_rows_mark(struct perf_row *rows, int i, int n);

#endif
