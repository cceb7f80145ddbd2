/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event dispatchers: which events arrive, which waiters wake, and when. */

#include "pair.h"

#include <pthread.h>
#include <string.h>

#define KIB 1024u

/* Threads */

/* A thread that waits on an EVD, and how its wait ended. */
struct waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_TIMEOUT timeout;
	DAT_COUNT threshold;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
	int64_t woken;		/* time of the wakeup */
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	w->ret = dat_evd_wait(w->evd, w->timeout, w->threshold, &w->event, &w->more);
	w->woken = pair_now();
	return NULL;
}

/* Returns when the thread is waiting: then no other thread may dequeue. */
static void waiter_start(struct waiter *w, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
			 DAT_COUNT threshold)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;

	*w = (struct waiter){ .evd = evd, .timeout = timeout, .threshold = threshold };
	SAME(pthread_create(&w->thread, NULL, waiter_run, w), 0);
	while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE)
		CHECK(pair_now() < deadline, "the thread never waits");
}

static DAT_RETURN waiter_end(struct waiter *w)
{
	struct timespec until;
	int64_t limit = pair_scaled(PAIR_LIMIT);

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += limit / 1000;
	SAME(pthread_timedjoin_np(w->thread, NULL, &until), 0);
	return w->ret;
}

/* Progress */

#define N_POLL 100

/* A program that polls one EVD and waits for none gets all its events. */
static DAT_EVENT poll_for(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;
	DAT_RETURN ret;

	while ((ret = dat_evd_dequeue(evd, &event)) != DAT_SUCCESS) {
		FAILS(ret, DAT_QUEUE_EMPTY);
		CHECK(pair_now() < deadline, "no %s", event_name(number));
	}
	CHECK(event.event_number == number, "%s instead of %s", event_name(event.event_number),
	      event_name(number));
	return event;
}

/* Polls the receive EVD alone, where only the last message arrives. */
static void poller_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	mem_get(&n, &n.m, 4 * KIB);
	fill(n.m.base, n.m.size, 1);
	n.ep = node_ep(&n, NULL);
	psp = node_listen(&n, &qual);
	post_recv(n.ep, &n.m, 0, 64, 1);
	pair_send_listener(p, &n, qual);
	event = poll_for(n.cr, DAT_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, n.ep, 0, NULL));
	poll_for(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	pair_grant(p, &n.m);
	/* own requests complete while the program polls another EVD; the peer's RDMA is served */
	for (i = 0; i < 4; i++)
		post_send(n.ep, &n.m, 0, 64, i);
	poll_for(n.recv, DAT_DTO_COMPLETION_EVENT);
	for (i = 0; i < 4; i++)
		OK(dat_evd_dequeue(n.req, &event));
	pair_sync(p);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_ABRUPT_FLAG));
	poll_for(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void poller_client(struct pair *p)
{
	struct listener listener;
	struct grant g;
	struct node n;
	unsigned i;

	node_begin(&n, 4 * KIB);
	pair_recv_listener(p, &listener);
	for (i = 0; i < 4; i++)
		post_recv(n.ep, &n.m, 0, 64, i);
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_granted(p, &g);
	for (i = 0; i < N_POLL; i++) {
		post_read(n.ep, &n.m, 0, KIB, i, &g, KIB);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, KIB);
		post_write(n.ep, &n.m, 0, KIB, i, &g, KIB);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, KIB);
	}
	for (i = 0; i < 4; i++)
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, 64);
	post_send(n.ep, &n.m, 0, 64, 9);
	expect_dto(n.req, 9, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	node_end(&n);
}

/* Waiting */

static int64_t timed_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout)
{
	int64_t start = pair_now();
	DAT_COUNT more = -1;
	DAT_EVENT event;

	FAILS(dat_evd_wait(evd, timeout, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	SAME(more, 0);
	return pair_now() - start;
}

#define N_SHORT 20
#define SLACK_US 500

/*
 * Time-outs are in microseconds. The best wait counts, and on a busy machine waits repeat until one
 * is short: a scheduler that runs other programs delays each of several in a row.
 */
static void timeouts(struct pair *p)
{
	static const DAT_TIMEOUT timeout[] = { 0, 300, 10000 };
	DAT_EVD_HANDLE evd;
	struct node n;
	size_t i;
	int k;

	node_open(&n);
	evd = node_evd(&n, 4, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < 3; i++) {
		const int64_t until = pair_deadline(PAIR_LIMIT);
		int64_t best = INT64_MAX;

		for (k = 0; k < N_SHORT || (best > timeout[i] + SLACK_US && pair_now() < until);
		     k++) {
			int64_t took = timed_wait(evd, timeout[i]);

			CHECK(took >= timeout[i], "timed out after %lld of %u us", (long long)took,
			      timeout[i]);
			if (took < best)
				best = took;
		}
		CHECK(best <= timeout[i] + pair_scaled(1) * SLACK_US,
		      "the best time-out took %lld us, not %u", (long long)best, timeout[i]);
	}
	OK(dat_evd_free(evd));
	node_close(&n);
}

/* A blocked waiter gets the peer's messages, and the end of the connection. */
static void woken_server(struct pair *p)
{
	struct waiter w;
	struct node n;

	node_begin(&n, 64);
	post_recv(n.ep, &n.m, 0, 64, 4);
	pair_link(p, &n, n.ep);
	waiter_start(&w, n.recv, DAT_TIMEOUT_INFINITE, 1);
	pair_sync(p);
	OK(waiter_end(&w));
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 4);
	waiter_start(&w, n.conn, DAT_TIMEOUT_INFINITE, 1);
	pair_sync(p);
	OK(waiter_end(&w));
	SAME(w.event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	node_end(&n);
}

static void woken_client(struct pair *p)
{
	struct node n;

	node_begin(&n, 64);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	post_send(n.ep, &n.m, 0, 64, 1);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	node_end(&n);
}

/* A full EVD causes one overflow event on the asynchronous EVD. */
#define SMALL 4
#define N_LOST 20

static DAT_COUNT qlen_of(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param.evd_qlen;
}

static void overflow_server(struct pair *p)
{
	DAT_EVD_HANDLE small;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct node n;
	DAT_COUNT i, full;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	small = node_evd(&n, SMALL, DAT_EVD_DTO_FLAG);
	full = qlen_of(small);
	OK(dat_ep_create(n.ia, n.pz, small, n.req, n.conn, NULL, &ep));
	for (i = 0; i < full + N_LOST; i++)
		post_recv(ep, &n.m, 0, 64, i);
	pair_link(p, &n, ep);
	pair_send(p, &full, sizeof(full));
	pair_sync(p);	/* the peer has sent them, and completed a write after them */
	expect_event(n.async, DAT_ASYNC_ERROR_EVD_OVERFLOW, &event);
	CHECK(event.event_data.asynch_error_event_data.dat_handle == small, "wrong EVD");
	SAME(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	expect_quiet(n.async);
	for (i = 0; i < full; i++)
		expect_dto(small, i, DAT_DTO_SUCCESS, 64);
	expect_quiet(small);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(small));
	node_end(&n);
}

static void overflow_client(struct pair *p)
{
	struct node n;
	DAT_COUNT i, full;

	node_begin(&n, 64);
	pair_link(p, &n, n.ep);
	pair_recv(p, &full, sizeof(full));
	for (i = 0; i < full + N_LOST; i++) {
		post_send(n.ep, &n.m, 0, 64, i);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, 64);
	}
	pair_sync(p);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* Streams together */

/* One EVD takes the events of all streams; events of one connection come in order. */
static void merged(struct pair *p)
{
	DAT_EVD_HANDLE all;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct node n;
	bool sent = false, received = false;
	int i;

	node_open(&n);
	mem_get(&n, &n.m, 128);
	all = node_evd(&n, 32, (DAT_EVD_FLAGS)(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG));
	OK(dat_ep_create(n.ia, n.pz, all, all, all, NULL, &ep));
	post_recv(ep, &n.m, 0, 64, 1);
	if (p->server) {
		OK(dat_psp_create_any(n.ia, &qual, all, DAT_PSP_CONSUMER_FLAG, &psp));
		pair_send_listener(p, &n, qual);
		expect_event(all, DAT_CONNECTION_REQUEST_EVENT, &event);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
	} else {
		struct listener listener;

		pair_recv_listener(p, &listener);
		ep_connect(ep, &listener);
	}
	/* before any receive, even if the peer sends immediately */
	expect_conn(all, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	post_send(ep, &n.m, 64, 64, 2);
	for (i = 0; i < 2; i++) {
		expect_event(all, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		sent |= event.event_data.dto_completion_event_data.user_cookie.as_64 == 2;
		received |= event.event_data.dto_completion_event_data.user_cookie.as_64 == 1;
	}
	CHECK(sent && received, "an event was delivered twice");
	OK(post_se(all, 5));
	expect_software(all, 5);
	post_recv(ep, &n.m, 0, 64, 3);
	pair_sync(p);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	/* the flushes are queued before the connection's end is reported */
	expect_dto(all, 3, DAT_DTO_ERR_FLUSHED, 0);
	expect_conn(all, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_quiet(all);
	if (p->server)
		OK(dat_psp_free(psp));
	OK(dat_ep_free(ep));
	OK(dat_evd_free(all));
	node_end(&n);
}

#define N_EPS 6

/* EPs of two PZs share their EVDs; each event names its EP. */
static void shared(struct pair *p)
{
	DAT_EP_HANDLE ep[N_EPS];
	unsigned seen[N_EPS] = { 0 };
	struct mem m[2];
	DAT_PZ_HANDLE pz;
	struct node n;
	unsigned i, k;

	node_open(&n);
	OK(dat_pz_create(n.ia, &pz));
	mem_get(&n, &m[0], 64);
	mem_get_with(&n, pz, &m[1], 64, DAT_MEM_PRIV_ALL_FLAG);
	for (i = 0; i < N_EPS; i++) {
		OK(dat_ep_create(n.ia, i & 1 ? pz : n.pz, n.recv, n.recv, n.conn, NULL, &ep[i]));
		post_recv(ep[i], &m[i & 1], 0, 64, i);
		pair_link(p, &n, ep[i]);
	}
	for (i = 0; i < N_EPS; i++)
		post_send(ep[i], &m[i & 1], 0, 64, i);
	for (k = 0; k < 2 * N_EPS; k++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d;
		DAT_EVENT event;

		expect_event(n.recv, DAT_DTO_COMPLETION_EVENT, &event);
		d = &event.event_data.dto_completion_event_data;
		SAME(d->status, DAT_DTO_SUCCESS);
		i = d->user_cookie.as_64;
		CHECK(i < N_EPS && d->ep_handle == ep[i], "cookie %u: wrong EP", i);
		seen[i]++;
	}
	for (i = 0; i < N_EPS; i++) {
		SAME(seen[i], 2);
		FAILS(dat_evd_free(n.recv), DAT_INVALID_STATE);
		pair_unlink(p, &n, ep[i]);
		OK(dat_ep_free(ep[i]));
	}
	mem_put(&m[0]);
	mem_put(&m[1]);
	OK(dat_pz_free(pz));
	node_close(&n);
}

#if DAT_VERSION_MAJOR >= 2
/* In 2.0 a completion names its operation. */
static void operations(struct pair *p)
{
	struct grant g;
	struct node n;
	static const DAT_DTOS wanted[] = { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ };
	DAT_EVENT event;
	int i;

	node_begin(&n, 256);
	post_recv(n.ep, &n.m, 0, 64, 0);
	pair_link(p, &n, n.ep);
	pair_grant(p, &n.m);
	pair_granted(p, &g);
	post_send(n.ep, &n.m, 64, 64, 0);
	post_write(n.ep, &n.m, 64, 64, 0, &g, 128);
	post_read(n.ep, &n.m, 192, 64, 0, &g, 64);
	for (i = 0; i < 3; i++) {
		expect_event(n.req, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(event.event_data.dto_completion_event_data.operation, wanted[i]);
	}
	expect_event(n.recv, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}
#endif

/* UNSIGNALLED completions are queued but wake no waiter; a signalled completion does. */
static void unsignalled(struct pair *p)
{
	DAT_EP_ATTR attr;
	DAT_LMR_TRIPLET iov;
	struct waiter w;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, 128);
	node_ep_attr(&n, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	n.ep = node_ep(&n, &attr);
	post_recv(n.ep, &n.m, 0, 64, 1);
	post_recv(n.ep, &n.m, 0, 64, 2);
	pair_link(p, &n, n.ep);
	iov = mem_segment(&n.m, 64, 64);
	waiter_start(&w, n.req, DAT_TIMEOUT_INFINITE, 1);
	OK(dat_ep_post_send(n.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 1 },
			    DAT_COMPLETION_UNSIGNALLED_FLAG));
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, 64);	/* the peer's message has arrived, too */
	pair_sync(p);
	OK(dat_ep_post_send(n.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 2 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	OK(waiter_end(&w));
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	SAME(w.more, 1);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, 64);
	expect_dto(n.recv, 2, DAT_DTO_SUCCESS, 64);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* The sender chooses which messages wake a receiver that asked for solicited wakeups. */
#define SOLICITED DAT_COMPLETION_SOLICITED_WAIT_FLAG

static void need_solicited(const struct node *n)
{
	if (!(n->prov.completion_flags_supported & SOLICITED))
		pair_skip("this fabric has no solicited waits");
}

static void solicited_server(struct pair *p)
{
	DAT_EP_ATTR attr;
	DAT_COUNT more;
	DAT_EVENT event;
	struct waiter w;
	struct node n;
	unsigned i;

	node_open(&n);
	need_solicited(&n);
	mem_get(&n, &n.m, 64);
	node_ep_attr(&n, &attr);
	attr.recv_completion_flags = SOLICITED;
	n.ep = node_ep(&n, &attr);
	for (i = 0; i < 5; i++)
		post_recv(n.ep, &n.m, 0, 64, i);
	pair_link(p, &n, n.ep);
	FAILS(dat_evd_wait(n.recv, 0, 2, &event, &more),
	      node_is_strict(&n) ? DAT_INVALID_STATE : DAT_TIMEOUT_EXPIRED);
	waiter_start(&w, n.recv, DAT_TIMEOUT_INFINITE, 1);
	pair_sync(p);
	pair_sync(p);	/* two messages have arrived, and woke no waiter */
	FAILS(dat_evd_dequeue(n.recv, &event), DAT_INVALID_STATE);
	pair_sync(p);	/* the next message wakes the waiter */
	OK(waiter_end(&w));
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
	SAME(w.more, 2);
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, 64);
	expect_dto(n.recv, 2, DAT_DTO_SUCCESS, 0);
	/* a failure always wakes the waiter */
	waiter_start(&w, n.recv, DAT_TIMEOUT_INFINITE, 1);
	pair_sync(p);
	OK(waiter_end(&w));
	SAME(w.event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	expect_dto(n.recv, 4, DAT_DTO_ERR_FLUSHED, 0);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	node_end(&n);
}

static void solicited_client(struct pair *p)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET iov;
	struct node n;
	int i;

	node_open(&n);
	need_solicited(&n);
	mem_get(&n, &n.m, 64);
	n.ep = node_ep(&n, NULL);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	for (i = 0; i < 2; i++) {
		post_send(n.ep, &n.m, 0, 64, 1);
		expect_dto(n.req, 1, DAT_DTO_SUCCESS, 64);
	}
	pair_sync(p);
	pair_sync(p);
	OK(dat_ep_post_send(n.ep, 0, NULL, cookie, SOLICITED));
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, 0);
	iov = mem_segment(&n.m, 0, 64);
	pair_sync(p);
	OK(dat_ep_disconnect(n.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, n.ep);
	OK(dat_ep_post_send(n.ep, 1, &iov, cookie,
			    (DAT_COMPLETION_FLAGS)(SOLICITED | DAT_COMPLETION_SUPPRESS_FLAG)));
	expect_dto(n.req, 1, DAT_DTO_ERR_FLUSHED, 0);
	node_end(&n);
}

/* A wait with a threshold sleeps through the completions before the last. */
#define THRESHOLD 16

static void threshold_server(struct pair *p)
{
	DAT_COUNT more;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_begin(&n, 64);
	for (i = 0; i < THRESHOLD; i++)
		post_recv(n.ep, &n.m, 0, 64, i);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	OK(dat_evd_wait(n.recv, pair_scaled(PAIR_LIMIT) * 1000, THRESHOLD, &event, &more));
	SAME(more, THRESHOLD - 1);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
	for (i = 1; i < THRESHOLD; i++)
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, 64);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void threshold_client(struct pair *p)
{
	struct node n;
	unsigned i;

	node_begin(&n, 64);
	pair_link(p, &n, n.ep);
	pair_sync(p);
	for (i = 0; i < THRESHOLD; i++) {
		post_send(n.ep, &n.m, 0, 64, i);
		expect_dto(n.req, i, DAT_DTO_SUCCESS, 64);
	}
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("a polling program sends and receives all messages", poller_server,
		  poller_client),
	PAIR_CASE("time-outs in microseconds", NULL, timeouts),
	PAIR_CASE("threshold of completions", threshold_server, threshold_client),
	PAIR_CASE("a blocked waiter is woken by the peer", woken_server, woken_client),
	PAIR_CASE("an overflow is reported once", overflow_server, overflow_client),
	PAIR_CASE("all streams in one EVD", merged, merged),
	PAIR_CASE("one EVD for EPs of two PZs", shared, shared),
	PAIR_CASE("unsignalled completions wake no waiter", unsignalled, unsignalled),
	PAIR_CASE("solicited messages wake their receiver", solicited_server, solicited_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("completions report the operation", operations, operations),
#endif
};

PAIR_MAIN(cases)
