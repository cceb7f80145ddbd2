/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output of datperf --peers: a line for each number of connections, or JSON. */
#include "perf_peers.h"
#include "info_wrap.h"
#include "json.h"
#include "perf_table.h"

/*
 * The figures in column order: the heading, in two lines, the JSON name, and the number of
 * decimals. A narrow terminal leaves out the extra ones.
 */
static const struct {
	const char *what, *unit, *json;
	int digits;
	bool extra;
} figures[PERF_PEERS_NFIGURES] = {
	[PERF_PEERS_CONNECT] = { "connect", "1/s", "connect_per_s", 0, false },
	[PERF_PEERS_CLIENT] = { "client", "KiB each", "client_kib", 1, false },
	[PERF_PEERS_SERVER] = { "server", "KiB each", "server_kib", 1, false },
	[PERF_PEERS_EMPTY] = { "empty poll", "us", "empty_us", 3, false },
	[PERF_PEERS_FIRST] = { "8 B first", "us", "first_us", 2, true },
	[PERF_PEERS_LAST] = { "8 B last", "us", "last_us", 2, false },
	[PERF_PEERS_CLOSE] = { "close all", "ms", "close_ms", 1, false },
};

void perf_peers_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	int f;

	if (opts->csv) {
		printf("device,provider,connections");
		for (f = 0; f < PERF_PEERS_NFIGURES; f++)
			printf(",%s", figures[f].json);
		printf("\n");
	}
	if (opts->json || opts->csv)
		return;
	perf_out_fabric(stdout, opts, fabric);
	printf("\n");
	perf_cells("%11s", "");
	for (f = 0; f < PERF_PEERS_NFIGURES; f++)
		perf_cells(figures[f].extra ? "[ %10s]" : " %10s", figures[f].what);
	perf_cells_fit(wrap_width(stdout));
	perf_cells_end();
	perf_cells("%11s", "connections");
	for (f = 0; f < PERF_PEERS_NFIGURES; f++)
		perf_cells(figures[f].extra ? "[ %10s]" : " %10s", figures[f].unit);
	perf_cells_end();
	fflush(stdout);
}

static void csv_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		    const struct perf_peers_row *row)
{
	int f;

	perf_out_csv_text(opts->device);
	putchar(',');
	perf_out_csv_text(fabric->provider);
	printf(",%u", row->connections);
	for (f = 0; f < PERF_PEERS_NFIGURES; f++)
		printf(",%.4f", row->figure[f]);
	printf("\n");
	fflush(stdout);
}

void perf_peers_out_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
			const struct perf_peers_row *row)
{
	int f;

	if (opts->csv)
		csv_row(opts, fabric, row);
	if (opts->json || opts->csv)
		return;
	perf_cells("%11u", row->connections);
	for (f = 0; f < PERF_PEERS_NFIGURES; f++)
		perf_cells(figures[f].extra ? "[ %10.*f]" : " %10.*f", figures[f].digits,
			   row->figure[f]);
	perf_cells_end();
	fflush(stdout);
}

void perf_peers_out_json(const struct perf_opts *opts, const struct perf_fabric *fabric,
			 const struct perf_peers_row *rows)
{
	struct json j = { .out = stdout };
	int i, f;

	if (!opts->json)
		return;
	perf_out_json_begin(&j, opts, fabric);
	json_array(&j, "peers");
	for (i = 0; i < opts->npeers; i++) {
		json_object(&j, NULL);
		json_uint(&j, "connections", rows[i].connections);
		for (f = 0; f < PERF_PEERS_NFIGURES; f++)
			json_double(&j, figures[f].json, rows[i].figure[f]);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
}
