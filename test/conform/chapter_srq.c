/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared receive queues: their size and memory, the EPs that use them, their watermark. */

#include "conform.h"

#include <stdio.h>

CHAPTER("srq");

#define DEPTH 8
#define HALF (COUPLE_MEMORY / 2)

static const DAT_SRQ_ATTR default_attr = { .max_recv_dtos = DEPTH, .max_recv_iov = 2,
					   .low_watermark = DAT_SRQ_LW_DEFAULT };

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_SRQ_HANDLE srq_open(struct node *n)
{
	DAT_SRQ_ATTR attr = default_attr;
	DAT_SRQ_HANDLE srq;

	OK(dat_srq_create(n->ia, n->pz, &attr, &srq));
	return srq;
}

static DAT_SRQ_PARAM srq_param(DAT_SRQ_HANDLE srq)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

static void post(DAT_SRQ_HANDLE srq, const struct mem *m, size_t offset, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, 64);

	OK(dat_srq_post_recv(srq, 1, &iov, cookie_of(cookie)));
}

/* An end with an EP that uses @srq. */
static void end_with(struct node *n, DAT_SRQ_HANDLE srq, struct end *e)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	end_open(n, e, NULL);
	OK(dat_ep_free(e->ep));
	OK(dat_ep_create_with_srq(n->ia, n->pz, e->recv, e->req, e->conn, srq, &attr, &e->ep));
}

/* A couple in which the accepting end uses an SRQ. */
static DAT_SRQ_HANDLE couple_with(struct node *n, struct couple *c)
{
	DAT_SRQ_HANDLE srq = srq_open(n);

	couple_make(n, c, NULL, NULL);
	OK(dat_ep_free(c->b.ep));
	end_with(n, srq, &c->b);
	couple_connect(n, c);
	return srq;
}

/* Drops EP_BROKEN events, which may report the last SRQ buffer of an EP as InfiniBand does. */
static void drop_broken_events(struct node *n)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(n->async, &event) == DAT_SUCCESS)
		SAME(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
}

/* Creating, querying, freeing */

CLAUSE("dat_srq_create/SUCCESS")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_SRQ_PARAM param = srq_param(srq);

	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "wrong IA or PZ");
	SAME(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	CHECK(param.max_recv_dtos >= DEPTH && param.max_recv_iov >= 2, "%d of %d segments",
	      param.max_recv_dtos, param.max_recv_iov);
	SAME(param.low_watermark, DAT_SRQ_LW_DEFAULT);
	CHECK(param.available_dto_count == 0 || param.available_dto_count == DAT_VALUE_UNKNOWN,
	      "%d", param.available_dto_count);
	FAILS(dat_pz_free(n->pz), DAT_INVALID_STATE);
	OK(dat_srq_free(srq));
}

CLAUSE("dat_srq_create/INVALID_PARAMETER")
{
	DAT_SRQ_ATTR good = default_attr, attr;
	DAT_SRQ_HANDLE srq;

	OK(dat_srq_free(srq_open(n)));
	attr = good;
	attr.low_watermark = 1;
	FAILS(dat_srq_create(n->ia, n->pz, &attr, &srq), DAT_INVALID_PARAMETER);
	attr = good;
	attr.max_recv_dtos = 0;
	FAILS(dat_srq_create(n->ia, n->pz, &attr, &srq), DAT_INVALID_PARAMETER);
	attr = good;
	attr.max_recv_dtos = -1;
	FAILS(dat_srq_create(n->ia, n->pz, &attr, &srq), DAT_INVALID_PARAMETER);
	attr = good;
	attr.max_recv_iov = -1;
	FAILS(dat_srq_create(n->ia, n->pz, &attr, &srq), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_create(n->ia, n->pz, NULL, &srq), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_create(n->ia, n->pz, &good, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_srq_create/INSUFFICIENT_RESOURCES")
{
	DAT_SRQ_ATTR attr = default_attr;
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_SRQ_HANDLE srq;
	DAT_COUNT k;

	OK(dat_srq_free(srq_open(n)));
	SKIP_IF_TOO_MANY(max_srqs);
	for (k = 0; k <= n->attr.max_srqs && ret == DAT_SUCCESS; k++)
		ret = dat_srq_create(n->ia, n->pz, &attr, &srq);
	SAME(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	CHECK(k > n->attr.max_srqs, "max_srqs is %d, but %d were created", n->attr.max_srqs, k - 1);
}

CLAUSE("dat_srq_query/INVALID_PARAMETER")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_SRQ_PARAM param;

	FAILS(dat_srq_query(srq, (DAT_SRQ_PARAM_MASK)0x100, &param), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_srq_query/SUCCESS/counts")
{
	struct couple c;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);
	DAT_SRQ_PARAM param;
	uint64_t k;

	NEEDS_PROVIDER(srq_info_supported);
	for (k = 0; k < 3; k++)
		post(srq, &c.m, HALF + 64 * k, k);
	param = srq_param(srq);
	if (param.available_dto_count != DAT_VALUE_UNKNOWN)
		SAME(param.available_dto_count, 3);
	if (param.outstanding_dto_count != DAT_VALUE_UNKNOWN)
		SAME(param.outstanding_dto_count, 3);
	post_send(c.a.ep, &c.m, 0, 64, 9);
	expect_dto(c.b.recv, 0, DAT_DTO_SUCCESS, 64);
	param = srq_param(srq);
	if (param.available_dto_count != DAT_VALUE_UNKNOWN)
		SAME(param.available_dto_count, 2);
	if (param.outstanding_dto_count != DAT_VALUE_UNKNOWN)
		SAME(param.outstanding_dto_count, 2);
}

CLAUSE("dat_srq_free/SUCCESS/receives are posted")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	struct mem m;

	mem_get(n, &m, 4096);
	post(srq, &m, 0, 1);
	OK(dat_srq_free(srq));
	FAILS(dat_srq_free(srq), DAT_INVALID_HANDLE);
}

CLAUSE("dat_srq_free/INVALID_STATE/an EP uses it")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	struct end e;

	end_with(n, srq, &e);
	FAILS(dat_srq_free(srq), DAT_INVALID_STATE);
	OK(dat_ep_free(e.ep));
	OK(dat_srq_free(srq));
}

/* Posting */

CLAUSE("dat_srq_post_recv/INVALID_PARAMETER")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_COUNT most = srq_param(srq).max_recv_iov;
	DAT_LMR_TRIPLET iov[65];
	struct mem m;
	DAT_COUNT k;

	CHECK(most < 65, "%d", most);
	mem_get(n, &m, 4096);
	for (k = 0; k <= most; k++)
		iov[k] = mem_segment(&m, 0, 8);
	FAILS(dat_srq_post_recv(srq, most + 1, iov, cookie_of(1)), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_post_recv(srq, -1, iov, cookie_of(1)), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_post_recv(srq, 1, NULL, cookie_of(1)), DAT_INVALID_PARAMETER);
	iov[0] = mem_segment(&m, 4090, 8);
	FAILS(dat_srq_post_recv(srq, 1, iov, cookie_of(1)), DAT_INVALID_PARAMETER);
	iov[0] = mem_segment(&m, 0, 8);
	OK(dat_srq_post_recv(srq, most, iov, cookie_of(1)));
}

CLAUSE("dat_srq_post_recv/PROTECTION_VIOLATION")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_LMR_TRIPLET iov;
	DAT_PZ_HANDLE pz;
	struct mem m, other;

	mem_get(n, &m, 4096);
	OK(dat_pz_create(n->ia, &pz));
	mem_get_with(n, pz, &other, 4096, DAT_MEM_PRIV_ALL_FLAG);
	iov = mem_segment(&m, 0, 8);
	iov.lmr_context ^= 0x5a5a5a5a;
	FAILS(dat_srq_post_recv(srq, 1, &iov, cookie_of(1)), DAT_PROTECTION_VIOLATION);
	iov = mem_segment(&other, 0, 8);
	FAILS(dat_srq_post_recv(srq, 1, &iov, cookie_of(1)), DAT_PROTECTION_VIOLATION);
}

CLAUSE("dat_srq_post_recv/PRIVILEGES_VIOLATION")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_LMR_TRIPLET iov;
	struct mem m;

	mem_get_with(n, n->pz, &m, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	iov = mem_segment(&m, 0, 8);
	FAILS(dat_srq_post_recv(srq, 1, &iov, cookie_of(1)), DAT_PRIVILEGES_VIOLATION);
}

CLAUSE("dat_srq_post_recv/INSUFFICIENT_RESOURCES/the SRQ is full")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_COUNT k, most = srq_param(srq).max_recv_dtos;

	for (k = 0; k < most; k++)
		OK(dat_srq_post_recv(srq, 0, NULL, cookie_of(k)));
	FAILS(dat_srq_post_recv(srq, 0, NULL, cookie_of(k)), DAT_INSUFFICIENT_RESOURCES);
}

/* Receiving */

CLAUSE("dat_srq_post_recv/SUCCESS/used in order of arrival")
{
	struct couple c;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);
	uint64_t k;

	for (k = 0; k < DEPTH; k++)
		post(srq, &c.m, HALF + 64 * k, k);
	for (k = 0; k < DEPTH; k++) {
		fill(c.m.base, 64, k);
		post_send(c.a.ep, &c.m, 0, 64, k);
		expect_dto(c.b.recv, k, DAT_DTO_SUCCESS, 64);
		verify(c.m.base + HALF + 64 * k, 64, k);
	}
}

CLAUSE("dat_srq_post_recv/SUCCESS/several EPs use the SRQ")
{
	struct couple c, d;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);

	end_open(n, &d.a, NULL);
	end_with(n, srq, &d.b);
	couple_connect(n, &d);
	post(srq, &c.m, HALF, 1);
	post(srq, &c.m, HALF + 64, 2);
	post_send(d.a.ep, &c.m, 0, 64, 3);
	expect_dto(d.b.recv, 1, DAT_DTO_SUCCESS, 64);
	post_send(c.a.ep, &c.m, 0, 64, 4);
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 64);
}

/* A message without a receive waits for one. */
CLAUSE("dat_srq_post_recv/SUCCESS/after the message")
{
	struct couple c;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);

	post_send(c.a.ep, &c.m, 0, 64, 1);
	SAME(drain(c.b.recv), 0);
	post(srq, &c.m, HALF, 2);
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 64);
}

/* Buffers that no message has taken remain for the other EPs. */
CLAUSE("dat_ep_disconnect/SUCCESS/receives remain in the SRQ")
{
	struct couple c, d;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);

	post(srq, &c.m, HALF, 1);
	couple_disconnect(&c, &c.b);
	SAME(drain(c.b.recv), 0);
	end_open(n, &d.a, NULL);
	end_with(n, srq, &d.b);
	couple_connect(n, &d);
	post_send(d.a.ep, &c.m, 0, 64, 2);
	expect_dto(d.b.recv, 1, DAT_DTO_SUCCESS, 64);
	drop_broken_events(n);
}

CLAUSE("dat_ep_post_recv/INVALID_STATE/an EP with an SRQ")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	struct end e;

	end_with(n, srq, &e);
	FAILS(dat_ep_post_recv(e.ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_STATE);
}

CLAUSE("dat_ep_create_with_srq/SUCCESS")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_EP_PARAM param;
	struct end e;

	end_with(n, srq, &e);
	OK(dat_ep_query(e.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.srq_handle == srq, "wrong SRQ");
	SAME(param.ep_state, DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_ep_create_with_srq/INVALID_PARAMETER")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;

	node_ep_attr(n, &attr);
	FAILS(dat_ep_create_with_srq(n->ia, n->pz, n->recv, n->req, n->conn, srq, NULL, &ep),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_create_with_srq(n->ia, n->pz, n->recv, n->req, n->conn, srq, &attr, NULL),
	      DAT_INVALID_PARAMETER);
	attr.max_request_iov = INT32_MAX;
	FAILS(dat_ep_create_with_srq(n->ia, n->pz, n->recv, n->req, n->conn, srq, &attr, &ep),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_create_with_srq/INSUFFICIENT_RESOURCES/max_eps")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_COUNT k;

	SKIP_IF_TOO_MANY(max_eps);
	node_ep_attr(n, &attr);
	for (k = 0; k <= n->attr.max_eps && ret == DAT_SUCCESS; k++)
		ret = dat_ep_create_with_srq(n->ia, n->pz, n->recv, n->req, n->conn, srq, &attr,
					     &ep);
	SAME(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_ep_reset/SUCCESS/the SRQ remains")
{
	struct couple c;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);

	couple_disconnect(&c, &c.a);
	OK(dat_ep_reset(c.a.ep));
	OK(dat_ep_reset(c.b.ep));
	couple_connect(n, &c);
	post(srq, &c.m, HALF, 1);
	post_send(c.a.ep, &c.m, 0, 64, 2);
	expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 64);
	drop_broken_events(n);
}

/* Size and watermark */

CLAUSE("dat_srq_resize/SUCCESS")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_COUNT k;

	OK(dat_srq_post_recv(srq, 0, NULL, cookie_of(0)));
	OK(dat_srq_resize(srq, 4 * DEPTH));
	CHECK(srq_param(srq).max_recv_dtos >= 4 * DEPTH, "%d", srq_param(srq).max_recv_dtos);
	for (k = 1; k < 4 * DEPTH; k++)
		OK(dat_srq_post_recv(srq, 0, NULL, cookie_of(k)));
	/* the receives posted before are still in it */
	OK(dat_srq_resize(srq, 4 * DEPTH));
}

CLAUSE("dat_srq_resize/INVALID_STATE/below the number of receives")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_COUNT k, before = srq_param(srq).max_recv_dtos;

	for (k = 0; k < DEPTH; k++)
		OK(dat_srq_post_recv(srq, 0, NULL, cookie_of(k)));
	FAILS(dat_srq_resize(srq, DEPTH - 1), DAT_INVALID_STATE);
	SAME(srq_param(srq).max_recv_dtos, before);
}

CLAUSE("dat_srq_resize/INVALID_STATE/below the low watermark")
{
	DAT_SRQ_HANDLE srq = srq_open(n);
	DAT_COUNT k;

	for (k = 0; k < 3; k++)
		OK(dat_srq_post_recv(srq, 0, NULL, cookie_of(k)));
	OK(dat_srq_set_lw(srq, 3));
	OK(dat_srq_resize(srq, DEPTH));
	FAILS(dat_srq_resize(srq, 2), DAT_INVALID_STATE);
}

CLAUSE("dat_srq_resize/INVALID_PARAMETER")
{
	DAT_SRQ_HANDLE srq = srq_open(n);

	FAILS(dat_srq_resize(srq, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_resize(srq, -1), DAT_INVALID_PARAMETER);
	if (n->attr.max_recv_per_srq < INT32_MAX)
		FAILS(dat_srq_resize(srq, n->attr.max_recv_per_srq + 1), DAT_INVALID_PARAMETER);
}

static void expect_low(struct node *n, DAT_SRQ_HANDLE srq)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	expect_event(n->async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
	data = &event.event_data.asynch_error_event_data;
	CHECK(data->dat_handle == srq, "wrong object");
	SAME(data->reason, DAT_SRQ_LOW_WATERMARK_EVENT);
}

CLAUSE("dat_srq_set_lw/SUCCESS/an event reports the low watermark")
{
	struct couple c;
	DAT_SRQ_HANDLE srq = couple_with(n, &c);
	uint64_t k;

	for (k = 0; k < 3; k++)
		post(srq, &c.m, HALF + 64 * k, k);
	OK(dat_srq_set_lw(srq, 2));
	post_send(c.a.ep, &c.m, 0, 64, 1);
	expect_dto(c.b.recv, 0, DAT_DTO_SUCCESS, 64);
	SAME(drain(n->async), 0);	/* two buffers are left */
	post_send(c.a.ep, &c.m, 0, 64, 2);
	expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 64);
	expect_low(n, srq);
	/* one event each time it is set */
	post_send(c.a.ep, &c.m, 0, 64, 3);
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 64);
	SAME(drain(n->async), 0);
}

CLAUSE("dat_srq_set_lw/SUCCESS/an immediate event below the watermark")
{
	DAT_SRQ_HANDLE srq = srq_open(n);

	OK(dat_srq_set_lw(srq, 1));
	expect_low(n, srq);
	SAME(srq_param(srq).low_watermark, 1);
}

CLAUSE("dat_srq_set_lw/INVALID_PARAMETER")
{
	DAT_SRQ_HANDLE srq = srq_open(n);

	FAILS(dat_srq_set_lw(srq, -1), DAT_INVALID_PARAMETER);
	FAILS(dat_srq_set_lw(srq, srq_param(srq).max_recv_dtos + 1), DAT_INVALID_PARAMETER);
}
