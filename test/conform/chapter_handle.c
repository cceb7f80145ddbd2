/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handles: every call detects a handle of the wrong type, a stale one, and a pointer to anything
 * else.
 */

#include "conform.h"

#include <stdio.h>
#include <string.h>

CHAPTER("handle");

#define ANY N_TYPES		/* any type of handle is valid */

static const DAT_DTO_COOKIE no_cookie;

/* For results of calls that must not return any. */
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
	DAT_RMR_PARAM rmr;
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CR_PARAM cr;
	DAT_CNO_PARAM cno;
	DAT_SRQ_PARAM srq;
	DAT_CONN_QUAL qual;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_CONTEXT context;
	DAT_HANDLE_TYPE type;
#if DAT_VERSION_MAJOR >= 2
	DAT_CSP_PARAM csp;
	DAT_FD fd;
#endif
} out;
static DAT_HANDLE new_handle;

/*
 * Calls with the handle under test as @h; all other arguments are valid, and exist before the
 * call.
 */
#define CALL(name, expression) \
	static DAT_RETURN name(struct node *n __attribute__((unused)), DAT_HANDLE h) \
	{ return expression; }
#define LIVE(type) object(n, DAT_HANDLE_TYPE_##type)
#define NO_AGENT DAT_OS_WAIT_PROXY_AGENT_NULL
#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

/* The IA and its objects */

CALL(ia_query, dat_ia_query(h, NULL, DAT_IA_FIELD_ALL, &out.ia, 0, NULL))
CALL(ia_close, dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(pz_create, dat_pz_create(h, &new_handle))
CALL(pz_query, dat_pz_query(h, DAT_PZ_FIELD_ALL, &out.pz))
CALL(pz_free, dat_pz_free(h))

CALL(set_context, dat_set_consumer_context(h, (DAT_CONTEXT){ .as_64 = 1 }))
CALL(get_context, dat_get_consumer_context(h, &out.context))
CALL(get_type, dat_get_handle_type(h, &out.type))

/* Memory */

static unsigned char memory[64];

CALL(lmr_create_ia, lmr_create(h, memory, 64, n->pz, DAT_MEM_PRIV_ALL_FLAG, &new_handle,
			       &out.lmr_context, NULL))
CALL(lmr_create_pz, lmr_create(n->ia, memory, 64, h, DAT_MEM_PRIV_ALL_FLAG, &new_handle,
			       &out.lmr_context, NULL))
CALL(lmr_create_lmr, lmr_create_as(n->ia, DAT_MEM_TYPE_LMR,
				   (DAT_REGION_DESCRIPTION){ .for_lmr_handle = h }, 64, n->pz,
				   DAT_MEM_PRIV_ALL_FLAG, &new_handle))
CALL(lmr_query, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &out.lmr))
CALL(lmr_free, dat_lmr_free(h))
CALL(sync_read, dat_lmr_sync_rdma_read(h, NULL, 0))
CALL(sync_write, dat_lmr_sync_rdma_write(h, NULL, 0))
CALL(rmr_create, dat_rmr_create(h, &new_handle))
CALL(rmr_query, dat_rmr_query(h, DAT_RMR_FIELD_ALL, &out.rmr))
CALL(rmr_free, dat_rmr_free(h))

static const DAT_LMR_TRIPLET no_part;

CALL(rmr_bind_rmr, rmr_bind(h, LIVE(LMR), &no_part, DAT_MEM_PRIV_NONE_FLAG, LIVE(EP), 0,
			    &out.rmr_context))
CALL(rmr_bind_ep, rmr_bind(LIVE(RMR), LIVE(LMR), &no_part, DAT_MEM_PRIV_NONE_FLAG, h, 0,
			   &out.rmr_context))

/* Events */

CALL(evd_create, dat_evd_create(h, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &new_handle))
CALL(evd_create_cno, dat_evd_create(n->ia, 4, h, DAT_EVD_DTO_FLAG, &new_handle))
CALL(evd_query, dat_evd_query(h, DAT_EVD_FIELD_ALL, &out.evd))
CALL(evd_modify_cno, dat_evd_modify_cno(h, DAT_HANDLE_NULL))
CALL(evd_modify_cno_cno, dat_evd_modify_cno(n->recv, h))
CALL(evd_enable, dat_evd_enable(h))
CALL(evd_disable, dat_evd_disable(h))
CALL(evd_set_unwaitable, dat_evd_set_unwaitable(h))
CALL(evd_clear_unwaitable, dat_evd_clear_unwaitable(h))
CALL(evd_wait, dat_evd_wait(h, 0, 1, &out.event, &out.count))
CALL(evd_dequeue, dat_evd_dequeue(h, &out.event))
CALL(evd_post_se, post_se(h, 1))
CALL(evd_resize, dat_evd_resize(h, 8))
CALL(evd_free, dat_evd_free(h))
CALL(cno_create, dat_cno_create(h, NO_AGENT, &new_handle))
CALL(cno_query, dat_cno_query(h, DAT_CNO_FIELD_ALL, &out.cno))
CALL(cno_modify_agent, dat_cno_modify_agent(h, NO_AGENT))
CALL(cno_wait, dat_cno_wait(h, 0, &out.handle))
CALL(cno_free, dat_cno_free(h))

/* Endpoints */

CALL(ep_create, dat_ep_create(h, n->pz, n->recv, n->req, n->conn, NULL, &new_handle))
CALL(ep_create_pz, dat_ep_create(n->ia, h, n->recv, n->req, n->conn, NULL, &new_handle))
CALL(ep_create_recv, dat_ep_create(n->ia, n->pz, h, n->req, n->conn, NULL, &new_handle))
CALL(ep_create_req, dat_ep_create(n->ia, n->pz, n->recv, h, n->conn, NULL, &new_handle))
CALL(ep_create_conn, dat_ep_create(n->ia, n->pz, n->recv, n->req, h, NULL, &new_handle))
CALL(ep_query, dat_ep_query(h, DAT_EP_FIELD_ALL, &out.ep))
CALL(ep_modify, dat_ep_modify(h, 0, &out.ep))
CALL(ep_get_status, dat_ep_get_status(h, &out.state, NULL, NULL))
CALL(ep_connect_ep, dat_ep_connect(h, (DAT_IA_ADDRESS_PTR)&n->address, 4711, 1000, 0, NULL,
				   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG))
CALL(ep_dup_connect, dat_ep_dup_connect(h, LIVE(EP), 1000, 0, NULL, DAT_QOS_BEST_EFFORT))
CALL(ep_dup_connect_dup, dat_ep_dup_connect(LIVE(EP), h, 1000, 0, NULL, DAT_QOS_BEST_EFFORT))
CALL(ep_disconnect, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(ep_reset, dat_ep_reset(h))
CALL(ep_free, dat_ep_free(h))
CALL(ep_post_send, dat_ep_post_send(h, 0, NULL, no_cookie, DEFAULT))
CALL(ep_post_recv, dat_ep_post_recv(h, 0, NULL, no_cookie, DEFAULT))
CALL(ep_recv_query, dat_ep_recv_query(h, &out.count, NULL))
CALL(ep_set_watermark, dat_ep_set_watermark(h, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE))

static const DAT_RMR_TRIPLET no_remote;

CALL(ep_post_rdma_read, dat_ep_post_rdma_read(h, 0, NULL, no_cookie, &no_remote, DEFAULT))
CALL(ep_post_rdma_write, dat_ep_post_rdma_write(h, 0, NULL, no_cookie, &no_remote, DEFAULT))

/* Shared receive queues */

static DAT_EP_ATTR *srq_ep_attr(struct node *n)
{
	static DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	return &attr;
}

static DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };

#define WITH_SRQ(ia, pz, recv, req, conn, srq) \
	dat_ep_create_with_srq(ia, pz, recv, req, conn, srq, srq_ep_attr(n), &new_handle)
CALL(ep_create_srq, WITH_SRQ(h, n->pz, n->recv, n->req, n->conn, LIVE(SRQ)))
CALL(ep_create_srq_pz, WITH_SRQ(n->ia, h, n->recv, n->req, n->conn, LIVE(SRQ)))
CALL(ep_create_srq_recv, WITH_SRQ(n->ia, n->pz, h, n->req, n->conn, LIVE(SRQ)))
CALL(ep_create_srq_req, WITH_SRQ(n->ia, n->pz, n->recv, h, n->conn, LIVE(SRQ)))
CALL(ep_create_srq_conn, WITH_SRQ(n->ia, n->pz, n->recv, n->req, h, LIVE(SRQ)))
CALL(ep_create_srq_srq, WITH_SRQ(n->ia, n->pz, n->recv, n->req, n->conn, h))
CALL(srq_create, dat_srq_create(h, n->pz, &srq_attr, &new_handle))
CALL(srq_create_pz, dat_srq_create(n->ia, h, &srq_attr, &new_handle))
CALL(srq_query, dat_srq_query(h, DAT_SRQ_FIELD_ALL, &out.srq))
CALL(srq_resize, dat_srq_resize(h, 8))
CALL(srq_set_lw, dat_srq_set_lw(h, 1))
CALL(srq_post_recv, dat_srq_post_recv(h, 0, NULL, no_cookie))
CALL(srq_free, dat_srq_free(h))

/* Service points and connection requests */

#define QUAL 4711
CALL(psp_create, dat_psp_create(h, QUAL, n->cr, DAT_PSP_CONSUMER_FLAG, &new_handle))
CALL(psp_create_evd, dat_psp_create(n->ia, QUAL, h, DAT_PSP_CONSUMER_FLAG, &new_handle))
CALL(psp_create_any, dat_psp_create_any(h, &out.qual, n->cr, DAT_PSP_CONSUMER_FLAG, &new_handle))
CALL(psp_create_any_evd, dat_psp_create_any(n->ia, &out.qual, h, DAT_PSP_CONSUMER_FLAG,
					    &new_handle))
CALL(psp_query, dat_psp_query(h, DAT_PSP_FIELD_ALL, &out.psp))
CALL(psp_free, dat_psp_free(h))
CALL(rsp_create, dat_rsp_create(h, QUAL, LIVE(EP), n->cr, &new_handle))
CALL(rsp_create_ep, dat_rsp_create(n->ia, QUAL, h, n->cr, &new_handle))
CALL(rsp_create_evd, dat_rsp_create(n->ia, QUAL, LIVE(EP), h, &new_handle))
CALL(rsp_query, dat_rsp_query(h, DAT_RSP_FIELD_ALL, &out.rsp))
CALL(rsp_free, dat_rsp_free(h))
CALL(cr_query, dat_cr_query(h, DAT_CR_FIELD_ALL, &out.cr))
CALL(cr_accept, dat_cr_accept(h, LIVE(EP), 0, NULL))
CALL(cr_accept_ep, dat_cr_accept(LIVE(CR), h, 0, NULL))
CALL(cr_reject_cr, cr_reject(h, 0, NULL))
CALL(cr_handoff, dat_cr_handoff(h, QUAL))

/* Additions of 2.0 */

#if DAT_VERSION_MAJOR >= 2
static const DAT_LMR_TRIPLET part = { .segment_length = 1 };

CALL(rmr_bind_lmr, rmr_bind(LIVE(RMR), h, &part, DAT_MEM_PRIV_NONE_FLAG, LIVE(EP), 0,
			    &out.rmr_context))
CALL(rmr_create_for_ep, dat_rmr_create_for_ep(h, &new_handle))
CALL(cno_fd_create, dat_cno_fd_create(h, &out.fd, &new_handle))
CALL(cno_trigger, dat_cno_trigger(h, &out.handle))
CALL(ep_common_connect, dat_ep_common_connect(h, (DAT_IA_ADDRESS_PTR)&n->address, 1000, 0, NULL))
CALL(ep_send_invalidate, dat_ep_post_send_with_invalidate(h, 0, NULL, no_cookie, DEFAULT,
							  DAT_FALSE, 0))
CALL(ep_read_to_rmr, dat_ep_post_rdma_read_to_rmr(h, &no_remote, no_cookie, &no_remote, DEFAULT))
CALL(csp_create, dat_csp_create(h, stream_comm(n), free_address(n), n->cr, &new_handle))
CALL(csp_create_evd, dat_csp_create(n->ia, stream_comm(n), free_address(n), h, &new_handle))
CALL(csp_query, dat_csp_query(h, DAT_CSP_FIELD_ALL, &out.csp))
CALL(csp_free, dat_csp_free(h))
#endif

static const struct attempt {
	const char *name;		/* name of the call */
	const char *which;		/* argument, if the call takes several handles */
	DAT_RETURN (*call)(struct node *n, DAT_HANDLE h);
	DAT_HANDLE_TYPE type;		/* the valid type */
	bool same_ia;			/* the object must be of the IA that the call is for */
	bool optional;			/* a null handle is valid and selects no object */
} calls[] = {
#define ROW(name, which, fn, right, ...) \
	{ "dat_" #name, which, fn, (DAT_HANDLE_TYPE)(right), __VA_ARGS__ }
#define FIRST(name, fn, right) ROW(name, NULL, fn, right, false, false)
#define OTHER(name, which, fn, right) ROW(name, which, fn, right, true, false)
#define NO_OR(name, which, fn, right) ROW(name, which, fn, right, true, true)
/* a PZ shows that the object is of another IA: DAT_PROTECTION_VIOLATION */
#define OF_PZ(name, which, fn, right) ROW(name, which, fn, right, false, false)
	FIRST(ia_query, ia_query, DAT_HANDLE_TYPE_IA),
	FIRST(ia_close, ia_close, DAT_HANDLE_TYPE_IA),
	FIRST(set_consumer_context, set_context, ANY),
	FIRST(get_consumer_context, get_context, ANY),
	FIRST(get_handle_type, get_type, ANY),
	FIRST(pz_create, pz_create, DAT_HANDLE_TYPE_IA),
	FIRST(pz_query, pz_query, DAT_HANDLE_TYPE_PZ),
	FIRST(pz_free, pz_free, DAT_HANDLE_TYPE_PZ),
	FIRST(lmr_create, lmr_create_ia, DAT_HANDLE_TYPE_IA),
	OTHER(lmr_create, "pz", lmr_create_pz, DAT_HANDLE_TYPE_PZ),
	OTHER(lmr_create, "lmr", lmr_create_lmr, DAT_HANDLE_TYPE_LMR),
	FIRST(lmr_query, lmr_query, DAT_HANDLE_TYPE_LMR),
	FIRST(lmr_free, lmr_free, DAT_HANDLE_TYPE_LMR),
	FIRST(lmr_sync_rdma_read, sync_read, DAT_HANDLE_TYPE_IA),
	FIRST(lmr_sync_rdma_write, sync_write, DAT_HANDLE_TYPE_IA),
	FIRST(rmr_create, rmr_create, DAT_HANDLE_TYPE_PZ),
	FIRST(rmr_query, rmr_query, DAT_HANDLE_TYPE_RMR),
	FIRST(rmr_bind, rmr_bind_rmr, DAT_HANDLE_TYPE_RMR),
	OF_PZ(rmr_bind, "ep", rmr_bind_ep, DAT_HANDLE_TYPE_EP),
	FIRST(rmr_free, rmr_free, DAT_HANDLE_TYPE_RMR),
	FIRST(evd_create, evd_create, DAT_HANDLE_TYPE_IA),
	NO_OR(evd_create, "cno", evd_create_cno, DAT_HANDLE_TYPE_CNO),
	FIRST(evd_query, evd_query, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_modify_cno, evd_modify_cno, DAT_HANDLE_TYPE_EVD),
	NO_OR(evd_modify_cno, "cno", evd_modify_cno_cno, DAT_HANDLE_TYPE_CNO),
	FIRST(evd_enable, evd_enable, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_disable, evd_disable, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_set_unwaitable, evd_set_unwaitable, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_clear_unwaitable, evd_clear_unwaitable, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_wait, evd_wait, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_dequeue, evd_dequeue, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_post_se, evd_post_se, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_resize, evd_resize, DAT_HANDLE_TYPE_EVD),
	FIRST(evd_free, evd_free, DAT_HANDLE_TYPE_EVD),
	FIRST(cno_create, cno_create, DAT_HANDLE_TYPE_IA),
	FIRST(cno_query, cno_query, DAT_HANDLE_TYPE_CNO),
	FIRST(cno_modify_agent, cno_modify_agent, DAT_HANDLE_TYPE_CNO),
	FIRST(cno_wait, cno_wait, DAT_HANDLE_TYPE_CNO),
	FIRST(cno_free, cno_free, DAT_HANDLE_TYPE_CNO),
	FIRST(ep_create, ep_create, DAT_HANDLE_TYPE_IA),
	NO_OR(ep_create, "pz", ep_create_pz, DAT_HANDLE_TYPE_PZ),
	NO_OR(ep_create, "recv evd", ep_create_recv, DAT_HANDLE_TYPE_EVD),
	NO_OR(ep_create, "request evd", ep_create_req, DAT_HANDLE_TYPE_EVD),
	NO_OR(ep_create, "connect evd", ep_create_conn, DAT_HANDLE_TYPE_EVD),
	FIRST(ep_query, ep_query, DAT_HANDLE_TYPE_EP),
	FIRST(ep_modify, ep_modify, DAT_HANDLE_TYPE_EP),
	FIRST(ep_get_status, ep_get_status, DAT_HANDLE_TYPE_EP),
	FIRST(ep_connect, ep_connect_ep, DAT_HANDLE_TYPE_EP),
	FIRST(ep_dup_connect, ep_dup_connect, DAT_HANDLE_TYPE_EP),
	OTHER(ep_dup_connect, "dup", ep_dup_connect_dup, DAT_HANDLE_TYPE_EP),
	FIRST(ep_disconnect, ep_disconnect, DAT_HANDLE_TYPE_EP),
	FIRST(ep_reset, ep_reset, DAT_HANDLE_TYPE_EP),
	FIRST(ep_free, ep_free, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_send, ep_post_send, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_recv, ep_post_recv, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_rdma_read, ep_post_rdma_read, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_rdma_write, ep_post_rdma_write, DAT_HANDLE_TYPE_EP),
	FIRST(ep_recv_query, ep_recv_query, DAT_HANDLE_TYPE_EP),
	FIRST(ep_set_watermark, ep_set_watermark, DAT_HANDLE_TYPE_EP),
	FIRST(ep_create_with_srq, ep_create_srq, DAT_HANDLE_TYPE_IA),
	NO_OR(ep_create_with_srq, "pz", ep_create_srq_pz, DAT_HANDLE_TYPE_PZ),
	NO_OR(ep_create_with_srq, "recv evd", ep_create_srq_recv, DAT_HANDLE_TYPE_EVD),
	NO_OR(ep_create_with_srq, "request evd", ep_create_srq_req, DAT_HANDLE_TYPE_EVD),
	NO_OR(ep_create_with_srq, "connect evd", ep_create_srq_conn, DAT_HANDLE_TYPE_EVD),
	OTHER(ep_create_with_srq, "srq", ep_create_srq_srq, DAT_HANDLE_TYPE_SRQ),
	FIRST(srq_create, srq_create, DAT_HANDLE_TYPE_IA),
	OTHER(srq_create, "pz", srq_create_pz, DAT_HANDLE_TYPE_PZ),
	FIRST(srq_query, srq_query, DAT_HANDLE_TYPE_SRQ),
	FIRST(srq_resize, srq_resize, DAT_HANDLE_TYPE_SRQ),
	FIRST(srq_set_lw, srq_set_lw, DAT_HANDLE_TYPE_SRQ),
	FIRST(srq_post_recv, srq_post_recv, DAT_HANDLE_TYPE_SRQ),
	FIRST(srq_free, srq_free, DAT_HANDLE_TYPE_SRQ),
	FIRST(psp_create, psp_create, DAT_HANDLE_TYPE_IA),
	OTHER(psp_create, "evd", psp_create_evd, DAT_HANDLE_TYPE_EVD),
	FIRST(psp_create_any, psp_create_any, DAT_HANDLE_TYPE_IA),
	OTHER(psp_create_any, "evd", psp_create_any_evd, DAT_HANDLE_TYPE_EVD),
	FIRST(psp_query, psp_query, DAT_HANDLE_TYPE_PSP),
	FIRST(psp_free, psp_free, DAT_HANDLE_TYPE_PSP),
	FIRST(rsp_create, rsp_create, DAT_HANDLE_TYPE_IA),
	NO_OR(rsp_create, "ep", rsp_create_ep, DAT_HANDLE_TYPE_EP),
	OTHER(rsp_create, "evd", rsp_create_evd, DAT_HANDLE_TYPE_EVD),
	FIRST(rsp_query, rsp_query, DAT_HANDLE_TYPE_RSP),
	FIRST(rsp_free, rsp_free, DAT_HANDLE_TYPE_RSP),
	FIRST(cr_query, cr_query, DAT_HANDLE_TYPE_CR),
	FIRST(cr_accept, cr_accept, DAT_HANDLE_TYPE_CR),
	OTHER(cr_accept, "ep", cr_accept_ep, DAT_HANDLE_TYPE_EP),
	FIRST(cr_reject, cr_reject_cr, DAT_HANDLE_TYPE_CR),
	FIRST(cr_handoff, cr_handoff, DAT_HANDLE_TYPE_CR),
#if DAT_VERSION_MAJOR >= 2
	OF_PZ(rmr_bind, "lmr", rmr_bind_lmr, DAT_HANDLE_TYPE_LMR),
	FIRST(rmr_create_for_ep, rmr_create_for_ep, DAT_HANDLE_TYPE_PZ),
	FIRST(cno_fd_create, cno_fd_create, DAT_HANDLE_TYPE_IA),
	FIRST(cno_trigger, cno_trigger, DAT_HANDLE_TYPE_CNO),
	FIRST(ep_common_connect, ep_common_connect, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_send_with_invalidate, ep_send_invalidate, DAT_HANDLE_TYPE_EP),
	FIRST(ep_post_rdma_read_to_rmr, ep_read_to_rmr, DAT_HANDLE_TYPE_EP),
	FIRST(csp_create, csp_create, DAT_HANDLE_TYPE_IA),
	OTHER(csp_create, "evd", csp_create_evd, DAT_HANDLE_TYPE_EVD),
	FIRST(csp_query, csp_query, DAT_HANDLE_TYPE_CSP),
	FIRST(csp_free, csp_free, DAT_HANDLE_TYPE_CSP),
#endif
};

/* Wrong handles. Each clause is a call and one of them. */

static void refuses(struct node *n, const struct attempt *c, DAT_HANDLE h)
{
	conform_ret(__FILE__, __LINE__, c->name, c->call(n, h), DAT_INVALID_HANDLE);
}

static void null(struct node *n, const struct attempt *c)
{
	refuses(n, c, DAT_HANDLE_NULL);
}

static uint64_t zeroes[64];

/* Creates the other objects that the call needs. */
static void prepare(struct node *n, const struct attempt *c)
{
	refuses(n, c, zeroes);
}

static void never_a_handle(struct node *n, const struct attempt *c)
{
	static const uintptr_t numbers[] = {
		2, 7, 42, 0x7ffffff0, 0xdeadbee8, UINTPTR_MAX, UINTPTR_MAX - 7,
	};
	const bool may_be_ia = c->type == DAT_HANDLE_TYPE_IA || c->type == (int)ANY;
	static uint64_t ones[64];
	size_t k;

	prepare(n, c);
	for (k = 0; k < COUNT(numbers); k++)
		if (numbers[k] >= 8 || !may_be_ia)	/* a registry may number its IAs from 1 */
			refuses(n, c, (DAT_HANDLE)numbers[k]);
	memset(ones, 0xff, sizeof(ones));
	refuses(n, c, ones);
	refuses(n, c, (char *)ones + 3);
	refuses(n, c, (char *)zeroes + 3);
	refuses(n, c, &k);
}

static void inside_an_object(struct node *n, const struct attempt *c)
{
	refuses(n, c, (char *)object(n, c->type) + 8);
}

static void another_type(struct node *n, const struct attempt *c)
{
	unsigned type;

	for (type = 0; type < N_TYPES; type++)
		if (type != (unsigned)c->type && type_is_supported(n, (DAT_HANDLE_TYPE)type))
			refuses(n, c, object(n, (DAT_HANDLE_TYPE)type));
}

static void freed(struct node *n, const struct attempt *c)
{
	DAT_HANDLE_TYPE type = c->type == (int)ANY ? DAT_HANDLE_TYPE_EVD : c->type;
	DAT_HANDLE h;

	prepare(n, c);
	h = object_make(n, type);
	object_free(type, h);
	refuses(n, c, h);
}

static void closed_ia(struct node *n, const struct attempt *c)
{
	DAT_HANDLE_TYPE type = c->type == (int)ANY ? DAT_HANDLE_TYPE_EVD : c->type;
	struct node other;
	DAT_HANDLE h;

	prepare(n, c);
	node_open(&other);
	h = object_make(&other, type);
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	refuses(n, c, h);
}

static void another_ia(struct node *n, const struct attempt *c)
{
	struct node other;

	node_open(&other);
	refuses(n, c, object_make(&other, c->type));
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct {
	const char *name;
	void (*try)(struct node *n, const struct attempt *c);
} faults[] = {
	{ "NULL", null },
	{ "never a valid handle", never_a_handle },
	{ "a pointer into an object", inside_an_object },
	{ "another type", another_type },
	{ "freed", freed },
	{ "of a closed IA", closed_ia },
	{ "of another IA", another_ia },
};

/* Whether the call has a clause for this fault. */
static bool applies(const struct attempt *c, unsigned fault)
{
	bool is_ia = c->type == DAT_HANDLE_TYPE_IA, any = c->type == (int)ANY;

	if (faults[fault].try == null)
		return !c->optional;
	if (faults[fault].try == inside_an_object)
		return !is_ia && !any;
	if (faults[fault].try == another_type)
		return !any;
	if (faults[fault].try == closed_ia)
		return !is_ia;
	if (faults[fault].try == another_ia)
		return c->same_ia;
	return true;
}

static void name_fault(unsigned i, char *name, size_t size)
{
	const struct attempt *c = &calls[i / COUNT(faults)];
	unsigned fault = i % COUNT(faults);

	if (applies(c, fault))
		snprintf(name, size, "%s/INVALID_HANDLE/%s%s%s", c->name, c->which ? c->which : "",
			 c->which ? ": " : "", faults[fault].name);
}

FAMILY(COUNT(calls) * COUNT(faults), name_fault, .shared_ia = true)
{
	const struct attempt *c = &calls[i / COUNT(faults)];

	/* an EP may deliver to the EVDs of another instance */
	if (faults[i % COUNT(faults)].try == another_ia && c->type == DAT_HANDLE_TYPE_EVD &&
	    !strncmp(c->name, "dat_ep_create", 13))
		needs_strict(n, true);
	if (c->type != (int)ANY && !type_is_supported(n, c->type))
		object(n, c->type);
	faults[i % COUNT(faults)].try(n, c);
}

/* Handles of every type, not only of the type that the call takes. */
CLAUSE("dat_ia_close/SUCCESS/every call refuses every handle of the IA")
{
	DAT_HANDLE dead[N_TYPES] = { DAT_HANDLE_NULL };
	struct node other;
	unsigned type;
	size_t k;

	for (k = 0; k < COUNT(calls); k++)
		prepare(n, &calls[k]);
	node_open(&other);
	for (type = 0; type < N_TYPES; type++)
		if (type_is_supported(&other, (DAT_HANDLE_TYPE)type))
			dead[type] = object_make(&other, (DAT_HANDLE_TYPE)type);
	OK(dat_ia_close(dead[DAT_HANDLE_TYPE_IA], DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	for (k = 0; k < COUNT(calls); k++)
		for (type = 0; type < N_TYPES; type++)
			if (dead[type])
				refuses(n, &calls[k], dead[type]);
}

/* Types and contexts */

static void name_type(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_get_handle_type/SUCCESS/%s", type_name((DAT_HANDLE_TYPE)i));
}

FAMILY(N_TYPES, name_type)
{
	DAT_HANDLE_TYPE type;

	OK(dat_get_handle_type(object(n, (DAT_HANDLE_TYPE)i), &type));
	SAME(type, i);
}

static void name_context(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_set_consumer_context/SUCCESS/%s", type_name((DAT_HANDLE_TYPE)i));
}

FAMILY(N_TYPES, name_context)
{
	DAT_HANDLE h = object(n, (DAT_HANDLE_TYPE)i);
	DAT_CONTEXT context;

	OK(dat_set_consumer_context(h, (DAT_CONTEXT){ .as_64 = UINT64_C(0x123456789abcdef0) }));
	OK(dat_get_consumer_context(h, &context));
	CHECK(context.as_64 == UINT64_C(0x123456789abcdef0), "wrong context");
	OK(dat_set_consumer_context(h, (DAT_CONTEXT){ .as_ptr = &context }));
	OK(dat_get_consumer_context(h, &context));
	CHECK(context.as_ptr == &context, "wrong pointer");
}

static void name_fresh(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_get_consumer_context/SUCCESS/%s has none",
		 type_name((DAT_HANDLE_TYPE)i));
}

FAMILY(N_TYPES, name_fresh)
{
	DAT_HANDLE h = object(n, (DAT_HANDLE_TYPE)i);
	DAT_CONTEXT context = { .as_64 = 1 };

	OK(dat_get_consumer_context(h, &context));
	CHECK(!context.as_64, "the context of a former object");
	/* even if a new object occupies the memory of the old one */
	if (i == DAT_HANDLE_TYPE_IA || i == DAT_HANDLE_TYPE_CR)
		return;
	h = object_make(n, (DAT_HANDLE_TYPE)i);
	OK(dat_set_consumer_context(h, (DAT_CONTEXT){ .as_64 = 1 }));
	object_free((DAT_HANDLE_TYPE)i, h);
	OK(dat_get_consumer_context(object_make(n, (DAT_HANDLE_TYPE)i), &context));
	CHECK(!context.as_64, "the context of a freed object");
}

CLAUSE("dat_get_consumer_context/SUCCESS/not inherited")
{
	DAT_CONTEXT context;
	DAT_PZ_HANDLE pz;

	OK(dat_set_consumer_context(n->ia, (DAT_CONTEXT){ .as_64 = 1 }));
	OK(dat_pz_create(n->ia, &pz));
	OK(dat_get_consumer_context(pz, &context));
	CHECK(!context.as_64, "the IA's context");
}

CLAUSE("dat_get_consumer_context/SUCCESS/each object has its own")
{
	DAT_CONTEXT context;
	unsigned type;

	for (type = 0; type < N_TYPES; type++)
		if (type_is_supported(n, (DAT_HANDLE_TYPE)type))
			OK(dat_set_consumer_context(object(n, (DAT_HANDLE_TYPE)type),
						    (DAT_CONTEXT){ .as_64 = 1000 + type }));
	for (type = 0; type < N_TYPES; type++)
		if (type_is_supported(n, (DAT_HANDLE_TYPE)type)) {
			OK(dat_get_consumer_context(object(n, (DAT_HANDLE_TYPE)type), &context));
			SAME(context.as_64, 1000 + type);
		}
}

/* The call fails if its result pointer is NULL. */
static void without_result(struct node *n, DAT_RETURN (*get)(DAT_HANDLE h))
{
	unsigned type;

	for (type = 0; type < N_TYPES; type++)
		if (type_is_supported(n, (DAT_HANDLE_TYPE)type))
			FAILS(get(object(n, (DAT_HANDLE_TYPE)type)), DAT_INVALID_PARAMETER);
}

static DAT_RETURN no_context(DAT_HANDLE h)
{
	return dat_get_consumer_context(h, NULL);
}

CLAUSE("dat_get_consumer_context/INVALID_PARAMETER/context NULL")
{
	without_result(n, no_context);
}

static DAT_RETURN no_type(DAT_HANDLE h)
{
	return dat_get_handle_type(h, NULL);
}

CLAUSE("dat_get_handle_type/INVALID_PARAMETER/type NULL")
{
	without_result(n, no_type);
}
