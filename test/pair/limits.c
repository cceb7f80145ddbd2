/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IA provides exactly as much as its attributes promise. Limits of segments and of private
 * data are tested with data transfer and with connecting.
 */

#include "pair.h"

#include <stdlib.h>

#define MESSAGE 8

/* Objects */

/*
 * Creates objects until @most exist, including @existing; one more must fail.
 */
#define MAKE_ALL(type, list, most, existing, create, destroy)                        \
	do {                                                                         \
		DAT_COUNT i_, n_ = (most) - (existing);                              \
		type *list = calloc(n_ + 1, sizeof(*list));                          \
		CHECK(list, "no memory");                                            \
		for (i_ = 0; i_ < n_; i_++)                                          \
			OK(create(&list[i_]));                                       \
		FAILS(create(&list[i_]), DAT_INSUFFICIENT_RESOURCES);                \
		OK(destroy(list[0]));                                                \
		OK(create(&list[0]));                                                \
		for (i_ = 0; i_ < n_; i_++)                                          \
			OK(destroy(list[i_]));                                       \
		free(list);                                                          \
	} while (0)

static struct node node;
static DAT_EP_ATTR small;
static struct mem mem;

static DAT_RETURN evd_make(DAT_EVD_HANDLE *evd)
{
	return dat_evd_create(node.ia, 1, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, evd);
}

static DAT_RETURN ep_make(DAT_EP_HANDLE *ep)
{
	return dat_ep_create(node.ia, node.pz, node.recv, node.req, node.conn, &small, ep);
}

static DAT_RETURN lmr_make(DAT_LMR_HANDLE *lmr)
{
	DAT_LMR_CONTEXT context;

	return lmr_create(node.ia, mem.base, mem.size, node.pz, DAT_MEM_PRIV_ALL_FLAG, lmr,
			  &context, NULL);
}

static DAT_RETURN rmr_make(DAT_RMR_HANDLE *rmr)
{
	return dat_rmr_create(node.pz, rmr);
}

/* An EVD of the largest length can be created, but no longer one. */
static void longest_evd(void)
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_evd_create(node.ia, node.attr.max_evd_qlen + 1, DAT_HANDLE_NULL,
			     DAT_EVD_SOFTWARE_FLAG, &evd), DAT_INSUFFICIENT_RESOURCES);
	OK(dat_evd_free(node_evd(&node, node.attr.max_evd_qlen, DAT_EVD_SOFTWARE_FLAG)));
}

/* The node has five of the EVDs. */
static void objects(struct pair *p)
{
	node_open(&node);
	mem_get(&node, &mem, MESSAGE);
	node_ep_attr(&node, &small);
	small.max_recv_dtos = small.max_request_dtos = 1;
	longest_evd();
	MAKE_ALL(DAT_EVD_HANDLE, evds, node.attr.max_evds, 5, evd_make, dat_evd_free);
	MAKE_ALL(DAT_EP_HANDLE, eps, node.attr.max_eps, 0, ep_make, dat_ep_free);
	MAKE_ALL(DAT_LMR_HANDLE, lmrs, node.attr.max_lmrs, 1, lmr_make, dat_lmr_free);
	MAKE_ALL(DAT_RMR_HANDLE, rmrs, node.attr.max_rmrs, 0, rmr_make, dat_rmr_free);
	mem_put(&mem);
	node_close(&node);
}

/* Operations */

/* An EP with queues and EVDs as long as the IA allows. */
static DAT_EP_HANDLE deep_ep(struct node *n, DAT_EVD_HANDLE *dto)
{
	const DAT_COUNT most = n->attr.max_dto_per_ep;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = most;
	*dto = node_evd(n, most, DAT_EVD_DTO_FLAG);
	OK(dat_ep_create(n->ia, n->pz, *dto, *dto, n->conn, &attr, &ep));
	return ep;
}

static void depth(struct pair *p)
{
	DAT_LMR_TRIPLET segment;
	DAT_EVD_HANDLE dto;
	DAT_EP_HANDLE ep;
	struct node n;
	DAT_COUNT i, most;

	node_open(&n);
	mem_get(&n, &n.m, MESSAGE);
	segment = mem_segment(&n.m, 0, MESSAGE);
	most = n.attr.max_dto_per_ep;
	ep = deep_ep(&n, &dto);
	for (i = 0; p->server && i < most; i++)
		post_recv(ep, &n.m, 0, MESSAGE, i);
	if (p->server)
		FAILS(dat_ep_post_recv(ep, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = i },
				       DAT_COMPLETION_DEFAULT_FLAG), DAT_INSUFFICIENT_RESOURCES);
	pair_link(p, &n, ep);
	for (i = 0; !p->server && i < most; i++)
		post_send(ep, &n.m, 0, MESSAGE, i);
	for (i = 0; i < most; i++)
		expect_dto(dto, i, DAT_DTO_SUCCESS, MESSAGE);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(dto));
	node_end(&n);
}

#define QUEUE_DEPTH 8			/* of each queue */
#define QUEUE_EPS 2
#define QUEUE_SENDS 20000		/* through each EP, unless DAT_TEST_SENDS is set */

static DAT_COUNT full_queues_sends(void)
{
	const char *text = getenv("DAT_TEST_SENDS");

	return text ? atoi(text) : QUEUE_SENDS;
}

/* One EVD for the queues of all EPs, as long as these queues together. */
static void full_queues_open(struct pair *p, struct node *n, DAT_EVD_HANDLE *dto,
			     DAT_EP_HANDLE ep[])
{
	DAT_EP_ATTR attr;
	int i;

	node_open(n);
	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = QUEUE_DEPTH;
	*dto = node_evd(n, QUEUE_EPS * 2 * QUEUE_DEPTH, DAT_EVD_DTO_FLAG);
	for (i = 0; i < QUEUE_EPS; i++) {
		OK(dat_ep_create(n->ia, n->pz, *dto, *dto, n->conn, &attr, &ep[i]));
		pair_link(p, n, ep[i]);
	}
}

/* Posts to @ep until its queue is full, but fewer than @most, without dequeueing events. */
static DAT_COUNT post_all(DAT_EP_HANDLE ep, struct mem *m, bool sends, DAT_COUNT most)
{
	DAT_LMR_TRIPLET segment = mem_segment(m, 0, MESSAGE);
	const DAT_DTO_COOKIE none = { .as_64 = 0 };
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_COUNT n = 0;

	while (n < most) {
		ret = sends ? dat_ep_post_send(ep, 1, &segment, none, DAT_COMPLETION_DEFAULT_FLAG) :
			      dat_ep_post_recv(ep, 1, &segment, none, DAT_COMPLETION_DEFAULT_FLAG);
		if (ret)
			break;
		n++;
	}
	if (ret)
		FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
	return n;
}

/*
 * A program that makes its EVD as long as its queues, posts until they are full and then dequeues
 * loses no event, whether its thread or the progress thread reads the fabric. node_close() checks
 * that no EVD has overflowed.
 */
static void full_queues(struct pair *p)
{
	const DAT_COUNT all = full_queues_sends();
	DAT_COUNT posted[QUEUE_EPS] = { 0 }, left = QUEUE_EPS * all;
	DAT_EP_HANDLE ep[QUEUE_EPS];
	DAT_EVD_HANDLE dto;
	struct node n;
	struct mem m;
	int i;

	full_queues_open(p, &n, &dto, ep);
	mem_get(&n, &m, MESSAGE);
	while (left) {
		for (i = 0; i < QUEUE_EPS; i++)
			posted[i] += post_all(ep[i], &m, !p->server, all - posted[i]);
		expect_dto(dto, 0, DAT_DTO_SUCCESS, MESSAGE);
		left--;
	}
	for (i = 0; i < QUEUE_EPS; i++) {
		pair_unlink(p, &n, ep[i]);
		OK(dat_ep_free(ep[i]));
	}
	OK(dat_evd_free(dto));
	mem_put(&m);
	node_close(&n);
}

/* The flushes of all operations outstanding at the end of a connection fit into the EVD, too. */
static void flushes_fit(struct pair *p)
{
	DAT_EP_HANDLE ep[QUEUE_EPS];
	DAT_EVD_HANDLE dto;
	DAT_EVENT event;
	struct node n;
	struct mem m;
	int i, k;

	full_queues_open(p, &n, &dto, ep);
	mem_get(&n, &m, MESSAGE);
	for (i = 0; i < QUEUE_EPS; i++) {
		SAME(post_all(ep[i], &m, false, QUEUE_DEPTH + 1), QUEUE_DEPTH);
		SAME(post_all(ep[i], &m, true, QUEUE_DEPTH + 1), QUEUE_DEPTH);
	}
	pair_sync(p);
	for (i = 0; i < QUEUE_EPS; i++)
		pair_unlink(p, &n, ep[i]);
	for (i = 0; i < QUEUE_EPS; i++) {
		SAME(post_all(ep[i], &m, false, 1), 0);
		SAME(post_all(ep[i], &m, true, 1), 0);
	}
	for (k = 0; k < QUEUE_EPS * 2 * QUEUE_DEPTH; k++)
		expect_event(dto, DAT_DTO_COMPLETION_EVENT, &event);
	for (i = 0; i < QUEUE_EPS; i++)
		OK(dat_ep_free(ep[i]));
	OK(dat_evd_free(dto));
	mem_put(&m);
	node_close(&n);
}

#define READS 300

/* Reads beyond either peer's limit are queued, and none is lost. */
static void reads(struct pair *p)
{
	DAT_EP_ATTR attr;
	struct link l;
	struct node n;
	unsigned i;

	node_open(&n);
	node_ep_attr(&n, &attr);
	attr.max_rdma_read_in = p->server ? 1 : n.attr.max_rdma_read_per_ep_in;
	attr.max_rdma_read_out = p->server ? 1 : n.attr.max_rdma_read_per_ep_out;
	attr.max_request_dtos = READS;
	node_close(&n);
	link_open_with(p, &l, 2 * READS * MESSAGE, &attr);
	fill(l.m.base, READS * MESSAGE, p->server);
	pair_sync(p);
	/* all at once: 64 at a time by one peer, one at a time by the other */
	for (i = 0; i < READS; i++)
		post_read(l.ep, &l.m, (READS + i) * MESSAGE, MESSAGE, i, &l.theirs, i * MESSAGE);
	for (i = 0; i < READS; i++)
		expect_dto(l.n.req, i, DAT_DTO_SUCCESS, MESSAGE);
	verify(l.m.base + READS * MESSAGE, READS * MESSAGE, !p->server);
	link_close(p, &l);
}

#define LONGEST 100

/* A message of the EP's maximum length succeeds; one byte more is refused. */
static void length(struct pair *p)
{
	DAT_LMR_TRIPLET segment;
	DAT_EP_ATTR attr;
	struct link l;
	struct node n;

	node_open(&n);
	node_ep_attr(&n, &attr);
	attr.max_message_size = attr.max_rdma_size = LONGEST;
	node_close(&n);
	link_open_with(p, &l, 4 * LONGEST, &attr);
	post_recv(l.ep, &l.m, 0, 2 * LONGEST, 1);
	pair_sync(p);
	segment = mem_segment(&l.m, 2 * LONGEST, LONGEST + 1);
	FAILS(dat_ep_post_send(l.ep, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = 2 },
			       DAT_COMPLETION_DEFAULT_FLAG), DAT_LENGTH_ERROR);
	post_send(l.ep, &l.m, 2 * LONGEST, LONGEST, 3);
	expect_dto(l.n.req, 3, DAT_DTO_SUCCESS, LONGEST);
	expect_dto(l.n.recv, 1, DAT_DTO_SUCCESS, LONGEST);
	/* programs write more than the max_rdma_size that they ask for */
	post_write(l.ep, &l.m, 2 * LONGEST, 2 * LONGEST, 4, &l.theirs, 0);
	expect_dto(l.n.req, 4, DAT_DTO_SUCCESS, 2 * LONGEST);
	link_close(p, &l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("as many objects as the IA reports", NULL, objects),
	PAIR_CASE("as many operations as an EP allows", depth, depth,
		  .not_sockets = "it loses messages when many are in flight"),
	PAIR_CASE("an EVD of the size of its queues does not overflow", full_queues, full_queues,
		  .not_sockets = "it loses messages when many are in flight"),
	PAIR_CASE("flushed operations fit an EVD of that size", flushes_fit, flushes_fit),
	PAIR_CASE("more reads than either peer allows in flight", reads, reads),
	PAIR_CASE("a message of the EP's maximum size", length, length),
};

PAIR_MAIN(cases)
