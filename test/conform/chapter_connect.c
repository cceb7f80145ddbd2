/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connecting: every outcome, private data, qualifiers, disconnecting, duplicates. */

#include "stage.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

CHAPTER("connect");

static DAT_RETURN connect_as(DAT_EP_HANDLE ep, const void *address, DAT_CONN_QUAL qual,
			     DAT_TIMEOUT timeout, DAT_COUNT size, const void *data)
{
	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)address, qual, timeout, size,
			      (const DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* dat_ep_connect: arguments */

CLAUSE("dat_ep_connect/INVALID_ADDRESS")
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	FAILS(connect_as(ep, &address, 1, 1000, 0, NULL), DAT_INVALID_ADDRESS);
	FAILS(connect_as(ep, NULL, 1, 1000, 0, NULL), DAT_INVALID_ADDRESS);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_ep_connect/INVALID_PARAMETER")
{
	static char data[4096];
	DAT_COUNT most = n->prov.max_private_data_size;
	DAT_EP_HANDLE ep = node_ep(n, NULL);

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
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	if (n->prov.supports_multipath)
		skip("supports_multipath is true");
	FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&n->address, 1, 1000, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_MULTIPATH_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_ep_connect/MODEL_NOT_SUPPORTED/quality of service")
{
	static const DAT_QOS all[] = {
		DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY, DAT_QOS_PREMIUM,
		(DAT_QOS)0x1000,
	};
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	size_t q;

	for (q = 0; q < COUNT(all); q++)
		if (!(n->prov.dat_qos_supported & all[q]))
			FAILS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&n->address, 1, 1000, 0, NULL,
					     all[q], DAT_CONNECT_DEFAULT_FLAG),
			      DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_ep_connect/INVALID_STATE/no PZ or no connect EVD")
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
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

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

static DAT_PORT_QUAL local_port(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param.local_port_qual;
}

CLAUSE("dat_ep_connect/SUCCESS/the EP reports the port that its peer sees")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL), other = node_ep(n, NULL);
	DAT_CONN_QUAL qual;
	DAT_PORT_QUAL port;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	node_listen(n, &qual);
	SAME(local_port(ep), 0);
	OK(connect_as(ep, &n->address, qual, pair_scaled(PAIR_LIMIT) * 1000, 0, NULL));
	port = local_port(ep);
	SAME(ep_state(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	cr = node_request(n);
	/* RDMA's connection manager has no port before it has resolved the peer */
	if (node_is_on_verbs(n))
		port = local_port(ep);
	CHECK(port, "no port");
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	SAME(param.remote_port_qual, port);
	OK(dat_cr_accept(cr, other, 0, NULL));
	expect_event(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &(DAT_EVENT){ .event_number = 0 });
	expect_event(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &(DAT_EVENT){ .event_number = 0 });
	SAME(local_port(ep), port);
	SAME(local_port(other), qual);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_event(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, &(DAT_EVENT){ .event_number = 0 });
	expect_event(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, &(DAT_EVENT){ .event_number = 0 });
	OK(dat_ep_reset(ep));
	SAME(local_port(ep), 0);
}

CLAUSE("dat_ep_connect/PEER_REJECTED")
{
	struct attempt c;

	OK(cr_reject(attempt_start(n, &c), 0, NULL));
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, c.a.ep);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/no listener")
{
	struct attempt c;

	attempt_open(n, &c);
	end_connect(n, &c.a, fresh_qualifier());
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.a.ep);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/the connection request EVD is full")
{
	DAT_EVD_HANDLE evd = node_evd(n, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct end a;

	NEEDS_PROVIDER(evd_stream_merging_supported[0][1]);
	end_open(n, &a, NULL);
	while (post_se(evd, 1) == DAT_SUCCESS)
		;
	OK(dat_psp_create_any(n->ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	end_connect(n, &a, qual);
	expect_conn(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	/* no event was lost */
	SAME(drain(n->async), 0);
}

CLAUSE("dat_ep_connect/NON_PEER_REJECTED/the service point is freed")
{
	struct attempt c;

	attempt_open(n, &c);
	OK(dat_psp_free(c.psp));
	end_connect(n, &c.a, c.qual);
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.a.ep);
}

/* A multicast address cannot be connected to, whatever the routes. */
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

/* The request is not answered. */
CLAUSE("dat_ep_connect/TIMED_OUT")
{
	int64_t start = pair_now();
	struct attempt c;

	attempt_open(n, &c);
	OK(connect_as(c.a.ep, &n->address, c.qual, pair_scaled(SHORT_MS) * 1000, 0, NULL));
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_TIMED_OUT, c.a.ep);
	CHECK(pair_now() - start >= pair_scaled(SHORT_MS) * 1000, "the time-out was too early");
	SAME(ep_state(c.a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(c.a.conn);
}

/* Connects within @ms, or finds that connecting took longer. */
static bool connects_within(struct node *n, struct attempt *c, unsigned ms)
{
	DAT_EVENT event;
	DAT_COUNT more;

	attempt_open(n, c);
	OK(connect_as(c->a.ep, &n->address, c->qual, ms * 1000, 0, NULL));
	OK(dat_cr_accept(node_request(n), c->b.ep, 0, NULL));
	OK(dat_evd_wait(c->a.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	return event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
}

/* The time-out limits the attempt only. */
CLAUSE("dat_ep_connect/ESTABLISHED/the connection outlasts the time-out")
{
	unsigned ms = SHORT_MS;
	DAT_EVENT event;
	DAT_COUNT more;
	struct attempt c;

	for (; !connects_within(n, &c, ms); ms *= 2)	/* longer on a busy machine */
		CHECK(ms < pair_scaled(PAIR_LIMIT), "no connection in %u ms", ms);
	FAILS(dat_evd_wait(c.a.conn, 2 * ms * 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	SAME(ep_state(c.a.ep), DAT_EP_STATE_CONNECTED);
}

static void requester_vanishes(struct node *n, bool freed)
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);
	struct node passive;

	memcpy(&passive, n, sizeof(passive));	/* memcpy(), because a member is const */
	if (freed)
		OK(dat_ep_free(c.a.ep));
	else
		OK(dat_ep_disconnect(c.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	if (!freed)
		expect_conn(c.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c.a.ep);
	passive.conn = c.b.conn;
	accept_gone(&passive, cr, c.b.ep);
}

CLAUSE("dat_cr_accept/ACCEPT_COMPLETION_ERROR/the requester disconnected")
{
	requester_vanishes(n, false);
}

CLAUSE("dat_cr_accept/ACCEPT_COMPLETION_ERROR/the requester is freed")
{
	requester_vanishes(n, true);
}

CLAUSE("dat_cr_reject/SUCCESS/the requester is gone")
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	OK(dat_ep_free(c.a.ep));
	OK(cr_reject(cr, 0, NULL));
	FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
}

/* Private data */

/* Sizes: zero, one byte, an odd number, the maximum. */
static DAT_COUNT size_of(struct node *n, unsigned i)
{
	const DAT_COUNT sizes[] = { 0, 1, 33, n->prov.max_private_data_size };

	return sizes[i];
}

#define N_SIZES 4

static const char *const size_names[N_SIZES] = { "none", "1 byte", "33 bytes", "the maximum" };

static void name_private(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_connect/ESTABLISHED/private data, %s", size_names[i]);
}

FAMILY(N_SIZES, name_private)
{
	DAT_COUNT size = size_of(n, i);
	unsigned char data[4096];
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	struct listener listener;
	DAT_EVENT event;
	struct attempt c;

	CHECK(size < (DAT_COUNT)sizeof(data) && n->prov.max_private_data_size >= node_least_data(n),
	      "%d", size);
	attempt_open(n, &c);
	listener = listener_of(n, c.qual);
	fill(data, size, 1);
	connect_with(c.a.ep, &listener, pair_scaled(PAIR_LIMIT), size, data);
	memset(data, 0, sizeof(data));		/* the data was copied */
	cr = node_request(n);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, size, 1);
	if (size)	/* programs may write to private data */
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
	struct attempt c;

	cr = attempt_start(n, &c);
	fill(data, size, 3);
	OK(dat_cr_reject(cr, size, data));
	expect_event(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	check_data(event.event_data.connect_event_data.private_data_size,
		   event.event_data.connect_event_data.private_data, size, 3);
}

CLAUSE("dat_cr_reject/INVALID_PARAMETER/private data")
{
	static unsigned char data[4096];
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	FAILS(dat_cr_reject(cr, n->prov.max_private_data_size + 1, data), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_reject(cr, 8, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_reject(cr, -1, data), DAT_INVALID_PARAMETER);
	OK(dat_cr_reject(cr, 0, NULL));		/* the request is still pending */
}
#endif

CLAUSE("dat_cr_accept/INVALID_PARAMETER/private data")
{
	static unsigned char data[4096];
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

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
	snprintf(name, size, "dat_psp_create/SUCCESS/qualifier %#llx",
		 (unsigned long long)qualifiers[i]);
}

FAMILY(COUNT(qualifiers), name_qualifier)
{
	DAT_CONN_QUAL qual = qualifiers[i];
	DAT_PSP_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret;
	DAT_EVENT event;
	struct end a;
	int lock;

	lock = pair_lock_qualifiers();
	ret = dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		skip("the qualifier is in use on this machine");
	OK(ret);
	OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CHECK(param.conn_qual == qual, "%#llx", (unsigned long long)param.conn_qual);
	end_open(n, &a, NULL);
	end_connect(n, &a, qual);
	expect_event(n->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.conn_qual == qual, "wrong qualifier");
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == psp, "wrong PSP");
	OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	expect_conn(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, a.ep);
	/* a qualifier that differs in one bit is another one */
	OK(dat_ep_reset(a.ep));
	end_connect(n, &a, qual ^ UINT64_C(1) << 40);
	expect_conn(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	close(lock);
}

CLAUSE("dat_psp_create/CONN_QUAL_IN_USE")
{
	DAT_CONN_QUAL qual = fresh_qualifier();
	DAT_PSP_HANDLE psp, second;
	DAT_RSP_HANDLE rsp;

	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	FAILS(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &second),
	      DAT_CONN_QUAL_IN_USE);
	FAILS(dat_rsp_create(n->ia, qual, node_ep(n, NULL), n->cr, &rsp), DAT_CONN_QUAL_IN_USE);
	OK(dat_psp_free(psp));
	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
}

/* The end of a connection: one event for each end */

enum ending { BY_A, BY_B, BY_BOTH, BY_FREE, N_ENDINGS };

static const char *const ending_names[N_ENDINGS] = {
	"by the active side",
	"by the passive side",
	"by both sides",
	"by dat_ep_free",
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
	/* disconnecting again adds no event */
	OK(dat_ep_disconnect(c.b.ep, flags));
	SAME(drain(c.b.conn), 0);
}

/* An EP serves several connections, one after the other. */
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
		couple_disconnect(&c, round % 2 ? &c.a : &c.b);
		OK(dat_ep_reset(c.a.ep));
		OK(dat_ep_reset(c.b.ep));
	}
}

/* dat_ep_dup_connect */

CLAUSE("dat_ep_dup_connect/ESTABLISHED")
{
	DAT_EP_PARAM first, second;
	struct attempt c, again;
	DAT_CR_HANDLE cr;

	cr = attempt_start(n, &c);
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

COUPLED("dat_ep_dup_connect/INVALID_PARAMETER")
{
	static char data[4096];
	struct end other;

	end_open(n, &other, NULL);
	FAILS(dat_ep_dup_connect(other.ep, c->a.ep, 0, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, c->a.ep, 1000, 1, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, c->a.ep, 1000, n->prov.max_private_data_size + 1, data,
				 DAT_QOS_BEST_EFFORT), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_dup_connect(other.ep, DAT_HANDLE_NULL, 1000, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_HANDLE);
}

COUPLED("dat_ep_dup_connect/MODEL_NOT_SUPPORTED")
{
	struct end other;

	end_open(n, &other, NULL);
	FAILS(dat_ep_dup_connect(other.ep, c->a.ep, 1000, 0, NULL, (DAT_QOS)0x1000),
	      DAT_MODEL_NOT_SUPPORTED);
}
