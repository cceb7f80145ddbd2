/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that have closed descriptors 0, 1 and 2: no socket of the fabric gets these numbers. */

#include "robust.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SIZE 64

static int saved[3];

static void all_close(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		close(fd);
}

/* Messages of the test need them. */
static void restore(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		dup2(saved[fd], fd);
}

/* Whether @fd can be written, and leads to a file that was opened. */
static bool is_taken(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH);
}

static void check_untaken(const char *when)
{
	bool taken = false;
	int fd;

	for (fd = 0; fd < 3; fd++)
		taken |= is_taken(fd);
	if (!taken)
		return;
	restore();
	CHECK(!taken, "the fabric has a descriptor below 3 %s", when);
}

/*
 * Connects @ep. The program closes the descriptors again before each call that opens sockets, but
 * not while it waits for a request: dat_ofi(7) forbids that.
 */
static void link_closed(struct pair *p, struct node *n, DAT_EP_HANDLE ep)
{
	struct listener listener;
	DAT_CR_HANDLE cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;

	all_close();
	if (p->server) {
		psp = node_listen(n, &qual);
		pair_send_listener(p, n, qual);
		cr = node_request(n);
		check_untaken("after a request");
		all_close();
		OK(dat_cr_accept(cr, ep, 0, NULL));
		expect_conn(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		OK(dat_psp_free(psp));
	} else {
		pair_recv_listener(p, &listener);
		ep_connect(ep, &listener);
		expect_conn(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	}
	check_untaken("while connected");
}

static void exchange(struct pair *p, struct node *n, DAT_EP_HANDLE ep)
{
	struct mem m;

	mem_get(n, &m, 2 * SIZE);
	post_recv(ep, &m, SIZE, SIZE, 1);
	link_closed(p, n, ep);
	fill(m.base, SIZE, 1);
	post_send(ep, &m, 0, SIZE, 2);
	expect_dto(n->req, 2, DAT_DTO_SUCCESS, SIZE);
	expect_dto(n->recv, 1, DAT_DTO_SUCCESS, SIZE);
	verify(m.base + SIZE, SIZE, 1);
	check_untaken("after messages");
	pair_unlink(p, n, ep);
	OK(dat_ep_free(ep));
	mem_put(&m);
}

static void run(struct pair *p)
{
	struct node n;
	int fd;

	for (fd = 0; fd < 3; fd++)
		saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	all_close();
	node_open(&n);
	check_untaken("after dat_ia_open");
	exchange(p, &n, node_ep(&n, NULL));
	restore();
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("closed_standard_descriptors_stay_unused", run, run),
};

PAIR_MAIN(cases)
