/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies an IA's objects: their lists, the counts of their users, and the grants of RMRs. */

#include "check/check.h"
#include "obj/mem/rmr.h"
#include "obj/sp/sp.h"

static struct dofi_pool *const pools[DOFI_KINDS] = {
	[DOFI_KIND(DAT_HANDLE_TYPE_CR)] = &dofi_cr_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_EP)] = &dofi_ep_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_EVD)] = &dofi_evd_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_LMR)] = &dofi_lmr_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_PSP)] = &dofi_psp_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_PZ)] = &dofi_pz_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_RMR)] = &dofi_rmr_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_RSP)] = &dofi_rsp_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_CNO)] = &dofi_cno_pool,
	[DOFI_KIND(DAT_HANDLE_TYPE_SRQ)] = &dofi_srq_pool,
#if DAT_VERSION_MAJOR >= 2
	[DOFI_KIND(DAT_HANDLE_TYPE_CSP)] = &dofi_csp_pool,
#endif
};

/* How many @type of @ia have @target in @member. */
#define REFERENCES(ia, type, structure, member, target)                           \
	__extension__({                                                           \
		struct dofi_obj *ref_obj;                                         \
		int ref_n = 0;                                                    \
		CHECK_EACH(ref_obj, ia, type)                                     \
		ref_n += ((const struct structure *)ref_obj)->member == (target); \
		ref_n;                                                            \
	})

/* Streams of completions with @flag that EPs deliver to @evd. */
static int streams_with(struct dofi_ia *ia, const struct dofi_evd *evd, DAT_COMPLETION_FLAGS flag)
	DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;
	int n = 0;

	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_ep *ep = (const struct dofi_ep *)obj;

		n += ep->recv_evd == evd && ep->attr.recv_completion_flags == flag;
		n += ep->request_evd == evd && ep->attr.request_completion_flags == flag;
	}
	return n;
}

/* EPs of other IAs may also deliver to an EVD that is shared as an asynchronous EVD. */
static void evds_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	const struct dofi_ia *other;
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, EVD)
	{
		const struct dofi_evd *evd = (const struct dofi_evd *)obj;
		int streams = REFERENCES(ia, EP, dofi_ep, recv_evd, evd) +
			      REFERENCES(ia, EP, dofi_ep, request_evd, evd) +
			      REFERENCES(ia, EP, dofi_ep, connect_evd, evd) +
			      REFERENCES(ia, PSP, dofi_sp, evd, evd) +
			      REFERENCES(ia, RSP, dofi_sp, evd, evd);
		int n, ias = 0, async = 0;
		uint32_t i = 0;

#if DAT_VERSION_MAJOR >= 2
		streams += REFERENCES(ia, CSP, dofi_sp, evd, evd);
#endif
		/* IAs that did not make this asynchronous EVD, but refer to it, are users */
		for (; (other = check_next_ia(&i)); ias++)
			async += other->async_evd == evd && !other->async_evd_owned;
		CHECK("evd", evd, evd->streams == streams || (evd->streams > streams && ias > 1),
		      "%d, %d", evd->streams, streams);
		n = streams_with(ia, evd, DAT_COMPLETION_UNSIGNALLED_FLAG);
		CHECK("evd", evd, evd->unsignalled == n || evd->streams > streams, "%d, %d",
		      evd->unsignalled, n);
		n = streams_with(ia, evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
		CHECK("evd", evd, evd->solicited == n || evd->streams > streams, "%d, %d",
		      evd->solicited, n);
		CHECK("evd", evd, obj->users == evd->streams + async, "%d, %d, %d", obj->users,
		      evd->streams, async);
	}
}

/* Counts of users; and service points with the EPs that they reserve. */
static void users_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;
	int n;

	CHECK_EACH(obj, ia, PZ)
	{
		const struct dofi_pz *pz = (const struct dofi_pz *)obj;

		n = REFERENCES(ia, EP, dofi_ep, pz, pz) + REFERENCES(ia, LMR, dofi_lmr, pz, pz) +
		    REFERENCES(ia, RMR, dofi_rmr, pz, pz) + REFERENCES(ia, SRQ, dofi_srq, pz, pz);
		CHECK_SAME("pz", obj, obj->users, n);
	}
	CHECK_EACH(obj, ia, SRQ)
	{
		n = REFERENCES(ia, EP, dofi_ep, srq, (struct dofi_srq *)obj);
		CHECK_SAME("srq", obj, obj->users, n);
	}
	CHECK_EACH(obj, ia, CNO)
	{
		n = REFERENCES(ia, EVD, dofi_evd, cno, (struct dofi_cno *)obj);
		CHECK_SAME("cno", obj, obj->users, n);
	}
	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_ep *ep = (const struct dofi_ep *)obj;

		CHECK("ep", ep, !obj->users, "%d", obj->users);
		CHECK("ep", ep, !ep->reserved_by || *ep->reserved_by == ep, "%p",
		      (const void *)*ep->reserved_by);
	}
	CHECK_EACH(obj, ia, RSP)
	{
		struct dofi_sp *sp = (struct dofi_sp *)obj;

		CHECK("rsp", sp, !sp->reserved || sp->reserved->reserved_by == &sp->reserved,
		      "EP %p", (const void *)sp->reserved);
	}
	CHECK_EACH(obj, ia, RMR)
	CHECK("rmr", obj, !obj->users, "%d", obj->users);
}

/* An open grant, which is listed in its PZ, and is a user of its LMR. */
static void bind_check(const struct dofi_rmr *rmr, const struct dofi_bind *bind)
{
	const struct dofi_bind *b;

	CHECK("rmr", rmr, bind->rmr == rmr && bind->pz == rmr->pz, "bind %p, RMR %p, PZ %p",
	      (const void *)bind, (void *)bind->rmr, (void *)bind->pz);
	CHECK("rmr", rmr, bind->listed == dofi_mr_is_open(&bind->mr), "bind %p, %d",
	      (const void *)bind, bind->listed);
	if (!bind->listed)
		return;
	LIST_FOREACH(b, &rmr->pz->grants[bind->context & (DOFI_PZ_GRANTS - 1)], by_context)
		if (b == bind)
			return;
	CHECK("rmr", rmr, b, "bind %p of %#x is not in its PZ's list", (const void *)bind,
	      bind->context);
}

static bool is_grant_of(const struct dofi_bind *bind, const struct dofi_lmr *lmr)
{
	return bind->part.lmr == lmr && dofi_mr_is_open(&bind->mr);
}

/* Open grants of @lmr, also in binds whose RMR was freed while they were in the queue of an EP. */
static int grants_of(struct dofi_ia *ia, const struct dofi_lmr *lmr) DOFI_NEEDS(ia->lock)
{
	const struct dofi_bind *bind;
	struct dofi_obj *obj;
	uint32_t i;
	int n = 0;

	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_queue *q = &((struct dofi_ep *)obj)->sq;

		for (i = q->head; i != q->tail; i++) {
			const struct dofi_dto *dto = dofi_queue_at(q, i);

			n += dto->kind == DOFI_DTO_BIND && !dto->done && !dto->bind->rmr &&
			     is_grant_of(dto->bind, lmr);
		}
	}
	CHECK_EACH(obj, ia, RMR)
	{
		const struct dofi_rmr *rmr = (const struct dofi_rmr *)obj;

		n += rmr->bound && is_grant_of(rmr->bound, lmr);
		LIST_FOREACH(bind, &rmr->pending, link)
			n += is_grant_of(bind, lmr);
	}
	return n;
}

static void lmrs_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, LMR)
	{
		const struct dofi_lmr *lmr = (const struct dofi_lmr *)obj;
		const int n = grants_of(ia, lmr);

		CHECK_SAME("lmr", lmr, lmr->end - lmr->addr, lmr->len);
		CHECK("lmr", lmr, lmr->pz && lmr->pz->obj.ia == ia, "%p", (const void *)lmr->pz);
		CHECK("lmr", lmr,
		      lmr->context == ((DAT_LMR_CONTEXT)lmr->generation << DOFI_LMR_GEN_SHIFT |
				       (dofi_pool_index(lmr) + 1)),
		      "context %#x, generation %u, index %u", lmr->context, lmr->generation,
		      dofi_pool_index(lmr));
		CHECK("lmr", lmr, obj->users == n, "%d, %d grants", obj->users, n);
	}
}

void check_objects(struct dofi_ia *ia)
{
	const struct dofi_evd *async = ia->async_evd;
	const struct dofi_bind *bind;
	struct dofi_obj *obj;
	const char *name;
	int k, n;

	for (k = 0; k < DOFI_KINDS; k++) {
		name = pools[k] ? pools[k]->name : "none";
		n = 0;
		TAILQ_FOREACH(obj, &ia->children[k], sibling) {
			n++;
			CHECK(name, obj, dofi_pool_owns(pools[k], obj), "of IA %p", (void *)ia);
			CHECK_SAME(name, obj, dofi_obj_kind(obj), k);
			CHECK_SAME(name, obj, obj->ia, ia);
			CHECK_SAME(name, obj, obj->provider, ia->obj.provider);
			CHECK(name, obj, obj->users >= 0, "%d users", obj->users);
			CHECK(name, obj, !obj->calls.word, "%u calls", obj->calls.word);
		}
		CHECK("ia", ia, (int)(ia->made[k] - ia->freed[k]) == n && ia->n_children[k] == n,
		      "of kind %s %lu were made, %lu were freed, it counts %d, %d are listed",
		      name, (unsigned long)ia->made[k], (unsigned long)ia->freed[k],
		      ia->n_children[k], n);
	}
	CHECK("ia", ia, !ia->async_evd_owned || !async || async->obj.ia == ia, "EVD %p",
	      (const void *)async);
	users_check(ia);
	evds_check(ia);
	lmrs_check(ia);
	CHECK_EACH(obj, ia, RMR)
	{
		struct dofi_rmr *rmr = (struct dofi_rmr *)obj;

		dofi_mutex_lock(&rmr->pz->rmr_lock);
		if (rmr->bound)
			bind_check(rmr, rmr->bound);
		LIST_FOREACH(bind, &rmr->pending, link)
			bind_check(rmr, bind);
		CHECK("rmr", rmr, !rmr->ep || rmr->ep_scope, "EP %p", (const void *)rmr->ep);
		CHECK("rmr", rmr,
		      !rmr->ep_scope || !rmr->ep == (!rmr->bound && LIST_EMPTY(&rmr->pending)),
		      "EP %p, bound %p", (const void *)rmr->ep, (void *)rmr->bound);
		dofi_mutex_unlock(&rmr->pz->rmr_lock);
	}
}
