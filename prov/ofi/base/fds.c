/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* This process's descriptors: 0, 1 and 2 where the program closed them, and the kernel's table. */

#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void dofi_std_fds_hold(void)
{
	const int err = errno;
	int fd, at;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		at = open("/", O_PATH | O_CLOEXEC);
		/* another thread has opened something at @fd */
		if (at > STDERR_FILENO)
			close(at);
	}
	errno = err;
}

void dofi_fd_table_grow(void)
{
	const int err = errno;
	rlim_t room = DOFI_FD_ROOM;
	struct rlimit limit;
	int fd = -1, last;
	struct stat st;

	/* the link count of the directory is 2 and the number of threads */
	if (!stat("/proc/self/task", &st) && st.st_nlink <= 3 &&
	    !getrlimit(RLIMIT_NOFILE, &limit)) {
		if (limit.rlim_cur < room)
			room = limit.rlim_cur;
		fd = open("/", O_PATH | O_CLOEXEC);
	}
	if (fd >= 0) {
		last = fcntl(fd, F_DUPFD_CLOEXEC, (int)room - 1);
		if (last >= 0)
			close(last);
		close(fd);
	}
	errno = err;
}
