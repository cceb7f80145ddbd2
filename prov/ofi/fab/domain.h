/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a PZ in the fabric: fi_domain, its CQs, its registrations. */
#ifndef DOFI_FAB_DOMAIN_H
#define DOFI_FAB_DOMAIN_H

#include "fab/cq.h"
#include "fab/grant.h"
#include "fab/info.h"

#include <rdma/fi_domain.h>

/* The most CQs besides the first. */
#define DOFI_DOMAIN_CQS 64

struct dofi_domain {
	struct fid_domain *fid;
	enum dofi_mr_style mr_style;
	/* dofi_fabric_choice.target_rdma: the target checks keys and moves bytes */
	bool target_rdma;
	struct dofi_grants grants;	/* the keys of peers where the fabric does not check them */
	bool mr_local;			/* the fabric needs registrations for local use */
	bool registers;			/* with target_rdma: mr_local */
	bool also_granted;	/* see dofi_fabric_choice: remote registrations also have a grant */
	struct dofi_cq cq;
	struct dofi_cq *more[DOFI_DOMAIN_CQS]; /* further CQs; never freed */
	unsigned n_more;		/* how many of them are open */
};

/*
 * Reserves @n entries of a CQ for an endpoint, where CQs are fixed, and returns the CQ, a further
 * one if all are full; NULL if that fails. Progress thread only.
 */
struct dofi_cq *dofi_domain_cq_reserve(struct dofi_domain *domain, unsigned n);
void dofi_domain_cq_release(struct dofi_cq *cq, unsigned n);

/* Opens a domain of @fabric and its CQ, which delivers to @ops. Progress thread only. */
int dofi_domain_open(struct dofi_domain *domain, struct dofi_progress *progress,
		     struct fid_fabric *fabric, const struct dofi_progress_ops *ops,
		     const struct dofi_fabric_choice *choice);

/* All endpoints and registrations must be closed. Progress thread only. */
void dofi_domain_close(struct dofi_domain *domain);

/*
 * A registration, for local use and for peers. With target_rdma it is a grant, and registered only
 * for local use (mr_local). With also_granted it is both, with one key.
 */
struct dofi_mr {
	struct fid_mr *fid;		/* the fabric's, or NULL */
	struct dofi_grant *grant;	/* ours, or NULL */
	uint32_t key;			/* its name for peers */
	void *desc;			/* the descriptor for local use */
	pid_t owner;			/* the process that opened it */
};

static inline bool dofi_mr_is_open(const struct dofi_mr *mr)
{
	return mr->fid || mr->grant;
}

/* Registers memory. The key fits 32 bits; a chosen one cannot be guessed. Any thread. */
int dofi_mr_open(struct dofi_domain *domain, const struct dofi_mr_request *request,
		 struct dofi_mr *mr);

/*
 * Closes a registration, if it is open: peers have no access any more. Returns 0, or a negative
 * errno if the fabric keeps its part open. A forked child leaves the fabric's part to the parent.
 */
int dofi_mr_close(struct dofi_mr *mr);

/* Registers the provider's memory for @access if the fabric has FI_MR_LOCAL; else *@mr is NULL. */
int dofi_local_mr_open(const struct dofi_domain *domain, const void *memory, size_t size,
		       uint64_t access, struct fid_mr **mr);
/* Closes the registration. NULL is ignored. Any thread. */
void dofi_local_mr_close(struct fid_mr *mr);

/* Returns the descriptor for operations with the memory. */
static inline void *dofi_local_mr_desc(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

#endif
