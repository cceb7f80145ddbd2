/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A protection zone's part of the fabric: fi_domain, its one fi_cq, its registrations. */
#ifndef DOFI_FAB_DOMAIN_H
#define DOFI_FAB_DOMAIN_H

#include "fab/cq.h"
#include "fab/info.h"

#include <rdma/fi_domain.h>

struct dofi_domain {
	struct fid_domain *fid;
	enum dofi_mr_style mr_style;
	struct dofi_cq cq;
};

/* Opens the domain, opens its CQ and hands that to @progress. Progress thread only. */
int dofi_domain_open(struct dofi_domain *domain, struct dofi_progress *progress,
		     const struct dofi_fabric_choice *choice);

/* All endpoints and registrations must be closed. Progress thread only. */
void dofi_domain_close(struct dofi_domain *domain);

/* Memory to register. */
struct dofi_mr_request {
	const void *addr;
	size_t len;
	uint64_t remote;	/* FI_REMOTE_READ, FI_REMOTE_WRITE: for peers of the domain's endpoints */
	bool zero_based;	/* peers count from its first byte; dofi_fabric_choice.zero_based */
	bool scoped;		/* for the peer alone that knows @secret; likewise scoped_keys */
	uint32_t secret;
};

/*
 * Registers memory for local use and for peers. What they name it by, @key, fits 32 bits,
 * and cannot be guessed where the fabric lets us choose it.
 */
int dofi_mr_open(struct dofi_domain *domain, const struct dofi_mr_request *request,
		 struct fid_mr **mr, uint32_t *key);

/*
 * The keys that we choose say whether their scope is one connection. To the fabric such a
 * key is twice as long: the other half is a secret that the two ends of the connection told
 * each other when they made it, so that the key is of no use to anybody else who learns it.
 */
#define DOFI_KEY_SCOPED 0x80000000u

/* The fabric's key of what the peer whose secret is @secret calls @key; no secret is 0. */
static inline uint64_t dofi_mr_fabric_key(uint32_t key, uint32_t secret)
{
	return key & DOFI_KEY_SCOPED ? (uint64_t)secret << 32 | key : key;
}

/* A number that nobody guesses, and not 0; or 0 if the system has none. */
uint32_t dofi_random(void);

#endif
