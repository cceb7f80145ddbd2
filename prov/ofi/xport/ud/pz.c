/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The endpoint of a PZ, and its EPs by number. */

#include "xport/ud/pz.h"

#include "base/clock.h"
#include "base/log.h"
#include "xport/rdm/pz.h"
#include "xport/ud/peer.h"
#include "xport/ud/recv.h"
#include "xport/ud/send.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* A datagram that finds no buffer may be lost, so there are many, but of so many bytes together. */
#define BUFFERS_BYTES (1u << 20)
#define BUFFERS_LEAST 64
#define BUFFERS_MOST 512

static unsigned buffers_of(const struct dofi_fabric_choice *fabric)
{
	const size_t n = BUFFERS_BYTES / fabric->frame_size;

	if (n < BUFFERS_LEAST)
		return BUFFERS_LEAST;
	return n > BUFFERS_MOST ? BUFFERS_MOST : (unsigned)n;
}

static uint64_t key_new(void)
{
	const uint64_t high = dofi_random(), low = dofi_random();

	return high && low ? high << 32 | low : 0;
}

/* Opens a domain of its own, or uses that of the PZ, with its guard. */
static int domain_open(struct ud_pz *upz)
{
	struct ud_ia *uia = upz->uia;
	struct rdm_pz *rpz;
	int ret;

	upz->domain = &upz->pz->datagram;
	if (uia->own.info)
		return dofi_domain_open_on(upz->domain, &uia->ia->progress, uia->fid, &uia->own_ops,
					   &uia->own);
	ret = rdm_pz_open(upz->pz, &rpz);
	if (!ret)
		upz->domain = rpz->domain;
	return ret;
}

static void domain_close(struct ud_pz *upz)
{
	if (upz->domain == &upz->pz->datagram)
		dofi_domain_close(upz->domain);
}

static int endpoint_open(struct ud_pz *upz)
{
	struct ud_ia *uia = upz->uia;
	const struct dofi_rdm_options options = {
		.n_buffers = buffers_of(uia->fabric), .arrived = ud_arrived,
	};

	return dofi_rdm_open(&upz->rdm, upz->domain, uia->fabric, &options);
}

static size_t inject_of(const struct dofi_fabric_choice *fabric)
{
	const size_t inject = fabric->info->tx_attr->inject_size;

	return inject < UD_INJECT_MAX ? inject : UD_INJECT_MAX;
}

static void sweeper_add(struct ud_pz *upz)
{
	upz->sweeper.swept = ud_swept;
	dofi_mutex_lock(&upz->domain->cq.lock);
	dofi_cq_add_sweeper(&upz->domain->cq, &upz->sweeper);
	dofi_mutex_unlock(&upz->domain->cq.lock);
}

static void sweeper_remove(struct ud_pz *upz)
{
	dofi_mutex_lock(&upz->domain->cq.lock);
	dofi_cq_remove_sweeper(&upz->domain->cq, &upz->sweeper);
	dofi_mutex_unlock(&upz->domain->cq.lock);
}

static void upz_init(struct ud_pz *upz, struct dofi_pz *pz)
{
	upz->pz = pz;
	upz->uia = ud_ia_of(pz->obj.ia);
	upz->reaping.run = ud_peers_reap;
	dofi_mutex_init(&upz->lock);
	TAILQ_INIT(&upz->waiting);
	TAILQ_INIT(&upz->stalled);
	STAILQ_INIT(&upz->free);
}

static int upz_open(struct ud_pz *upz)
{
	int ret;

	upz->key = key_new();
	if (!upz->key)
		return -EIO;
	ret = domain_open(upz);
	if (ret)
		return ret;
	ret = endpoint_open(upz);
	if (ret)
		goto close_domain;
	upz->inject = inject_of(upz->uia->fabric);
	ret = ud_sends_open(upz);
	if (ret)
		goto close_endpoint;
	sweeper_add(upz);
	ud_peers_here_enter(upz);
	return 0;

close_endpoint:
	dofi_rdm_close(&upz->rdm);
close_domain:
	domain_close(upz);
	return ret;
}

int ud_pz_open(struct dofi_pz *pz, struct ud_pz **out)
{
	struct ud_pz *upz = pz->datagrams_pz;
	int ret;

	if (upz) {
		*out = upz;
		return upz->rdm.fid ? 0 : -ENODEV;
	}
	upz = calloc(1, sizeof(*upz));
	if (!upz)
		return -ENOMEM;
	upz_init(upz, pz);
	ret = upz_open(upz);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_FAB, "no endpoint for datagrams: %s", fi_strerror(-ret));
		free(upz);
		return ret;
	}
	pz->datagrams_pz = upz;
	*out = upz;
	return 0;
}

/* A program may end as soon as its sends are complete, before the fabric has the last copies. */
static void settle(struct ud_pz *upz)
{
	struct dofi_cq *cq = &upz->domain->cq;
	struct pollfd p = { .fd = cq->fd, .events = POLLIN };
	const int64_t until = dofi_now() + UD_PATIENCE_NS;

	while (ud_sends_wait(upz) && dofi_now() < until)
		if (!dofi_cq_drain(cq))
			poll(&p, 1, 1);
}

void ud_pz_close(struct dofi_pz *pz)
{
	struct ud_pz *upz = pz->datagrams_pz;

	if (!upz)
		return;
	settle(upz);
	ud_peers_here_leave(upz);
	sweeper_remove(upz);
	dofi_rdm_shut(&upz->rdm);
	dofi_cq_drain(&upz->domain->cq);
	dofi_progress_withdraw(&upz->uia->ia->progress, &upz->reaping);
	ud_peers_close(upz);
	dofi_rdm_close(&upz->rdm);
	ud_sends_close(upz);
	domain_close(upz);
	free(upz->ep);
	free(upz);
	pz->datagrams_pz = NULL;
}

/* Numbers */

/* Returns a free slot. CQ lock held. */
static int slot_find(struct ud_pz *upz, uint32_t *slot)
{
	uint32_t n = upz->n_eps ? 2 * upz->n_eps : 16, i;
	struct ud_ep **more;

	for (i = 0; i < upz->n_eps; i++)
		if (!upz->ep[i])
			break;
	if (i == UD_EP_SLOTS)
		return -ENOSPC;
	if (i == upz->n_eps) {
		more = realloc(upz->ep, n * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + i, 0, (n - i) * sizeof(*more));
		upz->ep = more;
		upz->n_eps = n;
	}
	*slot = i;
	return 0;
}

/* From 1 to 255, so that a late datagram does not find the next EP in the slot. */
static uint32_t generation_next(struct ud_pz *upz)
{
	upz->generation = upz->generation % 255 + 1;
	return upz->generation;
}

int ud_pz_add(struct ud_pz *upz, struct ud_ep *uep)
{
	struct dofi_mutex *lock = &upz->domain->cq.lock;
	uint32_t slot;
	int ret;

	dofi_mutex_lock(lock);
	ret = slot_find(upz, &slot);
	if (!ret) {
		uep->number = generation_next(upz) << 16 | slot;
		upz->ep[slot] = uep;
	}
	dofi_mutex_unlock(lock);
	return ret;
}

void ud_pz_remove(struct ud_ep *uep)
{
	struct ud_pz *upz = uep->upz;
	struct dofi_mutex *lock = &upz->domain->cq.lock;

	dofi_mutex_lock(lock);
	upz->ep[uep->number & (UD_EP_SLOTS - 1)] = NULL;
	ud_unstall(uep);
	dofi_mutex_unlock(lock);
}
