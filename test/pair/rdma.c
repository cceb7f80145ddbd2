/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA between two processes: each byte is right, in order, and there when it is reported. */

#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

static const DAT_DTO_COOKIE no_cookie;

/* A target that makes no DAT call while the peer works. */
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

static const uint32_t rdma_sizes[] = { 1, 7, 128, 4 * KIB, 64 * KIB + 1, MIB, 4 * MIB };
#define N_RDMA (sizeof(rdma_sizes) / sizeof(rdma_sizes[0]))
#define N_RDMA_ROUNDS 3

/* When the writer has its completion, the bytes are in place without a DAT call at the target. */
static void write_server(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 4 * MIB + 1);
	for (i = 0; i < N_RDMA_ROUNDS * N_RDMA; i++) {
		uint32_t size = rdma_sizes[i % N_RDMA];

		memset(l.m.base, 0xaa, l.m.size);
		pair_sync(p);
		pair_sync(p);	/* the peer has the completion */
		verify(l.m.base, size, i);
		CHECK(l.m.base[size] == 0xaa, "written past the end");
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

/* The target polls the last byte: when it has changed, so have the others. */
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
			CHECK(pair_now() < deadline, "the last byte was not written");
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
		if (lengths[i] > l.n.attr.max_rdma_size)
			break;
		memset(l.m.base, 0xaa, l.m.size);
		post_read(l.ep, &l.m, 0, lengths[i], i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, lengths[i]);
		verify(l.m.base, lengths[i], 1);
		CHECK(lengths[i] == l.m.size || l.m.base[lengths[i]] == 0xaa, "read past the end");
	}
	pair_sync(p);
	link_close(p, &l);
}

static const size_t small_area = 64 * KIB;

/* The local buffer is larger than the remote segment. */
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
	CHECK(l.m.base[300] == 0xaa, "read past the end");
	pair_sync(p);
	link_close(p, &l);
}

#define N_READS 48

/* More reads than may be outstanding: the rest is queued, and none fails. */
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

/* Operations of zero length succeed and move nothing. */
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
	/* the connection works afterwards */
	post_read(l.ep, &l.m, 0, KIB, 1, &l.theirs, 0);
	expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, KIB);
	verify(l.m.base, KIB, 1);
	pair_sync(p);
	link_close(p, &l);
}

#define N_LATENCY 300

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

/* The target blocks in a system call of its own, and RDMA completes nevertheless. */
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

#define FENCED (4 * MIB)
#define N_FENCED 4

/* A write forwards the bytes that a read fetches: without the fence it would send the old bytes. */
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

#define WINDOW 64u
#define SLOT (4 * KIB)
#define N_WINDOWS 16

/*
 * A window of writes, a read of the last slot, and a message, all posted at once. The message
 * arrives after all writes, and the read returns the bytes of the last one.
 */
static void window_server(struct pair *p)
{
	struct link l;
	unsigned i, k;

	link_open_depth(p, &l, (WINDOW + 1) * SLOT, WINDOW + 2);
	for (i = 0; i < N_WINDOWS; i++) {
		post_recv(l.ep, &l.m, WINDOW * SLOT, SLOT, i);
		pair_sync(p);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 1);
		for (k = 0; k < WINDOW; k++)
			verify(l.m.base + k * SLOT, SLOT, i * WINDOW + k);
		pair_sync(p);
	}
	link_close(p, &l);
}

static void window_client(struct pair *p)
{
	struct link l;
	unsigned i, k;

	link_open_depth(p, &l, (WINDOW + 1) * SLOT, WINDOW + 2);
	for (i = 0; i < N_WINDOWS; i++) {
		for (k = 0; k < WINDOW; k++)
			fill(l.m.base + k * SLOT, SLOT, i * WINDOW + k);
		pair_sync(p);
		for (k = 0; k < WINDOW; k++)
			post_write(l.ep, &l.m, k * SLOT, SLOT, k, &l.theirs, k * SLOT);
		post_read(l.ep, &l.m, WINDOW * SLOT, SLOT, WINDOW, &l.theirs, (WINDOW - 1) * SLOT);
		post_send(l.ep, &l.m, 0, 1, WINDOW + 1);
		for (k = 0; k <= WINDOW; k++)
			expect_dto(l.n.req, k, DAT_DTO_SUCCESS, SLOT);
		expect_dto(l.n.req, WINDOW + 1, DAT_DTO_SUCCESS, 1);
		verify(l.m.base + WINDOW * SLOT, SLOT, i * WINDOW + WINDOW - 1);
		pair_sync(p);
	}
	link_close(p, &l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("barrier fence", fence_server, fence_client, .seconds = 60),
	PAIR_CASE("a completed write is in the target's memory", write_server, write_client,
		  .seconds = 60),
	PAIR_CASE("the last byte is written last", polled_server, polled_client),
	PAIR_CASE("reads of all sizes", passive_server, read_client, .seconds = 60,
		  .arg = &read_area),
	PAIR_CASE("read into a larger buffer", passive_server, read_short_client,
		  .arg = &small_area),
	PAIR_CASE("more reads than allowed in flight", passive_server, throttle_client,
		  .arg = &small_area),
	PAIR_CASE("RDMA of zero bytes", passive_server, zero_client, .arg = &small_area),
	PAIR_CASE("target without DAT calls", passive_server, idle_target_client,
		  .arg = &small_area),
	PAIR_CASE("a message after a window of writes", window_server, window_client,
		  .not_sockets = "a connection with many operations in flight stops"),
};

PAIR_MAIN(cases)
