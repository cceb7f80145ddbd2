/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies the objects of all IAs: the walk, the report, and the progress threads. */

#include "check/check.h"

#include "base/layout.h"
#include "obj/ep/ep.h"
#include "xport/msg/msg.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_failed(const char *kind, const void *object, const char *condition, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "invariant: %s %p: %s does not hold: ", kind, object, condition);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

struct dofi_ia *check_next_ia(uint32_t *i)
{
	struct dofi_ia *ia;

	do {
		ia = dofi_pool_next(&dofi_ia_pool, i);
		(*i)++;
	} while (ia && dofi_obj_kind(&ia->obj) != DOFI_KIND(DAT_HANDLE_TYPE_IA));
	return ia;
}

/* Progress threads: their work, timers and epoll sets, and the CQs that they serve */

/* Each child is not less than its parent, and knows the node before it. */
static void timers_check(struct dofi_progress *p, const struct dofi_heap_node *node)
{
	const struct dofi_timer *timer = DOFI_CONTAINER_OF(node, const struct dofi_timer, node);
	const struct dofi_heap_node *child, *prev = node;

	CHECK("progress thread", p, timer->at == node->key && timer->fire, "timer %p, %lld, %lld",
	      (const void *)timer, (long long)timer->at, (long long)node->key);
	for (child = node->child; child; prev = child, child = child->next) {
		CHECK("progress thread", p, child->prev == prev, "node %p, %p", (const void *)child,
		      (void *)child->prev);
		CHECK("progress thread", p, child->key >= node->key, "timer of %lld below %lld",
		      (long long)child->key, (long long)node->key);
		timers_check(p, child);
	}
}

/* Whether @fd is in the set with @source. */
static bool is_registered(FILE *set, int fd, const struct dofi_source *source)
{
	unsigned long long data;
	char line[256];
	int tfd;

	rewind(set);
	while (fgets(line, sizeof(line), set))
		if (sscanf(line, "tfd: %d events: %*x data: %llx", &tfd, &data) == 2 && tfd == fd &&
		    data == (uintptr_t)source)
			return true;
	return false;
}

static void eq_check(const struct dofi_progress *p, const struct dofi_eq *eq, FILE *set)
{
	CHECK("progress thread", p,
	      !eq->fid || !eq->watched || is_registered(set, eq->fd, &eq->source),
	      "event queue %p, descriptor %d", (void *)eq->fid, eq->fd);
}

static void cq_check(struct dofi_progress *p, struct dofi_cq *cq, FILE *set)
{
	const bool all = cq->armed || dofi_has_leader(&cq->lead);
	const bool direct = !all && !cq->ops->foreign_contexts && !cq->several;
	const struct dofi_served *served;

	CHECK_SAME("cq", cq, cq->progress, p);
	TAILQ_FOREACH(served, &p->served, link)
		if (served == &cq->served)
			break;
	CHECK("cq", cq, served, "the progress thread %p does not serve it", (void *)p);
	CHECK("cq", cq, !cq->watched || is_registered(set, cq->fd, &cq->source), "descriptor %d",
	      cq->fd);
	CHECK("cq", cq, !cq->policy.stuck || (cq->armed && cq->watched), "armed %d, watched %d",
	      cq->armed, cq->watched);
	dofi_mutex_lock(&cq->lock);
	CHECK("cq", cq, cq->programs_fid == (direct ? cq->fid : NULL), "%p, %p, armed %d",
	      (void *)cq->programs_fid, (void *)cq->fid, cq->armed);
	CHECK("cq", cq, !cq->fid || cq->programs_poll == (all ? NULL : cq->ops->poll), "armed %d",
	      cq->armed);
	CHECK("cq", cq, cq->left < DOFI_CQ_BATCH, "%u", cq->left);
	CHECK("cq", cq,
	      !cq->left || (cq->next > cq->entry &&
			    cq->next + cq->left <= &cq->entry[DOFI_CQ_BATCH]),
	      "%u left from %td", cq->left, cq->next - cq->entry);
	CHECK("cq", cq, cq->most >= 1 && cq->most <= DOFI_CQ_BATCH, "%u", cq->most);
	CHECK("cq", cq, cq->sleepers >= 0, "%d", cq->sleepers);
	dofi_mutex_unlock(&cq->lock);
}

/* The program changes these lists only in calls, so that they stay while no lock is held. */
static void queues_check(struct dofi_ia *ia, FILE *set) DOFI_UNCHECKED_LOCKS
{
	struct dofi_progress *p = &ia->progress;
	struct dofi_obj *obj;
	unsigned i;

	CHECK_EACH(obj, ia, PZ)
	{
		struct dofi_pz *pz = (struct dofi_pz *)obj;

		CHECK("pz", pz, pz->domain.fid, "domain %p", (void *)&pz->domain);
		CHECK("pz", pz, pz->domain.n_more <= DOFI_DOMAIN_CQS, "%u", pz->domain.n_more);
		cq_check(p, &pz->domain.cq, set);
		for (i = 0; i < pz->domain.n_more; i++)
			cq_check(p, pz->domain.more[i], set);
		if (pz->local.fid && pz->xport_pz)
			cq_check(p, &pz->local.cq, set);
		if (pz->datagram.fid)
			cq_check(p, &pz->datagram.cq, set);
	}
	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_ep *ep = (const struct dofi_ep *)obj;
		const int fd = msg_watched(ep);

		CHECK("ep", ep, fd < 0 || !msg_part(ep)->watch.open ||
		      is_registered(set, fd, &msg_part(ep)->watch.source),
		      "descriptor %d", fd);
	}
}

/* The walk */

static void check_on_thread(void *arg)
{
	struct dofi_ia *ia = arg;
	struct dofi_progress *p = &ia->progress;
	const struct dofi_work *w;
	char path[64];
	FILE *set;

	dofi_mutex_lock(&ia->lock);
	check_objects(ia);
	check_endpoints(ia);
	check_events(ia);
	dofi_mutex_unlock(&ia->lock);
	dofi_mutex_lock(&p->lock);
	STAILQ_FOREACH(w, &p->work, link)
		CHECK("progress thread", p, w->queued, "work %p is in the queue", (const void *)w);
	dofi_mutex_unlock(&p->lock);
	/* the kernel's list of the descriptors in an epoll set, one per line */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", p->epfd);
	set = fopen(path, "re");
	if (p->timers.top)
		timers_check(p, p->timers.top);
	CHECK("progress thread", p, !p->sleeping, "%d", p->sleeping);
	CHECK("progress thread", p, set, "epoll set %d", p->epfd);
	CHECK("progress thread", p, is_registered(set, p->wake_fd, &p->wake_source),
	      "wake_fd %d", p->wake_fd);
	eq_check(p, &p->eq, set);
	eq_check(p, &p->listen_eq, set);
	queues_check(ia, set);
	fclose(set);
	check_connections(ia);
}

void dofi_check_invariants(void)
{
	struct dofi_ia *ia;
	uint32_t i = 0;

	while ((ia = check_next_ia(&i)))
		dofi_progress_call(&ia->progress, check_on_thread, ia);
}

void dofi_check_at_close(void *ia_handle)
{
	const char *wanted = secure_getenv("DAT_TEST_CHECK");
	struct dofi_ia *ia;
	uint32_t i = 0;

	while (wanted && !strcmp(wanted, "1") && (ia = check_next_ia(&i)))
		if (ia == ia_handle)
			dofi_progress_call(&ia->progress, check_on_thread, ia);
}
