/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_evd_dequeue: from the EVD's queue, or else straight from the fabric. */

#include "obj/ep_plain.h"

static __attribute__((noinline)) DAT_RETURN dequeue_locked(struct dofi_evd *evd, DAT_EVENT *event)
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
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

/* What is queued now, if anything is, whoever brought it there. */
static inline DAT_RETURN dequeue_queued(struct dofi_evd *evd, DAT_EVENT *event)
{
	if (dofi_evd_pending(evd) || evd->waiting)
		return dequeue_locked(evd, event);
	dofi_count(&evd->count_of.not_found);
	return DAT_QUEUE_EMPTY;
}

/* The consumer has its event without the queue: the CNO may have others to tell of. */
static DAT_RETURN taken_at_once(struct dofi_evd *evd)
{
	dofi_count(&evd->count_of.straight);
	if (evd->cno) {
		dofi_mutex_lock(&evd->lock);
		if (evd->cno)
			dofi_cno_update(evd->cno, &evd->at_cno, dofi_evd_pending(evd) && evd->enabled);
		dofi_mutex_unlock(&evd->lock);
	}
	return DAT_SUCCESS;
}

/* The way of all EVDs: reads each CQ that feeds it, until there is an event for it. */
static __attribute__((noinline)) DAT_RETURN dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	struct dofi_sink sink = { .evd = evd, .event = event };
	struct dofi_cq *cq;
	int i;

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (!event)
		return DOFI_BAD_ARG(2);
	if (dofi_evd_pending(evd) || evd->waiting)
		return dequeue_queued(evd, event);
	for (i = 0; i < DOFI_EVD_FEEDS && sink.evd; i++) {
		cq = atomic_load_explicit(&evd->feed[i], memory_order_relaxed);
		if (cq)
			dofi_cq_poll(cq, &sink);
	}
	if (!sink.evd)
		return taken_at_once(evd);
	dofi_count(&evd->count_of.poll);
	return dequeue_queued(evd, event);
}

/*
 * Delivers @n completions that were read, or handles an error of the read, as dofi_cq_go_on(). Where only the next
 * completion was read, and was another EVD's, polls once more.
 */
static __attribute__((noinline)) bool look_past(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq, ssize_t n,
						bool one)
{
	struct dofi_sink sink = { .evd = evd, .event = event };

	dofi_cq_go_on(cq, n, &sink);
	if (one && sink.evd)
		dofi_cq_poll(cq, &sink);
	return !sink.evd;
}

/*
 * Polls the only CQ of @evd, whose lock is held, and releases the lock. Returns true if @event was written; if not, an
 * event may be queued now. The access lock of a serial CQ covers plain operations of its endpoints, too.
 */
static DOFI_INTO_CALLER bool look(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq, const bool serial)
{
	const struct fi_cq_data_entry *entry;
	bool taken;
	ssize_t n;

	if (serial)
		dofi_mutex_lock(&cq->access);
	entry = dofi_cq_next(cq, &n);
	taken = entry && (serial ? dofi_plain_take_serial(entry, cq, evd, event) :
				   dofi_plain_take(entry, cq, evd, event));
	if (serial)
		dofi_mutex_unlock(&cq->access);
	if (__builtin_expect(!taken && !dofi_cq_is_idle(cq, n), 0))
		return look_past(evd, event, cq, n, entry);
	dofi_cq_leave(cq);
	return taken;
}

/* The CQ that alone feeds @evd, with its lock held; NULL if there is none, or another thread has it. */
static DOFI_INTO_CALLER struct dofi_cq *feed_try(struct dofi_evd *evd)
{
	struct dofi_cq *cq = atomic_load_explicit(&evd->straight_feed, memory_order_relaxed);

	return cq && dofi_cq_try(cq) ? cq : NULL;
}

bool dofi_evd_look(struct dofi_evd *evd, DAT_EVENT *event)
{
	struct dofi_cq *cq = feed_try(evd);

	return cq && (cq->serial ? look(evd, event, cq, true) : look(evd, event, cq, false));
}

/* What dat_evd_dequeue() returns after a look at the EVD's only CQ. */
static DOFI_INTO_CALLER DAT_RETURN looked(struct dofi_evd *evd, DAT_EVENT *event, bool taken)
{
	if (__builtin_expect(taken, 1)) {
		dofi_count(&evd->count_of.straight);
		return DAT_SUCCESS;
	}
	dofi_count(&evd->count_of.poll);
	return dequeue_queued(evd, event);
}

static __attribute__((noinline)) DAT_RETURN dequeue_serial(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq)
{
	return looked(evd, event, look(evd, event, cq, true));
}

static __attribute__((noinline)) DAT_RETURN dequeue_plain(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq)
{
	return looked(evd, event, look(evd, event, cq, false));
}

/* Each kind of CQ has a function of its own, so that none saves registers for another. */
DAT_RETURN dofi_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct dofi_cq *cq;

	if (__builtin_expect(!event || !dofi_obj_among_first(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, evd_handle), 0))
		return dequeue(evd_handle, event);
	cq = feed_try(evd_handle);
	if (__builtin_expect(!cq, 0))
		return dequeue(evd_handle, event);
	return cq->serial ? dequeue_serial(evd_handle, event, cq) : dequeue_plain(evd_handle, event, cq);
}
