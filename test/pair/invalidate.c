/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Additions of DAT 2.0 for RMRs, between two processes: sends that invalidate an RMR, reads into an
 * RMR.
 */

#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define PART 1024u
#define N 48u			/* RMRs, each bound to one part */

static DAT_DTO_COOKIE cookie_of(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

/* Skips the case if the fabric cannot carry an invalidation; both roles come to the same result. */
static void need_invalidate(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_RETURN ret =
		dat_ep_post_send_with_invalidate(ep, -1, NULL, cookie_of(0), 0, DAT_TRUE, 1);

	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
		pair_skip("this fabric has no invalidation");
}

static DAT_RETURN send_invalidate(DAT_EP_HANDLE ep, const struct mem *m, size_t length,
				  uint64_t cookie, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, length);

	return dat_ep_post_send_with_invalidate(ep, 1, &iov, cookie_of(cookie),
						DAT_COMPLETION_DEFAULT_FLAG, invalidate, context);
}

static void expect_recv(DAT_EVD_HANDLE evd, uint64_t cookie, uint64_t length, DAT_DTOS operation,
			DAT_RMR_CONTEXT context)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME(d->transfered_length, length);
	SAME(d->operation, operation);
	SAME(d->rmr_context, context);
}

static bool is_bound(DAT_RMR_HANDLE rmr)
{
	DAT_RMR_PARAM param;

	return dat_rmr_query(rmr, DAT_RMR_FIELD_LMR_TRIPLET, &param) == DAT_SUCCESS;
}

/* Binds the @i-th part of @m to @rmr, every third part zero-based where the IA supports that. */
static struct grant grant_part(struct node *n, DAT_EP_HANDLE ep, DAT_RMR_HANDLE rmr,
			       const struct mem *m, unsigned i)
{
	const DAT_LMR_TRIPLET part = mem_segment(m, i * PART, PART);
	const bool zero_based = i % 3 == 2 && n->attr.zb_supported;
	struct grant g = { .size = PART };

	g.address = zero_based ? 0 : part.virtual_address;
	OK(dat_rmr_bind(rmr, m->lmr, &part, PRIV_BOTH, zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA,
			ep, (DAT_RMR_COOKIE){ .as_64 = i }, DAT_COMPLETION_DEFAULT_FLAG,
			&g.rmr_context));
	expect_bind(n->req, rmr, i, DAT_DTO_SUCCESS);
	return g;
}

static DAT_RMR_HANDLE rmr_make(struct node *n, bool of_ep)
{
	DAT_RMR_HANDLE rmr;

	if (of_ep && n->prov.rmr_scope_supported != DAT_RMR_SCOPE_PZ)
		OK(dat_rmr_create_for_ep(n->pz, &rmr));
	else
		OK(dat_rmr_create(n->pz, &rmr));
	return rmr;
}

/* Each of many RMRs is used, then invalidated by a message */

static void many_server(struct pair *p)
{
	DAT_RMR_HANDLE rmr[N];
	struct grant g[N + 1];
	struct mem spare;
	struct link l;
	unsigned i;

	link_open(p, &l, (N + 1) * PART);
	need_invalidate(&l.n, l.ep);
	mem_get(&l.n, &spare, 8);
	for (i = 0; i < N; i++) {
		rmr[i] = rmr_make(&l.n, i & 1);
		g[i] = grant_part(&l.n, l.ep, rmr[i], &l.m, i);
		post_recv(l.ep, &spare, 0, 8, i);
	}
	post_recv(l.ep, &spare, 0, 8, N);
	pair_send(p, g, N * sizeof(g[0]));
	for (i = 0; i < N; i++) {
		expect_recv(l.n.recv, i, i % 9, DAT_DTO_RECEIVE_WITH_INVALIDATE, g[i].rmr_context);
		CHECK(!is_bound(rmr[i]), "still bound");
		verify(l.m.base + i * PART, PART, i);
	}
	expect_recv(l.n.recv, N, 8, DAT_DTO_RECEIVE, 0);
	/* no RMR holds its LMR now, and each may be bound again */
	g[0] = grant_part(&l.n, l.ep, rmr[0], &l.m, N);
	memset(l.m.base, 0xaa, l.m.size);
	pair_send(p, &g[0], sizeof(g[0]));
	expect_end(l.n.conn, l.ep);	/* the peer has used an RMR that was invalidated */
	pair_sync(p);
	verify(l.m.base + N * PART, PART, 99);
	for (i = 0; i < N * PART; i++)
		SAME(l.m.base[i], 0xaa);
	for (i = 1; i < N; i++)
		OK(dat_rmr_free(rmr[i]));
	FAILS(dat_lmr_free(l.m.lmr), DAT_INVALID_STATE);
	OK(dat_rmr_free(rmr[0]));
	OK(dat_ep_free(l.ep));
	mem_put(&spare);
	mem_put(&l.m);
	node_close(&l.n);
}

static void many_client(struct pair *p)
{
	struct grant g[N], again;
	struct link l;
	unsigned i;

	link_open(p, &l, PART);
	need_invalidate(&l.n, l.ep);
	pair_recv(p, g, sizeof(g));
	for (i = 0; i < N; i++) {
		fill(l.m.base, PART, i);
		post_write(l.ep, &l.m, 0, PART, i, &g[i], 0);
		OK(send_invalidate(l.ep, &l.m, i % 9, 100 + i, DAT_TRUE, g[i].rmr_context));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, PART);
		expect_dto(l.n.req, 100 + i, DAT_DTO_SUCCESS, i % 9);
	}
	OK(send_invalidate(l.ep, &l.m, 8, 200, DAT_FALSE, 0xdead));
	expect_dto(l.n.req, 200, DAT_DTO_SUCCESS, 8);
	pair_granted(p, &again);
	fill(l.m.base, PART, 99);
	post_write(l.ep, &l.m, 0, PART, 201, &again, 0);
	expect_dto(l.n.req, 201, DAT_DTO_SUCCESS, PART);
	post_write(l.ep, &l.m, 0, PART, 202, &g[N / 2], 0);
	expect_refused(&l.n, l.ep, 202, "written through an invalidated context");
	pair_sync(p);
	link_free(&l);
}

/* An RMR that the sender may not invalidate stays bound, and the connection breaks */

enum fault { UNKNOWN, NOTHING, AN_LMR, OTHER_PZ, OTHER_EP, TWICE, N_FAULTS };

static const char *const fault_names[N_FAULTS] = {
	"unknown", "zero", "an LMR's", "of another PZ", "of another EP", "already invalidated",
};

static void wrong_server(struct pair *p)
{
	DAT_RMR_HANDLE elsewhere, of_ep, rmr;
	struct mem m, other, spare;
	DAT_RMR_CONTEXT bad;
	DAT_EP_HANDLE good, far, ep;
	DAT_PZ_HANDLE pz;
	struct node n;
	struct grant g;
	int fault;

	node_open(&n);
	OK(dat_pz_create(n.ia, &pz));
	mem_get(&n, &m, 3 * PART);
	mem_get_with(&n, pz, &other, PART, DAT_MEM_PRIV_ALL_FLAG);
	mem_get(&n, &spare, 8);
	good = link_in(p, &n, n.pz);
	far = link_in(p, &n, pz);
	need_invalidate(&n, good);
	OK(dat_rmr_create(pz, &elsewhere));
	of_ep = rmr_make(&n, true);
	OK(dat_rmr_create(n.pz, &rmr));
	for (fault = 0; fault < N_FAULTS; fault++) {
		bad = fault == AN_LMR ? m.rmr_context : fault == NOTHING ? 0 : 0x12345;
		if (fault == OTHER_PZ)
			OK(bind_part(elsewhere, &other, 0, PART, PRIV_BOTH, far, 1, &bad));
		if (fault == OTHER_EP && n.prov.rmr_scope_supported != DAT_RMR_SCOPE_PZ)
			OK(bind_part(of_ep, &m, 0, PART, PRIV_BOTH, good, 1, &bad));
		if (bad != m.rmr_context && bad && bad != 0x12345)
			expect_bind(n.req, fault == OTHER_PZ ? elsewhere : of_ep, 1,
				    DAT_DTO_SUCCESS);
		ep = node_ep(&n, NULL);
		post_recv(ep, &spare, 0, 8, 1);
		post_recv(ep, &spare, 0, 8, 2);
		pair_link(p, &n, ep);
		g = grant_part(&n, ep, rmr, &m, 1);
		if (fault == TWICE)
			bad = g.rmr_context;
		pair_send(p, &g, sizeof(g));
		pair_send(p, &bad, sizeof(bad));
		if (fault == TWICE)
			expect_recv(n.recv, 1, 8, DAT_DTO_RECEIVE_WITH_INVALIDATE, bad);
		expect_dto(n.recv, 1 + (fault == TWICE), DAT_DTO_ERR_LOCAL_PROTECTION, 0);
		if (fault != TWICE)
			expect_dto(n.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
		SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_BROKEN);
		SAME(is_bound(rmr), fault != TWICE);
		SAME(is_bound(elsewhere), fault >= OTHER_PZ);
		OK(dat_ep_free(ep));
	}
	pair_unlink(p, &n, good);
	pair_unlink(p, &n, far);
	OK(dat_rmr_free(rmr));
	OK(dat_rmr_free(of_ep));
	OK(dat_rmr_free(elsewhere));
	OK(dat_ep_free(good));
	OK(dat_ep_free(far));
	mem_put(&spare);
	mem_put(&other);
	mem_put(&m);
	OK(dat_pz_free(pz));
	node_close(&n);
}

/* The peer may have ended the connection before the completion of the send was reported. */
static void expect_sent(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event;

	expect_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

static void wrong_client(struct pair *p)
{
	DAT_EP_HANDLE good, far, ep;
	DAT_RMR_CONTEXT bad;
	struct node n;
	struct grant g;
	int fault;

	node_open(&n);
	mem_get(&n, &n.m, PART);
	good = link_in(p, &n, n.pz);
	far = link_in(p, &n, n.pz);
	need_invalidate(&n, good);
	for (fault = 0; fault < N_FAULTS; fault++) {
		ep = link_in(p, &n, n.pz);
		pair_granted(p, &g);
		pair_recv(p, &bad, sizeof(bad));
		post_read(ep, &n.m, 0, 64, 1, &g, 0);
		expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
		if (fault == TWICE) {
			OK(send_invalidate(ep, &n.m, 8, 2, DAT_TRUE, bad));
			expect_dto(n.req, 2, DAT_DTO_SUCCESS, 8);
		}
		OK(send_invalidate(ep, &n.m, 8, 3, DAT_TRUE, bad));
		expect_sent(n.req, 3);
		CHECK(expect_end(n.conn, ep), "%s", fault_names[fault]);
		OK(dat_ep_free(ep));
	}
	pair_unlink(p, &n, good);
	pair_unlink(p, &n, far);
	OK(dat_ep_free(good));
	OK(dat_ep_free(far));
	node_end(&n);
}

/* Reads into RMRs: of both scopes, with both origins of addresses, directly after the bind */

static DAT_RETURN read_into(DAT_EP_HANDLE ep, struct grant to, size_t length, uint64_t cookie,
			    const struct grant *from, int flags)
{
	const DAT_RMR_TRIPLET local = remote_segment(&to, 0, length);
	const DAT_RMR_TRIPLET remote = remote_segment(from, 0, length);

	return dat_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(cookie), &remote,
					    (DAT_COMPLETION_FLAGS)flags);
}

/*
 * The fence delays the unbind until the first read has ended, usually after the second one is
 * posted.
 */
static void unbind_before_read(struct link *l, DAT_RMR_HANDLE rmr, struct grant g)
{
	DAT_RMR_CONTEXT none;
	DAT_RETURN ret;

	post_read(l->ep, &l->m, PART, PART, 3, &l->theirs, 0);
	OK(bind_flags(rmr, &l->m, mem_segment(&l->m, 0, 0), DAT_MEM_PRIV_NONE_FLAG, l->ep, 4,
		      DAT_COMPLETION_BARRIER_FENCE_FLAG, &none));
	ret = read_into(l->ep, g, PART, 5, &l->theirs, 0);
	expect_dto(l->n.req, 3, DAT_DTO_SUCCESS, PART);
	expect_bind(l->n.req, rmr, 4, DAT_DTO_SUCCESS);
	if (ret) {
		FAILS(ret, DAT_PROTECTION_VIOLATION);
		OK(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_end(l->n.conn, l->ep);
		return;
	}
	expect_dto(l->n.req, 5, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	SAME(expect_end(l->n.conn, l->ep), DAT_CONNECTION_EVENT_BROKEN);
}

static void into_reader(struct pair *p)
{
	struct grant g = { .address = 0 };
	DAT_RMR_HANDLE rmr;
	struct link l;
	unsigned i;

	link_open(p, &l, 4 * PART);
	for (i = 0; i < 12; i++) {
		unsigned char *at = l.m.base + i % 4 * PART;

		rmr = rmr_make(&l.n, i & 1);
		memset(at, 0, PART);
		if (i < 6) {
			g = grant_part(&l.n, l.ep, rmr, &l.m, i % 4);
		} else {
			g.address = (uintptr_t)at;
			OK(bind_flags(rmr, &l.m, mem_segment(&l.m, i % 4 * PART, PART), PRIV_WRITE,
				      l.ep, 0, DAT_COMPLETION_SUPPRESS_FLAG, &g.rmr_context));
		}
		OK(read_into(l.ep, g, PART, i, &l.theirs, DAT_COMPLETION_BARRIER_FENCE_FLAG));
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, PART);
		verify(at, PART, 7);
		OK(dat_rmr_free(rmr));
		FAILS(read_into(l.ep, g, PART, i, &l.theirs, 0), DAT_PROTECTION_VIOLATION);
	}
	/* privileges, bounds, contexts of the peer and of an LMR, a flag, NULL */
	rmr = rmr_make(&l.n, false);
	OK(bind_part(rmr, &l.m, 0, PART, PRIV_READ, l.ep, 1, &g.rmr_context));
	expect_bind(l.n.req, rmr, 1, DAT_DTO_SUCCESS);
	g.address = (uintptr_t)l.m.base;
	FAILS(read_into(l.ep, g, PART, 2, &l.theirs, 0), DAT_PRIVILEGES_VIOLATION);
	OK(bind_part(rmr, &l.m, 0, PART, PRIV_BOTH, l.ep, 1, &g.rmr_context));
	expect_bind(l.n.req, rmr, 1, DAT_DTO_SUCCESS);
	FAILS(read_into(l.ep, g, PART + 1, 2, &l.theirs, 0), DAT_PROTECTION_VIOLATION);
	FAILS(read_into(l.ep, l.theirs, PART, 2, &l.theirs, 0), DAT_PROTECTION_VIOLATION);
	FAILS(read_into(l.ep, (struct grant){ 0, PART, l.m.rmr_context }, PART, 2, &l.theirs, 0),
	      DAT_PROTECTION_VIOLATION);
	FAILS(read_into(l.ep, g, PART, 2, &l.theirs, DAT_COMPLETION_UNSIGNALLED_FLAG),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_rdma_read_to_rmr(l.ep, NULL, cookie_of(2), NULL, 0),
	      DAT_INVALID_PARAMETER);
	unbind_before_read(&l, rmr, g);
	expect_quiet(l.n.req);
	OK(dat_rmr_free(rmr));
	link_free(&l);
}

static void into_owner(struct pair *p)
{
	struct node n;
	struct grant theirs;

	node_open(&n);
	mem_get(&n, &n.m, PART);
	fill(n.m.base, PART, 7);
	n.ep = node_ep(&n, NULL);
	pair_link(p, &n, n.ep);
	pair_grant(p, &n.m);
	pair_granted(p, &theirs);
	expect_end(n.conn, n.ep);
	verify(n.m.base, PART, 7);
	node_end(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("messages invalidate grants", many_server, many_client),
	PAIR_CASE("grants that the sender must not invalidate", wrong_server, wrong_client),
	PAIR_CASE("reads into RMRs", into_owner, into_reader),
};

int main(int argc, char **argv)
{
	setenv("DAT_OFI_STRICT", "1", 1);	/* flags that DAT forbids are refused */
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
