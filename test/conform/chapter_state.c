/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each call on an EP in each of its states: its return, the next state, and the event. */

#include "stage.h"

#include <stdio.h>
#include <string.h>

CHAPTER("state");

/* The outcome of a call in a state. */
struct outcome {
	enum { REFUSED, DONE, EP_FREED } what;	/* REFUSED: with INVALID_STATE */
	DAT_EP_STATE next;
	DAT_EVENT_NUMBER event;		/* on the EVD for connections, or 0 */
	bool flushed;			/* the posted operations complete as flushed */
};

#define LAST_STATE DAT_EP_STATE_COMPLETION_PENDING

/* Objects that a call needs in addition to the EP, created first because a state may end soon. */
struct call_objects {
	DAT_CONN_QUAL qual;		/* has a listener */
	struct end end, peer;
	DAT_CR_HANDLE cr;		/* the request of @end to @qual */
};

struct dat_call {
	const char *name;
	void (*prepare)(struct node *n, struct call_objects *p);	/* or NULL */
	DAT_RETURN (*make)(struct stage *s, struct call_objects *p);
	struct outcome in[LAST_STATE + 1];	/* a state not listed is REFUSED */
};

#define UNUSED __attribute__((unused))

static const DAT_DTO_COOKIE cookie = { .as_64 = 4711 };

/* Connecting */

static void listen_anywhere(struct node *n, struct call_objects *p)
{
	node_listen(n, &p->qual);
}

static DAT_RETURN connect_to_listener(struct stage *s, struct call_objects *p)
{
	return dat_ep_connect(s->e.ep, (DAT_IA_ADDRESS_PTR)&s->n->address, p->qual,
			      pair_scaled(PAIR_LIMIT) * 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static void open_end(struct node *n, struct call_objects *p)
{
	end_open(n, &p->end, NULL);
}

static void get_request(struct node *n, struct call_objects *p)
{
	DAT_PSP_HANDLE psp;

	end_open(n, &p->end, NULL);
	p->cr = end_request(n, &p->end, &psp);
}

/* Connects through a service point that keeps listening. */
static void connect_ends(struct node *n, struct call_objects *p)
{
	get_request(n, p);
	end_open(n, &p->peer, NULL);
	OK(dat_cr_accept(p->cr, p->peer.ep, 0, NULL));
	expect_conn(p->end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, p->end.ep);
}

static DAT_RETURN duplicate(DAT_EP_HANDLE ep, DAT_EP_HANDLE of)
{
	return dat_ep_dup_connect(ep, of, pair_scaled(PAIR_LIMIT) * 1000, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN duplicate_other(struct stage *s, struct call_objects *p)
{
	return duplicate(s->e.ep, p->end.ep);
}

static DAT_RETURN duplicate_it(struct stage *s, struct call_objects *p)
{
	return duplicate(p->end.ep, s->e.ep);
}

static DAT_RETURN accept_request(struct stage *s, struct call_objects *p)
{
	return dat_cr_accept(p->cr, s->e.ep, 0, NULL);
}

static DAT_RETURN reserve(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(s->n->ia, fresh_qualifier(), s->e.ep, s->n->cr, &rsp);
}

/* Ending */

static DAT_RETURN disconnect_abruptly(struct stage *s, struct call_objects *p UNUSED)
{
	return dat_ep_disconnect(s->e.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN disconnect_gracefully(struct stage *s, struct call_objects *p UNUSED)
{
	return dat_ep_disconnect(s->e.ep, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN reset(struct stage *s, struct call_objects *p UNUSED)
{
	return dat_ep_reset(s->e.ep);
}

static DAT_RETURN free_ep(struct stage *s, struct call_objects *p UNUSED)
{
	return dat_ep_free(s->e.ep);
}

/* Queries */

static DAT_RETURN get_status(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	return dat_ep_get_status(s->e.ep, &state, &recv_idle, &request_idle);
}

static DAT_RETURN query(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_EP_PARAM param;
	DAT_RETURN ret = dat_ep_query(s->e.ep, DAT_EP_FIELD_ALL, &param);

	if (ret == DAT_SUCCESS && !s->row->transient) {
		SAME(param.ep_state, s->row->state);
		SAME(!!param.remote_ia_address_ptr, s->row->has_peer);
	}
	return ret;
}

static DAT_RETURN recv_query(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_COUNT buffers, span;

	return dat_ep_recv_query(s->e.ep, &buffers, &span);
}

static DAT_RETURN set_watermark(struct stage *s, struct call_objects *p UNUSED)
{
	return dat_ep_set_watermark(s->e.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE);
}

/* Data transfer */

static DAT_RETURN post_a_recv(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, 8);

	return dat_ep_post_recv(s->e.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_a_send(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, 8);

	return dat_ep_post_send(s->e.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_a_read(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, 8);
	DAT_RMR_TRIPLET remote = mem_remote(&s->m, 64, 8);

	return dat_ep_post_rdma_read(s->e.ep, 1, &iov, cookie, &remote,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_a_write(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, 8);
	DAT_RMR_TRIPLET remote = mem_remote(&s->m, 64, 8);

	return dat_ep_post_rdma_write(s->e.ep, 1, &iov, cookie, &remote,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_a_bind(struct stage *s, struct call_objects *p UNUSED)
{
	DAT_LMR_TRIPLET part = mem_segment(&s->m, 0, 64);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(s->n->pz, &rmr));
	return rmr_bind(rmr, s->m.lmr, &part, DAT_MEM_PRIV_ALL_FLAG, s->e.ep, 0, &context);
}

/* The table */

#define CELL(state, what, then, event, flushed) \
	[DAT_EP_STATE_##state] = { what, DAT_EP_STATE_##then, event, flushed }
#define NO_EVENT ((DAT_EVENT_NUMBER)0)
#define BECOMES(state, then) CELL(state, DONE, then, NO_EVENT, false)
#define KEEPS(state) BECOMES(state, state)
#define FLUSHES(state) CELL(state, DONE, state, NO_EVENT, true)
#define ENDS(state) CELL(state, DONE, DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED, false)
#define FREES(state) CELL(state, EP_FREED, DISCONNECTED, NO_EVENT, false)

#define KEEPS_ALL                                                               \
	KEEPS(UNCONNECTED), KEEPS(RESERVED), KEEPS(PASSIVE_CONNECTION_PENDING), \
	KEEPS(ACTIVE_CONNECTION_PENDING), KEEPS(TENTATIVE_CONNECTION_PENDING),  \
	KEEPS(COMPLETION_PENDING), KEEPS(CONNECTED), KEEPS(DISCONNECT_PENDING)

static const struct dat_call calls[] = {
	{ "dat_ep_connect", listen_anywhere, connect_to_listener, {
		 BECOMES(UNCONNECTED, ACTIVE_CONNECTION_PENDING) } },
	{ "dat_ep_dup_connect", connect_ends, duplicate_other, {
		 BECOMES(UNCONNECTED, ACTIVE_CONNECTION_PENDING) } },
	{ "dat_ep_dup_connect/of an EP", open_end, duplicate_it, { KEEPS(CONNECTED) } },
	{ "dat_cr_accept", get_request, accept_request, {
		 BECOMES(UNCONNECTED, COMPLETION_PENDING) } },
	{ "dat_rsp_create", NULL, reserve, { BECOMES(UNCONNECTED, RESERVED) } },
	{ "dat_ep_disconnect/abruptly", NULL, disconnect_abruptly, {
		ENDS(ACTIVE_CONNECTION_PENDING), ENDS(COMPLETION_PENDING), ENDS(CONNECTED),
		ENDS(DISCONNECT_PENDING), KEEPS(DISCONNECTED) } },
	{ "dat_ep_disconnect/gracefully", NULL, disconnect_gracefully, {
		ENDS(ACTIVE_CONNECTION_PENDING), ENDS(COMPLETION_PENDING), ENDS(CONNECTED),
		KEEPS(DISCONNECT_PENDING), KEEPS(DISCONNECTED) } },
	{ "dat_ep_reset", NULL, reset, { KEEPS(UNCONNECTED), BECOMES(DISCONNECTED, UNCONNECTED) } },
	{ "dat_ep_free", NULL, free_ep, {
		FREES(UNCONNECTED), FREES(ACTIVE_CONNECTION_PENDING), FREES(COMPLETION_PENDING),
		FREES(CONNECTED), FREES(DISCONNECT_PENDING), FREES(DISCONNECTED) } },
	{ "dat_ep_get_status", NULL, get_status, { KEEPS_ALL, KEEPS(DISCONNECTED) } },
	{ "dat_ep_query", NULL, query, { KEEPS_ALL, KEEPS(DISCONNECTED) } },
	{ "dat_ep_recv_query", NULL, recv_query, { KEEPS_ALL, KEEPS(DISCONNECTED) } },
	{ "dat_ep_set_watermark", NULL, set_watermark, { KEEPS_ALL, KEEPS(DISCONNECTED) } },
	{ "dat_ep_post_recv", NULL, post_a_recv, { KEEPS_ALL, FLUSHES(DISCONNECTED) } },
	{ "dat_ep_post_send", NULL, post_a_send, { KEEPS(CONNECTED), FLUSHES(DISCONNECTED) } },
	{ "dat_ep_post_rdma_read", NULL, post_a_read, { KEEPS(CONNECTED), FLUSHES(DISCONNECTED) } },
	{ "dat_ep_post_rdma_write", NULL, post_a_write,
	  { KEEPS(CONNECTED), FLUSHES(DISCONNECTED) } },
	{ "dat_rmr_bind", NULL, post_a_bind, { KEEPS(CONNECTED), KEEPS(DISCONNECTED) } },
};

/* One cell */

static void check_return(const struct dat_call *c, const struct stage *s, DAT_RETURN ret)
{
	const struct outcome *o = &c->in[s->row->state];

	if (o->what != REFUSED) {
		conform_ret(__FILE__, __LINE__, c->name, ret, DAT_SUCCESS);
		return;
	}
	conform_ret(__FILE__, __LINE__, c->name, ret, DAT_INVALID_STATE);
	SAME(DAT_GET_SUBTYPE(ret), s->row->subtype);
}

static void check_flush(struct stage *s)
{
	DAT_EVENT event;
	DAT_EVD_HANDLE evd = dat_evd_dequeue(s->e.recv, &event) == DAT_SUCCESS ? s->e.recv :
										s->e.req;

	if (evd == s->e.req)
		OK(dat_evd_dequeue(evd, &event));
	SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie.as_64);
	SAME(drain(evd), 0);
}

/* Returns false if an earlier event shows that the state ended before the call. */
static bool check_event(struct stage *s, const struct outcome *o)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (!s->row->transient) {
		expect_conn(s->e.conn, o->event, s->e.ep);
		return true;
	}
	OK(dat_evd_wait(s->e.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return false;
	SAME(event.event_number, o->event);
	CHECK(event.event_data.connect_event_data.ep_handle == s->e.ep);
	return true;
}

/* Returns false if the state ended before the call. */
static bool check_effect(struct stage *s, const struct outcome *o)
{
	if (o->what == REFUSED) {
		SAME(ep_state(s->e.ep), s->row->state);
	} else if (o->what == DONE) {
		if (o->event && !check_event(s, o))
			return false;
		/* an accepted request leaves this state soon */
		if (o->next != DAT_EP_STATE_COMPLETION_PENDING)
			SAME(ep_state(s->e.ep), o->next);
	} else {
		FAILS(dat_ep_free(s->e.ep), DAT_INVALID_HANDLE);
		expect_quiet(s->e.conn);
	}
	if (o->flushed)
		check_flush(s);
	if (o->next != DAT_EP_STATE_COMPLETION_PENDING)
		SAME(drain(s->e.conn), 0);
	if (o->what == DONE && o->next == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	    o->next != s->row->state)
		node_request(s->n);	/* take the request */
	return true;
}

/* Returns false if the state ended before the call. */
static bool cell(const struct dat_call *c, struct stage *s, struct call_objects *p)
{
	const struct outcome *o = &c->in[s->row->state];
	bool changes_state = o->what == EP_FREED || (o->what == DONE && o->next != s->row->state);
	DAT_RETURN ret;

	if (s->row->transient && ep_state(s->e.ep) != s->row->state)
		return false;
	ret = c->make(s, p);
	if (s->row->transient && !changes_state && ep_state(s->e.ep) != s->row->state)
		return false;
	check_return(c, s, ret);
	return (s->row->transient && !changes_state) || check_effect(s, o);
}

#define TRIES 20

static void name_cell(unsigned i, char *name, size_t size)
{
	const struct dat_call *c = &calls[i / N_STAGES];
	const struct stage_row *row = &stage_rows[i % N_STAGES];
	size_t call_length = strcspn(c->name, "/");
	const char *tail = c->name + call_length;

	snprintf(name, size, "%.*s/%s%s/%s", (int)call_length, c->name,
		 c->in[row->state].what == REFUSED ? "INVALID_STATE" : "SUCCESS", tail, row->name);
}

FAMILY(COUNT(calls) * N_STAGES, name_cell)
{
	const struct stage_row *row = &stage_rows[i % N_STAGES];
	const struct dat_call *c = &calls[i / N_STAGES];
	unsigned tries;
	struct call_objects p;
	struct stage s;

	for (tries = 0; tries < TRIES; tries++) {
		if (c->prepare)
			c->prepare(n, &p);
		stage_set(n, row, &s);
		if (cell(c, &s, &p))
			return;
	}
	skip("%s ends too soon", row->name);
}
