/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors 0, 1 and 2 that the program has closed. */

#include "base/std_fds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int saved[3];

static void init(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

/* The runner reports through them. */
static void fini(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		dup2(saved[fd], fd);
}

TestSuite(std_fds, .init = init, .fini = fini);

Test(std_fds, closed_ones_are_held_and_still_fail)
{
	bool held = true, fail = true;
	char byte = 0;
	int fd, next;

	for (fd = 0; fd < 3; fd++)
		close(fd);
	errno = ENOENT;
	dofi_std_fds_hold();
	held &= errno == ENOENT;
	for (fd = 0; fd < 3; fd++) {
		held &= fcntl(fd, F_GETFD) == FD_CLOEXEC;
		fail &= read(fd, &byte, 1) < 0 && errno == EBADF;
		fail &= write(fd, &byte, 1) < 0 && errno == EBADF;
	}
	next = dup(saved[0]);
	close(next);
	fini();
	cr_expect(held);
	cr_expect(fail);
	cr_expect(next > 2);
}

Test(std_fds, open_ones_are_left_alone)
{
	int before = fcntl(0, F_DUPFD, 0), after;

	close(before);
	dofi_std_fds_hold();
	after = fcntl(0, F_DUPFD, 0);
	close(after);
	cr_expect_eq(before, after);
	cr_expect(!(fcntl(1, F_GETFL) & O_PATH));
}
