/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which host and PID namespace a process is in. */

#include "host/host.h"

#include "child.h"

#include <string.h>

TestSuite(host, .timeout = 30);

static void say_host(int fd)
{
	struct dofi_host host;

	cr_assert_eq(dofi_host_read(&host), 0);
	say(fd, &host, sizeof(host));
}

static void send_from_namespace(int fd)
{
	child_enter_pid_space();
	say_host(fd);
}

/* Runs @teller in a child. Returns false if the child may not enter that namespace. */
static bool host_of_child(void (*teller)(int fd), struct dofi_host *host, pid_t *pid)
{
	struct child c = child_start(teller);
	bool heard = recv(c.fd, host, sizeof(*host), MSG_WAITALL) == sizeof(*host);

	*pid = c.pid;
	child_end(&c);
	return heard;
}

Test(host, a_process_knows_where_it_is)
{
	struct dofi_host here, there;
	pid_t pid;

	cr_assert_eq(dofi_host_read(&here), 0);
	cr_expect_eq(here.pid, (uint32_t)getpid());
	cr_assert(host_of_child(say_host, &there, &pid));
	cr_expect(dofi_host_shares_pids(&here, &there));
	cr_expect_eq(here.pid_space, there.pid_space);
	cr_expect_eq(there.pid, (uint32_t)pid);
}

Test(host, another_pid_space_is_far)
{
	struct dofi_host here, there;
	pid_t pid;

	cr_assert_eq(dofi_host_read(&here), 0);
	if (!host_of_child(send_from_namespace, &there, &pid))
		return;
	cr_expect(!dofi_host_shares_pids(&here, &there));
	cr_expect(here.pid_space != there.pid_space);
	cr_expect_eq(there.pid, 1);
}

Test(host, all_of_it_counts)
{
	struct dofi_host here, there;

	cr_assert_eq(dofi_host_read(&here), 0);
	there = here;
	there.boot[15] ^= 1;
	cr_expect(!dofi_host_shares_pids(&here, &there));
	there = here;
	there.pid_space++;
	cr_expect(!dofi_host_shares_pids(&here, &there));
}
