/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One RMR and one connected EP, and calls on them in a form for both versions. */
#ifndef UNIT_OBJ_RMR_ONE_H
#define UNIT_OBJ_RMR_ONE_H

#include "obj/fixture.h"

static DAT_EP_HANDLE ep;
static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT old, new;	/* contexts of binds */

static inline void init(void)
{
	objects_init();
	ep = ep_make();
	make_connected(ep);
	succeed(dofi_rmr_create(pz, &rmr));
}

static inline struct dofi_ep *inside(void)
{
	return ep;
}

#define READ DAT_MEM_PRIV_REMOTE_READ_FLAG
#define WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define BOTH (READ | WRITE)

/* A bind in a form for both versions. */
struct bind {
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET part;
	int priv;
	DAT_EP_HANDLE ep;
	uint64_t cookie;
	int flags;
	DAT_RMR_CONTEXT *context;
};

static inline DAT_RETURN post(const struct bind *b)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = b->cookie };

#if DAT_VERSION_MAJOR >= 2
	return dofi_rmr_bind(b->rmr, b->lmr, &b->part, (DAT_MEM_PRIV_FLAGS)b->priv, DAT_VA_TYPE_VA,
			     b->ep, cookie, (DAT_COMPLETION_FLAGS)b->flags, b->context);
#else
	return dofi_rmr_bind(b->rmr, &b->part, (DAT_MEM_PRIV_FLAGS)b->priv, b->ep, cookie,
			     (DAT_COMPLETION_FLAGS)b->flags, b->context);
#endif
}

/* A valid bind, for tests to change. */
static inline struct bind good(void)
{
	return (struct bind){ rmr, lmr, segment(16, 64), BOTH, ep, 1, 0, &new };
}

static inline DAT_RETURN bind_n(uint64_t n, DAT_RMR_CONTEXT *context)
{
	struct bind b = good();

	b.cookie = n;
	b.context = context;
	return post(&b);
}

static inline DAT_RETURN unbind_n(uint64_t n)
{
	struct bind b = good();

	b.cookie = n;
	b.part = (DAT_LMR_TRIPLET){ 0 };
	b.lmr = NULL;
	b.context = NULL;
	return post(&b);
}

static inline DAT_RETURN send_n(uint64_t n, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	return dofi_ep_post_send(ep, 1, &s, cookie_of(n), (DAT_COMPLETION_FLAGS)flags);
}

static inline DAT_RETURN read_n(uint64_t n)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);

	return dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(n), &r, 0);
}

static inline void take_bind(uint64_t n, DAT_RMR_BIND_COMPLETION_STATUS status)
{
	const DAT_EVENT event = event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *d = &event.event_data.rmr_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, n, "%llu", (unsigned long long)d->user_cookie.as_64);
	cr_expect_eq(d->status, status, "%d", d->status);
	cr_expect_eq(d->rmr_handle, rmr);
}

static inline void take_dto(uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, n);
	cr_expect_eq(d->status, status, "%d", d->status);
}

/* Binds rmr, for further tests. */
static inline void bind_first(void)
{
	succeed(bind_n(0, &old));
	take_bind(0, DAT_DTO_SUCCESS);
	cr_assert(fake_mr_live(old));
}

static inline DAT_RMR_PARAM query(void)
{
	DAT_RMR_PARAM p;

	succeed(dofi_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL &
							  ~DAT_RMR_FIELD_LMR_TRIPLET), &p));
	return p;
}

/* The context in force, or 0 while unbound. */
static inline DAT_RMR_CONTEXT in_force(void)
{
	return query().rmr_context;
}

static inline void end_connection(DAT_EP_HANDLE of)
{
	dofi_ep_end_with(of, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
}

#endif
