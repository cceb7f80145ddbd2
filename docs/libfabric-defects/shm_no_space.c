/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: enabling an endpoint crashes when its file cannot have the size.
 *
 * The limit on the size of files stands for a full /dev/shm.
 */
#include "defect.h"

#include <sys/resource.h>

static void enable(void)
{
	const struct rlimit small = { 4096, 4096 };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 256 };
	struct node n;
	int ret;

	node_open(&n, hints_for("shm", FI_EP_RDM, FI_MSG));
	must(fi_av_open(n.domain, &av, &n.av, NULL));
	must(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	must(fi_ep_bind(n.ep, &n.av->fid, 0));
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV));
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	ret = fi_enable(n.ep);
	end(ret ? ABSENT : FAILED, "fi_enable: %s", fi_strerror(-ret));
}

int main(void)
{
	return bounded(enable, 20);
}
