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

/*
 * Registers [@addr, @addr + @len) for local use and, by FI_REMOTE_READ and
 * FI_REMOTE_WRITE in @remote, for peers of endpoints in this domain.
 * @key fits 32 bits and cannot be guessed where the fabric lets us choose it.
 */
int dofi_mr_open(struct dofi_domain *domain, const void *addr, size_t len, uint64_t remote,
		 struct fid_mr **mr, uint32_t *key);

#endif
