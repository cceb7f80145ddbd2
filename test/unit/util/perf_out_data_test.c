/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JSON and comma-separated values of datperf for given numbers, to the last byte. */
#include "perf_out_rows.h"
#include "perf_stop.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(perf_out_data, .init = set_up);

/*
 * JSON
 */

Test(perf_out_data, json_prints_no_table)
{
	opts.json = true;
	cr_expect_str_eq(PRINTED(perf_out_begin(&opts, &fabric)), "");
	cr_expect_str_eq(ROW, "");
}

#define JSON PRINTED(perf_out_end(&opts, &fabric, &row))

Test(perf_out_data, json_of_no_sizes)
{
	opts.json = true;
	opts.nsizes = 0;
	opts.wait = true;
	opts.verify = false;
	opts.repeat = 3;
	opts.rotate = opts.bidir = true;
	opts.window = 64;
	cr_expect_str_eq(JSON,
		"{\n"
		"  \"program\": \"datperf\",\n"
		"  \"version\": \"" PACKAGE_VERSION "\",\n"
		"  \"dat_version\": \"9.9\",\n"
		"  \"libfabric\": \"1.17\",\n"
		"  \"date\": \"2001-02-03T04:05:06Z\",\n"
		"  \"host\": \"node\",\n"
		"  \"server\": \"node\",\n"
		"  \"cpu\": null,\n"
		"  \"cpus\": 3,\n"
		"  \"kernel\": \"6.1\",\n"
		"  \"device\": \"ofi\",\n"
		"  \"provider\": \"tcp\",\n"
		"  \"domain\": \"lo\",\n"
		"  \"mode\": \"wait\",\n"
		"  \"verified\": false,\n"
		"  \"repeat\": 3,\n"
		"  \"endpoints\": 1,\n"
		"  \"threads\": 1,\n"
		"  \"bidir\": true,\n"
		"  \"buffers\": 64,\n"
		"  \"results\": []\n"
		"}\n");
}

Test(perf_out_data, json_of_an_interrupted_measurement)
{
	opts.json = true;
	opts.nsizes = 0;
	cr_expect(!strstr(JSON, "interrupted"));
	perf_stop = SIGTERM;
	cr_expect(strstr(JSON, "  \"mode\": \"poll\",\n  \"interrupted\": true,\n"));
	cr_expect(!strstr(JSON, "reason"));
	perf_stop = 0;
	opts.failure = "the peer is gone";
	cr_expect(strstr(JSON, "  \"interrupted\": true,\n  \"reason\": \"the peer is gone\",\n"));
}

Test(perf_out_data, json_with_srq_and_segments)
{
	opts.json = true;
	opts.srq = true;
	opts.segments = 3;
	cr_expect(strstr(JSON, "  \"srq\": true,\n  \"segments\": 3,\n"));
}

Test(perf_out_data, json_of_both_sides)
{
	opts.json = opts.histogram = true;
	row.cell[PERF_SEND][PERF_SIDE_DAT].hist.count[40] = 3;
	row.cell[PERF_SEND][PERF_SIDE_RAW].lat_scatters = true;
	with_raw();
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	cr_expect_str_eq(JSON,
		"{\n"
		"  \"program\": \"datperf\",\n"
		"  \"version\": \"" PACKAGE_VERSION "\",\n"
		"  \"dat_version\": \"9.9\",\n"
		"  \"libfabric\": \"1.17\",\n"
		"  \"date\": \"2001-02-03T04:05:06Z\",\n"
		"  \"host\": \"node\",\n"
		"  \"server\": \"node\",\n"
		"  \"cpu\": null,\n"
		"  \"cpus\": 3,\n"
		"  \"kernel\": \"6.1\",\n"
		"  \"device\": \"ofi\",\n"
		"  \"provider\": \"tcp\",\n"
		"  \"domain\": \"lo\",\n"
		"  \"mode\": \"poll\",\n"
		"  \"raw_cq\": \"fd\",\n"
		"  \"verified\": true,\n"
		"  \"repeat\": 1,\n"
		"  \"endpoints\": 1,\n"
		"  \"threads\": 1,\n"
		"  \"bidir\": false,\n"
		"  \"buffers\": 1,\n"
		"  \"results\": [\n"
		"    {\n"
		"      \"size\": 1024,\n"
		"      \"test\": \"send\",\n"
		"      \"dat\": {\n"
		"        \"lat_us\": 1.0000,\n"
		"        \"lat_min_us\": 0.2500,\n"
		"        \"lat_p90_us\": 1.7500,\n"
		"        \"lat_p99_us\": 2.5000,\n"
		"        \"lat_p999_us\": 3.5000,\n"
		"        \"lat_max_us\": 4.5000,\n"
		"        \"lat_mean_us\": 1.1250,\n"
		"        \"lat_iters\": 100,\n"
		"        \"lat_scatters\": false,\n"
		"        \"lat_cpu_client_us\": 5.0000,\n"
		"        \"lat_cpu_server_us\": 6.0000,\n"
		"        \"bw_MBps\": 1000.0000,\n"
		"        \"msg_per_s\": 500.0000,\n"
		"        \"bw_iters\": 200,\n"
		"        \"bw_scatters\": false,\n"
		"        \"bw_cpu_client_us\": 7.0000,\n"
		"        \"bw_cpu_server_us\": 8.0000,\n"
		"        \"lat_lost\": 0,\n"
		"        \"bw_sent\": 0,\n"
		"        \"bw_lost\": 0,\n"
		"        \"lat_percentile\": 50.0000,\n"
		"        \"lat_percentile_us\": 1.0000,\n"
		"        \"lat_histogram\": [\n"
		"          {\n"
		"            \"from_us\": 1.0240,\n"
		"            \"count\": 3\n"
		"          }\n"
		"        ]\n"
		"      },\n"
		"      \"raw\": {\n"
		"        \"lat_us\": 2.0000,\n"
		"        \"lat_min_us\": 1.2500,\n"
		"        \"lat_p90_us\": 2.7500,\n"
		"        \"lat_p99_us\": 3.5000,\n"
		"        \"lat_p999_us\": 4.5000,\n"
		"        \"lat_max_us\": 5.5000,\n"
		"        \"lat_mean_us\": 2.1250,\n"
		"        \"lat_iters\": 101,\n"
		"        \"lat_scatters\": true,\n"
		"        \"lat_cpu_client_us\": 6.0000,\n"
		"        \"lat_cpu_server_us\": 7.0000,\n"
		"        \"bw_MBps\": 2000.0000,\n"
		"        \"msg_per_s\": 1000.0000,\n"
		"        \"bw_iters\": 201,\n"
		"        \"bw_scatters\": false,\n"
		"        \"bw_cpu_client_us\": 8.0000,\n"
		"        \"bw_cpu_server_us\": 9.0000,\n"
		"        \"lat_lost\": 0,\n"
		"        \"bw_sent\": 0,\n"
		"        \"bw_lost\": 0,\n"
		"        \"lat_percentile\": 50.0000,\n"
		"        \"lat_percentile_us\": 2.0000,\n"
		"        \"lat_histogram\": []\n"
		"      },\n"
		"      \"lat_ratio\": 0.5000,\n"
		"      \"bw_ratio\": 0.5000\n"
		"    }\n"
		"  ]\n"
		"}\n");
}

/* The table shows the chosen percentile, so the ratio uses it. */
Test(perf_out_data, ratio_at_another_percentile)
{
	with_raw();
	opts.json = true;
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat.chosen = 3;
	row.cell[PERF_SEND][PERF_SIDE_RAW].lat.chosen = 4;
	cr_expect(strstr(JSON, "\"lat_ratio\": 0.7500"));
	cr_expect(strstr(JSON, "\"lat_us\": 1.0000"));
}

Test(perf_out_data, an_unknown_percentile_is_null)
{
	opts.json = true;
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat.p999 = NAN;
	cr_expect(strstr(JSON, "\"lat_p999_us\": null"));
	opts.json = false;
	opts.csv = true;
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	cr_expect(strstr(ROW, ",2.5000,,4.5000,"));
}

Test(perf_out_data, json_of_bare_libfabric_has_no_device)
{
	const char *text;

	raw_alone();
	opts.json = true;
	fabric.has_wait_obj = false;
	text = JSON;
	cr_expect(strstr(text, "\"device\": null,"), "%s", text);
	cr_expect(strstr(text, "\"raw_cq\": \"none\","), "%s", text);
	cr_expect(!strstr(text, "\"dat\":"), "%s", text);
	cr_expect(!strstr(text, "ratio"), "%s", text);
}

Test(perf_out_data, json_has_a_point_for_each_size_and_test)
{
	struct perf_row rows[2] = { row, row };
	const char *text, *p;
	int points = 0;

	rows[1].size = 7;
	opts.nsizes = 2;
	opts.json = true;
	opts.test[PERF_WRITE] = false;
	text = PRINTED(perf_out_end(&opts, &fabric, rows));
	for (p = text; (p = strstr(p, "\"size\": ")); p++)
		points++;
	cr_expect_eq(points, 4);
	cr_expect(strstr(strstr(text, "\"size\": 7,\n"), "\"test\": \"read\""), "%s", text);
}

Test(perf_out_data, json_names_the_server)
{
	opts.json = true;
	opts.host = "other";
	cr_expect(strstr(JSON, "\"host\": \"node\",\n  \"server\": \"other\",\n"));
}

Test(perf_out_data, losses_of_datagrams_are_in_both_formats)
{
	const char *text;

	memset(opts.test, 0, sizeof(opts.test));
	opts.test[PERF_UD] = true;
	fabric.datagram = 4076;
	row.cell[PERF_UD][PERF_SIDE_DAT].lat_lost = 3;
	row.cell[PERF_UD][PERF_SIDE_DAT].bw_sent = 1000;
	row.cell[PERF_UD][PERF_SIDE_DAT].bw_lost = 250;
	opts.csv = true;
	text = ROW;
	cr_expect(strstr(text, "ofi,tcp,dat,ud,1024,"), "%s", text);
	cr_expect(strstr(text, ",3,1000,250,"), "%s", text);
	opts.csv = false;
	opts.json = true;
	text = JSON;
	cr_expect(strstr(text, "\"datagram_size\": 4076,"), "%s", text);
	cr_expect(strstr(text, "\"lat_lost\": 3,\n"), "%s", text);
	cr_expect(strstr(text, "\"bw_lost\": 250,\n"), "%s", text);
}

/*
 * Comma-separated values
 */

Test(perf_out_data, csv_has_a_line_for_each_size_test_and_side)
{
	const char *text;

	with_raw();
	opts.csv = true;
	opts.device = "a,\"b\"";
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_RAW].bw_scatters = true;
	text = PRINTED(perf_out_begin(&opts, &fabric));
	cr_expect_str_eq(
		text,
		"device,provider,side,test,size,"
		"lat_us,lat_min_us,lat_p90_us,lat_p99_us,lat_p999_us,lat_max_us,"
		"lat_mean_us,lat_iters,lat_scatters,lat_cpu_client_us,lat_cpu_server_us,"
		"bw_MBps,msg_per_s,bw_iters,bw_scatters,bw_cpu_client_us,bw_cpu_server_us,"
		"lat_lost,bw_sent,bw_lost,lat_percentile,lat_percentile_us\n");
	cr_expect_str_eq(
		ROW,
		"\"a,\"\"b\"\"\",tcp,dat,send,1024,"
		"1.0000,0.2500,1.7500,2.5000,3.5000,4.5000,1.1250,"
		"100,0,5.0000,6.0000,1000.0000,500.0000,200,0,7.0000,8.0000,0,0,0,"
		"50.0000,1.0000\n"
		",tcp,raw,send,1024,2.0000,1.2500,2.7500,3.5000,4.5000,5.5000,2.1250,"
		"101,0,6.0000,7.0000,2000.0000,1000.0000,201,1,8.0000,9.0000,0,0,0,"
		"50.0000,2.0000\n");
	cr_expect_str_eq(PRINTED(perf_out_end(&opts, &fabric, &row)), "");
}
