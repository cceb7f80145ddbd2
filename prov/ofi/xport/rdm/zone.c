/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: zones, and the connections by their ids. */

#include "xport/rdm/zone.h"

#include "xport/rdm/endpoint.h"
#include "xport/rdm/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whose CQ @zone is told of; or that is told nobody any more. */
static void owner_set(struct dofi_cq *cq, struct rdm_zone *zone)
{
	dofi_mutex_lock(&cq->lock);
	cq->owner = zone;
	dofi_mutex_unlock(&cq->lock);
}

static int domain_open(struct rdm_zone *zone)
{
	struct dofi_pz *pz = zone->pz;
	struct dofi_ia *ia = pz->obj.ia;
	int ret;

	zone->domain = rdm_is_alone(ia) ? &pz->domain : &pz->local;
	if (rdm_is_alone(ia))
		return 0;
	ret = dofi_domain_open_on(zone->domain, &ia->progress, &dofi_rings_fabric,
				  rdm_ia_of(ia)->ring_ops, &ia->local);
	if (!ret)
		zone->rings = dofi_rings_of(&zone->domain->cq);
	return ret;
}

static void domain_close(struct rdm_zone *zone)
{
	if (zone->domain == &zone->pz->local)
		dofi_domain_close(zone->domain);
}

static int zone_init(struct rdm_zone *zone)
{
	struct rdm_ia *ria = rdm_ia_of(zone->pz->obj.ia);
	int ret = domain_open(zone);

	if (ret)
		return ret;
	if (ria->shm.page) {
		dofi_cq_set_gate(&zone->domain->cq, &ria->shm.gate);
		dofi_lead_set_word(&zone->domain->cq, &ria->shm.lead);
	}
	if (zone->rings)
		dofi_lead_set_word(&zone->domain->cq, dofi_rings_lead(zone->rings));
	ret = rdm_ops_open(zone);
	if (ret)
		domain_close(zone);
	return ret;
}

int rdm_zone_open(struct dofi_pz *pz, struct rdm_zone **out)
{
	struct rdm_zone *zone = pz->xport_pz;
	int ret;

	if (zone) {
		*out = zone;
		return 0;
	}
	zone = calloc(1, sizeof(*zone));
	if (!zone)
		return -ENOMEM;
	zone->pz = pz;
	LIST_INIT(&zone->endpoints);
	ret = zone_init(zone);
	if (ret) {
		free(zone);
		return ret;
	}
	owner_set(&zone->domain->cq, zone);
	pz->xport_pz = zone;
	LIST_INSERT_HEAD(&rdm_ia_of(pz->obj.ia)->zones, zone, link);
	*out = zone;
	return 0;
}

void rdm_zone_close(struct dofi_pz *pz)
{
	struct rdm_zone *zone = pz->xport_pz;

	if (!zone)
		return;
	LIST_REMOVE(zone, link);
	rdm_endpoints_close(zone);
	owner_set(&zone->domain->cq, NULL);
	pz->xport_pz = NULL;
	rdm_ops_close(zone);
	domain_close(zone);
	free(zone->conn);
	free(zone);
}

/* A free place for a connection. CQ lock held. */
static int place_find(struct rdm_zone *zone, uint32_t *place)
{
	uint32_t n = zone->n_conns ? 2 * zone->n_conns : 16, i;
	struct rdm_conn **more;

	for (i = 0; i < zone->n_conns; i++)
		if (!zone->conn[i])
			break;
	if (i == zone->n_conns) {
		more = realloc(zone->conn, n * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + i, 0, (n - i) * sizeof(*more));
		zone->conn = more;
		zone->n_conns = n;
	}
	*place = i;
	return 0;
}

/* All connections of the process, by which peers in it are known. */
static struct dofi_mutex here_lock;
static LIST_HEAD(, rdm_conn) here = LIST_HEAD_INITIALIZER(here);	/* under here_lock */

static void here_enter(struct rdm_conn *conn)
{
	dofi_mutex_lock(&here_lock);
	LIST_INSERT_HEAD(&here, conn, here);
	dofi_mutex_unlock(&here_lock);
}

static void here_leave(struct rdm_conn *conn)
{
	dofi_mutex_lock(&here_lock);
	LIST_REMOVE(conn, here);
	dofi_mutex_unlock(&here_lock);
}

const _Atomic uint64_t *rdm_conn_here(uint64_t id)
{
	const _Atomic uint64_t *word = NULL;
	struct rdm_conn *conn;

	dofi_mutex_lock(&here_lock);
	LIST_FOREACH(conn, &here, here)
		if (atomic_load(&conn->id) == id)
			word = &conn->id;
	dofi_mutex_unlock(&here_lock);
	return word;
}

/*
 * The high half of the id of a connection. Its low bits count: a bare frame has no other bits of it, and a frame that is
 * late must not find the connection that has the place now. 0 if there is no random number.
 */
static uint32_t number_new(void)
{
	static _Atomic uint32_t count;
	const uint32_t random = (uint32_t)dofi_random();

	if (!random)
		return 0;
	return (random & ~(uint32_t)RDM_BARE_NUMBER) | 1u << 31 | (atomic_fetch_add(&count, 1) & RDM_BARE_NUMBER);
}

int rdm_zone_enter(struct rdm_zone *zone, struct rdm_conn *conn)
{
	struct dofi_cq *cq = &zone->domain->cq;
	const uint32_t number = number_new();
	uint32_t place;
	int ret;

	if (!number)
		return -EIO;
	dofi_mutex_lock(&cq->lock);
	ret = place_find(zone, &place);
	if (!ret && conn->link)
		ret = dofi_rings_add(zone->rings, conn->link);
	if (!ret) {
		atomic_store(&conn->id, (uint64_t)number << 32 | place);
		zone->conn[place] = conn;
	}
	dofi_mutex_unlock(&cq->lock);
	if (!ret)
		here_enter(conn);
	return ret;
}

void rdm_zone_leave(struct rdm_conn *conn)
{
	struct rdm_zone *zone = conn->zone;
	struct dofi_cq *cq = &zone->domain->cq;
	const uint32_t place = (uint32_t)atomic_load(&conn->id);

	here_leave(conn);
	dofi_mutex_lock(&cq->lock);
	if (place < zone->n_conns && zone->conn[place] == conn)
		zone->conn[place] = NULL;
	if (conn->link)
		dofi_rings_remove(zone->rings, conn->link);
	rdm_ops_abandon(conn);
	dofi_mutex_unlock(&cq->lock);
}
