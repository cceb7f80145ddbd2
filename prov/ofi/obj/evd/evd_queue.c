/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: its queue, and dat_evd_dequeue; obj/ep/fast.c has its fast path. */

#include "obj/evd/evd.h"

#include "base/log.h"
#include "obj/exchange.h"
#include "obj/ia.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static void evd_ctor(void *obj)
{
	struct dofi_evd *evd = obj;

	dofi_cond_init(&evd->wakeup);
}

struct dofi_pool dofi_evd_pool = DOFI_POOL_INIT("evd", struct dofi_evd, evd_ctor);

static size_t ring_bytes(uint32_t capacity)
{
	return capacity * sizeof(struct dofi_event);
}

static uint32_t ring_capacity(DAT_COUNT qlen)
{
	return qlen < 2 ? 2 : 1u << (32 - __builtin_clz(qlen - 1));
}

/* Queueing events */

void dofi_evd_notify(struct dofi_evd *evd, uint32_t count)
{
	dofi_mutex_assert_held(&evd->lock);
	if (evd->waiting) {
		evd->notified = true;
		if ((DAT_COUNT)count >= evd->threshold) {
			dofi_count(&evd->count_of.notify);
			dofi_cond_broadcast(&evd->wakeup);
		}
	} else if (evd->cno && evd->enabled) {
		dofi_cno_raise(evd->cno, &evd->at_cno);
	}
}

static bool is_request(DAT_EVENT_NUMBER number)
{
#if DAT_VERSION_MAJOR >= 2
	if (number == DAT_IB_UD_CONNECTION_REQUEST_EVENT)
		return true;
#endif
	return number == DAT_CONNECTION_REQUEST_EVENT;
}

/* Whether @number is the end of a connection, or of an attempt or exchange. */
static bool is_of_connection(DAT_EVENT_NUMBER number)
{
#if DAT_VERSION_MAJOR >= 2
	if (number >= DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED &&
	    number <= DAT_IB_UD_CONNECTION_ERROR_EVENT)
		return true;
#endif
	return number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	       number <= DAT_CONNECTION_EVENT_UNREACHABLE;
}

int dofi_evd_offer(struct dofi_evd *evd, const struct dofi_event *event)
{
	struct dofi_event *slot;

	dofi_mutex_lock(&evd->lock);
	slot = dofi_evd_reserve(evd);
	if (slot) {
		*slot = *event;
		if (is_request(event->number) || is_of_connection(event->number))
			dofi_count(&evd->count_of.connection);
		else if (event->number != DAT_SOFTWARE_EVENT)
			dofi_count(&evd->count_of.completion);
		dofi_evd_append(evd, true);
	}
	dofi_mutex_unlock(&evd->lock);
	return slot ? 0 : -ENOSPC;
}

void dofi_evd_lost(struct dofi_evd *evd)
{
	bool first;

	dofi_mutex_lock(&evd->lock);
	first = !evd->overflowed && !evd->dying;
	evd->overflowed = true;
	dofi_mutex_unlock(&evd->lock);
	if (first)
		dofi_async_error(evd->obj.ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd,
				 DAT_EVD_OVERFLOW_ERROR);
}

int dofi_evd_push(struct dofi_evd *evd, const struct dofi_event *event)
{
	const int ret = dofi_evd_offer(evd, event);

	if (ret)
		dofi_evd_lost(evd);
	return ret;
}

DAT_RETURN dofi_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct dofi_evd *evd = dofi_evd_check(evd_handle);
	DAT_RETURN ret = DAT_SUCCESS;
	uint32_t count;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	dofi_mutex_lock(&evd->lock);
	count = atomic_load(&evd->count);
	if (!dofi_obj_is_live(&evd->obj, DAT_HANDLE_TYPE_EVD)) {
		ret = DOFI_INVALID_HANDLE;
	} else if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG)) {
		ret = DOFI_BAD_ARG(1);
	} else if (!event || event->event_number != DAT_SOFTWARE_EVENT) {
		ret = DOFI_BAD_ARG(2);
	} else if ((DAT_COUNT)count >= evd->qlen) {
		/* the caller gets the error, so no event is lost unseen */
		ret = DOFI_RET(DAT_QUEUE_FULL, 0);
	} else {
		*dofi_evd_slot(evd, count) = (struct dofi_event){
			.number = event->event_number, .data = event->event_data,
		};
		dofi_evd_set_count(evd, count + 1);
		dofi_evd_notify(evd, count + 1);
	}
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

/* Events leave */

#if DAT_VERSION_MAJOR >= 2
void dofi_extension_fill(DAT_EVENT *event, uint32_t immed)
{
	static const DAT_IB_EXT_TYPE type[] = {
		[DAT_IB_DTO_RDMA_WRITE_IMMED] = DAT_IB_RDMA_WRITE_IMMED,
		[DAT_IB_DTO_RECV_IMMED] = DAT_IB_RDMA_WRITE_IMMED_DATA,
		[DAT_IB_DTO_FETCH_ADD] = DAT_IB_FETCH_AND_ADD,
		[DAT_IB_DTO_CMP_SWAP] = DAT_IB_CMP_AND_SWAP,
		[DAT_IB_DTO_RECV_MSG_IMMED] = DAT_IB_RECV_IMMED_DATA,
		[DAT_IB_DTO_SEND_UD] = DAT_IB_UD_SEND,
		[DAT_IB_DTO_RECV_UD] = DAT_IB_UD_RECV,
		[DAT_IB_DTO_RECV_UD_IMMED] = DAT_IB_UD_RECV,
	};
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event->event_data.dto_completion_event_data;
	const DAT_IB_STATUS status = d->status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	char *to = (char *)event->event_extension_data;

	if (event->event_number != DAT_IB_DTO_EVENT) {
		dofi_exchange_extend(event, immed);
		return;
	}
	/* a copy of the whole structure would wait for the stores of its members */
	memset(to, 0, sizeof(DAT_IB_EXTENSION_EVENT_DATA));
	memcpy(to + offsetof(DAT_IB_EXTENSION_EVENT_DATA, type), &type[d->operation],
	       sizeof(type[0]));
	memcpy(to + offsetof(DAT_IB_EXTENSION_EVENT_DATA, status), &status, sizeof(status));
	memcpy(to + offsetof(DAT_IB_EXTENSION_EVENT_DATA, val), &immed, sizeof(immed));
}
#endif

void dofi_evd_take(struct dofi_evd *evd, DAT_EVENT *event)
{
	const struct dofi_event *e = dofi_evd_slot(evd, 0);
	const uint32_t left = dofi_evd_pending(evd) - 1;
	struct dofi_cq *only = atomic_load_explicit(&evd->sole_cq, memory_order_relaxed);

	dofi_mutex_assert_held(&evd->lock);
	event->event_number = e->number;
	event->evd_handle = evd;
	event->event_data = e->data;
	dofi_event_extend(event, e->immed);
	dofi_event_read(e);
	/* an empty queue restarts at its first slot, so that few events use little memory */
	evd->head = left ? evd->head + 1 : 0;
	evd->overflowed = false;
	if (only)
		dofi_cq_took(only);
	else
		dofi_evd_each_feed(evd, dofi_cq_took);
	dofi_evd_set_count(evd, left);
	if (__builtin_expect(evd->cno != NULL, 0))
		dofi_cno_update(evd->cno, &evd->at_cno, left && evd->enabled);
}

DAT_RETURN dofi_evd_take_queued(struct dofi_evd *evd, DAT_EVENT *event)
{
	DAT_RETURN ret = DAT_QUEUE_EMPTY; /* no error bit: programs compare with == */

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

DAT_RETURN dofi_evd_dequeue_feeds(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
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
	if (sink.evd) {
		dofi_count(&evd->count_of.poll);
		return dofi_evd_dequeue_queued(evd, event);
	}
	dofi_count(&evd->count_of.straight);
	/* the event bypassed the queue: the CNO may have others to report */
	if (evd->cno) {
		dofi_mutex_lock(&evd->lock);
		if (evd->cno)
			dofi_cno_update(evd->cno, &evd->at_cno,
					dofi_evd_pending(evd) && evd->enabled);
		dofi_mutex_unlock(&evd->lock);
	}
	return DAT_SUCCESS;
}

void dofi_evd_purge_ep(struct dofi_evd *evd, DAT_EP_HANDLE ep)
{
	uint32_t i, kept = 0;

	dofi_mutex_lock(&evd->lock);
	for (i = 0; i < evd->count; i++) {
		const struct dofi_event *e = dofi_evd_slot(evd, i);

		if (!is_of_connection(e->number) || e->data.connect_event_data.ep_handle != ep)
			*dofi_evd_slot(evd, kept++) = *e;
	}
	dofi_evd_set_count(evd, kept);
	if (evd->cno && !kept)
		dofi_cno_update(evd->cno, &evd->at_cno, false);
	dofi_mutex_unlock(&evd->lock);
}

/* Asynchronous events */

void dofi_async_event(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason)
{
	struct dofi_event event = { .number = number };
	/* entered, because another IA, which may own it, does not wait for this one to close */
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(ia->async_evd);

	dofi_count_exactly(&ia->count.async_error);
	event.data.asynch_error_event_data.dat_handle = handle;
	event.data.asynch_error_event_data.reason = reason;
	/* the overflow of the asynchronous EVD itself cannot be reported */
	if (evd && handle != evd)
		dofi_evd_push(evd, &event);
}

void dofi_async_error(struct dofi_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		      DAT_COUNT reason)
{
	dofi_obj_log(&ia->obj, DOFI_WARN, DOFI_EVD, "asynchronous error %#x, reason %d", number,
		     reason);
	dofi_async_event(ia, number, handle, reason);
}

void dofi_async_ia_failed(struct dofi_progress *progress, int err)
{
	struct dofi_ia *ia = dofi_ia_of(progress);

	(void)err;
	dofi_async_error(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, dofi_ia_export(ia),
			 DAT_IA_CATASTROPHIC_ERROR);
}

/* Beginning and end */

int dofi_evd_queue_open(struct dofi_evd *evd, DAT_COUNT qlen)
{
	dofi_mutex_assert_held(&evd->lock);
	evd->capacity = ring_capacity(qlen);
	evd->ring = dofi_block_get(ring_bytes(evd->capacity));
	if (!evd->ring)
		return -ENOMEM;
	evd->qlen = qlen;
	evd->head = 0;
	atomic_store_explicit(&evd->sole_cq, NULL, memory_order_relaxed);
	evd->overflowed = false;
	dofi_evd_set_count(evd, 0);
	return 0;
}

DAT_RETURN dofi_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT qlen)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(evd_handle);
	const uint32_t capacity = ring_capacity(qlen);
	struct dofi_event *ring = NULL;
	DAT_RETURN ret = DAT_SUCCESS;
	uint32_t count, i;

	if (!evd)
		return DOFI_INVALID_HANDLE;
	if (qlen < 1 || qlen > dofi_evd_max_qlen(evd->obj.ia))
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&evd->lock);
	count = atomic_load(&evd->count);
	if (evd->waiting && evd->threshold > qlen)
		ret = DOFI_BAD_STATE(EVD_WAITER);
	else if ((DAT_COUNT)count > qlen)
		ret = DOFI_RET(DAT_INVALID_STATE, 0);
	else
		ring = dofi_block_get(ring_bytes(capacity));
	if (!ring && !ret)
		ret = DOFI_NO_RESOURCE(MEMORY);
	if (!ret) {
		for (i = 0; i < count; i++)
			ring[i] = *dofi_evd_slot(evd, i);
		dofi_block_put(evd->ring, ring_bytes(evd->capacity));
		evd->ring = ring;
		evd->capacity = capacity;
		evd->head = 0;
		evd->qlen = qlen;
	}
	dofi_mutex_unlock(&evd->lock);
	return ret;
}

/*
 * The EVD is closing and no other thread has it, so this takes no lock. Its completions count as
 * read. Requests that the program can no longer answer are rejected, so that their senders do not
 * wait; the events may name freed CRs, because an IA frees CRs first.
 */
void dofi_evd_queue_close(struct dofi_evd *evd, uint32_t count) DOFI_UNCHECKED_LOCKS
{
	uint32_t i;

	for (i = 0; i < count; i++)
		dofi_event_read(dofi_evd_slot(evd, i));
	for (i = 0; i < count; i++) {
		const struct dofi_event *event = dofi_evd_slot(evd, i);
		struct dofi_obj *cr = event->data.cr_arrival_event_data.cr_handle;

		if (is_request(event->number) && cr && dofi_obj_is_live(cr, DAT_HANDLE_TYPE_CR) &&
		    cr->ia == evd->obj.ia)
			dofi_obj_destroy(cr);
	}
	dofi_block_put(evd->ring, ring_bytes(evd->capacity));
}
