/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: the address of an endpoint that never existed can be inserted, and each such address
 * uses one of the 256 entries.
 */
#include "defect.h"

static void insert_dead(void)
{
	char name[NAME_SIZE];
	struct node n;
	int i;

	rdm_open(&n, "shm", "a", FI_MSG);
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "fi_shm://defect-%d-missing%d:0:0", owner, i);
		if (shm_insert(&n, name) == FI_ADDR_NOTAVAIL)
			break;
	}
	if (i)
		end(SHOWS, "%d addresses of no endpoint were inserted", i);
	end(ABSENT, "the address of no endpoint is refused");
}

int main(void)
{
	return bounded(insert_dead, 20);
}
