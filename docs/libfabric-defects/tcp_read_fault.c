/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: an RDMA read of memory that its owner has unmapped never ends. The next read on the
 * connection then succeeds for it, with the bytes of other memory, and never ends itself.
 */
#include "defect.h"

#define SIZE 65536u

static void read_unmapped(void)
{
	static char first[SIZE], second[SIZE], other[SIZE];
	struct fi_cq_data_entry entry;
	struct fi_eq_cm_entry event;
	struct fid_ep *active, *passive;
	struct fid_mr *gone, *there;
	bool virtual;
	struct node n;
	char *memory;
	int ret;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		end(FAILED, "mmap: %s", strerror(errno));
	memset(memory, 1, SIZE);
	memset(other, 2, SIZE);
	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	virtual = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	msg_pair(&n, &n, msg_listen(&n), &active, &passive);
	must(fi_mr_reg(n.domain, memory, SIZE, FI_REMOTE_READ, 0, 7, 0, &gone, NULL));
	must(fi_mr_reg(n.domain, other, SIZE, FI_REMOTE_READ, 0, 8, 0, &there, NULL));
	/* like munmap(), but libfabric does not get the addresses for memory of its own */
	if (mmap(memory, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory)
		end(FAILED, "mmap: %s", strerror(errno));
	must(fi_read(active, first, SIZE, NULL, 0, virtual ? (uintptr_t)memory : 0,
		     fi_mr_key(gone), first));
	ret = wait_one(&n, &entry, 2000);
	if (ret != -FI_EAGAIN)
		end(ABSENT, "the read ends: %s", fi_strerror(-ret));
	if (eq_wait(&n, &event, 100) == FI_SHUTDOWN)
		end(ABSENT, "the connection ends");
	must(fi_read(active, second, SIZE, NULL, 0, virtual ? (uintptr_t)other : 0,
		     fi_mr_key(there), second));
	ret = wait_one(&n, &entry, 2000);
	if (!ret && entry.op_context == first && first[0] == 2)
		end(SHOWS, "the read succeeds when the next one is answered, with its bytes");
	end(SHOWS, "the read never ends; the next one: %s", fi_strerror(-ret));
}

int main(void)
{
	return bounded(read_unmapped, 20);
}
