/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two datperf processes meet by TCP where the fabric has no connections, or has many: what they must
 * know of each other goes over it, and its end is the only sign that the other one is gone.
 */
#ifndef PERF_MEET_H
#define PERF_MEET_H

#include "perf.h"

struct perf_meet {
	int listener; /* -1 if there is none: this side connects */
	int fd;	      /* -1 until the other one is there */
};

void perf_meet_init(struct perf_meet *meet);
void perf_meet_close(struct perf_meet *meet);

/* These give 0, or -1 with a sentence in x->err. */

/* Listens on *port of every address, or where port is 0 on one that it writes there. */
int perf_meet_listen(struct perf_meet *meet, struct perf_xport *x, unsigned int *port);
/* x->wait_client_ms bounds the first, x->timeout_ms all others. */
int perf_meet_accept(struct perf_meet *meet, struct perf_xport *x);
int perf_meet_connect(struct perf_meet *meet, struct perf_xport *x, const struct sockaddr *addr,
		      unsigned int port);
int perf_meet_send(struct perf_meet *meet, struct perf_xport *x, const void *buf, size_t len);
int perf_meet_recv(struct perf_meet *meet, struct perf_xport *x, void *buf, size_t len);

/* A peer that is silent for longer is an error of the call that waits for it; at first x->timeout_ms. */
void perf_meet_patience(struct perf_meet *meet, unsigned int timeout_ms);

/* Whether the other one has ended. Nothing is sent that is not received by then. */
bool perf_meet_over(const struct perf_meet *meet);

#endif
