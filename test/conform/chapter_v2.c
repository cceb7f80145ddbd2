/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of DAT 2.0 only: common service points, invalidation, reads into RMRs, extensions. */

#include "conform.h"

#if DAT_VERSION_MAJOR >= 2

#include <netinet/in.h>
#include <stdio.h>

CHAPTER("v2");

#define HALF (COUPLE_MEMORY / 2)
#define REMOTE \
	((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

/* Common service points */

static DAT_COMM comm_of(struct node *n)
{
	return (DAT_COMM){ .domain = n->address.ss_family, .type = SOCK_STREAM,
			   .protocol = IPPROTO_TCP };
}

static void set_port(struct sockaddr_storage *address, unsigned port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port); /* equal offset in IPv6 */
}

#define FIRST_PORT 39000
#define LAST_PORT 39999

/* Creates a CSP at the first free port. */
static DAT_CSP_HANDLE csp_open(struct node *n, struct sockaddr_storage *address)
{
	DAT_RETURN ret = DAT_PORT_IN_USE;
	DAT_COMM comm = comm_of(n);
	DAT_CSP_HANDLE csp;
	unsigned port;

	*address = n->address;
	for (port = FIRST_PORT; port < LAST_PORT && DAT_GET_TYPE(ret) == DAT_PORT_IN_USE; port++) {
		set_port(address, port);
		ret = dat_csp_create(n->ia, &comm, (DAT_IA_ADDRESS_PTR)address, n->cr, &csp);
	}
	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
		skip("the provider has no common service points");
	OK(ret);
	return csp;
}

static DAT_RETURN common_connect(DAT_EP_HANDLE ep, const struct sockaddr_storage *address)
{
	return dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)address,
				     pair_scaled(PAIR_LIMIT) * 1000, 0, NULL);
}

CLAUSE("dat_csp_create/SUCCESS")
{
	struct sockaddr_storage address;
	DAT_CSP_HANDLE csp = csp_open(n, &address);
	DAT_HANDLE_TYPE type;

	OK(dat_get_handle_type(csp, &type));
	SAME(type, DAT_HANDLE_TYPE_CSP);
	FAILS(dat_evd_free(n->cr), DAT_INVALID_STATE);
	OK(dat_csp_free(csp));
	OK(dat_evd_free(n->cr));
}

CLAUSE("dat_csp_create/PORT_IN_USE")
{
	struct sockaddr_storage address;
	DAT_COMM comm = comm_of(n);
	DAT_CSP_HANDLE csp, second;

	csp = csp_open(n, &address);
	FAILS(dat_csp_create(n->ia, &comm, (DAT_IA_ADDRESS_PTR)&address, n->cr, &second),
	      DAT_PORT_IN_USE);
	OK(dat_csp_free(csp));
}

CLAUSE("dat_csp_create/COMM_NOT_SUPPORTED")
{
	struct sockaddr_storage address;
	DAT_COMM comm = comm_of(n);
	DAT_CSP_HANDLE csp;

	OK(dat_csp_free(csp_open(n, &address)));
	comm.type = 77;
	FAILS(dat_csp_create(n->ia, &comm, (DAT_IA_ADDRESS_PTR)&address, n->cr, &csp),
	      DAT_COMM_NOT_SUPPORTED);
}

CLAUSE("dat_csp_create/INVALID_PARAMETER")
{
	struct sockaddr_storage address;
	DAT_COMM comm = comm_of(n);
	DAT_CSP_HANDLE csp;

	OK(dat_csp_free(csp_open(n, &address)));
	FAILS(dat_csp_create(n->ia, NULL, (DAT_IA_ADDRESS_PTR)&address, n->cr, &csp),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_csp_create(n->ia, &comm, NULL, n->cr, &csp), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_create(n->ia, &comm, (DAT_IA_ADDRESS_PTR)&address, n->cr, NULL),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_csp_query/SUCCESS")
{
	struct sockaddr_storage address;
	DAT_CSP_HANDLE csp = csp_open(n, &address);
	DAT_CSP_PARAM param;

	OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia && param.evd_handle == n->cr, "wrong IA or EVD");
	SAME(param.comm->domain, n->address.ss_family);
	SAME(((struct sockaddr_in *)param.address_ptr)->sin_port,
	     ((struct sockaddr_in *)&address)->sin_port);
}

CLAUSE("dat_csp_query/INVALID_PARAMETER")
{
	struct sockaddr_storage address;
	DAT_CSP_HANDLE csp = csp_open(n, &address);
	DAT_CSP_PARAM param;

	FAILS(dat_csp_query(csp, (DAT_CSP_PARAM_MASK)0x10, &param), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_common_connect/SUCCESS")
{
	struct sockaddr_storage address;
	DAT_CSP_HANDLE csp = csp_open(n, &address);
	DAT_EVENT event;
	struct end a, b;

	end_open(n, &a, NULL);
	end_open(n, &b, NULL);
	OK(common_connect(a.ep, &address));
	expect_event(n->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.csp_handle == csp, "wrong CSP");
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	expect_conn(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect_conn(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
}

CLAUSE("dat_csp_free/SUCCESS/requests are refused afterwards")
{
	struct sockaddr_storage address;
	struct end a;

	OK(dat_csp_free(csp_open(n, &address)));
	end_open(n, &a, NULL);
	OK(common_connect(a.ep, &address));
	expect_conn(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
}

CLAUSE("dat_ep_common_connect/INVALID_ADDRESS")
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	FAILS(common_connect(ep, &address), DAT_INVALID_ADDRESS);
	FAILS(common_connect(ep, NULL), DAT_INVALID_ADDRESS);
}

CLAUSE("dat_ep_common_connect/INVALID_PARAMETER")
{
	struct sockaddr_storage address = n->address;
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	set_port(&address, FIRST_PORT);
	FAILS(dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 0, 0, NULL),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 1000, 1, NULL),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 1000, -1, &address),
	      DAT_INVALID_PARAMETER);
}

COUPLED("dat_ep_common_connect/INVALID_STATE/CONNECTED")
{
	struct sockaddr_storage address = n->address;

	set_port(&address, FIRST_PORT);
	FAILS(common_connect(c->a.ep, &address), DAT_INVALID_STATE);
}

/* RMRs */

/* Binds an RMR of b's to the second half of the memory and returns its context. */
static DAT_RMR_CONTEXT bound(struct node *n, struct end *e, const struct mem *m,
			     DAT_RMR_HANDLE *rmr, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_LMR_TRIPLET part = mem_segment(m, HALF, 4096);
	DAT_RMR_CONTEXT context = 0;
	DAT_EVENT event;

	OK(dat_rmr_create(n->pz, rmr));
	OK(rmr_bind(*rmr, m->lmr, &part, privileges, e->ep, 7, &context));
	expect_event(e->req, DAT_RMR_BIND_COMPLETION_EVENT, &event);
	return context;
}

static DAT_RMR_TRIPLET segment_of(const struct mem *m, DAT_RMR_CONTEXT context, size_t length)
{
	const struct grant g = { (uintptr_t)m->base, m->size, context };

	return remote_segment(&g, HALF, length);
}

static DAT_RETURN send_invalidate(DAT_EP_HANDLE ep, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	return dat_ep_post_send_with_invalidate(ep, 0, NULL, cookie_of(2),
						DAT_COMPLETION_DEFAULT_FLAG, invalidate, context);
}

static void may_lack(DAT_RETURN ret, const char *what)
{
	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
		skip("the provider lacks %s", what);
}

COUPLED("dat_ep_post_send_with_invalidate/SUCCESS")
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_RMR_CONTEXT context;
	DAT_RMR_TRIPLET remote;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;
	DAT_RETURN ret;

	context = bound(n, &c->b, &c->m, &rmr, REMOTE);
	post_recv(c->b.ep, &c->m, 0, 64, 1);
	ret = send_invalidate(c->a.ep, DAT_TRUE, context);
	may_lack(ret, "invalidation");
	conform_ret(__FILE__, __LINE__, "dat_ep_post_send_with_invalidate(", ret, DAT_SUCCESS);
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME(d->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(d->rmr_context, context);
	expect_dto(c->a.req, 2, DAT_DTO_SUCCESS, 0);
	/* the grant has ended */
	iov = mem_segment(&c->m, 0, 8);
	remote = segment_of(&c->m, context, 8);
	OK(dat_ep_post_rdma_write(c->a.ep, 1, &iov, cookie_of(3), &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
	expect_event(c->a.req, DAT_DTO_COMPLETION_EVENT, &event);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS,
	      "the write succeeded");
	OK(dat_rmr_free(rmr));
}

COUPLED("dat_ep_post_send_with_invalidate/SUCCESS/nothing to invalidate")
{
	DAT_EVENT event;

	post_recv(c->b.ep, &c->m, 0, 64, 1);
	OK(send_invalidate(c->a.ep, DAT_FALSE, 0));
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
}

COUPLED("dat_ep_post_send_with_invalidate/SUCCESS/an unknown context")
{
	DAT_EVENT event;
	DAT_RETURN ret;

	post_recv(c->b.ep, &c->m, 0, 64, 1);
	ret = send_invalidate(c->a.ep, DAT_TRUE, 0x5a5a5a5a);
	may_lack(ret, "invalidation");
	conform_ret(__FILE__, __LINE__, "dat_ep_post_send_with_invalidate(", ret, DAT_SUCCESS);
	expect_event(c->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS,
	      "the context was accepted");
	expect_end(c->b.conn, c->b.ep);
	expect_end(c->a.conn, c->a.ep);
}

COUPLED("dat_ep_post_send_with_invalidate/INVALID_PARAMETER")
{
	FAILS(dat_ep_post_send_with_invalidate(c->a.ep, -1, NULL, cookie_of(1),
					       DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_send_with_invalidate(c->a.ep, 1, NULL, cookie_of(1),
					       DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_send_with_invalidate(c->a.ep, 0, NULL, cookie_of(1),
					       (DAT_COMPLETION_FLAGS)0x1000, DAT_FALSE, 0),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_post_send_with_invalidate/INVALID_STATE")
{
	FAILS(send_invalidate(node_ep(n, NULL), DAT_FALSE, 0), DAT_INVALID_STATE);
}

COUPLED("dat_ep_post_send_with_invalidate/PROTECTION_VIOLATION")
{
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&c->m, 0, 8);
	iov.lmr_context ^= 0x5a5a5a5a;
	FAILS(dat_ep_post_send_with_invalidate(c->a.ep, 1, &iov, cookie_of(1),
					       DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
	      DAT_PROTECTION_VIOLATION);
}

static DAT_RETURN read_to(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
			  const DAT_RMR_TRIPLET *remote)
{
	return dat_ep_post_rdma_read_to_rmr(ep, local, cookie_of(4), remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
}

/* Reads from the start of the memory into its second half. */
struct reading {
	struct couple c;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_TRIPLET local, remote;
};

static void reading_open(struct node *n, struct reading *r, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_RMR_CONTEXT context;

	couple_open(n, &r->c);
	context = bound(n, &r->c.a, &r->c.m, &r->rmr, privileges);
	r->local = segment_of(&r->c.m, context, 64);
	r->remote = mem_remote(&r->c.m, 0, 64);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/SUCCESS")
{
	struct reading r;
	DAT_RETURN ret;

	reading_open(n, &r, REMOTE);
	fill(r.c.m.base, 64, 3);
	ret = read_to(r.c.a.ep, &r.local, &r.remote);
	may_lack(ret, "reads into RMRs");
	conform_ret(__FILE__, __LINE__, "dat_ep_post_rdma_read_to_rmr(", ret, DAT_SUCCESS);
	expect_dto(r.c.a.req, 4, DAT_DTO_SUCCESS, 64);
	verify(r.c.m.base + HALF, 64, 3);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/INVALID_PARAMETER")
{
	struct reading r;

	reading_open(n, &r, REMOTE);
	FAILS(read_to(r.c.a.ep, NULL, &r.remote), DAT_INVALID_PARAMETER);
	FAILS(read_to(r.c.a.ep, &r.local, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_rdma_read_to_rmr(r.c.a.ep, &r.local, cookie_of(4), &r.remote,
					   (DAT_COMPLETION_FLAGS)0x1000), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/INVALID_STATE")
{
	struct reading r;

	reading_open(n, &r, REMOTE);
	FAILS(read_to(node_ep(n, NULL), &r.local, &r.remote), DAT_INVALID_STATE);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/LENGTH_ERROR")
{
	struct reading r;

	reading_open(n, &r, REMOTE);
	r.remote = mem_remote(&r.c.m, 0, 65);
	FAILS(read_to(r.c.a.ep, &r.local, &r.remote), DAT_LENGTH_ERROR);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/PROTECTION_VIOLATION/unknown RMR")
{
	struct reading r;

	reading_open(n, &r, REMOTE);
	r.local.rmr_context ^= 0x5a5a5a5a;
	FAILS(read_to(r.c.a.ep, &r.local, &r.remote), DAT_PROTECTION_VIOLATION);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/PROTECTION_VIOLATION/outside the RMR")
{
	struct reading r;

	reading_open(n, &r, REMOTE);
	r.local.virtual_address += 4096 - 32;
	FAILS(read_to(r.c.a.ep, &r.local, &r.remote), DAT_PROTECTION_VIOLATION);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/PRIVILEGES_VIOLATION/no remote write")
{
	struct reading r;

	reading_open(n, &r, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	FAILS(read_to(r.c.a.ep, &r.local, &r.remote), DAT_PRIVILEGES_VIOLATION);
}

/* Requests of 2.0 occupy a slot of the queue like all others. */
#define DEPTH 2

static void fill_up(struct node *n, struct couple *c, struct mem *big)
{
	DAT_EP_ATTR attr;
	unsigned tries;

	node_ep_attr(n, &attr);
	attr.max_request_dtos = DEPTH;
	couple_make(n, c, &attr, NULL);
	couple_connect(n, c);
	/* exceeds the network's buffers, if messages may be that long */
	mem_get(n, big, attr.max_message_size < 16u << 20 ? attr.max_message_size : 16u << 20);
	for (tries = 0; tries < DEPTH; tries++)
		post_send(c->a.ep, big, 0, big->size, 0);
}

CLAUSE("dat_ep_post_send_with_invalidate/INSUFFICIENT_RESOURCES/the queue is full")
{
	struct couple c;
	struct mem big;

	if (pair_fabric_is("sockets"))
		skip("sockets accepts any number of messages without receives");
	fill_up(n, &c, &big);
	FAILS(send_invalidate(c.a.ep, DAT_FALSE, 0), DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_ep_post_rdma_read_to_rmr/INSUFFICIENT_RESOURCES/the queue is full")
{
	DAT_RMR_TRIPLET local, remote;
	DAT_RMR_CONTEXT context;
	struct couple other, c;
	DAT_RMR_HANDLE rmr;
	struct mem big;

	if (pair_fabric_is("sockets"))
		skip("sockets accepts any number of messages without receives");
	couple_open(n, &other);
	context = bound(n, &other.a, &other.m, &rmr, REMOTE);
	fill_up(n, &c, &big);
	local = segment_of(&other.m, context, 64);
	remote = mem_remote(&other.m, 0, 64);
	FAILS(read_to(c.a.ep, &local, &remote), DAT_INSUFFICIENT_RESOURCES);
}

/* Extensions */

static void needs_extensions(struct node *n)
{
	if (n->attr.extension_supported != DAT_EXTENSION_IB)
		skip("extension_supported is %d", (int)n->attr.extension_supported);
}

CLAUSE("dat_extension_op/NOT_IMPLEMENTED/unknown operation")
{
	FAILS(dat_extension_op(n->ia, 0xfff), DAT_NOT_IMPLEMENTED);
}

CLAUSE("dat_extension_op/INVALID_HANDLE")
{
	DAT_RMR_TRIPLET remote = { .segment_length = 0 };

	needs_extensions(n);
	FAILS(dat_ib_post_rdma_write_immed(n->recv, 0, NULL, cookie_of(1), &remote, 1,
					   DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_HANDLE);
	FAILS(dat_extension_op(DAT_HANDLE_NULL, DAT_IB_RDMA_WRITE_IMMED_OP), DAT_INVALID_HANDLE);
}

CLAUSE("dat_extension_op/INVALID_PARAMETER/no remote segment")
{
	struct couple c;

	needs_extensions(n);
	couple_open(n, &c);
	FAILS(dat_ib_post_rdma_write_immed(c.a.ep, 0, NULL, cookie_of(1), NULL, 1,
					   DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
}

static const DAT_IB_EXTENSION_EVENT_DATA *expect_extension(DAT_EVD_HANDLE evd, uint64_t cookie,
							   DAT_IB_EXT_TYPE type, DAT_EVENT *event)
{
	const DAT_IB_EXTENSION_EVENT_DATA *x = (void *)event->event_extension_data;

	expect_event(evd, DAT_IB_DTO_EVENT, event);
	SAME(event->event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	SAME(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	SAME(x->type, type);
	SAME(x->status, DAT_OP_SUCCESS);
	return x;
}

CLAUSE("dat_extension_op/SUCCESS/RDMA write with immediate data")
{
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;
	struct couple c;

	needs_extensions(n);
	couple_open(n, &c);
	fill(c.m.base, 64, 4);
	iov = mem_segment(&c.m, 0, 64);
	remote = mem_remote(&c.m, HALF, 64);
	OK(dat_ep_post_recv(c.b.ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ib_post_rdma_write_immed(c.a.ep, 1, &iov, cookie_of(2), &remote, 0x12345678,
					DAT_COMPLETION_DEFAULT_FLAG));
	expect_extension(c.a.req, 2, DAT_IB_RDMA_WRITE_IMMED, &event);
	SAME(expect_extension(c.b.recv, 1, DAT_IB_RDMA_WRITE_IMMED_DATA, &event)->val.immed.data,
	     0x12345678);
	SAME(event.event_data.dto_completion_event_data.transfered_length, 64);
	verify(c.m.base + HALF, 64, 4);
}

/* A word of the peer's as the target of atomics, and a local word for its old value. */
struct atomic {
	struct couple c;
	uint64_t *word, *old;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET local;
};

static void atomic_open(struct node *n, struct atomic *a, uint64_t value)
{
	unsigned privileges = DAT_MEM_PRIV_ALL_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	struct mem m;

	needs_extensions(n);
	couple_open(n, &a->c);
	mem_get_with(n, n->pz, &m, 4096, (DAT_MEM_PRIV_FLAGS)privileges);
	a->word = (uint64_t *)m.base;
	a->old = a->word + 8;
	*a->word = value;
	a->remote = mem_remote(&m, 0, 8);
	a->local = mem_segment(&m, 64, 8);
}

static void atomic_done(struct atomic *a, DAT_IB_EXT_TYPE type, uint64_t was, uint64_t is)
{
	DAT_EVENT event;

	expect_extension(a->c.a.req, 1, type, &event);
	SAME(*a->old, was);
	SAME(*a->word, is);
}

CLAUSE("dat_extension_op/SUCCESS/fetch and add")
{
	struct atomic a;

	atomic_open(n, &a, 40);
	OK(dat_ib_post_fetch_and_add(a.c.a.ep, 2, &a.local, cookie_of(1), &a.remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	atomic_done(&a, DAT_IB_FETCH_AND_ADD, 40, 42);
}

static void name_swap(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_extension_op/SUCCESS/compare and swap, %s",
		 i ? "equal" : "different");
}

FAMILY(2, name_swap)
{
	struct atomic a;

	atomic_open(n, &a, 40);
	OK(dat_ib_post_cmp_and_swap(a.c.a.ep, i ? 40 : 41, 7, &a.local, cookie_of(1), &a.remote,
				    DAT_COMPLETION_DEFAULT_FLAG));
	atomic_done(&a, DAT_IB_CMP_AND_SWAP, 40, i ? 7 : 40);
}

#endif
