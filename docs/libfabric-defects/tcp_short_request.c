/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: a connection with a short request is kept for ever if errno was EAGAIN before.
 *
 * A client sends 4 bytes and closes its connection. libfabric finds the short length and then
 * evaluates errno, which no call has set.
 */
#include "defect.h"

static void send_little(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int64_t until = now_ms() + 2000;
	struct fi_eq_cm_entry buffer[8];
	struct node n;
	uint32_t event;
	char byte;
	int fd;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	to.sin_port = htons(msg_listen(&n));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || send(fd, "\3\0\0\0", 4, 0) != 4)
		end(FAILED, "connect: %s", strerror(errno));
	shutdown(fd, SHUT_WR);
	do {
		errno = EAGAIN;
		if (fi_eq_read(n.eq, &event, buffer, sizeof(buffer), 0) != -FI_EAGAIN)
			end(FAILED, "an event");
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET)
			end(ABSENT, "the connection is ended");
	} while (!is_late(until));
	end(SHOWS, "the connection is still there 2 s after its end");
}

int main(void)
{
	return bounded(send_little, 20);
}
