/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What datperf prints for given numbers, to the last byte. */
#include "datperf.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

const char *perf_dat_api(void)
{
	return "9.9";
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
	static char text[8192];
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
		.nsizes = 1,
	};
	strcpy(fabric.provider, "tcp");
	strcpy(fabric.domain, "lo");
	fabric.has_wait_obj = true;
	row.size = 1024;
	for (t = 0; t < PERF_NTESTS; t++)
		for (s = 0; s < PERF_NSIDES; s++)
			row.cell[t][s] = (struct perf_cell){
				.lat = {
					.min = 10 * t + s + 0.25,
					.median = 10 * t + s + 1,
					.p99 = 10 * t + s + 2.5,
					.mean = 10 * t + s + 1.125,
				},
				.bw = 1000 * (t + 1) * (s + 1),
				.lat_iters = 100 + 10 * t + s,
				.bw_iters = 200 + 10 * t + s,
			};
}

TestSuite(perf_out, .init = set_up);

static void with_raw(void)
{
	opts.side[PERF_SIDE_RAW] = true;
}

static void raw_alone(void)
{
	with_raw();
	opts.side[PERF_SIDE_DAT] = false;
}

Test(perf_out, names_of_tests)
{
	cr_expect_str_eq(perf_test_name(PERF_SEND), "send");
	cr_expect_str_eq(perf_test_name(PERF_WRITE), "write");
	cr_expect_str_eq(perf_test_name(PERF_READ), "read");
}

/*
 * Headers
 */

static const char *head(int line)
{
	char *text = (char *)(uintptr_t)PRINTED(perf_out_begin(&opts, &fabric));
	char *first = strtok(text, "\n"), *second = strtok(NULL, "\n");

	cr_assert(first);
	cr_assert(second);
	cr_expect_null(strtok(NULL, "\n"));
	return line == 1 ? first : second;
}

Test(perf_out, fabric_that_names_nothing)
{
	memset(&fabric, 0, sizeof(fabric));
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on an unnamed fabric, polling, one buffer");
}

Test(perf_out, address_of_an_unknown_family)
{
	fabric.addr.ss_family = 77;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, polling, one buffer");
}

Test(perf_out, fabric_with_an_address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&fabric.addr;

	in->sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.7", &in->sin_addr);
	opts.wait = true;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo 192.0.2.7, waiting for events, one buffer");
}

Test(perf_out, buffers_in_turn)
{
	opts.rotate = true;
	opts.window = 64;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, polling, up to 64 buffers in turn");
}

Test(perf_out, head_of_bare_libfabric)
{
	raw_alone();
	cr_expect_str_eq(head(1), "bare libfabric, tcp lo, polling, one buffer");
}

Test(perf_out, bare_libfabric_that_polls_where_dat_waits)
{
	with_raw();
	opts.wait = true;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, waiting for events, one buffer");
	fabric.has_wait_obj = false;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, waiting for events (bare libfabric polls), one buffer");
	opts.wait = false;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, polling, one buffer");
}

Test(perf_out, head_of_the_tests_asked_for)
{
	opts.test[PERF_WRITE] = false;
	cr_expect_str_eq(head(2), "    size |  send us      MB/s |  read us      MB/s");
}

Test(perf_out, head_of_both_sides)
{
	with_raw();
	cr_expect_str_eq(head(2), "    size test      lat us        raw  ratio        MB/s        raw  "
				  "ratio");
}

Test(perf_out, head_of_the_long_form)
{
	opts.verbose = true;
	cr_expect_str_eq(head(2), "    size test  side    min us    median       p99      mean    iters "
				  "     MB/s    iters");
}

/*
 * Rows
 */

#define ROW PRINTED(perf_out_row(&opts, &row))

Test(perf_out, row)
{
	cr_expect_str_eq(ROW, "      1K |     1.00    1000.0 |    11.00    2000.0 |    21.00    3000.0\n");
}

Test(perf_out, row_of_the_tests_asked_for)
{
	opts.test[PERF_SEND] = opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW, "      1K |    11.00    2000.0\n");
}

Test(perf_out, row_of_bare_libfabric)
{
	raw_alone();
	opts.test[PERF_SEND] = opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW, "      1K |    12.00    4000.0\n");
}

Test(perf_out, row_of_both_sides_names_the_size_once)
{
	with_raw();
	opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW, "      1K send        1.00       2.00  0.500      1000.0     2000.0  0.500\n"
			      "         write      11.00      12.00  0.917      2000.0     4000.0  0.500\n");
}

Test(perf_out, ratio_to_nothing_is_zero)
{
	with_raw();
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_RAW] = (struct perf_cell){ .bw = 0 };
	cr_expect_str_eq(ROW, "      1K send        1.00       0.00  0.000      1000.0        0.0  0.000\n");
}

Test(perf_out, long_row_of_both_sides)
{
	with_raw();
	opts.verbose = true;
	opts.test[PERF_READ] = opts.test[PERF_SEND] = false;
	cr_expect_str_eq(ROW,
		"      1K write dat      10.25     11.00     12.50     11.12      110    2000.0      210\n"
		"      1K write raw      11.25     12.00     13.50     12.12      111    4000.0      211\n");
}

/*
 * JSON
 */

Test(perf_out, json_prints_no_table)
{
	opts.json = true;
	cr_expect_str_eq(PRINTED(perf_out_begin(&opts, &fabric)), "");
	cr_expect_str_eq(ROW, "");
}

#define JSON PRINTED(perf_out_json(&opts, &fabric, &row))

Test(perf_out, json_of_no_sizes)
{
	opts.nsizes = 0;
	opts.wait = true;
	opts.verify = false;
	opts.repeat = 3;
	opts.rotate = true;
	opts.window = 64;
	cr_expect_str_eq(JSON,
		"{\n"
		"  \"program\": \"datperf\",\n"
		"  \"dat_version\": \"9.9\",\n"
		"  \"device\": \"ofi\",\n"
		"  \"provider\": \"tcp\",\n"
		"  \"domain\": \"lo\",\n"
		"  \"mode\": \"wait\",\n"
		"  \"verified\": false,\n"
		"  \"repeat\": 3,\n"
		"  \"buffers\": 64,\n"
		"  \"results\": []\n"
		"}\n");
}

Test(perf_out, json_of_both_sides)
{
	with_raw();
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	cr_expect_str_eq(JSON,
		"{\n"
		"  \"program\": \"datperf\",\n"
		"  \"dat_version\": \"9.9\",\n"
		"  \"device\": \"ofi\",\n"
		"  \"provider\": \"tcp\",\n"
		"  \"domain\": \"lo\",\n"
		"  \"mode\": \"poll\",\n"
		"  \"raw_cq\": \"fd\",\n"
		"  \"verified\": true,\n"
		"  \"repeat\": 1,\n"
		"  \"buffers\": 1,\n"
		"  \"results\": [\n"
		"    {\n"
		"      \"size\": 1024,\n"
		"      \"test\": \"send\",\n"
		"      \"dat\": {\n"
		"        \"lat_us\": 1.0000,\n"
		"        \"lat_min_us\": 0.2500,\n"
		"        \"lat_p99_us\": 2.5000,\n"
		"        \"lat_mean_us\": 1.1250,\n"
		"        \"lat_iters\": 100,\n"
		"        \"bw_MBps\": 1000.0000,\n"
		"        \"bw_iters\": 200\n"
		"      },\n"
		"      \"raw\": {\n"
		"        \"lat_us\": 2.0000,\n"
		"        \"lat_min_us\": 1.2500,\n"
		"        \"lat_p99_us\": 3.5000,\n"
		"        \"lat_mean_us\": 2.1250,\n"
		"        \"lat_iters\": 101,\n"
		"        \"bw_MBps\": 2000.0000,\n"
		"        \"bw_iters\": 201\n"
		"      },\n"
		"      \"lat_ratio\": 0.5000,\n"
		"      \"bw_ratio\": 0.5000\n"
		"    }\n"
		"  ]\n"
		"}\n");
}

Test(perf_out, json_of_bare_libfabric_has_no_device)
{
	const char *text;

	raw_alone();
	fabric.has_wait_obj = false;
	text = JSON;
	cr_expect(strstr(text, "\"device\": null,"), "%s", text);
	cr_expect(strstr(text, "\"raw_cq\": \"none\","), "%s", text);
	cr_expect(!strstr(text, "\"dat\":"), "%s", text);
	cr_expect(!strstr(text, "ratio"), "%s", text);
}

Test(perf_out, json_has_a_point_for_each_size_and_test)
{
	struct perf_row rows[2] = { row, row };
	const char *text, *p;
	int points = 0;

	rows[1].size = 7;
	opts.nsizes = 2;
	opts.test[PERF_WRITE] = false;
	text = PRINTED(perf_out_json(&opts, &fabric, rows));
	for (p = text; (p = strstr(p, "\"size\": ")); p++)
		points++;
	cr_expect_eq(points, 4);
	cr_expect(strstr(strstr(text, "\"size\": 7,\n"), "\"test\": \"read\""), "%s", text);
}

/*
 * Progress
 */

/* Makes stderr a terminal; returns its other end. */
static int terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct termios raw;

	cr_assert(master >= 0);
	cr_assert_eq(grantpt(master), 0);
	cr_assert_eq(unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	cr_assert(slave >= 0);
	tcgetattr(slave, &raw);
	cfmakeraw(&raw);
	tcsetattr(slave, TCSANOW, &raw);
	dup2(slave, STDERR_FILENO);
	close(slave);
	return master;
}

/* Reads as many bytes as @want has. */
static void check_came(int master, const char *want)
{
	size_t len = strlen(want), done = 0;
	char got[256];
	ssize_t n;

	while (done < len && (n = read(master, got + done, len - done)) > 0)
		done += (size_t)n;
	got[done] = '\0';
	cr_expect_str_eq(got, want);
}

/* Reads to the end, which is the last close of the terminal. */
static void check_last(int master, const char *want)
{
	char more;

	fflush(stderr);
	close(STDERR_FILENO);
	check_came(master, want);
	cr_expect(read(master, &more, 1) <= 0);
}

Test(perf_out, progress_is_for_terminals)
{
	int err = memfd_create("stderr", MFD_CLOEXEC);

	dup2(err, STDERR_FILENO);
	perf_out_progress(1, 9, "send", 4096);
	perf_out_progress_end();
	fflush(stderr);
	cr_expect_eq(lseek(err, 0, SEEK_END), 0);
}

Test(perf_out, progress_on_a_terminal)
{
	int master = terminal();

	perf_out_progress(1, 9, "send", 4096);
	check_last(master, "\r[1/9] send 4K\033[K");
}

Test(perf_out, progress_makes_room_for_a_row)
{
	int master = terminal();

	perf_out_progress(1, 9, "send", 4096);
	check_came(master, "\r[1/9] send 4K\033[K");
	begin();
	perf_out_row(&opts, &row);
	end();
	check_last(master, "\r\033[K");
}

Test(perf_out, progress_ends_once)
{
	int master = terminal();

	perf_out_progress(9, 9, "read", 1);
	perf_out_progress_end();
	perf_out_progress_end();
	check_last(master, "\r[9/9] read 1\033[K\r\033[K");
}
