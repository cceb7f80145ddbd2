/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A mutex where threads meet: who wants a locked one sleeps on its word. */

#include "base/mutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Whoever wants it counts among the waiters until he has it, so that each unlock before wakes one of
 * them. He sleeps only while the word is what he saw, that is as long as it stays locked.
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

/* Its memory may be gone by now, if who has it in the meantime freed it: then this is in vain. */
void dofi_mutex_wake(struct dofi_mutex *mutex)
{
	const int err = errno;

	syscall(SYS_futex, &mutex->word, FUTEX_WAKE_PRIVATE, 1);
	errno = err;
}
