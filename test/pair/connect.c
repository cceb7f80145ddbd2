/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two processes connect, fail to connect, and part, in every way that DAT knows. */

#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MAX_DATA 512

static void connect_with(DAT_EP_HANDLE ep, const struct place *place, unsigned timeout_ms,
			 DAT_COUNT size, const void *data)
{
	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&place->address, place->qual, timeout_ms * 1000,
			  size, (const DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* An attempt that fails with exactly this event and leaves the EP DISCONNECTED. */
static void connect_fails(struct node *n, DAT_EP_HANDLE ep, const struct place *place,
			  DAT_EVENT_NUMBER number)
{
	ep_connect(ep, place);
	expect_conn(n->conn, number, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n->conn);
}

/* The same process on both sides. */
static void self_link(struct node *passive, struct node *active, DAT_EP_HANDLE passive_ep,
		      DAT_EP_HANDLE active_ep)
{
	struct place place = { .address = passive->address };
	DAT_PSP_HANDLE psp = node_listen(passive, &place.qual);

	ep_connect(active_ep, &place);
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

/* Private data */

static const DAT_COUNT data_sizes[] = { 0, 1, 48, -1 };	/* -1: the maximum */
#define N_SIZES (sizeof(data_sizes) / sizeof(data_sizes[0]))

static DAT_COUNT data_size(struct node *n, size_t i)
{
	DAT_COUNT max = n->prov.max_private_data_size;

	CHECK(max >= 64 && max <= MAX_DATA, "%d", max);
	return data_sizes[i] < 0 ? max : data_sizes[i];
}

static void check_data(DAT_COUNT size, const void *data, DAT_COUNT wanted, unsigned seed)
{
	SAME(size, wanted);
	CHECK(!size || data, "no data");
	verify(data, size, seed);
}

static void check_cr(struct node *n, const DAT_EVENT *event, DAT_PSP_HANDLE psp, DAT_CONN_QUAL qual,
		     DAT_COUNT size, unsigned seed)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *a = &event->event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	CHECK(a->sp_handle.psp_handle == psp, "another service point");
	SAME(a->conn_qual, qual);
	CHECK(!memcmp(a->local_ia_address_ptr, &n->address, sizeof(struct sockaddr_in)),
	      "not the IA's address");
	OK(dat_cr_query(a->cr_handle, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, size, seed);
	CHECK(!param.local_ep_handle, "the consumer's to provide");
	CHECK(param.remote_port_qual, "no port");
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
	if (size) /* programs write into it */
		memset(param.private_data, 0, size);
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
	pair_tell_place(p, &n, qual);
	for (i = 0; i < N_SIZES * N_SIZES; i++) {
		DAT_COUNT theirs = data_size(&n, i / N_SIZES), mine = data_size(&n, i % N_SIZES);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp, qual, theirs, 2 * i);
		fill(data, mine, 2 * i + 1);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, mine, data));
		memset(data, 0xee, sizeof(data));	/* copied by now */
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		SAME(event.event_data.connect_event_data.private_data_size, 0);
		CHECK(event.event_data.connect_event_data.ep_handle == ep, "another EP");
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void check_peer(struct node *n, DAT_EP_HANDLE ep, const struct place *place)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.remote_port_qual, place->qual);
	SAME(param.ep_state, DAT_EP_STATE_CONNECTED);
	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "another IA or PZ");
	CHECK(!memcmp(param.remote_ia_address_ptr, &place->address, sizeof(struct sockaddr_in)),
	      "not the address connected to");
}

static void data_client(struct pair *p)
{
	unsigned char data[MAX_DATA];
	struct place place;
	struct node n;
	size_t i;

	node_open(&n);
	pair_learn_place(p, &place);
	for (i = 0; i < N_SIZES * N_SIZES; i++) {
		DAT_COUNT mine = data_size(&n, i / N_SIZES), theirs = data_size(&n, i % N_SIZES);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		const DAT_CONNECTION_EVENT_DATA *c;
		DAT_EVENT event;

		fill(data, mine, 2 * i);
		connect_with(ep, &place, pair_scaled(PAIR_LIMIT), mine, data);
		memset(data, 0xee, sizeof(data));	/* copied by now */
		expect_event(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		c = &event.event_data.connect_event_data;
		CHECK(c->ep_handle == ep, "another EP");
		check_data(c->private_data_size, c->private_data, theirs, 2 * i + 1);
		check_peer(&n, ep, &place);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	node_close(&n);
}

static void data_too_large(struct pair *p)
{
	struct node n;
	struct place place = { .qual = 1 };
	unsigned char data[MAX_DATA + 1] = { 0 };
	DAT_EP_HANDLE ep;
	DAT_COUNT size;

	(void)p;
	node_open(&n);
	place.address = n.address;
	ep = node_ep(&n, NULL);
	size = n.prov.max_private_data_size + 1;
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&place.address, 1, 1000, size, data,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&place.address, 1, 1000, -1, data,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* Attempts that fail */

#define REJECT_DATA (DAT_VERSION_MAJOR >= 2)

static void reject_server(struct pair *p)
{
	unsigned char data[MAX_DATA];
	DAT_EP_HANDLE ep;
	struct node n;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	size_t i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	for (i = 0; i < N_SIZES; i++) {
		DAT_CR_HANDLE cr = node_request(&n);

		fill(data, data_size(&n, i), i);
		OK(cr_reject(cr, data_size(&n, i), data));
		FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
	}
	ep = node_ep(&n, NULL);
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void reject_client(struct pair *p)
{
	const DAT_CONNECTION_EVENT_DATA *c;
	struct place place;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct mem m;
	struct node n;
	size_t i;

	node_open(&n);
	mem_get(&n, &m, 64);
	pair_learn_place(p, &place);
	ep = node_ep(&n, NULL);
	for (i = 0; i < N_SIZES; i++) {
		post_recv(ep, &m, 0, 64, i);
		ep_connect(ep, &place);
		expect_event(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
		c = &event.event_data.connect_event_data;
		CHECK(c->ep_handle == ep, "another EP");
		check_data(c->private_data_size, c->private_data,
			   REJECT_DATA ? data_size(&n, i) : 0, i);
		SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
		expect_dto(n.recv, i, DAT_DTO_ERR_FLUSHED, 0);
		OK(dat_ep_reset(ep));
	}
	ep_connect(ep, &place);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

static void refused_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	OK(dat_psp_free(psp));
	FAILS(dat_psp_free(psp), DAT_INVALID_HANDLE);
	pair_sync(p);
	pair_unlink(p, &n, ep);
	expect_quiet(n.cr);
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* The service point is freed: what it led to lives on, and nothing new comes in. */
static void refused_client(struct pair *p)
{
	struct place place, mapped;
	DAT_EP_HANDLE ep, other;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	other = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	ep_connect(ep, &place);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_sync(p);
	connect_fails(&n, other, &place, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(other));
	mapped = place;
	mapped.qual = UINT64_C(0x5eed000000000000) + getpid();
	connect_fails(&n, other, &mapped, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	SAME(ep_state(ep), DAT_EP_STATE_CONNECTED);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_ep_free(other));
	node_close(&n);
}

/*
 * Accepts a request whose sender has gone. A fabric whose acceptor waits for no answer
 * learns of that only afterwards: then the connection is made, and ends.
 */
static void accept_in_vain(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_cr_accept(cr, ep, 0, NULL));
	OK(dat_evd_wait(n->conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "another EP");
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		expect_end(n->conn, ep);
	else
		SAME(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n->conn);
}

#define TIMEOUT_MS 300
#define TOLERANCE_MS 100

static void timeout_server(struct pair *p)
{
	DAT_EP_HANDLE ep;
	DAT_CONN_QUAL qual;
	DAT_CR_HANDLE cr;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	cr = node_request(&n);
	pair_sync(p);	/* the requester has given up */
	ep = node_ep(&n, NULL);
	accept_in_vain(&n, cr, ep);
	OK(dat_ep_reset(ep));
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void timeout_client(struct pair *p)
{
	unsigned ms = pair_scaled(TIMEOUT_MS);
	struct place place;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	DAT_COUNT more;
	struct node n;
	int64_t start, took;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	start = pair_now();
	connect_with(ep, &place, ms, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_TIMED_OUT, ep);
	took = pair_now() - start;
	CHECK(took >= ms * INT64_C(1000) && took <= (ms + pair_scaled(TOLERANCE_MS)) * INT64_C(1000),
	      "%lld us instead of %u ms", (long long)took, ms);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n.conn);
	pair_sync(p);
	/* the time-out is for the attempt only */
	OK(dat_ep_reset(ep));
	connect_with(ep, &place, ms, 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	FAILS(dat_evd_wait(n.conn, 2 * ms * 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* The kernel refuses a TCP connection to a multicast address, routes or not. */
static void unreachable_place(struct node *n, struct place *place)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&place->address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&place->address;

	memset(place, 0, sizeof(*place));
	place->qual = 45248;
	place->address.ss_family = n->address.ss_family;
	if (n->address.ss_family == AF_INET6)
		CHECK(inet_pton(AF_INET6, "ff05::1", &in6->sin6_addr) == 1, "address");
	else
		CHECK(inet_pton(AF_INET, "224.0.0.1", &in->sin_addr) == 1, "address");
}

static void unreachable(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;

	(void)p;
	node_open(&n);
	ep = node_ep(&n, NULL);
	unreachable_place(&n, &place);
	connect_fails(&n, ep, &place, DAT_CONNECTION_EVENT_UNREACHABLE);
	OK(dat_ep_reset(ep));
	place.qual = UINT64_C(1) << 40;
	connect_fails(&n, ep, &place, DAT_CONNECTION_EVENT_UNREACHABLE);
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void malformed_address(struct pair *p)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	DAT_EP_HANDLE ep;
	struct node n;

	(void)p;
	node_open(&n);
	ep = node_ep(&n, NULL);
	FAILS(dat_ep_connect(ep, NULL, 1, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_ADDRESS);
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 1, 1000, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_ADDRESS);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* Qualifiers */

/* These are the same in every run, and two runs at once would take each other's requests. */
static void be_alone(void)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	int fd = open("/tmp/dat-test-qualifiers.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0666);

	CHECK(fd >= 0, "%s", strerror(errno));
	alarm((deadline - pair_now()) / 1000000 + 1);
	CHECK(!flock(fd, LOCK_EX), "%s", strerror(errno));	/* until this process ends */
	alarm(0);
}

static const DAT_CONN_QUAL quals[] = {
	1, 80, 1023, 45248, 65535, 0xAFFAB1E, UINT64_C(1) << 40, UINT64_MAX, 65536, 65536 + 45248,
};
#define N_QUALS (sizeof(quals) / sizeof(quals[0]))

/* A port that another program has got is no failure of ours. */
static bool listen_to(struct node *n, DAT_CONN_QUAL qual, DAT_PSP_HANDLE *psp)
{
	DAT_RETURN ret = dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, psp);

	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE && qual <= UINT16_MAX) {
		pair_note("qualifier %llu is taken by another program", (unsigned long long)qual);
		return false;
	}
	OK(ret);
	return true;
}

static void quals_server(struct pair *p)
{
	DAT_PSP_HANDLE psp[N_QUALS];
	struct node n;
	size_t i;

	be_alone();
	node_open(&n);
	for (i = 0; i < N_QUALS; i++) {
		bool listening = listen_to(&n, quals[i], &psp[i]);

		pair_tell_place(p, &n, listening ? quals[i] : 0);
		if (!listening)
			psp[i] = DAT_HANDLE_NULL;
	}
	for (i = 0; i < N_QUALS; i++) {
		DAT_EP_HANDLE ep;
		DAT_EVENT event;

		if (!psp[i])
			continue;
		ep = node_ep(&n, NULL);
		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp[i], quals[i], 0, 0);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
		OK(dat_psp_free(psp[i]));
	}
	node_close(&n);
}

static void quals_client(struct pair *p)
{
	struct place place[N_QUALS];
	struct node n;
	size_t i;

	node_open(&n);
	for (i = 0; i < N_QUALS; i++)
		pair_learn_place(p, &place[i]);
	for (i = 0; i < N_QUALS; i++) {
		DAT_EP_HANDLE ep;

		if (!place[i].qual)
			continue;
		ep = node_ep(&n, NULL);
		ep_connect(ep, &place[i]);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		check_peer(&n, ep, &place[i]);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	node_close(&n);
}

/* So many large qualifiers that some of them are bound to share a port. */
#define N_MAPPED 300

static DAT_CONN_QUAL mapped_qual(pid_t pid, unsigned i)
{
	return (UINT64_C(1) << 63) + (UINT64_C(1) << 20) * (unsigned)pid + i;
}

static void mapped_server(struct pair *p)
{
	DAT_PSP_HANDLE psp[N_MAPPED];
	struct node n;
	unsigned i;

	node_open(&n);
	for (i = 0; i < N_MAPPED; i++)
		OK(dat_psp_create(n.ia, mapped_qual(getpid(), i), n.cr, DAT_PSP_CONSUMER_FLAG, &psp[i]));
	pair_tell_place(p, &n, 1);
	for (i = 0; i < N_MAPPED; i++) {
		DAT_EVENT event;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp[i], mapped_qual(getpid(), i), 0, 0);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	}
	for (i = 0; i < N_MAPPED; i++)
		OK(dat_psp_free(psp[i]));
	node_close(&n);
}

static void mapped_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	for (i = 0; i < N_MAPPED; i++) {
		place.qual = mapped_qual(p->peer, i);
		ep_connect(ep, &place);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
		OK(dat_ep_reset(ep));
	}
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

/* What a socket address says of ports counts for nothing. */
static void port_server(struct pair *p)
{
	DAT_CONN_QUAL qual, other;
	DAT_PSP_HANDLE psp, other_psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	other_psp = node_listen(&n, &other);
	pair_tell_place(p, &n, qual);
	pair_tell_place(p, &n, other);
	for (i = 0; i < 3; i++) {
		DAT_EVENT event;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		SAME(event.event_data.cr_arrival_event_data.conn_qual, qual);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	}
	OK(dat_psp_free(psp));
	OK(dat_psp_free(other_psp));
	node_close(&n);
}

static void port_client(struct pair *p)
{
	struct place place, other;
	uint16_t ports[3] = { 0, 1, 0 };
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	pair_learn_place(p, &other);
	ports[2] = other.qual;
	for (i = 0; i < 3; i++) {
		set_port(&place.address, ports[i]);
		connect_fails(&n, ep, &place, DAT_CONNECTION_EVENT_PEER_REJECTED);
		OK(dat_ep_reset(ep));
	}
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* Taken is taken: by this IA, whatever the qualifier; and by anyone, if it is a port. */
static void in_use_server(struct pair *p)
{
	DAT_CONN_QUAL any, large = mapped_qual(getpid(), 0);
	DAT_PSP_HANDLE psp, mapped, again;
	struct node n, second;

	node_open(&n);
	node_open(&second);
	psp = node_listen(&n, &any);
	OK(dat_psp_create(n.ia, large, n.cr, DAT_PSP_CONSUMER_FLAG, &mapped));
	FAILS(dat_psp_create(n.ia, any, n.cr, DAT_PSP_CONSUMER_FLAG, &again), DAT_CONN_QUAL_IN_USE);
	FAILS(dat_psp_create(n.ia, large, n.cr, DAT_PSP_CONSUMER_FLAG, &again), DAT_CONN_QUAL_IN_USE);
	FAILS(dat_psp_create(second.ia, any, second.cr, DAT_PSP_CONSUMER_FLAG, &again),
	      DAT_CONN_QUAL_IN_USE);
	pair_tell_place(p, &n, any);
	pair_sync(p);	/* the other process has tried */
	OK(dat_psp_free(psp));
	OK(dat_psp_free(mapped));
	OK(dat_psp_create(n.ia, large, n.cr, DAT_PSP_CONSUMER_FLAG, &mapped));
	OK(dat_psp_free(mapped));
	pair_sync(p);
	node_close(&second);
	node_close(&n);
}

static void in_use_client(struct pair *p)
{
	DAT_PSP_HANDLE psp;
	struct place place;
	struct node n;

	node_open(&n);
	pair_learn_place(p, &place);
	FAILS(dat_psp_create(n.ia, place.qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_IN_USE);
	pair_sync(p);
	pair_sync(p);
	OK(dat_psp_create(n.ia, place.qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	node_close(&n);
}

#define N_ANY 64

static void any_server(struct pair *p)
{
	DAT_PSP_HANDLE psp[N_ANY];
	DAT_CONN_QUAL qual[N_ANY];
	DAT_PSP_PARAM param;
	struct node n;
	unsigned i, j;

	node_open(&n);
	for (i = 0; i < N_ANY; i++) {
		psp[i] = node_listen(&n, &qual[i]);
		CHECK(qual[i] > 0 && qual[i] <= UINT16_MAX, "%llu", (unsigned long long)qual[i]);
		for (j = 0; j < i; j++)
			CHECK(qual[i] != qual[j], "given twice: %llu", (unsigned long long)qual[i]);
		OK(dat_psp_query(psp[i], DAT_PSP_FIELD_ALL, &param));
		SAME(param.conn_qual, qual[i]);
		CHECK(param.evd_handle == n.cr && param.ia_handle == n.ia, "another EVD or IA");
	}
	for (i = 0; i < N_ANY; i++) {
		DAT_EVENT event;

		pair_tell_place(p, &n, qual[i]);
		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp[i], qual[i], 0, 0);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
		/* sockets drops what its listener has not sent yet when that is closed */
		pair_sync(p);
		OK(dat_psp_free(psp[i]));
	}
	node_close(&n);
}

static void any_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	ep = node_ep(&n, NULL);
	for (i = 0; i < N_ANY; i++) {
		pair_learn_place(p, &place);
		ep_connect(ep, &place);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
		pair_sync(p);
		OK(dat_ep_reset(ep));
	}
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* Requests and their service points */

static void late_accept_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	cr = node_request(&n);
	OK(dat_psp_free(psp));
	OK(dat_cr_accept(cr, ep, 0, NULL));
	FAILS(dat_cr_accept(cr, ep, 0, NULL), DAT_INVALID_HANDLE);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void plain_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	ep_connect(ep, &place);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void unanswered_closed_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	struct node n;

	node_open(&n);
	node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
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
	pair_tell_place(p, &n, qual);
	node_request(&n);
	_exit(EXIT_SUCCESS);
}

static void unanswered_closed_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	connect_fails(&n, ep, &place, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	pair_sync(p);
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void unanswered_exit_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	connect_fails(&n, ep, &place, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_free(ep));
	node_close(&n);
}

/* Requests that nobody took from the EVD, which has room for two. */
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
	pair_tell_place(p, &n, qual);
	pair_sync(p);	/* the third was turned down */
	expect_event(n.async, DAT_ASYNC_ERROR_EVD_OVERFLOW, &event);
	CHECK(event.event_data.asynch_error_event_data.dat_handle == small, "not the EVD");
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
	struct place place;
	DAT_EVENT event;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_learn_place(p, &place);
	for (i = 0; i < 3; i++) {
		ep[i] = node_ep(&n, NULL);
		ep_connect(ep[i], &place);
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

/* Parting */

#define ROUNDS 50

/* The same EP on both sides, again and again; both disconnect at the same moment. */
static void reconnect(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	ep = node_ep(&n, NULL);
	for (i = 0; i < ROUNDS; i++) {
		pair_link(p, &n, ep);
		pair_sync(p);
		OK(dat_ep_disconnect(ep, i & 1 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
		SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
		OK(dat_ep_reset(ep));
		SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	}
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	node_close(&n);
}

#define N_MESSAGES 200
#define MESSAGE 4096
#define WRITE_SIZE (1 << 20)

static DAT_EP_HANDLE deep_ep(struct node *n)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = N_MESSAGES + 8;
	return node_ep(n, &attr);
}

/* Receives of the peer's messages: the first half is posted before it sends. */
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
	FAILS(dat_ep_post_send(ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 0 }, DAT_COMPLETION_DEFAULT_FLAG),
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

/* Takes @count completions in order, successes first and then flushes. Returns the successes. */
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

/* What the peer's sends completed is received; the rest is not. */
static void abrupt_server(struct pair *p)
{
	unsigned i, done, sent;
	DAT_EP_HANDLE ep;
	struct mem m;
	struct node n;

	node_open(&n);
	mem_get(&n, &m, WRITE_SIZE);
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	pair_recv(p, &sent, sizeof(sent));	/* the peer has disconnected */
	for (i = 0; i < N_ABRUPT; i++)
		post_recv(ep, &m, 0, WRITE_SIZE, i);
	expect_end(n.conn, ep);
	done = count_done(n.recv, N_ABRUPT);
	CHECK(done < N_ABRUPT, "%u received", done);
	/* sockets keeps what it has completed in a buffer of its own, and drops it */
	CHECK(done >= sent || pair_fabric_is("sockets"), "%u received of %u sent", done, sent);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

static void abrupt_client(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct mem m;
	struct node n;
	unsigned i, sent;

	node_open(&n);
	mem_get(&n, &m, WRITE_SIZE);
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	for (i = 0; i < N_ABRUPT; i++) {
		post_recv(ep, &m, 0, 64, i);
		post_send(ep, &m, 0, WRITE_SIZE, i);
	}
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	sent = count_done(n.req, N_ABRUPT);
	CHECK(sent < N_ABRUPT, "so much cannot be on its way");
	SAME(count_done(n.recv, N_ABRUPT), 0);
	pair_send(p, &sent, sizeof(sent));
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

/* Whether the next event is ESTABLISHED, and not already DISCONNECTED. */
static bool established(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(n->conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "another EP");
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return true;
	SAME(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	return false;
}

/* What disconnecting means in each state. */
static void states_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	/* the requester leaves before the answer */
	cr = node_request(&n);
	pair_sync(p);
	pair_sync(p);
	OK(cr_reject(cr, 0, NULL));
	/* COMPLETION_PENDING, or just CONNECTED */
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	if (!established(&n, ep))
		SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	else
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n.conn);
	OK(dat_ep_reset(ep));
	pair_sync(p);
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void states_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct mem m;
	struct node n;

	node_open(&n);
	mem_get(&n, &m, 64);
	ep = node_ep(&n, NULL);
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
	FAILS(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	FAILS(dat_ep_disconnect(ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER);
	OK(dat_ep_reset(ep));
	pair_learn_place(p, &place);
	/* ACTIVE_CONNECTION_PENDING */
	post_recv(ep, &m, 0, 64, 1);
	ep_connect(ep, &place);
	pair_sync(p);
	SAME(ep_state(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	FAILS(dat_ep_reset(ep), DAT_INVALID_STATE);
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&place.address, place.qual, 1000, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), DAT_INVALID_STATE);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	expect_quiet(n.conn);
	pair_sync(p);
	/* the acceptor disconnects at once */
	OK(dat_ep_reset(ep));
	ep_connect(ep, &place);
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
	ep_connect(ep, &place);
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
	mem_put(&m);
	node_close(&n);
}

/* A waiting graceful disconnect is made abrupt. */
static void abrupt_after_graceful_client(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct mem m;
	struct node n;
	unsigned i, sent;

	node_open(&n);
	mem_get(&n, &m, WRITE_SIZE);
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	for (i = 0; i < N_ABRUPT; i++)
		post_send(ep, &m, 0, WRITE_SIZE, i);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECT_PENDING);
	expect_quiet(n.conn);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	sent = count_done(n.req, N_ABRUPT);
	CHECK(sent < N_ABRUPT, "so much cannot be on its way");
	pair_send(p, &sent, sizeof(sent));
	expect_quiet(n.conn);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

/* How a side may leave without a word. */
enum goodbye { FREE_EP, CLOSE_IA, EXIT };

static const enum goodbye free_ep = FREE_EP, close_ia = CLOSE_IA, exit_at_once = EXIT;

static void leave_server(struct pair *p)
{
	enum goodbye how = *(const enum goodbye *)pair_arg();
	DAT_EP_HANDLE ep;
	struct mem m;
	struct node n;

	node_open(&n);
	mem_get(&n, &m, 64);
	ep = node_ep(&n, NULL);
	post_recv(ep, &m, 0, 64, 1);
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
	mem_put(&m);
	node_close(&n);
}

static void leave_client(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct mem m;
	struct node n;

	node_open(&n);
	mem_get(&n, &m, 64);
	ep = node_ep(&n, NULL);
	post_recv(ep, &m, 0, 64, 1);
	pair_link(p, &n, ep);
	pair_sync(p);
	expect_end(n.conn, ep);
	expect_dto(n.recv, 1, DAT_DTO_ERR_FLUSHED, 0);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

/* Endpoints are freed in the middle of being connected. */
#define N_HASTY 30

static void hasty_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	for (i = 0; i < N_HASTY; i++) {
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

static void hasty_client(struct pair *p)
{
	struct place place;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_learn_place(p, &place);
	for (i = 0; i < N_HASTY; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_EVENT event;

		ep_connect(ep, &place);
		OK(dat_evd_wait(n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &(DAT_COUNT){ 0 }));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			expect_end(n.conn, ep);
		else
			SAME(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	node_close(&n);
}

/* Freed while a request is under way: the listener sees it come, and may answer in vain. */
static void withdrawn_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	for (i = 0; i < N_HASTY; i++) {
		DAT_CR_HANDLE cr = node_request(&n);
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		pair_sync(p);	/* it is withdrawn */
		accept_in_vain(&n, cr, ep);
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	OK(dat_psp_free(psp));
	expect_quiet(n.conn);
	node_close(&n);
}

static void withdrawn_client(struct pair *p)
{
	struct place place;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_learn_place(p, &place);
	for (i = 0; i < N_HASTY; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		ep_connect(ep, &place);
		expect_quiet(n.conn);
		OK(dat_ep_free(ep));
		pair_sync(p);
		pair_sync(p);
	}
	expect_quiet(n.conn);
	node_close(&n);
}

/* Attributes */

static void attributes(struct pair *p)
{
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	struct node n;

	(void)p;
	node_open(&n);
	node_ep_attr(&n, &attr);
	ep = node_ep(&n, &attr);
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CHECK(!memcmp(&param.ep_attr, &attr, sizeof(attr)), "they come back changed");
	OK(dat_ep_free(ep));

	attr.max_message_size = n.attr.max_message_size;
	attr.max_rdma_size = n.attr.max_rdma_size;
	attr.max_recv_dtos = attr.max_request_dtos = n.attr.max_dto_per_ep;
	attr.max_recv_iov = attr.max_request_iov = n.attr.max_iov_segments_per_dto;
	attr.max_rdma_read_in = n.attr.max_rdma_read_per_ep_in;
	attr.max_rdma_read_out = n.attr.max_rdma_read_per_ep_out;
	attr.max_rdma_read_iov = n.attr.max_iov_segments_per_rdma_read;
	attr.max_rdma_write_iov = n.attr.max_iov_segments_per_rdma_write;
	ep = node_ep(&n, &attr);
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CHECK(!memcmp(&param.ep_attr, &attr, sizeof(attr)), "the maxima are not granted");
	OK(dat_ep_free(ep));

#define TOO_MUCH(member)                                                                      \
	do {                                                                                  \
		DAT_EP_ATTR more = attr;                                                      \
		more.member++;                                                                \
		FAILS(dat_ep_create(n.ia, n.pz, n.recv, n.req, n.conn, &more, &ep),           \
		      DAT_INVALID_PARAMETER);                                                 \
	} while (0)
	TOO_MUCH(max_recv_dtos);
	TOO_MUCH(max_request_dtos);
	TOO_MUCH(max_recv_iov);
	TOO_MUCH(max_request_iov);
	TOO_MUCH(max_rdma_read_in);
	TOO_MUCH(max_rdma_read_out);
	TOO_MUCH(max_rdma_read_iov);
	TOO_MUCH(max_rdma_write_iov);
	TOO_MUCH(service_type);
	node_close(&n);
}

/* Strangers */

static socklen_t address_length(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static const char junk[] = "\x16\x03\x01\xff\xff I am no DAT provider, and this is no header.";
static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";

enum foreign { CLOSES, TALKS_AND_CLOSES, TALKS, ANSWERS_HTTP, FLOODS, N_FOREIGN };

static void foreign_behave(int fd, enum foreign how)
{
	static char flood[1 << 16];

	if (how == TALKS_AND_CLOSES || how == TALKS)
		(void)!send(fd, junk, sizeof(junk), MSG_NOSIGNAL);
	if (how == ANSWERS_HTTP)
		(void)!send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
	if (how == FLOODS) {
		memset(flood, 0xff, sizeof(flood));
		(void)!send(fd, flood, sizeof(flood), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	/* sockets waits for an answer without limit, in fi_close() too (libfabric 1.17) */
	if (how == CLOSES || how == TALKS_AND_CLOSES || pair_fabric_is("sockets"))
		shutdown(fd, SHUT_RDWR);
}

/* No DAT here: a TCP server. */
static void foreign_server(struct pair *p)
{
	struct place place;
	socklen_t len;
	int listener, i;

	pair_learn_place(p, &place);
	len = address_length(&place.address);
	listener = socket(place.address.ss_family, SOCK_STREAM, 0);
	set_port(&place.address, 0);
	CHECK(!bind(listener, (struct sockaddr *)&place.address, len), "%s", strerror(errno));
	CHECK(!listen(listener, 8), "%s", strerror(errno));
	CHECK(!getsockname(listener, (struct sockaddr *)&place.address, &len), "%s", strerror(errno));
	place.qual = ntohs(((struct sockaddr_in *)&place.address)->sin_port);
	pair_send(p, &place, sizeof(place));
	for (i = 0; i < N_FOREIGN; i++) {
		int fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0, "%s", strerror(errno));
		foreign_behave(fd, (enum foreign)i);
		pair_sync(p);
		close(fd);
	}
	close(listener);
}

static void foreign_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;
	int i;

	node_open(&n);
	pair_tell_place(p, &n, 0);
	pair_learn_place(p, &place);
	ep = node_ep(&n, NULL);
	for (i = 0; i < N_FOREIGN; i++) {
		DAT_EVENT event;

		connect_with(ep, &place, pair_scaled(TIMEOUT_MS), 0, NULL);
		OK(dat_evd_wait(n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &(DAT_COUNT){ 0 }));
		CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
		      event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT,
		      "%s from stranger %d", event_name(event.event_number), i);
		SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
		pair_sync(p);
		expect_quiet(n.conn);
		OK(dat_ep_reset(ep));
	}
	OK(dat_ep_free(ep));
	node_close(&n);
}

#define N_STRANGERS 6

static int stranger(const struct place *place, unsigned how)
{
	struct sockaddr_storage address = place->address;
	static char bytes[4096];
	unsigned seed = getpid() + how;
	size_t i;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	set_port(&address, place->qual);
	CHECK(!connect(fd, (struct sockaddr *)&address, address_length(&address)), "%s", strerror(errno));
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = rand_r(&seed);
	switch (how) {
	case 0:
		shutdown(fd, SHUT_RDWR);
		break;
	case 1:
		(void)!send(fd, http, sizeof(http) - 1, MSG_NOSIGNAL);
		break;
	case 2:
		(void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
		shutdown(fd, SHUT_RDWR);
		break;
	case 3:
		(void)!send(fd, bytes, 3, MSG_NOSIGNAL);
		break;
	case 4:
		(void)!send(fd, junk, sizeof(junk), MSG_NOSIGNAL);
		break;
	default:	/* says nothing */
		break;
	}
	/* sockets listens to one caller at a time, without limit (libfabric 1.17) */
	if (pair_fabric_is("sockets"))
		shutdown(fd, SHUT_RDWR);
	return fd;
}

static void strangers_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	for (i = 0; i < N_STRANGERS; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	expect_quiet(n.cr);
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void strangers_client(struct pair *p)
{
	int fd[N_STRANGERS];
	struct place place;
	struct node n;
	unsigned i;

	node_open(&n);
	pair_learn_place(p, &place);
	for (i = 0; i < N_STRANGERS; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		fd[i] = stranger(&place, i);
		ep_connect(ep, &place);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	for (i = 0; i < N_STRANGERS; i++)
		close(fd[i]);
	node_close(&n);
}

/* Several IAs, one process */

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

	(void)p;
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

	(void)p;
	node_open(&one);
	node_open(&two);
	CHECK(one.ia != two.ia, "each open is an instance of its own");
	FAILS(dat_ep_create(one.ia, two.pz, one.recv, one.req, one.conn, NULL, &foreign),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(one.ia, one.pz, one.recv, two.req, one.conn, NULL, &foreign),
	      DAT_INVALID_HANDLE);
	a = node_ep(&one, NULL);
	b = node_ep(&two, NULL);
	self_link(&one, &two, a, b);
	exchange(&one, &two, a, b);
	exchange(&two, &one, b, a);
	/* the end of one is no concern of the other, but for the connection */
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

static const struct pair_case cases[] = {
	PAIR_CASE("private data arrives exactly", data_server, data_client, .seconds = 60),
	PAIR_CASE("private data beyond the maximum", NULL, data_too_large),
	PAIR_CASE("rejected by the peer", reject_server, reject_client),
	PAIR_CASE("refused: nobody listens", refused_server, refused_client),
	PAIR_CASE("timed out", timeout_server, timeout_client),
	PAIR_CASE("unreachable", NULL, unreachable),
	PAIR_CASE("malformed address", NULL, malformed_address),
	PAIR_CASE("qualifiers of every size", quals_server, quals_client),
	PAIR_CASE("many large qualifiers", mapped_server, mapped_client, .seconds = 60),
	PAIR_CASE("port of the address is ignored", port_server, port_client),
	PAIR_CASE("qualifier in use", in_use_server, in_use_client),
	PAIR_CASE("any qualifier", any_server, any_client),
	PAIR_CASE("accepted after its service point was freed", late_accept_server, plain_client),
	PAIR_CASE("unanswered, then the IA is closed", unanswered_closed_server, unanswered_closed_client),
	PAIR_CASE("unanswered, then the process ends", unanswered_exit_server, unanswered_exit_client),
	PAIR_CASE("more requests than the EVD holds", full_evd_server, full_evd_client),
	PAIR_CASE("one EP connects 50 times", reconnect, reconnect, .seconds = 60),
	PAIR_CASE("graceful disconnect delivers all", graceful_server, graceful_client),
	PAIR_CASE("abrupt disconnect flushes", abrupt_server, abrupt_client),
	PAIR_CASE("disconnect in every state", states_server, states_client),
	PAIR_CASE("abrupt disconnect after a graceful one", abrupt_server, abrupt_after_graceful_client),
	PAIR_CASE("connected EP is freed", leave_server, leave_client, .arg = &free_ep),
	PAIR_CASE("IA is closed under a connection", leave_server, leave_client, .arg = &close_ia),
	PAIR_CASE("process ends under a connection", leave_server, leave_client, .arg = &exit_at_once),
	PAIR_CASE("acceptor is freed at once", hasty_server, hasty_client),
	PAIR_CASE("requester is freed before the answer", withdrawn_server, withdrawn_client),
	PAIR_CASE("queried attributes create an EP", NULL, attributes),
	PAIR_CASE("foreign listener", foreign_server, foreign_client),
	PAIR_CASE("strangers at our port", strangers_server, strangers_client),
	PAIR_CASE("self-connection", NULL, self),
	PAIR_CASE("two IAs in one process", NULL, two_ias),
};

PAIR_MAIN(cases)
