/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * net (libfabric issue 8947): the descriptor of a CQ stays readable although the CQ is empty and
 * fi_trywait() returns 0. A thread that sleeps on the descriptor spins.
 */
#include "defect.h"

static void spin(void)
{
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	int i, woken = 0;
	struct node a, b;
	char data[64];

	msg_open(&a, "net", FI_MSG | FI_RMA);
	msg_open(&b, "net", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	must(fi_recv(passive, data, sizeof(data), NULL, 0, NULL));
	must(fi_inject(active, "", 1, 0));
	fi_cq_read(a.cq, NULL, 0);
	must(wait_one(&b, &entry, 5000));
	for (i = 0; i < 100; i++) {
		if (cq_one(&b, &entry) != -FI_EAGAIN)
			end(FAILED, "a completion");
		woken += sleep_for(&b, &b.cq->fid, 1) == 1;
	}
	if (woken > 10)
		end(SHOWS, "of 100 times to sleep %d ended at once, with an empty CQ", woken);
	end(ABSENT, "an empty CQ is silent");
}

int main(void)
{
	return bounded(spin, 10);
}
