/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common to datperf's phases with datagrams (perf_ud.c) and their loops (perf_ud_loop.c). */
#ifndef PERF_UD_LOOP_H
#define PERF_UD_LOOP_H

#include "perf_loop.h"
#include "perf_ud.h"

struct perf_ud_run {
	struct perf_run r; /* rx and tx are datagrams */
	const struct perf_ud_ops *ops;
	bool echoes;	/* answers each datagram */
	bool copies;	/* with its data */
	bool reports;	/* reports how many have arrived */
	bool both;	/* sends data and reports */
	bool checks;	/* compares an answer with the datagram */
	unsigned char tag;
	size_t echo;	/* length of the answer to be sent; 0: none */
	uint64_t window;
	uint64_t sent;
	uint64_t arrived;  /* sent ones, by the peer's latest report */
	uint64_t given_up; /* sent ones, not in the window any more without a report */
	uint64_t unreported;
	bool reporting;	   /* a report is being sent */
	uint64_t now_ns;   /* the latest look at the clock */
	uint64_t moved_ns; /* the latest report */
	uint64_t limit_ns; /* longest duration of the phase */
};

static inline unsigned int perf_ud_lanes(const struct perf_xport *x)
{
	return x->lanes ? x->lanes : 1;
}

/* These return 0, or -1 with an error text in x->err. */
int perf_ud_post_recv(struct perf_xport *x, unsigned int slot);
/* Takes at most one completion, and sends the answer or the report that is due. */
int perf_ud_turn(struct perf_ud_run *u);
/* Takes the completions of all sends: the next phase counts its own. */
int perf_ud_drain(struct perf_ud_run *u);
/* Client: makes r.iters pings. r.iters becomes the number of answers. */
int perf_ud_pings(struct perf_ud_run *u);
/* Sends r.iters datagrams, until all have left the window. */
int perf_ud_stream(struct perf_ud_run *u);
/* Sends as much as the window has room for; perf_ud_turn() must follow. */
int perf_ud_stream_some(struct perf_ud_run *u);
bool perf_ud_stream_is_over(const struct perf_ud_run *u);

/* The first byte of the datagrams of a phase, or of a ping. */
unsigned char perf_ud_tag(uint64_t i);

#endif
