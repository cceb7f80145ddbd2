/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The output of datperf --peers for given numbers, to the last byte. */
#include "perf_peers.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *perf_dat_api(void)
{
	return "9.9";
}

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
	static char text[8192];
	ssize_t n;

	fflush(stdout);
	n = pread(file, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	dup2(stdout_before, STDOUT_FILENO);
	close(stdout_before);
	close(file);
	return text;
}

#define PRINTED(call) (begin(), (call), end())

static struct perf_opts opts;
static const struct perf_fabric fabric = { .provider = "tcp", .domain = "lo" };
/* all figures differ, and have more digits than are printed */
static const struct perf_peers_row rows[2] = {
	{ 1, { 1234.56, 700.04, 701.25, 0.1234, 9.876, 10.004, 0.26 } },
	{ 65536, { 99999.4, 36.96, 37.12, 1.5, 11.111, 12.5, 1234.5678 } },
};

static void set_up(void)
{
	opts = (struct perf_opts){
		.device = "ofi",
		.side = { [PERF_SIDE_DAT] = true },
		.npeers = 2,
	};
}

TestSuite(perf_peers_out, .init = set_up);

Test(perf_peers_out, head)
{
	const char *text = PRINTED(perf_peers_out_begin(&opts, &fabric));

	cr_expect_str_eq(text, "DAT 9.9, IA ofi on tcp lo, polling\n"
			       "               connect     client     server empty poll  8 B first"
			       "   8 B last  close all\n"
			       "connections        1/s   KiB each   KiB each         us         us"
			       "         us         ms\n");
}

Test(perf_peers_out, rows)
{
	cr_expect_str_eq(
		PRINTED(perf_peers_out_row(&opts, &fabric, &rows[0])),
		"          1       1235      700.0      701.2      0.123       9.88      10.00"
		"        0.3\n");
	cr_expect_str_eq(
		PRINTED(perf_peers_out_row(&opts, &fabric, &rows[1])),
		"      65536      99999       37.0       37.1      1.500      11.11      12.50"
		"     1234.6\n");
}

Test(perf_peers_out, a_table_or_json)
{
	cr_expect_str_eq(PRINTED(perf_peers_out_json(&opts, &fabric, rows)), "");
	opts.json = true;
	cr_expect_str_eq(PRINTED(perf_peers_out_begin(&opts, &fabric)), "");
	cr_expect_str_eq(PRINTED(perf_peers_out_row(&opts, &fabric, &rows[0])), "");
}

Test(perf_peers_out, json)
{
	static const char *const members[] = {
		"\"program\": \"datperf\"",	"\"device\": \"ofi\"",
		"\"provider\": \"tcp\"",	"\"mode\": \"wait\"",
		"\"connections\": 1,",		"\"connections\": 65536,",
		"\"connect_per_s\": 1234.5600", "\"client_kib\": 700.0400",
		"\"server_kib\": 37.1200",	"\"empty_us\": 0.1234",
		"\"first_us\": 9.8760",		"\"last_us\": 12.5000",
		"\"close_ms\": 1234.5678",
	};
	const char *text;
	size_t i;

	opts.json = opts.wait = true;
	text = PRINTED(perf_peers_out_json(&opts, &fabric, rows));
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		cr_expect(strstr(text, members[i]), "%s", members[i]);
}

Test(perf_peers_out, csv)
{
	opts.csv = true;
	cr_expect_str_eq(PRINTED(perf_peers_out_begin(&opts, &fabric)),
			 "device,provider,connections,connect_per_s,client_kib,server_kib,empty_us,"
			 "first_us,last_us,close_ms\n");
	cr_expect_str_eq(PRINTED(perf_peers_out_row(&opts, &fabric, &rows[0])),
			 "ofi,tcp,1,1234.5600,700.0400,701.2500,0.1234,9.8760,10.0040,0.2600\n");
}

Test(perf_peers_out, json_of_the_numbers_given)
{
	opts.json = true;
	opts.npeers = 1;
	cr_expect_null(strstr(PRINTED(perf_peers_out_json(&opts, &fabric, rows)), "65536"));
}
