/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_evd_dequeue of any EVD; fast.c has it where one CQ feeds the EVD. */

#include "obj/evd.h"

DAT_RETURN dofi_evd_dequeue_locked(struct dofi_evd *evd, DAT_EVENT *event)
{
	DAT_RETURN ret = DAT_QUEUE_EMPTY; /* without the error bit, as programs compare it */

	dofi_mutex_lock(&evd->lock);
	if (evd->waiting) {
		ret = DOFI_BAD_STATE(EVD_WAITER);
	} else if (dofi_evd_pending(evd)) {
		dofi_evd_take(evd, event);
		dofi_count(&evd->count_of.found);
		ret = DAT_SUCCESS;
	}
	if (ret)
		dofi_count(&evd->count_of.not_found);
	if (ret && !dofi_obj_is_live(&evd->obj, DAT_HANDLE_TYPE_EVD))
		ret = DOFI_INVALID_HANDLE;
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

/* The event bypassed the queue: the CNO may have others to report. */
static DAT_RETURN taken_at_once(struct dofi_evd *evd)
{
	dofi_count(&evd->count_of.straight);
	if (evd->cno) {
		dofi_mutex_lock(&evd->lock);
		if (evd->cno)
			dofi_cno_update(evd->cno, &evd->at_cno,
					dofi_evd_pending(evd) && evd->enabled);
		dofi_mutex_unlock(&evd->lock);
	}
	return DAT_SUCCESS;
}

/* The slow path: reads each CQ that feeds the EVD, until there is an event for it. */
DAT_RETURN dofi_evd_dequeue_any(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	struct dofi_sink sink = { .evd = evd, .event = event };
	struct dofi_cq *cq;
	int i;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (!event)
		return DOFI_BAD_ARG(2);
	if (dofi_evd_pending(evd) || evd->waiting)
		return dofi_evd_dequeue_queued(evd, event);
	for (i = 0; i < DOFI_EVD_FEEDS && sink.evd; i++) {
		cq = atomic_load_explicit(&evd->feed[i], memory_order_relaxed);
		if (cq)
			dofi_cq_poll(cq, &sink);
	}
	if (!sink.evd)
		return taken_at_once(evd);
	dofi_count(&evd->count_of.poll);
	return dofi_evd_dequeue_queued(evd, event);
}
