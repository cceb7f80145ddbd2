/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Out-of-band TCP connection of two datperf processes, for connectionless fabrics and --peers. It
 * carries the setup of both sides, and its end is the only sign that the peer is gone.
 */
#ifndef PERF_OOB_H
#define PERF_OOB_H

#include "perf.h"

struct perf_oob {
	int listener; /* -1 if there is none: this side connects */
	int fd;	      /* -1 until the peer is connected */
};

void perf_oob_init(struct perf_oob *oob);
void perf_oob_close(struct perf_oob *oob);

/* These return 0, or -1 with an error text in x->err. */

/* Listens on *port of every address; for port 0 chooses a port and stores it. */
int perf_oob_listen(struct perf_oob *oob, struct perf_xport *x, unsigned int *port);
/* x->wait_client_ms limits the wait of accept, x->timeout_ms the other calls' wait. */
int perf_oob_accept(struct perf_oob *oob, struct perf_xport *x);
int perf_oob_connect(struct perf_oob *oob, struct perf_xport *x, const struct sockaddr *addr,
		     unsigned int port);
int perf_oob_send(struct perf_oob *oob, struct perf_xport *x, const void *buf, size_t len);
int perf_oob_recv(struct perf_oob *oob, struct perf_xport *x, void *buf, size_t len);

/* Sets how long a call waits for a silent peer before it fails; initially x->timeout_ms. */
void perf_oob_set_timeout(struct perf_oob *oob, unsigned int timeout_ms);

/*
 * Whether the peer has closed. Call when no message is outstanding: pending data counts as closed.
 */
bool perf_oob_peer_closed(const struct perf_oob *oob);

#endif
