/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets: a passive endpoint reads the fi_info that it was created from, which the caller may have
 * freed.
 *
 * Freed memory is overwritten, so that its use is detected.
 */
#include "defect.h"

#include <malloc.h>

static void free_info(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct fi_eq_cm_entry event;
	struct fid_ep *ep;
	struct node a, b;
	int ret;

	mallopt(M_PERTURB, 0x5a);
	msg_open(&a, "sockets", FI_MSG | FI_RMA);
	msg_open(&b, "sockets", FI_MSG | FI_RMA);
	to.sin_port = htons(msg_listen(&b));
	fi_freeinfo(b.info);
	ep = msg_endpoint(&a, a.info);
	must(fi_connect(ep, &to, NULL, 0));
	ret = eq_wait(&b, &event, 3000);
	end(ret == FI_CONNREQ ? ABSENT : FAILED, "event %d", ret);
}

int main(void)
{
	return bounded(free_info, 20);
}
