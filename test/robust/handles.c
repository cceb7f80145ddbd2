/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads make random calls on objects that other threads make, free and close meanwhile. No call
 * crashes, hangs or reports an internal error, and the IAs close in the end.
 *
 * DAT_TEST_SECONDS: how long. DAT_TEST_THREADS: how many threads. DAT_TEST_SEED: the seed of their
 * calls, which the test prints; the threads still race.
 */

#include "robust.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum kind { IA, PZ, LMR, RMR, SRQ, EVD, CNO, EP, PSP, RSP, CSP, CR, KINDS };

#define SIDES 2			/* IAs at a time; objects of different IAs seldom meet */
#define SLOTS 6			/* objects of each kind in the table */
#define PIECE 64		/* bytes of a segment */
#define PIECES (1u << 18)

/* Handles, most of them valid. A thread may free a handle that other threads find here. */
static struct side {
	_Atomic(DAT_HANDLE) handle[KINDS][SLOTS];
	_Atomic uint32_t local[SLOTS], remote[SLOTS];	/* contexts of LMRs and RMRs */
	_Atomic uint64_t qual[SLOTS];
} sides[SIDES];

static char memory[PIECES][PIECE];
static struct sockaddr_storage address;
static int64_t end_at;
static atomic_uint seeds, pieces;
static _Atomic uint64_t calls, made;

/* A thread's next call. */
struct caller {
	uint64_t state;
	struct side *side;
	bool agent;		/* on the progress thread: may not wait, nor open or close IAs */
};

static unsigned pick(struct caller *c, unsigned below)
{
	c->state ^= c->state << 13;
	c->state ^= c->state >> 7;
	c->state ^= c->state << 17;
	return (c->state >> 20) % below;
}

static void caller_init(struct caller *c)
{
	*c = (struct caller){ .state = atomic_fetch_add(&seeds, 1) * 0x9e3779b97f4a7c15u + 1 };
	pick(c, 1);
}

/* A handle of kind @k; rarely one of any other kind. */
static DAT_HANDLE any(struct caller *c, enum kind k)
{
	if (!pick(c, 100))
		k = pick(c, KINDS);
	return c->side->handle[k][pick(c, SLOTS)];
}

static DAT_HANDLE any_or_null(struct caller *c, enum kind k)
{
	return pick(c, 8) ? any(c, k) : DAT_HANDLE_NULL;
}

static DAT_RETURN cr_end(DAT_CR_HANDLE cr)
{
	return cr_reject(cr, 0, NULL);
}

static DAT_RETURN ia_end(DAT_IA_HANDLE ia)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN (*const end[KINDS])(DAT_HANDLE handle) = {
	[IA] = ia_end, [PZ] = dat_pz_free, [LMR] = dat_lmr_free, [RMR] = dat_rmr_free,
	[SRQ] = dat_srq_free, [EVD] = dat_evd_free, [CNO] = dat_cno_free, [EP] = dat_ep_free,
	[PSP] = dat_psp_free, [RSP] = dat_rsp_free, [CR] = cr_end,
#if DAT_VERSION_MAJOR >= 2
	[CSP] = dat_csp_free,
#endif
};

/* Puts a new object into the table, and ends the object that was there. */
static void keep(struct caller *c, enum kind k, unsigned slot, DAT_HANDLE handle)
{
	DAT_HANDLE old = atomic_exchange(&c->side->handle[k][slot], handle);

	made++;
	if (old)
		end[k](old);
}

static DAT_DTO_COOKIE no_cookie(void)
{
	return (DAT_DTO_COOKIE){ .as_64 = 0 };
}

/* Each operation has memory of its own, so that the test itself has no data races. */
static char *piece(void)
{
	return memory[atomic_fetch_add(&pieces, 1) % PIECES];
}

static DAT_LMR_TRIPLET segment(struct caller *c)
{
	DAT_LMR_TRIPLET s;

	memset(&s, 0, sizeof(s));
	s.lmr_context = c->side->local[pick(c, SLOTS)];
	s.virtual_address = (uintptr_t)piece();
	s.segment_length = pick(c, 2) ? PIECE : 8;
	return s;
}

static DAT_RMR_TRIPLET remote_piece(struct caller *c)
{
	DAT_RMR_TRIPLET s;

	memset(&s, 0, sizeof(s));
	s.rmr_context = sides[pick(c, SIDES)].remote[pick(c, SLOTS)];
#if DAT_VERSION_MAJOR >= 2
	s.virtual_address = (uintptr_t)piece();
#else
	s.target_address = (uintptr_t)piece();
#endif
	s.segment_length = PIECE;
	return s;
}

/* Making */

static DAT_RETURN ia_reopen(struct caller *c)
{
	DAT_HANDLE old = atomic_exchange(&c->side->handle[IA][0], DAT_HANDLE_NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	if (old && pick(c, 4))
		ia_end(old);
	else if (old && dat_ia_close(old, DAT_CLOSE_GRACEFUL_FLAG))
		ia_end(old);
	ret = dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 8, &async, &ia);
	if (!ret)
		keep(c, IA, 0, ia);
	return ret;
}

static DAT_RETURN pz_make(struct caller *c)
{
	DAT_PZ_HANDLE h;
	DAT_RETURN ret = dat_pz_create(c->side->handle[IA][0], &h);

	if (!ret)
		keep(c, PZ, pick(c, SLOTS), h);
	return ret;
}

static DAT_RETURN lmr_make(struct caller *c)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = memory };
	const unsigned slot = pick(c, SLOTS);
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE h;
	DAT_VLEN length;
	DAT_VADDR at;
	DAT_RETURN ret = dat_lmr_create(c->side->handle[IA][0], DAT_MEM_TYPE_VIRTUAL, region,
					sizeof(memory), any(c, PZ), DAT_MEM_PRIV_ALL_FLAG,
#if DAT_VERSION_MAJOR >= 2
					DAT_VA_TYPE_VA,
#endif
					&h, &local, &remote, &length, &at);

	if (ret)
		return ret;
	c->side->local[slot] = local;
	c->side->remote[slot] = remote;
	keep(c, LMR, slot, h);
	return ret;
}

static DAT_RETURN rmr_make(struct caller *c)
{
	DAT_RMR_HANDLE h;
	DAT_RETURN ret = dat_rmr_create(any(c, PZ), &h);

	if (!ret)
		keep(c, RMR, pick(c, SLOTS), h);
	return ret;
}

static DAT_RETURN srq_make(struct caller *c)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE h;
	DAT_RETURN ret = dat_srq_create(c->side->handle[IA][0], any(c, PZ), &attr, &h);

	if (!ret)
		keep(c, SRQ, pick(c, SLOTS), h);
	return ret;
}

/* The slots of EVDs: software, requests, connections, and three of completions. */
static DAT_RETURN evd_make(struct caller *c)
{
	static const DAT_EVD_FLAGS flags[SLOTS] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
	};
	const unsigned slot = pick(c, SLOTS);
	DAT_CNO_HANDLE cno = pick(c, 3) ? DAT_HANDLE_NULL : any(c, CNO);
	DAT_EVD_HANDLE h;
	DAT_RETURN ret = dat_evd_create(c->side->handle[IA][0], 1 + pick(c, 64), cno, flags[slot],
					&h);

	if (!ret)
		keep(c, EVD, slot, h);
	return ret;
}

static void call(struct caller *c);

/*
 * An agent names only objects of its own IA: the progress thread of the other IA may be waiting for
 * the agent's thread.
 */
static void agent(DAT_PVOID side, DAT_EVD_HANDLE evd)
{
	struct caller c;

	caller_init(&c);
	c.side = side;
	c.agent = true;
	call(&c);
}

static DAT_OS_WAIT_PROXY_AGENT agent_or_none(struct caller *c)
{
	DAT_OS_WAIT_PROXY_AGENT a = { .instance_data = NULL };

	if (pick(c, 2))
		a = (DAT_OS_WAIT_PROXY_AGENT){ c->side, agent };
	return a;
}

static DAT_RETURN cno_make(struct caller *c)
{
	DAT_CNO_HANDLE h;
	DAT_RETURN ret = dat_cno_create(c->side->handle[IA][0], agent_or_none(c), &h);

	if (!ret)
		keep(c, CNO, pick(c, SLOTS), h);
	return ret;
}

/* An EVD that may take completions: see evd_make(). */
static DAT_EVD_HANDLE any_dto_evd(struct caller *c)
{
	return c->side->handle[EVD][3 + pick(c, 3)];
}

static DAT_EVD_HANDLE any_connect_evd(struct caller *c)
{
	return c->side->handle[EVD][2 + 2 * pick(c, 2)];
}

static DAT_RETURN ep_make(struct caller *c)
{
	DAT_EP_HANDLE h;
	DAT_RETURN ret = dat_ep_create(c->side->handle[IA][0], any(c, PZ), any_dto_evd(c),
				       any_dto_evd(c), any_connect_evd(c), NULL, &h);

	if (!ret)
		keep(c, EP, pick(c, SLOTS), h);
	return ret;
}

static DAT_RETURN srq_ep_make(struct caller *c)
{
	DAT_EP_HANDLE ep = any(c, EP), h;
	DAT_EP_PARAM param;
	DAT_RETURN ret = dat_ep_query(ep, DAT_EP_FIELD_ALL, &param);

	if (ret)
		return ret;
	ret = dat_ep_create_with_srq(c->side->handle[IA][0], any(c, PZ), any_dto_evd(c),
				     any_dto_evd(c), any_connect_evd(c), any(c, SRQ),
				     &param.ep_attr, &h);
	if (!ret)
		keep(c, EP, pick(c, SLOTS), h);
	return ret;
}

static DAT_RETURN psp_make(struct caller *c)
{
	const unsigned slot = pick(c, SLOTS);
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE h;
	DAT_RETURN ret = dat_psp_create_any(c->side->handle[IA][0], &qual, c->side->handle[EVD][1],
					    pick(c, 4) ? DAT_PSP_CONSUMER_FLAG :
							 DAT_PSP_PROVIDER_FLAG, &h);

	if (ret)
		return ret;
	c->side->qual[slot] = qual;
	keep(c, PSP, slot, h);
	return ret;
}

static DAT_RETURN rsp_make(struct caller *c)
{
	const unsigned slot = pick(c, SLOTS);
	DAT_RSP_HANDLE h;
	DAT_RETURN ret = dat_rsp_create(c->side->handle[IA][0], 40000 + pick(c, 1000),
					any_or_null(c, EP), c->side->handle[EVD][1], &h);

	if (!ret)
		keep(c, RSP, slot, h);
	return ret;
}

/* Events */

static void event_take(struct caller *c, const DAT_EVENT *event)
{
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		keep(c, CR, pick(c, SLOTS), event->event_data.cr_arrival_event_data.cr_handle);
}

static DAT_RETURN dequeue(struct caller *c)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(any(c, EVD), &event);

	if (ret == DAT_SUCCESS)
		event_take(c, &event);
	return ret;
}

static DAT_RETURN evd_wait(struct caller *c)
{
	DAT_COUNT more;
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_wait(any(c, EVD), pick(c, 1000), 1, &event, &more);

	if (ret == DAT_SUCCESS)
		event_take(c, &event);
	return ret;
}

static DAT_RETURN post_se_any(struct caller *c)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	return dat_evd_post_se(c->side->handle[EVD][0], &event);
}

static DAT_RETURN evd_change(struct caller *c)
{
	DAT_EVD_HANDLE evd = any(c, EVD);
	DAT_EVD_PARAM param;

	switch (pick(c, 7)) {
	case 0:
		return dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param);
	case 1:
		return dat_evd_resize(evd, 1 + pick(c, 128));
	case 2:
		return dat_evd_modify_cno(evd, any_or_null(c, CNO));
	case 3:
		return dat_evd_enable(evd);
	case 4:
		return dat_evd_disable(evd);
	case 5:
		return dat_evd_set_unwaitable(evd);
	default:
		return dat_evd_clear_unwaitable(evd);
	}
}

static DAT_RETURN cno_call(struct caller *c)
{
	DAT_CNO_HANDLE cno = any(c, CNO);
	DAT_CNO_PARAM param;

	switch (pick(c, 2)) {
	case 0:
		return dat_cno_modify_agent(cno, agent_or_none(c));
	default:
		return dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param);
	}
}

static DAT_RETURN cno_wait(struct caller *c)
{
	DAT_EVD_HANDLE evd;

	return dat_cno_wait(any(c, CNO), pick(c, 1000), &evd);
}

/* Connections */

static DAT_RETURN connect_any(struct caller *c)
{
	return dat_ep_connect(any(c, EP), (DAT_IA_ADDRESS_PTR)&address,
			      sides[pick(c, SIDES)].qual[pick(c, SLOTS)], 300000, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN accept_any(struct caller *c)
{
	return dat_cr_accept(any(c, CR), pick(c, 3) ? any(c, EP) : DAT_HANDLE_NULL, 0, NULL);
}

static DAT_RETURN cr_call(struct caller *c)
{
	DAT_CR_HANDLE cr = any(c, CR);
	DAT_CR_PARAM param;

	switch (pick(c, 4)) {
	case 0:
		return cr_end(cr);
	case 1:
		return dat_cr_handoff(cr, c->side->qual[pick(c, SLOTS)]);
	default:
		return dat_cr_query(cr, DAT_CR_FIELD_ALL, &param);
	}
}

static DAT_RETURN ep_modify(struct caller *c)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = any(c, PZ);
	param.recv_evd_handle = any_dto_evd(c);
	param.connect_evd_handle = any_connect_evd(c);
	return dat_ep_modify(any(c, EP), DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			     DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
}

static DAT_RETURN ep_call(struct caller *c)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_HANDLE ep = any(c, EP);
	DAT_COUNT buffers, span;
	DAT_EP_STATE state;
	DAT_EP_PARAM param;

	switch (pick(c, 8)) {
	case 0:
		return dat_ep_query(ep, DAT_EP_FIELD_ALL, &param);
	case 1:
		return dat_ep_get_status(ep, &state, &recv_idle, &request_idle);
	case 2:
		return dat_ep_disconnect(ep, pick(c, 2) ? DAT_CLOSE_ABRUPT_FLAG :
							  DAT_CLOSE_GRACEFUL_FLAG);
	case 3:
		return dat_ep_recv_query(ep, &buffers, &span);
	case 4:
		return dat_ep_set_watermark(ep, 8, DAT_WATERMARK_INFINITE);
	case 5:
		return dat_ep_dup_connect(ep, any(c, EP), 300000, 0, NULL, DAT_QOS_BEST_EFFORT);
	case 6:
		return ep_modify(c);
	default:
		return dat_ep_reset(ep);
	}
}

/* Posts */

static DAT_RETURN post(struct caller *c)
{
	DAT_LMR_TRIPLET s = segment(c);
	DAT_RMR_TRIPLET remote = remote_piece(c);
	DAT_EP_HANDLE ep = any(c, EP);
	const DAT_COUNT n = pick(c, 8) > 0;

	switch (pick(c, 5)) {
	case 0:
		return dat_ep_post_rdma_write(ep, n, &s, no_cookie(), &remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
	case 1:
		return dat_ep_post_rdma_read(ep, n, &s, no_cookie(), &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	case 2:
		return dat_srq_post_recv(any(c, SRQ), n, &s, no_cookie());
	case 3:
		return dat_ep_post_recv(ep, n, &s, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG);
	default:
		return dat_ep_post_send(ep, n, &s, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG);
	}
}

static DAT_RETURN bind_any(struct caller *c)
{
	const unsigned slot = pick(c, SLOTS);
	DAT_LMR_TRIPLET s = segment(c);
	DAT_RMR_COOKIE cookie = { .as_64 = 0 };
	DAT_RMR_CONTEXT context;
	DAT_RETURN ret;

	s.lmr_context = c->side->local[slot];
#if DAT_VERSION_MAJOR >= 2
	ret = dat_rmr_bind(any(c, RMR), c->side->handle[LMR][slot], &s, DAT_MEM_PRIV_ALL_FLAG,
			   DAT_VA_TYPE_VA, any(c, EP), cookie, DAT_COMPLETION_DEFAULT_FLAG,
			   &context);
#else
	ret = dat_rmr_bind(any(c, RMR), &s, DAT_MEM_PRIV_ALL_FLAG, any(c, EP), cookie,
			   DAT_COMPLETION_DEFAULT_FLAG, &context);
#endif
	return ret;
}

/* All kinds */

static DAT_RETURN free_any(struct caller *c)
{
	enum kind k = 1 + pick(c, KINDS - 1);

	return end[k] ? end[k](any(c, k)) : DAT_SUCCESS;
}

static DAT_RETURN query(struct caller *c)
{
	union {
		DAT_PZ_PARAM pz;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_SRQ_PARAM srq;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
	} param;
	DAT_HANDLE_TYPE type;
	DAT_IA_ATTR attr;

	switch (pick(c, 8)) {
	case 0:
		return dat_pz_query(any(c, PZ), DAT_PZ_FIELD_ALL, &param.pz);
	case 1:
		return dat_lmr_query(any(c, LMR), DAT_LMR_FIELD_ALL, &param.lmr);
	case 2:
		return dat_rmr_query(any(c, RMR), DAT_RMR_FIELD_PZ_HANDLE, &param.rmr);
	case 3:
		return dat_srq_query(any(c, SRQ), DAT_SRQ_FIELD_ALL, &param.srq);
	case 4:
		return dat_psp_query(any(c, PSP), DAT_PSP_FIELD_ALL, &param.psp);
	case 5:
		return dat_rsp_query(any(c, RSP), DAT_RSP_FIELD_ALL, &param.rsp);
	case 6:
		return dat_ia_query(c->side->handle[IA][0], NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	default:
		return dat_get_handle_type(any(c, pick(c, KINDS)), &type);
	}
}

static DAT_RETURN change(struct caller *c)
{
	DAT_CONTEXT context = { .as_64 = 1 };
	DAT_LMR_TRIPLET s = segment(c);

	switch (pick(c, 5)) {
	case 0:
		return dat_srq_resize(any(c, SRQ), 1 + pick(c, 64));
	case 1:
		return dat_srq_set_lw(any(c, SRQ), pick(c, 16));
	case 2:
		return dat_set_consumer_context(any(c, pick(c, KINDS)), context);
	case 3:
		return dat_lmr_sync_rdma_read(c->side->handle[IA][0], &s, 1);
	default:
		return dat_get_consumer_context(any(c, pick(c, KINDS)), &context);
	}
}

static const struct {
	DAT_RETURN (*call)(struct caller *c);
	unsigned weight;
	bool waits;		/* not for agents */
} ops[] = {
	{ pz_make, 10, false }, { lmr_make, 10, false }, { rmr_make, 8, false },
	{ srq_make, 8, false }, { evd_make, 20, false }, { cno_make, 8, false },
	{ ep_make, 30, false }, { srq_ep_make, 6, false }, { psp_make, 8, false },
	{ rsp_make, 4, false }, { dequeue, 80, false }, { evd_wait, 4, true },
	{ post_se_any, 40, false }, { evd_change, 20, false }, { cno_call, 10, false },
	{ cno_wait, 2, true }, { connect_any, 20, false }, { accept_any, 40, false },
	{ cr_call, 8, false }, { ep_call, 20, false }, { post, 120, false },
	{ bind_any, 20, false }, { free_any, 40, false }, { query, 30, false },
	{ change, 10, false },
};

static void call(struct caller *c)
{
	unsigned at = pick(c, 600), i;
	DAT_RETURN ret;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]) - 1 && at >= ops[i].weight; i++)
		at -= ops[i].weight;
	if (c->agent && ops[i].waits)
		return;
	ret = ops[i].call(c);
	CHECK(DAT_GET_TYPE(ret) != DAT_INTERNAL_ERROR, "call %u: %#x", i, ret);
	calls++;
}

static void *calls_run(void *arg)
{
	struct caller c;

	caller_init(&c);
	while (pair_now() < end_at) {
		c.side = &sides[pick(&c, SIDES)];
		if (!pick(&c, 3000))
			ia_reopen(&c);
		else
			call(&c);
	}
	return NULL;
}

static void address_find(void)
{
	struct node n;

	node_open(&n);
	address = n.address;
	node_close(&n);
}

#define MOST_THREADS 64

static void run(struct pair *p)
{
	const unsigned n = env_count("DAT_TEST_THREADS", 8);
	const unsigned seed = env_count("DAT_TEST_SEED", (unsigned)pair_now() % 1000000 + 1);
	pthread_t thread[MOST_THREADS];
	struct caller c;
	unsigned i;

	if (pair_fabric_is("shm-rdm") && !getenv("DAT_TEST_SECONDS"))
		pair_skip("libfabric 1.17's fi_av_insert crashes if the peer closes meanwhile");
	pair_note("DAT_TEST_SEED=%u", seed);
	seeds = seed;
	address_find();
	caller_init(&c);
	for (i = 0; i < SIDES; i++) {
		c.side = &sides[i];
		OK(ia_reopen(&c));
	}
	end_at = pair_now() + env_count("DAT_TEST_SECONDS", 2) * 1000000LL;
	for (i = 0; i < n && i < MOST_THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, calls_run, NULL), "pthread_create");
	while (i--)
		pthread_join(thread[i], NULL);
	for (i = 0; i < SIDES; i++)
		if (sides[i].handle[IA][0])
			OK(ia_end(sides[i].handle[IA][0]));
	pair_note("%llu calls, %llu objects", (unsigned long long)calls, (unsigned long long)made);
}

static struct pair_case cases[] = {
	PAIR_CASE("frees_and_calls_race", NULL, run),
};

int main(int argc, char **argv)
{
	/* other threads use the IAs while they close */
	setenv("DAT_TEST_CHECK", "0", 1);
	cases[0].seconds = 30 + 2 * env_count("DAT_TEST_SECONDS", 2);
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
