/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How two datperf processes exchange messages over TCP, on a fabric without connections. The test
 * runs both ends in one thread.
 */
#include "perf_oob.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static struct perf_oob server, client;
static struct perf_xport xs, xc;
static unsigned int port;

static void init(void)
{
	xs = xc = (struct perf_xport){ .timeout_ms = 5000, .wait_client_ms = 5000 };
	perf_oob_init(&server);
	perf_oob_init(&client);
	port = 0;
	cr_assert_eq(perf_oob_listen(&server, &xs, &port), 0, "%s", xs.err);
	cr_assert_gt(port, 0);
}

static void fini(void)
{
	perf_oob_close(&client);
	perf_oob_close(&server);
}

TestSuite(perf_oob, .init = init, .fini = fini);

static int connect_to(unsigned int to)
{
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(1); /* the port of an IA's address is ignored */
	return perf_oob_connect(&client, &xc, (struct sockaddr *)&addr, to);
}

static void establish(void)
{
	cr_assert_eq(connect_to(port), 0, "%s", xc.err);
	cr_assert_eq(perf_oob_accept(&server, &xs), 0, "%s", xs.err);
}

Test(perf_oob, bytes_go_both_ways)
{
	char got[6] = "";

	establish();
	cr_expect_eq(perf_oob_send(&client, &xc, "hello", 6), 0);
	cr_expect_eq(perf_oob_recv(&server, &xs, got, 6), 0);
	cr_expect_str_eq(got, "hello");
	cr_expect_eq(perf_oob_send(&server, &xs, "again", 6), 0);
	cr_expect_eq(perf_oob_recv(&client, &xc, got, 6), 0);
	cr_expect_str_eq(got, "again");
	cr_expect(!perf_oob_peer_closed(&server) && !perf_oob_peer_closed(&client));
}

Test(perf_oob, partial_sends_are_joined)
{
	char got[4] = "";

	establish();
	perf_oob_send(&client, &xc, "ab", 2);
	perf_oob_send(&client, &xc, "c", 2);
	cr_expect_eq(perf_oob_recv(&server, &xs, got, 4), 0);
	cr_expect_str_eq(got, "abc");
}

Test(perf_oob, close_is_detected)
{
	char got[6];

	establish();
	perf_oob_send(&client, &xc, "he", 2);
	perf_oob_close(&client);
	cr_expect_eq(perf_oob_recv(&server, &xs, got, 6), -1);
	cr_expect(strstr(xs.err, "closed the connection"), "%s", xs.err);
	cr_expect(perf_oob_peer_closed(&server));
}

/* Data that no caller has requested counts as closed. */
Test(perf_oob, unread_data_counts_as_closed)
{
	establish();
	perf_oob_send(&client, &xc, "x", 1);
	while (!perf_oob_peer_closed(&server))
		;
}

Test(perf_oob, recv_times_out)
{
	char got[6];

	xs.timeout_ms = 1;
	establish();
	cr_expect_eq(perf_oob_recv(&server, &xs, got, 6), -1);
	cr_expect(strstr(xs.err, "no answer"), "%s", xs.err);
	cr_expect(!perf_oob_peer_closed(&server));
}

/* Without the change the test would take the 5 s of init(). */
Test(perf_oob, timeout_can_be_changed, .timeout = 4)
{
	char byte;

	establish();
	perf_oob_set_timeout(&server, 1);
	cr_expect_eq(perf_oob_recv(&server, &xs, &byte, 1), -1);
	cr_expect(strstr(xs.err, "no answer from the peer"), "%s", xs.err);
}

Test(perf_oob, accept_times_out)
{
	xs.wait_client_ms = 1;
	cr_expect_eq(perf_oob_accept(&server, &xs), -1);
	cr_expect(strstr(xs.err, "no client"), "%s", xs.err);
}

Test(perf_oob, connect_without_listener_fails)
{
	perf_oob_close(&server);
	cr_expect_eq(connect_to(port), -1);
	cr_expect(strstr(xc.err, "cannot connect"), "%s", xc.err);
}

Test(perf_oob, port_in_use_is_an_error)
{
	cr_expect_eq(perf_oob_listen(&client, &xc, &port), -1);
	cr_expect(strstr(xc.err, "cannot listen"), "%s", xc.err);
}

Test(perf_oob, close_twice_is_harmless)
{
	fini();
	cr_expect_eq(server.listener, -1);
	cr_expect_eq(server.fd, -1);
	init();
}
