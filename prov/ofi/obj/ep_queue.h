/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In which order an endpoint's operations go to the fabric. */
#ifndef DOFI_OBJ_EP_QUEUE_H
#define DOFI_OBJ_EP_QUEUE_H

#include "obj/ep.h"

/*
 * An attempt to connect has failed: receives that its endpoint was given wait for the next. That
 * endpoint is ep->fid no more. EP lock held.
 */
void dofi_dto_recall(struct dofi_ep *ep);

/* Enters @dto, of @kind, the slot that was reserved in @q of @ep and is filled in. EP lock held. */
void dofi_queue_commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto,
		       uint8_t kind);

/* Sends what waits in @q, of @ep, to the fabric. EP lock held. */
void dofi_queue_pump(struct dofi_ep *ep, struct dofi_queue *q);

/* Sends waiting operations to the fabric, as far as it and the rules allow. EP lock held. */
void dofi_dto_pump(struct dofi_ep *ep);

#endif
