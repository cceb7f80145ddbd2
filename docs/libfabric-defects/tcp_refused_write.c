/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: an RDMA write that the target rejects is reported as a success, and then both ends
 * get an orderly FI_SHUTDOWN. Nothing reports the error or the operation that failed.
 */
#include "defect.h"

static void write_badly(void)
{
	struct fi_cq_data_entry entry;
	struct fi_eq_cm_entry event;
	struct fid_ep *active, *passive;
	char data[64] = "";
	struct node a, b;
	int ret, at_a, at_b;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	must(fi_write(active, data, sizeof(data), NULL, 0, 0, 0xdead, NULL));
	ret = wait_one(&a, &entry, 2000);
	at_b = eq_wait(&b, &event, 2000);
	at_a = eq_wait(&a, &event, 2000);
	if (!ret && at_a == FI_SHUTDOWN && at_b == FI_SHUTDOWN)
		end(SHOWS, "the refused write succeeds, and the connection ends with FI_SHUTDOWN");
	end(ABSENT, "write: %s, events %d at the initiator, %d at the target", fi_strerror(-ret),
	    at_a, at_b);
}

int main(void)
{
	return bounded(write_badly, 20);
}
