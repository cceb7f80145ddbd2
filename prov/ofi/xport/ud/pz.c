/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ways of a PZ, and its EPs by number. */

#include "xport/ud/ud.h"

#include "base/clock.h"
#include "base/log.h"
#include "obj/ep/ep_attr.h"
#include "xport/rdm/conn.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* A datagram that finds no buffer may be lost, so there are many, but of so many bytes together. */
#define BUFFERS_BYTES (1u << 20)
#define BUFFERS_LEAST 64
#define BUFFERS_MOST 512

static void sweeper_add(struct ud_way *way)
{
	struct dofi_cq *cq = &way->domain->cq;

	way->sweeper.swept = ud_swept;
	dofi_mutex_lock(&cq->lock);
	dofi_cq_add_sweeper(cq, &way->sweeper);
	dofi_mutex_unlock(&cq->lock);
}

static void sweeper_remove(struct ud_way *way)
{
	struct dofi_cq *cq = &way->domain->cq;

	dofi_mutex_lock(&cq->lock);
	dofi_cq_remove_sweeper(cq, &way->sweeper);
	dofi_mutex_unlock(&cq->lock);
}

/* The net */

static void net_domain_close(struct ud_pz *upz)
{
	if (upz->net.domain == &upz->pz->datagram)
		dofi_domain_close(upz->net.domain);
	upz->net.domain = NULL;
}

static void net_close(struct ud_pz *upz)
{
	if (!upz->net.domain)
		return;
	dofi_rdm_close(&upz->rdm);
	dofi_local_mr_close(upz->mr);
	upz->mr = NULL;
	net_domain_close(upz);
	free(upz->net.ep);
	upz->net.ep = NULL;
	upz->net.n_eps = 0;
}

/* Opens the endpoint in a second domain for the datagram fabric, or in the PZ's own. */
static int net_open(struct ud_pz *upz)
{
	struct ud_ia *uia = upz->uia;
	const size_t inject = uia->fabric->info->tx_attr->inject_size;
	const size_t n = BUFFERS_BYTES / uia->fabric->frame_size;
	const struct dofi_rdm_options options = {
		.n_buffers = n < BUFFERS_LEAST ? BUFFERS_LEAST :
			     n > BUFFERS_MOST ? BUFFERS_MOST : (unsigned)n,
		.arrived = ud_arrived,
	};
	struct rdm_pz *rpz;
	int ret;

	if (uia->own.info)
		ret = dofi_domain_open(&upz->pz->datagram, &uia->ia->progress, uia->fid,
					  &uia->own_ops, &uia->own);
	else
		ret = rdm_pz_open(upz->pz, &rpz);
	if (ret)
		return ret;
	upz->net.domain = uia->own.info ? &upz->pz->datagram : rpz->domain;
	ret = dofi_rdm_open(&upz->rdm, upz->net.domain, uia->fabric, &options);
	if (ret)
		goto close_domain;
	upz->inject = inject < UD_INJECT_MAX ? inject : UD_INJECT_MAX;
	ret = dofi_local_mr_open(upz->net.domain, upz->memory, UD_SENDS * uia->frame_size, FI_SEND,
				 &upz->mr);
	if (ret)
		goto close_endpoint;
	sweeper_add(&upz->net);
	return 0;

close_endpoint:
	dofi_rdm_close(&upz->rdm);
close_domain:
	net_domain_close(upz);
	return ret;
}

static void net_shut(struct ud_pz *upz)
{
	if (!upz->net.domain)
		return;
	sweeper_remove(&upz->net);
	dofi_rdm_shut(&upz->rdm);
	dofi_cq_drain(&upz->net.domain->cq);
}

/* Both ways */

/* Sets the receiver of datagrams in @rpz's inboxes; NULL ends that. */
static void datagrams_set(struct rdm_pz *rpz, struct ud_pz *upz)
{
	struct dofi_cq *cq = &rpz->domain->cq;

	dofi_mutex_lock(&cq->lock);
	rpz->datagrams = upz ? &ud_rings_user : NULL;
	rpz->datagrams_owner = upz;
	dofi_mutex_unlock(&cq->lock);
}

static int rings_open(struct ud_pz *upz)
{
	struct rdm_pz *rpz;
	int ret = rdm_pz_open(upz->pz, &rpz);

	if (ret)
		return ret;
	upz->local.domain = rpz->domain;
	upz->rings = rpz->rings;
	datagrams_set(rpz, upz);
	sweeper_add(&upz->local);
	return 0;
}

static void log_no_endpoint(int err)
{
	dofi_log(DOFI_WARN, DOFI_FAB, "no endpoint for datagrams: %s", fi_strerror(-err));
}

/* With rings the net is opened when it is needed: each poll would read its socket. */
int ud_pz_open(struct dofi_pz *pz, struct ud_pz **out)
{
	struct ud_pz *upz = pz->datagrams_pz;
	uint32_t high, low;
	int ret = -EIO;

	if (upz) {
		*out = upz;
		return 0;
	}
	upz = calloc(1, sizeof(*upz));
	if (!upz)
		return -ENOMEM;
	upz->pz = pz;
	upz->uia = ud_ia_of(pz->obj.ia);
	upz->net.upz = upz->local.upz = upz;
	upz->reaping.run = ud_peers_reap;
	dofi_mutex_init(&upz->lock);
	TAILQ_INIT(&upz->waiting);
	STAILQ_INIT(&upz->free);
	high = dofi_random();
	low = dofi_random();
	if (!high || !low)
		goto free_upz;
	upz->key = (uint64_t)high << 32 | low;
	ret = ud_sends_open(upz);
	if (ret)
		goto free_upz;
	ret = upz->uia->rings ? rings_open(upz) : net_open(upz);
	if (ret)
		goto close_sends;
	pz->datagrams_pz = upz;
	*out = upz;
	return 0;

close_sends:
	ud_sends_close(upz);
free_upz:
	log_no_endpoint(ret);
	free(upz);
	return ret;
}

/* A program may end as soon as its sends are complete, before the fabric has the last copies. */
static void flush_copies(struct ud_pz *upz)
{
	struct dofi_cq *cq = &ud_first_way(upz)->domain->cq;
	struct dofi_cq *net = upz->net.domain ? &upz->net.domain->cq : cq;
	struct pollfd p = { .fd = net->fd, .events = POLLIN };
	const int64_t until = dofi_now() + UD_PATIENCE_NS;
	bool wait;

	for (;;) {
		dofi_mutex_lock(&upz->lock);
		wait = !TAILQ_EMPTY(&upz->waiting);
		dofi_mutex_unlock(&upz->lock);
		if (!wait || dofi_now() >= until)
			return;
		if (!dofi_cq_drain(cq) && (net == cq || !dofi_cq_drain(net)))
			poll(&p, 1, 1);
	}
}

void ud_pz_close(struct dofi_pz *pz)
{
	struct ud_pz *upz = pz->datagrams_pz;

	if (!upz)
		return;
	flush_copies(upz);
	net_shut(upz);
	dofi_progress_withdraw(&upz->uia->ia->progress, &upz->reaping);
	ud_peers_close(upz);
	net_close(upz);
	if (upz->rings) {
		datagrams_set(pz->xport_pz, NULL);
		sweeper_remove(&upz->local);
		free(upz->local.ep);
	}
	ud_sends_close(upz);
	free(upz);
	pz->datagrams_pz = NULL;
}

/* Numbers */

/* Enters @uep, which may be NULL, into the table of @way, which is open. 0 or -ENOMEM. */
static int slot_set(struct ud_way *way, uint32_t slot, struct ud_ep *uep)
{
	struct dofi_mutex *lock = &way->domain->cq.lock;
	struct ud_ep **more;
	uint32_t n;
	int ret = 0;

	dofi_mutex_lock(lock);
	if (slot >= way->n_eps) {
		for (n = way->n_eps ? way->n_eps : 16; n <= slot; n *= 2)
			;
		more = realloc(way->ep, n * sizeof(*more));
		if (more) {
			memset(more + way->n_eps, 0, (n - way->n_eps) * sizeof(*more));
			way->ep = more;
			way->n_eps = n;
		}
		ret = more ? 0 : -ENOMEM;
	}
	if (!ret)
		way->ep[slot] = uep;
	dofi_mutex_unlock(lock);
	return ret;
}

static bool has_second(const struct ud_pz *upz)
{
	return upz->rings && upz->net.domain;
}

/* Makes the EVDs of @uep also poll @cq; NULL ends that. */
static void second_set(struct ud_ep *uep, struct dofi_cq *cq)
{
	dofi_mutex_lock(&uep->ep->lock);
	dofi_ep_set_second_cq(uep->ep, cq);
	dofi_mutex_unlock(&uep->ep->lock);
}

/* Reads the table without its lock: this thread alone writes it. */
int ud_pz_add(struct ud_pz *upz, struct ud_ep *uep)
{
	struct ud_way *way = ud_first_way(upz);
	uint32_t slot = 0;
	int ret;

	while (slot < way->n_eps && way->ep[slot])
		slot++;
	if (slot == UD_EP_SLOTS)
		return -ENOSPC;
	/* from 1 to 255, so that a late datagram does not find the next EP in the slot */
	upz->generation = upz->generation % 255 + 1;
	uep->number = (uint32_t)upz->generation << 16 | slot;
	ret = slot_set(way, slot, uep);
	if (ret || !has_second(upz))
		return ret;
	ret = slot_set(&upz->net, slot, uep);
	if (ret)
		slot_set(&upz->local, slot, NULL);
	else
		second_set(uep, &upz->net.domain->cq);
	return ret;
}

void ud_pz_remove(struct ud_ep *uep)
{
	const uint32_t slot = uep->number & (UD_EP_SLOTS - 1);
	struct ud_pz *upz = uep->upz;
	struct dofi_cq *cq = &ud_first_way(upz)->domain->cq;

	slot_set(ud_first_way(upz), slot, NULL);
	if (has_second(upz)) {
		slot_set(&upz->net, slot, NULL);
		second_set(uep, NULL);
	}
	/* a sweep, which holds the lock, may be calling the EP */
	dofi_mutex_lock(&cq->lock);
	dofi_cq_stall_end(cq, &uep->ep->stall);
	dofi_mutex_unlock(&cq->lock);
}

/* From now on all EPs also receive over the net. */
int ud_pz_open_net(struct ud_pz *upz)
{
	const struct ud_way *local = &upz->local;
	uint32_t i;
	int ret;

	if (upz->net.domain)
		return 0;
	ret = net_open(upz);
	if (ret) {
		log_no_endpoint(ret);
		return ret;
	}
	for (i = 0; i < local->n_eps && !ret; i++)
		if (local->ep[i])
			ret = slot_set(&upz->net, i, local->ep[i]);
	if (ret) {
		net_shut(upz);
		net_close(upz);
		return ret;
	}
	for (i = 0; i < local->n_eps; i++)
		if (local->ep[i])
			second_set(local->ep[i], &upz->net.domain->cq);
	return 0;
}
