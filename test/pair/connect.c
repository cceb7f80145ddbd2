/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two processes connect, or fail to connect, with every outcome that DAT defines. */

#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DATA 512

/* Private data */

static const DAT_COUNT data_sizes[] = { 0, 1, 48, -1 };	/* -1: the maximum */
#define N_SIZES (sizeof(data_sizes) / sizeof(data_sizes[0]))

static DAT_COUNT data_size(struct node *n, size_t i)
{
	DAT_COUNT max = n->prov.max_private_data_size;

	CHECK(max >= node_least_data(n) && max <= MAX_DATA, "%d", max);
	return data_sizes[i] < 0 ? max : data_sizes[i];
}

static void data_server(struct pair *p)
{
	unsigned char data[MAX_DATA];
	struct node n;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	size_t i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < N_SIZES * N_SIZES; i++) {
		DAT_COUNT theirs = data_size(&n, i / N_SIZES), mine = data_size(&n, i % N_SIZES);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp, qual, theirs, 2 * i);
		fill(data, mine, 2 * i + 1);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, mine, data));
		memset(data, 0xee, sizeof(data));	/* the data was copied */
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		SAME(event.event_data.connect_event_data.private_data_size, 0);
		CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void data_client(struct pair *p)
{
	unsigned char data[MAX_DATA];
	struct listener listener;
	struct node n;
	size_t i;

	node_open(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_SIZES * N_SIZES; i++) {
		DAT_COUNT mine = data_size(&n, i / N_SIZES), theirs = data_size(&n, i % N_SIZES);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		const DAT_CONNECTION_EVENT_DATA *c;
		DAT_EVENT event;

		fill(data, mine, 2 * i);
		connect_with(ep, &listener, pair_scaled(PAIR_LIMIT), mine, data);
		memset(data, 0xee, sizeof(data));	/* the data was copied */
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		c = &event.event_data.connect_event_data;
		CHECK(c->ep_handle == ep, "wrong EP");
		check_data(c->private_data_size, c->private_data, theirs, 2 * i + 1);
		check_peer(&n, ep, &listener);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	node_close(&n);
}

/* Attempts that fail */

#define REJECT_DATA (DAT_VERSION_MAJOR >= 2)

static void reject_server(struct pair *p)
{
	unsigned char data[MAX_DATA];
	struct node n;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	size_t i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < N_SIZES; i++) {
		DAT_CR_HANDLE cr = node_request(&n);

		fill(data, data_size(&n, i), i);
		OK(cr_reject(cr, data_size(&n, i), data));
		FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
	}
	n.ep = node_ep(&n, NULL);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void reject_client(struct pair *p)
{
	const DAT_CONNECTION_EVENT_DATA *c;
	struct listener listener;
	DAT_EVENT event;
	struct node n;
	size_t i;

	node_open(&n);
	mem_get(&n, &n.m, 64);
	pair_recv_listener(p, &listener);
	n.ep = node_ep(&n, NULL);
	for (i = 0; i < N_SIZES; i++) {
		post_recv(n.ep, &n.m, 0, 64, i);
		ep_connect(n.ep, &listener);
		expect_event(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
		c = &event.event_data.connect_event_data;
		CHECK(c->ep_handle == n.ep, "wrong EP");
		check_data(c->private_data_size, c->private_data,
			   REJECT_DATA ? data_size(&n, i) : 0, i);
		SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
		expect_dto(n.recv, i, DAT_DTO_ERR_FLUSHED, 0);
		OK(dat_ep_reset(n.ep));
	}
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	expect_quiet(n.conn);
	node_end(&n);
}

static void refused_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_begin(&n, 0);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	OK(dat_psp_free(psp));
	FAILS(dat_psp_free(psp), DAT_INVALID_HANDLE);
	pair_sync(p);
	pair_unlink(p, &n, n.ep);
	expect_quiet(n.cr);
	node_end(&n);
}

/* After its service point is freed a connection lives on, and new requests are refused. */
static void refused_client(struct pair *p)
{
	struct listener listener, mapped;
	DAT_EP_HANDLE other;
	struct node n;

	node_begin(&n, 0);
	other = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_sync(p);
	connect_fails(&n, other, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(other));
	mapped = listener;
	mapped.qual = UINT64_C(0x5eed000000000000) + getpid();
	connect_fails(&n, other, &mapped, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	SAME(ep_state(n.ep), DAT_EP_STATE_CONNECTED);
	pair_unlink(p, &n, n.ep);
	OK(dat_ep_free(other));
	node_end(&n);
}

#define TIMEOUT_MS 300
#define TOLERANCE_MS 2000	/* for a busy machine */
#define AMPLE_MS 1000		/* for an attempt that succeeds */

static void timeout_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_CR_HANDLE cr;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	cr = node_request(&n);
	pair_sync(p);	/* the client has given up */
	n.ep = node_ep(&n, NULL);
	accept_gone(&n, cr, n.ep);
	OK(dat_ep_reset(n.ep));
	pair_sync(p);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void timeout_client(struct pair *p)
{
	unsigned ms = pair_scaled(TIMEOUT_MS);
	struct listener listener;
	DAT_EVENT event;
	DAT_COUNT more;
	struct node n;
	int64_t start, took;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	start = pair_now();
	connect_with(n.ep, &listener, ms, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_TIMED_OUT, n.ep);
	took = pair_now() - start;
	CHECK(took >= ms * INT64_C(1000) &&
		      took <= (ms + pair_scaled(TOLERANCE_MS)) * INT64_C(1000),
	      "timed out after %lld us instead of %u ms", (long long)took, ms);
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n.conn);
	pair_sync(p);
	pair_sync(p);
	/* the time-out limits the attempt only */
	OK(dat_ep_reset(n.ep));
	ms = pair_scaled(AMPLE_MS);
	connect_with(n.ep, &listener, ms, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	FAILS(dat_evd_wait(n.conn, 2 * ms * 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* The kernel refuses a TCP connection to a multicast address, with and without a route. */
static void unreachable_address(struct node *n, struct listener *listener)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&listener->address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&listener->address;

	memset(listener, 0, sizeof(*listener));
	listener->qual = 45248;
	listener->address.ss_family = n->address.ss_family;
	if (n->address.ss_family == AF_INET6)
		CHECK(inet_pton(AF_INET6, "ff05::1", &in6->sin6_addr) == 1, "address");
	else
		CHECK(inet_pton(AF_INET, "224.0.0.1", &in->sin_addr) == 1, "address");
}

static void unreachable(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	unreachable_address(&n, &listener);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_UNREACHABLE);
	OK(dat_ep_reset(n.ep));
	listener.qual = UINT64_C(1) << 40;
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_UNREACHABLE);
	node_end(&n);
}

/* Requests and their service points */

static void late_accept_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct node n;

	node_begin(&n, 0);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	cr = node_request(&n);
	OK(dat_psp_free(psp));
	OK(dat_cr_accept(cr, n.ep, 0, NULL));
	FAILS(dat_cr_accept(cr, n.ep, 0, NULL), DAT_INVALID_HANDLE);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void plain_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	expect_quiet(n.conn);
	node_end(&n);
}

static void unanswered_closed_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	struct node n;

	node_open(&n);
	node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	node_request(&n);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	pair_sync(p);
}

static void unanswered_exit_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	struct node n;

	node_open(&n);
	node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	node_request(&n);
	_exit(EXIT_SUCCESS);
}

static void unanswered_closed_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	pair_sync(p);
	node_end(&n);
}

static void unanswered_exit_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	node_end(&n);
}

/* Nothing dequeues the requests from an EVD that has room for two. */
static void full_evd_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE small;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	small = node_evd(&n, 2, DAT_EVD_CR_FLAG);
	OK(dat_psp_create_any(n.ia, &qual, small, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &n, qual);
	pair_sync(p);	/* the third request was rejected */
	expect_quiet(n.async);
	for (i = 0; i < 2; i++) {
		expect_event(small, DAT_CONNECTION_REQUEST_EVENT, &event);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	}
	expect_quiet(small);
	OK(dat_psp_free(psp));
	OK(dat_evd_free(small));
	node_close(&n);
}

static void full_evd_client(struct pair *p)
{
	DAT_EP_HANDLE ep[3];
	struct listener listener;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < 3; i++) {
		ep[i] = node_ep(&n, NULL);
		ep_connect(ep[i], &listener);
	}
	expect_event(n.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event);
	pair_sync(p);
	for (i = 0; i < 2; i++)
		expect_event(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	expect_quiet(n.conn);
	for (i = 0; i < 3; i++)
		OK(dat_ep_free(ep[i]));
	node_close(&n);
}

/* Attributes */

/* Several IAs, one process */

/* Both ends are in this process. */
static void self_link(struct node *passive, struct node *active, DAT_EP_HANDLE passive_ep,
		      DAT_EP_HANDLE active_ep)
{
	struct listener listener = { .address = passive->address };
	DAT_PSP_HANDLE psp = node_listen(passive, &listener.qual);

	ep_connect(active_ep, &listener);
	OK(dat_cr_accept(node_request(passive), passive_ep, 0, NULL));
	if (passive->conn != active->conn) {
		expect_conn(active->conn, DAT_CONNECTION_EVENT_ESTABLISHED, active_ep);
		expect_conn(passive->conn, DAT_CONNECTION_EVENT_ESTABLISHED, passive_ep);
	} else {
		DAT_EVENT event;

		expect_event(active->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		expect_event(active->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	}
	OK(dat_psp_free(psp));
}

#define MESSAGE 4096

static void exchange(struct node *from, struct node *to, DAT_EP_HANDLE from_ep, DAT_EP_HANDLE to_ep)
{
	struct mem source, target;

	mem_get(from, &source, MESSAGE);
	mem_get(to, &target, MESSAGE);
	fill(source.base, MESSAGE, 5);
	post_recv(to_ep, &target, 0, MESSAGE, 1);
	post_send(from_ep, &source, 0, MESSAGE, 2);
	expect_dto(to->recv, 1, DAT_DTO_SUCCESS, MESSAGE);
	expect_dto(from->req, 2, DAT_DTO_SUCCESS, MESSAGE);
	verify(target.base, MESSAGE, 5);
	mem_put(&source);
	mem_put(&target);
}

static void self(struct pair *p)
{
	DAT_EP_HANDLE a, b;
	DAT_EVENT event;
	struct node n;

	node_open(&n);
	a = node_ep(&n, NULL);
	b = node_ep(&n, NULL);
	self_link(&n, &n, a, b);
	exchange(&n, &n, a, b);
	exchange(&n, &n, b, a);
	OK(dat_ep_disconnect(a, DAT_CLOSE_GRACEFUL_FLAG));
	expect_event(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
	expect_event(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
	expect_quiet(n.conn);
	OK(dat_ep_free(a));
	OK(dat_ep_free(b));
	node_close(&n);
}

static void two_ias(struct pair *p)
{
	DAT_EP_HANDLE a, b, foreign;
	struct node one, two;

	node_open(&one);
	node_open(&two);
	CHECK(one.ia != two.ia, "both IAs have one handle");
	FAILS(dat_ep_create(one.ia, two.pz, one.recv, one.req, one.conn, NULL, &foreign),
	      DAT_INVALID_HANDLE);
	if (node_is_strict(&one))
		FAILS(dat_ep_create(one.ia, one.pz, one.recv, two.req, one.conn, NULL, &foreign),
		      DAT_INVALID_HANDLE);
	a = node_ep(&one, NULL);
	b = node_ep(&two, NULL);
	self_link(&one, &two, a, b);
	exchange(&one, &two, a, b);
	exchange(&two, &one, b, a);
	/* closing one IA affects the other only through the connection */
	OK(dat_ia_close(one.ia, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(two.conn, b);
	OK(dat_ep_free(b));
	a = node_ep(&two, NULL);
	b = node_ep(&two, NULL);
	self_link(&two, &two, a, b);
	exchange(&two, &two, a, b);
	OK(dat_ep_free(a));
	OK(dat_ep_free(b));
	expect_quiet(two.conn);
	node_close(&two);
}

/* A thread that sends, ignoring errors, until the connection has ended. */
struct sender {
	struct node n;
	struct mem m;
	DAT_EP_HANDLE ep;
};

static void *send_until_end(void *arg)
{
	struct sender *s = arg;
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, 64);
	DAT_EVENT event;

	while (ep_state(s->ep) == DAT_EP_STATE_CONNECTED) {
		(void)dat_ep_post_send(s->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
		while (dat_evd_dequeue(s->n.req, &event) == DAT_SUCCESS)
			;
	}
	return NULL;
}

#define CLOSINGS 20

/* Closing the IA frees the memory that the sender's messages go to. */
static void closed_while_sent_to(struct pair *p)
{
	struct sender s;
	struct node closing;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	pthread_t thread;
	int i;

	if (pair_fabric_is("shm-rdm"))
		pair_skip("libfabric's shm writes to the endpoint that this process has closed");
	node_open(&s.n);
	mem_get(&s.n, &s.m, MESSAGE);
	for (i = 0; i < CLOSINGS; i++) {
		node_open(&closing);
		ep = node_ep(&closing, NULL);
		s.ep = node_ep(&s.n, NULL);
		self_link(&closing, &s.n, ep, s.ep);
		exchange(&s.n, &closing, s.ep, ep);
		CHECK(!pthread_create(&thread, NULL, send_until_end, &s), "pthread_create");
		OK(dat_ia_close(closing.ia, DAT_CLOSE_ABRUPT_FLAG));
		pthread_join(thread, NULL);
		expect_end(s.n.conn, s.ep);
		OK(dat_ep_free(s.ep));
		while (dat_evd_dequeue(s.n.req, &event) == DAT_SUCCESS)
			;
	}
	mem_put(&s.m);
	OK(dat_ia_close(s.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct pair_case cases[] = {
	PAIR_CASE("private data is transferred exactly", data_server, data_client, .seconds = 60),
	PAIR_CASE("rejected by the peer", reject_server, reject_client),
	PAIR_CASE("refused without a listener", refused_server, refused_client),
	PAIR_CASE("timed out", timeout_server, timeout_client),
	PAIR_CASE("unreachable", NULL, unreachable),
	PAIR_CASE("accepted after the service point was freed", late_accept_server, plain_client),
	PAIR_CASE("request pending when the IA is closed", unanswered_closed_server,
		  unanswered_closed_client,
		  .not_sockets = "it drops rejections when the listener is closed"),
	PAIR_CASE("request pending when the process ends", unanswered_exit_server,
		  unanswered_exit_client),
	PAIR_CASE("more requests than the EVD holds", full_evd_server, full_evd_client),
	PAIR_CASE("self-connection", NULL, self),
	PAIR_CASE("two IAs in one process", NULL, two_ias),
	PAIR_CASE("an IA is closed while a peer sends to it", NULL, closed_while_sent_to,
		  .seconds = 60, .not_sockets = "it loses messages when many are in flight"),
};

PAIR_MAIN(cases)
