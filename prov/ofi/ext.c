/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The InfiniBand extension of DAT 2.0: taking the arguments of each operation apart. */

#include "ext.h"

#include "obj/caps.h"
#include "obj/counters.h"
#include "obj/ep/datagram.h"
#include "obj/ep/ep_post.h"

#if DAT_VERSION_MAJOR >= 2

/*
 * The posts have these arguments, in this order:
 *	send_immed		segments, lbuf, cookie, idata, flags
 *	rdma_write_immed	segments, lbuf, cookie, rbuf, idata, flags
 *	fetch_and_add		add_val, lbuf, cookie, rbuf, flags
 *	cmp_and_swap		cmp_val, swap_val, lbuf, cookie, rbuf, flags
 *	send_ud			segments, lbuf, ah_ptr, cookie, flags
 *	send_ud_immed		segments, lbuf, ah_ptr, cookie, idata, flags
 */
static DAT_RETURN post(DAT_HANDLE handle, unsigned op, va_list args)
{
	const bool atomic = op == DAT_IB_FETCH_AND_ADD_OP || op == DAT_IB_CMP_AND_SWAP_OP;
	struct dofi_post p = { .n = 1 };

	if (op == DAT_IB_CMP_AND_SWAP_OP)
		p.compare = va_arg(args, DAT_UINT64);
	if (atomic)
		p.operand = va_arg(args, DAT_UINT64);
	else
		p.n = va_arg(args, DAT_COUNT);
	p.iov = va_arg(args, DAT_LMR_TRIPLET *);
	if (op == DAT_IB_UD_SEND_OP || op == DAT_IB_UD_SEND_IMMED_OP)
		p.ah = va_arg(args, DAT_IB_ADDR_HANDLE *);
	p.cookie = va_arg(args, DAT_DTO_COOKIE);
	if (atomic || op == DAT_IB_RDMA_WRITE_IMMED_OP)
		p.remote = va_arg(args, DAT_RMR_TRIPLET *);
	if (!atomic && op != DAT_IB_UD_SEND_OP)
		p.immed = va_arg(args, DAT_UINT32);
	p.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	switch (op) {
	case DAT_IB_FETCH_AND_ADD_OP:
		return dofi_ep_post_fetch_add(handle, &p);
	case DAT_IB_CMP_AND_SWAP_OP:
		return dofi_ep_post_cmp_swap(handle, &p);
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		return dofi_ep_post_write_immed(handle, &p);
	case DAT_IB_SEND_IMMED_OP:
		return dofi_ep_post_send_immed(handle, &p);
	case DAT_IB_UD_SEND_OP:
		return dofi_ep_post_send_ud(handle, &p);
	default:
		return dofi_ep_post_send_ud_immed(handle, &p);
	}
}

/*
 * dat_ib_open_query(): name, ia_handle, ia_mask, ia_attr, prov_mask, prov_attr. The registry finds
 * the provider by the name and passes it where other calls have a handle.
 */
static DAT_RETURN open_query(DAT_HANDLE name, va_list args)
{
	DAT_HANDLE *ia_handle = va_arg(args, DAT_HANDLE *);
	const DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *ia_attr = va_arg(args, DAT_IA_ATTR *);
	const DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
	DAT_PROVIDER_ATTR *provider_attr = va_arg(args, DAT_PROVIDER_ATTR *);
	struct dofi_ia *ia;
	DAT_RETURN ret;

	if (!name)
		return DOFI_BAD_ARG(3);
	if (!ia_handle)
		return DOFI_BAD_ARG(4);
	ret = dofi_prov_open_bare(name, &ia);
	if (ret)
		return ret;
	ret = dofi_ia_query(ia, NULL, ia_mask, ia_attr, provider_mask, provider_attr);
	if (ret)
		dofi_ia_destroy(ia);
	else
		*ia_handle = ia;
	return ret;
}

/* Refuses other IAs, which dat_ia_close() closes. */
static DAT_RETURN close_query(DAT_HANDLE handle)
{
	struct dofi_ia *ia = dofi_ia_enter(handle);
	const bool taken = ia && !ia->async_evd;

	if (ia)
		dofi_obj_leave(&ia->obj);
	return taken ? dofi_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG) : DOFI_BAD_HANDLE(IA);
}

DAT_RETURN dofi_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAT_UINT64 *out;
	int which;

	switch ((unsigned)op) {
	case DAT_IB_FETCH_AND_ADD_OP:
	case DAT_IB_CMP_AND_SWAP_OP:
	case DAT_IB_RDMA_WRITE_IMMED_OP:
	case DAT_IB_SEND_IMMED_OP:
	case DAT_IB_UD_SEND_OP:
	case DAT_IB_UD_SEND_IMMED_OP:
		return post(handle, (unsigned)op, args);
	case DAT_IB_UD_CM_FREE_OP:
		return dofi_ud_cm_free(handle, va_arg(args, void *));
	case DAT_IB_UD_AH_FREE_OP:
		return dofi_ud_ah_free(handle, va_arg(args, DAT_IB_ADDR_HANDLE *));
	case DAT_IB_QUERY_COUNTERS_OP:	/* cntr, p_cntrs_out, reset */
		which = va_arg(args, int);
		out = va_arg(args, DAT_UINT64 *);
		return dofi_counters_query(handle, which, out, va_arg(args, int));
	case DAT_IB_PRINT_COUNTERS_OP:	/* cntr, reset */
		which = va_arg(args, int);
		return dofi_counters_print(stdout, handle, which, va_arg(args, int));
	case DAT_IB_START_COUNTERS_OP:	/* type */
	case DAT_IB_STOP_COUNTERS_OP:
		return dofi_counters_run(handle, va_arg(args, int),
					 (unsigned)op == DAT_IB_START_COUNTERS_OP);
	case DAT_IB_OPEN_QUERY_OP:
		return open_query(handle, args);
	case DAT_IB_CLOSE_QUERY_OP:
		return close_query(handle);
	default:
		if (!handle)
			return DOFI_INVALID_HANDLE;
		return (unsigned)op <= DAT_IB_UD_AH_FREE_OP ? DOFI_NOT_SUPPORTED :
							      DOFI_NOT_IMPLEMENTED;
	}
}
#endif
