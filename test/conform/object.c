/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes objects of every type, and wraps calls with different arguments in the two API versions. */

#include "conform.h"

#include <netinet/in.h>
#include <string.h>

static unsigned char memory[4096] __attribute__((aligned(4096)));
static DAT_HANDLE objects[N_TYPES];

const char *type_name(DAT_HANDLE_TYPE type)
{
	static const char *const names[] = {
		[DAT_HANDLE_TYPE_CR] = "CR", [DAT_HANDLE_TYPE_EP] = "EP",
		[DAT_HANDLE_TYPE_EVD] = "EVD", [DAT_HANDLE_TYPE_IA] = "IA",
		[DAT_HANDLE_TYPE_LMR] = "LMR", [DAT_HANDLE_TYPE_PSP] = "PSP",
		[DAT_HANDLE_TYPE_PZ] = "PZ", [DAT_HANDLE_TYPE_RMR] = "RMR",
		[DAT_HANDLE_TYPE_RSP] = "RSP", [DAT_HANDLE_TYPE_CNO] = "CNO",
		[DAT_HANDLE_TYPE_SRQ] = "SRQ",
#if DAT_VERSION_MAJOR >= 2
		[DAT_HANDLE_TYPE_CSP] = "CSP",
#endif
	};

	return names[type];
}

DAT_RETURN lmr_create_as(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			 DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			 DAT_LMR_HANDLE *lmr)
{
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VADDR address;
	DAT_VLEN size;

	return dat_lmr_create(ia, type, region, length, pz, priv,
#if DAT_VERSION_MAJOR >= 2
			      DAT_VA_TYPE_VA,
#endif
			      lmr, &lmr_context, &rmr_context, &size, &address);
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *part,
		    DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie,
		    DAT_RMR_CONTEXT *context)
{
	const DAT_RMR_COOKIE c = { .as_64 = cookie };

#if DAT_VERSION_MAJOR >= 2
	return dat_rmr_bind(rmr, lmr, part, priv, DAT_VA_TYPE_VA, ep, c,
			    DAT_COMPLETION_DEFAULT_FLAG, context);
#else
	return dat_rmr_bind(rmr, part, priv, ep, c, DAT_COMPLETION_DEFAULT_FLAG, context);
#endif
}

DAT_CONN_QUAL free_qualifier(struct node *n)
{
	DAT_CONN_QUAL qual;

	OK(dat_psp_free(node_listen(n, &qual)));
	return qual;
}

bool type_is_supported(struct node *n, DAT_HANDLE_TYPE type)
{
	DAT_HANDLE handle;
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };

	if (type != DAT_HANDLE_TYPE_SRQ)
		return type <= DAT_HANDLE_TYPE_CNO;
	if (dat_srq_create(n->ia, n->pz, &attr, &handle) != DAT_SUCCESS)
		return false;
	OK(dat_srq_free(handle));
	return true;
}

static DAT_HANDLE ia_make(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	OK(dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 1, &async, &ia));
	return ia;
}

static DAT_HANDLE cr_make(struct node *n)
{
	DAT_PSP_HANDLE psp;
	struct end e;

	end_open(n, &e, NULL);
	return end_request(n, &e, &psp);
}

static DAT_HANDLE srq_make(struct node *n)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq;

	NEEDS(max_srqs);
	OK(dat_srq_create(n->ia, n->pz, &attr, &srq));
	return srq;
}

#if DAT_VERSION_MAJOR >= 2
DAT_COMM *stream_comm(struct node *n)
{
	static DAT_COMM comm = { .type = SOCK_STREAM };

	comm.domain = n->address.ss_family;
	return &comm;
}

DAT_IA_ADDRESS_PTR free_address(struct node *n)
{
	static struct sockaddr_storage address;

	address = n->address;
	/* the port has the same offset in both address families */
	((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)free_qualifier(n));
	return (DAT_IA_ADDRESS_PTR)&address;
}

static DAT_HANDLE csp_make(struct node *n)
{
	DAT_CSP_HANDLE csp;

	OK(dat_csp_create(n->ia, stream_comm(n), free_address(n), n->cr, &csp));
	return csp;
}
#endif

DAT_HANDLE object_make(struct node *n, DAT_HANDLE_TYPE type)
{
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_CONN_QUAL qual;
	DAT_HANDLE h;

	switch (type) {
	case DAT_HANDLE_TYPE_IA:
		return ia_make();
	case DAT_HANDLE_TYPE_CR:
		return cr_make(n);
	case DAT_HANDLE_TYPE_EP:
		return node_ep(n, NULL);
	case DAT_HANDLE_TYPE_EVD:
		return node_evd(n, 4, DAT_EVD_DTO_FLAG);
	case DAT_HANDLE_TYPE_PSP:
		return node_listen(n, &qual);
	case DAT_HANDLE_TYPE_LMR:
		OK(lmr_create(n->ia, memory, sizeof(memory), n->pz, DAT_MEM_PRIV_ALL_FLAG, &h,
			      &lmr_context, &rmr_context));
		return h;
	case DAT_HANDLE_TYPE_PZ:
		OK(dat_pz_create(n->ia, &h));
		return h;
	case DAT_HANDLE_TYPE_RMR:
		OK(dat_rmr_create(n->pz, &h));
		return h;
	case DAT_HANDLE_TYPE_RSP:
		OK(dat_rsp_create(n->ia, free_qualifier(n), node_ep(n, NULL), n->cr, &h));
		return h;
	case DAT_HANDLE_TYPE_CNO:
		OK(dat_cno_create(n->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &h));
		return h;
	case DAT_HANDLE_TYPE_SRQ:
		return srq_make(n);
	default:
#if DAT_VERSION_MAJOR >= 2
		return csp_make(n);
#else
		return DAT_HANDLE_NULL;
#endif
	}
}

void object_free(DAT_HANDLE_TYPE type, DAT_HANDLE handle)
{
	switch (type) {
	case DAT_HANDLE_TYPE_IA: OK(dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG)); break;
	case DAT_HANDLE_TYPE_CR: OK(cr_reject(handle, 0, NULL)); break;
	case DAT_HANDLE_TYPE_EP: OK(dat_ep_free(handle)); break;
	case DAT_HANDLE_TYPE_EVD: OK(dat_evd_free(handle)); break;
	case DAT_HANDLE_TYPE_PSP: OK(dat_psp_free(handle)); break;
	case DAT_HANDLE_TYPE_LMR: OK(dat_lmr_free(handle)); break;
	case DAT_HANDLE_TYPE_PZ: OK(dat_pz_free(handle)); break;
	case DAT_HANDLE_TYPE_RMR: OK(dat_rmr_free(handle)); break;
	case DAT_HANDLE_TYPE_RSP: OK(dat_rsp_free(handle)); break;
	case DAT_HANDLE_TYPE_CNO: OK(dat_cno_free(handle)); break;
	case DAT_HANDLE_TYPE_SRQ: OK(dat_srq_free(handle)); break;
	default:
#if DAT_VERSION_MAJOR >= 2
		OK(dat_csp_free(handle));
#endif
		break;
	}
}

DAT_HANDLE object(struct node *n, DAT_HANDLE_TYPE type)
{
	if (type == DAT_HANDLE_TYPE_IA)
		return n->ia;
	if (!objects[type])
		objects[type] = object_make(n, type);
	return objects[type];
}

void objects_reset(void)
{
	memset(objects, 0, sizeof(objects));
}
