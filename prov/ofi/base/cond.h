/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A condition variable. A signal handler can end its waits, and a wait can include a descriptor or
 * a futex.
 */
#ifndef DOFI_BASE_COND_H
#define DOFI_BASE_COND_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdint.h>

/* Belongs to a lock: all calls but dofi_cond_init() need it held. */
struct dofi_cond {
	_Atomic uint32_t wakeups;	/* the futex: it changes before each wakeup */
	unsigned sleepers;
	/* the eventfd of the thread in dofi_cond_wait_fd(), or -1 */
	int fd;
};

static inline void dofi_cond_init(struct dofi_cond *cond)
{
	atomic_init(&cond->wakeups, 0);
	cond->sleepers = 0;
	cond->fd = -1;
}

/*
 * Releases the lock, sleeps, and locks again. Returns 0 after a signal or broadcast, or spuriously;
 * -ETIMEDOUT after the deadline; -EINTR if a signal handler without SA_RESTART ran in this thread.
 * On a kernel without futex_waitv, handlers end only sleeps without a deadline.
 */
int dofi_cond_wait(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline)
	DOFI_NEEDS(*lock);

/*
 * Like dofi_cond_wait(); also returns 0 when @fd becomes readable. A wakeup writes to the eventfd
 * @wakeup_fd, which is empty again on return. @signals is from dofi_nap_open(). -EBUSY: see
 * dofi_nap(). One thread at a time.
 */
int dofi_cond_wait_fd(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline, int fd,
		      int wakeup_fd, int signals) DOFI_NEEDS(*lock);

/*
 * Like dofi_cond_wait(); also returns 0 when @word, a futex in shared memory, is woken or is not
 * @value. Returns -EBUSY if the kernel cannot wait for two futexes.
 */
int dofi_cond_wait_word(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline,
			_Atomic uint32_t *word, uint32_t value) DOFI_NEEDS(*lock);

/* Wakes the threads that sleep on @word, in any process that has it mapped. */
void dofi_word_wake(_Atomic uint32_t *word);

/* Wake one of the waiting threads, if any, or all. Both wake the thread in dofi_cond_wait_fd(). */
void dofi_cond_signal(struct dofi_cond *cond);
void dofi_cond_broadcast(struct dofi_cond *cond);

#endif
