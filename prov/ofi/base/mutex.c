/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow paths of a mutex: threads that wait for it sleep on its word. And the debug checks. */

#include "base/mutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A thread counts as a waiter until it has the mutex, so that each unlock before wakes a waiter. It
 * sleeps only if the word has not changed, so only while the mutex is locked.
 */
void dofi_mutex_wait(struct dofi_mutex *mutex)
{
	const int err = errno;
	uint32_t word;

	atomic_fetch_add_explicit(&mutex->word, DOFI_MUTEX_WAITER, memory_order_relaxed);
	while ((word = dofi_mutex_take(mutex)) & DOFI_MUTEX_LOCKED)
		syscall(SYS_futex, &mutex->word, FUTEX_WAIT_PRIVATE, word, NULL);
	atomic_fetch_sub_explicit(&mutex->word, DOFI_MUTEX_WAITER, memory_order_relaxed);
	errno = err;
}

/* A thread that locked the mutex meanwhile may have freed it: the wakeup has no effect then. */
void dofi_mutex_wake(struct dofi_mutex *mutex)
{
	const int err = errno;

	syscall(SYS_futex, &mutex->word, FUTEX_WAKE_PRIVATE, 1);
	errno = err;
}

#ifdef DOFI_CHECKS
void dofi_owner_abort(const char *function, const char *lock, const char *wrong)
{
	fprintf(stderr, "%s: %s %s\n", function, lock, wrong);
	abort();
}
#endif
