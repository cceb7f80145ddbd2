/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Atomic operations of peers on memory of this process. */
#ifndef DOFI_OBJ_LMR_ATOMIC_H
#define DOFI_OBJ_LMR_ATOMIC_H

#include "obj/lmr.h"

/* An atomic operation of a peer. */
struct dofi_atomic {
	uint64_t addr;
	/* the number to add; or the number to store if @compare matches */
	uint64_t operand;
	uint64_t compare;
	uint32_t key;
	bool swap;			/* compare and swap, else fetch and add */
};

/* Whether an LMR of these privileges may be the target of atomics; uDAPL 1.2 has none. */
static inline bool dofi_lmr_for_atomics(DAT_MEM_PRIV_FLAGS priv)
{
#if DAT_VERSION_MAJOR >= 2
	return priv & DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
#else
	(void)priv;
	return false;
#endif
}

/* @lmr becomes a target of atomics, if its privileges allow that, or ends to be one. */
void dofi_lmr_atomic_open(struct dofi_lmr *lmr);
void dofi_lmr_atomic_close(struct dofi_lmr *lmr);

/*
 * Does @a for a peer of an EP in @pz and stores the former value in @old. -EACCES unless all of it
 * is aligned and in an LMR of @pz that allows it. Any lock but that of an RMR may be held.
 */
int dofi_lmr_atomic(struct dofi_pz *pz, const struct dofi_atomic *a, uint64_t *old);

#endif
