/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations at the fabric, pending frames, stalled EPs. EP lock held, unless stated otherwise. */
#ifndef DOFI_XPORT_RDM_OP_H
#define DOFI_XPORT_RDM_OP_H

#include "xport/rdm/rdm.h"

/* An operation at the fabric. Its completion may arrive after the connection has ended. */
struct rdm_op {
	struct dofi_rdm_context context;
	struct rdm_pz *rpz;
	/* NULL once the connection has ended; protected by the CQ lock */
	struct rdm_conn *conn;
	uint32_t number;		/* number of the DTO in its queue */
	bool receives;			/* the DTO is in the queue of receives */
	bool blocks;			/* RDMA that messages behind it wait for */
	unsigned char *copy;		/* memory for a copy of a frame, or NULL */
	bool completes_dto;		/* its completion completes the DTO */
	/* header of a message sent from the program's memory */
	unsigned char header[RDM_FRAME_HEADER];
	SLIST_ENTRY(rdm_op) free;
	LIST_ENTRY(rdm_op) link;	/* in the connection's list */
};

/* A frame that needs processing, and its progress. */
struct rdm_task {
	struct rdm_frame frame;
	bool matched;			/* the message was matched with receive number @receive */
	uint32_t receive;
	bool carried_out;		/* all is done but the ACK or CTS */
	enum rdm_result result;
	uint64_t old;			/* former value, of an atomic */
};

/* A frame that is pending. */
struct rdm_pending {
	STAILQ_ENTRY(rdm_pending) link;
	bool is_spare;			/* owned by the PZ, not allocated */
	struct rdm_task task;
	unsigned char data[];
};

/* Makes the operations, the memory for pending frames and the lists of @rpz. Progress thread. */
int rdm_ops_open(struct rdm_pz *rpz);
void rdm_ops_close(struct rdm_pz *rpz);

/* Returns an operation, or NULL if none is free. */
struct rdm_op *rdm_op_get(struct rdm_conn *conn, const struct dofi_dto *dto, bool receives)
	DOFI_NEEDS(conn->ep->lock);
/* Returns an operation with memory for a copy of a frame, or NULL. */
struct rdm_op *rdm_op_get_copy(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/* Releases an operation that was not handed to the fabric. */
void rdm_op_put(struct rdm_op *op);
/* Processes a completion with an operation as its context. CQ lock held. */
void rdm_op_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);
/* Drops the operations and the stall of @conn, and ignores completions. CQ lock held. */
void rdm_ops_abandon(struct rdm_conn *conn);

/* Returns memory for a pending frame with @size bytes, allocated if many are pending, or NULL. */
struct rdm_pending *rdm_pending_get(struct rdm_pz *rpz, size_t size);
void rdm_pending_put(struct rdm_pz *rpz, struct rdm_pending *pending);

/* Records a lost frame or message, which ends @conn unless the CM connection reports an end. */
void rdm_lost(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);

/* Records that the fabric did not take something: a sweep of the CQ repeats it. */
void rdm_stall(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);

#endif
