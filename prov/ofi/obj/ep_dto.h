/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completions from the fabric, with what a transport adds to them. */
#ifndef DOFI_OBJ_EP_DTO_H
#define DOFI_OBJ_EP_DTO_H

#include "obj/ep.h"

struct fi_cq_data_entry;

/* A completion from the fabric: dofi_progress_ops.completed. */
void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* What a transport adds to the completion of a receive. */
struct dofi_arrived {
	uint8_t kind;			/* enum dofi_dto_kind */
	bool solicited;			/* the sender set the solicited flag */
	uint32_t immed;
	uint64_t length;
	int err;			/* positive if a peer may not send this */
};

/* Reads the data @cq_data of a message of @length bytes; not 0. */
void dofi_arrived_read(struct dofi_arrived *arrived, uint64_t cq_data, uint64_t length);

/* As dofi_dto_complete(), for a receive that @arrived describes. */
void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived,
			  struct dofi_sink *sink);

/*
 * Processes the remote CQ data of a receive that succeeded and has valid cq_data. Returns 0 or a
 * positive error.
 */
int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/* Ends a request that the transport tracks itself; a positive @err. EP lock held. */
void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock);

#endif
