/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reserved service points, EPs that come with a request, and handing off a request, in two
 * processes.
 */

#include "pair.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Qualifiers that only this process uses. */
static DAT_CONN_QUAL qual_of(unsigned i)
{
	return (UINT64_C(3) << 61) + (UINT64_C(1) << 20) * (unsigned)getpid() + i;
}

#define DATA 48			/* size of private data */
#define THEIRS 7		/* seeds */
#define MINE 8

/* Of a request: with the longest qualifiers RDMA's connection manager has fewer bytes for it. */
static DAT_COUNT request_size(const struct node *n)
{
	return node_is_on_verbs(n) ? 40 : DATA;
}

/* Connects with private data, as the client of most cases does. */
static void connect_ep(const struct node *n, DAT_EP_HANDLE ep, const struct listener *listener)
{
	unsigned char data[DATA];

	fill(data, sizeof(data), THEIRS);
	connect_with(ep, listener, pair_scaled(PAIR_LIMIT), request_size(n), data);
}

/* @ep is connected with the server's private data and reports the address that it connected to. */
static void expect_accepted(struct node *n, DAT_EP_HANDLE ep, const struct listener *listener)
{
	DAT_EVENT event;

	expect_event(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
	check_data(event.event_data.connect_event_data.private_data_size,
		   event.event_data.connect_event_data.private_data, DATA, MINE);
	check_peer(n, ep, listener);
}

static DAT_RETURN accept_with_data(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	unsigned char data[DATA];

	fill(data, sizeof(data), MINE);
	return dat_cr_accept(cr, ep, sizeof(data), data);
}

/* Expects a request at a service point, checks all its parameters and returns its CR and EP. */
static DAT_CR_HANDLE request_at(struct node *n, DAT_HANDLE sp, DAT_CONN_QUAL qual,
				DAT_EP_HANDLE *ep)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *a;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	expect_event(n->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	a = &event.event_data.cr_arrival_event_data;
	CHECK(a->sp_handle.rsp_handle == sp, "wrong service point");
	SAME(a->conn_qual, qual);
	OK(dat_cr_query(a->cr_handle, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, request_size(n), THEIRS);
	CHECK(param.remote_port_qual, "no port");
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
	*ep = param.local_ep_handle;
	return a->cr_handle;
}

/* A client with one EP, which is accepted and disconnected by both ends. */
static void accepted_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_ep(&n, n.ep, &listener);
	expect_accepted(&n, n.ep, &listener);
	pair_unlink(p, &n, n.ep);
	expect_quiet(n.conn);
	node_end(&n);
}

/* A client with a single attempt, which fails with the event of the case. */
static void failing_client(struct pair *p)
{
	DAT_EVENT_NUMBER number = *(const DAT_EVENT_NUMBER *)pair_arg();
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_ep(&n, n.ep, &listener);
	expect_conn(n.conn, number, n.ep);
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	pair_sync(p);
	expect_quiet(n.conn);
	node_end(&n);
}

static const DAT_EVENT_NUMBER peer_rejected = DAT_CONNECTION_EVENT_PEER_REJECTED;
static const DAT_EVENT_NUMBER non_peer_rejected = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;

/* Reserved service points */

static void check_pending(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	SAME(param.local_port_qual, qual);
	CHECK(param.remote_ia_address_ptr && param.remote_port_qual, "no peer");
	FAILS(dat_ep_free(ep), DAT_INVALID_STATE);
	FAILS(dat_ep_reset(ep), DAT_INVALID_STATE);
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
}

static void reserved_server(struct pair *p)
{
	DAT_EP_HANDLE ep, other, request_ep;
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp, second;
	DAT_CR_HANDLE cr;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	other = node_ep(&n, NULL);
	OK(dat_rsp_create(n.ia, qual_of(0), ep, n.cr, &rsp));
	SAME(ep_state(ep), DAT_EP_STATE_RESERVED);
	FAILS(dat_ep_free(ep), DAT_INVALID_STATE);
	FAILS(dat_rsp_create(n.ia, qual_of(1), ep, n.cr, &second), DAT_INVALID_STATE);
	FAILS(dat_rsp_create(n.ia, qual_of(0), other, n.cr, &second), DAT_CONN_QUAL_IN_USE);
	SAME(ep_state(other), DAT_EP_STATE_UNCONNECTED);
	FAILS(dat_ia_close(n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n.ia && param.evd_handle == n.cr && param.ep_handle == ep,
	      "wrong IA, EVD or EP");
	SAME(param.conn_qual, qual_of(0));
	pair_send_listener(p, &n, qual_of(0));

	cr = request_at(&n, rsp, qual_of(0), &request_ep);
	CHECK(request_ep == ep, "wrong EP");
	check_pending(ep, qual_of(0));
	pair_sync(p);	/* a second request is refused */
	expect_quiet(n.cr);
	FAILS(accept_with_data(cr, ep), DAT_INVALID_HANDLE);
	FAILS(accept_with_data(cr, other), DAT_INVALID_HANDLE);
	OK(accept_with_data(cr, DAT_HANDLE_NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_sync(p);	/* a third request is refused, too */
	expect_quiet(n.cr);
	OK(dat_rsp_free(rsp));
	FAILS(dat_rsp_free(rsp), DAT_INVALID_HANDLE);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_ep_free(other));
	node_close(&n);
}

static void reserved_client(struct pair *p)
{
	DAT_EP_HANDLE ep, other;
	struct listener listener;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	other = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	connect_ep(&n, ep, &listener);
	/* the request that arrives first waits, the other one is refused */
	connect_ep(&n, other, &listener);
	expect_event(n.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event);
	if (event.event_data.connect_event_data.ep_handle == ep) {
		ep = other;
		other = event.event_data.connect_event_data.ep_handle;
	}
	SAME(ep_state(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	pair_sync(p);
	expect_accepted(&n, ep, &listener);
	OK(dat_ep_reset(other));
	connect_fails(&n, other, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	pair_sync(p);
	pair_unlink(p, &n, ep);
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	OK(dat_ep_free(other));
	node_close(&n);
}

/*
 * Rejecting the request frees the EP for another RSP. Freeing an RSP without a request frees the
 * EP, too, and nothing listens at the qualifier then.
 */
static void rsp_freed_server(struct pair *p)
{
	DAT_RSP_HANDLE first, rsp;
	DAT_EP_HANDLE request_ep;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 0);
	OK(dat_rsp_create(n.ia, qual_of(0), n.ep, n.cr, &first));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, first, qual_of(0), &request_ep);
	OK(cr_reject(cr, 0, NULL));
	SAME(ep_state(n.ep), DAT_EP_STATE_UNCONNECTED);
	pair_sync(p);	/* the client was rejected, then refused */

	OK(dat_rsp_create(n.ia, qual_of(1), n.ep, n.cr, &rsp));
	OK(dat_rsp_free(first));
	SAME(ep_state(n.ep), DAT_EP_STATE_RESERVED);
	OK(dat_rsp_free(rsp));
	SAME(ep_state(n.ep), DAT_EP_STATE_UNCONNECTED);
	pair_send_listener(p, &n, qual_of(1));
	pair_sync(p);	/* refused: there is no listener */

	OK(dat_rsp_create(n.ia, qual_of(1), n.ep, n.cr, &rsp));
	pair_send_listener(p, &n, qual_of(1));
	cr = request_at(&n, rsp, qual_of(1), &request_ep);
	CHECK(request_ep == n.ep, "wrong EP");
	OK(dat_rsp_free(rsp));
	SAME(ep_state(n.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	OK(accept_with_data(cr, DAT_HANDLE_NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void rsp_freed_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_ep(&n, n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, n.ep);
	OK(dat_ep_reset(n.ep));
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(n.ep));
	pair_sync(p);
	pair_recv_listener(p, &listener);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(n.ep));
	pair_sync(p);
	pair_recv_listener(p, &listener);
	connect_ep(&n, n.ep, &listener);
	expect_accepted(&n, n.ep, &listener);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* Many RSPs at once, each with its own EP, as dapltest uses them. */
#define N_RESERVED 32

static void many_server(struct pair *p)
{
	DAT_RSP_HANDLE rsp[N_RESERVED];
	DAT_EP_HANDLE ep[N_RESERVED];
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	for (i = 0; i < N_RESERVED; i++) {
		ep[i] = node_ep(&n, NULL);
		OK(dat_rsp_create(n.ia, qual_of(i), ep[i], n.cr, &rsp[i]));
	}
	pair_send_listener(p, &n, qual_of(0));
	for (i = 0; i < N_RESERVED; i++) {
		const DAT_CR_ARRIVAL_EVENT_DATA *a = &event.event_data.cr_arrival_event_data;
		DAT_CR_PARAM param;
		unsigned at;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		at = a->conn_qual - qual_of(0);
		CHECK(at < N_RESERVED && a->sp_handle.rsp_handle == rsp[at], "wrong service point");
		OK(dat_cr_query(a->cr_handle, DAT_CR_FIELD_ALL, &param));
		CHECK(param.local_ep_handle == ep[at], "wrong EP");
		OK(dat_cr_accept(a->cr_handle, DAT_HANDLE_NULL, 0, NULL));
	}
	for (i = 0; i < N_RESERVED; i++)
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	for (i = 0; i < N_RESERVED; i++) {
		OK(dat_rsp_free(rsp[i]));
		pair_unlink(p, &n, ep[i]);
		OK(dat_ep_free(ep[i]));
	}
	expect_quiet(n.cr);
	node_close(&n);
}

static void many_client(struct pair *p)
{
	DAT_EP_HANDLE ep[N_RESERVED];
	struct listener listener;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_RESERVED; i++) {
		ep[i] = node_ep(&n, NULL);
		ep_connect(ep[i], &listener);
		listener.qual++;
	}
	for (i = 0; i < N_RESERVED; i++)
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	for (i = 0; i < N_RESERVED; i++) {
		pair_unlink(p, &n, ep[i]);
		OK(dat_ep_free(ep[i]));
	}
	node_close(&n);
}

/* EPs that the provider creates */

/* Sets the PZ and EVDs of an EP that the provider created. */
static void complete_ep(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = n->pz;
	param.recv_evd_handle = n->recv;
	param.request_evd_handle = n->req;
	param.connect_evd_handle = n->conn;
	OK(dat_ep_modify(ep,
			 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
}

static DAT_HANDLE make_point(struct node *n, bool reserved, DAT_CONN_QUAL qual)
{
	DAT_HANDLE sp;

	if (reserved)
		OK(dat_rsp_create(n->ia, qual, DAT_HANDLE_NULL, n->cr, &sp));
	else
		OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_PROVIDER_FLAG, &sp));
	return sp;
}

static void free_point(bool reserved, DAT_HANDLE sp)
{
	OK(reserved ? dat_rsp_free(sp) : dat_psp_free(sp));
}

static void check_tentative(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;
	DAT_HANDLE_TYPE type;

	CHECK(ep, "no EP");
	OK(dat_get_handle_type(ep, &type));
	SAME(type, DAT_HANDLE_TYPE_EP);
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	CHECK(param.ia_handle == n->ia, "wrong IA");
	CHECK(!param.pz_handle && !param.connect_evd_handle, "the EP has a PZ or a connect EVD");
	CHECK(param.remote_ia_address_ptr && param.remote_port_qual, "no peer");
	FAILS(dat_ep_free(ep), DAT_INVALID_STATE);
}

static void provided_server(struct pair *p)
{
	bool reserved = *(const bool *)pair_arg();
	DAT_HANDLE sp;
	DAT_EP_HANDLE ep, own;
	DAT_CR_HANDLE cr;
	struct node n;

	node_open(&n);
	SAME(n.prov.ep_creator, DAT_PSP_CREATES_EP_IFASKED);
	own = node_ep(&n, NULL);
	sp = make_point(&n, reserved, qual_of(0));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, sp, qual_of(0), &ep);
	check_tentative(&n, ep);
	FAILS(accept_with_data(cr, own), DAT_INVALID_HANDLE);
	FAILS(accept_with_data(cr, DAT_HANDLE_NULL), DAT_INVALID_STATE);
	complete_ep(&n, ep);
	OK(accept_with_data(cr, DAT_HANDLE_NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	free_point(reserved, sp);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_ep_free(own));
	node_close(&n);
}

static void provided_rejected_server(struct pair *p)
{
	bool reserved = *(const bool *)pair_arg();
	DAT_HANDLE sp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct node n;

	node_open(&n);
	sp = make_point(&n, reserved, qual_of(0));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, sp, qual_of(0), &ep);
	check_tentative(&n, ep);
	OK(cr_reject(cr, 0, NULL));
	FAILS(dat_ep_free(ep), DAT_INVALID_HANDLE);
	FAILS(dat_ep_query(ep, 0, &(DAT_EP_PARAM){ .ep_state = 0 }), DAT_INVALID_HANDLE);
	pair_sync(p);
	free_point(reserved, sp);
	node_close(&n);
}

static void provided_rejected_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_ep(&n, n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, n.ep);
	pair_sync(p);
	node_end(&n);
}

static const bool with_psp = false, with_rsp = true;

/* Handing off */

/* From one PSP to another, to an RSP, and to a PSP with an EVD of its own. */
static void handoff_server(struct pair *p)
{
	DAT_PSP_HANDLE first, second, last;
	DAT_CR_HANDLE cr, old;
	DAT_EP_HANDLE request_ep;
	DAT_RSP_HANDLE rsp;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	evd = node_evd(&n, 4, DAT_EVD_CR_FLAG);
	n.ep = node_ep(&n, NULL);
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_CONSUMER_FLAG, &first));
	OK(dat_psp_create(n.ia, qual_of(1), n.cr, DAT_PSP_CONSUMER_FLAG, &second));
	OK(dat_rsp_create(n.ia, qual_of(2), n.ep, n.cr, &rsp));
	OK(dat_psp_create(n.ia, qual_of(3), evd, DAT_PSP_CONSUMER_FLAG, &last));
	pair_send_listener(p, &n, qual_of(0));
	old = request_at(&n, first, qual_of(0), &request_ep);
	FAILS(dat_cr_handoff(old, qual_of(4)), DAT_INVALID_PARAMETER);
	OK(dat_cr_handoff(old, qual_of(1)));
	FAILS(dat_cr_handoff(old, qual_of(1)), DAT_INVALID_HANDLE);
	cr = request_at(&n, second, qual_of(1), &request_ep);
	CHECK(!request_ep, "there is an EP");
	FAILS(cr_reject(old, 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_psp_free(first));
	FAILS(dat_cr_handoff(cr, qual_of(0)), DAT_INVALID_PARAMETER);

	OK(dat_cr_handoff(cr, qual_of(2)));
	cr = request_at(&n, rsp, qual_of(2), &request_ep);
	CHECK(request_ep == n.ep, "wrong EP");
	check_pending(n.ep, qual_of(2));
	FAILS(dat_cr_handoff(cr, qual_of(2)), DAT_INVALID_PARAMETER);

	OK(dat_cr_handoff(cr, qual_of(3)));
	SAME(ep_state(n.ep), DAT_EP_STATE_UNCONNECTED);
	expect_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == last,
	      "wrong service point");
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(accept_with_data(cr, n.ep));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	expect_quiet(n.cr);
	OK(dat_psp_free(second));
	OK(dat_psp_free(last));
	OK(dat_rsp_free(rsp));
	OK(dat_evd_free(evd));
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void handoff_rejected_server(struct pair *p)
{
	DAT_PSP_HANDLE first, second;
	DAT_EP_HANDLE request_ep;
	struct node n;

	node_open(&n);
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_CONSUMER_FLAG, &first));
	OK(dat_psp_create(n.ia, qual_of(1), n.cr, DAT_PSP_PROVIDER_FLAG, &second));
	pair_send_listener(p, &n, qual_of(0));
	OK(dat_cr_handoff(request_at(&n, first, qual_of(0), &request_ep), qual_of(1)));
	OK(cr_reject(request_at(&n, second, qual_of(1), &request_ep), 0, NULL));
	FAILS(dat_ep_free(request_ep), DAT_INVALID_HANDLE);
	pair_sync(p);
	OK(dat_psp_free(first));
	OK(dat_psp_free(second));
	node_close(&n);
}

static void handoff_full_server(struct pair *p)
{
	DAT_PSP_HANDLE first, second;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE request_ep;
	struct node n;

	node_open(&n);
	evd = node_evd(&n, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	while (post_se(evd, 1) == DAT_SUCCESS)
		;
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_CONSUMER_FLAG, &first));
	OK(dat_psp_create(n.ia, qual_of(1), evd, DAT_PSP_CONSUMER_FLAG, &second));
	pair_send_listener(p, &n, qual_of(0));
	OK(dat_cr_handoff(request_at(&n, first, qual_of(0), &request_ep), qual_of(1)));
	pair_sync(p);
	expect_quiet(n.async);
	OK(dat_psp_free(first));
	OK(dat_psp_free(second));
	OK(dat_evd_free(evd));
	node_close(&n);
}

#define DISCONNECT_MS 200

static void disconnected_server(struct pair *p)
{
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE request_ep;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 0);
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_rsp_create(n.ia, qual_of(1), n.ep, n.cr, &rsp));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, psp, qual_of(0), &request_ep);
	pair_sync(p);	/* the requester has given up */
	OK(dat_cr_handoff(cr, qual_of(1)));
	cr = request_at(&n, rsp, qual_of(1), &request_ep);
	CHECK(request_ep == n.ep, "wrong EP");
	accept_own_gone(&n, cr, n.ep);
	OK(dat_rsp_free(rsp));
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void disconnected_client(struct pair *p)
{
	unsigned char data[DATA];
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	fill(data, sizeof(data), THEIRS);
	connect_with(n.ep, &listener, pair_scaled(DISCONNECT_MS), request_size(&n), data);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_TIMED_OUT, n.ep);
	pair_sync(p);
	node_end(&n);
}

/* The peer is killed while its request is pending */

static void killed_client(struct pair *p)
{
	struct listener listener;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	connect_ep(&n, ep, &listener);
	pair_sync(p);
	raise(SIGKILL);
}

static void killed_accept_server(struct pair *p)
{
	DAT_EP_HANDLE request_ep;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 64);
	post_recv(n.ep, &n.m, 0, 64, 1);
	OK(dat_rsp_create(n.ia, qual_of(0), n.ep, n.cr, &rsp));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, rsp, qual_of(0), &request_ep);
	pair_sync(p);
	pair_wait_gone(p);
	expect_quiet(n.conn);
	SAME(ep_state(n.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	accept_own_gone(&n, cr, n.ep);
	expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	OK(dat_rsp_free(rsp));
	node_end(&n);
}

static void killed_reject_server(struct pair *p)
{
	DAT_EP_HANDLE request_ep;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 0);
	OK(dat_rsp_create(n.ia, qual_of(0), n.ep, n.cr, &rsp));
	pair_send_listener(p, &n, qual_of(0));
	cr = request_at(&n, rsp, qual_of(0), &request_ep);
	pair_sync(p);
	pair_wait_gone(p);
	OK(cr_reject(cr, 0, NULL));
	SAME(ep_state(n.ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_rsp_free(rsp));
	node_end(&n);
}

/* Requests that the program does not answer */

static void closed_server(struct pair *p)
{
	DAT_EP_HANDLE ep, request_ep;
	DAT_RSP_HANDLE rsp;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	OK(dat_rsp_create(n.ia, qual_of(0), ep, n.cr, &rsp));
	pair_send_listener(p, &n, qual_of(0));
	request_at(&n, rsp, qual_of(0), &request_ep);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_ep_free(ep), DAT_INVALID_HANDLE);
	FAILS(dat_rsp_free(rsp), DAT_INVALID_HANDLE);
	pair_sync(p);
}

static void closed_provided_server(struct pair *p)
{
	DAT_PSP_HANDLE first, second;
	DAT_EP_HANDLE request_ep;
	struct node n;

	node_open(&n);
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_CONSUMER_FLAG, &first));
	OK(dat_psp_create(n.ia, qual_of(1), n.cr, DAT_PSP_PROVIDER_FLAG, &second));
	pair_send_listener(p, &n, qual_of(0));
	OK(dat_cr_handoff(request_at(&n, first, qual_of(0), &request_ep), qual_of(1)));
	request_at(&n, second, qual_of(1), &request_ep);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_ep_free(request_ep), DAT_INVALID_HANDLE);
	pair_sync(p);
}

/* The program cannot free the request's CR and EP, and the graceful close succeeds. */
static void pending_request_server(struct pair *p)
{
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE request_ep;
	struct node n;

	node_open(&n);
	OK(dat_psp_create(n.ia, qual_of(0), n.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	pair_send_listener(p, &n, qual_of(0));
	request_at(&n, psp, qual_of(0), &request_ep);
	OK(dat_psp_free(psp));
	node_close(&n);
	pair_sync(p);
}

/* The program never dequeues the event of the request. */
static void evd_freed_server(struct pair *p)
{
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE hint;
	struct node n;

	node_open(&n);
	OK(dat_cno_create(n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_evd_create(n.ia, 4, cno, DAT_EVD_CR_FLAG, &evd));
	OK(dat_psp_create(n.ia, qual_of(0), evd, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &n, qual_of(0));
	OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &hint));
	CHECK(hint == evd, "wrong EVD");
	OK(dat_psp_free(psp));
	OK(dat_evd_free(evd));
	pair_sync(p);	/* freeing the EVD has rejected the request */
	OK(dat_cno_free(cno));
	node_close(&n);
}

#define NOT_SOCKETS .not_sockets = "it drops rejections when the listener is closed"

static const struct pair_case cases[] = {
	PAIR_CASE("RSP for one request", reserved_server, reserved_client),
	PAIR_CASE("EP released when the RSP is freed", rsp_freed_server, rsp_freed_client),
	PAIR_CASE("many RSPs", many_server, many_client),
	PAIR_CASE("a PSP with EPs of the provider", provided_server, accepted_client,
		  .arg = &with_psp),
	PAIR_CASE("an RSP with an EP of the provider", provided_server, accepted_client,
		  .arg = &with_rsp),
	PAIR_CASE("a PSP's EP is freed with its request", provided_rejected_server,
		  provided_rejected_client, .arg = &with_psp),
	PAIR_CASE("an RSP's EP is freed with its request", provided_rejected_server,
		  provided_rejected_client, .arg = &with_rsp),
	PAIR_CASE("handed off three times", handoff_server, accepted_client),
	PAIR_CASE("handed off and rejected", handoff_rejected_server, failing_client,
		  .arg = &peer_rejected),
	PAIR_CASE("handed off to a full EVD", handoff_full_server, failing_client,
		  .arg = &non_peer_rejected),
	PAIR_CASE("handed off after the requester disconnected", disconnected_server,
		  disconnected_client),
	PAIR_CASE("requester killed, then its request accepted", killed_accept_server,
		  killed_client, .client_killed = true),
	PAIR_CASE("requester killed, then its request rejected", killed_reject_server,
		  killed_client, .client_killed = true),
	PAIR_CASE("IA closed with a request at an RSP", closed_server, failing_client,
		  .arg = &non_peer_rejected, NOT_SOCKETS),
	PAIR_CASE("IA closed after a request was handed off", closed_provided_server,
		  failing_client, .arg = &non_peer_rejected, NOT_SOCKETS),
	PAIR_CASE("IA closed gracefully with a pending request", pending_request_server,
		  failing_client, .arg = &non_peer_rejected, NOT_SOCKETS),
	PAIR_CASE("EVD freed with a pending request", evd_freed_server, failing_client,
		  .arg = &non_peer_rejected, NOT_SOCKETS),
};

PAIR_MAIN(cases)
