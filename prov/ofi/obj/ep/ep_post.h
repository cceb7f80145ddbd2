/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posting operations. */
#ifndef DOFI_OBJ_EP_EP_POST_H
#define DOFI_OBJ_EP_EP_POST_H

#include "obj/ep/ep.h"
#include "obj/mem/segments.h"

/* Whether a request of @ep may have these completion flags. */
bool dofi_dto_request_flags(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags);

/* A request as the consumer posted it. */
struct dofi_post {
	DAT_COUNT n;
	const DAT_LMR_TRIPLET *iov;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;	/* NULL for sends and receives */
	const DAT_RMR_TRIPLET *local;	/* of a read to an RMR, instead of iov */
	uint32_t immed;			/* immediate data, or the context to be invalidated */
	uint64_t operand, compare;
	const struct dat_ib_addr_handle *ah;	/* of a datagram */
};

/* The address in @remote. */
static inline uint64_t dofi_remote_address(const DAT_RMR_TRIPLET *remote)
{
#if DAT_VERSION_MAJOR >= 2
	return remote->virtual_address;
#else
	return remote->target_address;
#endif
}

/*
 * The maximum length of an operation of @kind. The EP's attributes limit sends; the fabric limits
 * the others, because programs write and read more than the max_rdma_size that they requested.
 */
static inline uint64_t dofi_post_longest(const struct dofi_ep *ep, uint8_t kind)
{
	const struct dofi_limits *limits = &ep->obj.ia->limits;

	if (dofi_dto_is(kind, DOFI_DTO_SENDS | DOFI_DTO_DATAGRAMS))
		return ep->attr.max_message_size;
	return dofi_segment_longest(kind == DOFI_DTO_RECV ? limits->max_message_size :
							    limits->max_rdma_size);
}

/* Posts a request of @kind, checking all of @p. */
DAT_RETURN dofi_ep_post_request(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p);

/* Posts a request of any segments and flags; @remote is NULL for sends. */
DAT_RETURN dofi_ep_post_any(struct dofi_ep *ep, uint8_t kind, DAT_COUNT n,
			    const DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/* Posts a receive of any segments and flags. */
DAT_RETURN dofi_ep_recv_any(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

/*
 * Grows the request queue within its limit, and reads the CQ if the queue is still full: a program
 * that wants no events of its requests has no reason to poll. Call with the EP lock held; it is
 * dropped during the read.
 */
void dofi_ep_reclaim_slots(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags);
#endif

/* The requests of the InfiniBand extension. Only 2.0 programs can post them. */

/*
 * Each posts @p as its name says. The subtype of a wrong argument is its position in
 * dat_extension_op(): the operation's first is the third there. DAT_MODEL_NOT_SUPPORTED if the
 * fabric, or for an atomic the peer, cannot do it.
 */
DAT_RETURN dofi_ep_post_send_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_write_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_fetch_add(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_cmp_swap(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
/* Datagrams to p->ah, which is read if the EP is a datagram EP; else DAT_INVALID_HANDLE. */
DAT_RETURN dofi_ep_post_send_ud(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_send_ud_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);

#endif
