/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies RMRs: grants in force, grants of pending binds, and the LMRs that they use. */

#include "check/parts.h"
#include "obj/ep.h"
#include "obj/rmr.h"

/* An open grant, which is listed in its PZ, and is a user of its LMR. */
static void grant_check(const struct dofi_rmr *rmr, const struct dofi_bind *bind)
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

/* How many open grants of @rmr are of @lmr; NULL counts none. */
static int grants_of(const struct dofi_rmr *rmr, const struct dofi_lmr *lmr)
{
	const struct dofi_bind *bind = rmr->bound;
	int n = bind && bind->part.lmr == lmr && dofi_mr_is_open(&bind->mr);

	LIST_FOREACH(bind, &rmr->pending, link)
		n += bind->part.lmr == lmr && dofi_mr_is_open(&bind->mr);
	return n;
}

static void rmr_check(struct dofi_rmr *rmr)
{
	const struct dofi_bind *bind;

	dofi_mutex_lock(&rmr->pz->rmr_lock);
	if (rmr->bound)
		grant_check(rmr, rmr->bound);
	LIST_FOREACH(bind, &rmr->pending, link)
		grant_check(rmr, bind);
	CHECK("rmr", rmr, !rmr->ep || rmr->ep_scope, "EP %p", (const void *)rmr->ep);
	CHECK("rmr", rmr, !rmr->ep_scope || !rmr->ep == (!rmr->bound && LIST_EMPTY(&rmr->pending)),
	      "EP %p, bound %p", (const void *)rmr->ep, (void *)rmr->bound);
	dofi_mutex_unlock(&rmr->pz->rmr_lock);
}

/* Open grants of @lmr in binds whose RMR was freed while they were in the queue of an EP. */
static int orphans_of(struct dofi_ia *ia, const struct dofi_lmr *lmr) DOFI_NEEDS(ia->lock)
{
	struct dofi_obj *obj;
	uint32_t i;
	int n = 0;

	CHECK_EACH(obj, ia, EP)
	{
		const struct dofi_queue *q = &((struct dofi_ep *)obj)->sq;

		for (i = q->head; i != q->tail; i++) {
			const struct dofi_dto *dto = dofi_queue_at(q, i);

			n += dto->kind == DOFI_DTO_BIND && !dto->done && !dto->bind->rmr &&
			     dto->bind->part.lmr == lmr && dofi_mr_is_open(&dto->bind->mr);
		}
	}
	return n;
}

static void lmr_check(struct dofi_ia *ia, struct dofi_lmr *lmr) DOFI_NEEDS(ia->lock)
{
	int n = orphans_of(ia, lmr);
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, RMR)
	n += grants_of((struct dofi_rmr *)obj, lmr);
	CHECK("lmr", lmr, lmr->obj.users == n, "%d, %d grants", lmr->obj.users, n);
}

void check_grants(struct dofi_ia *ia)
{
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, RMR)
	rmr_check((struct dofi_rmr *)obj);
	CHECK_EACH(obj, ia, LMR)
	lmr_check(ia, (struct dofi_lmr *)obj);
}
