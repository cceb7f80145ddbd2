/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the datperf program: options, the two roles, output. */
#ifndef DATPERF_H
#define DATPERF_H

#include "perf.h"

#define DATPERF_PORT 62050
#define DATPERF_SIZES "1-4M"
#define DATPERF_UD_SIZES "1-64K"
#define DATPERF_ATOMIC_SIZES "8"
#define PERF_TIME_MAX 60000
#define PERF_RATE_MAX 100000000
#define PERF_HOSTS_MAX 64
/* --from: the most files */
#define PERF_FILES_MAX 8
#define PERF_REPEAT_MAX 1000
#define PERF_ITERS_MAX 1000000
/* --peers: the most connections, and the most entries in the list. */
#define PERF_PEERS_MAX 65536
#define PERF_PEERS_NUMBERS 16

enum perf_role {
	PERF_ROLE_NONE,
	PERF_ROLE_SERVER,
	PERF_ROLE_CLIENT,
	PERF_ROLE_LOCAL
};

struct perf_target {
	const char *name;
	unsigned int port;
};

struct perf_party;

struct perf_opts {
	enum perf_role role;
	const char *host;     /* client: the server's name or address */
	struct perf_target hosts[PERF_HOSTS_MAX]; /* all servers, the first of which is @host */
	int nhosts;
	struct perf_party *party; /* one of several clients; NULL: alone */
	const char *ssh;      /* client: where to start the server, as [user@]host; NULL: nowhere */
	const char *device;   /* IA name; NULL: bare libfabric on @provider alone */
	const char *plot;     /* file to draw to, NULL: none */
	const char *samples;  /* file for the latency of each message, NULL: none */
	char *const *files;   /* --from: saved results to draw */
	int nfiles;
	const char *provider; /* raw only: libfabric's provider name */
	bool rdm;	      /* raw only: connectionless endpoints */
	unsigned int port;    /* 0: any (local) */
	bool side[PERF_NSIDES];
	bool test[PERF_NTESTS];
	size_t sizes[PERF_MAX_SIZES];
	int nsizes;
	uint64_t iters;	      /* 0: as many as fit time_ms */
	unsigned int time_ms; /* time of one measured point */
	int repeat;
	unsigned int window;
	unsigned int endpoints; /* of each thread */
	unsigned int threads;
	unsigned int segments; /* of each message */
	unsigned int timeout_ms;
	unsigned int rate;	 /* the client's messages per second; 0: as many as possible */
	unsigned int percentile; /* of the latency column */
	unsigned int peers[PERF_PEERS_NUMBERS]; /* --peers: numbers of connections */
	int npeers;
	bool endless; /* measure until a signal; a point takes a second */
	bool from;    /* draw saved results, measure nothing */
	bool eof;     /* server: ends with its standard input */
	bool keep;    /* server: serve one client after another */
	bool rotate;  /* each message uses another buffer */
	bool bidir;   /* bandwidth in both directions at once */
	bool srq;     /* receives come from an SRQ */
	bool bare_cq; /* raw: a CQ without a wait object */
	int warm_up; /* messages before each measurement; -1: the default */
	const char *failure; /* for the JSON: why the measurement ended early; NULL: it did not */
	bool wait, verify, bind, json, csv, verbose, histogram;
};

/* Results of one size and test on one side. */
struct perf_cell {
	struct perf_lat lat;
	double bw;   /* MB/s, a megabyte being 10^6 bytes */
	double rate; /* messages/s */
	uint64_t lat_iters, bw_iters;
	uint64_t lat_lost, bw_sent, bw_lost; /* datagrams of all repetitions */
	/* processor time of each process in us per message */
	double lat_cpu[PERF_NENDS], bw_cpu[PERF_NENDS];
	bool lat_scatters, bw_scatters; /* unsteady: see perf_lat_scatters() */
	struct perf_hist hist;		/* of latencies, with --histogram */
};

struct perf_row {
	size_t size;
	struct perf_cell cell[PERF_NTESTS][PERF_NSIDES];
};

/*
 * Fills @opts; prints usage errors. Returns -1 to continue, else the exit status of the program.
 */
int perf_opts_parse(int argc, char **argv, struct perf_opts *opts);

/* perf_client.c: returns 0, or -1 with an error text in @err. */
int perf_client(const struct perf_opts *opts, char *err, size_t errlen);

/* Resolves @host, or this machine if NULL; returns -1 with an error text in x->err. */
int perf_resolve(struct perf_xport *x, const char *host, struct sockaddr_storage *addr);

/*
 * perf_server.c: serves one client, or with opts->keep any number, one after another. Calls @ready
 * once with the port that it listens on. Returns 0, or -1 with an error text in @err; with
 * opts->keep only if it cannot listen, as it prints the errors of clients.
 */
int perf_server(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		void *arg, char *err, size_t errlen);

/*
 * Finds the fabric of --raw-only: the fabric below the IA @opts->device, or without an IA the
 * provider @opts->provider. Returns 0, or -1 with an error text in @err if the IA cannot be opened.
 */
int perf_raw_only_fabric(const struct perf_opts *opts, struct perf_fabric *fabric, char *err,
			 size_t errlen);

/* Creates the transport of @side, not yet opened; NULL without memory. DAT ignores @fabric. */
struct perf_xport *perf_xport_new(const struct perf_opts *opts, enum perf_side side,
				  const struct perf_fabric *fabric);

/* perf_out.c */
struct json;
const char *perf_test_name(enum perf_test test);
const char *perf_side_name(enum perf_side side);
/* Whether DAT is compared with bare libfabric. */
bool perf_opts_both(const struct perf_opts *opts);
/* 0 if @raw is 0. */
double perf_ratio(double dat, double raw);
/* Whether @test is measured with messages of @size bytes. */
bool perf_opts_measure(const struct perf_opts *opts, enum perf_test test, size_t size);
/* Prints the measurement, as a line that the caller ends. */
void perf_out_fabric(FILE *out, const struct perf_opts *opts, const struct perf_fabric *fabric);
void perf_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric);
void perf_out_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *row);
void perf_out_end(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *rows);

/*
 * perf_progress.c: a line on standard error, if that is a terminal, from the second second of a run
 * on. Begins point @done of @all.
 */
void perf_progress(unsigned int done, unsigned int all, const char *what, size_t size);
/* Call at least once a second: prints how long the point has taken. */
void perf_progress_tick(void);
/* Erases the line. */
void perf_progress_clear(void);

/* perf_out_data.c */
/* Begins the JSON with members that describe the measurement, the machine and the time. */
void perf_out_json_begin(struct json *j, const struct perf_opts *opts,
			 const struct perf_fabric *fabric);
void perf_out_json(const struct perf_opts *opts, const struct perf_fabric *fabric,
		   const struct perf_row *rows);
void perf_out_csv_head(void);
void perf_out_csv_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		      const struct perf_row *row);
/* Prints @text, quoted if it contains a quote, a comma or a line break. */
void perf_out_csv_text(const char *text);

#endif
