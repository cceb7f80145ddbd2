/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote Memory Region: a grant of a part of an LMR to peers, which binds make, change and end. */
#ifndef DOFI_OBJ_MEM_RMR_H
#define DOFI_OBJ_MEM_RMR_H

#include "obj/mem/lmr.h"

#include <stdbool.h>
#include <sys/queue.h>

/* A part of an LMR, with the peers' privileges. */
struct dofi_part {
	struct dofi_lmr *lmr;		/* NULL: an unbind, which grants nothing */
	uint64_t addr, len;		/* as segments of the LMR count */
	DAT_MEM_PRIV_FLAGS priv;
	bool zero_based;		/* peers count from the first byte */
};

/*
 * The grant of one bind: a registration made when the bind is posted, because the post returns its
 * key. The grant is pending until its bind is next among the EP's requests; then it replaces the
 * grant before it, whose registration is closed.
 */
struct dofi_bind {
	struct dofi_rmr *rmr;		/* NULL when the RMR was freed; under the PZ's rmr_lock */
	struct dofi_pz *pz;
	struct dofi_part part;
	struct dofi_mr mr;		/* not open for an unbind, or after the grant has ended */
	DAT_RMR_CONTEXT context;	/* the key that peers use */
	bool listed;			/* it is in by_context */
	LIST_ENTRY(dofi_bind) by_context; /* in the PZ's grants */
	LIST_ENTRY(dofi_bind) link;	/* in the pending binds of the RMR */
};

struct dofi_rmr {
	struct dofi_obj obj;
	struct dofi_pz *pz;
	/* bound through one EP at a time, while the EP is connected */
	bool ep_scope;

	/* under the PZ's rmr_lock */
	struct dofi_bind *bound;	/* the grant in force, or NULL */
	LIST_HEAD(, dofi_bind) pending;
	const struct dofi_ep *ep;	/* of EP scope: the EP of the pending bind or the grant */
};

DOFI_OBJ_HANDLES(rmr, RMR, struct dofi_rmr);

/*
 * A bind of @rmr to @part; a bind of EP scope is for the peer that has @secret. The caller posts or
 * frees it. Registers memory, so an EP's lock must not be held.
 */
DAT_RETURN dofi_bind_new(struct dofi_rmr *rmr, const struct dofi_part *part, uint32_t secret,
			 struct dofi_bind **bind);

void dofi_bind_free(struct dofi_bind *bind);

/* Makes @bind pending, posted through @ep, if its RMR may be bound there. EP lock held. */
DAT_RETURN dofi_bind_post(struct dofi_bind *bind, const struct dofi_ep *ep);

/*
 * Puts @bind in force when it is next in the queue, and ends the former grant. On a negative errno
 * the former grant could not be ended and stays in force. Takes @bind over.
 */
int dofi_bind_execute(struct dofi_bind *bind);

/* The context in force that @bind will replace, or 0. An EP's lock may be held. */
DAT_RMR_CONTEXT dofi_bind_replaces(struct dofi_bind *bind);

/* Frees the pending @bind, which is not executed: its grant ends, and the RMR stays as it is. */
void dofi_bind_drop(struct dofi_bind *bind);

/*
 * Ends the grant of @context at the request of @ep's peer. Returns 0, or -EACCES if there is no
 * such grant in force that @ep may use, or the fabric's error. EP lock held.
 */
int dofi_rmr_invalidate(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context)
	DOFI_NEEDS_NOT(pz->rmr_lock);

/* The memory of a grant: @len bytes at @addr as peers count. */
struct dofi_rmr_memory {
	void *base;
	void *desc;			/* the LMR's descriptor */
	DAT_LMR_CONTEXT lmr;
};

/*
 * Finds the memory for an RDMA read of @ep that will write there. The grant may be pending: its
 * bind may be before the read in the EP's queue. EP lock held.
 */
DAT_RETURN dofi_rmr_find(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context,
			 uint64_t addr, uint64_t len, struct dofi_rmr_memory *memory)
	DOFI_NEEDS_NOT(pz->rmr_lock);

/* Whether @context is in force, for @ep. EP lock held. */
bool dofi_rmr_in_force(struct dofi_pz *pz, const struct dofi_ep *ep, DAT_RMR_CONTEXT context)
	DOFI_NEEDS_NOT(pz->rmr_lock);

/* The connection of @ep ends, and with it the grants of EP scope that were made through @ep. */
void dofi_rmr_end_scope(struct dofi_ia *ia, const struct dofi_ep *ep);

DAT_RETURN dofi_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);
DAT_RETURN dofi_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);
#endif

/* obj/ep/ep_bind.c: the only call on an RMR that is a request of an EP. */
DAT_RETURN dofi_rmr_bind(DAT_RMR_HANDLE rmr_handle,
			 DOFI_RMR_LMR const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS priv,
			 DOFI_LMR_VA_TYPE DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);

/* obj/ep/ep_revoke.c: operations that were posted before must not use the memory any more. */
DAT_RETURN dofi_rmr_free(DAT_RMR_HANDLE rmr_handle);

#endif
