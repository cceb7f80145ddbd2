/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening and closing a completion queue, and its shards. */

#include "fab/cq.h"

#include "base/log.h"
#include "fab/cq_serve.h"

#include <errno.h>
#include <stdlib.h>

/* Software CQs grow when they are full. */
#define CQ_SIZE 4096

#define SHARD_SIZE 256			/* entries of a shard but the first: it has few endpoints */

#define LEAST_FIXED_SIZE 1024		/* more than one endpoint reserves */

void dofi_cq_init(struct dofi_cq *cq)
{
	dofi_mutex_init(&cq->lock);
	dofi_mutex_init(&cq->access);
	atomic_init(&cq->shards, NULL);
	cq->several = false;
}

/*
 * Opens a CQ; sets *@fd to -1 if the fabric has no descriptor for epoll, as shared memory and some
 * devices, or none that reports everything.
 */
static int fid_open_of(const struct dofi_cq *cq, struct fid_domain *domain, size_t size,
		       struct fid_cq **fid, int *fd)
{
	struct fi_cq_attr attr = {
		.size = size,
		.format = FI_CQ_FORMAT_DATA,
		/* with FI_WAIT_UNSPEC, FI_GETWAIT writes a larger structure */
		.wait_obj = FI_WAIT_FD,
	};
	int ret = cq->by_clock ? -FI_ENOSYS : fi_cq_open(domain, &attr, fid, NULL);

	if (ret == -FI_ENOSYS) {
		*fd = -1;
		attr.wait_obj = FI_WAIT_NONE;
		return fi_cq_open(domain, &attr, fid, NULL);
	}
	if (ret)
		return ret;
	ret = fi_control(&(*fid)->fid, FI_GETWAIT, fd);
	if (ret)
		fi_close(&(*fid)->fid);
	return ret;
}

static int fid_open(struct dofi_cq *cq, struct fid_domain *domain, struct fid_cq **fid)
{
	unsigned size = cq->unreserved;
	int ret;

	if (!cq->fixed)
		return fid_open_of(cq, domain, CQ_SIZE, fid, &cq->fd);
	for (;;) {
		ret = fid_open_of(cq, domain, size, fid, &cq->fd);
		if (!ret || size / 2 < LEAST_FIXED_SIZE)
			break;
		size /= 2;
	}
	cq->unreserved = size;
	return ret;
}

int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain)
{
	return dofi_cq_open_for(cq, progress, progress->fabric, domain, progress->ops);
}

int dofi_cq_open_for(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_fabric *fabric,
		     struct fid_domain *domain, const struct dofi_progress_ops *ops)
{
	struct fid_cq *fid;
	int ret;

	ret = fid_open(cq, domain, &fid);
	if (ret)
		goto log;
	cq->progress = progress;
	ret = dofi_cq_serve_open(cq);
	if (ret)
		goto close_cq;
	dofi_mutex_lock(&cq->lock);
	cq->fid = cq->first.fid = fid;
	cq->first.fd = cq->fd;
	cq->first.endpoints = 0;
	cq->fabric = fabric;
	cq->domain = domain;
	cq->ops = ops;
	cq->completed = ops->completed;
	cq->mixed = ops->mixed;
	cq->owner = NULL;
	LIST_INIT(&cq->sweepers);
	cq->left = 0;
	cq->most = 1;
	/* an EVD may still poll the CQ, as part of the memory's former PZ */
	cq->polls_checked = cq->polls;
	atomic_store(&cq->mode, DOFI_CQ_ARMED);
	dofi_cq_route(cq);
	dofi_lead_open(cq);
	dofi_mutex_unlock(&cq->lock);
	atomic_store(&cq->sleepers, 0);
	atomic_store(&cq->sweeps_done, atomic_load(&cq->sweeps_wanted));
	dofi_cq_serve_begin(cq);
	return 0;

close_cq:
	fi_close(&fid->fid);
log:
	dofi_log(DOFI_WARN, DOFI_FAB, "opening a completion queue: %s", fi_strerror(-ret));
	return ret;
}

void dofi_cq_close(struct dofi_cq *cq)
{
	struct fid_cq *fid = cq->fid;
	int ret;

	dofi_cq_serve_end(cq);
	dofi_mutex_lock(&cq->lock);
	cq->fid = NULL;
	dofi_cq_route(cq);
	dofi_lead_close(cq);
	if (cq->several)
		dofi_shards_close(cq->shards);
	cq->several = false;
	dofi_mutex_unlock(&cq->lock);
	ret = fi_close(&fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "closing a completion queue: %s", fi_strerror(-ret));
}

/* Shards */

/*
 * From now on reads go to the shards: a thread that reads the first one directly holds the lock in
 * the meantime.
 */
static int shards_begin(struct dofi_cq *cq)
{
	int ret;

	if (!cq->shards)
		cq->shards = calloc(1, sizeof(*cq->shards));
	if (!cq->shards)
		return -ENOMEM;
	dofi_mutex_lock(&cq->lock);
	dofi_lead_expel(cq);	/* the leader sleeps on the descriptor of the first shard */
	ret = dofi_shards_open(cq->shards, &cq->first);
	if (!ret) {
		dofi_cq_forget(cq);
		cq->several = true;
		cq->fd = cq->shards->set;
		atomic_store(&cq->programs_fid, NULL);
	}
	dofi_mutex_unlock(&cq->lock);
	return ret;
}

static int shard_add(struct dofi_cq *cq)
{
	struct fid_cq *fid;
	int fd, ret = 0;

	if (!cq->several)
		ret = shards_begin(cq);
	if (!ret)
		ret = fid_open_of(cq, cq->domain, SHARD_SIZE, &fid, &fd);
	if (ret)
		return ret;
	dofi_mutex_lock(&cq->lock);
	ret = fd < 0 ? -FI_ENOSYS : dofi_shards_add(cq->shards, fid, fd);
	dofi_mutex_unlock(&cq->lock);
	if (ret)
		fi_close(&fid->fid);
	return ret;
}

static struct dofi_shard *shard_not_full(struct dofi_cq *cq)
{
	if (cq->several)
		return dofi_shards_not_full(cq->shards);
	return cq->first.endpoints < DOFI_SHARD_ENDPOINTS ? &cq->first : NULL;
}

struct dofi_shard *dofi_cq_enter_shard(struct dofi_cq *cq)
{
	struct dofi_shard *shard = cq->reads_each && cq->fd >= 0 ? shard_not_full(cq) : &cq->first;
	int ret;

	if (!shard) {
		ret = shard_add(cq);
		/*
		 * cq->fd has changed, or its set has: the next round of the progress thread arms
		 * the CQ again
		 */
		cq->poller.fired = true;
		if (ret)
			dofi_log(DOFI_INFO, DOFI_FAB, "endpoints share a completion queue: %s",
				 fi_strerror(-ret));
		shard = ret ? &cq->first : shard_not_full(cq);
	}
	shard->endpoints++;
	return shard;
}

void dofi_cq_leave_shard(struct dofi_cq *cq, struct dofi_shard *shard)
{
	if (cq->several)
		dofi_shards_leave(cq->shards, shard);
	else
		shard->endpoints--;
}
