/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of datperf. */
#include "perf_plot.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

#define EXIT_USAGE 2

enum {
	OPT_WAIT = 256,
	OPT_RAW,
	OPT_RAW_ONLY,
	OPT_RAW_CQ,
	OPT_PROVIDER,
	OPT_ENDPOINT,
	OPT_NO_VERIFY,
	OPT_BIND,
	OPT_TIMEOUT,
	OPT_PEERS,
	OPT_ROTATE,
	OPT_BIDIR,
	OPT_UD,
	OPT_CSV,
	OPT_KEEP,
	OPT_PLOT,
	OPT_FROM,
	OPT_THREADS,
	OPT_SAMPLES,
	OPT_RATE,
	OPT_HISTOGRAM,
	OPT_PERCENTILE,
	OPT_SRQ,
	OPT_SEGMENTS,
	OPT_SSH,
	OPT_STDIN
};

static const struct option long_options[] = {
	{ "server", no_argument, NULL, 's' },
	{ "client", required_argument, NULL, 'c' },
	{ "ssh", required_argument, NULL, OPT_SSH },
	{ "stdin", no_argument, NULL, OPT_STDIN },
	{ "keep", no_argument, NULL, OPT_KEEP },
	{ "local", no_argument, NULL, 'l' },
	{ "device", required_argument, NULL, 'D' },
	{ "port", required_argument, NULL, 'p' },
	{ "sizes", required_argument, NULL, 'S' },
	{ "tests", required_argument, NULL, 't' },
	{ "ud", no_argument, NULL, OPT_UD },
	{ "iters", required_argument, NULL, 'n' },
	{ "time", required_argument, NULL, 'T' },
	{ "repeat", required_argument, NULL, 'r' },
	{ "warmup", required_argument, NULL, 'W' },
	{ "window", required_argument, NULL, 'w' },
	{ "endpoints", required_argument, NULL, 'q' },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "srq", no_argument, NULL, OPT_SRQ },
	{ "segments", required_argument, NULL, OPT_SEGMENTS },
	{ "peers", required_argument, NULL, OPT_PEERS },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "rotate", no_argument, NULL, OPT_ROTATE },
	{ "bidir", no_argument, NULL, OPT_BIDIR },
	{ "wait", no_argument, NULL, OPT_WAIT },
	{ "raw", no_argument, NULL, OPT_RAW },
	{ "raw-only", no_argument, NULL, OPT_RAW_ONLY },
	{ "raw-cq", required_argument, NULL, OPT_RAW_CQ },
	{ "provider", required_argument, NULL, OPT_PROVIDER },
	{ "endpoint", required_argument, NULL, OPT_ENDPOINT },
	{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
	{ "bind", no_argument, NULL, OPT_BIND },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "percentile", required_argument, NULL, OPT_PERCENTILE },
	{ "histogram", no_argument, NULL, OPT_HISTOGRAM },
	{ "samples", required_argument, NULL, OPT_SAMPLES },
	{ "json", no_argument, NULL, 'j' },
	{ "csv", no_argument, NULL, OPT_CSV },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "from", no_argument, NULL, OPT_FROM },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Usage: datperf --local [options]       both ends on this machine\n"
	"       datperf --server [options]      serve a client\n"
	"       datperf [options] HOST...       measure against the server on HOST, or at once\n"
	"                                       against several; HOST:PORT names its port\n"
	"       datperf --ssh HOST [options]    the same, and start this server by ssh\n"
	"       datperf --plot FILE --from JSON...  draw saved results\n"
	"\n"
	"Measures latency and bandwidth of DAT send, RDMA write, RDMA read and datagrams.\n"
	"\n"
	"  -D, --device NAME    IA to use (ofi)\n"
	"      --ssh HOST       start the server on HOST ([user@]host) by ssh\n"
	"      --stdin          server: end when standard input ends\n"
	"      --keep           serve one client after another\n"
	"  -p, --port N         connection qualifier (62050; --local: any free)\n"
	"  -S, --sizes LIST     message sizes, such as 0,8,1K or powers of two (1-4M)\n"
	"  -t, --tests LIST     some of send,write,read,mpi,ud (first three); in DAT 2.0\n"
	"                       also imm,fadd,cswap of its InfiniBand extension\n"
	"      --ud             measure datagrams: -t ud\n"
	"  -n, --iters N        messages per measurement (as many as fit --time)\n"
	"  -T, --time MS        milliseconds per measurement (40); 0: repeat all, with a line\n"
	"                       per second, until Ctrl-C\n"
	"  -W, --warmup N       messages before each measurement (by the speed)\n"
	"  -r, --repeat N       measure each point N times, print the medians (1)\n"
	"  -w, --window N       maximum number of messages in flight (64)\n"
	"  -q, --endpoints N    spread the messages over N EPs (1)\n"
	"      --threads N      client and server with N threads, each with its EPs (1)\n"
	"      --srq            receive from shared receive queues\n"
	"      --segments N     send, write and read each message as N local segments (1)\n"
	"      --bidir          measure bandwidth in both directions at once\n"
	"      --rate N         the client begins at most N messages per second (no limit)\n"
	"      --rotate         use another buffer for each message, not always the same\n"
	"      --peers LIST     measure instead the cost of these numbers of connections,\n"
	"                       such as 1,10,100,1000\n"
	"      --wait           wait for completions instead of polling\n"
	"      --raw            also measure bare libfabric, and print the ratio\n"
	"      --raw-only       measure bare libfabric only\n"
	"      --raw-cq KIND    bare libfabric's completion queue: fd, with a wait object\n"
	"                       as DAT needs it; or none, which is faster (fd)\n"
	"      --provider NAME  libfabric provider of --raw-only instead of an IA's (tcp)\n"
	"      --endpoint KIND  its endpoints: msg, or connectionless rdm (msg)\n"
	"      --no-verify      do not check the data\n"
	"      --bind           client on the first CPU, server on the last\n"
	"      --timeout SEC    how long the peer may be silent (10)\n"
	"      --percentile P   print this percentile of the latencies, such as 99.9 (50)\n"
	"      --histogram      also print how the latencies are distributed\n"
	"      --samples FILE   write the latency of each message to FILE\n"
	"  -j, --json           print JSON instead of a table\n"
	"      --csv            print comma-separated values instead of a table\n"
	"      --plot FILE      also draw latency and bandwidth by gnuplot: .svg or .png\n"
	"      --from           draw the files with saved JSON that follow\n"
	"  -v, --verbose        also print minimum, percentiles and processor time\n"
	"  -h, --help           print this help\n"
	"  -V, --version        print the version\n";

static int usage(const char *fmt, const char *arg)
{
	fputs("datperf: ", stderr);
	fprintf(stderr, fmt, arg);
	fputs(" (see datperf --help)\n", stderr);
	return EXIT_USAGE;
}

static int number(const char *text, unsigned long long low, unsigned long long high,
		  unsigned long long *value)
{
	char *end;

	/* strtoull() would skip blanks and a sign, and wrap negative values */
	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return *end || errno || *value < low || *value > high ? -1 : 0;
}

static const struct {
	int opt;
	unsigned long long low, high;
} limits[] = {
	{ 'p', 1, 65535 },
	{ 'n', 1, PERF_ITERS_MAX },
	{ 'T', 0, PERF_TIME_MAX },
	{ 'W', 0, PERF_ITERS_MAX },
	{ 'r', 1, PERF_REPEAT_MAX },
	{ 'w', 1, PERF_WINDOW_MAX },
	{ 'q', 1, PERF_ENDPOINTS_MAX },
	{ OPT_THREADS, 1, PERF_THREADS_MAX },
	{ OPT_SEGMENTS, 1, PERF_SEGMENTS_MAX },
	{ OPT_TIMEOUT, 1, 3600 },
	{ OPT_RATE, 1, PERF_RATE_MAX },
};

/* Prints the range of option @opt, which is row @i. */
static int number_usage(int opt, size_t i, const char *text)
{
	const struct option *o = long_options;

	while (o->val != opt)
		o++;
	fprintf(stderr,
		"datperf: --%s takes a number from %llu to %llu, not \"%s\" (see datperf --help)\n",
		o->name, limits[i].low, limits[i].high, text);
	return EXIT_USAGE;
}

/* Checks and stores an option that takes a number. */
static int number_option(struct perf_opts *opts, int opt, const char *text)
{
	unsigned long long value;
	size_t i = 0;

	while (limits[i].opt != opt)
		i++;
	if (number(text, limits[i].low, limits[i].high, &value))
		return number_usage(opt, i, text);
	switch (opt) {
	case 'p':
		opts->port = (unsigned int)value;
		break;
	case 'n':
		opts->iters = value;
		break;
	case 'T':
		opts->endless = !value;
		/* with the latency and the bandwidth a point takes a second */
		opts->time_ms = value ? (unsigned int)value : 500;
		break;
	case 'q':
		opts->endpoints = (unsigned int)value;
		break;
	case OPT_THREADS:
		opts->threads = (unsigned int)value;
		break;
	case OPT_SEGMENTS:
		opts->segments = (unsigned int)value;
		break;
	case OPT_RATE:
		opts->rate = (unsigned int)value;
		break;
	case 'W':
		opts->warm_up = (int)value;
		break;
	case 'r':
		opts->repeat = (int)value;
		break;
	case 'w':
		opts->window = (unsigned int)value;
		break;
	default:
		opts->timeout_ms = (unsigned int)value * 1000;
	}
	return -1;
}

static int tests_option(struct perf_opts *opts, const char *text)
{
	const char *part = text;
	size_t len;
	int t;

	memset(opts->test, 0, sizeof(opts->test));
	for (;; part += len + 1) {
		len = strcspn(part, ",");
		for (t = 0; t < PERF_NTESTS; t++)
			if (strlen(perf_test_name(t)) == len &&
			    !strncmp(part, perf_test_name(t), len))
				break;
		if (t == PERF_NTESTS)
			return usage("unknown test in \"%s\"", text);
		opts->test[t] = true;
		if (!part[len])
			return -1;
	}
}

static int sizes_option(struct perf_opts *opts, const char *text)
{
	opts->nsizes = perf_sizes_parse(text, opts->sizes, PERF_MAX_SIZES);
	if (opts->nsizes > 0)
		return -1;
	return usage("invalid sizes \"%s\": bytes from 0 to 1G, such as 0,8,1K or 1-4M", text);
}

static int peers_option(struct perf_opts *opts, const char *text)
{
	char part[sizeof("65536")];
	unsigned long long value;
	const char *at = text;
	size_t len;

	for (opts->npeers = 0;; at += len + 1) {
		len = strcspn(at, ",");
		if (len >= sizeof(part) || opts->npeers == PERF_PEERS_NUMBERS)
			break;
		memcpy(part, at, len);
		part[len] = '\0';
		if (number(part, 1, PERF_PEERS_MAX, &value))
			break;
		opts->peers[opts->npeers++] = (unsigned int)value;
		if (!at[len])
			return -1;
	}
	return usage("invalid numbers of connections \"%s\": from 1 to 65536, separated by commas",
		     text);
}

static int percentile_option(struct perf_opts *opts, const char *text)
{
	if (!perf_percentile_parse(text, &opts->percentile))
		return -1;
	return usage("--percentile takes a number from 0.01 to 99.99, such as 99.9, not \"%s\"",
		     text);
}

static int raw_cq_option(struct perf_opts *opts, const char *text)
{
	opts->bare_cq = !strcmp(text, "none");
	if (!opts->bare_cq && strcmp(text, "fd"))
		return usage("--raw-cq must be fd or none, not \"%s\"", text);
	return -1;
}

static int endpoint_option(struct perf_opts *opts, const char *text)
{
	opts->rdm = !strcmp(text, "rdm");
	if (!opts->rdm && strcmp(text, "msg"))
		return usage("--endpoint must be msg or rdm, not \"%s\"", text);
	return -1;
}

static int plot_option(struct perf_opts *opts, const char *text)
{
	opts->plot = text;
	if (perf_plot_terminal(text))
		return -1;
	return usage("the picture of --plot must end with .svg or .png, not \"%s\"", text);
}

static int role_option(struct perf_opts *opts, enum perf_role role)
{
	if (opts->role != PERF_ROLE_NONE && opts->role != role)
		return usage("%s", "choose one of --local, --server and a host");
	opts->role = role;
	return -1;
}

/*
 * Splits "HOST:PORT" or "[ADDRESS]:PORT" in place; an IPv6 address without brackets has no port.
 * Returns -1, with @text as it was, if it is neither.
 */
static int target(char *text, struct perf_target *t)
{
	const bool brackets = *text == '[';
	char *end = brackets ? strchr(text, ']') : strchr(text, ':'), *colon;
	unsigned long long port = 0;

	if (!brackets && end && strchr(end + 1, ':'))
		end = NULL;
	colon = end && brackets ? end + 1 : end;
	if ((brackets && !end) || (brackets ? end - text == 1 : !*text || end == text) ||
	    (colon && *colon && (*colon != ':' || number(colon + 1, 1, 65535, &port))))
		return -1;
	if (end)
		*end = '\0';
	*t = (struct perf_target){ text + brackets, (unsigned int)port };
	return 0;
}

static int target_add(struct perf_opts *opts, char *text)
{
	if (opts->nhosts == PERF_HOSTS_MAX)
		return usage("%s", "there are more than 64 hosts");
	if (target(text, &opts->hosts[opts->nhosts++]))
		return usage("\"%s\" is not HOST, HOST:PORT or [ADDRESS]:PORT", text);
	opts->host = opts->hosts[0].name;
	return role_option(opts, PERF_ROLE_CLIENT);
}

static int flag_option(struct perf_opts *opts, int opt)
{
	switch (opt) {
	case OPT_WAIT:
		opts->wait = true;
		break;
	case OPT_FROM:
		opts->from = true;
		break;
	case OPT_STDIN:
		opts->eof = true;
		break;
	case OPT_KEEP:
		opts->keep = true;
		break;
	case OPT_UD:
		memset(opts->test, 0, sizeof(opts->test));
		opts->test[PERF_UD] = true;
		break;
	case OPT_SRQ:
		opts->srq = true;
		break;
	case OPT_BIDIR:
		opts->bidir = true;
		break;
	case OPT_ROTATE:
		opts->rotate = true;
		break;
	case OPT_RAW:
		opts->side[PERF_SIDE_RAW] = true;
		break;
	case OPT_RAW_ONLY:
		opts->side[PERF_SIDE_RAW] = true;
		opts->side[PERF_SIDE_DAT] = false;
		break;
	case OPT_NO_VERIFY:
		opts->verify = false;
		break;
	case OPT_BIND:
		opts->bind = true;
		break;
	case OPT_HISTOGRAM:
		opts->histogram = true;
		break;
	case OPT_CSV:
		opts->csv = true;
		break;
	case 'j':
		opts->json = true;
		break;
	case 'v':
		opts->verbose = true;
		break;
	case 'h':
		fputs(help_text, stdout);
		return EXIT_SUCCESS;
	case 'V':
		printf("datperf %s, DAT %s\n", PACKAGE_VERSION, perf_dat_api());
		return EXIT_SUCCESS;
	default:
		/* getopt_long() has printed the error */
		return EXIT_USAGE;
	}
	return -1;
}

static int one_option(struct perf_opts *opts, int opt)
{
	switch (opt) {
	case 's':
		return role_option(opts, PERF_ROLE_SERVER);
	case 'l':
		return role_option(opts, PERF_ROLE_LOCAL);
	case 'c':
		return target_add(opts, optarg);
	case OPT_SSH:
		opts->ssh = optarg;
		return role_option(opts, PERF_ROLE_CLIENT);
	case 'D':
		opts->device = optarg;
		return -1;
	case OPT_PROVIDER:
		opts->provider = optarg;
		return -1;
	case OPT_SAMPLES:
		opts->samples = optarg;
		return -1;
	case OPT_PLOT:
		return plot_option(opts, optarg);
	case OPT_ENDPOINT:
		return endpoint_option(opts, optarg);
	case OPT_PERCENTILE:
		return percentile_option(opts, optarg);
	case OPT_RAW_CQ:
		return raw_cq_option(opts, optarg);
	case 'S':
		return sizes_option(opts, optarg);
	case 't':
		return tests_option(opts, optarg);
	case OPT_PEERS:
		return peers_option(opts, optarg);
	case 'p':
	case 'n':
	case 'T':
	case 'W':
	case 'r':
	case 'w':
	case 'q':
	case OPT_THREADS:
	case OPT_SEGMENTS:
	case OPT_TIMEOUT:
	case OPT_RATE:
		return number_option(opts, opt, optarg);
	default:
		return flag_option(opts, opt);
	}
}

/* --from: the remaining arguments are files. */
static int files(struct perf_opts *opts, int argc, char **argv)
{
	if (opts->role != PERF_ROLE_NONE || !opts->plot)
		return usage("%s", "--from needs --plot, and measures nothing");
	opts->files = argv + optind;
	opts->nfiles = argc - optind;
	if (opts->nfiles < 1 || opts->nfiles > PERF_FILES_MAX)
		return usage("%s", "--from needs one to eight files");
	return -1;
}

static bool is_not_atomic(unsigned int test)
{
	return !perf_is_atomic(test);
}

static bool tests_in(const struct perf_opts *opts, bool (*kind)(unsigned int test))
{
	unsigned int t;

	for (t = 0; t < PERF_NTESTS; t++)
		if (opts->test[t] && kind(t))
			return true;
	return false;
}

static const char *default_sizes(const struct perf_opts *opts)
{
	if (opts->test[PERF_UD])
		return DATPERF_UD_SIZES;
	return tests_in(opts, perf_is_atomic) ? DATPERF_ATOMIC_SIZES : DATPERF_SIZES;
}

/* A host without a port of its own has the port of --port. */
static void ports_set(struct perf_opts *opts)
{
	int i;

	for (i = 0; i < opts->nhosts; i++)
		if (!opts->hosts[i].port)
			opts->hosts[i].port = opts->port;
	if (opts->nhosts)
		opts->port = opts->hosts[0].port;
}

static int rest(struct perf_opts *opts, int argc, char **argv)
{
	if (opts->from)
		return files(opts, argc, argv);
	while (optind < argc)
		if (target_add(opts, argv[optind++]) >= 0)
			return EXIT_USAGE;
	if (opts->ssh && !opts->host)
		opts->host = strchr(opts->ssh, '@') ? strrchr(opts->ssh, '@') + 1 : opts->ssh;
	if (!opts->nsizes)
		sizes_option(opts, default_sizes(opts));
	if (opts->role == PERF_ROLE_NONE)
		return usage("%s", "give a host, --server or --local");
	/* DAT needs an IA; bare libfabric alone uses the IA's fabric unless a provider is named */
	if (opts->side[PERF_SIDE_DAT])
		opts->device = opts->device ? opts->device : "ofi";
	else if (opts->provider)
		opts->device = NULL;
	if (!opts->provider)
		opts->provider = "tcp";
	if (opts->npeers && opts->side[PERF_SIDE_RAW])
		return usage("%s", "--peers measures DAT only");
	if ((opts->endpoints > 1 || opts->threads > 1) &&
	    (opts->npeers || opts->side[PERF_SIDE_RAW]))
		return usage("%s",
			     "--endpoints and --threads are for DAT alone, and not for --peers");
	if (tests_in(opts, perf_is_atomic) &&
	    (tests_in(opts, is_not_atomic) || opts->nsizes != 1 ||
	     opts->sizes[0] != PERF_ATOMIC_LEN))
		return usage("%s",
			     "fadd and cswap transfer 8 bytes: not with other tests or sizes");
	if (tests_in(opts, perf_is_ext) && opts->side[PERF_SIDE_RAW])
		return usage("%s", "the tests imm, fadd and cswap are for DAT alone");
	if ((opts->srq || opts->segments > 1) && (opts->npeers || opts->side[PERF_SIDE_RAW]))
		return usage("%s", "--srq and --segments are for DAT alone, and not for --peers");
	if (opts->srq && opts->endpoints > 1)
		return usage("%s", "--srq is for one EP of each thread: not with --endpoints");
	if (opts->test[PERF_MPI] && opts->wait)
		return usage("%s", "the test mpi polls memory: not with --wait");
	if (opts->eof && opts->role != PERF_ROLE_SERVER)
		return usage("%s", "--stdin is for --server");
	if (opts->keep &&
	    (opts->role != PERF_ROLE_SERVER || opts->npeers || !opts->side[PERF_SIDE_DAT]))
		return usage("%s", "--keep is for --server, without --peers and --raw-only");
	if (opts->npeers && (opts->endless || opts->samples))
		return usage("%s", "--time 0 and --samples are not for --peers");
	if (opts->samples && opts->role == PERF_ROLE_SERVER)
		return usage("%s", "--samples is for clients");
	if (opts->rate && (opts->bidir || opts->wait || opts->npeers ||
			   opts->role == PERF_ROLE_SERVER))
		return usage("%s", "--rate is for clients that poll and send one way: not with "
				   "--bidir, --wait or --peers");
	if (opts->plot && (opts->npeers || opts->role == PERF_ROLE_SERVER))
		return usage("%s", "--plot is for clients, without --peers");
	if (opts->nhosts > 1 && (opts->npeers || opts->endless || opts->samples || opts->plot ||
				 opts->csv || opts->bind || opts->ssh))
		return usage("%s", "several hosts: not with --peers, --time 0, --samples, --plot, "
				   "--csv, --bind or --ssh");
	if (opts->json && opts->csv)
		return usage("%s", "choose one of --json and --csv");
	if (!opts->port && opts->role != PERF_ROLE_LOCAL)
		opts->port = DATPERF_PORT;
	ports_set(opts);
	return -1;
}

int perf_opts_parse(int argc, char **argv, struct perf_opts *opts)
{
	int opt, status;

	*opts = (struct perf_opts){
		.time_ms = 40,
		.warm_up = -1,
		.percentile = PERF_MEDIAN,
		.repeat = 1,
		.window = 64,
		.endpoints = 1,
		.threads = 1,
		.segments = 1,
		.timeout_ms = 10000,
		.verify = true,
		.side = { [PERF_SIDE_DAT] = true },
		.test = { true, true, true },
	};
	while ((opt = getopt_long(argc, argv, "sc:lD:p:S:t:n:T:W:r:w:q:jvhV", long_options,
				  NULL)) != -1) {
		status = one_option(opts, opt);
		if (status >= 0)
			return status;
	}
	return rest(opts, argc, argv);
}
