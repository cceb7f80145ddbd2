/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: opening endpoints where that takes time. */

#include "xport/msg/msg.h"

#include "fab/quirks.h"

#include <stdlib.h>

/* Most threads of an IA at a time: a thread that waits for no answer ends in a millisecond. */
#define MOST_THREADS 16

struct msg_opening {
	struct dofi_work work;		/* runs when the call has returned; frees the opening */
	struct dofi_progress *progress;
	struct fid_domain *domain;
	struct fi_info *info;
	msg_opened *opened;
	bool begun;			/* the work is queued or will be */
	bool has_thread;
	pthread_t thread;
	struct fid_ep *fid;		/* written by the thread */
	int ret;			/* written by the thread */
	struct dofi_ep *ep;		/* NULL if the opening was cancelled */
	struct dofi_pz *pz;		/* NULL once the thread was joined */
	TAILQ_ENTRY(msg_opening) link;	/* in the IA's list while @pz is set */
};

static struct msg_openings *openings_of(struct dofi_pz *pz)
{
	struct msg_ia *mia = pz->obj.ia->xport_ia;

	return &mia->openings;
}

/* The thread's last action is to queue the work. */
static void *opening_run(void *arg)
{
	struct msg_opening *o = arg;

	o->ret = fi_endpoint(o->domain, o->info, &o->fid, NULL);
	dofi_progress_post(o->progress, &o->work);
	return NULL;
}

/* Removes @o from the list, after its thread has ended. */
static void opening_end(struct msg_openings *all, struct msg_opening *o)
{
	if (o->has_thread) {
		pthread_join(o->thread, NULL);
		all->threads--;
	}
	TAILQ_REMOVE(&all->list, o, link);
	o->pz = NULL;
}

static void opening_free(struct msg_opening *o)
{
	fi_freeinfo(o->info);
	free(o);
}

static void openings_continue(struct msg_openings *all)
{
	struct msg_opening *o, *next;

	for (o = TAILQ_FIRST(&all->list); o && all->threads < MOST_THREADS; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->begun)
			continue;
		if (!o->ep) {
			opening_end(all, o);
			opening_free(o);
			continue;
		}
		o->begun = true;
		o->has_thread = !dofi_thread_start(&o->thread, opening_run, o);
		if (o->has_thread)
			all->threads++;
		else
			opening_run(o);		/* without a thread the caller waits */
	}
}

static void opening_drop(struct msg_opening *o)
{
	if (!o->ret && o->fid)
		fi_close(&o->fid->fid);
	o->fid = NULL;
}

static void opening_done(struct dofi_work *work)
{
	struct msg_opening *o = (struct msg_opening *)work;
	struct dofi_ep *ep = o->ep;

	if (o->pz) {
		struct msg_openings *all = openings_of(o->pz);

		opening_end(all, o);
		openings_continue(all);
	}
	if (ep) {
		msg_part(ep)->opening = NULL;
		o->opened(ep, o->info, o->ret ? NULL : o->fid, o->ret);
	} else {
		opening_drop(o);
	}
	opening_free(o);
}

void msg_open(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened)
{
	struct msg_opening *o = NULL;
	struct fid_ep *fid;
	int ret;

	if (ep->obj.ia->fabric.quirk->waits_to_open)
		o = malloc(sizeof(*o));
	if (!o) {
		ret = fi_endpoint(ep->pz->domain.fid, info, &fid, NULL);
		opened(ep, info, ret ? NULL : fid, ret);
		fi_freeinfo(info);
		return;
	}
	*o = (struct msg_opening){
		.work.run = opening_done, .progress = &ep->obj.ia->progress, .info = info,
		.domain = ep->pz->domain.fid, .opened = opened, .ep = ep, .pz = ep->pz,
	};
	msg_part(ep)->opening = o;
	TAILQ_INSERT_TAIL(&openings_of(ep->pz)->list, o, link);
	openings_continue(openings_of(ep->pz));
}

void msg_open_cancel(struct dofi_ep *ep)
{
	struct msg_opening *o = msg_part(ep)->opening;

	if (o)
		o->ep = NULL;
	msg_part(ep)->opening = NULL;
}

void msg_open_pz_close(struct dofi_pz *pz)
{
	struct msg_openings *all = openings_of(pz);
	struct msg_opening *o, *next;

	for (o = TAILQ_FIRST(&all->list); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->pz != pz)
			continue;
		opening_end(all, o);
		if (o->begun)
			opening_drop(o);
		else
			opening_free(o);
	}
	openings_continue(all);
}
