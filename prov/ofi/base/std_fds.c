/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps descriptors 0, 1 and 2 from libfabric where the program has closed them. */

#include "base/std_fds.h"

#include <errno.h>
#include <fcntl.h>
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
