/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service point: what all kinds have in common. They listen for connection requests. */

#include "obj/sp.h"

#include "base/log.h"
#include "base/std_fds.h"
#include "fab/info.h"
#include "obj/child.h"
#include "obj/ep_create.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

struct listen_call {
	struct dofi_sp *sp;
	int ret;
};

static void sp_listen(void *arg)
{
	struct listen_call *c = arg;
	struct dofi_ia *ia = c->sp->obj.ia;

	dofi_std_fds_hold();
	c->ret = ia->xport->listen(c->sp);
	c->sp->listening = !c->ret;
	if (c->ret)
		return;
	if (ia->datagrams)
		ia->datagrams->listen(c->sp);
	/* this thread reads the requests, and their events have the handle */
	dofi_obj_publish(&c->sp->obj, c->sp->kind->type);
}

static void sp_unlisten(void *arg)
{
	struct dofi_sp *sp = arg;
	struct dofi_ia *ia = sp->obj.ia;

	sp->listening = false;
	if (ia->datagrams)
		ia->datagrams->unlisten(sp);
	ia->xport->unlisten(sp);
}

/* Moves the stream of requests from @from to @to; either may be NULL. */
static bool requests_move(struct dofi_evd *from, struct dofi_evd *to)
{
	const struct dofi_stream old = { .evd = from }, next = { .evd = to };

	return dofi_evd_streams_swap(&old, &next, 1);
}

static void sp_free(struct dofi_sp *sp)
{
	dofi_ep_unreserve(sp->obj.ia, &sp->reserved);
	requests_move(sp->evd, NULL);
	dofi_obj_put(&sp->evd->obj);
	dofi_obj_free(sp->kind->pool, sp->kind->type, &sp->obj);
}

void dofi_sp_destroy(struct dofi_obj *obj)
{
	struct dofi_sp *sp = (struct dofi_sp *)obj;

	dofi_obj_unlink(obj, sp->kind->type);
	dofi_progress_call(&obj->ia->progress, sp_unlisten, sp);
	sp_free(sp);
}

static DAT_RETURN start(struct dofi_sp *sp)
{
	struct listen_call call = { .sp = sp, .ret = -ENODEV };
	char text[INET6_ADDRSTRLEN];
	bool lost;

	dofi_progress_call(&sp->obj.ia->progress, sp_listen, &call);
	if (call.ret == -EADDRINUSE)
		return DOFI_RET(DAT_CONN_QUAL_IN_USE, 0);
	lost = call.ret == -EADDRNOTAVAIL;
	if (call.ret)
		dofi_log(lost ? DOFI_ERR : DOFI_WARN, DOFI_CM,
			 "listening at %s, qualifier %llu: %s",
			 dofi_address_text(&sp->obj.ia->address, text),
			 (unsigned long long)sp->conn_qual,
			 lost ? "no interface has this address any more" : strerror(-call.ret));
	return dofi_ret(call.ret);
}

DAT_RETURN dofi_sp_new(const struct dofi_sp_plan *plan, struct dofi_sp **out)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct dofi_sp *sp;

	if (!requests_move(NULL, plan->evd))
		return plan->kind->evd_taken;
	sp = dofi_obj_new(plan->kind->pool, plan->kind->type, plan->ia, dofi_sp_destroy);
	if (!sp) {
		requests_move(plan->evd, NULL);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	sp->kind = plan->kind;
	sp->conn_qual = plan->conn_qual;
	sp->evd = plan->evd;
	dofi_obj_get(&sp->evd->obj);
	sp->makes_eps = plan->makes_eps;
	sp->reserved = NULL;
	sp->listening = sp->spent = false;
	sp->local_listener = NULL;
	if (sp->kind->describe)
		sp->kind->describe(sp);
	if (plan->reserve)
		ret = dofi_ep_reserve(plan->reserve, &sp->reserved);
	if (!ret)
		ret = start(sp);
	if (ret)
		sp_free(sp);
	else
		*out = sp;
	return ret;
}

static const DAT_HANDLE_TYPE types[] = {
	DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP,
#if DAT_VERSION_MAJOR >= 2
	DAT_HANDLE_TYPE_CSP,
#endif
};

/* A service point that is being made or freed waits for this thread, and so stays valid. */
struct dofi_sp *dofi_sp_find(struct dofi_ia *ia, DAT_CONN_QUAL conn_qual)
{
	struct dofi_sp *found = NULL;
	struct dofi_obj *obj;
	size_t i;

	dofi_mutex_lock(&ia->lock);
	for (i = 0; i < sizeof(types) / sizeof(types[0]) && !found; i++)
		TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(types[i])], sibling) {
			struct dofi_sp *sp = (struct dofi_sp *)obj;

			if (sp->conn_qual == conn_qual && sp->listening && !sp->spent) {
				found = sp;
				break;
			}
		}
	dofi_mutex_unlock(&ia->lock);
	return found;
}

/* The lock keeps service points from being freed meanwhile. */
void dofi_sps_each(struct dofi_ia *ia, void (*fn)(struct dofi_sp *sp))
{
	struct dofi_obj *obj;
	size_t i;

	dofi_mutex_lock(&ia->lock);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(types[i])], sibling)
			if (((struct dofi_sp *)obj)->listening)
				fn((struct dofi_sp *)obj);
	dofi_mutex_unlock(&ia->lock);
}
