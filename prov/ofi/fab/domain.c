/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A protection zone's part of the fabric: fi_domain, its one fi_cq, its registrations. */

#include "fab/domain.h"

#include "base/log.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/random.h>

int dofi_domain_open(struct dofi_domain *domain, struct dofi_progress *progress,
		     const struct dofi_fabric_choice *choice)
{
	int ret;

	ret = fi_domain(progress->fabric, choice->info, &domain->fid, NULL);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_MEM, "fi_domain: %s", fi_strerror(-ret));
		return ret;
	}
	domain->mr_style = choice->mr_style;
	ret = dofi_cq_open(&domain->cq, progress, domain->fid);
	if (ret)
		fi_close(&domain->fid->fid);
	return ret;
}

void dofi_domain_close(struct dofi_domain *domain)
{
	int ret;

	dofi_cq_close(&domain->cq);
	ret = fi_close(&domain->fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_MEM, "closing a domain: %s", fi_strerror(-ret));
	domain->fid = NULL;
}

/* Key 0 means "no remote access" to DAT programs, so it is never given out. */
static uint32_t random_key(void)
{
	uint32_t key = 0;

	while (!key)
		if (getrandom(&key, sizeof(key), 0) != sizeof(key) && errno != EINTR)
			return 0;
	return key;
}

#define KEY_TRIES 64

int dofi_mr_open(struct dofi_domain *domain, const void *addr, size_t len, uint64_t remote,
		 struct fid_mr **mr, uint32_t *key)
{
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | remote;
	int ret, tries = 0;

	do {
		uint64_t wanted = domain->mr_style == DOFI_MR_VIRTUAL ? random_key() : 0;

		if (domain->mr_style == DOFI_MR_VIRTUAL && !wanted)
			return -EIO;
		ret = fi_mr_reg(domain->fid, addr, len, access, 0, wanted, 0, mr, NULL);
	} while (ret == -FI_ENOKEY && ++tries < KEY_TRIES);
	if (ret)
		return ret;
	if (fi_mr_key(*mr) > UINT32_MAX) {
		dofi_log(DOFI_ERR, DOFI_MEM, "the fabric's key does not fit 32 bits");
		fi_close(&(*mr)->fid);
		return -EOVERFLOW;
	}
	*key = fi_mr_key(*mr);
	return 0;
}
