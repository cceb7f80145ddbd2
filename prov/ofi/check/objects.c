/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies the lists of an IA's objects, and that each object counts what refers to it. */

#include "check/parts.h"
#include "obj/cr.h"
#include "obj/rmr.h"
#include "obj/sp.h"

struct kind {
	const char *name;
	struct dofi_pool *pool;
};

static const struct kind kinds[DOFI_KINDS] = {
	[DOFI_KIND(DAT_HANDLE_TYPE_CR)] = { "cr", &dofi_cr_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_EP)] = { "ep", &dofi_ep_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_EVD)] = { "evd", &dofi_evd_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_LMR)] = { "lmr", &dofi_lmr_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_PSP)] = { "psp", &dofi_psp_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_PZ)] = { "pz", &dofi_pz_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_RMR)] = { "rmr", &dofi_rmr_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_RSP)] = { "rsp", &dofi_rsp_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_CNO)] = { "cno", &dofi_cno_pool },
	[DOFI_KIND(DAT_HANDLE_TYPE_SRQ)] = { "srq", &dofi_srq_pool },
#if DAT_VERSION_MAJOR >= 2
	[DOFI_KIND(DAT_HANDLE_TYPE_CSP)] = { "csp", &dofi_csp_pool },
#endif
};

/* The list of objects of kind @k, and its counts. */
static void list_check(struct dofi_ia *ia, int k) DOFI_NEEDS(ia->lock)
{
	const char *name = kinds[k].name;
	struct dofi_obj *obj;
	unsigned long n = 0;

	TAILQ_FOREACH(obj, &ia->children[k], sibling) {
		n++;
		CHECK(name, obj, dofi_pool_owns(kinds[k].pool, obj), "of IA %p", (void *)ia);
		CHECK(name, obj, dofi_obj_kind(obj) == k, "%d, %d", dofi_obj_kind(obj), k);
		CHECK(name, obj, obj->ia == ia, "%p, %p", (void *)obj->ia, (void *)ia);
		CHECK(name, obj, obj->provider == ia->obj.provider, "%p, %p",
		      (const void *)obj->provider, (const void *)ia->obj.provider);
		CHECK(name, obj, obj->users >= 0, "%d users", obj->users);
		CHECK(name, obj, !obj->calls.word, "%u calls", obj->calls.word);
	}
	CHECK("ia", ia, ia->made[k] - ia->freed[k] == n,
	      "of kind %s %lu were made, %lu were freed, %lu are listed", name ? name : "none",
	      (unsigned long)ia->made[k], (unsigned long)ia->freed[k], n);
	CHECK("ia", ia, (unsigned long)ia->n_children[k] == n,
	      "of kind %s it counts %d, %lu are listed",
	      name ? name : "none", ia->n_children[k], n);
}

/* How many @type of @ia have @target in @member. */
#define REFERENCES(ia, type, structure, member, target)                           \
	__extension__({                                                           \
		struct dofi_obj *ref_obj;                                         \
		int ref_n = 0;                                                    \
		CHECK_EACH(ref_obj, ia, type)                                     \
		ref_n += ((const struct structure *)ref_obj)->member == (target); \
		ref_n;                                                            \
	})

static int references_of_pz(struct dofi_ia *ia, const struct dofi_pz *pz) DOFI_NEEDS(ia->lock)
{
	return REFERENCES(ia, EP, dofi_ep, pz, pz) + REFERENCES(ia, LMR, dofi_lmr, pz, pz) +
	       REFERENCES(ia, RMR, dofi_rmr, pz, pz) + REFERENCES(ia, SRQ, dofi_srq, pz, pz);
}

/* Streams of events that EPs and service points deliver to @evd. */
static int streams_of(struct dofi_ia *ia, const struct dofi_evd *evd) DOFI_NEEDS(ia->lock)
{
	int n = REFERENCES(ia, EP, dofi_ep, recv_evd, evd) +
		REFERENCES(ia, EP, dofi_ep, request_evd, evd) +
		REFERENCES(ia, EP, dofi_ep, connect_evd, evd) +
		REFERENCES(ia, PSP, dofi_sp, evd, evd) + REFERENCES(ia, RSP, dofi_sp, evd, evd);

#if DAT_VERSION_MAJOR >= 2
	n += REFERENCES(ia, CSP, dofi_sp, evd, evd);
#endif
	return n;
}

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

struct async_users {
	const struct dofi_evd *evd;
	int n;
};

static void ias_count(struct dofi_ia *ia, void *arg)
{
	int *n = arg;

	(void)ia;
	++*n;
}

/* Whether other IAs are open, of which EPs may deliver to the EVDs of this one. */
static bool may_be_shared(void)
{
	int n = 0;

	check_each_ia(ias_count, &n);
	return n > 1;
}

/* An IA that did not make its asynchronous EVD refers to the EVD, which may be another IA's. */
static void async_count(struct dofi_ia *ia, void *arg)
{
	struct async_users *users = arg;

	users->n += ia->async_evd == users->evd && !ia->async_evd_owned;
}

static void evds_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, EVD)
	{
		const struct dofi_evd *evd = (const struct dofi_evd *)obj;
		struct async_users async = { .evd = evd };
		const int streams = streams_of(ia, evd);
		int n;

		check_each_ia(async_count, &async);
		CHECK("evd", evd, evd->streams == streams ||
		      (evd->streams > streams && may_be_shared()), "%d, %d", evd->streams, streams);
		n = streams_with(ia, evd, DAT_COMPLETION_UNSIGNALLED_FLAG);
		CHECK("evd", evd, evd->unsignalled == n || evd->streams > streams, "%d, %d",
		      evd->unsignalled, n);
		n = streams_with(ia, evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
		CHECK("evd", evd, evd->solicited == n || evd->streams > streams, "%d, %d",
		      evd->solicited, n);
		CHECK("evd", evd, obj->users == evd->streams + async.n, "%d, %d, %d", obj->users,
		      evd->streams, async.n);
	}
}

static void users_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;
	int n;

	CHECK_EACH(obj, ia, PZ)
	{
		n = references_of_pz(ia, (struct dofi_pz *)obj);
		CHECK("pz", obj, obj->users == n, "%d, %d", obj->users, n);
	}
	CHECK_EACH(obj, ia, SRQ)
	{
		n = REFERENCES(ia, EP, dofi_ep, srq, (struct dofi_srq *)obj);
		CHECK("srq", obj, obj->users == n, "%d, %d", obj->users, n);
	}
	CHECK_EACH(obj, ia, CNO)
	{
		n = REFERENCES(ia, EVD, dofi_evd, cno, (struct dofi_cno *)obj);
		CHECK("cno", obj, obj->users == n, "%d, %d", obj->users, n);
	}
	CHECK_EACH(obj, ia, EP)
	CHECK("ep", obj, !obj->users, "%d", obj->users);
	CHECK_EACH(obj, ia, RMR)
	CHECK("rmr", obj, !obj->users, "%d", obj->users);
}

static void lmrs_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, LMR)
	{
		const struct dofi_lmr *lmr = (const struct dofi_lmr *)obj;

		CHECK("lmr", lmr, lmr->end - lmr->addr == lmr->len, "%#llx, %#llx, %#llx",
		      (unsigned long long)lmr->addr, (unsigned long long)lmr->len,
		      (unsigned long long)lmr->end);
		CHECK("lmr", lmr, lmr->pz && lmr->pz->obj.ia == ia, "%p", (const void *)lmr->pz);
		CHECK("lmr", lmr,
		      lmr->context == ((DAT_LMR_CONTEXT)lmr->generation << DOFI_LMR_GEN_SHIFT |
				       (dofi_pool_index(lmr) + 1)),
		      "context %#x, generation %u, index %u", lmr->context, lmr->generation,
		      dofi_pool_index(lmr));
	}
}

/* Service points, and the EPs that they reserve. */
static void reservations_check(struct dofi_ia *ia) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_ep *ep = (const struct dofi_ep *)obj;

		CHECK("ep", ep, !ep->reserved_by || *ep->reserved_by == ep, "%p",
		      (const void *)*ep->reserved_by);
	}
	CHECK_EACH(obj, ia, RSP)
	{
		struct dofi_sp *sp = (struct dofi_sp *)obj;

		CHECK("rsp", sp, !sp->reserved || sp->reserved->reserved_by == &sp->reserved,
		      "EP %p", (const void *)sp->reserved);
	}
}

void check_objects(struct dofi_ia *ia)
{
	const struct dofi_evd *async = ia->async_evd;
	int k;

	for (k = 0; k < DOFI_KINDS; k++)
		list_check(ia, k);
	CHECK("ia", ia, !ia->async_evd_owned || !async || async->obj.ia == ia, "EVD %p",
	      (const void *)async);
	users_check(ia);
	evds_check(ia);
	lmrs_check(ia);
	reservations_check(ia);
}
