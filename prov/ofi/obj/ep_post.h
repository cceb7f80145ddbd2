/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posting operations. */
#ifndef DOFI_OBJ_EP_POST_H
#define DOFI_OBJ_EP_POST_H

#include "obj/ep.h"

/* Whether a request of @ep may be posted with these completion flags. */
bool dofi_dto_request_flags(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags);

/* A request as the consumer posted it. */
struct dofi_post {
	DAT_COUNT n;
	const DAT_LMR_TRIPLET *iov;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;	/* NULL for sends and receives */
	const DAT_RMR_TRIPLET *local;	/* of a read to an RMR, instead of iov */
	uint32_t immed;			/* what is sent along: data, or a context to be ended */
	uint64_t operand, compare;
};

/* Posts a request of the extension, whose count of segments, pointers and flags are good. */
DAT_RETURN dofi_ep_post_ext(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p);

/*
 * Looks for slots of requests that are done, where the queue is full: a program that wants no event of its requests
 * has no reason to poll, so that they are done may be seen here first. EP lock held, and dropped meanwhile.
 */
void dofi_ep_make_room(struct dofi_ep *ep);

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context);
DAT_RETURN dofi_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags);
#endif
DAT_RETURN dofi_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);

#endif
