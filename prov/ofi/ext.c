/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The InfiniBand extension of DAT 2.0: taking the arguments of each operation apart. */

#include "ext.h"

#include "obj/caps.h"
#include "obj/counters.h"
#include "obj/datagram.h"
#include "obj/ep_post.h"

#if DAT_VERSION_MAJOR >= 2

/* dat_ib_post_rdma_write_immed(): size, lbuf, cookie, rbuf, idata, flags */
static DAT_RETURN write_immed(DAT_HANDLE handle, va_list args)
{
	struct dofi_post p = { .n = va_arg(args, DAT_COUNT) };

	p.iov = va_arg(args, DAT_LMR_TRIPLET *);
	p.cookie = va_arg(args, DAT_DTO_COOKIE);
	p.remote = va_arg(args, DAT_RMR_TRIPLET *);
	p.immed = va_arg(args, DAT_UINT32);
	p.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return dofi_ep_post_write_immed(handle, &p);
}

/* dat_ib_post_send_immed(): size, lbuf, cookie, idata, flags */
static DAT_RETURN send_immed(DAT_HANDLE handle, va_list args)
{
	struct dofi_post p = { .n = va_arg(args, DAT_COUNT) };

	p.iov = va_arg(args, DAT_LMR_TRIPLET *);
	p.cookie = va_arg(args, DAT_DTO_COOKIE);
	p.immed = va_arg(args, DAT_UINT32);
	p.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return dofi_ep_post_send_immed(handle, &p);
}

static void take_atomic(struct dofi_post *p, va_list args)
{
	p->n = 1;
	p->iov = va_arg(args, DAT_LMR_TRIPLET *);
	p->cookie = va_arg(args, DAT_DTO_COOKIE);
	p->remote = va_arg(args, DAT_RMR_TRIPLET *);
	p->flags = va_arg(args, DAT_COMPLETION_FLAGS);
}

/* dat_ib_post_fetch_and_add(): add_val, lbuf, cookie, rbuf, flags */
static DAT_RETURN fetch_add(DAT_HANDLE handle, va_list args)
{
	struct dofi_post p = { .operand = va_arg(args, DAT_UINT64) };

	take_atomic(&p, args);
	return dofi_ep_post_fetch_add(handle, &p);
}

/* dat_ib_post_cmp_and_swap(): cmp_val, swap_val, lbuf, cookie, rbuf, flags */
static DAT_RETURN cmp_swap(DAT_HANDLE handle, va_list args)
{
	struct dofi_post p = { .compare = va_arg(args, DAT_UINT64) };

	p.operand = va_arg(args, DAT_UINT64);
	take_atomic(&p, args);
	return dofi_ep_post_cmp_swap(handle, &p);
}

/*
 * dat_ib_post_send_ud(): segments, lbuf, ah_ptr, cookie, flags; dat_ib_post_send_ud_immed() has
 * idata before the flags
 */
static DAT_RETURN send_ud(DAT_HANDLE handle, va_list args, bool immed)
{
	struct dofi_post p = { .n = va_arg(args, DAT_COUNT) };

	p.iov = va_arg(args, DAT_LMR_TRIPLET *);
	p.ah = va_arg(args, DAT_IB_ADDR_HANDLE *);
	p.cookie = va_arg(args, DAT_DTO_COOKIE);
	if (immed)
		p.immed = va_arg(args, DAT_UINT32);
	p.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return immed ? dofi_ep_post_send_ud_immed(handle, &p) : dofi_ep_post_send_ud(handle, &p);
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

/* Handles of other IAs are not taken: those are closed by dat_ia_close(). */
static DAT_RETURN close_query(DAT_HANDLE handle)
{
	struct dofi_ia *ia = dofi_ia_enter(handle);
	const bool taken = ia && !ia->async_evd;

	if (ia)
		dofi_obj_leave(&ia->obj);
	return taken ? dofi_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG) : DOFI_BAD_HANDLE(IA);
}

/* dat_ib_query_counters(): cntr, p_cntrs_out, reset */
static DAT_RETURN query_counters(DAT_HANDLE handle, va_list args)
{
	int which = va_arg(args, int);
	DAT_UINT64 *out = va_arg(args, DAT_UINT64 *);

	return dofi_counters_query(handle, which, out, va_arg(args, int));
}

/* dat_ib_print_counters(): cntr, reset */
static DAT_RETURN print_counters(DAT_HANDLE handle, va_list args)
{
	int which = va_arg(args, int);

	return dofi_counters_print(stdout, handle, which, va_arg(args, int));
}

/* dat_ib_start_counter(), dat_ib_stop_counter(): type */
static DAT_RETURN run_counters(DAT_HANDLE handle, va_list args, bool run)
{
	return dofi_counters_run(handle, va_arg(args, int), run);
}

DAT_RETURN dofi_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	switch ((unsigned)op) {
	case DAT_IB_FETCH_AND_ADD_OP:
		return fetch_add(handle, args);
	case DAT_IB_CMP_AND_SWAP_OP:
		return cmp_swap(handle, args);
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		return write_immed(handle, args);
	case DAT_IB_SEND_IMMED_OP:
		return send_immed(handle, args);
	case DAT_IB_UD_SEND_OP:
		return send_ud(handle, args, false);
	case DAT_IB_UD_SEND_IMMED_OP:
		return send_ud(handle, args, true);
	case DAT_IB_UD_CM_FREE_OP:
		return dofi_ud_cm_free(handle, va_arg(args, void *));
	case DAT_IB_UD_AH_FREE_OP:
		return dofi_ud_ah_free(handle, va_arg(args, DAT_IB_ADDR_HANDLE *));
	case DAT_IB_QUERY_COUNTERS_OP:
		return query_counters(handle, args);
	case DAT_IB_PRINT_COUNTERS_OP:
		return print_counters(handle, args);
	case DAT_IB_START_COUNTERS_OP:
		return run_counters(handle, args, true);
	case DAT_IB_STOP_COUNTERS_OP:
		return run_counters(handle, args, false);
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
