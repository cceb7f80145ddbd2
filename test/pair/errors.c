/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations that must fail: refused when posted, or completed with an error that ends the
 * connection.
 */

#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define KIB 1024u

static const DAT_DTO_COOKIE no_cookie;

/* Refused when posted */

/* Objects for posts that must be refused. */
struct fixture {
	struct node n;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	struct mem m;			/* with all privileges */
	struct mem read_only;		/* without local write */
	struct mem other_pz;
	DAT_PZ_HANDLE pz;		/* the PZ of other_pz */
	struct grant theirs;
};

static void fixture_open(struct pair *p, struct fixture *b)
{
	node_open(&b->n);
	node_ep_attr(&b->n, &b->attr);
	b->attr.max_recv_dtos = b->attr.max_request_dtos = 8;
	b->ep = node_ep(&b->n, &b->attr);
	OK(dat_pz_create(b->n.ia, &b->pz));
	mem_get(&b->n, &b->m, 4 * KIB);
	mem_get_with(&b->n, b->n.pz, &b->read_only, 4 * KIB, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	mem_get_with(&b->n, b->pz, &b->other_pz, 4 * KIB, DAT_MEM_PRIV_ALL_FLAG);
	pair_link(p, &b->n, b->ep);
	pair_grant(p, &b->m);
	pair_granted(p, &b->theirs);
}

static void fixture_close(struct pair *p, struct fixture *b)
{
	pair_unlink(p, &b->n, b->ep);
	expect_quiet(b->n.req);
	expect_quiet(b->n.recv);
	OK(dat_ep_free(b->ep));
	mem_put(&b->m);
	mem_put(&b->read_only);
	mem_put(&b->other_pz);
	OK(dat_pz_free(b->pz));
	node_close(&b->n);
}

typedef DAT_RETURN (*post)(struct fixture *b, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   DAT_COMPLETION_FLAGS flags);

static DAT_RETURN try_send(struct fixture *b, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   DAT_COMPLETION_FLAGS flags)
{
	return dat_ep_post_send(b->ep, n, iov, no_cookie, flags);
}

static DAT_RETURN try_recv(struct fixture *b, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   DAT_COMPLETION_FLAGS flags)
{
	return dat_ep_post_recv(b->ep, n, iov, no_cookie, flags);
}

static DAT_RETURN try_write(struct fixture *b, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = remote_segment(&b->theirs, 0, 4 * KIB);

	return dat_ep_post_rdma_write(b->ep, n, iov, no_cookie, &remote, flags);
}

static DAT_RETURN try_read(struct fixture *b, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = remote_segment(&b->theirs, 0, 4 * KIB);

	return dat_ep_post_rdma_read(b->ep, n, iov, no_cookie, &remote, flags);
}

/* Each kind of operation, with the privilege that its local memory needs. */
static const struct kind {
	const char *name;
	post post;
	bool writes;		/* to local memory */
	bool may_suppress;
} kinds[] = {
	{ "send", try_send, false, true },
	{ "recv", try_recv, true, false },
	{ "write", try_write, false, true },
	{ "read", try_read, true, true },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static DAT_COUNT max_segments(const struct fixture *b, const struct kind *k)
{
	if (k->post == try_send)
		return b->attr.max_request_iov;
	if (k->post == try_recv)
		return b->attr.max_recv_iov;
	return k->post == try_write ? b->attr.max_rdma_write_iov : b->attr.max_rdma_read_iov;
}

static void refused(struct fixture *b, const struct kind *k, const char *why, DAT_COUNT n,
		    DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags, DAT_RETURN type)
{
	DAT_RETURN ret = k->post(b, n, iov, flags);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	CHECK(DAT_GET_TYPE(ret) == DAT_GET_TYPE(type), "%s, %s: %#x instead of type %#x",
	      k->name, why, ret, type);
	OK(dat_ep_get_status(b->ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "%s, %s: an operation was posted", k->name, why);
	SAME(state, DAT_EP_STATE_CONNECTED);
}

static void refused_segment(struct fixture *b, const struct kind *k, const char *why,
			    DAT_LMR_TRIPLET segment, DAT_RETURN type)
{
	DAT_LMR_TRIPLET good_first[2] = { mem_segment(&b->m, 0, 8), segment };

	refused(b, k, why, 1, &segment, DAT_COMPLETION_DEFAULT_FLAG, type);
	refused(b, k, why, 2, good_first, DAT_COMPLETION_DEFAULT_FLAG, type);
}

static void refuse_contexts(struct fixture *b, const struct kind *k)
{
	DAT_LMR_TRIPLET iov = mem_segment(&b->m, 0, 64);
	struct mem freed;
	unsigned bit;

	for (bit = 0; bit < 32; bit++) {
		iov.lmr_context = b->m.lmr_context ^ (1u << bit);
		if (iov.lmr_context != b->read_only.lmr_context &&
		    iov.lmr_context != b->other_pz.lmr_context)
			refused_segment(b, k, "unknown context", iov, DAT_PROTECTION_VIOLATION);
	}
	iov.lmr_context = 0;
	refused_segment(b, k, "context 0", iov, DAT_PROTECTION_VIOLATION);
	iov.lmr_context = ~0u;
	refused_segment(b, k, "context ~0", iov, DAT_PROTECTION_VIOLATION);
	mem_get(&b->n, &freed, 4 * KIB);
	iov = mem_segment(&freed, 0, 64);
	mem_put(&freed);
	refused_segment(b, k, "freed LMR", iov, DAT_PROTECTION_VIOLATION);
}

static void refuse_ranges(struct fixture *b, const struct kind *k)
{
	DAT_LMR_TRIPLET iov;

	refused_segment(b, k, "past the end", mem_segment(&b->m, 4 * KIB - 63, 64),
			DAT_INVALID_PARAMETER);
	refused_segment(b, k, "far past the end", mem_segment(&b->m, 1 << 30, 64),
			DAT_INVALID_PARAMETER);
	iov = mem_segment(&b->m, 0, 64);
	iov.virtual_address--;
	refused_segment(b, k, "before the start", iov, DAT_INVALID_PARAMETER);
	iov.virtual_address = UINT64_MAX - 32;
	refused_segment(b, k, "address wraps around", iov, DAT_INVALID_PARAMETER);
	iov = mem_segment(&b->m, 64, UINT32_MAX);
	refused_segment(b, k, "huge length", iov, DAT_INVALID_PARAMETER);
}

static void refuse_counts(struct fixture *b, const struct kind *k)
{
	DAT_COUNT i, max = max_segments(b, k);
	DAT_LMR_TRIPLET iov[64 + 1];

	CHECK(max < 64, "%d", max);
	for (i = 0; i <= max; i++)
		iov[i] = mem_segment(&b->m, 0, 8);
	refused(b, k, "too many segments", max + 1, iov, DAT_COMPLETION_DEFAULT_FLAG,
		DAT_INVALID_PARAMETER);
	refused(b, k, "-1 segments", -1, iov, DAT_COMPLETION_DEFAULT_FLAG, DAT_INVALID_PARAMETER);
	refused(b, k, "no segment list", 1, NULL, DAT_COMPLETION_DEFAULT_FLAG,
		DAT_INVALID_PARAMETER);
}

static void refuse_flags(struct fixture *b, const struct kind *k)
{
	DAT_LMR_TRIPLET iov = mem_segment(&b->m, 0, 8);

	refused(b, k, "UNSIGNALLED", 1, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_INVALID_PARAMETER);
	refused(b, k, "unknown flag", 1, &iov, (DAT_COMPLETION_FLAGS)0x100, DAT_INVALID_PARAMETER);
	if (!k->may_suppress) {
		refused(b, k, "SUPPRESS", 1, &iov, DAT_COMPLETION_SUPPRESS_FLAG,
			DAT_INVALID_PARAMETER);
		refused(b, k, "FENCE", 1, &iov, DAT_COMPLETION_BARRIER_FENCE_FLAG,
			DAT_INVALID_PARAMETER);
	}
}

static void refuse_lengths(struct fixture *b)
{
	DAT_LMR_TRIPLET iov = mem_segment(&b->m, 0, 65);
	DAT_RMR_TRIPLET remote = remote_segment(&b->theirs, 0, 64);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	FAILS(dat_ep_post_rdma_write(b->ep, 1, &iov, no_cookie, &remote,
				     DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_LENGTH_ERROR);
	iov.segment_length = 63;
	FAILS(dat_ep_post_rdma_read(b->ep, 1, &iov, no_cookie, &remote,
				    DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_LENGTH_ERROR);
	FAILS(dat_ep_post_rdma_read(b->ep, 1, &iov, no_cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_rdma_write(b->ep, 1, &iov, no_cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER);
	OK(dat_ep_get_status(b->ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "an operation was posted");
}

/* After the refused posts the connection works. */
static void still_works(struct fixture *b)
{
	post_write(b->ep, &b->m, 0, 64, 1, &b->theirs, 0);
	expect_dto(b->n.req, 1, DAT_DTO_SUCCESS, 64);
	post_read(b->ep, &b->m, 0, 64, 2, &b->theirs, 0);
	expect_dto(b->n.req, 2, DAT_DTO_SUCCESS, 64);
}

static void refused_client(struct pair *p)
{
	struct fixture b;
	size_t i;

	fixture_open(p, &b);
	for (i = 0; i < N_KINDS; i++) {
		const struct kind *k = &kinds[i];

		refuse_contexts(&b, k);
		refuse_ranges(&b, k);
		refuse_counts(&b, k);
		refuse_flags(&b, k);
		refused_segment(&b, k, "other PZ", mem_segment(&b.other_pz, 0, 8),
				DAT_PROTECTION_VIOLATION);
		if (k->writes)
			refused_segment(&b, k, "no privilege", mem_segment(&b.read_only, 0, 8),
					DAT_PRIVILEGES_VIOLATION);
		else
			CHECK(b.read_only.lmr_context, "no lmr_context for a readable LMR");
	}
	refuse_lengths(&b);
	still_works(&b);
	fixture_close(p, &b);
}

static void refused_server(struct pair *p)
{
	struct fixture b;

	fixture_open(p, &b);
	fixture_close(p, &b);
}

/* The queues hold as many operations as requested, and no more. */
static void full_client(struct pair *p)
{
	DAT_LMR_TRIPLET iov;
	struct fixture b;
	DAT_COUNT i;

	fixture_open(p, &b);
	iov = mem_segment(&b.m, 0, 8);
	for (i = 0; i < b.attr.max_recv_dtos; i++)
		post_recv(b.ep, &b.m, 0, 8, i);
	FAILS(dat_ep_post_recv(b.ep, 1, &iov, no_cookie, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INSUFFICIENT_RESOURCES);
	/*
	 * a slot is occupied until its completion is reported, so the fabric cannot free it in
	 * between
	 */
	pair_sync(p);
	for (i = 0; i < b.attr.max_recv_dtos; i++)
		expect_dto(b.n.recv, i, DAT_DTO_SUCCESS, 8);
	post_recv(b.ep, &b.m, 0, 8, 99);
	pair_sync(p);
	expect_dto(b.n.recv, 99, DAT_DTO_SUCCESS, 8);
	fixture_close(p, &b);
}

static void full_server(struct pair *p)
{
	struct fixture b;
	DAT_COUNT i;

	fixture_open(p, &b);
	pair_sync(p);
	for (i = 0; i < b.attr.max_recv_dtos; i++)
		post_send(b.ep, &b.m, 0, 8, i);
	for (i = 0; i < b.attr.max_recv_dtos; i++)
		expect_dto(b.n.req, i, DAT_DTO_SUCCESS, 8);
	pair_sync(p);
	post_send(b.ep, &b.m, 0, 8, 99);
	expect_dto(b.n.req, 99, DAT_DTO_SUCCESS, 8);
	fixture_close(p, &b);
}

#define BIG (1u << 20)

/* Sends to a peer that has no receive posted stay in the queue. */
static void full_requests_client(struct pair *p)
{
	DAT_LMR_TRIPLET iov;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	struct node n;
	DAT_COUNT i;

	node_open(&n);
	node_ep_attr(&n, &attr);
	attr.max_request_dtos = 64;
	ep = node_ep(&n, &attr);
	mem_get(&n, &n.m, BIG);
	pair_link(p, &n, ep);
	iov = mem_segment(&n.m, 0, BIG);
	for (i = 0; i < 64; i++)
		post_send(ep, &n.m, 0, BIG, i);
	/* the fabric's buffers hold some sends, so at most a few of 64 more can be posted */
	for (i = 0; i < 64; i++) {
		DAT_RETURN ret =
			dat_ep_post_send(ep, 1, &iov, no_cookie, DAT_COMPLETION_DEFAULT_FLAG);

		if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
			break;
		OK(ret);
	}
	CHECK(i < 64, "the queue of 64 accepted 128 MiB");
	OK(dat_ep_free(ep));
	pair_sync(p);
	node_end(&n);
}

static void full_requests_server(struct pair *p)
{
	struct node n;

	node_begin(&n, 0);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	node_end(&n);
}

/* States */

static void post_all(DAT_EP_HANDLE ep, struct mem *m, const struct grant *g, DAT_RETURN type)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, 8);
	DAT_RMR_TRIPLET remote = remote_segment(g, 0, 8);

	FAILS(dat_ep_post_send(ep, 1, &iov, no_cookie, DAT_COMPLETION_DEFAULT_FLAG), type);
	FAILS(dat_ep_post_rdma_write(ep, 1, &iov, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
	      type);
	FAILS(dat_ep_post_rdma_read(ep, 1, &iov, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
	      type);
}

/* Requests need a connection; after its end requests and receives are flushed. */
static void states(struct pair *p)
{
	struct grant g = { 0 };
	struct node n;
	int i;

	node_begin(&n, 64);
	post_all(n.ep, &n.m, &g, DAT_INVALID_STATE);
	pair_link(p, &n, n.ep);
	pair_unlink(p, &n, n.ep);
	post_all(n.ep, &n.m, &g, DAT_SUCCESS);
	for (i = 0; i < 3; i++)
		expect_dto(n.req, 0, DAT_DTO_ERR_FLUSHED, 0);
	post_recv(n.ep, &n.m, 0, 8, 5);
	expect_dto(n.recv, 5, DAT_DTO_ERR_FLUSHED, 0);
	OK(dat_ep_reset(n.ep));
	post_all(n.ep, &n.m, &g, DAT_INVALID_STATE);
	expect_quiet(n.req);
	expect_quiet(n.recv);
	node_end(&n);
}

/* Completed with an error */

enum fault { BAD_KEY, KEY_ZERO, PAST_END, BEFORE_START, NO_PRIVILEGE, OTHER_PZ, FREED, WRAPS,
	     N_FAULTS };

static const char *const fault_names[N_FAULTS] = {
	"bad rmr_context", "rmr_context 0", "past the end", "before the start", "no privilege",
	"other PZ's key", "freed LMR's key", "around 2^64",
};

#define TARGET (64 * KIB)
#define GUARDED 4096u		/* the granted part is in the middle of the memory */

/* The results, one row per case: this process's completion, receive and end of the connection. */
static const char *status_name(DAT_DTO_COMPLETION_STATUS status)
{
	static const char *const name[] = {
		[DAT_DTO_SUCCESS] = "SUCCESS",
		[DAT_DTO_ERR_FLUSHED] = "FLUSHED",
		[DAT_DTO_ERR_LOCAL_LENGTH] = "LOCAL_LENGTH",
		[DAT_DTO_ERR_REMOTE_ACCESS] = "REMOTE_ACCESS",
		[DAT_DTO_ERR_REMOTE_RESPONDER] = "REMOTE_RESPONDER",
		[DAT_DTO_ERR_TRANSPORT] = "TRANSPORT",
	};

	CHECK((size_t)status < sizeof(name) / sizeof(name[0]) && name[status],
	      "unexpected status %d", status);
	return name[status];
}

static void row(const char *operation, const char *fault, DAT_DTO_COMPLETION_STATUS status,
		DAT_EVENT_NUMBER end)
{
	pair_note("%s, %s: %s, %s", operation, fault, status_name(status),
		  event_name(end) + strlen("CONNECTION_EVENT_"));
}

/* Whether the fabric reports only the end of the connection, not the operation that failed. */
static bool names_no_operation(const struct node *n)
{
	const char *refused = named_attr(n, "OFI_RDMA_REFUSED");

	return refused && !strcmp(refused, "DAT_DTO_ERR_FLUSHED") && !named_attr(n, "OFI_LOCAL");
}

/* An end that no program requested. */
static DAT_EVENT_NUMBER expect_error_end(const struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EVENT_NUMBER end = expect_end(n->conn, ep);

	if (node_reports_broken(n))
		SAME(end, DAT_CONNECTION_EVENT_BROKEN);
	return end;
}

/* Grants memory as the fault requires. */
static void grant_for(struct node *n, DAT_PZ_HANDLE other, enum fault fault, bool read,
		      struct mem *m)
{
	DAT_MEM_PRIV_FLAGS without = read ?
		(DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_REMOTE_READ_FLAG) :
		(DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

	mem_get_with(n, fault == OTHER_PZ ? other : n->pz, m, TARGET,
		     fault == NO_PRIVILEGE ? without : DAT_MEM_PRIV_ALL_FLAG);
	fill(m->base, TARGET, 1);
}

static void remote_server(struct pair *p)
{
	bool read = *(const bool *)pair_arg();
	DAT_PZ_HANDLE other;
	struct node n;
	int fault;

	node_open(&n);
	OK(dat_pz_create(n.ia, &other));
	for (fault = 0; fault < N_FAULTS; fault++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		struct mem m, good, spare;

		grant_for(&n, other, (enum fault)fault, read, &m);
		mem_get(&n, &good, 64);
		mem_get(&n, &spare, 64);
		post_recv(ep, &spare, 0, 64, 1);
		pair_link(p, &n, ep);
		pair_grant(p, &m);
		pair_grant(p, &good);
		if (fault == FREED)
			OK(dat_lmr_free(m.lmr));
		pair_sync(p);
		row(read ? "read" : "write", fault_names[fault], DAT_DTO_ERR_FLUSHED,
		    expect_error_end(&n, ep));
		expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
		expect_quiet(n.recv);
		pair_sync(p);
		verify(m.base, TARGET, 1);
		OK(dat_ep_free(ep));
		if (fault == FREED)	/* its memory stays mapped */
			m.lmr = DAT_HANDLE_NULL;
		else
			mem_put(&m);
		mem_put(&good);
		mem_put(&spare);
	}
	OK(dat_pz_free(other));
	node_close(&n);
}

/* The remote segment of a request that must be refused. */
static DAT_RMR_TRIPLET bad_segment(const struct grant *g, enum fault fault)
{
	struct grant bad = *g;
	size_t offset = 0;

	if (fault == BAD_KEY)
		bad.rmr_context ^= 0x5a5a5a5a;
	if (fault == KEY_ZERO)
		bad.rmr_context = 0;
	if (fault == PAST_END)
		offset = TARGET - 32;
	if (fault == BEFORE_START)
		bad.address -= 32;
	if (fault == WRAPS)
		bad.address = (DAT_VADDR)0 - 32;
	return remote_segment(&bad, offset, 64);
}

static void post_bad(DAT_EP_HANDLE ep, bool read, const struct mem *m, DAT_RMR_TRIPLET *remote)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 64, 64);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	if (read)
		OK(dat_ep_post_rdma_read(ep, 1, &iov, cookie, remote, DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_write(ep, 1, &iov, cookie, remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
}

/* Expects the bad request to fail, with the reason where the fabric has one or is not needed. */
static DAT_DTO_COMPLETION_STATUS expect_failure(struct node *n, enum fault fault)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(n->req, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->user_cookie.as_64, 1);
	SAME(d->status, fault != WRAPS && names_no_operation(n) ? DAT_DTO_ERR_FLUSHED :
								  DAT_DTO_ERR_REMOTE_ACCESS);
	return d->status;
}

/*
 * Expects the completion of a request behind the bad one. Only sockets continues after a failure,
 * so the request may have succeeded there.
 */
static void expect_flushed_after_failure(struct node *n)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(n->req, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->user_cookie.as_64, 2);
	if (!pair_fabric_is("sockets"))
		SAME(d->status, DAT_DTO_ERR_FLUSHED);
}

static void remote_client(struct pair *p)
{
	bool read = *(const bool *)pair_arg();
	DAT_DTO_COMPLETION_STATUS status;
	struct node n;
	int fault;

	node_open(&n);
	mem_get(&n, &n.m, 256);
	for (fault = 0; fault < N_FAULTS; fault++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_RMR_TRIPLET remote;
		struct grant g, good;
		DAT_EVENT event;

		memset(n.m.base, 0xaa, n.m.size);
		pair_link(p, &n, ep);
		pair_granted(p, &g);
		pair_granted(p, &good);
		pair_sync(p);
		remote = bad_segment(&g, (enum fault)fault);
		/* the requests before the bad one succeed, later ones need not */
		post_write(ep, &n.m, 0, 64, 0, &good, 0);
		expect_dto(n.req, 0, DAT_DTO_SUCCESS, 64);
		post_bad(ep, read, &n.m, &remote);
		post_write(ep, &n.m, 128, 64, 2, &good, 0);
		if (!pair_fabric_is("sockets"))
			post_send(ep, &n.m, 192, 64, 3);	/* the peer must not receive it */
		status = expect_failure(&n, (enum fault)fault);
		expect_flushed_after_failure(&n);
		if (!pair_fabric_is("sockets"))	/* the send completes, with any status */
			expect_event(n.req, DAT_DTO_COMPLETION_EVENT, &event);
		expect_quiet(n.req);
		row(read ? "read" : "write", fault_names[fault], status, expect_error_end(&n, ep));
		CHECK(n.m.base[64] == 0xaa, "the refused read wrote to memory");
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

static const bool reading = true, writing = false;

/* A message that is longer than its receive. */
static const size_t long_sizes[] = { 128, 60 * KIB, 512 * KIB };
static const char *const long_names[] = { "128 in 64 bytes", "60 KiB in 64 bytes",
					  "512 KiB in 64 bytes" };
#define N_LONG (sizeof(long_sizes) / sizeof(long_sizes[0]))

static void long_server(struct pair *p)
{
	struct node n;
	size_t i;

	node_open(&n);
	mem_get(&n, &n.m, 4 * KIB);
	for (i = 0; i < N_LONG; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		memset(n.m.base, 0xaa, n.m.size);
		post_recv(ep, &n.m, 0, 64, 1);
		post_recv(ep, &n.m, KIB, 64, 2);
		pair_link(p, &n, ep);
		expect_dto(n.recv, 1, DAT_DTO_ERR_LOCAL_LENGTH, 0);
		expect_dto(n.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
		SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_BROKEN);
		row("receive", long_names[i], DAT_DTO_ERR_LOCAL_LENGTH,
		    DAT_CONNECTION_EVENT_BROKEN);
		CHECK(n.m.base[64] == 0xaa && n.m.base[KIB] == 0xaa, "written past the receive");
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

static void long_client(struct pair *p)
{
	struct node n;
	size_t i;

	node_open(&n);
	mem_get(&n, &n.m, 512 * KIB);
	for (i = 0; i < N_LONG; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		pair_link(p, &n, ep);
		post_send(ep, &n.m, 0, long_sizes[i], 1);
		/* it may have left before the peer refuses it; it completes exactly once */
		expect_event(n.req, DAT_DTO_COMPLETION_EVENT, &event);
		expect_quiet(n.req);
		row("send", long_names[i], event.event_data.dto_completion_event_data.status,
		    expect_end(n.conn, ep));
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

/* An LMR may be freed under a posted receive, which completes once. */
static void freed_lmr(struct pair *p)
{
	struct node n;
	struct mem m;

	node_begin(&n, 0);
	mem_get(&n, &m, 64);
	post_recv(n.ep, &m, 0, 64, 3);
	pair_link(p, &n, n.ep);
	OK(dat_lmr_free(m.lmr));
	FAILS(dat_lmr_free(m.lmr), DAT_INVALID_HANDLE);
	pair_unlink(p, &n, n.ep);
	expect_dto(n.recv, 3, DAT_DTO_ERR_FLUSHED, 0);
	expect_quiet(n.recv);
	node_end(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("posts that are refused", refused_server, refused_client),
	PAIR_CASE("full receive queue", full_server, full_client),
	PAIR_CASE("full request queue", full_requests_server, full_requests_client),
	PAIR_CASE("posts in every state", states, states),
	PAIR_CASE("writes that the target does not allow", remote_server, remote_client,
		  .arg = &writing),
	PAIR_CASE("reads that the target does not allow", remote_server, remote_client,
		  .arg = &reading),
	PAIR_CASE("message longer than its receive", long_server, long_client),
	PAIR_CASE("LMR freed with a receive posted", freed_lmr, freed_lmr),
};

int main(int argc, char **argv)
{
	setenv("DAT_OFI_STRICT", "1", 1);	/* flags that DAT forbids are refused */
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
