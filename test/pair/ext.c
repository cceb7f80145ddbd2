/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The InfiniBand extension between two processes: immediate data, atomics, counters. 2.0 only. */

#include "pair.h"

#include <dat2/dat_ib_extensions.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)
#define PRIVILEGES ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC))

static DAT_DTO_COOKIE cookie_of(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

/* A link with memory that grants atomics to the peer. */
static void atomic_link_open(struct pair *p, struct link *l, size_t size)
{
	node_open(&l->n);
	l->ep = node_ep(&l->n, NULL);
	mem_get_with(&l->n, l->n.pz, &l->m, size, PRIVILEGES);
	pair_link(p, &l->n, l->ep);
	pair_grant(p, &l->m);
	pair_granted(p, &l->theirs);
}

/* Expects a completion of the extension next; returns its immediate data. */
static uint32_t expect_ext(DAT_EVD_HANDLE evd, uint64_t cookie, DAT_IB_EXT_TYPE type,
			   DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event;

	expect_event(evd, DAT_IB_DTO_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	memcpy(&x, event.event_extension_data, sizeof(x));
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, status);
	SAME(x.type, type);
	SAME(x.status, status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR);
	if (status == DAT_DTO_SUCCESS)
		SAME(d->transfered_length, length);
	return x.val.immed.data;
}

static DAT_RETURN write_immed(struct link *l, size_t length, uint32_t immed, uint64_t cookie,
			      DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET from = mem_segment(&l->m, 0, length);
	DAT_RMR_TRIPLET to = remote_segment(&l->theirs, 0, length);

	return dat_ib_post_rdma_write_immed(l->ep, 1, &from, cookie_of(cookie), &to, immed, flags);
}

static DAT_RETURN send_immed(struct link *l, size_t length, uint32_t immed, uint64_t cookie)
{
	DAT_LMR_TRIPLET from = mem_segment(&l->m, 0, length);

	return dat_ib_post_send_immed(l->ep, 1, &from, cookie_of(cookie), immed,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN fetch_add_at(DAT_EP_HANDLE ep, const struct mem *m, size_t at,
			       const struct grant *g, size_t remote_at, uint64_t add,
			       uint64_t cookie)
{
	DAT_LMR_TRIPLET old = mem_segment(m, at, 8);
	DAT_RMR_TRIPLET remote = remote_segment(g, remote_at, 8);

	return dat_ib_post_fetch_and_add(ep, add, &old, cookie_of(cookie), &remote,
					 DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN cmp_swap(struct link *l, size_t at, uint64_t compare, uint64_t swap,
			   uint64_t cookie)
{
	DAT_LMR_TRIPLET old = mem_segment(&l->m, at, 8);
	DAT_RMR_TRIPLET remote = remote_segment(&l->theirs, 0, 8);

	return dat_ib_post_cmp_and_swap(l->ep, compare, swap, &old, cookie_of(cookie), &remote,
					DAT_COMPLETION_DEFAULT_FLAG);
}

static uint64_t *word(const struct mem *m, size_t at)
{
	return (uint64_t *)(void *)(m->base + at);
}

/* Atomic, because other threads of the process execute the peer's operations there. */
static void write_word(const struct mem *m, size_t at, uint64_t value)
{
	__atomic_store_n(word(m, at), value, __ATOMIC_SEQ_CST);
}

static uint64_t read_word(const struct mem *m, size_t at)
{
	return __atomic_load_n(word(m, at), __ATOMIC_SEQ_CST);
}

/* Immediate data */

static const uint32_t immed_sizes[] = { 0, 1, 256, 64 * KIB + 1, 4 * MIB };
#define N_IMMED (sizeof(immed_sizes) / sizeof(immed_sizes[0]))
#define N_ROUNDS 4

/*
 * The receive takes no bytes, but its completion has the length of the write, and the bytes are
 * there.
 */
static void immed_server(struct pair *p)
{
	struct link l;
	struct mem in;
	size_t i;

	link_open(p, &l, 4 * MIB);
	mem_get(&l.n, &in, 16);
	for (i = 0; i < N_ROUNDS * N_IMMED; i++) {
		uint32_t size = immed_sizes[i % N_IMMED];

		memset(in.base, 0x55, in.size);
		post_recv(l.ep, &in, 0, 16, i);
		pair_sync(p);
		SAME(expect_ext(l.n.recv, i, DAT_IB_RDMA_WRITE_IMMED_DATA, DAT_DTO_SUCCESS, size),
		     0xfffffff0u + (uint32_t)i);
		verify(l.m.base, size, i);
		CHECK(in.base[0] == 0x55, "the receive buffer was written");
	}
	mem_put(&in);
	link_close(p, &l);
}

static void immed_client(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 4 * MIB);
	for (i = 0; i < N_ROUNDS * N_IMMED; i++) {
		uint32_t size = immed_sizes[i % N_IMMED];

		fill(l.m.base, size, i);
		pair_sync(p);
		OK(write_immed(&l, size, 0xfffffff0u + (uint32_t)i, i,
			       DAT_COMPLETION_DEFAULT_FLAG));
		expect_ext(l.n.req, i, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_SUCCESS, size);
	}
	link_close(p, &l);
}

#define N_STREAM 300
#define N_POSTED 16

/* A sequence of all kinds of messages, more than the queues hold. */
static void stream_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, N_POSTED * 64, N_POSTED);
	for (i = 0; i < N_POSTED; i++)
		post_recv(l.ep, &l.m, 0, 64, i);
	for (i = 0; i < N_STREAM; i++) {
		if (i % 3 == 0)
			SAME(expect_ext(l.n.recv, i, DAT_IB_RDMA_WRITE_IMMED_DATA, DAT_DTO_SUCCESS,
					32),
			     i);
		else if (i % 3 == 1)
			SAME(expect_ext(l.n.recv, i, DAT_IB_RECV_IMMED_DATA, DAT_DTO_SUCCESS, 48),
			     i);
		else
			expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 16);
		if (i + N_POSTED < N_STREAM)
			post_recv(l.ep, &l.m, 0, 64, i + N_POSTED);
	}
	link_close(p, &l);
}

static void stream_reap(struct link *l, unsigned i)
{
	if (i % 3 == 0)
		expect_ext(l->n.req, i, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_SUCCESS, 32);
	else	/* the extension has no completion of its own for a send */
		expect_dto(l->n.req, i, DAT_DTO_SUCCESS, i % 3 == 1 ? 48 : 16);
}

static void stream_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open_depth(p, &l, N_POSTED * 64, N_POSTED);
	for (i = 0; i < N_STREAM; i++) {
		if (i >= N_POSTED)
			stream_reap(&l, i - N_POSTED);
		if (i % 3 == 0)
			OK(write_immed(&l, 32, i, i, DAT_COMPLETION_DEFAULT_FLAG));
		else if (i % 3 == 1)
			OK(send_immed(&l, 48, i, i));
		else
			post_send(l.ep, &l.m, 0, 16, i);
	}
	for (i = N_STREAM - N_POSTED; i < N_STREAM; i++)
		stream_reap(&l, i);
	link_close(p, &l);
}

/* Messages that arrive before a receive is posted lose nothing while they wait. */
static void late_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 64);
	pair_sync(p);
	pair_sync(p);	/* the messages are sent */
	for (i = 0; i < 4; i++)
		post_recv(l.ep, &l.m, 0, 64, i);
	for (i = 0; i < 4; i++)
		SAME(expect_ext(l.n.recv, i,
				i & 1 ? DAT_IB_RECV_IMMED_DATA : DAT_IB_RDMA_WRITE_IMMED_DATA,
				DAT_DTO_SUCCESS, 8),
		     100 + i);
	link_close(p, &l);
}

static void late_client(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, 64);
	pair_sync(p);
	for (i = 0; i < 4; i++)
		OK(i & 1 ? send_immed(&l, 8, 100 + i, i) :
			   write_immed(&l, 8, 100 + i, i, DAT_COMPLETION_DEFAULT_FLAG));
	pair_sync(p);
	for (i = 0; i < 4; i++)
		if (i & 1)
			expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 8);
		else
			expect_ext(l.n.req, i, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_SUCCESS, 8);
	link_close(p, &l);
}

/* Suppressed completions of successful requests cause no event. */
static void suppressed_server(struct pair *p)
{
	struct link l;

	link_open(p, &l, 64);
	post_recv(l.ep, &l.m, 0, 64, 1);
	post_recv(l.ep, &l.m, 0, 64, 2);
	pair_sync(p);
	expect_ext(l.n.recv, 1, DAT_IB_RDMA_WRITE_IMMED_DATA, DAT_DTO_SUCCESS, 8);
	expect_dto(l.n.recv, 2, DAT_DTO_SUCCESS, 8);
	link_close(p, &l);
}

static void suppressed_client(struct pair *p)
{
	struct link l;

	link_open(p, &l, 64);
	pair_sync(p);
	OK(write_immed(&l, 8, 1, 1, DAT_COMPLETION_SUPPRESS_FLAG));
	post_send(l.ep, &l.m, 0, 8, 2);
	expect_dto(l.n.req, 2, DAT_DTO_SUCCESS, 8);
	link_close(p, &l);
}

/* The target gets no completion for a write that it refuses. */
static void refused_server(struct pair *p)
{
	struct link l;

	link_open(p, &l, 4 * KIB);
	post_recv(l.ep, &l.m, 0, 16, 1);
	pair_sync(p);
	expect_end(l.n.conn, l.ep);
	expect_dto(l.n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	link_free(&l);
}

static void refused_client(struct pair *p)
{
	struct link l;
	DAT_EVENT event;

	link_open(p, &l, 4 * KIB);
	l.theirs.rmr_context ^= 0x5a5a5a5a;
	pair_sync(p);
	OK(write_immed(&l, 64, 7, 1, DAT_COMPLETION_DEFAULT_FLAG));
	expect_event(l.n.req, DAT_IB_DTO_EVENT, &event);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS, "it succeeded");
	expect_end(l.n.conn, l.ep);
	/* requests posted now are flushed, and their events name their operation */
	OK(write_immed(&l, 64, 7, 2, DAT_COMPLETION_DEFAULT_FLAG));
	expect_ext(l.n.req, 2, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_ERR_FLUSHED, 0);
	OK(fetch_add_at(l.ep, &l.m, 0, &l.theirs, 0, 1, 3));
	expect_ext(l.n.req, 3, DAT_IB_FETCH_AND_ADD, DAT_DTO_ERR_FLUSHED, 0);
	OK(send_immed(&l, 8, 1, 4));
	expect_dto(l.n.req, 4, DAT_DTO_ERR_FLUSHED, 0);
	link_free(&l);
}

/* Atomics */

/* The target makes no DAT call while the peer works. */
static void target_server(struct pair *p)
{
	struct link l;

	atomic_link_open(p, &l, 4 * KIB);
	write_word(&l.m, 0, 40);
	write_word(&l.m, 8, 0x1122334455667788);
	pair_sync(p);
	pair_sync(p);
	SAME(read_word(&l.m, 0), 99);
	SAME(read_word(&l.m, 8), 0x1122334455667788);
	link_close(p, &l);
}

static void target_client(struct pair *p)
{
	struct link l;

	atomic_link_open(p, &l, 4 * KIB);
	pair_sync(p);
	OK(fetch_add_at(l.ep, &l.m, 0, &l.theirs, 0, 2, 1));
	expect_ext(l.n.req, 1, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
	SAME(read_word(&l.m, 0), 40);
	OK(cmp_swap(&l, 8, 42, 99, 2));
	expect_ext(l.n.req, 2, DAT_IB_CMP_AND_SWAP, DAT_DTO_SUCCESS, 8);
	SAME(read_word(&l.m, 8), 42);
	OK(cmp_swap(&l, 16, 42, 7, 3));		/* the compare fails */
	expect_ext(l.n.req, 3, DAT_IB_CMP_AND_SWAP, DAT_DTO_SUCCESS, 8);
	SAME(read_word(&l.m, 16), 99);
	OK(fetch_add_at(l.ep, &l.m, 24, &l.theirs, 8, 0, 4));
	expect_ext(l.n.req, 4, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
	SAME(read_word(&l.m, 24), 0x1122334455667788);
	pair_sync(p);
	link_close(p, &l);
}

#define N_ADDS 600
#define N_LANES 60

/*
 * Both peers add to both counters as fast as their queues allow, more than mailboxes hold. Each
 * sees its counter grow, and no addition is lost. On hardware the atomics of a device are atomic
 * among themselves, not with a processor's.
 */
static void crossing(struct pair *p)
{
	const bool own = !pair_fabric_is("verbs");
	uint64_t last = 0;
	struct link l;
	unsigned i;

	atomic_link_open(p, &l, 4 * KIB);
	pair_sync(p);
	for (i = 0; i < N_ADDS; i++) {
		size_t lane = 8 + i % N_LANES * 8;

		if (i >= N_LANES) {
			expect_ext(l.n.req, i - N_LANES, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
			CHECK(read_word(&l.m, lane) >= last, "a counter decreased");
			last = read_word(&l.m, lane);
		}
		OK(fetch_add_at(l.ep, &l.m, lane, &l.theirs, 0, 1, i));
		if (own)
			__atomic_fetch_add(word(&l.m, 0), 1, __ATOMIC_SEQ_CST);
	}
	for (i = N_ADDS - N_LANES; i < N_ADDS; i++)
		expect_ext(l.n.req, i, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
	pair_sync(p);
	SAME(read_word(&l.m, 0), own ? 2 * N_ADDS : N_ADDS);
	link_close(p, &l);
}

/* Requests posted after an atomic take effect after it, earlier requests before it. */
static void order_server(struct pair *p)
{
	struct link l;
	unsigned i;

	atomic_link_open(p, &l, 4 * KIB);
	pair_sync(p);
	for (i = 0; i < 50; i++) {
		post_recv(l.ep, &l.m, 64, 8, i);
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 8);
		/* the order is write, atomic, message */
		SAME(read_word(&l.m, 0), 1001 + i);
		pair_sync(p);
		pair_sync(p);
	}
	link_close(p, &l);
}

static void order_client(struct pair *p)
{
	struct link l;
	unsigned i;

	atomic_link_open(p, &l, 4 * KIB);
	pair_sync(p);
	for (i = 0; i < 50; i++) {
		pair_sync(p);
		write_word(&l.m, 8, 1000 + i);
		post_write(l.ep, &l.m, 8, 8, 1, &l.theirs, 0);
		OK(fetch_add_at(l.ep, &l.m, 16, &l.theirs, 0, 1, 2));
		post_send(l.ep, &l.m, 8, 8, 3);
		expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, 8);
		expect_ext(l.n.req, 2, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
		expect_dto(l.n.req, 3, DAT_DTO_SUCCESS, 8);
		SAME(read_word(&l.m, 16), 1000 + i);
		pair_sync(p);
		/* a read, and a write, directly after an atomic */
		OK(fetch_add_at(l.ep, &l.m, 16, &l.theirs, 0, 1, 4));
		post_read(l.ep, &l.m, 24, 8, 5, &l.theirs, 0);
		OK(fetch_add_at(l.ep, &l.m, 16, &l.theirs, 0, 1, 6));
		post_write(l.ep, &l.m, 8, 8, 7, &l.theirs, 0);
		post_read(l.ep, &l.m, 32, 8, 8, &l.theirs, 0);
		expect_ext(l.n.req, 4, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
		expect_dto(l.n.req, 5, DAT_DTO_SUCCESS, 8);
		expect_ext(l.n.req, 6, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS, 8);
		expect_dto(l.n.req, 7, DAT_DTO_SUCCESS, 8);
		expect_dto(l.n.req, 8, DAT_DTO_SUCCESS, 8);
		SAME(read_word(&l.m, 24), 1002 + i);
		SAME(read_word(&l.m, 32), 1000 + i);
		pair_sync(p);
	}
	link_close(p, &l);
}

/* Targets that grant no atomics: each refusal ends the connection, and changes no byte. */
enum wrong { NO_PRIVILEGE, BAD_KEY, PAST_END, FREED, OTHER_PZ, N_WRONG };

/* Where the fabric executes atomics, the privilege to write includes them. */
static int first_wrong(void)
{
	return pair_fabric_is("verbs") ? BAD_KEY : NO_PRIVILEGE;
}

static void wrong_server(struct pair *p)
{
	struct node n;
	struct mem m[N_WRONG];
	DAT_PZ_HANDLE other;
	int i;

	node_open(&n);
	OK(dat_pz_create(n.ia, &other));
	for (i = first_wrong(); i < N_WRONG; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		mem_get_with(&n, i == OTHER_PZ ? other : n.pz, &m[i], 4 * KIB,
			     i == NO_PRIVILEGE ? DAT_MEM_PRIV_ALL_FLAG : PRIVILEGES);
		pair_link(p, &n, ep);
		pair_grant(p, &m[i]);
		if (i == FREED)
			OK(dat_lmr_free(m[i].lmr));
		pair_sync(p);
		expect_end(n.conn, ep);
		SAME(read_word(&m[i], 0), 0);
		OK(dat_ep_free(ep));
		if (i == FREED)	/* so that mem_put() can free it like the other memory */
			OK(lmr_create(n.ia, m[i].base, 4 * KIB, n.pz, DAT_MEM_PRIV_ALL_FLAG,
				      &m[i].lmr, &m[i].lmr_context, &m[i].rmr_context));
		mem_put(&m[i]);
	}
	OK(dat_pz_free(other));
	node_close(&n);
}

static void wrong_client(struct pair *p)
{
	struct node n;
	int i;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	write_word(&n.m, 0, 77);
	for (i = first_wrong(); i < N_WRONG; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		struct grant g;

		pair_link(p, &n, ep);
		pair_granted(p, &g);
		pair_sync(p);
		if (i == BAD_KEY)
			g.rmr_context ^= 0x01010101;
		OK(fetch_add_at(ep, &n.m, 0, &g, i == PAST_END ? 4 * KIB : 0, 1, i));
		expect_ext(n.req, i, DAT_IB_FETCH_AND_ADD, DAT_DTO_ERR_REMOTE_ACCESS, 0);
		SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_BROKEN);
		SAME(read_word(&n.m, 0), 77);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

/* Arguments */

static void args_client(struct pair *p)
{
	DAT_LMR_TRIPLET s, many[64];
	DAT_RMR_TRIPLET r, odd, shorter;
	const DAT_DTO_COOKIE c = cookie_of(1);
	const DAT_COMPLETION_FLAGS none = DAT_COMPLETION_DEFAULT_FLAG;
	struct grant g;
	struct node n;

	node_open(&n);
	mem_get_with(&n, n.pz, &n.m, 64, PRIVILEGES);
	n.ep = node_ep(&n, NULL);
	g = (struct grant){ (uintptr_t)n.m.base, n.m.size, n.m.rmr_context };
	memset(many, 0, sizeof(many));
	s = mem_segment(&n.m, 0, 8);
	r = remote_segment(&g, 0, 8);
	odd = remote_segment(&g, 4, 8);
	shorter = remote_segment(&g, 0, 4);

	SAME(n.attr.extension_supported, DAT_EXTENSION_IB);
	SAME(n.attr.extension_version, DAT_IB_EXTENSION_VERSION);
#define ARG(call, number) \
	SAME(call, DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG##number)
#define HANDLE(call) SAME(call, DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP)
	FAILS(dat_ib_post_rdma_write_immed(NULL, 1, &s, c, &r, 1, none), DAT_INVALID_HANDLE);
	HANDLE(dat_ib_post_rdma_write_immed(n.req, 1, &s, c, &r, 1, none));
	ARG(dat_ib_post_rdma_write_immed(n.ep, 64, many, c, &r, 1, none), 3);
	ARG(dat_ib_post_rdma_write_immed(n.ep, -1, many, c, &r, 1, none), 3);
	ARG(dat_ib_post_rdma_write_immed(n.ep, 1, NULL, c, &r, 1, none), 4);
	ARG(dat_ib_post_rdma_write_immed(n.ep, 1, &s, c, NULL, 1, none), 6);
	ARG(dat_ib_post_rdma_write_immed(n.ep, 1, &s, c, &r, 1, 0x8000), 8);
	HANDLE(dat_ib_post_send_immed(n.req, 1, &s, c, 1, none));
	ARG(dat_ib_post_send_immed(n.ep, 64, many, c, 1, none), 3);
	ARG(dat_ib_post_send_immed(n.ep, 1, NULL, c, 1, none), 4);
	ARG(dat_ib_post_send_immed(n.ep, 1, &s, c, 1, 0x8000), 7);
	HANDLE(dat_ib_post_fetch_and_add(n.req, 1, &s, c, &r, none));
	ARG(dat_ib_post_fetch_and_add(n.ep, 1, NULL, c, &r, none), 4);
	ARG(dat_ib_post_fetch_and_add(n.ep, 1, &s, c, NULL, none), 6);
	ARG(dat_ib_post_fetch_and_add(n.ep, 1, &s, c, &odd, none), 6);
	ARG(dat_ib_post_fetch_and_add(n.ep, 1, &s, c, &r, 0x8000), 7);
	FAILS(dat_ib_post_fetch_and_add(n.ep, 1, &s, c, &shorter, none), DAT_LENGTH_ERROR);
	HANDLE(dat_ib_post_cmp_and_swap(n.req, 1, 2, &s, c, &r, none));
	ARG(dat_ib_post_cmp_and_swap(n.ep, 1, 2, NULL, c, &r, none), 5);
	ARG(dat_ib_post_cmp_and_swap(n.ep, 1, 2, &s, c, NULL, none), 7);
	ARG(dat_ib_post_cmp_and_swap(n.ep, 1, 2, &s, c, &r, 0x8000), 8);
	s.segment_length = 16;
	FAILS(dat_ib_post_cmp_and_swap(n.ep, 1, 2, &s, c, &r, none), DAT_LENGTH_ERROR);
	s.segment_length = 8;
	/* the arguments are valid, the state is not */
	FAILS(dat_ib_post_rdma_write_immed(n.ep, 1, &s, c, &r, 1, none), DAT_INVALID_STATE);
	FAILS(dat_ib_post_fetch_and_add(n.ep, 1, &s, c, &r, none), DAT_INVALID_STATE);
	/* operations that connected endpoints do not have */
	FAILS(dat_ib_post_send_ud(n.ep, 1, &s, NULL, c, none),
	      strcmp(named_attr(&n, DAT_IB_ATTR_UD), "TRUE") ? DAT_MODEL_NOT_SUPPORTED :
							      DAT_INVALID_HANDLE);
	FAILS(dat_extension_op(n.ep, DAT_IB_COLLECTIVE_BARRIER_OP), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_extension_op(n.ep, (DAT_EXTENDED_OP)0x77), DAT_NOT_IMPLEMENTED);
	node_end(&n);
}

static void connected_args(struct pair *p)
{
	DAT_LMR_TRIPLET s;
	DAT_RMR_TRIPLET r;
	const DAT_DTO_COOKIE c = cookie_of(1);
	const DAT_COMPLETION_FLAGS none = DAT_COMPLETION_DEFAULT_FLAG;
	struct link l;
	struct mem ro;

	link_open(p, &l, 64);
	mem_get_with(&l.n, l.n.pz, &ro, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	r = remote_segment(&l.theirs, 0, 8);
	s = mem_segment(&ro, 0, 8);	/* the old value cannot be stored in this memory */
	FAILS(dat_ib_post_fetch_and_add(l.ep, 1, &s, c, &r, none), DAT_PRIVILEGES_VIOLATION);
	s.lmr_context ^= 0x40;
	FAILS(dat_ib_post_cmp_and_swap(l.ep, 1, 2, &s, c, &r, none), DAT_PROTECTION_VIOLATION);
	FAILS(dat_ib_post_rdma_write_immed(l.ep, 1, &s, c, &r, 1, none), DAT_PROTECTION_VIOLATION);
	s = mem_segment(&l.m, 0, 16);	/* longer than the target segment */
	FAILS(dat_ib_post_rdma_write_immed(l.ep, 1, &s, c, &r, 1, none), DAT_LENGTH_ERROR);
	mem_put(&ro);
	link_close(p, &l);
}

/* An IA that is opened for queries only. */
static void query_client(struct pair *p)
{
	DAT_HANDLE query = DAT_HANDLE_NULL;
	DAT_PROVIDER_ATTR prov;
	DAT_IA_ATTR attr;
	struct node n;

	OK(dat_ib_open_query(pair_ia_name(), &query, DAT_IA_FIELD_ALL, &attr,
			     DAT_PROVIDER_FIELD_ALL, &prov));
	SAME(attr.extension_supported, DAT_EXTENSION_IB);
	CHECK(!strcmp(attr.adapter_name, pair_ia_name()), "%s", attr.adapter_name);
	CHECK(prov.num_provider_specific_attr > 0, "no named attributes");
	OK(dat_ib_close_query(query));
	FAILS(dat_ib_close_query(query), DAT_INVALID_HANDLE);
	FAILS(dat_ib_open_query("ofi-nosuch", &query, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_ib_open_query(NULL, &query, 0, NULL, 0, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_open_query(pair_ia_name(), NULL, 0, NULL, 0, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_open_query(pair_ia_name(), &query, DAT_IA_FIELD_ALL, NULL, 0, NULL),
	      DAT_INVALID_PARAMETER);
	/* dat_ib_close_query() does not close an ordinary IA */
	node_open(&n);
	FAILS(dat_ib_close_query(n.ia), DAT_INVALID_HANDLE);
	node_close(&n);
}

/* Counters, read by the public call. */

static void counted(struct pair *p)
{
	DAT_UINT64 ep[DCNT_EP_ALL_COUNTERS], ia[DCNT_IA_ALL_COUNTERS], v;
	struct link l;
	struct mem in;
	unsigned i;

	link_open(p, &l, 64);
	mem_get(&l.n, &in, 64);
	for (i = 0; i < 3; i++)
		post_recv(l.ep, &in, 0, 64, i);
	pair_sync(p);
	post_send(l.ep, &l.m, 0, 11, 0);
	OK(send_immed(&l, 12, 1, 1));
	OK(write_immed(&l, 13, 1, 2, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(l.n.recv, 0, DAT_DTO_SUCCESS, 11);
	expect_ext(l.n.recv, 1, DAT_IB_RECV_IMMED_DATA, DAT_DTO_SUCCESS, 12);
	expect_ext(l.n.recv, 2, DAT_IB_RDMA_WRITE_IMMED_DATA, DAT_DTO_SUCCESS, 13);
	expect_dto(l.n.req, 0, DAT_DTO_SUCCESS, 11);
	expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, 12);
	expect_ext(l.n.req, 2, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_SUCCESS, 13);
	OK(dat_ib_query_counters(l.ep, DCNT_EP_ALL_COUNTERS, ep, 1));
	SAME(ep[DCNT_EP_POST_RECV], 3);
	SAME(ep[DCNT_EP_POST_SEND_DATA], 11 + 12);
	SAME(ep[DCNT_EP_POST_WRITE_IMM_DATA], 13);
	SAME(ep[DCNT_EP_RECV_DATA], 11);
	SAME(ep[DCNT_EP_RECV_IMM_DATA], 12);
	SAME(ep[DCNT_EP_RECV_RDMA_IMM], 1);
	SAME(ep[DCNT_EP_RECV_RDMA_IMM_DATA], 13);
	OK(dat_ib_query_counters(l.ep, DCNT_EP_POST_RECV, &v, 0));
	SAME(v, 0);
	OK(dat_ib_query_counters(l.n.ia, DCNT_IA_ALL_COUNTERS, ia, 0));
	SAME(ia[DCNT_IA_EP_CREATE], 1);
	SAME(ia[DCNT_IA_LMR_CREATE], 2);
	SAME(ia[DCNT_IA_CM_ACTIVE_EST] + ia[DCNT_IA_CM_PASSIVE_EST], 1);
	OK(dat_ib_query_counters(l.n.recv, DCNT_EVD_WAIT, &v, 0));
	CHECK(v >= 3, "fewer than three waits were counted");
	FAILS(dat_ib_query_counters(l.n.pz, 0, &v, 0), DAT_INVALID_HANDLE);
	FAILS(dat_ib_query_counters(l.ep, DCNT_EP_ALL_COUNTERS + 1, &v, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_query_counters(l.ep, 0, NULL, 0), DAT_INVALID_PARAMETER);
	OK(dat_ib_start_counter(l.n.ia, DCNT_IA_CM));
	FAILS(dat_ib_start_counter(l.n.ia, DCNT_IA_LNK), DAT_MODEL_NOT_SUPPORTED);
	OK(dat_ib_query_counters(l.n.ia, DCNT_IA_ALL_COUNTERS, ia, 0));
	SAME(ia[DCNT_IA_CM_ACTIVE_EST] + ia[DCNT_IA_CM_PASSIVE_EST], 0);
	OK(dat_ib_stop_counter(l.n.ia, DCNT_IA_CM));
	FAILS(dat_ib_stop_counter(l.n.ia, DCNT_IA_DIAG), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ib_stop_counter(l.n.ia, 3), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_stop_counter(l.ep, DCNT_IA_CM), DAT_INVALID_HANDLE);
	mem_put(&in);
	link_close(p, &l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("arguments", NULL, args_client),
	PAIR_CASE("arguments_of_a_connected_ep", connected_args, connected_args),
	PAIR_CASE("a_query_needs_no_evd", NULL, query_client),
	PAIR_CASE("write_with_immediate_data", immed_server, immed_client),
	PAIR_CASE("all_kinds_of_messages_in_order", stream_server, stream_client),
	PAIR_CASE("immediate_data_waits_for_a_receive", late_server, late_client),
	PAIR_CASE("suppressed_completions", suppressed_server, suppressed_client),
	PAIR_CASE("a_refused_write_delivers_no_immediate_data", refused_server, refused_client),
	PAIR_CASE("atomics_at_a_target_without_dat_calls", target_server, target_client),
	PAIR_CASE("atomics_in_both_directions", crossing, crossing),
	PAIR_CASE("atomics_in_posting_order", order_server, order_client),
	PAIR_CASE("atomics_without_a_grant_are_refused", wrong_server, wrong_client),
	PAIR_CASE("operations_are_counted", counted, counted),
};

PAIR_MAIN(cases)
