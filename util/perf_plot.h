/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pictures of results: latency and bandwidth over the message size, drawn by gnuplot. */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "datperf.h"

struct perf_plot_point {
	double size, lat, bw;
	bool lat_scatters, bw_scatters;
};

/* The points of one test on one side, in the order of the sizes. */
struct perf_curve {
	int run;
	enum perf_test test;
	enum perf_side side;
	int n;
	struct perf_plot_point point[PERF_MAX_SIZES];
};

struct perf_plot {
	const char *terminal; /* see perf_plot_terminal() */
	char title[512];
	char run[PERF_FILES_MAX][256]; /* names of the runs; not drawn if there is only one */
	int nruns;
	bool bidir; /* bandwidths are sums of both directions */
	struct perf_curve curve[PERF_FILES_MAX * PERF_NTESTS * PERF_NSIDES];
	int ncurves;
};

/*
 * Adds a point to a curve of the latest run. Points that a logarithmic axis lacks, or beyond
 * PERF_MAX_SIZES, are left out.
 */
void perf_plot_add(struct perf_plot *plot, enum perf_test test, enum perf_side side,
		   const struct perf_plot_point *point);

/* gnuplot's terminal, with its font, that draws a file with the suffix of @path; NULL: none. */
const char *perf_plot_terminal(const char *path);
/* Writes the program for gnuplot. */
void perf_plot_script(const struct perf_plot *plot, FILE *out);

/* These return 0, or -1 with an error text in @err. */

/* Checks that gnuplot can be run. */
int perf_plot_check(char *err, size_t errlen);
/* Draws @plot to @path, which is replaced only on success. */
int perf_plot_draw(struct perf_plot *plot, const char *path, char *err, size_t errlen);
/* Draws the rows of this run. */
int perf_plot_rows(const struct perf_opts *opts, const struct perf_fabric *fabric,
		   const struct perf_row *rows, char *err, size_t errlen);
/* Draws the runs that were saved with --json in opts->files. */
int perf_plot_files(const struct perf_opts *opts, char *err, size_t errlen);

#endif
