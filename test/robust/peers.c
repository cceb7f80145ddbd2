/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many processes connect to one process at the same time, in two waves. Half of each wave
 * disconnects, the other half is killed.
 *
 * DAT_TEST_PEERS: number of processes (default 8).
 */

#include "robust.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAVES 2
#define MANY_LIMIT (4 * PAIR_LIMIT)	/* ms for an event that all processes contribute to */

static unsigned peers(void)
{
	return env_count("DAT_TEST_PEERS", 8);
}

/* A client process. It reports the result of its request, and stays until it is to leave. */

struct member {
	pid_t pid;
	int fd;
};

static void member_send(struct node *n, DAT_EP_HANDLE ep, uint64_t number)
{
	struct mem m;

	mem_get(n, &m, sizeof(number));
	memcpy(m.base, &number, sizeof(number));
	post_send(ep, &m, 0, sizeof(number), number);
	expect_dto(n->req, number, DAT_DTO_SUCCESS, sizeof(number));
	mem_put(&m);
}

static void member_run(int fd, const struct listener *listener, uint64_t number)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct node n;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node_begin(&n, 0);
	connect_with(n.ep, listener, MANY_LIMIT, 0, NULL);
	OK(dat_evd_wait(n.conn, 2 * pair_scaled(MANY_LIMIT) * 1000, 1, &event, &more));
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		member_send(&n, n.ep, number);
	CHECK(write(fd, &event.event_number, sizeof(event.event_number)) > 0, "%s",
	      strerror(errno));
	if (read(fd, &byte, 1) == 1)
		raise(SIGKILL);
	node_end(&n);
	exit(EXIT_SUCCESS);
}

static void member_start(struct member *all, unsigned i, const struct listener *listener)
{
	struct member *m = &all[i];
	int fd[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "%s", strerror(errno));
	m->pid = fork();
	CHECK(m->pid >= 0, "fork: %s", strerror(errno));
	if (!m->pid) {
		while (m > all)
			close((--m)->fd);
		free(all);
		close(fd[0]);
		member_run(fd[1], listener, i);
	}
	close(fd[1]);
	m->fd = fd[0];
}

/* Ends a client, which is killed or disconnects. */
static void member_end(struct member *m, bool killed)
{
	int status;

	if (killed)
		CHECK(write(m->fd, "", 1) == 1, "%s", strerror(errno));
	close(m->fd);
	CHECK(waitpid(m->pid, &status, 0) == m->pid, "%s", strerror(errno));
	CHECK(killed ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status),
	      "a process exited with status %#x", status);
}

static void all_connected(const struct member *m)
{
	DAT_EVENT_NUMBER number;
	unsigned i;

	for (i = 0; i < peers(); i++) {
		CHECK(read(m[i].fd, &number, sizeof(number)) == sizeof(number),
		      "process %u has ended", i);
		CHECK(number == DAT_CONNECTION_EVENT_ESTABLISHED, "process %u: %s", i,
		      event_name(number));
	}
}

/* The parent process makes no DAT call. */
static void crowd(struct pair *p)
{
	struct member *m = calloc(peers(), sizeof(*m));
	struct listener listener;
	unsigned wave, i;

	need_fds(peers() + 100);
	pair_recv_listener(p, &listener);
	for (wave = 0; wave < WAVES; wave++) {
		for (i = 0; i < peers(); i++)
			member_start(m, i, &listener);
		all_connected(m);
		pair_sync(p);
		for (i = 0; i < peers(); i++)
			member_end(&m[i], i & 1);
		pair_sync(p);
	}
	free(m);
}

/* The server */

struct host {
	struct node n;
	struct mem m;		/* one number per client */
	DAT_EP_HANDLE *ep;
};

static void host_accept(struct host *h)
{
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < peers(); i++) {
		expect_event_in(h->n.cr, DAT_CONNECTION_REQUEST_EVENT, MANY_LIMIT, &event);
		h->ep[i] = node_ep(&h->n, NULL);
		post_recv(h->ep[i], &h->m, i * sizeof(uint64_t), sizeof(uint64_t), i);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, h->ep[i], 0,
				 NULL));
	}
}

static void host_connected(struct host *h)
{
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < peers(); i++)
		expect_event_in(h->n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, MANY_LIMIT, &event);
	expect_quiet(h->n.cr);
}

/* Receives one message of each client. */
static void host_receive(struct host *h)
{
	uint64_t *number = (uint64_t *)h->m.base;
	bool *seen = calloc(peers(), sizeof(*seen));
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < peers(); i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d =
			&event.event_data.dto_completion_event_data;

		expect_event_in(h->n.recv, DAT_DTO_COMPLETION_EVENT, MANY_LIMIT, &event);
		SAME(d->status, DAT_DTO_SUCCESS);
		CHECK(number[d->user_cookie.as_64] < peers() && !seen[number[d->user_cookie.as_64]],
		      "an unknown or repeated number");
		seen[number[d->user_cookie.as_64]] = true;
	}
	free(seen);
}

/* Expects the end of all connections; every other client was killed. */
static void host_disconnected(struct host *h)
{
	unsigned i, broken = 0;
	DAT_EVENT event;
	DAT_COUNT more;

	for (i = 0; i < peers(); i++) {
		OK(dat_evd_wait(h->n.conn, pair_scaled(MANY_LIMIT) * 1000, 1, &event, &more));
		broken += event.event_number == DAT_CONNECTION_EVENT_BROKEN;
		CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		      event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED,
		      "%s does not end a connection", event_name(event.event_number));
	}
	SAME(broken, node_reports_broken(&h->n) ? peers() / 2 : 0);
	expect_quiet(h->n.conn);
	for (i = 0; i < peers(); i++)
		OK(dat_ep_free(h->ep[i]));
}

static void host(struct pair *p)
{
	struct host h = { .ep = calloc(peers(), sizeof(*h.ep)) };
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	unsigned wave;

	need_fds(8 * peers() + 100);
	node_open(&h.n);
	mem_get(&h.n, &h.m, peers() * sizeof(uint64_t));
	psp = node_listen(&h.n, &qual);
	pair_send_listener(p, &h.n, qual);
	for (wave = 0; wave < WAVES; wave++) {
		host_accept(&h);
		host_connected(&h);
		host_receive(&h);
		pair_sync(p);
		host_disconnected(&h);
		pair_sync(p);
	}
	OK(dat_psp_free(psp));
	mem_put(&h.m);
	node_close(&h.n);
	/* opening an IA removes the files of the processes killed last */
	node_open(&h.n);
	node_close(&h.n);
	free(h.ep);
}

static struct pair_case cases[] = {
	{ .name = "many_processes", .server = host, .client = crowd },
};

int main(int argc, char **argv)
{
	cases[0].seconds = 60 + peers();
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
