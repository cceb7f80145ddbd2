/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contract of a transport: how endpoints reach their peers. */
#ifndef DOFI_OBJ_XPORT_H
#define DOFI_OBJ_XPORT_H

#include "obj/dat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dofi_cr;
struct dofi_dto;
struct dofi_ep;
struct dofi_ia;
struct dofi_progress_ops;
struct dofi_sp;

/* Most bytes of an RDMA write with immediate data. */
#define DOFI_WRITE_IMMED_MAX ((1u << 29) - 1)

/* Memory of a peer that its transport lets us write; key 0 if there is none. */
struct dofi_mailbox {
	uint64_t addr;
	uint32_t key;
	uint32_t id;			/* what the peer knows it by */
};

/* Why a connection request is turned down. */
enum dofi_reject {
	DOFI_REJECT_CONSUMER,	/* dat_cr_reject: the peer sees PEER_REJECTED */
	DOFI_REJECT_PROVIDER,	/* nobody listens, no room: NON_PEER_REJECTED */
};

/* Sends @len bytes at @buf, whose completion will have @context. 0 or a negative errno. */
typedef ssize_t dofi_send(struct dofi_ep *ep, const void *buf, size_t len, void *desc,
			  void *context);

struct dofi_xport {
	const char *name;
	/* What the progress thread calls; its completed member leads to dofi_dto_complete(). */
	const struct dofi_progress_ops *progress_ops;
	/* Asked of fabrics besides private data: bytes that the transport adds to it. */
	size_t header_size;

	/* All below run on the progress thread with no lock held, but for the last three. */

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

	/*
	 * The same for a message of one piece of memory, beside which nothing travels, to a
	 * connected peer without an SRQ. NULL if that is not simpler.
	 */
	dofi_send *send;

	/* Goes on with what it owes the peer, when an operation has completed. EP lock held. */
	void (*resume)(struct dofi_ep *ep);
};

#endif
