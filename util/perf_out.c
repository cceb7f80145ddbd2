/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output of datperf: tables, JSON, and progress on a terminal. */
#include "datperf.h"
#include "json.h"

#include <netdb.h>
#include <string.h>
#include <unistd.h>

static const char *const side_name[] = {
	[PERF_SIDE_DAT] = "dat",
	[PERF_SIDE_RAW] = "raw",
};

const char *perf_test_name(enum perf_test test)
{
	static const char *const name[] = {
		[PERF_SEND] = "send",
		[PERF_WRITE] = "write",
		[PERF_READ] = "read",
	};

	return name[test];
}

static bool both(const struct perf_opts *opts)
{
	return opts->side[PERF_SIDE_DAT] && opts->side[PERF_SIDE_RAW];
}

static double ratio(double dat, double raw)
{
	return raw > 0 ? dat / raw : 0;
}

/* --- tables ------------------------------------------------------------- */

static void head_verbose(void)
{
	printf("%8s %-5s %-4s %9s %9s %9s %9s %8s %9s %8s\n", "size", "test", "side", "min us",
	       "median", "p99", "mean", "iters", "MB/s", "iters");
}

static void head_both(void)
{
	printf("%8s %-5s %10s %10s %6s  %10s %10s %6s\n", "size", "test", "lat us", "raw", "ratio",
	       "MB/s", "raw", "ratio");
}

static void head_wide(const struct perf_opts *opts)
{
	int t;

	printf("%8s", "size");
	for (t = 0; t < PERF_NTESTS; t++)
		if (opts->test[t])
			printf(" | %5s us %9s", perf_test_name(t), "MB/s");
	printf("\n");
}

void perf_out_fabric(const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	char host[NI_MAXHOST] = "";

	if (fabric->addr.ss_family &&
	    getnameinfo((const struct sockaddr *)&fabric->addr, sizeof(fabric->addr), host,
			sizeof(host), NULL, 0, NI_NUMERICHOST))
		host[0] = '\0';
	if (opts->side[PERF_SIDE_DAT])
		printf("DAT %s, IA %s on ", perf_dat_api(), opts->device);
	printf("%s%s%s%s%s%s, %s%s", opts->side[PERF_SIDE_DAT] ? "" : "bare libfabric, ",
	       fabric->provider[0] ? fabric->provider : "an unnamed fabric",
	       fabric->domain[0] ? " " : "", fabric->domain, host[0] ? " " : "", host,
	       opts->wait ? "waiting for events" : "polling",
	       opts->wait && opts->side[PERF_SIDE_RAW] && !fabric->has_wait_obj ?
		       " (bare libfabric polls)" : "");
}

/* Large messages rotate through fewer buffers, see --window. */
static void out_buffers(const struct perf_opts *opts)
{
	if (opts->rotate)
		printf(", up to %u buffers in turn\n", opts->window);
	else
		printf(", one buffer\n");
}

void perf_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	if (opts->json)
		return;
	perf_out_fabric(opts, fabric);
	out_buffers(opts);
	if (opts->verbose)
		head_verbose();
	else if (both(opts))
		head_both();
	else
		head_wide(opts);
	fflush(stdout);
}

static void row_verbose(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	const struct perf_cell *c;
	int t, s;

	for (t = 0; t < PERF_NTESTS; t++) {
		for (s = 0; s < PERF_NSIDES && opts->test[t]; s++) {
			if (!opts->side[s])
				continue;
			c = &row->cell[t][s];
			printf("%8s %-5s %-4s %9.2f %9.2f %9.2f %9.2f %8llu "
			       "%9.1f %8llu\n",
			       size, perf_test_name(t), side_name[s], c->lat.min, c->lat.median,
			       c->lat.p99, c->lat.mean, (unsigned long long)c->lat_iters, c->bw,
			       (unsigned long long)c->bw_iters);
		}
	}
}

static void row_both(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	const struct perf_cell *dat, *raw;
	int t;

	for (t = 0; t < PERF_NTESTS; t++) {
		if (!opts->test[t])
			continue;
		dat = &row->cell[t][PERF_SIDE_DAT];
		raw = &row->cell[t][PERF_SIDE_RAW];
		printf("%8s %-5s %10.2f %10.2f %6.3f  %10.1f %10.1f %6.3f\n", size, perf_test_name(t),
		       dat->lat.median, raw->lat.median, ratio(dat->lat.median, raw->lat.median),
		       dat->bw, raw->bw, ratio(dat->bw, raw->bw));
		size = "";
	}
}

static void row_wide(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	int side = opts->side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	int t;

	printf("%8s", size);
	for (t = 0; t < PERF_NTESTS; t++)
		if (opts->test[t])
			printf(" | %8.2f %9.1f", row->cell[t][side].lat.median,
			       row->cell[t][side].bw);
	printf("\n");
}

void perf_out_row(const struct perf_opts *opts, const struct perf_row *row)
{
	char buf[32];
	const char *size = perf_size_name(row->size, buf, sizeof(buf));

	if (opts->json)
		return;
	perf_out_progress_end();
	if (opts->verbose)
		row_verbose(opts, row, size);
	else if (both(opts))
		row_both(opts, row, size);
	else
		row_wide(opts, row, size);
	fflush(stdout);
}

/* --- JSON --------------------------------------------------------------- */

static void json_cell(struct json *j, const char *name, const struct perf_cell *cell)
{
	json_object(j, name);
	json_double(j, "lat_us", cell->lat.median);
	json_double(j, "lat_min_us", cell->lat.min);
	json_double(j, "lat_p99_us", cell->lat.p99);
	json_double(j, "lat_mean_us", cell->lat.mean);
	json_uint(j, "lat_iters", cell->lat_iters);
	json_double(j, "bw_MBps", cell->bw);
	json_uint(j, "bw_iters", cell->bw_iters);
	json_end(j, '}');
}

static void json_point(struct json *j, const struct perf_opts *opts, const struct perf_row *row, int t)
{
	const struct perf_cell *dat = &row->cell[t][PERF_SIDE_DAT];
	const struct perf_cell *raw = &row->cell[t][PERF_SIDE_RAW];
	int s;

	json_object(j, NULL);
	json_uint(j, "size", row->size);
	json_string(j, "test", perf_test_name(t));
	for (s = 0; s < PERF_NSIDES; s++)
		if (opts->side[s])
			json_cell(j, side_name[s], &row->cell[t][s]);
	if (both(opts)) {
		json_double(j, "lat_ratio", ratio(dat->lat.median, raw->lat.median));
		json_double(j, "bw_ratio", ratio(dat->bw, raw->bw));
	}
	json_end(j, '}');
}

void perf_out_json_begin(struct json *j, const struct perf_opts *opts,
			 const struct perf_fabric *fabric)
{
	json_object(j, NULL);
	json_string(j, "program", "datperf");
	json_string(j, "dat_version", perf_dat_api());
	json_string(j, "device", opts->side[PERF_SIDE_DAT] ? opts->device : NULL);
	json_string(j, "provider", fabric->provider);
	json_string(j, "domain", fabric->domain);
	json_string(j, "mode", opts->wait ? "wait" : "poll");
}

void perf_out_json(const struct perf_opts *opts, const struct perf_fabric *fabric,
		   const struct perf_row *rows)
{
	struct json j = { .out = stdout };
	int i, t;

	perf_out_json_begin(&j, opts, fabric);
	if (opts->side[PERF_SIDE_RAW])
		json_string(&j, "raw_cq", fabric->has_wait_obj ? "fd" : "none");
	json_bool(&j, "verified", opts->verify);
	json_int(&j, "repeat", opts->repeat);
	json_uint(&j, "buffers", opts->rotate ? opts->window : 1);
	json_array(&j, "results");
	for (i = 0; i < opts->nsizes; i++)
		for (t = 0; t < PERF_NTESTS; t++)
			if (opts->test[t])
				json_point(&j, opts, &rows[i], t);
	json_end(&j, ']');
	json_end(&j, '}');
}

/* --- progress ----------------------------------------------------------- */

static bool progress_shown;

void perf_out_progress(unsigned int done, unsigned int all, const char *what, size_t size)
{
	char buf[32];

	if (!isatty(STDERR_FILENO))
		return;
	progress_shown = true;
	fprintf(stderr, "\r[%u/%u] %s %s\033[K", done, all, what,
		perf_size_name(size, buf, sizeof(buf)));
	fflush(stderr);
}

void perf_out_progress_end(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}
