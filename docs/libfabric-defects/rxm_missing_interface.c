/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxm: closing an endpoint that could not be enabled frees memory twice.
 *
 * The interface in FI_TCP_IFACE does not exist, so the endpoint has no address to listen at.
 */
#include "defect.h"

static void close_disabled(void)
{
	struct fi_info *hints = hints_for("tcp;ofi_rxm", FI_EP_RDM, FI_MSG);
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 1024 };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 256 };
	struct node n;
	int ret;

	setenv("FI_TCP_IFACE", "nosuch0", 1);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &n.info);
	if (ret)
		end(ABSENT, "fi_getinfo: %s", fi_strerror(-ret));
	must(fi_fabric(n.info->fabric_attr, &n.fabric, NULL));
	must(fi_domain(n.fabric, n.info, &n.domain, NULL));
	must(fi_cq_open(n.domain, &cq, &n.cq, NULL));
	must(fi_av_open(n.domain, &av, &n.av, NULL));
	must(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	must(fi_ep_bind(n.ep, &n.av->fid, 0));
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV));
	ret = fi_enable(n.ep);
	must(fi_close(&n.ep->fid));
	end(ABSENT, "fi_enable: %s", fi_strerror(-ret));
}

int main(void)
{
	return bounded(close_disabled, 20);
}
