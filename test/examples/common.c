/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Helpers of the examples' clauses: captured output, and threads for calls that wait. */

#include "examples.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	int fd;		/* the captured descriptor */
	int former;	/* a duplicate of its original file */
	int file;	/* the file that receives its output */
} output;

void capture(int fd)
{
	fflush(NULL);
	output.fd = fd;
	output.former = dup(fd);
	output.file = memfd_create("output", MFD_CLOEXEC);
	CHECK(output.former >= 0 && output.file >= 0 && dup2(output.file, fd) == fd, "%s",
	      strerror(errno));
}

const char *captured(void)
{
	static char text[4096];
	ssize_t n;

	fflush(NULL);
	CHECK(dup2(output.former, output.fd) == output.fd, "%s", strerror(errno));
	n = pread(output.file, text, sizeof(text) - 1, 0);
	CHECK(n >= 0, "%s", strerror(errno));
	text[n] = '\0';
	close(output.former);
	close(output.file);
	return text;
}

const char *host_of(const struct node *n)
{
	static char host[INET_ADDRSTRLEN];

	if (n->address.ss_family != AF_INET)
		skip("the IA's address is not IPv4");
	inet_ntop(AF_INET, &((const struct sockaddr_in *)&n->address)->sin_addr, host,
		  sizeof(host));
	return host;
}

pthread_t start_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, function, arg), 0);
	return thread;
}

void join_thread(pthread_t thread)
{
	SAME(pthread_join(thread, NULL), 0);
}

void attempt_accept(struct node *n, struct attempt *c)
{
	DAT_CR_HANDLE cr = attempt_start(n, c);

	OK(dat_cr_accept(cr, c->b.ep, 0, NULL));
}

void connect_when_listening(struct node *n, struct end *e, DAT_CONN_QUAL qual)
{
	DAT_EVENT event;
	DAT_COUNT more;

	for (;;) {
		end_connect(n, e, qual);
		OK(dat_evd_wait(e->conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			return;
		SAME(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		OK(dat_ep_reset(e->ep));
	}
}
