/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points: public, reserved and common ones, and their requests to a transport. */

#include "obj/sp/sp.h"

#include "base/fds.h"
#include "base/log.h"
#include "fab/info.h"
#include "obj/obj.h"
#include "obj/ep/ep_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* The differences of the kinds of service points. */
struct dofi_sp_kind {
	struct dofi_pool *pool;
	DAT_HANDLE_TYPE type;
	DAT_RETURN evd_taken;		/* of the call when the EVD may not take requests */
};

/* The checked arguments of a service point. */
struct sp_plan {
	const struct dofi_sp_kind *kind;
	struct dofi_ia *ia;
	DAT_CONN_QUAL conn_qual;	/* 0: the transport chooses */
	struct dofi_evd *evd;
	bool makes_eps, once;
	struct dofi_ep *reserve;	/* the EP to reserve, or NULL */
};

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

/* Requests stay answerable if their events were queued. */
static void sp_destroy(struct dofi_obj *obj)
{
	struct dofi_sp *sp = (struct dofi_sp *)obj;

	dofi_obj_unlink(obj, sp->kind->type);
	dofi_progress_call(&obj->ia->progress, sp_unlisten, sp);
	sp_free(sp);
}

/* Makes a service point, which listens on return. */
static DAT_RETURN sp_new(const struct sp_plan *plan, struct dofi_sp **out)
{
	struct listen_call call = { .ret = -ENODEV };
	char text[INET6_ADDRSTRLEN];
	DAT_RETURN ret = DAT_SUCCESS;
	struct dofi_sp *sp;
	bool lost;

	if (!requests_move(NULL, plan->evd))
		return plan->kind->evd_taken;
	sp = dofi_obj_new(plan->kind->pool, plan->kind->type, plan->ia, sp_destroy);
	if (!sp) {
		requests_move(plan->evd, NULL);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	sp->kind = plan->kind;
	sp->conn_qual = plan->conn_qual;
	sp->evd = plan->evd;
	dofi_obj_get(&sp->evd->obj);
	sp->makes_eps = plan->makes_eps;
	sp->once = plan->once;
	sp->reserved = NULL;
	sp->listening = sp->spent = false;
	sp->local_listener = NULL;
#if DAT_VERSION_MAJOR >= 2
	sp->comm = dofi_ia_comm(plan->ia);
	sp->address = plan->ia->address;
	/* the port is at the same offset in the addresses of both families */
	((struct sockaddr_in *)&sp->address)->sin_port = htons(sp->conn_qual);
#endif
	if (plan->reserve)
		ret = dofi_ep_reserve(plan->reserve, &sp->reserved);
	if (ret)
		goto free_sp;
	call.sp = sp;
	dofi_progress_call(&plan->ia->progress, sp_listen, &call);
	lost = call.ret == -EADDRNOTAVAIL;
	if (call.ret && call.ret != -EADDRINUSE)
		dofi_log(lost ? DOFI_ERR : DOFI_WARN, DOFI_CM,
			 "listening at %s, qualifier %llu: %s",
			 dofi_address_text(&plan->ia->address, text),
			 (unsigned long long)sp->conn_qual,
			 lost ? "no interface has this address any more" : strerror(-call.ret));
	ret = call.ret == -EADDRINUSE ? DOFI_RET(DAT_CONN_QUAL_IN_USE, 0) : dofi_ret(call.ret);
	if (ret)
		goto free_sp;
	*out = sp;
	return DAT_SUCCESS;

free_sp:
	sp_free(sp);
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

/* Public Service Points listen on a qualifier. */

struct dofi_pool dofi_psp_pool = DOFI_POOL_INIT("psp", struct dofi_sp, NULL);

static const struct dofi_sp_kind psp_kind = {
	.pool = &dofi_psp_pool,
	.type = DAT_HANDLE_TYPE_PSP,
	.evd_taken = DOFI_BAD_ARG(3),
};

/* Makes a PSP for *@conn_qual, or with @any for a qualifier that the transport chooses. */
static DAT_RETURN psp_new(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual, bool any,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct sp_plan plan = {
		.kind = &psp_kind, .ia = ia, .evd = evd,
		.makes_eps = flags == DAT_PSP_PROVIDER_FLAG,
	};
	struct dofi_sp *psp;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return DOFI_BAD_ARG(4);
	if (!psp_handle)
		return DOFI_BAD_ARG(5);
	if (!conn_qual || (!any && !*conn_qual))
		return DOFI_BAD_ARG(2);
	plan.conn_qual = any ? 0 : *conn_qual;
	ret = sp_new(&plan, &psp);
	if (any && DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DOFI_RET(DAT_CONN_QUAL_UNAVAILABLE, 0);
	if (ret)
		return ret;
	if (any)
		dofi_count_exactly(&ia->count.psp_any);
	*conn_qual = psp->conn_qual;
	*psp_handle = psp;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			   DAT_PSP_HANDLE *psp_handle)
{
	return psp_new(ia_handle, &conn_qual, false, evd_handle, flags, psp_handle);
}

DAT_RETURN dofi_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *psp_handle)
{
	return psp_new(ia_handle, conn_qual, true, evd_handle, flags, psp_handle);
}

DAT_RETURN dofi_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	struct dofi_sp *psp DOFI_CALL = dofi_psp_enter(psp_handle);

	if (!psp)
		return DOFI_BAD_HANDLE(PSP);
	if (mask & ~DAT_PSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_PSP_PARAM){
		.ia_handle = dofi_ia_export(psp->obj.ia),
		.conn_qual = psp->conn_qual,
		.evd_handle = psp->evd,
		.psp_flags = psp->makes_eps ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dofi_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct dofi_sp *psp = dofi_psp_enter(psp_handle);

	return psp && !dofi_obj_free_unused(&psp->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(PSP);
}

/* Reserved Service Points listen for one connection request, for one endpoint. */

struct dofi_pool dofi_rsp_pool = DOFI_POOL_INIT("rsp", struct dofi_sp, NULL);

static const struct dofi_sp_kind rsp_kind = {
	.pool = &dofi_rsp_pool,
	.type = DAT_HANDLE_TYPE_RSP,
	.evd_taken = DOFI_BAD_ARG(4),
};

DAT_RETURN dofi_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			   DAT_RSP_HANDLE *rsp_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	const struct sp_plan plan = {
		.kind = &rsp_kind,
		.ia = ia,
		.conn_qual = conn_qual,
		.evd = evd,
		.makes_eps = ep_handle == DAT_HANDLE_NULL,
		.once = true,
		.reserve = ep,
	};
	struct dofi_sp *rsp;
	DAT_RETURN ret;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!plan.makes_eps && (!ep || ep->obj.ia != ia))
		return DOFI_BAD_HANDLE(EP);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (!conn_qual)
		return DOFI_BAD_ARG(2);
	if (!rsp_handle)
		return DOFI_BAD_ARG(5);
	ret = sp_new(&plan, &rsp);
	if (!ret)
		*rsp_handle = rsp;
	return ret;
}

DAT_RETURN dofi_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	struct dofi_sp *rsp DOFI_CALL = dofi_rsp_enter(rsp_handle);

	if (!rsp)
		return DOFI_BAD_HANDLE(RSP);
	if (mask & ~DAT_RSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_RSP_PARAM){
		.ia_handle = dofi_ia_export(rsp->obj.ia),
		.conn_qual = rsp->conn_qual,
		.evd_handle = rsp->evd,
	};
	dofi_mutex_lock(&rsp->obj.ia->lock);
	param->ep_handle = rsp->reserved;
	dofi_mutex_unlock(&rsp->obj.ia->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	struct dofi_sp *rsp = dofi_rsp_enter(rsp_handle);

	return rsp && !dofi_obj_free_unused(&rsp->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(RSP);
}

#if DAT_VERSION_MAJOR >= 2
/* Common Service Points listen at a port of the IA's address. */

struct dofi_pool dofi_csp_pool = DOFI_POOL_INIT("csp", struct dofi_sp, NULL);

static const struct dofi_sp_kind csp_kind = {
	.pool = &dofi_csp_pool,
	.type = DAT_HANDLE_TYPE_CSP,
	.evd_taken = DOFI_BAD_ARG(4),
};

/* Whether @address is the IA's, or any address of its family. */
static bool is_local(const struct dofi_ia *ia, const struct sockaddr *address)
{
	if (address->sa_family != ia->address.ss_family)
		return false;
	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const void *)address,
					  *own = (const void *)&ia->address;

		return IN6_IS_ADDR_UNSPECIFIED(&a->sin6_addr) ||
		       !memcmp(&a->sin6_addr, &own->sin6_addr, sizeof(a->sin6_addr));
	} else {
		const struct sockaddr_in *a = (const void *)address,
					 *own = (const void *)&ia->address;

		return a->sin_addr.s_addr == htonl(INADDR_ANY) ||
		       a->sin_addr.s_addr == own->sin_addr.s_addr;
	}
}

DAT_RETURN dofi_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle)
{
	const struct sockaddr *at = (const struct sockaddr *)address;
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct sp_plan plan = { .kind = &csp_kind, .ia = ia, .evd = evd };
	struct dofi_sp *sp;
	DAT_RETURN ret;
	DAT_COMM ours;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!comm)
		return DOFI_BAD_ARG(2);
	ours = dofi_ia_comm(ia);
	if (comm->domain != ours.domain || comm->type != ours.type ||
	    (comm->protocol && comm->protocol != ours.protocol))
		return DOFI_RET(DAT_COMM_NOT_SUPPORTED, 0);
	if (!at || !is_local(ia, at))
		return DOFI_BAD_ARG(3);
	plan.conn_qual = ntohs(((const struct sockaddr_in *)at)->sin_port);
	if (!plan.conn_qual)
		return DOFI_BAD_ARG(3);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (!csp_handle)
		return DOFI_BAD_ARG(5);
	ret = sp_new(&plan, &sp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DOFI_RET(DAT_PORT_IN_USE, 0);
	if (!ret)
		*csp_handle = sp;
	return ret;
}

DAT_RETURN dofi_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	struct dofi_sp *csp DOFI_CALL = dofi_csp_enter(csp_handle);

	if (!csp)
		return DOFI_BAD_HANDLE(CSP);
	if (mask & ~DAT_CSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_CSP_PARAM){
		.ia_handle = dofi_ia_export(csp->obj.ia),
		.comm = &csp->comm,
		.address_ptr = (DAT_IA_ADDRESS_PTR)&csp->address,
		.evd_handle = csp->evd,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dofi_csp_free(DAT_CSP_HANDLE csp_handle)
{
	struct dofi_sp *csp = dofi_csp_enter(csp_handle);

	return csp && !dofi_obj_free_unused(&csp->obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(CSP);
}
#endif
