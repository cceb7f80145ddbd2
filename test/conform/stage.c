/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Brings an EP into each of its states and, where possible, keeps it there. */

#include "stage.h"

#include <string.h>
#include <unistd.h>

#define ROW(state, subtype, ...) \
	{ DAT_EP_STATE_##state, #state, DAT_INVALID_STATE_EP_##subtype, __VA_ARGS__ }

const struct stage_row stage_rows[N_STAGES] = {
	ROW(UNCONNECTED, UNCONNECTED, false, false),
	ROW(RESERVED, RESERVED, false, false),
	ROW(PASSIVE_CONNECTION_PENDING, PASSCONNPENDING, false, true),
	ROW(ACTIVE_CONNECTION_PENDING, ACTCONNPENDING, false, true),
	ROW(TENTATIVE_CONNECTION_PENDING, TENTCONNPENDING, false, true),
	ROW(COMPLETION_PENDING, COMPLPENDING, true, true),
	ROW(CONNECTED, CONNECTED, false, true),
	ROW(DISCONNECT_PENDING, DISCPENDING, true, true),
	ROW(DISCONNECTED, DISCONNECTED, false, false),
};

DAT_CONN_QUAL fresh_qualifier(void)
{
	static unsigned number;

	return UINT64_C(0xc0f0) << 48 | (uint64_t)getpid() << 16 | ++number;
}

struct listener listener_of(const struct node *n, DAT_CONN_QUAL qual)
{
	return (struct listener){ .address = n->address, .qual = qual };
}

void end_connect(struct node *n, struct end *e, DAT_CONN_QUAL qual)
{
	const struct listener listener = listener_of(n, qual);

	ep_connect(e->ep, &listener);
}

void end_adopt(struct node *n, struct end *e, DAT_CR_HANDLE cr)
{
	DAT_EP_PARAM param;
	DAT_CR_PARAM request;

	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	e->ep = request.local_ep_handle;
	CHECK(e->ep, "the provider created no EP");
	OK(dat_ep_query(e->ep, DAT_EP_FIELD_ALL, &param));
	param.pz_handle = n->pz;
	param.recv_evd_handle = e->recv;
	param.request_evd_handle = e->req;
	param.connect_evd_handle = e->conn;
	OK(dat_ep_modify(e->ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
}

static void reserve(struct stage *s, DAT_CONN_QUAL qual)
{
	OK(dat_rsp_create(s->n->ia, qual, s->e.ep, s->n->cr, &s->rsp));
}

static void reserve_and_request(struct stage *s)
{
	DAT_CONN_QUAL qual = fresh_qualifier();

	reserve(s, qual);
	end_connect(s->n, &s->peer, qual);
	s->cr = node_request(s->n);
}

static void provider_creates_ep(struct stage *s)
{
	struct node *n = s->n;
	DAT_CONN_QUAL qual;

	NEEDS_PROVIDER(ep_creator);
	OK(dat_ep_free(s->e.ep));
	OK(dat_psp_create_any(n->ia, &qual, n->cr, DAT_PSP_PROVIDER_FLAG, &s->psp));
	end_connect(n, &s->peer, qual);
	s->cr = node_request(n);
	end_adopt(n, &s->e, s->cr);
}

static void accept_peer(struct stage *s)
{
	OK(dat_cr_accept(end_request(s->n, &s->peer, &s->psp), s->e.ep, 0, NULL));
}

static void establish(struct stage *s)
{
	accept_peer(s);
	expect_conn(s->e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s->e.ep);
	expect_conn(s->peer.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s->peer.ep);
}

/* Exceeds the network's buffers, so the sends complete only if the peer posts receives. */
#define CONGESTION 16

static void disconnect_congested(struct stage *s)
{
	unsigned i;

	for (i = 0; i < CONGESTION; i++)
		post_send(s->e.ep, &s->m, 0, STAGE_MEMORY, i);
	OK(dat_ep_disconnect(s->e.ep, DAT_CLOSE_GRACEFUL_FLAG));
}

static void disconnect(struct stage *s)
{
	OK(dat_ep_disconnect(s->e.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(s->e.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s->e.ep);
	expect_conn(s->peer.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s->peer.ep);
}

static void enter_state(struct stage *s, DAT_EP_STATE state)
{
	switch (state) {
	case DAT_EP_STATE_RESERVED:
		reserve(s, fresh_qualifier());
		break;
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
		reserve_and_request(s);
		break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		s->cr = end_request(s->n, &s->e, &s->psp);
		break;
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		provider_creates_ep(s);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		accept_peer(s);
		break;
	case DAT_EP_STATE_CONNECTED:
		establish(s);
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		establish(s);
		disconnect_congested(s);
		break;
	case DAT_EP_STATE_DISCONNECTED:
		establish(s);
		disconnect(s);
		break;
	default:
		break;
	}
}

void stage_set(struct node *n, const struct stage_row *row, struct stage *s)
{
	static unsigned char memory[STAGE_MEMORY] __attribute__((aligned(4096)));

	memset(s, 0, sizeof(*s));
	s->n = n;
	s->row = row;
	end_open(n, &s->e, NULL);
	end_open(n, &s->peer, NULL);
	s->m.base = memory;
	s->m.size = sizeof(memory);
	OK(lmr_create(n->ia, memory, sizeof(memory), n->pz, DAT_MEM_PRIV_ALL_FLAG, &s->m.lmr,
		      &s->m.lmr_context, &s->m.rmr_context));
	enter_state(s, row->state);
}

/* Calls */

void attempt_open(struct node *n, struct attempt *c)
{
	end_open(n, &c->a, NULL);
	end_open(n, &c->b, NULL);
	c->psp = node_listen(n, &c->qual);
}

DAT_CR_HANDLE attempt_start(struct node *n, struct attempt *c)
{
	attempt_open(n, c);
	end_connect(n, &c->a, c->qual);
	return node_request(n);
}

void expect_established(struct attempt *c)
{
	expect_conn(c->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->a.ep);
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->b.ep);
}
