/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking events from an EVD, and dat_evd_wait. */

#include "base/clock.h"
#include "base/env.h"
#include "obj/evd.h"

#include <errno.h>
#include <string.h>

/* Reads the CQs that deliver here; whether there are any. */
static bool poll_feeds(struct dofi_evd *evd)
{
	struct dofi_cq *cq;
	bool any = false;
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		cq = atomic_load_explicit(&evd->feed[i], memory_order_relaxed);
		if (cq)
			dofi_cq_poll_next(cq);
		any |= cq != NULL;
	}
	return any;
}

#if DAT_VERSION_MAJOR >= 2
void dofi_completion_extend(DAT_EVENT *event, uint32_t immed)
{
	static const DAT_IB_EXT_TYPE type[] = {
		[DAT_IB_DTO_RDMA_WRITE_IMMED] = DAT_IB_RDMA_WRITE_IMMED,
		[DAT_IB_DTO_RECV_IMMED] = DAT_IB_RDMA_WRITE_IMMED_DATA,
		[DAT_IB_DTO_FETCH_ADD] = DAT_IB_FETCH_AND_ADD,
		[DAT_IB_DTO_CMP_SWAP] = DAT_IB_CMP_AND_SWAP,
		[DAT_IB_DTO_RECV_MSG_IMMED] = DAT_IB_RECV_IMMED_DATA,
	};
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event->event_data.dto_completion_event_data;
	const DAT_IB_EXTENSION_EVENT_DATA extension = {
		.type = type[d->operation],
		.status = d->status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR,
		.val.immed.data = immed,
	};

	memcpy(event->event_extension_data, &extension, sizeof(extension));
}
#endif

void dofi_evd_take(struct dofi_evd *evd, DAT_EVENT *event)
{
	const struct dofi_event *e = &evd->ring[evd->head & (evd->capacity - 1)];
	uint32_t left = dofi_evd_pending(evd) - 1;

	event->event_number = e->number;
	event->evd_handle = evd;
	event->event_data = e->data;
	dofi_event_extend(event, e->immed);
	dofi_event_read(e);
	evd->head++;
	evd->overflowed = false;
	dofi_evd_each_feed(evd, dofi_cq_taken);
	dofi_evd_set_count(evd, left);
	if (__builtin_expect(evd->cno != NULL, 0))
		dofi_cno_update(evd->cno, &evd->at_cno, left && evd->enabled);
}

/* Whether the waiter has what it came for. Needs the lock. */
static bool satisfied(struct dofi_evd *evd)
{
	return evd->notified && (DAT_COUNT)dofi_evd_pending(evd) >= evd->threshold;
}

/* The CQ that alone feeds @evd, or NULL. Needs the lock. */
static struct dofi_cq *sole_feed(const struct dofi_evd *evd)
{
	struct dofi_cq *sole = NULL;
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		if (!evd->feed_users[i])
			continue;
		if (sole)
			return NULL;
		sole = atomic_load_explicit(&evd->feed[i], memory_order_relaxed);
	}
	return sole;
}

/* Polls for a while before sleeping: a wake-up costs ten times a short wait. Drops the lock. */
static void spin(struct dofi_evd *evd, int64_t now, int64_t deadline)
{
	int64_t until = now + dofi_spin_time(&evd->spin, dofi_settings.spin_us * 1000);
	DAT_COUNT threshold = evd->threshold;
	const struct dofi_cq *sole = sole_feed(evd);

	/* a thread that is going to lead the CQ reads it anyway */
	if (until == now && now < deadline && sole && dofi_lead_is_able(&sole->lead))
		return;
	if (until > deadline)
		until = deadline;
	dofi_mutex_unlock(&evd->lock);
	while ((DAT_COUNT)dofi_evd_pending(evd) < threshold && poll_feeds(evd) && dofi_now() < until)
		;
	dofi_mutex_lock(&evd->lock);
}

static void feeds_sleep(struct dofi_evd *evd, struct dofi_cq *slept[])
{
	bool any = false;
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		slept[i] = atomic_load(&evd->feed[i]);
		if (slept[i])
			dofi_cq_sleep_begin(slept[i]);
		any |= slept[i] != NULL;
	}
	/* what comes here is a connection event */
	if (!any)
		dofi_progress_probe(&evd->obj.ia->progress);
}

static void feeds_wake(struct dofi_cq *slept[])
{
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (slept[i])
			dofi_cq_sleep_end(slept[i]);
}

static bool must_leave(struct dofi_evd *evd)
{
	return evd->dying || evd->evicted || satisfied(evd);
}

/* As dofi_lead_begin(), for a thread that has the lock. Drops it meanwhile. */
static int lead_begin(struct dofi_evd *evd, struct dofi_cq *cq)
{
	int err;

	dofi_mutex_unlock(&evd->lock);
	err = dofi_lead_begin(cq);
	dofi_mutex_lock(&evd->lock);
	return err;
}

/* Sleeps on @cq once, and reads what woke the thread. Needs the lock, and drops it. */
static int lead_once(struct dofi_evd *evd, struct dofi_cq *cq, int64_t deadline)
{
	int err = lead_begin(evd, cq);

	if (err == -EAGAIN)
		return dofi_now() < deadline ? 0 : -ETIMEDOUT;
	if (err)
		return err;
	if (!must_leave(evd))
		err = dofi_lead_sleep(cq, &evd->bell, &evd->lock, deadline);
	dofi_mutex_unlock(&evd->lock);
	dofi_lead_end(cq);
	dofi_cq_poll_next(cq);
	dofi_mutex_lock(&evd->lock);
	return err;
}

/* Sleeps on the CQ of @evd itself. As sleep_for_events(), or -EBUSY where that cannot be. */
static int lead_for_events(struct dofi_evd *evd, int64_t deadline)
{
	struct dofi_cq *cq = sole_feed(evd);
	int err = cq ? 0 : -EBUSY;

	while (!must_leave(evd) && !err)
		err = lead_once(evd, cq, deadline);
	return err;
}

/* Sleeps until another thread, mostly the progress thread, has delivered. As sleep_for_events(). */
static int follow_for_events(struct dofi_evd *evd, int64_t deadline)
{
	struct dofi_cq *slept[DOFI_EVD_FEEDS];
	int err = 0;

	feeds_sleep(evd, slept);
	while (!must_leave(evd) && !err)
		err = dofi_cond_wait(&evd->bell, &evd->lock, deadline);
	feeds_wake(slept);
	return err;
}

/* Waits for the threshold, the deadline or what else ends it; -EINTR: a signal. Needs the lock. */
static int sleep_for_events(struct dofi_evd *evd, int64_t deadline)
{
	int err;

	dofi_count(&evd->count_of.blocked);
	err = lead_for_events(evd, deadline);
	return err == -EBUSY ? follow_for_events(evd, deadline) : err;
}

/* The same, and polls first. */
static int wait_for_events(struct dofi_evd *evd, int64_t deadline)
{
	const int64_t begin = dofi_now();
	int err = 0;

	if (!must_leave(evd))
		spin(evd, begin, deadline);
	if (!must_leave(evd) && dofi_now() < deadline)
		err = sleep_for_events(evd, deadline);
	if (satisfied(evd))
		dofi_spin_learn(&evd->spin, dofi_now() - begin, dofi_settings.spin_us * 1000);
	return err;
}

static DAT_RETURN wait_result(struct dofi_evd *evd, int err, DAT_EVENT *event, DAT_COUNT *nmore)
{
	if (evd->dying)
		return DOFI_RET(DAT_ABORT, 0);
	if (evd->evicted)
		return DOFI_BAD_STATE(EVD_UNWAITABLE);
	if (err == -EINTR && !satisfied(evd))
		return DOFI_RET(DAT_INTERRUPTED_CALL, 0);
	/* events that notify nobody are there all the same when the time is over */
	if ((DAT_COUNT)dofi_evd_pending(evd) < evd->threshold) {
		*nmore = dofi_evd_pending(evd);
		return DOFI_RET(DAT_TIMEOUT_EXPIRED, 0);
	}
	dofi_evd_take(evd, event);
	*nmore = dofi_evd_pending(evd);
	return DAT_SUCCESS;
}

/* Where not all events notify, to wait for several means nothing. */
static DAT_RETURN threshold_check(struct dofi_evd *evd, DAT_COUNT threshold)
{
	if (threshold > evd->qlen)
		return DOFI_BAD_ARG(3);
	if (threshold > 1 && evd->notice == DAT_COMPLETION_UNSIGNALLED_FLAG)
		return DOFI_BAD_STATE(EVD_CONFIG_NOTIFY);
	if (threshold > 1 && evd->notice == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return DOFI_BAD_STATE(EVD_CONFIG_SOLICITED);
	return DAT_SUCCESS;
}

static DAT_RETURN wait_locked(struct dofi_evd *evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			      DAT_EVENT *event, DAT_COUNT *nmore)
{
	DAT_RETURN ret;
	int err = 0;

	if (!evd->waitable)
		return DOFI_BAD_STATE(EVD_UNWAITABLE);
	if (evd->waiting)
		return DOFI_BAD_STATE(EVD_WAITER);
	ret = threshold_check(evd, threshold);
	if (ret)
		return ret;
	dofi_count(&evd->count_of.wait);
	evd->waiting = true;
	dofi_evd_route(evd);
	evd->threshold = threshold;
	evd->evicted = false;
	/* what is queued already counts as announced */
	evd->notified = dofi_evd_pending(evd) > 0;
	if (!satisfied(evd))
		err = wait_for_events(evd, dofi_deadline(timeout));
	ret = wait_result(evd, err, event, nmore);
	evd->waiting = false;
	dofi_evd_route(evd);
	if (evd->dying)
		dofi_cond_broadcast(&evd->bell);
	return ret;
}

/* What the fabric has is as good as what is queued: so who finds it does not become a waiter. */
static bool need_not_wait(struct dofi_evd *evd, DAT_COUNT threshold, DAT_EVENT *event, DAT_COUNT *nmore)
{
	if (threshold > 1 || !evd->waitable || evd->notice != DAT_COMPLETION_DEFAULT_FLAG ||
	    !dofi_evd_look(evd, event))
		return false;
	dofi_count(&evd->count_of.wait);
	*nmore = dofi_evd_pending(evd);
	return true;
}

DAT_RETURN dofi_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	DAT_RETURN ret;

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (threshold < 1)
		return DOFI_BAD_ARG(3);
	if (!event)
		return DOFI_BAD_ARG(4);
	if (!nmore)
		return DOFI_BAD_ARG(5);
	if (need_not_wait(evd, threshold, event, nmore))
		return DAT_SUCCESS;
	dofi_mutex_lock(&evd->lock);
	ret = wait_locked(evd, timeout, threshold, event, nmore);
	dofi_mutex_unlock(&evd->lock);
	return ret;
}
