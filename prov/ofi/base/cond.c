/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping by futexes, which report signals, and on descriptors; counts of calls in progress. */

#include "base/cond.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns 0 or a negative errno. @until may be NULL. */
static int futex_wait(struct dofi_cond *cond, uint32_t wakeups, const struct dofi_timespec *until)
{
	return syscall(DOFI_SYS_FUTEX, &cond->wakeups, FUTEX_WAIT_BITSET_PRIVATE, wakeups, until,
		       NULL, FUTEX_BITSET_MATCH_ANY) < 0 ? -errno : 0;
}

/* Also waits for @word, in shared memory, unless it is NULL. -EBUSY: Linux before 5.16. */
static int futex_waitv(struct dofi_cond *cond, uint32_t wakeups, const struct dofi_timespec *until,
		       _Atomic uint32_t *word, uint32_t value)
{
#ifdef SYS_futex_waitv
	struct futex_waitv wait[] = {
		{ .val = wakeups, .uaddr = (uintptr_t)&cond->wakeups,
		  .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG },
		{ .val = value, .uaddr = (uintptr_t)word, .flags = FUTEX_32 },
	};

	/* on success the number of the futex that was woken */
	if (syscall(SYS_futex_waitv, wait, word ? 2 : 1, 0, until, CLOCK_MONOTONIC) >= 0)
		return 0;
	/* EPERM: a seccomp filter predates futex_waitv */
	return errno == ENOSYS || errno == EPERM ? -EBUSY : -errno;
#else
	(void)cond, (void)wakeups, (void)until, (void)word, (void)value;
	return -EBUSY;
#endif
}

/*
 * Any handler ends a futex wait with a deadline, even with SA_RESTART, but for futex_waitv. On
 * older kernels the wait goes on: programs that are profiled by signals must not see it fail.
 */
int dofi_cond_wait_word(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline,
			_Atomic uint32_t *word, uint32_t value)
{
	static _Atomic bool missing;
	/* a wakeup from now on changes the futex, even before this thread sleeps */
	const uint32_t wakeups = atomic_load_explicit(&cond->wakeups, memory_order_relaxed);
	const struct dofi_timespec at = dofi_timespec(deadline);
	const struct dofi_timespec *until = deadline == DOFI_NEVER ? NULL : &at;
	int err = -EBUSY;

	dofi_mutex_assert_held(lock);
	cond->sleepers++;
	dofi_mutex_unlock(lock);
	if (!word && !until) {
		err = futex_wait(cond, wakeups, NULL);
	} else {
		if (!missing)
			err = futex_waitv(cond, wakeups, until, word, value);
		if (err == -EBUSY) {
			missing = true;
			if (!word)
				err = futex_wait(cond, wakeups, until) == -ETIMEDOUT ?
					      -ETIMEDOUT : 0;
		}
	}
	dofi_mutex_lock(lock);
	cond->sleepers--;
	if (err == -EINTR || err == -EBUSY)
		return err;
	return dofi_now() < deadline ? 0 : -ETIMEDOUT;
}

int dofi_cond_wait(struct dofi_cond *cond, struct dofi_mutex *lock, int64_t deadline)
{
	return dofi_cond_wait_word(cond, lock, deadline, NULL, 0);
}

void dofi_word_wake(_Atomic uint32_t *word)
{
	const int err = errno;

	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX);
	errno = err;
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

/* Sleeping on a descriptor */

int dofi_nap_open(void)
{
	sigset_t all;
	int fd;

	sigfillset(&all);
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Returns the result of the sleep by the pending signals; @mask is the mask outside the sleep. */
static int judge_signals(const sigset_t *mask)
{
	bool deliverable = false, handled;
	struct sigaction act;
	sigset_t pending;
	int sig;

	sigpending(&pending);
	for (sig = 1; sig <= SIGRTMAX; sig++) {
		if (sigismember(&pending, sig) != 1 || sigismember(mask, sig) == 1)
			continue;
		deliverable = true;
		if (sigaction(sig, NULL, &act))
			continue;
		handled = act.sa_flags & SA_SIGINFO ||
			  (act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN);
		if (handled && !(act.sa_flags & SA_RESTART))
			return -EINTR;
	}
	return deliverable ? 0 : -EBUSY;
}

int dofi_nap(int fd, int wakeup_fd, int signals, int64_t deadline)
{
	struct pollfd pfd[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = wakeup_fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	const int64_t left = deadline == DOFI_NEVER ? 0 : deadline - dofi_now();
	const struct dofi_timespec ts = dofi_timespec(left > 0 ? left : 0);
	sigset_t all, mask;
	uint64_t count;
	int n, err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	/* not the function ppoll(), a cancellation point: a sleeping thread must not end here */
	n = (int)syscall(DOFI_SYS_PPOLL, pfd, 3, deadline == DOFI_NEVER ? NULL : &ts, NULL, 0);
	if (n < 0) {
		/* EINTR is of a signal that the C library uses itself and never blocks */
		err = errno == EINTR ? 0 : -EBUSY;
	} else if ((pfd[0].revents | pfd[1].revents | pfd[2].revents) & POLLNVAL) {
		err = -EBUSY;
	} else {
		if (pfd[1].revents)
			syscall(SYS_read, wakeup_fd, &count, sizeof(count));
		if (pfd[2].revents)
			err = judge_signals(&mask);
		else
			err = n ? 0 : -ETIMEDOUT;
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return err || dofi_now() < deadline ? err : -ETIMEDOUT;
}

void dofi_nap_end(int wakeup_fd)
{
	const uint64_t one = 1;

	/* fails only if the counter is full, and then the eventfd is readable */
	syscall(SYS_write, wakeup_fd, &one, sizeof(one));
}

/* Calls in progress */

void dofi_calls_wake(struct dofi_calls *calls)
{
	const int err = errno;

	syscall(SYS_futex, &calls->word, FUTEX_WAKE_PRIVATE, INT_MAX);
	errno = err;
}

void dofi_calls_await(struct dofi_calls *calls)
{
	const int err = errno;
	uint32_t word = atomic_fetch_or(&calls->word, DOFI_CALLS_AWAITED) | DOFI_CALLS_AWAITED;

	while (word != DOFI_CALLS_AWAITED) {
		syscall(SYS_futex, &calls->word, FUTEX_WAIT_PRIVATE, word, NULL);
		word = atomic_load(&calls->word);
	}
	atomic_fetch_and(&calls->word, ~DOFI_CALLS_AWAITED);
	errno = err;
}
