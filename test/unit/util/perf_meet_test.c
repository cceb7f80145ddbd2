/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How two datperf processes exchange messages over TCP, on a fabric without connections. The test
 * runs both ends in one thread.
 */
#include "perf_meet.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static struct perf_meet server, client;
static struct perf_xport xs, xc;
static unsigned int port;

static void init(void)
{
	xs = xc = (struct perf_xport){ .timeout_ms = 5000, .wait_client_ms = 5000 };
	perf_meet_init(&server);
	perf_meet_init(&client);
	port = 0;
	cr_assert_eq(perf_meet_listen(&server, &xs, &port), 0, "%s", xs.err);
	cr_assert_gt(port, 0);
}

static void fini(void)
{
	perf_meet_close(&client);
	perf_meet_close(&server);
}

TestSuite(perf_meet, .init = init, .fini = fini);

static int connect_to(unsigned int to)
{
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(1); /* the port of an IA's address is ignored */
	return perf_meet_connect(&client, &xc, (struct sockaddr *)&addr, to);
}

static void meet(void)
{
	cr_assert_eq(connect_to(port), 0, "%s", xc.err);
	cr_assert_eq(perf_meet_accept(&server, &xs), 0, "%s", xs.err);
}

Test(perf_meet, bytes_go_both_ways)
{
	char got[6] = "";

	meet();
	cr_expect_eq(perf_meet_send(&client, &xc, "hello", 6), 0);
	cr_expect_eq(perf_meet_recv(&server, &xs, got, 6), 0);
	cr_expect_str_eq(got, "hello");
	cr_expect_eq(perf_meet_send(&server, &xs, "again", 6), 0);
	cr_expect_eq(perf_meet_recv(&client, &xc, got, 6), 0);
	cr_expect_str_eq(got, "again");
	cr_expect(!perf_meet_over(&server) && !perf_meet_over(&client));
}

Test(perf_meet, parts_are_put_together)
{
	char got[4] = "";

	meet();
	perf_meet_send(&client, &xc, "ab", 2);
	perf_meet_send(&client, &xc, "c", 2);
	cr_expect_eq(perf_meet_recv(&server, &xs, got, 4), 0);
	cr_expect_str_eq(got, "abc");
}

Test(perf_meet, an_end_shows)
{
	char got[6];

	meet();
	perf_meet_send(&client, &xc, "he", 2);
	perf_meet_close(&client);
	cr_expect_eq(perf_meet_recv(&server, &xs, got, 6), -1);
	cr_expect(strstr(xs.err, "gave up"), "%s", xs.err);
	cr_expect(perf_meet_over(&server));
}

/* Data that no caller has requested is an end, too. */
Test(perf_meet, more_than_was_asked_for_is_an_end)
{
	meet();
	perf_meet_send(&client, &xc, "x", 1);
	while (!perf_meet_over(&server))
		;
}

Test(perf_meet, silence_has_a_limit)
{
	char got[6];

	xs.timeout_ms = 1;
	meet();
	cr_expect_eq(perf_meet_recv(&server, &xs, got, 6), -1);
	cr_expect(strstr(xs.err, "no answer"), "%s", xs.err);
	cr_expect(!perf_meet_over(&server));
}

/* Without the change the test would take the 5 s of init(). */
Test(perf_meet, the_limit_of_silence_may_change, .timeout = 4)
{
	char byte;

	meet();
	perf_meet_patience(&server, 1);
	cr_expect_eq(perf_meet_recv(&server, &xs, &byte, 1), -1);
	cr_expect(strstr(xs.err, "no answer from the peer"), "%s", xs.err);
}

Test(perf_meet, no_client_comes)
{
	xs.wait_client_ms = 1;
	cr_expect_eq(perf_meet_accept(&server, &xs), -1);
	cr_expect(strstr(xs.err, "no client"), "%s", xs.err);
}

Test(perf_meet, nobody_listens)
{
	perf_meet_close(&server);
	cr_expect_eq(connect_to(port), -1);
	cr_expect(strstr(xc.err, "cannot connect"), "%s", xc.err);
}

Test(perf_meet, a_port_is_of_one_listener)
{
	cr_expect_eq(perf_meet_listen(&client, &xc, &port), -1);
	cr_expect(strstr(xc.err, "cannot listen"), "%s", xc.err);
}

Test(perf_meet, what_is_closed_may_be_closed_again)
{
	fini();
	cr_expect_eq(server.listener, -1);
	cr_expect_eq(server.fd, -1);
	init();
}
