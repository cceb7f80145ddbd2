/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: a bounded queue of events, its one waiter, and the CQs that feed it. */
#ifndef DOFI_OBJ_EVD_EVD_H
#define DOFI_OBJ_EVD_EVD_H

#include "base/cond.h"
#include "base/mutex.h"
#include "base/polling.h"
#include "fab/cq.h"
#include "obj/evd/cno.h"
#include "wq/queue.h"

/* If more CQs feed an EVD the progress thread serves the others. */
#define DOFI_EVD_FEEDS 4

/* A queued DAT_EVENT, without the handle and the additions of dofi_event_extend(). */
struct dofi_event {
	DAT_EVENT_NUMBER number;
	uint32_t immed;			/* immediate data; of an exchange: its pool index */
	uint32_t generation;		/* of unread: dofi_unread_generation() */
	struct dofi_unread *unread;	/* counts this completion; NULL for other events */
	DAT_EVENT_DATA data;
};

/* Fills in the extension's additions to its events, of which completions have the lowest number. */
void dofi_extension_fill(DAT_EVENT *event, uint32_t immed);

static inline void dofi_event_extend(DAT_EVENT *event, uint32_t immed)
{
#if DAT_VERSION_MAJOR >= 2
	if (__builtin_expect(event->event_number >= DAT_IB_DTO_EVENT, 0))
		dofi_extension_fill(event, immed);
#else
	(void)event, (void)immed;
#endif
}

/*
 * The event that a polling thread waits for: a completion for its EVD goes straight there, if the
 * EVD's queue is empty.
 */
struct dofi_sink {
	struct dofi_evd *evd;		/* NULL after event was written */
	DAT_EVENT *event;
};

/* @event was dequeued, or lost: its operation counts no more. */
static inline void dofi_event_read(const struct dofi_event *event)
{
	if (event->unread)
		dofi_unread_done(event->unread, event->generation);
}

#define DOFI_EVD_COUNTERS 10

struct dofi_evd {
	struct dofi_obj obj;
	DAT_EVD_FLAGS flags;
	/* The CQs to poll. PZs are never unmapped, so a stale one is harmless to poll. */
	_Atomic(struct dofi_cq *) feed[DOFI_EVD_FEEDS];

	/*
	 * The CQ that alone feeds the EVD, while no thread waits there and no CNO watches it: while
	 * no event is queued, a completion may go straight to a polling thread. Written by
	 * dofi_evd_route(), read without a lock.
	 */
	_Atomic(struct dofi_cq *) sole_cq;

	_Atomic int keepers;		/* references to the memory: of EPs, and 1 of the IA */

	/* under streams_lock: streams that deliver here, the ones with a flag; an IA's async EVD */
	int streams, unsignalled, solicited;
	bool is_async;
	/* the flags of all streams; 0: each event notifies. Written under streams_lock */
	_Atomic DAT_COMPLETION_FLAGS notice;

	struct dofi_mutex lock;		/* the fields below; a CNO's lock and block come after */
	struct dofi_cond wakeup;
	struct dofi_event *ring;
	uint32_t capacity;		/* a power of two, at least qlen */
	uint32_t head;
	_Atomic uint32_t count;		/* read without the lock to skip it when empty */
	DAT_COUNT qlen;
	int feed_users[DOFI_EVD_FEEDS];
	_Atomic(struct dofi_cno *) cno;	/* read without the lock to see whether there is one */
	struct dofi_cno_source at_cno;
	bool enabled, overflowed;
	_Atomic bool dying;		/* written under the lock */
	_Atomic bool waitable;		/* read without the lock */
	_Atomic bool waiting;		/* a thread is in dat_evd_wait; read without the lock */
	bool notified;			/* a notifying event came since the wait began */
	bool evicted;			/* the EVD became unwaitable since the wait began */
	DAT_COUNT threshold;		/* of the waiter */
	struct dofi_spin spin;		/* how long it polls before it sleeps */

	/* written by any thread, with dofi_count() */
	struct {
		uint64_t wait, blocked, notify;
		/* dequeues that took an event from the queue, straight from the fabric, or none */
		uint64_t found, straight, not_found;
		/* polls of the fabric, except polls that returned an event directly */
		uint64_t poll;
		uint64_t connection, completion; /* events queued */
	} count_of;
	uint64_t base[DOFI_EVD_COUNTERS]; /* at the last reset: obj/counters.c; under the lock */
};

DOFI_OBJ_HANDLES(evd, EVD, struct dofi_evd);

/*
 * An EP takes a reference to @evd, which is entered or which it has one to; false if the program
 * frees @evd now. Unlike dofi_obj_get(), keeps the memory beyond an abrupt close of the EVD's IA.
 */
static inline bool dofi_evd_keep(struct dofi_evd *evd)
{
	if (!dofi_obj_get(&evd->obj))
		return false;
	atomic_fetch_add(&evd->keepers, 1);
	return true;
}
void dofi_evd_release(struct dofi_evd *evd);

/*
 * Queues @event, which notifies. When the queue is full the event is lost, an asynchronous event
 * reports that, and -ENOSPC is returned. Any thread.
 */
int dofi_evd_push(struct dofi_evd *evd, const struct dofi_event *event) DOFI_NEEDS_NOT(evd->lock);
/* Queues @event. If the queue is full returns -ENOSPC, which counts as no overflow. Any thread. */
int dofi_evd_offer(struct dofi_evd *evd, const struct dofi_event *event) DOFI_NEEDS_NOT(evd->lock);

/* The queue is full, or the EVD has ended: an event is lost. */
void dofi_evd_lost(struct dofi_evd *evd) DOFI_NEEDS_NOT(evd->lock);

/* How many events are queued. A thread without the lock may read an older number. */
static inline uint32_t dofi_evd_pending(const struct dofi_evd *evd)
{
	/* pairs with the release of dofi_evd_set_count() */
	return atomic_load_explicit(&evd->count, memory_order_acquire);
}

/*
 * Whether an event for @evd, not NULL, goes to @sink, which may be NULL. If not, it must be queued.
 */
static inline bool dofi_sink_wants(const struct dofi_sink *sink, const struct dofi_evd *evd)
{
	return sink && sink->evd == evd && !dofi_evd_pending(evd);
}

/* Where the event is written that @sink wants. */
static inline DAT_EVENT *dofi_sink_take(struct dofi_sink *sink)
{
	sink->evd = NULL;
	return sink->event;
}

/* Moves the oldest event to the consumer. Needs the lock and an event. */
void dofi_evd_take(struct dofi_evd *evd, DAT_EVENT *event) DOFI_NEEDS(evd->lock);

/* Sets sole_cq. Call after a change of the feeds, the CNO or the waiter. Needs the lock. */
void dofi_evd_route(struct dofi_evd *evd) DOFI_NEEDS(evd->lock);

/* Sets the number of queued events. */
static inline void dofi_evd_set_count(struct dofi_evd *evd, uint32_t count) DOFI_NEEDS(evd->lock)
{
	dofi_mutex_assert_held(&evd->lock);
	/* releases the queued events */
	atomic_store_explicit(&evd->count, count, memory_order_release);
}

/* Returns slot @i of the queue, counted from the oldest event. */
static inline struct dofi_event *dofi_evd_slot(const struct dofi_evd *evd, uint32_t i)
	DOFI_NEEDS(evd->lock)
{
	return &evd->ring[(evd->head + i) & (evd->capacity - 1)];
}

/*
 * Returns the slot for the next event, which dofi_evd_append() queues; NULL if the queue is full or
 * the EVD has ended. Needs the lock.
 */
static inline struct dofi_event *dofi_evd_reserve(const struct dofi_evd *evd) DOFI_NEEDS(evd->lock)
{
	const uint32_t count = atomic_load_explicit(&evd->count, memory_order_relaxed);

	if (__builtin_expect((DAT_COUNT)count >= evd->qlen || evd->dying, 0))
		return NULL;
	return dofi_evd_slot(evd, count);
}

/* Wakes the waiter, or triggers the CNO, when @count events are queued. */
void dofi_evd_notify(struct dofi_evd *evd, uint32_t count) DOFI_NEEDS(evd->lock);

/* Queues the event in the reserved slot; without @notify it wakes no waiter for one event. */
static inline void dofi_evd_append(struct dofi_evd *evd, bool notify) DOFI_NEEDS(evd->lock)
{
	const uint32_t count = atomic_load_explicit(&evd->count, memory_order_relaxed) + 1;

	dofi_evd_set_count(evd, count);
	if (__builtin_expect(evd->waiting || evd->cno, 0) &&
	    (notify || (evd->waiting && evd->threshold > 1)))
		dofi_evd_notify(evd, count);
}

/* Queues an asynchronous event of @ia about @handle; dofi_async_error() also logs it. */
void dofi_async_event(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason);
void dofi_async_error(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason);
/*
 * dofi_progress_ops.failed of the IA with this progress thread: from now on connections may end
 * without an event, and operations may not complete.
 */
void dofi_async_ia_failed(struct dofi_progress *progress, int err);

/*
 * A stream of events, and when its events wake a waiter or trigger a CNO: always
 * (DAT_COMPLETION_DEFAULT_FLAG, of all that are not completions), as the posted flag says
 * (..._UNSIGNALLED_FLAG), or as the peer says (..._SOLICITED_WAIT_FLAG, of receives).
 */
struct dofi_stream {
	struct dofi_evd *evd;		/* NULL: none */
	DAT_COMPLETION_FLAGS notice;
};

/*
 * Makes @evd an IA's EVD of asynchronous events. Returns false without side effects if completions
 * there do not all notify and its IA is strict.
 */
bool dofi_evd_take_async(struct dofi_evd *evd);

/*
 * Replaces the @n streams of @from by @to's. Returns false without side effects if streams
 * of one EVD of a strict IA would not notify alike.
 */
bool dofi_evd_streams_swap(const struct dofi_stream *from, const struct dofi_stream *to, int n);

/* An endpoint starts or stops delivering @cq's completions to @evd. */
void dofi_evd_feed_get(struct dofi_evd *evd, struct dofi_cq *cq) DOFI_NEEDS_NOT(evd->lock);
void dofi_evd_feed_put(struct dofi_evd *evd, struct dofi_cq *cq) DOFI_NEEDS_NOT(evd->lock);

/* The CQ that alone feeds @evd, or NULL. */
struct dofi_cq *dofi_evd_only_cq(const struct dofi_evd *evd) DOFI_NEEDS(evd->lock);

/* Calls @fn for each CQ that feeds @evd. */
static inline void dofi_evd_each_feed(struct dofi_evd *evd, void (*fn)(struct dofi_cq *cq))
	DOFI_NEEDS(evd->lock)
{
	int i;

	dofi_mutex_assert_held(&evd->lock);
	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (evd->feed_users[i])
			fn(atomic_load_explicit(&evd->feed[i], memory_order_relaxed));
}

/* Drops queued connection events of the endpoint @ep, which is being freed. */
void dofi_evd_purge_ep(struct dofi_evd *evd, DAT_EP_HANDLE ep) DOFI_NEEDS_NOT(evd->lock);

/* The longest queue of an EVD of @ia. */
DAT_COUNT dofi_evd_max_qlen(const struct dofi_ia *ia);

/* Makes an EVD, as dat_evd_create does. */
DAT_RETURN dofi_evd_new(struct dofi_ia *ia, DAT_COUNT qlen, struct dofi_cno *cno,
			DAT_EVD_FLAGS flags, struct dofi_evd **evd);

DAT_RETURN dofi_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dofi_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param);
DAT_RETURN dofi_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle);
DAT_RETURN dofi_evd_enable(DAT_EVD_HANDLE evd_handle);
DAT_RETURN dofi_evd_disable(DAT_EVD_HANDLE evd_handle);
DAT_RETURN dofi_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);
DAT_RETURN dofi_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);
DAT_RETURN dofi_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT qlen);
DAT_RETURN dofi_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);
DAT_RETURN dofi_evd_free(DAT_EVD_HANDLE evd_handle);

/* evd_queue.c: the queue, for evd.c. */

/* An empty queue for @qlen events, in @evd that is not published. 0 or -ENOMEM. */
int dofi_evd_queue_open(struct dofi_evd *evd, DAT_COUNT qlen) DOFI_NEEDS(evd->lock);
/*
 * Ends the queue of @evd, which is not a valid handle any more, with @count events left in it. No
 * lock held.
 */
void dofi_evd_queue_close(struct dofi_evd *evd, uint32_t count) DOFI_NEEDS_NOT(evd->lock);

/* evd_wait.c: dat_evd_wait(). */

DAT_RETURN dofi_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);

/* The slow path of dat_evd_dequeue(); dofi_evd_dequeue() in obj/ep/fast.c is the fast one. */

/* Dequeues an event from the queue of @evd, under its lock. Reads no CQ. */
DAT_RETURN dofi_evd_take_queued(struct dofi_evd *evd, DAT_EVENT *event);

/* dofi_evd_take_queued(), without the lock if the queue is empty and no thread waits. */
static inline DAT_RETURN dofi_evd_dequeue_queued(struct dofi_evd *evd, DAT_EVENT *event)
{
	if (dofi_evd_pending(evd) || evd->waiting)
		return dofi_evd_take_queued(evd, event);
	dofi_count(&evd->count_of.not_found);
	return DAT_QUEUE_EMPTY;
}

/* Dequeues a queued event, or reads each CQ that feeds the EVD until there is an event for it. */
DAT_RETURN dofi_evd_dequeue_feeds(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

#endif
