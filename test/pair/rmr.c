/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RMRs between two processes: the grant of a bind, its start, and that the end of a grant is
 * enforced.
 */

#include "pair.h"

#include <string.h>

#define KIB 1024u
#define SIZE (64 * KIB)		/* of the memory */
#define START (4 * KIB)		/* of the granted part */
#define LENGTH (32 * KIB)

/* Binds, waits for the completion, and returns the peer's new grant. */
static struct grant granted(struct node *n, DAT_EP_HANDLE ep, DAT_RMR_HANDLE rmr,
			    const struct mem *m, DAT_MEM_PRIV_FLAGS priv)
{
	struct grant g;

	memset(&g, 0, sizeof(g));
	g.address = (uintptr_t)m->base + START;
	g.size = LENGTH;
	OK(bind_part(rmr, m, START, LENGTH, priv, ep, 77, &g.rmr_context));
	CHECK(g.rmr_context, "no context");
	expect_bind(n->req, rmr, 77, DAT_DTO_SUCCESS);
	return g;
}

/* Fills the granted part with a pattern, and the rest with another byte. */
static void prepare(struct mem *m, unsigned seed)
{
	memset(m->base, 0xaa, m->size);
	fill(m->base + START, LENGTH, seed);
}

static void inspect(const struct mem *m, unsigned seed)
{
	size_t i;

	verify(m->base + START, LENGTH, seed);
	for (i = 0; i < m->size; i++)
		CHECK((i >= START && i < START + LENGTH) || m->base[i] == 0xaa,
		      "byte %zu outside the grant is %#x", i, m->base[i]);
}

/* Memory that peers can reach only through RMRs. */
static void own_memory(struct node *n, DAT_PZ_HANDLE pz, struct mem *m)
{
	mem_get_with(n, pz, m, SIZE, PRIV_LOCAL);
	SAME(m->rmr_context, 0);
	prepare(m, 1);
}

/* Memory of a bound RMR is used */

static void use_server(struct pair *p)
{
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE ep;
	struct grant g;
	struct node n;
	struct mem m;

	node_open(&n);
	own_memory(&n, n.pz, &m);
	OK(dat_rmr_create(n.pz, &rmr));
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	g = granted(&n, ep, rmr, &m, PRIV_BOTH);
	pair_send(p, &g, sizeof(g));
	pair_sync(p);	/* the peer has read and written */
	inspect(&m, 2);
	pair_unlink(p, &n, ep);
	expect_quiet(n.req);
	FAILS(dat_lmr_free(m.lmr), DAT_INVALID_STATE);
	OK(dat_rmr_free(rmr));
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

static void use_client(struct pair *p)
{
	struct grant g;
	struct node n;

	node_begin(&n, LENGTH);
	pair_link(p, &n, n.ep);
	pair_granted(p, &g);
	post_read(n.ep, &n.m, 0, LENGTH, 1, &g, 0);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, LENGTH);
	verify(n.m.base, LENGTH, 1);
	fill(n.m.base, LENGTH, 2);
	post_write(n.ep, &n.m, 0, LENGTH, 2, &g, 0);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, LENGTH);
	pair_sync(p);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* The program need not wait for a bind: operations posted after it find it done. */

#define N_ROUNDS 100
#define ROUND (LENGTH / N_ROUNDS)

static void rounds_server(struct pair *p)
{
	DAT_RMR_HANDLE rmr;
	struct grant *grant;
	struct link l;
	uint64_t i;

	link_open(p, &l, SIZE);
	OK(dat_rmr_create(l.n.pz, &rmr));
	grant = (struct grant *)l.m.base;
	for (i = 0; i < N_ROUNDS; i++) {
		size_t at = START + i * ROUND;

		post_recv(l.ep, &l.m, SIZE - 8, 8, i);
		grant->address = (uintptr_t)l.m.base + at;
		grant->size = ROUND;
		OK(bind_flags(rmr, &l.m, mem_segment(&l.m, at, ROUND), PRIV_WRITE, l.ep, 0,
			      DAT_COMPLETION_SUPPRESS_FLAG, &grant->rmr_context));
		post_send(l.ep, &l.m, 0, sizeof(*grant), i);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, sizeof(*grant));
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 8);
		verify(l.m.base + at, ROUND, i);
	}
	OK(dat_rmr_free(rmr));
	link_close(p, &l);
}

static void rounds_client(struct pair *p)
{
	struct link l;
	uint64_t i;

	link_open(p, &l, SIZE);
	post_recv(l.ep, &l.m, 0, sizeof(struct grant), 0);
	for (i = 0; i < N_ROUNDS; i++) {
		struct grant grant;

		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, sizeof(grant));
		memcpy(&grant, l.m.base, sizeof(grant));
		if (i + 1 < N_ROUNDS)
			post_recv(l.ep, &l.m, 0, sizeof(grant), i + 1);
		fill(l.m.base + START, ROUND, i);
		post_write(l.ep, &l.m, START, ROUND, i, &grant, 0);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, ROUND);
		post_send(l.ep, &l.m, 0, 8, i);
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 8);
	}
	link_close(p, &l);
}

/* Access that is not granted, or no longer, is refused, and nothing is written */

enum fault {
	PAST_END, BEFORE_START, NO_PRIVILEGE, REBOUND, UNBOUND, FREED, REBOUND_ELSEWHERE, N_FAULTS
};

static const char *const fault_names[N_FAULTS] = {
	"past the end", "before the start", "no privilege", "context before a rebind",
	"unbound", "freed", "rebound to other memory",
};

/* Binds as the fault requires, and returns the grant for the peer. */
static struct grant grant_for(struct node *n, DAT_EP_HANDLE ep, DAT_RMR_HANDLE rmr,
			      const struct mem *m, const struct mem *other, enum fault fault,
			      bool read)
{
	const DAT_MEM_PRIV_FLAGS rights = read ? PRIV_WRITE : PRIV_READ;
	struct grant g = granted(n, ep, rmr, m, fault != NO_PRIVILEGE ? PRIV_BOTH : rights);

	switch (fault) {
	case PAST_END:
		g.address += LENGTH - 32;
		break;
	case BEFORE_START:
		g.address -= 32;
		break;
	case REBOUND:
		granted(n, ep, rmr, m, PRIV_BOTH);
		break;
	case REBOUND_ELSEWHERE:
		g.rmr_context = granted(n, ep, rmr, other, PRIV_BOTH).rmr_context;
		break;
	case UNBOUND:
		OK(unbind(rmr, m, ep, 78));
		expect_bind(n->req, rmr, 78, DAT_DTO_SUCCESS);
		break;
	case FREED:
		OK(dat_rmr_free(rmr));
		break;
	default:
		break;
	}
	return g;
}

static void refused_server(struct pair *p)
{
	bool read = *(const bool *)pair_arg();
	struct mem m, other, spare;
	struct node n;
	int fault;

	node_open(&n);
	own_memory(&n, n.pz, &m);
	own_memory(&n, n.pz, &other);
	mem_get(&n, &spare, 64);
	for (fault = 0; fault < N_FAULTS; fault++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_RMR_HANDLE rmr, good;
		struct grant g, usable;

		OK(dat_rmr_create(n.pz, &rmr));
		OK(dat_rmr_create(n.pz, &good));
		post_recv(ep, &spare, 0, 64, 1);
		pair_link(p, &n, ep);
		usable = granted(&n, ep, good, &other, PRIV_BOTH);
		g = grant_for(&n, ep, rmr, &m, &other, (enum fault)fault, read);
		pair_send(p, &usable, sizeof(usable));
		pair_send(p, &g, sizeof(g));
		expect_end(n.conn, ep);
		expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
		expect_quiet(n.recv);
		pair_sync(p);
		inspect(&m, 1);
		expect_quiet(n.req);
		OK(dat_ep_free(ep));
		OK(dat_rmr_free(good));
		if (fault != FREED)
			OK(dat_rmr_free(rmr));
	}
	mem_put(&m);
	mem_put(&other);
	mem_put(&spare);
	node_close(&n);
}

static void refused_client(struct pair *p)
{
	bool read = *(const bool *)pair_arg();
	struct node n;
	int fault;

	node_open(&n);
	mem_get(&n, &n.m, 256);
	for (fault = 0; fault < N_FAULTS; fault++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		struct grant g, usable;

		memset(n.m.base, 0xbb, n.m.size);
		pair_link(p, &n, ep);
		pair_granted(p, &usable);
		pair_granted(p, &g);
		/* a good operation first shows that the failure is due to the fault alone */
		post_read(ep, &n.m, 0, 64, 1, &usable, 0);
		expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
		if (read)
			post_read(ep, &n.m, 64, 64, 2, &g, 0);
		else
			post_write(ep, &n.m, 64, 64, 2, &g, 0);
		expect_refused(&n, ep, 2, fault_names[fault]);
		CHECK(n.m.base[64] == 0xbb, "%s: the refused read wrote to memory",
		      fault_names[fault]);
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

static const bool reading = true, writing = false;

/* Several connections, in one PZ or in different ones */

/* Locally, all combinations of EP, LMR and RMR; remotely, the contexts of one PZ in the other. */
static void pzs_server(struct pair *p)
{
	DAT_PZ_HANDLE pz[2];
	DAT_RMR_HANDLE rmr[2];
	DAT_EP_HANDLE ep[2];
	DAT_RMR_CONTEXT none;
	struct grant g[2];
	struct mem m[2];
	struct node n;
	int i;

	node_open(&n);
	pz[0] = n.pz;
	OK(dat_pz_create(n.ia, &pz[1]));
	for (i = 0; i < 2; i++) {
		own_memory(&n, pz[i], &m[i]);
		OK(dat_rmr_create(pz[i], &rmr[i]));
		ep[i] = link_in(p, &n, pz[i]);
	}
	for (i = 1; i < 7; i++)
		FAILS(bind_part(rmr[i & 1], &m[i >> 1 & 1], START, LENGTH, PRIV_BOTH,
				ep[i >> 2 & 1], 1, &none),
		      DAT_PROTECTION_VIOLATION);
	FAILS(unbind(rmr[0], &m[0], ep[1], 1), DAT_PROTECTION_VIOLATION);
	for (i = 0; i < 2; i++) {
		g[i] = granted(&n, ep[i], rmr[i], &m[i], PRIV_BOTH);
		pair_send(p, &g[i], sizeof(g[i]));
	}
	expect_end(n.conn, ep[0]);	/* the peer has used a context of the other PZ */
	pair_sync(p);
	expect_end(n.conn, ep[1]);
	pair_sync(p);
	for (i = 0; i < 2; i++) {
		inspect(&m[i], 1);
		OK(dat_ep_free(ep[i]));
		FAILS(dat_pz_free(pz[i]), DAT_INVALID_STATE);
		OK(dat_rmr_free(rmr[i]));
		mem_put(&m[i]);
	}
	OK(dat_pz_free(pz[1]));
	expect_quiet(n.req);
	node_close(&n);
}

static void pzs_client(struct pair *p)
{
	DAT_EP_HANDLE ep[2];
	struct grant g[2];
	struct node n;
	int i;

	node_open(&n);
	mem_get(&n, &n.m, 256);
	memset(n.m.base, 0xbb, n.m.size);
	for (i = 0; i < 2; i++)
		ep[i] = link_in(p, &n, n.pz);
	for (i = 0; i < 2; i++)
		pair_granted(p, &g[i]);
	for (i = 0; i < 2; i++) {
		post_read(ep[i], &n.m, 128, 64, 1, &g[i], 0);
		expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
	}
	post_write(ep[0], &n.m, 0, 64, 2, &g[1], 0);
	expect_refused(&n, ep[0], 2, "written into another PZ");
	pair_sync(p);
	post_read(ep[1], &n.m, 0, 64, 2, &g[0], 0);
	expect_refused(&n, ep[1], 2, "read from another PZ");
	CHECK(n.m.base[0] == 0xbb, "the refused read wrote to memory");
	pair_sync(p);
	for (i = 0; i < 2; i++)
		OK(dat_ep_free(ep[i]));
	node_end(&n);
}

#if DAT_VERSION_MAJOR >= 2
/* A context of EP scope is valid on one connection, and only until that ends. */
static void scope_server(struct pair *p)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT none;
	DAT_EP_HANDLE ep[3];
	struct grant g;
	struct node n;
	struct mem m;
	int i;

	node_open(&n);
	if (n.prov.rmr_scope_supported == DAT_RMR_SCOPE_PZ) {
		FAILS(dat_rmr_create_for_ep(n.pz, &rmr), DAT_MODEL_NOT_SUPPORTED);
		pair_skip("this fabric has no RMRs of EP scope");
	}
	SAME(n.prov.rmr_scope_supported, DAT_RMR_SCOPE_ANY);
	own_memory(&n, n.pz, &m);
	OK(dat_rmr_create_for_ep(n.pz, &rmr));
	for (i = 0; i < 3; i++)
		ep[i] = link_in(p, &n, n.pz);
	g = granted(&n, ep[0], rmr, &m, PRIV_BOTH);
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	SAME(param.rmr_scope, DAT_RMR_SCOPE_EP);
	SAME(param.rmr_context, g.rmr_context);
	FAILS(bind_part(rmr, &m, START, LENGTH, PRIV_BOTH, ep[1], 1, &none),
	      DAT_PROTECTION_VIOLATION);
	pair_send(p, &g, sizeof(g));
	expect_end(n.conn, ep[2]);	/* the peer has used the first EP's context here */
	pair_sync(p);
	inspect(&m, 1);
	pair_sync(p);
	pair_unlink(p, &n, ep[0]);
	FAILS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), DAT_INVALID_PARAMETER);
	pair_sync(p);
	expect_end(n.conn, ep[1]);	/* the peer has used the former context here */
	pair_sync(p);
	inspect(&m, 2);
	OK(dat_ep_free(ep[1]));
	ep[1] = link_in(p, &n, n.pz);
	g = granted(&n, ep[1], rmr, &m, PRIV_READ);
	pair_send(p, &g, sizeof(g));
	pair_unlink(p, &n, ep[1]);
	for (i = 0; i < 3; i++)
		OK(dat_ep_free(ep[i]));
	OK(dat_rmr_free(rmr));
	mem_put(&m);
	node_close(&n);
}

static void scope_client(struct pair *p)
{
	DAT_EP_HANDLE ep[3];
	struct grant g;
	struct node n;
	int i;

	node_open(&n);
	if (n.prov.rmr_scope_supported == DAT_RMR_SCOPE_PZ)
		pair_skip("this fabric has no RMRs of EP scope");
	mem_get(&n, &n.m, LENGTH);
	for (i = 0; i < 3; i++)
		ep[i] = link_in(p, &n, n.pz);
	pair_granted(p, &g);
	post_write(ep[2], &n.m, 0, LENGTH, 9, &g, 0);
	expect_refused(&n, ep[2], 9, "the context of another connection");
	pair_sync(p);
	fill(n.m.base, LENGTH, 2);
	pair_sync(p);
	post_write(ep[0], &n.m, 0, LENGTH, 1, &g, 0);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, LENGTH);
	pair_unlink(p, &n, ep[0]);
	pair_sync(p);
	memset(n.m.base, 0, LENGTH);
	post_write(ep[1], &n.m, 0, LENGTH, 2, &g, 0);
	expect_refused(&n, ep[1], 2, "the former connection's context");
	pair_sync(p);
	OK(dat_ep_free(ep[1]));
	ep[1] = link_in(p, &n, n.pz);
	pair_granted(p, &g);
	post_read(ep[1], &n.m, 0, LENGTH, 3, &g, 0);
	expect_dto(n.req, 3, DAT_DTO_SUCCESS, LENGTH);
	verify(n.m.base, LENGTH, 2);
	pair_unlink(p, &n, ep[1]);
	for (i = 0; i < 3; i++)
		OK(dat_ep_free(ep[i]));
	node_end(&n);
}
#endif

/*
 * A grant is revoked while writes are in flight: each write completes once, and no byte is
 * written later.
 */

static const bool by_unbinding = false, by_freeing = true;

#define N_WRITES 32
#define WRITE_SIZE (256 * KIB)

static void traffic_server(struct pair *p)
{
	const bool freeing = *(const bool *)pair_arg();
	volatile unsigned char *last;
	DAT_RMR_HANDLE rmr;
	int64_t deadline;
	struct link l;
	struct grant g;

	link_open(p, &l, WRITE_SIZE);
	OK(dat_rmr_create(l.n.pz, &rmr));
	memset(&g, 0, sizeof(g));
	g.address = (uintptr_t)l.m.base;
	g.size = WRITE_SIZE;
	OK(bind_part(rmr, &l.m, 0, WRITE_SIZE, PRIV_WRITE, l.ep, 1, &g.rmr_context));
	expect_bind(l.n.req, rmr, 1, DAT_DTO_SUCCESS);
	pair_send(p, &g, sizeof(g));
	last = l.m.base + WRITE_SIZE - 1;
	for (deadline = pair_deadline(PAIR_LIMIT); !*last; )
		CHECK(pair_now() < deadline, "the peer writes nothing");
	if (freeing) {
		OK(dat_rmr_free(rmr));
	} else {
		OK(unbind(rmr, &l.m, l.ep, 2));
		expect_bind(l.n.req, rmr, 2, DAT_DTO_SUCCESS);
	}
	pair_sync(p);
	expect_end(l.n.conn, l.ep);
	memset(l.m.base, 0xcc, WRITE_SIZE);
	pair_sync(p);
	CHECK(*last == 0xcc, "written after the disconnect");
	if (!freeing)
		OK(dat_rmr_free(rmr));
	link_free(&l);
}

static void traffic_client(struct pair *p)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	bool failed = false;
	struct grant g;
	struct link l;
	uint64_t i;

	link_open(p, &l, WRITE_SIZE);
	memset(l.m.base, 0xff, WRITE_SIZE);
	pair_granted(p, &g);
	for (i = 0; i < N_WRITES; i++)
		post_write(l.ep, &l.m, 0, WRITE_SIZE, i, &g, 0);
	pair_sync(p);	/* the grant is revoked: operations posted now must fail */
	post_write(l.ep, &l.m, 0, WRITE_SIZE, i, &g, 0);
	for (i = 0; i <= N_WRITES; i++) {
		DAT_EVENT event;

		expect_event(l.n.req, DAT_DTO_COMPLETION_EVENT, &event);
		d = &event.event_data.dto_completion_event_data;
		SAME(d->user_cookie.as_64, i);
		failed |= d->status != DAT_DTO_SUCCESS;
	}
	CHECK(failed, "no write failed");
	expect_end(l.n.conn, l.ep);
	expect_quiet(l.n.req);
	pair_sync(p);
	link_free(&l);
}

/* Order and flags */

static void order(struct pair *p)
{
	DAT_RMR_CONTEXT context, before = 0;
	DAT_RMR_HANDLE rmr;
	struct link l;
	uint64_t i;

	link_open(p, &l, SIZE);
	OK(dat_rmr_create(l.n.pz, &rmr));
	for (i = 0; i < 16; i++)
		post_recv(l.ep, &l.m, 64 * i, 64, i);
	pair_sync(p);
	for (i = 0; i < 16; i++) {
		bool quiet = i % 4 == 3;

		post_send(l.ep, &l.m, START, 64, i);
		OK(bind_flags(rmr, &l.m, mem_segment(&l.m, START, LENGTH), PRIV_READ, l.ep, 100 + i,
			      DAT_COMPLETION_BARRIER_FENCE_FLAG |
			      (quiet ? DAT_COMPLETION_SUPPRESS_FLAG : 0), &context));
		CHECK(context && context != before, "the context is unchanged");
		before = context;
	}
	for (i = 0; i < 16; i++) {
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, 64);
		if (i % 4 != 3)
			expect_bind(l.n.req, rmr, 100 + i, DAT_DTO_SUCCESS);
	}
	for (i = 0; i < 16; i++)
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, 64);
	OK(dat_rmr_free(rmr));
	pair_sync(p);
	link_close(p, &l);
}

/* States, and objects in use */

static void states(struct pair *p)
{
	DAT_RMR_CONTEXT context = 0;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE ep;
	struct grant g;
	struct node n;
	struct mem m;

	node_open(&n);
	own_memory(&n, n.pz, &m);
	OK(dat_rmr_create(n.pz, &rmr));
	FAILS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), DAT_INVALID_PARAMETER);
	OK(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET),
			 &param));
	CHECK(param.ia_handle == n.ia && param.pz_handle == n.pz, "wrong IA or PZ");
	ep = node_ep(&n, NULL);
	FAILS(bind_part(rmr, &m, START, LENGTH, PRIV_BOTH, ep, 1, &context), DAT_INVALID_STATE);
	pair_link(p, &n, ep);
	g = granted(&n, ep, rmr, &m, PRIV_BOTH);
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	SAME(param.rmr_context, g.rmr_context);
	SAME(param.lmr_triplet.virtual_address, g.address);
	SAME(param.lmr_triplet.segment_length, LENGTH);
	SAME(param.lmr_triplet.lmr_context, m.lmr_context);
	SAME(param.mem_priv, PRIV_BOTH);
	FAILS(dat_lmr_free(m.lmr), DAT_INVALID_STATE);
	FAILS(dat_ia_close(n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	FAILS(bind_part(rmr, &m, SIZE - 8, 16, PRIV_BOTH, ep, 1, &context), DAT_INVALID_PARAMETER);
	pair_unlink(p, &n, ep);
	/* the bind is flushed, and the former grant remains */
	OK(bind_part(rmr, &m, START, LENGTH, PRIV_BOTH, ep, 2, &context));
	expect_bind(n.req, rmr, 2, DAT_RMR_BIND_FAILURE);
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	SAME(param.rmr_context, g.rmr_context);
	OK(dat_ep_free(ep));
	OK(dat_rmr_free(rmr));
	FAILS(dat_rmr_free(rmr), DAT_INVALID_HANDLE);
	FAILS(dat_rmr_query(rmr, DAT_RMR_FIELD_IA_HANDLE, &param), DAT_INVALID_HANDLE);
	FAILS(dat_rmr_free(m.lmr), DAT_INVALID_HANDLE);
	expect_quiet(n.req);
	mem_put(&m);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("bound memory can be read and written", use_server, use_client),
	PAIR_CASE("a bind takes effect before later operations", rounds_server, rounds_client),
	PAIR_CASE("writes without a grant", refused_server, refused_client, .arg = &writing),
	PAIR_CASE("reads without a grant", refused_server, refused_client, .arg = &reading),
	PAIR_CASE("PZs are separate", pzs_server, pzs_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("EP scope", scope_server, scope_client),
#endif
	PAIR_CASE("unbound during writes", traffic_server, traffic_client, .arg = &by_unbinding),
	PAIR_CASE("freed during writes", traffic_server, traffic_client, .arg = &by_freeing),
	PAIR_CASE("order and flags", order, order),
	PAIR_CASE("states", states, states),
};

PAIR_MAIN(cases)
