/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common to datperf's loops (perf_loop.c) and phases (perf_run.c): the state of a run, and the step
 * that takes one completion.
 */
#ifndef PERF_LOOP_H
#define PERF_LOOP_H

#include "perf.h"
#include "perf_stop.h"

#include <errno.h>

/*
 * Empty polls before the slow path, which yields the processor. On a single processor the slow path
 * is taken at once, because nothing can arrive before other threads run.
 */
#define PERF_IDLE_SPIN 512
/* A notification of --wait, in bytes. */
#define PERF_NOTE_LEN 8

struct perf_run {
	struct perf_xport *x;
	int (*poll)(struct perf_xport *x, struct perf_comp *comp);
	unsigned int test; /* enum perf_test */
	size_t size;
	size_t stride;	    /* distance of two buffers in memory; 0: all messages use one buffer */
	unsigned int slots; /* messages in flight, and buffers if there are several */
	uint32_t seed;
	uint64_t iters;
	bool notes;	 /* data receives are notifications, not data */
	/* PERF_MPI: messages that a credit stands for, and operations posted */
	unsigned int credit;
	uint64_t sent;
	uint64_t rx, tx; /* data completions so far */
	uint64_t rx_posted;
	uint64_t rx_len; /* length of the latest data receive */
	uint32_t rx_imm; /* its immediate data */
	unsigned int spin; /* PERF_IDLE_SPIN, or 0 */
	unsigned int idle;
	uint64_t patience_ns; /* longest silence of the peer */
	uint64_t idle_since;
	uint64_t bad; /* messages with wrong data */
	uint64_t *samples;
	uint64_t begin_ns, total_ns;
	double interval_ns; /* of the client's messages; 0: none */
	/* longest duration of a phase that the server takes no part in; 0: no limit */
	uint64_t limit_ns;
	uint64_t cpu_ns[PERF_NENDS];
};

/* A kind of phase, with the part of each side. */
struct perf_kind {
	const char *name;
	int (*client)(struct perf_run *r);
	int (*server)(struct perf_run *r);
	/* run before START, before READY, and after the client's FIN */
	void (*client_prep)(struct perf_run *r);
	void (*server_prep)(struct perf_run *r);
	void (*server_fini)(struct perf_run *r);
	bool client_recv, server_recv; /* which side receives data by send */
	bool watch;		       /* both sides watch memory for the peer's data */
	bool credits;		       /* data receives are credits, one for r->credit messages */
	bool fin;		       /* only FIN ends the server's part */
};

extern const struct perf_kind perf_kinds[PERF_NKINDS];

/* Whether the client may post message @i. After a signal the rest is due at once. */
static inline bool perf_run_is_due(const struct perf_run *r, uint64_t i)
{
	return !r->interval_ns || perf_stop ||
	       (double)(perf_now_ns() - r->begin_ns) >= (double)i * r->interval_ns;
}

/* Data receives of a side in the phase, if it has any. */
static inline uint64_t perf_run_receives(const struct perf_run *r)
{
	return r->credit ? r->iters / r->credit : r->iters;
}

/* These return 0, or -1 with an error text in x->err. */
int perf_run_idle(struct perf_run *r);
/* Posts data receives until @upto of them, or all, are posted. */
int perf_run_refill(struct perf_run *r, uint64_t upto);
int perf_post_ctl_recv(struct perf_run *r);

/* perf_mpi.c */
int perf_mpi_client(struct perf_run *r);
int perf_mpi_server(struct perf_run *r);
int perf_mpi_source(struct perf_run *r);
int perf_mpi_sink(struct perf_run *r);
int perf_mpi_both_ways(struct perf_run *r);
int perf_mpi_verify_source(struct perf_run *r);
int perf_mpi_verify_sink(struct perf_run *r);
void perf_mpi_prep(struct perf_run *r);

/* perf_run.c */
void perf_run_init(struct perf_run *r, struct perf_xport *x);
int perf_ctl_send(struct perf_run *r, const struct perf_ctl *ctl);
/* Takes the next control message, which must be of @type; the caller reposts the receive. */
int perf_ctl_expect(struct perf_run *r, struct perf_ctl *ctl, int type);

/* Takes at most one completion and counts it. */
static inline int perf_run_step(struct perf_run *r)
{
	struct perf_comp comp;
	int n = r->poll(r->x, &comp);

	if (n < 0)
		return n;
	if (n == 0) {
		if (++r->idle < r->spin && !r->x->blocking)
			return 0;
		return perf_run_idle(r);
	}
	r->idle = 0;
	r->idle_since = 0;
	r->tx += !!(comp.cookie & PERF_COOKIE_TX);
	if (comp.cookie & PERF_COOKIE_RX) {
		r->rx++;
		r->rx_len = comp.len;
		r->rx_imm = comp.imm;
	}
	r->x->crx += !!(comp.cookie & PERF_COOKIE_CRX);
	r->x->ctx += !!(comp.cookie & PERF_COOKIE_CTX);
	return 0;
}

/* Steps until @cond holds; returns from the function on an error. */
#define RUN_UNTIL(r, cond)                    \
	do {                                  \
		while (!(cond))               \
			if (perf_run_step(r)) \
				return -1;    \
	} while (0)

/* Waits until the client may post message @i, and sets @begin to the time. */
static inline int perf_run_pace(struct perf_run *r, uint64_t i, uint64_t *begin)
{
	if (!r->interval_ns)
		return 0;
	RUN_UNTIL(r, perf_run_is_due(r, i));
	*begin = perf_now_ns();
	return 0;
}

/* Posts; on -EAGAIN polls and tries again. */
#define RUN_POST(r, post)                         \
	do {                                      \
		int rc_;                          \
                                                  \
		while ((rc_ = (post)) == -EAGAIN) \
			if (perf_run_step(r))     \
				return -1;        \
		if (rc_)                          \
			return -1;                \
	} while (0)

#endif
