/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: a bounded queue of events, its one waiter, and the CQs that feed it. */
#ifndef DOFI_OBJ_EVD_H
#define DOFI_OBJ_EVD_H

#include "base/cond.h"
#include "base/mutex.h"
#include "base/spin.h"
#include "fab/cq.h"
#include "obj/cno.h"
#include "obj/unread.h"

/* More CQs than this feeding one EVD are served by the progress thread alone. */
#define DOFI_EVD_FEEDS 4

/* What is queued of a DAT_EVENT: the handle is known, and dofi_event_extend() adds the rest. */
struct dofi_event {
	DAT_EVENT_NUMBER number;
	uint32_t immed;			/* immediate data of the extension's completions */
	uint32_t life;			/* of unread */
	struct dofi_unread *unread;	/* of a completion: where its place is counted; NULL for other events */
	DAT_EVENT_DATA data;
};

/* What the extension adds to a completion of its own follows from that, but for @immed. */
#if DAT_VERSION_MAJOR >= 2
void dofi_completion_extend(DAT_EVENT *event, uint32_t immed);

static inline void dofi_event_extend(DAT_EVENT *event, uint32_t immed)
{
	if (__builtin_expect(event->event_number == (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT, 0))
		dofi_completion_extend(event, immed);
}
#else
static inline void dofi_event_extend(DAT_EVENT *event, uint32_t immed)
{
	(void)event;
	(void)immed;
}
#endif

/*
 * The event of a thread that polls: a completion for its EVD goes straight there
 * instead of through the queue, if that is empty.
 */
struct dofi_sink {
	struct dofi_evd *evd;		/* NULL once it has its event */
	DAT_EVENT *event;
};

/* @event is the consumer's, or lost: the place of its operation is free. */
static inline void dofi_event_read(const struct dofi_event *event)
{
	if (event->unread)
		dofi_unread_done(event->unread, event->life);
}

#define DOFI_EVD_COUNTERS 10

struct dofi_evd {
	struct dofi_obj obj;
	DAT_EVD_FLAGS flags;
	/* The CQs to poll. PZs are never unmapped, so a stale one is harmless to poll. */
	_Atomic(struct dofi_cq *) feed[DOFI_EVD_FEEDS];

	/*
	 * The only one, where nobody but who polls need be told of its events, and while none is
	 * queued: a completion may go straight to the consumer. Written by dofi_evd_route() and
	 * dofi_evd_set_count(), read freely.
	 */
	_Atomic(struct dofi_cq *) straight_feed;

	int streams;			/* what delivers here; under a lock of evd.c's, as are these two */
	bool is_async;			/* it was given to an IA for asynchronous events */
	_Atomic DAT_COMPLETION_FLAGS notice;	/* how all of it notifies, see below; read freely */

	struct dofi_mutex lock;		/* the fields below; only a CNO's lock is taken under it */
	struct dofi_cond bell;
	struct dofi_event *ring;
	uint32_t capacity;		/* a power of two, at least qlen */
	uint32_t head;
	_Atomic uint32_t count;		/* read without the lock to skip it when empty */
	struct dofi_cq *only_feed;	/* straight_feed, whatever is queued */
	DAT_COUNT qlen;
	int feed_users[DOFI_EVD_FEEDS];
	_Atomic(struct dofi_cno *) cno;	/* read without the lock to see whether there is one */
	struct dofi_cno_source at_cno;
	bool enabled, overflowed, dying;
	_Atomic bool waitable;		/* read without the lock, too */
	_Atomic bool waiting;		/* a thread is in dat_evd_wait; read without the lock */
	bool notified;			/* a notifying event came since it began */
	bool evicted;			/* the EVD became unwaitable since it began */
	DAT_COUNT threshold;		/* of the waiter */
	struct dofi_spin spin;		/* how long it polls before it sleeps */

	/* written by any thread, with dofi_count() */
	struct {
		uint64_t wait, blocked, notify;
		/* of dequeues: events from the queue, straight from the fabric, and none */
		uint64_t found, straight, not_found;
		uint64_t poll;		/* looks at the fabric, but for those whose event came straight */
		uint64_t connection, completion; /* events queued */
	} count_of;
	uint64_t base[DOFI_EVD_COUNTERS]; /* see counters.c; under the lock */
};

static inline struct dofi_evd *dofi_evd_check(DAT_EVD_HANDLE handle)
{
	return dofi_obj_check(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, handle);
}

/*
 * Queues @event. @notify is false for completions that wake nobody. When the queue
 * is full the event is lost, -ENOSPC returned, and the async EVD told. Any thread.
 */
int dofi_evd_push(struct dofi_evd *evd, const struct dofi_event *event, bool notify);
/* Queues @event, unless the queue is full: then -ENOSPC is returned, and that is no overflow. Any thread. */
int dofi_evd_offer(struct dofi_evd *evd, const struct dofi_event *event);

/* How many events are queued: at least what the lock's holder has put there. */
static inline uint32_t dofi_evd_pending(const struct dofi_evd *evd)
{
	/* pairs with the release of dofi_evd_set_count() */
	return atomic_load_explicit(&evd->count, memory_order_acquire);
}

/* Where an event for @evd may be written at once; NULL if it must be queued. */
static inline DAT_EVENT *dofi_sink_take(struct dofi_sink *sink, struct dofi_evd *evd)
{
	if (!sink || sink->evd != evd || dofi_evd_pending(evd))
		return NULL;
	sink->evd = NULL;
	return sink->event;
}

/*
 * Where nothing is queued, nobody waits, and one CQ alone feeds it: reads the next completion straight
 * into @event. False if there is none, or it is to be had otherwise only. No lock.
 */
bool dofi_evd_look(struct dofi_evd *evd, DAT_EVENT *event);

/* Moves the oldest event to the consumer. Needs the lock and an event. */
void dofi_evd_take(struct dofi_evd *evd, DAT_EVENT *event);

/* Works out only_feed, after the feeds, the CNO or the waiter changed. Needs the lock. */
void dofi_evd_route(struct dofi_evd *evd);

/* So many events are queued from now on. Needs the lock. */
static inline void dofi_evd_set_count(struct dofi_evd *evd, uint32_t count)
{
	atomic_store_explicit(&evd->straight_feed, count ? NULL : evd->only_feed,
			      memory_order_relaxed);
	/* releases what is written to the queue */
	atomic_store_explicit(&evd->count, count, memory_order_release);
}

/* Queues an asynchronous event of @ia about @handle; and one that is worth a warning. */
void dofi_async_event(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason);
void dofi_async_error(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason);
/*
 * Of the IA whose progress thread this is, as dofi_progress_ops.failed: connections may end without
 * an event from here on, and operations not complete.
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
 * An IA's asynchronous events come to @evd from now on. False, and nothing has changed, if completions
 * there do not all notify.
 */
bool dofi_evd_take_async(struct dofi_evd *evd);

/*
 * The @n streams of @to deliver from now on in place of those of @from. False, and nothing has
 * changed, if streams of one EVD would not notify alike.
 */
bool dofi_evd_streams_swap(const struct dofi_stream *from, const struct dofi_stream *to, int n);

/* An endpoint begins or ends to deliver what @cq completes to @evd. */
void dofi_evd_feed_get(struct dofi_evd *evd, struct dofi_cq *cq);
void dofi_evd_feed_put(struct dofi_evd *evd, struct dofi_cq *cq);

/* Calls @fn for each CQ that feeds @evd. Needs the lock. */
static inline void dofi_evd_each_feed(struct dofi_evd *evd, void (*fn)(struct dofi_cq *cq))
{
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (evd->feed_users[i])
			fn(atomic_load_explicit(&evd->feed[i], memory_order_relaxed));
}

/* Drops queued connection events of the endpoint @ep, which is going away. */
void dofi_evd_purge_ep(struct dofi_evd *evd, DAT_EP_HANDLE ep);

/* A new EVD, as dat_evd_create makes it. */
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

DAT_RETURN dofi_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);
DAT_RETURN dofi_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

#endif
