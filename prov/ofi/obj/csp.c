/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common Service Point of DAT 2.0: listens at a port of the IA's address. */

#include "obj/sp.h"

#if DAT_VERSION_MAJOR >= 2

#include "obj/child.h"

#include <netinet/in.h>
#include <string.h>

struct dofi_pool dofi_csp_pool = DOFI_POOL_INIT("csp", struct dofi_csp, NULL);

static void csp_describe(struct dofi_sp *sp)
{
	struct dofi_csp *csp = (struct dofi_csp *)sp;

	csp->comm = dofi_ia_comm(sp->obj.ia);
	csp->address = sp->obj.ia->address;
	((struct sockaddr_in *)&csp->address)->sin_port = htons(sp->conn_qual);
}

static const struct dofi_sp_kind csp_kind = {
	.pool = &dofi_csp_pool,
	.type = DAT_HANDLE_TYPE_CSP,
	.evd_taken = DOFI_BAD_ARG(4),
	.describe = csp_describe,
};

/* Whether @address is the IA's, or any address of its family. */
static bool is_local(const struct dofi_ia *ia, const struct sockaddr *address)
{
	if (address->sa_family != ia->address.ss_family)
		return false;
	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const void *)address,
					  *own = (const void *)&ia->address;

		return IN6_IS_ADDR_UNSPECIFIED(&a->sin6_addr) ||
		       !memcmp(&a->sin6_addr, &own->sin6_addr, sizeof(a->sin6_addr));
	} else {
		const struct sockaddr_in *a = (const void *)address,
					 *own = (const void *)&ia->address;

		return a->sin_addr.s_addr == htonl(INADDR_ANY) ||
		       a->sin_addr.s_addr == own->sin_addr.s_addr;
	}
}

DAT_RETURN dofi_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle)
{
	const struct sockaddr *at = (const struct sockaddr *)address;
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_evd *evd DOFI_USED = dofi_evd_use(evd_handle, ia);
	struct dofi_sp_plan plan = { .kind = &csp_kind, .ia = ia, .evd = evd };
	struct dofi_sp *sp;
	DAT_RETURN ret;
	DAT_COMM ours;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!comm)
		return DOFI_BAD_ARG(2);
	ours = dofi_ia_comm(ia);
	if (comm->domain != ours.domain || comm->type != ours.type ||
	    (comm->protocol && comm->protocol != ours.protocol))
		return DOFI_RET(DAT_COMM_NOT_SUPPORTED, 0);
	if (!at || !is_local(ia, at))
		return DOFI_BAD_ARG(3);
	/* the port is at the same offset in the addresses of both families */
	plan.conn_qual = ntohs(((const struct sockaddr_in *)at)->sin_port);
	if (!plan.conn_qual)
		return DOFI_BAD_ARG(3);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DOFI_BAD_HANDLE(EVD_CR);
	if (!csp_handle)
		return DOFI_BAD_ARG(5);
	ret = dofi_sp_new(&plan, &sp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DOFI_RET(DAT_PORT_IN_USE, 0);
	if (!ret)
		*csp_handle = sp;
	return ret;
}

DAT_RETURN dofi_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	struct dofi_csp *csp DOFI_CALL = dofi_csp_enter(csp_handle);

	if (!csp)
		return DOFI_BAD_HANDLE(CSP);
	if (mask & ~DAT_CSP_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_CSP_PARAM){
		.ia_handle = dofi_ia_export(csp->sp.obj.ia),
		.comm = &csp->comm,
		.address_ptr = (DAT_IA_ADDRESS_PTR)&csp->address,
		.evd_handle = csp->sp.evd,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dofi_csp_free(DAT_CSP_HANDLE csp_handle)
{
	struct dofi_csp *csp = dofi_csp_enter(csp_handle);

	return csp && !dofi_obj_free_unused(&csp->sp.obj) ? DAT_SUCCESS : DOFI_BAD_HANDLE(CSP);
}

#endif
