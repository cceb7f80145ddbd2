/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's other side: the same exchange on bare libfabric, as plainly as one
 * would write it, but with the settings that the DAT provider uses (providers
 * that are thread-safe, random keys, writes that complete on delivery),
 * so that a ratio of the two shows the cost of DAT and of nothing else.
 *
 *	perf_raw.c	what is opened and closed
 *	perf_raw_io.c	RDMA and completions
 *	perf_raw_msg.c	connected endpoints
 *	perf_raw_rdm.c	connectionless ones
 */
#ifndef PERF_RAW_H
#define PERF_RAW_H

#include "perf_meet.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#define PERF_RAW_BATCH 16 /* as the DAT provider reads */

struct perf_raw {
	struct perf_xport x; /* first: ops get a pointer to it */
	struct perf_fabric fabric;
	struct fi_info *info;
	struct fid_fabric *fab;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	bool delivery;	      /* ask writes to complete on delivery */
	bool sleeps;	      /* one can wait for the completion queue */
	fi_addr_t peer;	      /* 0 where there is a connection */
	uint64_t raddr, rkey; /* the peer's memory */
	struct fi_cq_msg_entry batch[PERF_RAW_BATCH];
	int next, have;

	/* connected */
	struct fid_eq *eq;
	struct fid_pep *pep;

	/* connectionless */
	struct fid_av *av;
	struct perf_meet meet;
};

static inline struct perf_raw *to_raw(struct perf_xport *x)
{
	return (struct perf_raw *)x;
}

/* What follows gives 0, or -1 with a sentence in x.err, if it gives anything. */

/* perf_raw.c */
int perf_raw_fail(struct perf_raw *raw, const char *what, long rc);
/* Chooses raw->info anew. */
int perf_raw_getinfo(struct perf_raw *raw, const char *node, const char *service, uint64_t flags);
int perf_raw_open_fabric(struct perf_raw *raw);
/* The domain, the completion queue, and memory that is laid out and registered. */
int perf_raw_open_domain(struct perf_raw *raw);
/* An endpoint of @info, bound to @fid and the completion queue, that can receive. */
int perf_raw_open_ep(struct perf_raw *raw, struct fi_info *info, struct fid *fid);
/* What the peer is to know of this side, and what it told of itself. */
void perf_raw_hello(const struct perf_raw *raw, struct perf_hello *hello);
void perf_raw_take_hello(struct perf_raw *raw, const struct perf_hello *hello);
/* Server: the client also says how it is to be. */
void perf_raw_obey_hello(struct perf_raw *raw, const struct perf_hello *hello);
void perf_raw_close(struct perf_xport *x);

/* perf_raw_io.c */
/* What a post gave, where that is not 0: -EAGAIN, or an error. */
int perf_raw_posted(struct perf_raw *raw, const char *what, ssize_t rc);
int perf_raw_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_raw_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_raw_poll(struct perf_xport *x, struct perf_comp *comp);

extern const struct perf_ops perf_raw_msg_ops;
extern const struct perf_ops perf_raw_rdm_ops;

#endif
