/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: fi_accept() and fi_reject() copy private data beyond the end of their buffer.
 *
 * fi_connect() refuses more than FI_OPT_CM_DATA_SIZE bytes. fi_accept() and fi_reject() copy all
 * bytes to a buffer of 256.
 */
#include "defect.h"

static bool rejects;

static void answer(void)
{
	const int64_t until = now_ms() + 5000;
	static char data[32768];
	struct fi_eq_cm_entry entry;
	struct node n;
	int event, ret;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	msg_connect(&n, msg_listen(&n));
	while ((event = eq_wait(&n, &entry, 10)) == -FI_EAGAIN)
		if (is_late(until))
			end(FAILED, "no request");
	if (event != FI_CONNREQ)
		end(FAILED, "event %d", event);
	if (rejects)
		ret = fi_reject(n.pep, entry.info->handle, data, sizeof(data));
	else
		ret = fi_accept(msg_endpoint(&n, entry.info), data, sizeof(data));
	if (ret)
		end(ABSENT, "32 KiB are refused: %s", fi_strerror(-ret));
	while (!is_late(until) && eq_wait(&n, &entry, 1) == -FI_EAGAIN)
		;
	end(SHOWS, "32 KiB are taken where 256 bytes have room");
}

int main(void)
{
	int accepts;

	printf("fi_accept, ");
	accepts = bounded(answer, 20);
	rejects = true;
	printf("fi_reject, ");
	return bounded(answer, 20) == SHOWS ? SHOWS : accepts;
}
