/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calling thread's requests to the scheduler. */

#include "base/polling.h"

#include <criterion/criterion.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <stdio.h>
#include <unistd.h>

static struct sched_attr attr;

static void get(void)
{
	cr_assert_eq(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
}

/* Linux reports the slice of an ordinary thread since the version in which it can be set. */
static bool slices_can_be_chosen(void)
{
	struct utsname u;
	int major, minor;

	cr_assert_eq(uname(&u), 0);
	cr_assert_eq(sscanf(u.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 12);
}

Test(prompt, no_timer_slack_and_a_short_slice)
{
	dofi_ask_short_slices();
	cr_expect_eq(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1);
	get();
	cr_expect_eq(attr.sched_policy, SCHED_NORMAL);
	if (slices_can_be_chosen())
		cr_expect_eq(attr.sched_runtime, 100000);
}

Test(prompt, keeps_the_nice_value)
{
	cr_assert_eq(setpriority(PRIO_PROCESS, 0, 5), 0);
	dofi_ask_short_slices();
	get();
	cr_expect_eq(attr.sched_nice, 5);
}

Test(prompt, leaves_other_policies_alone)
{
	attr = (struct sched_attr){ .size = sizeof(attr),
				    .sched_policy = SCHED_BATCH,
				    .sched_nice = 3 };
	cr_assert_eq(syscall(SYS_sched_setattr, 0, &attr, 0), 0);
	dofi_ask_short_slices();
	get();
	cr_expect_eq(attr.sched_policy, SCHED_BATCH);
	cr_expect_eq(attr.sched_nice, 3);
	cr_expect(attr.sched_runtime != 100000);
}
