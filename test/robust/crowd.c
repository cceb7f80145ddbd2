/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Crowds at a listening port, and a process without descriptors: clients are served meanwhile, the
 * progress thread does not spin, and all that strangers held is given back.
 *
 * DAT_TEST_CROWD: how many silent connections (default 3000). DAT_TEST_CLIENTS: default 100.
 */

#include "robust.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACK_LIMIT 5000			/* ms until the descriptors of strangers are back, mostly */
#define CLIENTS_LIMIT 1000		/* ms for the clients, beyond what they take without a crowd */
#define IDLE 500			/* ms to look at */

static unsigned crowd_size(void)
{
	return env_count("DAT_TEST_CROWD", 3000);
}

static unsigned clients(void)
{
	return env_count("DAT_TEST_CLIENTS", 100);
}

/* Strangers */

/* At the name that side connections within a host have. */
static int local_stranger(const struct place *to)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 +
			snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-ofi/side/%llu",
				 (unsigned long long)to->qual);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(fd >= 0, "%s", strerror(errno));
	CHECK(!connect(fd, (struct sockaddr *)&name, len), "%s", strerror(errno));
	return fd;
}

static int stranger_come(const struct place *to)
{
	return strcmp(pair_ia_name(), "ofi") ? stranger(to) : local_stranger(to);
}

static int *strangers_come(const struct place *to, unsigned n, const char *words)
{
	int *fds = calloc(n, sizeof(*fds));
	unsigned i;

	CHECK(fds, "no memory");
	for (i = 0; i < n; i++) {
		fds[i] = stranger_come(to);
		send(fds[i], words, strlen(words), MSG_NOSIGNAL);
	}
	return fds;
}

/* They are let go of. */
static void strangers_cut(const int *fds, unsigned n)
{
	const int64_t until = pair_deadline(4 * BACK_LIMIT);
	char byte;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct pollfd p = { .fd = fds[i], .events = POLLIN };

		CHECK(pair_now() < until && poll(&p, 1, (until - pair_now()) / 1000 + 1) == 1,
		      "stranger %u of %u is kept", i, n);
		CHECK(recv(fds[i], &byte, 1, 0) <= 0, "a stranger is answered");
	}
}

static void strangers_leave(int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
	free(fds);
}

/* Clients */

/* They connect together; how many milliseconds until all are connected. */
static unsigned clients_connect(struct node *n, DAT_EP_HANDLE *ep, const struct place *to)
{
	const int64_t begin = pair_now();
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < clients(); i++)
		connect_with(ep[i], to, pair_scaled(2 * PAIR_LIMIT), 0, NULL);
	for (i = 0; i < clients(); i++)
		expect_event_in(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, 2 * PAIR_LIMIT, &event);
	return (pair_now() - begin) / 1000;
}

static void clients_part(struct node *n, DAT_EP_HANDLE *ep)
{
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < clients(); i++)
		OK(dat_ep_disconnect(ep[i], DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < clients(); i++)
		expect_event(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
	for (i = 0; i < clients(); i++)
		OK(dat_ep_reset(ep[i]));
}

/* The server's side of it; it ends when the clients have parted. */
static void clients_serve(struct node *n)
{
	DAT_EP_HANDLE *ep = calloc(clients(), sizeof(*ep));
	DAT_EVENT event;
	unsigned i;

	for (i = 0; i < clients(); i++)
		ep[i] = node_ep(n, NULL);
	for (i = 0; i < clients(); i++) {
		expect_event_in(n->cr, DAT_CONNECTION_REQUEST_EVENT, 3 * PAIR_LIMIT, &event);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep[i], 0, NULL));
	}
	for (i = 0; i < clients(); i++)
		expect_event(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	for (i = 0; i < clients(); i++)
		expect_event(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
	for (i = 0; i < clients(); i++)
		OK(dat_ep_free(ep[i]));
	free(ep);
}

/* What the process takes of a processor while nothing is to be done, in percent. */
static unsigned busy_percent(struct node *n)
{
	struct timespec before, after;
	const int64_t begin = pair_now();
	DAT_EVENT event;
	DAT_COUNT more;
	int64_t us;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	FAILS(dat_evd_wait(n->cr, IDLE * 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	us = (after.tv_sec - before.tv_sec) * 1000000LL + (after.tv_nsec - before.tv_nsec) / 1000;
	return 100 * us / (pair_now() - begin);
}

static void crowd_server(struct pair *p)
{
	struct holdings before;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	unsigned percent;
	struct node n;
	int64_t begin;

	need_fds(crowd_size() + 1000);
	node_open(&n);
	if (node_is_on_verbs(&n))
		pair_skip("verbs does not connect by TCP");
	psp = node_listen(&n, &qual);
	pair_tell_place(p, &n, qual);
	clients_serve(&n);
	before = holdings_settled();
	pair_sync(p);
	clients_serve(&n);
	pair_sync(p);	/* the crowd is still there */
	percent = busy_percent(&n);
	pair_sync(p);
	begin = pair_now();
	while (holdings_settled().fds > before.fds)
		CHECK(pair_now() < begin + pair_scaled(BACK_LIMIT) * 1000LL, "%u descriptors more",
		      holdings_settled().fds - before.fds);
	pair_note("busy for %u %% of the time", percent);
	CHECK(percent < 50, "the progress thread is busy with silent connections");
	pair_sync(p);
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void crowd_client(struct pair *p)
{
	const char *words = pair_arg();
	DAT_EP_HANDLE *ep = calloc(clients(), sizeof(*ep));
	struct place place;
	unsigned alone, beside, i;
	struct node n;
	int64_t begin;
	int *fds;

	need_fds(crowd_size() + 1000);
	node_open(&n);
	for (i = 0; i < clients(); i++)
		ep[i] = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	alone = clients_connect(&n, ep, &place);
	clients_part(&n, ep);
	pair_sync(p);
	begin = pair_now();
	fds = strangers_come(&place, crowd_size(), words);
	beside = clients_connect(&n, ep, &place);
	pair_note("%u clients connect in %u ms, beside %u strangers in %u ms", clients(), alone,
		  crowd_size(), beside);
	CHECK(beside <= 4 * alone + pair_scaled(CLIENTS_LIMIT), "%u ms, %u without a crowd", beside, alone);
	clients_part(&n, ep);
	pair_sync(p);
	strangers_cut(fds, crowd_size());
	pair_note("the last stranger is let go of after %u ms", (unsigned)((pair_now() - begin) / 1000));
	pair_sync(p);
	pair_sync(p);
	strangers_leave(fds, crowd_size());
	for (i = 0; i < clients(); i++)
		OK(dat_ep_free(ep[i]));
	free(ep);
	node_close(&n);
}

/* Without descriptors */

static void fds_limit(rlim_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = n;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "%s", strerror(errno));
}

static int lowest_fd(void)
{
	int fd = dup(0);

	CHECK(fd >= 0, "%s", strerror(errno));
	close(fd);
	return fd;
}

/* Valgrind opens descriptors of its own, and counts for itself. */
static void need_own_descriptors(void)
{
	const char *runner = getenv("TEST_RUNNER");

	if (runner && *runner)
		pair_skip("a checker has descriptors, too");
}

static void poor_server(struct pair *p)
{
	struct rlimit limit;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	unsigned percent;
	struct node n;

	need_own_descriptors();
	node_open(&n);
	if (node_is_on_verbs(&n))
		pair_skip("verbs does not connect by TCP");
	psp = node_listen(&n, &qual);
	ep = node_ep(&n, NULL);
	pair_tell_place(p, &n, qual);
	pair_sync(p);
	getrlimit(RLIMIT_NOFILE, &limit);
	fds_limit(lowest_fd());
	pair_sync(p);
	pair_sync(p);	/* the request is on its way */
	percent = busy_percent(&n);
	pair_note("busy for %u %% of the time", percent);
	CHECK(percent < 50, "the progress thread spins for want of descriptors");
	fds_limit(limit.rlim_cur);
	OK(dat_cr_accept(node_request(&n), ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	OK(dat_psp_free(psp));
	OK(dat_ep_free(ep));
	node_close(&n);
}

static void poor_client(struct pair *p)
{
	struct place place;
	DAT_EP_HANDLE ep;
	struct node n;

	need_own_descriptors();
	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_learn_place(p, &place);
	pair_sync(p);
	pair_sync(p);
	ep_connect(ep, &place);
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	node_close(&n);
}

#define CROWD .seconds = 60, .not_sockets = "it waits for strangers for ever"

static const struct pair_case cases[] = {
	PAIR_CASE("clients come behind silent strangers", crowd_server, crowd_client, CROWD, .arg = ""),
	PAIR_CASE("clients come behind strangers with half a word", crowd_server, crowd_client, CROWD,
		  .arg = "D"),
	PAIR_CASE("a request comes when there are no descriptors", poor_server, poor_client, CROWD),
};

PAIR_MAIN(cases)
