/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: what an IA and a zone have of it, and what arrives there. */

#include "xport/rdm/rdm.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "xport/cm/wire.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The IA */

/* Without a local fabric there is still the other. */
static int host_open(struct rdm_ia *ria, const struct dofi_ia *ia,
		     const struct dofi_fabric_choice *choice)
{
	int ret = dofi_host_read(&ria->host);

	if (!ret && choice->shared_memory)
		ret = dofi_shm_open(&ria->shm);
	if (ret)
		dofi_log(choice == &ia->local ? DOFI_INFO : DOFI_ERR, DOFI_FAB, "shared memory: %s",
			 strerror(-ret));
	return ret;
}

static int rdm_ia_init(struct dofi_ia *ia)
{
	const struct dofi_fabric_choice *choice = rdm_fabric_of(ia);
	struct rdm_ia *ria = calloc(1, sizeof(*ria));
	int ret;

	if (!ria)
		return -ENOMEM;
	ret = host_open(ria, ia, choice);
	if (ret)
		goto free_ria;
	dofi_ports_init(&ria->ports, &rdm_ports_ops);
	LIST_INIT(&ria->zones);
	ria->progress = &ia->progress;
	ria->renewal.run = rdm_endpoints_renew;
	ria->shm.robust.damaged = rdm_endpoints_damaged;
	*(rdm_is_alone(ia) ? &ia->xport_ia : &ia->local_ia) = ria;
	return 0;

free_ria:
	free(ria);
	return ret;
}

static void rdm_ia_fini(struct dofi_ia *ia)
{
	struct rdm_ia *ria = rdm_ia_of(ia);

	dofi_progress_withdraw(ria->progress, &ria->renewal);
	dofi_shm_close(&ria->shm);
	free(ria);
	*(rdm_is_alone(ia) ? &ia->xport_ia : &ia->local_ia) = NULL;
}

/* Peers ring as long as the page says that we sleep. */
static bool rdm_rest(struct dofi_progress *p)
{
	struct dofi_ia *ia = dofi_ia_of(p);
	struct rdm_ia *ria = rdm_ia_of(ia);

	if (!ria || (rdm_is_alone(ia) && !ria->shm.page))
		return false;
	if (rdm_is_alone(ia))
		dofi_shm_sleep_begin(&ria->shm);
	else
		rdm_links_rest(ria);
	return true;
}

static void rdm_rise(struct dofi_progress *p)
{
	struct dofi_ia *ia = dofi_ia_of(p);

	if (rdm_is_alone(ia))
		dofi_shm_sleep_end(&rdm_ia_of(ia)->shm);
	else
		rdm_links_rise(rdm_ia_of(ia));
}

/* Zones */

/* Whose CQ @zone is told of; or that is told nobody any more. */
static void owner_set(struct dofi_cq *cq, struct rdm_zone *zone)
{
	dofi_mutex_lock(&cq->lock);
	cq->owner = zone;
	dofi_mutex_unlock(&cq->lock);
}

static const struct dofi_progress_ops link_progress_ops;

static int domain_open(struct rdm_zone *zone)
{
	struct dofi_pz *pz = zone->pz;
	struct dofi_ia *ia = pz->obj.ia;
	int ret;

	zone->domain = rdm_is_alone(ia) ? &pz->domain : &pz->local;
	if (rdm_is_alone(ia))
		return 0;
	ret = dofi_domain_open_on(zone->domain, &ia->progress, &dofi_rings_fabric,
				  &link_progress_ops, &ia->local);
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
		dofi_cq_set_guard(&zone->domain->cq, &ria->shm.robust.guard);
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

static void rdm_pz_close(struct dofi_pz *pz)
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

/* What a peer calls a connection. CQ lock held. */
static struct rdm_conn *conn_find(const struct rdm_zone *zone, uint64_t id)
{
	const uint32_t place = (uint32_t)id;
	struct rdm_conn *conn = place < zone->n_conns ? zone->conn[place] : NULL;

	return conn && atomic_load_explicit(&conn->id, memory_order_relaxed) == id ? conn : NULL;
}

/* Completions */

static void stray(struct rdm_zone *zone, const char *what)
{
	struct rdm_ia *ria = rdm_ia_of(zone->pz->obj.ia);

	if (!atomic_fetch_add_explicit(&ria->strays, 1, memory_order_relaxed))
		dofi_log(DOFI_WARN, DOFI_EP, "the fabric brought %s; told once", what);
}

static void task_begin(struct rdm_task *task)
{
	rdm_frame_clear(&task->frame);
	task->matched = task->carried_out = task->direct = false;
	task->result = RDM_OK;
	task->old = 0;
}

static void frame_take(struct rdm_zone *zone, const void *data, size_t len, struct dofi_sink *sink)
{
	struct rdm_task task;
	struct rdm_conn *conn;

	task_begin(&task);
	if (rdm_frame_unpack(data, len, &task.frame)) {
		stray(zone, "what is no frame");
		return;
	}
	conn = conn_find(zone, task.frame.conn);
	if (!conn) {
		stray(zone, "a frame for no connection");
		return;
	}
	dofi_ep_lock(conn->ep);
	rdm_arrived(conn, &task, sink);
	dofi_ep_unlock(conn->ep);
}

static struct rdm_conn *bare_find(const struct rdm_zone *zone, uint64_t bits)
{
	const uint32_t place = rdm_bare_place(bits);
	struct rdm_conn *conn = place < zone->n_conns ? zone->conn[place] : NULL;

	return conn && rdm_bare_is_for(bits, atomic_load_explicit(&conn->id, memory_order_relaxed)) ? conn : NULL;
}

static void bare_take(struct rdm_zone *zone, const struct fi_cq_data_entry *entry, const void *data,
		      struct dofi_sink *sink)
{
	struct rdm_conn *conn = bare_find(zone, entry->data);
	struct rdm_task task;

	if (!conn) {
		stray(zone, "a frame for no connection");
		return;
	}
	task_begin(&task);
	dofi_ep_lock(conn->ep);
	if (!rdm_takes_bare(conn) ||
	    rdm_bare_unpack(entry->data, data, entry->len, conn->id, conn->seen, &task.frame))
		goto offend;
	if (task.frame.kind == RDM_FRAME_DONE)
		rdm_complete_bare(conn, &task.frame);
	rdm_arrived(conn, &task, sink);
	dofi_ep_unlock(conn->ep);
	return;

offend:
	rdm_offend(conn, "sends what is no frame");
	dofi_ep_unlock(conn->ep);
}

static struct rdm_zone *zone_of(const struct dofi_rdm_buffer *buffer)
{
	return ((struct rdm_endpoint *)((char *)buffer->rdm - offsetof(struct rdm_endpoint, rdm)))->zone;
}

static void buffer_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	struct dofi_rdm_buffer *buffer = dofi_rdm_buffer_of(entry->op_context);

	if (!err && entry->flags & FI_REMOTE_CQ_DATA)
		bare_take(zone_of(buffer), entry, buffer->data, sink);
	else if (!err)
		frame_take(zone_of(buffer), buffer->data, entry->len, sink);
	else if (err != FI_ECANCELED)
		dofi_log(DOFI_WARN, DOFI_EP, "a frame was lost: %s", fi_strerror(err));
	dofi_rdm_repost(buffer);
}

static void rdm_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (dofi_rdm_is_buffer(entry->op_context))
		buffer_completed(entry, err, sink);
	else if (entry->op_context)
		rdm_op_completed(entry, err, sink);
}

/* The ring is its peer's alone: what the frame says of its connection has to be true. */
static void link_frame_take(struct rdm_conn *conn, const void *data, size_t len,
			    struct dofi_sink *sink)
{
	struct rdm_task task;

	task_begin(&task);
	dofi_ep_lock(conn->ep);
	if (!data)
		rdm_offend(conn, "has broken the ring");
	else if (rdm_frame_unpack(data, len, &task.frame) ||
		 task.frame.conn != atomic_load_explicit(&conn->id, memory_order_relaxed))
		rdm_offend(conn, "sends what is no frame");
	else
		rdm_arrived(conn, &task, sink);
	dofi_ep_unlock(conn->ep);
}

static void link_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	const struct dofi_link *link = entry->op_context;

	(void)err;
	link_frame_take(link->owner, entry->buf, entry->len, sink);
	if (entry->buf)
		dofi_rings_release(entry);
}

static void rdm_swept(struct dofi_cq *cq)
{
	struct rdm_zone *zone = cq->owner;

	if (!zone)
		return;
	rdm_endpoints_sweep(zone);
	rdm_go_on_stalled(zone);
}

static void rdm_resume(struct dofi_ep *ep)
{
	if (ep->conn)
		rdm_catch_up(ep->conn, NULL);
}

/*
 * The SRQ has a buffer. What waits first may not be a message that takes it; or there are several,
 * and one that now stands in line for the next buffer.
 */
static void rdm_fed(struct dofi_ep *ep)
{
	ep->srq_user.asked = false;
	rdm_resume(ep);
	if (!ep->srq_user.asked)
		dofi_srq_leave(ep->srq, &ep->srq_user);
}

static const struct dofi_progress_ops rdm_progress_ops = {
	.completed = rdm_completed,
	.mixed = true,
	.failed = dofi_async_ia_failed,
	.swept = rdm_swept,
	.rest = rdm_rest,
	.rise = rdm_rise,
};

/* Of the CQ of rings; the IA's thread has the connected transport's. */
static const struct dofi_progress_ops link_progress_ops = {
	.completed = link_completed,
	.mixed = true,
	.failed = dofi_async_ia_failed,
	.swept = rdm_swept,
};

const struct dofi_xport dofi_rdm_xport = {
	.name = "rdm",
	.progress_ops = &rdm_progress_ops,
	.cm_data_size = DOFI_SIDE_MAX_DATA,
	.matches = true,
	.ia_init = rdm_ia_init,
	.ia_fini = rdm_ia_fini,
	.pz_close = rdm_pz_close,
	.listen = rdm_listen,
	.unlisten = rdm_unlisten,
	.connect = rdm_connect,
	.accept = rdm_accept,
	.reject = rdm_reject,
	.holds = rdm_holds,
	.close = rdm_close,
	.submit = rdm_submit,
	.send = rdm_send,
	.resume = rdm_resume,
	.fed = rdm_fed,
};
