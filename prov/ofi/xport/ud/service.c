/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The datagram service: its part of an IA and of an EP. */

#include "xport/ud/ud.h"

#include "fab/info.h"
#include "obj/ep/ep_attr.h"
#include "obj/sp/sp.h"
#include "xport/rdm/send.h"
#include "xport/ud/frame.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The IA */

/*
 * Opens a second fabric next to a fabric of connections. Fails without the net, unless the IA has
 * rings alone: peers may be remote.
 */
static int ways_find(struct ud_ia *uia)
{
	struct dofi_ia *ia = uia->ia;
	int ret;

	if (dofi_is_rings(&ia->fabric))
		uia->rings = &ia->fabric;
	else if (ia->local.info)
		uia->rings = &ia->local;
	if (uia->rings != &ia->fabric)
		uia->fabric = &ia->fabric;
	if (uia->fabric && !ia->fabric.rdm) {
		ret = dofi_datagram_choose(&ia->fabric, &ia->address, &uia->own);
		if (ret)
			return ret;
		ret = dofi_datagram_start(&uia->own, &uia->fid);
		if (ret) {
			dofi_fabric_release(&uia->own);
			return ret;
		}
		uia->own_ops = (struct dofi_progress_ops){
			.completed = dofi_rdm_completed, .foreign_contexts = true,
			.failed = dofi_async_ia_failed,
		};
		uia->fabric = &uia->own;
	}
	uia->frame_size = uia->rings ? uia->rings->frame_size : SIZE_MAX;
	if (uia->fabric && uia->fabric->frame_size < uia->frame_size)
		uia->frame_size = uia->fabric->frame_size;
	return 0;
}

static int ia_init(struct dofi_ia *ia)
{
	struct ud_ia *uia = calloc(1, sizeof(*uia));
	int ret;

	if (!uia)
		return -ENOMEM;
	uia->ia = ia;
	LIST_INIT(&uia->listeners);
	TAILQ_INIT(&uia->delayed);
	uia->beginning.run = ud_calls_begin;
	ret = dofi_host_read(&uia->host);
	if (!ret)
		ret = ways_find(uia);
	if (ret) {
		free(uia);
		return ret;
	}
	ia->datagrams_ia = uia;
	ia->datagram_size = (uint32_t)(uia->frame_size - UD_FRAME_HEADER);
	return 0;
}

static void ia_fini(struct dofi_ia *ia)
{
	struct ud_ia *uia = ud_ia_of(ia);

	dofi_progress_withdraw(&ia->progress, &uia->beginning);
	if (uia->fid)
		fi_close(&uia->fid->fid);
	if (uia->own.info)
		dofi_fabric_release(&uia->own);
	ia->datagrams_ia = NULL;
	free(uia);
}

/* An EP */

static int ep_open(struct dofi_ep *ep)
{
	struct ud_ia *uia = ud_ia_of(ep->obj.ia);
	struct ud_ep *uep = calloc(1, sizeof(*uep));
	struct ud_pz *upz;
	int ret;

	if (!uep)
		return -ENOMEM;
	/* with the first datagram EP its service points listen */
	if (!uia->in_use) {
		uia->in_use = true;
		dofi_sps_each(uia->ia, ud_listen);
	}
	ret = ud_pz_open(ep->pz, &upz);
	if (ret)
		goto free;
	uep->ep = ep;
	uep->upz = upz;
	LIST_INIT(&uep->calls);
	LIST_INIT(&uep->answers);
	ret = ud_pz_add(upz, uep);
	if (ret)
		goto free;
	dofi_mutex_lock(&ep->lock);
	ep->conn = uep;
	ep->fid = upz->rings ? &upz->rings->ep : upz->rdm.fid;
	dofi_ep_set_cq(ep, &ud_first_way(upz)->domain->cq);
	uep->matched = ep->rq.next;
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
	return 0;

free:
	free(uep);
	return ret;
}

static void ep_close(struct dofi_ep *ep)
{
	struct ud_ep *uep = ud_ep_of(ep);

	if (!uep)
		return;
	ud_calls_drop(uep);
	ud_answers_drop(uep);
	ud_pz_remove(uep);
	dofi_mutex_lock(&ep->lock);
	ep->fid = NULL;
	ep->conn = NULL;
	dofi_ep_open_queues(ep);
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	dofi_mutex_unlock(&ep->lock);
	free(uep);
}

/* Sends are copies, and receives are filled by this process. */
static bool holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	(void)ep, (void)dto;
	return false;
}

static void fast(struct dofi_ep *ep, struct dofi_fast *fast)
{
	fast->recv = rdm_fast_recv;
	fast->to = dofi_fast_to(ep);
}

static const struct dofi_xport xport = {
	.name = "ud",
	.reject = ud_reject,
	.close = ep_close,
	.submit = ud_submit,
	.fast = fast,
	.holds = holds,
};

/* Address handles */

/* Looks in the PZ: an EP that is being freed is closed before its address handles are freed. */
static bool ah_valid(const struct dofi_ep *ep, const void *ah)
{
	return ud_peer_is_valid(ep->pz->datagrams_pz, ah);
}

static bool ah_free(struct dofi_ep *ep, void *ah)
{
	if (!ah_valid(ep, ah))
		return false;
	ud_peer_put(ah);
	return true;
}

const struct dofi_datagrams dofi_ud_datagrams = {
	.xport = &xport,
	.ia_init = ia_init,
	.ia_fini = ia_fini,
	.pz_close = ud_pz_close,
	.open = ep_open,
	.listen = ud_listen,
	.unlisten = ud_unlisten,
	.connect = ud_connect,
	.accept = ud_accept,
	.ah_valid = ah_valid,
	.ah_free = ah_free,
};
