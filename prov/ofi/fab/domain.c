/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a PZ in the fabric: fi_domain, its CQs, its registrations. */

#include "fab/domain.h"

#include "base/log.h"
#include "fab/quirks.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Sizes of fixed CQs. There may be many PZs with few endpoints; soft-RoCE allows the second. */
#define FIRST_CQ 4096
#define FURTHER_CQ 32767

int dofi_domain_open(struct dofi_domain *domain, struct dofi_progress *progress,
		     struct fid_fabric *fabric, const struct dofi_progress_ops *ops,
		     const struct dofi_fabric_choice *choice)
{
	int ret;

	ret = fi_domain(fabric, choice->info, &domain->fid, NULL);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_MEM, "fi_domain: %s", fi_strerror(-ret));
		return ret;
	}
	domain->mr_style = choice->mr_style;
	domain->target_rdma = choice->target_rdma;
	domain->mr_local = choice->info->domain_attr->mr_mode & FI_MR_LOCAL;
	domain->registers = choice->target_rdma && domain->mr_local;
	domain->also_granted = choice->also_granted;
	domain->n_more = 0;
	domain->cq.quirk = choice->quirk;
	domain->cq.serial = choice->info->domain_attr->threading == FI_THREAD_COMPLETION;
	domain->cq.unreserved = FIRST_CQ;
	domain->cq.by_clock = choice->rdm && choice->quirk->by_clock;
	ret = dofi_cq_open(&domain->cq, progress, fabric, domain->fid, ops);
	if (ret)
		fi_close(&domain->fid->fid);
	else
		dofi_grants_init(&domain->grants);
	return ret;
}

void dofi_domain_close(struct dofi_domain *domain)
{
	int ret;

	while (domain->n_more)
		dofi_cq_close(domain->more[--domain->n_more]);
	dofi_cq_close(&domain->cq);
	dofi_grants_fini(&domain->grants);
	ret = fi_close(&domain->fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_MEM, "closing a domain: %s", fi_strerror(-ret));
	domain->fid = NULL;
}

/* Opens a further CQ. Its memory is never freed, as an EVD may still poll the CQ. */
static struct dofi_cq *cq_add(struct dofi_domain *domain)
{
	struct dofi_cq **at = &domain->more[domain->n_more], *cq;

	if (domain->n_more == DOFI_DOMAIN_CQS)
		return NULL;
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return NULL;
		dofi_cq_init(*at);
	}
	cq = *at;
	cq->quirk = domain->cq.quirk;
	cq->serial = domain->cq.serial;
	cq->unreserved = FURTHER_CQ;
	if (dofi_cq_open(cq, domain->cq.progress, domain->cq.fabric, domain->fid, domain->cq.ops))
		return NULL;
	domain->n_more++;
	return cq;
}

static bool has_entries(const struct dofi_cq *cq, unsigned n)
{
	return !cq->quirk->fixed_queues || cq->unreserved >= n;
}

struct dofi_cq *dofi_domain_cq_reserve(struct dofi_domain *domain, unsigned n)
{
	struct dofi_cq *cq = &domain->cq;
	unsigned i;

	for (i = 0; i < domain->n_more && !has_entries(cq, n); i++)
		cq = domain->more[i];
	if (!has_entries(cq, n))
		cq = cq_add(domain);
	if (!cq || !has_entries(cq, n)) {
		dofi_log(DOFI_WARN, DOFI_FAB, "no room for %u more completions", n);
		return NULL;
	}
	cq->unreserved -= cq->quirk->fixed_queues ? n : 0;
	return cq;
}

void dofi_domain_cq_release(struct dofi_cq *cq, unsigned n)
{
	cq->unreserved += cq->quirk->fixed_queues ? n : 0;
}

#define KEY_TRIES 64

static int fabric_open(struct dofi_domain *domain, const struct dofi_mr_request *r,
		       struct dofi_mr *mr)
{
	const uint64_t access = FI_SEND | FI_WRITE | (r->read_only ? 0 : FI_RECV | FI_READ) |
				r->remote;
	const uint64_t offset = r->zero_based ? (uintptr_t)r->addr : 0;
	const bool chosen = domain->mr_style == DOFI_MR_VIRTUAL;
	uint64_t key = 0;
	int ret, tries = 0;

	do {
		if (chosen) {
			mr->key = dofi_key_random(r->scoped);
			if (!mr->key)
				return -EIO;
			key = dofi_mr_fabric_key(mr->key, r->secret);
		}
		ret = fi_mr_reg(domain->fid, r->addr, r->len, access, offset, key, 0, &mr->fid,
				NULL);
	} while (chosen && ret == -FI_ENOKEY && ++tries < KEY_TRIES);
	if (ret)
		return ret;
	if (!chosen && fi_mr_key(mr->fid) > UINT32_MAX) {
		dofi_log(DOFI_ERR, DOFI_MEM, "the fabric's key does not fit 32 bits");
		fi_close(&mr->fid->fid);
		return -EOVERFLOW;
	}
	if (!chosen)
		mr->key = fi_mr_key(mr->fid);
	mr->desc = fi_mr_desc(mr->fid);
	return 0;
}

int dofi_mr_open(struct dofi_domain *domain, const struct dofi_mr_request *r, struct dofi_mr *out)
{
	const struct dofi_mr_request local = {
		.addr = r->addr, .len = r->len, .read_only = r->read_only,
	};
	struct dofi_mr mr = { .owner = getpid() };
	int ret, tries = 0;

	if (domain->target_rdma) {
		ret = domain->registers ? fabric_open(domain, &local, &mr) : 0;
		if (ret)
			return ret;
		ret = dofi_grant_open(&domain->grants, r, &mr.grant, &mr.key);
		if (ret && mr.fid)
			fi_close(&mr.fid->fid);
	} else if (domain->also_granted && r->remote) {
		/* the fabric may use the key of the registration in two scopes */
		do {
			ret = fabric_open(domain, r, &mr);
			if (ret)
				return ret;
			ret = dofi_grant_open_as(&domain->grants, r, mr.key, &mr.grant);
			if (ret)
				fi_close(&mr.fid->fid);
		} while (ret == -EEXIST && ++tries < KEY_TRIES);
	} else {
		ret = fabric_open(domain, r, &mr);
	}
	if (!ret)
		*out = mr;
	return ret;
}

int dofi_mr_close(struct dofi_mr *mr)
{
	int ret = 0;

	if (mr->grant)
		dofi_grant_close(mr->grant);
	mr->grant = NULL;
	if (mr->fid && mr->owner == getpid())
		ret = fi_close(&mr->fid->fid);
	if (!ret)
		mr->fid = NULL;
	return ret;
}

int dofi_local_mr_open(const struct dofi_domain *domain, const void *memory, size_t size,
		       uint64_t access, struct fid_mr **mr)
{
	uint64_t key;

	*mr = NULL;
	if (!domain->mr_local)
		return 0;
	key = dofi_random();
	if (!key)
		return -EIO;
	return fi_mr_reg(domain->fid, memory, size, access, 0, key, 0, mr, NULL);
}

void dofi_local_mr_close(struct fid_mr *mr)
{
	if (mr)
		fi_close(&mr->fid);
}
