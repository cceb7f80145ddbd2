/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: an error of the target's send() loses the reply to an RDMA read; the connection
 * continues and the read never completes.
 *
 * The program overrides the send functions of the C library, and lets the target's send fail once.
 */
#include "defect.h"

#include <sys/syscall.h>

static int failing = -1, failed;

static bool fails(int fd)
{
	if (fd != failing)
		return false;
	failing = -1;
	failed = 1;
	errno = ENOBUFS;
	return true;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	return fails(fd) ? -1 : syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fails(fd) ? -1 : syscall(SYS_sendmsg, fd, msg, flags);
}

static void read_once(void)
{
	static char local[64], remote[64];
	struct fi_eq_cm_entry event;
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	struct fid_mr *mr;
	struct node n;
	uint16_t port;
	int ret;
	bool late = false;
	int64_t until;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	port = msg_listen(&n);
	msg_pair(&n, &n, port, &active, &passive);
	must(fi_mr_reg(n.domain, remote, sizeof(remote), FI_REMOTE_READ, 0, 7, 0, &mr, NULL));
	failing = socket_of(port, true);
	if (failing < 0)
		end(FAILED, "the connection has no socket");
	must(fi_read(active, local, sizeof(local), NULL, 0,
		     n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)remote : 0,
		     fi_mr_key(mr), NULL));
	until = now_ms() + 3000;
	while ((ret = cq_one(&n, &entry)) == -FI_EAGAIN && !late) {
		if (eq_wait(&n, &event, 0) == FI_SHUTDOWN)
			end(ABSENT, "the connection ends");
		late = is_late(until);
	}
	if (!failed)
		end(FAILED, "nothing was sent that could fail");
	if (ret != -FI_EAGAIN)
		end(ABSENT, "the read ends: %s", fi_strerror(ret < 0 ? -ret : 0));
	must(fi_recv(passive, remote, sizeof(remote), NULL, 0, NULL));
	must(fi_inject(active, "", 1, 0));
	ret = wait_one(&n, &entry, 2000);
	end(SHOWS, "the read never ends, and a message after it is %s",
	    ret ? fi_strerror(-ret) : "received");
}

int main(void)
{
	return bounded(read_once, 20);
}
