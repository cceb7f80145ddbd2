/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output of datperf: tables. perf_out_data.c has JSON and CSV, perf_progress.c progress. */
#include "datperf.h"
#include "info_wrap.h"
#include "perf_table.h"

#include <math.h>
#include <netdb.h>
#include <string.h>

#define BAR "########################################"

const char *perf_test_name(enum perf_test test)
{
	static const char *const name[] = {
		[PERF_SEND] = "send",
		[PERF_WRITE] = "write",
		[PERF_READ] = "read",
		[PERF_MPI] = "mpi",
		[PERF_IMM] = "imm",
		[PERF_FADD] = "fadd",
		[PERF_CSWAP] = "cswap",
		[PERF_UD] = "ud",
	};

	return name[test];
}

const char *perf_side_name(enum perf_side side)
{
	static const char *const name[] = {
		[PERF_SIDE_DAT] = "dat",
		[PERF_SIDE_RAW] = "raw",
	};

	return name[side];
}

bool perf_opts_both(const struct perf_opts *opts)
{
	return opts->side[PERF_SIDE_DAT] && opts->side[PERF_SIDE_RAW];
}

double perf_ratio(double dat, double raw)
{
	return isnan(raw) ? raw : raw > 0 ? dat / raw : 0;
}

bool perf_opts_measure(const struct perf_opts *opts, enum perf_test test, size_t size)
{
	return opts->test[test] && perf_test_has_size(test, size);
}

/* Datagrams of 100 that were sent in the bandwidth measurement and did not arrive. */
static double lost_percent(const struct perf_cell *c)
{
	return c->bw_sent ? 100.0 * (double)c->bw_lost / (double)c->bw_sent : 0;
}

/* --- tables ------------------------------------------------------------- */

/* Heading of the latency at the chosen percentile. */
static const char *chosen(const struct perf_opts *opts, const char *unit)
{
	static char text[32];

	snprintf(text, sizeof(text), "p%g%s", opts->percentile / 100.0, unit);
	return text;
}

static void head_verbose(const struct perf_opts *opts)
{
	const bool ud = opts->test[PERF_UD];

	/* as long as the line below it */
	perf_cells("%8s %-5s %-4s{ %8s} %8s [ %8s] %8s[ %8s] %8s [ %8s] %15s%s", "", "", "", "", "",
		   "", "", "", "", "", "cpu us/message", ud ? "        " : "");
	perf_cells_fit(wrap_width(stdout));
	perf_cells_end();
	perf_cells("%8s %-5s %-4s{ %8s} %8s [ %8s] %8s[ %8s] %8s [ %8s] %7s %7s%s", "size", "test",
		   "side", "min us", chosen(opts, ""), "p90", "p99", "p99.9", "MB/s", "msg/s",
		   "client", "server", ud ? "  lost %" : "");
	perf_cells_end();
}

static void head_both(const struct perf_opts *opts)
{
	perf_cells("%8s %-5s %9s  %9s  %6s %9s  %9s  %6s[ %9s %9s]%s", "size", "test",
		   opts->percentile == PERF_MEDIAN ? "lat us" : chosen(opts, " us"), "raw",
		   "ratio", "MB/s", "raw", "ratio", "msg/s", "raw",
		   opts->test[PERF_UD] ? "  lost %{     raw}" : "");
	perf_cells_fit(wrap_width(stdout));
	perf_cells_end();
}

/* Whether a size has a line for each test, because the tests do not fit a line. */
static bool line_per_test;

static void head_wide(const struct perf_opts *opts)
{
	int t;

	perf_cells("%8s", "size");
	for (t = 0; t < PERF_NTESTS; t++)
		if (opts->test[t])
			perf_cells(" | %5s us %8s [ %8s]%s", perf_test_name(t), "MB/s", "msg/s",
				   t == PERF_UD ? "  lost %" : "");
	line_per_test = !perf_cells_fit(wrap_width(stdout));
	if (line_per_test) {
		perf_cells_drop();
		perf_cells("%8s %-5s | %8s %8s [ %8s]%s", "size", "test", "lat us", "MB/s", "msg/s",
			   opts->test[PERF_UD] ? "  lost %" : "");
		perf_cells_fit(wrap_width(stdout));
	}
	perf_cells_end();
}

void perf_out_fabric(FILE *out, const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	char host[NI_MAXHOST] = "";

	if (fabric->addr.ss_family &&
	    getnameinfo((const struct sockaddr *)&fabric->addr, sizeof(fabric->addr), host,
			sizeof(host), NULL, 0, NI_NUMERICHOST))
		host[0] = '\0';
	if (opts->side[PERF_SIDE_DAT])
		fprintf(out, "DAT %s, IA %s on ", perf_dat_api(), opts->device);
	fprintf(out, "%s%s%s%s%s%s, %s%s", opts->side[PERF_SIDE_DAT] ? "" : "bare libfabric, ",
	       fabric->provider[0] ? fabric->provider : "an unnamed fabric",
	       fabric->domain[0] ? " " : "", fabric->domain, host[0] ? " " : "", host,
	       opts->wait ? "waiting for events" : "polling",
	       opts->wait && opts->side[PERF_SIDE_RAW] && !fabric->has_wait_obj ?
		       " (bare libfabric polls)" : "");
}

/* Large messages rotate through fewer buffers, see --window. */
static void out_buffers(FILE *out, const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	if (opts->rotate)
		fprintf(out, ", up to %u buffers in turn", opts->window);
	else
		fprintf(out, ", one buffer");
	if (opts->endpoints > 1)
		fprintf(out, ", %u EPs", opts->endpoints);
	if (opts->threads > 1)
		fprintf(out, ", %u threads", opts->threads);
	if (opts->srq)
		fprintf(out, ", SRQ");
	if (opts->segments > 1)
		fprintf(out, ", %u segments", opts->segments);
	if (opts->rate)
		fprintf(out, ", at most %u messages/s", opts->rate);
	if (opts->percentile != PERF_MEDIAN)
		fprintf(out, ", latencies %s", chosen(opts, ""));
	if (opts->test[PERF_UD])
		fprintf(out, ", datagrams of at most %zu bytes", fabric->datagram);
	fprintf(out, "%s\n", opts->bidir ? ", bandwidth both ways" : "");
}

void perf_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	FILE *out;

	if (opts->csv)
		perf_out_csv_head();
	if (opts->json || opts->csv)
		return;
	out = wrap_open(stdout, wrap_width(stdout));
	perf_out_fabric(out, opts, fabric);
	out_buffers(out, opts, fabric);
	wrap_close(out, stdout);
	if (opts->verbose)
		head_verbose(opts);
	else if (perf_opts_both(opts))
		head_both(opts);
	else
		head_wide(opts);
	fflush(stdout);
}

/* A mark at a figure, which the last line explains. */
static bool marked;

static char mark(bool scatters)
{
	marked |= scatters;
	return scatters ? '*' : ' ';
}

#define FIGURE 24

/* Writes @value, or "-" if it is unknown, to @text. Returns @text. */
static const char *figure(char text[FIGURE], double value, int decimals)
{
	if (isnan(value))
		snprintf(text, FIGURE, "-");
	else
		snprintf(text, FIGURE, "%.*f", decimals, value);
	return text;
}

static void row_verbose(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	char chosen_us[FIGURE], p90[FIGURE], p99[FIGURE], p999[FIGURE];
	const struct perf_cell *c;
	int t, s;

	for (t = 0; t < PERF_NTESTS; t++) {
		for (s = 0; s < PERF_NSIDES && perf_opts_measure(opts, t, row->size); s++) {
			if (!opts->side[s])
				continue;
			c = &row->cell[t][s];
			perf_cells("%8s %-5s %-4s{ %8.2f} %8s%c[ %8s] %8s[ %8s] %8.1f%c"
				   "[ %8.0f] %7.2f %7.2f",
				   size, perf_test_name(t), perf_side_name(s), c->lat.min,
				   figure(chosen_us, c->lat.chosen, 2), mark(c->lat_scatters),
				   figure(p90, c->lat.p90, 2), figure(p99, c->lat.p99, 2),
				   figure(p999, c->lat.p999, 2), c->bw, mark(c->bw_scatters),
				   c->rate, c->bw_cpu[PERF_END_CLIENT], c->bw_cpu[PERF_END_SERVER]);
			if (t == PERF_UD)
				perf_cells(" %7.2f", lost_percent(c));
			perf_cells_end();
		}
	}
}

/* The decimals of a ratio that has 6 columns. */
static int decimals(double ratio)
{
	return ratio < 99.9 ? 3 : ratio < 1000 ? 1 : 0;
}

static void row_both(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	char dat_us[FIGURE], raw_us[FIGURE], ratio[FIGURE];
	const struct perf_cell *dat, *raw;
	double lat, bw;
	int t;

	for (t = 0; t < PERF_NTESTS; t++) {
		if (!perf_opts_measure(opts, t, row->size))
			continue;
		dat = &row->cell[t][PERF_SIDE_DAT];
		raw = &row->cell[t][PERF_SIDE_RAW];
		lat = perf_ratio(dat->lat.chosen, raw->lat.chosen);
		bw = perf_ratio(dat->bw, raw->bw);
		perf_cells("%8s %-5s %9s%c %9s%c %6s %9.1f%c %9.1f%c %6.*f[ %9.0f %9.0f]",
			   size, perf_test_name(t), figure(dat_us, dat->lat.chosen, 2),
			   mark(dat->lat_scatters), figure(raw_us, raw->lat.chosen, 2),
			   mark(raw->lat_scatters), figure(ratio, lat, decimals(lat)), dat->bw,
			   mark(dat->bw_scatters), raw->bw, mark(raw->bw_scatters), decimals(bw),
			   bw, dat->rate, raw->rate);
		if (t == PERF_UD)
			perf_cells(" %7.2f{ %7.2f}", lost_percent(dat), lost_percent(raw));
		perf_cells_end();
		size = "";
	}
}

static void row_wide(const struct perf_opts *opts, const struct perf_row *row, const char *size)
{
	int side = opts->side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	const struct perf_cell *c;
	char us[FIGURE];
	int t;

	if (!line_per_test)
		perf_cells("%8s", size);
	for (t = 0; t < PERF_NTESTS; t++) {
		if (!opts->test[t])
			continue;
		c = &row->cell[t][side];
		if (line_per_test)
			perf_cells("%8s %-5s", size, perf_test_name(t));
		if (perf_test_has_size(t, row->size))
			perf_cells(" | %7s%c %8.1f%c[ %8.0f]", figure(us, c->lat.chosen, 2),
				   mark(c->lat_scatters), c->bw, mark(c->bw_scatters), c->rate);
		else
			perf_cells(" | %7s  %8s [ %8s]", "-", "-", "-");
		if (t == PERF_UD)
			perf_cells(" %7.2f", lost_percent(c));
		if (line_per_test)
			perf_cells_end();
		size = "";
	}
	if (!line_per_test)
		perf_cells_end();
}

/* The bins from the first to the last that is not empty, with a bar for the share of each. */
static void out_histogram(const struct perf_hist *hist)
{
	uint64_t all = 0, most = 0;
	int first = PERF_HIST_BINS, last = 0, i;

	for (i = 0; i < PERF_HIST_BINS; i++) {
		all += hist->count[i];
		most = hist->count[i] > most ? hist->count[i] : most;
		if (hist->count[i]) {
			first = first < i ? first : i;
			last = i;
		}
	}
	for (i = first; i <= last; i++)
		printf("%14.2f us %9llu %6.2f %% %.*s\n", perf_hist_bound(i),
		       (unsigned long long)hist->count[i],
		       100.0 * (double)hist->count[i] / (double)all,
		       (int)(40 * hist->count[i] / most), BAR);
}

static void row_histograms(const struct perf_opts *opts, const struct perf_row *row,
			   const char *size)
{
	int t, s;

	for (t = 0; t < PERF_NTESTS; t++) {
		for (s = 0; s < PERF_NSIDES && perf_opts_measure(opts, t, row->size); s++) {
			if (!opts->side[s])
				continue;
			printf("latency of %s, %s bytes%s, at least:\n", perf_test_name(t), size,
			       s == PERF_SIDE_RAW ? ", bare libfabric" : "");
			out_histogram(&row->cell[t][s].hist);
		}
	}
}

void perf_out_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *row)
{
	char buf[32];
	const char *size = perf_size_name(row->size, buf, sizeof(buf));

	perf_progress_clear();
	if (opts->csv)
		perf_out_csv_row(opts, fabric, row);
	if (opts->json || opts->csv)
		return;
	if (opts->verbose)
		row_verbose(opts, row, size);
	else if (perf_opts_both(opts))
		row_both(opts, row, size);
	else
		row_wide(opts, row, size);
	if (opts->histogram)
		row_histograms(opts, row, size);
	fflush(stdout);
}

void perf_out_end(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *rows)
{
	if (opts->json)
		perf_out_json(opts, fabric, rows);
	if (marked)
		fputs("* unsteady: the median is more than twice the minimum, the 99th percentile\n"
		      "  more than eight times the median, repetitions differ by more than half,\n"
		      "  or a size takes more than four times as long as both of its neighbours;\n"
		      "  other work on the machine may be the reason (see --repeat, --verbose)\n",
		      stdout);
	marked = false;
}
