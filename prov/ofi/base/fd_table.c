/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's table of this process's descriptors. */

#include "base/fd_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The link count of the directory is 2 and the number of threads. */
static bool has_one_thread(void)
{
	struct stat st;

	return !stat("/proc/self/task", &st) && st.st_nlink <= 3;
}

void dofi_fd_table_grow(void)
{
	const int err = errno;
	struct rlimit limit;
	rlim_t room = DOFI_FD_ROOM;
	int fd = -1, last;

	if (has_one_thread() && !getrlimit(RLIMIT_NOFILE, &limit)) {
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
