/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that this process starts inherits no descriptor of the fabric, in any state of a
 * connection: else it would keep connections and ports open after the death of this process.
 */

#include "robust.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4096

/* The descriptors that the harness had before the first IA. */
static bool before[MOST];

static bool stays_open(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Returns the numbers of the descriptors that a child finds after exec, except the earlier ones. */
static const char *inherited(void)
{
	static char text[8192];
	char line[256], list[sizeof(text)] = "";
	int fd[2], status, n;
	pid_t pid;
	FILE *f;

	CHECK(!pipe2(fd, O_CLOEXEC), "pipe2");
	pid = fork();
	if (!pid) {
		dup2(fd[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", "for f in /proc/$$/fd/*; do "
		      "[ -e $f ] && echo ${f##*/} $(readlink $f); done; :", (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	f = fdopen(fd[0], "r");
	CHECK(f, "fdopen");
	while (fgets(line, sizeof(line), f)) {
		n = atoi(line);
		line[strcspn(line, "\n")] = 0;
		if (n >= MOST || !before[n])
			snprintf(list + strlen(list), sizeof(list) - strlen(list), ", %s", line);
	}
	fclose(f);
	SAME(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "the child ends with %#x", status);
	strcpy(text, list);
	return text;
}

static void none(const char *when)
{
	const char *list = inherited();

	CHECK(!*list, "%s: a child has the descriptors%s", when, list);
}

/* Over ofi_rxm of libfabric 2.x, what wakes a domain is found with its first endpoint. */
static void none_before_endpoint(const char *when)
{
	const char *ia = getenv("DAT_TEST_IA");

	if (!ia || !strstr(ia, "rxm"))
		none(when);
}

static void begin(struct node *n)
{
	int fd;

	for (fd = 0; fd < MOST; fd++)
		before[fd] = stays_open(fd);
	node_open(n);
	none_before_endpoint("an open IA");
}

static void end(struct pair *p, struct node *n, DAT_EP_HANDLE ep)
{
	none("a connection");
	pair_sync(p);
	pair_unlink(p, n, ep);
	none("a disconnection");
	OK(dat_ep_free(ep));
	node_close(n);
}

static void server(struct pair *p)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct node n;

	begin(&n);
	psp = node_listen(&n, &qual);
	none_before_endpoint("a service point");
	ep = node_ep(&n, NULL);
	pair_send_listener(p, &n, qual);
	cr = node_request(&n);
	none_before_endpoint("a request");
	OK(dat_cr_accept(cr, ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	OK(dat_psp_free(psp));
	end(p, &n, ep);
}

static void client(struct pair *p)
{
	struct listener listener;
	DAT_EP_HANDLE ep;
	struct node n;

	begin(&n);
	ep = node_ep(&n, NULL);
	pair_recv_listener(p, &listener);
	ep_connect(ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	end(p, &n, ep);
}

static const struct pair_case cases[] = {
	PAIR_CASE("a_child_inherits_no_descriptor", server, client),
};

PAIR_MAIN(cases)
