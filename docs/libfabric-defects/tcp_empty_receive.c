/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcp: a message for a receive of no bytes neither completes nor fails the receive. */
#include "defect.h"

static void receive(void)
{
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct node a, b;
	int ret;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	must(fi_recv(passive, NULL, 0, NULL, 0, NULL));
	must(fi_inject(active, "message", 7, 0));
	fi_cq_read(a.cq, NULL, 0);
	ret = wait_one(&b, &entry, 3000);
	if (ret == -FI_EAGAIN)
		end(SHOWS, "the receive of no bytes is still outstanding 3 s after the message");
	end(ABSENT, "the receive of no bytes ends: %s", fi_strerror(-ret));
}

int main(void)
{
	return bounded(receive, 20);
}
