/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two processes end a connection: gracefully, abruptly, both at once, and without disconnecting. */

#include "pair.h"

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 50

/* Both peers reuse one EP many times, and both disconnect at the same moment. */
static void reconnect(struct pair *p)
{
	struct node n;
	unsigned i;

	node_begin(&n, 0);
	for (i = 0; i < ROUNDS; i++) {
		pair_link(p, &n, n.ep);
		pair_sync(p);
		OK(dat_ep_disconnect(n.ep, i & 1 ? DAT_CLOSE_GRACEFUL_FLAG :
						   DAT_CLOSE_ABRUPT_FLAG));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
		SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
		OK(dat_ep_reset(n.ep));
		SAME(ep_state(n.ep), DAT_EP_STATE_UNCONNECTED);
	}
	expect_quiet(n.conn);
	node_end(&n);
}

/* half of them is more than a peer without receives keeps, on any fabric */
#define N_MESSAGES 600
#define MESSAGE 4096
#define WRITE_SIZE (1 << 20)

static DAT_EP_HANDLE deep_ep(struct node *n)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = N_MESSAGES + 8;
	return node_ep(n, &attr);
}

/* Receives the peer's messages: the first half is posted before the peer sends. */
static void graceful_server(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct mem m, target;
	struct node n;
	unsigned i;

	node_open(&n);
	mem_get(&n, &m, N_MESSAGES * MESSAGE);
	mem_get(&n, &target, WRITE_SIZE);
	ep = deep_ep(&n);
	for (i = 0; i < N_MESSAGES / 2; i++)
		post_recv(ep, &m, i * MESSAGE, MESSAGE, i);
	pair_link(p, &n, ep);
	pair_grant(p, &target);
	pair_sync(p);	/* the peer has posted everything and disconnected */
	for (; i < N_MESSAGES; i++)
		post_recv(ep, &m, i * MESSAGE, MESSAGE, i);
	for (i = 0; i < N_MESSAGES; i++) {
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, MESSAGE);
		verify(m.base + i * MESSAGE, MESSAGE, i);
	}
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_quiet(n.conn);
	verify(target.base, WRITE_SIZE, 77);
	OK(dat_ep_free(ep));
	mem_put(&m);
	mem_put(&target);
	node_close(&n);
}

static void graceful_client(struct pair *p)
{
	struct mem m, source;
	DAT_LMR_TRIPLET iov;
	DAT_EP_HANDLE ep;
	struct grant g;
	struct node n;
	unsigned i;

	node_open(&n);
	mem_get(&n, &m, N_MESSAGES * MESSAGE);
	mem_get(&n, &source, WRITE_SIZE);
	fill(source.base, WRITE_SIZE, 77);
	ep = deep_ep(&n);
	pair_link(p, &n, ep);
	pair_granted(p, &g);
	for (i = 0; i < N_MESSAGES; i++) {
		fill(m.base + i * MESSAGE, MESSAGE, i);
		post_send(ep, &m, i * MESSAGE, MESSAGE, i);
	}
	post_write(ep, &source, 0, WRITE_SIZE, i, &g, 0);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	iov = mem_segment(&m, 0, 1);
	FAILS(dat_ep_post_send(ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 0 },
			       DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_STATE);
	pair_sync(p);
	for (i = 0; i < N_MESSAGES; i++)
		expect_dto(n.req, i, DAT_DTO_SUCCESS, MESSAGE);
	expect_dto(n.req, i, DAT_DTO_SUCCESS, WRITE_SIZE);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	mem_put(&m);
	mem_put(&source);
	node_close(&n);
}

/* Takes @count completions: successes, then flushes. Returns the number of successes. */
static unsigned count_done(DAT_EVD_HANDLE evd, unsigned count)
{
	unsigned i, done = 0;

	for (i = 0; i < count; i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d;
		DAT_EVENT event;

		expect_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
		d = &event.event_data.dto_completion_event_data;
		SAME(d->user_cookie.as_64, i);
		if (d->status == DAT_DTO_SUCCESS && done == i)
			done++;
		else
			SAME(d->status, DAT_DTO_ERR_FLUSHED);
	}
	expect_quiet(evd);
	return done;
}

#define N_ABRUPT 32

/* Sends that have completed at the peer are received; the rest are not. */
static void abrupt_server(struct pair *p)
{
	unsigned i, done, sent;
	struct node n;

	node_begin(&n, WRITE_SIZE);
	pair_link(p, &n, n.ep);
	pair_recv(p, &sent, sizeof(sent));	/* the peer has disconnected */
	for (i = 0; i < N_ABRUPT; i++)
		post_recv(n.ep, &n.m, 0, WRITE_SIZE, i);
	expect_end(n.conn, n.ep);
	done = count_done(n.recv, N_ABRUPT);
	CHECK(done < N_ABRUPT, "%u received", done);
	/* sockets drops messages that it has completed into a buffer of its own */
	CHECK(done >= sent || pair_fabric_is("sockets"), "%u received of %u sent", done, sent);
	node_end(&n);
}

static void abrupt_client(struct pair *p)
{
	struct node n;
	unsigned i, sent;

	node_begin(&n, WRITE_SIZE);
	pair_link(p, &n, n.ep);
	for (i = 0; i < N_ABRUPT; i++) {
		post_recv(n.ep, &n.m, 0, 64, i);
		post_send(n.ep, &n.m, 0, WRITE_SIZE, i);
	}
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	sent = count_done(n.req, N_ABRUPT);
	CHECK(sent < N_ABRUPT, "more sends completed than the fabric can buffer");
	SAME(count_done(n.recv, N_ABRUPT), 0);
	pair_send(p, &sent, sizeof(sent));
	expect_quiet(n.conn);
	node_end(&n);
}

/* Returns true if the next event is ESTABLISHED, false if it is already DISCONNECTED. */
static bool established(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(n->conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return true;
	SAME(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	return false;
}

/* dat_ep_disconnect() in each state. */
static void states_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 0);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	/* the requester leaves before it has an answer */
	cr = node_request(&n);
	pair_sync(p);
	pair_sync(p);
	OK(cr_reject(cr, 0, NULL));
	/* COMPLETION_PENDING, or just CONNECTED */
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_ABRUPT_FLAG));
	if (!established(&n, n.ep))
		SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	else
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n.conn);
	OK(dat_ep_reset(n.ep));
	pair_sync(p);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_quiet(n.conn);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void states_client(struct pair *p)
{
	struct listener listener;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	ep = node_ep(&n, NULL);
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	FAILS(dat_ep_disconnect(ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER);
	OK(dat_ep_reset(ep));
	pair_recv_listener(p, &listener);
	/* ACTIVE_CONNECTION_PENDING */
	post_recv(ep, &n.m, 0, 64, 1);
	ep_connect(ep, &listener);
	pair_sync(p);
	SAME(ep_state(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	FAILS(dat_ep_reset(ep), DAT_INVALID_STATE);
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&listener.address, listener.qual, 1000, 0,
			     NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	      DAT_INVALID_STATE);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	expect_quiet(n.conn);
	pair_sync(p);
	/* the acceptor disconnects immediately */
	OK(dat_ep_reset(ep));
	ep_connect(ep, &listener);
	OK(dat_evd_wait(n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &(DAT_COUNT){ 0 }));
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		expect_end(n.conn, ep);
	else
		SAME(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n.conn);
	OK(dat_ep_reset(ep));
	pair_sync(p);
	/* CONNECTED, then DISCONNECT_PENDING as a send waits for its receive */
	ep_connect(ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	FAILS(dat_ep_disconnect(ep, (DAT_CLOSE_FLAGS)2), DAT_INVALID_PARAMETER);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	/* DISCONNECTED */
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	node_end(&n);
}

/* An abrupt disconnect replaces a graceful one that is pending. */
static void abrupt_after_graceful_client(struct pair *p)
{
	struct node n;
	unsigned i, sent;

	node_begin(&n, WRITE_SIZE);
	pair_link(p, &n, n.ep);
	for (i = 0; i < N_ABRUPT; i++)
		post_send(n.ep, &n.m, 0, WRITE_SIZE, i);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_GRACEFUL_FLAG));
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	expect_quiet(n.conn);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	sent = count_done(n.req, N_ABRUPT);
	CHECK(sent < N_ABRUPT, "more sends completed than the fabric can buffer");
	pair_send(p, &sent, sizeof(sent));
	expect_quiet(n.conn);
	node_end(&n);
}

/* How a peer leaves without disconnecting. */
enum goodbye { FREE_EP, CLOSE_IA, EXIT };

static const enum goodbye free_ep = FREE_EP, close_ia = CLOSE_IA, exit_at_once = EXIT;

static void end_server(struct pair *p)
{
	enum goodbye how = *(const enum goodbye *)pair_arg();
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	ep = node_ep(&n, NULL);
	post_recv(ep, &n.m, 0, 64, 1);
	pair_link(p, &n, ep);
	pair_sync(p);
	if (how == EXIT)
		_exit(EXIT_SUCCESS);
	if (how == CLOSE_IA) {
		FAILS(dat_ia_close(n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
		OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
		FAILS(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
		return;
	}
	OK(dat_ep_free(ep));
	expect_quiet(n.conn);
	FAILS(dat_ep_free(ep), DAT_INVALID_HANDLE);
	node_end(&n);
}

static void end_client(struct pair *p)
{
	enum goodbye how = *(const enum goodbye *)pair_arg();
	struct node n;

	node_begin(&n, 64);
	post_recv(n.ep, &n.m, 0, 64, 1);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	SAME(expect_end(n.conn, n.ep),
	     how == EXIT ? end_by_death(&n) : DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	node_end(&n);
}

/* EPs are freed while they connect. */
#define N_FREED 30

static void freed_acceptor_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < N_FREED; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
		if (i % 3 == 1)
			expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	OK(dat_psp_free(psp));
	expect_quiet(n.conn);
	node_close(&n);
}

static void freed_acceptor_client(struct pair *p)
{
	struct listener listener;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_FREED; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		ep_connect(ep, &listener);
		OK(dat_evd_wait(n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event,
				&(DAT_COUNT){ 0 }));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			expect_end(n.conn, ep);
		else
			CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED, "%s",
			      event_name(event.event_number));
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	node_close(&n);
}

/* The requester frees its EP while the request is pending: accepting the request fails. */
static void freed_requester_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < N_FREED; i++) {
		DAT_CR_HANDLE cr = node_request(&n);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		pair_sync(p);
		pair_sync(p);	/* the request is withdrawn */
		accept_gone(&n, cr, ep);
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	OK(dat_psp_free(psp));
	expect_quiet(n.conn);
	node_close(&n);
}

static void freed_requester_client(struct pair *p)
{
	struct listener listener;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_FREED; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		ep_connect(ep, &listener);
		pair_sync(p);
		OK(dat_ep_free(ep));
		pair_sync(p);
		pair_sync(p);
	}
	expect_quiet(n.conn);
	node_close(&n);
}

/*
 * The peer disconnects while this process sends: the notification may arrive after a send has
 * failed.
 */
#define N_BUSY 30
#define BUSY_DEPTH 8

static void busy_server(struct pair *p)
{
	struct node n;
	unsigned i, k;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	for (i = 0; i < N_BUSY; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		for (k = 0; k < BUSY_DEPTH; k++)
			post_recv(ep, &n.m, 0, 64, k);
		pair_link(p, &n, ep);
		/* the peer continues to send */
		for (k = 0; k < i % BUSY_DEPTH; k++)
			expect_dto(n.recv, k, DAT_DTO_SUCCESS, 64);
		OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
		pair_sync(p);
		while (dat_evd_dequeue(n.recv, &(DAT_EVENT){ .event_number = 0 }) == DAT_SUCCESS)
			;
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

/* Sends until the connection has ended. */
static void busy_client(struct pair *p)
{
	struct node n;
	unsigned i;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	for (i = 0; i < N_BUSY; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		pair_link(p, &n, ep);
		while (ep_state(ep) == DAT_EP_STATE_CONNECTED) {
			post_send(ep, &n.m, 0, 64, 1);
			expect_event(n.req, DAT_DTO_COMPLETION_EVENT, &event);
		}
		SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_DISCONNECTED);
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}

#define READ_SIZE (4u << 20)
#define N_CUT 12
#define N_AFTER 40
#define AFTER_SLOT 8192u

/* Checks messages and writes of another connection of the IA after each disconnect. */
static void other_works(struct link *l, bool sends, unsigned round)
{
	unsigned i;

	for (i = 0; i < N_AFTER; i++) {
		const size_t size = 1000 + 100 * i;

		if (sends) {
			fill(l->m.base, size, round * N_AFTER + i);
			post_write(l->ep, &l->m, 0, size, 1, &l->theirs, i * AFTER_SLOT);
			post_send(l->ep, &l->m, 0, size, 2);
			expect_dto(l->n.req, 1, DAT_DTO_SUCCESS, size);
			expect_dto(l->n.req, 2, DAT_DTO_SUCCESS, size);
		} else {
			expect_dto(l->n.recv, i, DAT_DTO_SUCCESS, size);
			verify(l->m.base + READ_SIZE, size, round * N_AFTER + i);
			verify(l->m.base + i * AFTER_SLOT, size, round * N_AFTER + i);
			if (i + 1 < N_AFTER)
				post_recv(l->ep, &l->m, READ_SIZE, READ_SIZE / 2, i + 1);
		}
	}
}

/* A connection ends while the reply to a read arrives; tcp of libfabric 1.17 freed it twice. */
static void cut_read_server(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, READ_SIZE + READ_SIZE / 2);
	for (i = 0; i < N_CUT; i++) {
		DAT_EP_HANDLE ep = node_ep(&l.n, NULL);

		pair_link(p, &l.n, ep);
		pair_sync(p);
		expect_end(l.n.conn, ep);
		OK(dat_ep_free(ep));
		post_recv(l.ep, &l.m, READ_SIZE, READ_SIZE / 2, 0);
		pair_sync(p);
		other_works(&l, false, i);
		pair_sync(p);
	}
	link_close(p, &l);
}

static void cut_read_client(struct pair *p)
{
	DAT_EVENT event;
	struct link l;
	unsigned i;

	link_open(p, &l, READ_SIZE + READ_SIZE / 2);
	for (i = 0; i < N_CUT; i++) {
		DAT_EP_HANDLE ep = node_ep(&l.n, NULL);
		volatile unsigned char *first = l.m.base;
		const int64_t until = pair_now() + 100000;

		pair_link(p, &l.n, ep);
		pair_sync(p);
		*first = 0xaa;
		post_read(ep, &l.m, 0, READ_SIZE, 3, &l.theirs, 0);
		while (*first == 0xaa && pair_now() < until && i % 2)
			;
		OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_event(l.n.req, DAT_DTO_COMPLETION_EVENT, &event);
		expect_conn(l.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
		OK(dat_ep_free(ep));
		pair_sync(p);
		other_works(&l, true, i);
		pair_sync(p);
	}
	link_close(p, &l);
}

static const struct pair_case cases[] = {
	PAIR_CASE("one EP connects 50 times", reconnect, reconnect, .seconds = 60),
	PAIR_CASE("graceful disconnect delivers all messages", graceful_server, graceful_client,
		  .not_sockets = "it loses one of many messages in flight, one time in hundreds"),
	PAIR_CASE("abrupt disconnect flushes operations", abrupt_server, abrupt_client,
		  .not_sockets = "it loses a shutdown right after the accept"),
	PAIR_CASE("disconnect in every state", states_server, states_client,
		  .not_sockets = "it loses a shutdown right after the accept"),
	PAIR_CASE("abrupt disconnect after a graceful one", abrupt_server,
		  abrupt_after_graceful_client,
		  .not_sockets = "it loses a shutdown right after the accept"),
	PAIR_CASE("connected EP is freed", end_server, end_client, .arg = &free_ep),
	PAIR_CASE("IA is closed while connected", end_server, end_client, .arg = &close_ia),
	PAIR_CASE("process ends while connected", end_server, end_client, .arg = &exit_at_once),
	PAIR_CASE("disconnect while the peer sends", busy_server, busy_client, .seconds = 60),
	PAIR_CASE("disconnect within a read", cut_read_server, cut_read_client, .seconds = 60),
	PAIR_CASE("acceptor is freed immediately", freed_acceptor_server, freed_acceptor_client),
	PAIR_CASE("requester is freed before the answer", freed_requester_server,
		  freed_requester_client),
};

PAIR_MAIN(cases)
