/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Public calls that neither create nor free objects: each forwards to its slot of the table. */

#include "dispatch.h"

#include <string.h>

/* Any handle */

/* The context belongs to the object, so the provider stores it. */
DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct dreg_handle obj;

	if (!dreg_handle_find(dat_handle, &obj))
		return DREG_BAD_ANY_HANDLE;
	NEEDS(obj.provider, set_consumer_context_func);
	return obj.provider->set_consumer_context_func(dat_handle, context);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct dreg_handle obj;

	if (!dreg_handle_find(dat_handle, &obj))
		return DREG_BAD_ANY_HANDLE;
	NEEDS(obj.provider, get_consumer_context_func);
	return obj.provider->get_consumer_context_func(dat_handle, context);
}

/* A provider may have handle types of its own; some providers do not know all types of DAT. */
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	struct dreg_handle obj;

	if (!dreg_handle_find(dat_handle, &obj))
		return DREG_BAD_ANY_HANDLE;
	if (!handle_type)
		return DREG_BAD_ARG(2);
	if (!obj.provider->get_handle_type_func ||
	    obj.provider->get_handle_type_func(dat_handle, handle_type) != DAT_SUCCESS)
		*handle_type = obj.kind;
	return DAT_SUCCESS;
}

/* Transfers */

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	FORWARD(EP, ep_post_send_func, ep_handle, n, iov, cookie, flags);
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	FORWARD(EP, ep_post_recv_func, ep_handle, n, iov, cookie, flags);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				 DAT_COMPLETION_FLAGS flags)
{
	FORWARD(EP, ep_post_rdma_read_func, ep_handle, n, iov, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	FORWARD(EP, ep_post_rdma_write_func, ep_handle, n, iov, cookie, remote, flags);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie)
{
	FORWARD(SRQ, srq_post_recv_func, srq_handle, n, iov, cookie);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					    DAT_RMR_CONTEXT context)
{
	FORWARD(EP, ep_post_send_with_invalidate_func, ep_handle, n, iov, cookie, flags, invalidate,
		context);
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *iov,
					DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags)
{
	FORWARD(EP, ep_post_rdma_read_to_rmr_func, ep_handle, iov, cookie, remote, flags);
}
#endif

/* Endpoints */

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	FORWARD(EP, ep_query_func, ep_handle, mask, param);
}

/*
 * Checks the handles that @mask selects; the provider refuses other handles unread. A bad handle in
 * @param is a bad argument: INVALID_HANDLE is only for the endpoint itself.
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	static const struct {
		DAT_EP_PARAM_MASK bit;
		DAT_HANDLE_TYPE type;
		size_t offset;
	} handles[] = {
		{ DAT_EP_FIELD_PZ_HANDLE, DAT_HANDLE_TYPE_PZ, offsetof(DAT_EP_PARAM, pz_handle) },
		{ DAT_EP_FIELD_RECV_EVD_HANDLE, DAT_HANDLE_TYPE_EVD,
		  offsetof(DAT_EP_PARAM, recv_evd_handle) },
		{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_HANDLE_TYPE_EVD,
		  offsetof(DAT_EP_PARAM, request_evd_handle) },
		{ DAT_EP_FIELD_CONNECT_EVD_HANDLE, DAT_HANDLE_TYPE_EVD,
		  offsetof(DAT_EP_PARAM, connect_evd_handle) },
	};
	DAT_HANDLE handle;
	size_t i;

	LOOK_UP(ep, EP, ep_handle);
	for (i = 0; param && i < sizeof(handles) / sizeof(handles[0]); i++) {
		if (!(mask & handles[i].bit))
			continue;
		memcpy(&handle, (const char *)param + handles[i].offset, sizeof(handle));
		if (!dreg_handle_arg(ep.provider, handle, handles[i].type))
			return DREG_BAD_ARG(3);
	}
	NEEDS(ep.provider, ep_modify_func);
	return ep.provider->ep_modify_func(ep_handle, mask, param);
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	FORWARD(EP, ep_get_status_func, ep_handle, ep_state, recv_idle, request_idle);
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
			  DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT size,
			  const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	FORWARD(EP, ep_connect_func, ep_handle, address, conn_qual, timeout, size, data, qos,
		flags);
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data,
			      DAT_QOS qos)
{
	LOOK_UP(ep, EP, ep_handle);
	CHECK_ARG(ep.provider, EP, ep_dup_handle, EP);
	NEEDS(ep.provider, ep_dup_connect_func);
	return ep.provider->ep_dup_connect_func(ep_handle, ep_dup_handle, timeout, size, data, qos);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
				 DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data)
{
	FORWARD(EP, ep_common_connect_func, ep_handle, address, timeout, size, data);
}
#endif

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags)
{
	FORWARD(EP, ep_disconnect_func, ep_handle, flags);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	FORWARD(EP, ep_reset_func, ep_handle);
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *buffers, DAT_COUNT *span)
{
	FORWARD(EP, ep_recv_query_func, ep_handle, buffers, span);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard)
{
	FORWARD(EP, ep_set_watermark_func, ep_handle, soft, hard);
}

/* Event dispatchers and consumer notification objects; event.c has wait and dequeue */

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	FORWARD(EVD, evd_query_func, evd_handle, mask, param);
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	LOOK_UP(evd, EVD, evd_handle);
	CHECK_ARG(evd.provider, CNO, cno_handle, CNO);
	NEEDS(evd.provider, evd_modify_cno_func);
	return evd.provider->evd_modify_cno_func(evd_handle, cno_handle);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT qlen)
{
	FORWARD(EVD, evd_resize_func, evd_handle, qlen);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	FORWARD(EVD, evd_post_se_func, evd_handle, event);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	FORWARD(EVD, evd_enable_func, evd_handle);
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	FORWARD(EVD, evd_disable_func, evd_handle);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	FORWARD(EVD, evd_set_unwaitable_func, evd_handle);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	FORWARD(EVD, evd_clear_unwaitable_func, evd_handle);
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	FORWARD(CNO, cno_modify_agent_func, cno_handle, agent);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	FORWARD(CNO, cno_query_func, cno_handle, mask, param);
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	FORWARD(CNO, cno_wait_func, cno_handle, timeout, evd_handle);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE *evd_handle)
{
	FORWARD(CNO, cno_trigger_func, cno_handle, evd_handle);
}
#endif

/* Memory */

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	FORWARD(PZ, pz_query_func, pz_handle, mask, param);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	FORWARD(LMR, lmr_query_func, lmr_handle, mask, param);
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments,
				  DAT_VLEN n)
{
	FORWARD(IA, lmr_sync_rdma_read_func, ia_handle, segments, n);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments,
				   DAT_VLEN n)
{
	FORWARD(IA, lmr_sync_rdma_write_func, ia_handle, segments, n);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	FORWARD(RMR, rmr_query_func, rmr_handle, mask, param);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS priv,
			DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	LOOK_UP(rmr, RMR, rmr_handle);
	CHECK_ARG(rmr.provider, LMR, lmr_handle, LMR);
	CHECK_ARG(rmr.provider, EP, ep_handle, EP);
	NEEDS(rmr.provider, rmr_bind_func);
	return rmr.provider->rmr_bind_func(rmr_handle, lmr_handle, triplet, priv, va_type,
					   ep_handle, cookie, flags, context);
}
#else
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *triplet,
			DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	LOOK_UP(rmr, RMR, rmr_handle);
	CHECK_ARG(rmr.provider, EP, ep_handle, EP);
	NEEDS(rmr.provider, rmr_bind_func);
	return rmr.provider->rmr_bind_func(rmr_handle, triplet, priv, ep_handle, cookie, flags,
					   context);
}
#endif

/* Shared receive queues */

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	FORWARD(SRQ, srq_query_func, srq_handle, mask, param);
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT depth)
{
	FORWARD(SRQ, srq_resize_func, srq_handle, depth);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	FORWARD(SRQ, srq_set_lw_func, srq_handle, low_watermark);
}

/* Service points and connection requests */

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	FORWARD(PSP, psp_query_func, psp_handle, mask, param);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	FORWARD(RSP, rsp_query_func, rsp_handle, mask, param);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	FORWARD(CSP, csp_query_func, csp_handle, mask, param);
}
#endif

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	FORWARD(CR, cr_query_func, cr_handle, mask, param);
}
