/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a thread that does something again and again has stopped doing it, or lacks a processor.
 */

#include "base/runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Each thread caches its number, because several threads that alternate would query the kernel each
 * time. A number from before a fork is wrong: the observer finds no such thread then and begins
 * another age, in which threads query their numbers again.
 */
static _Atomic unsigned age = 1;
static __thread unsigned own_age;
static __thread int own_tid;

void dofi_runner_change(struct dofi_runner *runner)
{
	const unsigned current = atomic_load_explicit(&age, memory_order_relaxed);

	if (own_age != current) {
		own_tid = (int)syscall(SYS_gettid);	/* glibc has gettid() since 2.30 */
		own_age = current;
	}
	atomic_store_explicit(&runner->tid, own_tid, memory_order_relaxed);
	atomic_store_explicit(&runner->self, dofi_thread_pointer(), memory_order_relaxed);
}

/*
 * As the kernel makes one of a thread's number (include/linux/posix-timers.h): of all its processor
 * time, by the scheduler.
 */
static clockid_t clock_of(int tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6);
}

/* The thread has ended, or is the parent's. The next thread that notes itself is checked again. */
static void forget(struct dofi_runner *runner)
{
	atomic_fetch_add_explicit(&age, 1, memory_order_relaxed);
	atomic_store_explicit(&runner->tid, 0, memory_order_relaxed);
	atomic_store_explicit(&runner->self, NULL, memory_order_relaxed);
	runner->seen = 0;
}

int64_t dofi_runner_ran(struct dofi_runner *runner)
{
	const int tid = atomic_load_explicit(&runner->tid, memory_order_relaxed);
	const int64_t before = tid == runner->seen ? runner->ran : INT64_MIN;
	struct timespec ts;

	if (!tid ||
	    atomic_load_explicit(&runner->self, memory_order_relaxed) == dofi_thread_pointer())
		return INT64_MAX;
	if (clock_gettime(clock_of(tid), &ts)) {
		forget(runner);
		return INT64_MAX;
	}
	runner->seen = tid;
	runner->ran = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	return before == INT64_MIN ? INT64_MAX : runner->ran - before;
}

bool dofi_runner_is_runnable(const struct dofi_runner *runner)
{
	char path[48], stat[64] = "";	/* the state is behind a name of up to 15 bytes */
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", runner->seen);
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
