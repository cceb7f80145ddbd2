/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: FI_CONNECTED on the passive side is reported 256 bytes too long, with data that the
 * peer did not send.
 */
#include "defect.h"

static void length(void)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + 512];
	} buffer;
	const int64_t until = now_ms() + 5000;
	struct fid_ep *active, *passive = NULL;
	struct node n;
	uint32_t event;
	ssize_t ret;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	active = msg_connect(&n, msg_listen(&n));
	for (;;) {
		fi_cq_read(n.cq, NULL, 0);
		ret = fi_eq_read(n.eq, &event, &buffer, sizeof(buffer), 0);
		if (is_late(until) || (ret < 0 && ret != -FI_EAGAIN))
			end(FAILED, "no connection");
		if (ret <= 0)
			continue;
		if (event == FI_CONNREQ) {
			passive = msg_endpoint(&n, buffer.cm.info);
			must(fi_accept(passive, NULL, 0));
		} else if (event == FI_CONNECTED && buffer.cm.fid != &active->fid) {
			break;
		}
	}
	if ((size_t)ret > sizeof(buffer.cm))
		end(SHOWS, "FI_CONNECTED has %zd bytes of private data, and the peer sent none",
		    ret - (ssize_t)sizeof(buffer.cm));
	end(ABSENT, "FI_CONNECTED has no private data");
}

int main(void)
{
	return bounded(length, 20);
}
