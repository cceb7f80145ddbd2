/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping on a descriptor: the events and signals that end the sleep. */

#include "base/cond.h"

#include "base/clock.h"
#include "thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BRIEF 2000		/* microseconds */
#define LONG 60000000

static int fd, wakeup_fd, signals;

static void init(void)
{
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	signals = dofi_nap_open();
	cr_assert(fd >= 0 && wakeup_fd >= 0 && signals >= 0);
}

TestSuite(nap, .init = init, .timeout = 30);

static int nap_for(uint32_t us)
{
	return dofi_nap(fd, wakeup_fd, signals, dofi_deadline(us));
}

static bool is_rung(void)
{
	uint64_t n;

	return read(wakeup_fd, &n, sizeof(n)) == sizeof(n);
}

Test(nap, ends_at_its_deadline)
{
	int64_t before = dofi_now();

	cr_expect_eq(nap_for(BRIEF), -ETIMEDOUT);
	cr_expect(dofi_now() - before >= BRIEF * 1000LL);
	cr_expect_eq(nap_for(0), -ETIMEDOUT);
	cr_expect_eq(dofi_nap(fd, wakeup_fd, signals, dofi_now() - 1), -ETIMEDOUT);
}

Test(nap, ends_when_the_descriptor_is_readable)
{
	dofi_nap_end(fd);
	cr_expect_eq(nap_for(UINT32_MAX), 0);
	cr_expect_eq(nap_for(LONG), 0, "the fabric takes what it wrote");
}

Test(nap, ends_at_its_deadline_whatever_the_descriptors_say)
{
	const int64_t deadline = dofi_deadline(BRIEF);

	dofi_nap_end(fd);
	while (!dofi_nap(fd, wakeup_fd, signals, deadline))
		;
	cr_expect(dofi_now() >= deadline);
	dofi_nap_end(wakeup_fd);
	cr_expect_eq(dofi_nap(fd, wakeup_fd, signals, deadline), -ETIMEDOUT);
	cr_expect(!is_rung());
}

Test(nap, takes_the_ring_that_ended_it)
{
	dofi_nap_end(wakeup_fd);
	dofi_nap_end(wakeup_fd);
	cr_expect_eq(nap_for(LONG), 0);
	cr_expect(!is_rung());
	cr_expect_eq(nap_for(BRIEF), -ETIMEDOUT);
}

Test(nap, a_full_counter_does_not_block)
{
	const uint64_t most = UINT64_MAX - 1;

	cr_assert_eq(write(wakeup_fd, &most, sizeof(most)), (ssize_t)sizeof(most));
	dofi_nap_end(wakeup_fd);
	cr_expect_eq(nap_for(LONG), 0);
}

Test(nap, a_descriptor_that_is_closed_is_not_slept_on)
{
	close(fd);
	cr_expect_eq(nap_for(LONG), -EBUSY);
	fd = wakeup_fd;
	wakeup_fd = dup(fd);
	close(wakeup_fd);
	cr_expect_eq(nap_for(LONG), -EBUSY);
}

Test(nap, without_a_descriptor_left_none_is_opened)
{
	struct rlimit limit, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(dofi_nap_open(), -EMFILE);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);	/* LeakSanitizer opens files */
}

Test(nap, the_signalfd_is_closed_on_exec)
{
	cr_expect(fcntl(signals, F_GETFD) & FD_CLOEXEC);
}

/* A thread that naps until let_go is set or a nap fails. */
struct sleeper {
	pthread_t thread;
	uint32_t us;
	_Atomic bool let_go;
	int err;
	_Atomic pid_t tid;
	_Atomic unsigned naps;
	int blocked;			/* a signal that the thread blocks, or 0 */
	sigset_t before, after;		/* the thread's signal mask */
};

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;
	sigset_t blocked;

	sigemptyset(&blocked);
	if (s->blocked)
		sigaddset(&blocked, s->blocked);
	pthread_sigmask(SIG_BLOCK, &blocked, &s->before);
	pthread_sigmask(SIG_BLOCK, NULL, &s->before);
	atomic_store(&s->tid, (pid_t)syscall(SYS_gettid));
	while (!s->err && !atomic_load(&s->let_go)) {
		s->err = nap_for(s->us);
		atomic_fetch_add(&s->naps, 1);
	}
	pthread_sigmask(SIG_BLOCK, NULL, &s->after);
	return NULL;
}

static void sleeper_start(struct sleeper *s, uint32_t us)
{
	*s = (struct sleeper){ .us = us, .blocked = s->blocked };
	pthread_create(&s->thread, NULL, sleeper_run, s);
	while (!thread_rests(atomic_load(&s->tid)))
		usleep(100);
}

static bool same_mask(const struct sleeper *s)
{
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&s->before, sig) != sigismember(&s->after, sig))
			return false;
	return true;
}

static int sleeper_end(struct sleeper *s)
{
	atomic_store(&s->let_go, true);
	dofi_nap_end(wakeup_fd);
	pthread_join(s->thread, NULL);
	cr_expect(same_mask(s));
	return s->err;
}

Test(nap, another_thread_ends_it)
{
	struct sleeper s = { .blocked = 0 };

	sleeper_start(&s, UINT32_MAX);
	cr_expect_eq(sleeper_end(&s), 0);
	cr_expect_eq(s.naps, 1);
}

static int disturbed(uint32_t us, int flags)
{
	struct sleeper s = { .blocked = 0 };

	thread_handles(flags);
	sleeper_start(&s, us);
	thread_disturb(s.thread, atomic_load(&s.tid), 20);
	return sleeper_end(&s);
}

static int pestered(uint32_t us, int flags)
{
	struct sleeper s = { .blocked = 0 };

	thread_handles(flags);
	sleeper_start(&s, us);
	thread_pester(s.thread);
	cr_expect(same_mask(&s));
	return s.err;
}

static _Atomic unsigned handled;

static void count_signal(int sig)
{
	atomic_fetch_add(&handled, 1);
}

Test(nap, a_handler_ends_it_and_has_run)
{
	struct sleeper s = { .blocked = 0 };

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = count_signal }, NULL);
	sleeper_start(&s, UINT32_MAX);
	pthread_kill(s.thread, SIGUSR1);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.err, -EINTR);
	cr_expect_eq(handled, 1);
	cr_expect_eq(pestered(LONG, 0), -EINTR);
}

Test(nap, a_handler_that_asks_for_a_restart_does_not)
{
	cr_expect_eq(disturbed(UINT32_MAX, SA_RESTART), 0);
	cr_expect_eq(disturbed(LONG, SA_RESTART), 0);
}

Test(nap, with_another_handler_that_does)
{
	sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = count_signal }, NULL);
	cr_expect_eq(disturbed(UINT32_MAX, SA_RESTART), 0);
	cr_expect_eq(handled, 0);
}

Test(nap, what_is_ignored_ends_nothing)
{
	struct sleeper s = { .blocked = 0 };

	signal(SIGUSR1, SIG_IGN);
	sleeper_start(&s, UINT32_MAX);
	thread_disturb(s.thread, atomic_load(&s.tid), 5);
	cr_expect_eq(sleeper_end(&s), 0);
}

/* The thread that blocks the signal does not handle it, and must not be kept awake by it. */
Test(nap, a_pending_signal_that_is_blocked_is_reported)
{
	struct sleeper s = { .blocked = SIGUSR1 };

	thread_handles(0);
	sleeper_start(&s, UINT32_MAX);
	pthread_kill(s.thread, SIGUSR1);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.err, -EBUSY);
	cr_expect(same_mask(&s));
}

/* A single-threaded program is interrupted by signals for the process. */
Test(nap, a_signal_for_the_process_ends_it)
{
	sigset_t usr1;
	struct sleeper s = { .blocked = 0 };

	thread_handles(0);
	sleeper_start(&s, UINT32_MAX);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	kill(getpid(), SIGUSR1);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.err, -EINTR);
}

static void *nap_uncancelled(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, (pid_t)syscall(SYS_gettid));
	s->err = nap_for(UINT32_MAX);
	atomic_store(&s->naps, 1);
	return NULL;
}

Test(nap, is_no_cancellation_point)
{
	struct sleeper s = { .err = -1 };

	pthread_create(&s.thread, NULL, nap_uncancelled, &s);
	while (!thread_rests(atomic_load(&s.tid)))
		usleep(100);
	pthread_cancel(s.thread);
	dofi_nap_end(wakeup_fd);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.err, 0);
	cr_expect_eq(s.naps, 1);
}
