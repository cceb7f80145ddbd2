/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP connection between two datperf processes, for fabrics without connections and for --peers. It
 * carries the setup of both sides, and its end is the only sign that the peer is gone.
 */
#ifndef PERF_MEET_H
#define PERF_MEET_H

#include "perf.h"

struct perf_meet {
	int listener; /* -1 if there is none: this side connects */
	int fd;	      /* -1 until the peer is connected */
};

void perf_meet_init(struct perf_meet *meet);
void perf_meet_close(struct perf_meet *meet);

/* These return 0, or -1 with an error text in x->err. */

/* Listens on *port of every address; for port 0 chooses a port and stores it. */
int perf_meet_listen(struct perf_meet *meet, struct perf_xport *x, unsigned int *port);
/* x->wait_client_ms limits the wait of accept, x->timeout_ms that of the other calls. */
int perf_meet_accept(struct perf_meet *meet, struct perf_xport *x);
int perf_meet_connect(struct perf_meet *meet, struct perf_xport *x, const struct sockaddr *addr,
		      unsigned int port);
int perf_meet_send(struct perf_meet *meet, struct perf_xport *x, const void *buf, size_t len);
int perf_meet_recv(struct perf_meet *meet, struct perf_xport *x, void *buf, size_t len);

/* Sets how long a call waits for a silent peer before it fails; initially x->timeout_ms. */
void perf_meet_patience(struct perf_meet *meet, unsigned int timeout_ms);

/*
 * Whether the peer has closed. Call when no message is outstanding: pending data counts as closed.
 */
bool perf_meet_over(const struct perf_meet *meet);

#endif
