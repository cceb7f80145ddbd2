/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: its part of an IA, and completions. */

#include "xport/rdm/rdm.h"

#include "base/container.h"
#include "base/log.h"
#include "xport/cm/wire.h"
#include "xport/rdm/endpoint.h"
#include "xport/rdm/fast.h"
#include "xport/rdm/link.h"
#include "xport/rdm/onesided.h"
#include "xport/rdm/op.h"
#include "xport/rdm/recv.h"
#include "xport/rdm/request.h"
#include "xport/rdm/rings.h"
#include "xport/rdm/send.h"
#include "xport/rdm/pz.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The IA */

static const struct dofi_progress_ops ring_progress_ops;
static dofi_rdm_arrived buffer_arrived;

static int rdm_ia_init(struct dofi_ia *ia)
{
	const struct dofi_fabric_choice *choice = rdm_fabric_of(ia);
	struct rdm_ia *ria = calloc(1, sizeof(*ria));
	int ret;

	if (!ria)
		return -ENOMEM;
	ret = dofi_host_read(&ria->host);
	if (ret) {
		free(ria);
		return ret;
	}
	dofi_ports_init(&ria->ports, &rdm_ports_ops);
	LIST_INIT(&ria->pzs);
	LIST_INIT(&ria->ring_guests);
	ria->progress = &ia->progress;
	ria->ring_ops = &ring_progress_ops;
	ria->rings = dofi_is_rings(choice);
	ria->arrived = buffer_arrived;
	*(rdm_is_alone(ia) ? &ia->xport_ia : &ia->local_ia) = ria;
	return 0;
}

static void rdm_ia_fini(struct dofi_ia *ia)
{
	free(rdm_ia_of(ia));
	*(rdm_is_alone(ia) ? &ia->xport_ia : &ia->local_ia) = NULL;
}

/* Peers send wakeups while the doorbells mark this process as sleeping. */
static bool rings_rest(struct dofi_progress *p)
{
	rdm_rings_rest(rdm_ia_of(dofi_ia_of(p)));
	return true;
}

static void rings_rise(struct dofi_progress *p)
{
	rdm_rings_rise(rdm_ia_of(dofi_ia_of(p)));
}

/* Completions */

/* Returns the connection with @id. CQ lock held. */
static struct rdm_conn *conn_find(const struct rdm_pz *rpz, uint64_t id)
{
	const uint32_t slot = (uint32_t)id;
	struct rdm_conn *conn = slot < rpz->n_conns ? rpz->conn[slot] : NULL;

	return conn && atomic_load_explicit(&conn->id, memory_order_relaxed) == id ? conn : NULL;
}

static void stray(struct rdm_pz *rpz, const char *what)
{
	struct rdm_ia *ria = rdm_ia_of(rpz->pz->obj.ia);

	if (!atomic_fetch_add_explicit(&ria->strays, 1, memory_order_relaxed))
		dofi_log(DOFI_WARN, DOFI_EP, "received %s; reported once", what);
}

static void task_begin(struct rdm_task *task)
{
	rdm_frame_clear(&task->frame);
	task->matched = task->carried_out = task->direct = false;
	task->result = RDM_OK;
	task->old = 0;
}

static void frame_take(struct rdm_pz *rpz, const void *data, size_t len, struct dofi_sink *sink)
{
	struct rdm_task task;
	struct rdm_conn *conn;

	task_begin(&task);
	if (rdm_frame_unpack(data, len, &task.frame)) {
		stray(rpz, "an invalid frame");
		return;
	}
	conn = conn_find(rpz, task.frame.conn);
	if (!conn) {
		stray(rpz, "a frame for no connection");
		return;
	}
	dofi_ep_lock(conn->ep);
	rdm_arrived(conn, &task, sink);
	dofi_ep_unlock(conn->ep);
}

static struct rdm_endpoint *endpoint_of(const struct dofi_rdm_buffer *buffer)
{
	return DOFI_CONTAINER_OF(buffer->rdm, struct rdm_endpoint, rdm);
}

static void buffer_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry,
			   int err, struct dofi_sink *sink)
{
	if (!err && entry->len == RDM_PROBE_SIZE)
		rdm_endpoint_answered(endpoint_of(buffer));
	else if (!err)
		frame_take(endpoint_of(buffer)->rpz, buffer->data, entry->len, sink);
	else if (err != FI_ECANCELED)
		dofi_log(DOFI_WARN, DOFI_EP, "a frame was lost: %s", fi_strerror(err));
	dofi_rdm_repost(buffer);
}

static void rdm_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (dofi_rdm_is_buffer(entry->op_context))
		dofi_rdm_completed(entry, err, sink);
	else if (entry->op_context)
		rdm_op_completed(entry, err, sink);
}

/*
 * A ring belongs to one connection, so its frames must name that connection. One that ends takes no
 * more frames.
 */
static void ring_frame_take(struct rdm_conn *conn, const void *data, size_t len,
			    struct dofi_sink *sink)
{
	struct rdm_task task;

	task_begin(&task);
	dofi_ep_lock(conn->ep);
	if (!data)
		rdm_peer_error(conn, "broke the ring");
	else if (rdm_frame_unpack(data, len, &task.frame) ||
		 task.frame.conn != atomic_load_explicit(&conn->id, memory_order_relaxed))
		rdm_peer_error(conn, "sent an invalid frame");
	else
		rdm_arrived(conn, &task, sink);
	if (conn->ep->closing)
		dofi_link_ignore(conn->ring);
	dofi_ep_unlock(conn->ep);
}

static void ring_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	const struct dofi_link *ring = entry->op_context;

	(void)err;
	ring_frame_take(ring->owner, entry->buf, entry->len, sink);
	if (entry->buf)
		dofi_rings_release(entry);
}

static void rdm_swept(struct dofi_cq *cq)
{
	struct rdm_pz *rpz = cq->owner;

	if (!rpz)
		return;
	rdm_endpoints_sweep(rpz);
	rdm_stalled_go_on(rpz, rdm_go_on);
}

static void rdm_resume(struct dofi_ep *ep)
{
	struct rdm_conn *conn = rdm_conn_of(ep);

	if (!conn)
		return;
	dofi_ep_assert_locked(conn->ep);
	rdm_process_pending(conn, NULL);
}

/*
 * The SRQ has a buffer. The oldest pending frame may be no message that takes it. If further
 * messages are pending, the EP has queued itself for another buffer.
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
};

/* Of a CQ of rings. If the IA has another transport, its operations are that transport's. */
static const struct dofi_progress_ops ring_progress_ops = {
	.completed = ring_completed,
	.mixed = true,
	.poll = rdm_fast_poll,
	.failed = dofi_async_ia_failed,
	.swept = rdm_swept,
	.rest = rings_rest,
	.rise = rings_rise,
};

/* The operations that both variants have. */
#define RDM_XPORT                                                                                  \
	.cm_data_size = DOFI_CM_MAX_DATA, .matches = true, .ia_init = rdm_ia_init,                 \
	.ia_fini = rdm_ia_fini, .pz_close = rdm_pz_close, .connect = rdm_connect,                  \
	.accept = rdm_accept, .reject = rdm_reject, .holds = rdm_holds, .close = rdm_close,        \
	.submit = rdm_submit, .send = rdm_fast_send, .recv = rdm_fast_recv, .resume = rdm_resume,  \
	.srq_fed = rdm_fed

const struct dofi_xport dofi_rdm_xport = {
	RDM_XPORT, .name = "rdm", .progress_ops = &rdm_progress_ops,
	.listen = rdm_listen, .unlisten = rdm_unlisten,
};

const struct dofi_xport dofi_rings_xport = {
	RDM_XPORT, .name = "rings", .progress_ops = &ring_progress_ops,
	.listen = rdm_listen_local, .unlisten = rdm_unlisten_local,
	.write = rdm_fast_write, .read = rdm_fast_read,
};
