/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport: RDMA within a host that this end carries out alone.
 *
 * The peer's grants are in memory that this end can read (fab/grant_book.h). A write is made under
 * a mark, for which the end of the grant and the end of the connection wait (fab/writer.h). A read
 * needs no mark: its bytes count only if the grant has not ended when they have been read.
 *
 * What the peer carries out for this connection keeps its place: while such a request is in flight,
 * or a message that ends a grant may be, the peer carries out the next request, too.
 */

#include "xport/rdm/onesided.h"

#include <errno.h>
#include <rdma/fabric.h>

static bool may_go_alone(const struct rdm_conn *conn)
{
	return conn->ring && conn->ring->grants && conn->pid && !conn->asked && !conn->ask_next;
}

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

/* Writes @len bytes from @offset on. */
static int write_piece(struct rdm_conn *conn, const struct dofi_dto *dto,
		       const struct dofi_permit *permit, size_t offset, size_t len)
	DOFI_NEEDS(conn->ep->lock)
{
	struct dofi_link *ring = conn->ring;
	int ret = -EAGAIN;

	dofi_mark_set(ring->mark_out, &ring->writes, permit->page);
	if (!dofi_mark_over(ring->mark_out) && dofi_grant_pages_hold(ring->grants, permit))
		ret = dofi_peer_push(conn->pid, dto->iov, dto->n_iov, offset, len,
				     permit->memory + offset);
	dofi_mark_clear(ring->mark_out);
	return ret;
}

static int write_all(struct rdm_conn *conn, const struct dofi_dto *dto,
		     const struct dofi_permit *permit) DOFI_NEEDS(conn->ep->lock)
{
	size_t offset, len;
	int ret = 0;

	for (offset = 0; offset < dto->length && !ret; offset += len) {
		len = dto->length - offset;
		if (len > DOFI_WRITE_PIECE)
			len = DOFI_WRITE_PIECE;
		ret = write_piece(conn, dto, permit, offset, len);
	}
	return ret;
}

static int read_all(struct rdm_conn *conn, const struct dofi_dto *dto,
		    const struct dofi_permit *permit) DOFI_NEEDS(conn->ep->lock)
{
	const struct iovec from = { (void *)(uintptr_t)permit->memory, dto->length };
	int ret = dofi_peer_pull(conn->pid, dto->iov, dto->n_iov, &from, 1, &conn->alive);

	/* the peer may have unmapped the memory after the end of the grant */
	return dofi_grant_pages_hold(conn->ring->grants, permit) ? ret : -EAGAIN;
}

int rdm_onesided(struct rdm_conn *conn, const struct dofi_dto *dto)
{
	const bool reads = dto->kind == DOFI_DTO_READ;
	const struct dofi_use use = {
		.key = dto->remote_key, .secret = conn->ep->peer_secret, .addr = dto->remote_addr,
		.len = dto->length, .access = reads ? FI_REMOTE_READ : FI_REMOTE_WRITE,
	};
	struct dofi_permit permit;
	int ret;

	dofi_ep_assert_locked(conn->ep);
	if (!may_go_alone(conn) || !dofi_grant_pages_find(conn->ring->grants, &use, &permit))
		return -EAGAIN;
	ret = reads ? read_all(conn, dto, &permit) : write_all(conn, dto, &permit);
	return ret ? failed(conn, ret) : 0;
}
