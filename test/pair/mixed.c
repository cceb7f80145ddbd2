/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion flags of EPs that DAT forbids and programs written for OFED's provider use: one EVD
 * for unsignalled requests and for receives that notify, EVDs of another instance of the IA, and a
 * default of SUPPRESS.
 */

#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH 300
#define SIZE 4096u
#define ROUNDS 50

/* Opens the IA in a process that has read no settings before. */
static void open_strict(struct node *n, const char *strict)
{
	if (strict)
		setenv("DAT_OFI_STRICT", strict, 1);
	node_open(n);
}

/* The attributes of an MPI library: every member is set, some to 0. */
static DAT_EP_ATTR attr_of(const struct node *n, DAT_COMPLETION_FLAGS requests)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = n->attr.max_message_size,
		.max_rdma_size = n->attr.max_rdma_size,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = requests,
		.max_recv_dtos = DEPTH,
		.max_request_dtos = DEPTH,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
	};

	return attr;
}

/* One EVD for both streams */

/* Creates and connects an EP with @evd for both streams. */
static DAT_EP_HANDLE link_mixed(struct pair *p, struct node *n, DAT_EVD_HANDLE evd)
{
	DAT_EP_ATTR attr = attr_of(n, DAT_COMPLETION_UNSIGNALLED_FLAG);
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(n->ia, n->pz, evd, evd, n->conn, &attr, &ep));
	pair_link(p, n, ep);
	return ep;
}

static void send_flags(DAT_EP_HANDLE ep, const struct mem *m, uint64_t cookie, unsigned flags)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, 64);

	OK(dat_ep_post_send(ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = cookie },
			    (DAT_COMPLETION_FLAGS)flags));
}

/* Polls the EVD for the completions of a send and a receive, which come in any order. */
static void poll_both(DAT_EVD_HANDLE evd, uint64_t send, uint64_t recv)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	uint64_t left = send ^ recv, cookie;
	DAT_EVENT event;
	int found = 0;

	while (found < 2) {
		CHECK(pair_now() < deadline, "%d events", found);
		if (dat_evd_dequeue(evd, &event))
			continue;
		SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		CHECK(cookie == send || cookie == recv, "cookie %llu", (unsigned long long)cookie);
		left ^= cookie;
		found++;
	}
	SAME(left, 0);
}

/* The library polls: its requests have the default flag and notify in spite of the EP's flag. */
static void polling(struct pair *p)
{
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	struct node n;
	uint64_t i;

	node_open(&n);
	mem_get(&n, &n.m, SIZE);
	evd = node_evd(&n, 2 * DEPTH, DAT_EVD_DTO_FLAG);
	ep = link_mixed(p, &n, evd);
	for (i = 0; i < ROUNDS; i++) {
		post_recv(ep, &n.m, 64, 64, 2 * i);
		pair_sync(p);
		send_flags(ep, &n.m, 2 * i + 1,
			   i % 2 ? DAT_COMPLETION_UNSIGNALLED_FLAG : DAT_COMPLETION_DEFAULT_FLAG);
		poll_both(evd, 2 * i + 1, 2 * i);
	}
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(evd));
	node_end(&n);
}

struct waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
	bool done;
};

static void *wait_one(void *arg)
{
	struct waiter *w = arg;

	w->ret = dat_evd_wait(w->evd, pair_scaled(PAIR_LIMIT) * 1000, 1, &w->event, &w->more);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Returns when the thread waits: then no other thread may dequeue. */
static void waiter_start(struct waiter *w, DAT_EVD_HANDLE evd)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;

	*w = (struct waiter){ .evd = evd };
	SAME(pthread_create(&w->thread, NULL, wait_one, w), 0);
	while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE)
		CHECK(pair_now() < deadline, "the thread never waits");
}

/*
 * An unsignalled request leaves the waiter asleep, and is the first event when a receive wakes it.
 */
static void waiting_client(struct pair *p)
{
	struct waiter w;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, SIZE);
	evd = node_evd(&n, 2 * DEPTH, DAT_EVD_DTO_FLAG);
	ep = link_mixed(p, &n, evd);
	post_recv(ep, &n.m, 64, 64, 1);
	pair_sync(p);
	waiter_start(&w, evd);
	send_flags(ep, &n.m, 2, DAT_COMPLETION_UNSIGNALLED_FLAG);
	pair_sync(p);		/* the peer has received it */
	CHECK(!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), "woken by an unsignalled request");
	pair_sync(p);		/* the peer sends */
	SAME(pthread_join(w.thread, NULL), 0);
	OK(w.ret);
	SAME(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
	SAME(w.more, 1);
	expect_dto(evd, 1, DAT_DTO_SUCCESS, 64);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(evd));
	node_end(&n);
}

static void waiting_server(struct pair *p)
{
	struct node n;

	node_begin(&n, SIZE);
	pair_link(p, &n, n.ep);
	post_recv(n.ep, &n.m, 64, 64, 1);
	pair_sync(p);
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, 64);
	pair_sync(p);
	pair_sync(p);
	post_send(n.ep, &n.m, 0, 64, 2);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, 64);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* A CNO is triggered by the receive alone. */
static void cno_client(struct pair *p)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, ready;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	mem_get(&n, &n.m, SIZE);
	OK(dat_cno_create(n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_evd_create(n.ia, 2 * DEPTH, cno, DAT_EVD_DTO_FLAG, &evd));
	ep = link_mixed(p, &n, evd);
	post_recv(ep, &n.m, 64, 64, 1);
	pair_sync(p);
	send_flags(ep, &n.m, 2, DAT_COMPLETION_UNSIGNALLED_FLAG);
	pair_sync(p);		/* the peer has received it */
	FAILS(dat_cno_wait(cno, 0, &ready), DAT_QUEUE_EMPTY);
	pair_sync(p);		/* the peer sends */
	OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &ready));
	CHECK(ready == evd, "another EVD");
	expect_dto(evd, 2, DAT_DTO_SUCCESS, 64);
	expect_dto(evd, 1, DAT_DTO_SUCCESS, 64);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
	node_end(&n);
}

/* An EVD of a strict IA must not mix UNSIGNALLED completions with others. */
static void unmixed(struct pair *p)
{
	DAT_EP_HANDLE ep, other;
	DAT_EVD_HANDLE all;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EP_ATTR attr;
	struct node n;

	open_strict(&n, "1");
	all = node_evd(&n, 8, DAT_EVD_DEFAULT_FLAG);
	node_ep_attr(&n, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	FAILS(dat_ep_create(n.ia, n.pz, n.recv, n.recv, n.conn, &attr, &ep), DAT_INVALID_PARAMETER);
	OK(dat_ep_create(n.ia, n.pz, n.recv, n.req, n.conn, &attr, &ep));
	FAILS(dat_ep_create(n.ia, n.pz, n.recv, n.req, n.conn, NULL, &other),
	      DAT_INVALID_PARAMETER);
	OK(dat_ep_create(n.ia, n.pz, n.recv, n.req, n.conn, &attr, &other));
	OK(dat_ep_free(other));
	OK(dat_ep_free(ep));
	OK(dat_ep_create(n.ia, n.pz, n.recv, n.recv, n.conn, NULL, &ep));
	OK(dat_ep_free(ep));
	FAILS(dat_ep_create(n.ia, n.pz, all, n.req, all, &attr, &ep), DAT_INVALID_PARAMETER);
	OK(dat_psp_create_any(n.ia, &qual, all, DAT_PSP_CONSUMER_FLAG, &psp));
	FAILS(dat_ep_create(n.ia, n.pz, all, n.req, n.conn, &attr, &ep), DAT_INVALID_PARAMETER);
	OK(dat_psp_free(psp));
	OK(dat_evd_free(all));
	node_close(&n);
}

/* A strict IA refuses, and the log names the setting. */
static void refused(struct pair *p)
{
	int log = memfd_create("log", MFD_CLOEXEC);
	DAT_EP_ATTR attr;
	char text[4096];
	DAT_EP_HANDLE ep;
	struct node n;
	ssize_t size;

	CHECK(log >= 0 && dup2(log, STDERR_FILENO) >= 0, "%s", strerror(errno));
	setenv("DAT_OFI_LOG", "1", 1);
	open_strict(&n, "1");
	attr = attr_of(&n, DAT_COMPLETION_UNSIGNALLED_FLAG);
	FAILS(dat_ep_create(n.ia, n.pz, n.req, n.req, n.conn, &attr, &ep), DAT_INVALID_PARAMETER);
	size = pread(log, text, sizeof(text) - 1, 0);
	CHECK(size > 0, "no log");
	text[size] = 0;
	CHECK(strstr(text, "DAT_OFI_STRICT=0 accepts"), "another reason: %s", text);
	node_close(&n);
}

/* EVDs of another instance of the IA */

/*
 * All streams of the EP go to EVDs of another instance. A graceful close of the instance fails. An
 * abrupt close ends the streams, but not the connection.
 */
static void borrowing(struct pair *p)
{
	struct node n, other;
	DAT_EVD_HANDLE own;
	DAT_EP_HANDLE ep;
	struct mem m;
	uint64_t i;

	node_open(&n);
	node_open(&other);
	mem_get(&n, &m, SIZE);
	own = n.conn;
	OK(dat_ep_create(n.ia, n.pz, other.recv, other.req, other.conn, NULL, &ep));
	n.conn = other.conn;
	pair_link(p, &n, ep);
	n.conn = own;
	for (i = 0; i < ROUNDS; i++) {
		post_recv(ep, &m, 64, 64, i);
		pair_sync(p);
		post_send(ep, &m, 0, 64, i);
		expect_dto(other.recv, i, DAT_DTO_SUCCESS, 64);
		expect_dto(other.req, i, DAT_DTO_SUCCESS, 64);
	}
	FAILS(dat_evd_free(other.recv), DAT_INVALID_STATE);
	FAILS(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	post_recv(ep, &m, 64, 64, i);
	pair_sync(p);
	if (p->server) {
		OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
		fill(m.base, 64, 7);
		memset(m.base + 64, 0, 64);
		pair_sync(p);
		post_send(ep, &m, 0, 64, i);
		while (((volatile unsigned char *)m.base)[127] != m.base[63])
			;
		pair_sync(p);
	} else {
		pair_sync(p);
		expect_dto(other.recv, i, DAT_DTO_SUCCESS, 64);
		fill(m.base, 64, 7);
		verify(m.base + 64, 64, 7);
		post_send(ep, &m, 0, 64, i);
		expect_dto(other.req, i, DAT_DTO_SUCCESS, 64);
		pair_sync(p);
		OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

/* The instance of the EP closes while a thread waits at the other's EVD, which its CQ feeds. */
static void lending(struct pair *p)
{
	struct node n, other;
	struct waiter w;
	DAT_EP_HANDLE ep;
	unsigned i;

	node_open(&n);
	for (i = 0; i < ROUNDS; i++) {
		node_open(&other);
		OK(dat_ep_create(other.ia, other.pz, n.recv, n.recv, n.conn, NULL, &ep));
		waiter_start(&w, n.recv);
		OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
		OK(dat_evd_set_unwaitable(n.recv));
		SAME(pthread_join(w.thread, NULL), 0);
		OK(dat_evd_clear_unwaitable(n.recv));
	}
	node_close(&n);
}

/* SUPPRESS as the default of requests */

#define CNO_ROUNDS 20

/*
 * A benchmark: each request says itself whether it is suppressed, and the receiver waits for its
 * CNO. A round ends with a message of length 0, and both ends poll for its completion.
 */
static void suppressing(struct pair *p)
{
	DAT_EVD_HANDLE recv, ready;
	DAT_CNO_HANDLE cno;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;
	unsigned i;

	open_strict(&n, pair_arg());
	mem_get(&n, &m, SIZE);
	OK(dat_cno_create(n.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_evd_create(n.ia, NODE_QLEN, cno, DAT_EVD_DTO_FLAG, &recv));
	attr = attr_of(&n, DAT_COMPLETION_SUPPRESS_FLAG);
	OK(dat_ep_create(n.ia, n.pz, recv, n.req, n.conn, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_attr.request_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
	pair_link(p, &n, ep);
	for (i = 0; i < CNO_ROUNDS; i++) {
		post_recv(ep, &m, 64, 64, 1);
		OK(dat_ep_post_recv(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 2 },
				    DAT_COMPLETION_DEFAULT_FLAG));
		pair_sync(p);
		send_flags(ep, &m, 3, DAT_COMPLETION_SUPPRESS_FLAG);
		OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &ready));
		CHECK(ready == recv, "another EVD");
		expect_dto(recv, 1, DAT_DTO_SUCCESS, 64);
		pair_sync(p);
		OK(dat_ep_post_send(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 4 },
				    DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(n.req, 4, DAT_DTO_SUCCESS, 0);
		expect_dto(recv, 2, DAT_DTO_SUCCESS, 0);
	}
	expect_quiet(n.req);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(recv));
	OK(dat_cno_free(cno));
	mem_put(&m);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("polling one EVD for unsignalled requests and receives", polling, polling),
	PAIR_CASE("waiting on one EVD for unsignalled requests and receives", waiting_server,
		  waiting_client),
	PAIR_CASE("a CNO of one EVD for unsignalled requests and receives", waiting_server,
		  cno_client),
	PAIR_CASE("a strict IA refuses one EVD for both", NULL, refused),
	PAIR_CASE("streams that cannot share an EVD of a strict IA", NULL, unmixed),
	PAIR_CASE("EVDs of another instance of the IA", borrowing, borrowing),
	PAIR_CASE("an instance that delivers to another closes", NULL, lending),
	PAIR_CASE("a default of SUPPRESS", suppressing, suppressing),
	PAIR_CASE("a default of SUPPRESS, strict", suppressing, suppressing, .arg = "1"),
};

int main(int argc, char **argv)
{
	unsetenv("DAT_TEST_WARM");	/* the roles set DAT_OFI_STRICT */
	unsetenv("DAT_OFI_STRICT");
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
