/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sockets: a port in use is reported only by fi_listen(), and as FI_EINVAL. */
#include "defect.h"

static void listen_twice(void)
{
	struct sockaddr_in *address;
	struct node a, b;
	uint16_t port;
	int ret;

	msg_open(&a, "sockets", FI_MSG | FI_RMA);
	port = msg_listen(&a);
	msg_open(&b, "sockets", FI_MSG | FI_RMA);
	address = b.info->src_addr;
	address->sin_port = htons(port);
	ret = fi_passive_ep(b.fabric, b.info, &b.pep, NULL);
	if (ret == -FI_EADDRINUSE)
		end(ABSENT, "fi_passive_ep: %s", fi_strerror(-ret));
	must(ret);
	must(fi_pep_bind(b.pep, &b.eq->fid, 0));
	ret = fi_listen(b.pep);
	if (ret == -FI_EADDRINUSE)
		end(ABSENT, "fi_listen: %s", fi_strerror(-ret));
	end(SHOWS, "fi_listen at a port that is taken: %s", ret ? fi_strerror(-ret) : "success");
}

int main(void)
{
	return bounded(listen_twice, 20);
}
