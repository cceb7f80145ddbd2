/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the fabric's endpoints of a PZ, and their replacement. */

#include "xport/rdm/endpoint.h"

#include "base/container.h"
#include "base/log.h"
#include "obj/ep_cm.h"
#include "xport/rdm/shm/signals.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A repair may lose one of libfabric's 1024 buffers of the endpoint. After this many repairs new
 * connections use another endpoint.
 */
#define REPAIRS_MAX 64

/* How many frames can arrive before the first is handled. */
#define BUFFERS 64

static int endpoint_open(struct rdm_pz *rpz, struct rdm_endpoint *e)
{
	struct dofi_ia *ia = rpz->pz->obj.ia;
	struct dofi_shm *shm = &rdm_ia_of(ia)->shm;
	struct dofi_rdm_options options = {
		.n_buffers = BUFFERS, .arrived = rdm_ia_of(ia)->arrived,
	};
	struct dofi_signals signals;
	char name[DOFI_RDM_ADDRESS];
	int ret = 0;

	e->rpz = rpz;
	e->repairs = atomic_load(&shm->robust.repairs);
	dofi_reservations_init(&e->reservations);
	if (shm->page)
		ret = dofi_shm_endpoint(shm, name, sizeof(name));
	if (ret)
		return ret;
	if (shm->page)
		options.shm_address = name;
	dofi_signals_save(&signals);
	ret = dofi_rdm_open(&e->rdm, rpz->domain, rdm_fabric_of(ia), &options);
	dofi_signals_restore(&signals);
	return ret;
}

static void endpoint_close(struct rdm_endpoint *e)
{
	struct dofi_mutex *lock = &e->rpz->domain->cq.lock;

	dofi_mutex_lock(lock);
	LIST_REMOVE(e, link);
	dofi_mutex_unlock(lock);
	dofi_rdm_close(&e->rdm);
	free(e);
}

static int endpoint_add(struct rdm_pz *rpz, struct rdm_endpoint **out)
{
	struct rdm_endpoint *last = LIST_FIRST(&rpz->endpoints), *e = calloc(1, sizeof(*e));
	struct dofi_mutex *lock = &rpz->domain->cq.lock;
	int ret;

	if (!e)
		return -ENOMEM;
	ret = endpoint_open(rpz, e);
	if (ret) {
		free(e);
		return ret;
	}
	dofi_mutex_lock(lock);
	LIST_INSERT_HEAD(&rpz->endpoints, e, link);
	dofi_mutex_unlock(lock);
	if (last && !last->conns)
		endpoint_close(last);
	*out = e;
	return 0;
}

static bool is_worn(const struct rdm_endpoint *e)
{
	const struct dofi_robust *robust = &rdm_ia_of(e->rpz->pz->obj.ia)->shm.robust;

	return atomic_load(&robust->repairs) - e->repairs >= REPAIRS_MAX;
}

static bool reserve(struct rdm_endpoint *e, struct dofi_reservation *reservation, const void *key,
		    size_t len)
{
	return dofi_reserve(&e->reservations, reservation, dofi_rdm_free_entries(&e->rdm), key,
			    len);
}

int rdm_endpoint_get(struct rdm_pz *rpz, struct dofi_reservation *reservation, const void *key,
		     size_t len, struct rdm_endpoint **out)
{
	struct rdm_endpoint *e = LIST_FIRST(&rpz->endpoints);
	int ret;

	if (!e || is_worn(e) || !reserve(e, reservation, key, len)) {
		ret = endpoint_add(rpz, &e);
		if (ret)
			return ret;
		reserve(e, reservation, key, len);
	}
	e->conns++;
	*out = e;
	return 0;
}

/* While the robust lock is closed, the renewal closes all endpoints together. */
void rdm_endpoint_put(struct rdm_endpoint *e)
{
	struct rdm_ia *ria = rdm_ia_of(e->rpz->pz->obj.ia);

	if (--e->conns)
		return;
	if (atomic_load(&ria->shm.robust.disabled))
		dofi_progress_post(ria->progress, &ria->renewal);
	else if (e != LIST_FIRST(&e->rpz->endpoints))
		endpoint_close(e);
}

void rdm_endpoints_close(struct rdm_pz *rpz)
{
	struct rdm_endpoint *e;

	while ((e = LIST_FIRST(&rpz->endpoints)))
		endpoint_close(e);
}

void rdm_endpoints_sweep(struct rdm_pz *rpz)
{
	struct rdm_endpoint *e;

	LIST_FOREACH(e, &rpz->endpoints, link)
		dofi_rdm_sweep(&e->rdm);
}

/* Memory that cannot be repaired */

static struct rdm_ia *ia_of_robust(struct dofi_robust *robust)
{
	return DOFI_CONTAINER_OF(robust, struct rdm_ia, shm.robust);
}

static struct rdm_ia *ia_of_renewal(struct dofi_work *work)
{
	return DOFI_CONTAINER_OF(work, struct rdm_ia, renewal);
}

void rdm_endpoints_damaged(struct dofi_robust *robust)
{
	struct rdm_ia *ria = ia_of_robust(robust);

	dofi_progress_post(ria->progress, &ria->renewal);
}

/* Ends the connection at once, because its endpoint is unusable. */
static void conn_break(struct rdm_conn *conn)
{
	switch (dofi_ep_state_now(conn->ep)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		dofi_ep_no_connection(conn->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
				      "the fabric's endpoint is damaged");
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		break;
	default:
		dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	}
}

/* Reads the table of connections without a lock, as only this thread writes it. */
static unsigned conns_break(struct rdm_pz *rpz)
{
	unsigned n = 0;
	uint32_t i;

	for (i = 0; i < rpz->n_conns; i++)
		if (rpz->conn[i]) {
			conn_break(rpz->conn[i]);
			n++;
		}
	return n;
}

static void endpoints_shut(struct rdm_pz *rpz)
{
	struct rdm_endpoint *e;

	LIST_FOREACH(e, &rpz->endpoints, link)
		dofi_rdm_shut(&e->rdm);
}

/*
 * While an endpoint is open behind the closed robust lock, no completion may be read, and no buffer
 * freed that libfabric has. Runs again when the last connection of an endpoint has ended.
 */
void rdm_endpoints_renew(struct dofi_work *work)
{
	struct rdm_ia *ria = ia_of_renewal(work);
	struct rdm_guest *guest;
	struct rdm_pz *rpz;
	unsigned n = 0;

	if (!atomic_load(&ria->shm.robust.disabled))
		return;
	LIST_FOREACH(rpz, &ria->pzs, link)
		n += conns_break(rpz);
	if (n) {
		dofi_log(DOFI_ERR, DOFI_FAB,
			 "shared memory: a process died while it sent here, and "
			 "its traces cannot be removed with libfabric %u.%u: %u connections end",
			 FI_MAJOR(fi_version()), FI_MINOR(fi_version()), n);
		return;
	}
	LIST_FOREACH(rpz, &ria->pzs, link)
		endpoints_shut(rpz);
	LIST_FOREACH(guest, &ria->guests, link)
		guest->damaged(guest);
	dofi_robust_enable(&ria->shm.robust);
	LIST_FOREACH(rpz, &ria->pzs, link)
		rdm_endpoints_close(rpz);
}
