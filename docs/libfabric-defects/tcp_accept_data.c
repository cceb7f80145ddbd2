/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp, net: fi_accept() and fi_reject() take more private data than they have room for.
 *
 * fi_connect() refuses what is above FI_OPT_CM_DATA_SIZE. These copy it to memory for 256 bytes.
 */
#include "defect.h"

static void accept_much(void)
{
	const int64_t until = now_ms() + 5000;
	static char data[32768];
	struct fi_eq_cm_entry entry;
	struct fid_ep *passive;
	struct node n;
	int event, ret;

	msg_open(&n, provider, FI_MSG | FI_RMA);
	msg_connect(&n, msg_listen(&n));
	while ((event = eq_wait(&n, &entry, 10)) == -FI_EAGAIN)
		if (is_late(until))
			end(FAILED, "no request");
	if (event != FI_CONNREQ)
		end(FAILED, "event %d", event);
	passive = msg_endpoint(&n, entry.info);
	ret = fi_accept(passive, data, sizeof(data));
	if (ret)
		end(ABSENT, "fi_accept refuses 32 KiB: %s", fi_strerror(-ret));
	for (;;)
		if (is_late(until) || eq_wait(&n, &entry, 1) != -FI_EAGAIN)
			end(SHOWS, "fi_accept took 32 KiB where 256 bytes have room");
}

int main(void)
{
	return bounded_on_streams(accept_much, 20);
}
