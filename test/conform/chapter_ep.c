/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints without a connection: creating, attributes, queries, receives, freeing. */

#include "conform.h"
#include "number.h"

#include <stdio.h>

CHAPTER("ep");

static const DAT_DTO_COOKIE no_cookie;

/* A receive without memory. */
static DAT_RETURN post_nothing(DAT_EP_HANDLE ep)
{
	return dat_ep_post_recv(ep, 0, NULL, no_cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN create_with(struct node *n, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	return dat_ep_create(n->ia, n->pz, n->recv, n->req, n->conn, attr, ep);
}

/* dat_ep_create: handles */

CLAUSE("dat_ep_create/SUCCESS")
{
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	OK(create_with(n, NULL, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "wrong IA or PZ");
	CHECK(param.recv_evd_handle == n->recv && param.request_evd_handle == n->req &&
		      param.connect_evd_handle == n->conn,
	      "wrong EVDs");
	SAME(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	CHECK(param.local_ia_address_ptr, "no address");
	CHECK(!param.srq_handle, "it was created without an SRQ");
	SAME(param.ep_attr.service_type, DAT_SERVICE_TYPE_RC);
	SAME(param.ep_attr.qos, DAT_QOS_BEST_EFFORT);
	CHECK(param.ep_attr.max_message_size > 0 && param.ep_attr.max_rdma_size > 0,
	      "a maximum size is 0");
	CHECK(param.ep_attr.max_recv_dtos > 0 && param.ep_attr.max_request_dtos > 0,
	      "a queue length is 0");
	CHECK(param.ep_attr.max_recv_iov > 0 && param.ep_attr.max_request_iov > 0,
	      "a number of segments is 0");
	CHECK(param.ep_attr.max_rdma_read_iov > 0 && param.ep_attr.max_rdma_write_iov > 0,
	      "a number of segments is 0");
}

CLAUSE("dat_ep_create/SUCCESS/no EVDs")
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(n->ia, n->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL,
			 &ep));
	OK(dat_ep_free(ep));
}

CLAUSE("dat_ep_create/SUCCESS/one EVD for all")
{
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;

	NEEDS_PROVIDER(evd_stream_merging_supported[2][3]);
	evd = node_evd(n, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG);
	OK(dat_ep_create(n->ia, n->pz, evd, evd, evd, NULL, &ep));
	FAILS(dat_evd_free(evd), DAT_INVALID_STATE);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(evd));
}

CLAUSE("dat_ep_create/INVALID_HANDLE/IA")
{
	DAT_EP_HANDLE ep;

	FAILS(dat_ep_create(DAT_HANDLE_NULL, n->pz, n->recv, n->req, n->conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->pz, n->pz, n->recv, n->req, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
}

CLAUSE("dat_ep_create/INVALID_HANDLE/PZ")
{
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	OK(dat_pz_create(n->ia, &pz));
	OK(dat_pz_free(pz));
	FAILS(dat_ep_create(n->ia, pz, n->recv, n->req, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->recv, n->recv, n->req, n->conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
}

/* An EVD of another stream, or a freed EVD; a PZ of another IA. */
CLAUSE("dat_ep_create/INVALID_HANDLE/EVDs")
{
	DAT_EVD_HANDLE freed = node_evd(n, 8, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	struct node other;
	DAT_EP_HANDLE ep;

	node_open(&other);
	OK(dat_evd_free(freed));
	FAILS(dat_ep_create(n->ia, n->pz, n->conn, n->req, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, n->cr, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, n->req, n->recv, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, freed, n->req, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, freed, n->conn, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, n->req, freed, NULL, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, other.pz, n->recv, n->req, n->conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
	node_close(&other);
}

CLAUSE("dat_ep_create/INVALID_HANDLE/EVDs of another IA")
{
	struct node other;
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	node_open(&other);
	FAILS(dat_ep_create(n->ia, n->pz, other.recv, n->req, n->conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, other.req, n->conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(n->ia, n->pz, n->recv, n->req, other.conn, NULL, &ep),
	      DAT_INVALID_HANDLE);
	node_close(&other);
}

CLAUSE("dat_ep_create/SUCCESS/EVDs of another instance of the IA")
{
	struct node other;
	DAT_EP_HANDLE ep;

	needs_strict(n, false);
	node_open(&other);
	OK(dat_ep_create(n->ia, n->pz, other.recv, other.req, other.conn, NULL, &ep));
	FAILS(dat_evd_free(other.recv), DAT_INVALID_STATE);
	FAILS(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	OK(dat_ep_free(ep));
	node_close(&other);
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/ep_handle NULL")
{
	FAILS(create_with(n, NULL, NULL), DAT_INVALID_PARAMETER);
}

/* dat_ep_create: attributes */

struct number {
	const char *name;
	size_t offset, size;		/* in DAT_EP_ATTR */
	size_t limit, limit_size;	/* in DAT_IA_ATTR */
	bool exact;			/* a size, used exactly as requested */
};

#define SIZE_OF(type, member) sizeof(((type *)0)->member)
#define NUMBER(member, ia_member, exact) \
	{ #member, offsetof(DAT_EP_ATTR, member), SIZE_OF(DAT_EP_ATTR, member), \
	  offsetof(DAT_IA_ATTR, ia_member), SIZE_OF(DAT_IA_ATTR, ia_member), exact }

static const struct number numbers[] = {
	NUMBER(max_message_size, max_message_size, true),
	NUMBER(max_rdma_size, max_rdma_size, true),
	NUMBER(max_recv_dtos, max_dto_per_ep, false),
	NUMBER(max_request_dtos, max_dto_per_ep, false),
	NUMBER(max_recv_iov, max_iov_segments_per_dto, false),
	NUMBER(max_request_iov, max_iov_segments_per_dto, false),
	NUMBER(max_rdma_read_in, max_rdma_read_per_ep_in, false),
	NUMBER(max_rdma_read_out, max_rdma_read_per_ep_out, false),
	NUMBER(max_rdma_read_iov, max_iov_segments_per_rdma_read, false),
	NUMBER(max_rdma_write_iov, max_iov_segments_per_rdma_write, false),
};

static uint64_t limit_of(struct node *n, const struct number *a)
{
	return number_get(&n->attr, a->limit, a->limit_size);
}

/* Creates an EP with this value of one attribute and returns the actual value. */
static uint64_t in_force(struct node *n, const struct number *a, uint64_t value)
{
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;

	node_ep_attr(n, &attr);
	number_set(&attr, a->offset, a->size, value);
	OK(create_with(n, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	OK(dat_ep_free(ep));
	return number_get(&param.ep_attr, a->offset, a->size);
}

static void check_in_force(struct node *n, const struct number *a, uint64_t value)
{
	uint64_t got = in_force(n, a, value);

	CHECK(a->exact ? got == value : got >= value, "%s: %llu requested, %llu in effect", a->name,
	      (unsigned long long)value, (unsigned long long)got);
}

/* Expects a value above the limit to be refused; the text names both errors for this. */
static void refused(struct node *n, const struct number *a, uint64_t value)
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	node_ep_attr(n, &attr);
	number_set(&attr, a->offset, a->size, value);
	ret = create_with(n, &attr, &ep);
	CHECK(DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER ||
	      DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES, "%s of %#llx: %#x", a->name,
	      (unsigned long long)value, ret);
}

static void name_limit(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_create/SUCCESS/limits of %s", numbers[i].name);
}

FAMILY(COUNT(numbers), name_limit)
{
	check_in_force(n, &numbers[i], 1);
	check_in_force(n, &numbers[i], limit_of(n, &numbers[i]));
}

static void name_default(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_create/SUCCESS/%s of 0", numbers[i].name);
}

/* For a size 0 requests the default; for a number the text promises nothing. */
FAMILY(COUNT(numbers), name_default)
{
	uint64_t got = in_force(n, &numbers[i], 0);

	CHECK(got || !numbers[i].exact, "the limit is 0");
}

static void name_beyond(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_create/INVALID_PARAMETER/%s beyond its limit",
		 numbers[i].name);
}

FAMILY(COUNT(numbers), name_beyond)
{
	const struct number *a = &numbers[i];
	uint64_t limit = limit_of(n, a);

	if (!a->exact)
		refused(n, a, UINT32_MAX);	/* -1 */
	if (limit >= (a->exact ? UINT64_MAX >> (64 - 8 * a->size) : INT32_MAX))
		skip("the IA's limit is %#llx", (unsigned long long)limit);
	refused(n, a, limit + 1);
	if (!a->exact)
		refused(n, a, INT32_MAX);
}

CLAUSE("dat_ep_create/SUCCESS/the attributes of another EP")
{
	DAT_EP_ATTR attr, again;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	node_ep_attr(n, &attr);
	OK(create_with(n, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	again = param.ep_attr;
	SAME(again.max_recv_dtos, attr.max_recv_dtos);
	SAME(again.max_request_dtos, attr.max_request_dtos);
	SAME(again.max_message_size, attr.max_message_size);
	SAME(again.max_rdma_read_out, attr.max_rdma_read_out);
}

/* Expects an impossible value of an attribute other than a number to be refused. */
static void refuse_attr(struct node *n, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep;
	DAT_RETURN ret = create_with(n, attr, &ep);

	CHECK(DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER ||
	      DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED, "%#x", ret);
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/service type")
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.service_type = (DAT_SERVICE_TYPE)77;
	refuse_attr(n, &attr);
}

static const DAT_QOS qualities[] = {
	DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY, DAT_QOS_PREMIUM,
	(DAT_QOS)0x1000,
};

/* A quality of service that the provider attributes lack is refused, even one that DAT lacks. */
CLAUSE("dat_ep_create/MODEL_NOT_SUPPORTED/quality of service")
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	size_t q;

	node_ep_attr(n, &attr);
	for (q = 0; q < COUNT(qualities); q++) {
		attr.qos = qualities[q];
		if (n->prov.dat_qos_supported & qualities[q])
			OK(create_with(n, &attr, &ep));
		else
			FAILS(create_with(n, &attr, &ep), DAT_MODEL_NOT_SUPPORTED);
	}
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/completion flags")
{
	static const DAT_COMPLETION_FLAGS bad[] = {
		DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
		(DAT_COMPLETION_FLAGS)0x1000,
	};
	DAT_EP_ATTR good, attr;
	DAT_EP_HANDLE ep;
	size_t k;

	node_ep_attr(n, &good);
	for (k = 0; k < COUNT(bad); k++) {
		attr = good;
		attr.recv_completion_flags = bad[k];
		FAILS(create_with(n, &attr, &ep), DAT_INVALID_PARAMETER);
	}
	attr = good;
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)0x1000;
	FAILS(create_with(n, &attr, &ep), DAT_INVALID_PARAMETER);
}

/* Requests have these flags of their own; SOLICITED_WAIT as an attribute is for receives. */
CLAUSE("dat_ep_create/INVALID_PARAMETER/flags that each request has of its own")
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	node_ep_attr(n, &attr);
	attr.request_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	FAILS(create_with(n, &attr, &ep), DAT_INVALID_PARAMETER);
	attr.request_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	FAILS(create_with(n, &attr, &ep), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_create/SUCCESS/completion flags")
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG,
	};
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	size_t k;

	node_ep_attr(n, &attr);
	for (k = 0; k < COUNT(flags); k++) {
		attr.recv_completion_flags = attr.request_completion_flags = flags[k];
		OK(create_with(n, &attr, &ep));
		OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		SAME(param.ep_attr.recv_completion_flags, flags[k]);
		SAME(param.ep_attr.request_completion_flags, flags[k]);
		OK(dat_ep_free(ep));
	}
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/unknown named attributes")
{
	DAT_NAMED_ATTR named = { "no such attribute", "1" };
	DAT_EP_ATTR good, attr;

	node_ep_attr(n, &good);
	attr = good;
	attr.ep_transport_specific_count = 1;
	attr.ep_transport_specific = &named;
	refuse_attr(n, &attr);
	attr = good;
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &named;
	refuse_attr(n, &attr);
}

CLAUSE("dat_ep_create/INSUFFICIENT_RESOURCES/more than max_eps")
{
	DAT_COUNT k, most = n->attr.max_eps;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret = DAT_SUCCESS;

	SKIP_IF_TOO_MANY(max_eps);
	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = 1;
	for (k = 0; k <= most && ret == DAT_SUCCESS; k++)
		ret = create_with(n, &attr, &ep);
	SAME(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	CHECK(k > most, "max_eps is %d, but %d were created", most, k - 1);
}

/* dat_ep_query, dat_ep_get_status */

CLAUSE("dat_ep_query/SUCCESS/each field alone")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_EP_PARAM param;
	unsigned bit;

	for (bit = 0; bit < 31; bit++)
		if (DAT_EP_FIELD_ALL & (UINT64_C(1) << bit))
			OK(dat_ep_query(ep, (DAT_EP_PARAM_MASK)(UINT64_C(1) << bit), &param));
	OK(dat_ep_query(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	CHECK(param.pz_handle == n->pz, "wrong PZ");
}

CLAUSE("dat_ep_query/INVALID_PARAMETER")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_EP_PARAM param;
	unsigned bit;

	FAILS(dat_ep_query(ep, DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	for (bit = 0; bit < 8 * sizeof(DAT_EP_PARAM_MASK); bit++) {
		DAT_EP_PARAM_MASK mask = (DAT_EP_PARAM_MASK)(UINT64_C(1) << bit);

		if (!(mask & (DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL))
			FAILS(dat_ep_query(ep, mask, &param), DAT_INVALID_PARAMETER);
	}
}

/* Posted receives make the EP not idle, and do not keep dat_ep_free() from succeeding. */
CLAUSE("dat_ep_get_status/SUCCESS")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	DAT_COUNT held, span;

	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	SAME(state, DAT_EP_STATE_UNCONNECTED);
	SAME(recv_idle, DAT_TRUE);
	SAME(request_idle, DAT_TRUE);
	OK(dat_ep_get_status(ep, NULL, NULL, NULL));
	OK(post_nothing(ep));
	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	SAME(recv_idle, DAT_FALSE);
	SAME(request_idle, DAT_TRUE);
	if (n->prov.ep_recv_info_supported) {
		OK(dat_ep_recv_query(ep, &held, &span));
		SAME(held, 1);
		SAME(span, 1);
	}
	OK(dat_ep_free(ep));
}

/* dat_ep_free: releases the objects that the EP used */
CLAUSE("dat_ep_free/SUCCESS")
{
	DAT_PZ_HANDLE pz;
	struct end e;

	OK(dat_pz_create(n->ia, &pz));
	e.recv = node_evd(n, 8, DAT_EVD_DTO_FLAG);
	e.req = node_evd(n, 8, DAT_EVD_DTO_FLAG);
	e.conn = node_evd(n, 8, DAT_EVD_CONNECTION_FLAG);
	OK(dat_ep_create(n->ia, pz, e.recv, e.req, e.conn, NULL, &e.ep));
	FAILS(dat_evd_free(e.recv), DAT_INVALID_STATE);
	FAILS(dat_evd_free(e.req), DAT_INVALID_STATE);
	FAILS(dat_evd_free(e.conn), DAT_INVALID_STATE);
	FAILS(dat_pz_free(pz), DAT_INVALID_STATE);
	OK(dat_ep_free(e.ep));
	OK(dat_evd_free(e.recv));
	OK(dat_evd_free(e.req));
	OK(dat_evd_free(e.conn));
	OK(dat_pz_free(pz));
}

/* Receives without a connection */

CLAUSE("dat_ep_reset/SUCCESS/receives remain posted")
{
	struct couple c;

	couple_make(n, &c, NULL, NULL);
	post_recv(c.b.ep, &c.m, 0, 64, 1);
	OK(dat_ep_reset(c.b.ep));
	couple_connect(n, &c);
	post_send(c.a.ep, &c.m, 1024, 64, 2);
	expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 64);
}

COUPLED("dat_ep_disconnect/INVALID_PARAMETER")
{
	FAILS(dat_ep_disconnect(c->a.ep, (DAT_CLOSE_FLAGS)2), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_disconnect(c->a.ep, (DAT_CLOSE_FLAGS)-1), DAT_INVALID_PARAMETER);
	SAME(ep_state(c->a.ep), DAT_EP_STATE_CONNECTED);
}

/* Watermarks */

CLAUSE("dat_ep_set_watermark/INVALID_PARAMETER")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	NEEDS_PROVIDER(srq_watermarks_supported);
	FAILS(dat_ep_set_watermark(ep, -2, DAT_WATERMARK_INFINITE), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, -2), DAT_INVALID_PARAMETER);
}

#define SOFT_MARK 0x010		/* bits of the attribute, which the header files do not name */
#define HARD_MARK 0x100

static void needs_mark(struct node *n, DAT_COUNT mark)
{
	if (!(n->prov.srq_watermarks_supported & mark))
		skip("srq_watermarks_supported is %#x", n->prov.srq_watermarks_supported);
}

/* DAT has no event number for this mark: EP_BROKEN reports it with a reason of its own. */
static void expect_soft_mark(struct node *n, DAT_EP_HANDLE ep)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	expect_event(n->async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
	data = &event.event_data.asynch_error_event_data;
	CHECK(data->dat_handle == ep, "wrong object");
	SAME(data->reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

CLAUSE("dat_ep_set_watermark/SUCCESS/soft")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	needs_mark(n, SOFT_MARK);
	OK(dat_ep_set_watermark(ep, 2, DAT_WATERMARK_INFINITE));
	OK(post_nothing(ep));
	OK(post_nothing(ep));
	SAME(drain(n->async), 0);
	OK(post_nothing(ep));
	expect_soft_mark(n, ep);
	/* one event each time it is set */
	OK(post_nothing(ep));
	SAME(drain(n->async), 0);
	/* set while it is exceeded: an immediate event */
	OK(dat_ep_set_watermark(ep, 2, DAT_WATERMARK_INFINITE));
	expect_soft_mark(n, ep);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_ep_set_watermark/SUCCESS/hard")
{
	struct couple c;

	needs_mark(n, HARD_MARK);
	couple_open(n, &c);
	OK(dat_ep_set_watermark(c.a.ep, DAT_WATERMARK_INFINITE, 1));
	post_recv(c.a.ep, &c.m, 0, 8, 1);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_CONNECTED);
	OK(post_nothing(c.a.ep));
	SAME(expect_end(c.a.conn, c.a.ep), DAT_CONNECTION_EVENT_BROKEN);
	expect_end(c.b.conn, c.b.ep);
	expect_dto(c.a.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	expect_dto(c.a.recv, 0, DAT_DTO_ERR_FLUSHED, 0);
}

CLAUSE("dat_ep_set_watermark/SUCCESS/hard, before the connection")
{
	struct couple c;

	needs_mark(n, HARD_MARK);
	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_set_watermark(c.a.ep, DAT_WATERMARK_INFINITE, 0));
	post_recv(c.a.ep, &c.m, 0, 8, 1);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_UNCONNECTED);
	couple_connect(n, &c);
	SAME(expect_end(c.a.conn, c.a.ep), DAT_CONNECTION_EVENT_BROKEN);
	expect_end(c.b.conn, c.b.ep);
}

/* dat_ep_recv_query */

CLAUSE("dat_ep_recv_query/SUCCESS")
{
	DAT_COUNT held, span;
	struct couple c;

	NEEDS_PROVIDER(ep_recv_info_supported);
	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_recv_query(c.b.ep, &held, &span));
	SAME(held, 0);
	SAME(span, 0);
	post_recv(c.b.ep, &c.m, 0, 8, 1);
	post_recv(c.b.ep, &c.m, 8, 8, 2);
	couple_connect(n, &c);
	post_send(c.a.ep, &c.m, 1024, 8, 3);
	expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 8);
	OK(dat_ep_recv_query(c.b.ep, &held, &span));
	SAME(held, 1);
	SAME(span, 1);
	OK(dat_ep_recv_query(c.b.ep, NULL, &span));
	OK(dat_ep_recv_query(c.b.ep, &held, NULL));
}
