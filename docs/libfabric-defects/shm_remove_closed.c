/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: fi_av_remove() of the closed endpoint of a peer in the calling process crashes.
 *
 * One process has two endpoints, each with its own fabric, domain and AV, as in two libraries.
 * The first sends to the second, the second is closed, and the first removes its address.
 */
#include "defect.h"

static void remove_closed(void)
{
	struct fi_cq_data_entry entry;
	char data[64] = "", name[NAME_SIZE];
	const int64_t until = now_ms() + 5000;
	struct node a, b;
	fi_addr_t to;

	rdm_open(&a, "shm", "a", FI_MSG);
	rdm_open(&b, "shm", "b", FI_MSG);
	shm_name(&b, name);
	to = shm_insert(&a, name);
	must(fi_recv(b.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, NULL));
	while (fi_inject(a.ep, "", 1, to) == -FI_EAGAIN) {
		cq_one(&a, &entry);
		cq_one(&b, &entry);
		if (is_late(until))
			end(FAILED, "nothing can be sent");
	}
	must(wait_one(&b, &entry, 5000));
	rdm_close(&b);
	must(fi_av_remove(a.av, &to, 1, 0));
	end(ABSENT, "the address of a closed endpoint can be removed");
}

int main(void)
{
	return bounded(remove_closed, 20);
}
