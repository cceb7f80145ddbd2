/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* EPs that are modified before they connect, and dat_ep_dup_connect(), in two processes. */

#include "pair.h"

#include <string.h>
#include <unistd.h>

#define KIB 1024u
#define MESSAGE 64u

static void modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	OK(dat_ep_modify(ep, mask, param));
}

static void query(DAT_EP_HANDLE ep, DAT_EP_PARAM *param)
{
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, param));
}

/* Duplicates of connections */

#define ASKED 40
#define ANSWERED 24

static void dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE of, DAT_COUNT size, void *data)
{
	OK(dat_ep_dup_connect(ep, of, pair_scaled(PAIR_LIMIT) * 1000, size, data,
			      DAT_QOS_BEST_EFFORT));
}

/* One message in each direction. */
static void exchange(struct pair *p, struct node *n, DAT_EP_HANDLE ep, unsigned seed)
{
	unsigned own = seed + p->server, theirs = seed + !p->server;
	struct mem in, out;

	mem_get(n, &in, KIB);
	mem_get(n, &out, KIB);
	fill(out.base, KIB, own);
	post_recv(ep, &in, 0, KIB, 1);
	pair_sync(p);
	post_send(ep, &out, 0, KIB, 2);
	expect_dto(n->req, 2, DAT_DTO_SUCCESS, KIB);
	expect_dto(n->recv, 1, DAT_DTO_SUCCESS, KIB);
	verify(in.base, KIB, theirs);
	mem_put(&in);
	mem_put(&out);
}

/* A qualifier larger than any port: the duplicate's request must carry all of it. */
static DAT_CONN_QUAL wide_qualifier(void)
{
	return UINT64_C(0x5eed000000000000) | (uint64_t)getpid() << 8 | 3;
}

static void dup_server(struct pair *p)
{
	DAT_CONN_QUAL qual = wide_qualifier();
	unsigned char answer[ANSWERED];
	DAT_EP_HANDLE first, second;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	first = node_ep(&n, NULL);
	second = node_ep(&n, NULL);
	OK(dat_psp_create(n.ia, qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &n, qual);
	expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, first, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, first);
	expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	check_cr(&n, &event, psp, qual, ASKED, 7);
	fill(answer, ANSWERED, 8);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, second, ANSWERED,
			 answer));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, second);
	exchange(p, &n, second, 20);
	exchange(p, &n, first, 30);
	/* a duplicate that the server rejects */
	expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	pair_sync(p);	/* closing the listener of sockets drops the rejection */
	OK(dat_psp_free(psp));
	pair_sync(p);
	pair_unlink(p, &n, second);
	pair_unlink(p, &n, first);
	OK(dat_ep_free(first));
	OK(dat_ep_free(second));
	node_close(&n);
}

static void dup_client(struct pair *p)
{
	DAT_EP_HANDLE first, second, third;
	unsigned char data[ASKED];
	struct listener listener;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	first = node_ep(&n, NULL);
	second = node_ep(&n, NULL);
	third = node_ep(&n, NULL);
	FAILS(dat_ep_dup_connect(second, first, 1000, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_STATE);
	pair_recv_listener(p, &listener);
	ep_connect(first, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, first);
	FAILS(dat_ep_dup_connect(first, first, 1000, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_STATE);
	fill(data, ASKED, 7);
	dup_connect(second, first, ASKED, data);
	memset(data, 0, ASKED);		/* the data was copied */
	expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	CHECK(event.event_data.connect_event_data.ep_handle == second, "wrong EP");
	check_data(event.event_data.connect_event_data.private_data_size,
		   event.event_data.connect_event_data.private_data, ANSWERED, 8);
	check_peer(&n, second, &listener);
	exchange(p, &n, second, 20);
	exchange(p, &n, first, 30);
	dup_connect(third, second, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, third);
	pair_sync(p);
	pair_sync(p);
	/* there is no listener now, although the connections stand */
	OK(dat_ep_reset(third));
	dup_connect(third, first, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, third);
	SAME(ep_state(third), DAT_EP_STATE_DISCONNECTED);
	pair_unlink(p, &n, second);
	pair_unlink(p, &n, first);
	FAILS(dat_ep_dup_connect(third, first, 1000, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_STATE);
	OK(dat_ep_free(first));
	OK(dat_ep_free(second));
	OK(dat_ep_free(third));
	node_close(&n);
}

/* Deeper and wider queues, other EVDs */

#define EARLY 10u
#define DEEP 500u

static const DAT_EP_PARAM_MASK sizes_mask =
	DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
	DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
	DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV;

/* An EP with posted receives gets longer queues, more segments and EVDs of its own. */
static void widen(struct node *n, DAT_EP_HANDLE ep, struct node *other)
{
	DAT_EP_PARAM param;

	query(ep, &param);
	param.recv_evd_handle = other->recv;
	param.request_evd_handle = other->req;
	param.connect_evd_handle = other->conn;
	param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = DEEP;
	param.ep_attr.max_recv_iov = n->attr.max_iov_segments_per_dto;
	modify(ep, sizes_mask, &param);
	query(ep, &param);
	SAME(param.ep_attr.max_recv_dtos, DEEP);
	CHECK(param.recv_evd_handle == other->recv && param.connect_evd_handle == other->conn,
	      "wrong EVDs");
}

static DAT_EP_HANDLE narrow_ep(struct node *n)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = EARLY;
	attr.max_recv_iov = attr.max_request_iov = 1;
	return node_ep(n, &attr);
}

/* The node's first EVDs must stay empty: all events go to the second ones. */
static void queues(struct pair *p)
{
	struct node n, second;
	struct mem in, out;
	DAT_EP_HANDLE ep;
	unsigned i;

	node_open(&n);
	memcpy(&second, &n, sizeof(n));	/* memcpy(), because a member is const */
	second.conn = node_evd(&n, NODE_QLEN, DAT_EVD_CONNECTION_FLAG);
	second.req = node_evd(&n, NODE_QLEN, DAT_EVD_DTO_FLAG);
	second.recv = node_evd(&n, NODE_QLEN, DAT_EVD_DTO_FLAG);
	mem_get(&n, &in, DEEP * MESSAGE);
	mem_get(&n, &out, DEEP * MESSAGE);
	fill(out.base, out.size, p->server);
	ep = narrow_ep(&n);
	for (i = 0; i < EARLY; i++)
		post_recv(ep, &in, i * MESSAGE, MESSAGE, i);
	widen(&n, ep, &second);
	for (; i < DEEP; i++)
		post_recv(ep, &in, i * MESSAGE, MESSAGE, i);
	pair_link(p, &second, ep);
	for (i = 0; i < DEEP; i++)
		post_send(ep, &out, i * MESSAGE, MESSAGE, i);
	for (i = 0; i < DEEP; i++)
		expect_dto(second.recv, i, DAT_DTO_SUCCESS, MESSAGE);
	for (i = 0; i < DEEP; i++)
		expect_dto(second.req, i, DAT_DTO_SUCCESS, MESSAGE);
	verify(in.base, in.size, !p->server);
	pair_unlink(p, &second, ep);
	expect_quiet(n.conn);
	expect_quiet(n.recv);
	expect_quiet(n.req);
	OK(dat_ep_free(ep));
	mem_put(&in);
	mem_put(&out);
	OK(dat_evd_free(second.conn));
	OK(dat_evd_free(second.req));
	OK(dat_evd_free(second.recv));
	node_close(&n);
}

/* Between two connections */

static void again(struct pair *p)
{
	DAT_EP_PARAM param;
	struct node n;

	node_begin(&n, 0);
	query(n.ep, &param);
	pair_link(p, &n, n.ep);
	FAILS(dat_ep_modify(n.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_STATE);
	exchange(p, &n, n.ep, 40);
	pair_unlink(p, &n, n.ep);
	FAILS(dat_ep_modify(n.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_STATE);
	OK(dat_ep_reset(n.ep));
	param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = 1;
	modify(n.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
	       &param);
	pair_link(p, &n, n.ep);
	exchange(p, &n, n.ep, 50);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* PZs */

static void move_to(DAT_EP_HANDLE ep, DAT_PZ_HANDLE pz)
{
	DAT_EP_PARAM param;

	query(ep, &param);
	param.pz_handle = pz;
	modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param);
}

/* The EP moves to another PZ: objects of the new PZ work, and the old PZ can be freed. */
static void other_pz(struct pair *p)
{
	DAT_PZ_HANDLE old;
	struct node n;

	node_begin(&n, 0);
	old = n.pz;
	OK(dat_pz_create(n.ia, &n.pz));
	FAILS(dat_pz_free(old), DAT_INVALID_STATE);
	move_to(n.ep, n.pz);
	OK(dat_pz_free(old));
	pair_link(p, &n, n.ep);
	exchange(p, &n, n.ep, 60);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* Receives of the EP's former PZ fail when a message uses them, and not earlier. */
static void left_pz_server(struct pair *p)
{
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	struct node n;
	size_t i;

	node_open(&n);
	mem_get(&n, &n.m, KIB);
	memset(n.m.base, 0xaa, n.m.size);
	OK(dat_pz_create(n.ia, &pz));
	ep = node_ep(&n, NULL);
	for (i = 0; i < 3; i++)
		post_recv(ep, &n.m, i * MESSAGE, MESSAGE, i);
	move_to(ep, pz);
	pair_link(p, &n, ep);
	expect_quiet(n.recv);
	pair_sync(p);
	expect_dto(n.recv, 0, DAT_DTO_SUCCESS, 0);
	expect_dto(n.recv, 1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect_dto(n.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
	SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_BROKEN);
	for (i = 0; i < n.m.size; i++)
		CHECK(n.m.base[i] == 0xaa, "byte %zu was written", i);
	pair_sync(p);
	OK(dat_ep_free(ep));
	OK(dat_pz_free(pz));
	node_end(&n);
}

static void left_pz_client(struct pair *p)
{
	DAT_EVENT event;
	struct node n;

	node_begin(&n, KIB);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	/* an empty message uses no memory, so it fits any PZ */
	post_send(n.ep, &n.m, 0, 0, 1);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, 0);
	post_send(n.ep, &n.m, 0, MESSAGE, 2);
	/* it may have left before the peer refuses it; it completes exactly once */
	expect_event(n.req, DAT_DTO_COMPLETION_EVENT, &event);
	expect_quiet(n.req);
	expect_end(n.conn, n.ep);
	pair_sync(p);
	node_end(&n);
}

/* Watermarks */

/* The third receive exceeds the hard high watermark as soon as there is a connection. */
static void hard_server(struct pair *p)
{
	DAT_COUNT held, span;
	struct node n;
	uint64_t i;

	node_begin(&n, KIB);
	OK(dat_ep_set_watermark(n.ep, DAT_WATERMARK_INFINITE, 2));
	for (i = 0; i < 3; i++)
		post_recv(n.ep, &n.m, 0, MESSAGE, i);
	OK(dat_ep_recv_query(n.ep, &held, &span));
	SAME(held, 3);
	SAME(span, 3);
	pair_link(p, &n, n.ep);
	for (i = 0; i < 3; i++)
		expect_dto(n.recv, i, DAT_DTO_ERR_FLUSHED, 0);
	SAME(expect_end(n.conn, n.ep), DAT_CONNECTION_EVENT_BROKEN);
	node_end(&n);
}

static void hard_client(struct pair *p)
{
	struct node n;

	node_begin(&n, 0);
	pair_link(p, &n, n.ep);
	expect_end(n.conn, n.ep);
	node_end(&n);
}

static void soft(struct pair *p)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;
	struct link l;

	link_open(p, &l, KIB);
	OK(dat_ep_set_watermark(l.ep, 1, DAT_WATERMARK_INFINITE));
	post_recv(l.ep, &l.m, 0, MESSAGE, 1);
	expect_quiet(l.n.async);
	post_recv(l.ep, &l.m, MESSAGE, MESSAGE, 2);
	expect_event(l.n.async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
	data = &event.event_data.asynch_error_event_data;
	CHECK(data->dat_handle == l.ep, "wrong object");
	SAME(data->reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	/* the soft watermark only warns */
	pair_sync(p);
	post_send(l.ep, &l.m, 0, MESSAGE, 3);
	expect_dto(l.n.req, 3, DAT_DTO_SUCCESS, MESSAGE);
	expect_dto(l.n.recv, 1, DAT_DTO_SUCCESS, MESSAGE);
	pair_unlink(p, &l.n, l.ep);
	expect_dto(l.n.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
	link_free(&l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("duplicates of a connection", dup_server, dup_client),
	PAIR_CASE("queues and EVDs", queues, queues),
	PAIR_CASE("between two connections", again, again),
	PAIR_CASE("moved to another PZ", other_pz, other_pz),
	PAIR_CASE("receives of the former PZ", left_pz_server, left_pz_client),
	PAIR_CASE("hard watermark", hard_server, hard_client),
	PAIR_CASE("soft watermark", soft, soft),
};

PAIR_MAIN(cases)
