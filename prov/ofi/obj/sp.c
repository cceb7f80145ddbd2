/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service point: what all kinds of them have, which listen for connection requests. */

#include "obj/sp.h"

#include <errno.h>

struct listen_call {
	struct dofi_sp *sp;
	int ret;
};

static void sp_listen(void *arg)
{
	struct listen_call *c = arg;

	c->ret = c->sp->obj.ia->xport->listen(c->sp);
}

static void sp_unlisten(void *arg)
{
	struct dofi_sp *sp = arg;

	sp->obj.ia->xport->unlisten(sp);
}

static void sp_free(struct dofi_sp *sp)
{
	dofi_obj_put(&sp->evd->obj);
	dofi_obj_free(sp->kind->pool, sp->kind->type, &sp->obj);
}

void dofi_sp_destroy(struct dofi_obj *obj)
{
	struct dofi_sp *sp = (struct dofi_sp *)obj;

	if (!dofi_obj_retire(obj))
		return;
	dofi_progress_call(&obj->ia->progress, sp_unlisten, sp);
	sp_free(sp);
}

DAT_RETURN dofi_sp_new(struct dofi_ia *ia, const struct dofi_sp_kind *kind, DAT_CONN_QUAL conn_qual,
		       struct dofi_evd *evd, struct dofi_sp **out)
{
	struct dofi_sp *sp = dofi_obj_new(kind->pool, kind->type, ia, dofi_sp_destroy);
	struct listen_call call = { .sp = sp, .ret = -ENODEV };

	if (!sp)
		return DOFI_NO_RESOURCE(MEMORY);
	sp->kind = kind;
	sp->conn_qual = conn_qual;
	sp->evd = evd;
	dofi_obj_get(&evd->obj);
	/* a request may arrive at once, and its event carries the handle */
	dofi_obj_publish(&sp->obj, kind->type);
	dofi_progress_call(&ia->progress, sp_listen, &call);
	if (!call.ret) {
		*out = sp;
		return DAT_SUCCESS;
	}
	dofi_obj_retire(&sp->obj);
	sp_free(sp);
	return call.ret == -EADDRINUSE ? DOFI_RET(DAT_CONN_QUAL_IN_USE, 0) : dofi_ret(call.ret);
}
