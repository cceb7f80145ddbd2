/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer notification objects: their triggers, and which waiter or agent is notified. */

#include "pair.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
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

static void cno_quiet(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_cno_wait(cno, 1000, &evd), DAT_QUEUE_EMPTY);
	CHECK(!evd, "an EVD without a trigger");
}

static void cno_triggers(struct pair *p)
{
	DAT_CNO_HANDLE cno, other;
	DAT_EVD_HANDLE a, b, hint;
	DAT_EVD_PARAM param;
	DAT_EVENT event;
	struct node n;

	(void)p;
	node_open(&n);
	cno = cno_new(&n);
	other = cno_new(&n);
	OK(dat_evd_create(n.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &a));
	OK(dat_evd_create(n.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &b));
	OK(dat_evd_query(a, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.cno_handle == cno, "wrong CNO");
	FAILS(dat_cno_wait(cno, 0, &hint), DAT_QUEUE_EMPTY);
	cno_quiet(cno);
	OK(post_se(b, 1));
	cno_expect(cno, b);
	cno_quiet(cno);		/* once per trigger, though the event is still queued */
	expect_software(b, 1);
	OK(dat_evd_disable(a));
	OK(dat_evd_disable(a));
	OK(post_se(a, 2));
	cno_quiet(cno);
	OK(dat_evd_enable(a));	/* triggers for the event that was queued while disabled */
	cno_expect(cno, a);
	OK(dat_evd_dequeue(a, &event));
	FAILS(dat_cno_free(cno), DAT_INVALID_STATE);
	OK(dat_evd_modify_cno(a, other));
	OK(post_se(a, 3));
	cno_quiet(cno);
	cno_expect(other, a);
	OK(dat_evd_modify_cno(a, DAT_HANDLE_NULL));
	OK(post_se(a, 4));
	cno_quiet(other);
	OK(dat_cno_free(other));
	FAILS(dat_cno_free(other), DAT_INVALID_HANDLE);
	OK(dat_evd_free(a));
	OK(dat_evd_free(b));
	OK(dat_cno_free(cno));
	node_close(&n);
}

/* An agent is called once for each time it is armed. */
struct agent_calls {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned count;
	DAT_EVD_HANDLE evd;
};

static struct agent_calls calls = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL };

static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	struct agent_calls *c = data;

	pthread_mutex_lock(&c->lock);
	c->count++;
	c->evd = evd;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static void agent_expect(unsigned count, DAT_EVD_HANDLE evd)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += pair_scaled(PAIR_LIMIT) / 1000;
	pthread_mutex_lock(&calls.lock);
	while (calls.count < count && !err)
		err = pthread_cond_timedwait(&calls.cond, &calls.lock, &until);
	SAME(calls.count, count);
	CHECK(calls.evd == evd, "wrong EVD");
	pthread_mutex_unlock(&calls.lock);
}

static void cno_agent(struct pair *p)
{
	DAT_OS_WAIT_PROXY_AGENT a = { &calls, agent }, bad = { &calls, NULL };
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	struct node n;

	(void)p;
	node_open(&n);
	FAILS(dat_cno_create(n.ia, bad, &cno), DAT_INVALID_PARAMETER);
	OK(dat_cno_create(n.ia, a, &cno));
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
#if DAT_VERSION_MAJOR >= 2
	SAME(param.proxy_type, DAT_PROXY_TYPE_AGENT);
	CHECK(param.proxy.agent.proxy_agent_func == agent, "wrong agent");
#else
	CHECK(param.agent.proxy_agent_func == agent, "wrong agent");
#endif
	OK(dat_evd_create(n.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(post_se(evd, 1));
	agent_expect(1, evd);
	OK(post_se(evd, 2));	/* not armed: the trigger stays for a waiter or the next agent */
	expect_software(evd, 1);
	expect_software(evd, 2);
	agent_expect(1, evd);
	OK(dat_cno_modify_agent(cno, a));
	agent_expect(2, evd);
	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	OK(post_se(evd, 3));
	cno_expect(cno, evd);
	agent_expect(2, evd);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
	node_close(&n);
}

struct cno_waiter {
	pthread_t thread;
	DAT_CNO_HANDLE cno;
	DAT_RETURN ret;
	DAT_EVD_HANDLE evd;
};

static _Atomic int waiting;	/* threads that wait or are about to */

static void *cno_waiter_run(void *arg)
{
	struct cno_waiter *w = arg;

	waiting++;
	w->ret = dat_cno_wait(w->cno, DAT_TIMEOUT_INFINITE, &w->evd);
	waiting--;
	return NULL;
}

static void cno_waiter_start(struct cno_waiter *w, DAT_CNO_HANDLE cno)
{
	*w = (struct cno_waiter){ .cno = cno };
	SAME(pthread_create(&w->thread, NULL, cno_waiter_run, w), 0);
}

static DAT_RETURN cno_waiter_end(struct cno_waiter *w)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += pair_scaled(PAIR_LIMIT) / 1000;
	SAME(pthread_timedjoin_np(w->thread, NULL, &until), 0);
	return w->ret;
}

static void cno_blocked(struct pair *p)
{
	struct cno_waiter w, closed;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	struct node n;

	(void)p;
	node_open(&n);
	cno = cno_new(&n);
	OK(dat_evd_create(n.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	cno_waiter_start(&w, cno);
	OK(post_se(evd, 1));
	OK(cno_waiter_end(&w));
	CHECK(w.evd == evd, "wrong EVD");
	/* closing the IA ends the wait, whether it had begun or not */
	cno_waiter_start(&closed, cno);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	cno_waiter_end(&closed);
	CHECK(closed.ret != DAT_SUCCESS || !closed.evd,
	      "the wait returned an EVD that did not trigger");
}

/* Connection and DTO events trigger CNOs, too. */
static void cno_pair_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;

	node_open(&n);
	mem_get(&n, &m, 64);
	cno = cno_new(&n);
	OK(dat_evd_modify_cno(n.cr, cno));
	OK(dat_evd_modify_cno(n.conn, cno));
	OK(dat_evd_modify_cno(n.recv, cno));
	ep = node_ep(&n, NULL);
	post_recv(ep, &m, 0, 64, 1);
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
	mem_put(&m);
	node_close(&n);
}

static void cno_pair_client(struct pair *p)
{
	struct listener listener;
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;

	node_open(&n);
	mem_get(&n, &m, 64);
	ep = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	ep_connect(ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_sync(p);
	post_send(ep, &m, 0, 64, 1);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

/* Each of many waiters gets one of as many triggers; when the EVDs are freed all waiters return. */
#define WAITERS 8

static void cno_crowd(struct pair *p)
{
	struct cno_waiter w[WAITERS];
	DAT_EVD_HANDLE evd[2];
	DAT_CNO_HANDLE cno;
	struct node n;
	int i;

	(void)p;
	node_open(&n);
	cno = cno_new(&n);
	for (i = 0; i < 2; i++)
		OK(dat_evd_create(n.ia, WAITERS, cno, DAT_EVD_SOFTWARE_FLAG, &evd[i]));
	for (i = 0; i < WAITERS; i++)
		cno_waiter_start(&w[i], cno);
	while (waiting < WAITERS)
		sched_yield();
	for (i = 0; i < WAITERS; i++) {
		OK(post_se(evd[i & 1], i));
		while (waiting > WAITERS - 1 - i)
			sched_yield();
	}
	for (i = 0; i < WAITERS; i++) {
		OK(cno_waiter_end(&w[i]));
		CHECK(w[i].evd == evd[0] || w[i].evd == evd[1], "wrong EVD");
	}
	cno_quiet(cno);
	OK(dat_evd_free(evd[0]));
	FAILS(dat_cno_free(cno), DAT_INVALID_STATE);
	OK(dat_evd_free(evd[1]));
	for (i = 0; i < WAITERS; i++)
		cno_waiter_start(&w[i], cno);
	while (waiting < WAITERS)
		sched_yield();
	/* a waiter may begin to wait only after an EVD was freed */
	while (waiting) {
		OK(dat_evd_create(n.ia, 1, cno, DAT_EVD_SOFTWARE_FLAG, &evd[0]));
		OK(dat_evd_free(evd[0]));
	}
	for (i = 0; i < WAITERS; i++) {
		OK(cno_waiter_end(&w[i]));
		CHECK(!w[i].evd, "a freed EVD was returned");
	}
	OK(dat_cno_free(cno));
	node_close(&n);
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
	struct mem m;
	DAT_FD fd;
	int epoll;

	node_open(&n);
	mem_get(&n, &m, 64);
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
	post_recv(ep, &m, 0, 64, 1);
	pair_link(p, &n, ep);
	OK(dat_evd_modify_cno(n.recv, cno));
	OK(dat_evd_modify_cno(n.conn, cno));
	SAME(epoll_wait(epoll, &ready, 1, 0), 0);
	pair_sync(p);
	post_send(ep, &m, 0, 64, 2);
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
	mem_put(&m);
	node_close(&n);
}
#endif

static const struct pair_case cases[] = {
	PAIR_CASE("triggers", NULL, cno_triggers),
	PAIR_CASE("agent", NULL, cno_agent),
	PAIR_CASE("blocked waiters", NULL, cno_blocked),
	PAIR_CASE("many waiters", NULL, cno_crowd),
	PAIR_CASE("all events of a connection", cno_pair_server, cno_pair_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("file descriptor", cno_fd, cno_fd),
#endif
};

PAIR_MAIN(cases)
