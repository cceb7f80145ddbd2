/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path. A plain operation is a send, a receive, or an RDMA write or read, of one segment,
 * without flags that concern the peer or an earlier read. It is posted, and its event is handed to
 * the thread that polls, without testing each obstacle: the fields below cache the tests. The
 * functions named below write a field; call them after changing anything that it caches.
 *
 *	ep->fast
 *		the EP is connected, its queues are open and not held, nothing waits in them, the
 *		peer wants no preambles, nothing is to be resumed; and the functions of its
 *		transport or fabric endpoint. dofi_fast_renew()
 *	q->open
 *		the EP has a fabric endpoint, is not closing, and its state lets the operations of
 *		this queue go to the fabric. dofi_ep_open_queues()
 *	q->soft_limit
 *		there are slots, events that were not dequeued leave room, no watermark is passed.
 *		dofi_queue_widen(), dofi_queue_narrow(), dofi_dto_watermarks()
 *	q->lmr
 *		the LMR of the last plain operation is there and has the privileges; dofi_lmr_none
 *		unless ep->fast is set. change_lmr(), dofi_fast_renew(); an LMR that was freed has
 *		no context any more
 *	evd->sole_cq
 *		one CQ alone feeds the EVD, no thread waits there, and no CNO watches it.
 *		dofi_evd_route()
 *	cq->programs_fid
 *		a thread of the program may read one completion from this fid. NULL over rings
 *		and connectionless fabrics, as their contexts are not slots. dofi_cq_route()
 *	cq->programs_poll
 *		a thread of the program may take one message or datagram out of a ring:
 *		dofi_rings_poll(). NULL over fabrics, and while the CQ is armed, led or closed.
 *		dofi_cq_route()
 */
#ifndef DOFI_OBJ_EP_FAST_H
#define DOFI_OBJ_EP_FAST_H

#include "obj/ep/ep.h"

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context);
#endif

DAT_RETURN dofi_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

/*
 * Where one CQ alone feeds the EVD: reads the next completion straight into @event. Returns false
 * if there is none, or if only dofi_evd_dequeue() gets it. No lock held.
 */
bool dofi_evd_poll(struct dofi_evd *evd, DAT_EVENT *event);

#endif
