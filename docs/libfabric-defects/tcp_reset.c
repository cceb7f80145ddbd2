/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: messages that are in the kernel are discarded if the socket has an error.
 *
 * A peer sends messages and disconnects. What is then sent to it is answered with a reset.
 */
#include "defect.h"

#define MESSAGES 4

static void be_reset(void)
{
	static char in[MESSAGES][64], out[64];
	const int64_t until = now_ms() + 3000;
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct node a, b;
	int i, n = 0;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	for (i = 0; i < MESSAGES; i++)
		must(fi_recv(passive, in[i], sizeof(in[i]), NULL, 0, in[i]));
	for (i = 0; i < MESSAGES; i++)
		must(fi_send(active, out, sizeof(out), NULL, 0, NULL));
	for (i = 0; i < MESSAGES; i++)
		must(wait_one(&a, &entry, 1000));
	must(fi_shutdown(active, 0));
	must(fi_close(&active->fid));
	usleep(10000);
	must(fi_send(passive, out, sizeof(out), NULL, 0, NULL));
	usleep(10000);
	while (n < MESSAGES && !is_late(until)) {
		const int ret = cq_one(&b, &entry);

		if (ret < 0 && ret != -FI_EAGAIN && entry.op_context)
			break;
		n += ret == 1 && entry.flags & FI_RECV;
	}
	end(n < MESSAGES ? SHOWS : ABSENT, "%d of %d messages that were sent are received", n,
	    MESSAGES);
}

int main(void)
{
	return bounded(be_reset, 20);
}
