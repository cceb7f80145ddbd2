/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: RDMA and atomics carried out for the peer. */

#include "xport/rdm/rma.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/mem/lmr.h"
#include "xport/rdm/transmit.h"

#include <rdma/fi_errno.h>

static struct dofi_grants *grants_of(const struct rdm_conn *conn)
{
	return &conn->rpz->pz->domain.grants;
}

/* With the bytes that follow in other frames: all of the access is permitted, or none. */
static struct dofi_access use_of(const struct rdm_conn *conn, const struct rdm_frame *f,
			      uint64_t access)
{
	return (struct dofi_access){
		.key = f->key, .secret = conn->ep->secret, .addr = f->addr, .access = access,
		.len = dofi_length_sum(f->length, f->value[1]),
	};
}

/* The log of this process has the connection's first refused operation, and the reason. */
static enum rdm_result refuse(struct rdm_conn *conn, const char *what,
			      const struct dofi_access *use) DOFI_NEEDS(conn->ep->lock)
{
	if (conn->logged_refusal)
		return RDM_NO_ACCESS;
	conn->logged_refusal = true;
	dofi_ep_log(conn->ep, DOFI_WARN, DOFI_EP,
		    "refused the peer's %s of %llu bytes at %#llx, context %#x, for its %s", what,
		    (unsigned long long)use->len, (unsigned long long)use->addr, use->key,
		    dofi_grant_refusal(grants_of(conn), use));
	return RDM_NO_ACCESS;
}

static enum rdm_result write_here(struct rdm_conn *conn, const struct rdm_frame *f)
	DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_access use = use_of(conn, f, FI_REMOTE_WRITE);
	struct iovec pieces[2];
	void *to;
	int ret = 0;

	if (dofi_grant_enter(grants_of(conn), &use, &to))
		return refuse(conn, "RDMA write", &use);
	if (f->n_segments) {
		/* in two pieces, because Linux copies the pieces in order */
		pieces[1].iov_len = dofi_iov_tail(to, f->length);
		pieces[0] = (struct iovec){ to, f->length - pieces[1].iov_len };
		pieces[1].iov_base = (char *)to + pieces[0].iov_len;
		ret = rdm_pull(conn, pieces, 2, f);
	} else if (f->length) {
		dofi_iov_land(to, f->data, f->length);
	}
	dofi_grant_leave(grants_of(conn));
	return ret ? RDM_NO_MEMORY : RDM_OK;
}

static bool take_write(struct rdm_conn *conn, struct rdm_task *task) DOFI_NEEDS(conn->ep->lock)
{
	if (!task->carried_out)
		task->result = write_here(conn, &task->frame);
	task->carried_out = true;
	if (task->frame.value[1] && !task->result)
		return true;
	if (!rdm_ack(conn, task))
		return false;
	if (task->frame.cq_data && !task->result) {
		/* the message with the immediate data, of no bytes */
		task->frame.kind = RDM_FRAME_SEND;
		task->frame.length = task->frame.data_size = 0;
		task->frame.n_segments = 0;
		task->carried_out = false;
	}
	return true;
}

/* Returns the bytes in the ACK, or has the peer read them, which then checks the grant's word. */
static bool take_read(struct rdm_conn *conn, struct rdm_task *task) DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_access use = use_of(conn, &task->frame, FI_REMOTE_READ);
	struct rdm_frame f = { .kind = RDM_FRAME_ACK, .number = task->frame.number };
	struct iovec from = { .iov_len = task->frame.length };
	struct dofi_grant_word word;
	int ret;

	/* a peer that has left takes no bytes */
	if (conn->left)
		return true;
	if (from.iov_len <= conn->max_copy - RDM_FRAME_FULL) {
		if (dofi_grant_enter(grants_of(conn), &use, &from.iov_base))
			goto no_access;
		f.addr = task->frame.value[0];
		ret = rdm_transmit(conn, &f, &from, 1, 0, from.iov_len);
		dofi_grant_leave(grants_of(conn));
	} else if (conn->same_host) {
		if (dofi_grant_word(grants_of(conn), &use, &from.iov_base, &word))
			goto no_access;
		f.addr = (uintptr_t)from.iov_base;
		f.length = use.len;
		f.value[0] = (uintptr_t)word.at;
		f.value[1] = word.value;
		ret = rdm_transmit(conn, &f, NULL, 0, 0, 0);
	} else {
		rdm_peer_error(conn, "requested more than a frame holds");
		return true;
	}
	return ret != -FI_EAGAIN;

no_access:
	task->result = refuse(conn, "RDMA read", &use);
	return rdm_ack(conn, task);
}

bool rdm_target_execute(struct rdm_conn *conn, struct rdm_task *task)
{
	const struct rdm_frame *f = &task->frame;
	const struct dofi_atomic atomic = {
		.addr = f->addr, .key = f->key, .swap = f->kind == RDM_FRAME_CMP_SWAP,
		.operand = f->value[0], .compare = f->value[1],
	};

	dofi_mutex_assert_held(&conn->ep->lock);
	if (f->kind == RDM_FRAME_WRITE)
		return take_write(conn, task);
	if (f->kind == RDM_FRAME_READ)
		return take_read(conn, task);
	if (!task->carried_out && dofi_lmr_atomic(conn->ep->pz, &atomic, &task->old))
		task->result = RDM_NO_ACCESS;
	task->carried_out = true;
	return rdm_ack(conn, task);
}
