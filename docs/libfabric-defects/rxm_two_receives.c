/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcp;ofi_rxm: one message that is too long for its receive consumes two receives. */
#include "defect.h"

static void send_long(void)
{
	static char data[60 * 1024], first[64], second[64];
	const int64_t until = now_ms() + 10000;
	struct fi_cq_data_entry entry;
	size_t size = 128;
	struct node a, b;
	char name[128];
	fi_addr_t to;
	ssize_t ret;
	int of_first = 0, of_second = 0;
	int64_t enough;

	rdm_open(&a, "tcp;ofi_rxm", NULL, FI_MSG);
	rdm_open(&b, "tcp;ofi_rxm", NULL, FI_MSG);
	must(fi_getname(&b.ep->fid, name, &size));
	if (fi_av_insert(a.av, name, 1, &to, 0, NULL) != 1)
		end(FAILED, "the address is not taken");
	must(fi_recv(b.ep, first, sizeof(first), NULL, FI_ADDR_UNSPEC, first));
	must(fi_recv(b.ep, second, sizeof(second), NULL, FI_ADDR_UNSPEC, second));
	while ((ret = fi_send(a.ep, data, sizeof(data), NULL, to, NULL)) == -FI_EAGAIN) {
		cq_one(&a, &entry);
		cq_one(&b, &entry);
		if (is_late(until))
			end(FAILED, "no connection");
	}
	must(ret);
	enough = now_ms() + 2000;
	while (!is_late(enough)) {
		cq_one(&a, &entry);
		if (cq_one(&b, &entry) == -FI_EAGAIN)
			continue;
		of_first += entry.op_context == first;
		of_second += entry.op_context == second;
	}
	if (of_first + of_second == 0)
		end(FAILED, "nothing came");
	if (of_first + of_second > 1)
		end(SHOWS, "one message made %d completions of its receive and %d of the next",
		    of_first, of_second);
	end(ABSENT, "one message ended one receive");
}

int main(void)
{
	return bounded(send_long, 20);
}
