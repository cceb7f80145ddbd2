/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: fi_reject() after fi_endpoint() for a request returns 0, but the peer gets no event.
 */
#include "defect.h"

static void reject(void)
{
	const int64_t until = now_ms() + 5000;
	struct fi_eq_cm_entry entry;
	struct fid_ep *passive;
	struct node n;
	int event, ret;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	msg_connect(&n, msg_listen(&n));
	while ((event = eq_wait(&n, &entry, 10)) == -FI_EAGAIN)
		if (is_late(until))
			end(FAILED, "no request");
	if (event != FI_CONNREQ)
		end(FAILED, "event %d", event);
	passive = msg_endpoint(&n, entry.info);
	ret = fi_reject(n.pep, entry.info->handle, NULL, 0);
	if (ret)
		end(ABSENT, "fi_reject says that it cannot: %s", fi_strerror(-ret));
	event = eq_wait(&n, &entry, 3000);
	if (event == -FI_EAGAIN)
		end(SHOWS, "fi_reject returned 0, and the peer got no event for 3 s");
	fi_close(&passive->fid);
	end(ABSENT, "the peer is refused: %s", fi_strerror(event < 0 ? -event : 0));
}

int main(void)
{
	return bounded(reject, 20);
}
