/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets: fi_shutdown() closes the connection's descriptor, and fi_close() closes it again. By
 * then the number may belong to another file.
 */
#include "defect.h"

#include <fcntl.h>

#define FILES 32

#define ROUNDS 10

static int close_once(struct node *a, struct node *b, uint16_t port)
{
	struct fid_ep *active, *passive;
	int i, fd[FILES], lost = 0;

	msg_pair(a, b, port, &active, &passive);
	must(fi_shutdown(active, 0));
	usleep(100000);
	for (i = 0; i < FILES; i++)
		fd[i] = open("/dev/null", O_RDONLY);
	must(fi_close(&active->fid));
	must(fi_close(&passive->fid));
	usleep(100000);
	for (i = 0; i < FILES; i++)
		lost += fcntl(fd[i], F_GETFD) < 0;
	return lost;
}

static void close_twice(void)
{
	struct node a, b;
	uint16_t port;
	int i, lost;

	msg_open(&a, "sockets", FI_MSG | FI_RMA);
	msg_open(&b, "sockets", FI_MSG | FI_RMA);
	port = msg_listen(&b);
	for (i = 1; i <= ROUNDS; i++) {
		lost = close_once(&a, &b, port);
		if (lost)
			end(SHOWS, "%d file of the program was closed, in round %d", lost, i);
	}
	end(ABSENT, "the program's files stay open in %d rounds", ROUNDS);
}

int main(void)
{
	return bounded(close_twice, 20);
}
