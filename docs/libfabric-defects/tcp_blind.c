/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: a peer's disconnect is not detected while a message from it waits for a receive.
 *
 * The program reads the EQ and the CQ continuously; the end of the stream is behind the message.
 */
#include "defect.h"

static void be_left(void)
{
	struct fi_eq_cm_entry entry;
	struct fid_ep *active, *passive;
	struct node a, b;
	int event;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	must(fi_inject(active, "message", 7, 0));
	fi_cq_read(a.cq, NULL, 0);
	usleep(10000);
	must(fi_close(&active->fid));
	event = eq_wait(&b, &entry, 3000);
	if (event == FI_SHUTDOWN)
		end(ABSENT, "the end is reported");
	end(SHOWS, "no event within 3 s of the peer's end");
}

int main(void)
{
	return bounded(be_left, 20);
}
