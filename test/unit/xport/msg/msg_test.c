/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connecting, accepting, ending and operating, and every way in which a fabric fails at it. */

#include "xport/fabric.h"

#include "nomem.h"
#include "obj/cq_data.h"
#include "xport/msg/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#define PORT 4711
#define MAPPED 70000			/* a qualifier that is no port */
#define TRIES 4

static DAT_EP_HANDLE ep;
static char payload[DOFI_WIRE_MAX_DATA];

static void init(void)
{
	size_t i;

	xport_init();
	ep = ep_make();
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (char)(i + 1);
}

static struct dofi_ep *inside(void)
{
	return ep;
}

TestSuite(msg, .init = init, .fini = xport_fini);

/*
 * The attempt or connection ended with @number as its only event, and nothing is open at the
 * fabric.
 */
static DAT_CONNECTION_EVENT_DATA ended_with(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = event_only(number);

	cr_expect_eq(event.event_data.connect_event_data.ep_handle, ep);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(fake_eps.open, 0);
	return event.event_data.connect_event_data;
}

static void carries(DAT_CONNECTION_EVENT_DATA data, const void *want, size_t size)
{
	cr_assert_eq((size_t)data.private_data_size, size);
	cr_expect(!size || !memcmp(data.private_data, want, size));
	cr_expect(size || !data.private_data);
}

static void make_established(void)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Connecting: the fabric fails at once */

static void connecting_fails(DAT_EVENT_NUMBER number)
{
	connect_to(ep, PORT);
	ended_with(number);
}

Test(msg, connect_without_an_endpoint)
{
	fake_eps.fault.endpoint = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(msg, connect_without_the_event_queue)
{
	fake_eps.fault.bind_eq = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

Test(msg, connect_without_the_completion_queue)
{
	fake_eps.fault.bind_cq = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

Test(msg, connect_without_enabling)
{
	fake_eps.fault.enable = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

/* The first allocation fails, then the second, and so on. */
Test(msg, connect_without_memory)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		connect_to(ep, PORT);
		if (!nomem_failed())
			break;
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
	cr_expect_eq(n, 5, "fi_info, its address, the endpoint, and twice to find it: %d", n);
	cr_expect_eq(fake_eps.open, 1);
}

/* Quality of service: that of the call or the endpoint, as libfabric's traffic class */

static void connect_as(DAT_QOS qos)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	succeed(dofi_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&peer, PORT, DAT_TIMEOUT_INFINITE, 0, NULL, qos,
				DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
}

static void make_ep_of(DAT_QOS qos)
{
	DAT_EP_PARAM param;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.qos = qos;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_QOS, &param));
}

Test(msg, quality_of_a_connection)
{
	connect_as(DAT_QOS_LOW_LATENCY);
	cr_expect_eq(fake_eps.tclass, FI_TC_LOW_LATENCY);
}

Test(msg, quality_of_an_endpoint)
{
	make_ep_of(DAT_QOS_ECONOMY);
	connect_as(DAT_QOS_BEST_EFFORT);
	cr_expect_eq(fake_eps.tclass, FI_TC_SCAVENGER);
}

Test(msg, quality_of_a_connection_comes_before_its_endpoints)
{
	make_ep_of(DAT_QOS_ECONOMY);
	connect_as(DAT_QOS_PREMIUM);
	cr_expect_eq(fake_eps.tclass, FI_TC_DEDICATED_ACCESS);
}

Test(msg, no_quality_is_no_class)
{
	connect_as(DAT_QOS_BEST_EFFORT);
	cr_expect_eq(fake_eps.tclass, FI_TC_UNSPEC);
}

Test(msg, connect_that_the_fabric_refuses)
{
	fake_eps.fault.connect = -FI_ECONNREFUSED;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg, connect_to_an_address_without_route)
{
	fake_eps.fault.connect = -FI_ENETUNREACH;
	connecting_fails(DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(msg, a_failed_endpoint_can_be_used_again)
{
	fake_eps.fault.enable = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	fake_eps.fault.enable = 0;
	succeed(dofi_ep_reset(ep));
	make_established();
}

/* Connecting: addresses of no host */

static void connect_to_address(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	cr_assert_eq(inet_pton(AF_INET, text, &in.sin_addr), 1);
	succeed(dofi_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&in, PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
}

/* Hardware would try these for a minute. */
Test(msg, connect_to_addresses_of_no_host)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	connect_to_address("224.0.0.1");
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	succeed(dofi_ep_reset(ep));
	connect_to_address("255.255.255.255");
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	succeed(dofi_ep_reset(ep));
	cr_assert_eq(inet_pton(AF_INET6, "ff05::1", &in6.sin6_addr), 1);
	succeed(dofi_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&in6, PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(fake_eps.opened, 0);
}

/* Connecting: a fabric that opens endpoints slowly */

static void init_slow(void)
{
	fabric_name = "verbs";
	init();
	fake_eps.fault.endpoint_waits = true;
}

static void connect_slowly(DAT_TIMEOUT timeout)
{
	succeed(dofi_ep_connect(ep, some_address(), PORT, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	while (sem_wait(&fake_eps.waits))
		;
}

static DAT_EVENT_NUMBER event_awaited(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	succeed(dofi_evd_wait(evd, 10 * 1000000, 1, &event, &more));
	return event.event_number;
}

/* The opening thread finishes a little after it was let go. */
static void go_on_until(const _Atomic int *count, int value)
{
	sem_post(&fake_eps.go);
	do
		quiesce();
	while (*count != value);
}

Test(msg, a_pending_open_delays_no_other, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	quiesce();
	cr_expect_eq(state_of(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	cr_expect_eq(fake_eps.connects, 0);
	go_on_until(&fake_eps.connects, 1);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

Test(msg, a_pending_open_is_timed_out, .init = init_slow)
{
	connect_slowly(1000);
	cr_expect_eq(event_awaited(), DAT_CONNECTION_EVENT_TIMED_OUT);
	sem_post(&fake_eps.go);
}

Test(msg, what_opens_after_the_end_is_closed, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	sem_post(&fake_eps.go);
	do
		quiesce();
	while (!fake_eps.opened || fake_eps.open);
	cr_expect_eq(fake_eps.connects, 0);
}

/* An endpoint that opens for one attempt is not used by the next. */
Test(msg, another_attempt_while_the_last_still_opens, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	connect_slowly(DAT_TIMEOUT_INFINITE);
	sem_post(&fake_eps.go);
	go_on_until(&fake_eps.connects, 1);
	do
		quiesce();
	while (fake_eps.open != 1);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

Test(msg, the_end_of_a_pz_waits_for_what_is_opened_there, .init = init_slow)
{
	connect_slowly(DAT_TIMEOUT_INFINITE);
	succeed(dofi_ep_free(ep));
	sem_post(&fake_eps.go);
}

#define CROWD 40			/* more than are opened at once */

/*
 * The attempts beyond the limit are queued. All of them are made, except that of the EP that was
 * freed.
 */
Test(msg, many_wait_to_open, .init = init_slow)
{
	DAT_EP_HANDLE eps[CROWD];
	int i, inside = 0;

	for (i = 0; i < CROWD; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
	}
	while (!sem_trywait(&fake_eps.waits))
		inside++;
	cr_expect(inside < CROWD, "%d at once", inside);
	succeed(dofi_ep_free(eps[CROWD - 1]));
	for (i = 0; i < CROWD - 1; i++)
		sem_post(&fake_eps.go);
	do
		quiesce();
	while (fake_eps.connects != CROWD - 1);
	quiesce();
	cr_expect_eq(fake_eps.opened, CROWD - 1);
	for (i = 0; i < CROWD - 1; i++)
		succeed(dofi_ep_free(eps[i]));
}

Test(msg, the_end_of_a_pz_drops_what_waits_to_open_there, .init = init_slow)
{
	DAT_EP_HANDLE eps[CROWD];
	int i;

	for (i = 0; i < CROWD; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
	}
	for (i = 0; i < CROWD; i++) {
		succeed(dofi_ep_free(eps[i]));
		sem_post(&fake_eps.go);
	}
}

Test(msg, what_cannot_be_opened_in_time_is_unreachable, .init = init_slow)
{
	fake_eps.fault.endpoint = -FI_ENODEV;
	connect_slowly(DAT_TIMEOUT_INFINITE);
	sem_post(&fake_eps.go);
	cr_expect_eq(event_awaited(), DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_DISCONNECTED);
}

/* Connecting: later reports of the fabric */

Test(msg, what_errors_mean)
{
	static const struct {
		int err;
		DAT_EVENT_NUMBER number;
	} rows[] = {
		{ ENETUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EHOSTUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EHOSTDOWN, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ENETDOWN, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ETIMEDOUT, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EADDRNOTAVAIL, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ EINVAL, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ENODEV, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ ECONNREFUSED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ ECONNRESET, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ FI_EOTHER, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
		{ 99999, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	};
	size_t i;
	int sign;

	/* with either sign, because fabrics differ */
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (sign = -1; sign <= 1; sign += 2) {
			connect_to(ep, PORT);
			cm_error(fake_eps.last, rows[i].err * sign, NO_BYTES);
			ended_with(rows[i].number);
			succeed(dofi_ep_reset(ep));
		}
}

Test(msg, other_fabrics_mean_that_time_was_up)
{
	connect_to(ep, PORT);
	cm_error_with_reason(fake_eps.last, EPERM);
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(msg, a_port_that_is_the_qualifier_is_tried_once)
{
	connect_to(ep, PORT);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg, the_ports_of_a_qualifier_are_tried_in_order)
{
	unsigned i;

	connect_to(ep, MAPPED);
	for (i = 0; i < TRIES; i++) {
		cr_assert_eq(fake_eps.connects, (int)i + 1);
		cr_expect_eq(fake_eps.connected_to[i], dofi_wire_port(MAPPED, i));
		cr_expect_eq(sent().conn_qual, MAPPED);
		cr_expect_eq(fake_eps.open_at_connect, 1, "the one before is closed");
		cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	}
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, TRIES);
}

Test(msg, the_ports_are_tried_though_the_fabric_fails_at_once)
{
	fake_eps.fault.connect = -FI_ECONNREFUSED;
	connect_to(ep, MAPPED);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, TRIES);
}

Test(msg, a_later_port_may_answer)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, payload, 3));
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, 3);
	cr_expect_eq(fake_eps.open, 1);
}

Test(msg, a_privileged_port_is_tried_as_itself_first)
{
	connect_to(ep, 80);
	cr_expect_eq(fake_eps.connected_to[0], 80);
	cr_expect_eq(sent().conn_qual, 0, "the port tells it");
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cr_expect_eq(fake_eps.connected_to[1], dofi_wire_port(80, 1));
	cr_expect_eq(sent().conn_qual, 80);
}

Test(msg, an_unreachable_peer_has_no_other_ports)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, EHOSTUNREACH, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg, a_providers_refusal_leads_to_the_next_port)
{
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REFUSE, 0, NULL, 0));
	cr_expect_eq(fake_eps.connects, 2);
	cr_expect(event_none(evd));
}

Test(msg, a_consumers_rejection_ends_it)
{
	DAT_CONNECTION_EVENT_DATA data;

	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REJECT, 0, payload, sizeof(payload)));
	data = ended_with(DAT_CONNECTION_EVENT_PEER_REJECTED);
	carries(data, payload, sizeof(payload));
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg, a_rejection_that_is_cut_off_is_none_of_a_consumer)
{
	size_t len, whole = wire(DOFI_WIRE_REJECT, 0, payload, 9).len;

	for (len = 0; len < whole; len++) {
		struct bytes bytes;

		connect_to(ep, PORT);
		bytes = wire(DOFI_WIRE_REJECT, 0, payload, 9);
		bytes.len = len;
		cm_error(fake_eps.last, ECONNREFUSED, bytes);
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg, an_acceptance_that_is_cut_off_is_refused)
{
	size_t len, whole = wire(DOFI_WIRE_ACCEPT, 0, payload, 9).len;

	for (len = 0; len < whole; len++) {
		struct bytes bytes;

		connect_to(ep, PORT);
		bytes = wire(DOFI_WIRE_ACCEPT, 0, payload, 9);
		bytes.len = len;
		cm_event(FI_CONNECTED, fake_eps.last, bytes);
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg, only_an_acceptance_connects)
{
	static const enum dofi_wire_kind kinds[] = {
		DOFI_WIRE_REQUEST, DOFI_WIRE_REJECT, DOFI_WIRE_REFUSE,
	};
	size_t i;

	for (i = 0; i < 3; i++) {
		connect_to(ep, PORT);
		cm_event(FI_CONNECTED, fake_eps.last, wire(kinds[i], 0, payload, 4));
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
}

Test(msg, a_strangers_acceptance_is_refused)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ "HTTP/1.1 400 Bad Request", 24 });
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(msg, an_end_while_connecting_is_a_refusal)
{
	connect_to(ep, PORT);
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* There is no answer, so the timeout is the only event that can arrive. */
Test(msg, a_time_out_ends_the_attempt)
{
	DAT_EVENT event;
	DAT_COUNT more;

	succeed(dofi_ep_connect(ep, some_address(), MAPPED, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
	quiesce();
	cr_expect_eq(state_of(ep), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(fake_eps.open, 0);
	cr_expect_eq(fake_eps.connects, 1, "the ports share one time-out");
}

Test(msg, what_comes_after_the_end_is_ignored)
{
	struct fid_ep *gone;

	connect_to(ep, PORT);
	gone = fake_eps.last;
	cm_error(gone, ECONNREFUSED, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cm_event(FI_CONNECTED, gone, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cm_event(FI_SHUTDOWN, gone, NO_BYTES);
	cm_error(gone, ECONNREFUSED, NO_BYTES);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of(ep), DAT_EP_STATE_DISCONNECTED);
}

Test(msg, events_of_unknown_endpoints_are_ignored)
{
	static struct fid_ep stranger;

	make_established();
	cm_event(FI_CONNECTED, &stranger, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cm_event(FI_SHUTDOWN, &stranger, NO_BYTES);
	cm_error(&stranger, ECONNRESET, NO_BYTES);
	cm_event(FI_SHUTDOWN, NULL, NO_BYTES);
	cm_error(NULL, ECONNRESET, NO_BYTES);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg, events_of_another_kind_are_ignored)
{
	make_established();
	cm_event(FI_NOTIFY, fake_eps.last, NO_BYTES);
	cm_event(FI_JOIN_COMPLETE, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	cr_expect(event_none(evd));
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
}

/* Connecting: the request, and the established connection */

Test(msg, the_request_goes_to_the_address_and_port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&fake_eps.peer;

	connect_to(ep, PORT);
	cr_expect_eq(in->sin_family, AF_INET);
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_eq(ntohs(in->sin_port), PORT);
	cr_expect_eq(sent().kind, DOFI_WIRE_REQUEST);
	cr_expect_eq(sent().conn_qual, 0);
	cr_expect_eq(sent().data_size, 0);
}

/*
 * An IA on every interface leaves the source to the route. An IA on an address uses that address.
 */
Test(msg, the_source_is_the_ias_address)
{
	ia->fabric.wildcard = true;
	connect_to(ep, PORT);
	cr_expect_eq(fake_eps.source_len, 0);
	ia->fabric.wildcard = false;
	connect_to(ep_make(), PORT);
	cr_expect_eq(fake_eps.source_len, sizeof(struct sockaddr_in));
}

Test(msg, an_ipv6_address_keeps_its_form)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&fake_eps.peer;

	succeed(dofi_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
	cr_expect_eq(in6->sin6_family, AF_INET6);
	cr_expect(!memcmp(&in6->sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)));
	cr_expect_eq(ntohs(in6->sin6_port), PORT);
}

Test(msg, the_request_carries_the_most_private_data)
{
	DAT_COUNT size = ia->max_private_data;

	cr_assert_eq((size_t)size, sizeof(payload));
	succeed(dofi_ep_connect(ep, some_address(), MAPPED, DAT_TIMEOUT_INFINITE, size, payload,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
	cr_assert_eq(sent().data_size, (size_t)size);
	cr_expect(!memcmp(sent().data, payload, size));
	cr_expect(fake_eps.len <= fake.cm_data_size);
}

static void init_large(void)
{
	fabric_cm_data = 1000;
	init();
}

Test(msg, no_more_private_data_than_the_message_holds, .init = init_large)
{
	cr_expect_eq(ia->max_private_data, DOFI_WIRE_MAX_DATA);
}

static void init_small(void)
{
	fabric_cm_data = 56;
	init();
}

Test(msg, the_fabrics_private_data_less_the_header, .init = init_small)
{
	cr_expect_eq(ia->max_private_data, 56 - DOFI_WIRE_FIXED - DOFI_WIRE_SECRET);
}

/* like verbs */
static void init_least(void)
{
	fabric_cm_data = 55;
	fabric_key_size = 4;
	init();
}

/* dat_ep_connect() with @size bytes to @conn_qual. The header's room limits @size. */
static DAT_RETURN connect_of(DAT_CONN_QUAL conn_qual, DAT_COUNT size)
{
	DAT_RETURN ret = dofi_ep_connect(ep, some_address(), conn_qual, DAT_TIMEOUT_INFINITE, size,
					 payload, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);

	quiesce();
	if (!ret) {
		cr_expect_eq(sent().data_size, (size_t)size);
		cr_expect(fake_eps.len <= fake.cm_data_size);
		dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
		quiesce();
		event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
		succeed(dofi_ep_reset(ep));
	}
	return ret;
}

Test(msg, where_there_is_little_a_qualifier_that_is_no_port_takes_its_part, .init = init_least)
{
	static const struct {
		DAT_CONN_QUAL qual;
		DAT_COUNT room;
	} rows[] = {
		{ PORT, 51 }, { UINT16_MAX, 51 }, { 1023, 49 }, { UINT16_MAX + 1, 43 }, { MAPPED, 43 },
	};
	size_t i;

	cr_expect_eq(ia->max_private_data, 51);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		succeed(connect_of(rows[i].qual, rows[i].room));
		cr_expect_eq(DAT_GET_TYPE(connect_of(rows[i].qual, rows[i].room + 1)),
			     DAT_INVALID_PARAMETER);
	}
}

/* Without secrets the header reserves no room for one. */
Test(msg, the_same_where_keys_are_short, .init = init_small)
{
	DAT_COUNT before = ia->max_private_data;
	void *xport_ia = ia->xport_ia;

	ia->fabric.scoped_keys = false;
	cr_assert_eq(dofi_msg_xport.ia_init(ia), 0);
	cr_expect_eq(ia->max_private_data, before + DOFI_WIRE_SECRET);
	free(ia->xport_ia);
	ia->xport_ia = xport_ia;
}

Test(msg, the_ias_state_without_memory)
{
	static struct dofi_ia other;

	nomem_after(0);
	cr_expect_eq(dofi_msg_xport.ia_init(&other), -ENOMEM);
	cr_expect(nomem_failed());
	cr_expect(!other.xport_ia);
}

/* Each end sends the other a secret, a new one for each connection; see dofi_mr_fabric_key(). */
Test(msg, secrets_are_sent_and_kept)
{
	struct dofi_ep *e = ep;
	uint32_t first;

	peer_secret = 0xcafe0001;
	make_established();
	first = sent().secret;
	cr_expect(first);
	cr_expect_eq(e->secret, first);
	cr_expect_eq(e->peer_secret, 0xcafe0001);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	peer_secret = 0;		/* the peer has no secret */
	make_established();
	cr_expect(sent().secret && sent().secret != first);
	cr_expect_eq(e->peer_secret, 0);
}

Test(msg, where_keys_have_no_room_for_a_secret_there_is_none)
{
	ia->fabric.scoped_keys = false;
	connect_to(ep, PORT);
	cr_expect_eq(sent().secret, 0);
}

Test(msg, an_acceptance_connects_with_its_data)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last,
		 wire(DOFI_WIRE_ACCEPT, 0, payload, sizeof(payload)));
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, sizeof(payload));
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg, padding_after_the_acceptance_is_none_of_its_data)
{
	unsigned char padded[200] = { 0 };
	struct bytes bytes = wire(DOFI_WIRE_ACCEPT, 0, payload, 5);

	memcpy(padded, bytes.data, bytes.len);
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ padded, sizeof(padded) });
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data,
		payload, 5);
}

/* The end of an established connection */

Test(msg, the_peers_end_is_reported_once)
{
	struct fid_ep *fid;

	make_established();
	fid = fake_eps.last;
	thread_hold();
	fake_event_add(&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fid->fid });
	fake_event_add(&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fid->fid });
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg, an_error_breaks_a_connection)
{
	make_established();
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg, a_rejection_of_what_stands_breaks_it_without_data)
{
	DAT_CONNECTION_EVENT_DATA data;

	make_established();
	cm_error(fake_eps.last, ECONNREFUSED, wire(DOFI_WIRE_REJECT, 0, payload, 5));
	data = ended_with(DAT_CONNECTION_EVENT_BROKEN);
	carries(data, NULL, 0);
}

Test(msg, a_disconnect_shuts_the_endpoint_down)
{
	make_established();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.shutdowns, 1);
}

static void init_sockets(void)
{
	fabric_name = "sockets";
	init();
}

Test(msg, no_shutdown_where_that_closes_a_descriptor_twice, .init = init_sockets)
{
	make_established();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.shutdowns, 0);
}

Test(msg, a_fabric_that_fails_to_close_does_not_stop_the_end)
{
	make_established();
	fake_eps.fault.close = -FI_EBUSY;
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg, a_disconnect_gives_the_attempt_up)
{
	connect_to(ep, PORT);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg, a_disconnect_before_the_attempt_opens_nothing)
{
	thread_hold();
	succeed(dofi_ep_connect(ep, some_address(), PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.opened, 0);
}

Test(msg, a_disconnect_between_two_ports_tries_no_more)
{
	connect_to(ep, MAPPED);
	thread_hold();
	fake_event_add(&(struct fake_event){
		.err = ECONNREFUSED, .entry.fid = &fake_eps.last->fid });
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg, freeing_a_connected_endpoint_is_silent)
{
	make_established();
	succeed(dofi_ep_free(ep));
	quiesce();
	cr_expect(event_none(evd));
	cr_expect_eq(fake_eps.open, 0);
}

Test(msg, closing_the_ia_closes_what_is_connecting)
{
	connect_to(ep, PORT);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake.open, 0);
}

Test(msg, many_connections_are_distinguished)
{
	enum { N = 20 };
	DAT_EP_HANDLE eps[N];
	struct fid_ep *fid[N];
	int i;

	for (i = 0; i < N; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
		fid[i] = fake_eps.last;
	}
	for (i = N - 1; i >= 0; i -= 2)
		cm_event(FI_CONNECTED, fid[i], wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	for (i = N - 1; i >= 0; i -= 2) {
		DAT_EVENT event = event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

		cr_expect_eq(event.event_data.connect_event_data.ep_handle, eps[i]);
	}
	for (i = 0; i < N; i++)
		cr_expect_eq(state_of(eps[i]), i % 2 ? DAT_EP_STATE_CONNECTED :
						       DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

/* Accepting */

static DAT_PSP_HANDLE psp;
static DAT_CR_HANDLE cr;

static void init_request(void)
{
	init();
	psp = psp_make(PORT);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, payload, 10));
	cr = cr_take();
}

TestSuite(msg_accept, .init = init_request, .fini = xport_fini);

static void accept_request(void)
{
	succeed(dofi_cr_accept(cr, ep, 3, payload));
	quiesce();
}

Test(msg_accept, a_requester_with_an_srq_is_sent_frames)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_REQUEST, .framed = true };

	cr_expect(!((struct dofi_cr *)cr)->framed);
	cm_request(fake_eps.last_pep, (struct bytes){ buf, dofi_wire_pack(buf, &msg) });
	cr = cr_take();
	accept_request();
	cr_expect(inside()->framed);
	cr_expect(!sent().framed);
}

Test(msg_accept, quality_of_the_endpoint)
{
	make_ep_of(DAT_QOS_HIGH_THROUGHPUT);
	accept_request();
	cr_expect_eq(fake_eps.tclass, FI_TC_BULK_DATA);
}

static void accepting_fails(void)
{
	accept_request();
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

Test(msg_accept, without_an_endpoint)
{
	fake_eps.fault.endpoint = -FI_ENOMEM;
	accepting_fails();
}

Test(msg_accept, without_the_event_queue)
{
	fake_eps.fault.bind_eq = -FI_ENOMEM;
	accepting_fails();
}

Test(msg_accept, without_the_completion_queue)
{
	fake_eps.fault.bind_cq = -FI_ENOMEM;
	accepting_fails();
}

Test(msg_accept, without_enabling)
{
	fake_eps.fault.enable = -FI_ENOMEM;
	accepting_fails();
}

Test(msg_accept, without_memory)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		accept_request();
		if (!nomem_failed())
			break;
		ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		succeed(dofi_ep_reset(ep));
		cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, payload, 10));
		cr = cr_take();
	}
	cr_expect_eq(n, 3, "the endpoint, and twice to find it: %d", n);
	cr_expect_eq(fake_eps.accepts, 1);
}

Test(msg_accept, that_the_fabric_refuses)
{
	fake_eps.fault.accept = -FI_ECONNRESET;
	accepting_fails();
	cr_expect_eq(fake_eps.accepts, 1);
	cr_expect_eq(fake_eps.rejects, 0, "the request went with it");
}

static void init_verbs_request(void)
{
	fabric_name = "verbs";
	init_request();
}

/* Otherwise verbs would keep the request. */
static void request_is_rejected(void)
{
	const bool kept = FI_VERSION_GE(FI_VERSION(2, 1), fi_version());

	accepting_fails();
	cr_expect_eq(fake_eps.rejects, kept);
	cr_expect_eq(fake_eps.handle, kept ? &request_handle : NULL);
}

Test(msg_accept, that_verbs_refuse_is_rejected, .init = init_verbs_request)
{
	fake_eps.fault.accept = -FI_ECONNRESET;
	request_is_rejected();
}

/* Enabling fails if rdma_cm finds that the requester is gone. */
Test(msg_accept, that_verbs_cannot_enable_is_rejected, .init = init_verbs_request)
{
	fake_eps.fault.enable = -FI_EINVAL;
	request_is_rejected();
}

Test(msg_accept, of_verbs_leaves_no_request, .init = init_verbs_request)
{
	accept_request();
	cr_expect_eq(fake_eps.accepts, 1);
	cr_expect_eq(fake_eps.rejects, 0);
}

Test(msg_accept, the_requester_leaves_meanwhile)
{
	accept_request();
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

Test(msg_accept, an_error_meanwhile)
{
	accept_request();
	cm_error(fake_eps.last, ECONNRESET, NO_BYTES);
	ended_with(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/*
 * The accept was given up before the progress thread handled it. The requester must get an answer.
 */
Test(msg_accept, given_up_it_refuses)
{
	thread_hold();
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.opened, 0);
	cr_expect_eq(fake_eps.rejects, 1);
	cr_expect_eq(fake_eps.handle, &request_handle);
	cr_expect_eq(sent().kind, DOFI_WIRE_REFUSE);
}

Test(msg_accept, the_answer_carries_its_data)
{
	accept_request();
	cr_expect_eq(fake_eps.accepts, 1);
	cr_expect_eq(sent().kind, DOFI_WIRE_ACCEPT);
	cr_assert_eq(sent().data_size, 3);
	cr_expect(!memcmp(sent().data, payload, 3));
	cr_expect(event_none(evd), "not before the fabric says so");
}

static void init_request_with_secret(void)
{
	peer_secret = 0xcafe0002;
	init_request();
}

Test(msg_accept, secrets_are_sent_and_kept, .init = init_request_with_secret)
{
	struct dofi_ep *e = ep;

	accept_request();
	cr_expect(sent().secret);
	cr_expect_eq(e->secret, sent().secret);
	cr_expect_eq(e->peer_secret, 0xcafe0002);
}

/* The acceptor's event carries no data, even if the fabric delivers some. */
Test(msg_accept, it_stands_when_the_fabric_says_so)
{
	accept_request();
	cm_event(FI_CONNECTED, fake_eps.last, (struct bytes){ "stray", 5 });
	carries(event_only(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data, NULL, 0);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_accept, the_listener_may_be_gone)
{
	succeed(dofi_psp_free(psp));
	cr_expect_eq(fake_eps.peps_open, 1, "the request needs it");
	accept_request();
	cr_expect_eq(fake_eps.peps_open, 0);
	cm_event(FI_CONNECTED, fake_eps.last, NO_BYTES);
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* The whole fabric */

Test(msg, a_fabric_that_fails_is_the_end_of_the_ia)
{
	DAT_ASYNCH_ERROR_EVENT_DATA d;

	ia->async_evd = evd_make(4, DAT_EVD_ASYNC_FLAG);
	fake.fault.eq_read = -FI_EIO;
	quiesce();
	quiesce();
	d = event_take(ia->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC).event_data.asynch_error_event_data;
	cr_expect_eq(d.dat_handle, (DAT_HANDLE)ia);
	cr_expect_eq(d.reason, DAT_IA_CATASTROPHIC_ERROR);
	cr_expect(event_none(ia->async_evd));
	fake.fault.eq_read = 0;
}

/* Operations */

static const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

static void init_established(void)
{
	init();
	make_established();
}

TestSuite(msg_submit, .init = init_established, .fini = xport_fini);

/* The last operation was of @kind, with segments of 8 bytes at offsets 0, 64, ... */
static void reached(enum fake_op kind, size_t count)
{
	size_t i;

	cr_assert_eq(fake_eps.op, kind);
	cr_assert_eq(fake_eps.count, count);
	for (i = 0; i < count; i++) {
		cr_expect_eq(fake_eps.iov[i].iov_base, memory + 64 * i);
		cr_expect_eq(fake_eps.iov[i].iov_len, 8);
	}
}

static DAT_LMR_TRIPLET *segments(void)
{
	static DAT_LMR_TRIPLET iov[3];
	int i;

	for (i = 0; i < 3; i++)
		iov[i] = segment(64 * i, 8);
	return iov;
}

static void empty(enum fake_op kind)
{
	cr_expect_eq(fake_eps.op, kind);
	cr_expect_eq(fake_eps.iov[0].iov_len, 0);
}

Test(msg_submit, sends)
{
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_SEND, 1);
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_SENDV, 3);
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	empty(FAKE_SEND);
}

#if DAT_VERSION_MAJOR >= 2
Test(msg_submit, sends_that_invalidate)
{
	DAT_COUNT n;

	ia->fabric.cq_data = true;
	for (n = 0; n <= 3; n++) {
		succeed(dofi_ep_post_send_with_invalidate(ep, n, n ? segments() : NULL, cookie,
							  DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE,
							  0x87654321));
		reached(FAKE_SENDMSG, (size_t)n);
		cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
		cr_expect_eq(fake_eps.cq_data, 0x187654321);
	}
}
#endif

Test(msg_submit, plain_operations_call_the_fabric_without_another_function_between)
{
	const struct dofi_ep *e = ep;

	cr_expect(e->fast.send == e->fid->msg->send);
	cr_expect(e->fast.recv == e->fid->msg->recv);
	cr_expect(e->fast.to == e->fid);
}

Test(msg_submit, receives)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECV, 1);
	succeed(dofi_ep_post_recv(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECVV, 3);
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1, "tcp does not end a message that finds no room at all");
}

Test(msg_submit, a_receive_is_had_back_when_its_lmr_is_freed)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake_eps.cancels, 1);
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1, "posted again, without the memory");
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

/* The device uses the memory by its registration, which has ended. */
Test(msg_submit, a_device_keeps_a_receive_whose_lmr_is_freed)
{
	int ops;

	ia->fabric.info->domain_attr->mr_mode |= FI_MR_LOCAL;
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	ops = fake_eps.ops;
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(fake_eps.cancels, 0);
	cr_expect_eq(fake_eps.ops, ops);
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

#define FLAG DAT_COMPLETION_SOLICITED_WAIT_FLAG

Test(msg_submit, a_solicited_message_says_so)
{
	ia->fabric.cq_data = true;
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 1);
	cr_expect_eq(fake_eps.flags, FI_REMOTE_CQ_DATA);
	cr_expect_eq(fake_eps.cq_data, dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0));
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 3);
	succeed(dofi_ep_post_send(ep, 0, NULL, cookie, FLAG));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.count, 0);
}

/* On such a fabric no receiver can have requested the notification. */
Test(msg_submit, a_fabric_without_remote_cq_data_carries_the_message)
{
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, FLAG));
	reached(FAKE_SENDMSG, 1);
	cr_expect_eq(fake_eps.flags, 0);
}

static void receive_with_data(uint64_t data)
{
	struct fake_completion *c;

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	thread_hold();
	c = &fake.completion[fake.cq_tail % FAKE_QUEUE];
	fake_complete(fake_eps.context, 0);
	c->entry.flags = FI_RECV | FI_REMOTE_CQ_DATA;
	c->entry.data = data;
	thread_release();
	/* the progress thread may have left the queue to the program, or may be reading it */
	dofi_cq_drain(&((struct dofi_ep *)ep)->pz->domain.cq);
	quiesce();
}

static DAT_DTO_COMPLETION_STATUS status_next(void)
{
	return event_take(evd, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status;
}

Test(msg_submit, a_solicited_message_is_received)
{
	receive_with_data(dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0));
	cr_expect_eq(status_next(), DAT_DTO_SUCCESS);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
}

Test(msg_submit, what_no_peer_of_ours_sends_breaks_the_connection)
{
	receive_with_data(0xdead000000000000);
	cr_expect_eq(status_next(), DAT_DTO_ERR_TRANSPORT);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

static void init_established_sockets(void)
{
	init_sockets();
	make_established();
}

Test(msg_submit, an_empty_receive_is_empty_elsewhere, .init = init_established_sockets)
{
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	empty(FAKE_RECV);
}

static void reached_remote(uint64_t len)
{
	DAT_RMR_TRIPLET remote = remote_segment(len);

	cr_expect_eq(fake_eps.remote_key, remote.rmr_context);
	cr_expect_eq(fake_eps.remote_addr, 0x5000);
}

Test(msg_submit, reads)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	succeed(dofi_ep_post_rdma_read(ep, 1, segments(), cookie, &one, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_READ, 1);
	reached_remote(8);
	succeed(dofi_ep_post_rdma_read(ep, 3, segments(), cookie, &three, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_READV, 3);
	reached_remote(24);
}

/* A completed write must be in the peer's memory. The fabric's flags ensure that. */
Test(msg_submit, writes)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	ia->fabric.write_flags = FI_DELIVERY_COMPLETE;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 1);
	reached_remote(8);
	cr_expect_eq(fake_eps.remote_len, 8);
	cr_expect_eq(fake_eps.flags, FI_DELIVERY_COMPLETE);
	succeed(dofi_ep_post_rdma_write(ep, 3, segments(), cookie, &three, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 3);
	cr_expect_eq(fake_eps.remote_len, 24);
}

/* The peer's secret completes a context of connection scope. */
Test(msg_submit, keys_of_one_connection)
{
	DAT_RMR_TRIPLET one = remote_segment(8), three = remote_segment(24);

	((struct dofi_ep *)ep)->peer_secret = 0xcafe0003;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one, DAT_COMPLETION_DEFAULT_FLAG));
	reached_remote(8);
	one.rmr_context |= DOFI_KEY_SCOPED;
	three.rmr_context |= DOFI_KEY_SCOPED;
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &one, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | one.rmr_context);
	succeed(dofi_ep_post_rdma_read(ep, 1, segments(), cookie, &one, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | one.rmr_context);
	succeed(dofi_ep_post_rdma_read(ep, 3, segments(), cookie, &three, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.remote_key, 0xcafe000300000000ULL | three.rmr_context);
}

Test(msg_submit, what_fails_breaks_the_connection)
{
	fake_eps.fault.op = -FI_EOTHER;
	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	quiesce();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	ended_with(DAT_CONNECTION_EVENT_BROKEN);
}

Test(msg_submit, what_finds_no_room_waits_for_a_completion)
{
	void *context;

	succeed(dofi_ep_post_send(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	context = fake_eps.context;
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_eps.ops, 1);
	fake_eps.fault.op = 0;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	/* the progress thread may have delivered the completion, and sends what is queued now */
	settle();
	cr_expect_eq(fake_eps.ops, 2);
	reached(FAKE_SENDV, 3);
}

/* The peer receives from an SRQ, and its answer reports that. */

static struct bytes framed_answer(void)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_ACCEPT, .framed = true };

	return (struct bytes){ buf, dofi_wire_pack(buf, &msg) };
}

static void init_framed(void)
{
	init();
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, framed_answer());
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static DAT_RETURN send_bytes(size_t length)
{
	DAT_LMR_TRIPLET s = segment(0, length);

	return dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static struct msg_frame frame_sent(size_t len)
{
	struct msg_frame frame = { .length = 0 };

	cr_expect_eq(msg_frame_unpack(fake_eps.injected, len, &frame), 0);
	return frame;
}

Test(msg_submit, a_short_message_goes_along_with_its_frame, .init = init_framed)
{
	size_t i;

	for (i = 0; i < 3; i++)
		memset(memory + 64 * i, 'a' + (int)i, 8);
	succeed(dofi_ep_post_send(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_assert_eq(fake_eps.op, FAKE_SENDMSG);
	cr_expect_eq(fake_eps.ops, 1);
	cr_expect(fake_eps.flags & FI_INJECT && fake_eps.flags & FI_COMPLETION);
	cr_expect(frame_sent(MSG_FRAME_HEADER + 24).whole);
	cr_expect(!memcmp(fake_eps.injected + MSG_FRAME_HEADER, "aaaaaaaabbbbbbbbcccccccc", 24));
	fake_complete(fake_eps.context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
}

Test(msg_submit, the_longest_that_goes_along_fills_what_can_be_injected, .init = init_framed)
{
	succeed(send_bytes(MSG_FRAME_MAX - MSG_FRAME_HEADER));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	succeed(send_bytes(MSG_FRAME_MAX - MSG_FRAME_HEADER + 1));
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	ia->limits.inject_size = MSG_FRAME_HEADER + 8;
	succeed(send_bytes(8));
	cr_expect_eq(fake_eps.op, FAKE_SENDMSG);
	succeed(send_bytes(9));
	cr_expect_eq(fake_eps.op, FAKE_SEND);
}

Test(msg_submit, a_long_message_is_announced_and_sent_from_where_it_is, .init = init_framed)
{
	succeed(send_bytes(1000));
	cr_expect_eq(fake_eps.ops, 2);
	cr_assert_eq(fake_eps.op, FAKE_SEND);
	cr_expect_eq(fake_eps.iov[0].iov_base, memory);
	cr_expect_eq(fake_eps.iov[0].iov_len, 1000);
	cr_expect_eq(frame_sent(MSG_FRAME_HEADER).length, 1000);
	cr_expect(!frame_sent(MSG_FRAME_HEADER).whole);
}

Test(msg_submit, a_message_is_announced_once, .init = init_framed)
{
	void *context;

	succeed(send_bytes(8));
	context = fake_eps.context;
	fake_eps.fault.op = -FI_EAGAIN;
	succeed(send_bytes(1000));
	cr_expect_eq(fake_eps.ops, 1, "not even announced");
	fake_eps.fault.op_only = FAKE_SEND;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	settle();
	cr_expect_eq(fake_eps.ops, 2, "announced");
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	context = fake_eps.context;
	fake_eps.fault.op = 0;
	fake_complete(context, 0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	settle();
	cr_expect_eq(fake_eps.op, FAKE_SEND);
	cr_expect_eq(fake_eps.ops, 4, "and then sent");
}

Test(msg_submit, only_sends_are_framed, .init = init_framed)
{
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_RECV, 1);
	succeed(dofi_ep_post_rdma_write(ep, 1, segments(), cookie, &r, DAT_COMPLETION_DEFAULT_FLAG));
	reached(FAKE_WRITE, 1);
}

/* Our endpoint of an SRQ reports that in its request, and posts a receive for frames. */
static void make_shared(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR ep_attr = inside()->attr;
	DAT_SRQ_HANDLE srq;

	succeed(dofi_srq_create(ia, pz, &srq_attr, &srq));
	succeed(dofi_ep_free(ep));
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &ep_attr, &ep));
}

Test(msg_submit, an_endpoint_of_an_srq_asks_for_frames, .init = init)
{
	make_shared();
	connect_to(ep, PORT);
	cr_expect(sent().framed);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(fake_eps.op, FAKE_RECV);
	cr_expect_eq(fake_eps.iov[0].iov_len, MSG_FRAME_MAX);
	cr_expect(!inside()->framed, "its peer does not");
}

Test(msg_submit, where_an_end_overtakes_what_was_sent_the_last_of_it_is_awaited, .init = init_sockets)
{
	make_shared();
	make_established();
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	cr_expect_eq(state_of(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
	cr_expect(inside()->timer.at);
}

Test(msg_submit, the_end_flushes_what_is_outstanding)
{
	int i;

	for (i = 0; i < 3; i++)
		succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	for (i = 0; i < 3; i++) {
		DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);

		cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	}
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/*
 * Operations that the fabric completed before the end count, even if the completions were not read.
 */
Test(msg_submit, the_end_finds_what_was_completed)
{
	DAT_EVENT event;

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	thread_hold();
	fake_complete(fake_eps.context, 0);
	fake_event_add(&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fake_eps.last->fid });
	thread_release();
	quiesce();
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* A refused attempt would flush the receives. */
Test(msg, receives_wait_until_an_attempt_succeeds)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 3, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	connect_to(ep, MAPPED);
	cm_error(fake_eps.last, ECONNREFUSED, NO_BYTES);
	cr_expect_eq(fake_eps.connects, 2);
	cr_expect_eq(fake_eps.ops, 0);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(fake_eps.ops, 2);
	reached(FAKE_RECVV, 3);
}

/* The peer may send as soon as it is accepted. */
Test(msg_accept, receives_are_there_before_the_answer)
{
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	accept_request();
	cr_expect_eq(fake_eps.ops_at_connect, 2);
}
