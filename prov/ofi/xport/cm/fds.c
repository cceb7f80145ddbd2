/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that are passed with bytes through a local socket (SCM_RIGHTS). */

#include "xport/cm/conn.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Space for the descriptors of a message, with the alignment that the system requires. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(DOFI_CM_FDS * sizeof(int))];
};

ssize_t dofi_cm_fds_send(int socket, const void *bytes, size_t n, struct dofi_cm_fds *fds)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	const size_t size = fds->n * sizeof(int);
	union control control = { .bytes = { 0 } };
	const struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(size),
	};
	ssize_t sent;

	control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.header), fds->fd, size);
	sent = sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		fds->n = 0;
	return sent;
}

ssize_t dofi_cm_fds_receive(int socket, void *bytes, size_t size, struct dofi_cm_fds *fds)
{
	struct iovec iov = { bytes, size };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t ret = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t i, n;
	int fd;

	if (ret < 0)
		return ret;
	for (header = CMSG_FIRSTHDR(&msg); header; header = CMSG_NXTHDR(&msg, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
			if (fds->n < DOFI_CM_FDS)
				fds->fd[fds->n++] = fd;
			else
				close(fd);
		}
	}
	return ret;
}

void dofi_cm_fds_close(struct dofi_cm_fds *fds)
{
	while (fds->n)
		close(fds->fd[--fds->n]);
}
