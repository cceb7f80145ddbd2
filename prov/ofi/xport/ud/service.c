/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The datagram service: its part of an IA and of an EP. */

#include "xport/ud/ud.h"

#include "base/log.h"
#include "fab/info.h"
#include "obj/ep_attr.h"
#include "xport/rdm/rdm.h"
#include "xport/ud/frame.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The IA */

/* Finds and opens a second fabric, next to that of connections. */
static int own_open(struct ud_ia *uia)
{
	int ret = dofi_datagram_choose(&uia->ia->fabric, &uia->ia->address, &uia->own);

	if (ret)
		return ret;
	ret = dofi_datagram_start(&uia->own, &uia->fid);
	if (ret) {
		dofi_fabric_release(&uia->own);
		return ret;
	}
	uia->own_ops = (struct dofi_progress_ops){
		.completed = dofi_rdm_completed, .mixed = true, .failed = dofi_async_ia_failed,
	};
	uia->fabric = &uia->own;
	return 0;
}

static void own_close(struct ud_ia *uia)
{
	if (uia->fid)
		fi_close(&uia->fid->fid);
	if (uia->own.info)
		dofi_fabric_release(&uia->own);
}

/* Finds the fabric of the net, which an IA on rings alone does not have. */
static int net_find(struct ud_ia *uia)
{
	struct dofi_ia *ia = uia->ia;

	if (dofi_is_rings(&ia->fabric))
		return 0;
	if (!ia->fabric.rdm)
		return own_open(uia);
	uia->fabric = &ia->fabric;
	return 0;
}

static void rings_find(struct ud_ia *uia)
{
	struct dofi_ia *ia = uia->ia;

	if (dofi_is_rings(&ia->fabric))
		uia->rings = &ia->fabric;
	else if (ia->local.info)
		uia->rings = &ia->local;
}

static void frame_size_find(struct ud_ia *uia)
{
	uia->frame_size = uia->rings ? uia->rings->frame_size : SIZE_MAX;
	if (uia->fabric && uia->fabric->frame_size < uia->frame_size)
		uia->frame_size = uia->fabric->frame_size;
}

/* Fails without the net, unless the IA has rings alone: peers may be remote. */
static int ways_find(struct ud_ia *uia)
{
	int ret = net_find(uia);

	if (ret)
		return ret;
	rings_find(uia);
	frame_size_find(uia);
	return 0;
}

static int bell_open(struct ud_ia *uia)
{
	if (!uia->rings)
		return 0;
	snprintf(uia->bell_name, sizeof(uia->bell_name), "%08x%08x", dofi_random(), dofi_random());
	return ud_bell_open(&uia->bell, &uia->ia->progress, uia->bell_name);
}

/* A peer may have ended one of our inboxes. */
static void rung(struct ud_bell *bell)
{
	struct ud_pz *upz;

	LIST_FOREACH(upz, &DOFI_CONTAINER_OF(bell, struct ud_ia, bell)->pzs, link)
		if (upz->rings && dofi_rings_took_end(upz->rings))
			ud_inboxes_reap(upz);
}

static int uia_init(struct ud_ia *uia, struct dofi_ia *ia)
{
	int ret = dofi_host_read(&uia->host);

	uia->ia = ia;
	uia->bell.fd = -1;
	uia->bell.rung = rung;
	LIST_INIT(&uia->pzs);
	LIST_INIT(&uia->listeners);
	TAILQ_INIT(&uia->delayed);
	uia->beginning.run = ud_calls_begin;
	return ret ? ret : ways_find(uia);
}

static int ia_init(struct dofi_ia *ia)
{
	struct ud_ia *uia = calloc(1, sizeof(*uia));
	int ret;

	if (!uia)
		return -ENOMEM;
	ret = uia_init(uia, ia);
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
	ud_bell_close(&uia->bell);
	own_close(uia);
	ia->datagrams_ia = NULL;
	free(uia);
}

/* The first datagram EP makes what an IA without any does not need. */
static int use_begin(struct ud_ia *uia)
{
	int ret;

	if (uia->in_use)
		return 0;
	ret = bell_open(uia);
	if (ret)
		return ret;
	uia->in_use = true;
	ud_listen_all(uia);
	return 0;
}

/* An EP */

static int uep_open(struct dofi_ep *ep, struct ud_ep *uep)
{
	int ret = ud_pz_open(ep->pz, &uep->upz);

	uep->ep = ep;
	LIST_INIT(&uep->calls);
	LIST_INIT(&uep->answers);
	return ret ? ret : ud_pz_add(uep->upz, uep);
}

static void ep_bind(struct dofi_ep *ep, struct ud_ep *uep)
{
	struct ud_pz *upz = uep->upz;

	dofi_ep_lock(ep);
	ep->conn = uep;
	ep->fid = upz->rings ? dofi_rings_ep(upz->rings) : upz->rdm.fid;
	dofi_ep_set_cq(ep, &ud_first_way(upz)->domain->cq);
	uep->matched = ep->rq.next;
	dofi_ep_open_queues(ep);
	dofi_ep_unlock(ep);
}

static int ep_open(struct dofi_ep *ep)
{
	struct ud_ep *uep = calloc(1, sizeof(*uep));
	int ret = uep ? use_begin(ud_ia_of(ep->obj.ia)) : -ENOMEM;

	if (!ret)
		ret = uep_open(ep, uep);
	if (ret)
		free(uep);
	else
		ep_bind(ep, uep);
	return ret;
}

/* dofi_xport.close */
static void ep_close(struct dofi_ep *ep)
{
	struct ud_ep *uep = ud_ep_of(ep);

	if (!uep)
		return;
	ud_calls_drop(uep);
	ud_answers_drop(uep);
	ud_pz_remove(uep);
	dofi_ep_lock(ep);
	ep->fid = NULL;
	ep->conn = NULL;
	dofi_ep_open_queues(ep);
	dofi_ep_set_cq(ep, &ep->pz->domain.cq);
	dofi_ep_unlock(ep);
	free(uep);
}

/* Sends are copies, and receives are filled by this process. */
static bool holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	(void)ep;
	(void)dto;
	return false;
}

static void resume(struct dofi_ep *ep)
{
	(void)ep;
}

/* No datagram waits for the buffer. */
static void srq_fed(struct dofi_ep *ep)
{
	dofi_srq_leave(ep->srq, &ep->srq_user);
}

static void fast(struct dofi_ep *ep, struct dofi_fast *fast)
{
	fast->recv = ud_fast_recv;
	fast->to = dofi_fast_to(ep);
}

static const struct dofi_xport xport = {
	.name = "ud",
	.reject = ud_reject,
	.close = ep_close,
	.submit = ud_submit,
	.fast = fast,
	.holds = holds,
	.resume = resume,
	.srq_fed = srq_fed,
};

/* Address handles */

static bool ah_valid(const struct dofi_ep *ep, const void *ah)
{
	const struct ud_ep *uep = ud_ep_of(ep);

	return uep && ud_peer_is_valid(uep->upz, ah);
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
