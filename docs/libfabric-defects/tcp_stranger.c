/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: a connection that has not sent its request uses a closed passive endpoint.
 *
 * A client connects and sends nothing. The passive endpoint accepts the connection and is
 * closed. Then the client sends a request. Freed memory is overwritten, so that its use is
 * detected.
 */
#include "defect.h"

#include <malloc.h>

static void outlive(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	/* a request without data: struct ofi_ctrl_hdr of version 3, ofi_ctrl_connreq */
	unsigned char request[32] = { 3, 0 };
	struct fi_eq_cm_entry entry;
	struct node n;
	int fd, event;

	mallopt(M_PERTURB, 0x5a);
	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	to.sin_port = htons(msg_listen(&n));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		end(FAILED, "connect: %s", strerror(errno));
	event = eq_wait(&n, &entry, 200);
	if (event != -FI_EAGAIN)
		end(FAILED, "event %d", event);
	must(fi_close(&n.pep->fid));
	fi_freeinfo(n.info);
	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) < 0)
		end(ABSENT, "the connection ended with the passive endpoint");
	event = eq_wait(&n, &entry, 1000);
	if (event == FI_CONNREQ)
		end(SHOWS, "a request comes to a passive endpoint that is closed");
	end(ABSENT, "the request does nothing");
}

int main(void)
{
	return bounded(outlive, 20);
}
