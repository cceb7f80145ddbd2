/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: making, filling and administering the queue. Taking events is in evd_wait.c. */

#include "obj/evd.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "obj/caps.h"

#include <errno.h>
#include <string.h>

static void evd_ctor(void *obj)
{
	struct dofi_evd *evd = obj;

	dofi_mutex_init(&evd->lock);
	dofi_cond_init(&evd->bell);
}

struct dofi_pool dofi_evd_pool = DOFI_POOL_INIT("evd", struct dofi_evd, evd_ctor);

#if DAT_VERSION_MAJOR >= 2
/* Completions of the extension are completions: with or without it they go where those go. */
#define EXTENSION_FLAGS DAT_IB_EVD_EXTENSION_FLAG
#else
#define EXTENSION_FLAGS 0
#endif
#define KNOWN_FLAGS (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG | \
		     DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_ASYNC_FLAG | \
		     EXTENSION_FLAGS)

static size_t ring_bytes(uint32_t capacity)
{
	return capacity * sizeof(struct dofi_event);
}

static uint32_t ring_capacity(DAT_COUNT qlen)
{
	return qlen < 2 ? 2 : 1u << (32 - __builtin_clz(qlen - 1));
}

static struct dofi_event *ring_slot(struct dofi_evd *evd, uint32_t i)
{
	return &evd->ring[(evd->head + i) & (evd->capacity - 1)];
}

/* Wakes the waiter, or tells the CNO. Needs the lock. */
static void notify(struct dofi_evd *evd, uint32_t count)
{
	if (evd->waiting) {
		evd->notified = true;
		if ((DAT_COUNT)count >= evd->threshold) {
			dofi_count(&evd->count_of.notify);
			dofi_cond_broadcast(&evd->bell);
		}
	} else if (evd->cno && evd->enabled) {
		dofi_cno_raise(evd->cno, &evd->at_cno);
	}
}

static void count_event(struct dofi_evd *evd, DAT_EVENT_NUMBER number)
{
	if (number >= DAT_CONNECTION_REQUEST_EVENT && number <= DAT_CONNECTION_EVENT_UNREACHABLE)
		dofi_count(&evd->count_of.connection);
	else if (number != DAT_SOFTWARE_EVENT)
		dofi_count(&evd->count_of.completion);
}

/* -ENOSPC, and nothing has happened, if the queue is full. Needs the lock. */
static int append(struct dofi_evd *evd, const struct dofi_event *event, bool wake)
{
	uint32_t count = atomic_load_explicit(&evd->count, memory_order_relaxed);

	if (__builtin_expect((DAT_COUNT)count >= evd->qlen, 0))
		return -ENOSPC;
	*ring_slot(evd, count) = *event;
	count_event(evd, event->number);
	/* pairs with the acquire of a thread that looks before it locks */
	dofi_evd_set_count(evd, count + 1);
	if (wake)
		notify(evd, count + 1);
	return 0;
}

int dofi_evd_push(struct dofi_evd *evd, const struct dofi_event *event, bool wake)
{
	bool first_loss = false;
	int ret;

	dofi_mutex_lock(&evd->lock);
	ret = append(evd, event, wake);
	if (__builtin_expect(ret, 0)) {
		first_loss = !evd->overflowed;
		evd->overflowed = true;
	}
	dofi_mutex_unlock(&evd->lock);
	if (__builtin_expect(first_loss, 0))
		dofi_async_error(evd->obj.ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
	return ret;
}

int dofi_evd_offer(struct dofi_evd *evd, const struct dofi_event *event)
{
	int ret;

	dofi_mutex_lock(&evd->lock);
	ret = append(evd, event, true);
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

void dofi_async_event(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason)
{
	struct dofi_event event = { .number = number };

	dofi_count_exactly(&ia->count.async_error);
	event.data.asynch_error_event_data.dat_handle = handle;
	event.data.asynch_error_event_data.reason = reason;
	/* nobody can be told of the overflow of the EVD that tells of overflows */
	if (ia->async_evd && handle != ia->async_evd && dofi_evd_check(ia->async_evd))
		dofi_evd_push(ia->async_evd, &event, true);
}

void dofi_async_error(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason)
{
	dofi_log(DOFI_WARN, DOFI_EVD, "asynchronous error %#x, reason %d", number, reason);
	dofi_async_event(ia, number, handle, reason);
}

void dofi_async_ia_failed(struct dofi_progress *progress, int err)
{
	struct dofi_ia *ia = dofi_ia_of(progress);

	(void)err;
	dofi_async_error(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, dofi_ia_export(ia),
			 DAT_IA_CATASTROPHIC_ERROR);
}

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

void dofi_evd_route(struct dofi_evd *evd)
{
	struct dofi_cq *only = NULL;
	int i, n = 0;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		if (!evd->feed_users[i])
			continue;
		only = atomic_load(&evd->feed[i]);
		n++;
	}
	if (evd->cno || evd->waiting)
		n = 0;
	evd->only_feed = n == 1 ? only : NULL;
	dofi_evd_set_count(evd, atomic_load(&evd->count));
}

void dofi_evd_feed_get(struct dofi_evd *evd, struct dofi_cq *cq)
{
	int i;

	dofi_mutex_lock(&evd->lock);
	i = feed_index(evd, cq);
	if (i < 0) {
		dofi_cq_sleep_begin(cq);	/* who looks here does not poll it */
	} else if (!evd->feed_users[i]++) {
		atomic_store(&evd->feed[i], cq);
		dofi_evd_route(evd);
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
		dofi_cq_sleep_end(cq);	/* it came when all places were taken */
	} else if (!--evd->feed_users[i]) {
		atomic_store(&evd->feed[i], NULL);
		dofi_evd_route(evd);
		if (evd->cno)
			dofi_cq_sleep_end(cq);
	}
	dofi_mutex_unlock(&evd->lock);
}

/* Streams: few come and go at the same time, so one lock does, that needs no other. */
static struct dofi_mutex streams_lock;

/* Software events come without an object that would say so. Needs the lock. */
static bool stream_fits(const struct dofi_stream *s)
{
	if (s->notice && (s->evd->flags & DAT_EVD_SOFTWARE_FLAG || s->evd->is_async))
		return false;
	return !s->evd->streams || s->evd->notice == s->notice;
}

/* False if it does not notify like the others there. Needs the lock. */
static bool stream_join(const struct dofi_stream *s)
{
	if (!s->evd)
		return true;
	if (!stream_fits(s))
		return false;
	s->evd->streams++;
	s->evd->notice = s->notice;
	return true;
}

/* Needs the lock. */
static void stream_leave(const struct dofi_stream *s)
{
	if (s->evd && !--s->evd->streams)
		s->evd->notice = DAT_COMPLETION_DEFAULT_FLAG;
}

/* How many of @n have joined: all, or those before one that does not fit. Needs the lock. */
static int streams_join(const struct dofi_stream *s, int n)
{
	int i;

	for (i = 0; i < n && stream_join(&s[i]); i++)
		;
	return i;
}

/* Needs the lock. */
static void streams_leave(const struct dofi_stream *s, int n)
{
	while (n--)
		stream_leave(&s[n]);
}

bool dofi_evd_take_async(struct dofi_evd *evd)
{
	bool fits;

	dofi_mutex_lock(&streams_lock);
	fits = evd->notice == DAT_COMPLETION_DEFAULT_FLAG;
	if (fits)
		evd->is_async = true;
	dofi_mutex_unlock(&streams_lock);
	return fits;
}

bool dofi_evd_streams_swap(const struct dofi_stream *from, const struct dofi_stream *to, int n)
{
	int joined;

	dofi_mutex_lock(&streams_lock);
	streams_leave(from, n);
	joined = streams_join(to, n);
	if (joined < n) {
		streams_leave(to, joined);
		streams_join(from, n);	/* as they did before */
	}
	dofi_mutex_unlock(&streams_lock);
	return joined == n;
}

static bool is_connection_event_of(const struct dofi_event *e, DAT_EP_HANDLE ep)
{
	return e->number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	       e->number <= DAT_CONNECTION_EVENT_UNREACHABLE &&
	       e->data.connect_event_data.ep_handle == ep;
}

void dofi_evd_purge_ep(struct dofi_evd *evd, DAT_EP_HANDLE ep)
{
	uint32_t i, kept = 0, count;

	dofi_mutex_lock(&evd->lock);
	count = atomic_load(&evd->count);
	for (i = 0; i < count; i++)
		if (!is_connection_event_of(ring_slot(evd, i), ep))
			*ring_slot(evd, kept++) = *ring_slot(evd, i);
	dofi_evd_set_count(evd, kept);
	if (evd->cno && !kept)
		dofi_cno_update(evd->cno, &evd->at_cno, false);
	dofi_mutex_unlock(&evd->lock);
}

/* Whoever waits at a CNO, or has an agent there, polls nothing: it counts as asleep. */
static void cno_attach(struct dofi_evd *evd, struct dofi_cno *cno)
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

static void cno_detach(struct dofi_evd *evd, bool freed)
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

/*
 * Connection requests that nobody can take any more: their senders must not wait. Nothing
 * feeds the EVD, and what its events name is looked at with care: with an IA, requests go first.
 */
static void refuse_requests(struct dofi_evd *evd, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct dofi_event *event = ring_slot(evd, i);
		struct dofi_obj *cr;

		if (event->number != DAT_CONNECTION_REQUEST_EVENT)
			continue;
		cr = dofi_obj_check(&dofi_cr_pool, DAT_HANDLE_TYPE_CR,
				    event->data.cr_arrival_event_data.cr_handle);
		if (cr && cr->ia == evd->obj.ia)
			cr->destroy(cr);
	}
}

/* The consumer dequeues them no more: their operations' places are free. */
static void forget_completions(struct dofi_evd *evd, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		dofi_event_read(ring_slot(evd, i));
}

static void evd_destroy(struct dofi_obj *obj)
{
	struct dofi_evd *evd = (struct dofi_evd *)obj;
	uint32_t count;

	if (!dofi_obj_retire(obj))
		return;
	if (obj->ia->async_evd == evd)
		obj->ia->async_evd = NULL;
	dofi_mutex_lock(&evd->lock);
	evd->dying = true;
	dofi_cond_broadcast(&evd->bell);
	while (evd->waiting)	/* it leaves with DAT_ABORT and signals */
		dofi_cond_wait(&evd->bell, &evd->lock, DOFI_NEVER);
	cno_detach(evd, true);
	count = atomic_load(&evd->count);
	dofi_evd_set_count(evd, 0);
	dofi_mutex_unlock(&evd->lock);
	forget_completions(evd, count);
	refuse_requests(evd, count);
	dofi_block_put(evd->ring, ring_bytes(evd->capacity));
	dofi_obj_free(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, obj);
}

static DAT_COUNT max_qlen(const struct dofi_ia *ia)
{
	return dofi_caps_value(ia, DAT_IA_FIELD_IA_MAX_EVD_QLEN);
}

DAT_RETURN dofi_evd_new(struct dofi_ia *ia, DAT_COUNT qlen, struct dofi_cno *cno,
			DAT_EVD_FLAGS flags, struct dofi_evd **out)
{
	struct dofi_evd *evd;
	int i;

	if (qlen > max_qlen(ia))
		return DOFI_NO_RESOURCE(TEVD);
	evd = dofi_obj_new(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, ia, evd_destroy);
	if (!evd)
		return DOFI_NO_RESOURCE(TEVD);
	evd->capacity = ring_capacity(qlen);
	evd->ring = dofi_block_get(ring_bytes(evd->capacity));
	if (!evd->ring) {
		dofi_obj_free(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, &evd->obj);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	evd->qlen = qlen;
	evd->flags = flags;
	evd->head = 0;
	evd->only_feed = NULL;
	dofi_evd_set_count(evd, 0);
	evd->enabled = true;
	evd->waitable = true;
	evd->overflowed = evd->dying = evd->is_async = false;
	evd->streams = 0;
	evd->notice = DAT_COMPLETION_DEFAULT_FLAG;
	evd->waiting = false;
	evd->spin = (struct dofi_spin){ 0 };
	memset(&evd->count_of, 0, sizeof(evd->count_of));
	memset(evd->base, 0, sizeof(evd->base));
	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		atomic_store(&evd->feed[i], NULL);
		evd->feed_users[i] = 0;
	}
	cno_attach(evd, cno);
	dofi_obj_publish(&evd->obj, DAT_HANDLE_TYPE_EVD);
	*out = evd;
	return DAT_SUCCESS;
}

/* The CNO that @handle names on @ia; NULL is none. False for anything else. */
static bool cno_of(struct dofi_ia *ia, DAT_CNO_HANDLE handle, struct dofi_cno **cno)
{
	*cno = handle ? dofi_cno_check(handle) : NULL;
	return !handle || (*cno && (*cno)->obj.ia == ia);
}

DAT_RETURN dofi_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	struct dofi_ia *ia = dofi_ia_check(ia_handle);
	struct dofi_cno *cno;
	struct dofi_evd *evd;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (qlen <= 0)
		return DOFI_BAD_ARG(2);
	if (!cno_of(ia, cno_handle, &cno))
		return DOFI_BAD_HANDLE(CNO);
	if (!flags || (flags & ~KNOWN_FLAGS))
		return DOFI_BAD_ARG(4);
	if (!evd_handle)
		return DOFI_BAD_ARG(5);
	ret = dofi_evd_new(ia, qlen, cno, flags, &evd);
	if (!ret)
		*evd_handle = evd;
	return ret;
}

DAT_RETURN dofi_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
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

/* A CNO that begins to watch an EVD with events in it is told of them. */
static void tell_of_backlog(struct dofi_evd *evd)
{
	uint32_t count = atomic_load(&evd->count);

	if (count)
		notify(evd, count);
}

DAT_RETURN dofi_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	struct dofi_cno *cno;

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (!cno_of(evd->obj.ia, cno_handle, &cno))
		return DOFI_BAD_HANDLE(CNO);
	dofi_mutex_lock(&evd->lock);
	cno_detach(evd, false);
	cno_attach(evd, cno);
	tell_of_backlog(evd);
	dofi_mutex_unlock(&evd->lock);
	return DAT_SUCCESS;
}

static DAT_RETURN set_enabled(DAT_EVD_HANDLE evd_handle, bool enabled)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	dofi_mutex_lock(&evd->lock);
	if (enabled && !evd->enabled) {
		evd->enabled = true;
		tell_of_backlog(evd);
	}
	evd->enabled = enabled;
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
	struct dofi_evd *evd = dofi_evd_check(evd_handle);

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	dofi_mutex_lock(&evd->lock);
	evd->waitable = waitable;
	/* it leaves though the EVD may be waitable again before it runs */
	evd->evicted |= !waitable;
	dofi_cond_broadcast(&evd->bell);
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

/* Moves the queue into a ring of another size. Needs the lock. */
static DAT_RETURN ring_replace(struct dofi_evd *evd, DAT_COUNT qlen)
{
	uint32_t capacity = ring_capacity(qlen);
	uint32_t count = atomic_load(&evd->count);
	struct dofi_event *ring = dofi_block_get(ring_bytes(capacity));
	uint32_t i;

	if (!ring)
		return DOFI_NO_RESOURCE(MEMORY);
	for (i = 0; i < count; i++)
		ring[i] = *ring_slot(evd, i);
	dofi_block_put(evd->ring, ring_bytes(evd->capacity));
	evd->ring = ring;
	evd->capacity = capacity;
	evd->head = 0;
	evd->qlen = qlen;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT qlen)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	DAT_RETURN ret;

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (qlen < 1 || qlen > max_qlen(evd->obj.ia))
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&evd->lock);
	if (evd->waiting && evd->threshold > qlen)
		ret = DOFI_BAD_STATE(EVD_WAITER);
	else if ((DAT_COUNT)atomic_load(&evd->count) > qlen)
		ret = DOFI_RET(DAT_INVALID_STATE, 0);
	else
		ret = ring_replace(evd, qlen);
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

DAT_RETURN dofi_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	DAT_RETURN ret = DAT_SUCCESS;
	uint32_t count;

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG))
		return DOFI_BAD_ARG(1);
	if (!event || event->event_number != DAT_SOFTWARE_EVENT)
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&evd->lock);
	count = atomic_load(&evd->count);
	if ((DAT_COUNT)count >= evd->qlen) {
		/* the poster is told at once, so nothing is lost unseen */
		ret = DOFI_RET(DAT_QUEUE_FULL, 0);
	} else {
		*ring_slot(evd, count) = (struct dofi_event){
			.number = event->event_number, .data = event->event_data,
		};
		dofi_evd_set_count(evd, count + 1);
		notify(evd, count + 1);
	}
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

DAT_RETURN dofi_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);

	if (!evd)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (dofi_obj_in_use(&evd->obj))
		return DOFI_BAD_STATE(EVD_IN_USE);
	if (evd->obj.ia->async_evd == evd && evd->obj.ia->async_evd_owned)
		return DOFI_BAD_STATE(EVD_IN_USE);
	evd_destroy(&evd->obj);
	return DAT_SUCCESS;
}
