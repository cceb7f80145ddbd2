/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_evd_wait. */

#include "obj/evd/evd.h"

#include "base/clock.h"
#include "base/env.h"
#include "obj/ep/fast.h"
#include "obj/ia.h"

#include <errno.h>
#include <pthread.h>

/* Whether the waiter has as many events as it waits for. */
static bool satisfied(struct dofi_evd *evd) DOFI_NEEDS(evd->lock)
{
	return evd->notified && (DAT_COUNT)dofi_evd_pending(evd) >= evd->threshold;
}

static bool must_leave(struct dofi_evd *evd) DOFI_NEEDS(evd->lock)
{
	return evd->dying || evd->evicted || satisfied(evd);
}

/*
 * Polls for a while before the thread sleeps, because a wakeup takes ten times as long as a short
 * wait. Drops the lock meanwhile.
 */
static void spin(struct dofi_evd *evd, int64_t now, int64_t deadline) DOFI_NEEDS(evd->lock)
{
	int64_t until = now + dofi_spin_time(&evd->spin, dofi_settings.spin_us * 1000);
	DAT_COUNT threshold = evd->threshold;
	const struct dofi_cq *sole = dofi_evd_only_cq(evd);
	bool any;
	int i;

	/* a thread that is going to lead the CQ reads it anyway */
	if (until == now && now < deadline && sole && dofi_lead_is_able(&sole->lead))
		return;
	if (until > deadline)
		until = deadline;
	dofi_mutex_unlock(&evd->lock);
	do {
		if ((DAT_COUNT)dofi_evd_pending(evd) >= threshold)
			break;
		for (any = false, i = 0; i < DOFI_EVD_FEEDS; i++) {
			struct dofi_cq *cq =
				atomic_load_explicit(&evd->feed[i], memory_order_relaxed);

			if (cq)
				dofi_cq_poll_next(cq);
			any |= cq != NULL;
		}
	} while (any && dofi_now() < until);
	dofi_mutex_lock(&evd->lock);
}

/* Sleeps on @cq once, and reads the completions that woke the thread. Drops the lock meanwhile. */
static int lead_once(struct dofi_evd *evd, struct dofi_cq *cq, int64_t deadline)
	DOFI_NEEDS(evd->lock)
{
	int err;

	dofi_mutex_unlock(&evd->lock);
	err = dofi_lead_begin(cq);
	dofi_mutex_lock(&evd->lock);
	if (err == -EAGAIN)
		return dofi_now() < deadline ? 0 : -ETIMEDOUT;
	if (err)
		return err;
	/* the EVD may have got another feed while the lock was dropped */
	if (!must_leave(evd) && dofi_evd_only_cq(evd) == cq)
		err = dofi_lead_sleep(cq, &evd->wakeup, &evd->lock, deadline);
	dofi_mutex_unlock(&evd->lock);
	dofi_lead_end(cq);
	dofi_cq_poll_next(cq);
	dofi_mutex_lock(&evd->lock);
	return err;
}

static bool feeds_are(const struct dofi_evd *evd, struct dofi_cq *const cq[]) DOFI_NEEDS(evd->lock)
{
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS && atomic_load(&evd->feed[i]) == cq[i]; i++)
		;
	return i == DOFI_EVD_FEEDS;
}

/*
 * Sleeps until another thread, mostly the progress thread, has delivered, or the feeds change.
 * Returns 0, -ETIMEDOUT, or -EINTR after a signal.
 */
static int follow_for_events(struct dofi_evd *evd, int64_t deadline) DOFI_NEEDS(evd->lock)
{
	struct dofi_cq *slept[DOFI_EVD_FEEDS];
	bool any = false;
	int i, err = 0;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		slept[i] = atomic_load(&evd->feed[i]);
		if (slept[i])
			dofi_cq_sleep_begin(slept[i]);
		any |= slept[i] != NULL;
	}
	/* without feeds, the waiter waits for connection events */
	if (!any)
		dofi_progress_probe(&evd->obj.ia->progress);
	while (!must_leave(evd) && !err && feeds_are(evd, slept))
		err = dofi_cond_wait(&evd->wakeup, &evd->lock, deadline);
	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (slept[i])
			dofi_cq_sleep_end(slept[i]);
	return err;
}

/*
 * Polls, then sleeps until the threshold is reached or the wait ends: on the only CQ of @evd if
 * this thread may lead it, anew when connections have come or gone. Returns 0, -ETIMEDOUT, or
 * -EINTR after a signal. The system calls of the fabric are cancellation points: a cancelled thread
 * would leave the CQ locked, and the EVD with a waiter.
 */
static int wait_for_events(struct dofi_evd *evd, int64_t deadline) DOFI_NEEDS(evd->lock)
{
	const int64_t begin = dofi_now();
	int err = 0, cancellable;
	struct dofi_cq *cq;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
	if (!must_leave(evd))
		spin(evd, begin, deadline);
	if (!must_leave(evd) && dofi_now() < deadline) {
		dofi_count(&evd->count_of.blocked);
		do {
			cq = dofi_evd_only_cq(evd);
			err = cq ? lead_once(evd, cq, deadline) : -EBUSY;
			if (err == -EBUSY)
				err = follow_for_events(evd, deadline);
		} while (!must_leave(evd) && !err);
	}
	if (satisfied(evd))
		dofi_spin_learn(&evd->spin, dofi_now() - begin, dofi_settings.spin_us * 1000);
	pthread_setcancelstate(cancellable, NULL);
	return err;
}

static DAT_RETURN wait_result(struct dofi_evd *evd, int err, DAT_EVENT *event, DAT_COUNT *nmore)
	DOFI_NEEDS(evd->lock)
{
	if (evd->dying)
		return DOFI_RET(DAT_ABORT, 0);
	if (evd->evicted)
		return DOFI_BAD_STATE(EVD_UNWAITABLE);
	if (err == -EINTR && !satisfied(evd))
		return DOFI_RET(DAT_INTERRUPTED_CALL, 0);
	/* events that do not notify are returned when the time is over */
	if ((DAT_COUNT)dofi_evd_pending(evd) < evd->threshold) {
		*nmore = dofi_evd_pending(evd);
		return DOFI_RET(DAT_TIMEOUT_EXPIRED, 0);
	}
	dofi_evd_take(evd, event);
	*nmore = dofi_evd_pending(evd);
	return DAT_SUCCESS;
}

static DAT_RETURN wait_locked(struct dofi_evd *evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			      DAT_EVENT *event, DAT_COUNT *nmore) DOFI_NEEDS(evd->lock)
{
	DAT_RETURN ret;
	int err = 0;

	if (!dofi_obj_is_live(&evd->obj, DAT_HANDLE_TYPE_EVD))
		return DOFI_INVALID_HANDLE;
	if (!evd->waitable)
		return DOFI_BAD_STATE(EVD_UNWAITABLE);
	if (evd->waiting)
		return DOFI_BAD_STATE(EVD_WAITER);
	if (threshold > evd->qlen)
		return DOFI_BAD_ARG(3);
	/*
	 * Where not all events notify, DAT forbids a threshold above 1. An IA that is not strict
	 * lets every event count and notify then, so the waiter misses none: dofi_evd_append().
	 */
	if (threshold > 1 && evd->obj.ia->strict) {
		if (evd->notice & DAT_COMPLETION_UNSIGNALLED_FLAG)
			return DOFI_BAD_STATE(EVD_CONFIG_NOTIFY);
		if (evd->notice & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
			return DOFI_BAD_STATE(EVD_CONFIG_SOLICITED);
	}
	dofi_count(&evd->count_of.wait);
	evd->waiting = true;
	dofi_evd_route(evd);
	evd->threshold = threshold;
	evd->evicted = false;
	/* events in the queue count as notified */
	evd->notified = dofi_evd_pending(evd) > 0;
	if (!satisfied(evd))
		err = wait_for_events(evd, dofi_deadline(timeout));
	ret = wait_result(evd, err, event, nmore);
	evd->waiting = false;
	dofi_evd_route(evd);
	if (evd->dying)
		dofi_cond_broadcast(&evd->wakeup);
	return ret;
}

DAT_RETURN dofi_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	DAT_RETURN ret;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (threshold < 1)
		return DOFI_BAD_ARG(3);
	if (!event)
		return DOFI_BAD_ARG(4);
	if (!nmore)
		return DOFI_BAD_ARG(5);
	/* a thread that finds a completion at the CQ does not become a waiter */
	if (threshold == 1 && evd->waitable && evd->notice == DAT_COMPLETION_DEFAULT_FLAG &&
	    dofi_evd_poll(evd, event)) {
		dofi_count(&evd->count_of.wait);
		*nmore = dofi_evd_pending(evd);
		return DAT_SUCCESS;
	}
	dofi_mutex_lock(&evd->lock);
	ret = wait_locked(evd, timeout, threshold, event, nmore);
	dofi_mutex_unlock(&evd->lock);
	return ret;
}
