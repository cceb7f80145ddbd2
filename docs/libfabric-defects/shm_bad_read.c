/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: an RDMA read with a bad key, where keys are checked (FI_MR_BASIC), is reported as a
 * success, or never completes and blocks the endpoint.
 */
#include "defect.h"

/* FI_MR_BASIC, which is a macro with a deprecation warning in libfabric 2 */
#define MR_BASIC 1

static struct shared {
	char name[NAME_SIZE];
	uint64_t address;
} * s;

static void target(void)
{
	static char data[64], memory[64];
	struct fi_cq_data_entry entry;
	struct node n;

	rdm_open(&n, "shm", "t", FI_MSG | FI_RMA);
	must(fi_recv(n.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, NULL));
	s->address = (uintptr_t)memory;
	shm_name(&n, s->name);
	for (;;)
		cq_one(&n, &entry);
}

static void initiator(void)
{
	const int64_t until = now_ms() + 8000;
	struct fi_cq_data_entry entry;
	char data[64] = "";
	struct fid_mr *mr;
	fi_addr_t to;
	struct node n;
	ssize_t ret;
	bool delivers_after_refusal;

	mr_mode = MR_BASIC;
	start(target, getpgrp());
	while (!s->name[0])
		if (is_late(until))
			end(FAILED, "the target did not start");
	usleep(100000);
	rdm_open(&n, "shm", "i", FI_MSG | FI_RMA);
	to = shm_insert(&n, s->name);
	must(fi_mr_reg(n.domain, data, sizeof(data), FI_READ, 0, 1, 0, &mr, NULL));
	while ((ret = fi_read(n.ep, data, sizeof(data), fi_mr_desc(mr), to, s->address, 0xdead,
			      NULL)) == -FI_EAGAIN) {
		cq_one(&n, &entry);
		if (is_late(until))
			end(FAILED, "nothing can be read");
	}
	must(ret);
	ret = wait_one(&n, &entry, 2000);
	if (!ret)
		end(SHOWS, "the read was reported as a success");
	if (ret != -FI_EAGAIN)
		end(ABSENT, "the read failed: %s", fi_strerror((int)-ret));
	delivers_after_refusal = inject(&n, to, data, sizeof(data), 2000);
	end(SHOWS, "the read never ends, and a message after it is %s",
	    delivers_after_refusal ? "sent" : "not: EAGAIN for ever");
}

int main(void)
{
	s = shared(sizeof(*s));
	return bounded(initiator, 20);
}
