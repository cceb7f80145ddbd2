/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Handles and arguments that are wrong: each call names the right error, and none crashes. */

#include "pair.h"

#include <string.h>
#include <sys/mman.h>

static const DAT_DTO_COOKIE no_cookie;

/* One live object of each kind, and what else the calls below are given. */
static struct fixture {
	struct node n;
	DAT_EP_HANDLE ep;
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_CONN_QUAL qual;
	struct mem m;
	DAT_EP_HANDLE requester;	/* whose request the CR is */
} f;

static void fixture_open(void)
{
	struct place place;

	node_open(&f.n);
	f.ep = node_ep(&f.n, NULL);
	f.requester = node_ep(&f.n, NULL);
	OK(dat_cno_create(f.n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &f.cno));
	mem_get(&f.n, &f.m, 4096);
	f.psp = node_listen(&f.n, &f.qual);
	place = (struct place){ .address = f.n.address, .qual = f.qual };
	ep_connect(f.requester, &place);
	f.cr = node_request(&f.n);
}

static void fixture_close(void)
{
	OK(cr_reject(f.cr, 0, NULL));
	expect_conn(f.n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, f.requester);
	OK(dat_ep_free(f.requester));
	OK(dat_ep_free(f.ep));
	OK(dat_psp_free(f.psp));
	OK(dat_cno_free(f.cno));
	mem_put(&f.m);
	node_close(&f.n);
}

/* Where the results of calls go that must not give any. */
static union {
	DAT_HANDLE handle;
	DAT_EVENT event;
	DAT_COUNT count;
	DAT_IA_ATTR ia;
	DAT_EP_PARAM ep;
	DAT_EP_STATE state;
	DAT_EVD_PARAM evd;
	DAT_PZ_PARAM pz;
	DAT_LMR_PARAM lmr;
	DAT_PSP_PARAM psp;
	DAT_CR_PARAM cr;
	DAT_CNO_PARAM cno;
	DAT_CONTEXT context;
	DAT_HANDLE_TYPE type;
} out;
static DAT_HANDLE out_handle;
static DAT_COUNT out_count;

/* Bad handles */

enum kind { IA, EP, EVD, CNO, PZ, LMR, PSP, CR, N_KINDS, ANY = N_KINDS };

static DAT_HANDLE live(enum kind kind)
{
	switch (kind) {
	case IA: return f.n.ia;
	case EP: return f.ep;
	case EVD: return f.n.recv;
	case CNO: return f.cno;
	case PZ: return f.n.pz;
	case LMR: return f.m.lmr;
	case PSP: return f.psp;
	case CR: return f.cr;
	default: return DAT_HANDLE_NULL;
	}
}

/* Calls by the handle that is wrong. All else is right. */
#define CALL(name, expression) \
	static DAT_RETURN name(DAT_HANDLE h) { return expression; }

CALL(ia_query, dat_ia_query(h, NULL, DAT_IA_FIELD_ALL, &out.ia, 0, NULL))
CALL(ia_close, dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(pz_create, dat_pz_create(h, &out_handle))
CALL(cno_create, dat_cno_create(h, DAT_OS_WAIT_PROXY_AGENT_NULL, &out_handle))
CALL(evd_create, dat_evd_create(h, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &out_handle))
CALL(evd_create_cno, dat_evd_create(f.n.ia, 4, h, DAT_EVD_DTO_FLAG, &out_handle))
CALL(ep_create, dat_ep_create(h, f.n.pz, f.n.recv, f.n.req, f.n.conn, NULL, &out_handle))
CALL(ep_create_pz, dat_ep_create(f.n.ia, h, f.n.recv, f.n.req, f.n.conn, NULL, &out_handle))
CALL(ep_create_recv, dat_ep_create(f.n.ia, f.n.pz, h, f.n.req, f.n.conn, NULL, &out_handle))
CALL(ep_create_req, dat_ep_create(f.n.ia, f.n.pz, f.n.recv, h, f.n.conn, NULL, &out_handle))
CALL(ep_create_conn, dat_ep_create(f.n.ia, f.n.pz, f.n.recv, f.n.req, h, NULL, &out_handle))
CALL(psp_create, dat_psp_create(h, 4711, f.n.cr, DAT_PSP_CONSUMER_FLAG, &out_handle))
CALL(psp_create_evd, dat_psp_create(f.n.ia, 4711, h, DAT_PSP_CONSUMER_FLAG, &out_handle))
CALL(psp_create_any, dat_psp_create_any(h, &f.qual, f.n.cr, DAT_PSP_CONSUMER_FLAG, &out_handle))
CALL(psp_create_any_evd, dat_psp_create_any(f.n.ia, &f.qual, h, DAT_PSP_CONSUMER_FLAG, &out_handle))
CALL(sync_read, dat_lmr_sync_rdma_read(h, NULL, 0))
CALL(sync_write, dat_lmr_sync_rdma_write(h, NULL, 0))

static DAT_LMR_CONTEXT out_lmr_context;
static DAT_RMR_CONTEXT out_rmr_context;

CALL(lmr_create_ia, lmr_create(h, f.m.base, 64, f.n.pz, DAT_MEM_PRIV_ALL_FLAG, &out_handle,
			       &out_lmr_context, &out_rmr_context))
CALL(lmr_create_pz, lmr_create(f.n.ia, f.m.base, 64, h, DAT_MEM_PRIV_ALL_FLAG, &out_handle,
			       &out_lmr_context, &out_rmr_context))
CALL(lmr_query, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &out.lmr))
CALL(lmr_free, dat_lmr_free(h))
CALL(pz_query, dat_pz_query(h, DAT_PZ_FIELD_ALL, &out.pz))
CALL(pz_free, dat_pz_free(h))

CALL(evd_query, dat_evd_query(h, DAT_EVD_FIELD_ALL, &out.evd))
CALL(evd_modify_cno, dat_evd_modify_cno(h, DAT_HANDLE_NULL))
CALL(evd_modify_cno_cno, dat_evd_modify_cno(f.n.recv, h))
CALL(evd_enable, dat_evd_enable(h))
CALL(evd_disable, dat_evd_disable(h))
CALL(evd_set_unwaitable, dat_evd_set_unwaitable(h))
CALL(evd_clear_unwaitable, dat_evd_clear_unwaitable(h))
CALL(evd_wait, dat_evd_wait(h, 0, 1, &out.event, &out_count))
CALL(evd_dequeue, dat_evd_dequeue(h, &out.event))
CALL(evd_resize, dat_evd_resize(h, 8))
CALL(evd_free, dat_evd_free(h))

static DAT_RETURN evd_post_se(DAT_HANDLE h)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	return dat_evd_post_se(h, &event);
}

CALL(cno_wait, dat_cno_wait(h, 0, &out_handle))
CALL(cno_query, dat_cno_query(h, DAT_CNO_FIELD_ALL, &out.cno))
CALL(cno_modify_agent, dat_cno_modify_agent(h, DAT_OS_WAIT_PROXY_AGENT_NULL))
CALL(cno_free, dat_cno_free(h))

CALL(ep_query, dat_ep_query(h, DAT_EP_FIELD_ALL, &out.ep))
CALL(ep_get_status, dat_ep_get_status(h, &out.state, NULL, NULL))
CALL(ep_connect_ep, dat_ep_connect(h, (DAT_IA_ADDRESS_PTR)&f.n.address, f.qual, 1000, 0, NULL,
				   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG))
CALL(ep_disconnect, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(ep_reset, dat_ep_reset(h))
CALL(ep_free, dat_ep_free(h))
CALL(ep_post_send, dat_ep_post_send(h, 0, NULL, no_cookie, DAT_COMPLETION_DEFAULT_FLAG))
CALL(ep_post_recv, dat_ep_post_recv(h, 0, NULL, no_cookie, DAT_COMPLETION_DEFAULT_FLAG))

static DAT_RETURN ep_post_rdma_read(DAT_HANDLE h)
{
	const DAT_RMR_TRIPLET remote = { .segment_length = 0 };

	return dat_ep_post_rdma_read(h, 0, NULL, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN ep_post_rdma_write(DAT_HANDLE h)
{
	const DAT_RMR_TRIPLET remote = { .segment_length = 0 };

	return dat_ep_post_rdma_write(h, 0, NULL, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

CALL(psp_query, dat_psp_query(h, DAT_PSP_FIELD_ALL, &out.psp))
CALL(psp_free, dat_psp_free(h))
CALL(cr_query, dat_cr_query(h, DAT_CR_FIELD_ALL, &out.cr))
CALL(cr_accept, dat_cr_accept(h, f.ep, 0, NULL))
CALL(cr_accept_ep, dat_cr_accept(f.cr, h, 0, NULL))
CALL(cr_reject_cr, cr_reject(h, 0, NULL))

CALL(set_context, dat_set_consumer_context(h, (DAT_CONTEXT){ .as_64 = 1 }))
CALL(get_context, dat_get_consumer_context(h, &out.context))
CALL(get_handle_type, dat_get_handle_type(h, &out.type))

static const struct call {
	const char *name;
	DAT_RETURN (*call)(DAT_HANDLE h);
	enum kind kind;		/* the one kind that is right */
	bool null_is_none;	/* a null handle is no error but means "without" */
} calls[] = {
	{ "dat_ia_query", ia_query, IA, false },
	{ "dat_ia_close", ia_close, IA, false },
	{ "dat_pz_create", pz_create, IA, false },
	{ "dat_cno_create", cno_create, IA, false },
	{ "dat_evd_create", evd_create, IA, false },
	{ "dat_evd_create, CNO", evd_create_cno, CNO, true },
	{ "dat_ep_create", ep_create, IA, false },
	{ "dat_ep_create, PZ", ep_create_pz, PZ, true },
	{ "dat_ep_create, receive EVD", ep_create_recv, EVD, true },
	{ "dat_ep_create, request EVD", ep_create_req, EVD, true },
	{ "dat_ep_create, connect EVD", ep_create_conn, EVD, true },
	{ "dat_psp_create", psp_create, IA, false },
	{ "dat_psp_create, EVD", psp_create_evd, EVD, false },
	{ "dat_psp_create_any", psp_create_any, IA, false },
	{ "dat_psp_create_any, EVD", psp_create_any_evd, EVD, false },
	{ "dat_lmr_sync_rdma_read", sync_read, IA, false },
	{ "dat_lmr_sync_rdma_write", sync_write, IA, false },
	{ "dat_lmr_create", lmr_create_ia, IA, false },
	{ "dat_lmr_create, PZ", lmr_create_pz, PZ, false },
	{ "dat_lmr_query", lmr_query, LMR, false },
	{ "dat_lmr_free", lmr_free, LMR, false },
	{ "dat_pz_query", pz_query, PZ, false },
	{ "dat_pz_free", pz_free, PZ, false },
	{ "dat_evd_query", evd_query, EVD, false },
	{ "dat_evd_modify_cno", evd_modify_cno, EVD, false },
	{ "dat_evd_modify_cno, CNO", evd_modify_cno_cno, CNO, true },
	{ "dat_evd_enable", evd_enable, EVD, false },
	{ "dat_evd_disable", evd_disable, EVD, false },
	{ "dat_evd_set_unwaitable", evd_set_unwaitable, EVD, false },
	{ "dat_evd_clear_unwaitable", evd_clear_unwaitable, EVD, false },
	{ "dat_evd_wait", evd_wait, EVD, false },
	{ "dat_evd_dequeue", evd_dequeue, EVD, false },
	{ "dat_evd_post_se", evd_post_se, EVD, false },
	{ "dat_evd_resize", evd_resize, EVD, false },
	{ "dat_evd_free", evd_free, EVD, false },
	{ "dat_cno_wait", cno_wait, CNO, false },
	{ "dat_cno_query", cno_query, CNO, false },
	{ "dat_cno_modify_agent", cno_modify_agent, CNO, false },
	{ "dat_cno_free", cno_free, CNO, false },
	{ "dat_ep_query", ep_query, EP, false },
	{ "dat_ep_get_status", ep_get_status, EP, false },
	{ "dat_ep_connect", ep_connect_ep, EP, false },
	{ "dat_ep_disconnect", ep_disconnect, EP, false },
	{ "dat_ep_reset", ep_reset, EP, false },
	{ "dat_ep_free", ep_free, EP, false },
	{ "dat_ep_post_send", ep_post_send, EP, false },
	{ "dat_ep_post_recv", ep_post_recv, EP, false },
	{ "dat_ep_post_rdma_read", ep_post_rdma_read, EP, false },
	{ "dat_ep_post_rdma_write", ep_post_rdma_write, EP, false },
	{ "dat_psp_query", psp_query, PSP, false },
	{ "dat_psp_free", psp_free, PSP, false },
	{ "dat_cr_query", cr_query, CR, false },
	{ "dat_cr_accept", cr_accept, CR, false },
	{ "dat_cr_accept, EP", cr_accept_ep, EP, false },
	{ "dat_cr_reject", cr_reject_cr, CR, false },
	{ "dat_set_consumer_context", set_context, ANY, false },
	{ "dat_get_consumer_context", get_context, ANY, false },
	{ "dat_get_handle_type", get_handle_type, ANY, false },
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

static void refuses(const struct call *c, const char *what, DAT_HANDLE handle)
{
	DAT_RETURN ret = c->call(handle);

	CHECK(DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE, "%s with %s: %#x", c->name, what, ret);
}

/* Things that never were handles. */
static void refuses_garbage(const struct call *c)
{
	static uint64_t zeroes[64], ones[64];
	static const uintptr_t numbers[] = { 2, 7, 42, 0x7ffffff0, 0xdeadbee8, UINTPTR_MAX, UINTPTR_MAX - 7 };
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (c->kind == IA || c->kind == ANY)	/* a registry may number its IAs from 1 */
			if (numbers[i] < 8)
				continue;
		refuses(c, "a number", (DAT_HANDLE)numbers[i]);
	}
	memset(ones, 0xff, sizeof(ones));
	refuses(c, "zeroed memory", zeroes);
	refuses(c, "memory of ones", ones);
	refuses(c, "an odd address", (char *)zeroes + 3);
	refuses(c, "the stack", &i);
}

static void bad_handles(struct pair *p)
{
	size_t i;
	int k;

	(void)p;
	fixture_open();
	for (i = 0; i < N_CALLS; i++) {
		const struct call *c = &calls[i];

		if (!c->null_is_none)
			refuses(c, "NULL", DAT_HANDLE_NULL);
		refuses_garbage(c);
		for (k = 0; c->kind != ANY && k < N_KINDS; k++)
			if (k != (int)c->kind)
				refuses(c, "a handle of another kind", live((enum kind)k));
		/* inside a live object, past its start */
		if (c->kind != IA && c->kind != ANY)
			refuses(c, "an address inside an object", (char *)live(c->kind) + 8);
	}
	fixture_close();
}

/* Handles whose objects are gone. */
static void dead_handles(struct pair *p)
{
	DAT_HANDLE dead[N_KINDS];
	struct node n;
	size_t i;
	int k;

	(void)p;
	node_open(&n);
	dead[IA] = n.ia;
	fixture_open();
	for (k = EP; k < N_KINDS; k++)
		dead[k] = live((enum kind)k);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ia_close(f.n.ia, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < N_CALLS; i++)
		for (k = 0; k < N_KINDS; k++)
			refuses(&calls[i], "the handle of a closed IA's object", dead[k]);
	munmap(f.m.base, f.m.size);
}

/* Objects of another IA are as wrong as none. */
static void foreign_objects(struct pair *p)
{
	DAT_CNO_HANDLE cno;
	struct node n;

	(void)p;
	node_open(&n);
	fixture_open();
	OK(dat_cno_create(n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	FAILS(evd_create_cno(cno), DAT_INVALID_HANDLE);
	FAILS(evd_modify_cno_cno(cno), DAT_INVALID_HANDLE);
	FAILS(ep_create_pz(n.pz), DAT_INVALID_HANDLE);
	FAILS(ep_create_recv(n.recv), DAT_INVALID_HANDLE);
	FAILS(ep_create_req(n.req), DAT_INVALID_HANDLE);
	FAILS(ep_create_conn(n.conn), DAT_INVALID_HANDLE);
	FAILS(psp_create_evd(n.cr), DAT_INVALID_HANDLE);
	FAILS(lmr_create_pz(n.pz), DAT_INVALID_HANDLE);
	/* and of the wrong stream */
	FAILS(ep_create_recv(f.n.conn), DAT_INVALID_HANDLE);
	FAILS(ep_create_req(f.n.cr), DAT_INVALID_HANDLE);
	FAILS(ep_create_conn(f.n.recv), DAT_INVALID_HANDLE);
	FAILS(psp_create_evd(f.n.recv), DAT_INVALID_HANDLE);
	OK(dat_cno_free(cno));
	fixture_close();
	node_close(&n);
}

/* Bad arguments */

#define IP(call) FAILS(call, DAT_INVALID_PARAMETER)

static void ia_arguments(struct pair *p)
{
	DAT_PROVIDER_ATTR prov;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_NAME_PTR name = (DAT_NAME_PTR)pair_ia_name();
	char long_name[DAT_NAME_MAX_LENGTH + 2];

	(void)p;
	fixture_open();
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	IP(dat_ia_open(NULL, 8, &async, &ia));
	IP(dat_ia_open(long_name, 8, &async, &ia));
	IP(dat_ia_open(name, 0, &async, &ia));
	IP(dat_ia_open(name, -1, &async, &ia));
	FAILS(dat_ia_open((DAT_NAME_PTR)"no-such-ia", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_ia_openv(name, 8, &async, &ia, 7, 0, DAT_FALSE), DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_ia_open(name, 8, &async, NULL), DAT_INVALID_HANDLE);
	/* an EVD that is not for asynchronous events */
	async = f.n.recv;
	FAILS(dat_ia_open(name, 8, &async, &ia), DAT_INVALID_HANDLE);
	OK(dat_ia_query(f.n.ia, NULL, 0, NULL, 0, NULL));
	IP(dat_ia_query(f.n.ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL));
	IP(dat_ia_query(f.n.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL));
	IP(dat_ia_query(f.n.ia, NULL, UINT64_C(1) << 62, &out.ia, 0, NULL));
	IP(dat_ia_query(f.n.ia, NULL, 0, NULL, UINT64_C(1) << 62, &prov));
	IP(dat_ia_close(f.n.ia, (DAT_CLOSE_FLAGS)5));
	FAILS(dat_ia_close(f.n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	fixture_close();
}

static void evd_arguments(struct pair *p)
{
	DAT_EVENT event;

	(void)p;
	fixture_open();
	IP(dat_evd_create(f.n.ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &out_handle));
	IP(dat_evd_create(f.n.ia, -5, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &out_handle));
	FAILS(dat_evd_create(f.n.ia, f.n.attr.max_evd_qlen + 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			     &out_handle), DAT_INSUFFICIENT_RESOURCES);
	IP(dat_evd_create(f.n.ia, 4, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0, &out_handle));
	IP(dat_evd_create(f.n.ia, 4, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0x10000, &out_handle));
	IP(dat_evd_create(f.n.ia, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL));
	IP(dat_evd_query(f.n.recv, (DAT_EVD_PARAM_MASK)~DAT_EVD_FIELD_ALL, &out.evd));
	IP(dat_evd_query(f.n.recv, DAT_EVD_FIELD_ALL, NULL));
	IP(dat_evd_dequeue(f.n.recv, NULL));
	IP(dat_evd_wait(f.n.recv, 0, 1, NULL, &out_count));
	IP(dat_evd_wait(f.n.recv, 0, 1, &event, NULL));
	IP(dat_evd_post_se(f.n.recv, NULL));
	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	IP(dat_evd_post_se(f.n.recv, &event));		/* takes no software events */
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	IP(dat_evd_post_se(f.n.recv, &event));
	FAILS(dat_evd_free(f.n.recv), DAT_INVALID_STATE);	/* an EP feeds it */
	FAILS(dat_evd_free(f.n.cr), DAT_INVALID_STATE);		/* a PSP feeds it */
	FAILS(dat_evd_free(f.n.async), DAT_INVALID_STATE);
	fixture_close();
}

static void cno_arguments(struct pair *p)
{
	(void)p;
	fixture_open();
	IP(dat_cno_create(f.n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL));
	IP(dat_cno_query(f.cno, (DAT_CNO_PARAM_MASK)0x100, &out.cno));
	IP(dat_cno_query(f.cno, DAT_CNO_FIELD_ALL, NULL));
	IP(dat_cno_wait(f.cno, 0, NULL));
	fixture_close();
}

static DAT_RETURN ep_with(const DAT_EP_ATTR *attr)
{
	return dat_ep_create(f.n.ia, f.n.pz, f.n.recv, f.n.req, f.n.conn, attr, &out_handle);
}

static void ep_arguments(struct pair *p)
{
	DAT_IA_ADDRESS_PTR address;
	DAT_EP_ATTR good, attr;
	DAT_EP_HANDLE bare;

	(void)p;
	fixture_open();
	address = (DAT_IA_ADDRESS_PTR)&f.n.address;
	node_ep_attr(&f.n, &good);
#define IP_OR_IR(call)                                                                        \
	do {                                                                                  \
		DAT_RETURN ret_ = (call);                                                     \
		CHECK(DAT_GET_TYPE(ret_) == DAT_INVALID_PARAMETER ||                          \
		      DAT_GET_TYPE(ret_) == DAT_INSUFFICIENT_RESOURCES, "%#x", ret_);         \
	} while (0)
	attr = good, attr.max_recv_dtos = -1;
	IP_OR_IR(ep_with(&attr));
	attr = good, attr.max_request_dtos = -1;
	IP_OR_IR(ep_with(&attr));
	attr = good, attr.max_recv_iov = -1;
	IP_OR_IR(ep_with(&attr));
	attr = good, attr.max_rdma_read_out = INT32_MAX;
	IP_OR_IR(ep_with(&attr));
	attr = good, attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	IP(ep_with(&attr));
	attr = good, attr.recv_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	IP(ep_with(&attr));
	attr = good, attr.request_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	IP(ep_with(&attr));
	attr = good, attr.max_message_size = 0;		/* whatever there is */
	OK(ep_with(&attr));
	OK(dat_ep_free(out_handle));
	attr = good, attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	OK(ep_with(&attr));	/* the default by its name */
	OK(dat_ep_free(out_handle));
	IP(dat_ep_create(f.n.ia, f.n.pz, f.n.recv, f.n.req, f.n.conn, NULL, NULL));
	IP(dat_ep_query(f.ep, (DAT_EP_PARAM_MASK)UINT64_C(0x80000000), &out.ep));
	IP(dat_ep_query(f.ep, DAT_EP_FIELD_ALL, NULL));
	OK(dat_ep_get_status(f.ep, NULL, NULL, NULL));
	IP(dat_ep_connect(f.ep, address, 0, 1000, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	IP(dat_ep_connect(f.ep, address, 1, 0, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	IP(dat_ep_connect(f.ep, address, 1, 1000, 4, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	FAILS(dat_ep_connect(f.ep, address, 1, 1000, 0, NULL, DAT_QOS_PREMIUM, DAT_CONNECT_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ep_connect(f.ep, address, 1, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_MULTIPATH_FLAG), DAT_MODEL_NOT_SUPPORTED);
	SAME(ep_state(f.ep), DAT_EP_STATE_UNCONNECTED);
	/* without what a connection needs */
	OK(dat_ep_create(f.n.ia, DAT_HANDLE_NULL, f.n.recv, f.n.req, f.n.conn, NULL, &bare));
	FAILS(dat_ep_connect(bare, address, 1, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_STATE);
	FAILS(dat_cr_accept(f.cr, bare, 0, NULL), DAT_INVALID_STATE);
	OK(dat_ep_free(bare));
	fixture_close();
}

static void passive_arguments(struct pair *p)
{
	char data[1024] = { 0 };

	(void)p;
	fixture_open();
	IP(dat_psp_create(f.n.ia, 0, f.n.cr, DAT_PSP_CONSUMER_FLAG, &out_handle));
	IP(dat_psp_create(f.n.ia, 4711, f.n.cr, (DAT_PSP_FLAGS)9, &out_handle));
	IP(dat_psp_create(f.n.ia, 4711, f.n.cr, DAT_PSP_CONSUMER_FLAG, NULL));
	IP(dat_psp_create_any(f.n.ia, NULL, f.n.cr, DAT_PSP_CONSUMER_FLAG, &out_handle));
	IP(dat_psp_create_any(f.n.ia, &f.qual, f.n.cr, DAT_PSP_CONSUMER_FLAG, NULL));
	IP(dat_psp_query(f.psp, (DAT_PSP_PARAM_MASK)0x100, &out.psp));
	IP(dat_psp_query(f.psp, DAT_PSP_FIELD_ALL, NULL));
	IP(dat_cr_query(f.cr, (DAT_CR_PARAM_MASK)0x100, &out.cr));
	IP(dat_cr_query(f.cr, DAT_CR_FIELD_ALL, NULL));
	IP(dat_cr_accept(f.cr, f.ep, 8, NULL));
	IP(dat_cr_accept(f.cr, f.ep, sizeof(data), data));
	IP(dat_cr_accept(f.cr, f.ep, -1, data));
#if DAT_VERSION_MAJOR >= 2
	IP(dat_cr_reject(f.cr, 8, NULL));
	IP(dat_cr_reject(f.cr, sizeof(data), data));
#endif
	/* an EP that is not free */
	FAILS(dat_cr_accept(f.cr, f.requester, 0, NULL), DAT_INVALID_STATE);
	fixture_close();
}

static void memory_arguments(struct pair *p)
{
	DAT_LMR_TRIPLET segment;
	DAT_LMR_HANDLE lmr;
	void *base;

	(void)p;
	fixture_open();
	base = f.m.base;
#define REGISTER(address, length, privileges)                                                 \
	lmr_create(f.n.ia, (address), (length), f.n.pz, (DAT_MEM_PRIV_FLAGS)(privileges), &lmr, \
		   &out_lmr_context, &out_rmr_context)
	FAILS(REGISTER(base, 0, DAT_MEM_PRIV_ALL_FLAG), DAT_LENGTH_ERROR);
	IP(REGISTER(NULL, 64, DAT_MEM_PRIV_ALL_FLAG));
	IP(REGISTER(base, UINT64_MAX, DAT_MEM_PRIV_ALL_FLAG));
	IP(REGISTER(base, 64, 0x1000));
	IP(REGISTER(base, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG));
	OK(REGISTER(base, 64, DAT_MEM_PRIV_NONE_FLAG));
	SAME(out_rmr_context, 0);	/* nothing is granted */
	OK(dat_lmr_free(lmr));
	IP(lmr_create(f.n.ia, base, 64, f.n.pz, DAT_MEM_PRIV_ALL_FLAG, NULL, &out_lmr_context,
		      &out_rmr_context));
	OK(lmr_create(f.n.ia, base, 64, f.n.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &out_lmr_context, NULL));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &out.lmr));
	SAME(out.lmr.lmr_context, out_lmr_context);
	CHECK(out.lmr.rmr_context, "the context that was not asked for");
	CHECK(out.lmr.registered_address <= (uintptr_t)base && out.lmr.registered_size >= 64,
	      "not covered");
	OK(dat_lmr_free(lmr));
	IP(dat_lmr_query(f.m.lmr, (DAT_LMR_PARAM_MASK)0x10000, &out.lmr));
	IP(dat_lmr_query(f.m.lmr, DAT_LMR_FIELD_ALL, NULL));
	segment = mem_segment(&f.m, 0, 64);
	OK(dat_lmr_sync_rdma_read(f.n.ia, &segment, 1));
	OK(dat_lmr_sync_rdma_write(f.n.ia, &segment, 1));
	OK(dat_lmr_sync_rdma_write(f.n.ia, NULL, 0));
	IP(dat_lmr_sync_rdma_write(f.n.ia, NULL, 1));
	segment.lmr_context ^= 0x10000;
	IP(dat_lmr_sync_rdma_read(f.n.ia, &segment, 1));
	segment = mem_segment(&f.m, 4096, 1);
	IP(dat_lmr_sync_rdma_read(f.n.ia, &segment, 1));
	IP(dat_pz_create(f.n.ia, NULL));
	IP(dat_pz_query(f.n.pz, (DAT_PZ_PARAM_MASK)0x100, &out.pz));
	IP(dat_pz_query(f.n.pz, DAT_PZ_FIELD_ALL, NULL));
	FAILS(dat_pz_free(f.n.pz), DAT_INVALID_STATE);
	fixture_close();
}

/* Every object carries a word of the consumer's, and knows its kind. */
static void contexts(struct pair *p)
{
	static const DAT_HANDLE_TYPE type[N_KINDS] = {
		[IA] = DAT_HANDLE_TYPE_IA, [EP] = DAT_HANDLE_TYPE_EP, [EVD] = DAT_HANDLE_TYPE_EVD,
		[CNO] = DAT_HANDLE_TYPE_CNO, [PZ] = DAT_HANDLE_TYPE_PZ, [LMR] = DAT_HANDLE_TYPE_LMR,
		[PSP] = DAT_HANDLE_TYPE_PSP, [CR] = DAT_HANDLE_TYPE_CR,
	};
	int k;

	(void)p;
	fixture_open();
	for (k = 0; k < N_KINDS; k++) {
		DAT_HANDLE h = live((enum kind)k);

		OK(dat_get_consumer_context(h, &out.context));
		SAME(out.context.as_64, 0);
		OK(dat_set_consumer_context(h, (DAT_CONTEXT){ .as_64 = 1000 + k }));
	}
	for (k = 0; k < N_KINDS; k++) {
		DAT_HANDLE h = live((enum kind)k);

		OK(dat_get_consumer_context(h, &out.context));
		SAME(out.context.as_64, 1000 + k);
		OK(dat_get_handle_type(h, &out.type));
		SAME(out.type, type[k]);
		IP(dat_get_consumer_context(h, NULL));
		IP(dat_get_handle_type(h, NULL));
	}
	fixture_close();
}

static const struct pair_case cases[] = {
	PAIR_CASE("bad handles", NULL, bad_handles),
	PAIR_CASE("handles of a closed IA", NULL, dead_handles),
	PAIR_CASE("objects of another IA or kind", NULL, foreign_objects),
	PAIR_CASE("arguments: IA", NULL, ia_arguments),
	PAIR_CASE("arguments: EVD", NULL, evd_arguments),
	PAIR_CASE("arguments: CNO", NULL, cno_arguments),
	PAIR_CASE("arguments: EP", NULL, ep_arguments),
	PAIR_CASE("arguments: PSP and CR", NULL, passive_arguments),
	PAIR_CASE("arguments: LMR and PZ", NULL, memory_arguments),
	PAIR_CASE("consumer's contexts and handle types", NULL, contexts),
};

PAIR_MAIN(cases)
