/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection requests: accepting, rejecting, handing off; EPs that come with them; RSPs. */

#include "stage.h"

#include <stdio.h>

CHAPTER("request");

CLAUSE("dat_cr_query/SUCCESS/consumer's PSP")
{
	DAT_CR_PARAM param;
	struct attempt c;

	OK(dat_cr_query(attempt_start(n, &c), DAT_CR_FIELD_ALL, &param));
	CHECK(!param.local_ep_handle, "there is an EP");
	CHECK(param.remote_port_qual, "no port");
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
}

CLAUSE("dat_cr_query/INVALID_PARAMETER")
{
	DAT_CR_PARAM param;
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	FAILS(dat_cr_query(cr, (DAT_CR_PARAM_MASK)0x20, &param), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
}

/* A request is answered once. */
CLAUSE("dat_cr_accept/INVALID_HANDLE/the CR was answered")
{
	DAT_CR_PARAM param;
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	FAILS(dat_cr_accept(cr, c.b.ep, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	FAILS(dat_cr_handoff(cr, 1), DAT_INVALID_HANDLE);
	expect_established(&c);
}

CLAUSE("dat_cr_accept/INVALID_HANDLE/EP")
{
	struct node other;
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);
	DAT_EP_HANDLE foreign;

	node_open(&other);
	foreign = node_ep(&other, NULL);
	FAILS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_cr_accept(cr, foreign, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_cr_accept(cr, n->recv, 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_ep_free(foreign));
	node_close(&other);
}

CLAUSE("dat_cr_accept/INVALID_STATE/no PZ or no connect EVD")
{
	DAT_EP_HANDLE no_pz, no_evd;
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);
	DAT_RETURN ret;

	OK(dat_ep_create(n->ia, DAT_HANDLE_NULL, n->recv, n->req, n->conn, NULL, &no_pz));
	OK(dat_ep_create(n->ia, n->pz, n->recv, n->req, DAT_HANDLE_NULL, NULL, &no_evd));
	ret = dat_cr_accept(cr, no_pz, 0, NULL);
	FAILS(ret, DAT_INVALID_STATE);
	SAME(DAT_GET_SUBTYPE(ret), DAT_INVALID_STATE_EP_NOTREADY);
	FAILS(dat_cr_accept(cr, no_evd, 0, NULL), DAT_INVALID_STATE);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

/* A request that was delivered can be answered after its service point is freed. */
CLAUSE("dat_psp_free/SUCCESS/pending requests remain")
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	OK(dat_psp_free(c.psp));
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

/* Handing off a request */

CLAUSE("dat_cr_handoff/SUCCESS")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL qual = fresh_qualifier();
	DAT_PSP_HANDLE second;
	unsigned char data[16];
	struct listener listener;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct attempt c;

	attempt_open(n, &c);
	listener = listener_of(n, c.qual);
	fill(data, sizeof(data), 5);
	connect_with(c.a.ep, &listener, pair_scaled(PAIR_LIMIT), sizeof(data), data);
	cr = node_request(n);
	OK(dat_psp_create(n->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &second));
	OK(dat_cr_handoff(cr, qual));
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	expect_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == second, "wrong PSP");
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, sizeof(data), 5);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

CLAUSE("dat_cr_handoff/INVALID_PARAMETER")
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	FAILS(dat_cr_handoff(cr, fresh_qualifier()), DAT_INVALID_PARAMETER);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

/* EPs that come with the request */

static const struct stage_row *row_of(DAT_EP_STATE state)
{
	size_t i;

	for (i = 0; stage_rows[i].state != state; i++)
		;
	return &stage_rows[i];
}

static const DAT_EP_STATE pending_states[] = {
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
};

static void name_own(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_cr_accept/ESTABLISHED/%s", row_of(pending_states[i])->name);
}

FAMILY(COUNT(pending_states), name_own)
{
	DAT_CR_PARAM param;
	struct stage s;

	stage_set(n, row_of(pending_states[i]), &s);
	OK(dat_cr_query(s.cr, DAT_CR_FIELD_ALL, &param));
	CHECK(param.local_ep_handle == s.e.ep, "wrong EP");
	/* no other EP can accept it */
	FAILS(dat_cr_accept(s.cr, node_ep(n, NULL), 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_cr_accept(s.cr, DAT_HANDLE_NULL, 0, NULL));
	expect_conn(s.e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s.e.ep);
	expect_conn(s.peer.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s.peer.ep);
	SAME(ep_state(s.e.ep), DAT_EP_STATE_CONNECTED);
}

CLAUSE("dat_cr_reject/SUCCESS/PASSIVE_CONNECTION_PENDING")
{
	struct stage s;

	stage_set(n, row_of(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING), &s);
	OK(cr_reject(s.cr, 0, NULL));
	SAME(ep_state(s.e.ep), DAT_EP_STATE_UNCONNECTED);
	expect_conn(s.peer.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, s.peer.ep);
	OK(dat_rsp_free(s.rsp));
}

CLAUSE("dat_cr_reject/SUCCESS/TENTATIVE_CONNECTION_PENDING")
{
	struct stage s;

	stage_set(n, row_of(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING), &s);
	OK(cr_reject(s.cr, 0, NULL));
	expect_conn(s.peer.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, s.peer.ep);
	FAILS(dat_ep_free(s.e.ep), DAT_INVALID_HANDLE);
	/* the objects that the EP used are free */
	OK(dat_evd_free(s.e.recv));
	OK(dat_evd_free(s.e.conn));
}

static void name_handed(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_cr_handoff/SUCCESS/%s", row_of(pending_states[i])->name);
}

FAMILY(COUNT(pending_states), name_handed)
{
	DAT_CONN_QUAL qual = fresh_qualifier();
	struct end other;
	DAT_PSP_HANDLE psp;
	struct stage s;

	stage_set(n, row_of(pending_states[i]), &s);
	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_cr_handoff(s.cr, qual));
	if (pending_states[i] == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
		SAME(ep_state(s.e.ep), DAT_EP_STATE_UNCONNECTED);
	else
		FAILS(dat_ep_free(s.e.ep), DAT_INVALID_HANDLE);
	end_open(n, &other, NULL);
	OK(dat_cr_accept(node_request(n), other.ep, 0, NULL));
	expect_conn(other.conn, DAT_CONNECTION_EVENT_ESTABLISHED, other.ep);
}

CLAUSE("dat_cr_accept/INVALID_STATE/TENTATIVE_CONNECTION_PENDING, no PZ and EVDs")
{
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	struct end a;

	NEEDS_PROVIDER(ep_creator);
	end_open(n, &a, NULL);
	OK(dat_psp_create_any(n->ia, &qual, n->cr, DAT_PSP_PROVIDER_FLAG, &psp));
	end_connect(n, &a, qual);
	cr = node_request(n);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	SAME(ep_state(param.local_ep_handle), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	ret = dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL);
	FAILS(ret, DAT_INVALID_STATE);
	SAME(DAT_GET_SUBTYPE(ret), DAT_INVALID_STATE_EP_NOTREADY);
	OK(cr_reject(cr, 0, NULL));
}

/* RSPs */

CLAUSE("dat_rsp_create/SUCCESS/one request only")
{
	struct stage s;
	struct end late;
	DAT_RSP_PARAM param;

	stage_set(n, row_of(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING), &s);
	OK(dat_rsp_query(s.rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(param.ep_handle == s.e.ep && param.evd_handle == n->cr && param.ia_handle == n->ia,
	      "not the arguments of dat_rsp_create()");
	end_open(n, &late, NULL);
	end_connect(n, &late, param.conn_qual);
	expect_conn(late.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, late.ep);
}

CLAUSE("dat_rsp_create/SUCCESS/no EP")
{
	DAT_CONN_QUAL qual = fresh_qualifier();
	struct end a, b;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	NEEDS_PROVIDER(ep_creator);
	end_open(n, &a, NULL);
	end_open(n, &b, NULL);
	OK(dat_ep_free(b.ep));
	OK(dat_rsp_create(n->ia, qual, DAT_HANDLE_NULL, n->cr, &rsp));
	end_connect(n, &a, qual);
	cr = node_request(n);
	end_adopt(n, &b, cr);
	SAME(ep_state(b.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect_conn(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	OK(dat_rsp_free(rsp));
}

CLAUSE("dat_rsp_free/SUCCESS/RESERVED")
{
	struct stage s;

	stage_set(n, row_of(DAT_EP_STATE_RESERVED), &s);
	OK(dat_rsp_free(s.rsp));
	SAME(ep_state(s.e.ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(s.e.ep));
}

CLAUSE("dat_rsp_free/SUCCESS/after the connection")
{
	struct stage s;

	stage_set(n, row_of(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING), &s);
	OK(dat_cr_accept(s.cr, DAT_HANDLE_NULL, 0, NULL));
	expect_conn(s.e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s.e.ep);
	OK(dat_rsp_free(s.rsp));
	FAILS(dat_rsp_free(s.rsp), DAT_INVALID_HANDLE);
	SAME(ep_state(s.e.ep), DAT_EP_STATE_CONNECTED);
}

/* Two requests to one PSP are two CRs, answered in any order. */
CLAUSE("dat_psp_create/SUCCESS/several requests")
{
	DAT_CR_HANDLE cr[3];
	struct end a[3], b;
	struct attempt c;
	size_t k;

	attempt_open(n, &c);
	for (k = 0; k < COUNT(cr); k++) {
		end_open(n, &a[k], NULL);
		end_connect(n, &a[k], c.qual);
		cr[k] = node_request(n);
	}
	OK(cr_reject(cr[2], 0, NULL));
	expect_conn(a[2].conn, DAT_CONNECTION_EVENT_PEER_REJECTED, a[2].ep);
	end_open(n, &b, NULL);
	OK(dat_cr_accept(cr[1], b.ep, 0, NULL));
	expect_conn(a[1].conn, DAT_CONNECTION_EVENT_ESTABLISHED, a[1].ep);
	OK(dat_cr_accept(cr[0], c.b.ep, 0, NULL));
	expect_conn(a[0].conn, DAT_CONNECTION_EVENT_ESTABLISHED, a[0].ep);
}
