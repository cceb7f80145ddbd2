/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: the CQs that feed it, and the streams of events that go to it. */

#include "obj/evd.h"

#include "base/log.h"
#include "obj/ia.h"

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

void dofi_evd_route(struct dofi_evd *evd)
{
	struct dofi_cq *only = NULL;
	int i, n = 0;

	dofi_mutex_assert_held(&evd->lock);
	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		if (!evd->feed_users[i])
			continue;
		only = atomic_load(&evd->feed[i]);
		n++;
	}
	if (evd->cno || evd->waiting)
		n = 0;
	only = n == 1 ? only : NULL;
	atomic_store_explicit(&evd->only_feed, only, memory_order_relaxed);
	evd->direct_feed = only && only->ops && only->ops->poll ? NULL : only;
	dofi_evd_set_count(evd, atomic_load(&evd->count));
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
		dofi_cq_sleep_end(cq);	/* the feed came when the table was full */
	} else if (!--evd->feed_users[i]) {
		atomic_store(&evd->feed[i], NULL);
		dofi_evd_route(evd);
		if (evd->cno)
			dofi_cq_sleep_end(cq);
	}
	dofi_mutex_unlock(&evd->lock);
}

/* Streams */

/*
 * Few streams come and go at a time, so one lock for all is enough. No other lock is taken under
 * it.
 */
static struct dofi_mutex streams_lock;

/*
 * Returns what keeps the stream from its EVD, in words, or NULL. Software and asynchronous events
 * have no object that could say how they notify. Needs the lock.
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
	if (evd->streams && evd->notice != s->notice)
		return "events that notify differently";
	return NULL;
}

/* Counts a stream that joins its EVD (@by is 1) or leaves (-1). Needs the lock. */
static void stream_count(const struct dofi_stream *s, int by) DOFI_NEEDS(streams_lock)
{
	struct dofi_evd *evd = s->evd;

	if (!evd)
		return;
	evd->streams += by;
	if (s->notice == DAT_COMPLETION_UNSIGNALLED_FLAG)
		evd->unsignalled += by;
	else if (s->notice == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		evd->solicited += by;
	evd->notice = (DAT_COMPLETION_FLAGS)(
		(evd->unsignalled ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0) |
		(evd->solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0));
}

/* How many of @n have joined: all, or those before one that does not fit. Needs the lock. */
static int streams_join(const struct dofi_stream *s, int n) DOFI_NEEDS(streams_lock)
{
	int i;

	for (i = 0; i < n && !stream_misfit(&s[i]); i++)
		stream_count(&s[i], 1);
	return i;
}

/* Needs the lock. */
static void streams_leave(const struct dofi_stream *s, int n) DOFI_NEEDS(streams_lock)
{
	while (n--)
		stream_count(&s[n], -1);
}

static void misfit_log(const struct dofi_evd *evd, DAT_COMPLETION_FLAGS flags, const char *misfit)
{
	dofi_log(DOFI_WARN, DOFI_EVD,
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
	streams_leave(from, n);
	joined = streams_join(to, n);
	if (joined < n) {
		misfit = stream_misfit(&to[joined]);
		streams_leave(to, joined);
		streams_join(from, n);	/* cannot fail: they were joined before */
	}
	dofi_mutex_unlock(&streams_lock);
	if (misfit)
		misfit_log(to[joined].evd, to[joined].notice, misfit);
	return !misfit;
}
