/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: its part of an IA, and completions. */

#include "xport/rdm/rdm.h"

#include "base/layout.h"
#include "xport/cm/wire.h"
#include "xport/rdm/conn.h"
#include "xport/rdm/op.h"
#include "xport/rdm/rma.h"
#include "xport/rdm/send.h"

#include <errno.h>
#include <stdlib.h>

/* The IA */

static int rdm_ia_init(struct dofi_ia *ia)
{
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
	ria->second = !ia->fabric.rdm;
	ria->fabric = ria->second ? &ia->local : &ia->fabric;
	ria->rings = dofi_is_rings(ria->fabric);
	ria->bell.fd = -1;
	*rdm_ia_at(ia) = ria;
	return 0;
}

static void rdm_ia_fini(struct dofi_ia *ia)
{
	struct rdm_ia *ria = rdm_ia_of(ia);

	dofi_bell_close(&ria->bell);
	free(ria);
	*rdm_ia_at(ia) = NULL;
}

static void rings_each(struct dofi_progress *p, void (*call)(struct dofi_rings *rings))
{
	struct rdm_ia *ria = rdm_ia_of(dofi_ia_of(p));
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &ria->pzs, link)
		call(rpz->rings);
}

/* Peers send wakeups while the doorbells mark this process as sleeping. */
static bool rings_sleep_begin(struct dofi_progress *p)
{
	rings_each(p, dofi_rings_sleep_begin);
	return true;
}

static void rings_sleep_end(struct dofi_progress *p)
{
	rings_each(p, dofi_rings_sleep_end);
}

/* Completions */

static void rdm_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (dofi_rdm_is_buffer(entry->op_context))
		dofi_rdm_completed(entry, err, sink);
	else if (entry->op_context)
		rdm_op_completed(entry, err, sink);
}

/* Reposts buffers that the fabric did not take before. */
static void rdm_swept(struct dofi_cq *cq)
{
	struct rdm_pz *rpz = cq->owner;

	if (rpz && rpz->has_rdm)
		dofi_rdm_sweep(&rpz->rdm);
}

static void rdm_resume(struct dofi_ep *ep)
{
	struct rdm_conn *conn = rdm_conn_of(ep);

	if (!conn)
		return;
	dofi_mutex_assert_held(&conn->ep->lock);
	rdm_process_pending(conn);
}

/* The SRQ has a buffer. Pending messages that need another one queue the EP again. */
static void rdm_fed(struct dofi_ep *ep)
{
	ep->srq_user.asked = false;
	rdm_resume(ep);
	if (!ep->srq_user.asked)
		dofi_srq_leave(ep->srq, &ep->srq_user);
}

static const struct dofi_progress_ops rdm_progress_ops = {
	.completed = rdm_completed,
	.foreign_contexts = true,
	.failed = dofi_async_ia_failed,
	.swept = rdm_swept,
};

/* Of a CQ of rings. If the IA has another transport, its operations are that transport's. */
static const struct dofi_progress_ops ring_progress_ops = {
	.completed = dofi_rings_completed,
	.foreign_contexts = true,
	.poll = dofi_rings_poll,
	.failed = dofi_async_ia_failed,
	.sleep_begin = rings_sleep_begin,
	.sleep_end = rings_sleep_end,
};

/* The operations that both variants have. */
#define RDM_XPORT                                                                                  \
	.cm_data_size = DOFI_CM_MAX_DATA, .ia_init = rdm_ia_init, .ia_fini = rdm_ia_fini,          \
	.pz_close = rdm_pz_close, .connect = rdm_connect, .accept = rdm_accept,                    \
	.reject = rdm_reject, .holds = rdm_holds, .close = rdm_close, .submit = rdm_submit,        \
	.fast = rdm_fast, .resume = rdm_resume, .srq_fed = rdm_fed

const struct dofi_xport dofi_rdm_xport = {
	RDM_XPORT, .name = "rdm", .progress_ops = &rdm_progress_ops,
	.listen = dofi_ports_listen, .unlisten = dofi_ports_unlisten,
};

const struct dofi_xport dofi_rings_xport = {
	RDM_XPORT, .name = "rings", .progress_ops = &ring_progress_ops,
	.listen = rdm_listen_local, .unlisten = rdm_unlisten_local,
	.write = rdm_fast_write, .read = rdm_fast_read,
};
