/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: FI_DELIVERY_COMPLETE in an endpoint's default flags (tx_attr->op_flags) has no effect on
 * its RDMA writes.
 *
 * The target makes no progress, so the write cannot have been delivered.
 */
#include "defect.h"

static void write_once(void)
{
	static char local[64], remote[64];
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct fid_mr *mr;
	struct node a, b;
	uint16_t port;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	a.info->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
	port = msg_listen(&b);
	msg_pair(&a, &b, port, &active, &passive);
	must(fi_mr_reg(b.domain, remote, sizeof(remote), FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	must(fi_write(active, local, sizeof(local), NULL, 0, 0, fi_mr_key(mr), NULL));
	if (!wait_one(&a, &entry, 1000))
		end(SHOWS, "an RDMA write is delivered, and its target has not read it");
	end(ABSENT, "an RDMA write waits for its target");
}

int main(void)
{
	return bounded(write_once, 10);
}
