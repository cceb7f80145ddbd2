/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport: RDMA within a host that this end carries out alone.
 *
 * The peer's grants are in memory that this end can read (fab/grant_book.h). A write is made under
 * a mark, for which the end of the grant and the end of the connection wait. A read needs no mark:
 * its bytes count only if the grant has not ended when they have been read.
 *
 * Requests that the peer carries out keep their order: while one is in flight, or a message that
 * ends a grant may be, the peer carries out the next request, too.
 */

#include "xport/rdm/rma.h"

#include <errno.h>
#include <rdma/fi_errno.h>

/* The errors of this process's own access: the peer may still reach this process's memory. */
static int failed(struct rdm_conn *conn, int ret) DOFI_NEEDS(conn->ep->lock)
{
	switch (ret) {
	case -EFAULT:	/* as if the peer had tried */
		return -EIO;
	case -EPERM:
	case -ENOSYS:
		conn->ask_next = conn->ask_always = true;
		return -EAGAIN;
	default:
		return -EAGAIN;
	}
}

/* A write or read, with the memory of this process. */
struct transfer {
	const struct iovec *iov;
	size_t n;
	struct dofi_use use;
	struct dofi_permit permit;
};

static int write_all(struct rdm_conn *conn, const struct transfer *t) DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_link *ring = conn->ring;
	size_t offset, len;
	int ret = 0;

	for (offset = 0; offset < t->use.len && !ret; offset += len) {
		len = t->use.len - offset;
		if (len > DOFI_WRITE_PIECE)
			len = DOFI_WRITE_PIECE;
		ret = -EAGAIN;
		dofi_mark_set(ring->mark_out, &ring->writes, t->permit.page);
		if (!dofi_mark_over(ring->mark_out) &&
		    dofi_grant_pages_hold(ring->grants, &t->permit))
			ret = dofi_peer_push(conn->pid, t->iov, t->n, offset, len,
					     t->permit.memory + offset);
		dofi_mark_clear(ring->mark_out);
	}
	return ret;
}

static int read_all(struct rdm_conn *conn, const struct transfer *t) DOFI_NEEDS(conn->ep->lock)
{
	const struct iovec from = { (void *)(uintptr_t)t->permit.memory, t->use.len };
	int ret = dofi_peer_pull(conn->pid, t->iov, t->n, &from, 1, &conn->alive);

	return dofi_grant_pages_held(conn->ring->grants, &t->permit) ? ret : -EAGAIN;
}

static int carry_out(struct rdm_conn *conn, struct transfer *t) DOFI_NEEDS(conn->ep->lock)
{
	int ret;

	if (!conn->ring || !conn->ring->grants || !conn->pid || conn->asked || conn->ask_next ||
	    !dofi_grant_pages_find(conn->ring->grants, &t->use, &t->permit))
		return -EAGAIN;
	ret = t->use.access == FI_REMOTE_READ ? read_all(conn, t) : write_all(conn, t);
	return __builtin_expect(ret, 0) ? failed(conn, ret) : 0;
}

int rdm_onesided(struct rdm_conn *conn, const struct dofi_dto *dto)
{
	struct transfer t = {
		.iov = dto->iov, .n = dto->n_iov,
		.use = {
			.key = dto->remote_key, .secret = conn->ep->peer_secret,
			.addr = dto->remote_addr, .len = dto->length,
			.access = dto->kind == DOFI_DTO_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE,
		},
	};

	dofi_ep_assert_locked(conn->ep);
	return carry_out(conn, &t);
}

/* The slow path makes the attempt again, and asks the peer or reports an error. */
static ssize_t fast(struct dofi_ep *ep, void *buf, size_t len, uint64_t addr, uint64_t key,
		    uint64_t access)
{
	struct rdm_conn *conn = rdm_conn_of(ep);
	const struct iovec iov = { buf, len };
	struct transfer t = {
		.iov = &iov, .n = 1,
		.use = {
			.key = (uint32_t)key, .secret = ep->peer_secret, .addr = addr, .len = len,
			.access = access,
		},
	};

	dofi_ep_assert_locked(conn->ep);
	return carry_out(conn, &t) ? -FI_EAGAIN : DOFI_DONE;
}

ssize_t rdm_fast_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		       uint64_t key, void *context)
{
	(void)desc, (void)context;
	return fast(ep, buf, len, addr, key, FI_REMOTE_WRITE);
}

ssize_t rdm_fast_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		      uint64_t key, void *context)
{
	(void)desc, (void)context;
	return fast(ep, buf, len, addr, key, FI_REMOTE_READ);
}
