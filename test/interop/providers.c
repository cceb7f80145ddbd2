/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This provider and OFED's in one process, through one registry: both are open, connected and
 * transfer messages at the same time, and each continues when the other is closed.
 */

#include "../pair/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE 4096

/* An IA with a connection to the peer's IA. */
struct side {
	struct node n;
	struct mem m;
	DAT_EP_HANDLE ep;
};

static void side_open(struct pair *p, struct side *s, const char *ia)
{
	setenv("DAT_TEST_IA", ia, 1);
	node_open(&s->n);
	mem_get(&s->n, &s->m, 2 * SIZE);
	s->ep = node_ep(&s->n, NULL);
	pair_link(p, &s->n, s->ep);
}

/* One message in each direction. */
static void side_talk(struct pair *p, struct side *s, unsigned seed)
{
	post_recv(s->ep, &s->m, SIZE, SIZE, 1);
	fill(s->m.base, SIZE, seed + p->server);
	pair_sync(p);
	post_send(s->ep, &s->m, 0, SIZE, 2);
	expect_dto(s->n.recv, 1, DAT_DTO_SUCCESS, SIZE);
	expect_dto(s->n.req, 2, DAT_DTO_SUCCESS, SIZE);
	verify(s->m.base + SIZE, SIZE, seed + !p->server);
}

/* One peer disconnects: OFED's provider reports an error if both do. */
static void side_close(struct pair *p, struct side *s)
{
	pair_sync(p);
	if (!p->server)
		OK(dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(s->n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s->ep);
	OK(dat_ep_free(s->ep));
	mem_put(&s->m);
	node_close(&s->n);
	pair_sync(p);
}

/* Two provider names, in the order of opening and closing. */
static void both(struct pair *p)
{
	const char *const *names = pair_arg();
	struct side first, second;

	side_open(p, &first, names[0]);
	side_open(p, &second, names[1]);
	side_talk(p, &first, 10);
	side_talk(p, &second, 20);
	side_talk(p, &first, 30);
	side_close(p, &first);
	side_talk(p, &second, 40);
	side_close(p, &second);
}

static const char *const theirs_first[] = { "ofa-v2-rxe0", "ofi-verbs" };
static const char *const ours_first[] = { "ofi-verbs", "ofa-v2-rxe0" };

static const struct pair_case cases[] = {
	PAIR_CASE("OFED's provider first", both, both, .arg = theirs_first),
	PAIR_CASE("this provider first", both, both, .arg = ours_first),
};

int main(int argc, char **argv)
{
	if (access("/sys/class/infiniband/rxe0", F_OK)) {
		puts("SKIP: there is no device rxe0");
		return 77;
	}
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
