/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shm: the error of a truncated message is negative in fi_cq_err_entry. */
#include "defect.h"

static void truncate_one(void)
{
	struct fi_cq_err_entry error = { .err = 0 };
	const int64_t until = now_ms() + 5000;
	struct fi_cq_data_entry entry;
	char data[128] = "", name[NAME_SIZE];
	struct node a, b;
	fi_addr_t to;
	ssize_t ret;

	rdm_open(&a, "shm", "a", FI_MSG);
	rdm_open(&b, "shm", "b", FI_MSG);
	shm_name(&b, name);
	to = shm_insert(&a, name);
	must(fi_recv(b.ep, data, 64, NULL, FI_ADDR_UNSPEC, NULL));
	while (fi_inject(a.ep, data, 128, to) == -FI_EAGAIN) {
		cq_one(&a, &entry);
		fi_cq_read(b.cq, NULL, 0);
		if (is_late(until))
			end(FAILED, "nothing can be sent");
	}
	while ((ret = fi_cq_read(b.cq, &entry, 1)) == -FI_EAGAIN)
		if (is_late(until))
			end(FAILED, "nothing comes");
	if (ret != -FI_EAVAIL)
		end(FAILED, "no error");
	must(fi_cq_readerr(b.cq, &error, 0));
	if (error.err < 0)
		end(SHOWS, "the error is %d", error.err);
	end(ABSENT, "the error is %d", error.err);
}

int main(void)
{
	return bounded(truncate_one, 20);
}
