/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: a message of 60 KiB for a receive of 64 bytes makes the receiver spin for ever in
 * fi_cq_read() with its endpoint's lock held, and no later message is received.
 */
#include "defect.h"

static char *receivers_name;

static void receiver(void)
{
	struct fi_cq_data_entry entry;
	char small[64], next[64];
	struct node n;
	int ret, second;

	rdm_open(&n, "shm", "r", FI_MSG);
	must(fi_recv(n.ep, small, sizeof(small), NULL, FI_ADDR_UNSPEC, small));
	must(fi_recv(n.ep, next, sizeof(next), NULL, FI_ADDR_UNSPEC, next));
	shm_name(&n, receivers_name);
	ret = wait_one(&n, &entry, 3000);
	if (ret == -FI_EAGAIN)
		end(SHOWS, "the overlong message's receive never completes");
	second = wait_one(&n, &entry, 3000);
	if (second)
		end(SHOWS, "the message behind the overlong one (%s) did not come: %s",
		    fi_strerror(-ret), fi_strerror(-second));
	end(ABSENT, "an overlong message is %s, and the next one comes", fi_strerror(-ret));
}

static void sender(void)
{
	static char data[60 * 1024];
	struct fi_cq_data_entry entry;
	fi_addr_t to;
	struct node n;

	while (!receivers_name[0])
		sched_yield();
	usleep(100000);
	rdm_open(&n, "shm", "s", FI_MSG);
	to = shm_insert(&n, receivers_name);
	while (fi_send(n.ep, data, sizeof(data), NULL, to, NULL) == -FI_EAGAIN)
		cq_one(&n, &entry);
	inject(&n, to, data, 16, 10000);
	for (;;)
		cq_one(&n, &entry);
}

static void both(void)
{
	start(sender, getpgrp());
	receiver();
}

int main(void)
{
	receivers_name = shared(NAME_SIZE);
	return bounded(both, 8);
}
