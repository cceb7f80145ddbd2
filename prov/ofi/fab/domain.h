/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A protection zone's part of the fabric: fi_domain, its one fi_cq, its registrations. */
#ifndef DOFI_FAB_DOMAIN_H
#define DOFI_FAB_DOMAIN_H

#include "fab/cq.h"
#include "fab/grant.h"
#include "fab/info.h"

#include <rdma/fi_domain.h>

/* Most CQs besides the first. */
#define DOFI_DOMAIN_CQS 64

struct dofi_domain {
	struct fid_domain *fid;
	enum dofi_mr_style mr_style;
	bool target_rdma;		/* dofi_fabric_choice.target_rdma: */
	struct dofi_grants grants;	/* what peers may do, */
	bool registers;			/* and whether the fabric is told of memory all the same */
	bool also_granted;		/* dofi_fabric_choice.also_granted: by them, too */
	struct dofi_cq cq;
	struct dofi_cq *more[DOFI_DOMAIN_CQS]; /* others; as lasting as the domain's own memory */
	unsigned n_more;		/* that are open */
};

/*
 * The CQ in which @places operations of an endpoint may complete at a time: those are taken from it,
 * where it is fixed, until they are given back. When all are taken another is opened. NULL if that
 * fails. Progress thread only.
 */
struct dofi_cq *dofi_domain_cq_reserve(struct dofi_domain *domain, unsigned unreserved);
void dofi_domain_cq_release(struct dofi_cq *cq, unsigned unreserved);

/* Opens the domain, opens its CQ and hands that to @progress. Progress thread only. */
int dofi_domain_open(struct dofi_domain *domain, struct dofi_progress *progress,
		     const struct dofi_fabric_choice *choice);

/* The same on @fabric, which is not the thread's own; what completes there is for @ops. */
int dofi_domain_open_on(struct dofi_domain *domain, struct dofi_progress *progress,
			struct fid_fabric *fabric, const struct dofi_progress_ops *ops,
			const struct dofi_fabric_choice *choice);

/* All endpoints and registrations must be closed. Progress thread only. */
void dofi_domain_close(struct dofi_domain *domain);

/*
 * A registration, for local use and for peers. Where the target moves the bytes (target_rdma), it
 * is a grant of ours for these, and one of the fabric's only if that wants local memory registered.
 * Where both do (also_granted) it is one of each, of the same key.
 */
struct dofi_mr {
	struct fid_mr *fid;		/* the fabric's, or NULL */
	struct dofi_grant *grant;	/* ours, or NULL */
	uint32_t key;			/* what peers name it by */
	void *desc;			/* what the fabric wants beside its local addresses */
	pid_t owner;			/* the process whose it is */
};

static inline bool dofi_mr_is_open(const struct dofi_mr *mr)
{
	return mr->fid || mr->grant;
}

/*
 * Registers memory. The key fits 32 bits, and cannot be guessed where the fabric lets us choose
 * it. Any thread. 0 or a negative errno.
 */
int dofi_mr_open(struct dofi_domain *domain, const struct dofi_mr_request *request,
		 struct dofi_mr *mr);

/*
 * Ends it: peers have no access any more on return. A negative errno if the fabric does not close
 * its part; then that is still open. One that is not open is left alone. In a child of its owner it
 * is forgotten: a device would end the owner's.
 */
int dofi_mr_close(struct dofi_mr *mr);

#endif
