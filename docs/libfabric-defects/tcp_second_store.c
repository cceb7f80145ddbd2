/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: a short RDMA write is stored twice. The target reads its CQ one instruction at a time, while
 * another process clears each byte that has changed, as a program does that polls its memory: the
 * bytes are set again.
 */
#include "defect.h"

#include <sys/ptrace.h>

#define SIZE 32
#define STEPS 1000000

static unsigned char *target;

/* No thread of libfabric reads the CQ. */
static void open_manual(struct node *n)
{
	struct fi_info *hints = hints_for("tcp", FI_EP_MSG, FI_MSG | FI_RMA);

	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	node_open(n, hints);
	fi_freeinfo(hints);
}

static void write_one(struct node *from, struct fid_ep *ep, const struct node *to,
		      struct fid_mr *mr)
{
	static const unsigned char data[SIZE] = { [0 ... SIZE - 1] = 'x' };
	const uint64_t address =
		to->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)target : 0;
	struct fi_cq_data_entry entry;

	must(fi_write(ep, data, SIZE, NULL, 0, address, fi_mr_key(mr), NULL));
	must(wait_one(from, &entry, 5000));
}

/* The first write makes the target allocate its buffers, which takes many instructions. */
static void read_one(void)
{
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct node a, b;
	struct pollfd p = { .events = POLLIN };
	struct fid_mr *mr;
	uint16_t port;
	int i;

	open_manual(&a);
	open_manual(&b);
	port = msg_listen(&b);
	msg_pair(&a, &b, port, &active, &passive);
	must(fi_mr_reg(b.domain, target, SIZE, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	write_one(&a, active, &b, mr);
	while (!*(volatile unsigned char *)target)
		cq_one(&b, &entry);
	memset(target, 0, SIZE);
	write_one(&a, active, &b, mr);
	p.fd = socket_of(port, true);
	if (poll(&p, 1, 5000) != 1)
		end(FAILED, "the write did not arrive");
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGTRAP);
	for (i = 0; i < 4; i++)
		cq_one(&b, &entry);
	_exit(ABSENT);
}

/* Returns whether any byte was stored again. */
static bool watch(pid_t pid)
{
	volatile unsigned char *byte = target;
	unsigned stored[SIZE] = { 0 };
	unsigned steps, i;
	bool again = false;
	int status;

	for (steps = 0; steps < STEPS; steps++) {
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		for (i = 0; i < SIZE; i++) {
			if (byte[i] && stored[i]++)
				again = true;
			byte[i] = 0;
		}
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			end(FAILED, "ptrace: %s", strerror(errno));
	}
	kill(pid, SIGKILL);
	if (!stored[0])
		end(FAILED, "the bytes did not arrive within %u instructions", steps);
	return again;
}

static void step(void)
{
	target = shared(SIZE);
	if (watch(start(read_one, getpgrp())))
		end(SHOWS, "bytes of a write of %d bytes were stored again after they were cleared",
		    SIZE);
}

int main(void)
{
	return bounded(step, 60);
}
