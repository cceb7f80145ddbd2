/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listening on the ports of a qualifier, and the requests that arrive there, hostile ones first. */

#include "xport/fabric.h"

#include "base/log.h"
#include "capture.h"
#include "nomem.h"
#include "xport/msg/msg.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define PORT 4711
#define LOW 80				/* an ordinary user may not bind it */
#define MAPPED 70000
#define TRIES 4

static DAT_PSP_HANDLE psp;

/* Listens at the IA's own address, which takes one attempt for each port. */
static void init_address(void)
{
	xport_init();
	ia->fabric.wildcard = false;
}

TestSuite(msg_listen, .init = init_address, .fini = xport_fini);

static DAT_RETURN listen_for(DAT_CONN_QUAL conn_qual)
{
	return dofi_psp_create(ia, conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

static void is_in_use(DAT_CONN_QUAL conn_qual)
{
	expect_type(listen_for(conn_qual), DAT_CONN_QUAL_IN_USE);
}

static void make_busy(DAT_CONN_QUAL conn_qual, unsigned from, unsigned to)
{
	unsigned i;

	for (i = from; i < to; i++)
		fake_eps.fault.busy[i - from] = dofi_wire_port(conn_qual, i);
}

/* Opening */

/* Listening fails for another reason than a port in use, and leaves nothing open. */
static void fails(void)
{
	DAT_RETURN ret = listen_for(MAPPED);

	cr_expect(ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_CONN_QUAL_IN_USE, "%#x",
		  (unsigned)ret);
	cr_expect_eq(fake_eps.peps_open, 0);
	cr_expect(fake_eps.peps_opened <= 1, "no other port would help");
}

Test(msg_listen, without_a_passive_endpoint)
{
	fake.fault.passive_ep = -FI_ENOMEM;
	fails();
}

Test(msg_listen, without_the_event_queue)
{
	fake_eps.fault.pep_bind = -FI_ENOMEM;
	fails();
}

Test(msg_listen, without_memory)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		DAT_RETURN ret;

		nomem_after(n);
		ret = listen_for(PORT);
		if (!nomem_failed())
			break;
		cr_expect_eq(DAT_GET_TYPE(ret), (DAT_RETURN)DAT_INSUFFICIENT_RESOURCES, "%d", n);
		cr_expect_eq(fake_eps.peps_open, 0);
	}
	cr_expect_eq(n, 4, "the listener, its fi_info, the address, the endpoint: %d", n);
	cr_expect_eq(fake_eps.peps_open, 1);
}

Test(msg_listen, a_listen_that_the_fabric_refuses_fails)
{
	fake_eps.fault.listen = -FI_ENOSYS;
	fails();
}

Test(msg_listen, an_invalid_argument_is_no_port_in_use)
{
	fake_eps.fault.listen = -FI_EINVAL;
	fails();
}

Test(msg_listen, works_after_it_failed)
{
	fake_eps.fault.listen = -FI_ENOSYS;
	fails();
	fake_eps.fault.listen = 0;
	succeed(listen_for(MAPPED));
}

/* Ports in use */

Test(msg_listen, a_port_in_use_that_is_the_qualifier)
{
	fake_eps.fault.busy[0] = PORT;
	fake_eps.fault.busy_passive_ep = -FI_EADDRINUSE;
	is_in_use(PORT);
	cr_expect_eq(fake_eps.peps_opened, 1, "its peers look nowhere else");
}

Test(msg_listen, a_port_in_use_shows_when_listening)
{
	fake_eps.fault.busy[0] = PORT;
	fake_eps.fault.busy_listen = -FI_EADDRINUSE;
	is_in_use(PORT);
	cr_expect_eq(fake_eps.peps_open, 0);
}

static void init_sockets(void)
{
	fabric_name = "sockets";
	xport_init();
}

static void init_tcp(void)
{
	fake.version = FI_VERSION(2, 1);
	fabric_name = "tcp";
	xport_init();
}

/* Listens twice, and returns the log. */
static const char *log_of_two(void)
{
	static struct capture said;
	DAT_PSP_HANDLE first;

	dofi_log_max = DOFI_WARN;
	capture_begin(&said);
	succeed(listen_for(PORT));
	first = psp;
	succeed(listen_for(MAPPED));
	succeed(dofi_psp_free(first));
	succeed(dofi_psp_free(psp));
	return capture_end(&said);
}

Test(msg_listen, that_strangers_can_crash_the_process_is_logged_once, .init = init_sockets)
{
	const char *log = log_of_two(), *line = strstr(log, "any TCP client");

	cr_expect(line, "%s", log);
	cr_expect(!strstr(line + 1, "any TCP client"), "%s", log);
}

Test(msg_listen, tcp_has_no_such_warning, .init = init_tcp)
{
	cr_expect(!strstr(log_of_two(), "any TCP client"));
}

/*
 * Otherwise each byte for an endpoint would be reported as a request, see
 * dofi_progress_listen_eq().
 */
Test(msg_listen, has_an_event_queue_of_its_own_where_that_helps, .init = init_tcp)
{
	succeed(listen_for(PORT));
	cr_expect_eq(fake_eps.pep_eq, &fake.second_eq.fid);
}

Test(msg_listen, shares_the_event_queue_elsewhere, .init = init_sockets)
{
	succeed(listen_for(PORT));
	cr_expect_eq(fake_eps.pep_eq, &fake.eq.fid);
}

Test(msg_listen, a_port_in_use_shows_as_an_invalid_argument, .init = init_sockets)
{
	fake_eps.fault.busy[0] = PORT;
	fake_eps.fault.busy_listen = -FI_EINVAL;
	is_in_use(PORT);
	cr_expect_eq(fake_eps.peps_open, 0);
}

Test(msg_listen, a_privileged_port_in_use_has_a_listener)
{
	fake_eps.fault.busy[0] = LOW;
	fake_eps.fault.busy_passive_ep = -FI_EADDRINUSE;
	is_in_use(LOW);
	cr_expect_eq(fake_eps.peps_opened, 1);
}

Test(msg_listen, a_privileged_port_that_is_forbidden_leads_to_the_mapped_ones)
{
	fake_eps.fault.busy[0] = LOW;
	fake_eps.fault.busy_passive_ep = -FI_EACCES;
	succeed(listen_for(LOW));
	cr_expect_eq(fake_eps.tried[0], LOW);
	cr_expect_eq(fake_eps.tried[1], dofi_wire_port(LOW, 1));
	cr_expect_eq(fake_eps.peps_opened, 2);
	cr_expect_eq(fake_eps.peps_open, 1);
}

Test(msg_listen, a_forbidden_port_and_a_mapped_one_in_use)
{
	fake_eps.fault.forbidden = LOW;
	make_busy(LOW, 1, 2);
	fake_eps.fault.busy_listen = -FI_EADDRINUSE;
	succeed(listen_for(LOW));
	cr_expect_eq(fake_eps.peps_opened, 3);
	cr_expect_eq(fake_eps.tried[2], dofi_wire_port(LOW, 2));
}

Test(msg_listen, a_privileged_port_with_all_mapped_ones_in_use)
{
	make_busy(LOW, 0, 5);
	fake_eps.fault.busy_passive_ep = -FI_EACCES;
	is_in_use(LOW);
	cr_expect_eq(fake_eps.peps_opened, 5);
}

Test(msg_listen, a_mapped_port_in_use_leads_to_the_next)
{
	unsigned i;

	make_busy(MAPPED, 0, TRIES - 1);
	fake_eps.fault.busy_listen = -FI_EADDRINUSE;
	succeed(listen_for(MAPPED));
	cr_assert_eq(fake_eps.peps_opened, TRIES);
	for (i = 0; i < TRIES; i++)
		cr_expect_eq(fake_eps.tried[i], dofi_wire_port(MAPPED, i));
	cr_expect_eq(fake_eps.peps_open, 1);
}

Test(msg_listen, all_mapped_ports_in_use)
{
	make_busy(MAPPED, 0, TRIES);
	fake_eps.fault.busy_listen = -FI_EADDRINUSE;
	is_in_use(MAPPED);
	cr_expect_eq(fake_eps.peps_opened, TRIES);
	cr_expect_eq(fake_eps.peps_open, 0);
}

/* Several listeners of one IA */

Test(msg_listen, a_qualifier_twice)
{
	succeed(listen_for(PORT));
	is_in_use(PORT);
	cr_expect_eq(fake_eps.peps_opened, 1);
}

Test(msg_listen, a_mapped_qualifier_twice)
{
	succeed(listen_for(MAPPED));
	is_in_use(MAPPED);
	cr_expect_eq(fake_eps.peps_opened, 1);
}

Test(msg_listen, a_freed_qualifier_can_be_had_again)
{
	succeed(listen_for(PORT));
	succeed(dofi_psp_free(psp));
	cr_expect_eq(fake_eps.peps_open, 0);
	succeed(listen_for(PORT));
}

/* Two qualifiers that share a port: one is the port's number, and the other maps to it. */
static DAT_PSP_HANDLE psp_mapped, psp_port;

static void share_a_port(void)
{
	psp_mapped = psp_make(MAPPED);
	psp_port = psp_make(dofi_wire_port(MAPPED, 0));
}

Test(msg_listen, two_qualifiers_share_a_port)
{
	share_a_port();
	cr_expect_eq(fake_eps.peps_opened, 1);
	succeed(dofi_psp_free(psp_mapped));
	cr_expect_eq(fake_eps.peps_open, 1);
	succeed(dofi_psp_free(psp_port));
	cr_expect_eq(fake_eps.peps_open, 0);
}

static DAT_PSP_HANDLE arrived_at(void)
{
	DAT_EVENT event = event_only(DAT_CONNECTION_REQUEST_EVENT);

	return event.event_data.cr_arrival_event_data.sp_handle.psp_handle;
}

Test(msg_listen, requests_at_a_shared_port_find_their_qualifier)
{
	share_a_port();
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, MAPPED, NULL, 0));
	cr_expect_eq(arrived_at(), psp_mapped);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr_expect_eq(arrived_at(), psp_port);
}

/* Any */

Test(msg_listen, any_qualifier_is_the_port_that_the_fabric_chose)
{
	DAT_CONN_QUAL conn_qual = 0;

	fake_eps.any_port = 40000;
	succeed(dofi_psp_create_any(ia, &conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_expect_eq(fake_eps.tried[0], 0);
	cr_expect_eq(conn_qual, 40000);
	is_in_use(40000);
}

Test(msg_listen, any_qualifier_that_the_fabric_refuses)
{
	DAT_CONN_QUAL conn_qual = 77;

	fake_eps.fault.listen = -FI_EADDRINUSE;
	expect_type(dofi_psp_create_any(ia, &conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_CONN_QUAL_UNAVAILABLE);
	cr_expect_eq(conn_qual, 77);
	cr_expect_eq(fake_eps.peps_open, 0);
}

/* A peer cannot name qualifier 0. */
Test(msg_listen, any_qualifier_whose_port_cannot_be_learnt)
{
	DAT_CONN_QUAL conn_qual = 77;

	fake_eps.fault.getname = -FI_ENOSYS;
	fake_eps.any_port = 40000;
	cr_expect(dofi_psp_create_any(ia, &conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp) !=
		  DAT_SUCCESS);
	cr_expect_eq(conn_qual, 77);
	cr_expect_eq(fake_eps.peps_open, 0);
}

/* All addresses */

static bool faked;		/* the system reports the following about IPv6 */
static bool no_ipv6;
static int apart;		/* value of IPV6_V6ONLY */

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_socket(int family, int type, int protocol)
{
	if (!faked || family != AF_INET6)
		return __real_socket(family, type, protocol);
	errno = EAFNOSUPPORT;
	/* the machine that runs the test may have no IPv6 */
	return no_ipv6 ? -1 : __real_socket(AF_UNIX, SOCK_STREAM, 0);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (!faked || level != IPPROTO_IPV6 || name != IPV6_V6ONLY)
		return __real_getsockopt(fd, level, name, value, len);
	*(int *)value = apart;
	return 0;
}

static void init_wildcard(void)
{
	xport_init();
	ia->fabric.wildcard = true;
	faked = true;
}

TestSuite(msg_wildcard, .init = init_wildcard, .fini = xport_fini);

static void listens_at(int family)
{
	cr_expect_eq(fake_eps.listened.ss_family, family);
	cr_expect_eq(((struct sockaddr_in *)&fake_eps.listened)->sin_port, htons(PORT));
	if (family == AF_INET6)
		cr_expect(IN6_IS_ADDR_UNSPECIFIED(
			&((struct sockaddr_in6 *)&fake_eps.listened)->sin6_addr));
	else
		cr_expect_eq(((struct sockaddr_in *)&fake_eps.listened)->sin_addr.s_addr,
			     htonl(INADDR_ANY));
}

Test(msg_wildcard, is_of_both_families)
{
	succeed(listen_for(PORT));
	listens_at(AF_INET6);
	cr_expect_eq(fake_eps.peps_opened, 1);
}

Test(msg_wildcard, is_of_ipv4_where_the_system_keeps_them_apart)
{
	apart = 1;
	succeed(listen_for(PORT));
	listens_at(AF_INET);
}

Test(msg_wildcard, is_of_ipv4_without_ipv6)
{
	no_ipv6 = true;
	succeed(listen_for(PORT));
	listens_at(AF_INET);
}

Test(msg_wildcard, is_of_ipv4_where_ipv6_is_taken)
{
	fake_eps.fault.busy[0] = PORT;
	fake_eps.fault.busy_listen = -FI_EADDRINUSE;
	fake_eps.fault.busy_family = AF_INET6;
	succeed(listen_for(PORT));
	listens_at(AF_INET);
	cr_expect_eq(fake_eps.peps_open, 1);
}

Test(msg_wildcard, in_use_in_both_families_is_in_use)
{
	fake_eps.fault.busy[0] = PORT;
	fake_eps.fault.busy_passive_ep = -FI_EADDRINUSE;
	is_in_use(PORT);
	cr_expect_eq(fake_eps.peps_opened, 2);
	cr_expect_eq(fake_eps.peps_open, 0);
}

Test(msg_wildcard, other_failures_are_not_tried_again)
{
	fake_eps.fault.listen = -FI_ENOSYS;
	fails();
}

static void init_wildcard_sockets(void)
{
	fabric_name = "sockets";
	init_wildcard();
}

Test(msg_wildcard, is_of_ipv4_on_other_fabrics, .init = init_wildcard_sockets)
{
	succeed(listen_for(PORT));
	listens_at(AF_INET);
}

/* Requests */

static void init_listening(void)
{
	xport_init();
	psp = psp_make(PORT);
}

TestSuite(msg_request, .init = init_listening, .fini = xport_fini);

/* A request of @bytes is rejected without an event for the consumer. */
static void is_refused(struct bytes bytes)
{
	int before = fake_eps.rejects;

	cm_request(fake_eps.last_pep, bytes);
	cr_expect_eq(fake_eps.rejects, before + 1, "%zu bytes", bytes.len);
	cr_expect_eq(fake_eps.handle, &request_handle);
	cr_expect_eq(sent().kind, DOFI_WIRE_REFUSE);
	cr_expect_eq(sent().data_size, 0);
	cr_expect(event_none(evd));
}

Test(msg_request, without_data_is_refused)
{
	is_refused(NO_BYTES);
}

Test(msg_request, of_a_embryo_is_refused)
{
	is_refused((struct bytes){ "GET / HTTP/1.1\r\n\r\n", 18 });
}

Test(msg_request, a_request_that_is_cut_off_is_refused)
{
	size_t len, whole = wire(DOFI_WIRE_REQUEST, PORT, "data", 4).len;

	for (len = 0; len < whole; len++) {
		struct bytes bytes = wire(DOFI_WIRE_REQUEST, PORT, "data", 4);

		bytes.len = len;
		is_refused(bytes);
	}
}

Test(msg_request, bytes_that_are_no_request_are_refused)
{
	is_refused(wire(DOFI_WIRE_ACCEPT, 0, "data", 4));
	is_refused(wire(DOFI_WIRE_REJECT, 0, "data", 4));
	is_refused(wire(DOFI_WIRE_REFUSE, 0, "data", 4));
}

Test(msg_request, for_another_qualifier_is_refused)
{
	is_refused(wire(DOFI_WIRE_REQUEST, PORT + 1, NULL, 0));
	is_refused(wire(DOFI_WIRE_REQUEST, UINT64_MAX, NULL, 0));
}

Test(msg_request, at_a_passive_endpoint_that_is_gone_is_dropped)
{
	static struct fid_pep embryo;

	cm_request(&embryo, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cm_request(NULL, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr_expect_eq(fake_eps.rejects, 0);
	cr_expect(event_none(evd));
}

static void arrive_without_memory(void *arg)
{
	const struct bytes bytes = wire(DOFI_WIRE_REQUEST, 0, NULL, 0);
	struct fi_info *info = fake_info("tcp", "127.0.0.1");

	info->handle = &request_handle;
	nomem_after(0);
	msg_arrived(ia, &fake_eps.last_pep->fid, info, bytes.data, bytes.len);
	cr_expect(nomem_failed());
}

Test(msg_request, without_memory_is_refused)
{
	dofi_progress_call(&ia->progress, arrive_without_memory, NULL);
	cr_assert_eq(fake_eps.rejects, 1);
	cr_expect_eq(fake_eps.handle, &request_handle);
	cr_expect_eq(sent().kind, DOFI_WIRE_REFUSE);
	cr_expect(event_none(evd));
}

Test(msg_request, without_room_for_its_event_is_refused)
{
	DAT_EVD_HANDLE one = evd_make(1, DAT_EVD_CR_FLAG);
	DAT_PSP_HANDLE other;
	int i, room;

	succeed(dofi_psp_create(ia, PORT + 1, one, DAT_PSP_CONSUMER_FLAG, &other));
	for (room = 0; !fake_eps.rejects; room++) {
		cr_assert(room < 1000);
		cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	}
	cr_expect_eq(sent().kind, DOFI_WIRE_REFUSE);
	for (i = 0; i < room - 1; i++)
		event_take(one, DAT_CONNECTION_REQUEST_EVENT);
	cr_expect(event_none(one));
	cr_expect(room > 1);
}

Test(msg_request, a_refusal_that_fails_is_harmless)
{
	fake_eps.fault.reject = -FI_ENOTCONN;
	is_refused(NO_BYTES);
}

/* A request may also name a qualifier that is the port's number. */
Test(msg_request, for_the_port_arrives)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr_expect_eq(arrived_at(), psp);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, PORT, NULL, 0));
	cr_expect_eq(arrived_at(), psp);
	cr_expect_eq(fake_eps.rejects, 0);
}

Test(msg_request, query_returns_its_data_and_peer)
{
	char data[DOFI_WIRE_MAX_DATA];
	DAT_CR_PARAM param;

	memset(data, 'd', sizeof(data));
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, data, sizeof(data)));
	succeed(dofi_cr_query(cr_take(), DAT_CR_FIELD_ALL, &param));
	cr_assert_eq(param.private_data_size, DOFI_WIRE_MAX_DATA);
	cr_expect(!memcmp(param.private_data, data, sizeof(data)));
	cr_expect_eq(param.remote_port_qual, 5555);
}

static void peer_is(DAT_CR_HANDLE cr, const void *address, size_t size)
{
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_expect(!memcmp(param.remote_ia_address_ptr, address, size));
	cr_expect_eq(param.remote_port_qual, 5555);
}

/* A socket of both families reports an IPv4 peer in this form. */
Test(msg_request, names_an_ipv4_peer_by_its_own_address)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = htons(5555) };
	const struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_port = htons(5555),
		.sin_addr.s_addr = htonl(0x0a000001),
	};

	cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", &mapped.sin6_addr), 1);
	cm_request_from(fake_eps.last_pep, &mapped, sizeof(mapped),
			wire(DOFI_WIRE_REQUEST, 0, "", 0));
	peer_is(cr_take(), &own, sizeof(own));
}

Test(msg_request, an_address_that_no_socket_has_is_left_out)
{
	static const struct sockaddr_storage none;
	char address[sizeof(none) + 8];
	DAT_CR_PARAM param;

	memset(address, 0xff, sizeof(address));
	cm_request_from(fake_eps.last_pep, address, sizeof(address),
			wire(DOFI_WIRE_REQUEST, 0, "", 0));
	succeed(dofi_cr_query(cr_take(), DAT_CR_FIELD_ALL, &param));
	cr_expect(!memcmp(param.remote_ia_address_ptr, &none, sizeof(none)));
	cr_expect_eq(param.remote_port_qual, 0);
}

Test(msg_request, names_an_ipv6_peer_by_its_own_address)
{
	const struct sockaddr_in6 own = {
		.sin6_family = AF_INET6, .sin6_port = htons(5555), .sin6_addr = in6addr_loopback,
	};

	cm_request_from(fake_eps.last_pep, &own, sizeof(own), wire(DOFI_WIRE_REQUEST, 0, "", 0));
	peer_is(cr_take(), &own, sizeof(own));
}

static DAT_RETURN reject(DAT_CR_HANDLE cr)
{
#if DAT_VERSION_MAJOR >= 2
	return dofi_cr_reject(cr, 3, (DAT_PVOID)(uintptr_t)"why");
#else
	return dofi_cr_reject(cr);
#endif
}

Test(msg_request, a_rejection_is_reported_as_the_consumers)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	succeed(reject(cr_take()));
	cr_expect_eq(fake_eps.rejects, 1);
	cr_expect_eq(fake_eps.handle, &request_handle);
	cr_expect_eq(sent().kind, DOFI_WIRE_REJECT);
	cr_expect_eq(sent().data_size, DAT_VERSION_MAJOR >= 2 ? 3 : 0);
	cr_expect(!memcmp(sent().data, "why", sent().data_size));
}

Test(msg_request, a_rejection_that_fails_is_harmless)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	fake_eps.fault.reject = -FI_ENOTCONN;
	succeed(reject(cr_take()));
}

Test(msg_request, keeps_the_listener_of_a_freed_psp_until_the_answer)
{
	DAT_CR_HANDLE cr;

	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr = cr_take();
	succeed(dofi_psp_free(psp));
	cr_expect_eq(fake_eps.peps_open, 1);
	succeed(reject(cr));
	cr_expect_eq(fake_eps.rejects, 1);
	cr_expect_eq(fake_eps.peps_open, 0);
}

Test(msg_request, after_the_psp_was_freed_is_refused)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	event_only(DAT_CONNECTION_REQUEST_EVENT);
	succeed(dofi_psp_free(psp));
	is_refused(wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
}

Test(msg_request, a_psp_made_meanwhile_uses_the_same_listener)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	event_only(DAT_CONNECTION_REQUEST_EVENT);
	succeed(dofi_psp_free(psp));
	psp = psp_make(PORT);
	cr_expect_eq(fake_eps.peps_opened, 1);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr_expect_eq(arrived_at(), psp);
}

Test(msg_request, left_unanswered_is_refused_when_the_ia_closes)
{
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	event_only(DAT_CONNECTION_REQUEST_EVENT);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake_eps.rejects, 1);
	cr_expect_eq(sent().kind, DOFI_WIRE_REFUSE);
	cr_expect_eq(fake_eps.peps_open, 0);
}

static int (*pep_close)(struct fid *fid);

static int close_after_a_request(struct fid *fid)
{
	struct fake_event e = { .event = FI_CONNREQ };

	e.entry.fid = fid;
	e.entry.info = fake_info(fabric_name, "127.0.0.1");
	fake_event_add(&e);
	return pep_close(fid);
}

/* The sockets provider keeps events of a closed endpoint. */
Test(msg_request, behind_the_last_listener_of_a_closing_ia_is_dropped)
{
	struct fi_ops ops = *fake_eps.last_pep->fid.ops;

	pep_close = ops.close;
	ops.close = close_after_a_request;
	fake_eps.last_pep->fid.ops = &ops;
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake_eps.peps_open, 0);
}

Test(msg_request, for_a_reserved_point_arrives_once)
{
	DAT_EP_HANDLE ep = ep_make();
	DAT_RSP_HANDLE rsp;

	succeed(dofi_rsp_create(ia, PORT + 1, ep, evd, &rsp));
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	cr_expect_eq(arrived_at(), rsp);
	is_refused(wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	/* a pending request can only be rejected through the endpoint on which it arrived */
	cr_expect_eq(fake_eps.peps_open, 2);
	is_refused(wire(DOFI_WIRE_REQUEST, 0, NULL, 0));
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake_eps.peps_open, 0);
}

Test(msg_request, handed_off_is_answered_where_it_came_in)
{
	DAT_PSP_HANDLE other;
	DAT_CR_HANDLE cr;

	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, "data", 4));
	cr = cr_take();
	other = psp_make(PORT + 1);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(fake_eps.peps_open, 2);
	succeed(dofi_cr_handoff(cr, PORT + 1));
	cr = cr_take();
	succeed(dofi_psp_free(other));
	cr_expect_eq(fake_eps.peps_open, 1);
	cr_expect_eq(fake_eps.rejects, 0);
	succeed(reject(cr));
	cr_expect_eq(fake_eps.rejects, 1);
	cr_expect_eq(fake_eps.handle, &request_handle);
	cr_expect_eq(sent().kind, DOFI_WIRE_REJECT);
	cr_expect_eq(fake_eps.peps_open, 0);
}

/* Addresses */

static struct sockaddr_storage address;

Test(msg_address, takes_the_port)
{
	const struct sockaddr_in base = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001), .sin_port = 1,
	};
	struct sockaddr_storage from = { 0 };
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

	memcpy(&from, &base, sizeof(base));
	cr_expect_eq(dofi_port_address(&address, &from, false, 0x1234), sizeof(*in));
	cr_expect_eq(in->sin_port, htons(0x1234));
	cr_expect_eq(in->sin_addr.s_addr, htonl(0x0a000001));
	dofi_port_address(&address, &from, true, 0x1234);
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_ANY));
}

Test(msg_address, takes_the_port_of_ipv6)
{
	const struct sockaddr_in6 base = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_storage from = { 0 };
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;

	memcpy(&from, &base, sizeof(base));
	cr_expect_eq(dofi_port_address(&address, &from, false, 0x1234), sizeof(*in6));
	cr_expect_eq(in6->sin6_port, htons(0x1234));
	cr_expect(!memcmp(&in6->sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)));
	dofi_port_address(&address, &from, true, 0x1234);
	cr_expect(!memcmp(&in6->sin6_addr, &in6addr_any, sizeof(in6addr_any)));
}
