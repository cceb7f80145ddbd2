/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Atomic operations of peers on memory of this process. */

#include "obj/lmr_atomic.h"

#include <errno.h>

void dofi_lmr_atomic_open(struct dofi_lmr *lmr)
{
	if (!dofi_lmr_for_atomics(lmr->priv))
		return;
	dofi_mutex_lock(&lmr->pz->atomic_lock);
	LIST_INSERT_HEAD(&lmr->pz->atomic_lmrs, lmr, atomic_link);
	dofi_mutex_unlock(&lmr->pz->atomic_lock);
}

void dofi_lmr_atomic_close(struct dofi_lmr *lmr)
{
	if (!dofi_lmr_for_atomics(lmr->priv))
		return;
	dofi_mutex_lock(&lmr->pz->atomic_lock);
	LIST_REMOVE(lmr, atomic_link);
	dofi_mutex_unlock(&lmr->pz->atomic_lock);
}

/* A list is enough, as few regions are the target of atomics. Needs the lock. */
static uint64_t *target(struct dofi_pz *pz, const struct dofi_atomic *a) DOFI_NEEDS(pz->atomic_lock)
{
	struct dofi_lmr *lmr;

	LIST_FOREACH(lmr, &pz->atomic_lmrs, atomic_link)
		if (lmr->key == a->key)
			break;
	if (!lmr || a->addr % sizeof(uint64_t) || !dofi_lmr_covers(lmr, a->addr, sizeof(uint64_t)))
		return NULL;
	return (uint64_t *)(uintptr_t)a->addr;
}

/* The processor's own atomics: other PZs, processes and the program may also use the memory. */
static uint64_t perform(uint64_t *at, const struct dofi_atomic *a)
{
	uint64_t seen = a->compare;

	if (!a->swap)
		return __atomic_fetch_add(at, a->operand, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(at, &seen, a->operand, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return seen;
}

int dofi_lmr_atomic(struct dofi_pz *pz, const struct dofi_atomic *a, uint64_t *old)
{
	uint64_t *at;

	/* held throughout, so that the region is not freed meanwhile */
	dofi_mutex_lock(&pz->atomic_lock);
	at = target(pz, a);
	if (at)
		*old = perform(at, a);
	dofi_mutex_unlock(&pz->atomic_lock);
	return at ? 0 : -EACCES;
}
