/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes the scheduler run a thread soon after a wakeup. */

#include "base/prompt.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000		/* the shortest slice that Linux grants */
#define TIMER_SLACK_NS 1	/* 0 would restore the default of 50 us */

/* Leaves threads alone that have another policy: the user has set their parameters. */
static void shorten_slice(void)
{
	struct sched_attr attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
	    attr.sched_policy != SCHED_NORMAL)
		return;
	attr.sched_runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

void dofi_prompt(void)
{
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	shorten_slice();
}
