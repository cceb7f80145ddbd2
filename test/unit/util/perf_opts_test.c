/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's command line: each option, its limits, and combinations that are refused. */
#include "datperf.h"

#include "../capture.h"

#include <criterion/criterion.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define GO_ON	(-1)
#define USAGE	2

const char *perf_dat_api(void)
{
	return "9.9";
}

static struct perf_opts opts;
static struct capture err;
static const char *said;

/* Parses words that are separated by single blanks, with the program's name in front. */
static int parse(const char *words)
{
	static char text[1024], program[] = "datperf";
	static char *argv[32]; /* opts.files points into it */
	char *word;
	int argc = 1, status;

	argv[0] = program;
	strcpy(text, words);
	for (word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	optind = 0; /* makes glibc start over */
	capture_begin(&err);
	status = perf_opts_parse(argc, argv, &opts);
	fflush(stderr);
	said = capture_end(&err);
	if (status == GO_ON)
		cr_expect_str_eq(said, "");
	return status;
}

static void check_refused(const char *words, const char *why)
{
	cr_expect_eq(parse(words), USAGE, "%s", words);
	cr_expect(strstr(said, why), "%s: %s", words, said);
}

/*
 * Roles
 */

Test(perf_opts, no_role)
{
	check_refused("", "give a host, --server or --local");
	check_refused("--json", "give a host, --server or --local");
}

Test(perf_opts, roles_that_conflict)
{
	check_refused("--local --server", "choose one of");
	check_refused("-s -l", "choose one of");
	check_refused("-l host", "choose one of");
	check_refused("--server host", "choose one of");
	check_refused("-c host -s", "choose one of");
	check_refused("-l -c host", "choose one of");
}

Test(perf_opts, role_given_twice)
{
	cr_expect_eq(parse("-l --local"), GO_ON);
	cr_expect_eq(opts.role, PERF_ROLE_LOCAL);
}

Test(perf_opts, server)
{
	cr_expect_eq(parse("--server"), GO_ON);
	cr_expect_eq(opts.role, PERF_ROLE_SERVER);
	cr_expect_eq(opts.port, DATPERF_PORT);
}

Test(perf_opts, local_takes_any_port)
{
	cr_expect_eq(parse("--local"), GO_ON);
	cr_expect_eq(opts.port, 0);
	cr_expect_eq(parse("--local -p 7"), GO_ON);
	cr_expect_eq(opts.port, 7);
}

Test(perf_opts, host_as_an_option_or_not)
{
	cr_expect_eq(parse("-j host"), GO_ON);
	cr_expect_eq(opts.role, PERF_ROLE_CLIENT);
	cr_expect_str_eq(opts.host, "host");
	cr_expect_eq(parse("--client=other"), GO_ON);
	cr_expect_eq(opts.role, PERF_ROLE_CLIENT);
	cr_expect_str_eq(opts.host, "other");
	cr_expect_eq(opts.port, DATPERF_PORT);
}

Test(perf_opts, host_before_options)
{
	cr_expect_eq(parse("host -n 3"), GO_ON);
	cr_expect_str_eq(opts.host, "host");
	cr_expect_eq(opts.iters, 3);
}

Test(perf_opts, host_behind_dashes)
{
	cr_expect_eq(parse("-- -l"), GO_ON);
	cr_expect_str_eq(opts.host, "-l");
}

/*
 * Defaults
 */

Test(perf_opts, defaults)
{
	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect_null(opts.host);
	cr_expect_str_eq(opts.device, "ofi");
	cr_expect_str_eq(opts.provider, "tcp");
	cr_expect(!opts.rdm);
	cr_expect_eq(opts.nsizes, 23);
	cr_expect_eq(opts.sizes[22], 4u << 20);
	cr_expect(opts.test[PERF_SEND] && opts.test[PERF_WRITE] && opts.test[PERF_READ]);
	cr_expect(opts.side[PERF_SIDE_DAT] && !opts.side[PERF_SIDE_RAW]);
	cr_expect_eq(opts.iters, 0);
	cr_expect_eq(opts.time_ms, 40);
	cr_expect_eq(opts.repeat, 1);
	cr_expect_eq(opts.window, 64);
	cr_expect_eq(opts.timeout_ms, 10000);
	cr_expect_eq(opts.npeers, 0);
	cr_expect(opts.verify);
	cr_expect(!opts.wait && !opts.bind && !opts.json && !opts.verbose && !opts.bare_cq &&
		  !opts.rotate && !opts.bidir && !opts.csv && !opts.histogram);
	cr_expect_eq(opts.warm_up, -1);
	cr_expect(opts.endpoints == 1 && opts.threads == 1 && !opts.keep);
}

Test(perf_opts, nothing_is_left_of_an_earlier_parse)
{
	cr_expect_eq(parse("-j -v -n 5 -t read --raw-only host"), GO_ON);
	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect(!opts.json && !opts.verbose && opts.test[PERF_SEND] && opts.side[PERF_SIDE_DAT]);
	cr_expect_eq(opts.iters, 0);
	cr_expect_null(opts.host);
}

/*
 * Numbers
 */

static void check_limits(const char *option, unsigned long long low, unsigned long long high)
{
	static const char *const bad[] = {
		"x", "1x", "-1", "1.5", "0x10", "99999999999999999999999"
	};
	char words[64];
	size_t i;

	sprintf(words, "-l %s%llu", option, low);
	cr_expect_eq(parse(words), GO_ON, "%s", words);
	sprintf(words, "-l %s%llu", option, high);
	cr_expect_eq(parse(words), GO_ON, "%s", words);
	sprintf(words, "-l %s%llu", option, low - 1);
	check_refused(words, " takes a number from ");
	sprintf(words, "-l %s%llu", option, high + 1);
	check_refused(words, " takes a number from ");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sprintf(words, "-l %s%s", option, bad[i]);
		check_refused(words, bad[i]);
	}
}

Test(perf_opts, limits_of_each_number)
{
	check_limits("--port=", 1, 65535);
	check_limits("--iters=", 1, 1000000);
	check_limits("--time=", 0, 60000);
	check_limits("--repeat=", 1, 1000);
	check_limits("--window=", 1, PERF_WINDOW_MAX);
	check_limits("--timeout=", 1, 3600);
	check_limits("-q", 1, PERF_ENDPOINTS_MAX);
	check_limits("--endpoints=", 1, PERF_ENDPOINTS_MAX);
	check_limits("--threads=", 1, PERF_THREADS_MAX);
	check_limits("--segments=", 1, PERF_SEGMENTS_MAX);
}

Test(perf_opts, hosts)
{
	cr_expect_eq(parse("-p 7 a b:8 [::1]:9 fe80::1 [::2]"), GO_ON);
	cr_assert_eq(opts.nhosts, 5);
	cr_expect_str_eq(opts.host, "a");
	cr_expect_eq(opts.port, 7);
	cr_expect(!strcmp(opts.hosts[1].name, "b") && opts.hosts[1].port == 8);
	cr_expect(!strcmp(opts.hosts[2].name, "::1") && opts.hosts[2].port == 9);
	cr_expect(!strcmp(opts.hosts[3].name, "fe80::1") && opts.hosts[3].port == 7);
	cr_expect(!strcmp(opts.hosts[4].name, "::2") && opts.hosts[4].port == 7);
	cr_expect_eq(parse("a:9"), GO_ON);
	cr_expect(opts.nhosts == 1 && !strcmp(opts.host, "a") && opts.port == 9);
	check_refused("a:", "is not HOST");
	check_refused("a:0", "is not HOST");
	check_refused("a:65536", "is not HOST");
	check_refused(":5", "is not HOST");
	check_refused("[::1", "is not HOST");
	check_refused("[::1]5", "is not HOST");
	check_refused("[]:5", "is not HOST");
	check_refused("--ssh a b c", "--ssh");
	cr_expect_eq(parse("-c a:9 b"), GO_ON);
	cr_expect(opts.nhosts == 2 && !strcmp(opts.host, "a") && opts.port == 9);
	check_refused("-l a", "choose one of");
	check_refused("a b --peers 1", "several hosts: not with");
	check_refused("a b --csv", "several hosts: not with");
	check_refused("a b -T 0", "several hosts: not with");
	check_refused("a b --samples f", "several hosts: not with");
	check_refused("a b --plot f.svg", "several hosts: not with");
	check_refused("a b --bind", "several hosts: not with");
}

Test(perf_opts, a_rate)
{
	check_limits("--rate=", 1, PERF_RATE_MAX);
	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect_eq(opts.rate, 0);
	cr_expect_eq(parse("-l --rate 1000"), GO_ON);
	cr_expect_eq(opts.rate, 1000);
	check_refused("-l --rate 1 --bidir", "not with --bidir");
	check_refused("-l --rate 1 --wait", "--wait");
	check_refused("-l --rate 1 --peers 1", "--peers");
	check_refused("-s --rate 1", "--rate is for clients");
}

Test(perf_opts, without_an_end)
{
	cr_expect_eq(parse("-l -T 0 --samples f"), GO_ON);
	cr_expect(opts.endless);
	cr_expect_eq(opts.time_ms, 500);
	cr_expect_str_eq(opts.samples, "f");
	cr_expect_eq(parse("-l -T 1"), GO_ON);
	cr_expect(!opts.endless && !opts.samples);
	check_refused("-l --peers 1 -T 0", "--time 0 and --samples are not for --peers");
	check_refused("-l --peers 1 --samples f", "not for --peers");
	check_refused("-s --samples f", "--samples is for clients");
}

/* 0 is allowed, so the limits of other numbers do not apply. */
Test(perf_opts, no_warm_up)
{
	cr_expect_eq(parse("-l --warmup 0"), GO_ON);
	cr_expect_eq(opts.warm_up, 0);
	cr_expect_eq(parse("-l -W 1000000"), GO_ON);
	cr_expect_eq(opts.warm_up, PERF_ITERS_MAX);
	check_refused("-l -W 1000001", " takes a number from ");
	check_refused("-l -W -1", " takes a number from ");
}

Test(perf_opts, several_connections_are_for_dat)
{
	cr_expect_eq(parse("-l -q 3 --threads 2"), GO_ON);
	cr_expect_eq(opts.endpoints, 3);
	cr_expect_eq(opts.threads, 2);
	check_refused("-l -q 2 --raw", "for DAT alone");
	check_refused("-l --threads 2 --raw-only", "for DAT alone");
	check_refused("-l --threads 2 --peers 1", "not for --peers");
	cr_expect_eq(parse("-l -q 1 --threads 1 --raw"), GO_ON);
}

Test(perf_opts, plot)
{
	static const char *const bad[] = { "a", "a.pdf", "a.svg.gz", "svg", "a.png/b" };
	char line[64];
	size_t i;

	cr_expect_eq(parse("-l --plot a.svg"), GO_ON);
	cr_expect_str_eq(opts.plot, "a.svg");
	cr_expect(!opts.from);
	cr_expect_eq(parse("-l --plot a.b.png"), GO_ON);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "-l --plot %s", bad[i]);
		check_refused(line, "must end with .svg or .png");
	}
	check_refused("-s --plot a.svg", "--plot is for clients");
	check_refused("-l --peers 1 --plot a.svg", "--plot is for clients");
}

Test(perf_opts, plot_from_files)
{
	cr_expect_eq(parse("--plot a.svg --from one two"), GO_ON);
	cr_expect(opts.from);
	cr_expect_eq(opts.nfiles, 2);
	cr_expect_str_eq(opts.files[0], "one");
	cr_expect_str_eq(opts.files[1], "two");
	check_refused("--from one", "--from needs --plot");
	check_refused("-l --plot a.svg --from one", "measures nothing");
	check_refused("--plot a.svg --from", "one to eight files");
	check_refused("--plot a.svg --from 1 2 3 4 5 6 7 8 9", "one to eight files");
}

Test(perf_opts, keep_is_for_servers)
{
	cr_expect_eq(parse("-s --keep"), GO_ON);
	cr_expect(opts.keep);
	check_refused("-l --keep", "--keep is for --server");
	check_refused("host --keep", "--keep is for --server");
	check_refused("-s --keep --peers 1", "--keep is for --server");
	check_refused("-s --keep --raw-only", "--keep is for --server");
}

Test(perf_opts, one_format)
{
	cr_expect_eq(parse("-l --csv --histogram"), GO_ON);
	cr_expect(opts.csv && opts.histogram && !opts.json);
	check_refused("-l --csv --json", "choose one of --json and --csv");
}

Test(perf_opts, number_that_is_empty)
{
	check_refused("-l --iters=", "takes a number");
}

/* Its difference to 2^64 is within the limits. */
Test(perf_opts, number_below_zero_behind_a_blank)
{
	char program[] = "datperf", local[] = "-l", option[] = "-n",
	     value[] = " -18446744073709551611";
	char *argv[] = { program, local, option, value, NULL };

	capture_begin(&err);
	cr_expect_eq(perf_opts_parse(4, argv, &opts), USAGE);
	capture_end(&err);
}

Test(perf_opts, numbers_go_where_they_belong)
{
	cr_expect_eq(parse("-l -p 11 -n 12 -T 13 -r 14 -w 15 --timeout 16"), GO_ON);
	cr_expect_eq(opts.port, 11);
	cr_expect_eq(opts.iters, 12);
	cr_expect_eq(opts.time_ms, 13);
	cr_expect_eq(opts.repeat, 14);
	cr_expect_eq(opts.window, 15);
	cr_expect_eq(opts.timeout_ms, 16000);
}

Test(perf_opts, percentile)
{
	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect_eq(opts.percentile, PERF_MEDIAN);
	cr_expect_eq(parse("-l --percentile 99.9"), GO_ON);
	cr_expect_eq(opts.percentile, 9990);
	check_refused("-l --percentile 100", "from 0.01 to 99.99, such as 99.9, not \"100\"");
}

Test(perf_opts, last_of_a_number_counts)
{
	cr_expect_eq(parse("-l -n 12 -n 13"), GO_ON);
	cr_expect_eq(opts.iters, 13);
}

/*
 * Lists and keywords
 */

Test(perf_opts, bad_sizes)
{
	check_refused("-l -n 0", "--iters takes a number from 1 to 1000000, not \"0\"");
	check_refused("-l -p x", "--port takes a number from 1 to 65535, not \"x\"");
	check_refused("-l -S x", "invalid sizes \"x\"");
	check_refused("-l -S 2G", "invalid sizes \"2G\"");
	check_refused("-l --sizes=", "invalid sizes \"\"");
	check_refused("-l -S 8,", "invalid sizes \"8,\"");
	check_refused("-l -S 2G", "invalid sizes \"2G\"");
}

Test(perf_opts, sizes)
{
	cr_expect_eq(parse("-l -S 8,1K-2K"), GO_ON);
	cr_expect_eq(opts.nsizes, 3);
	cr_expect_eq(opts.sizes[0], 8);
	cr_expect_eq(opts.sizes[1], 1024);
	cr_expect_eq(opts.sizes[2], 2048);
}

Test(perf_opts, bad_tests)
{
	check_refused("-l -t pull", "unknown test in \"pull\"");
	check_refused("-l --tests=", "unknown test");
	check_refused("-l -t send,", "unknown test");
	check_refused("-l -t ,send", "unknown test");
	check_refused("-l -t sen", "unknown test");
	check_refused("-l -t sends", "unknown test");
	check_refused("-l -t send;read", "unknown test");
}

Test(perf_opts, tests_in_any_order)
{
	cr_expect_eq(parse("-l -t read,send,read"), GO_ON);
	cr_expect(opts.test[PERF_SEND] && !opts.test[PERF_WRITE] && opts.test[PERF_READ]);
}

Test(perf_opts, datagrams)
{
	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect(!opts.test[PERF_UD]);
	cr_expect_eq(opts.sizes[opts.nsizes - 1], 4u << 20);
	cr_expect_eq(parse("-l --ud"), GO_ON);
	cr_expect(opts.test[PERF_UD] && !opts.test[PERF_SEND] && !opts.test[PERF_READ]);
	cr_expect_eq(opts.sizes[opts.nsizes - 1], 64u << 10);
	cr_expect_eq(parse("-l -t send,ud -S 8"), GO_ON);
	cr_expect(opts.test[PERF_UD] && opts.test[PERF_SEND]);
	cr_expect_eq(opts.nsizes, 1);
}

Test(perf_opts, tests_of_the_extension)
{
	const char *why = "fadd and cswap transfer 8 bytes: not with other tests or sizes";

	cr_expect_eq(parse("-l -t send,imm"), GO_ON);
	cr_expect(opts.test[PERF_IMM] && opts.test[PERF_SEND]);
	cr_expect_eq(opts.nsizes, 23);
	cr_expect_eq(parse("-l -t fadd,cswap"), GO_ON);
	cr_expect(opts.test[PERF_FADD] && opts.test[PERF_CSWAP]);
	cr_expect_eq(opts.nsizes, 1);
	cr_expect_eq(opts.sizes[0], 8);
	cr_expect_eq(parse("-l -t fadd -S 8"), GO_ON);
	check_refused("-l -t fadd -S 4", why);
	check_refused("-l -t cswap -S 8,16", why);
	check_refused("-l -t cswap,imm -S 8", why);
	check_refused("-l -t imm --raw", "the tests imm, fadd and cswap are for DAT alone");
	check_refused("-l -t fadd --raw-only", "the tests imm, fadd and cswap are for DAT alone");
}

Test(perf_opts, receives_and_segments)
{
	const char *alone = "--srq and --segments are for DAT alone, and not for --peers";

	cr_expect_eq(parse("-l"), GO_ON);
	cr_expect(!opts.srq && opts.segments == 1);
	cr_expect_eq(parse("-l --srq --segments 4 --threads 2"), GO_ON);
	cr_expect(opts.srq && opts.segments == 4);
	check_refused("-l --srq --raw", alone);
	check_refused("-l --segments 2 --raw-only", alone);
	check_refused("-l --srq --peers 1", alone);
	check_refused("-l --srq -q 2", "--srq is for one EP of each thread: not with --endpoints");
}

Test(perf_opts, server_by_ssh)
{
	cr_expect_eq(parse("--ssh node"), GO_ON);
	cr_expect_eq(opts.role, PERF_ROLE_CLIENT);
	cr_expect_str_eq(opts.host, "node");
	cr_expect_eq(opts.port, DATPERF_PORT);
	cr_expect_eq(parse("--ssh me@node"), GO_ON);
	cr_expect_str_eq(opts.ssh, "me@node");
	cr_expect_str_eq(opts.host, "node");
	cr_expect_eq(parse("--ssh node node-ib"), GO_ON);
	cr_expect_str_eq(opts.ssh, "node");
	cr_expect_str_eq(opts.host, "node-ib");
	check_refused("--ssh node --local", "choose one of --local, --server and a host");
	check_refused("--ssh node --stdin", "--stdin is for --server");
	cr_expect_eq(parse("--server --stdin"), GO_ON);
	cr_expect(opts.eof);
}

Test(perf_opts, peers)
{
	cr_expect_eq(parse("-l --peers 1"), GO_ON);
	cr_expect_eq(opts.npeers, 1);
	cr_expect_eq(parse("-l --peers 7 --peers 65536,1,10"), GO_ON);
	cr_expect_eq(opts.npeers, 3);
	cr_expect_eq(opts.peers[0], 65536);
	cr_expect_eq(opts.peers[2], 10);
	cr_expect_eq(parse("-l --peers 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"), GO_ON);
	cr_expect_eq(opts.npeers, PERF_PEERS_NUMBERS);
}

Test(perf_opts, bad_peers)
{
	static const char *const bad[] = {
		"", "0", "65537", "1,", ",1", "1,,2", "1-8", "x", "8x", "0000001",
		"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
	};
	char words[128];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sprintf(words, "-l --peers=%s", bad[i]);
		check_refused(words, "invalid numbers of connections");
	}
}

Test(perf_opts, peers_measures_dat_only)
{
	check_refused("-l --peers 1 --raw", "--peers measures DAT only");
	check_refused("-l --raw-only --peers 1", "--peers measures DAT only");
}

Test(perf_opts, raw_cq)
{
	check_refused("-l --raw-cq=maybe", "fd or none, not \"maybe\"");
	check_refused("-l --raw-cq=", "fd or none");
	cr_expect_eq(parse("-l --raw-cq none"), GO_ON);
	cr_expect(opts.bare_cq);
	cr_expect_eq(parse("-l --raw-cq none --raw-cq fd"), GO_ON);
	cr_expect(!opts.bare_cq);
}

Test(perf_opts, endpoint)
{
	check_refused("-l --endpoint=dgram", "msg or rdm, not \"dgram\"");
	check_refused("-l --endpoint=", "msg or rdm");
	cr_expect_eq(parse("-l --endpoint rdm"), GO_ON);
	cr_expect(opts.rdm);
	cr_expect_eq(parse("-l --endpoint rdm --endpoint msg"), GO_ON);
	cr_expect(!opts.rdm);
}

Test(perf_opts, names)
{
	cr_expect_eq(parse("-l -D ofi-eth1 --provider verbs"), GO_ON);
	cr_expect_str_eq(opts.device, "ofi-eth1");
	cr_expect_str_eq(opts.provider, "verbs");
	cr_expect_eq(parse("-l -D ofi-eth1 --raw-only"), GO_ON);
	cr_expect_str_eq(opts.device, "ofi-eth1");
	cr_expect_eq(parse("-l -D ofi-eth1 --raw-only --provider verbs"), GO_ON);
	cr_expect_null(opts.device, "the provider was named");
	cr_expect_eq(parse("-l --raw-only"), GO_ON);
	cr_expect_null(opts.device);
}

/*
 * Flags
 */

Test(perf_opts, flags)
{
	cr_expect_eq(parse("-l --wait --no-verify --bind -j -v"), GO_ON);
	cr_expect(opts.wait && !opts.verify && opts.bind && opts.json && opts.verbose);
}

Test(perf_opts, raw_adds_to_dat)
{
	cr_expect_eq(parse("-l --raw"), GO_ON);
	cr_expect(opts.side[PERF_SIDE_DAT] && opts.side[PERF_SIDE_RAW]);
}

Test(perf_opts, raw_only_replaces_dat)
{
	cr_expect_eq(parse("-l --raw --raw-only"), GO_ON);
	cr_expect(!opts.side[PERF_SIDE_DAT] && opts.side[PERF_SIDE_RAW]);
	cr_expect_eq(parse("-l --raw-only --raw"), GO_ON);
	cr_expect(!opts.side[PERF_SIDE_DAT] && opts.side[PERF_SIDE_RAW]);
}

Test(perf_opts, unknown_option)
{
	check_refused("-l -q", "q");
	check_refused("-l --quick", "quick");
}

Test(perf_opts, missing_argument)
{
	check_refused("-l -n", "requires an argument");
	check_refused("-l --sizes", "requires an argument");
}

Test(perf_opts, argument_of_a_flag)
{
	check_refused("--local=yes", "allow an argument");
}

/* Redirects stdout to the file that capture.h reads. */
static int parse_stdout(const char *words)
{
	int status, before = dup(STDOUT_FILENO), file = memfd_create("stdout", MFD_CLOEXEC);
	static char text[8192];
	ssize_t n;

	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	status = parse(words);
	fflush(stdout);
	n = pread(file, text, sizeof(text) - 1, 0);
	dup2(before, STDOUT_FILENO);
	close(before);
	close(file);
	text[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(said, "");
	said = text;
	return status;
}

Test(perf_opts, help_names_every_option)
{
	static const char *const names[] = {
		"server", "local", "device", "port", "sizes", "tests", "iters", "time", "repeat",
		"window", "wait", "raw", "raw-only", "raw-cq", "provider", "endpoint", "no-verify",
		"bind", "peers", "ud", "timeout", "json", "verbose", "help", "version",
	};
	char option[32];
	size_t i;

	cr_expect_eq(parse_stdout("-h"), EXIT_SUCCESS);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		sprintf(option, "--%s ", names[i]);
		cr_expect(strstr(said, option), "%s", option);
	}
}

Test(perf_opts, version_names_the_api)
{
	cr_expect_eq(parse_stdout("--version --local -q"), EXIT_SUCCESS);
	cr_expect(!strncmp(said, "datperf ", 8), "%s", said);
	cr_expect(strstr(said, ", DAT 9.9\n"), "%s", said);
}
