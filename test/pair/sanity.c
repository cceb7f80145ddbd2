/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases that fail, each in its own way: sanity.sh checks that the harness reports each of them. */

#include "pair.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void good(struct pair *p)
{
	pair_sync(p);
}

static void failed_check(struct pair *p)
{
	pair_sync(p);
	CHECK(!p->server, "only the server fails");
}

static void failed_same(struct pair *p)
{
	SAME(1 + 1, 3);
}

static void failed_call(struct pair *p)
{
	OK(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG));
}

static void wrong_error(struct pair *p)
{
	FAILS(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_PARAMETER);
}

static void crashed(struct pair *p)
{
	pair_sync(p);
	if (p->server)
		raise(SIGSEGV);
}

static void exit_code(struct pair *p)
{
	exit(3);
}

/* Both roles hang, so that only the harness can end them. */
static void hanging(struct pair *p)
{
	for (;;)
		poll(NULL, 0, -1);
}

static void out_of_step(struct pair *p)
{
	char bytes[4] = { 0 };

	pair_send(p, bytes, p->server ? 4 : 3);
	pair_recv(p, bytes, 4);
}

static void wrong_bytes(struct pair *p)
{
	unsigned char bytes[64];

	fill(bytes, sizeof(bytes), 1);
	bytes[63] ^= 1;
	verify(bytes, sizeof(bytes), 1);
}

static void missing_event(struct pair *p)
{
	struct node n;
	DAT_EVENT event;

	node_open(&n);
	expect_event_in(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, 10, &event);
}

static void unexpected_event(struct pair *p)
{
	DAT_EVD_HANDLE evd;
	struct node n;

	node_open(&n);
	evd = node_evd(&n, 4, DAT_EVD_SOFTWARE_FLAG);
	OK(post_se(evd, 1));
	expect_quiet(evd);
}

static void forgotten_object(struct pair *p)
{
	struct node n;

	node_open(&n);
	node_ep(&n, NULL);
	node_close(&n);
}

static void killed(struct pair *p)
{
	if (p->server)
		raise(SIGKILL);
	pair_wait_gone(p);
}

static void survived(struct pair *p)
{
	pair_sync(p);
}

static void skipped(struct pair *p)
{
	if (p->server)
		pair_skip("because");
	pair_sync(p);
}

static const struct pair_case cases[] = {
	PAIR_CASE("good", good, good),
	PAIR_CASE("good when killed", killed, killed, .server_killed = true),
	PAIR_CASE("good when skipped", skipped, skipped),
	PAIR_CASE("bad: check", failed_check, failed_check),
	PAIR_CASE("bad: same", NULL, failed_same),
	PAIR_CASE("bad: call", NULL, failed_call),
	PAIR_CASE("bad: error", NULL, wrong_error),
	PAIR_CASE("bad: crash", crashed, crashed),
	PAIR_CASE("bad: exit", NULL, exit_code),
	PAIR_CASE("bad: hang", hanging, hanging, .seconds = 1),
	PAIR_CASE("bad: message", out_of_step, out_of_step),
	PAIR_CASE("bad: bytes", NULL, wrong_bytes),
	PAIR_CASE("bad: no event", NULL, missing_event),
	PAIR_CASE("bad: an event", NULL, unexpected_event),
	PAIR_CASE("bad: object left", NULL, forgotten_object),
	PAIR_CASE("bad: not killed", survived, survived, .server_killed = true),
	PAIR_CASE("bad: killed", killed, killed),
};

PAIR_MAIN(cases)
