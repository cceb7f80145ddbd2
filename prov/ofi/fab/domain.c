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

uint32_t dofi_random(void)
{
	uint32_t number = 0;

	while (!number)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number) && errno != EINTR)
			return 0;
	return number;
}

/* Key 0 means "no remote access" to DAT programs, so it is never given out. */
static uint32_t random_key(bool scoped)
{
	uint32_t number;

	do {
		number = dofi_random();
		if (!number)
			return 0;
		number &= ~DOFI_KEY_SCOPED;
	} while (!number);
	return scoped ? number | DOFI_KEY_SCOPED : number;
}

static int mr_register(struct dofi_domain *domain, const struct dofi_mr_request *r, uint64_t key,
		       struct fid_mr **mr)
{
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | r->remote;
	uint64_t offset = r->zero_based ? (uintptr_t)r->addr : 0;

	return fi_mr_reg(domain->fid, r->addr, r->len, access, offset, key, 0, mr, NULL);
}

#define KEY_TRIES 64

static int mr_register_chosen(struct dofi_domain *domain, const struct dofi_mr_request *r,
			      struct fid_mr **mr, uint32_t *key)
{
	int ret, tries = 0;
	uint32_t wanted;

	do {
		wanted = random_key(r->scoped);
		if (!wanted)
			return -EIO;
		ret = mr_register(domain, r, dofi_mr_fabric_key(wanted, r->secret), mr);
	} while (ret == -FI_ENOKEY && ++tries < KEY_TRIES);
	if (!ret)
		*key = wanted;
	return ret;
}

int dofi_mr_open(struct dofi_domain *domain, const struct dofi_mr_request *r,
		 struct fid_mr **mr, uint32_t *key)
{
	int ret;

	if (domain->mr_style == DOFI_MR_VIRTUAL)
		return mr_register_chosen(domain, r, mr, key);
	ret = mr_register(domain, r, 0, mr);
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
