/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer notification objects of connections; test/conform tests all other triggers. */

#include "pair.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

static DAT_CNO_HANDLE cno_new(struct node *n)
{
	DAT_CNO_HANDLE cno;

	OK(dat_cno_create(n->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	return cno;
}

static void cno_expect(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE wanted)
{
	DAT_EVD_HANDLE evd;

	OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &evd));
	CHECK(evd == wanted, "wrong EVD");
}

/* Connection and DTO events trigger CNOs, too. */
static void cno_pair_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	cno = cno_new(&n);
	OK(dat_evd_modify_cno(n.cr, cno));
	OK(dat_evd_modify_cno(n.conn, cno));
	OK(dat_evd_modify_cno(n.recv, cno));
	ep = node_ep(&n, NULL);
	post_recv(ep, &n.m, 0, 64, 1);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	cno_expect(cno, n.cr);
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	cno_expect(cno, n.conn);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_sync(p);
	cno_expect(cno, n.recv);
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	cno_expect(cno, n.conn);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_psp_free(psp));
	OK(dat_ep_free(ep));
	OK(dat_evd_modify_cno(n.cr, DAT_HANDLE_NULL));
	OK(dat_evd_modify_cno(n.conn, DAT_HANDLE_NULL));
	OK(dat_evd_modify_cno(n.recv, DAT_HANDLE_NULL));
	OK(dat_cno_free(cno));
	node_end(&n);
}

static void cno_pair_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 64);
	pair_recv_listener(p, &listener);
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_sync(p);
	post_send(n.ep, &n.m, 0, 64, 1);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	node_end(&n);
}

#if DAT_VERSION_MAJOR >= 2
/* A program that waits for all its CNOs in one epoll set. */
static void fd_expect(int epoll, DAT_CNO_HANDLE cno, DAT_EVD_HANDLE wanted)
{
	struct epoll_event ready;
	DAT_EVD_HANDLE evd;

	SAME(epoll_wait(epoll, &ready, 1, (int)pair_scaled(PAIR_LIMIT)), 1);
	CHECK(ready.data.ptr == cno && ready.events == EPOLLIN, "events %#x", ready.events);
	OK(dat_cno_trigger(cno, &evd));
	CHECK(evd == wanted, "wrong EVD");
	SAME(epoll_wait(epoll, &ready, 1, 0), 0);
	FAILS(dat_cno_trigger(cno, &evd), DAT_QUEUE_EMPTY);
	CHECK(!evd, "an EVD without a trigger");
}

static void cno_fd(struct pair *p)
{
	struct epoll_event ready = { .events = EPOLLIN };
	DAT_CNO_HANDLE cno = NULL;
	DAT_CNO_PARAM param;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context = { .as_64 = 77 };
	DAT_EP_HANDLE ep;
	struct node n;
	DAT_FD fd;
	int epoll;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	OK(dat_cno_fd_create(n.ia, &fd, &cno));
	FAILS(dat_cno_fd_create(n.ia, NULL, &cno), DAT_INVALID_PARAMETER);
	FAILS(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL), DAT_INVALID_PARAMETER);
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	CHECK(param.proxy_type == DAT_PROXY_TYPE_FD && param.proxy.fd == fd, "wrong descriptor");
	OK(dat_get_handle_type(cno, &type));
	SAME(type, DAT_HANDLE_TYPE_CNO);
	OK(dat_set_consumer_context(cno, context));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epoll >= 0, "epoll");
	ready.data.ptr = cno;
	SAME(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ready), 0);
	ep = node_ep(&n, NULL);
	post_recv(ep, &n.m, 0, 64, 1);
	pair_link(p, &n, ep);
	OK(dat_evd_modify_cno(n.recv, cno));
	OK(dat_evd_modify_cno(n.conn, cno));
	SAME(epoll_wait(epoll, &ready, 1, 0), 0);
	pair_sync(p);
	post_send(ep, &n.m, 0, 64, 2);
	fd_expect(epoll, cno, n.recv);
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, 64);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	fd_expect(epoll, cno, n.conn);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_modify_cno(n.recv, DAT_HANDLE_NULL));
	OK(dat_evd_modify_cno(n.conn, DAT_HANDLE_NULL));
	OK(dat_get_consumer_context(cno, &context));
	SAME(context.as_64, 77);
	OK(dat_cno_free(cno));
	CHECK(fcntl(fd, F_GETFD) == -1, "the descriptor is still open");
	FAILS(dat_cno_trigger(cno, &n.recv), DAT_INVALID_HANDLE);
	close(epoll);
	node_end(&n);
}
#endif

static const struct pair_case cases[] = {
	PAIR_CASE("all events of a connection", cno_pair_server, cno_pair_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("file descriptor", cno_fd, cno_fd),
#endif
};

PAIR_MAIN(cases)
