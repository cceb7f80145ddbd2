/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output of datperf for programs: JSON and comma-separated values. */
#include "datperf.h"
#include "json.h"
#include "perf_host.h"
#include "perf_stop.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

enum field_type {
	FIELD_DOUBLE,
	FIELD_UINT,
	FIELD_BOOL
};

#define FIELD(name, type, member) { name, type, offsetof(struct perf_cell, member) }
#define CPU(member, end) offsetof(struct perf_cell, member) + (end) * sizeof(double)

/* The figures of a cell, in both formats. */
static const struct field {
	const char *name;
	enum field_type type;
	size_t offset;
} fields[] = {
	FIELD("lat_us", FIELD_DOUBLE, lat.median),
	FIELD("lat_min_us", FIELD_DOUBLE, lat.min),
	FIELD("lat_p90_us", FIELD_DOUBLE, lat.p90),
	FIELD("lat_p99_us", FIELD_DOUBLE, lat.p99),
	FIELD("lat_p999_us", FIELD_DOUBLE, lat.p999),
	FIELD("lat_max_us", FIELD_DOUBLE, lat.max),
	FIELD("lat_mean_us", FIELD_DOUBLE, lat.mean),
	FIELD("lat_iters", FIELD_UINT, lat_iters),
	FIELD("lat_scatters", FIELD_BOOL, lat_scatters),
	{ "lat_cpu_client_us", FIELD_DOUBLE, CPU(lat_cpu, PERF_END_CLIENT) },
	{ "lat_cpu_server_us", FIELD_DOUBLE, CPU(lat_cpu, PERF_END_SERVER) },
	FIELD("bw_MBps", FIELD_DOUBLE, bw),
	FIELD("msg_per_s", FIELD_DOUBLE, rate),
	FIELD("bw_iters", FIELD_UINT, bw_iters),
	FIELD("bw_scatters", FIELD_BOOL, bw_scatters),
	{ "bw_cpu_client_us", FIELD_DOUBLE, CPU(bw_cpu, PERF_END_CLIENT) },
	{ "bw_cpu_server_us", FIELD_DOUBLE, CPU(bw_cpu, PERF_END_SERVER) },
	FIELD("lat_lost", FIELD_UINT, lat_lost),
	FIELD("bw_sent", FIELD_UINT, bw_sent),
	FIELD("bw_lost", FIELD_UINT, bw_lost),
	FIELD("lat_percentile", FIELD_DOUBLE, lat.percentile),
	FIELD("lat_percentile_us", FIELD_DOUBLE, lat.chosen),
};
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

/* --- JSON --------------------------------------------------------------- */

static void json_field(struct json *j, const struct field *f, const struct perf_cell *cell)
{
	const char *at = (const char *)cell + f->offset;

	switch (f->type) {
	case FIELD_DOUBLE:
		json_double(j, f->name, *(const double *)at);
		break;
	case FIELD_UINT:
		json_uint(j, f->name, *(const uint64_t *)at);
		break;
	case FIELD_BOOL:
		json_bool(j, f->name, *(const bool *)at);
	}
}

static void json_histogram(struct json *j, const struct perf_hist *hist)
{
	int i;

	json_array(j, "lat_histogram");
	for (i = 0; i < PERF_HIST_BINS; i++) {
		if (!hist->count[i])
			continue;
		json_object(j, NULL);
		json_double(j, "from_us", perf_hist_bound(i));
		json_uint(j, "count", hist->count[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_cell(struct json *j, const struct perf_opts *opts, enum perf_side side,
		      const struct perf_cell *cell)
{
	size_t i;

	json_object(j, perf_side_name(side));
	for (i = 0; i < NFIELDS; i++)
		json_field(j, &fields[i], cell);
	if (opts->histogram)
		json_histogram(j, &cell->hist);
	json_end(j, '}');
}

static void json_point(struct json *j, const struct perf_opts *opts, const struct perf_row *row,
		       int t)
{
	const struct perf_cell *dat = &row->cell[t][PERF_SIDE_DAT];
	const struct perf_cell *raw = &row->cell[t][PERF_SIDE_RAW];
	int s;

	json_object(j, NULL);
	json_uint(j, "size", row->size);
	json_string(j, "test", perf_test_name(t));
	for (s = 0; s < PERF_NSIDES; s++)
		if (opts->side[s])
			json_cell(j, opts, s, &row->cell[t][s]);
	if (perf_opts_both(opts)) {
		json_double(j, "lat_ratio", perf_ratio(dat->lat.chosen, raw->lat.chosen));
		json_double(j, "bw_ratio", perf_ratio(dat->bw, raw->bw));
	}
	json_end(j, '}');
}

/* An empty @text is unknown. */
static void json_known(struct json *j, const char *name, const char *text)
{
	json_string(j, name, *text ? text : NULL);
}

static void json_host(struct json *j, const struct perf_opts *opts)
{
	struct perf_host host;

	perf_host_get(&host);
	json_known(j, "date", host.date);
	json_known(j, "host", host.name);
	json_string(j, "server", opts->host ? opts->host : host.name);
	if (opts->nhosts > 1)
		json_uint(j, "port", opts->port);
	json_known(j, "cpu", host.cpu);
	json_int(j, "cpus", host.cpus);
	json_known(j, "kernel", host.kernel);
}

void perf_out_json_begin(struct json *j, const struct perf_opts *opts,
			 const struct perf_fabric *fabric)
{
	json_object(j, NULL);
	json_string(j, "program", "datperf");
	json_string(j, "version", PACKAGE_VERSION);
	json_string(j, "dat_version", perf_dat_api());
	json_known(j, "libfabric", fabric->libfabric);
	json_host(j, opts);
	json_string(j, "device", opts->side[PERF_SIDE_DAT] ? opts->device : NULL);
	json_string(j, "provider", fabric->provider);
	json_string(j, "domain", fabric->domain);
	json_string(j, "mode", opts->wait ? "wait" : "poll");
	if (perf_stop || opts->failure)
		json_bool(j, "interrupted", true);
	if (opts->failure)
		json_string(j, "reason", opts->failure);
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
	json_uint(&j, "endpoints", opts->endpoints);
	json_uint(&j, "threads", opts->threads);
	if (opts->srq)
		json_bool(&j, "srq", true);
	if (opts->segments > 1)
		json_uint(&j, "segments", opts->segments);
	json_bool(&j, "bidir", opts->bidir);
	if (opts->rate)
		json_uint(&j, "rate_limit", opts->rate);
	json_uint(&j, "buffers", opts->rotate ? opts->window : 1);
	if (fabric->datagram)
		json_uint(&j, "datagram_size", fabric->datagram);
	json_array(&j, "results");
	for (i = 0; i < opts->nsizes; i++)
		for (t = 0; t < PERF_NTESTS; t++)
			if (perf_opts_measure(opts, t, rows[i].size))
				json_point(&j, opts, &rows[i], t);
	json_end(&j, ']');
	json_end(&j, '}');
}

/* --- comma-separated values ----------------------------------------------- */

void perf_out_csv_text(const char *text)
{
	if (!strpbrk(text, "\",\r\n")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

void perf_out_csv_head(void)
{
	size_t i;

	printf("device,provider,side,test,size");
	for (i = 0; i < NFIELDS; i++)
		printf(",%s", fields[i].name);
	printf("\n");
	fflush(stdout);
}

static void csv_field(const struct field *f, const struct perf_cell *cell)
{
	const char *at = (const char *)cell + f->offset;

	switch (f->type) {
	case FIELD_DOUBLE:
		if (isnan(*(const double *)at))
			putchar(',');
		else
			printf(",%.4f", *(const double *)at);
		break;
	case FIELD_UINT:
		printf(",%llu", (unsigned long long)*(const uint64_t *)at);
		break;
	case FIELD_BOOL:
		printf(",%d", *(const bool *)at);
	}
}

static void csv_cell(const struct perf_opts *opts, const struct perf_fabric *fabric,
		     const struct perf_row *row, int t, int s)
{
	size_t i;

	perf_out_csv_text(s == PERF_SIDE_DAT ? opts->device : "");
	putchar(',');
	perf_out_csv_text(fabric->provider);
	printf(",%s,%s,%zu", perf_side_name(s), perf_test_name(t), row->size);
	for (i = 0; i < NFIELDS; i++)
		csv_field(&fields[i], &row->cell[t][s]);
	printf("\n");
}

void perf_out_csv_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		      const struct perf_row *row)
{
	int t, s;

	for (t = 0; t < PERF_NTESTS; t++)
		for (s = 0; s < PERF_NSIDES; s++)
			if (perf_opts_measure(opts, t, row->size) && opts->side[s])
				csv_cell(opts, fabric, row, t, s);
	fflush(stdout);
}
