/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* udp;ofi_rxd: an RDMA write that the target rejects never completes. */
#include "defect.h"

static void write_badly(void)
{
	const int64_t until = now_ms() + 5000;
	struct fi_cq_data_entry entry;
	char data[64] = "", name[128];
	size_t size = sizeof(name);
	struct node a, b;
	fi_addr_t to;
	ssize_t ret;

	rdm_open(&a, "udp;ofi_rxd", NULL, FI_MSG | FI_RMA);
	rdm_open(&b, "udp;ofi_rxd", NULL, FI_MSG | FI_RMA);
	must(fi_getname(&b.ep->fid, name, &size));
	if (fi_av_insert(a.av, name, 1, &to, 0, NULL) != 1)
		end(FAILED, "the address is not taken");
	while ((ret = fi_write(a.ep, data, 64, NULL, to, 0, 0xdead, NULL)) == -FI_EAGAIN) {
		cq_one(&a, &entry);
		cq_one(&b, &entry);
		if (is_late(until))
			end(FAILED, "nothing can be written");
	}
	must(ret);
	while ((ret = cq_one(&a, &entry)) == -FI_EAGAIN) {
		cq_one(&b, &entry);
		if (is_late(until))
			end(SHOWS, "the refused write has not ended after 5 s");
	}
	end(ABSENT, "the refused write ends: %s", fi_strerror(ret < 0 ? (int)-ret : 0));
}

int main(void)
{
	return bounded(write_badly, 20);
}
