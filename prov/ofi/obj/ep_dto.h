/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer operations: how they end. */
#ifndef DOFI_OBJ_EP_DTO_H
#define DOFI_OBJ_EP_DTO_H

#include "obj/obj.h"
#include "wq/dto.h"

struct dofi_sink;
struct fi_cq_data_entry;

/* Records how @dto ended: a positive @err ends the connection, too. EP lock held. */
void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err);

/* Delivers what is complete, oldest first; @sink may be NULL. EP lock held. */
void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink);

/* Completes everything outstanding as flushed. EP lock held, fabric endpoint closed. */
void dofi_dto_flush(struct dofi_ep *ep);

/* A completion from the fabric: dofi_progress_ops.completed. */
void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* What a transport found out about a receive that ended: @kind and @immed of its slot. */
struct dofi_arrived {
	uint8_t kind;			/* enum dofi_dto_kind */
	bool solicited;			/* the sender wants its receiver to be notified */
	uint32_t immed;
	uint64_t length;
	int err;			/* positive, if what arrived is not what a peer may send */
};

/* Reads what came beside a message of @length bytes; not 0. */
void dofi_arrived_read(struct dofi_arrived *arrived, uint64_t beside, uint64_t length);

/* As dofi_dto_complete(), for a receive that @arrived tells about. */
void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived,
			  struct dofi_sink *sink);

/*
 * A receive whose beside is valid ended well: what came beside its message is done. A positive
 * error if not so.
 */
int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto);

/* Ends a request that the transport keeps track of itself; a positive @err. EP lock held. */
void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink);

#endif
