/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp (to 1.17): a message without a receive keeps the descriptor of the CQ readable, or makes
 * fi_trywait() fail, although each read finds nothing.
 *
 * A thread that reads, asks fi_trywait() and sleeps on the descriptor spins until the receive is
 * posted.
 */
#include "defect.h"

#define ROUNDS 1000

static void spin(void)
{
	static char data[65536];
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct fid *fids[1];
	struct node a, b;
	struct pollfd p;
	int i;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	fids[0] = &b.cq->fid;
	must(fi_control(&b.cq->fid, FI_GETWAIT, &p.fd));
	p.events = POLLIN;
	must(fi_send(active, data, sizeof(data), NULL, 0, NULL));
	for (i = 0; i < ROUNDS; i++) {
		fi_cq_read(a.cq, &entry, 1);
		if (fi_cq_read(b.cq, &entry, 1) != -FI_EAGAIN)
			end(FAILED, "a completion without an operation");
		if (!fi_trywait(b.fabric, fids, 1) && !poll(&p, 1, 1000))
			end(ABSENT, "a thread can sleep after %d attempts", i);
	}
	end(SHOWS, "%d attempts to sleep ended at once", ROUNDS);
}

int main(void)
{
	return bounded(spin, 20);
}
