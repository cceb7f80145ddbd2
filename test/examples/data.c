/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The examples for memory and data transfer. */

#include "examples.h"

#include "pages/dat_ep_post_rdma_read.h"
#include "pages/dat_ep_post_rdma_write.h"
#include "pages/dat_ep_post_recv.h"
#include "pages/dat_ep_post_send.h"
#include "pages/dat_ep_recv_query.h"
#include "pages/dat_ep_set_watermark.h"
#include "pages/dat_lmr_create.h"
#include "pages/dat_lmr_query.h"
#include "pages/dat_lmr_sync_rdma_read.h"
#include "pages/dat_lmr_sync_rdma_write.h"
#include "pages/dat_names.h"
#include "pages/dat_rmr_bind.h"
#include "pages/dat_rmr_create.h"
#include "pages/dat_rmr_query.h"
#include "pages/dat_srq_create.h"
#include "pages/dat_srq_post_recv.h"
#include "pages/dat_srq_resize.h"
#include "pages/dat_srq_set_lw.h"
#if DAT_VERSION_MAJOR >= 2
#include "pages/dat_ep_post_rdma_read_to_rmr.h"
#include "pages/dat_ep_post_send_with_invalidate.h"
#include "pages/dat_extension_op.h"
#include "pages/dat_rmr_create_for_ep.h"
#endif

#include <string.h>

CHAPTER("dto");

#define HALF (COUPLE_MEMORY / 2)	/* the second half is the peer's */

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static uint64_t address_of(const struct mem *m, size_t offset)
{
	return (uintptr_t)m->base + offset;
}

/* Messages */

COUPLED("dat_ep_post_send")
{
	fill(c->m.base, 64, 1);
	post_recv(c->b.ep, &c->m, HALF, 128, 2);
	OK(send_bytes(c->a.ep, c->m.lmr_context, c->m.base, 64));
	expect_dto(c->a.req, address_of(&c->m, 0), DAT_DTO_SUCCESS, 64);
	expect_dto(c->b.recv, 2, DAT_DTO_SUCCESS, 64);
	verify(c->m.base + HALF, 64, 1);
	FAILS(send_bytes(c->a.ep, c->m.lmr_context, c->m.base + COUPLE_MEMORY, 1),
	      DAT_INVALID_PARAMETER);
}

COUPLED("dat_names")
{
	DAT_EVENT event;
	const char *text;

	post_recv(c->b.ep, &c->m, HALF, 64, 2);
	OK(dat_ep_disconnect(c->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c->b.ep);
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	capture(1);
	print_completion(&event.event_data.dto_completion_event_data);
	text = captured();
	CHECK(!strcmp(text, "DAT_DTO_ERR_FLUSHED, the EP is DAT_EP_STATE_DISCONNECTED\n"), "%s",
	      text);
}

COUPLED("dat_ep_post_recv")
{
	unsigned k;

	OK(post_buffers(c->b.ep, c->m.lmr_context, (char *)c->m.base + HALF, 64, 3));
	for (k = 0; k < 3; k++) {
		fill(c->m.base + 64 * k, 64, k);
		post_send(c->a.ep, &c->m, 64 * k, 64, k);
		expect_dto(c->b.recv, address_of(&c->m, HALF + 64 * k), DAT_DTO_SUCCESS, 64);
		verify(c->m.base + HALF + 64 * k, 64, k);
	}
	FAILS(post_buffers(c->b.ep, c->m.lmr_context, (char *)c->m.base + COUPLE_MEMORY - 64, 64,
			   2),
	      DAT_INVALID_PARAMETER);
	SAME(ep_state(c->b.ep), DAT_EP_STATE_CONNECTED);
}

CLAUSE("dat_ep_recv_query")
{
	DAT_EP_PARAM param;
	struct couple c;
	DAT_COUNT left = 0;

	NEEDS_PROVIDER(ep_recv_info_supported);
	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_query(c.a.ep, DAT_EP_FIELD_ALL, &param));
	OK(receives_left(c.a.ep, &left));
	SAME(left, param.ep_attr.max_recv_dtos);
	while (left-- > 0)
		post_recv(c.a.ep, &c.m, 0, 64, 1);
	OK(receives_left(c.a.ep, &left));
	SAME(left, 0);
	FAILS(receives_left(n->pz, &left), DAT_INVALID_HANDLE);
}

CLAUSE("dat_ep_set_watermark")
{
	DAT_EVENT event = { .event_number = DAT_ASYNC_ERROR_EP_BROKEN };
	struct couple c;

	NEEDS_PROVIDER(srq_watermarks_supported);
	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_set_watermark(c.a.ep, 0, DAT_WATERMARK_INFINITE));
	post_recv(c.a.ep, &c.m, 0, 64, 1);
	expect_event(n->async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
	SAME(is_watermark_event(&event), DAT_TRUE);
	event.event_data.asynch_error_event_data.reason = (DAT_COUNT)~0;
	SAME(is_watermark_event(&event), DAT_FALSE);
	event.event_number = DAT_ASYNC_ERROR_EVD_OVERFLOW;
	SAME(is_watermark_event(&event), DAT_FALSE);
}

/* Memory and RDMA */

COUPLED("dat_lmr_create")
{
	static unsigned char memory[4096];
	DAT_RMR_CONTEXT rmr_context;
	DAT_LMR_CONTEXT lmr_context;
	DAT_LMR_HANDLE lmr;
	struct mem m;

	OK(register_window(n->ia, n->pz, memory, sizeof(memory), &lmr, &lmr_context, &rmr_context));
	m = (struct mem){ memory, sizeof(memory), lmr, lmr_context, rmr_context };
	fill(c->m.base, 64, 1);
	post_write(c->a.ep, &c->m, 0, 64, 1,
		   &(struct grant){ (uintptr_t)memory, sizeof(memory), rmr_context }, 0);
	expect_dto(c->a.req, 1, DAT_DTO_SUCCESS, 64);
	post_recv(c->a.ep, &c->m, HALF, 64, 2);
	post_send(c->b.ep, &m, 0, 64, 3);
	expect_dto(c->a.recv, 2, DAT_DTO_SUCCESS, 64);
	verify(c->m.base + HALF, 64, 1);
	FAILS(register_window(n->ia, n->recv, memory, sizeof(memory), &lmr, &lmr_context,
			      &rmr_context),
	      DAT_INVALID_HANDLE);
}

/*
 * By the example of dat_ep_post_rdma_write: once the message has arrived, the second half is
 * written.
 */
static void written_and_notified(struct couple *c, const DAT_RMR_TRIPLET *to)
{
	DAT_LMR_TRIPLET from = mem_segment(&c->m, 0, 64);

	fill(c->m.base, 64, 1);
	post_recv(c->b.ep, &c->m, 0, 0, 2);
	OK(put_and_notify(c->a.ep, &from, to, cookie_of(3)));
	expect_dto(c->b.recv, 2, DAT_DTO_SUCCESS, 0);
	verify(c->m.base + HALF, 64, 1);
}

COUPLED("dat_ep_post_rdma_write")
{
	DAT_LMR_TRIPLET from;
	DAT_RMR_TRIPLET to;

	from = mem_segment(&c->m, 0, 64);
	to = mem_remote(&c->m, HALF, 64);
	written_and_notified(c, &to);
	expect_dto(c->a.req, 3, DAT_DTO_SUCCESS, 0);
	expect_quiet(c->a.req);
	FAILS(put_and_notify(node_ep(n, NULL), &from, &to, cookie_of(3)), DAT_INVALID_STATE);
}

COUPLED("dat_ep_post_rdma_read")
{
	DAT_RMR_TRIPLET from;

	fill(c->m.base + HALF, 64, 1);
	from = mem_remote(&c->m, HALF, 64);
	OK(get(c->a.ep, c->a.req, c->m.lmr_context, c->m.base, &from));
	verify(c->m.base, 64, 1);
	from.rmr_context ^= 0x5a5a5a5a;
	FAILS(get(c->a.ep, c->a.req, c->m.lmr_context, c->m.base, &from), DAT_ABORT);
	FAILS(get(node_ep(n, NULL), n->req, c->m.lmr_context, c->m.base, &from), DAT_INVALID_STATE);
}

COUPLED("dat_lmr_sync_rdma_read")
{
	DAT_LMR_TRIPLET written;
	DAT_RMR_TRIPLET from;

	fill(c->m.base, 64, 1);
	written = mem_segment(&c->m, 0, 64);
	post_recv(c->b.ep, &c->m, 0, 0, 2);
	OK(publish(n->ia, &written, c->a.ep, cookie_of(3)));
	expect_dto(c->b.recv, 2, DAT_DTO_SUCCESS, 0);
	from = mem_remote(&c->m, 0, 64);
	OK(get(c->b.ep, c->b.req, c->m.lmr_context, c->m.base + HALF, &from));
	verify(c->m.base + HALF, 64, 1);
	written.segment_length = COUPLE_MEMORY + 1;
	FAILS(publish(n->ia, &written, c->a.ep, cookie_of(3)), DAT_INVALID_PARAMETER);
}

COUPLED("dat_lmr_sync_rdma_write")
{
	DAT_LMR_TRIPLET from, written;
	DAT_RMR_TRIPLET to;

	fill(c->m.base, 64, 1);
	from = mem_segment(&c->m, 0, 64);
	to = mem_remote(&c->m, HALF, 64);
	written = mem_segment(&c->m, HALF, 64);
	post_recv(c->b.ep, &c->m, 0, 0, 2);
	OK(put_and_notify(c->a.ep, &from, &to, cookie_of(3)));
	OK(wait_written(n->ia, &written, c->b.recv));
	verify(c->m.base + HALF, 64, 1);
	post_recv(c->b.ep, &c->m, 0, 0, 2);
	OK(dat_ep_disconnect(c->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(wait_written(n->ia, &written, c->b.recv), DAT_ABORT);
}

COUPLED("dat_lmr_query")
{
	DAT_LMR_TRIPLET segment;

	OK(whole_lmr(c->m.lmr, &segment));
	SAME(segment.segment_length, COUPLE_MEMORY);
	CHECK(segment.virtual_address == address_of(&c->m, 0), "wrong address");
	OK(dat_ep_post_recv(c->b.ep, 1, &segment, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	post_send(c->a.ep, &c->m, 0, 64, 2);
	expect_dto(c->b.recv, 1, DAT_DTO_SUCCESS, 64);
	FAILS(whole_lmr(n->pz, &segment), DAT_INVALID_HANDLE);
}

/* RMRs */

/* Grants the second half to the peer of @e, by the example of dat_rmr_bind; returns the context. */
static DAT_RMR_CONTEXT granted(struct couple *c, struct end *e, DAT_RMR_HANDLE rmr)
{
	DAT_RMR_CONTEXT context;

	OK(grant_to_peer(rmr, c->m.lmr, c->m.lmr_context, c->m.base + HALF, 64, e->ep, &context));
	expect_bind(e->req, rmr, (uintptr_t)rmr, DAT_RMR_BIND_SUCCESS);
	return context;
}

COUPLED("dat_rmr_bind")
{
	DAT_RMR_TRIPLET to;
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(n->pz, &rmr));
	to = mem_remote(&c->m, HALF, 64);
	to.rmr_context = granted(c, &c->b, rmr);
	written_and_notified(c, &to);
	FAILS(grant_to_peer(rmr, c->m.lmr, c->m.lmr_context, c->m.base + COUPLE_MEMORY, 64, c->b.ep,
			    &to.rmr_context),
	      DAT_INVALID_PARAMETER);
}

COUPLED("dat_rmr_create")
{
	DAT_RMR_HANDLE rmrs[3];
	unsigned k;

	OK(make_rmrs(n->pz, rmrs, COUNT(rmrs)));
	for (k = 0; k < COUNT(rmrs); k++)
		granted(c, &c->a, rmrs[k]);
	FAILS(make_rmrs(n->recv, rmrs, COUNT(rmrs)), DAT_INVALID_HANDLE);
}

COUPLED("dat_rmr_query")
{
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(n->pz, &rmr));
	SAME(is_bound(rmr), DAT_FALSE);
	granted(c, &c->a, rmr);
	SAME(is_bound(rmr), DAT_TRUE);
	SAME(is_bound(n->pz), DAT_FALSE);
}

CLAUSE("dat_rmr_create/INSUFFICIENT_RESOURCES")
{
	DAT_COUNT most = n->attr.max_rmrs - 1, k;
	DAT_RMR_HANDLE rmr, rmrs[2];

	for (k = 0; k < most; k++)
		OK(dat_rmr_create(n->pz, &rmr));
	FAILS(make_rmrs(n->pz, rmrs, 2), DAT_INSUFFICIENT_RESOURCES);
	OK(make_rmrs(n->pz, rmrs, 1));
}

#if DAT_VERSION_MAJOR >= 2

COUPLED("dat_rmr_create_for_ep")
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	OK(make_rmr(n->pz, &rmr));
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_RMR_SCOPE, &param));
	SAME(param.rmr_scope == DAT_RMR_SCOPE_EP, n->prov.rmr_scope_supported != DAT_RMR_SCOPE_PZ);
	granted(c, &c->a, rmr);
	FAILS(make_rmr(n->recv, &rmr), DAT_INVALID_HANDLE);
}

COUPLED("dat_ep_post_send_with_invalidate")
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	OK(dat_rmr_create(n->pz, &rmr));
	context = granted(c, &c->b, rmr);
	fill(c->m.base, 64, 1);
	post_recv(c->b.ep, &c->m, HALF, 64, 2);
	OK(answer(c->a.ep, c->m.lmr_context, c->m.base, 64, context));
	expect_dto(c->a.req, context, DAT_DTO_SUCCESS, 64);
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(event.event_data.dto_completion_event_data.rmr_context, context);
	verify(c->m.base + HALF, 64, 1);
}

COUPLED("dat_ep_post_rdma_read_to_rmr")
{
	DAT_RMR_CONTEXT window;
	DAT_RMR_TRIPLET from;
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(n->pz, &rmr));
	window = granted(c, &c->a, rmr);
	fill(c->m.base, 64, 1);
	from = mem_remote(&c->m, 0, 64);
	OK(fetch(c->a.ep, window, c->m.base + HALF, &from));
	expect_dto(c->a.req, address_of(&c->m, HALF), DAT_DTO_SUCCESS, 64);
	verify(c->m.base + HALF, 64, 1);
	FAILS(fetch(c->a.ep, window, c->m.base, &from), DAT_PROTECTION_VIOLATION);
}

COUPLED("dat_extension_op")
{
	unsigned privileges = DAT_MEM_PRIV_ALL_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	uint64_t *counter, *ticket;
	DAT_RMR_TRIPLET remote;
	DAT_EVENT event;
	struct mem m;

	mem_get_with(n, n->pz, &m, 4096, (DAT_MEM_PRIV_FLAGS)privileges);
	counter = (uint64_t *)m.base;
	ticket = counter + 8;
	*counter = 40;
	remote = mem_remote(&m, 0, sizeof(*counter));
	OK(take_ticket(c->a.ep, &remote, ticket, m.lmr_context));
	expect_event(c->a.req, DAT_IB_DTO_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	CHECK(event.event_data.dto_completion_event_data.user_cookie.as_ptr == ticket,
	      "wrong cookie");
	SAME(*ticket, 40);
	SAME(*counter, 41);
	FAILS(take_ticket(node_ep(n, NULL), &remote, ticket, m.lmr_context), DAT_INVALID_STATE);
}

#endif

/* Shared receive queues */

/* A couple with an accepting end that uses an SRQ; the example of dat_srq_create makes both. */
static DAT_SRQ_HANDLE couple_with(struct node *n, struct couple *c)
{
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;

	NEEDS_PROVIDER(srq_supported);
	node_ep_attr(n, &attr);
	couple_make(n, c, NULL, NULL);
	OK(dat_ep_free(c->b.ep));
	c->b.req = c->b.recv;
	OK(create_srq_and_ep(n->ia, n->pz, c->b.recv, c->b.conn, &attr, &srq, &c->b.ep));
	couple_connect(n, c);
	return srq;
}

static void post_buffer(DAT_SRQ_HANDLE srq, const struct mem *m, size_t offset)
{
	DAT_LMR_TRIPLET segment = mem_segment(m, offset, 64);

	OK(dat_srq_post_recv(srq, 1, &segment, cookie_of(address_of(m, offset))));
}

CLAUSE("dat_srq_create")
{
	DAT_SRQ_HANDLE srq, second;
	DAT_SRQ_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	struct couple c;

	srq = couple_with(n, &c);
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CHECK(param.max_recv_dtos >= 64, "%d", param.max_recv_dtos);
	post_buffer(srq, &c.m, HALF);
	fill(c.m.base, 64, 1);
	post_send(c.a.ep, &c.m, 0, 64, 2);
	expect_dto(c.b.recv, address_of(&c.m, HALF), DAT_DTO_SUCCESS, 64);
	verify(c.m.base + HALF, 64, 1);
	node_ep_attr(n, &attr);
	FAILS(create_srq_and_ep(n->ia, n->pz, n->cr, n->conn, &attr, &second, &ep),
	      DAT_INVALID_HANDLE);
	FAILS(dat_srq_free(second), DAT_INVALID_HANDLE);
}

static struct {
	DAT_EP_HANDLE ep;
	const unsigned char *message;
	size_t length;
} got;

static void get_message(DAT_EP_HANDLE ep, const void *message, size_t length)
{
	got.ep = ep;
	got.message = message;
	got.length = length;
	verify(message, length, 1);
}

/* One buffer is enough for two messages. */
CLAUSE("dat_srq_post_recv")
{
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	struct couple c;
	unsigned k;

	srq = couple_with(n, &c);
	post_buffer(srq, &c.m, HALF);
	fill(c.m.base, 64, 1);
	for (k = 0; k < 2; k++) {
		memset(&got, 0, sizeof(got));
		post_send(c.a.ep, &c.m, 0, 60 + k, k);
		expect_event(c.b.recv, DAT_DTO_COMPLETION_EVENT, &event);
		OK(handle_message(srq, c.m.lmr_context, 64, &event, get_message));
		CHECK(got.ep == c.b.ep && got.message == c.m.base + HALF, "wrong EP or buffer");
		SAME(got.length, 60 + k);
	}
	FAILS(handle_message(n->pz, c.m.lmr_context, 64, &event, get_message), DAT_INVALID_HANDLE);
}

static struct mem *spare;

static DAT_RETURN post_spare(DAT_SRQ_HANDLE srq)
{
	post_buffer(srq, spare, 0);
	post_buffer(srq, spare, 64);
	return DAT_SUCCESS;
}

CLAUSE("dat_srq_set_lw")
{
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	struct couple c;
	unsigned k;

	NEEDS_PROVIDER(srq_watermarks_supported);
	srq = couple_with(n, &c);
	spare = &c.m;
	OK(post_spare(srq));
	OK(dat_srq_set_lw(srq, 2));
	/* the first message leaves two buffers, and the refill makes three */
	for (k = 0; k < 2; k++) {
		post_send(c.a.ep, &c.m, HALF, 8, k);
		expect_event(n->async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
		OK(refill(&event, k == 0 ? 3 : 1, post_spare));
	}
	event.event_data.asynch_error_event_data.dat_handle = c.b.ep;
	FAILS(refill(&event, 2, post_spare), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_srq_resize")
{
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE srq;
	struct couple c;
	DAT_COUNT k;

	srq = couple_with(n, &c);
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	for (k = 1; k < param.max_recv_dtos; k++)
		post_buffer(srq, &c.m, HALF);
	OK(double_srq(srq));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	SAME(param.max_recv_dtos, k);
	post_buffer(srq, &c.m, HALF);
	OK(double_srq(srq));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CHECK(param.max_recv_dtos >= 2 * k, "%d", param.max_recv_dtos);
	FAILS(double_srq(n->pz), DAT_INVALID_HANDLE);
}
