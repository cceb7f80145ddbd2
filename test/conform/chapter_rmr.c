/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote memory regions: creating, binding, rebinding, unbinding, and binds that must fail. */

#include "conform.h"

#include <string.h>

CHAPTER("rmr");

#define REMOTE_READ DAT_MEM_PRIV_REMOTE_READ_FLAG
#define REMOTE_WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define REMOTE ((DAT_MEM_PRIV_FLAGS)(REMOTE_READ | REMOTE_WRITE))

static DAT_RMR_HANDLE made(struct node *n)
{
	return object_make(n, DAT_HANDLE_TYPE_RMR);
}

static DAT_RETURN bind_rmr(struct couple *c, DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *part,
			   DAT_MEM_PRIV_FLAGS priv, DAT_RMR_CONTEXT *context)
{
	return rmr_bind(rmr, c->m.lmr, part, priv, c->a.ep, 7, context);
}

static void expect_bound(DAT_EVD_HANDLE evd, DAT_RMR_HANDLE rmr, DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(evd, DAT_RMR_BIND_COMPLETION_EVENT, &event);
	d = &event.event_data.rmr_completion_event_data;
	CHECK(d->rmr_handle == rmr, "wrong RMR");
	SAME(d->user_cookie.as_64, 7);
	SAME(d->status, status);
}

/* Binds a part of the memory, waits for the completion, and returns the context. */
static DAT_RMR_CONTEXT bound(struct couple *c, DAT_RMR_HANDLE rmr)
{
	DAT_LMR_TRIPLET part = mem_segment(&c->m, 4096, 8192);
	DAT_RMR_CONTEXT context = 0;

	OK(bind_rmr(c, rmr, &part, REMOTE, &context));
	CHECK(context, "no context");
	expect_bound(c->a.req, rmr, DAT_DTO_SUCCESS);
	return context;
}

/* dat_rmr_create, query */

CLAUSE("dat_rmr_create/SUCCESS/unbound")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_PARAM param;

	memset(&param, 0xff, sizeof(param));
	OK(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET),
			 &param));
	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "wrong IA or PZ");
#if DAT_VERSION_MAJOR >= 2
	SAME(param.rmr_scope, DAT_RMR_SCOPE_PZ);
#endif
	OK(dat_rmr_free(rmr));
}

CLAUSE("dat_rmr_create/INVALID_PARAMETER/rmr_handle NULL")
{
	FAILS(dat_rmr_create(n->pz, NULL), DAT_INVALID_PARAMETER);
}

static void exhaust(struct node *n, DAT_RETURN (*create)(DAT_PZ_HANDLE, DAT_RMR_HANDLE *))
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_RMR_HANDLE rmr;
	DAT_COUNT k;

	SKIP_IF_TOO_MANY(max_rmrs);
	for (k = 0; !ret && k <= n->attr.max_rmrs; k++)
		ret = create(n->pz, &rmr);
	SAME(k, n->attr.max_rmrs + 1);
	FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_rmr_create/INSUFFICIENT_RESOURCES/max_rmrs")
{
	exhaust(n, dat_rmr_create);
}

CLAUSE("dat_rmr_query/INVALID_PARAMETER/the triplet of an unbound RMR")
{
	DAT_RMR_PARAM param;

	FAILS(dat_rmr_query(made(n), DAT_RMR_FIELD_LMR_TRIPLET, &param), DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_query/SUCCESS/a bound RMR")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;

	context = bound(c, rmr);
	memset(&param, 0xff, sizeof(param));
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	SAME(param.rmr_context, context);
	SAME(param.mem_priv, REMOTE);
	SAME(param.lmr_triplet.virtual_address, (uintptr_t)c->m.base + 4096);
	SAME(param.lmr_triplet.segment_length, 8192);
	SAME(param.lmr_triplet.lmr_context, c->m.lmr_context);
}

/* dat_rmr_bind */

COUPLED("dat_rmr_bind/SUCCESS/granted memory can be written and read")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;

	fill(c->m.base, 512, 1);
	remote = mem_remote(&c->m, 4096 + 100, 512);
	remote.rmr_context = bound(c, rmr);
	iov = mem_segment(&c->m, 0, 512);
	OK(dat_ep_post_rdma_write(c->b.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 1 }, &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c->b.req, 1, DAT_DTO_SUCCESS, 512);
	verify(c->m.base + 4096 + 100, 512, 1);
	iov = mem_segment(&c->m, 1024, 512);
	OK(dat_ep_post_rdma_read(c->b.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 2 }, &remote,
				 DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c->b.req, 2, DAT_DTO_SUCCESS, 512);
	verify(c->m.base + 1024, 512, 1);
}

/* Writes with @context, which must fail and end the connection. */
static void is_dead(struct couple *c, DAT_RMR_CONTEXT context, size_t offset)
{
	DAT_RMR_TRIPLET remote = mem_remote(&c->m, offset, 64);
	DAT_LMR_TRIPLET iov = mem_segment(&c->m, 0, 64);
	DAT_EVENT event;

	remote.rmr_context = context;
	OK(dat_ep_post_rdma_write(c->b.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 9 }, &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
	expect_event(c->b.req, DAT_DTO_COMPLETION_EVENT, &event);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS,
	      "the operation succeeded");
	expect_end(c->b.conn, c->b.ep);
}

COUPLED("dat_rmr_bind/SUCCESS/memory outside the grant cannot be written")
{
	DAT_RMR_HANDLE rmr = made(n);

	is_dead(c, bound(c, rmr), 4096 + 8192 - 32);
}

COUPLED("dat_rmr_bind/SUCCESS/a rebind ends the old context")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT old;

	old = bound(c, rmr);
	CHECK(bound(c, rmr) != old, "the context is unchanged");
	is_dead(c, old, 4096);
}

COUPLED("dat_rmr_bind/SUCCESS/length 0 unbinds")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT old, none;
	DAT_LMR_TRIPLET nothing;
	DAT_RMR_PARAM param;

	old = bound(c, rmr);
	FAILS(dat_lmr_free(c->m.lmr), DAT_INVALID_STATE);
	nothing = mem_segment(&c->m, 0, 0);
	OK(bind_rmr(c, rmr, &nothing, DAT_MEM_PRIV_NONE_FLAG, &none));
	expect_bound(c->a.req, rmr, DAT_DTO_SUCCESS);
	FAILS(dat_rmr_query(rmr, DAT_RMR_FIELD_LMR_TRIPLET, &param), DAT_INVALID_PARAMETER);
	is_dead(c, old, 4096);
	OK(dat_lmr_free(c->m.lmr));
}

COUPLED("dat_rmr_free/SUCCESS/freeing a bound RMR ends its context")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT old;

	old = bound(c, rmr);
	OK(dat_rmr_free(rmr));
	SAME(drain(c->a.req), 0);	/* no completion event */
	is_dead(c, old, 4096);
	OK(dat_lmr_free(c->m.lmr));
}

COUPLED("dat_lmr_free/INVALID_STATE/an RMR is bound to it")
{
	DAT_RMR_HANDLE rmr = made(n);

	bound(c, rmr);
	FAILS(dat_lmr_free(c->m.lmr), DAT_INVALID_STATE);
	OK(dat_rmr_free(rmr));
	OK(dat_lmr_free(c->m.lmr));
}

COUPLED("dat_rmr_bind/SUCCESS/flushed when disconnected")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;

	couple_disconnect(c, &c->a);
	part = mem_segment(&c->m, 0, 64);
	OK(bind_rmr(c, rmr, &part, REMOTE, &context));
	expect_bound(c->a.req, rmr, DAT_DTO_ERR_FLUSHED);
}

CLAUSE("dat_rmr_bind/INVALID_STATE/unconnected")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;
	struct couple c;

	couple_make(n, &c, NULL, NULL);
	part = mem_segment(&c.m, 0, 64);
	FAILS(bind_rmr(&c, rmr, &part, REMOTE, &context), DAT_INVALID_STATE);
}

/* Expects a bind to be refused on a connected EP, which must remain connected. */
static void bind_fails(struct node *n, struct couple *c, const DAT_LMR_TRIPLET *part,
		       DAT_MEM_PRIV_FLAGS priv, DAT_RETURN type)
{
	DAT_RMR_CONTEXT context;

	FAILS(bind_rmr(c, made(n), part, priv, &context), type);
	SAME(drain(c->a.req), 0);
	SAME(ep_state(c->a.ep), DAT_EP_STATE_CONNECTED);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/lmr_triplet NULL")
{
	bind_fails(n, c, NULL, REMOTE, DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/outside the LMR")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, COUPLE_MEMORY - 63, 64);
	bind_fails(n, c, &part, REMOTE, DAT_INVALID_PARAMETER);
	part = mem_segment(&c->m, 0, 64);
	part.virtual_address--;
	bind_fails(n, c, &part, REMOTE, DAT_INVALID_PARAMETER);
	part.virtual_address = UINT64_MAX - 10;
	bind_fails(n, c, &part, REMOTE, DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/lmr_context")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	part.lmr_context ^= 0x10000;
	bind_fails(n, c, &part, REMOTE, DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/unknown privilege")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	bind_fails(n, c, &part, (DAT_MEM_PRIV_FLAGS)0x1000, DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/rmr_context NULL")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	FAILS(bind_rmr(c, made(n), &part, REMOTE, NULL), DAT_INVALID_PARAMETER);
}

static DAT_RETURN bind_with(struct couple *c, DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *part,
			    DAT_COMPLETION_FLAGS flags)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 7 };
	DAT_RMR_CONTEXT context;

#if DAT_VERSION_MAJOR >= 2
	return dat_rmr_bind(rmr, c->m.lmr, part, REMOTE, DAT_VA_TYPE_VA, c->a.ep, cookie, flags,
			    &context);
#else
	return dat_rmr_bind(rmr, part, REMOTE, c->a.ep, cookie, flags, &context);
#endif
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/completion_flags")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	FAILS(bind_with(c, made(n), &part, (DAT_COMPLETION_FLAGS)0x1000), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_rmr_bind/INVALID_PARAMETER/UNSIGNALLED without the attribute")
{
	DAT_LMR_TRIPLET part;
	struct couple c;

	needs_strict(n, true);
	couple_open(n, &c);
	part = mem_segment(&c.m, 0, 64);
	FAILS(bind_with(&c, made(n), &part, DAT_COMPLETION_UNSIGNALLED_FLAG),
	      DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_bind/SUCCESS/completion_flags without effect")
{
	DAT_RMR_HANDLE rmr = made(n);
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	OK(bind_with(c, rmr, &part, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	expect_bound(c->a.req, rmr, DAT_RMR_BIND_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	OK(bind_with(c, rmr, &part, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	expect_bound(c->a.req, rmr, DAT_RMR_BIND_SUCCESS);
#endif
}

COUPLED("dat_rmr_bind/SUCCESS/suppressed")
{
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	OK(bind_with(c, made(n), &part, DAT_COMPLETION_SUPPRESS_FLAG));
	post_recv(c->b.ep, &c->m, 1024, 64, 1);
	post_send(c->a.ep, &c->m, 0, 64, 2);
	expect_dto(c->a.req, 2, DAT_DTO_SUCCESS, 64);	/* the first completion */
}

COUPLED("dat_rmr_bind/PRIVILEGES_VIOLATION/remote write without local write")
{
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT none;

	OK(lmr_create(n->ia, c->m.base, 64, n->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &c->m.lmr,
		      &c->m.lmr_context, &none));
	part = mem_segment(&c->m, 0, 64);
	bind_fails(n, c, &part, REMOTE_WRITE, DAT_PRIVILEGES_VIOLATION);
}

COUPLED("dat_rmr_bind/PROTECTION_VIOLATION/an LMR of another PZ")
{
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT none;

	OK(lmr_create(n->ia, c->m.base, 64, object(n, DAT_HANDLE_TYPE_PZ), DAT_MEM_PRIV_ALL_FLAG,
		      &c->m.lmr, &c->m.lmr_context, &none));
	part = mem_segment(&c->m, 0, 64);
	bind_fails(n, c, &part, REMOTE, DAT_PROTECTION_VIOLATION);
}

COUPLED("dat_rmr_bind/PROTECTION_VIOLATION/an RMR of a PZ other than the EP's")
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET part;
	DAT_PZ_HANDLE pz = object(n, DAT_HANDLE_TYPE_PZ);

	OK(dat_rmr_create(pz, &rmr));
	OK(lmr_create(n->ia, c->m.base, 64, pz, DAT_MEM_PRIV_ALL_FLAG, &c->m.lmr, &c->m.lmr_context,
		      &context));
	part = mem_segment(&c->m, 0, 64);
	FAILS(bind_rmr(c, rmr, &part, REMOTE, &context), DAT_PROTECTION_VIOLATION);
	SAME(drain(c->a.req), 0);
}

/* Sends without a receive fill the queue once the buffers between the peers are full. */
COUPLED("dat_rmr_bind/INSUFFICIENT_RESOURCES/the request queue is full")
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_LMR_TRIPLET part, iov;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	unsigned k;

	part = mem_segment(&c->m, 0, 64);
	iov = mem_segment(&c->m, 0, COUPLE_MEMORY);
	rmr = made(n);
	for (k = 0; k < 2000 && ret == DAT_SUCCESS; k++)
		if (dat_ep_post_send(c->a.ep, 1, &iov, cookie, DAT_COMPLETION_SUPPRESS_FLAG))
			ret = bind_rmr(c, rmr, &part, REMOTE, &context);
	FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
	SAME(ep_state(c->a.ep), DAT_EP_STATE_CONNECTED);
}

#if DAT_VERSION_MAJOR >= 2
/* RMRs of EP scope */

CLAUSE("dat_rmr_create_for_ep/SUCCESS")
{
	DAT_RMR_HANDLE rmr;
	DAT_RMR_PARAM param;

	if (n->prov.rmr_scope_supported == DAT_RMR_SCOPE_PZ) {
		FAILS(dat_rmr_create_for_ep(n->pz, &rmr), DAT_MODEL_NOT_SUPPORTED);
		skip("rmr_scope_supported is %d", n->prov.rmr_scope_supported);
	}
	OK(dat_rmr_create_for_ep(n->pz, &rmr));
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_RMR_SCOPE, &param));
	SAME(param.rmr_scope, DAT_RMR_SCOPE_EP);
	OK(dat_rmr_free(rmr));
}

CLAUSE("dat_rmr_create_for_ep/INVALID_PARAMETER/rmr_handle NULL")
{
	if (n->prov.rmr_scope_supported == DAT_RMR_SCOPE_PZ)
		skip("rmr_scope_supported is %d", n->prov.rmr_scope_supported);
	FAILS(dat_rmr_create_for_ep(n->pz, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_rmr_create_for_ep/INSUFFICIENT_RESOURCES/max_rmrs")
{
	exhaust(n, dat_rmr_create_for_ep);
}

CLAUSE("dat_rmr_bind/PROTECTION_VIOLATION/an RMR of another EP")
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET part;
	struct couple c;

	if (n->prov.rmr_scope_supported == DAT_RMR_SCOPE_PZ)
		skip("rmr_scope_supported is %d", n->prov.rmr_scope_supported);
	couple_open(n, &c);
	OK(dat_rmr_create_for_ep(n->pz, &rmr));
	bound(&c, rmr);
	part = mem_segment(&c.m, 0, 64);
	FAILS(rmr_bind(rmr, c.m.lmr, &part, REMOTE, c.b.ep, 8, &context), DAT_PROTECTION_VIOLATION);
}

COUPLED("dat_rmr_bind/INVALID_PARAMETER/va_type")
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 7 };
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;

	part = mem_segment(&c->m, 0, 64);
	FAILS(dat_rmr_bind(made(n), c->m.lmr, &part, REMOTE, (DAT_VA_TYPE)7, c->a.ep, cookie,
			   DAT_COMPLETION_DEFAULT_FLAG, &context), DAT_INVALID_PARAMETER);
}
#endif
