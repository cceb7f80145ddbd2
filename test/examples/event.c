/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The examples for EVDs and CNOs. */

#include "examples.h"

#include "pages/dat_cno_create.h"
#include "pages/dat_cno_modify_agent.h"
#include "pages/dat_cno_query.h"
#include "pages/dat_cno_wait.h"
#include "pages/dat_evd_clear_unwaitable.h"
#include "pages/dat_evd_create.h"
#include "pages/dat_evd_dequeue.h"
#include "pages/dat_evd_disable.h"
#include "pages/dat_evd_modify_cno.h"
#include "pages/dat_evd_post_se.h"
#include "pages/dat_evd_resize.h"
#include "pages/dat_evd_set_unwaitable.h"
#include "pages/dat_evd_wait.h"
#if DAT_VERSION_MAJOR >= 2
#include "pages/dat_cno_fd_create.h"
#endif

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

CHAPTER("evd");

static DAT_EVD_HANDLE evd_of(struct node *n, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(n->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	return evd;
}

/*
 * For examples that call a function with each event: the sum of the events' pointers, and a
 * semaphore posted for each event.
 */
static struct {
	sem_t number;
	uintptr_t sum;		/* valid when sem_wait() has returned */
} handled;

static void handled_reset(void)
{
	sem_init(&handled.number, 0, 0);
	handled.sum = 0;
}

static void handle_one(const DAT_EVENT *event)
{
	handled.sum += (uintptr_t)event->event_data.software_event_data.pointer;
	sem_post(&handled.number);
}

static void expect_handled(unsigned number, uintptr_t sum)
{
	while (number--)
		SAME(sem_wait(&handled.number), 0);
	SAME(handled.sum, sum);
	CHECK(sem_trywait(&handled.number), "more events than were posted");
}

/* EVDs */

CLAUSE("dat_evd_dequeue")
{
	DAT_EVD_HANDLE evd = evd_of(n, DAT_HANDLE_NULL);
	char wanted[64];
	const char *text;
	DAT_RETURN ret;

	put_se(evd, 1);
	put_se(evd, 2);
	snprintf(wanted, sizeof(wanted), "event %#x\nevent %#x\n", DAT_SOFTWARE_EVENT,
		 DAT_SOFTWARE_EVENT);
	capture(1);
	ret = print_events(evd);
	text = captured();
	OK(ret);
	CHECK(!strcmp(text, wanted), "%s", text);
	SAME(drain(evd), 0);
	FAILS(print_events(n->pz), DAT_INVALID_HANDLE);
}

CLAUSE("dat_evd_wait")
{
	struct attempt c;

	attempt_accept(n, &c);
	OK(wait_connected(c.a.conn));
	OK(wait_connected(c.b.conn));
	OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(wait_connected(c.a.conn), DAT_ABORT);
}

CLAUSE("dat_evd_post_se")
{
	DAT_EVD_HANDLE evd = evd_of(n, DAT_HANDLE_NULL);

	OK(notify(evd, n));
	expect_software(evd, (uintptr_t)n);
	FAILS(notify(n->recv, n), DAT_INVALID_PARAMETER);
}

#define DEPTH 4

static void wait_state(DAT_EP_HANDLE ep, DAT_EP_STATE state)
{
	while (ep_state(ep) != state)	/* poll the state, because the events must stay queued */
		sched_yield();
}

static void wait_requests(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN idle = DAT_FALSE;

	while (!idle) {
		OK(dat_ep_get_status(ep, NULL, NULL, &idle));
		sched_yield();
	}
}

/* Creates the end's EP anew, with @evd for all of its events. */
static void end_merge(struct node *n, struct end *e, DAT_EVD_HANDLE evd, const DAT_EP_ATTR *attr)
{
	OK(dat_ep_free(e->ep));
	OK(dat_ep_create(n->ia, n->pz, evd, evd, evd, attr, &e->ep));
}

/*
 * The largest possible number of events: two connections, and as many operations as the queues
 * hold.
 */
CLAUSE("dat_evd_create")
{
	DAT_EVD_HANDLE all;
	DAT_PSP_HANDLE psp;
	DAT_EP_ATTR attr;
	struct couple c;
	unsigned k;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = DEPTH;
	OK(evd_for(n->ia, 2, &attr, &all));
	couple_make(n, &c, NULL, NULL);
	end_merge(n, &c.a, all, &attr);
	end_merge(n, &c.b, all, &attr);
	for (k = 0; k < DEPTH; k++) {
		post_recv(c.a.ep, &c.m, 64, 8, k);
		post_recv(c.b.ep, &c.m, 128, 8, k);
	}
	OK(dat_cr_accept(end_request(n, &c.a, &psp), c.b.ep, 0, NULL));
	wait_state(c.a.ep, DAT_EP_STATE_CONNECTED);
	wait_state(c.b.ep, DAT_EP_STATE_CONNECTED);
	for (k = 0; k < DEPTH; k++) {
		post_send(c.a.ep, &c.m, 0, 8, k);
		post_send(c.b.ep, &c.m, 0, 8, k);
	}
	wait_requests(c.a.ep);
	wait_requests(c.b.ep);
	OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	wait_state(c.a.ep, DAT_EP_STATE_DISCONNECTED);
	wait_state(c.b.ep, DAT_EP_STATE_DISCONNECTED);
	SAME(drain(all), 2 * (2 * DEPTH + 2));
}

CLAUSE("dat_evd_resize")
{
	DAT_EVD_HANDLE evd = evd_of(n, DAT_HANDLE_NULL);
	DAT_EVD_PARAM before, after;

	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &before));
	OK(extend_evd(evd, 5));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &after));
	SAME(after.evd_qlen, before.evd_qlen + 5);
	FAILS(extend_evd(evd, n->attr.max_evd_qlen), DAT_INVALID_PARAMETER);
	FAILS(extend_evd(n->pz, 5), DAT_INVALID_HANDLE);
}

struct waiting {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE one, two;
	DAT_RETURN ret;
};

static void *handle_events_thread(void *arg)
{
	struct waiting *w = arg;

	w->ret = handle_events(w->one, handle_one);
	return NULL;
}

CLAUSE("dat_evd_set_unwaitable")
{
	struct waiting w = { .one = evd_of(n, DAT_HANDLE_NULL) };
	pthread_t thread;

	handled_reset();
	put_se(w.one, 1);
	thread = start_thread(handle_events_thread, &w);
	put_se(w.one, 2);
	expect_handled(2, 3);
	OK(dat_evd_set_unwaitable(w.one));
	join_thread(thread);
	OK(w.ret);
	FAILS(handle_events(n->pz, handle_one), DAT_INVALID_HANDLE);
}

CLAUSE("dat_evd_clear_unwaitable")
{
	DAT_EVD_HANDLE evd = evd_of(n, DAT_HANDLE_NULL);
	DAT_EVENT event;
	DAT_COUNT more;

	handled_reset();
	OK(dat_evd_set_unwaitable(evd));
	put_se(evd, 1);
	put_se(evd, 2);
	OK(make_waitable(evd, handle_one));
	expect_handled(2, 3);
	FAILS(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	FAILS(make_waitable(n->pz, handle_one), DAT_INVALID_HANDLE);
}

static DAT_EVD_HANDLE burst;

static void handle_and_post_more(const DAT_EVENT *event)
{
	if (!handled.sum)
		put_se(burst, 4);
	handle_one(event);
}

CLAUSE("dat_evd_disable")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE hint;

	handled_reset();
	burst = evd_of(n, cno);
	put_se(burst, 1);
	put_se(burst, 2);
	OK(dat_cno_wait(cno, 0, &hint));
	serve_burst(burst, handle_and_post_more);
	expect_handled(3, 7);
	FAILS(dat_cno_wait(cno, 0, &hint), DAT_QUEUE_EMPTY);
	put_se(burst, 8);
	OK(dat_cno_wait(cno, 0, &hint));
	CHECK(hint == burst, "wrong EVD");
}

/* CNOs */

static void expect_hint(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd)
{
	DAT_EVD_HANDLE hint;

	OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &hint));
	CHECK(hint == evd, "wrong EVD");
}

CLAUSE("dat_cno_create")
{
	DAT_EVD_HANDLE requests, conns;
	DAT_CNO_HANDLE cno;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct end e;

	OK(make_evds(n->ia, &cno, &requests, &conns));
	OK(dat_psp_create_any(n->ia, &qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	end_open(n, &e, NULL);
	OK(dat_ep_free(e.ep));
	OK(dat_ep_create(n->ia, n->pz, e.recv, e.req, conns, NULL, &e.ep));
	end_connect(n, &e, qual);
	expect_hint(cno, requests);
	expect_event(requests, DAT_CONNECTION_REQUEST_EVENT, &event);
	OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	expect_hint(cno, conns);
	expect_conn(conns, DAT_CONNECTION_EVENT_PEER_REJECTED, e.ep);
	FAILS(make_evds(n->pz, &cno, &requests, &conns), DAT_INVALID_HANDLE);
}

CLAUSE("dat_evd_modify_cno")
{
	DAT_CNO_HANDLE first = object(n, DAT_HANDLE_TYPE_CNO), second;
	DAT_EVD_HANDLE evds[2] = { evd_of(n, first), evd_of(n, first) };

	OK(dat_cno_create(n->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &second));
	OK(replace_cno(first, second, evds, 2));
	put_se(evds[1], 1);
	expect_hint(second, evds[1]);
	FAILS(dat_cno_free(first), DAT_INVALID_HANDLE);
	FAILS(replace_cno(second, n->pz, evds, 2), DAT_INVALID_HANDLE);
}

static void *serve_thread(void *arg)
{
	struct waiting *w = arg;

	w->ret = serve(w->cno, w->one, w->two, handle_one);
	return NULL;
}

CLAUSE("dat_cno_wait")
{
	struct waiting w = { .cno = object(n, DAT_HANDLE_TYPE_CNO) };
	pthread_t thread;

	handled_reset();
	w.one = evd_of(n, w.cno);
	w.two = evd_of(n, w.cno);
	thread = start_thread(serve_thread, &w);
	put_se(w.one, 1);
	put_se(w.two, 2);
	put_se(w.one, 4);
	expect_handled(3, 7);
	put_se(w.two, 8);
	expect_handled(1, 15);
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
	join_thread(thread);
	FAILS(w.ret, DAT_INVALID_HANDLE);	/* the CNO is freed */
}

static void serve_evd(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		handle_one(&event);
}

static void post_instance(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	(void)evd;
	sem_post(instance);
}

CLAUSE("dat_cno_query")
{
	DAT_OS_WAIT_PROXY_AGENT agent = { &handled.number, post_instance };
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);

	handled_reset();
	SAME(agent_is_set(cno), DAT_FALSE);
	OK(dat_cno_modify_agent(cno, agent));
	SAME(agent_is_set(cno), DAT_TRUE);
	put_se(evd_of(n, cno), 0);
	expect_handled(1, 0);
	SAME(agent_is_set(cno), DAT_FALSE);
	SAME(agent_is_set(n->pz), DAT_FALSE);
}

CLAUSE("dat_cno_modify_agent")
{
	static struct notice notice = { .serve = serve_evd };
	DAT_OS_WAIT_PROXY_AGENT agent = { &notice, notice_agent };
	DAT_EVD_HANDLE evd;

	handled_reset();
	notice.cno = object(n, DAT_HANDLE_TYPE_CNO);
	OK(dat_cno_modify_agent(notice.cno, agent));
	evd = evd_of(n, notice.cno);
	put_se(evd, 1);
	expect_handled(1, 1);
	put_se(evd, 2);
	expect_handled(1, 3);
	put_se(evd, 4);
	expect_handled(1, 7);
}

#if DAT_VERSION_MAJOR >= 2

static int notify_fd; /* socket for the notification */

static void handle_and_notify(const DAT_EVENT *event)
{
	handle_one(event);
	if (handled.sum == 3)
		SAME(write(notify_fd, "x", 1), 1);
}

CLAUSE("dat_cno_fd_create")
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	int sockets[2];
	DAT_FD fd;

	handled_reset();
	SAME(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	notify_fd = sockets[1];
	OK(dat_cno_fd_create(n->ia, &fd, &cno));
	evd = evd_of(n, cno);
	put_se(evd, 1);
	put_se(evd, 2);
	serve_both(cno, fd, evd, sockets[0], handle_and_notify);
	expect_handled(2, 3);
	close(sockets[0]);
	close(sockets[1]);
}

#endif
