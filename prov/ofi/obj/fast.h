/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path. A plain operation is a send, a receive, or an RDMA write or read, of one segment, without flags. It is
 * posted, and its event is handed to the thread that polls, without a look at what it does not need, as long as the
 * conditions below hold. Each caches a state, so that the fast path looks at one field; each is written by one function.
 *
 *	condition	caches	written by
 *	ep->send	that @ep is connected and sends are open, nothing waits in either queue, no frames are sent to
 *			the peer, and the transport owes nothing; and which function of the fabric or the transport sends.
 *			NULL else	dofi_ep_plain_renew()
 *	ep->recv	the same for a receive; NULL with an SRQ, too	dofi_ep_plain_renew()
 *	ep->plain_to	the first argument of both	dofi_ep_plain_renew()
 *	ep->plain_request_evd, plain_recv_evd	ep->request_evd and recv_evd where ep->send is not NULL
 *			dofi_ep_plain_renew()
 */
#ifndef DOFI_OBJ_FAST_H
#define DOFI_OBJ_FAST_H

#include "obj/ep.h"

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
 * Where nothing is queued, nobody waits, and one CQ alone feeds it: reads the next completion straight
 * into @event. False if there is none, or it is to be had otherwise only. No lock.
 */
bool dofi_evd_look(struct dofi_evd *evd, DAT_EVENT *event);

#endif
