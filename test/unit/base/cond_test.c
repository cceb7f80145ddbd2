/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleep and wakeup: no wakeup is lost, and which signals end a sleep. */

#include "base/cond.h"

#include "base/clock.h"
#include "thread.h"
#include "forbid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BRIEF 2000		/* microseconds */
#define LONG 60000000

static struct dofi_mutex lock;
/* lock guards cond, tokens and taken. */
static struct dofi_cond cond;
static unsigned tokens, taken;

static void init(void)
{
	dofi_cond_init(&cond);
}

TestSuite(cond, .init = init, .timeout = 30);

static int sleep_for(uint32_t us)
{
	int err;

	dofi_mutex_lock(&lock);
	err = dofi_cond_wait(&cond, &lock, dofi_deadline(us));
	dofi_mutex_unlock(&lock);
	return err;
}

Test(cond, a_sleep_ends_at_its_deadline)
{
	int64_t before = dofi_now();

	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
	cr_expect(dofi_now() - before >= BRIEF * 1000LL);
	cr_expect_eq(sleep_for(0), -ETIMEDOUT);
	cr_expect_eq(cond.sleepers, 0);
}

Test(cond, without_sleepers_a_signal_wakes_no_thread)
{
	dofi_mutex_lock(&lock);
	dofi_cond_signal(&cond);
	dofi_cond_broadcast(&cond);
	dofi_mutex_unlock(&lock);
	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static bool ring_at_sleep;

/*
 * The system calls of base/. The caller passes at most five arguments in registers. A sixth is on
 * its stack and must not be read for a call that has only five.
 */
long __wrap_syscall(long number, ...)
{
	long arg[6] = { 0 };
	va_list ap;
	int i;

	if (ring_at_sleep) {
		ring_at_sleep = false;
		dofi_mutex_lock(&lock);
		dofi_cond_signal(&cond);
		dofi_mutex_unlock(&lock);
	}
	va_start(ap, number);
	for (i = 0; i < 5; i++)
		arg[i] = va_arg(ap, long);
	if (number == DOFI_SYS_FUTEX && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
		arg[5] = va_arg(ap, long);
	va_end(ap);
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

Test(cond, a_ring_before_the_thread_sleeps_is_heard)
{
	ring_at_sleep = true;
	cr_expect_eq(sleep_for(LONG), 0);
	ring_at_sleep = true;
	cr_expect_eq(sleep_for(UINT32_MAX), 0);
}

Test(cond, a_ring_at_the_deadline_does_not_prolong_the_wait)
{
	ring_at_sleep = true;
	cr_expect_eq(sleep_for(0), -ETIMEDOUT);
	cr_expect(!ring_at_sleep);
}

/* Each token wakes one taker. The takers sleep with no deadline or with one far away. */
static void *take_tokens(void *arg)
{
	const uint32_t us = *(const uint32_t *)arg;
	int i;

	for (i = 0; i < 1000; i++) {
		dofi_mutex_lock(&lock);
		while (!tokens)
			cr_expect_eq(dofi_cond_wait(&cond, &lock, dofi_deadline(us)), 0);
		tokens--;
		taken++;
		dofi_mutex_unlock(&lock);
	}
	return NULL;
}

Test(cond, no_ring_is_lost)
{
	static const uint32_t us[] = { UINT32_MAX, LONG, UINT32_MAX };
	pthread_t thread[3];
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, take_tokens, (void *)(uintptr_t)&us[i]);
	for (i = 0; i < 3000; i++) {
		dofi_mutex_lock(&lock);
		tokens++;
		dofi_cond_signal(&cond);
		dofi_mutex_unlock(&lock);
	}
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(taken, 3000);
	cr_expect_eq(tokens, 0);
	cr_expect_eq(cond.sleepers, 0);
}

/* A thread that sleeps until let_go is set or a signal ends its sleep. */
struct sleeper {
	pthread_t thread;
	uint32_t us;
	bool let_go;			/* under the lock, like err */
	int err;
	_Atomic pid_t tid;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	dofi_mutex_lock(&lock);
	atomic_store(&s->tid, gettid());
	while (!s->let_go && !s->err)
		s->err = dofi_cond_wait(&cond, &lock, dofi_deadline(s->us));
	dofi_mutex_unlock(&lock);
	return NULL;
}

static void sleeper_start(struct sleeper *s, uint32_t us)
{
	*s = (struct sleeper){ .us = us };
	pthread_create(&s->thread, NULL, sleeper_run, s);
}

static void sleeper_rests(const struct sleeper *s)
{
	while (!thread_rests(atomic_load(&s->tid)))
		usleep(100);
}

static int sleeper_end(struct sleeper *s)
{
	dofi_mutex_lock(&lock);
	s->let_go = true;
	dofi_cond_broadcast(&cond);
	dofi_mutex_unlock(&lock);
	pthread_join(s->thread, NULL);
	return s->err;
}

Test(cond, all_are_woken_at_once)
{
	struct sleeper s[3];
	int i;

	for (i = 0; i < 3; i++)
		sleeper_start(&s[i], i ? LONG : UINT32_MAX);
	for (i = 0; i < 3; i++)
		sleeper_rests(&s[i]);
	dofi_mutex_lock(&lock);
	for (i = 0; i < 3; i++)
		s[i].let_go = true;
	dofi_cond_broadcast(&cond);
	dofi_mutex_unlock(&lock);
	for (i = 0; i < 3; i++) {
		pthread_join(s[i].thread, NULL);
		cr_expect_eq(s[i].err, 0);
	}
}

/* A sleep that signals do not end. Returns the result of the sleep. */
static int disturbed(uint32_t us, int flags)
{
	struct sleeper s;

	thread_handles(flags);
	sleeper_start(&s, us);
	sleeper_rests(&s);
	thread_disturb(s.thread, atomic_load(&s.tid), 20);
	return sleeper_end(&s);
}

/* A sleep that ends by a signal or at its deadline. Returns the result of the sleep. */
static int pestered(uint32_t us, int flags)
{
	struct sleeper s;

	thread_handles(flags);
	sleeper_start(&s, us);
	thread_pester(s.thread);
	cr_expect_eq(cond.sleepers, 0);
	return s.err;
}

/* Whether the kernel has futex_waitv. */
static bool has_waitv(void)
{
#ifdef SYS_futex_waitv
	return syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == EINVAL;
#else
	return false;
#endif
}

Test(cond, a_handler_ends_a_sleep)
{
	cr_expect_eq(pestered(UINT32_MAX, 0), -EINTR);
	if (has_waitv())
		cr_expect_eq(pestered(LONG, 0), -EINTR);
}

Test(cond, a_handler_that_asks_for_a_restart_does_not)
{
	cr_expect_eq(disturbed(UINT32_MAX, SA_RESTART), 0);
	cr_expect_eq(disturbed(LONG, SA_RESTART), 0);
}

Test(cond, a_deadline_holds_in_spite_of_signals)
{
	cr_expect_eq(pestered(BRIEF, SA_RESTART), -ETIMEDOUT);
}

/* Sleep on cond and a descriptor */

static int wait_with_fd(int fd, int wakeup_fd, uint32_t us)
{
	int signals = dofi_nap_open(), err;

	dofi_mutex_lock(&lock);
	err = dofi_cond_wait_fd(&cond, &lock, dofi_deadline(us), fd, wakeup_fd, signals);
	cr_expect_eq(cond.fd, -1);
	dofi_mutex_unlock(&lock);
	close(signals);
	return err;
}

static int new_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	cr_assert(fd >= 0);
	return fd;
}

Test(cond, a_descriptor_ends_a_wait)
{
	int fd = new_eventfd(), wakeup_fd = new_eventfd();

	cr_expect_eq(wait_with_fd(fd, wakeup_fd, BRIEF), -ETIMEDOUT);
	dofi_nap_end(fd);
	cr_expect_eq(wait_with_fd(fd, wakeup_fd, UINT32_MAX), 0);
}

Test(cond, a_signal_ends_a_wait_with_a_descriptor)
{
	int fd = new_eventfd(), wakeup_fd = new_eventfd();

	ring_at_sleep = true;
	cr_expect_eq(wait_with_fd(fd, wakeup_fd, UINT32_MAX), 0);
	cr_expect_eq(wait_with_fd(fd, wakeup_fd, BRIEF), -ETIMEDOUT, "the ring was taken");
	dofi_mutex_lock(&lock);
	dofi_cond_broadcast(&cond);
	dofi_mutex_unlock(&lock);
	cr_expect_eq(wait_with_fd(fd, wakeup_fd, BRIEF), -ETIMEDOUT, "no thread waited then");
}

/*
 * Sleep on cond and a word of shared memory. Without futex_waitv the kernel refuses every such
 * sleep.
 */
static _Atomic uint32_t word;

static int wait_with_word(uint32_t value, uint32_t us)
{
	int err;

	dofi_mutex_lock(&lock);
	err = dofi_cond_wait_word(&cond, &lock, dofi_deadline(us), &word, value);
	cr_expect_eq(cond.sleepers, 0);
	dofi_mutex_unlock(&lock);
	return err;
}

Test(cond, a_word_that_has_changed_ends_a_sleep)
{
	int64_t before = dofi_now();

	word = 1;
	if (!has_waitv()) {
		cr_expect_eq(wait_with_word(2, LONG), -EBUSY);
		return;
	}
	cr_expect_eq(wait_with_word(2, LONG), 0);
	cr_expect_eq(wait_with_word(2, UINT32_MAX), 0);
	cr_expect_eq(wait_with_word(1, BRIEF), -ETIMEDOUT);
	cr_expect(dofi_now() - before >= BRIEF * 1000LL);
}

Test(cond, a_signal_ends_a_wait_with_a_word)
{
	ring_at_sleep = true;
	cr_expect_eq(wait_with_word(0, UINT32_MAX), has_waitv() ? 0 : -EBUSY);
	ring_at_sleep = true;
	cr_expect_eq(wait_with_word(0, LONG), has_waitv() ? 0 : -EBUSY);
}

static void *wake_word(void *arg)
{
	const struct sleeper *s = arg;

	sleeper_rests(s);
	dofi_word_wake(&word);
	return NULL;
}

Test(cond, the_word_is_woken)
{
	struct sleeper s = { .us = 0 };
	pthread_t waker;

	atomic_store(&s.tid, gettid());
	pthread_create(&waker, NULL, wake_word, &s);
	cr_expect_eq(wait_with_word(0, UINT32_MAX), has_waitv() ? 0 : -EBUSY);
	pthread_join(waker, NULL);
}

#ifdef SYS_futex_waitv
static void old_kernel(int err)
{
	struct sleeper s;

	if (!forbid_call(SYS_futex_waitv, err))
		return;
	cr_expect(!has_waitv());
	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
	sleeper_start(&s, LONG);
	cr_expect_eq(sleeper_end(&s), 0);
	cr_expect_eq(pestered(UINT32_MAX, 0), -EINTR);
	cr_expect_eq(disturbed(LONG, 0), 0, "not known which handler it was");
	cr_expect_eq(disturbed(LONG, SA_RESTART), 0);
	cr_expect_eq(pestered(BRIEF, 0), -ETIMEDOUT);
	cr_expect_eq(wait_with_word(0, LONG), -EBUSY);
}

Test(cond, without_futex_waitv_a_sleep_with_a_deadline_goes_on)
{
	old_kernel(ENOSYS);
}

Test(cond, a_sleep_with_a_deadline_goes_on_where_futex_waitv_is_forbidden)
{
	old_kernel(EPERM);
}
#endif

/* Calls in progress: a thread waits for the last of them. */

static struct dofi_calls calls;
static _Atomic pid_t tid;
static atomic_bool waited;

TestSuite(calls, .timeout = 30);

static void *await_run(void *arg)
{
	tid = (pid_t)syscall(SYS_gettid);
	dofi_calls_await(&calls);
	waited = true;
	return NULL;
}

static pthread_t waiter_start(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, await_run, NULL);
	while (!tid || !thread_rests(tid))
		sched_yield();
	return thread;
}

Test(calls, without_any_there_is_no_wait)
{
	dofi_calls_await(&calls);
	dofi_calls_begin(&calls);
	dofi_calls_end(&calls);
	dofi_calls_await(&calls);
	cr_expect_eq(calls.word, 0);
}

Test(calls, the_last_to_end_wakes_the_waiter)
{
	pthread_t thread;

	dofi_calls_begin(&calls);
	dofi_calls_begin(&calls);
	thread = waiter_start();
	dofi_calls_end(&calls);
	while (!thread_rests(tid))
		sched_yield();
	cr_expect(!waited);
	dofi_calls_end(&calls);
	pthread_join(thread, NULL);
	cr_expect(waited);
	cr_expect_eq(calls.word, 0);
}

Test(calls, signals_do_not_end_the_wait)
{
	pthread_t thread;

	thread_handles(0);
	dofi_calls_begin(&calls);
	thread = waiter_start();
	thread_disturb(thread, tid, 5);
	cr_expect(!waited);
	dofi_calls_end(&calls);
	pthread_join(thread, NULL);
}
