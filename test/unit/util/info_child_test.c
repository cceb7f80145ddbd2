/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The child process of datinfo: its ends, its log, and the reasons that there is none. */
#include "info_child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int memfd_errno;

int memfd_create(const char *name, unsigned int flags)
{
	if (!memfd_errno)
		return (int)syscall(SYS_memfd_create, name, flags);
	errno = memfd_errno;
	return -1;
}

static bool body(struct child *c, void *shared)
{
	char *how = shared;

	child_step(c, "the step");
	fputs("dat-ofi[1] 2026-01-01T00:00:00.000000Z 1.000000 core: warning: the cause\n", stderr);
	switch (*how) {
	case 'd':
		*how = 'D';
		return true;
	case 'h':
		for (;;)
			pause();
	case 's':
		raise(SIGKILL);
		break;
	case 'e':
		exit(EXIT_FAILURE);
	}
	return false;
}

static char run(char how, struct child_result *r)
{
	cr_assert_eq(child_run(body, &how, sizeof(how), how == 'h' ? 1 : 60, r), 0);
	cr_expect_str_eq(r->step, "the step");
	cr_expect_str_eq(r->log, "the cause");
	return how;
}

Test(info_child, ends)
{
	struct child_result r;

	cr_expect_eq(run('d', &r), 'D');
	cr_expect_eq(r.end, CHILD_DONE);
	run('f', &r);
	cr_expect_eq(r.end, CHILD_FAILED);
	run('h', &r);
	cr_expect_eq(r.end, CHILD_HUNG);
	run('s', &r);
	cr_expect(r.end == CHILD_DIED && r.signal == SIGKILL);
	run('e', &r);
	cr_expect(r.end == CHILD_DIED && !r.signal);
}

static void fails(int err, const char *reason)
{
	struct child_result r;
	char how = 'd';

	memfd_errno = err;
	cr_expect_eq(child_run(body, &how, sizeof(how), 60, &r), -1);
	cr_expect_str_eq(r.log, reason);
	cr_expect_eq(how, 'd');
}

Test(info_child, no_child)
{
	fails(EPERM, "no process can be started: memfd_create: Operation not permitted, so a "
		     "seccomp filter of the container or service forbids it");
	fails(EMFILE, "no process can be started: memfd_create: Too many open files");
}
