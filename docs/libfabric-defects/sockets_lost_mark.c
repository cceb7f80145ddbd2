/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets: the completion of a message with remote CQ data lacks FI_REMOTE_CQ_DATA if the message
 * arrived before its receive was posted.
 */
#include "defect.h"

static void receive_late(void)
{
	struct fi_cq_data_entry entry = { .flags = 0 };
	struct fid_ep *active, *passive;
	struct node a, b;
	char data[64] = "";

	msg_open(&a, "sockets", FI_MSG | FI_RMA);
	msg_open(&b, "sockets", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	must(fi_senddata(active, "x", 1, NULL, 4711, 0, NULL));
	usleep(300000);
	must(fi_recv(passive, data, sizeof(data), NULL, 0, NULL));
	must(wait_one(&b, &entry, 5000));
	if (!(entry.flags & FI_REMOTE_CQ_DATA))
		end(SHOWS, "the completion has no FI_REMOTE_CQ_DATA; its data is %llu of 4711",
		    (unsigned long long)entry.data);
	end(ABSENT, "the completion says that it has data");
}

int main(void)
{
	return bounded(receive_late, 20);
}
