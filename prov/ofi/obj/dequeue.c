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

/* What a look at an EVD's only CQ came to. */
enum look {
	NOTHING,		/* no event, but one that is queued now, perhaps */
	TAKEN,
};

/* From where a read has brought @n completions, or an error. */
static __attribute__((noinline)) enum look look_on(struct dofi_evd *evd, DAT_EVENT *event,
						   struct dofi_cq *cq, ssize_t n)
{
	struct dofi_sink sink = { .evd = evd, .event = event };

	dofi_cq_go_on(cq, n, &sink);
	return sink.evd ? NOTHING : TAKEN;
}

/* A read that brought none to be taken: mostly none at all, to a program that polls. */
static DOFI_INTO_CALLER enum look look_in_vain(struct dofi_evd *evd, DAT_EVENT *event,
					       struct dofi_cq *cq, ssize_t n)
{
	if (__builtin_expect(n != -FI_EAGAIN || dofi_cq_wants_sweep(cq), 0))
		return look_on(evd, event, cq, n);
	dofi_cq_leave(cq);
	return NOTHING;
}

/* From where a completion was taken that is not a plain operation's, or for another EVD. */
static __attribute__((noinline)) enum look look_past(struct dofi_evd *evd, DAT_EVENT *event,
						     struct dofi_cq *cq,
						     const struct fi_cq_data_entry *entry)
{
	struct dofi_sink sink = { .evd = evd, .event = event };

	dofi_cq_go_on_with(cq, entry, &sink);
	if (sink.evd)
		dofi_cq_poll(cq, &sink);
	return sink.evd ? NOTHING : TAKEN;
}

/* Hands over the first completion that an earlier read has left. Here the CQ is not serial. */
static __attribute__((noinline)) enum look look_at_left(struct dofi_evd *evd, DAT_EVENT *event,
							struct dofi_cq *cq)
{
	const struct fi_cq_data_entry *entry = dofi_cq_take_left(cq);

	if (!dofi_plain_take(entry, cq, evd, event))
		return look_past(evd, event, cq, entry);
	dofi_cq_leave(cq);
	return TAKEN;
}

/* As look_past(), with what was read last; a function, as the fast path need not keep the address of that. */
static __attribute__((noinline)) enum look look_past_read(struct dofi_evd *evd, DAT_EVENT *event,
							  struct dofi_cq *cq)
{
	return look_past(evd, event, cq, cq->entry);
}

/* A read of a serial CQ: the access lock covers its endpoints' plain operations, too. */
static DOFI_INTO_CALLER enum look look_serial(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq,
					      struct fid_cq *fid)
{
	const struct fi_cq_data_entry *entry;
	ssize_t n = 1;
	bool taken;

	dofi_mutex_lock(&cq->access);
	if (__builtin_expect(cq->left, 0)) {
		entry = dofi_cq_take_left(cq);
	} else {
		n = dofi_cq_sort_out(cq, fi_cq_read(fid, cq->entry, cq->most));
		entry = cq->entry;
	}
	taken = n > 0 && dofi_plain_take_serial(entry, cq, evd, event);
	dofi_mutex_unlock(&cq->access);
	if (n < 1)
		return look_in_vain(evd, event, cq, n);
	if (__builtin_expect(!taken, 0))
		return look_past(evd, event, cq, entry);
	dofi_cq_leave(cq);
	return TAKEN;
}

/* A read of a CQ that is not serial. Each look is entered with the CQ lock, and leaves it. */
static DOFI_INTO_CALLER enum look look_plain(struct dofi_evd *evd, DAT_EVENT *event, struct dofi_cq *cq,
					     struct fid_cq *fid)
{
	ssize_t n;

	if (__builtin_expect(cq->left, 0))
		return look_at_left(evd, event, cq);
	n = dofi_cq_sort_out(cq, fi_cq_read(fid, cq->entry, cq->most));
	if (n < 1)
		return look_in_vain(evd, event, cq, n);
	if (__builtin_expect(!dofi_plain_take(cq->entry, cq, evd, event), 0))
		return look_past_read(evd, event, cq);
	dofi_cq_leave(cq);
	return TAKEN;
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
	struct fid_cq *fid;

	if (!cq)
		return false;
	fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);
	if (!fid)
		return look_in_vain(evd, event, cq, dofi_cq_read(cq)) == TAKEN;
	return (cq->serial ? look_serial(evd, event, cq, fid) : look_plain(evd, event, cq, fid)) == TAKEN;
}

/* What dat_evd_dequeue() returns after a look at the EVD's only CQ. */
static DOFI_INTO_CALLER DAT_RETURN looked(struct dofi_evd *evd, DAT_EVENT *event, enum look found)
{
	if (__builtin_expect(found == TAKEN, 1)) {
		dofi_count(&evd->count_of.straight);
		return DAT_SUCCESS;
	}
	dofi_count(&evd->count_of.poll);
	return dequeue_queued(evd, event);
}

static __attribute__((noinline)) DAT_RETURN dequeue_otherwise(struct dofi_evd *evd, DAT_EVENT *event,
							      struct dofi_cq *cq)
{
	return looked(evd, event, look_in_vain(evd, event, cq, dofi_cq_read(cq)));
}

static __attribute__((noinline)) DAT_RETURN dequeue_serial(struct dofi_evd *evd, DAT_EVENT *event,
							   struct dofi_cq *cq, struct fid_cq *fid)
{
	return looked(evd, event, look_serial(evd, event, cq, fid));
}

static __attribute__((noinline)) DAT_RETURN dequeue_plain(struct dofi_evd *evd, DAT_EVENT *event,
							  struct dofi_cq *cq, struct fid_cq *fid)
{
	return looked(evd, event, look_plain(evd, event, cq, fid));
}

/* Each kind of CQ has a function of its own, so that none saves registers for another. */
DAT_RETURN dofi_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct fid_cq *fid;
	struct dofi_cq *cq;

	if (__builtin_expect(!event || !dofi_obj_among_first(&dofi_evd_pool, DAT_HANDLE_TYPE_EVD, evd_handle), 0))
		return dequeue(evd_handle, event);
	cq = feed_try(evd_handle);
	if (__builtin_expect(!cq, 0))
		return dequeue(evd_handle, event);
	fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);
	if (!fid)
		return dequeue_otherwise(evd_handle, event, cq);
	return cq->serial ? dequeue_serial(evd_handle, event, cq, fid) :
			    dequeue_plain(evd_handle, event, cq, fid);
}
