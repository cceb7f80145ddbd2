/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads and processors: stopped or preempted threads, prompt wakeups, times to poll. */

#include "base/polling.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Each thread caches its TID, as alternating threads would query the kernel each time. A TID from
 * before a fork is wrong: the observer finds no such thread, and begins another age.
 */
static _Atomic unsigned age = 1;
static __thread unsigned own_age;
static __thread int own_tid;

void dofi_polling_thread_change(struct dofi_polling_thread *thread)
{
	const unsigned current = atomic_load_explicit(&age, memory_order_relaxed);

	if (own_age != current) {
		own_tid = (int)syscall(SYS_gettid);	/* glibc has gettid() since 2.30 */
		own_age = current;
	}
	atomic_store_explicit(&thread->tid, own_tid, memory_order_relaxed);
	atomic_store_explicit(&thread->self, dofi_thread_pointer(), memory_order_relaxed);
}

int64_t dofi_polling_thread_ran(struct dofi_polling_thread *thread)
{
	const int tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
	const int64_t before = tid == thread->seen ? thread->ran : INT64_MIN;
	/* the kernel's per-thread CPU clock of a TID (linux/posix-timers.h) */
	const clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6);
	struct timespec ts;

	if (!tid ||
	    atomic_load_explicit(&thread->self, memory_order_relaxed) == dofi_thread_pointer())
		return INT64_MAX;
	if (clock_gettime(clock, &ts)) {
		/* the thread ended, or is the parent's: check the next one again */
		atomic_fetch_add_explicit(&age, 1, memory_order_relaxed);
		atomic_store_explicit(&thread->tid, 0, memory_order_relaxed);
		atomic_store_explicit(&thread->self, NULL, memory_order_relaxed);
		thread->seen = 0;
		return INT64_MAX;
	}
	thread->seen = tid;
	thread->ran = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	return before == INT64_MIN ? INT64_MAX : thread->ran - before;
}

bool dofi_polling_thread_is_runnable(const struct dofi_polling_thread *thread)
{
	char path[48], stat[64] = "";	/* the state is behind a name of up to 15 bytes */
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread->seen);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (n < 1)
		return false;
	name_end = strrchr(stat, ')');
	return name_end && !strncmp(name_end, ") R", 3);
}

#define SLICE_NS 100000		/* the shortest slice that Linux grants */
#define TIMER_SLACK_NS 1	/* 0 would restore the default of 50 us */

void dofi_ask_short_slices(void)
{
	struct sched_attr attr = { .size = sizeof(attr) };

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	/* threads with another policy are left alone: the user has set their parameters */
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
	    attr.sched_policy != SCHED_NORMAL)
		return;
	attr.sched_runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* How many long waits in a row end polling: programs may alternate between short and long ones. */
#define LONG_WAITS 8

int64_t dofi_spin_time(const struct dofi_spin *spin, int64_t least)
{
	const int64_t most = DOFI_SPIN_MOST * least;

	if (spin->long_waits >= LONG_WAITS)
		return 0;
	if (2 * spin->usual <= least)
		return least;
	return 2 * spin->usual < most ? 2 * spin->usual : most;
}

void dofi_spin_learn(struct dofi_spin *spin, int64_t took, int64_t least)
{
	if (took > DOFI_SPIN_MOST * least) {
		spin->long_waits += spin->long_waits < LONG_WAITS;
		return;
	}
	spin->usual = took;
	spin->long_waits = 0;
}
