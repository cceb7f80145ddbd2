/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the fabric's endpoints of a PZ, and their replacement. */

#include "xport/rdm/endpoint.h"

#include "base/clock.h"
#include "base/layout.h"
#include "base/log.h"
#include "obj/ep/ep_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reservations of entries for peers */

void dofi_reservations_init(struct dofi_reservations *reservations)
{
	TAILQ_INIT(&reservations->list);
	reservations->reserved = 0;
}

static struct dofi_reservation *reservation_find(struct dofi_reservations *reservations,
						 const void *key, size_t len)
{
	struct dofi_reservation *reservation;

	TAILQ_FOREACH(reservation, &reservations->list, link)
		if (reservation->key_len == len && !memcmp(reservation->key, key, len))
			return reservation;
	return NULL;
}

bool dofi_reserve(struct dofi_reservations *reservations, struct dofi_reservation *reservation,
		  unsigned entries, const void *key, size_t len)
{
	reservation->counts = !reservation_find(reservations, key, len);
	if (reservation->counts && reservations->reserved >= entries)
		return false;
	reservation->key_len = len;
	memcpy(reservation->key, key, len);
	reservation->of = reservations;
	reservations->reserved += reservation->counts;
	TAILQ_INSERT_TAIL(&reservations->list, reservation, link);
	return true;
}

/* If @reservation counted for its key, another one with that key counts from now on. */
void dofi_release(struct dofi_reservation *reservation)
{
	struct dofi_reservations *reservations = reservation->of;
	struct dofi_reservation *other = NULL;

	if (!reservations)
		return;
	reservation->of = NULL;
	TAILQ_REMOVE(&reservations->list, reservation, link);
	if (reservation->counts)
		other = reservation_find(reservations, reservation->key, reservation->key_len);
	if (other)
		other->counts = true;
	else
		reservations->reserved -= reservation->counts;
}

/* Endpoints */

/* How many frames can arrive before the first is handled. */
#define BUFFERS 64

static void probe_fire(struct dofi_timer *timer);

static struct dofi_progress *progress_of(const struct rdm_endpoint *e)
{
	return &e->rpz->pz->obj.ia->progress;
}

static void endpoint_close(struct rdm_endpoint *e)
{
	struct dofi_mutex *lock = &e->rpz->domain->cq.lock;

	dofi_timer_stop(progress_of(e), &e->probe);
	dofi_mutex_lock(lock);
	LIST_REMOVE(e, link);
	dofi_mutex_unlock(lock);
	dofi_rdm_close(&e->rdm);
	free(e);
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
	struct rdm_endpoint *last = LIST_FIRST(&rpz->endpoints), *e = last;
	struct dofi_mutex *lock = &rpz->domain->cq.lock;
	const struct dofi_rdm_options options = {
		.n_buffers = BUFFERS, .arrived = rpz->ria->arrived,
	};
	int ret;

	if (last && !last->damaged && reserve(last, reservation, key, len))
		goto found;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->rpz = rpz;
	e->probe.fire = probe_fire;
	dofi_reservations_init(&e->reservations);
	ret = dofi_rdm_open(&e->rdm, rpz->domain, rpz->ria->fabric, &options);
	if (ret) {
		free(e);
		return ret;
	}
	dofi_mutex_lock(lock);
	LIST_INSERT_HEAD(&rpz->endpoints, e, link);
	dofi_mutex_unlock(lock);
	if (last && !last->conns)
		endpoint_close(last);
	reserve(e, reservation, key, len);
found:
	e->conns++;
	*out = e;
	return 0;
}

void rdm_endpoint_put(struct rdm_endpoint *e)
{
	if (!--e->conns && (e->damaged || e != LIST_FIRST(&e->rpz->endpoints)))
		endpoint_close(e);
}

void rdm_endpoints_close(struct rdm_pz *rpz)
{
	while (!LIST_EMPTY(&rpz->endpoints))
		endpoint_close(LIST_FIRST(&rpz->endpoints));
}

/* Damage by the death of a peer */

#define PROBE_TICK_NS (100 * INT64_C(1000000))
#define PROBE_TICKS 20

/* Reads the table of connections without a lock, as only this thread writes it. */
static void damaged(struct rdm_endpoint *e)
{
	const struct rdm_pz *rpz = e->rpz;
	struct rdm_conn *conn;
	uint32_t i;

	e->damaged = true;
	dofi_log(DOFI_ERR, DOFI_FAB,
		 "fabric %s: a process died, and an endpoint receives nothing since: "
		 "%u connections end, new ones use another endpoint",
		 rpz->ria->fabric->info->fabric_attr->prov_name, e->conns);
	e->conns++;
	for (i = 0; i < rpz->n_conns; i++) {
		conn = rpz->conn[i];
		if (conn && conn->endpoint == e &&
		    !dofi_port_attempt_lost(conn->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					    "the fabric's endpoint is damaged"))
			dofi_ep_end_with(conn->ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	}
	rdm_endpoint_put(e);
}

/* Sends the probe, unless the fabric has taken it, and starts the timer. */
static void probe_await(struct rdm_endpoint *e)
{
	static const unsigned char probe[RDM_PROBE_SIZE];
	struct dofi_rdm *rdm = &e->rdm;
	fi_addr_t self;

	if (!e->probe_sent && !dofi_rdm_peer_add(rdm, rdm->address, rdm->address_len, &self)) {
		e->probe_sent = !fi_inject(rdm->fid, probe, sizeof(probe), self);
		dofi_rdm_peer_remove(rdm, self, false);
	}
	dofi_timer_start(progress_of(e), &e->probe, dofi_now() + PROBE_TICK_NS);
}

static void probe_fire(struct dofi_timer *timer)
{
	struct rdm_endpoint *e = DOFI_CONTAINER_OF(timer, struct rdm_endpoint, probe);

	dofi_cq_drain(e->rdm.cq);
	if (atomic_load(&e->answered))
		return;
	if (e->probe_ticks--)
		probe_await(e);
	else
		damaged(e);
}

void rdm_endpoint_suspect(struct rdm_endpoint *e)
{
	if (!e->rpz->ria->fabric->shared_memory || e->damaged)
		return;
	e->probe_ticks = PROBE_TICKS;
	e->probe_sent = false;
	atomic_store(&e->answered, false);
	probe_await(e);
}
