/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: functions on its queue for evd.c. */
#ifndef DOFI_OBJ_EVD_QUEUE_H
#define DOFI_OBJ_EVD_QUEUE_H

#include "obj/evd.h"

/* An empty queue for @qlen events, in @evd that is not published. 0 or -ENOMEM. */
int dofi_evd_queue_open(struct dofi_evd *evd, DAT_COUNT qlen) DOFI_NEEDS(evd->lock);
/* Resizes the queue to @qlen events, which are at least as many as are queued. Needs the lock. */
DAT_RETURN dofi_evd_queue_resize(struct dofi_evd *evd, DAT_COUNT qlen) DOFI_NEEDS(evd->lock);
/*
 * Ends the queue of @evd, which is not a valid handle any more, with @count events left in it. No
 * lock held.
 */
void dofi_evd_queue_close(struct dofi_evd *evd, uint32_t count) DOFI_NEEDS_NOT(evd->lock);

#endif
