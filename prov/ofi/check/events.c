/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies EVDs, with their queues and the CQs that feed them, and CNOs. */

#include "check/check.h"
#include "obj/ep/ep.h"
#include "obj/evd/evd.h"

/* An EVD whose table of feeds was full at some time counts fewer users than there are. */
static void feeds_check(struct dofi_ia *ia, struct dofi_evd *evd) DOFI_NEEDS(ia->lock, evd->lock)
{
	struct dofi_cq *only = NULL;
	struct dofi_obj *obj;
	int i, n = 0, all;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		struct dofi_cq *cq = evd->feed[i];

		CHECK("evd", evd, !cq == !evd->feed_users[i], "feed %d: CQ %p, %d users", i,
		      (void *)cq, evd->feed_users[i]);
		if (!cq)
			continue;
		/* the streams of completions that EPs deliver from the CQ to the EVD */
		all = 0;
		CHECK_EACH(obj, ia, EP)
		{
			const struct dofi_ep *ep = (const struct dofi_ep *)obj;

			if (ep->feed == cq || ep->second_cq == cq)
				all += (ep->recv_evd == evd) + (ep->request_evd == evd);
		}
		CHECK("evd", evd, evd->feed_users[i] <= all || cq->progress != &ia->progress,
		      "feed %d: %d users, %d streams", i, evd->feed_users[i], all);
		only = cq;
		n++;
	}
	if (n != 1 || evd->cno || evd->waiting)
		only = NULL;
	CHECK_SAME("evd", evd, evd->sole_cq, only);
}

static void evd_check(struct dofi_ia *ia, struct dofi_evd *evd) DOFI_NEEDS(ia->lock)
	DOFI_NEEDS_NOT(evd->lock)
{
	const struct dofi_event *e;
	uint32_t i;

	dofi_mutex_lock(&evd->lock);
	CHECK("evd", evd, evd->ring, "%u events", evd->count);
	CHECK("evd", evd,
	      !(evd->capacity & (evd->capacity - 1)) && evd->capacity >= (uint32_t)evd->qlen,
	      "capacity %u, length %d", evd->capacity, evd->qlen);
	CHECK("evd", evd, evd->count <= (uint32_t)evd->qlen, "%u events, length %d", evd->count,
	      evd->qlen);
	for (i = 0; i < evd->count; i++) {
		e = &evd->ring[(evd->head + i) & (evd->capacity - 1)];
		CHECK("evd", evd, e->number, "event %u of %u", i, evd->count);
		CHECK("evd", evd,
		      !e->unread || e->generation != dofi_unread_generation(e->unread) ||
			      dofi_unread_count(e->unread),
		      "event %u of %u, %#x, counts as read", i, evd->count, e->number);
	}
	feeds_check(ia, evd);
	CHECK("evd", evd, !evd->cno || evd->at_cno.evd == evd, "CNO %p, EVD %p", (void *)evd->cno,
	      (void *)evd->at_cno.evd);
	CHECK("evd", evd, !evd->dying, "%u events", evd->count);
	dofi_mutex_unlock(&evd->lock);
}

void check_events(struct dofi_ia *ia)
{
	struct dofi_cno_source *source;
	struct dofi_obj *obj;
	int n;

	CHECK_EACH(obj, ia, EVD)
	evd_check(ia, (struct dofi_evd *)obj);
	CHECK_EACH(obj, ia, CNO)
	{
		struct dofi_cno *cno = (struct dofi_cno *)obj;

		n = 0;
		dofi_mutex_lock(&cno->lock);
		TAILQ_FOREACH(source, &cno->sources, link) {
			CHECK("cno", cno, source == &source->evd->at_cno, "EVD %p",
			      (void *)source->evd);
			CHECK("cno", cno, source->evd->cno == cno, "EVD %p has CNO %p",
			      (void *)source->evd, (void *)source->evd->cno);
			n++;
		}
		CHECK("cno", cno, n == obj->users, "%d sources, %d users", n, obj->users);
		CHECK("cno", cno, !(cno->again & ~cno->triggered), "%u, %u", cno->triggered,
		      cno->again);
		CHECK("cno", cno, cno->agent_armed || cno->triggered != DOFI_CNO_AGENT, "%u",
		      cno->triggered);
		CHECK("cno", cno, cno->waiters >= 0 && !cno->dying, "%d waiters, %d",
		      cno->waiters, cno->dying);
		CHECK_SAME("cno", cno, cno->agent_armed, cno->agent.proxy_agent_func != NULL);
		dofi_mutex_unlock(&cno->lock);
	}
}
