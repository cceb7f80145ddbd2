/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping on a descriptor, and which signals end the sleep. */

#include "base/nap.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

int dofi_nap_open(void)
{
	sigset_t all;
	int fd;

	sigfillset(&all);
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Not the function ppoll(), which is a cancellation point: a sleeping thread must not end here. */
static int poll_until(struct pollfd *pfd, nfds_t n, int64_t deadline)
{
	int64_t left = deadline == DOFI_NEVER ? 0 : deadline - dofi_now();
	const struct dofi_timespec ts = dofi_timespec(left > 0 ? left : 0);

	return (int)syscall(DOFI_SYS_PPOLL, pfd, n, deadline == DOFI_NEVER ? NULL : &ts, NULL, 0);
}

static bool ends_calls(int sig)
{
	struct sigaction act;

	if (sigaction(sig, NULL, &act))
		return false;
	if (!(act.sa_flags & SA_SIGINFO) &&
	    (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN))
		return false;
	return !(act.sa_flags & SA_RESTART);
}

/*
 * Returns the result of the sleep by the pending signals; @mask is the thread's mask outside the
 * sleep.
 */
static int judge_signals(const sigset_t *mask)
{
	bool deliverable = false;
	sigset_t pending;
	int sig;

	sigpending(&pending);
	for (sig = 1; sig <= SIGRTMAX; sig++) {
		if (sigismember(&pending, sig) != 1 || sigismember(mask, sig) == 1)
			continue;
		if (ends_calls(sig))
			return -EINTR;
		deliverable = true;
	}
	return deliverable ? 0 : -EBUSY;
}

static void wakeup_take(int wakeup_fd)
{
	uint64_t count;

	syscall(SYS_read, wakeup_fd, &count, sizeof(count));
}

/* Called with all signals blocked; @mask is the thread's mask before. */
static int nap_blocked(struct pollfd *pfd, int64_t deadline, const sigset_t *mask)
{
	int n = poll_until(pfd, 3, deadline);

	/* EINTR is of a signal that the C library uses itself and does not let be blocked */
	if (n < 0)
		return errno == EINTR ? 0 : -EBUSY;
	if ((pfd[0].revents | pfd[1].revents | pfd[2].revents) & POLLNVAL)
		return -EBUSY;
	if (pfd[1].revents)
		wakeup_take(pfd[1].fd);
	if (pfd[2].revents)
		return judge_signals(mask);
	return n ? 0 : -ETIMEDOUT;
}

int dofi_nap(int fd, int wakeup_fd, int signals, int64_t deadline)
{
	struct pollfd pfd[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = wakeup_fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	sigset_t all, mask;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = nap_blocked(pfd, deadline, &mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return err;
}

void dofi_nap_end(int wakeup_fd)
{
	const uint64_t one = 1;

	/* fails only if the counter is full, and then the eventfd is readable */
	syscall(SYS_write, wakeup_fd, &one, sizeof(one));
}
