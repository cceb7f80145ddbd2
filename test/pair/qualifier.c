/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Qualifiers of service points, and connections to them from programs that are not DAT peers. */

#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Qualifiers */

/* Not a qualifier that a well-known program uses: 45248 is dtest's. */
static const DAT_CONN_QUAL quals[] = {
	1, 80, 1023, 45197, 65535, 0xAFFAB1E, UINT64_C(1) << 40, UINT64_MAX, 65536, 65536 + 45197,
};
#define N_QUALS (sizeof(quals) / sizeof(quals[0]))

/* Returns false if another program has the port, which is no failure of the provider. */
static bool listen_to(struct node *n, DAT_CONN_QUAL qual, DAT_PSP_HANDLE *psp)
{
	DAT_RETURN ret = dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, psp);

	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE && qual <= UINT16_MAX) {
		pair_note("qualifier %llu is in use by another program", (unsigned long long)qual);
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

	pair_lock_qualifiers();
	node_open(&n);
	for (i = 0; i < N_QUALS; i++) {
		bool listening = listen_to(&n, quals[i], &psp[i]);

		pair_send_listener(p, &n, listening ? quals[i] : 0);
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
	struct listener listener[N_QUALS];
	struct node n;
	size_t i;

	node_open(&n);
	for (i = 0; i < N_QUALS; i++)
		pair_recv_listener(p, &listener[i]);
	for (i = 0; i < N_QUALS; i++) {
		DAT_EP_HANDLE ep;

		if (!listener[i].qual)
			continue;
		ep = node_ep(&n, NULL);
		ep_connect(ep, &listener[i]);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		check_peer(&n, ep, &listener[i]);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	node_close(&n);
}

/* Enough large qualifiers for some of them to share a port. */
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
		OK(dat_psp_create(n.ia, mapped_qual(getpid(), i), n.cr, DAT_PSP_CONSUMER_FLAG,
				  &psp[i]));
	pair_send_listener(p, &n, 1);
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
	struct listener listener;
	struct node n;
	unsigned i;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_MAPPED; i++) {
		listener.qual = mapped_qual(p->peer, i);
		ep_connect(n.ep, &listener);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, n.ep);
		OK(dat_ep_reset(n.ep));
	}
	node_end(&n);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

/*
 * The provider ignores the port in a socket address: the qualifier alone selects the service
 * point.
 */
static void port_server(struct pair *p)
{
	DAT_CONN_QUAL qual, other;
	DAT_PSP_HANDLE psp, other_psp;
	struct node n;
	unsigned i;

	node_open(&n);
	psp = node_listen(&n, &qual);
	other_psp = node_listen(&n, &other);
	pair_send_listener(p, &n, qual);
	pair_send_listener(p, &n, other);
	for (i = 0; i < 3; i++) {
		DAT_EVENT event;

		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		SAME(event.event_data.cr_arrival_event_data.conn_qual, qual);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
		pair_sync(p);	/* see any_server() */
	}
	OK(dat_psp_free(psp));
	OK(dat_psp_free(other_psp));
	node_close(&n);
}

static void port_client(struct pair *p)
{
	struct listener listener, other;
	uint16_t ports[3] = { 0, 1, 0 };
	struct node n;
	unsigned i;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	pair_recv_listener(p, &other);
	ports[2] = other.qual;
	for (i = 0; i < 3; i++) {
		set_port(&listener.address, ports[i]);
		connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_PEER_REJECTED);
		pair_sync(p);
		OK(dat_ep_reset(n.ep));
	}
	node_end(&n);
}

/*
 * An IA refuses a qualifier that it has in use; a qualifier that is a port is refused to every
 * IA.
 */
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
	FAILS(dat_psp_create(n.ia, large, n.cr, DAT_PSP_CONSUMER_FLAG, &again),
	      DAT_CONN_QUAL_IN_USE);
	FAILS(dat_psp_create(second.ia, any, second.cr, DAT_PSP_CONSUMER_FLAG, &again),
	      DAT_CONN_QUAL_IN_USE);
	pair_send_listener(p, &n, any);
	pair_sync(p);	/* the client has tried it */
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
	struct listener listener;
	struct node n;

	node_open(&n);
	pair_recv_listener(p, &listener);
	FAILS(dat_psp_create(n.ia, listener.qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp),
	      DAT_CONN_QUAL_IN_USE);
	pair_sync(p);
	pair_sync(p);
	OK(dat_psp_create(n.ia, listener.qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp));
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
			CHECK(qual[i] != qual[j], "qualifier %llu was returned twice",
			      (unsigned long long)qual[i]);
		OK(dat_psp_query(psp[i], DAT_PSP_FIELD_ALL, &param));
		SAME(param.conn_qual, qual[i]);
		CHECK(param.evd_handle == n.cr && param.ia_handle == n.ia, "wrong EVD or IA");
	}
	for (i = 0; i < N_ANY; i++) {
		DAT_EVENT event;

		pair_send_listener(p, &n, qual[i]);
		expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
		check_cr(&n, &event, psp[i], qual[i], 0, 0);
		OK(cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
		/* closing the listener of sockets drops its unsent data */
		pair_sync(p);
		OK(dat_psp_free(psp[i]));
	}
	node_close(&n);
}

static void any_client(struct pair *p)
{
	struct listener listener;
	struct node n;
	unsigned i;

	node_begin(&n, 0);
	for (i = 0; i < N_ANY; i++) {
		pair_recv_listener(p, &listener);
		ep_connect(n.ep, &listener);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, n.ep);
		pair_sync(p);
		OK(dat_ep_reset(n.ep));
	}
	node_end(&n);
}

/* IPv6 */

/* Whether this host has ::1, and an IPv6 socket may serve IPv4, too. */
static bool has_both_families(void)
{
	const struct sockaddr_in6 loopback = { .sin6_family = AF_INET6,
					       .sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), v6only = 1;
	socklen_t len = sizeof(v6only);
	bool both;

	if (fd < 0)
		return false;
	both = !getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len) && !v6only &&
	       !bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback));
	close(fd);
	return both;
}

static void needs_both_families(const struct node *n)
{
	if (!pair_fabric_is("tcp"))
		pair_skip("this fabric listens only to the address family of the IA");
	if (n->address.ss_family != AF_INET)
		pair_skip("the IA has an IPv6 address");
	if (!has_both_families())
		pair_skip("this host has no ::1, or separates IPv4 and IPv6");
}

/*
 * The client connects through ::1, then through the IA's own address. The CR has the client's
 * address in that family.
 */
static void families_server(struct pair *p)
{
	static const int families[] = { AF_INET6, AF_INET };
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct node n;
	size_t i;

	node_open(&n);
	needs_both_families(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < 2; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);
		DAT_CR_HANDLE cr = node_request(&n);
		const struct sockaddr_in6 *peer;
		DAT_CR_PARAM param;

		OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		peer = (const struct sockaddr_in6 *)param.remote_ia_address_ptr;
		SAME(peer->sin6_family, families[i]);
		CHECK(peer->sin6_family == AF_INET || IN6_IS_ADDR_LOOPBACK(&peer->sin6_addr),
		      "wrong peer");
		OK(dat_cr_accept(cr, ep, 0, NULL));
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void families_client(struct pair *p)
{
	const struct sockaddr_in6 loopback = { .sin6_family = AF_INET6,
					       .sin6_addr = in6addr_loopback };
	struct listener listener, by_ipv6;
	struct node n;
	int i;

	node_open(&n);
	needs_both_families(&n);
	pair_recv_listener(p, &listener);
	by_ipv6 = listener;
	memcpy(&by_ipv6.address, &loopback, sizeof(loopback));
	for (i = 0; i < 2; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		ep_connect(ep, i ? &listener : &by_ipv6);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	node_close(&n);
}

/* Programs that are not DAT peers */

#define FOREIGN_MS 300

static socklen_t address_length(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

static const char junk[] = "\x16\x03\x01\xff\xff I am no DAT provider, and this is no header.";
static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";

enum foreign { CLOSES, SENDS_AND_CLOSES, SENDS, ANSWERS_HTTP, FLOODS, N_FOREIGN };

static void foreign_behave(int fd, enum foreign how)
{
	static char flood[1 << 16];

	if (how == SENDS_AND_CLOSES || how == SENDS)
		(void)!send(fd, junk, sizeof(junk), MSG_NOSIGNAL);
	if (how == ANSWERS_HTTP)
		(void)!send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
	if (how == FLOODS) {
		memset(flood, 0xff, sizeof(flood));
		(void)!send(fd, flood, sizeof(flood), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	/* sockets waits without limit for an answer, in fi_close() too (libfabric 1.17) */
	if (how == CLOSES || how == SENDS_AND_CLOSES || pair_fabric_is("sockets"))
		shutdown(fd, SHUT_RDWR);
}

/* Foreign programs; foreign.c has the ones of other fabrics */

/* A TCP server without DAT. */
static void foreign_listener_server(struct pair *p)
{
	struct listener listener;
	socklen_t len;
	int sock, i;

	pair_recv_listener(p, &listener);
	len = address_length(&listener.address);
	sock = socket(listener.address.ss_family, SOCK_STREAM, 0);
	set_port(&listener.address, 0);
	CHECK(!bind(sock, (struct sockaddr *)&listener.address, len), "%s", strerror(errno));
	CHECK(!listen(sock, 8), "%s", strerror(errno));
	CHECK(!getsockname(sock, (struct sockaddr *)&listener.address, &len), "%s",
	      strerror(errno));
	listener.qual = ntohs(((struct sockaddr_in *)&listener.address)->sin_port);
	pair_send(p, &listener, sizeof(listener));
	for (i = 0; i < N_FOREIGN; i++) {
		int fd = accept(sock, NULL, NULL);

		CHECK(fd >= 0, "%s", strerror(errno));
		foreign_behave(fd, (enum foreign)i);
		pair_sync(p);
		close(fd);
	}
	close(sock);
}

static void foreign_listener_client(struct pair *p)
{
	struct listener listener;
	struct node n;
	int i;

	node_open(&n);
	node_needs_tcp(&n);
	pair_send_listener(p, &n, 0);
	pair_recv_listener(p, &listener);
	n.ep = node_ep(&n, NULL);
	for (i = 0; i < N_FOREIGN; i++) {
		DAT_EVENT event;

		connect_with(n.ep, &listener, pair_scaled(FOREIGN_MS), 0, NULL);
		OK(dat_evd_wait(n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event,
				&(DAT_COUNT){ 0 }));
		CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
		      event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT,
		      "%s from foreign server %d", event_name(event.event_number), i);
		SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
		pair_sync(p);
		expect_quiet(n.conn);
		OK(dat_ep_reset(n.ep));
	}
	node_end(&n);
}

#define N_FOREIGN_CLIENTS 6

static int foreign_client(const struct listener *listener, unsigned how)
{
	struct sockaddr_storage address = listener->address;
	static char bytes[4096];
	unsigned seed = getpid() + how;
	size_t i;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	set_port(&address, listener->qual);
	CHECK(!connect(fd, (struct sockaddr *)&address, address_length(&address)), "%s",
	      strerror(errno));
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
	default:	/* sends nothing */
		break;
	}
	/* sockets serves one incoming connection at a time, without limit (libfabric 1.17) */
	if (pair_fabric_is("sockets"))
		shutdown(fd, SHUT_RDWR);
	return fd;
}

static void foreign_clients_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	unsigned i;

	node_open(&n);
	node_needs_tcp(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	for (i = 0; i < N_FOREIGN_CLIENTS; i++) {
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

static void foreign_clients_client(struct pair *p)
{
	int fd[N_FOREIGN_CLIENTS];
	struct listener listener;
	struct node n;
	unsigned i;

	node_open(&n);
	node_needs_tcp(&n);
	pair_recv_listener(p, &listener);
	for (i = 0; i < N_FOREIGN_CLIENTS; i++) {
		DAT_EP_HANDLE ep = node_ep(&n, NULL);

		fd[i] = foreign_client(&listener, i);
		ep_connect(ep, &listener);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		pair_unlink(p, &n, ep);
		OK(dat_ep_free(ep));
	}
	for (i = 0; i < N_FOREIGN_CLIENTS; i++)
		close(fd[i]);
	node_close(&n);
}

#if DAT_VERSION_MAJOR >= 2
/* Common service points: a qualifier is a TCP port */

static DAT_COMM tcp = { .domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP };

/* The IA's own address with a port. The port has the same offset in both families. */
static struct sockaddr_storage at_port(const struct node *n, DAT_CONN_QUAL port)
{
	struct sockaddr_storage address = n->address;

	((struct sockaddr_in *)&address)->sin_port = htons(port);
	tcp.domain = address.ss_family;
	return address;
}

static DAT_RETURN csp_create(struct node *n, DAT_CONN_QUAL port, DAT_CSP_HANDLE *csp)
{
	struct sockaddr_storage address = at_port(n, port);

	return dat_csp_create(n->ia, &tcp, (DAT_IA_ADDRESS_PTR)&address, n->cr, csp);
}

/* Creates a CSP at a port that was free just before. */
static DAT_CSP_HANDLE csp_make(struct node *n, DAT_CONN_QUAL *port)
{
	DAT_CSP_HANDLE csp;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < 8; i++) {
		OK(dat_psp_free(node_listen(n, port)));
		ret = csp_create(n, *port, &csp);
		if (DAT_GET_TYPE(ret) != DAT_PORT_IN_USE)
			break;
	}
	OK(ret);
	return csp;
}

static void csp_refusals(struct node *n, DAT_CSP_HANDLE csp, DAT_CONN_QUAL port)
{
	struct sockaddr_storage address = at_port(n, port);
	DAT_IA_ADDRESS_PTR a = (DAT_IA_ADDRESS_PTR)&address;
	DAT_COMM udp = { .domain = tcp.domain, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP };
	DAT_CSP_PARAM param;
	DAT_PSP_HANDLE other;

	FAILS(csp_create(n, port, &other), DAT_PORT_IN_USE);
	FAILS(dat_psp_create(n->ia, port, n->cr, DAT_PSP_CONSUMER_FLAG, &other),
	      DAT_CONN_QUAL_IN_USE);
	FAILS(csp_create(n, 0, &other), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_create(n->ia, &udp, a, n->cr, &other), DAT_COMM_NOT_SUPPORTED);
	FAILS(dat_csp_create(n->ia, NULL, a, n->cr, &other), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_create(n->ia, &tcp, NULL, n->cr, &other), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_create(n->ia, &tcp, a, n->conn, &other), DAT_INVALID_HANDLE);
	FAILS(dat_csp_create(n->ia, &tcp, a, n->cr, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_query(csp, (DAT_CSP_PARAM_MASK)0x100, &param), DAT_INVALID_PARAMETER);
	FAILS(dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia && param.evd_handle == n->cr, "wrong handles");
	CHECK(!memcmp(param.comm, &tcp, sizeof(tcp)), "wrong kind of address");
	CHECK(!memcmp(param.address_ptr, &address, sizeof(struct sockaddr_in)), "wrong address");
}

static void common_server(struct pair *p)
{
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_CSP_HANDLE csp;
	DAT_HANDLE_TYPE type;
	DAT_CONN_QUAL port;
	DAT_EVENT event;
	struct node n;

	node_begin(&n, 0);
	csp = csp_make(&n, &port);
	csp_refusals(&n, csp, port);
	OK(dat_get_handle_type(csp, &type));
	SAME(type, DAT_HANDLE_TYPE_CSP);
	OK(dat_set_consumer_context(csp, context));
	FAILS(dat_ia_close(n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	pair_send_listener(p, &n, port);
	expect_event(n.cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.csp_handle == csp,
	      "wrong service point");
	check_cr(&n, &event, csp, port, 8, 1);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	OK(dat_get_consumer_context(csp, &context));
	SAME(context.as_64, 5);
	OK(dat_csp_free(csp));
	FAILS(dat_csp_free(csp), DAT_INVALID_HANDLE);
	FAILS(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &(DAT_CSP_PARAM){ 0 }), DAT_INVALID_HANDLE);
	pair_sync(p);
	pair_sync(p);
	node_end(&n);
}

static DAT_RETURN common_connect(DAT_EP_HANDLE ep, const struct sockaddr_storage *address)
{
	unsigned char data[8];

	fill(data, sizeof(data), 1);
	return dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)address,
				     pair_scaled(PAIR_LIMIT) * 1000, sizeof(data), data);
}

static void common_client(struct pair *p)
{
	struct sockaddr_storage address;
	DAT_EP_PARAM param;
	struct listener listener;
	struct node n;

	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	address = listener.address;
	((struct sockaddr_in *)&address)->sin_port = 0;
	FAILS(common_connect(n.ep, &address), DAT_INVALID_ADDRESS);
	FAILS(common_connect(n.ep, NULL), DAT_INVALID_ADDRESS);
	((struct sockaddr_in *)&address)->sin_port = htons(listener.qual);
	OK(common_connect(n.ep, &address));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	FAILS(common_connect(n.ep, &address), DAT_INVALID_STATE);
	OK(dat_ep_query(n.ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.comm.domain, address.ss_family);
	SAME(param.comm.type, SOCK_STREAM);
	SAME(param.remote_port_qual, listener.qual);
	pair_unlink(p, &n, n.ep);
	OK(dat_ep_reset(n.ep));
	pair_sync(p);	/* there is no listener now */
	OK(common_connect(n.ep, &address));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, n.ep);
	pair_sync(p);
	node_end(&n);
}
#endif

static const struct pair_case cases[] = {
	PAIR_CASE("qualifiers of all sizes", quals_server, quals_client),
	PAIR_CASE("many large qualifiers", mapped_server, mapped_client, .seconds = 60,
		  .not_sockets = "it may crash when a rejected peer ends at once"),
	PAIR_CASE("the port in the address is ignored", port_server, port_client),
	PAIR_CASE("qualifier in use", in_use_server, in_use_client),
	PAIR_CASE("any qualifier", any_server, any_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("common service point", common_server, common_client),
#endif
	PAIR_CASE("IPv6 and IPv4 at one service point", families_server, families_client),
	PAIR_CASE("foreign listener", foreign_listener_server, foreign_listener_client),
	PAIR_CASE("foreign clients at the port", foreign_clients_server, foreign_clients_client,
		  .not_sockets = "bytes of a foreign client make it use freed memory"),
};

PAIR_MAIN(cases)
