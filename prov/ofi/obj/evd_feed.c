/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event Dispatcher: the CQs that feed it, and the streams of events that go to it. */

#include "obj/evd.h"

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
 * Software and asynchronous events have no object that could say how they notify. Needs the lock.
 */
static bool stream_fits(const struct dofi_stream *s) DOFI_NEEDS(streams_lock)
{
	if (s->notice && (s->evd->flags & DAT_EVD_SOFTWARE_FLAG || s->evd->is_async))
		return false;
	return !s->evd->streams || s->evd->notice == s->notice;
}

/* Returns false if the stream does not notify like the others of its EVD. Needs the lock. */
static bool stream_join(const struct dofi_stream *s) DOFI_NEEDS(streams_lock)
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
static void stream_leave(const struct dofi_stream *s) DOFI_NEEDS(streams_lock)
{
	if (s->evd && !--s->evd->streams)
		s->evd->notice = DAT_COMPLETION_DEFAULT_FLAG;
}

/* How many of @n have joined: all, or those before one that does not fit. Needs the lock. */
static int streams_join(const struct dofi_stream *s, int n) DOFI_NEEDS(streams_lock)
{
	int i;

	for (i = 0; i < n && stream_join(&s[i]); i++)
		;
	return i;
}

/* Needs the lock. */
static void streams_leave(const struct dofi_stream *s, int n) DOFI_NEEDS(streams_lock)
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
		streams_join(from, n);	/* cannot fail: they were joined before */
	}
	dofi_mutex_unlock(&streams_lock);
	return joined == n;
}
