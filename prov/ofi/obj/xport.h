/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contract of a transport: how endpoints reach their peers. */
#ifndef DOFI_OBJ_XPORT_H
#define DOFI_OBJ_XPORT_H

#include "obj/dat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dofi_cr;
struct dofi_dto;
struct dofi_ep;
struct dofi_ia;
struct dofi_progress_ops;
struct dofi_sp;

/* Why a connection request is turned down. */
enum dofi_reject {
	DOFI_REJECT_CONSUMER,	/* dat_cr_reject: the peer sees PEER_REJECTED */
	DOFI_REJECT_PROVIDER,	/* nobody listens, no room: NON_PEER_REJECTED */
};

/*
 * The 64 bits that travel beside a message, or a write, on fabrics that carry so many: the
 * upper half says what the lower is.
 */
enum dofi_cq_data_kind {
	DOFI_CQ_INVALIDATE = 1,		/* of a message: a context of the receiver's to be ended */
	DOFI_CQ_IMMED = 2,		/* of a message: the consumer's */
	DOFI_CQ_WRITE_IMMED = 3,	/* of a write: the consumer's */
};

static inline uint64_t dofi_cq_data(enum dofi_cq_data_kind kind, uint32_t value)
{
	return (uint64_t)kind << 32 | value;
}

struct dofi_xport {
	const char *name;
	/* What the progress thread calls; its completed member leads to dofi_dto_complete(). */
	const struct dofi_progress_ops *progress_ops;
	/* Asked of fabrics besides private data: bytes that the transport adds to it. */
	size_t header_size;

	/* All below run on the progress thread with no lock held, but for submit. */

	/* The IA's own state: made before, freed after all else. 0 or negative errno. */
	int (*ia_init)(struct dofi_ia *ia);
	void (*ia_fini)(struct dofi_ia *ia);

	/*
	 * Listens for @sp->conn_qual, or picks one and stores it when that is 0.
	 * -EADDRINUSE when the qualifier is taken.
	 */
	int (*listen)(struct dofi_sp *sp);
	/* Connection requests already delivered stay answerable. */
	void (*unlisten)(struct dofi_sp *sp);

	/* Starts to connect @ep as its request says; ends in dofi_ep_established or dofi_ep_end. */
	void (*connect)(struct dofi_ep *ep);
	/* Accepts @cr with @ep, takes over the request's fabric part; ends likewise. */
	void (*accept)(struct dofi_ep *ep);
	/* Turns @cr down; its fabric part is gone then. */
	void (*reject)(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);

	/*
	 * Closes what @ep has open at the fabric; idempotent. When it returns, every
	 * completion the fabric had to give was handed to dofi_dto_complete().
	 */
	void (*close)(struct dofi_ep *ep);

	/*
	 * Hands one operation to the fabric. EP lock held; no allocation. 0,
	 * -FI_EAGAIN to be called again after a completion, or another negative
	 * errno: the operation failed.
	 */
	int (*submit)(struct dofi_ep *ep, struct dofi_dto *dto);
};

#endif
