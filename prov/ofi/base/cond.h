/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping until another thread rings: a condition variable whose waits a signal can end. */
#ifndef DOFI_BASE_COND_H
#define DOFI_BASE_COND_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdint.h>

/* Belongs to a lock, which all of these calls but the first need. */
struct dofi_cond {
	_Atomic uint32_t wakeups;		/* the futex: it has changed when a sleeper is too late */
	unsigned sleepers;
	int fd;				/* the eventfd of the thread in dofi_cond_wait_fd(), or -1 */
};

static inline void dofi_cond_init(struct dofi_cond *cond)
{
	atomic_init(&cond->wakeups, 0);
	cond->sleepers = 0;
	cond->fd = -1;
}

/*
 * Drops the lock and sleeps. 0: somebody rang, or it only seems so. -ETIMEDOUT: the deadline has
 * passed. -EINTR: a signal handler without SA_RESTART ran in this thread; but where the kernel
 * lacks futex_waitv, handlers end a sleep only if it has no deadline.
 */
int dofi_cond_wait(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline);

/*
 * As dofi_cond_wait(), and returns 0 also when @fd becomes readable. A ring writes to the eventfd @ring_fd, which
 * is empty again on return. @signals is from dofi_nap_open(). -EBUSY: see dofi_nap(). One thread at a time.
 */
int dofi_cond_wait_fd(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline, int fd, int wakeup_fd,
		      int signals);

/*
 * As dofi_cond_wait(), and returns 0 also when @word, a futex in shared memory, is woken or is not @value.
 * -EBUSY: the kernel cannot wait for two futexes.
 */
int dofi_cond_wait_word(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline,
			_Atomic uint32_t *word, uint32_t value);

/* Wakes the threads that sleep on @word, in any process that has it mapped. */
void dofi_word_wake(_Atomic uint32_t *word);

/* Wakes one of the sleepers, if any, or all. The thread in dofi_cond_wait_fd() is woken by both. */
void dofi_cond_signal(struct dofi_cond *cond);
void dofi_cond_broadcast(struct dofi_cond *cond);

#endif
