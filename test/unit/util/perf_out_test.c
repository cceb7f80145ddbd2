/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The output of datperf for given numbers, to the last byte. */
#include "perf_out_rows.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <math.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>

TestSuite(perf_out, .init = set_up);

Test(perf_out, names_of_tests)
{
	cr_expect_str_eq(perf_test_name(PERF_SEND), "send");
	cr_expect_str_eq(perf_test_name(PERF_WRITE), "write");
	cr_expect_str_eq(perf_test_name(PERF_READ), "read");
	cr_expect_str_eq(perf_test_name(PERF_IMM), "imm");
	cr_expect_str_eq(perf_test_name(PERF_FADD), "fadd");
	cr_expect_str_eq(perf_test_name(PERF_CSWAP), "cswap");
	cr_expect_str_eq(perf_test_name(PERF_UD), "ud");
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
	cr_expect_str_eq(head(1),
			 "DAT 9.9, IA ofi on tcp lo 192.0.2.7, waiting for events, one buffer");
}

Test(perf_out, buffers_in_turn)
{
	opts.rotate = true;
	opts.window = 64;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, polling, up to 64 buffers in turn");
}

Test(perf_out, bandwidth_both_ways)
{
	opts.bidir = true;
	cr_expect_str_eq(head(1),
			 "DAT 9.9, IA ofi on tcp lo, polling, one buffer, bandwidth both ways");
}

Test(perf_out, several_connections)
{
	opts.endpoints = 3;
	opts.threads = 2;
	cr_expect_str_eq(head(1),
			 "DAT 9.9, IA ofi on tcp lo, polling, one buffer, 3 EPs, 2 threads");
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
	cr_expect_str_eq(
		head(1),
		"DAT 9.9, IA ofi on tcp lo, waiting for events (bare libfabric polls), one buffer");
	opts.wait = false;
	cr_expect_str_eq(head(1), "DAT 9.9, IA ofi on tcp lo, polling, one buffer");
}

Test(perf_out, head_of_the_tests_asked_for)
{
	opts.test[PERF_WRITE] = false;
	cr_expect_str_eq(head(2),
			 "    size |  send us     MB/s     msg/s |  read us     MB/s     msg/s");
}

Test(perf_out, head_of_both_sides)
{
	with_raw();
	cr_expect_str_eq(head(2),
			 "    size test     lat us        raw   ratio      MB/s        raw   "
			 "ratio     msg/s       raw");
}

Test(perf_out, head_of_the_long_form)
{
	opts.verbose = true;
	cr_expect_str_eq(
		PRINTED(perf_out_begin(&opts, &fabric)),
		"DAT 9.9, IA ofi on tcp lo, polling, one buffer\n"
		"                                                                    "
		"                  cpu us/message\n"
		"    size test  side   min us      p50       p90      p99    p99.9   "
		"  MB/s     msg/s  client  server\n");
}

Test(perf_out, shared_receive_queue_and_segments)
{
	opts.srq = true;
	opts.segments = 3;
	cr_expect_str_eq(head(1),
			 "DAT 9.9, IA ofi on tcp lo, polling, one buffer, SRQ, 3 segments");
}

/*
 * Rows
 */

Test(perf_out, row)
{
	cr_expect_str_eq(ROW,
			 "      1K |    1.00    1000.0       500 |   11.00    2000.0      1000 |"
			 "   21.00    3000.0      1500\n");
}

Test(perf_out, row_of_the_tests_asked_for)
{
	opts.test[PERF_SEND] = opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW, "      1K |   11.00    2000.0      1000\n");
}

Test(perf_out, rdma_of_no_bytes_is_not_measured)
{
	opts.test[PERF_READ] = false;
	row.size = 0;
	cr_expect_str_eq(ROW,
			 "       0 |    1.00    1000.0       500 |       -         -         -\n");
	opts.verbose = true;
	cr_expect(strstr(ROW, "       0 send "));
	cr_expect_null(strstr(ROW, "write"));
	opts.verbose = false;
	with_raw();
	cr_expect(strstr(ROW, "       0 send "));
	cr_expect_null(strstr(ROW, "write"));
}

Test(perf_out, unknown_latencies_are_dashes)
{
	opts.test[PERF_WRITE] = opts.test[PERF_READ] = false;
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat.chosen = NAN;
	cr_expect_str_eq(ROW, "      1K |       -    1000.0       500\n");
	with_raw();
	cr_expect_str_eq(ROW, "      1K send          -       2.00       -    1000.0     2000.0"
			      "   0.500       500      1000\n");
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat.chosen = 1;
	row.cell[PERF_SEND][PERF_SIDE_RAW].lat.chosen = NAN;
	cr_expect_str_eq(ROW, "      1K send       1.00          -       -    1000.0     2000.0"
			      "   0.500       500      1000\n");
}

Test(perf_out, row_of_bare_libfabric)
{
	raw_alone();
	opts.test[PERF_SEND] = opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW, "      1K |   12.00    4000.0      2000\n");
}

Test(perf_out, row_of_both_sides_names_the_size_once)
{
	with_raw();
	opts.test[PERF_READ] = false;
	cr_expect_str_eq(ROW,
			 "      1K send       1.00       2.00   0.500    1000.0     2000.0   0.500"
			 "       500      1000\n"
			 "         write     11.00      12.00   0.917    2000.0     4000.0   0.500"
			 "      1000      2000\n");
}

static void only_datagrams(void)
{
	memset(opts.test, 0, sizeof(opts.test));
	opts.test[PERF_UD] = true;
	fabric.datagram = 4076;
	row.cell[PERF_UD][PERF_SIDE_DAT].bw_sent = 400;
	row.cell[PERF_UD][PERF_SIDE_DAT].bw_lost = 1;
}

Test(perf_out, losses_of_datagrams)
{
	const char *text;

	only_datagrams();
	text = PRINTED(perf_out_begin(&opts, &fabric));
	cr_expect(strstr(text, ", datagrams of at most 4076 bytes\n"), "%s", text);
	cr_expect(strstr(text, " msg/s  lost %\n"), "%s", text);
	text = ROW;
	cr_expect(strstr(text, "    0.25\n"), "%s", text);
	opts.verbose = true;
	text = ROW;
	cr_expect(strstr(text, "    0.25\n"), "%s", text);
	opts.verbose = false;
	with_raw();
	text = ROW;
	cr_expect(strstr(text, "    0.25    0.00\n"), "%s", text);
}

Test(perf_out, another_percentile)
{
	const char *text;

	opts.percentile = 9990;
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat.chosen = 7.5;
	cr_expect_str_eq(head(1),
			 "DAT 9.9, IA ofi on tcp lo, polling, one buffer, latencies p99.9");
	cr_expect(strstr(ROW, "1K |    7.50 "));
	opts.verbose = true;
	text = PRINTED(perf_out_begin(&opts, &fabric));
	cr_expect(strstr(text, "   min us    p99.9       p90 "), "%s", text);
	cr_expect(strstr(ROW, "1K send  dat      0.25     7.50 "));
	opts.verbose = false;
	with_raw();
	cr_expect(strstr(head(2), "    size test   p99.9 us        raw   ratio "));
	cr_expect(strstr(ROW, "1K send       7.50       2.00   3.750 "));
}

Test(perf_out, ratio_to_nothing_is_zero)
{
	with_raw();
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_RAW] = (struct perf_cell){ .bw = 0 };
	cr_expect_str_eq(ROW,
			 "      1K send       1.00       0.00   0.000    1000.0        0.0   0.000"
			 "       500         0\n");
}

Test(perf_out, large_ratios_keep_their_columns)
{
	with_raw();
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_RAW].lat.chosen = 1 / 135.476;
	row.cell[PERF_SEND][PERF_SIDE_RAW].bw = 0.25;
	cr_expect(strstr(ROW, "send       1.00       0.01   135.5    1000.0        0.2    4000"));
}

Test(perf_out, long_row_of_both_sides)
{
	with_raw();
	opts.verbose = true;
	opts.test[PERF_READ] = opts.test[PERF_SEND] = false;
	cr_expect_str_eq(
		ROW,
		"      1K write dat     10.25    11.00     11.75    12.50    13.50   "
		"2000.0      1000   17.00   18.00\n"
		"      1K write raw     11.25    12.00     12.75    13.50    14.50   "
		"4000.0      2000   18.00   19.00\n");
}

/* Each table marks the figure itself, and the reason comes once, at the end. */
Test(perf_out, figures_that_scatter_are_marked)
{
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	row.cell[PERF_SEND][PERF_SIDE_DAT].lat_scatters = true;
	row.cell[PERF_SEND][PERF_SIDE_RAW].bw_scatters = true;
	cr_expect_str_eq(ROW, "      1K |    1.00*   1000.0       500\n");
	with_raw();
	cr_expect_str_eq(ROW,
			 "      1K send       1.00*      2.00   0.500    1000.0     2000.0*  0.500"
			 "       500      1000\n");
	opts.verbose = true;
	cr_expect(strstr(ROW, "    1.00*"));
	cr_expect(strstr(PRINTED(perf_out_end(&opts, &fabric, &row)), "* unsteady: "));
	cr_expect_str_eq(PRINTED(perf_out_end(&opts, &fabric, &row)), "");
}

Test(perf_out, no_mark_no_footnote)
{
	(void)ROW;
	cr_expect_str_eq(PRINTED(perf_out_end(&opts, &fabric, &row)), "");
}

Test(perf_out, histogram)
{
	struct perf_hist *hist = &row.cell[PERF_SEND][PERF_SIDE_DAT].hist;

	opts.histogram = true;
	opts.test[PERF_READ] = opts.test[PERF_WRITE] = false;
	hist->count[40] = 3;
	hist->count[42] = 1;
	cr_expect_str_eq(
		ROW,
		"      1K |    1.00    1000.0       500\n"
		"latency of send, 1K bytes, at least:\n"
		"          1.02 us         3  75.00 % ########################################\n"
		"          1.22 us         0   0.00 % \n"
		"          1.45 us         1  25.00 % #############\n");
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

/* Time of this test alone. */
static uint64_t now_ms;

uint64_t __wrap_perf_now_ns(void);
uint64_t __wrap_perf_now_ns(void)
{
	return 1000000 * now_ms;
}

/* Begins a run, and ends its first second with the second point. */
static void first_second(void)
{
	now_ms = 5000;
	perf_progress(0, 9, "send", 1);
	now_ms += 1000;
}

Test(perf_out, progress_is_for_terminals)
{
	int err = memfd_create("stderr", MFD_CLOEXEC);

	dup2(err, STDERR_FILENO);
	first_second();
	perf_progress(1, 9, "send", 4096);
	perf_progress_clear();
	fflush(stderr);
	cr_expect_eq(lseek(err, 0, SEEK_END), 0);
}

Test(perf_out, progress_of_a_short_run_is_not_shown)
{
	int master = terminal();

	perf_progress_tick();
	first_second();
	now_ms--;
	perf_progress(1, 9, "send", 4096);
	perf_progress_tick();
	perf_progress_clear();
	check_last(master, "");
}

Test(perf_out, progress_on_a_terminal)
{
	int master = terminal();

	first_second();
	perf_progress(1, 9, "send", 4096);
	check_came(master, "\r[1/9] send 4K\033[K");
	now_ms += 100;
	perf_progress(2, 9, "read", 4096);
	check_last(master, "\r[2/9] read 4K\033[K");
}

Test(perf_out, progress_of_a_long_point_is_a_line_per_second)
{
	int master = terminal(), i;

	now_ms = 5000;
	perf_progress(0, 9, "send", 1);
	for (i = 0; i < 25; i++) {
		now_ms += 100;
		perf_progress_tick();
	}
	perf_progress_clear();
	check_last(master, "\r[0/9] send 1, 1 s\033[K\r[0/9] send 1, 2 s\033[K\r\033[K");
}

Test(perf_out, progress_makes_room_for_a_row)
{
	int master = terminal();

	first_second();
	perf_progress(1, 9, "send", 4096);
	check_came(master, "\r[1/9] send 4K\033[K");
	begin();
	perf_out_row(&opts, &fabric, &row);
	end();
	check_last(master, "\r\033[K");
}

Test(perf_out, progress_ends_once)
{
	int master = terminal();

	first_second();
	perf_progress(9, 9, "read", 1);
	perf_progress_clear();
	perf_progress_clear();
	check_last(master, "\r[9/9] read 1\033[K\r\033[K");
}
