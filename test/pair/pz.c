/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PZs are separate: every wrong combination of EP, LMR and RMR is refused, locally and remotely. */

#include "pair.h"

#include <string.h>

#define PART 512u

/*
 * Two of the PZs are of one IA, the third is of another instance of that IA. Each PZ has an LMR,
 * an LMR made of the preceding PZ's, an RMR, and an EP for the attempts.
 */
#define N_PZS 3

enum kind { PLAIN, DERIVED, GRANTED, N_KINDS };

struct pz {
	struct node *n;
	DAT_PZ_HANDLE handle;
	struct mem m, derived;
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE ep;
	struct grant grant[N_KINDS];
};

static struct node node[2];
static struct pz pzs[N_PZS];

static DAT_DTO_COOKIE cookie_of(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

/* Makes an LMR of another one of this IA, in any PZ. */
static void derive(struct pz *pz, const struct pz *of)
{
	const DAT_REGION_DESCRIPTION region = { .for_lmr_handle = of->m.lmr };

	pz->derived = of->m;
#if DAT_VERSION_MAJOR >= 2
	OK(dat_lmr_create(pz->n->ia, DAT_MEM_TYPE_LMR, region, 0, pz->handle, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &pz->derived.lmr, &pz->derived.lmr_context,
			  &pz->derived.rmr_context, NULL, NULL));
#else
	OK(dat_lmr_create(pz->n->ia, DAT_MEM_TYPE_LMR, region, 0, pz->handle, DAT_MEM_PRIV_ALL_FLAG,
			  &pz->derived.lmr, &pz->derived.lmr_context, &pz->derived.rmr_context,
			  NULL, NULL));
#endif
}

static struct grant grant_of(const struct mem *m)
{
	return (struct grant){ (uintptr_t)m->base, PART, m->rmr_context };
}

static void pzs_open(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		node_open(&node[i]);
	for (i = 0; i < N_PZS; i++) {
		struct pz *pz = &pzs[i];

		pz->n = &node[i == 2];
		OK(dat_pz_create(pz->n->ia, &pz->handle));
		mem_get_with(pz->n, pz->handle, &pz->m, PART, DAT_MEM_PRIV_ALL_FLAG);
		memset(pz->m.base, 0xa0 + i, PART);
		OK(dat_rmr_create(pz->handle, &pz->rmr));
		pz->ep = link_in(p, pz->n, pz->handle);
	}
	derive(&pzs[0], &pzs[1]);
	derive(&pzs[1], &pzs[0]);
	derive(&pzs[2], &pzs[2]);
	for (i = 0; i < N_PZS; i++) {
		struct pz *pz = &pzs[i];

		pz->grant[PLAIN] = grant_of(&pz->m);
		pz->grant[DERIVED] = grant_of(&pz->derived);
		pz->grant[GRANTED] = grant_of(&pz->m);
		OK(bind_part(pz->rmr, &pz->m, 0, PART, PRIV_BOTH, pz->ep, 1,
			     &pz->grant[GRANTED].rmr_context));
		expect_bind(pz->n->req, pz->rmr, 1, DAT_DTO_SUCCESS);
	}
}

static void pzs_close(struct pair *p)
{
	int i;

	for (i = 0; i < N_PZS; i++) {
		struct pz *pz = &pzs[i];

		pair_unlink(p, pz->n, pz->ep);
		OK(dat_ep_free(pz->ep));
		FAILS(dat_pz_free(pz->handle), DAT_INVALID_STATE);
		OK(dat_rmr_free(pz->rmr));
		FAILS(dat_pz_free(pz->handle), DAT_INVALID_STATE);
		OK(dat_lmr_free(pz->derived.lmr));
	}
	for (i = 0; i < N_PZS; i++) {
		mem_put(&pzs[i].m);
		OK(dat_pz_free(pzs[i].handle));
	}
	for (i = 0; i < 2; i++)
		node_close(&node[i]);
}

/* Local: each segment must be of the EP's PZ */

static void ops_fail(const struct pz *of, DAT_LMR_TRIPLET *iov, DAT_COUNT n)
{
	const DAT_RMR_TRIPLET remote = remote_segment(&of->grant[PLAIN], 0, n * 16);
	const DAT_COMPLETION_FLAGS none = DAT_COMPLETION_DEFAULT_FLAG;

	FAILS(dat_ep_post_send(of->ep, n, iov, cookie_of(1), none), DAT_PROTECTION_VIOLATION);
	FAILS(dat_ep_post_recv(of->ep, n, iov, cookie_of(1), none), DAT_PROTECTION_VIOLATION);
	FAILS(dat_ep_post_rdma_write(of->ep, n, iov, cookie_of(1), &remote, none),
	      DAT_PROTECTION_VIOLATION);
	FAILS(dat_ep_post_rdma_read(of->ep, n, iov, cookie_of(1), &remote, none),
	      DAT_PROTECTION_VIOLATION);
#if DAT_VERSION_MAJOR >= 2
	/* a fabric without invalidation refuses the call for that reason */
	FAILS(dat_ep_post_send_with_invalidate(of->ep, n, iov, cookie_of(1), none, DAT_FALSE, 0),
	      DAT_PROTECTION_VIOLATION);
#endif
}

static void segments_fail(const struct pz *of, const struct pz *other)
{
	const struct mem *const wrong[] = { &other->m, &other->derived };
	size_t i;

	for (i = 0; i < 2; i++) {
		DAT_LMR_TRIPLET iov[2] = {
			mem_segment(wrong[i], 0, 16),
			mem_segment(&of->m, 0, 16),
		};

		ops_fail(of, iov, 1);
		ops_fail(of, iov, 2);
		iov[1] = iov[0];
		iov[0] = mem_segment(&of->derived, 16, 16);
		ops_fail(of, iov, 2);
	}
}

/* Binds with an RMR, LMR and EP of which at least one is of a different PZ. */
static void binds_fail(int rmr, int lmr, int ep)
{
	DAT_RMR_CONTEXT none;

	FAILS(bind_part(pzs[rmr].rmr, &pzs[lmr].m, 0, PART, PRIV_BOTH, pzs[ep].ep, 1, &none),
	      DAT_PROTECTION_VIOLATION);
	FAILS(bind_part(pzs[rmr].rmr, &pzs[lmr].derived, 0, PART, PRIV_BOTH, pzs[ep].ep, 1, &none),
	      DAT_PROTECTION_VIOLATION);
}

#if DAT_VERSION_MAJOR >= 2
static void reads_fail(const struct pz *of, const struct pz *other)
{
	const DAT_RMR_TRIPLET remote = remote_segment(&of->grant[PLAIN], 0, 16);
	DAT_RMR_TRIPLET local;
	int kind;

	for (kind = 0; kind < N_KINDS; kind++) {
		local = remote_segment(&other->grant[kind], 0, 16);
		FAILS(dat_ep_post_rdma_read_to_rmr(of->ep, &local, cookie_of(1), &remote,
						   DAT_COMPLETION_DEFAULT_FLAG),
		      DAT_PROTECTION_VIOLATION);
	}
}
#endif

static void local_server(struct pair *p)
{
	int ep, lmr, rmr;

	pzs_open(p);
	for (ep = 0; ep < N_PZS; ep++)
		for (lmr = 0; lmr < N_PZS; lmr++) {
			if (ep != lmr) {
				segments_fail(&pzs[ep], &pzs[lmr]);
#if DAT_VERSION_MAJOR >= 2
				reads_fail(&pzs[ep], &pzs[lmr]);
#endif
				FAILS(unbind(pzs[lmr].rmr, &pzs[lmr].m, pzs[ep].ep, 1),
				      DAT_PROTECTION_VIOLATION);
			}
			for (rmr = 0; rmr < N_PZS; rmr++)
				if (ep != lmr || lmr != rmr)
					binds_fail(rmr, lmr, ep);
		}
	for (ep = 0; ep < N_PZS; ep++) {
		expect_quiet(pzs[ep].n->req);
		expect_quiet(pzs[ep].n->recv);
	}
	pair_sync(p);
	pzs_close(p);
}

/* The peer of the EPs of all PZs; its own objects are in one PZ. */
static void peers_open(struct pair *p, struct node *n, DAT_EP_HANDLE ep[N_PZS])
{
	int i;

	node_open(n);
	for (i = 0; i < N_PZS; i++)
		ep[i] = link_in(p, n, n->pz);
}

static void peers_close(struct pair *p, struct node *n, DAT_EP_HANDLE ep[N_PZS])
{
	int i;

	for (i = 0; i < N_PZS; i++) {
		pair_unlink(p, n, ep[i]);
		OK(dat_ep_free(ep[i]));
	}
	node_close(n);
}

static void local_client(struct pair *p)
{
	DAT_EP_HANDLE ep[N_PZS];
	struct node n;

	peers_open(p, &n, ep);
	pair_sync(p);
	peers_close(p, &n, ep);
}

/* Like expect_end(), but more events may follow. */
static void ended(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
}

/* Remote: a context is valid on connections of its PZ, and ends any other connection */

static void remote_server(struct pair *p)
{
	int i, j, kind, reads;
	DAT_EP_HANDLE ep;

	pzs_open(p);
	for (i = 0; i < N_PZS; i++)
		pair_send(p, pzs[i].grant, sizeof(pzs[i].grant));
	for (i = 0; i < N_PZS; i++)
		for (j = 0; j < N_PZS; j++)
			for (kind = 0; kind < N_KINDS * (i != j); kind++)
				for (reads = 0; reads < 2; reads++) {
					ep = link_in(p, pzs[i].n, pzs[i].handle);
					pair_sync(p);
					OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
					ended(pzs[i].n->conn, ep);
					OK(dat_ep_free(ep));
				}
	pair_sync(p);
	for (i = 0; i < N_PZS; i++) {
		/* the bytes come from the peer of this PZ alone */
		SAME(pzs[i].m.base[0], 0xb0 + i);
		SAME(pzs[i].m.base[PART - 1], 0xa0 + i);
	}
	pzs_close(p);
}

/* All operations succeed on a connection of the grant's PZ. */
static void use_own(struct node *n, DAT_EP_HANDLE ep, struct mem *m, const struct grant *g, int i)
{
	int kind;

	for (kind = 0; kind < N_KINDS; kind++) {
		post_read(ep, m, 16, 16, 1, &g[kind], 16);
		expect_dto(n->req, 1, DAT_DTO_SUCCESS, 16);
	}
	SAME(m->base[16], 0xa0 + i);
	m->base[0] = 0xb0 + i;
	post_write(ep, m, 0, 1, 2, &g[GRANTED], 0);
	expect_dto(n->req, 2, DAT_DTO_SUCCESS, 1);
}

/* After a successful operation the other grant is the only reason for the failure. */
static void try_other(struct pair *p, struct node *n, struct mem *m, const struct grant *right,
		      const struct grant *g, bool reads)
{
	DAT_EP_HANDLE ep = link_in(p, n, n->pz);
	DAT_EVENT event;

	post_read(ep, m, 0, 16, 3, right, 16);
	expect_dto(n->req, 3, DAT_DTO_SUCCESS, 16);
	memset(m->base, 0xcc, PART);
	if (reads)
		post_read(ep, m, 0, PART, 4, g, 0);
	else
		post_write(ep, m, 0, PART, 4, g, 0);
	expect_event(n->req, DAT_DTO_COMPLETION_EVENT, &event);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS,
	      "the context is of another PZ");
	ended(n->conn, ep);
	SAME(m->base[0], 0xcc);
	pair_sync(p); /* sockets may lose the end of a connection */
	OK(dat_ep_free(ep));
}

static void remote_client(struct pair *p)
{
	struct grant g[N_PZS][N_KINDS];
	DAT_EP_HANDLE ep[N_PZS];
	struct node n;
	struct mem m;
	int i, j, kind, reads;

	peers_open(p, &n, ep);
	mem_get(&n, &m, PART);
	for (i = 0; i < N_PZS; i++)
		pair_recv(p, g[i], sizeof(g[i]));
	for (i = 0; i < N_PZS; i++)
		use_own(&n, ep[i], &m, g[i], i);
	for (i = 0; i < N_PZS; i++)
		for (j = 0; j < N_PZS; j++)
			for (kind = 0; kind < N_KINDS * (i != j); kind++)
				for (reads = 0; reads < 2; reads++)
					try_other(p, &n, &m, &g[i][PLAIN], &g[j][kind], reads);
	expect_quiet(n.req);
	pair_sync(p);
	mem_put(&m);
	peers_close(p, &n, ep);
}

static const struct pair_case cases[] = {
	PAIR_CASE("local operations", local_server, local_client),
	PAIR_CASE("remote operations", remote_server, remote_client),
};

PAIR_MAIN(cases)
