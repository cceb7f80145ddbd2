/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connecting: every outcome, its private data, requests and who answers them, service points. */

#include "stage.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

CHAPTER("connect");

/* An end that may be connected, and a service point of the IA. */
struct call {
	struct end a, b;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

static void call_open(struct node *n, struct call *c)
{
	end_open(n, &c->a, NULL);
	end_open(n, &c->b, NULL);
	c->psp = node_listen(n, &c->qual);
}

static DAT_CR_HANDLE call_make(struct node *n, struct call *c)
{
	call_open(n, c);
	end_connect(n, &c->a, c->qual);
	return node_request(n);
}

static void expect_established(struct call *c)
{
	expect_conn(c->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->a.ep);
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->b.ep);
}

static DAT_RETURN connect_as(DAT_EP_HANDLE ep, const void *address, DAT_CONN_QUAL qual,
			     DAT_TIMEOUT timeout, DAT_COUNT size, const void *data)
{
	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)address, qual, timeout, size,
			      (const DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* dat_ep_connect: arguments */

static DAT_EP_HANDLE fresh_ep(struct node *n)
{
	return node_ep(n, NULL);
}

CLAUSE("dat_ep_connect/INVALID_ADDRESS")
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	DAT_EP_HANDLE ep = fresh_ep(n);

	FAILS(connect_as(ep, &address, 1, 1000, 0, NULL), DAT_INVALID_ADDRESS);
	FAILS(connect_as(ep, NULL, 1, 1000, 0, NULL), DAT_INVALID_ADDRESS);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_ep_connect/INVALID_PARAMETER")
{
	static char data[4096];
	DAT_COUNT most = n->prov.max_private_data_size;
	DAT_EP_HANDLE ep = fresh_ep(n);

	CHECK(most < (DAT_COUNT)sizeof(data), "%d", most);
	FAILS(connect_as(ep, &n->address, 0, 1000, 0, NULL), DAT_INVALID_PARAMETER);
	FAILS(connect_as(ep, &n->address, 1, 0, 0, NULL), DAT_INVALID_PARAMETER);
	FAILS(connect_as(ep, &n->address, 1, 1000, 1, NULL), DAT_INVALID_PARAMETER);
	FAILS(connect_as(ep, &n->address, 1, 1000, -1, data), DAT_INVALID_PARAMETER);
	FAILS(connect_as(ep, &n->address, 1, 1000, most + 1, data), DAT_INVALID_PARAMETER);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_ep_connect/MODEL_NOT_SUPPORTED/several paths")
{
	DAT_EP_HANDLE ep = fresh_ep(n);

	if (n->prov.supports_multipath)
		skip("supports_multipath is true");
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&n->address, 1, 1000, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_MULTIPATH_FLAG), DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_ep_connect/MODEL_NOT_SUPPORTED/quality of service")
{
	static const DAT_QOS all[] = {
		DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY, DAT_QOS_PREMIUM,
	};
	DAT_EP_HANDLE ep = fresh_ep(n);
	size_t q;

	for (q = 0; q < COUNT(all); q++)
		if (!(n->prov.dat_qos_supported & all[q]))
			FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&n->address, 1, 1000, 0, NULL,
					     all[q], DAT_CONNECT_DEFAULT_FLAG),
			      DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_ep_connect/INVALID_STATE/no PZ or no EVD of connections")
{
	DAT_EP_HANDLE no_pz, no_evd;
	DAT_RETURN ret;

	OK(dat_ep_create(n->ia, DAT_HANDLE_NULL, n->recv, n->req, n->conn, NULL, &no_pz));
	OK(dat_ep_create(n->ia, n->pz, n->recv, n->req, DAT_HANDLE_NULL, NULL, &no_evd));
	ret = connect_as(no_pz, &n->address, 1, 1000, 0, NULL);
	FAILS(ret, DAT_INVALID_STATE);
	SAME(DAT_GET_SUBTYPE(ret), DAT_INVALID_STATE_EP_NOTREADY);
	ret = connect_as(no_evd, &n->address, 1, 1000, 0, NULL);
	FAILS(ret, DAT_INVALID_STATE);
	SAME(DAT_GET_SUBTYPE(ret), DAT_INVALID_STATE_EP_NOTREADY);
}

/* Outcomes */

CLAUSE("dat_ep_connect/ESTABLISHED")
{
	DAT_EP_PARAM param;
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_CONNECTED);
	SAME(ep_state(c.b.ep), DAT_EP_STATE_CONNECTED);
	OK(dat_ep_query(c.a.ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.remote_port_qual, c.qual);
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
	OK(dat_ep_query(c.b.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.remote_port_qual && param.remote_ia_address_ptr, "no peer");
}

CLAUSE("dat_ep_connect/PEER_REJECTED")
{
	struct call c;

	OK(cr_reject(call_make(n, &c), 0, NULL));
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, c.a.ep);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/nobody listens")
{
	struct call c;

	call_open(n, &c);
	end_connect(n, &c.a, fresh_qualifier());
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.a.ep);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/the EVD of requests is full")
{
	DAT_EVD_HANDLE evd = node_evd(n, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	struct end a;

	NEEDS_PROVIDER(evd_stream_merging_supported[0][1]);
	end_open(n, &a, NULL);
	while (post_se(evd, 1) == DAT_SUCCESS)
		;
	OK(dat_psp_create_any(n->ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	end_connect(n, &a, qual);
	expect_conn(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	/* which the IA's owner may want to know */
	expect_event(n->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, &event);
	CHECK(event.event_data.asynch_error_event_data.dat_handle == evd, "of another EVD");
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/the service point is freed")
{
	struct call c;

	call_open(n, &c);
	OK(dat_psp_free(c.psp));
	end_connect(n, &c.a, c.qual);
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.a.ep);
}

/* Multicast: nobody connects there, however the routes are. */
CLAUSE("dat_ep_connect/UNREACHABLE")
{
	struct sockaddr_storage address = { .ss_family = n->address.ss_family };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct end a;

	end_open(n, &a, NULL);
	if (n->address.ss_family == AF_INET)
		((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(0xe0000001);
	else
		in6->sin6_addr.s6_addr[0] = 0xff, in6->sin6_addr.s6_addr[1] = 5;
	OK(connect_as(a.ep, &address, 45248, pair_scaled(PAIR_LIMIT) * 1000, 0, NULL));
	expect_conn(a.conn, DAT_CONNECTION_EVENT_UNREACHABLE, a.ep);
	SAME(ep_state(a.ep), DAT_EP_STATE_DISCONNECTED);
}

#define SHORT_MS 60

CLAUSE("dat_ep_connect/TIMED_OUT")
{
	int64_t start = pair_now();
	struct call c;

	call_open(n, &c);
	OK(connect_as(c.a.ep, &n->address, c.qual, pair_scaled(SHORT_MS) * 1000, 0, NULL));
	node_request(n);	/* and nobody answers it */
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_TIMED_OUT, c.a.ep);
	CHECK(pair_now() - start >= pair_scaled(SHORT_MS) * 1000, "too early");
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

/* The time is for the attempt alone. */
CLAUSE("dat_ep_connect/ESTABLISHED/longer than the time-out")
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct call c;

	call_open(n, &c);
	OK(connect_as(c.a.ep, &n->address, c.qual, pair_scaled(SHORT_MS) * 1000, 0, NULL));
	OK(dat_cr_accept(node_request(n), c.b.ep, 0, NULL));
	expect_established(&c);
	FAILS(dat_evd_wait(c.a.conn, pair_scaled(2 * SHORT_MS) * 1000, 1, &event, &more),
	      DAT_TIMEOUT_EXPIRED);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_CONNECTED);
}

static void requester_vanishes(struct node *n, bool freed)
{
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);
	struct node passive;

	memcpy(&passive, n, sizeof(passive));	/* a member is const */
	if (freed)
		OK(dat_ep_free(c.a.ep));
	else
		OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	if (!freed)
		expect_conn(c.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c.a.ep);
	passive.conn = c.b.conn;
	accept_in_vain(&passive, cr, c.b.ep);
}

CLAUSE("dat_cr_accept/ACCEPT_COMPLETION_ERROR/the requester gave up")
{
	requester_vanishes(n, false);
}

CLAUSE("dat_cr_accept/ACCEPT_COMPLETION_ERROR/the requester is freed")
{
	requester_vanishes(n, true);
}

CLAUSE("dat_cr_reject/SUCCESS/the requester is gone")
{
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	OK(dat_ep_free(c.a.ep));
	OK(cr_reject(cr, 0, NULL));
	FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
}

/* Private data */

/* Sizes: nothing, a byte, an odd number, all there can be. */
static DAT_COUNT size_of(struct node *n, unsigned i)
{
	const DAT_COUNT sizes[] = { 0, 1, 33, n->prov.max_private_data_size };

	return sizes[i];
}

#define N_SIZES 4

static const char *const size_names[N_SIZES] = { "none", "a byte", "33 bytes", "the most" };

static void name_private(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_connect/ESTABLISHED/private data, %s", size_names[i]);
}

static struct place place_of(struct node *n, DAT_CONN_QUAL qual)
{
	return (struct place){ .address = n->address, .qual = qual };
}

FAMILY(N_SIZES, name_private)
{
	DAT_COUNT size = size_of(n, i);
	unsigned char data[4096];
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	struct place place;
	DAT_EVENT event;
	struct call c;

	CHECK(size < (DAT_COUNT)sizeof(data) && n->prov.max_private_data_size >= 64, "%d", size);
	call_open(n, &c);
	place = place_of(n, c.qual);
	fill(data, size, 1);
	connect_with(c.a.ep, &place, pair_scaled(PAIR_LIMIT), size, data);
	memset(data, 0, sizeof(data));		/* it was copied */
	cr = node_request(n);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, size, 1);
	if (size)	/* programs write there */
		memset(param.private_data, 0, size);
	fill(data, size, 2);
	OK(dat_cr_accept(cr, c.b.ep, size, data));
	memset(data, 0, sizeof(data));
	expect_event(c.a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	check_data(event.event_data.connect_event_data.private_data_size,
		   event.event_data.connect_event_data.private_data, size, 2);
	expect_event(c.b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	SAME(event.event_data.connect_event_data.private_data_size, 0);
}

#if DAT_VERSION_MAJOR >= 2
static void name_rejected(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_cr_reject/PEER_REJECTED/private data, %s", size_names[i]);
}

FAMILY(N_SIZES, name_rejected)
{
	DAT_COUNT size = size_of(n, i);
	unsigned char data[4096];
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct call c;

	cr = call_make(n, &c);
	fill(data, size, 3);
	OK(dat_cr_reject(cr, size, data));
	expect_event(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	check_data(event.event_data.connect_event_data.private_data_size,
		   event.event_data.connect_event_data.private_data, size, 3);
}

CLAUSE("dat_cr_reject/INVALID_PARAMETER/private data")
{
	static unsigned char data[4096];
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	FAILS(dat_cr_reject(cr, n->prov.max_private_data_size + 1, data), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_reject(cr, 8, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_reject(cr, -1, data), DAT_INVALID_PARAMETER);
	OK(dat_cr_reject(cr, 0, NULL));		/* the request is still there */
}
#endif

CLAUSE("dat_cr_accept/INVALID_PARAMETER/private data")
{
	static unsigned char data[4096];
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	FAILS(dat_cr_accept(cr, c.b.ep, n->prov.max_private_data_size + 1, data),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_cr_accept(cr, c.b.ep, 8, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_accept(cr, c.b.ep, -1, data), DAT_INVALID_PARAMETER);
	SAME(ep_state(c.b.ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

/* Qualifiers: all 64 bits count */

static const DAT_CONN_QUAL qualifiers[] = {
	UINT64_C(0xaffab1e), UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX,
};

static void name_qualifier(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_psp_create/SUCCESS/qualifier %#llx", (unsigned long long)qualifiers[i]);
}

FAMILY(COUNT(qualifiers), name_qualifier)
{
	DAT_CONN_QUAL qual = qualifiers[i];
	DAT_PSP_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret;
	DAT_EVENT event;
	struct end a;

	ret = dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		skip("somebody else on this machine listens there");
	OK(ret);
	OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CHECK(param.conn_qual == qual, "%#llx", (unsigned long long)param.conn_qual);
	end_open(n, &a, NULL);
	end_connect(n, &a, qual);
	expect_event(n->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.conn_qual == qual, "another qualifier");
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == psp, "another PSP");
	OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	expect_conn(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, a.ep);
	/* the same but for one bit is another */
	OK(dat_ep_reset(a.ep));
	end_connect(n, &a, qual ^ UINT64_C(1) << 40);
	expect_conn(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
}

CLAUSE("dat_psp_create/CONN_QUAL_IN_USE")
{
	DAT_CONN_QUAL qual = fresh_qualifier();
	DAT_PSP_HANDLE psp, second;
	DAT_RSP_HANDLE rsp;

	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	FAILS(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &second), DAT_CONN_QUAL_IN_USE);
	FAILS(dat_rsp_create(n->ia, qual, fresh_ep(n), n->cr, &rsp), DAT_CONN_QUAL_IN_USE);
	OK(dat_psp_free(psp));
	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
}

/* The end of a connection: one event on each side */

enum ending { BY_A, BY_B, BY_BOTH, BY_FREE, N_ENDINGS };

static const char *const ending_names[N_ENDINGS] = {
	"by the side that connected", "by the side that accepted", "by both", "by dat_ep_free",
};

static void name_ending(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_disconnect/DISCONNECTED/%s, %s", ending_names[i / 2],
		 i % 2 ? "gracefully" : "abruptly");
}

FAMILY(2 * N_ENDINGS, name_ending)
{
	DAT_CLOSE_FLAGS flags = i % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;
	enum ending ending = (enum ending)(i / 2);
	struct couple c;

	couple_open(n, &c);
	if (ending == BY_A || ending == BY_BOTH)
		OK(dat_ep_disconnect(c.a.ep, flags));
	if (ending == BY_B || ending == BY_BOTH)
		OK(dat_ep_disconnect(c.b.ep, flags));
	if (ending == BY_FREE)
		OK(dat_ep_free(c.a.ep));
	else
		SAME(expect_end(c.a.conn, c.a.ep), DAT_CONNECTION_EVENT_DISCONNECTED);
	SAME(expect_end(c.b.conn, c.b.ep), DAT_CONNECTION_EVENT_DISCONNECTED);
	if (ending == BY_FREE)
		SAME(drain(c.a.conn), 0);
	/* and no more by asking again */
	OK(dat_ep_disconnect(c.b.ep, flags));
	SAME(drain(c.b.conn), 0);
}

/* An EP serves one connection after another. */
CLAUSE("dat_ep_reset/SUCCESS/another connection")
{
	struct couple c;
	unsigned round;

	couple_make(n, &c, NULL, NULL);
	for (round = 0; round < 3; round++) {
		couple_connect(n, &c);
		post_recv(c.b.ep, &c.m, 0, 64, 1);
		post_send(c.a.ep, &c.m, 1024, 64, 2);
		expect_dto(c.a.req, 2, DAT_DTO_SUCCESS, 64);
		expect_dto(c.b.recv, 1, DAT_DTO_SUCCESS, 64);
		couple_part(&c, round % 2 ? &c.a : &c.b);
		OK(dat_ep_reset(c.a.ep));
		OK(dat_ep_reset(c.b.ep));
	}
}

/* dat_ep_dup_connect */

CLAUSE("dat_ep_dup_connect/ESTABLISHED")
{
	DAT_EP_PARAM first, second;
	struct call c, again;
	DAT_CR_HANDLE cr;

	cr = call_make(n, &c);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
	end_open(n, &again.a, NULL);
	end_open(n, &again.b, NULL);
	OK(dat_ep_dup_connect(again.a.ep, c.a.ep, pair_scaled(PAIR_LIMIT) * 1000, 0, NULL,
			      DAT_QOS_BEST_EFFORT));
	OK(dat_cr_accept(node_request(n), again.b.ep, 0, NULL));
	expect_established(&again);
	OK(dat_ep_query(c.a.ep, DAT_EP_FIELD_ALL, &first));
	OK(dat_ep_query(again.a.ep, DAT_EP_FIELD_ALL, &second));
	SAME(first.remote_port_qual, second.remote_port_qual);
}

CLAUSE("dat_ep_dup_connect/INVALID_PARAMETER")
{
	static char data[4096];
	struct end other;
	struct couple c;

	couple_open(n, &c);
	end_open(n, &other, NULL);
	FAILS(dat_ep_dup_connect(other.ep, c.a.ep, 0, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, c.a.ep, 1000, 1, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, c.a.ep, 1000, n->prov.max_private_data_size + 1, data,
				 DAT_QOS_BEST_EFFORT), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, DAT_HANDLE_NULL, 1000, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_HANDLE);
}

CLAUSE("dat_ep_dup_connect/MODEL_NOT_SUPPORTED")
{
	struct end other;
	struct couple c;

	if (n->prov.dat_qos_supported & DAT_QOS_PREMIUM)
		skip("dat_qos_supported is %#x", n->prov.dat_qos_supported);
	couple_open(n, &c);
	end_open(n, &other, NULL);
	FAILS(dat_ep_dup_connect(other.ep, c.a.ep, 1000, 0, NULL, DAT_QOS_PREMIUM),
	      DAT_MODEL_NOT_SUPPORTED);
}

/* Requests */

CLAUSE("dat_cr_query/SUCCESS/consumer's PSP")
{
	DAT_CR_PARAM param;
	struct call c;

	OK(dat_cr_query(call_make(n, &c), DAT_CR_FIELD_ALL, &param));
	CHECK(!param.local_ep_handle, "nobody named one");
	CHECK(param.remote_port_qual, "no port");
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
}

CLAUSE("dat_cr_query/INVALID_PARAMETER")
{
	DAT_CR_PARAM param;
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	FAILS(dat_cr_query(cr, (DAT_CR_PARAM_MASK)0x20, &param), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
}

/* A request is answered once. */
CLAUSE("dat_cr_accept/INVALID_HANDLE/the CR is gone")
{
	DAT_CR_PARAM param;
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

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
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);
	DAT_EP_HANDLE foreign;

	node_open(&other);
	foreign = node_ep(&other, NULL);
	FAILS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_cr_accept(cr, foreign, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_cr_accept(cr, n->recv, 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_ep_free(foreign));
	node_close(&other);
}

CLAUSE("dat_cr_accept/INVALID_STATE/no PZ or no EVD of connections")
{
	DAT_EP_HANDLE no_pz, no_evd;
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);
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

/* What was delivered can be answered after the service point is gone. */
CLAUSE("dat_psp_free/SUCCESS/requests that have arrived stay")
{
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

	OK(dat_psp_free(c.psp));
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

/* Handing a request on */

CLAUSE("dat_cr_handoff/SUCCESS")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL qual = fresh_qualifier();
	DAT_PSP_HANDLE second;
	unsigned char data[16];
	struct place place;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct call c;

	call_open(n, &c);
	place = place_of(n, c.qual);
	fill(data, sizeof(data), 5);
	connect_with(c.a.ep, &place, pair_scaled(PAIR_LIMIT), sizeof(data), data);
	cr = node_request(n);
	OK(dat_psp_create(n->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &second));
	OK(dat_cr_handoff(cr, qual));
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	expect_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == second, "another PSP");
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, sizeof(data), 5);
	OK(dat_cr_accept(cr, c.b.ep, 0, NULL));
	expect_established(&c);
}

CLAUSE("dat_cr_handoff/INVALID_PARAMETER")
{
	struct call c;
	DAT_CR_HANDLE cr = call_make(n, &c);

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
	CHECK(param.local_ep_handle == s.e.ep, "another EP");
	/* no other EP can take it */
	FAILS(dat_cr_accept(s.cr, fresh_ep(n), 0, NULL), DAT_INVALID_HANDLE);
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
	/* and what it was given is free */
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

CLAUSE("dat_cr_accept/INVALID_STATE/TENTATIVE_CONNECTION_PENDING, nothing given")
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
	      "not what it was made with");
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
	struct call c;
	size_t k;

	call_open(n, &c);
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
