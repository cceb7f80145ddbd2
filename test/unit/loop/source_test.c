/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sources and timers of the progress thread. */

#include "loop/progress.h"

#include "base/clock.h"
#include "forbid.h"
#include "loop/one.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

TestSuite(source, .init = init, .fini = fini);

/* Sources */

struct tray {
	struct dofi_source source;
	int fd;
};

/* Empties the eventfd, so that each fill is reported once. */
static void tray_ready(struct dofi_source *source)
{
	uint64_t n;
	char c = read(((struct tray *)source)->fd, &n, sizeof(n)) > 0 ? 'r' : 'w';

	cr_expect(dofi_progress_on_thread(&progress));
	if (c == 'w')
		dofi_source_change(&progress, source, ((struct tray *)source)->fd, EPOLLIN);
	trace_add(c);
}

static void tray_fill(struct tray *t)
{
	uint64_t one = 1;

	cr_expect_eq(write(t->fd, &one, sizeof(one)), sizeof(one));
}

/* Runs on the progress thread, because ThreadSanitizer does not know that epoll hands @t over. */
static void tray_add(void *t)
{
	cr_expect_eq(dofi_source_add(&progress, t, ((struct tray *)t)->fd, EPOLLIN), 0);
}

Test(source, a_source_is_called_for_the_events_it_names)
{
	struct tray t = { { tray_ready }, eventfd(0, EFD_NONBLOCK) };

	dofi_progress_call(&progress, tray_add, &t);
	tray_fill(&t);
	await(1);
	cr_expect_str_eq(trace, "r");
	cr_expect_eq(dofi_source_change(&progress, &t.source, t.fd, EPOLLOUT), 0);
	await(1);
	cr_expect_str_eq(trace, "rw");
	dofi_source_remove(&progress, t.fd);
	settle();
	tray_fill(&t);
	settle();
	settle();
	cr_expect_str_eq(trace, "rw");
	close(t.fd);
}

Test(source, a_source_that_cannot_be_waited_for_is_refused)
{
	struct tray t = { { tray_ready }, eventfd(0, EFD_NONBLOCK) };

	cr_expect_eq(dofi_source_add(&progress, &t.source, -1, EPOLLIN), -EBADF);
	cr_expect_eq(dofi_source_change(&progress, &t.source, t.fd, EPOLLIN), -ENOENT);
	dofi_source_remove(&progress, t.fd);
	close(t.fd);
}

/* Timers: an array of them, each with its letter and its time */

struct ticker {
	struct dofi_timer timer;
	char c;
	int64_t at;
};

static void ticker_fire(struct dofi_timer *timer)
{
	trace_add(((struct ticker *)timer)->c);
}

static struct ticker ticker[8];
static int64_t base;

static void ticker_set(int i, int64_t at)
{
	ticker[i].timer.fire = ticker_fire;
	ticker[i].c = 'a' + i;
	dofi_timer_start(&progress, &ticker[i].timer, at);
}

static void start_in_disorder(void *arg)
{
	static const int ms[] = { 4, 1, 3, 0, 2 };
	int i;

	base = dofi_now();
	for (i = 0; i < 5; i++)
		ticker_set(i, base + ms[i] * 1000000);
}

Test(source, timers_fire_soonest_first)
{
	dofi_progress_call(&progress, start_in_disorder, NULL);
	await(5);
	cr_expect_str_eq(trace, "dbeca");
	cr_expect(dofi_now() >= base + 4000000);
}

static void start_equal(void *arg)
{
	int i;

	base = dofi_now() + 2000000;
	for (i = 0; i < 5; i++)
		ticker_set(i, base);
}

Test(source, equal_timers_fire_as_started)
{
	dofi_progress_call(&progress, start_equal, NULL);
	await(5);
	cr_expect_str_eq(trace, "abcde");
}

static void stop_some(void *arg)
{
	start_in_disorder(arg);
	dofi_timer_stop(&progress, &ticker[3].timer);	/* the first */
	dofi_timer_stop(&progress, &ticker[4].timer);	/* in the middle */
	dofi_timer_stop(&progress, &ticker[4].timer);	/* again */
}

Test(source, stopped_timers_do_not_fire)
{
	dofi_progress_call(&progress, stop_some, NULL);
	await(3);
	cr_expect_str_eq(trace, "bca");
}

static void restart(void *arg)
{
	start_in_disorder(arg);
	ticker_set(3, base + 9000000);
	ticker_set(0, base);
}

Test(source, a_restarted_timer_fires_once_at_its_new_time)
{
	dofi_progress_call(&progress, restart, NULL);
	await(5);
	cr_expect_str_eq(trace, "abecd");
}

static void start_never(void *arg)
{
	ticker_set(0, DOFI_NEVER);
	cr_expect_eq(ticker[0].timer.at, 0);
	ticker_set(1, dofi_now());
	ticker_set(1, DOFI_NEVER);
	ticker_set(2, dofi_now() + 1000000);
}

Test(source, never_starts_nothing_and_stops)
{
	dofi_progress_call(&progress, start_never, NULL);
	await(1);
	cr_expect_str_eq(trace, "c");
}

static void fire_again(struct dofi_timer *timer)
{
	struct ticker *t = (struct ticker *)timer;

	cr_expect_eq(timer->at, 0);
	trace_add(t->c++);
	if (t->c <= 'c')
		dofi_timer_start(&progress, timer, dofi_now() + 1000);
}

static void start_again(void *arg)
{
	ticker[0] = (struct ticker){ .timer.fire = fire_again, .c = 'a' };
	dofi_timer_start(&progress, &ticker[0].timer, dofi_now());
}

Test(source, a_timer_may_start_itself_again)
{
	dofi_progress_call(&progress, start_again, NULL);
	await(3);
	cr_expect_str_eq(trace, "abc");
}

static void fire_and_stop_next(struct dofi_timer *timer)
{
	ticker_fire(timer);
	dofi_timer_stop(&progress, &ticker[1].timer);
}

static void start_to_stop(void *arg)
{
	start_equal(arg);
	ticker[0].timer.fire = fire_and_stop_next;
}

Test(source, a_timer_may_stop_another_that_is_due)
{
	dofi_progress_call(&progress, start_to_stop, NULL);
	await(4);
	cr_expect_str_eq(trace, "acde");
}

static void start_past(void *arg)
{
	ticker_set(0, 1);
}

Test(source, a_time_in_the_past_fires_at_once)
{
	dofi_progress_call(&progress, start_past, NULL);
	await(1);
	cr_expect_str_eq(trace, "a");
}

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* Where a sandbox refuses the filter, the thread has the call. */
static void epoll_pwait2_end(void *arg)
{
	forbid_call(SYS_epoll_pwait2, ENOSYS);
}

static void start_soon(void *arg)
{
	base = dofi_now();
	ticker_set(0, base + 300000);
	ticker_set(1, base + 3000000);
}

/* Linux before 5.11 waits for milliseconds. */
Test(source, timers_fire_in_time_without_epoll_pwait2)
{
	dofi_progress_call(&progress, epoll_pwait2_end, NULL);
	dofi_progress_call(&progress, start_soon, NULL);
	await(2);
	cr_expect_str_eq(trace, "ab");
	cr_expect(dofi_now() >= base + 3000000);
}
