/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion flags: which completions are events, which events wake a waiter, which requests
 * wait.
 */

#include "conform.h"

#include <stdio.h>
#include <string.h>

CHAPTER("flags");

#define HALF (COUPLE_MEMORY / 2)

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RETURN send_with(DAT_EP_HANDLE ep, const struct mem *m, uint64_t cookie, unsigned flags)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, 8);

	return dat_ep_post_send(ep, 1, &iov, cookie_of(cookie), (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN write_with(DAT_EP_HANDLE ep, const struct mem *m, uint64_t cookie, unsigned flags)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, 8);
	DAT_RMR_TRIPLET remote = mem_remote(m, HALF, 8);

	return dat_ep_post_rdma_write(ep, 1, &iov, cookie_of(cookie), &remote,
				      (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN read_with(DAT_EP_HANDLE ep, const struct mem *m, uint64_t cookie, unsigned flags)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 64, 8);
	DAT_RMR_TRIPLET remote = mem_remote(m, HALF, 8);

	return dat_ep_post_rdma_read(ep, 1, &iov, cookie_of(cookie), &remote,
				     (DAT_COMPLETION_FLAGS)flags);
}

static const struct kind {
	const char *name;
	DAT_RETURN (*post)(DAT_EP_HANDLE ep, const struct mem *m, uint64_t cookie, unsigned flags);
} kinds[] = {
	{ "dat_ep_post_send", send_with },
	{ "dat_ep_post_rdma_write", write_with },
	{ "dat_ep_post_rdma_read", read_with },
};

static void receives(struct couple *c, const struct kind *k, unsigned number)
{
	while (k->post == send_with && number--)
		post_recv(c->b.ep, &c->m, HALF + 64, 64, number);
}

/* A couple with these completion flags. */
static void couple_of(struct node *n, struct couple *c, DAT_COMPLETION_FLAGS recv,
		      DAT_COMPLETION_FLAGS request, DAT_COUNT depth)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	attr.max_request_dtos = depth;
	couple_make(n, c, &attr, &attr);
	couple_connect(n, c);
}

/* SUPPRESS: no event for a success, but the slot is released */

static void name_suppressed(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/suppressed", kinds[i].name);
}

#define DEPTH 4

/* Posts until the queue accepts it: earlier requests must retire without any event to wait for. */
static void post_at_last(struct couple *c, const struct kind *k, uint64_t cookie, unsigned flags)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;
	DAT_RETURN ret;

	while (DAT_GET_TYPE(ret = k->post(c->a.ep, &c->m, cookie, flags)) ==
	       DAT_INSUFFICIENT_RESOURCES) {
		CHECK(pair_now() < deadline, "the request queue stays full");
		CHECK(dat_evd_dequeue(c->a.req, &event) != DAT_SUCCESS,
		      "an event reports a success");
	}
	OK(ret);
}

FAMILY(COUNT(kinds), name_suppressed)
{
	struct couple c;
	uint64_t k;

	couple_of(n, &c, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, DEPTH);
	receives(&c, &kinds[i], 5 * DEPTH + 1);
	for (k = 0; k < 5 * DEPTH; k++)
		post_at_last(&c, &kinds[i], k, DAT_COMPLETION_SUPPRESS_FLAG);
	post_at_last(&c, &kinds[i], 999, DAT_COMPLETION_DEFAULT_FLAG);
	expect_dto(c.a.req, 999, DAT_DTO_SUCCESS, 8);
	SAME(drain(c.a.req), 0);
}

/* Posted after the connection has ended. */
COUPLED("dat_ep_post_send/SUCCESS/suppressed, but reported when flushed")
{
	couple_disconnect(c, &c->a);
	OK(send_with(c->a.ep, &c->m, 5, DAT_COMPLETION_SUPPRESS_FLAG));
	expect_dto(c->a.req, 5, DAT_DTO_ERR_FLUSHED, 0);
}

COUPLED("dat_ep_post_rdma_write/SUCCESS/suppressed, but reported when failed")
{
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;

	iov = mem_segment(&c->m, 0, 8);
	remote = mem_remote(&c->m, HALF, 8);
	remote.rmr_context ^= 0x5a5a5a5a;
	OK(dat_ep_post_rdma_write(c->a.ep, 1, &iov, cookie_of(6), &remote,
				  DAT_COMPLETION_SUPPRESS_FLAG));
	expect_event(c->a.req, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 6);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS, "it succeeded");
}

/* UNSIGNALLED: an event that wakes no waiter */

static void name_unsignalled(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/unsignalled", kinds[i].name);
}

FAMILY(COUNT(kinds), name_unsignalled)
{
	struct couple c;

	couple_of(n, &c, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, DEPTH);
	receives(&c, &kinds[i], 2);
	OK(kinds[i].post(c.a.ep, &c.m, 1, DAT_COMPLETION_UNSIGNALLED_FLAG));
	OK(kinds[i].post(c.a.ep, &c.m, 2, DAT_COMPLETION_DEFAULT_FLAG));
	/* both completions are events, in order */
	expect_dto(c.a.req, 1, DAT_DTO_SUCCESS, 8);
	expect_dto(c.a.req, 2, DAT_DTO_SUCCESS, 8);
}

CLAUSE("dat_ep_post_recv/SUCCESS/unsignalled receives wake no waiter")
{
	struct waiter w;
	struct couple c;

	couple_of(n, &c, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG, DEPTH);
	OK(dat_ep_post_recv(c.b.ep, 0, NULL, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	OK(dat_ep_post_recv(c.b.ep, 0, NULL, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	evd_waiter_start(&w, c.b.recv, 1);
	OK(dat_ep_post_send(c.a.ep, 0, NULL, cookie_of(3), DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c.a.req, 3, DAT_DTO_SUCCESS, 0);
	CHECK(!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), "woken by the first message");
	OK(dat_ep_post_send(c.a.ep, 0, NULL, cookie_of(4), DAT_COMPLETION_DEFAULT_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	SAME(w.more, 1);
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 0);
}

/* An error wakes the waiter, whatever the flags. */
CLAUSE("dat_ep_post_recv/SUCCESS/a flushed unsignalled receive wakes a waiter")
{
	struct waiter w;
	struct couple c;

	couple_of(n, &c, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG, DEPTH);
	OK(dat_ep_post_recv(c.b.ep, 0, NULL, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	evd_waiter_start(&w, c.b.recv, 1);
	OK(dat_ep_disconnect(c.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	SAME(w.event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* SOLICITED_WAIT: the sender decides whether the receive wakes a waiter */

CLAUSE("dat_ep_post_send/SUCCESS/only a solicited send wakes a waiter")
{
	struct waiter w;
	struct couple c;

	if (!(n->prov.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
		skip("completion_flags_supported is %#x", n->prov.completion_flags_supported);
	couple_of(n, &c, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, DEPTH);
	post_recv(c.b.ep, &c.m, HALF, 8, 1);
	post_recv(c.b.ep, &c.m, HALF, 8, 2);
	evd_waiter_start(&w, c.b.recv, 1);
	OK(send_with(c.a.ep, &c.m, 3, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c.a.req, 3, DAT_DTO_SUCCESS, 8);
	CHECK(!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), "woken by the first message");
	OK(send_with(c.a.ep, &c.m, 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	SAME(w.more, 1);
}

/* All completions of an EVD notify in one way, unless the provider accepts more than DAT */

static DAT_RETURN create_of(struct node *n, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE req,
			    DAT_EVD_HANDLE conn, DAT_COMPLETION_FLAGS recv_flags,
			    DAT_COMPLETION_FLAGS request_flags, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.recv_completion_flags = recv_flags;
	attr.request_completion_flags = request_flags;
	return dat_ep_create(n->ia, n->pz, recv, req, conn, &attr, ep);
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/an EVD for receives and requests with different flags")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	FAILS(create_of(n, evd, evd, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
			DAT_COMPLETION_DEFAULT_FLAG, &ep), DAT_INVALID_PARAMETER);
	OK(create_of(n, evd, evd, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
		     DAT_COMPLETION_UNSIGNALLED_FLAG, &ep));
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/an EVD for two EPs with different flags")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep, other;

	needs_strict(n, true);
	OK(create_of(n, evd, DAT_HANDLE_NULL, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &ep));
	FAILS(create_of(n, evd, DAT_HANDLE_NULL, n->conn, DAT_COMPLETION_DEFAULT_FLAG,
			DAT_COMPLETION_DEFAULT_FLAG, &other), DAT_INVALID_PARAMETER);
	OK(dat_ep_free(ep));
	OK(create_of(n, evd, DAT_HANDLE_NULL, n->conn, DAT_COMPLETION_DEFAULT_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &other));
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/an EVD for connections and unsignalled receives")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	FAILS(create_of(n, evd, n->req, evd, DAT_COMPLETION_UNSIGNALLED_FLAG,
			DAT_COMPLETION_DEFAULT_FLAG, &ep), DAT_INVALID_PARAMETER);
	OK(create_of(n, evd, n->req, evd, DAT_COMPLETION_DEFAULT_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &ep));
}

CLAUSE("dat_ep_create/INVALID_PARAMETER/unsignalled receives in an EVD for software events")
{
	DAT_EVD_HANDLE evd =
		node_evd(n, 8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG));
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	FAILS(create_of(n, evd, n->req, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
			DAT_COMPLETION_DEFAULT_FLAG, &ep),
	      DAT_INVALID_PARAMETER);
	OK(create_of(n, evd, n->req, n->conn, DAT_COMPLETION_DEFAULT_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &ep));
}

/* The asynchronous EVD of another IA. */
CLAUSE("dat_ep_create/INVALID_PARAMETER/unsignalled receives in an asynchronous EVD")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_ASYNC_FLAG)),
		       given = evd;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;

	needs_strict(n, true);
	OK(dat_ia_open((DAT_NAME_PTR)(uintptr_t)pair_ia_name(), 8, &given, &ia));
	FAILS(create_of(n, evd, n->req, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
			DAT_COMPLETION_DEFAULT_FLAG, &ep),
	      DAT_INVALID_PARAMETER);
	OK(create_of(n, evd, n->req, n->conn, DAT_COMPLETION_DEFAULT_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &ep));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

CLAUSE("dat_ia_open/INVALID_PARAMETER/an EVD with unsignalled completions")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_ASYNC_FLAG)),
		       given = evd;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;

	needs_strict(n, true);
	OK(create_of(n, evd, n->req, n->conn, DAT_COMPLETION_UNSIGNALLED_FLAG,
		     DAT_COMPLETION_DEFAULT_FLAG, &ep));
	FAILS(dat_ia_open((DAT_NAME_PTR)(uintptr_t)pair_ia_name(), 8, &given, &ia),
	      DAT_INVALID_PARAMETER);
	OK(dat_ep_free(ep));
	OK(dat_ia_open((DAT_NAME_PTR)(uintptr_t)pair_ia_name(), 8, &given, &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/an EVD for receives and requests with different flags")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	OK(create_of(n, evd, evd, n->conn, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG,
		     &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	FAILS(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param),
	      DAT_INVALID_PARAMETER);
}

/* Where the provider accepts more than DAT, each stream of an EVD notifies by its own flags. */

CLAUSE("dat_ep_create/SUCCESS/an EVD for unsignalled requests and receives that notify")
{
	DAT_EVENT event;
	struct waiter w;
	struct couple c;
	DAT_EP_ATTR attr;

	needs_strict(n, false);
	couple_make(n, &c, NULL, NULL);
	node_ep_attr(n, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	OK(dat_ep_free(c.a.ep));
	c.a.recv = c.a.req;
	OK(dat_ep_create(n->ia, n->pz, c.a.req, c.a.req, c.a.conn, &attr, &c.a.ep));
	couple_connect(n, &c);
	post_recv(c.a.ep, &c.m, 0, 8, 1);
	post_recv(c.b.ep, &c.m, HALF, 8, 2);
	evd_waiter_start(&w, c.a.req, 1);
	OK(send_with(c.a.ep, &c.m, 3, DAT_COMPLETION_UNSIGNALLED_FLAG));
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 8);
	CHECK(!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), "woken by the request");
	OK(send_with(c.b.ep, &c.m, 4, DAT_COMPLETION_DEFAULT_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 3);
	expect_event(c.a.req, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
}

/* The waiter would otherwise sleep on if the last event did not notify. */
CLAUSE("dat_evd_wait/SUCCESS/all events count for a threshold")
{
	DAT_EP_ATTR attr;
	struct waiter w;
	struct couple c;

	needs_strict(n, false);
	node_ep_attr(n, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	couple_make(n, &c, &attr, NULL);
	couple_connect(n, &c);
	post_recv(c.b.ep, &c.m, HALF, 8, 1);
	post_recv(c.b.ep, &c.m, HALF, 8, 2);
	evd_waiter_start(&w, c.a.req, 2);
	OK(send_with(c.a.ep, &c.m, 3, DAT_COMPLETION_UNSIGNALLED_FLAG));
	OK(send_with(c.a.ep, &c.m, 4, DAT_COMPLETION_UNSIGNALLED_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	SAME(w.more, 1);
	expect_dto(c.a.req, 4, DAT_DTO_SUCCESS, 8);
}

CLAUSE("dat_ep_post_send/SUCCESS/unsignalled on an EP whose requests notify")
{
	struct waiter w;
	struct couple c;

	needs_strict(n, false);
	couple_open(n, &c);
	OK(dat_ep_post_recv(c.b.ep, 0, NULL, cookie_of(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	evd_waiter_start(&w, c.b.recv, 1);
	OK(dat_ep_post_send(c.a.ep, 0, NULL, cookie_of(2), DAT_COMPLETION_UNSIGNALLED_FLAG));
	waiter_expect(&w, DAT_SUCCESS);
	expect_dto(c.a.req, 2, DAT_DTO_SUCCESS, 0);
}

static const DAT_COMPLETION_FLAGS of_requests[] = {
	DAT_COMPLETION_SUPPRESS_FLAG,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG,
	DAT_COMPLETION_BARRIER_FENCE_FLAG,
};

static void name_of_requests(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_create/SUCCESS/flags %#x, which each request has of its own",
		 of_requests[i]);
}

/* Requests have their own flags, so the default has no effect on them. */
FAMILY(COUNT(of_requests), name_of_requests)
{
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct couple c;

	if (of_requests[i] != DAT_COMPLETION_SUPPRESS_FLAG)
		needs_strict(n, false);
	node_ep_attr(n, &attr);
	attr.request_completion_flags = of_requests[i];
	couple_make(n, &c, &attr, NULL);
	couple_connect(n, &c);
	OK(dat_ep_query(c.a.ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_attr.request_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
	post_recv(c.b.ep, &c.m, HALF, 8, 1);
	post_recv(c.b.ep, &c.m, HALF, 8, 2);
	OK(send_with(c.a.ep, &c.m, 3, DAT_COMPLETION_SUPPRESS_FLAG));
	OK(send_with(c.a.ep, &c.m, 4, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 8);
	expect_dto(c.b.recv, 2, DAT_DTO_SUCCESS, 8);
	expect_dto(c.a.req, 4, DAT_DTO_SUCCESS, 8);
}

/* Flags that are valid for every request */

static void name_flagged(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/%s", kinds[i / 2].name, i % 2 ? "fenced" : "solicited");
}

FAMILY(2 * COUNT(kinds), name_flagged)
{
	unsigned flags = i % 2 ? DAT_COMPLETION_BARRIER_FENCE_FLAG :
				 DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	const struct kind *k = &kinds[i / 2];
	struct couple c;

	couple_open(n, &c);
	receives(&c, k, 1);
	OK(k->post(c.a.ep, &c.m, 1, flags));
	expect_dto(c.a.req, 1, DAT_DTO_SUCCESS, 8);
	if (k->post == send_with)
		expect_dto(c.b.recv, 0, DAT_DTO_SUCCESS, 8);
}

#define ROUNDS 20

/* The bytes that were read are sent back: the fence keeps the send behind the read. */
COUPLED("dat_ep_post_send/SUCCESS/a fence waits for reads")
{
	DAT_LMR_TRIPLET iov;
	unsigned k;

	for (k = 0; k < ROUNDS; k++) {
		DAT_RMR_TRIPLET remote = mem_remote(&c->m, HALF, 4096);

		fill(c->m.base + HALF, 4096, k);
		post_recv(c->b.ep, &c->m, HALF + 8192, 4096, 1);
		iov = mem_segment(&c->m, 0, 4096);
		OK(dat_ep_post_rdma_read(c->a.ep, 1, &iov, cookie_of(2), &remote,
					 DAT_COMPLETION_SUPPRESS_FLAG));
		OK(dat_ep_post_send(c->a.ep, 1, &iov, cookie_of(3),
				    DAT_COMPLETION_BARRIER_FENCE_FLAG));
		expect_dto(c->b.recv, 1, DAT_DTO_SUCCESS, 4096);
		verify(c->m.base + HALF + 8192, 4096, k);
		expect_dto(c->a.req, 3, DAT_DTO_SUCCESS, 4096);
	}
}

#if DAT_VERSION_MAJOR >= 2
static void name_invalidate_fence(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/fenced after invalidations", kinds[i].name);
}

FAMILY(COUNT(kinds), name_invalidate_fence)
{
	struct couple c;

	couple_open(n, &c);
	receives(&c, &kinds[i], 1);
	OK(kinds[i].post(c.a.ep, &c.m, 1, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	expect_dto(c.a.req, 1, DAT_DTO_SUCCESS, 8);
}
#endif
