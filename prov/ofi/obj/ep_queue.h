/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The order in which an endpoint's operations go to the fabric. */
#ifndef DOFI_OBJ_EP_QUEUE_H
#define DOFI_OBJ_EP_QUEUE_H

#include "obj/ep.h"

/*
 * An attempt to connect has failed: the receives that its endpoint had are pending again. That
 * endpoint is not ep->fid any more. EP lock held.
 */
void dofi_dto_recall(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/*
 * Sets the fields that the slot of a plain receive lacks, and that all other code requires. The
 * receive is not at the fabric, or the transport matches it itself. EP lock held.
 */
void dofi_receive_unplain(struct dofi_dto *dto);

/* Queues @dto, of @kind: the slot of @q that was reserved and is filled in. EP lock held. */
void dofi_dto_commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto, uint8_t kind)
	DOFI_NEEDS(ep->lock);

/* Submits pending operations of @q, a queue of @ep, in order. EP lock held. */
void dofi_dto_pump_queue(struct dofi_ep *ep, struct dofi_queue *q) DOFI_NEEDS(ep->lock);

/*
 * Submits pending operations of @ep, as far as the fabric and the rules of order allow. EP lock
 * held.
 */
void dofi_dto_pump(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#endif
