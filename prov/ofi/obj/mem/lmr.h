/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Local Memory Region: a registration, and the check of segments that name it. */
#ifndef DOFI_OBJ_MEM_LMR_H
#define DOFI_OBJ_MEM_LMR_H

#include "base/range.h"
#include "base/shm.h"
#include "obj/mem/pz.h"

#include <stdbool.h>

struct dofi_lmr {
	struct dofi_obj obj;
	struct dofi_pz *pz;
	uint64_t addr, len;		/* addr is 0 if segments count from the first byte */
	uint64_t end;			/* addr + len */
	/* added to a segment's address: 0, or the address of the first byte */
	uint64_t origin;
	/* pool index and generation; 0 while there is no such LMR */
	_Atomic DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT key;		/* the fabric's; 0 without remote privilege */
	DAT_MEM_PRIV_FLAGS priv;
	DAT_REGION_DESCRIPTION region;
	DAT_MEM_TYPE type;
	struct dofi_mr mr;
	void *desc;			/* of mr, for the data path */
	uint8_t generation;
	char cookie[DAT_LMR_COOKIE_SIZE];	/* of shared memory: region points here */
	struct dofi_shared shared;	/* of shared memory */
	LIST_ENTRY(dofi_lmr) atomic_link; /* under the PZ's atomic_lock */
};

/* A context is the index of the LMR in its pool, and a generation that detects a stale one. */
#define DOFI_LMR_GEN_SHIFT 24
#define DOFI_LMR_INDEX_MASK 0xffffffu

#if DAT_VERSION_MAJOR >= 2
/* Programs written for InfiniBand request remote atomics with all other privileges. */
#define DOFI_LMR_PRIVILEGES (DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
/* Parameters that only DAT 2.0 has: of dat_lmr_create() and dat_rmr_bind(), and of the latter. */
#define DOFI_LMR_VA_TYPE DAT_VA_TYPE va_type,
#define DOFI_RMR_LMR DAT_LMR_HANDLE lmr_handle,
#else
#define DOFI_LMR_PRIVILEGES DAT_MEM_PRIV_ALL_FLAG
#define DOFI_LMR_VA_TYPE
#define DOFI_RMR_LMR
#endif

DOFI_OBJ_HANDLES(lmr, LMR, struct dofi_lmr);

/* Whether @lmr, which may be freed memory of the pool, is the live LMR of @context. */
static inline bool dofi_lmr_is(const struct dofi_lmr *lmr, DAT_LMR_CONTEXT context)
{
	/* pairs with the release in lmr_new() */
	return atomic_load_explicit(&lmr->context, memory_order_acquire) == context;
}

/*
 * The PZ of @lmr, which may be another IA's and be freed meanwhile. Its other fields are read only
 * if the PZ is the reader's own: revoke() waits for such a reader. The load is atomic for
 * ThreadSanitizer only, as an atomic load costs a post an instruction.
 */
static inline struct dofi_pz *dofi_lmr_pz(const struct dofi_lmr *lmr)
{
#if DOFI_HAVE_TSAN
	return __atomic_load_n(&lmr->pz, __ATOMIC_RELAXED);
#else
	return lmr->pz;
#endif
}

/* An LMR of no context and no PZ. */
extern const struct dofi_lmr dofi_lmr_none;

/* The live LMR of @context, or NULL. */
static inline struct dofi_lmr *dofi_lmr_at(DAT_LMR_CONTEXT context)
{
	struct dofi_lmr *lmr = dofi_pool_at(&dofi_lmr_pool, (context & DOFI_LMR_INDEX_MASK) - 1);

	return lmr && dofi_lmr_is(lmr, context) ? lmr : NULL;
}

static inline bool dofi_lmr_covers(const struct dofi_lmr *lmr, uint64_t addr, uint64_t len)
{
	return dofi_range_has(lmr->end, lmr->len, addr, len);
}

/* The address in this process for @addr of a segment. */
static inline void *dofi_lmr_memory(const struct dofi_lmr *lmr, uint64_t addr)
{
	return (void *)(uintptr_t)(lmr->origin + addr);
}

/* The fabric's access bits for the remote privileges in @priv. */
uint64_t dofi_lmr_remote_access(DAT_MEM_PRIV_FLAGS priv);

/* Ends the context of @lmr: no further post may name it. Returns the former context, or 0. */
DAT_LMR_CONTEXT dofi_lmr_end(struct dofi_lmr *lmr);

/*
 * Whether [@addr, @addr + @len) lies in @lmr, which may be NULL, with privilege @priv for @pz: on
 * the data path.
 */
static inline bool dofi_lmr_allows(const struct dofi_lmr *lmr, uint64_t addr, uint64_t len,
				   const struct dofi_pz *pz, DAT_MEM_PRIV_FLAGS priv)
{
	return lmr && dofi_lmr_pz(lmr) == pz && dofi_lmr_covers(lmr, addr, len) &&
	       (lmr->priv & priv) == priv;
}

/* Returns why dofi_lmr_allows() is false. */
DAT_RETURN dofi_lmr_refusal(const struct dofi_lmr *lmr, uint64_t addr, uint64_t len,
			    const struct dofi_pz *pz, DAT_MEM_PRIV_FLAGS priv);

/* An atomic operation of a peer. */
struct dofi_atomic {
	uint64_t addr;
	uint64_t operand;		/* to add; or to store if @compare matches */
	uint64_t compare;
	uint32_t key;
	bool swap;			/* compare and swap, else fetch and add */
};

/*
 * Does @a for a peer of an EP in @pz and stores the former value in @old. -EACCES unless all of it
 * is aligned and in an LMR of @pz that allows it. Any lock but an RMR's may be held.
 */
int dofi_lmr_atomic(struct dofi_pz *pz, const struct dofi_atomic *a, uint64_t *old);

DAT_RETURN dofi_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param);
DAT_RETURN dofi_lmr_sync(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);
DAT_RETURN dofi_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS priv, DOFI_LMR_VA_TYPE DAT_LMR_HANDLE *lmr_handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_length, DAT_VADDR *registered_address);

/* obj/ep/ep_revoke.c: operations that were posted before must not use the memory any more. */
DAT_RETURN dofi_lmr_free(DAT_LMR_HANDLE lmr_handle);

#endif
