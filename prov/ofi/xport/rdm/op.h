/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations that the fabric carries out, frames that have to wait, and connections of which the fabric did not take
 * something.
 */
#ifndef DOFI_XPORT_RDM_OP_H
#define DOFI_XPORT_RDM_OP_H

#include "xport/rdm/rdm.h"

/*
 * What the fabric carries out by itself, as it knows it: as long as the PZ, for a completion
 * may come when the connection is gone.
 */
struct rdm_op {
	struct rdm_pz *rpz;
	struct rdm_conn *conn;		/* NULL when it is of no interest any more; CQ lock */
	uint32_t number;		/* of the operation in its queue */
	bool receives;			/* it is in the queue of receives */
	bool blocks;			/* what is behind it waits for it */
	unsigned char *copy;		/* of the frame that it sends, or NULL */
	bool ends;			/* with it the operation of that number does */
	bool direct;			/* at the direct endpoint of the connection */
	unsigned char header[RDM_FRAME_HEADER];	/* of a message sent from the program's memory */
	SLIST_ENTRY(rdm_op) free;
	LIST_ENTRY(rdm_op) link;	/* of the connection's */
};

/* A frame that asks for something, and what was done of it. */
struct rdm_task {
	struct rdm_frame frame;
	bool matched;			/* a receive has been found, */
	uint32_t receive;		/* of this number */
	bool direct;			/* the receive is at the direct endpoint */
	bool carried_out;		/* all is done but the answer: */
	enum rdm_result result;
	uint64_t old;			/* of an atomic */
};

/* One that waits for its turn. */
struct rdm_waiting {
	STAILQ_ENTRY(rdm_waiting) link;
	bool is_spare;			/* one of the PZ's own */
	struct rdm_task task;
	unsigned char data[];
};

/*
 * What @rpz has for its operations, frames that wait and connections that stall; with its domain.
 * Without an endpoint nothing of it is in use. Progress thread, as for the next.
 */
int rdm_ops_open(struct rdm_pz *rpz);
void rdm_ops_close(struct rdm_pz *rpz);

/* An operation for the fabric to carry out, or NULL: none is free now. EP lock held. */
struct rdm_op *rdm_op_get(struct rdm_conn *conn, const struct dofi_dto *dto, bool receives);
/* The same for a frame, which is to be put into its copy. */
struct rdm_op *rdm_op_get_copy(struct rdm_conn *conn);
/* It was not handed to the fabric. EP lock held. */
void rdm_op_put(struct rdm_op *op);
/* The fabric is done with the one that is @entry's context. CQ lock held, as for the next. */
void rdm_op_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);
/* How those of @conn end is of no interest any more, nor that it stalled. */
void rdm_ops_abandon(struct rdm_conn *conn);

/*
 * Room for a frame with @size bytes of data; allocated only if many wait. NULL without memory. EP
 * lock held, as for the next two.
 */
struct rdm_waiting *rdm_waiting_get(struct rdm_pz *rpz, size_t size);
void rdm_waiting_put(struct rdm_pz *rpz, struct rdm_waiting *waiting);

/* The fabric did not take something: rdm_stalled_go_on() will call back for @conn. */
void rdm_stall(struct rdm_conn *conn);
/* Calls @go_on, with the EP lock held, once for each connection that has stalled by now. CQ lock held. */
void rdm_stalled_go_on(struct rdm_pz *rpz, void (*go_on)(struct rdm_conn *conn));

#endif
