/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's raw side: the exchange of the DAT side on bare libfabric, as simple as possible, but
 * with the settings of the DAT provider (thread-safe providers, random keys, writes that complete
 * on delivery). So the ratio of the two sides shows the cost of DAT alone.
 *
 *	perf_raw.c	opening and closing
 *	perf_raw_io.c	RDMA and completions
 *	perf_raw_msg.c	connected endpoints
 *	perf_raw_rdm.c	connectionless endpoints
 *	perf_raw_ud.c	datagrams
 */
#ifndef PERF_RAW_H
#define PERF_RAW_H

#include "perf_oob.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#define PERF_RAW_BATCH 16 /* as in the DAT provider */

/* An operation in progress at a provider with FI_CONTEXT or FI_CONTEXT2. */
struct perf_raw_context {
	struct fi_context2 provider; /* first: the completion's op_context */
	uint64_t cookie;
	struct perf_raw_context *next; /* of the free ones */
};

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
	bool delivery;	      /* writes complete on delivery */
	bool has_wait_obj;    /* the completion queue has a wait object */
	fi_addr_t peer;	      /* 0 on a connected endpoint */
	uint64_t raddr, rkey; /* the peer's memory */
	struct fi_cq_msg_entry batch[PERF_RAW_BATCH];
	int next, have;
	int wait_ms; /* longest wait for a completion */
	struct perf_raw_context *contexts; /* all, or NULL if the provider needs none */
	struct perf_raw_context *context_free;

	/* connected */
	struct fid_eq *eq;
	struct fid_pep *pep;

	/* connectionless */
	struct fid_av *av;
	struct perf_oob oob;

	struct perf_raw *ud; /* the endpoint for datagrams, or NULL */
};

static inline struct perf_raw *to_raw(struct perf_xport *x)
{
	return (struct perf_raw *)x;
}

/* Functions that return int return 0, or -1 with an error text in x.err. */

/* perf_raw.c */
int perf_raw_fail(struct perf_raw *raw, const char *what, long rc);
/* Replaces raw->info. */
int perf_raw_getinfo(struct perf_raw *raw, const char *node, const char *service, uint64_t flags);
int perf_raw_open_fabric(struct perf_raw *raw);
/* Opens the domain and the completion queue; allocates and registers memory. */
int perf_raw_open_domain(struct perf_raw *raw);
/* Opens an endpoint of @info, bound to @fid and the completion queue. */
int perf_raw_open_ep(struct perf_raw *raw, struct fi_info *info, struct fid *fid);
/* Fill in the greeting for the peer, and take the peer's greeting. */
void perf_raw_hello(const struct perf_raw *raw, struct perf_hello *hello);
void perf_raw_store_hello(struct perf_raw *raw, const struct perf_hello *hello);
/* Server: also applies the client's settings. */
void perf_raw_apply_hello(struct perf_raw *raw, const struct perf_hello *hello);
void perf_raw_close(struct perf_xport *x);

/* perf_raw_io.c */
/* Returns the context for posting an operation; its completion returns @cookie. */
void *perf_raw_context(struct perf_raw *raw, uint64_t cookie);
/* Converts the result of a post with @context: to 0, -EAGAIN, or an error. */
int perf_raw_posted(struct perf_raw *raw, const char *what, void *context, ssize_t rc);
int perf_raw_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_raw_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_raw_poll(struct perf_xport *x, struct perf_comp *comp);

extern const struct perf_ops perf_raw_msg_ops;
extern const struct perf_ops perf_raw_rdm_ops;
extern const struct perf_ud_ops perf_raw_ud_ops;

#endif
