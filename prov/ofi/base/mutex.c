/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow paths of a mutex: threads that wait for it sleep on its futex. And the debug checks. */

#include "base/mutex.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without membarrier(2) a wakeup may be missed: a sleeping thread tries again after this time. */
#define BLIND_NS 1000000

/* From linux/membarrier.h, which older C libraries have no constants of. */
enum {
	PRIVATE_EXPEDITED = 1 << 3,	/* Linux 4.14 */
	REGISTER_PRIVATE_EXPEDITED = 1 << 4,
};

static _Atomic bool barriers;		/* the process is registered for membarrier(2) */

/* At load, while the process has few threads: the kernel waits for those on other processors. */
static __attribute__((constructor)) void barriers_register(void)
{
	const int err = errno;

	barriers = !syscall(SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0);
	errno = err;
}

/*
 * A thread counts as a waiter until it has the mutex, so that each unlock before wakes a waiter. It
 * then makes the processors of all threads of the process pass a barrier. If it finds the mutex
 * locked after that, the holder stores its unlock after the barrier, so it loads waiters after it
 * as well, and sees this thread.
 */
void dofi_mutex_wait(struct dofi_mutex *mutex)
{
	const struct dofi_timespec blind = dofi_timespec(BLIND_NS);
	const int err = errno;
	bool sure;

	atomic_fetch_add(&mutex->waiters, 1);
	sure = barriers && !syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0);
	while (!dofi_mutex_take(mutex))
		syscall(DOFI_SYS_FUTEX, &mutex->locked, FUTEX_WAIT_PRIVATE, 1,
			sure ? NULL : &blind);
	atomic_fetch_sub(&mutex->waiters, 1);
	errno = err;
}

/* A thread that took the mutex meanwhile may have ended its use: the wakeup has no effect then. */
void dofi_mutex_wake(struct dofi_mutex *mutex)
{
	const int err = errno;

	syscall(SYS_futex, &mutex->locked, FUTEX_WAKE_PRIVATE, 1);
	errno = err;
}

#ifdef DOFI_CHECKS
void dofi_owner_abort(const char *function, const char *lock, const char *wrong)
{
	fprintf(stderr, "%s: %s %s\n", function, lock, wrong);
	abort();
}
#endif
