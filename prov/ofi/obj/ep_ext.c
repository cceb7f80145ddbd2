/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The requests of the InfiniBand extension: their arguments. */

#include "obj/ep_post.h"

static DAT_RETURN bad_arg(int n)
{
	return DOFI_RET(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + (n - 1));
}

/* The segments are arguments 3 and 4, the flags argument @flags_arg. */
static DAT_RETURN post_immed(struct dofi_ep *ep, uint8_t kind, DAT_COUNT max_iov, int flags_arg,
			     const struct dofi_post *p)
{
	if (!dofi_fabric_has_immed(&ep->obj.ia->fabric))
		return DOFI_NOT_SUPPORTED;
	if ((unsigned)p->n > (unsigned)max_iov)
		return bad_arg(3);
	if (p->n && !p->iov)
		return bad_arg(4);
	if (!dofi_dto_request_flags(ep, p->flags))
		return bad_arg(flags_arg);
	return dofi_ep_post_ext(ep, kind, p);
}

DAT_RETURN dofi_ep_post_send_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	return post_immed(ep, DOFI_DTO_SEND_IMMED, ep->attr.max_request_iov, 7, p);
}

DAT_RETURN dofi_ep_post_write_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!p->remote)
		return bad_arg(6);
	return post_immed(ep, DOFI_DTO_WRITE_IMMED, ep->attr.max_rdma_write_iov, 8, p);
}

/* The local segment is argument @first; the cookie, the remote segment and the flags follow. */
static DAT_RETURN post_atomic(DAT_EP_HANDLE ep_handle, uint8_t kind, int first,
			      const struct dofi_post *p)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	struct dofi_post exact = *p;
	DAT_RMR_TRIPLET remote;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (!dofi_fabric_has_atomics(&ep->obj.ia->fabric))
		return DOFI_NOT_SUPPORTED;
	if (!p->iov)
		return bad_arg(first);
	if (!p->remote || dofi_remote_address(p->remote) % sizeof(uint64_t))
		return bad_arg(first + 2);
	if (!dofi_dto_request_flags(ep, p->flags))
		return bad_arg(first + 3);
	if (p->iov->segment_length != sizeof(uint64_t) ||
	    p->remote->segment_length < sizeof(uint64_t))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	/* programs name a whole region, and mean its first 8 bytes */
	remote = *p->remote;
	remote.segment_length = sizeof(uint64_t);
	exact.remote = &remote;
	return dofi_ep_post_ext(ep, kind, &exact);
}

DAT_RETURN dofi_ep_post_fetch_add(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_atomic(ep_handle, DOFI_DTO_FETCH_ADD, 4, p);
}

DAT_RETURN dofi_ep_post_cmp_swap(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_atomic(ep_handle, DOFI_DTO_CMP_SWAP, 5, p);
}

#if DAT_VERSION_MAJOR >= 2
/*
 * The segments are arguments 3 and 4, the address handle 5, the flags argument @flags_arg. Checks
 * under the lock, as other posts do: the EP may be freed meanwhile.
 */
static DAT_RETURN post_datagram(DAT_EP_HANDLE ep_handle, uint8_t kind, int flags_arg,
				const struct dofi_post *p)
{
	struct dofi_ep *ep = dofi_ep_check(ep_handle);
	const struct dofi_datagrams *service;
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_ep_lock(ep);
	service = ep->obj.ia->datagrams;
	if (!dofi_obj_is_live(&ep->obj, DAT_HANDLE_TYPE_EP))
		ret = DOFI_BAD_HANDLE(EP);
	else if (!service)
		ret = DOFI_NOT_SUPPORTED;
	else if (!ep->datagrams)
		ret = DOFI_BAD_HANDLE(EP);
	else if ((unsigned)p->n > (unsigned)ep->attr.max_request_iov)
		ret = bad_arg(3);
	else if (p->n && !p->iov)
		ret = bad_arg(4);
	else if (!p->ah || !service->ah_valid(ep, p->ah->ah))
		ret = bad_arg(5);
	else if (!dofi_dto_request_flags(ep, p->flags))
		ret = bad_arg(flags_arg);
	else
		ret = dofi_ep_post_locked(ep, kind, p);
	dofi_ep_unlock(ep);
	return ret;
}

DAT_RETURN dofi_ep_post_send_ud(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_datagram(ep_handle, DOFI_DTO_SEND_UD, 7, p);
}

DAT_RETURN dofi_ep_post_send_ud_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p)
{
	return post_datagram(ep_handle, DOFI_DTO_SEND_UD_IMMED, 8, p);
}
#endif
