/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_evd_dequeue of any EVD. */
#ifndef DOFI_OBJ_DEQUEUE_H
#define DOFI_OBJ_DEQUEUE_H

#include "obj/evd.h"

/* As dat_evd_dequeue(), from the queue of @evd alone. */
DAT_RETURN dofi_evd_dequeue_locked(struct dofi_evd *evd, DAT_EVENT *event);

/* Takes an event from the queue if there is one now, whichever thread put it there. */
static inline DAT_RETURN dofi_evd_dequeue_queued(struct dofi_evd *evd, DAT_EVENT *event)
{
	if (dofi_evd_pending(evd) || evd->waiting)
		return dofi_evd_dequeue_locked(evd, event);
	dofi_count(&evd->count_of.not_found);
	return DAT_QUEUE_EMPTY;
}

/* dat_evd_dequeue(). */
DAT_RETURN dofi_evd_dequeue_any(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

#endif
