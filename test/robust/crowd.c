/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Crowds at a listening port, and a process without free descriptors: clients are served
 * meanwhile, the progress thread does not spin, and all resources of foreign clients are released.
 * A foreign client is a connection to the port without DAT.
 *
 * DAT_TEST_CROWD: number of silent connections (default 3000). DAT_TEST_CLIENTS: default 100.
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

#define BACK_LIMIT 5000			/* ms until the foreign clients' descriptors are closed */
#define CLIENTS_LIMIT 1000		/* ms for the clients, plus 4 times as without a crowd */
#define IDLE 500			/* ms of the measurement */

static unsigned crowd_size(void)
{
	return env_count("DAT_TEST_CROWD", 3000);
}

static unsigned clients(void)
{
	return env_count("DAT_TEST_CLIENTS", 100);
}

/* Foreign clients */

/* A foreign client at the AF_UNIX name of CM sockets within a host. */
static int local_foreign_client(const struct listener *to)
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

static int foreign_client_connect(const struct listener *to)
{
	return strcmp(pair_ia_name(), "ofi") ? foreign_client(to) : local_foreign_client(to);
}

static int *foreign_clients_connect(const struct listener *to, unsigned n, const char *bytes)
{
	int *fds = calloc(n, sizeof(*fds));
	unsigned i;

	CHECK(fds, "no memory");
	for (i = 0; i < n; i++) {
		fds[i] = foreign_client_connect(to);
		send(fds[i], bytes, strlen(bytes), MSG_NOSIGNAL);
	}
	return fds;
}

/* Waits until the server has closed the connections. Returns how many are open after @ms. */
static unsigned foreign_clients_wait(const int *fds, unsigned n, unsigned ms)
{
	const int64_t until = pair_deadline(ms);
	unsigned i, open = 0;
	char byte;

	for (i = 0; i < n; i++) {
		struct pollfd p = { .fd = fds[i], .events = POLLIN };
		const int64_t left = until - pair_now();

		if (poll(&p, 1, left > 0 ? left / 1000 + 1 : 0) < 1)
			open++;
		else
			CHECK(recv(fds[i], &byte, 1, 0) <= 0, "a foreign client got an answer");
	}
	return open;
}

/*
 * While many requests wait, the kernel drops some deferred connections without a word to the
 * client, and keeps others for up to half a minute. Data ends both.
 */
static void foreign_clients_send(const int *fds, unsigned n)
{
	while (n)
		send(fds[--n], "D", 1, MSG_NOSIGNAL);
}

static void foreign_clients_close(int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
	free(fds);
}

/* Clients */

/* All clients connect at once. Returns the milliseconds until all are connected. */
static unsigned clients_connect(struct node *n, DAT_EP_HANDLE *ep, const struct listener *to)
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

static void clients_disconnect(struct node *n, DAT_EP_HANDLE *ep)
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

/* The server's part; returns when the clients have disconnected. */
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

/* The process's share of a processor while it is idle, in percent. */
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
	struct resources before;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	unsigned percent;
	struct node n;
	int64_t begin;

	need_fds(crowd_size() + 1000);
	node_open(&n);
	node_needs_tcp(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	clients_serve(&n);
	before = resources_settled();
	pair_sync(p);
	clients_serve(&n);
	pair_sync(p);	/* the crowd is still connected */
	percent = busy_percent(&n);
	pair_sync(p);
	begin = pair_now();
	while (resources_settled().fds > before.fds)
		CHECK(pair_now() < begin + pair_scaled(BACK_LIMIT) * 1000LL, "%u more descriptors",
		      resources_settled().fds - before.fds);
	pair_note("busy for %u %% of the time", percent);
	CHECK(percent < 50, "the progress thread is busy with silent connections");
	pair_sync(p);
	pair_sync(p);	/* all foreign clients are closed */
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void crowd_client(struct pair *p)
{
	const char *bytes = pair_arg();
	DAT_EP_HANDLE *ep = calloc(clients(), sizeof(*ep));
	struct listener listener;
	unsigned alone, crowded, open, i;
	struct node n;
	int64_t begin;
	int *fds;

	need_fds(crowd_size() + 1000);
	node_open(&n);
	for (i = 0; i < clients(); i++)
		ep[i] = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	alone = clients_connect(&n, ep, &listener);
	clients_disconnect(&n, ep);
	pair_sync(p);
	begin = pair_now();
	fds = foreign_clients_connect(&listener, crowd_size(), bytes);
	crowded = clients_connect(&n, ep, &listener);
	pair_note("%u clients connect in %u ms, with %u foreign clients in %u ms", clients(), alone,
		  crowd_size(), crowded);
	CHECK(crowded <= 4 * alone + pair_scaled(CLIENTS_LIMIT),
	      "%u ms, but %u ms without foreign clients", crowded, alone);
	clients_disconnect(&n, ep);
	pair_sync(p);
	open = foreign_clients_wait(fds, crowd_size(), BACK_LIMIT);
	pair_note("%u foreign clients are closed after %u ms", crowd_size() - open,
		  (unsigned)((pair_now() - begin) / 1000));
	pair_sync(p);
	pair_sync(p);	/* the server has closed its connections */
	foreign_clients_send(fds, crowd_size());
	open = foreign_clients_wait(fds, crowd_size(), BACK_LIMIT);
	CHECK(!open, "%u foreign clients stay connected", open);
	pair_sync(p);
	foreign_clients_close(fds, crowd_size());
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

/* Valgrind opens descriptors of its own, and has a limit of its own. */
static void need_own_descriptors(void)
{
	const char *runner = getenv("TEST_RUNNER");

	if (runner && *runner)
		pair_skip("a checker uses descriptors, too");
}

static void no_fds_server(struct pair *p)
{
	struct rlimit limit;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	unsigned percent;
	struct node n;

	need_own_descriptors();
	node_open(&n);
	node_needs_tcp(&n);
	psp = node_listen(&n, &qual);
	n.ep = node_ep(&n, NULL);
	pair_send_listener(p, &n, qual);
	pair_sync(p);
	getrlimit(RLIMIT_NOFILE, &limit);
	fds_limit(lowest_fd());
	pair_sync(p);
	pair_sync(p);	/* the request is in flight */
	percent = busy_percent(&n);
	pair_note("busy for %u %% of the time", percent);
	CHECK(percent < 50, "the progress thread spins without free descriptors");
	fds_limit(limit.rlim_cur);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void no_fds_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	need_own_descriptors();
	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	pair_sync(p);
	pair_sync(p);
	ep_connect(n.ep, &listener);
	pair_sync(p);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

#define CROWD .seconds = 60, .not_sockets = "it waits for foreign clients without limit"

static const struct pair_case cases[] = {
	PAIR_CASE("clients connect behind silent foreign clients", crowd_server, crowd_client,
		  CROWD, .arg = ""),
	PAIR_CASE("clients connect behind foreign clients with incomplete requests", crowd_server,
		  crowd_client, CROWD, .arg = "D"),
	PAIR_CASE("a request arrives without free descriptors", no_fds_server, no_fds_client,
		  CROWD),
};

PAIR_MAIN(cases)
