/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two transports for one IA: shared memory of this host, and the connected fabric. */

#include "xport/local_or_net.h"

#include "base/log.h"
#include "loop/progress.h"
#include "obj/ep/ep_cm.h"
#include "obj/sp/sp.h"
#include "xport/cm/address.h"
#include "xport/msg/msg.h"
#include "xport/rdm/rdm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The IA's transport. Its other operations are the connected transport's. */
struct local_or_net {
	struct dofi_xport xport;
	struct dofi_progress_ops progress_ops;
	const struct dofi_xport *net;	/* the IA's variant of the connected transport */
};

static struct local_or_net *of(const struct dofi_ia *ia)
{
	return (struct local_or_net *)ia->xport;
}

/* Any process can squat the name. A program may meet that many times, so one warning is enough. */
static int sp_listen(struct dofi_sp *sp)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	int ret = of(sp->obj.ia)->net->listen(sp), local;
	enum dofi_log_level level = DOFI_INFO;

	if (ret)
		return ret;
	local = dofi_rings_xport.listen(sp);
	if (local == -EADDRINUSE && !atomic_flag_test_and_set(&reported))
		level = DOFI_WARN;
	if (local)
		dofi_log(level, DOFI_CM,
			 "qualifier %llu: peers on this host use the network, not shared memory: "
			 "%s",
			 (unsigned long long)sp->conn_qual, strerror(-local));
	return 0;
}

static void sp_unlisten(struct dofi_sp *sp)
{
	dofi_rings_xport.unlisten(sp);
	of(sp->obj.ia)->net->unlisten(sp);
}

static void xport_set(struct dofi_ep *ep, const struct dofi_xport *xport)
{
	dofi_mutex_lock(&ep->lock);
	ep->xport = xport;
	dofi_mutex_unlock(&ep->lock);
}

static void ep_connect(struct dofi_ep *ep)
{
	const bool local = dofi_cm_is_here(&ep->request.peer);

	xport_set(ep, local ? &dofi_rings_xport : of(ep->obj.ia)->net);
	ep->xport->connect(ep);
}

static void ep_connect_otherwise(struct dofi_ep *ep)
{
	xport_set(ep, of(ep->obj.ia)->net);
	dofi_ep_connect_again(ep);
}

static void ia_fini(struct dofi_ia *ia)
{
	struct local_or_net *x = of(ia);

	dofi_rings_xport.ia_fini(ia);
	/* the progress thread runs on for a while */
	ia->xport = x->net;
	ia->progress.ops = x->net->progress_ops;
	free(x);
	ia->xport->ia_fini(ia);
}

static void pz_close(struct dofi_pz *pz)
{
	const struct dofi_xport *net = of(pz->obj.ia)->net;

	if (net->pz_close)
		net->pz_close(pz);
	dofi_rings_xport.pz_close(pz);
}

int dofi_local_or_net_add(struct dofi_ia *ia)
{
	struct local_or_net *x = malloc(sizeof(*x));
	const struct dofi_xport *net = ia->xport;
	int ret;

	if (!x)
		return -ENOMEM;
	ret = dofi_rings_xport.ia_init(ia);
	if (ret) {
		free(x);
		return ret;
	}
	x->net = net;
	x->progress_ops = *net->progress_ops;
	x->progress_ops.sleep_begin = dofi_rings_xport.progress_ops->sleep_begin;
	x->progress_ops.sleep_end = dofi_rings_xport.progress_ops->sleep_end;
	x->xport = *net;
	x->xport.name = "local_or_net";
	x->xport.progress_ops = &x->progress_ops;
	x->xport.ia_fini = ia_fini;
	x->xport.pz_close = pz_close;
	x->xport.listen = sp_listen;
	x->xport.unlisten = sp_unlisten;
	x->xport.connect = ep_connect;
	x->xport.connect_otherwise = ep_connect_otherwise;
	ia->xport = &x->xport;
	ia->progress.ops = &x->progress_ops;
	return 0;
}
