/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Atomic operations of peers on memory of this process. */
#ifndef DOFI_OBJ_LMR_ATOMIC_H
#define DOFI_OBJ_LMR_ATOMIC_H

#include "obj/lmr.h"

/* What a peer asks for. */
struct dofi_atomic {
	uint64_t addr;
	uint64_t operand;		/* added; or stored, if @compare is there */
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

/* A new @lmr may, or an old one may no longer, be the target of atomics. */
void dofi_lmr_atomic_open(struct dofi_lmr *lmr);
void dofi_lmr_atomic_close(struct dofi_lmr *lmr);

/*
 * Does @a for a peer of an EP in @pz and stores the former value in @old. -EACCES unless all of it
 * is aligned and in an LMR of @pz that allows it. Any lock but that of an RMR may be held.
 */
int dofi_lmr_atomic(struct dofi_pz *pz, const struct dofi_atomic *a, uint64_t *old);

#endif
