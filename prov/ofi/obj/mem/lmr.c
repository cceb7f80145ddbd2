/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Local Memory Region: a registration, the check of segments, and atomics of peers. */

#include "obj/mem/lmr.h"

#include "base/log.h"
#include "base/mapped.h"
#include "obj/caps.h"
#include "obj/obj.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

struct dofi_pool dofi_lmr_pool = DOFI_POOL_INIT("lmr", struct dofi_lmr, NULL);

DAT_RETURN dofi_lmr_refusal(const struct dofi_lmr *lmr, uint64_t addr, uint64_t len,
			    const struct dofi_pz *pz, DAT_MEM_PRIV_FLAGS priv)
{
	const bool writes = priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

	if (!lmr || dofi_lmr_pz(lmr) != pz)
		return DOFI_RET(DAT_PROTECTION_VIOLATION,
				writes ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
	if (!dofi_lmr_covers(lmr, addr, len))
		return DOFI_BAD_ARG(3);	/* argument 3 of every post call */
	return DOFI_RET(DAT_PRIVILEGES_VIOLATION,
			writes ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
}

/* An LMR with this privilege may be the target of atomics; uDAPL 1.2 has none. */
#if DAT_VERSION_MAJOR >= 2
#define REMOTE_ATOMIC DAT_IB_MEM_PRIV_REMOTE_ATOMIC
#else
#define REMOTE_ATOMIC 0
#endif
#define REMOTE_CHANGE (DAT_MEM_PRIV_REMOTE_WRITE_FLAG | REMOTE_ATOMIC)
#define REMOTE_PRIV (DAT_MEM_PRIV_REMOTE_READ_FLAG | REMOTE_CHANGE)

/* A queue may cache @lmr as its last: without a context it matches no segment. */
DAT_LMR_CONTEXT dofi_lmr_end(struct dofi_lmr *lmr)
{
	return atomic_exchange(&lmr->context, 0);
}

int dofi_lmr_atomic(struct dofi_pz *pz, const struct dofi_atomic *a, uint64_t *old)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	uint64_t *target = (uint64_t *)(uintptr_t)a->addr;
	struct dofi_lmr *lmr;
	int ret = -EACCES;

	/* held throughout, so that the LMR is not freed meanwhile */
	dofi_mutex_lock(&pz->atomic_lock);
	/* a list is enough: few regions are the target of atomics */
	LIST_FOREACH(lmr, &pz->atomic_lmrs, atomic_link)
		if (lmr->key == a->key)
			break;
	if (lmr && !(a->addr % sizeof(*target)) &&
	    dofi_lmr_covers(lmr, a->addr, sizeof(*target))) {
		/* the processor's atomics: other PZs, processes and the program use the memory */
		*old = a->compare;
		if (a->swap)
			__atomic_compare_exchange_n(target, old, a->operand, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		else
			*old = __atomic_fetch_add(target, a->operand, __ATOMIC_SEQ_CST);
		ret = 0;
	}
	dofi_mutex_unlock(&pz->atomic_lock);
	/* a peer may repeat it endlessly */
	if (ret && !atomic_flag_test_and_set(&reported))
		dofi_obj_log(&pz->obj, DOFI_WARN, DOFI_MEM,
			     "refused a peer's atomic operation at %#llx, context %#x, for its %s; "
			     "reported once", (unsigned long long)a->addr, a->key,
			     lmr ? "range or alignment" : "context or privilege");
	return ret;
}

static void lmr_destroy(struct dofi_obj *obj)
{
	struct dofi_lmr *lmr = (struct dofi_lmr *)obj;
	struct dofi_pz *pz = lmr->pz;
	int ret;

	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_LMR);
	if (lmr->priv & REMOTE_ATOMIC) {
		dofi_mutex_lock(&pz->atomic_lock);
		LIST_REMOVE(lmr, atomic_link);
		dofi_mutex_unlock(&pz->atomic_lock);
	}
	dofi_lmr_end(lmr);
	__atomic_store_n(&lmr->pz, NULL, __ATOMIC_RELAXED);
	ret = dofi_mr_close(&lmr->mr);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_MEM, "closing a registration: %s", fi_strerror(-ret));
	dofi_obj_put(&pz->obj);
	dofi_obj_free(&dofi_lmr_pool, DAT_HANDLE_TYPE_LMR, obj);
}

uint64_t dofi_lmr_remote_access(DAT_MEM_PRIV_FLAGS priv)
{
	return (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? FI_REMOTE_READ : 0) |
	       (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? FI_REMOTE_WRITE : 0);
}

const struct dofi_lmr dofi_lmr_none;

/* The arguments of a registration, without the differences between the versions. */
struct lmr_request {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;
	bool zero_based;
	/* derived from the arguments */
	const void *base;
	struct dofi_shared shared;
};

static DAT_RETURN range_check(const struct lmr_request *r, const struct dofi_ia *ia)
{
	const uint64_t most = dofi_caps_value(ia, DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE);
	const unsigned long long length = r->length;

	if (!length)
		return DOFI_REFUSED(DOFI_RET(DAT_LENGTH_ERROR, 0), DOFI_MEM,
				    "length is 0; permitted: 1 to %llu", (unsigned long long)most);
	if (!r->base || !dofi_range_is_local(r->base, length))
		return DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_MEM, "no memory lies at %p with the "
				    "length %llu", r->base, length);
	if (length > most)
		return DOFI_REFUSED(DOFI_BAD_ARG(4), DOFI_MEM, "length is %llu; permitted: 1 to "
				    "%llu", length, (unsigned long long)most);
	return DAT_SUCCESS;
}

/* Whether no LMR of @ia has the cookie for other memory. */
static bool cookie_fits(struct dofi_ia *ia, const struct lmr_request *r)
{
	const struct dofi_obj *obj;
	bool fits = true;

	dofi_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(DAT_HANDLE_TYPE_LMR)], sibling) {
		const struct dofi_lmr *lmr = (const struct dofi_lmr *)obj;
		const struct dofi_shared *a = &lmr->shared, *b = &r->shared;

		if (lmr->type == DAT_MEM_TYPE_SHARED_VIRTUAL &&
		    !memcmp(lmr->cookie, *r->region.for_shared_memory.shared_memory_id,
			    sizeof(lmr->cookie)))
			fits &= lmr->len == r->length && a->major == b->major &&
				a->minor == b->minor && a->inode == b->inode &&
				a->offset == b->offset;
	}
	dofi_mutex_unlock(&ia->lock);
	return fits;
}

/*
 * Memory that several processes register by one cookie. No fabric shares translations among
 * processes, so each process has a registration of its own.
 */
static DAT_RETURN shared_resolve(struct lmr_request *r, struct dofi_ia *ia)
{
	const DAT_SHARED_MEMORY *m = &r->region.for_shared_memory;
	DAT_RETURN ret;
	int err;

	if (!m->shared_memory_id)
		return DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_MEM, "no shared_memory_id");
	r->base = m->virtual_address;
	ret = range_check(r, ia);
	if (ret)
		return ret;
	err = dofi_shared_find(r->base, r->length, &r->shared);
	if (err)
		return DOFI_REFUSED(err == -EFAULT ? DOFI_BAD_ARG(3) :
						     DOFI_RET(DAT_INVALID_STATE, 0),
				    DOFI_MEM, "memory to share: %s", strerror(-err));
	if (!cookie_fits(ia, r))
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_STATE, 0), DOFI_MEM,
				    "shared_memory_id was used for other memory");
	return DAT_SUCCESS;
}

/* Finds the memory of the arguments. The PZ, privileges and address type of an LMR may differ. */
static DAT_RETURN request_resolve(struct lmr_request *r, struct dofi_ia *ia)
{
	switch (r->type) {
	case DAT_MEM_TYPE_VIRTUAL:
		r->base = r->region.for_va;
		return range_check(r, ia);
	case DAT_MEM_TYPE_LMR: {
		const struct dofi_lmr *of DOFI_CALL = dofi_lmr_enter(r->region.for_lmr_handle);

		if (!of || of->obj.ia != ia)
			return DOFI_REFUSED(DOFI_BAD_HANDLE(LMR), DOFI_MEM,
					    "for_lmr_handle %p is no live LMR of the IA",
					    r->region.for_lmr_handle);
		r->base = dofi_lmr_memory(of, of->addr);
		r->length = of->len;
		return DAT_SUCCESS;
	}
	case DAT_MEM_TYPE_SHARED_VIRTUAL:
		return shared_resolve(r, ia);
	default:
		return DOFI_REFUSED(DOFI_BAD_ARG(2), DOFI_MEM, "mem_type is %#x; permitted: "
				    "VIRTUAL, LMR or SHARED_VIRTUAL", r->type);
	}
}

static DAT_RETURN lmr_register(struct dofi_lmr *lmr, const struct lmr_request *r)
{
	struct dofi_mr_request mr = {
		.addr = r->base, .len = r->length, .remote = dofi_lmr_remote_access(r->priv),
		.zero_based = r->zero_based,
		.read_only = !(r->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG),
	};
	int ret;

	/* fabrics with atomics have no access right for them but to write */
	if (lmr->obj.ia->fabric.atomics && r->priv & REMOTE_ATOMIC)
		mr.remote |= FI_REMOTE_WRITE;
	ret = dofi_mr_open(&lmr->pz->domain, &mr, &lmr->mr);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_MEM, "registering %llu bytes: %s",
			 (unsigned long long)r->length, fi_strerror(-ret));
		return ret == -FI_EINVAL || ret == -FI_EFAULT ? DOFI_BAD_ARG(3) :
								DOFI_NO_RESOURCE(MEMORY);
	}
	lmr->key = r->priv & REMOTE_PRIV ? lmr->mr.key : 0;
	lmr->desc = lmr->mr.desc;
	return DAT_SUCCESS;
}

static DAT_RETURN lmr_new(struct dofi_ia *ia, struct dofi_pz *pz, const struct lmr_request *r,
			  struct dofi_lmr **out)
{
	struct dofi_lmr *lmr = dofi_obj_new(&dofi_lmr_pool, DAT_HANDLE_TYPE_LMR, ia, lmr_destroy);
	DAT_RETURN ret;

	if (!lmr)
		return DOFI_REFUSED(DOFI_NO_RESOURCE(MEMORY), DOFI_MEM, "no LMR: the IA has %d, or "
				    "the memory is short",
				    dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_LMR));
	__atomic_store_n(&lmr->pz, pz, __ATOMIC_RELAXED);
	lmr->type = r->type;
	lmr->region = r->region;
	lmr->addr = r->zero_based ? 0 : (uintptr_t)r->base;
	lmr->origin = r->zero_based ? (uintptr_t)r->base : 0;
	lmr->len = r->length;
	lmr->end = lmr->addr + lmr->len;
	/* memory that may be written may be sent: InfiniBand's programs rely on it */
	lmr->priv = r->priv;
	if (r->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		lmr->priv = (DAT_MEM_PRIV_FLAGS)(r->priv | DAT_MEM_PRIV_LOCAL_READ_FLAG);
	lmr->shared = r->shared;
	if (r->type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
		memcpy(lmr->cookie, *r->region.for_shared_memory.shared_memory_id,
		       sizeof(lmr->cookie));
		lmr->region.for_shared_memory.shared_memory_id = &lmr->cookie;
	}
	ret = lmr_register(lmr, r);
	if (ret) {
		dofi_obj_free(&dofi_lmr_pool, DAT_HANDLE_TYPE_LMR, &lmr->obj);
		return ret;
	}
	lmr->generation++;
	/* releases the fields above to the data path */
	atomic_store_explicit(&lmr->context,
			      (DAT_LMR_CONTEXT)lmr->generation << DOFI_LMR_GEN_SHIFT |
				      (dofi_pool_index(lmr) + 1), memory_order_release);
	dofi_obj_get(&pz->obj);
	if (lmr->priv & REMOTE_ATOMIC) {
		dofi_mutex_lock(&pz->atomic_lock);
		LIST_INSERT_HEAD(&pz->atomic_lmrs, lmr, atomic_link);
		dofi_mutex_unlock(&pz->atomic_lock);
	}
	dofi_obj_publish(&lmr->obj, DAT_HANDLE_TYPE_LMR);
	*out = lmr;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS priv, DOFI_LMR_VA_TYPE DAT_LMR_HANDLE *lmr_handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_length, DAT_VADDR *registered_address)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_pz *pz DOFI_USED = dofi_pz_use(pz_handle, ia);
	struct lmr_request r = {
		.type = mem_type, .region = region, .length = length, .priv = priv,
	};
	struct dofi_lmr *lmr;
	DAT_RETURN ret;

#if DAT_VERSION_MAJOR >= 2
	r.zero_based = va_type == DAT_VA_TYPE_ZB;
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return DOFI_REFUSED(DOFI_BAD_ARG(7), DOFI_MEM, "va_type is %d; permitted: VA or ZB",
				    va_type);
#endif
	if (!ia)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(IA), DOFI_MEM,
				    "dat_lmr_create: %p is no open IA", ia_handle);
	if (priv & ~DOFI_LMR_PRIVILEGES)
		return DOFI_REFUSED(DOFI_BAD_ARG(6), DOFI_MEM, "mem_privileges are %#x; permitted: "
				    "some of %#x", priv, DOFI_LMR_PRIVILEGES);
	/* as on InfiniBand: remote write needs local write */
	if ((priv & REMOTE_CHANGE) && !(priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DOFI_REFUSED(DOFI_BAD_ARG(6), DOFI_MEM, "mem_privileges are %#x: remote "
				    "write needs LOCAL_WRITE", priv);
	ret = request_resolve(&r, ia);
	if (ret)
		return ret;
	if (r.zero_based && !ia->fabric.zero_based)
		return DOFI_REFUSED(DOFI_NOT_SUPPORTED, DOFI_MEM,
				    "va_type is ZB, which the fabric lacks (zb_supported)");
	if (!pz)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(PZ), DOFI_MEM,
				    "pz_handle %p is no live PZ of the IA", pz_handle);
	if (!lmr_handle)
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_PARAMETER, 0), DOFI_MEM,
				    "dat_lmr_create: no lmr_handle");
	/* as a device refuses it: a message or a peer's write would kill the process */
	if ((priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) && !dofi_mapped_to_write(r.base, r.length))
		return DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_MEM, "LOCAL_WRITE, but the memory at %p "
				    "of length %llu is not mapped for writing", r.base,
				    (unsigned long long)r.length);
	ret = lmr_new(ia, pz, &r, &lmr);
	if (ret)
		return ret;
	*lmr_handle = lmr;
	if (lmr_context)
		*lmr_context = lmr->context;
	if (rmr_context)
		*rmr_context = lmr->key;
	if (registered_length)
		*registered_length = lmr->len;
	if (registered_address)
		*registered_address = lmr->origin + lmr->addr;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	struct dofi_lmr *lmr DOFI_CALL = dofi_lmr_enter(lmr_handle);

	if (!lmr)
		return DOFI_BAD_HANDLE(LMR);
	if (mask & ~DAT_LMR_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	*param = (DAT_LMR_PARAM){
		.ia_handle = dofi_ia_export(lmr->obj.ia),
		.mem_type = lmr->type,
		.region_desc = lmr->region,
		.length = lmr->len,
		.pz_handle = lmr->pz,
		.mem_priv = lmr->priv,
#if DAT_VERSION_MAJOR >= 2
		.va_type = lmr->origin ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA,
#endif
		.lmr_context = lmr->context,
		.rmr_context = lmr->key,
		.registered_size = lmr->len,
		.registered_address = lmr->origin + lmr->addr,
	};
	return DAT_SUCCESS;
}

/* Every supported machine is coherent, so only check the arguments. */
DAT_RETURN dofi_lmr_sync(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	DAT_VLEN i;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (count && !segments)
		return DOFI_BAD_ARG(2);
	for (i = 0; i < count; i++) {
		const DAT_LMR_TRIPLET *s = &segments[i];
		struct dofi_lmr *lmr DOFI_CALL = dofi_lmr_enter(dofi_lmr_at(s->lmr_context));

		if (!lmr || !dofi_lmr_is(lmr, s->lmr_context) || lmr->obj.ia != ia ||
		    !dofi_lmr_covers(lmr, s->virtual_address, s->segment_length))
			return DOFI_BAD_ARG(2);
	}
	return DAT_SUCCESS;
}
