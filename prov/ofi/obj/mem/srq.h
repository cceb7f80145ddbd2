/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared Receive Queue: buffers for whichever of its endpoints a message arrives at. */
#ifndef DOFI_OBJ_MEM_SRQ_H
#define DOFI_OBJ_MEM_SRQ_H

#include "base/mutex.h"
#include "obj/evd/evd.h"
#include "obj/mem/lmr.h"
#include "wq/queue.h"

/* An endpoint in the SRQ's line, while a message waits for a buffer. */
struct dofi_srq_user {
	/* There is a buffer: takes it, or leaves the line. No lock held. */
	void (*feed)(struct dofi_srq_user *user);
	bool waiting;			/* under the SRQ's lock */
	TAILQ_ENTRY(dofi_srq_user) link;
	/* no buffer was free since it got the last; under its EP's lock */
	bool asked;
};

struct dofi_srq {
	struct dofi_obj obj;
	struct dofi_pz *pz;
	DAT_COUNT max_recv_iov;
	/* buffers that EPs have, or with events that are not dequeued */
	struct dofi_unread given;

	struct dofi_mutex lock;		/* the fields below; taken under an EP's lock */
	/* buffers; their LMRs are checked again when they are taken */
	struct dofi_queue queue;
	DAT_COUNT low_watermark;
	bool low_armed;			/* falling below it has to be reported, once */
	TAILQ_HEAD(, dofi_srq_user) line; /* EPs with messages that wait for buffers, in order */
};

DOFI_OBJ_HANDLES(srq, SRQ, struct dofi_srq);

/*
 * Moves the oldest buffer to @dto, a free slot with room for its segments. Returns false if there
 * is none, or if other EPs wait for it: then @user joins the line. An EP's lock held.
 */
bool dofi_srq_take(struct dofi_srq *srq, struct dofi_srq_user *user, struct dofi_dto *dto)
	DOFI_NEEDS_NOT(srq->lock);
/* @user leaves the line. Its EP's lock held. */
void dofi_srq_leave(struct dofi_srq *srq, struct dofi_srq_user *user) DOFI_NEEDS_NOT(srq->lock);
/* Whether @user is in the line. Its EP's lock held. */
bool dofi_srq_waits(struct dofi_srq *srq, const struct dofi_srq_user *user)
	DOFI_NEEDS_NOT(srq->lock);
/* The most buffers that it may hold. An EP's lock may be held. */
DAT_COUNT dofi_srq_depth(struct dofi_srq *srq) DOFI_NEEDS_NOT(srq->lock);

DAT_RETURN dofi_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *srq_handle);
DAT_RETURN dofi_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);
DAT_RETURN dofi_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT depth);
DAT_RETURN dofi_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);
DAT_RETURN dofi_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie);
DAT_RETURN dofi_srq_free(DAT_SRQ_HANDLE srq_handle);

#endif
