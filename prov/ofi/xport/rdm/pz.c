/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: its part of a PZ, and the connections by id. */

#include "xport/rdm/conn.h"

#include "base/env.h"
#include "base/log.h"
#include "xport/rdm/op.h"
#include "xport/rdm/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a connection's number that are counted up. */
#define COUNT_BITS 0xfff

/* How many frames can arrive before the first is handled. */
#define BUFFERS 64

/* Sets the owner, which the callbacks of @cq use; NULL ends them. */
static void owner_set(struct dofi_cq *cq, struct rdm_pz *rpz)
{
	dofi_mutex_lock(&cq->lock);
	cq->owner = rpz;
	dofi_mutex_unlock(&cq->lock);
}

/* A peer may have ended an inbox. */
static void rung(struct dofi_bell *bell)
{
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &rdm_ia_of(dofi_ia_of(bell->progress))->pzs, link)
		if (dofi_rings_took_end(rpz->rings))
			dofi_inboxes_reap(rpz->rings);
}

/* Opens the local domain if the PZ's own domain is another transport's. */
int rdm_pz_open(struct dofi_pz *pz, struct rdm_pz **out)
{
	struct rdm_ia *ria = rdm_ia_of(pz->obj.ia);
	struct rdm_pz *rpz = pz->xport_pz;
	int ret = 0;

	if (rpz) {
		*out = rpz;
		return 0;
	}
	rpz = calloc(1, sizeof(*rpz));
	if (!rpz)
		return -ENOMEM;
	rpz->pz = pz;
	rpz->ria = ria;
	rpz->domain = ria->second ? &pz->local : &pz->domain;
	if (ria->second)
		ret = dofi_domain_open(rpz->domain, &pz->obj.ia->progress, &dofi_rings_fabric,
				       dofi_rings_xport.progress_ops, ria->fabric);
	if (ret)
		goto free_rpz;
	if (ria->rings) {
		ret = ria->bell.fd < 0 ? dofi_bell_open(&ria->bell, &pz->obj.ia->progress) : 0;
		if (ret)
			goto close_domain;
		ria->bell.rung = rung;
		rpz->rings = dofi_rings_of(&rpz->domain->cq);
		ret = dofi_rings_begin(rpz->rings, &rpz->domain->cq, &rdm_rings_user, rpz,
				       &ria->bell, &pz->domain.grants);
		if (ret)
			goto close_domain;
		dofi_lead_set_word(&rpz->domain->cq, &rpz->rings->lead);
		ret = dofi_settings.cma ? dofi_grants_publish(&pz->domain.grants) : 0;
		if (ret)
			dofi_log(DOFI_INFO, DOFI_CM,
				 "peers on this host cannot write by themselves: %s",
				 strerror(-ret));
	}
	ret = rdm_ops_open(rpz);
	if (ret)
		goto close_domain;
	owner_set(&rpz->domain->cq, rpz);
	pz->xport_pz = rpz;
	LIST_INSERT_HEAD(&ria->pzs, rpz, link);
	*out = rpz;
	return 0;

close_domain:
	if (rpz->ria->second)
		dofi_domain_close(rpz->domain);
free_rpz:
	free(rpz);
	return ret;
}

void rdm_pz_close(struct dofi_pz *pz)
{
	struct rdm_pz *rpz = pz->xport_pz;

	if (!rpz)
		return;
	LIST_REMOVE(rpz, link);
	dofi_timer_stop(&pz->obj.ia->progress, &rpz->new_sockets);
	if (rpz->has_rdm)
		dofi_rdm_close(&rpz->rdm);
	if (rpz->rings)
		dofi_inboxes_close(rpz->rings);
	owner_set(&rpz->domain->cq, NULL);
	pz->xport_pz = NULL;
	rdm_ops_close(rpz);
	if (rpz->ria->second)
		dofi_domain_close(rpz->domain);
	free(rpz->conn);
	free(rpz);
}

int rdm_pz_open_endpoint(struct rdm_pz *rpz)
{
	const struct dofi_rdm_options options = {
		.n_buffers = BUFFERS, .arrived = rdm_buffer_arrived,
	};
	struct dofi_mutex *lock = &rpz->domain->cq.lock;
	int ret;

	if (rpz->rings || rpz->has_rdm)
		return 0;
	ret = dofi_rdm_open(&rpz->rdm, rpz->domain, rpz->ria->fabric, &options);
	if (ret)
		return ret;
	dofi_mutex_lock(lock);
	rpz->has_rdm = true;
	dofi_mutex_unlock(lock);
	return 0;
}

/* Part of an id is counted up: a late frame must not find the next connection in the slot. */
int rdm_pz_add(struct rdm_pz *rpz, struct rdm_conn *conn)
{
	static _Atomic uint32_t count;
	const uint32_t random = (uint32_t)dofi_random();
	const uint32_t number = (random & ~(uint32_t)COUNT_BITS) | RDM_ID_FIRST << 24 |
				(atomic_fetch_add(&count, 1) & COUNT_BITS);
	const uint32_t n = rpz->n_conns ? 2 * rpz->n_conns : 16;
	struct dofi_cq *cq = &rpz->domain->cq;
	struct rdm_conn **more;
	uint32_t slot = 0;
	int ret = 0;

	if (!random)
		return -EIO;
	dofi_mutex_lock(&cq->lock);
	while (slot < rpz->n_conns && rpz->conn[slot])
		slot++;
	if (slot == rpz->n_conns) {
		more = realloc(rpz->conn, n * sizeof(*more));
		ret = more ? 0 : -ENOMEM;
		if (ret)
			goto unlock;
		memset(more + slot, 0, (n - slot) * sizeof(*more));
		rpz->conn = more;
		rpz->n_conns = n;
	}
	atomic_store(&conn->id, (uint64_t)number << 32 | slot);
	rpz->conn[slot] = conn;
unlock:
	dofi_mutex_unlock(&cq->lock);
	return ret;
}

void rdm_pz_remove(struct rdm_conn *conn)
{
	struct rdm_pz *rpz = conn->rpz;
	struct dofi_cq *cq = &rpz->domain->cq;

	dofi_mutex_lock(&cq->lock);
	rpz->conn[(uint32_t)atomic_load(&conn->id)] = NULL;
	rdm_ops_abandon(conn);
	dofi_mutex_unlock(&cq->lock);
}
