/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the tests of datperf's output: a row of numbers, and a capture of stdout. */
#ifndef PERF_OUT_ROWS_H
#define PERF_OUT_ROWS_H

#include "datperf.h"
#include "perf_host.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *perf_dat_api(void)
{
	return "9.9";
}

void perf_host_get(struct perf_host *host)
{
	*host = (struct perf_host){
		.name = "node",
		.date = "2001-02-03T04:05:06Z",
		.kernel = "6.1",
		.cpus = 3,
	};
}

/*
 * Captures stdout
 */

static int stdout_before, file;

static void begin(void)
{
	fflush(stdout);
	stdout_before = dup(STDOUT_FILENO);
	file = memfd_create("stdout", MFD_CLOEXEC);
	dup2(file, STDOUT_FILENO);
}

static const char *end(void)
{
	static char text[16384];
	ssize_t n;

	fflush(stdout);
	n = pread(file, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	dup2(stdout_before, STDOUT_FILENO);
	return text;
}

#define PRINTED(call) (begin(), (call), end())

/*
 * Numbers: each shows to which column it belongs
 */

static struct perf_opts opts;
static struct perf_fabric fabric;
static struct perf_row row;

static void set_up(void)
{
	int t, s;

	opts = (struct perf_opts){
		.device = "ofi",
		.side = { [PERF_SIDE_DAT] = true },
		.test = { true, true, true },
		.verify = true,
		.repeat = 1,
		.endpoints = 1,
		.threads = 1,
		.percentile = PERF_MEDIAN,
		.nsizes = 1,
	};
	strcpy(fabric.provider, "tcp");
	strcpy(fabric.domain, "lo");
	strcpy(fabric.libfabric, "1.17");
	fabric.has_wait_obj = true;
	row.size = 1024;
	for (t = 0; t < PERF_NTESTS; t++)
		for (s = 0; s < PERF_NSIDES; s++)
			row.cell[t][s] = (struct perf_cell){
				.lat = {
					.min = 10 * t + s + 0.25,
					.median = 10 * t + s + 1,
					.p90 = 10 * t + s + 1.75,
					.p99 = 10 * t + s + 2.5,
					.p999 = 10 * t + s + 3.5,
					.max = 10 * t + s + 4.5,
					.mean = 10 * t + s + 1.125,
					.percentile = 50,
					.chosen = 10 * t + s + 1,
				},
				.bw = 1000 * (t + 1) * (s + 1),
				.rate = 500 * (t + 1) * (s + 1),
				.lat_cpu = { 10 * t + s + 5, 10 * t + s + 6 },
				.bw_cpu = { 10 * t + s + 7, 10 * t + s + 8 },
				.lat_iters = 100 + 10 * t + s,
				.bw_iters = 200 + 10 * t + s,
			};
}

static void with_raw(void)
{
	opts.side[PERF_SIDE_RAW] = true;
}

static void raw_alone(void)
{
	with_raw();
	opts.side[PERF_SIDE_DAT] = false;
}

#define ROW PRINTED(perf_out_row(&opts, &fabric, &row))

#endif
