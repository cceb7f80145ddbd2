/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Public calls that create and free objects, and so change the set of live handles. */

#include "dispatch.h"

/* Adds the handle that a provider has stored at @out; without memory the IA destroys the object. */
static DAT_RETURN object_add(DAT_RETURN ret, const struct dreg_handle *parent, DAT_HANDLE_TYPE kind,
			     const DAT_HANDLE *out)
{
	struct dreg_handle child = {
		.provider = parent->provider,
		.owner = parent->owner,
		.kind = kind,
		.flags = parent->flags & DREG_EXTENSIONS,
	};

	if (ret != DAT_SUCCESS || !out)
		return ret;
	return dreg_handle_add(*out, &child) ? DREG_NO_MEMORY : DAT_SUCCESS;
}

/* Last part of a call that creates an object of KIND and stores its handle in *OUT. */
#define CREATE(parent, KIND, out, func, ...)						\
	do {										\
		NEEDS((parent)->provider, func);					\
		return object_add((parent)->provider->func(__VA_ARGS__, out), parent,	\
				  DAT_HANDLE_TYPE_##KIND, out);				\
	} while (0)

/* Body of a call that frees an object: drops the handle if the provider succeeds. */
#define FREE(KIND, func, handle)							\
	do {										\
		DAT_RETURN ret;								\
											\
		LOOK_UP(obj, KIND, handle);						\
		NEEDS(obj.provider, func);						\
		ret = obj.provider->func(handle);					\
		if (ret == DAT_SUCCESS)							\
			dreg_handle_drop(handle, obj.serial);				\
		return ret;								\
	} while (0)

/* Event dispatchers and consumer notification objects */

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			  DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, CNO, cno_handle, CNO);
	CREATE(&ia, EVD, evd_handle, evd_create_func, ia_handle, qlen, cno_handle, flags);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	FREE(EVD, evd_free_func, evd_handle);
}

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CREATE(&ia, CNO, cno_handle, cno_create_func, ia_handle, agent);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CREATE(&ia, CNO, cno_handle, cno_fd_create_func, ia_handle, fd);
}
#endif

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle)
{
	FREE(CNO, cno_free_func, cno_handle);
}

/* Endpoints */

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd,
			 DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, PZ, pz_handle, PZ);
	CHECK_ARG(ia.provider, EVD, recv_evd, EVD_RECV);
	CHECK_ARG(ia.provider, EVD, request_evd, EVD_REQUEST);
	CHECK_ARG(ia.provider, EVD, connect_evd, EVD_CONN);
	CREATE(&ia, EP, ep_handle, ep_create_func, ia_handle, pz_handle, recv_evd, request_evd,
	       connect_evd, attr);
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				  DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, PZ, pz_handle, PZ);
	CHECK_ARG(ia.provider, EVD, recv_evd, EVD_RECV);
	CHECK_ARG(ia.provider, EVD, request_evd, EVD_REQUEST);
	CHECK_ARG(ia.provider, EVD, connect_evd, EVD_CONN);
	CHECK_ARG(ia.provider, SRQ, srq_handle, SRQ);
	CREATE(&ia, EP, ep_handle, ep_create_with_srq_func, ia_handle, pz_handle, recv_evd,
	       request_evd, connect_evd, srq_handle, attr);
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	FREE(EP, ep_free_func, ep_handle);
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			  DAT_SRQ_HANDLE *srq_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, PZ, pz_handle, PZ);
	CREATE(&ia, SRQ, srq_handle, srq_create_func, ia_handle, pz_handle, attr);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	FREE(SRQ, srq_free_func, srq_handle);
}

/* Memory */

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CREATE(&ia, PZ, pz_handle, pz_create_func, ia_handle);
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	FREE(PZ, pz_free_func, pz_handle);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			  DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			  DAT_MEM_PRIV_FLAGS priv,
#if DAT_VERSION_MAJOR >= 2
			  DAT_VA_TYPE va_type,
#endif
			  DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *reg_length,
			  DAT_VADDR *reg_address)
{
	DAT_RETURN ret;

	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, PZ, pz_handle, PZ);
	if (mem_type == DAT_MEM_TYPE_LMR)
		CHECK_ARG(ia.provider, LMR, region.for_lmr_handle, LMR);
	NEEDS(ia.provider, lmr_create_func);
	ret = ia.provider->lmr_create_func(ia_handle, mem_type, region, length, pz_handle, priv,
#if DAT_VERSION_MAJOR >= 2
					   va_type,
#endif
					   lmr_handle, lmr_context, rmr_context, reg_length,
					   reg_address);
	return object_add(ret, &ia, DAT_HANDLE_TYPE_LMR, lmr_handle);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	FREE(LMR, lmr_free_func, lmr_handle);
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	LOOK_UP(pz, PZ, pz_handle);
	CREATE(&pz, RMR, rmr_handle, rmr_create_func, pz_handle);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	LOOK_UP(pz, PZ, pz_handle);
	CREATE(&pz, RMR, rmr_handle, rmr_create_for_ep_func, pz_handle);
}
#endif

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	FREE(RMR, rmr_free_func, rmr_handle);
}

/* Service points */

/* Sets the flag before the first request can arrive; see dat_evd_dequeue(). */
#define CHECK_REQUEST_EVD(provider, evd)						\
	do {										\
		CHECK_ARG(provider, EVD, evd, EVD_CR);					\
		dreg_handle_flag(evd, DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS);	\
	} while (0)

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_REQUEST_EVD(ia.provider, evd_handle);
	CREATE(&ia, PSP, psp_handle, psp_create_func, ia_handle, conn_qual, evd_handle, flags);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_REQUEST_EVD(ia.provider, evd_handle);
	CREATE(&ia, PSP, psp_handle, psp_create_any_func, ia_handle, conn_qual, evd_handle, flags);
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	FREE(PSP, psp_free_func, psp_handle);
}

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
			  DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_ARG(ia.provider, EP, ep_handle, EP);
	CHECK_REQUEST_EVD(ia.provider, evd_handle);
	CREATE(&ia, RSP, rsp_handle, rsp_create_func, ia_handle, conn_qual, ep_handle, evd_handle);
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	FREE(RSP, rsp_free_func, rsp_handle);
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			  DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle)
{
	LOOK_UP(ia, IA, ia_handle);
	CHECK_REQUEST_EVD(ia.provider, evd_handle);
	CREATE(&ia, CSP, csp_handle, csp_create_func, ia_handle, comm, address, evd_handle);
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle)
{
	FREE(CSP, csp_free_func, csp_handle);
}
#endif
