/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf --peers: the cost of many connections between two processes. perf_peers.c runs both ends,
 * perf_peers_dat.c creates the connections, perf_peers_out.c prints.
 */
#ifndef PERF_PEERS_H
#define PERF_PEERS_H

#include "datperf.h"

enum perf_peers_figure {
	PERF_PEERS_CONNECT, /* connections per second */
	PERF_PEERS_CLIENT,  /* memory of each connection in KiB */
	PERF_PEERS_SERVER,
	PERF_PEERS_EMPTY, /* us of an empty poll */
	PERF_PEERS_FIRST, /* us of half a round trip on the first connection */
	PERF_PEERS_LAST,
	PERF_PEERS_CLOSE, /* ms of an abrupt close of all */
	PERF_PEERS_NFIGURES
};

struct perf_peers_row {
	unsigned int connections;
	double figure[PERF_PEERS_NFIGURES];
};

/* perf_peers.c: in place of perf_client() and perf_server(). */
int perf_peers_client(const struct perf_opts *opts, char *err, size_t errlen);
int perf_peers_server(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		      void *arg, char *err, size_t errlen);

/*
 * perf_peers_dat.c: connections of the transport from perf_dat_new(). These return 0, or -1 with an
 * error text in x->err. The caller sets the message size and the memory layout in @x first.
 */
int perf_peers_open(struct perf_xport *x, unsigned int n);
/* Creates the EPs; each has a receive posted. */
int perf_peers_create(struct perf_xport *x);
/*
 * Connects all; @ns gets the time from the first request until the last connection is established.
 */
int perf_peers_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port,
		       uint64_t *ns);
int perf_peers_accept(struct perf_xport *x);
/* Selects the connection that x->ops posts to. */
int perf_peers_select(struct perf_xport *x, uint64_t index);
/* Polls the empty EVD for @budget_ns; @us gets the time of one poll. */
int perf_peers_empty(struct perf_xport *x, uint64_t budget_ns, double *us);
/* Closes the IA abruptly with all in it. */
int perf_peers_end(struct perf_xport *x, uint64_t *ns);

/* perf_peers_out.c */
void perf_peers_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric);
void perf_peers_out_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
			const struct perf_peers_row *row);
/* Prints nothing without --json; the other two print nothing with it. */
void perf_peers_out_json(const struct perf_opts *opts, const struct perf_fabric *fabric,
			 const struct perf_peers_row *rows);

#endif
