/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connecting and accepting, and every way in which a fabric fails at it. */

#include "xport/msg/one.h"

#include "fab/quirks.h"
#include "nomem.h"

#include <arpa/inet.h>

TestSuite(msg_connect, .init = init, .fini = xport_fini);
TestSuite(msg_accept, .init = init_request, .fini = xport_fini);

/* Connecting: the fabric fails at once */

Test(msg_connect, connect_that_the_fabric_refuses)
{
	fake_eps.fault.connect = -FI_ECONNREFUSED;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_connect, connect_to_an_address_without_route)
{
	fake_eps.fault.connect = -FI_ENETUNREACH;
	connecting_fails(DAT_CONNECTION_EVENT_UNREACHABLE);
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
Test(msg_connect, connect_to_addresses_of_no_host)
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

/* Connecting: the request, and the established connection */

Test(msg_connect, the_request_goes_to_the_address_and_port)
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
Test(msg_connect, the_source_is_the_ias_address)
{
	ia->fabric.wildcard = true;
	connect_to(ep, PORT);
	cr_expect_eq(fake_eps.source_len, 0);
	ia->fabric.wildcard = false;
	connect_to(ep_make(), PORT);
	cr_expect_eq(fake_eps.source_len, sizeof(struct sockaddr_in));
}

Test(msg_connect, an_ipv6_address_keeps_its_form)
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

Test(msg_connect, the_request_carries_the_most_private_data)
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

/* Each end sends the other a secret, a new one for each connection; see dofi_mr_fabric_key(). */
Test(msg_connect, secrets_are_sent_and_kept)
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

Test(msg_connect, where_keys_have_no_room_for_a_secret_there_is_none)
{
	ia->fabric.scoped_keys = false;
	connect_to(ep, PORT);
	cr_expect_eq(sent().secret, 0);
}

/* Accepting */

Test(msg_accept, a_requester_with_an_srq_is_sent_preambles)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = { .kind = DOFI_WIRE_REQUEST, .preambles = true };

	cr_expect(!((struct dofi_cr *)cr)->preambles);
	cm_request(fake_eps.last_pep, (struct bytes){ buf, dofi_wire_pack(buf, &msg) });
	cr = cr_take();
	accept_request();
	cr_expect(inside()->preambles);
	cr_expect(!sent().preambles);
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
	cr_expect_eq(fake_eps.rejects, 1, "the requester gets an answer");
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

Test(msg_accept, an_accept_that_the_fabric_refuses_fails)
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

Test(msg_accept, an_accept_that_verbs_refuse_is_rejected, .init = init_verbs_request)
{
	fake_eps.fault.accept = -FI_ECONNRESET;
	request_is_rejected();
}

/* Enabling fails if rdma_cm finds that the requester is gone. */
Test(msg_accept, an_endpoint_that_verbs_cannot_enable_is_rejected, .init = init_verbs_request)
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

Test(msg_accept, the_listener_may_be_gone)
{
	succeed(dofi_psp_free(psp));
	cr_expect_eq(fake_eps.peps_open, 1, "the request needs it");
	accept_request();
	cr_expect_eq(fake_eps.peps_open, 0);
	cm_event(FI_CONNECTED, fake_eps.last, NO_BYTES);
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* The last request at a listener of tcp closes it, which processes the fabric's events. */
Test(msg_accept, a_failed_accept_is_no_connection_when_its_listener_closes)
{
	static struct dofi_quirk quirk;

	quirk = *ia->fabric.quirk;
	quirk.keeps_half_open = true;
	ia->fabric.quirk = &quirk;
	succeed(dofi_psp_free(psp));
	fake_eps.connects_at_accept = true;
	fake_eps.fault.accept = -FI_ECONNRESET;
	accepting_fails();
	cr_expect_eq(fake_eps.peps_open, 0);
}
