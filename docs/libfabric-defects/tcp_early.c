/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: fi_send() on an endpoint that is enabled but not connected crashes instead of returning
 * an error.
 */
#include "defect.h"

static void send_early(void)
{
	struct fid_ep *ep;
	struct node n;
	ssize_t ret;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	ep = msg_endpoint(&n, n.info);
	ret = fi_send(ep, "", 1, NULL, 0, NULL);
	fi_cq_read(n.cq, NULL, 0);
	end(ABSENT, "fi_send returns: %s", fi_strerror((int)-ret));
}

int main(void)
{
	return bounded(send_early, 10);
}
