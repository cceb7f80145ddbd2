/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: with FI_MR_VIRT_ADDR an RDMA write with an unregistered key changes the target's
 * memory, and is reported as a success.
 *
 * The target has no registrations.
 */
#include "defect.h"

static struct shared {
	char name[NAME_SIZE];
	uint64_t address;
	volatile int changed;
} * s;

static void target(void)
{
	static volatile char secret[64];
	struct fi_cq_data_entry entry;
	struct node n;

	rdm_open(&n, "shm", "t", FI_MSG | FI_RMA);
	s->address = (uintptr_t)secret;
	shm_name(&n, s->name);
	for (;;) {
		cq_one(&n, &entry);
		s->changed = secret[0];
	}
}

static void initiator(void)
{
	const int64_t until = now_ms() + 5000;
	struct fi_cq_data_entry entry;
	struct fid_mr *mr;
	char data[64] = "written";
	fi_addr_t to;
	struct node n;
	ssize_t ret;

	start(target, getpgrp());
	while (!s->name[0])
		if (is_late(until))
			end(FAILED, "the target did not start");
	usleep(100000);
	rdm_open(&n, "shm", "i", FI_MSG | FI_RMA);
	if (!(n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR))
		end(SKIP, "no virtual addresses");
	to = shm_insert(&n, s->name);
	must(fi_mr_reg(n.domain, data, sizeof(data), FI_WRITE, 0, 1, 0, &mr, NULL));
	while ((ret = fi_write(n.ep, data, sizeof(data), fi_mr_desc(mr), to, s->address, 0xdead,
			       NULL)) == -FI_EAGAIN) {
		cq_one(&n, &entry);
		if (is_late(until))
			end(FAILED, "nothing can be written");
	}
	must(ret);
	ret = wait_one(&n, &entry, 1000);
	usleep(100000);
	if (s->changed)
		end(SHOWS,
		    "memory that was never registered was written, and the write ended with: %s",
		    fi_strerror((int)-ret));
	end(ABSENT, "the target's memory stays; the write ended with: %s", fi_strerror((int)-ret));
}

int main(void)
{
	s = shared(sizeof(*s));
	return bounded(initiator, 20);
}
