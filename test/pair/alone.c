/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA within a host that needs no processor of the target: the target's process is stopped. And
 * the ends of what such RDMA needs, while a peer writes at full speed: once the end is reported, no
 * byte comes.
 */

#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1u << 20)

/* The target is stopped */

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	int n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	CHECK(f, "%s: %s", path, strerror(errno));
	n = fscanf(f, "%*d (%*[^)]) %c", &state);
	SAME(n, 1);
	fclose(f);
	return state == 'T';
}

/* Stops the peer's process while it waits for the next pair_sync(). */
static void peer_stop(struct pair *p)
{
	const int64_t deadline = pair_deadline(PAIR_LIMIT);

	CHECK(!kill(p->peer, SIGSTOP), "%s", strerror(errno));
	while (!is_stopped(p->peer))
		CHECK(pair_now() < deadline, "it does not stop");
}

static const uint32_t sizes[] = { 1, 8, 4096, 20000, 3 * MIB + 5 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define AREA (4 * MIB)

static void stopped_server(struct pair *p)
{
	struct link l;

	link_open(p, &l, 2 * AREA);
	fill(l.m.base + AREA, AREA, 9);
	pair_sync(p);
	pair_sync(p);	/* stopped here */
	verify(l.m.base, sizes[N_SIZES - 1], N_SIZES - 1);
	link_close(p, &l);
}

static void stopped_client(struct pair *p)
{
	struct link l;
	size_t i;

	link_open(p, &l, 2 * AREA);
	pair_sync(p);
	peer_stop(p);
	for (i = 0; i < N_SIZES; i++) {
		fill(l.m.base, sizes[i], i);
		post_write(l.ep, &l.m, 0, sizes[i], i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
		/* it reads its own bytes, and others */
		memset(l.m.base + AREA, 0, AREA);
		post_read(l.ep, &l.m, AREA, sizes[i], i, &l.theirs, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
		verify(l.m.base + AREA, sizes[i], i);
		post_read(l.ep, &l.m, AREA, sizes[i], i, &l.theirs, AREA);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
		verify(l.m.base + AREA, sizes[i], 9);
	}
	kill(p->peer, SIGCONT);
	pair_sync(p);
	link_close(p, &l);
}

/* Each end writes and polls the other's memory, and makes no other call. */
#define N_PINGS 2000

static void ping(struct pair *p, struct link *l)
{
	volatile uint32_t *in = (volatile uint32_t *)l->m.base;
	uint32_t *out = (uint32_t *)(l->m.base + 4096), i;
	int64_t deadline = pair_deadline(PAIR_LIMIT);

	for (i = 1; i <= N_PINGS; i++) {
		if (p->server)
			while (*in != i)
				CHECK(pair_now() < deadline, "write %u is missing", i);
		*out = i;
		post_write(l->ep, &l->m, 4096, sizeof(*out), i, &l->theirs, 0);
		if (!p->server)
			while (*in != i)
				CHECK(pair_now() < deadline, "write %u is missing", i);
		expect_dto(l->n.req, i, DAT_DTO_SUCCESS, sizeof(*out));
	}
}

static void ping_role(struct pair *p)
{
	struct link l;
	int64_t begin;

	link_open(p, &l, 8192);
	pair_sync(p);
	begin = pair_now();
	ping(p, &l);
	if (!p->server)
		pair_note("%.2f us each way", (double)(pair_now() - begin) / (2 * N_PINGS));
	pair_sync(p);
	link_close(p, &l);
}

/* Ends while the peer writes */

#define LONG (2 * MIB)			/* bytes of each write */
#define N_ROUNDS 40

/* How the target ends the writes of a round. */
struct end {
	void (*end)(struct link *l, DAT_RMR_HANDLE rmr, struct mem *m);
	bool rmr;			/* the peer writes to an RMR of the memory */
};

static void end_lmr(struct link *l, DAT_RMR_HANDLE rmr, struct mem *m)
{
	OK(dat_lmr_free(m->lmr));
	m->lmr = NULL;
}

static void end_rmr(struct link *l, DAT_RMR_HANDLE rmr, struct mem *m)
{
	OK(dat_rmr_free(rmr));
}

/* The next bind ends the grant. */
static void end_bind(struct link *l, DAT_RMR_HANDLE rmr, struct mem *m)
{
	DAT_RMR_CONTEXT context;

	OK(bind_part(rmr, m, 0, 4096, PRIV_BOTH, l->ep, 5, &context));
	expect_bind(l->n.req, rmr, 5, DAT_RMR_BIND_SUCCESS);
	OK(dat_rmr_free(rmr));
}

static void end_connection(struct link *l, DAT_RMR_HANDLE rmr, struct mem *m)
{
	OK(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(l->n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, l->ep);
}

static const struct end ends[] = {
	{ end_lmr, false }, { end_rmr, true }, { end_bind, true }, { end_connection, false },
};

/* Waits until the peer has written @n times: it counts in the last byte. */
static void await_writes(const struct mem *m, int n)
{
	const volatile unsigned char *last = m->base + LONG - 1;
	const int64_t deadline = pair_deadline(PAIR_LIMIT);
	unsigned char before = *last;

	while (n) {
		n -= *last != before;
		before = *last;
		CHECK(pair_now() < deadline, "the peer does not write");
	}
}

static void target_round(struct pair *p, struct link *l, const struct end *end, int round)
{
	DAT_RMR_HANDLE rmr = NULL;
	struct mem m, granted;

	mem_get(&l->n, &m, LONG);
	granted = m;
	l->ep = link_in(p, &l->n, l->n.pz);
	if (end->rmr) {
		OK(dat_rmr_create(l->n.pz, &rmr));
		OK(bind_part(rmr, &m, 0, LONG, PRIV_BOTH, l->ep, 4, &granted.rmr_context));
		expect_bind(l->n.req, rmr, 4, DAT_RMR_BIND_SUCCESS);
	}
	pair_grant(p, &granted);
	await_writes(&m, round % 5 + 1);
	end->end(l, rmr, &m);
	/* the memory is the program's again */
	memset(m.base, 0xcc, LONG);
	pair_sync(p);			/* the peer has seen the end */
	CHECK(m.base[0] == 0xcc && !memcmp(m.base, m.base + 1, LONG - 1), "written after the end");
	if (end->end != end_connection)
		expect_end(l->n.conn, l->ep);
	OK(dat_ep_free(l->ep));
	if (m.lmr)
		mem_put(&m);
	else
		munmap(m.base, m.size);
}

static void target(struct pair *p)
{
	const struct end *end = pair_arg();
	struct link l;
	int round;

	node_open(&l.n);
	for (round = 0; round < N_ROUNDS; round++)
		target_round(p, &l, end, round);
	node_close(&l.n);
}

static DAT_DTO_COMPLETION_STATUS write_until_refused(struct link *l)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET iov = mem_segment(&l->m, 0, LONG);
	DAT_RMR_TRIPLET remote = remote_segment(&l->theirs, 0, LONG);
	DAT_EVENT event;

	do {
		memset(l->m.base, ++l->m.base[0], LONG);
		if (dat_ep_post_rdma_write(l->ep, 1, &iov, cookie, &remote,
					   DAT_COMPLETION_DEFAULT_FLAG))
			return DAT_DTO_ERR_FLUSHED;
		expect_event(l->n.req, DAT_DTO_COMPLETION_EVENT, &event);
	} while (!event.event_data.dto_completion_event_data.status);
	return event.event_data.dto_completion_event_data.status;
}

static void writer(struct pair *p)
{
	const struct end *end = pair_arg();
	DAT_DTO_COMPLETION_STATUS status;
	struct link l;
	int round;

	node_open(&l.n);
	mem_get(&l.n, &l.m, LONG);
	for (round = 0; round < N_ROUNDS; round++) {
		l.ep = link_in(p, &l.n, l.n.pz);
		pair_granted(p, &l.theirs);
		status = write_until_refused(&l);
		if (end->end != end_connection)
			SAME(status, DAT_DTO_ERR_REMOTE_ACCESS);
		expect_end(l.n.conn, l.ep);
		pair_sync(p);
		OK(dat_ep_free(l.ep));
	}
	mem_put(&l.m);
	node_close(&l.n);
}

/* A writer that is killed, at any moment, does not hold up the end of the grant. */

#define DELAY 3000			/* less than a stopped writer holds it up */

static void survivor(struct pair *p)
{
	struct link l;
	int64_t begin;

	link_open(p, &l, LONG);
	await_writes(&l.m, 2);
	CHECK(!kill(p->peer, SIGKILL), "%s", strerror(errno));
	begin = pair_now();
	OK(dat_lmr_free(l.m.lmr));
	CHECK(pair_now() - begin < pair_scaled(DELAY) * INT64_C(1000), "held up by the dead");
	memset(l.m.base, 0xcc, LONG);
	expect_end(l.n.conn, l.ep);
	pair_wait_gone(p);
	CHECK(l.m.base[0] == 0xcc && !memcmp(l.m.base, l.m.base + 1, LONG - 1),
	      "written after the end");
	OK(dat_ia_close(l.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void victim(struct pair *p)
{
	struct link l;

	link_open(p, &l, LONG);
	for (;;)
		write_until_refused(&l);
}

/* Memory that the target has unmapped without an end of its LMR */

static void unmapped_server(struct pair *p)
{
	struct link l;

	link_open(p, &l, AREA);
	CHECK(!mprotect(l.m.base, l.m.size, PROT_NONE), "%s", strerror(errno));
	pair_sync(p);
	SAME(expect_end(l.n.conn, l.ep), DAT_CONNECTION_EVENT_BROKEN);
	pair_sync(p);
	OK(dat_ia_close(l.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void unmapped_client(struct pair *p)
{
	struct link l;

	link_open(p, &l, AREA);
	pair_sync(p);
	post_write(l.ep, &l.m, 0, 8, 1, &l.theirs, 0);
	expect_dto(l.n.req, 1, DAT_DTO_ERR_TRANSPORT, 0);
	SAME(expect_end(l.n.conn, l.ep), DAT_CONNECTION_EVENT_BROKEN);
	pair_sync(p);
	OK(dat_ia_close(l.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct pair_case cases[] = {
	PAIR_CASE("RDMA with a stopped process", stopped_server, stopped_client),
	PAIR_CASE("ping-pong by memory", ping_role, ping_role),
	PAIR_CASE("an LMR is freed while the peer writes", target, writer, .seconds = 60,
		  .arg = &ends[0]),
	PAIR_CASE("an RMR is freed while the peer writes", target, writer, .seconds = 60,
		  .arg = &ends[1]),
	PAIR_CASE("an RMR is bound again while the peer writes", target, writer, .seconds = 60,
		  .arg = &ends[2]),
	PAIR_CASE("the connection is ended while the peer writes", target, writer, .seconds = 60,
		  .arg = &ends[3]),
	PAIR_CASE("a process is killed while it writes", survivor, victim, .repeat = 10,
		  .client_killed = true),
	PAIR_CASE("a write to memory that is not there", unmapped_server, unmapped_client),
};

int main(int argc, char **argv)
{
	setenv("DAT_TEST_IA", "ofi", 1);
	setenv("FI_PROVIDER", "^verbs", 0);
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
