/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: its part of an IA, and its operations. */

#include "xport/msg/msg.h"

#include "fab/quirks.h"
#include "xport/wire.h"

#include <errno.h>
#include <stdlib.h>

static int msg_ia_init(struct dofi_ia *ia);

static void msg_ia_fini(struct dofi_ia *ia)
{
	free(ia->xport_ia);
	ia->xport_ia = NULL;
}

static DAT_COUNT msg_request_data_max(const struct dofi_ia *ia, DAT_CONN_QUAL conn_qual)
{
	const struct msg_ia *mia = ia->xport_ia;
	DAT_COUNT size = mia->request_size - (DAT_COUNT)dofi_wire_qual_size(conn_qual);

	return size < ia->max_private_data ? size : ia->max_private_data;
}

#define PROGRESS_OPS .cm_event = msg_event, .cm_error = msg_error, .failed = dofi_async_ia_failed

static const struct dofi_progress_ops msg_progress_ops = {
	PROGRESS_OPS, .completed = msg_completed,
};

static const struct dofi_progress_ops marked_progress_ops = {
	PROGRESS_OPS, .completed = msg_marked_completed,
};

static const struct dofi_progress_ops native_progress_ops = {
	PROGRESS_OPS, .completed = msg_native_completed,
};

static const struct dofi_xport_srq srq_ops = {
	.open = msg_srq_open, .close = msg_srq_close, .listen = msg_srq_listen,
	.arrived = msg_srq_arrived, .clear = msg_srq_clear,
};

/* The fabric's own functions: the transport adds nothing to plain operations. */
static void fast(struct dofi_ep *ep, struct dofi_fast *fast)
{
	fast->send = ep->fid->msg->send;
	fast->recv = ep->fid->msg->recv;
	fast->to = ep->fid;
}

/* Serial CQs: the EP is the argument. */
static void native_fast(struct dofi_ep *ep, struct dofi_fast *fast)
{
	fast->send = msg_native_send;
	fast->recv = msg_native_recv;
	fast->to = dofi_fast_to(ep);
}

#define OPS                                                                                       \
	.name = "msg", .header_size = DOFI_WIRE_FIXED, .retries = true, .ep_init = msg_ep_init,   \
	.ia_init = msg_ia_init, .ia_fini = msg_ia_fini, .pz_close = msg_open_pz_close,            \
	.listen = dofi_ports_listen, .unlisten = dofi_ports_unlisten, .connect = msg_connect,     \
	.accept = msg_accept, .reject = msg_reject, .close = msg_close,                           \
	.finish = msg_endpoint_finish, .request_data_max = msg_request_data_max,                  \
	.resume = msg_mail_resume, .holds = msg_holds, .cancel = msg_cancel,                      \
	.srq = &srq_ops, .srq_fed = msg_srq_fed

const struct dofi_xport dofi_msg_xport = {
	OPS, .progress_ops = &msg_progress_ops, .submit = msg_submit,
	.fast = fast, .write = msg_write, .read = msg_read, .probe = msg_probe,
};

static const struct dofi_xport marked_xport = {
	OPS, .progress_ops = &marked_progress_ops, .submit = msg_marked_submit,
};

static const struct dofi_xport native_xport = {
	OPS, .progress_ops = &native_progress_ops, .submit = msg_native_submit,
	.fast = native_fast, .write = msg_native_write, .read = msg_native_read,
};

/* Private data that the DAT text promises programs, where a fabric can carry it. */
#define PLENTY 64

/*
 * Chooses the operations, before anything can complete, and the private data left to programs: the
 * same for all requests, unless few bytes are left.
 */
static int msg_ia_init(struct dofi_ia *ia)
{
	DAT_COUNT size = (DAT_COUNT)ia->limits.cm_data_size - DOFI_WIRE_FIXED;
	struct msg_ia *mia = calloc(1, sizeof(*mia));

	if (!mia)
		return -ENOMEM;
	dofi_ports_init(&mia->ports, &msg_ports_ops);
	TAILQ_INIT(&mia->openings.list);
	ia->xport_ia = mia;
	if (ia->fabric.immed)
		ia->xport = &native_xport;
	else if (ia->fabric.cq_data && ia->fabric.quirk->loses_cq_data_flag)
		ia->xport = &marked_xport;
	ia->progress.ops = ia->xport->progress_ops;
	if (ia->fabric.scoped_keys)
		size -= DOFI_WIRE_SECRET;
	if (msg_mail_offered(ia) || ia->fabric.sends_bye)
		size -= DOFI_WIRE_MAILBOX;
	mia->request_size = size;
	if (size - DOFI_WIRE_QUAL >= PLENTY)
		size -= DOFI_WIRE_QUAL;
	ia->max_private_data = size < DOFI_WIRE_MAX_DATA ? size : DOFI_WIRE_MAX_DATA;
	return 0;
}
