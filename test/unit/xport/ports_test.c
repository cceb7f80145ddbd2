/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Qualifiers at ports: which of them share a port, when it opens and closes, and which port is
 * tried next.
 */

#include "xport/ports.h"

#include "base/log.h"
#include "capture.h"
#include "fab/quirks.h"
#include "obj/fixture.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORT 4711
#define LOW 80				/* an ordinary user may not bind it */
#define MAPPED 70000
#define ANY 33333			/* the result of opening any port */
#define TRIES 4				/* ports of a mapped qualifier */

/* Opens and closes ports. */
static struct {
	uint16_t asked[16];
	int results[16];		/* of the opens, in this order */
	unsigned opens, closes;
	struct dofi_port *closed;
	bool visits;			/* a request arrives and ends while a port closes */
} net;

static struct dofi_ports ports;
static void *xport_ia;			/* of the fixture */

static int port_open(struct dofi_ia *of, uint16_t number, struct dofi_port **out)
{
	const int ret = net.results[net.opens];
	struct dofi_port *port;

	cr_assert_eq(of, ia);
	net.asked[net.opens++] = number;
	if (ret)
		return ret;
	port = calloc(1, sizeof(*port));
	port->ia = of;
	port->number = number ? number : ANY;
	*out = port;
	return 0;
}

static void port_close(struct dofi_port *port)
{
	net.closes++;
	net.closed = port;
	if (!net.visits)
		return;
	cr_expect(!dofi_port_sp(port, 0));
	port->users++;
	dofi_port_put(port);
}

static const struct dofi_ports_ops net_ops = { .open = port_open, .close = port_close };

static void init(void)
{
	objects_init();
	dofi_ports_init(&ports, &net_ops);
	xport_ia = ia->xport_ia;
	ia->xport_ia = &ports;
}

static void fini(void)
{
	cr_expect(TAILQ_EMPTY(&ports.list));
	ia->xport_ia = xport_ia;
	ia_fini();
}

TestSuite(ports, .init = init, .fini = fini);

static struct dofi_sp sp_of(DAT_CONN_QUAL conn_qual)
{
	struct dofi_sp sp = { .conn_qual = conn_qual };

	sp.obj.ia = ia;
	return sp;
}

Test(ports, a_qualifier_that_fits_is_the_port)
{
	struct dofi_sp sp = sp_of(PORT), again = sp_of(PORT);

	cr_assert_eq(dofi_ports_listen(&sp), 0);
	cr_expect_eq(net.asked[0], PORT);
	cr_expect_eq(dofi_port_sp(sp.listener, 0), &sp, "0 is the port's own");
	cr_expect_eq(dofi_port_sp(sp.listener, PORT), &sp);
	cr_expect(!dofi_port_sp(sp.listener, PORT + 1));
	cr_expect_eq(dofi_ports_listen(&again), -EADDRINUSE);
	cr_expect_eq(net.opens, 1);
	dofi_ports_unlisten(&sp);
	cr_expect_eq(net.closes, 1);
}

Test(ports, any_port_names_the_qualifier)
{
	struct dofi_sp sp = sp_of(0), failing = sp_of(0);

	cr_assert_eq(dofi_ports_listen(&sp), 0);
	cr_expect_eq(net.asked[0], 0);
	cr_expect_eq(sp.conn_qual, ANY);
	cr_expect_eq(dofi_port_sp(sp.listener, 0), &sp);
	net.results[1] = -ENOMEM;
	cr_expect_eq(dofi_ports_listen(&failing), -ENOMEM);
	cr_expect_eq(failing.conn_qual, 0);
	dofi_ports_unlisten(&sp);
}

Test(ports, a_port_is_shared_and_closes_with_its_last_user)
{
	struct dofi_sp mapped = sp_of(MAPPED), own = sp_of(dofi_wire_port(MAPPED, 0));
	struct dofi_port *port;

	cr_assert_eq(dofi_ports_listen(&mapped), 0);
	cr_assert_eq(dofi_ports_listen(&own), 0);
	port = mapped.listener;
	cr_expect_eq(own.listener, port);
	cr_expect_eq(net.opens, 1);
	cr_expect_eq(dofi_port_sp(port, MAPPED), &mapped);
	cr_expect_eq(dofi_port_sp(port, 0), &own);

	/* a request that arrived there is unanswered */
	port->users++;
	dofi_ports_unlisten(&mapped);
	cr_expect(!dofi_port_sp(port, MAPPED));
	dofi_ports_unlisten(&own);
	cr_expect(!dofi_port_sp(port, 0));
	cr_expect_eq(net.closes, 0);
	net.visits = true;
	dofi_port_put(port);
	cr_expect_eq(net.closes, 1);
	cr_expect_eq(net.closed, port);
}

Test(ports, a_taken_port_leads_to_the_next)
{
	struct dofi_sp sp = sp_of(MAPPED);

	net.results[0] = net.results[1] = -EADDRINUSE;
	cr_assert_eq(dofi_ports_listen(&sp), 0);
	cr_expect_eq(net.opens, 3);
	cr_expect_eq(net.asked[0], dofi_wire_port(MAPPED, 0));
	cr_expect_eq(net.asked[1], dofi_wire_port(MAPPED, 1));
	cr_expect_eq(((struct dofi_port *)sp.listener)->number, dofi_wire_port(MAPPED, 2));
	dofi_ports_unlisten(&sp);
}

Test(ports, when_all_are_taken_so_is_the_qualifier)
{
	struct dofi_sp sp = sp_of(MAPPED);
	int i;

	for (i = 0; i < TRIES; i++)
		net.results[i] = -EADDRINUSE;
	cr_expect_eq(dofi_ports_listen(&sp), -EADDRINUSE);
	cr_expect_eq(net.opens, TRIES);
}

Test(ports, a_low_port_that_one_may_not_bind_is_mapped)
{
	struct dofi_sp sp = sp_of(LOW);

	net.results[0] = -EACCES;
	cr_assert_eq(dofi_ports_listen(&sp), 0);
	cr_expect_eq(net.asked[0], LOW);
	cr_expect_eq(net.asked[1], dofi_wire_port(LOW, 1));
	cr_expect_eq(dofi_port_sp(sp.listener, LOW), &sp);
	dofi_ports_unlisten(&sp);
}

Test(ports, a_low_port_that_is_taken_is_not)
{
	struct dofi_sp sp = sp_of(LOW);

	net.results[0] = -EADDRINUSE;
	cr_expect_eq(dofi_ports_listen(&sp), -EADDRINUSE);
	cr_expect_eq(net.opens, 1);
}

Test(ports, ports_that_one_may_not_bind_are_as_taken)
{
	struct dofi_sp sp = sp_of(PORT);

	net.results[0] = -EACCES;
	cr_expect_eq(dofi_ports_listen(&sp), -EADDRINUSE);
}

Test(ports, another_failure_ends_the_search)
{
	struct dofi_sp sp = sp_of(MAPPED);

	net.results[0] = -ENOMEM;
	cr_expect_eq(dofi_ports_listen(&sp), -ENOMEM);
	cr_expect_eq(net.opens, 1);
}

/* Addresses */

Test(ports, an_address_keeps_its_host_unless_it_is_any)
{
	struct sockaddr_storage base = { .ss_family = AF_INET }, address;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	((struct sockaddr_in *)&base)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect_eq(dofi_port_address(&address, &base, false, PORT), sizeof(*in));
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_eq(ntohs(in->sin_port), PORT);
	cr_expect_eq(dofi_port_address(&address, &base, true, PORT), sizeof(*in));
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_ANY));
}

Test(ports, of_ipv6_too)
{
	struct sockaddr_storage base = { .ss_family = AF_INET6 }, address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

	((struct sockaddr_in6 *)&base)->sin6_addr = in6addr_loopback;
	cr_expect_eq(dofi_port_address(&address, &base, false, PORT), sizeof(*in6));
	cr_expect(!memcmp(&in6->sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)));
	cr_expect_eq(ntohs(in6->sin6_port), PORT);
	cr_expect_eq(dofi_port_address(&address, &base, true, PORT), sizeof(*in6));
	cr_expect(!memcmp(&in6->sin6_addr, &in6addr_any, sizeof(in6addr_any)));
}

/* Attempts */

static struct dofi_ep *ep;

static void attempt(DAT_CONN_QUAL conn_qual)
{
	ep = ep_make();
	succeed(dofi_ep_connect(ep, some_address(), conn_qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
}

static void ends_with(DAT_EVENT_NUMBER number)
{
	settle();
	event_take(evd, number);
	cr_expect(event_none(evd));
}

Test(ports, each_is_tried_when_no_peer_answers)
{
	unsigned i;

	attempt(MAPPED);
	for (i = 1; i < TRIES; i++) {
		cr_expect(dofi_port_next(ep, ECONNREFUSED, NULL));
		cr_expect_eq(ep->attempt, i);
	}
	cr_expect(!dofi_port_next(ep, ECONNREFUSED, NULL));
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(ports, an_only_port_is_tried_once)
{
	attempt(PORT);
	cr_expect(!dofi_port_next(ep, ECONNREFUSED, NULL));
	ends_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(ports, no_port_of_a_host_out_of_reach_is)
{
	static const int errors[] = {
		ENETUNREACH, EHOSTUNREACH, EHOSTDOWN, ENETDOWN, ETIMEDOUT, EADDRNOTAVAIL, EINVAL,
		EACCES,
	};
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		attempt(MAPPED);
		cr_expect(!dofi_port_next(ep, errors[i], NULL));
		cr_expect_eq(ep->attempt, 0);
		ends_with(DAT_CONNECTION_EVENT_UNREACHABLE);
	}
}

/* The log of an attempt that fails for a reason given, or for the usual reason of its errno. */
static const struct {
	int err;
	const char *why, *logged;
} reasons[] = {
	{ ECONNREFUSED, NULL, "refused, no program listens at the port" },
	{ ECONNREFUSED, DOFI_NO_LISTENER, DOFI_NO_LISTENER },
	{ ENOPROTOOPT, NULL, DOFI_FOREIGN_ANSWER },
	{ ECONNRESET, NULL, DOFI_NO_ANSWER },
	{ ENETUNREACH, NULL, "no route leads to the address" },
	{ EACCES, NULL, "the route to the address is prohibited" },
	{ EMFILE, NULL, "Too many open files" },
};

Test(ports, the_end_of_an_attempt_is_logged_with_its_reason)
{
	struct capture capture;
	size_t i;

	dofi_log_max = DOFI_WARN;
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		attempt(PORT);
		capture_begin(&capture);
		dofi_port_next(ep, reasons[i].err, reasons[i].why);
		capture_end(&capture);
		cr_expect(strstr(capture.text, "no connection to 127.0.0.1, qualifier "), "%s",
			  capture.text);
		cr_expect(strstr(capture.text, reasons[i].logged), "%s", capture.text);
	}
}

/* A fabric that does not listen on both families. */
Test(ports, a_refusal_names_the_family_that_may_be_missing)
{
	static struct dofi_quirk one_family;
	struct capture capture;

	one_family = *ia->fabric.quirk;
	one_family.joins_families = false;
	ia->fabric.quirk = &one_family;
	dofi_log_max = DOFI_WARN;
	attempt(PORT);
	ep->request.peer.ss_family = AF_INET6;
	capture_begin(&capture);
	dofi_port_next(ep, ECONNREFUSED, NULL);
	capture_end(&capture);
	cr_expect(strstr(capture.text, "or one that listens on IPv4 only"), "%s", capture.text);
}

Test(ports, some_addresses_are_of_no_host)
{
	static const struct {
		const char *text;
		bool none;
	} rows[] = {
		{ "10.0.0.1", false }, { "223.255.255.255", false }, { "224.0.0.1", true },
		{ "240.0.0.1", true }, { "255.255.255.255", true },
	};
	struct sockaddr_storage address = { .ss_family = AF_INET };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		inet_pton(AF_INET, rows[i].text, &((struct sockaddr_in *)&address)->sin_addr);
		cr_expect_eq(dofi_port_address_of_none(&address), rows[i].none, "%s", rows[i].text);
	}
}
