/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A child that is forked while connections are established does not disturb its parent. */

#include "robust.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 1024

/* Handles that are stale in a child. */
struct inherited {
	struct node *n;
	DAT_EP_HANDLE ep;
	struct mem *m;
};

static void child_exits(struct inherited *i)
{
	exit(EXIT_SUCCESS);
}

static void child_exits_directly(struct inherited *i)
{
	_exit(EXIT_SUCCESS);
}

static bool is_stale(DAT_RETURN ret)
{
	return DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE;
}

static void child_closes(struct inherited *i)
{
	exit(!is_stale(dat_ia_close(i->n->ia, DAT_CLOSE_ABRUPT_FLAG)) ||
	     !is_stale(dat_ia_close(i->n->ia, DAT_CLOSE_GRACEFUL_FLAG)));
}

static void child_calls(struct inherited *i)
{
	DAT_EVENT event;

	exit(!is_stale(dat_evd_dequeue(i->n->recv, &event)) ||
	     !is_stale(dat_ep_post_send(i->ep, 0, NULL, (DAT_DTO_COOKIE){ 0 }, 0)) ||
	     !is_stale(dat_ep_disconnect(i->ep, DAT_CLOSE_ABRUPT_FLAG)) ||
	     !is_stale(dat_ep_free(i->ep)) || !is_stale(dat_lmr_free(i->m->lmr)) ||
	     !is_stale(dat_evd_free(i->n->conn)) || !is_stale(dat_pz_free(i->n->pz)));
}

static void child_opens(struct inherited *i)
{
#ifndef __SANITIZE_THREAD__	/* it supports no new threads in a forked child */
	struct node n;

	node_open(&n);
	node_close(&n);
#endif
	exit(EXIT_SUCCESS);
}

static void child_executes(struct inherited *i)
{
	char *const argv[] = { (char *)"true", NULL };

	execvp(argv[0], argv);
	_exit(EXIT_FAILURE);
}

static void (*const children[])(struct inherited *i) = {
	child_exits, child_exits_directly, child_closes, child_calls, child_opens, child_executes,
};

#define CHILDREN (sizeof(children) / sizeof(children[0]))

/*
 * A child that hangs must not hang the test: its alarm ends it, also across exec. It opens
 * libraries and IAs, so it has three times as long as an event, which is less than the case has.
 */
static void child_run(unsigned which, struct inherited *i)
{
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, SIG_DFL);
		alarm((unsigned)(pair_scaled(3 * PAIR_LIMIT) + 999) / 1000);
		children[which](i);
	}
	SAME(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child %u exited with status %#x", which,
	      status);
}

/* Exchanges a message in each direction, and reads the peer's memory. */
static void exchange(struct node *n, DAT_EP_HANDLE ep, struct mem *m, const struct grant *g,
		     unsigned turn, bool server)
{
	unsigned mine = 2 * turn + server, theirs = 2 * turn + !server;

	fill(m->base, SIZE, mine);
	post_send(ep, m, 0, SIZE, turn);
	expect_dto(n->req, turn, DAT_DTO_SUCCESS, SIZE);
	expect_dto(n->recv, turn, DAT_DTO_SUCCESS, SIZE);
	verify(m->base + SIZE, SIZE, theirs);
	post_recv(ep, m, SIZE, SIZE, turn + 1);
	post_read(ep, m, 2 * SIZE, SIZE, 1000, g, 0);
	expect_dto(n->req, 1000, DAT_DTO_SUCCESS, SIZE);
	verify(m->base + 2 * SIZE, SIZE, theirs);
}

static void forking(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct grant g;
	struct node n;
	unsigned i;

	node_open(&n);
	ep = node_ep(&n, NULL);
	mem_get(&n, &n.m, 3 * SIZE);
	post_recv(ep, &n.m, SIZE, SIZE, 0);
	pair_link(p, &n, ep);
	pair_grant(p, &n.m);
	pair_granted(p, &g);
	for (i = 0; i < CHILDREN; i++) {
		struct inherited in = { .n = &n, .ep = ep, .m = &n.m };

		exchange(&n, ep, &n.m, &g, i, p->server);
		if (p->server)
			child_run(i, &in);
		pair_sync(p);
	}
	exchange(&n, ep, &n.m, &g, i, p->server);
	expect_quiet(n.conn);
	pair_unlink(p, &n, ep);
	/* connecting works, too, and children that are forked meanwhile wait for no thread */
	for (i = 0; i < CHILDREN; i++) {
		struct inherited in = { .n = &n, .ep = ep, .m = &n.m };

		OK(dat_ep_reset(ep));
		pair_link(p, &n, ep);
		pair_sync(p);
		OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
		child_run(i, &in);
		expect_conn(n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	}
	while (dat_evd_dequeue(n.recv, &(DAT_EVENT){ 0 }) == DAT_SUCCESS)
		;
	OK(dat_ep_free(ep));
	node_end(&n);
}

static const struct pair_case cases[] = {
	{ .name = "children_do_not_disturb_the_parent", .server = forking, .client = forking },
};

PAIR_MAIN(cases)
