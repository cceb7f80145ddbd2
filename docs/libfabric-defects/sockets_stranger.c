/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets: eight bytes of any TCP client crash a process that listens.
 *
 * The first byte of a message is its type. A type that only a peer with an endpoint sends, such as
 * 3, which is also the first byte of a request of tcp, finds no endpoint.
 */
#include "defect.h"

static void be_visited(void)
{
	static const unsigned char shutdown_message[8] = { 3 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct fi_eq_cm_entry entry;
	struct node n;
	int fd;

	msg_open(&n, "sockets", FI_MSG | FI_RMA);
	to.sin_port = htons(msg_listen(&n));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		end(FAILED, "connect: %s", strerror(errno));
	if (send(fd, shutdown_message, sizeof(shutdown_message), MSG_NOSIGNAL) < 0)
		end(FAILED, "send: %s", strerror(errno));
	eq_wait(&n, &entry, 2000);
	end(ABSENT, "the bytes do nothing");
}

int main(void)
{
	return bounded(be_visited, 20);
}
