/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A condition variable: signal handlers, a descriptor or a futex also end its waits. */
#ifndef DOFI_BASE_COND_H
#define DOFI_BASE_COND_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdint.h>

/* Belongs to a lock: all calls but dofi_cond_init() need it held. */
struct dofi_cond {
	_Atomic uint32_t wakeups;	/* the futex: it changes before each wakeup */
	unsigned sleepers;
	int fd;			/* the eventfd of the thread in dofi_cond_wait_fd(), or -1 */
};

static inline void dofi_cond_init(struct dofi_cond *cond)
{
	atomic_init(&cond->wakeups, 0);
	cond->sleepers = 0;
	cond->fd = -1;
}

/*
 * Releases the lock, sleeps, and locks again. Returns 0 after a wakeup, or spuriously; -ETIMEDOUT
 * once @deadline has passed, even if woken, so that no series of wakeups prolongs a wait; -EINTR
 * after a signal handler without SA_RESTART, which a kernel without futex_waitv reports only to
 * sleeps without a deadline.
 */
int dofi_cond_wait(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline)
	DOFI_NEEDS(*lock);

/*
 * A dofi_cond_wait() that also ends when @fd is readable. A wakeup writes to the eventfd
 * @wakeup_fd. @signals is from dofi_nap_open(). -EBUSY: see dofi_nap(). One thread at a time.
 */
int dofi_cond_wait_fd(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline, int fd,
		      int wakeup_fd, int signals) DOFI_NEEDS(*lock);

/*
 * A dofi_cond_wait() that also ends when @word, a futex that may be NULL, is woken or its value is
 * not @value. -EBUSY: the kernel or a sandbox has no futex_waitv for this process.
 */
int dofi_cond_wait_word(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline,
			_Atomic uint32_t *word, uint32_t value) DOFI_NEEDS(*lock);

/* Wakes the threads that sleep on @word, in any process that has it mapped. Preserves errno. */
void dofi_word_wake(_Atomic uint32_t *word);

/* Wake one of the waiting threads, if any, or all. Both wake the thread in dofi_cond_wait_fd(). */
void dofi_cond_signal(struct dofi_cond *cond);
void dofi_cond_broadcast(struct dofi_cond *cond);

/*
 * Sleeping on a descriptor: another thread, or a signal as in a futex wait, ends the sleep. Any
 * handler ends poll(2), which does not report which one ran. So a sleeping thread blocks all
 * signals, polls a signalfd, and inspects the pending signals before it unblocks them.
 */

/* Returns a signalfd for dofi_nap() in any thread, or a negative errno. */
int dofi_nap_open(void);

/*
 * Returns 0 if @fd is readable, after dofi_nap_end(), or spuriously; -ETIMEDOUT once @deadline has
 * passed, even if @fd is readable; -EINTR after a handler without SA_RESTART; -EBUSY if a blocked
 * signal is pending, which hides others, or a descriptor is not open: sleep in another way.
 * @wakeup_fd has EFD_NONBLOCK and is empty on return.
 */
int dofi_nap(int fd, int wakeup_fd, int signals, int64_t deadline);

/* Ends the sleep on @wakeup_fd, or the next one if no thread sleeps. Any thread, any lock. */
void dofi_nap_end(int wakeup_fd);

/* Counts calls in progress, so that a thread can wait until all have ended. */

/* Zeroed, no call is in progress. */
struct dofi_calls {
	/* the futex: the number of calls, plus DOFI_CALLS_AWAITED while a thread waits for them */
	_Atomic uint32_t word;
};

#define DOFI_CALLS_AWAITED (1u << 31)

/* Sequentially consistent: see dofi_calls_await(). */
static inline void dofi_calls_begin(struct dofi_calls *calls)
{
	atomic_fetch_add(&calls->word, 1);
}

void dofi_calls_wake(struct dofi_calls *calls);

/* The memory of @calls may be reused, but not unmapped, once this has counted. */
static inline void dofi_calls_end(struct dofi_calls *calls)
{
	if (__builtin_expect(atomic_fetch_sub(&calls->word, 1) == DOFI_CALLS_AWAITED + 1, 0))
		dofi_calls_wake(calls);
}

/*
 * Waits until no call is in progress. A thread that clears a flag before this, and tests it after
 * dofi_calls_begin(), either sees it cleared or is waited for. One thread at a time.
 */
void dofi_calls_await(struct dofi_calls *calls);

#endif
