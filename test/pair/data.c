/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages between two processes: every size and shape, in order, with exactly the bytes that
 * were sent.
 */

#include "pair.h"

#include <sched.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

/* Sends and receives */

/* Some sizes equal the most that a fabric sends in one piece, or exceed it by a byte. */
static const uint32_t sizes[] = { 0, 1, 127, 128, 129, 4 * KIB, 8 * KIB, 8 * KIB + 1, 64 * KIB + 40,
				  64 * KIB + 41, MIB, 16 * MIB };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The number of sizes that fit into a message of the fabric. */
static size_t n_sizes(const struct link *l)
{
	size_t n = N_SIZES;

	while (sizes[n - 1] > l->n.attr.max_message_size)
		n--;
	return n;
}

/* Each size goes to the server and returns. */
static void sizes_server(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 16 * MIB);
	for (i = 0; i < n_sizes(&l); i++) {
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
	for (i = 0; i < n_sizes(&l); i++) {
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

/* The receive is larger than the message, and its completion has the message's length. */
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
		CHECK(l.m.base[sizes[i]] == 0xaa, "written past the message");
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

/* Requests the largest number of segments that the IA advertises, for each kind. */
static void widest_attr(struct node *n, DAT_EP_ATTR *attr)
{
	node_ep_attr(n, attr);
	attr->max_recv_iov = attr->max_request_iov = n->attr.max_iov_segments_per_dto;
	attr->max_rdma_read_iov = n->attr.max_iov_segments_per_rdma_read;
	attr->max_rdma_write_iov = n->attr.max_iov_segments_per_rdma_write;
	CHECK(attr->max_recv_iov > 0 && attr->max_recv_iov <= MAX_SEGMENTS &&
	      attr->max_rdma_read_iov > 0 && attr->max_rdma_read_iov <= MAX_SEGMENTS &&
	      attr->max_rdma_write_iov > 0 && attr->max_rdma_write_iov <= MAX_SEGMENTS,
	      "a maximum is out of range");
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

/* Makes @count segments with gaps between them. Returns their total length. */
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

/* Distributes the pattern of a contiguous area over the segments. */
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
		CHECK(piece(m, i)[segment_length(i)] == 0xaa, "written past segment %d", i);
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
		memset(iov, 0xee, sizeof(iov));		/* the program owns it after the post */
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, total);
		verify_scattered(&l.m, i, i);
	}
	pair_sync(p);
	pair_sync(p);
	/* the peer writes and reads the contiguous area */
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
	pair_sync(p);
	for (i = 1; i <= attr.max_rdma_write_iov; i++) {
		DAT_DTO_COOKIE cookie = { .as_64 = i };
		uint32_t total = scatter(&l.m, i, iov);

		fill_scattered(&l.m, i, i);
		remote = remote_segment(&l.theirs, 0, AREA);	/* larger than needed */
		OK(dat_ep_post_rdma_write(l.ep, i, iov, cookie, &remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
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
		OK(dat_ep_post_rdma_read(l.ep, i, iov, cookie, &remote,
					 DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, total);
		verify_scattered(&l.m, i, 9);
	}
	pair_sync(p);
	link_close(p, &l);
}

/* Order and pressure */

#define N_EARLY 3

/* Messages wait for their receives, and requests behind them wait, too. */
static void early_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 4 * KIB);
	fill(l.m.base + KIB, KIB, 50);
	pair_sync(p);
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
	pair_sync(p);
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

/* Receives posted before the connection exists remain posted when it is made. */
static void preposted(struct pair *p)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	struct node n;
	unsigned i;

	node_begin(&n, 2 * N_PREPOSTED * 64);
	OK(dat_ep_get_status(n.ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "not idle before the first post");
	for (i = 0; i < N_PREPOSTED; i++)
		post_recv(n.ep, &n.m, i * 64, 64, i);
	OK(dat_ep_get_status(n.ep, &state, &recv_idle, &request_idle));
	CHECK(!recv_idle && request_idle, "idle with posted receives");
	OK(dat_ep_reset(n.ep));	/* keeps the receives posted */
	pair_link(p, &n, n.ep);
	for (i = 0; i < N_PREPOSTED; i++) {
		fill(n.m.base + (N_PREPOSTED + i) * 64, 64, i);
		post_send(n.ep, &n.m, (N_PREPOSTED + i) * 64, 64, i);
	}
	for (i = 0; i < N_PREPOSTED; i++) {
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, 64);
		verify(n.m.base + i * 64, 64, i);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, 64);
	}
	OK(dat_ep_get_status(n.ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "not idle after all completions");
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

#define N_MANY 3000
#define SLOT 16
#define DEPTH 32
#define N_LONG 100
#define LONG_SLOT 40000		/* in frames, if no process reads the memory of the other */

/* Many more messages than either queue holds: each slot of the queues is used again. */
struct many {
	size_t size;
	unsigned n;
};

static void many_server(struct pair *p)
{
	const struct many *many = pair_arg();
	const size_t size = many->size;
	struct link l;
	unsigned i;

	link_open_depth(p, &l, DEPTH * size, DEPTH);
	for (i = 0; i < DEPTH; i++)
		post_recv(l.ep, &l.m, i * size, size, i);
	for (i = 0; i < many->n; i++) {
		unsigned slot = i % DEPTH;

		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, size);
		verify(l.m.base + slot * size, size, i);
		if (i + DEPTH < many->n)
			post_recv(l.ep, &l.m, slot * size, size, i + DEPTH);
	}
	link_close(p, &l);
}

static void many_client(struct pair *p)
{
	const struct many *many = pair_arg();
	const size_t size = many->size;
	struct link l;
	unsigned i;

	link_open_depth(p, &l, DEPTH * size, DEPTH);
	for (i = 0; i < many->n; i++) {
		unsigned slot = i % DEPTH;

		if (i >= DEPTH)
			expect_dto(l.n.req, i - DEPTH, DAT_DTO_SUCCESS, size);
		fill(l.m.base + slot * size, size, i);
		post_send(l.ep, &l.m, slot * size, size, i);
	}
	for (i = many->n - DEPTH; i < many->n; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, size);
	link_close(p, &l);
}

/* Both peers flood each other at once. */
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
#define ORDER_BLOCK (64 * KIB)

/* Requests of all kinds complete in posting order, in whichever order the fabric finishes them. */
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
			post_read(l.ep, &l.m, i * ORDER_BLOCK, length, i, &l.theirs,
				  i * ORDER_BLOCK);
		else if (i % 3 == 1)
			post_write(l.ep, &l.m, i * ORDER_BLOCK, length, i, &l.theirs,
				   i * ORDER_BLOCK);
		else
			post_send(l.ep, &l.m, i * ORDER_BLOCK, length, i);
	}
	for (i = 0; i < N_ORDER; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, i / 3 & 1 ? 8 : ORDER_BLOCK);
	pair_sync(p);
	link_close(p, &l);
}

#define N_SUPPRESSED (10 * DEPTH)

static void post_when_free(struct link *l, unsigned i, DAT_COMPLETION_FLAGS flags)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_LMR_TRIPLET iov = mem_segment(&l->m, 0, SLOT);
	DAT_DTO_COOKIE cookie = { .as_64 = i };
	DAT_RETURN ret;

	do {
		ret = dat_ep_post_send(l->ep, 1, &iov, cookie, flags);
		CHECK(pair_now() < deadline, "send %u: the queue stays full", i);
		sched_yield();
	} while (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES);
	OK(ret);
}

/* The program does not poll for these completions, so the provider must reap them. */
static void post_suppressed(struct link *l, unsigned i)
{
	post_when_free(l, i, DAT_COMPLETION_SUPPRESS_FLAG);
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
	/* a send in flight at the end would be flushed and reported: await a last one */
	post_when_free(&l, i, DAT_COMPLETION_DEFAULT_FLAG);
	expect_dto(l.n.req, i, DAT_DTO_SUCCESS, SLOT);
	expect_quiet(l.n.req);
	link_close(p, &l);
}

/* An error is reported in spite of suppression. */
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
	link_free(&l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("messages of all sizes", sizes_server, sizes_client, .seconds = 60),
	PAIR_CASE("messages shorter than the receive", short_server, short_client),
	PAIR_CASE("up to the maximum number of segments", segments_server, segments_client),
	PAIR_CASE("sends wait for receives", early_server, early_client),
	PAIR_CASE("receives posted before the connection", preposted, preposted),
	PAIR_CASE("more messages than the queues hold", many_server, many_client,
		  .arg = &(const struct many){ SLOT, N_MANY }),
	PAIR_CASE("more long messages than the queues hold", many_server, many_client,
		  .arg = &(const struct many){ LONG_SLOT, N_LONG }),
	PAIR_CASE("floods in both directions", flood, flood, .seconds = 60),
	PAIR_CASE("completions in posting order", order_server, order_client),
	PAIR_CASE("suppressed completions release queue slots", suppress_server, suppress_client),
	PAIR_CASE("errors are reported in spite of suppression", suppressed_error,
		  suppressed_error),
};

PAIR_MAIN(cases)
