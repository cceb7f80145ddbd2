/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event Dispatcher: its calls, the CQs that feed it, and its streams of events. The queue is in
 * evd_queue.c, dat_evd_wait() in evd_wait.c.
 */

#include "obj/evd/evd.h"

#include "base/clock.h"
#include "base/log.h"
#include "obj/caps.h"
#include "obj/obj.h"

#include <errno.h>
#include <string.h>

#if DAT_VERSION_MAJOR >= 2
/* Completions of the extension go to the EVD of completions, with or without this flag. */
#define EXTENSION_FLAGS DAT_IB_EVD_EXTENSION_FLAG
#else
#define EXTENSION_FLAGS 0
#endif
#define KNOWN_FLAGS (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG | \
		     DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_ASYNC_FLAG | \
		     EXTENSION_FLAGS)

/* Feeds */

static int feed_index(struct dofi_evd *evd, struct dofi_cq *cq)
{
	int i, free_index = -1;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		if (evd->feed_users[i] && atomic_load(&evd->feed[i]) == cq)
			return i;
		if (!evd->feed_users[i] && free_index < 0)
			free_index = i;
	}
	return free_index;
}

struct dofi_cq *dofi_evd_only_cq(const struct dofi_evd *evd)
{
	struct dofi_cq *sole = NULL;
	int i;

	dofi_mutex_assert_held(&evd->lock);
	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		if (!evd->feed_users[i])
			continue;
		if (sole)
			return NULL;
		sole = atomic_load_explicit(&evd->feed[i], memory_order_relaxed);
	}
	return sole;
}

void dofi_evd_route(struct dofi_evd *evd)
{
	dofi_mutex_assert_held(&evd->lock);
	atomic_store_explicit(&evd->sole_cq,
			      evd->cno || evd->waiting ? NULL : dofi_evd_only_cq(evd),
			      memory_order_relaxed);
}

/* Wakes a waiting thread, which then leads the only CQ, or sleeps on each. */
static void feeds_changed(struct dofi_evd *evd) DOFI_NEEDS(evd->lock)
{
	dofi_evd_route(evd);
	if (evd->waiting)
		dofi_cond_broadcast(&evd->wakeup);
}

void dofi_evd_feed_get(struct dofi_evd *evd, struct dofi_cq *cq)
{
	int i;

	dofi_mutex_lock(&evd->lock);
	i = feed_index(evd, cq);
	if (i < 0) {
		/* a thread that polls the EVD does not poll this CQ */
		dofi_cq_sleep_begin(cq);
	} else if (!evd->feed_users[i]++) {
		atomic_store(&evd->feed[i], cq);
		feeds_changed(evd);
		if (evd->cno)
			dofi_cq_sleep_begin(cq);
	}
	dofi_mutex_unlock(&evd->lock);
}

void dofi_evd_feed_put(struct dofi_evd *evd, struct dofi_cq *cq)
{
	int i;

	dofi_mutex_lock(&evd->lock);
	i = feed_index(evd, cq);
	if (i < 0 || !evd->feed_users[i]) {
		dofi_cq_sleep_end(cq);	/* the feed came when the table was full */
	} else if (!--evd->feed_users[i]) {
		atomic_store(&evd->feed[i], NULL);
		feeds_changed(evd);
		if (evd->cno)
			dofi_cq_sleep_end(cq);
	}
	dofi_mutex_unlock(&evd->lock);
}

/* Streams */

/* One lock for all: few streams come and go. A leaf. */
static struct dofi_mutex streams_lock;

/*
 * Returns why the stream may not join its EVD, in words, or NULL. Software and asynchronous events
 * always notify.
 */
static const char *stream_misfit(const struct dofi_stream *s) DOFI_NEEDS(streams_lock)
{
	const struct dofi_evd *evd = s->evd;

	if (!evd || evd->dying || !evd->obj.ia->strict)
		return NULL;
	if (s->notice && evd->flags & DAT_EVD_SOFTWARE_FLAG)
		return "software events, which always notify";
	if (s->notice && evd->is_async)
		return "asynchronous events, which always notify";
	return evd->streams && evd->notice != s->notice ? "events that notify differently" : NULL;
}

/*
 * Counts @n streams that join their EVDs (@by is 1) or leave (-1). Returns how many joined: all, or
 * the ones before the first misfit.
 */
static int streams_count(const struct dofi_stream *s, int n, int by) DOFI_NEEDS(streams_lock)
{
	int i;

	for (i = 0; i < n && (by < 0 || !stream_misfit(&s[i])); i++) {
		struct dofi_evd *evd = s[i].evd;

		if (!evd)
			continue;
		evd->streams += by;
		if (s[i].notice == DAT_COMPLETION_UNSIGNALLED_FLAG)
			evd->unsignalled += by;
		else if (s[i].notice == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
			evd->solicited += by;
		evd->notice = (DAT_COMPLETION_FLAGS)(
			(evd->unsignalled ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0) |
			(evd->solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0));
	}
	return i;
}

static void misfit_log(const struct dofi_evd *evd, DAT_COMPLETION_FLAGS flags, const char *misfit)
{
	dofi_obj_log(&evd->obj, DOFI_WARN, DOFI_EVD,
		     "evd %p: events with completion flags %#x are refused, as the EVD has %s; "
		     "DAT_OFI_STRICT=0 accepts both", (const void *)evd, flags, misfit);
}

bool dofi_evd_take_async(struct dofi_evd *evd)
{
	bool fits;

	dofi_mutex_lock(&streams_lock);
	fits = evd->notice == DAT_COMPLETION_DEFAULT_FLAG || !evd->obj.ia->strict;
	if (fits)
		evd->is_async = true;
	dofi_mutex_unlock(&streams_lock);
	if (!fits)
		misfit_log(evd, DAT_COMPLETION_DEFAULT_FLAG, "events that notify differently");
	return fits;
}

bool dofi_evd_streams_swap(const struct dofi_stream *from, const struct dofi_stream *to, int n)
{
	const char *misfit = NULL;
	int joined;

	dofi_mutex_lock(&streams_lock);
	streams_count(from, n, -1);
	joined = streams_count(to, n, 1);
	if (joined < n) {
		misfit = stream_misfit(&to[joined]);
		streams_count(to, joined, -1);
		streams_count(from, n, 1);	/* cannot fail: they were joined before */
	}
	dofi_mutex_unlock(&streams_lock);
	if (misfit)
		misfit_log(to[joined].evd, to[joined].notice, misfit);
	return !misfit;
}

/* Objects */

/* Neither a waiter of a CNO nor an agent polls, so the CQs count them as asleep. */
static void cno_attach(struct dofi_evd *evd, struct dofi_cno *cno) DOFI_NEEDS(evd->lock)
{
	evd->cno = cno;
	dofi_evd_route(evd);
	if (!cno)
		return;
	dofi_obj_get(&cno->obj);
	evd->at_cno.evd = evd;
	dofi_cno_attach(cno, &evd->at_cno);
	dofi_evd_each_feed(evd, dofi_cq_sleep_begin);
}

static void cno_detach(struct dofi_evd *evd, bool freed) DOFI_NEEDS(evd->lock)
{
	struct dofi_cno *cno = evd->cno;

	if (!cno)
		return;
	evd->cno = NULL;
	dofi_evd_route(evd);
	dofi_evd_each_feed(evd, dofi_cq_sleep_end);
	dofi_cno_detach(cno, &evd->at_cno, freed);
	dofi_obj_put(&cno->obj);
}

/* Drops the reference of the IA, or of an EP, to the memory. */
static void keeper_leave(struct dofi_evd *evd)
{
	if (atomic_fetch_sub(&evd->keepers, 1) == 1)
		dofi_pool_put(&dofi_evd_pool, evd);
}

void dofi_evd_release(struct dofi_evd *evd)
{
	dofi_obj_put(&evd->obj);
	keeper_leave(evd);
}

static void evd_destroy(struct dofi_obj *obj)
{
	struct dofi_evd *evd = (struct dofi_evd *)obj;
	uint32_t count;

	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_EVD);
	if (obj->ia->async_evd == evd)
		obj->ia->async_evd = NULL;
	dofi_mutex_lock(&evd->lock);
	evd->dying = true;
	dofi_cond_broadcast(&evd->wakeup);
	while (evd->waiting)	/* the waiter leaves with DAT_ABORT and signals that */
		dofi_cond_wait(&evd->wakeup, &evd->lock, DOFI_NEVER);
	cno_detach(evd, true);
	count = atomic_load(&evd->count);
	dofi_evd_set_count(evd, 0);
	dofi_mutex_unlock(&evd->lock);
	dofi_evd_queue_close(evd, count);
	dofi_obj_discount(DAT_HANDLE_TYPE_EVD, obj);
	keeper_leave(evd);
}

DAT_COUNT dofi_evd_max_qlen(const struct dofi_ia *ia)
{
	return dofi_caps_value(ia, DAT_IA_FIELD_IA_MAX_EVD_QLEN);
}

DAT_RETURN dofi_evd_new(struct dofi_ia *ia, DAT_COUNT qlen, struct dofi_cno *cno,
			DAT_EVD_FLAGS flags, struct dofi_evd **out)
{
	const DAT_COUNT most = dofi_evd_max_qlen(ia);
	struct dofi_evd *evd;
	int i, err;

	if (qlen > most)
		return DOFI_REFUSED(DOFI_NO_RESOURCE(TEVD), DOFI_EVD,
				    "evd_min_qlen is %d; permitted: 1 to %d", qlen, most);
	evd = dofi_obj_new(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, ia, evd_destroy);
	if (!evd)
		return DOFI_REFUSED(DOFI_NO_RESOURCE(TEVD), DOFI_EVD, "no EVD: the IA has %d, or "
				    "the memory is short",
				    dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_EVD));
	dofi_mutex_lock(&evd->lock);
	evd->flags = flags;
	evd->enabled = true;
	evd->waitable = true;
	evd->dying = evd->is_async = false;
	evd->keepers = 1;
	evd->streams = evd->unsignalled = evd->solicited = 0;
	evd->notice = DAT_COMPLETION_DEFAULT_FLAG;
	evd->waiting = false;
	evd->spin = (struct dofi_spin){ 0 };
	memset(&evd->count_of, 0, sizeof(evd->count_of));
	memset(evd->base, 0, sizeof(evd->base));
	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		atomic_store(&evd->feed[i], NULL);
		evd->feed_users[i] = 0;
	}
	err = dofi_evd_queue_open(evd, qlen);
	if (!err)
		cno_attach(evd, cno);
	dofi_mutex_unlock(&evd->lock);
	if (err) {
		dofi_obj_free(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, &evd->obj);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	dofi_obj_publish(&evd->obj, DAT_HANDLE_TYPE_EVD);
	*out = evd;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_cno *cno DOFI_USED = dofi_cno_use(cno_handle, ia);
	struct dofi_evd *evd;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(IA), DOFI_EVD,
				    "dat_evd_create: %p is no open IA", ia_handle);
	if (qlen <= 0)
		return DOFI_REFUSED(DOFI_BAD_ARG(2), DOFI_EVD,
				    "evd_min_qlen is %d; permitted: 1 to %d", qlen,
				    dofi_evd_max_qlen(ia));
	if (cno_handle && !cno)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(CNO), DOFI_EVD,
				    "cno_handle %p is no live CNO of the EVD's IA", cno_handle);
	if (!flags || (flags & ~KNOWN_FLAGS))
		return DOFI_REFUSED(DOFI_BAD_ARG(4), DOFI_EVD,
				    "evd_flags are %#x; permitted: some of %#x", flags,
				    KNOWN_FLAGS);
	if (!evd_handle)
		return DOFI_REFUSED(DOFI_BAD_ARG(5), DOFI_EVD, "dat_evd_create: no evd_handle");
	ret = dofi_evd_new(ia, qlen, cno, flags, &evd);
	if (!ret)
		*evd_handle = evd;
	return ret;
}

DAT_RETURN dofi_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(evd_handle);

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (mask & ~DAT_EVD_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	dofi_mutex_lock(&evd->lock);
	*param = (DAT_EVD_PARAM){
		.ia_handle = dofi_ia_export(evd->obj.ia),
		.evd_qlen = evd->qlen,
		.evd_state = (DAT_EVD_STATE)
			((evd->enabled ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
			 (evd->waitable ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE)),
		.cno_handle = (DAT_CNO_HANDLE)evd->cno,
		.evd_flags = evd->flags,
	};
	dofi_mutex_unlock(&evd->lock);
	return DAT_SUCCESS;
}

/* Triggers the CNO, which begins to watch @evd, for queued events. */
static void notify_backlog(struct dofi_evd *evd) DOFI_NEEDS(evd->lock)
{
	if (atomic_load(&evd->count))
		dofi_evd_notify(evd, evd->count);
}

DAT_RETURN dofi_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(evd_handle);
	struct dofi_cno *cno DOFI_USED = evd ? dofi_cno_use(cno_handle, evd->obj.ia) : NULL;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (cno_handle && !cno)
		return DOFI_BAD_HANDLE(CNO);
	dofi_mutex_lock(&evd->lock);
	cno_detach(evd, false);
	cno_attach(evd, cno);
	notify_backlog(evd);
	dofi_mutex_unlock(&evd->lock);
	return DAT_SUCCESS;
}

static DAT_RETURN set_enabled(DAT_EVD_HANDLE evd_handle, bool enabled)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(evd_handle);
	bool was;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	dofi_mutex_lock(&evd->lock);
	was = evd->enabled;
	evd->enabled = enabled;
	if (enabled && !was)
		notify_backlog(evd);
	if (!enabled && evd->cno)
		dofi_cno_update(evd->cno, &evd->at_cno, false);
	dofi_mutex_unlock(&evd->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	return set_enabled(evd_handle, true);
}

DAT_RETURN dofi_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	return set_enabled(evd_handle, false);
}

static DAT_RETURN set_waitable(DAT_EVD_HANDLE evd_handle, bool waitable)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(evd_handle);

	if (!evd)
		return DOFI_INVALID_HANDLE;
	dofi_mutex_lock(&evd->lock);
	evd->waitable = waitable;
	/* the waiter leaves even if the EVD is waitable again before it runs */
	evd->evicted |= !waitable;
	dofi_cond_broadcast(&evd->wakeup);
	dofi_mutex_unlock(&evd->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return set_waitable(evd_handle, false);
}

DAT_RETURN dofi_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return set_waitable(evd_handle, true);
}

DAT_RETURN dofi_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct dofi_evd *evd = dofi_evd_enter(evd_handle);
	int err;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (evd->obj.ia->async_evd == evd && evd->obj.ia->async_evd_owned) {
		dofi_obj_leave(&evd->obj);
		return DOFI_BAD_STATE(EVD_IN_USE);
	}
	err = dofi_obj_free_unused(&evd->obj);
	if (err)
		return err == -EBUSY ? DOFI_BAD_STATE(EVD_IN_USE) : DOFI_INVALID_HANDLE;
	return DAT_SUCCESS;
}
