/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A condition variable over the system calls for futexes, which report signals. */

#include "base/cond.h"

#include "base/clock.h"
#include "base/nap.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns 0 or a negative errno. @until may be NULL. */
static int futex_wait(struct dofi_cond *cond, uint32_t wakeups, const struct dofi_timespec *until)
{
	return syscall(DOFI_SYS_FUTEX, &cond->wakeups, FUTEX_WAIT_BITSET_PRIVATE, wakeups, until,
		       NULL, FUTEX_BITSET_MATCH_ANY) < 0 ? -errno : 0;
}

/* Also waits for @word, in shared memory, unless it is NULL. */
#ifdef SYS_futex_waitv
static int futex_waitv(struct dofi_cond *cond, uint32_t wakeups, const struct dofi_timespec *until,
		       _Atomic uint32_t *word, uint32_t value)
{
	struct futex_waitv wait[] = {
		{ .val = wakeups, .uaddr = (uintptr_t)&cond->wakeups,
		  .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG },
		{ .val = value, .uaddr = (uintptr_t)word, .flags = FUTEX_32 },
	};

	if (syscall(SYS_futex_waitv, wait, word ? 2 : 1, 0, until, CLOCK_MONOTONIC) < 0)
		return -errno;
	return 0;
}
#else
static int futex_waitv(struct dofi_cond *cond, uint32_t wakeups, const struct dofi_timespec *until,
		       _Atomic uint32_t *word, uint32_t value)
{
	(void)cond;
	(void)wakeups;
	(void)until;
	(void)word;
	(void)value;
	return -ENOSYS;
}
#endif

/* EPERM: of a sandbox that does not know futex_waitv */
static bool is_missing(int err)
{
	return err == -ENOSYS || err == -EPERM;
}

/*
 * A futex wait with a deadline is ended by any handler, even with SA_RESTART; only futex_waitv,
 * since Linux 5.16, honours that flag. On older kernels such waits continue: a program that wants
 * its calls restarted, or is profiled by signals, must not see them fail.
 */
static int wait_until(struct dofi_cond *cond, uint32_t wakeups, int64_t deadline)
{
	static _Atomic bool missing;
	const struct dofi_timespec until = dofi_timespec(deadline);
	int err = missing ? -ENOSYS : futex_waitv(cond, wakeups, &until, NULL, 0);

	if (!is_missing(err))
		return err;
	missing = true;
	err = futex_wait(cond, wakeups, &until);
	return err == -EINTR ? 0 : err;
}

int dofi_cond_wait(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline)
{
	/* a wakeup from now on changes the futex, even before this thread sleeps */
	const uint32_t wakeups = atomic_load_explicit(&cond->wakeups, memory_order_relaxed);
	int err;

	dofi_mutex_assert_held(lock);
	cond->sleepers++;
	dofi_mutex_unlock(lock);
	err = deadline == DOFI_NEVER ? futex_wait(cond, wakeups, NULL) :
				       wait_until(cond, wakeups, deadline);
	dofi_mutex_lock(lock);
	cond->sleepers--;
	return err == -EINTR || err == -ETIMEDOUT ? err : 0;
}

int dofi_cond_wait_word(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline,
			_Atomic uint32_t *word, uint32_t value)
{
	const uint32_t wakeups = atomic_load_explicit(&cond->wakeups, memory_order_relaxed);
	const struct dofi_timespec until = dofi_timespec(deadline);
	int err;

	dofi_mutex_assert_held(lock);
	cond->sleepers++;
	dofi_mutex_unlock(lock);
	err = futex_waitv(cond, wakeups, deadline == DOFI_NEVER ? NULL : &until, word, value);
	dofi_mutex_lock(lock);
	cond->sleepers--;
	if (is_missing(err))
		return -EBUSY;
	return err == -EINTR || err == -ETIMEDOUT ? err : 0;
}

void dofi_word_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX);
}

int dofi_cond_wait_fd(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline, int fd,
		      int wakeup_fd, int signals)
{
	int err;

	dofi_mutex_assert_held(lock);
	cond->fd = wakeup_fd;
	dofi_mutex_unlock(lock);
	err = dofi_nap(fd, wakeup_fd, signals, deadline);
	dofi_mutex_lock(lock);
	cond->fd = -1;
	return err;
}

static void wake(struct dofi_cond *cond, int n)
{
	if (cond->fd >= 0)
		dofi_nap_end(cond->fd);
	if (!cond->sleepers)
		return;
	atomic_fetch_add_explicit(&cond->wakeups, 1, memory_order_relaxed);
	syscall(SYS_futex, &cond->wakeups, FUTEX_WAKE_PRIVATE, n);
}

void dofi_cond_signal(struct dofi_cond *cond)
{
	wake(cond, 1);
}

void dofi_cond_broadcast(struct dofi_cond *cond)
{
	wake(cond, INT_MAX);
}
