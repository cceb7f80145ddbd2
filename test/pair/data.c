/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two processes move data: every size and shape, in order, exactly, and to be relied on. */

#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

static const DAT_DTO_COOKIE no_cookie;

/* A connected EP with memory, which most cases begin with. */
struct link {
	struct node n;
	DAT_EP_HANDLE ep;
	struct mem m;		/* own memory, granted to the peer */
	struct grant theirs;	/* the peer's */
};

static void link_open_with(struct pair *p, struct link *l, size_t size, const DAT_EP_ATTR *attr)
{
	node_open(&l->n);
	mem_get(&l->n, &l->m, size);
	l->ep = node_ep(&l->n, attr);
	pair_link(p, &l->n, l->ep);
	pair_grant(p, &l->m);
	pair_granted(p, &l->theirs);
}

static void link_open(struct pair *p, struct link *l, size_t size)
{
	link_open_with(p, l, size, NULL);
}

static void link_close(struct pair *p, struct link *l)
{
	pair_unlink(p, &l->n, l->ep);
	expect_quiet(l->n.req);
	expect_quiet(l->n.recv);
	expect_quiet(l->n.conn);
	OK(dat_ep_free(l->ep));
	mem_put(&l->m);
	node_close(&l->n);
}

/* A target that makes no DAT call while the peer works, but for its end. */
static void passive_server(struct pair *p)
{
	size_t size = *(const size_t *)pair_arg();
	struct link l;

	link_open(p, &l, size);
	fill(l.m.base, l.m.size, 1);
	pair_sync(p);	/* the memory is ready */
	pair_sync(p);	/* the peer is done */
	link_close(p, &l);
}

/* Sends and receives */

static const uint32_t sizes[] = { 0, 1, 127, 128, 129, 4 * KIB, MIB, 16 * MIB };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Each size goes to the server and comes back. */
static void sizes_server(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 16 * MIB);
	for (i = 0; i < N_SIZES; i++) {
		post_recv(l.ep, &l.m, 0, sizes[i], i);
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, sizes[i]);
		verify(l.m.base, sizes[i], i);
		fill(l.m.base, sizes[i], i + 100);
		post_send(l.ep, &l.m, 0, sizes[i], i);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
	}
	link_close(p, &l);
}

static void sizes_client(struct pair *p)
{
	struct link l;
	struct mem back;
	size_t i;

	link_open(p, &l, 16 * MIB);
	mem_get(&l.n, &back, 16 * MIB);
	for (i = 0; i < N_SIZES; i++) {
		fill(l.m.base, sizes[i], i);
		post_recv(l.ep, &back, 0, sizes[i], i);
		pair_sync(p);
		post_send(l.ep, &l.m, 0, sizes[i], i);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, sizes[i]);
		verify(back.base, sizes[i], i + 100);
	}
	mem_put(&back);
	link_close(p, &l);
}

/* The receive is larger than the message: its length is the message's. */
static void short_server(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 8 * KIB);
	for (i = 0; i < 6; i++) {
		memset(l.m.base, 0xaa, l.m.size);
		post_recv(l.ep, &l.m, 0, l.m.size, i);
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, sizes[i]);
		verify(l.m.base, sizes[i], i);
		CHECK(l.m.base[sizes[i]] == 0xaa, "written behind the message");
	}
	link_close(p, &l);
}

static void short_client(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 8 * KIB);
	for (i = 0; i < 6; i++) {
		fill(l.m.base, sizes[i], i);
		pair_sync(p);
		post_send(l.ep, &l.m, 0, sizes[i], i);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
	}
	link_close(p, &l);
}

/* Segments */

#define SEGMENT 1000u
#define MAX_SEGMENTS 64
#define AREA (MAX_SEGMENTS * 2 * SEGMENT)

/* As many of each kind as the IA advertises. */
static void widest_attr(struct node *n, DAT_EP_ATTR *attr)
{
	node_ep_attr(n, attr);
	attr->max_recv_iov = attr->max_request_iov = n->attr.max_iov_segments_per_dto;
	attr->max_rdma_read_iov = n->attr.max_iov_segments_per_rdma_read;
	attr->max_rdma_write_iov = n->attr.max_iov_segments_per_rdma_write;
	CHECK(attr->max_recv_iov > 0 && attr->max_recv_iov <= MAX_SEGMENTS &&
	      attr->max_rdma_read_iov > 0 && attr->max_rdma_read_iov <= MAX_SEGMENTS &&
	      attr->max_rdma_write_iov > 0 && attr->max_rdma_write_iov <= MAX_SEGMENTS,
	      "a strange maximum");
}

static void link_open_widest(struct pair *p, struct link *l, DAT_EP_ATTR *attr)
{
	struct node n;

	node_open(&n);
	widest_attr(&n, attr);
	node_close(&n);
	link_open_with(p, l, AREA, attr);
}

/* The length of segment @i; some are empty. */
static uint32_t segment_length(int i)
{
	return i % 5 == 3 ? 0 : SEGMENT - 7 * i;
}

/* @count segments with gaps between them. Returns their bytes. */
static uint32_t scatter(const struct mem *m, int count, DAT_LMR_TRIPLET *iov)
{
	uint32_t total = 0;
	int i;

	for (i = 0; i < count; i++) {
		iov[i] = mem_segment(m, i * 2 * SEGMENT, segment_length(i));
		total += segment_length(i);
	}
	return total;
}

static unsigned char *piece(const struct mem *m, int i)
{
	return m->base + i * 2 * SEGMENT;
}

/* Puts the pattern of one flat area into the segments. */
static void fill_scattered(const struct mem *m, int count, unsigned seed)
{
	static unsigned char flat[AREA];
	uint32_t at = 0;
	int i;

	fill(flat, sizeof(flat), seed);
	memset(m->base, 0xaa, AREA);
	for (i = 0; i < count; at += segment_length(i++))
		memcpy(piece(m, i), flat + at, segment_length(i));
}

static void verify_scattered(const struct mem *m, int count, unsigned seed)
{
	static unsigned char flat[AREA];
	uint32_t at = 0;
	int i;

	for (i = 0; i < count; at += segment_length(i++)) {
		memcpy(flat + at, piece(m, i), segment_length(i));
		CHECK(piece(m, i)[segment_length(i)] == 0xaa, "written behind segment %d", i);
	}
	verify(flat, at, seed);
}

static void segments_server(struct pair *p)
{
	DAT_LMR_TRIPLET iov[MAX_SEGMENTS];
	DAT_EP_ATTR attr;
	struct link l;
	int i;

	link_open_widest(p, &l, &attr);
	for (i = 1; i <= attr.max_recv_iov; i++) {
		DAT_DTO_COOKIE cookie = { .as_64 = i };
		uint32_t total = scatter(&l.m, i, iov);

		memset(l.m.base, 0xaa, AREA);
		OK(dat_ep_post_recv(l.ep, i, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		memset(iov, 0xee, sizeof(iov));		/* ours again after the post */
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, total);
		verify_scattered(&l.m, i, i);
	}
	pair_sync(p);
	/* the peer writes and reads the flat area */
	for (i = 1; i <= attr.max_rdma_write_iov; i++) {
		uint32_t total;

		pair_recv(p, &total, sizeof(total));
		verify(l.m.base, total, i);
		pair_sync(p);
	}
	fill(l.m.base, AREA, 9);
	pair_sync(p);
	pair_sync(p);
	link_close(p, &l);
}

static void segments_client(struct pair *p)
{
	DAT_LMR_TRIPLET iov[MAX_SEGMENTS];
	DAT_RMR_TRIPLET remote;
	DAT_EP_ATTR attr;
	struct link l;
	int i;

	link_open_widest(p, &l, &attr);
	for (i = 1; i <= attr.max_request_iov; i++) {
		DAT_DTO_COOKIE cookie = { .as_64 = i };
		uint32_t total = scatter(&l.m, i, iov);

		fill_scattered(&l.m, i, i);
		pair_sync(p);
		OK(dat_ep_post_send(l.ep, i, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		memset(iov, 0xee, sizeof(iov));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, total);
	}
	pair_sync(p);
	for (i = 1; i <= attr.max_rdma_write_iov; i++) {
		DAT_DTO_COOKIE cookie = { .as_64 = i };
		uint32_t total = scatter(&l.m, i, iov);

		fill_scattered(&l.m, i, i);
		remote = remote_segment(&l.theirs, 0, AREA);	/* larger than needed */
		OK(dat_ep_post_rdma_write(l.ep, i, iov, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, total);
		pair_send(p, &total, sizeof(total));
		pair_sync(p);
	}
	pair_sync(p);
	for (i = 1; i <= attr.max_rdma_read_iov; i++) {
		DAT_DTO_COOKIE cookie = { .as_64 = i };
		uint32_t total = scatter(&l.m, i, iov);

		memset(l.m.base, 0xaa, AREA);
		remote = remote_segment(&l.theirs, 0, total);
		OK(dat_ep_post_rdma_read(l.ep, i, iov, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, total);
		verify_scattered(&l.m, i, 9);
	}
	pair_sync(p);
	link_close(p, &l);
}

/* Order and pressure */

#define N_EARLY 3

/* Messages wait for their receives, and what was posted behind them waits too. */
static void early_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 4 * KIB);
	fill(l.m.base + KIB, KIB, 50);
	pair_sync(p);
	expect_quiet(l.n.recv);
	for (i = 0; i < N_EARLY; i++)
		post_recv(l.ep, &l.m, i * 64, 64, i);
	for (i = 0; i < N_EARLY; i++) {
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 64);
		verify(l.m.base + i * 64, 64, i);
	}
	pair_sync(p);
	link_close(p, &l);
}

static void early_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 4 * KIB);
	for (i = 0; i < N_EARLY; i++) {
		fill(l.m.base + i * 64, 64, i);
		post_send(l.ep, &l.m, i * 64, 64, i);
	}
	post_read(l.ep, &l.m, KIB, KIB, i, &l.theirs, KIB);
	pair_sync(p);
	for (i = 0; i < N_EARLY; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 64);
	expect_dto(l.n.req, i, DAT_DTO_SUCCESS, KIB);
	verify(l.m.base + KIB, KIB, 50);
	pair_sync(p);
	link_close(p, &l);
}

#define N_PREPOSTED 16

/* Receives are posted before there is a connection, and outlive its making. */
static void preposted(struct pair *p)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	struct node n;
	struct mem m;
	DAT_EP_HANDLE ep;
	unsigned i;

	node_open(&n);
	mem_get(&n, &m, 2 * N_PREPOSTED * 64);
	ep = node_ep(&n, NULL);
	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "nothing was posted yet");
	for (i = 0; i < N_PREPOSTED; i++)
		post_recv(ep, &m, i * 64, 64, i);
	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	CHECK(!recv_idle && request_idle, "receives are posted");
	OK(dat_ep_reset(ep));	/* leaves them alone */
	pair_link(p, &n, ep);
	for (i = 0; i < N_PREPOSTED; i++) {
		fill(m.base + (N_PREPOSTED + i) * 64, 64, i);
		post_send(ep, &m, (N_PREPOSTED + i) * 64, 64, i);
	}
	for (i = 0; i < N_PREPOSTED; i++) {
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, 64);
		verify(m.base + i * 64, 64, i);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, 64);
	}
	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "all is done");
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

#define N_MANY 3000
#define SLOT 16
#define DEPTH 32

static void link_open_depth(struct pair *p, struct link *l, size_t size, DAT_COUNT depth)
{
	DAT_EP_ATTR attr;
	struct node n;

	node_open(&n);
	node_ep_attr(&n, &attr);
	node_close(&n);
	attr.max_recv_dtos = attr.max_request_dtos = depth;
	link_open_with(p, l, size, &attr);
}

/* Many more messages than either queue holds. */
static void many_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, DEPTH * SLOT, DEPTH);
	for (i = 0; i < DEPTH; i++)
		post_recv(l.ep, &l.m, i * SLOT, SLOT, i);
	for (i = 0; i < N_MANY; i++) {
		unsigned slot = i % DEPTH;

		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, SLOT);
		verify(l.m.base + slot * SLOT, SLOT, i);
		if (i + DEPTH < N_MANY)
			post_recv(l.ep, &l.m, slot * SLOT, SLOT, i + DEPTH);
	}
	link_close(p, &l);
}

static void many_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, DEPTH * SLOT, DEPTH);
	for (i = 0; i < N_MANY; i++) {
		unsigned slot = i % DEPTH;

		if (i >= DEPTH)
			expect_dto(l.n.req, i - DEPTH, DAT_DTO_SUCCESS, SLOT);
		fill(l.m.base + slot * SLOT, SLOT, i);
		post_send(l.ep, &l.m, slot * SLOT, SLOT, i);
	}
	for (i = N_MANY - DEPTH; i < N_MANY; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, SLOT);
	link_close(p, &l);
}

/* Both flood each other at once. */
#define N_FLOOD 48

static void flood(struct pair *p)
{
	struct link l;
	struct mem in;
	unsigned i;

	link_open(p, &l, MIB);
	mem_get(&l.n, &in, N_FLOOD * MIB);
	fill(l.m.base, MIB, p->server);
	for (i = 0; i < N_FLOOD; i++)
		post_recv(l.ep, &in, i * MIB, MIB, i);
	pair_sync(p);
	for (i = 0; i < N_FLOOD; i++)
		post_send(l.ep, &l.m, 0, MIB, i);
	for (i = 0; i < N_FLOOD; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, MIB);
	for (i = 0; i < N_FLOOD; i++) {
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, MIB);
		verify(in.base + i * MIB, MIB, !p->server);
	}
	mem_put(&in);
	link_close(p, &l);
}

#define N_ORDER 48
#define ORDER_BLOCK (16 * KIB)

/* Requests of all kinds complete as they were posted, whatever the fabric is quick at. */
static void order_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, N_ORDER * ORDER_BLOCK);
	for (i = 0; i < N_ORDER / 3; i++)
		post_recv(l.ep, &l.m, 0, ORDER_BLOCK, i);
	pair_sync(p);
	for (i = 0; i < N_ORDER / 3; i++)
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, i & 1 ? 8 : ORDER_BLOCK);
	pair_sync(p);
	link_close(p, &l);
}

static void order_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, N_ORDER * ORDER_BLOCK);
	pair_sync(p);
	for (i = 0; i < N_ORDER; i++) {
		uint32_t length = i / 3 & 1 ? 8 : ORDER_BLOCK;

		if (i % 3 == 0)
			post_read(l.ep, &l.m, i * ORDER_BLOCK, length, i, &l.theirs, i * ORDER_BLOCK);
		else if (i % 3 == 1)
			post_write(l.ep, &l.m, i * ORDER_BLOCK, length, i, &l.theirs, i * ORDER_BLOCK);
		else
			post_send(l.ep, &l.m, i * ORDER_BLOCK, length, i);
	}
	for (i = 0; i < N_ORDER; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, i / 3 & 1 ? 8 : ORDER_BLOCK);
	pair_sync(p);
	link_close(p, &l);
}

#define N_SUPPRESSED (10 * DEPTH)

/* Nobody reaps these, so the provider has to. */
static void post_suppressed(struct link *l, unsigned i)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_LMR_TRIPLET iov = mem_segment(&l->m, 0, SLOT);
	DAT_DTO_COOKIE cookie = { .as_64 = i };
	DAT_RETURN ret;

	for (;;) {
		DAT_EVENT event;
		DAT_COUNT more;

		ret = dat_ep_post_send(l->ep, 1, &iov, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			break;
		CHECK(pair_now() < deadline, "send %u: the queue stays full", i);
		FAILS(dat_evd_wait(l->n.req, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	}
	OK(ret);
}

static void suppress_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, SLOT, N_SUPPRESSED + 1);
	for (i = 0; i <= N_SUPPRESSED; i++)
		post_recv(l.ep, &l.m, 0, SLOT, i);
	pair_sync(p);
	for (i = 0; i <= N_SUPPRESSED; i++)
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, SLOT);
	link_close(p, &l);
}

static void suppress_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, SLOT, DEPTH);
	pair_sync(p);
	for (i = 0; i < N_SUPPRESSED; i++)
		post_suppressed(&l, i);
	post_suppressed(&l, i);
	expect_quiet(l.n.req);
	link_close(p, &l);
}

/* An error is told even so. */
static void suppressed_error(struct pair *p)
{
	struct link l;
	DAT_LMR_TRIPLET iov;
	DAT_DTO_COOKIE cookie = { .as_64 = 7 };

	link_open(p, &l, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(l.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, l.ep);
	iov = mem_segment(&l.m, 0, 64);
	OK(dat_ep_post_send(l.ep, 1, &iov, cookie, DAT_COMPLETION_SUPPRESS_FLAG));
	expect_dto(l.n.req, 7, DAT_DTO_ERR_FLUSHED, 0);
	expect_quiet(l.n.req);
	OK(dat_ep_free(l.ep));
	mem_put(&l.m);
	node_close(&l.n);
}

#define FENCED (4 * MIB)
#define N_FENCED 4

/* What the read brings is written on: without the fence it would be what was there before. */
static void fence_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 2 * FENCED);
	for (i = 0; i < N_FENCED; i++) {
		fill(l.m.base, FENCED, i);
		pair_sync(p);
		pair_sync(p);
		verify(l.m.base + FENCED, FENCED, i);
	}
	link_close(p, &l);
}

static void fence_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, FENCED);
	for (i = 0; i < N_FENCED; i++) {
		DAT_LMR_TRIPLET iov = mem_segment(&l.m, 0, FENCED);
		DAT_RMR_TRIPLET remote = remote_segment(&l.theirs, FENCED, FENCED);
		DAT_DTO_COOKIE cookie = { .as_64 = 2 };

		memset(l.m.base, 0xaa, FENCED);
		pair_sync(p);
		post_read(l.ep, &l.m, 0, FENCED, 1, &l.theirs, 0);
		OK(dat_ep_post_rdma_write(l.ep, 1, &iov, cookie, &remote,
					  DAT_COMPLETION_BARRIER_FENCE_FLAG));
		expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, FENCED);
		expect_dto(l.n.req, 2, DAT_DTO_SUCCESS, FENCED);
		pair_sync(p);
	}
	link_close(p, &l);
}

/* RDMA */

static const uint32_t rdma_sizes[] = { 1, 7, 128, 4 * KIB, 64 * KIB + 1, MIB, 4 * MIB };
#define N_RDMA (sizeof(rdma_sizes) / sizeof(rdma_sizes[0]))
#define N_RDMA_ROUNDS 3

/* When the writer has its completion, the bytes are there, without a DAT call here. */
static void write_server(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 4 * MIB + 1);
	for (i = 0; i < N_RDMA_ROUNDS * N_RDMA; i++) {
		uint32_t size = rdma_sizes[i % N_RDMA];

		memset(l.m.base, 0xaa, l.m.size);
		pair_sync(p);
		pair_sync(p);	/* the completion has come */
		verify(l.m.base, size, i);
		CHECK(l.m.base[size] == 0xaa, "written behind the end");
	}
	link_close(p, &l);
}

static void write_client(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 4 * MIB);
	for (i = 0; i < N_RDMA_ROUNDS * N_RDMA; i++) {
		uint32_t size = rdma_sizes[i % N_RDMA];

		fill(l.m.base, size, i);
		pair_sync(p);
		post_write(l.ep, &l.m, 0, size, i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, size);
		pair_sync(p);
	}
	link_close(p, &l);
}

#define N_POLLED 24

/* The target polls the last byte: when it has changed, so has the rest. */
static void polled_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, MIB + 13);
	for (i = 0; i < N_POLLED; i++) {
		size_t size = i & 1 ? l.m.size : 4096 + i;
		unsigned char *last = l.m.base + size - 1;
		int64_t deadline = pair_deadline(PAIR_LIMIT);

		memset(l.m.base, 0, l.m.size);
		pair_sync(p);
		while (!__atomic_load_n(last, __ATOMIC_ACQUIRE))
			CHECK(pair_now() < deadline, "the last byte never came");
		SAME(*last, 0xff);
		verify(l.m.base, size - 1, i);
	}
	link_close(p, &l);
}

static void polled_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, MIB + 13);
	for (i = 0; i < N_POLLED; i++) {
		size_t size = i & 1 ? l.m.size : 4096 + i;

		fill(l.m.base, size - 1, i);
		l.m.base[size - 1] = 0xff;
		pair_sync(p);
		post_write(l.ep, &l.m, 0, size, i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, size);
	}
	link_close(p, &l);
}

static const size_t read_area = 16 * MIB;

static void read_client(struct pair *p)
{
	static const uint32_t lengths[] = { 1, 127, 128, 129, 4 * KIB, MIB, 16 * MIB };
	struct link l;
	size_t i;

	link_open(p, &l, read_area);
	pair_sync(p);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(l.m.base, 0xaa, l.m.size);
		post_read(l.ep, &l.m, 0, lengths[i], i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, lengths[i]);
		verify(l.m.base, lengths[i], 1);
		CHECK(lengths[i] == l.m.size || l.m.base[lengths[i]] == 0xaa, "read too much");
	}
	pair_sync(p);
	link_close(p, &l);
}

static const size_t small_area = 64 * KIB;

/* The local buffer is larger than what is read. */
static void read_short_client(struct pair *p)
{
	DAT_LMR_TRIPLET iov[2];
	DAT_RMR_TRIPLET remote;
	struct link l;

	link_open(p, &l, small_area);
	pair_sync(p);
	memset(l.m.base, 0xaa, l.m.size);
	iov[0] = mem_segment(&l.m, 0, 100);
	iov[1] = mem_segment(&l.m, 100, 1000);
	remote = remote_segment(&l.theirs, 0, 300);
	OK(dat_ep_post_rdma_read(l.ep, 2, iov, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 300);
	verify(l.m.base, 300, 1);
	CHECK(l.m.base[300] == 0xaa, "read too much");
	pair_sync(p);
	link_close(p, &l);
}

#define N_READS 48

/* More reads than may be under way: the rest waits, and none fails. */
static void throttle_client(struct pair *p)
{
	DAT_EP_ATTR attr;
	struct link l;
	struct node n;
	unsigned i;

	node_open(&n);
	node_ep_attr(&n, &attr);
	node_close(&n);
	attr.max_rdma_read_out = 2;
	link_open_with(p, &l, small_area, &attr);
	pair_sync(p);
	for (i = 0; i < N_READS; i++)
		post_read(l.ep, &l.m, i * KIB, KIB, i, &l.theirs, 0);
	for (i = 0; i < N_READS; i++) {
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, KIB);
		verify(l.m.base + i * KIB, KIB, 1);
	}
	pair_sync(p);
	link_close(p, &l);
}

/* Nothing is moved, successfully. */
static void zero_client(struct pair *p)
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote;
	struct link l;

	link_open(p, &l, small_area);
	pair_sync(p);
	fill(l.m.base, l.m.size, 2);
	remote = remote_segment(&l.theirs, 0, 0);
	iov = mem_segment(&l.m, 0, 0);
	OK(dat_ep_post_rdma_write(l.ep, 0, NULL, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 0);
	OK(dat_ep_post_rdma_write(l.ep, 1, &iov, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 0);
	OK(dat_ep_post_rdma_read(l.ep, 0, NULL, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 0);
	OK(dat_ep_post_rdma_read(l.ep, 1, &iov, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 0);
	verify(l.m.base, l.m.size, 2);
	/* and what follows works */
	post_read(l.ep, &l.m, 0, KIB, 1, &l.theirs, 0);
	expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, KIB);
	verify(l.m.base, KIB, 1);
	pair_sync(p);
	link_close(p, &l);
}

#define N_LATENCY 1000

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(int64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

/* The target sits in a system call of its own, and is served all the same. */
static void idle_target_client(struct pair *p)
{
	static int64_t reads[N_LATENCY], writes[N_LATENCY];
	struct link l;
	unsigned i;

	link_open(p, &l, small_area);
	pair_sync(p);
	for (i = 0; i < N_LATENCY; i++) {
		uint64_t value = i, back = 0;
		int64_t start = pair_now();

		memcpy(l.m.base, &value, sizeof(value));
		post_write(l.ep, &l.m, 0, 8, i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 8);
		writes[i] = pair_now() - start;
		start = pair_now();
		post_read(l.ep, &l.m, 64, 8, i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 8);
		reads[i] = pair_now() - start;
		memcpy(&back, l.m.base + 64, sizeof(back));
		SAME(back, value);
	}
	pair_note("a target without DAT calls: median of a write %lld us, of a read %lld us",
		  (long long)median(writes, N_LATENCY), (long long)median(reads, N_LATENCY));
	pair_sync(p);
	link_close(p, &l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("messages of every size", sizes_server, sizes_client, .seconds = 60),
	PAIR_CASE("messages shorter than the receive", short_server, short_client),
	PAIR_CASE("segments up to the maxima", segments_server, segments_client),
	PAIR_CASE("sends wait for receives", early_server, early_client),
	PAIR_CASE("receives posted before the connection", preposted, preposted),
	PAIR_CASE("more messages than the queues hold", many_server, many_client),
	PAIR_CASE("both flood each other", flood, flood, .seconds = 60),
	PAIR_CASE("completions in posting order", order_server, order_client),
	PAIR_CASE("suppressed completions free the queue", suppress_server, suppress_client),
	PAIR_CASE("suppressed completions of errors", suppressed_error, suppressed_error),
	PAIR_CASE("barrier fence", fence_server, fence_client, .seconds = 60),
	PAIR_CASE("a completed write is in the target's memory", write_server, write_client, .seconds = 60),
	PAIR_CASE("the last byte is written last", polled_server, polled_client),
	PAIR_CASE("reads of every size", passive_server, read_client, .seconds = 60, .arg = &read_area),
	PAIR_CASE("read into a larger buffer", passive_server, read_short_client, .arg = &small_area),
	PAIR_CASE("more reads than may be under way", passive_server, throttle_client, .arg = &small_area),
	PAIR_CASE("RDMA of nothing", passive_server, zero_client, .arg = &small_area),
	PAIR_CASE("target without DAT calls", passive_server, idle_target_client, .arg = &small_area),
};

PAIR_MAIN(cases)
