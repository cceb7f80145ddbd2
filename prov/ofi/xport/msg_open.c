/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: endpoints that the fabric takes its time to open. */

#include "xport/msg_open.h"

#include "fab/quirks.h"
#include "xport/msg_listen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct msg_opening {
	struct dofi_work work;		/* once it is done; frees it, even without a zone */
	struct dofi_progress *progress;
	struct fid_domain *domain;
	struct fi_info *info;
	msg_opened *opened;
	pthread_t thread;
	struct fid_ep *fid;		/* the thread's, until it ends */
	int ret;			/* likewise */
	struct dofi_ep *ep;		/* NULL: nobody waits for it */
	struct dofi_pz *pz;		/* NULL: the thread is joined */
	TAILQ_ENTRY(msg_opening) link;	/* with a zone: in the IA's list */
};

static struct msg_openings *openings_of(struct dofi_pz *pz)
{
	struct msg_ia *mia = pz->obj.ia->xport_ia;

	return &mia->openings;
}

/* The last that the thread does is to queue the work. */
static void *opening_run(void *arg)
{
	struct msg_opening *o = arg;

	pthread_setname_np(pthread_self(), "dat-ofi-open");
	o->ret = fi_endpoint(o->domain, o->info, &o->fid, NULL);
	dofi_progress_post(o->progress, &o->work);
	return NULL;
}

static void opening_join(struct msg_opening *o)
{
	pthread_join(o->thread, NULL);
	TAILQ_REMOVE(openings_of(o->pz), o, link);
	o->pz = NULL;
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

	if (o->pz)
		opening_join(o);
	if (ep) {
		ep->opening = NULL;
		o->opened(ep, o->info, o->ret ? NULL : o->fid, o->ret);
	} else {
		opening_drop(o);
	}
	fi_freeinfo(o->info);
	free(o);
}

/* The program's signal handlers must not run on a thread it does not know. */
static int opening_start(struct msg_opening *o)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&o->thread, NULL, opening_run, o);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* 0 if @opened will be told. */
static int open_aside(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened)
{
	struct msg_opening *o = malloc(sizeof(*o));
	int ret;

	if (!o)
		return -ENOMEM;
	*o = (struct msg_opening){
		.work.run = opening_done, .progress = &ep->obj.ia->progress, .info = info,
		.domain = ep->pz->domain.fid, .opened = opened, .ep = ep, .pz = ep->pz,
	};
	ret = opening_start(o);
	if (ret) {
		free(o);
		return ret;
	}
	TAILQ_INSERT_TAIL(openings_of(ep->pz), o, link);
	ep->opening = o;
	return 0;
}

void msg_open(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened)
{
	struct fid_ep *fid;
	int ret;

	/* without a thread it has to be waited for */
	if (ep->obj.ia->fabric.quirk->waits_to_open && !open_aside(ep, info, opened))
		return;
	ret = fi_endpoint(ep->pz->domain.fid, info, &fid, NULL);
	opened(ep, info, ret ? NULL : fid, ret);
	fi_freeinfo(info);
}

void msg_open_cancel(struct dofi_ep *ep)
{
	struct msg_opening *o = ep->opening;

	if (!o)
		return;
	o->ep = NULL;
	ep->opening = NULL;
}

void msg_open_pz_close(struct dofi_pz *pz)
{
	struct msg_opening *o, *next;

	for (o = TAILQ_FIRST(openings_of(pz)); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->pz != pz)
			continue;
		opening_join(o);
		opening_drop(o);
	}
}
