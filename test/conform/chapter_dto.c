/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer: lengths, segments, refused posts, failures, order, full queues, flushes. */

#include "conform.h"

#include <stdio.h>
#include <string.h>

CHAPTER("dto");

#define HALF (COUPLE_MEMORY / 2)	/* transfers go from the first half to the second */
#define MAX_SEGMENTS 64

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

/* The kinds of operation, posted to @ep; @m is the peer's memory. */

typedef DAT_RETURN post_fn(DAT_EP_HANDLE ep, const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   size_t length, uint64_t cookie, unsigned flags);

static DAT_RETURN do_send(DAT_EP_HANDLE ep, const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			  size_t length, uint64_t cookie, unsigned flags)
{
	return dat_ep_post_send(ep, n, iov, cookie_of(cookie), (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN do_recv(DAT_EP_HANDLE ep, const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			  size_t length, uint64_t cookie, unsigned flags)
{
	return dat_ep_post_recv(ep, n, iov, cookie_of(cookie), (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN do_write(DAT_EP_HANDLE ep, const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			   size_t length, uint64_t cookie, unsigned flags)
{
	DAT_RMR_TRIPLET remote = mem_remote(m, HALF, length);

	return dat_ep_post_rdma_write(ep, n, iov, cookie_of(cookie), &remote,
				      (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN do_read(DAT_EP_HANDLE ep, const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			  size_t length, uint64_t cookie, unsigned flags)
{
	DAT_RMR_TRIPLET remote = mem_remote(m, HALF, length);

	return dat_ep_post_rdma_read(ep, n, iov, cookie_of(cookie), &remote,
				     (DAT_COMPLETION_FLAGS)flags);
}

static const struct kind {
	const char *name;
	post_fn *post;
	size_t max_iov;			/* offset in DAT_EP_ATTR */
	bool writes;			/* to local memory */
} kinds[] = {
	{ "dat_ep_post_send", do_send, offsetof(DAT_EP_ATTR, max_request_iov), false },
	{ "dat_ep_post_rdma_write", do_write, offsetof(DAT_EP_ATTR, max_rdma_write_iov), false },
	{ "dat_ep_post_rdma_read", do_read, offsetof(DAT_EP_ATTR, max_rdma_read_iov), true },
	{ "dat_ep_post_recv", do_recv, offsetof(DAT_EP_ATTR, max_recv_iov), true },
};

#define N_REQUESTS 3	/* requests, which are first in the table */

static DAT_COUNT max_segments(DAT_EP_HANDLE ep, const struct kind *k)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return *(const DAT_COUNT *)((const char *)&param.ep_attr + k->max_iov);
}

/* Transfers @length bytes by a request of @n segments, and checks that they arrive. */
static void transfer(struct couple *c, const struct kind *k, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
		     size_t length)
{
	unsigned char *from = c->m.base + (k->writes ? HALF : 0);
	unsigned char *to = c->m.base + (k->writes ? 0 : HALF);

	memset(c->m.base, 0, c->m.size);
	fill(from, length, 7);
	if (k->post == do_send)
		post_recv(c->b.ep, &c->m, HALF, length, 1);
	OK(k->post(c->a.ep, &c->m, n, iov, length, 2, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(c->a.req, 2, DAT_DTO_SUCCESS, length);
	if (k->post == do_send)
		expect_dto(c->b.recv, 1, DAT_DTO_SUCCESS, length);
	verify(to, length, 7);
	if (length < HALF)
		CHECK(!to[length], "written past the end");
}

/* Lengths and segments */

static const size_t lengths[] = { 0, 1, 63, 4096, HALF };

static void name_length(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/%zu bytes", kinds[i / COUNT(lengths)].name,
		 lengths[i % COUNT(lengths)]);
}

FAMILY(N_REQUESTS * COUNT(lengths), name_length)
{
	size_t length = lengths[i % COUNT(lengths)];
	DAT_LMR_TRIPLET iov;
	struct couple c;

	couple_open(n, &c);
	iov = mem_segment(&c.m, 0, length);
	transfer(&c, &kinds[i / COUNT(lengths)], 1, &iov, length);
}

static void name_segments(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/zero to the maximum of segments", kinds[i].name);
}

/* Adjacent segments, one of them empty. */
static size_t segments(const struct mem *m, DAT_COUNT n, DAT_LMR_TRIPLET *iov)
{
	size_t at = 0;
	DAT_COUNT k;

	for (k = 0; k < n; k++) {
		size_t length = k == 1 ? 0 : 17 + (size_t)k;

		iov[k] = mem_segment(m, at, length);
		at += length;
	}
	return at;
}

FAMILY(N_REQUESTS, name_segments)
{
	DAT_LMR_TRIPLET iov[MAX_SEGMENTS];
	struct couple c;
	DAT_COUNT most, count;

	couple_open(n, &c);
	most = max_segments(c.a.ep, &kinds[i]);
	CHECK(most <= MAX_SEGMENTS, "%d", most);
	for (count = 0; count <= most; count++) {
		size_t length = segments(&c.m, count, iov);

		transfer(&c, &kinds[i], count, count ? iov : NULL, length);
	}
}

COUPLED("dat_ep_post_recv/SUCCESS/zero to the maximum of segments")
{
	DAT_LMR_TRIPLET iov[MAX_SEGMENTS];
	DAT_COUNT most, count;

	most = max_segments(c->b.ep, &kinds[N_REQUESTS]);
	for (count = 0; count <= most; count++) {
		size_t length = segments(&c->m, count, iov);

		memset(c->m.base, 0, length);
		fill(c->m.base + HALF, length, 3);
		OK(do_recv(c->b.ep, &c->m, count, count ? iov : NULL, 0, 1, 0));
		post_send(c->a.ep, &c->m, HALF, length, 2);
		expect_dto(c->a.req, 2, DAT_DTO_SUCCESS, length);
		expect_dto(c->b.recv, 1, DAT_DTO_SUCCESS, length);
		verify(c->m.base, length, 3);
	}
}

/* A receive may be longer than its message; the completion has the message's length. */
COUPLED("dat_ep_post_recv/SUCCESS/longer than the message")
{
	post_recv(c->b.ep, &c->m, HALF, 4096, 1);
	post_send(c->a.ep, &c->m, 0, 5, 2);
	expect_dto(c->b.recv, 1, DAT_DTO_SUCCESS, 5);
	CHECK(!c->m.base[HALF + 5], "written past the end");
}

COUPLED("dat_ep_post_rdma_write/SUCCESS/shorter than the remote segment")
{
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&c->m, 0, 8);
	OK(do_write(c->a.ep, &c->m, 1, &iov, 64, 1, 0));
	expect_dto(c->a.req, 1, DAT_DTO_SUCCESS, 8);
}

COUPLED("dat_ep_post_rdma_read/SUCCESS/shorter than the local segments")
{
	DAT_LMR_TRIPLET iov;

	fill(c->m.base + HALF, 64, 9);
	iov = mem_segment(&c->m, 0, 64);
	OK(do_read(c->a.ep, &c->m, 1, &iov, 8, 1, 0));
	expect_event(c->a.req, DAT_DTO_COMPLETION_EVENT, &(DAT_EVENT){ 0 });
	verify(c->m.base, 8, 9);
	CHECK(!c->m.base[8], "written past the end");
}

/* Contents of a completion */
COUPLED("dat_evd_wait/SUCCESS/members of a DTO completion")
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT sent, received;

	post_recv(c->b.ep, &c->m, HALF, 64, UINT64_MAX);
	post_send(c->a.ep, &c->m, 0, 64, UINT64_C(0x123456789abcdef0));
	expect_event(c->a.req, DAT_DTO_COMPLETION_EVENT, &sent);
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &received);
	d = &sent.event_data.dto_completion_event_data;
	CHECK(d->ep_handle == c->a.ep && d->user_cookie.as_64 == UINT64_C(0x123456789abcdef0),
	      "wrong EP or cookie");
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME(d->transfered_length, 64);
#if DAT_VERSION_MAJOR >= 2
	SAME(d->operation, DAT_DTO_SEND);
	SAME(received.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
#endif
	d = &received.event_data.dto_completion_event_data;
	CHECK(d->ep_handle == c->b.ep && d->user_cookie.as_64 == UINT64_MAX, "wrong EP or cookie");
}

/* Refused when posted */

enum fault {
	TOO_MANY, NEGATIVE, NO_LIST, UNKNOWN_FLAG, UNSIGNALLED,
	NO_CONTEXT, BEYOND_END, BEFORE_START, ANOTHER_PZ, FREED_LMR, NO_PRIVILEGE, N_FAULTS
};

static const struct {
	const char *name, *type_name;
	DAT_RETURN type;
} faults[N_FAULTS] = {
#define FAULT(fault, text, type) [fault] = { text, #type, DAT_##type }
	FAULT(TOO_MANY, "too many segments", INVALID_PARAMETER),
	FAULT(NEGATIVE, "-1 segments", INVALID_PARAMETER),
	FAULT(NO_LIST, "no segment list", INVALID_PARAMETER),
	FAULT(UNKNOWN_FLAG, "unknown flag", INVALID_PARAMETER),
	FAULT(UNSIGNALLED, "UNSIGNALLED without the attribute", INVALID_PARAMETER),
	FAULT(NO_CONTEXT, "unknown LMR context", PROTECTION_VIOLATION),
	FAULT(BEYOND_END, "beyond the LMR", INVALID_PARAMETER),
	FAULT(BEFORE_START, "before the LMR", INVALID_PARAMETER),
	FAULT(ANOTHER_PZ, "an LMR of another PZ", PROTECTION_VIOLATION),
	FAULT(FREED_LMR, "a freed LMR", PROTECTION_VIOLATION),
	FAULT(NO_PRIVILEGE, "without the local privilege", PRIVILEGES_VIOLATION),
#undef FAULT
};

static void name_fault(unsigned i, char *name, size_t size)
{
	unsigned fault = i % N_FAULTS;

	snprintf(name, size, "%s/%s/%s", kinds[i / N_FAULTS].name, faults[fault].type_name,
		 faults[fault].name);
}

static struct mem other_memory(struct node *n, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges)
{
	struct mem m;

	mem_get_with(n, pz, &m, 4096, privileges);
	return m;
}

static DAT_LMR_TRIPLET bad_segment(struct node *n, const struct couple *c, const struct kind *k,
				   enum fault fault)
{
	DAT_LMR_TRIPLET iov = mem_segment(&c->m, 0, 8);
	DAT_PZ_HANDLE pz;
	struct mem m;

	switch (fault) {
	case NO_CONTEXT:
		iov.lmr_context ^= 0x5a5a5a5a;
		return iov;
	case BEYOND_END:
		return mem_segment(&c->m, COUPLE_MEMORY - 7, 8);
	case BEFORE_START:
		iov.virtual_address--;
		return iov;
	case ANOTHER_PZ:
		OK(dat_pz_create(n->ia, &pz));
		m = other_memory(n, pz, DAT_MEM_PRIV_ALL_FLAG);
		return mem_segment(&m, 0, 8);
	case FREED_LMR:
		m = other_memory(n, n->pz, DAT_MEM_PRIV_ALL_FLAG);
		OK(dat_lmr_free(m.lmr));
		return mem_segment(&m, 0, 8);
	case NO_PRIVILEGE:
		m = other_memory(n, n->pz, k->writes ? DAT_MEM_PRIV_LOCAL_READ_FLAG :
						      DAT_MEM_PRIV_REMOTE_READ_FLAG);
		return mem_segment(&m, 0, 8);
	default:
		return iov;
	}
}

static DAT_RETURN post_fault(struct node *n, const struct couple *c, const struct kind *k,
			     enum fault fault)
{
	DAT_LMR_TRIPLET iov[MAX_SEGMENTS + 1];
	DAT_COUNT count = 2, j;
	unsigned flags = 0;

	if (fault == TOO_MANY)
		count = max_segments(c->a.ep, k) + 1;
	for (j = 0; j < count; j++)
		iov[j] = mem_segment(&c->m, 8 * (size_t)j, 8);
	iov[1] = bad_segment(n, c, k, fault);
	if (fault == NEGATIVE)
		count = -1;
	if (fault == UNKNOWN_FLAG)
		flags = 0x1000;
	if (fault == UNSIGNALLED)
		flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	return k->post(c->a.ep, &c->m, count, fault == NO_LIST ? NULL : iov, 16, 1, flags);
}

static void check_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	CHECK(recv_idle && request_idle, "an operation was posted");
	SAME(state, DAT_EP_STATE_CONNECTED);
}

FAMILY(COUNT(kinds) * N_FAULTS, name_fault)
{
	const struct kind *k = &kinds[i / N_FAULTS];
	enum fault fault = (enum fault)(i % N_FAULTS);
	DAT_LMR_TRIPLET iov;
	struct couple c;

	if (fault == UNSIGNALLED)
		needs_strict(n, true);
	couple_open(n, &c);
	FAILS(post_fault(n, &c, k, fault), faults[fault].type);
	check_idle(c.a.ep);
	/* the connection is usable afterwards */
	iov = mem_segment(&c.m, 0, 8);
	transfer(&c, &kinds[1], 1, &iov, 8);
}

/* Flags that do not apply to receives. */
CLAUSE("dat_ep_post_recv/INVALID_PARAMETER/request flags")
{
	static const unsigned flags[] = {
		DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
	};
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	size_t k;

	needs_strict(n, true);
	for (k = 0; k < COUNT(flags); k++)
		FAILS(do_recv(ep, NULL, 0, NULL, 0, 1, flags[k]), DAT_INVALID_PARAMETER);
}

static void name_remote_null(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/INVALID_PARAMETER/no remote segment", kinds[1 + i].name);
}

FAMILY(2, name_remote_null)
{
	DAT_LMR_TRIPLET iov;
	struct couple c;

	couple_open(n, &c);
	iov = mem_segment(&c.m, 0, 8);
	if (i)
		FAILS(dat_ep_post_rdma_read(c.a.ep, 1, &iov, cookie_of(1), NULL,
					    DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
	else
		FAILS(dat_ep_post_rdma_write(c.a.ep, 1, &iov, cookie_of(1), NULL,
					     DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
	check_idle(c.a.ep);
}

COUPLED("dat_ep_post_rdma_write/LENGTH_ERROR/more than the remote segment")
{
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&c->m, 0, 9);
	FAILS(do_write(c->a.ep, &c->m, 1, &iov, 8, 1, 0), DAT_LENGTH_ERROR);
	check_idle(c->a.ep);
}

COUPLED("dat_ep_post_rdma_read/LENGTH_ERROR/more than the local segments")
{
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&c->m, 0, 8);
	FAILS(do_read(c->a.ep, &c->m, 1, &iov, 9, 1, 0), DAT_LENGTH_ERROR);
	check_idle(c->a.ep);
}

/* Full queues */

static void name_full(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/INSUFFICIENT_RESOURCES/the queue is full", kinds[i].name);
}

#define BIG (1u << 20)
#define DEPTH 32	/* times 1 MiB exceeds the network's buffers */

/* Fills a queue with messages that the peer posts no receives for. */
static void fill_requests(struct node *n, struct couple *c, struct mem *big)
{
	DAT_EP_ATTR attr;
	DAT_COUNT k;

	node_ep_attr(n, &attr);
	attr.max_request_dtos = DEPTH;
	couple_make(n, c, &attr, NULL);
	couple_connect(n, c);
	mem_get(n, big, BIG);
	for (k = 0; k < DEPTH; k++)
		post_send(c->a.ep, big, 0, BIG, k);
}

FAMILY(N_REQUESTS, name_full)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_LMR_TRIPLET iov;
	struct couple c;
	struct mem big;
	unsigned k;

	fill_requests(n, &c, &big);
	iov = mem_segment(&big, 0, BIG);
	/* the first sends may have left and released their slots */
	for (k = 0; k < 4 * DEPTH && ret == DAT_SUCCESS; k++) {
		if (dat_ep_post_send(c.a.ep, 1, &iov, cookie_of(99), DAT_COMPLETION_DEFAULT_FLAG))
			ret = kinds[i].post(c.a.ep, &c.m, 0, NULL, 0, 100, 0);
	}
	SAME(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_CONNECTED);
}

COUPLED("dat_ep_post_recv/INSUFFICIENT_RESOURCES/the queue is full")
{
	DAT_EP_PARAM param;
	DAT_COUNT k;

	OK(dat_ep_query(c->b.ep, DAT_EP_FIELD_ALL, &param));
	for (k = 0; k < param.ep_attr.max_recv_dtos; k++)
		OK(do_recv(c->b.ep, NULL, 0, NULL, 0, k, 0));
	FAILS(do_recv(c->b.ep, NULL, 0, NULL, 0, 999, 0), DAT_INSUFFICIENT_RESOURCES);
	/* a completion releases its slot */
	post_send(c->a.ep, &c->m, 0, 0, 1);
	expect_dto(c->b.recv, 0, DAT_DTO_SUCCESS, 0);
	OK(do_recv(c->b.ep, NULL, 0, NULL, 0, 999, 0));
}

/* Remote errors: the operation fails and ends the connection */

enum remote_fault { BAD_CONTEXT, CONTEXT_0, REMOTE_BEYOND, REMOTE_BEFORE, REMOTE_PRIVILEGE,
		    REMOTE_PZ, REMOTE_FREED, REMOTE_WRAPS, N_REMOTE_FAULTS };

static const char *const remote_fault_names[N_REMOTE_FAULTS] = {
	"unknown context", "context 0",	 "beyond the memory", "before the memory",
	"no privilege",	   "another PZ", "a freed LMR", "around 2^64",
};

static void name_remote_fault(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "%s/SUCCESS/remote error, %s", kinds[1 + i / N_REMOTE_FAULTS].name,
		 remote_fault_names[i % N_REMOTE_FAULTS]);
}

static struct mem remote_fault_memory(struct node *n, enum remote_fault fault, bool read)
{
	unsigned lacks = read ? DAT_MEM_PRIV_REMOTE_READ_FLAG : DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	unsigned privileges = DAT_MEM_PRIV_ALL_FLAG;
	DAT_PZ_HANDLE pz = n->pz;

	if (fault == REMOTE_PZ)
		OK(dat_pz_create(n->ia, &pz));
	if (fault == REMOTE_PRIVILEGE)
		privileges &= ~lacks;
	return other_memory(n, pz, (DAT_MEM_PRIV_FLAGS)privileges);
}

static DAT_RMR_TRIPLET remote_fault_segment(const struct mem *m, enum remote_fault fault)
{
	struct grant g = { (uintptr_t)m->base, m->size, m->rmr_context };

	if (fault == BAD_CONTEXT)
		g.rmr_context ^= 0x5a5a5a5a;
	if (fault == CONTEXT_0)
		g.rmr_context = 0;
	if (fault == REMOTE_BEFORE)
		g.address -= 8;
	if (fault == REMOTE_WRAPS)
		g.address = (DAT_VADDR)0 - 8;
	return remote_segment(&g, fault == REMOTE_BEYOND ? m->size - 8 : 0, 16);
}

static void post_rdma(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote,
		      bool read)
{
	if (read)
		OK(dat_ep_post_rdma_read(ep, 1, iov, cookie_of(1), remote,
					 DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_write(ep, 1, iov, cookie_of(1), remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
}

/*
 * The completion status of an operation that the target refuses: some fabrics only end the
 * connection. Addresses that no peer has are refused where they are posted.
 */
static DAT_DTO_COMPLETION_STATUS status_of_refusal(const struct node *n, enum remote_fault fault)
{
	const char *refused = named_attr(n, "OFI_RDMA_REFUSED");

	/* or both ends are on this host */
	if (fault == REMOTE_WRAPS || !refused || named_attr(n, "OFI_LOCAL"))
		return DAT_DTO_ERR_REMOTE_ACCESS;
	return strcmp(refused, "DAT_DTO_ERR_FLUSHED") ? DAT_DTO_ERR_REMOTE_ACCESS :
							DAT_DTO_ERR_FLUSHED;
}

FAMILY(2 * N_REMOTE_FAULTS, name_remote_fault)
{
	enum remote_fault fault = (enum remote_fault)(i % N_REMOTE_FAULTS);
	bool read = i >= N_REMOTE_FAULTS;
	DAT_EVENT_NUMBER end;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;
	struct couple c;
	struct mem m;

	couple_open(n, &c);
	m = remote_fault_memory(n, fault, read);
	fill(m.base, m.size, 4);
	memset(c.m.base, 0xaa, 64);
	iov = mem_segment(&c.m, 0, 16);
	remote = remote_fault_segment(&m, fault);
	if (fault == REMOTE_FREED)
		OK(dat_lmr_free(m.lmr));
	OK(do_recv(c.a.ep, NULL, 0, NULL, 0, 2, 0));
	post_rdma(c.a.ep, &iov, &remote, read);
	expect_event(c.a.req, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	SAME(event.event_data.dto_completion_event_data.status, status_of_refusal(n, fault));
	SAME(expect_end(c.a.conn, c.a.ep), DAT_CONNECTION_EVENT_BROKEN);
	end = expect_end(c.b.conn, c.b.ep);
	if (node_reports_broken(n))
		SAME(end, DAT_CONNECTION_EVENT_BROKEN);
	expect_dto(c.a.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
	verify(m.base, m.size, 4);
	CHECK(c.m.base[0] == 0xaa, "bytes were read");
}

COUPLED("dat_ep_post_recv/SUCCESS/shorter than the message")
{
	DAT_EVENT event;

	memset(c->m.base + HALF, 0xaa, 64);
	post_recv(c->b.ep, &c->m, HALF, 8, 1);
	post_recv(c->b.ep, &c->m, HALF + 32, 8, 2);
	post_send(c->a.ep, &c->m, 0, 9, 3);
	expect_dto(c->b.recv, 1, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_dto(c->b.recv, 2, DAT_DTO_ERR_FLUSHED, 0);
	SAME(expect_end(c->b.conn, c->b.ep), DAT_CONNECTION_EVENT_BROKEN);
	expect_end(c->a.conn, c->a.ep);
	/* the send may have completed before */
	expect_event(c->a.req, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 3);
	CHECK(c->m.base[HALF + 8] == 0xaa, "written past the receive");
}

/* The message waits until a receive is posted. */
COUPLED("dat_ep_post_send/SUCCESS/the receive is posted later")
{
	fill(c->m.base, 64, 6);
	post_send(c->a.ep, &c->m, 0, 64, 1);
	SAME(drain(c->b.recv), 0);
	post_recv(c->b.ep, &c->m, HALF, 64, 2);
	expect_dto(c->b.recv, 2, DAT_DTO_SUCCESS, 64);
	expect_dto(c->a.req, 1, DAT_DTO_SUCCESS, 64);
	verify(c->m.base + HALF, 64, 6);
}

/* Order */

#define MIXED 30	/* fewer than the queues hold */

COUPLED("dat_ep_post_send/SUCCESS/requests complete in posting order")
{
	DAT_LMR_TRIPLET iov;
	uint64_t k;

	for (k = 0; k < MIXED; k++)
		if (kinds[k % N_REQUESTS].post == do_send)
			post_recv(c->b.ep, &c->m, HALF + 64 * k, 64, 1000 + k);
	for (k = 0; k < MIXED; k++) {
		iov = mem_segment(&c->m, 64 * k, 64);
		OK(kinds[k % N_REQUESTS].post(c->a.ep, &c->m, 1, &iov, 64, k, 0));
	}
	for (k = 0; k < MIXED; k++)
		expect_dto(c->a.req, k, DAT_DTO_SUCCESS, 64);
	for (k = 0; k < MIXED; k++)
		if (kinds[k % N_REQUESTS].post == do_send)
			expect_dto(c->b.recv, 1000 + k, DAT_DTO_SUCCESS, 64);
}

/* Reads beyond the limit are queued, and none fails. */
CLAUSE("dat_ep_post_rdma_read/SUCCESS/more than max_rdma_read_out")
{
	DAT_LMR_TRIPLET iov;
	DAT_EP_ATTR attr;
	struct couple c;
	uint64_t k;

	node_ep_attr(n, &attr);
	attr.max_rdma_read_out = attr.max_rdma_read_in = 1;
	couple_make(n, &c, &attr, &attr);
	couple_connect(n, &c);
	fill(c.m.base + HALF, 64, 8);
	for (k = 0; k < MIXED; k++) {
		iov = mem_segment(&c.m, 64 * k, 64);
		OK(do_read(c.a.ep, &c.m, 1, &iov, 64, k, 0));
	}
	for (k = 0; k < MIXED; k++) {
		expect_dto(c.a.req, k, DAT_DTO_SUCCESS, 64);
		verify(c.m.base + 64 * k, 64, 8);
	}
}

/* Flushes: each operation completes once, and before the event that ends the connection */

static void name_flush(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_disconnect/SUCCESS/%s are flushed once",
		 i ? "requests" : "receives");
}

#define FLUSHED 20

static unsigned count_flushed(DAT_EVD_HANDLE evd)
{
	unsigned number = 0;
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
		CHECK(event.event_data.dto_completion_event_data.user_cookie.as_64 == number,
		      "out of order");
		number++;
	}
	return number;
}

FAMILY(2, name_flush)
{
	struct couple c;
	struct mem big;
	uint64_t k;

	if (i) {
		fill_requests(n, &c, &big);
	} else {
		couple_open(n, &c);
		for (k = 0; k < FLUSHED; k++)
			post_recv(c.a.ep, &c.m, 0, 8, k);
	}
	OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	SAME(expect_end(c.a.conn, c.a.ep), DAT_CONNECTION_EVENT_DISCONNECTED);
	if (i)
		SAME(count_flushed(c.a.req), DEPTH);
	else
		SAME(count_flushed(c.a.recv), FLUSHED);
}

/*
 * The peer is notified of the end, although it has posted no receives for the messages in flight.
 */
CLAUSE("dat_ep_disconnect/DISCONNECTED/the peer receives none of many messages")
{
	struct couple c;
	struct mem big;

	fill_requests(n, &c, &big);
	OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(c.b.conn, c.b.ep);
}

CLAUSE("dat_ep_disconnect/SUCCESS/completions come before DISCONNECTED")
{
	DAT_EVD_HANDLE evd;
	struct couple c;
	uint64_t k;

	NEEDS_PROVIDER(evd_stream_merging_supported[2][3]);
	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_free(c.a.ep));
	evd = node_evd(n, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG);
	c.a.conn = c.a.recv = c.a.req = evd;
	OK(dat_ep_create(n->ia, n->pz, evd, evd, evd, NULL, &c.a.ep));
	couple_connect(n, &c);
	for (k = 0; k < FLUSHED; k++)
		post_recv(c.a.ep, &c.m, 0, 8, k);
	OK(dat_ep_disconnect(c.b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (k = 0; k < FLUSHED; k++)
		expect_dto(evd, k, DAT_DTO_ERR_FLUSHED, 0);
	expect_conn(evd, DAT_CONNECTION_EVENT_DISCONNECTED, c.a.ep);
}

/* Requests posted before a graceful disconnect are carried out. */
COUPLED("dat_ep_disconnect/SUCCESS/a graceful disconnect completes the requests")
{
	uint64_t k;

	for (k = 0; k < FLUSHED; k++)
		post_recv(c->b.ep, &c->m, HALF + 64 * k, 64, k);
	for (k = 0; k < FLUSHED; k++)
		post_send(c->a.ep, &c->m, 64 * k, 64, k);
	OK(dat_ep_disconnect(c->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (k = 0; k < FLUSHED; k++)
		expect_dto(c->a.req, k, DAT_DTO_SUCCESS, 64);
	for (k = 0; k < FLUSHED; k++)
		expect_dto(c->b.recv, k, DAT_DTO_SUCCESS, 64);
	expect_end(c->a.conn, c->a.ep);
	expect_end(c->b.conn, c->b.ep);
}

/* Memory and EVDs that are missing */

COUPLED("dat_lmr_free/SUCCESS/a receive uses it")
{
	post_recv(c->a.ep, &c->m, 0, 64, 1);
	OK(dat_lmr_free(c->m.lmr));
	OK(dat_ep_disconnect(c->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(c->a.conn, c->a.ep);
	expect_dto(c->a.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
}

/* Operations without an EVD are carried out, but not reported. */
CLAUSE("dat_ep_create/SUCCESS/data transfer without completion EVDs")
{
	DAT_LMR_TRIPLET iov;
	struct couple c;

	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_free(c.b.ep));
	OK(dat_ep_create(n->ia, n->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, c.b.conn, NULL, &c.b.ep));
	couple_connect(n, &c);
	fill(c.m.base + 64, 64, 2);
	post_recv(c.b.ep, &c.m, HALF + 64, 64, 1);
	post_send(c.a.ep, &c.m, 64, 64, 2);
	expect_dto(c.a.req, 2, DAT_DTO_SUCCESS, 64);
	fill(c.m.base + HALF, 64, 3);
	iov = mem_segment(&c.m, 0, 64);
	OK(do_read(c.b.ep, &c.m, 1, &iov, 64, 3, 0));
	/* a fenced message after the read shows that the read is done */
	post_recv(c.a.ep, &c.m, 4096, 8, 4);
	OK(do_send(c.b.ep, NULL, 0, NULL, 0, 5, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	expect_dto(c.a.recv, 4, DAT_DTO_SUCCESS, 0);
	verify(c.m.base, 64, 3);
	/* the end shows that the receive is done */
	OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_end(c.a.conn, c.a.ep);
	expect_end(c.b.conn, c.b.ep);
	verify(c.m.base + HALF + 64, 64, 2);
}
