/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two transports for one IA: shared memory of this host, and the connected fabric. */

#include "xport/local_or_net.h"

#include "base/log.h"
#include "loop/progress.h"
#include "obj/ep_cm.h"
#include "obj/sp.h"
#include "xport/msg/msg.h"
#include "xport/rdm/rdm.h"
#include "xport/cm/address.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The IA's transport. Its other operations are those of the connected transport. */
struct local_or_net {
	struct dofi_xport xport;
	struct dofi_progress_ops progress_ops;
	/* the variant of the connected transport that the IA has */
	const struct dofi_xport *remote;
};

static struct local_or_net *local_or_net_of(const struct dofi_ia *ia)
{
	return (struct local_or_net *)ia->xport;
}

/*
 * Any user may take any name, and a program with many service points meets that many times: it is a
 * warning once.
 */
static enum dofi_log_level level_of(int err)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;

	return err == -EADDRINUSE && !atomic_flag_test_and_set(&reported) ? DOFI_WARN : DOFI_INFO;
}

/*
 * If the name of the qualifier is taken, which any process may do, peers on this host use the
 * fabric.
 */
static int local_or_net_listen(struct dofi_sp *sp)
{
	int ret = local_or_net_of(sp->obj.ia)->remote->listen(sp), local;
	enum dofi_log_level level;

	if (ret)
		return ret;
	local = dofi_rings_xport.listen(sp);
	level = level_of(local);
	if (local)
		dofi_log(level, DOFI_CM,
			 "qualifier %llu: peers on this host use the network, not shared memory: "
			 "%s",
			 (unsigned long long)sp->conn_qual, strerror(-local));
	return 0;
}

static void local_or_net_unlisten(struct dofi_sp *sp)
{
	dofi_rings_xport.unlisten(sp);
	local_or_net_of(sp->obj.ia)->remote->unlisten(sp);
}

static void xport_set(struct dofi_ep *ep, const struct dofi_xport *xport)
{
	dofi_ep_lock(ep);
	ep->xport = xport;
	dofi_ep_unlock(ep);
}

static void local_or_net_connect(struct dofi_ep *ep)
{
	const bool local = dofi_cm_is_here(&ep->request.peer);

	xport_set(ep, local ? &dofi_rings_xport : local_or_net_of(ep->obj.ia)->remote);
	ep->xport->connect(ep);
}

static void local_or_net_connect_otherwise(struct dofi_ep *ep)
{
	xport_set(ep, local_or_net_of(ep->obj.ia)->remote);
	dofi_ep_connect_again(ep);
}

static void local_or_net_ia_fini(struct dofi_ia *ia)
{
	struct local_or_net *b = local_or_net_of(ia);

	dofi_rings_xport.ia_fini(ia);
	/* the progress thread runs on for a while */
	ia->xport = b->remote;
	ia->progress.ops = b->remote->progress_ops;
	free(b);
	ia->xport->ia_fini(ia);
}

static void local_or_net_pz_close(struct dofi_pz *pz)
{
	struct local_or_net *b = local_or_net_of(pz->obj.ia);

	if (b->remote->pz_close)
		b->remote->pz_close(pz);
	dofi_rings_xport.pz_close(pz);
}

static void local_or_net_init(struct local_or_net *b, const struct dofi_xport *remote)
{
	b->remote = remote;
	b->progress_ops = *remote->progress_ops;
	b->progress_ops.rest = dofi_rings_xport.progress_ops->rest;
	b->progress_ops.rise = dofi_rings_xport.progress_ops->rise;
	b->xport = *remote;
	b->xport.name = "local_or_net";
	b->xport.progress_ops = &b->progress_ops;
	b->xport.ia_fini = local_or_net_ia_fini;
	b->xport.pz_close = local_or_net_pz_close;
	b->xport.listen = local_or_net_listen;
	b->xport.unlisten = local_or_net_unlisten;
	b->xport.connect = local_or_net_connect;
	b->xport.connect_otherwise = local_or_net_connect_otherwise;
}

int dofi_local_or_net_add(struct dofi_ia *ia)
{
	struct local_or_net *b = malloc(sizeof(*b));
	int ret;

	if (!b)
		return -ENOMEM;
	ret = dofi_rings_xport.ia_init(ia);
	if (ret) {
		free(b);
		return ret;
	}
	local_or_net_init(b, ia->xport);
	ia->xport = &b->xport;
	ia->progress.ops = &b->progress_ops;
	return 0;
}
